"""Leases on NATS: a lease is the message of a subject, and the server removes it when its time to live is over.

Taking one appends the message where there is none, and renewing it replaces the message by compare-and-swap, with a new
time to live each time: a message without one would stay for ever. The messages lie in a stream of their own, which
keeps the newest one of each subject: what ends within seconds leaves no holes in the stream of the records.
"""

# ruff: noqa: D102  # what a method does stands in the port

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import uuid4

from ralf.errors import Claimed, Fenced
from ralf.storage.journal import Token
from ralf_integrations.stores.encryption import Cipher
from ralf_integrations.stores.nats_link import Address, call
from ralf_integrations.stores.nats_log import Log, Moved

SECONDS = 15
"""How long a lease lasts: the election of a stream's leader takes up to 9 s, and a holder renews about every 3 s."""

_TTL, _KIND = "Nats-TTL", "l"


class _Lease(NamedTuple):
    """A lease as its message has it: the message's sequence, who has it, since when, how many seconds it lasts, and
    until when.
    """

    seq: int
    holder: str
    since: str
    seconds: int
    until: str = ""


@dataclass(frozen=True)
class NatsLeases:
    """The leases of a project. Contract: `ralf.storage.journal.Leases`. A token is the sequence of a lease's message.

    address  of the servers
    project  the name under which they know the project
    seconds  how long a lease lasts
    timeout  seconds that a call may take
    cipher   encrypts who has one
    log      opens the stream of the leases
    """

    address: Address
    project: str
    seconds: float = field(compare=False)
    timeout: float = field(compare=False)
    cipher: Cipher = field(compare=False)
    log: Callable[[], Log] = field(compare=False)

    @call
    def take(self, name: str, holder: str, *, seconds: float = 0.0) -> Token:
        since = _text(time.time())
        while True:
            try:
                return self._put(name, _Lease(0, _on_one_line(holder), since, _whole(seconds or self.seconds)))
            except Moved:
                held = self._held(name)
            if held is not None:  # else it has ended just now
                raise Claimed(name, held.holder, held.since, "try again when it has ended", until=held.until)

    @call
    def renew(self, name: str, token: Token, *, seconds: float = 0.0) -> Token:
        held = self._held(name)
        if held is None or str(held.seq) != token:
            raise _lost(name, held)
        try:
            return self._put(name, held._replace(seconds=_whole(seconds or held.seconds)))
        except Moved:
            raise _lost(name, self._held(name)) from None

    @call
    def resume(self, name: str, holder: str) -> Token:
        held = self._held(name)
        if held is None or held.holder != _on_one_line(holder):
            raise _lost(name, held)
        return str(held.seq)

    @call
    def holder(self, name: str) -> str | None:
        held = self._held(name)
        return held.holder if held is not None else None

    @call
    def until(self, name: str) -> str:
        held = self._held(name)
        return held.until if held is not None else ""

    @call
    def held(self, prefix: str) -> frozenset[str]:
        log, folder = self.log(), prefix.removesuffix("/")
        pattern = f"{log.subject(_KIND, folder)}.>" if folder else f"{log.root}.{_KIND}.>"
        return frozenset(log.name_of(_KIND, subject) for subject in log.subjects(pattern))

    @call
    def release(self, name: str, token: Token) -> None:
        self.log().delete(int(token))

    def _held(self, name: str) -> _Lease | None:
        log = self.log()
        subject = log.subject(_KIND, name)
        found = log.last(subject)
        if not found.seq:
            return None
        holder, since, seconds = json.loads(self.cipher.decrypt(found.data, subject))
        return _Lease(found.seq, holder, since, seconds, _text(found.time + seconds))

    def _put(self, name: str, lease: _Lease) -> Token:
        """Put a lease in the place of the message that it has, and return the token of the new one. Moved."""
        log = self.log()
        subject = log.subject(_KIND, name)
        data = self.cipher.encrypt(json.dumps(lease[1:4]).encode(), subject)
        return str(log.append(subject, data, {_TTL: f"{lease.seconds}s"}, id=uuid4().hex, expected=lease.seq))


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _whole(seconds: float) -> int:
    return max(1, round(seconds))


def _on_one_line(holder: str) -> str:
    return " ".join(holder.split())


def _lost(name: str, held: _Lease | None) -> Fenced:
    by = f"; {held.holder} has it now" if held is not None else ""
    return Fenced(name, f"its lease has ended{by}", "claim it again", lost=True)
