"""A step of a run: its journal, kept up through the index, appended to by comparing; and whether its holder lives."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ralf import environment
from ralf.agent import contents, records
from ralf.agent.model import RunState
from ralf.agent.records import RUNS_FAMILY, Body, StepState
from ralf.document.index import NAME, Unusable, using
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.document.state import State, caught_up
from ralf.errors import Busy, Claimed, Conflict, UnknownToken, UsageError
from ralf.project import Project
from ralf.storage.journal import Token
from ralf.tasks import origin
from ralf.text import cleaning

_MOST_BEHIND = 8  # records by which the index may be behind who writes them: a reader folds those anew

_MOST_TRIES = 100  # at a stream that somebody else writes to, or rewrites

_MOST_REASON = 500  # characters

held_here: weakref.WeakValueDictionary[str, object] = weakref.WeakValueDictionary()
"""What holds steps in this process, by writer: a claim of ours that is not among them was dropped."""

_AS_THEY_ARE = "iteration attempt losses term states size heard began at not_before waits_for reason".split()

T = TypeVar("T")


class StepLog:
    """The journal of one step. `state` is as of the last look or write; not for several threads."""

    def __init__(self, project: Project, run: str, step: str) -> None:
        self.project = project
        self.run, self.step = run, step
        self.stream = records.stream_of(run, step)
        self.where = records.where_of(self.stream)
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
        with using(self.project.room_for(NAME)) as index:
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
        with using(self.project.room_for(NAME)) as index, suppress(Unusable):
            if index is None:
                return
            found, state = index.state(self.stream), self.state
            if found is not None and found[0] == self._known.kept:
                self._known.keep(self.stream, index)
                self._know(self._known, state)
            else:
                self.rows(records.step_of)

    # ---- its holder ----

    def is_held(self) -> bool:
        """Whether a step's holder lives: its process is not dead, and its last sign of life not older than its lease.
        Of a store with leases: whether it has the step's lease. Fenced where that cannot be known.
        """
        one, store = self.state.holder, self.project.store
        if one is None:
            return False
        if store.leases is not None:  # of whatever machine the holder is, nothing else is known for sure
            return store.leases.holder(self.stream) is not None
        if origin.is_running(one["process"], one["born"], one["machine"]) is False:
            return False
        ours = one["process"] == os.getpid() and one["machine"] == origin.machine()
        if ours and one["writer"] not in held_here:
            return False
        # Each sign by itself, and either way: a clock that was set back keeps no claim for ever, and ends none.
        signs = [records.seconds_of(self.state.at)]
        with suppress(OSError):
            if store.files is not None:
                signs.append(store.files.path(self.stream).stat().st_mtime)
        return any(abs(time.time() - last) < one["seconds"] for last in signs)

    def claimed(self, by: str = "", since: str = "", until: str = "") -> Claimed:
        """The error that names a live holder: that of the records, where there is one. `until`: the end of its lease,
        where the store tells it.
        """
        one = self.state.holder or {"by": by, "since": since}
        return Claimed(self.where, one["by"], one["since"], f"ralf run show {self.run}", until=until)

    def told(self, sent: int, steps: tuple[str, ...] = ()) -> RunState:
        """The step as callers see it, of a run with so many signals and these steps."""
        state, status = self.state, "new"
        if state.records:
            status = state.phase or ("waiting" if state.holder is None else "running" if self.is_held() else "lost")
        by = (state.holder or {}) if status == "running" else {}
        return RunState(
            run=self.run,
            step=self.step,
            status=status,
            steps=steps or (self.step,),
            by=by.get("by", ""),
            process=by.get("process", 0),
            signals=sent,
            calls=len(state.calls),
            repeats=sum(max(asked - 1, 0) for asked, *_ in state.calls.values()),
            **{name: getattr(state, name) for name in _AS_THEY_ARE},
        )


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
