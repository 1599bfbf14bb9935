"""The output of a step while it works: written in small batches, read from the beginning by whoever comes late."""

from __future__ import annotations

import codecs
import json
import os
import threading
import time
from collections.abc import Iterator

from ralf import project as projects
from ralf.agent import contents, records
from ralf.agent.model import ENDED, MAIN, check_names, seconds
from ralf.agent.steplog import StepLog, prepare
from ralf.errors import MEND_JOURNAL, Conflict, DamagedJournal, RalfError, StaleLease, UnknownToken
from ralf.project import Project
from ralf.storage.engine_calls import fenced
from ralf.storage.journal import MALFORMED, Entry, Token

Root = str | os.PathLike[str] | None

_VERSION = 1

BATCH = 0.05
"""Seconds within which what is written goes into one record."""

_LEAST_PAUSE, _MOST_PAUSE = 0.01, 0.2  # seconds between two looks of who follows

_MOST_WAITING = 1 << 20  # bytes that are written at once, whatever the time


class Output:
    """What a holder writes to its step's output, from any thread."""

    def __init__(self, project: Project, run: str, step: str) -> None:
        self._project = project
        self._run, self._step = run, step
        self._stream = records.output_of(run, step)
        self._lock = threading.RLock()
        self._waiting = bytearray()
        self._written = 0.0  # when, by the monotonic clock
        self._timer: threading.Timer | None = None
        self._error: Exception | None = None
        self._head: Token | None = None
        self._is_prepared = False
        self._writer, self._about = "", (0, 0, 0)

    def begin(self, writer: str, term: int, iteration: int, attempt: int) -> None:
        """Write for a holder from now on; its records say which attempt they are of."""
        self._writer, self._about = writer, (term, iteration, attempt)

    def fence(self) -> None:
        """Refuse what a holder that was lost still writes: an empty record is in the way of its next one."""
        with self._lock:
            self._append(b"")

    def add(self, data: bytes) -> None:
        """Add bytes: written now, or within `BATCH` seconds with what follows. Raises what an earlier write raised."""
        with self._lock:
            self._raise()
            self._waiting += contents.checked(data, self._run)
            age = time.monotonic() - self._written
            if age >= BATCH or len(self._waiting) >= _MOST_WAITING:
                self._write()
            elif self._timer is None:
                self._timer = threading.Timer(BATCH - age, self._write_later)
                self._timer.daemon = True
                try:
                    self._timer.start()
                except RuntimeError:  # the interpreter ends
                    self._timer = None
                    self._write()

    def flush(self, *, whole: bool = False) -> None:
        """Write what waits, but for a character whose end is missing; with `whole` that, too. Raises as `add`."""
        with self._lock:
            self._raise()
            if self._waiting:
                self._write(whole=whole)

    def drop(self) -> None:
        """Write nothing more: the step is not ours any longer."""
        with self._lock:
            self._waiting.clear()
            self._error = None
            self._stop()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _write_later(self) -> None:
        with self._lock:
            self._timer = None
            try:
                if self._waiting:
                    self._write()
            except (RalfError, OSError) as error:
                self._error = error

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _write(self, *, whole: bool = False) -> None:
        self._stop()
        size = len(self._waiting)
        if not whole and not (size := codecs.utf_8_decode(self._waiting, "replace", False)[1]):
            return  # of a character whose end is missing
        self._append(bytes(self._waiting[:size]))
        del self._waiting[:size]
        self._written = time.monotonic()

    def _append(self, data: bytes) -> None:
        store = self._project.store
        if not self._is_prepared:
            prepare(self._project, self._stream)
            self._head, self._is_prepared = store.head(self._stream), True
            self._check_ours()  # a fence may stand before what is read here
        term, iteration, attempt = self._about
        tree = {
            "v": _VERSION,
            "kind": "output",
            "at": records.time_text(time.time()),
            "term": term,
            "iteration": iteration,
            "attempt": attempt,
            "data": contents.pack(store, data, self._run),
        }
        record = records.line_of(tree)
        id_ = os.urandom(8).hex()
        while True:
            try:
                with fenced(self._run):
                    self._head = store.append(self._stream, record, id=id_, after=self._head, is_new=True)
                break
            except Conflict as error:
                self._check_ours()
                self._head = error.head

    def _check_ours(self) -> None:
        holder = StepLog(self._project, self._run, self._step).look().holder
        if holder is None or holder.writer != self._writer:
            self._waiting.clear()
            by = holder.by if holder else ""
            raise StaleLease(self._run, "another process has the run now", by, f"ralf run show {self._run}")


# ---- reading ----


def tail(
    run: str, step: str = MAIN, *, follow: bool = False, timeout: float | None = None, root: Root = None
) -> Iterator[bytes]:
    """The output of a step, all of it from the beginning, in pieces as they were written.

    follow   wait for more until the step has ended; a run that does not exist yet is waited for
    timeout  seconds without anything new after which it ends; None: no limit

    RunNotFound where there is no such step and `follow` is not set.
    """
    check_names(run, step)
    if timeout is not None:
        seconds(timeout, "timeout")
    project = projects.find(root)
    if not follow and project.store.head(records.stream_of(run, step)) is None:
        from ralf.agent.listing import not_found  # only for who asks for what is not there

        raise not_found(project, run, step)
    return _tail(project, run, step, follow=follow, timeout=timeout)


def _tail(project: Project, run: str, step: str, *, follow: bool, timeout: float | None) -> Iterator[bytes]:
    log = StepLog(project, run, step)
    stream, count, after = records.output_of(run, step), 0, None
    changed, pause = time.monotonic(), _LEAST_PAUSE
    while True:
        ended = log.look().phase in ENDED  # before it is read: what is written before the end is read, too
        before = count
        if project.store.head(stream) != after:
            for entry in _entries(project, stream, after, count):
                after, count = entry.token, count + 1
                if data := _data(project, run, entry):
                    yield data
        if ended or not follow:
            return
        if count > before:
            changed, pause = time.monotonic(), _LEAST_PAUSE
        elif timeout is not None and time.monotonic() - changed >= timeout:
            return
        else:
            time.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE)


def _entries(project: Project, stream: str, after: Token | None, count: int) -> Iterator[Entry]:
    """The records after a place, before which there are `count`: of a stream that was rewritten those after so many."""
    try:
        yield from project.store.read(stream, after=after)
    except UnknownToken:
        for number, entry in enumerate(project.store.read(stream)):
            if number >= count:
                yield entry


def _data(project: Project, run: str, entry: Entry) -> bytes:
    try:
        data = json.loads(entry.record)["data"]
        return contents.unpack(project.store, data, run)
    except MALFORMED as error:
        what = f"the record {entry.id!r} is not one of output: {type(error).__name__}"
        raise DamagedJournal(run, what, MEND_JOURNAL) from None
