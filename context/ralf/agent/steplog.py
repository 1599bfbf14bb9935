"""The journal of a step: what its records come to, kept up through the index, and appends that compare."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TypeVar

from ralf import environment
from ralf.agent import contents, records
from ralf.agent.records import RUNS_FAMILY, Body, StepState
from ralf.document.index import NAME, Index, Unusable, using
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.document.state import State, caught_up
from ralf.errors import Busy, Conflict, UnknownToken, UsageError
from ralf.project import Project
from ralf.storage.journal import Token
from ralf.text import cleaning

_MOST_BEHIND = 8  # records by which the index may be behind who writes them: a reader folds those anew

_MOST_TRIES = 100  # at a stream that somebody else writes to, or rewrites

_MOST_REASON = 500  # characters

T = TypeVar("T")


class StepLog:
    """The journal of one step. `state` is as of the last look or write; not for several threads.

    index  an index that stays open, for who looks at many steps
    """

    def __init__(self, project: Project, run: str, step: str, index: Index | None = None) -> None:
        self.project = project
        self.run, self.step = run, step
        self.stream = records.stream_of(run, step)
        self.where = records.where_of(self.stream)
        self._index = index
        self._known = State(RUNS_FAMILY, Rows(), None)
        self._stamp: tuple[int, ...] = ()  # of the file in which what is known was the newest

    @property
    def state(self) -> StepState:
        """What the records come to."""
        return records.step_of(self._known.rows)

    # ---- reading ----

    def rows(self, work: Callable[[Rows], T]) -> T:
        """What `work` says of all rows of the step, as the store has them now. DamagedJournal; UsageError for records
        of a later version.
        """
        with self._open() as index:
            known = caught_up(RUNS_FAMILY, self.project.store, self.stream, index)
            found, state = work(known.rows), records.step_of(known.rows)
            known.keep(self.stream, index)
        self._stamp = ()
        self._know(known, state)
        return found

    def _know(self, known: State, state: StepState) -> None:
        """Have only what the next records need in memory, now that the index has the rows."""
        known.rows = Rows()
        known.rows.held = state
        self._known = known

    def _open(self) -> AbstractContextManager[Index | None]:
        return nullcontext(self._index) if self._index is not None else using(self.project.room_for(NAME))

    def look(self) -> StepState:
        """The state as the store has it now: a file that is as it was is not opened. Errors: `rows`."""
        stamp = self._file_stamp()
        if not stamp or stamp != self._stamp:
            if self._known.token is None or self.project.store.head(self.stream) != self._known.token:
                return self.rows(records.step_of)
            self._stamp = stamp  # taken before the head was read: who appended in between would have been seen
        return self.state

    def _file_stamp(self) -> tuple[int, ...]:
        """What changes with every append to the stream's file, () for a store without files."""
        with suppress(OSError):
            if self.project.store.files is not None:
                found = self.project.store.files.path(self.stream).stat()
                return found.st_ino, found.st_size, found.st_mtime_ns
        return ()

    def content(self, place: Callable[[], Token], *fields: str) -> bytes | None:
        """The first of some contents of the record at a place, None for none. NotFound where it is gone."""
        for _ in range(_MOST_TRIES):
            if not (token := place()):
                return None
            try:
                entry = self.project.store.entry(self.stream, token)
            except UnknownToken:  # it was rewritten
                self.rows(records.step_of)
                continue
            tree = RUNS_FAMILY.decoded(self.stream, entry).body
            packed = next((tree[name] for name in fields if tree.get(name) is not None), None)
            return contents.unpack(self.project.store, packed, self.where)
        raise Busy(self.where, "is rewritten again and again", "try again")

    # ---- writing ----

    def write(self, make: Callable[[StepState], Body | None], writer: str) -> StepState | None:
        """Append the record that `make` makes of the state, None for none, and return the state before it. Made anew
        where somebody else was first. Busy.
        """
        id_ = os.urandom(8).hex()
        for _ in range(_MOST_TRIES):
            before, known = self.state, self._known
            if (made := make(before)) is None:
                return None
            record = Record(before.records + 1, records.time_text(time.time()), made, writer)
            line = RUNS_FAMILY.encoded(record)
            try:
                token = self.project.store.append(self.stream, line, id=id_, after=known.token, is_new=True)
            except Conflict:
                self.look()
                continue
            known.add(record._replace(body={**made, "place": token}))
            known.token = token
            if record.revision % _MOST_BEHIND == 0:
                self._keep()
            return before
        raise Busy(self.where, "is written to faster than it can be changed", "try again")

    def _keep(self) -> None:
        """Leave in the index what was folded since."""
        with self._open() as index, suppress(Unusable):
            if index is None:
                return
            found, state = index.state(self.stream), self.state
            if found is not None and found[0] == self._known.kept:
                self._known.keep(self.stream, index)
                self._know(self._known, state)
            else:
                self.rows(records.step_of)


def prepare(project: Project, stream: str) -> None:
    """See that a stream can be written to, and what is written be told as this user's later.

    UsageError where it cannot, and where a folder of the stream is a link: there may be many runs, so each is looked at
    when it is used.
    """
    project.prepare()
    if project.store.files is not None:
        for folder in project.store.files.path(stream).parents:
            if folder == project.folder:
                break
            if folder.is_symlink():
                raise UsageError(folder, "is a symbolic link: not followed", "remove the link")


def holder_name(project: Project, by: str = "") -> str:
    """By what name a step is held or a signal sent: the one that is given, else what the environment says."""
    told = by or environment.agent_name() or project.run or environment.holder()
    name = cleaning.one_line(cleaning.clean(told))[:200]
    if not name:
        raise UsageError("by", "a holder needs a name")
    return name


def reason_text(project: Project, reason: object) -> str:
    """What somebody says, as it is recorded: on one line, without control characters and secrets."""
    from ralf.redact import redactor_for  # only who says something pays for it

    return cleaning.one_line(redactor_for(project).text(cleaning.clean(str(reason))))[:_MOST_REASON]
