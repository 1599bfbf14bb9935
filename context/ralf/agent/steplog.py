"""The journal of a step: what its records come to, kept up through the index, and appends that compare."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TypeVar

from ralf import environment
from ralf.agent import records
from ralf.agent.contents import Tree
from ralf.agent.records import RUNS_FAMILY, Body, Call, StepState
from ralf.document.index import NAME, Index, Unusable, using
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.document.state import caught_up
from ralf.errors import Busy, Conflict, UnknownToken, UsageError
from ralf.project import Project
from ralf.storage.journal import Token
from ralf.text import cleaning

_MOST_BEHIND = 8  # records by which the index may be behind who writes them: a reader folds those anew

_MOST_TRIES = 100  # at a stream that somebody else writes to, or rewrites

_MOST_REASON = 500  # characters

T = TypeVar("T")


class StepLog:
    """The journal of one step. `state` and `head` are as of the last look or append; not for several threads.

    index  an index that stays open, for who looks at many steps
    """

    def __init__(self, project: Project, run: str, step: str, index: Index | None = None) -> None:
        self.project = project
        self.step = step
        self.stream = records.stream_of(run, step)
        self.where = records.where_of(self.stream)
        self.head: Token | None = None
        self._index = index
        self._rows = Rows()  # of the state and the calls, and what was folded since the index was asked
        self._kept: Token | None = None  # the place at which the index has the step
        self._stamp: tuple[int, ...] = ()  # of the file in which `head` was the newest

    @property
    def state(self) -> StepState:
        """What the records come to."""
        return records.step_of(self._rows)

    def call(self, key: str) -> Call:
        """A call of this iteration."""
        return records.call_of(self._rows, key)

    # ---- reading ----

    def rows(self, work: Callable[[Rows], T]) -> T:
        """What `work` says of all rows of the step, as the store has them now. DamagedJournal; UsageError for records
        of a later version.
        """
        with self._open() as index:
            state = caught_up(RUNS_FAMILY, self.project.store, self.stream, index)
            found = work(state.rows)
            self._rows, self.head, self._stamp = records.in_hand(state.rows), state.token, ()
            state.keep(self.stream, index)
            self._kept = state.kept
        return found

    def _open(self) -> AbstractContextManager[Index | None]:
        return nullcontext(self._index) if self._index is not None else using(self.project.room_for(NAME))

    def look(self) -> StepState:
        """The state as the store has it now. Errors: `rows`."""
        return self.rows(records.step_of) if self.has_moved() else self.state

    def has_moved(self) -> bool:
        """Whether somebody else has appended since the last look. A file that is as it was is not opened."""
        if self.head is None:
            return True  # nothing was seen yet
        stamp = self._file_stamp()
        if stamp and stamp == self._stamp:
            return False
        if self.project.store.head(self.stream) != self.head:
            return True
        self._stamp = stamp  # taken before the head was read: who appended in between would have been seen
        return False

    def _file_stamp(self) -> tuple[int, ...]:
        """What changes with every append to the stream's file, () for a store without files."""
        files = self.project.store.files
        if files is None:
            return ()
        try:
            found = files.path(self.stream).stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def content(self, place: Callable[[Rows], Token], *fields: str) -> Tree | None:
        """The first of some contents of the record at a place, None for none. The rows in hand may know the place."""
        token = place(self._rows)
        for _ in range(_MOST_TRIES):
            if token:
                with suppress(UnknownToken):  # it was rewritten
                    entry = self.project.store.entry(self.stream, token)
                    tree = RUNS_FAMILY.decoded(self.stream, entry).body
                    return next((tree[name] for name in fields if tree.get(name) is not None), None)
            if not (token := self.rows(place)):
                return None
        raise UnknownToken(self.stream, "is rewritten again and again")

    # ---- writing ----

    def write(self, make: Callable[[StepState], Body | None], writer: str) -> StepState | None:
        """Append the record that `make` makes of the state, None for none, and return the state before it. Made anew
        where somebody else was first. Busy.
        """
        id_ = os.urandom(8).hex()
        for _ in range(_MOST_TRIES):
            before = self.state
            if (made := make(before)) is None:
                return None
            try:
                self.append(made, writer, id_)
            except Conflict:
                self.look()
            else:
                return before
        raise Busy(self.where, "is written to faster than it can be changed", "try again")

    def append(self, body: Body, writer: str, id_: str) -> StepState:
        """Append one record behind the head as it was last seen, with a new id. Conflict where there is another one by
        now.
        """
        record = Record(self.state.records + 1, records.time_text(time.time()), body, writer)
        line = RUNS_FAMILY.encoded(record)
        token = self.project.store.append(self.stream, line, id=id_, after=self.head, is_new=True)
        RUNS_FAMILY.fold(self._rows, record._replace(body={**body, "place": token}))
        self.head = token
        if record.revision % _MOST_BEHIND == 0:
            self._keep(token)
        return self.state

    def _keep(self, token: Token) -> None:
        """Leave in the index what was folded since; only what the next records need stays in memory."""
        with self._open() as index, suppress(Unusable):
            if index is None:
                self._rows = records.in_hand(self._rows)
                return
            found = index.state(self.stream)
            if found is not None and found[0] == self._kept:
                index.keep(self.stream, self._kept, token, self._rows.changed)
                self._rows, self._kept = records.in_hand(self._rows), token
                return
        self.rows(records.step_of)


def prepare(project: Project, stream: str) -> None:
    """See that a stream can be written to, and what is written be told as this user's later.

    UsageError where it cannot, and where a folder of the stream is a link: there may be many runs, so each is looked at
    when it is used.
    """
    project.prepare()
    files = project.store.files
    if files is not None:
        for folder in files.path(stream).parents:
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
