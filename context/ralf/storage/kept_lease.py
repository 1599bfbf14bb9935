"""Keeps a lease of a store's engine for as long as its holder lives: a thread of its own renews it.

The thread belongs to this process. So a lease ends when the process dies, is stopped, or cannot reach the engine for
longer than the lease lasts, and nothing else ends it but its holder.
"""

from __future__ import annotations

import atexit
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


_kept: list[_Held] = []
"""What this process keeps, or has dropped and not released yet."""


class _Held:
    """A lease that was taken, with the thread that renews it."""

    def __init__(self, leases: Leases, name: str, holder: str, token: Token, silence: float) -> None:
        self.leases = leases
        self.name = name
        self.holder = holder
        self.pause = leases.seconds / _SHARE
        self.silence = silence
        self.touched = time.monotonic()
        self.due = self.touched + self.pause
        self.is_over = False  # nobody here has it any more: it is to be released
        self.lost: Fenced | None = None
        self.is_away = False  # the engine did not answer the last time
        self.wake = threading.Event()
        self._lock = threading.Lock()  # whoever has it talks to the engine about this lease
        self._token = token
        self._process = os.getpid()
        if not _kept:  # by now the store has registered what ends its connections: that runs later
            atexit.unregister(_release_all)
            atexit.register(_release_all)
        _kept.append(self)
        threading.Thread(target=self._keep, name="ralf-lease", daemon=True).start()

    def _keep(self) -> None:
        while self.lost is None and not self.is_over:
            now = time.monotonic()
            if self.due <= now and now - self.touched <= self.silence:
                self.renew()
            elif self.due <= now:
                self.due = now + self.pause
            self.wake.wait(max(0.0, self.due - time.monotonic()))
            self.wake.clear()
        if self.is_over:
            self.release()
        with suppress(ValueError):
            _kept.remove(self)

    def renew(self) -> None:
        """Renew the lease, and note what became of it."""
        with self._lock:
            if self.is_over:
                return
            self.due = time.monotonic() + _PAUSE
            try:
                self._token = self._renewed()
            except Fenced as error:
                self.is_away = not error.lost
                self.lost = error if error.lost else None
            except (RalfError, OSError):  # the engine answers, but not as it should
                pass
            else:
                self.is_away = False
                self.due = time.monotonic() + self.pause

    def _renewed(self) -> Token:
        seconds = self.leases.seconds
        try:
            return self.leases.renew(self.name, self._token, seconds=seconds)
        except Fenced as error:
            if not error.lost:
                raise
            # Another process may have renewed it in our name.
            return self.leases.renew(self.name, self.leases.resume(self.name, self.holder), seconds=seconds)

    def leave(self, seconds: float) -> None:
        """Renew the lease for so many seconds, and then no more. Fenced as `Leases.renew`."""
        with self._lock:
            self.lost = Fenced(self.name, "was left to others", lost=True)
            self.leases.renew(self.name, self._token, seconds=seconds)
        self.wake.set()

    def release(self) -> None:
        """End the lease, unless the engine is away or the lease is lost: then it ends, or has ended, by itself. Nothing
        in a forked process: the lease is its parent's.
        """
        self.is_over = True
        if os.getpid() != self._process:
            return
        if not self._lock.acquire(timeout=_PAUSE):
            return  # a renewal waits for the engine: the thread releases it then
        try:
            if self.lost is None and not self.is_away:
                try:
                    self.leases.release(self.name, self._token)
                except (RalfError, OSError):
                    self.is_away = True
                self.lost = Fenced(self.name, "was released", lost=True)
        finally:
            self._lock.release()
        self.wake.set()


class KeptLease:
    """A lease that this process takes, and then renews until `end` is called, the object is dropped, or its holder is
    silent. It has the methods by which a holder shows signs of life.

    leases   of the store
    name     what the lease is for
    holder   who has it, on one line
    silence  seconds without `touch` after which it is not renewed any more
    """

    def __init__(self, leases: Leases, name: str, holder: str, silence: float) -> None:
        self._leases = leases
        self._name = name
        self._holder = holder
        self._silence = silence
        self._held: _Held | None = None
        self._finalizer: weakref.finalize[..., KeptLease] | None = None

    def take(self) -> None:
        """Take it. Claimed, Fenced as `Leases.take`."""
        for dropped in [held for held in list(_kept) if held.is_over and held.name == self._name]:
            dropped.release()
        self._keep(self._leases.take(self._name, self._holder))

    def resume(self) -> None:
        """Keep it from now on, which another process has taken in this holder's name. Fenced as `Leases.resume`."""
        token = self._leases.resume(self._name, self._holder)
        self._keep(self._leases.renew(self._name, token, seconds=self._leases.seconds))

    def _keep(self, token: Token) -> None:
        self._held = held = _Held(self._leases, self._name, self._holder, token, self._silence)
        self._finalizer = weakref.finalize(self, _drop, held)
        self._finalizer.atexit = False

    def take_within(self, patience: float) -> None:
        """The same, waiting so many seconds for whoever is about to release it."""
        end, pause = time.monotonic() + patience, 0.01
        while True:
            try:
                return self.take()
            except Claimed:
                if time.monotonic() >= end:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 0.1)

    @property
    def is_held(self) -> bool:
        """Whether we have it, as far as this process knows."""
        return self._held is not None and self._held.lost is None and not self._held.is_over

    @property
    def is_lost(self) -> bool:
        """Whether we had it and it has ended without us."""
        return self._held is not None and self._held.lost is not None and not self._held.is_over

    @property
    def is_away(self) -> bool:
        """Whether the engine did not answer when it was asked last."""
        return self._held is not None and self._held.is_away

    def note_away(self) -> None:
        """Note that the engine does not answer."""
        if self._held is not None:
            self._held.is_away = True

    def is_fresh(self) -> bool:
        """Whether a sign of life was shown within the last second."""
        return self._held is not None and time.monotonic() - self._held.touched < _TOUCHES

    def touch(self) -> bool:
        """Show a sign of life; whether that could be done."""
        if self._held is None:
            return False
        was_silent = time.monotonic() - self._held.touched > self._silence
        self._held.touched = time.monotonic()
        if was_silent:
            self._held.due = 0.0
            self._held.wake.set()
        return True

    def leave(self, seconds: float) -> None:
        """Have it last so many seconds from now on, and renew it no more: others renew it by its holder's name."""
        held, self._held = self._held, None
        if self._finalizer is not None:
            self._finalizer.detach()
        if held is not None:
            held.leave(seconds)

    def end(self) -> None:
        """Release it."""
        held, self._held = self._held, None
        if self._finalizer is not None:
            self._finalizer.detach()
        if held is not None:
            held.release()


def _drop(held: _Held) -> None:
    """An object that has a lease was dropped: its thread releases it when it looks next. This may run at any point of
    any thread, so it takes no lock.
    """
    held.is_over = True


def _release_all() -> None:
    for held in _kept:
        held.release()
        if held.is_away:
            return  # each of the others would wait as long


# A forked process has no such threads, and the leases are its parent's.
os.register_at_fork(after_in_child=_kept.clear)
