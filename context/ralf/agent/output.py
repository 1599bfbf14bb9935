"""The output of a step while it works: written in small batches, read from the beginning by whoever comes late."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import islice
from typing import Any
from weakref import WeakMethod

from ralf import project as projects
from ralf.agent import contents, records
from ralf.agent.model import ENDED, MAIN, check_names, seconds
from ralf.agent.steplog import StepLog, prepare
from ralf.errors import Conflict, RalfError, UnknownToken
from ralf.storage.journal import Entry, Token, understood

_VERSION = 1

BATCH = 0.05
"""Seconds within which what is written goes into one record."""

_LEAST_PAUSE, _MOST_PAUSE = 0.01, 0.2  # seconds between two looks of who follows

_MOST_WAITING = 1 << 20  # bytes that are written at once, whatever the time


class Output:
    """What a holder writes to its step's output. Its methods are called with the holder's lock.

    check  raises where the step is not the holder's any longer; a timer keeps no holder alive that was dropped
    """

    def __init__(self, log: StepLog, lock: AbstractContextManager[Any], check: WeakMethod[Callable[[], None]]) -> None:
        self._log, self._lock, self._check = log, lock, check
        self._stream = records.output_of(log.run, log.step)
        self._waiting = bytearray()
        self._written = 0.0  # when, by the monotonic clock
        self._timer: threading.Timer | None = None
        self._head: Token | None = None

    def add(self, data: bytes) -> None:
        """Add bytes: written now, or within `BATCH` seconds with what follows."""
        self._waiting += contents.checked(data, self._log.where)
        if time.monotonic() - self._written >= BATCH or len(self._waiting) >= _MOST_WAITING:
            self.flush()
        elif self._timer is None:
            self._timer = threading.Timer(BATCH, self._flush_later)
            self._timer.daemon = True
            with suppress(RuntimeError):  # the interpreter ends: what waits is written when the step is released
                self._timer.start()

    def drop(self) -> None:
        """Forget what waits."""
        self._waiting.clear()

    def _flush_later(self) -> None:
        with self._lock, suppress(RalfError, OSError):  # then it still waits, and who writes next is told
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        store, state = self._log.project.store, self._log.state
        if self._head is None:
            prepare(self._log.project, self._stream)
        tree = {
            "v": _VERSION,
            "kind": "output",
            "at": records.time_text(time.time()),
            "term": state.term,
            "iteration": state.iteration,
            "attempt": state.attempt,
            "data": contents.pack(store, bytes(self._waiting), self._log.where),
        }
        line, id_ = contents.encoded(tree), os.urandom(8).hex()
        while (check := self._check()) is not None:
            check()
            try:
                self._head = store.append(self._stream, line, id=id_, after=self._head, is_new=True)
                break
            except Conflict as error:
                self._head = error.head
        self._waiting.clear()
        self._written = time.monotonic()


# ---- reading ----


def tail(
    run: str,
    step: str = MAIN,
    *,
    follow: bool = False,
    timeout: float | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Iterator[bytes]:
    """The output of a step, all of it from the beginning, in pieces as they were written.

    follow   wait for more until the step has ended; a run that does not exist yet is waited for
    timeout  seconds without anything new after which it ends; None: no limit

    RunNotFound where there is no such step and `follow` is not set.
    """
    check_names(run, step)
    if timeout is not None:
        seconds(timeout, "timeout")
    log = StepLog(projects.find(root), run, step)
    if not follow and log.project.store.head(log.stream) is None:
        from ralf.agent.listing import not_found  # only for who asks for what is not there

        raise not_found(log.project, run, step)
    return _tail(log, follow=follow, timeout=timeout)


def _tail(log: StepLog, *, follow: bool, timeout: float | None) -> Iterator[bytes]:
    stream, count, after = records.output_of(log.run, log.step), 0, None
    changed, pause = time.monotonic(), _LEAST_PAUSE
    while True:
        ended = log.look().phase in ENDED  # before it is read: what is written before the end is read, too
        before = count
        for entry in _entries(log, stream, after, count):
            after, count = entry.token, count + 1
            with understood(log.where):
                data = contents.unpack(log.project.store, json.loads(entry.record)["data"], log.where)
            if data:
                yield data
        if ended or not follow:
            return
        if count > before:
            changed, pause = time.monotonic(), _LEAST_PAUSE
        elif timeout is not None and time.monotonic() - changed >= timeout:
            return
        time.sleep(pause)
        pause = min(2 * pause, _MOST_PAUSE)


def _entries(log: StepLog, stream: str, after: Token | None, count: int) -> Iterator[Entry]:
    """The records after a place, before which there are `count`: of a stream that was rewritten those after so many."""
    store = log.project.store
    try:
        if store.head(stream) != after:
            yield from store.read(stream, after=after)
    except UnknownToken:
        yield from islice(store.read(stream), count, None)
