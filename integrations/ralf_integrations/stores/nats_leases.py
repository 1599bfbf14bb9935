"""Leases on NATS: a lease is the message of a subject, and the server removes it when its time to live is over.

Taking one appends the message where there is none, and renewing it replaces the message by compare-and-swap, with a new
time to live each time: a message without one would stay for ever. The messages lie in a stream of their own, which
keeps the newest one of each subject: what ends within seconds leaves no holes in the stream of the records.
"""

# ruff: noqa: D102  # what a method does stands in the port

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from ralf.errors import Claimed, Fenced, UsageError
from ralf.storage.journal import Token
from ralf_integrations.stores.encryption import Cipher
from ralf_integrations.stores.nats_link import Link
from ralf_integrations.stores.nats_log import Log, Message, Moved

T = TypeVar("T")

SECONDS = 15
"""How long a lease lasts: the election of a stream's leader takes up to 9 s, and a holder renews about every 3 s."""

_TTL, _SINCE, _LASTS = "Nats-TTL", "Ralf-Since", "Ralf-Seconds"

_KIND = "l"


class LeaseLog(Log):
    """The stream with a project's leases. `cipher` encrypts who has one."""

    def __init__(self, link: Link, project: str, replicas: int, cipher: Cipher) -> None:
        # No project's name has an underscore behind `RALF`, nor a subject a hyphen behind `ralf`.
        super().__init__(link, f"RALF_LEASES-{project}", f"ralf-leases.{project}", replicas, cipher.id)
        self.cipher = cipher

    def _config(self) -> dict[str, Any]:
        return {**super()._config(), "max_msgs_per_subject": 1, "allow_msg_ttl": True}

    def _check(self, config: Mapping[str, Any]) -> None:
        if not config.get("allow_msg_ttl"):
            hint = f"nats stream edit {self.name} --allow-msg-ttl"
            raise UsageError(self.name, "does not let messages end by themselves, so no lease ever would", hint)
        super()._check({**config, "max_msgs_per_subject": -1})


class _Lease(NamedTuple):
    """What a token says, and a message: its sequence, who has the lease, since when, and how many seconds it lasts."""

    seq: int
    seconds: int
    since: str
    holder: str

    @classmethod
    def of(cls, log: LeaseLog, message: Message) -> _Lease:
        found, data = message.headers, message.data
        holder = log.cipher.decrypt(data, message.subject)
        since, seconds = found.get(_SINCE, ""), int(found.get(_LASTS, 0))
        return cls(message.seq, seconds, since, holder.decode("utf-8", "replace"))

    @classmethod
    def parsed(cls, name: str, token: Token) -> _Lease:
        seq, _, rest = token.partition(" ")
        seconds, _, rest = rest.partition(" ")
        since, _, holder = rest.partition(" ")
        if not (seq.isdecimal() and seconds.isdecimal()):
            raise UsageError(name, "no token of a lease")
        return cls(int(seq), int(seconds), since, holder)

    @property
    def token(self) -> Token:
        return f"{self.seq} {self.seconds} {self.since} {self.holder}"

    @property
    def headers(self) -> dict[str, str]:
        return {_TTL: f"{self.seconds}s", _LASTS: str(self.seconds), _SINCE: self.since}


class NatsLeases:
    """The leases of a project. Contract: `ralf.storage.journal.Leases`.

    run      runs what is told the stream of the leases, within the time limit of a call
    servers  what is the same for equal stores
    seconds  how long a lease lasts
    """

    def __init__(
        self, run: Callable[[Callable[[LeaseLog], Coroutine[Any, Any, Any]]], Any], servers: object, seconds: int
    ) -> None:
        self._run = run
        self._servers = servers
        self._seconds = seconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NatsLeases) and self._servers == other._servers

    def __hash__(self) -> int:
        return hash(self._servers)

    @property
    def seconds(self) -> float:
        return self._seconds

    def take(self, name: str, holder: str, *, seconds: float = 0.0) -> Token:
        now = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        wanted = _Lease(0, max(1, round(seconds or self._seconds)), now, " ".join(holder.split()))

        async def taken(log: LeaseLog) -> _Lease:
            subject = log.subject(_KIND, name)
            while True:
                try:
                    seq = await _put(log, subject, wanted)
                except Moved:
                    found = await log.last(subject)
                    if found is None:  # it has ended just now
                        continue
                    held = _Lease.of(log, found)
                    raise Claimed(name, held.holder, held.since, "try again when it has ended") from None
                return wanted._replace(seq=seq)

        made: _Lease = self._run(taken)
        return made.token

    def renew(self, name: str, token: Token, *, seconds: float = 0.0) -> Token:
        held = _Lease.parsed(name, token)
        held = held._replace(seconds=max(1, round(seconds)) if seconds else held.seconds)

        async def renewed(log: LeaseLog) -> _Lease:
            subject = log.subject(_KIND, name)
            try:
                return held._replace(seq=await _put(log, subject, held))
            except Moved:
                raise _lost(log, name, await log.last(subject)) from None

        made: _Lease = self._run(renewed)
        return made.token

    def resume(self, name: str, holder: str) -> Token:
        wanted = " ".join(holder.split())

        async def found(log: LeaseLog) -> _Lease:
            newest = await log.last(log.subject(_KIND, name))
            if newest is None or _Lease.of(log, newest).holder != wanted:
                raise _lost(log, name, newest)
            return _Lease.of(log, newest)

        made: _Lease = self._run(found)
        return made.token

    def holder(self, name: str) -> str | None:
        async def found(log: LeaseLog) -> str | None:
            newest = await log.last(log.subject(_KIND, name))
            return _Lease.of(log, newest).holder if newest is not None else None

        holder: str | None = self._run(found)
        return holder

    def held(self, prefix: str) -> frozenset[str]:
        folder = prefix.removesuffix("/")

        async def names(log: LeaseLog) -> list[str]:
            pattern = f"{log.subject(_KIND, folder)}.>" if folder else f"{log.root}.{_KIND}.>"
            return [log.name_of(_KIND, subject) for subject in await log.subjects(pattern)]

        return frozenset(self._run(names))

    def release(self, name: str, token: Token) -> None:
        self._run(lambda log: log.erase(_Lease.parsed(name, token).seq))


async def _put(log: LeaseLog, subject: str, lease: _Lease) -> int:
    """Put a lease in the place of the message that it has, and return the sequence of the new one. Moved."""
    data = log.cipher.encrypt(lease.holder.encode(), subject)
    return await log.append(subject, data, lease.headers, id=uuid4().hex, expected=lease.seq)


def _lost(log: LeaseLog, name: str, newest: Message | None) -> Fenced:
    by = f"; {_Lease.of(log, newest).holder} has it now" if newest is not None else ""
    return Fenced(name, f"its lease has ended{by}", "claim it again", lost=True)
