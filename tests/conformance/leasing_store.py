"""A store in memory with leases, the plainest that keep the contract of `ralf.storage.journal.Leases`. Its engine can
be taken away: then every call is Fenced, and leases end by themselves.
"""

# ruff: noqa: D102  # what a method does stands in the port

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

from memory_store import MemoryStore

from ralf.errors import Claimed, Fenced
from ralf.storage.journal import Entry, Token


class _Lease(NamedTuple):
    token: Token
    holder: str
    seconds: float
    since: str
    ends: float


class Engine:
    """What the stores of one folder share. Contract: `ralf.storage.journal.Leases`."""

    def __init__(self) -> None:
        self.seconds = 1.0
        self.is_away = False
        self.renewals = 0
        self._lock = threading.Lock()
        self._tokens = count(1)
        self._leases: dict[str, _Lease] = {}

    def check(self) -> None:
        if self.is_away:
            raise Fenced("memory", "no connection")

    def _found(self, name: str) -> _Lease | None:
        self.check()
        found = self._leases.get(name)
        return found if found is not None and found.ends > time.monotonic() else None

    def _put(self, name: str, holder: str, seconds: float, since: str) -> Token:
        token = str(next(self._tokens))
        self._leases[name] = _Lease(token, holder, seconds, since, time.monotonic() + seconds)
        return token

    def take(self, name: str, holder: str, *, seconds: float = 0.0) -> Token:
        with self._lock:
            if found := self._found(name):
                raise Claimed(name, found.holder, found.since, until=self._until(found))
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            return self._put(name, holder, seconds or self.seconds, since)

    def renew(self, name: str, token: Token, *, seconds: float = 0.0) -> Token:
        with self._lock:
            self.renewals += 1
            found = self._found(name)
            if found is None or found.token != token:
                raise Fenced(name, "its lease has ended", lost=True)
            return self._put(name, found.holder, seconds or found.seconds, found.since)

    def resume(self, name: str, holder: str) -> Token:
        with self._lock:
            found = self._found(name)
            if found is None or found.holder != holder:
                raise Fenced(name, "its lease has ended", lost=True)
            return found.token

    def holder(self, name: str) -> str | None:
        found = self._found(name)
        return found.holder if found else None

    def until(self, name: str) -> str:
        found = self._found(name)
        return self._until(found) if found else ""

    @staticmethod
    def _until(lease: _Lease) -> str:
        left = lease.ends - time.monotonic()
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + left))

    def held(self, prefix: str) -> frozenset[str]:
        self.check()
        return frozenset(name for name in list(self._leases) if name.startswith(prefix) and self._found(name))

    def release(self, name: str, token: Token) -> None:
        with self._lock:
            if (found := self._found(name)) and found.token == token:
                del self._leases[name]

    def lose(self, name: str) -> None:
        """End a lease as when its holder did not renew it in time."""
        with self._lock:
            self.check()
            self._leases.pop(name, None)


class LeasingStore(MemoryStore):
    """A store in memory whose engine says who may write."""

    engines: dict[Path, Engine] = {}  # noqa: RUF012  # for as long as the process lives

    def __init__(self, folder: Path, *, check: Callable[[Path], None] = lambda _: None) -> None:
        super().__init__(folder, check=check)
        self.leases = self.engine = self.engines.setdefault(folder, Engine())

    def _entries(self, stream: str) -> list[Entry]:
        self.engine.check()
        return super()._entries(stream)
