"""Keeps a lease of a store's engine for as long as its holder lives: a thread of its own renews it.

The thread belongs to this process. So a lease ends when the process dies, is stopped, or cannot reach the engine for
longer than the lease lasts, and nothing else ends it but its holder.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import suppress

from ralf.errors import Claimed, Fenced, RalfError
from ralf.storage.journal import Leases, Token

_SHARE = 5
"""A lease is renewed so many times in its duration: while a new leader is elected several attempts may fail."""

_TOUCHES = 1.0  # seconds between two touches that count

_PAUSE = 0.5  # seconds before a renewal is tried again that the engine did not answer


class KeptLease:
    """A lease that this process takes, and then renews until `end` is called, the object is gone, or its holder is
    silent. It has the methods by which a holder shows signs of life.

    leases   of the store
    name     what the lease is for
    holder   who has it, on one line
    silence  seconds without `touch` after which it is not renewed any more
    is_away  whether the engine did not answer when it was asked last
    """

    def __init__(self, leases: Leases, name: str, holder: str, silence: float) -> None:
        self.is_away = self.is_lost = False
        self.leases = leases
        self._name = name
        self._holder = holder
        self._silence = silence
        self._token: Token | None = None  # None before it was taken, and once it was ended
        self._touched = 0.0
        self._process = 0
        self._lock = threading.Lock()  # whoever has it talks to the engine about this lease
        self._wake = threading.Event()
        self._finalizer: weakref.finalize[..., KeptLease] | None = None

    # ---- taking it ----

    def take(self) -> None:
        """Take it. Claimed, Fenced as `Leases.take`."""
        _release_dropped()
        self._keep(self.leases.take(self._name, self._holder))

    def resume(self) -> None:
        """Keep it from now on, which another process has taken in this holder's name. Fenced as `Leases.resume`."""
        token = self.leases.resume(self._name, self._holder)
        self._keep(self.leases.renew(self._name, token, seconds=self.leases.seconds))

    def take_within(self, patience: float) -> None:
        """Take it, waiting so many seconds for whoever is about to release it."""
        end, pause = time.monotonic() + patience, 0.01
        while True:
            try:
                return self.take()
            except Claimed:
                if time.monotonic() >= end:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 0.1)

    def _keep(self, token: Token) -> None:
        self._token, self.is_lost, self.is_away = token, False, False
        self._touched, self._process, self._wake = time.monotonic(), os.getpid(), threading.Event()
        self._finalizer = weakref.finalize(
            self, _dropped.append, (self._process, self.leases, self._name, self._holder)
        )
        self._finalizer.atexit = False
        given = weakref.ref(self), self._wake, self.leases.seconds / _SHARE
        threading.Thread(target=_renew, args=given, name="ralf-lease", daemon=True).start()

    # ---- having it ----

    @property
    def is_held(self) -> bool:
        """Whether we have it, as far as this process knows."""
        return self._token is not None and not self.is_lost and self._process == os.getpid()

    def is_fresh(self) -> bool:
        """Whether a sign of life was shown within the last second."""
        return self._token is not None and time.monotonic() - self._touched < _TOUCHES

    def touch(self) -> bool:
        """Show a sign of life; whether that could be done."""
        was_silent = time.monotonic() - self._touched > self._silence
        self._touched = time.monotonic()
        if was_silent:
            self._wake.set()
        return self._token is not None

    def renew(self) -> bool:
        """Renew it, unless its holder is silent, and note what became of it; whether the engine answered."""
        with self._lock:
            if self._token is None or time.monotonic() - self._touched > self._silence:
                return True
            try:
                token = self._renewed(self._token)
            except Fenced as error:
                self.is_away, self.is_lost = not error.lost, error.lost
                return error.lost
            except (RalfError, OSError):  # the engine answers, but not as it should
                return False
            self.is_away = False
            if self.is_held:
                self._token = token
            else:  # it was ended meanwhile
                self.leases.release(self._name, token)
            return True

    def _renewed(self, token: Token) -> Token:
        seconds = self.leases.seconds
        try:
            return self.leases.renew(self._name, token, seconds=seconds)
        except Fenced as error:
            if not error.lost:
                raise
            # Another process may have renewed it in our name.
            return self.leases.renew(self._name, self.leases.resume(self._name, self._holder), seconds=seconds)

    # ---- ending it ----

    def leave(self, seconds: float) -> None:
        """Have it last so many seconds from now on, and renew it no more: others renew it by its holder's name. Fenced
        as `Leases.renew`.
        """
        with self._lock:
            if (token := self._let_go()) is not None:
                self.leases.renew(self._name, token, seconds=seconds)

    def end(self) -> None:
        """Release it, unless the engine is away or the lease is lost: then it ends, or has ended, by itself. Nothing in
        a forked process: the lease is its parent's.
        """
        is_held, token = self.is_held, self._let_go()
        if token is None or not is_held or self.is_away:
            return
        if self._lock.acquire(timeout=_PAUSE):  # else a renewal waits for the engine, and releases it
            try:  # by its holder's name: a process that we have started may have renewed it
                self.leases.release(self._name, self.leases.resume(self._name, self._holder))
            except (RalfError, OSError) as error:
                self.is_away = not (isinstance(error, Fenced) and error.lost)
            finally:
                self._lock.release()

    def _let_go(self) -> Token | None:
        token, self._token = self._token, None
        if self._finalizer is not None:
            self._finalizer.detach()
        self._wake.set()
        return token


_dropped: list[tuple[int, Leases, str, str]] = []
"""Leases of objects that are gone, to be released: process, engine, name and holder."""


def _release_dropped() -> None:
    while _dropped:
        process, leases, name, holder = _dropped.pop()
        with suppress(RalfError, OSError):
            if process == os.getpid():
                leases.release(name, leases.resume(name, holder))


def _renew(ref: weakref.ref[KeptLease], wake: threading.Event, pause: float) -> None:
    """Renew a lease until it is lost, ended or gone."""
    wait = pause
    while True:
        wake.wait(wait)
        kept = ref()
        if kept is None or not kept.is_held or kept._wake is not wake:
            return _release_dropped()
        wake.clear()
        wait = pause if kept.renew() else min(pause, _PAUSE)
        del kept
