"""Writing to a route: one writer at a time; a record is acknowledged first, then the file is made to show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ralf import _atomic, _locks, brief, journal, labels, route as heart, snapshot, state as states, unresolved
from ralf.context import RouteContext
from ralf.document import render
from ralf.errors import MEND_JOURNAL, DamagedJournal, DamagedRouteFile
from ralf.journal import Record
from ralf.project import Project
from ralf.state import State
from ralf.store import Token
from ralf.tree import to_tree

_MOST_MERGES = 8  # saves by an editor that are taken in during one write


class RouteWriter:
    """Who may write to a route now. Made by `writing`; everything is read under the lock that it holds."""

    def __init__(self, project: Project, route: str, state: State) -> None:
        self._project = project
        self._route = route
        self._content = state.content
        self._renders = list(state.renders)
        self.damage = state.damage  # a file that cannot be read is never overwritten
        self.token: Token | None = state.token
        self.context: RouteContext = state.recorded
        self._counts = state.recorded.counts
        self.warnings: list[str] = []
        self.owes = state.behind and not state.damage  # the journal has more than the file shows
        self._take_in(state)

    def append(self, kind: str, payload: Mapping[str, Any], *, id: str, shown: bool = True) -> RouteContext:  # noqa: A002
        """Append one record and return what the route comes to; acknowledged, and read back, when this returns.

        A record whose id is in the journal already changes nothing.

        shown  whether the route file is to show this revision (it does after `show`)
        """
        record = journal.sealed(Record(self.context.revision + 1, kind, labels.labelled(self.context, kind, payload)))
        context = heart.apply(self.context, record)
        if shown and not self.damage:
            record = replace(record, render=states.digest_of(render(context).encode()))
        token = journal.append(self._project.store, self._route, record, id=id, after=self.token)
        if self._read_back(token, record):
            self.token = token
            self.context = context
        return self.context

    def show(self) -> None:
        """Make the route file show the newest revision, taking in what a person saves meanwhile, and read it back."""
        if not self.damage:
            for _ in range(_MOST_MERGES):
                if self._write_file():
                    break
            else:
                path = self._project.route_file(self._route)
                self.warnings.append(f"{path}: changes faster than it can be written; the next write shows it all")
        self.owes = False

    def remember(self) -> None:
        """Keep what was folded and counted, so that the next read or write need not do it again."""
        if self.token is not None:
            counted = replace(self.context, counts=brief.counted(replace(self.context, counts=self._counts)))
            kept = snapshot.Snapshot(self.token, counted, tuple(self._renders))
            shown = (self.context.revision, states.digest_of(self._content or b"")) in self._renders
            snapshot.save(self._project.cache, self._route, kept, shown=shown)

    # ---- the file ----

    def _write_file(self) -> bool:
        """Write the file once; False when that displaced an edit, which is then in the journal and has to be shown."""
        path = self._project.route_file(self._route)
        content = render(self.context).encode()
        digest = states.digest_of(content)
        if self._content != content:
            displaced = _atomic.write(path, content)
            if displaced is not None and displaced != self._content:
                self._content = content
                return not self._rescue(displaced)
            self._content = content
        self._renders = [known for known in self._renders if known != (self.context.revision, digest)]
        self._renders.append((self.context.revision, digest))
        snapshot.keep_render(self._project.cache, self._route, self.context.revision, content)
        found = path.read_bytes()
        if found != content:  # saved by a person since: the next write takes it in
            self._content = found
        return True

    def _rescue(self, displaced: bytes) -> bool:
        """Take in what a person saved while we were writing; True when that changed something."""
        shown = states.with_file(self._project, self._route, self._state(displaced), displaced)
        if shown.status == "damaged":
            aside = self._project.route_file(self._route).with_suffix(f".displaced-{states.digest_of(displaced)[:8]}")
            _atomic.write(aside, displaced)
            self.warnings.append(f"{aside}: saved while the file was written, and cannot be read: {shown.damage}")
            return False
        if not shown.changes:
            return False
        self._record_edit(shown)
        return True

    def _state(self, content: bytes) -> State:
        return State(self.context, self.context, self.token, content, "missing", renders=tuple(self._renders))

    # ---- edits and imports ----

    def _take_in(self, state: State) -> None:
        if state.status == "foreign":
            document = to_tree(state.context)
            self.append(
                "import", {"document": document}, id=f"import-{states.digest_of(state.content or b'')}", shown=False
            )
            self.owes = True
        elif state.changes:
            self._record_edit(state)
            self.owes = True

    def _record_edit(self, state: State) -> None:
        digest = states.digest_of(state.content or b"")
        taken = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        payload = {"timestamp": taken, "changes": list(state.changes)}
        self.append("edit", payload, id=f"edit-{self.context.revision}-{digest}", shown=False)
        for place in unresolved.places(state.changes):
            path = self._project.route_file(self._route)
            what = "changed by hand, and meanwhile otherwise: the edit stands"
            self.warnings.append(f"{path}: {place}: {what}, the other value is under `unresolved`; settle it there")

    def _read_back(self, token: Token, written: Record) -> bool:
        """Whether the record is the newest now, as it was written; False when its id had landed before."""
        found = next(journal.read(self._project.store, self._route, after=self.token), None)
        if found == (token, written):
            return True
        if found is None and token in (landed for landed, _ in journal.read(self._project.store, self._route)):
            return False
        raise DamagedJournal(self._route, "what was written is not what is read back", MEND_JOURNAL)


@contextmanager
def writing(project: Project, route: str) -> Iterator[RouteWriter]:
    """Hold a route for a block of writing. Made on first use; a person's edits are taken in first.

    Busy when another writer holds it too long, OSError when the folder cannot be written, DamagedJournal when the
    journal cannot be read: then nothing was written.
    """
    project.prepare()
    with _locks.held(project.route_lock(route), route):
        _atomic.sweep(project.route_file(route))
        try:
            state = states.load(project, route)
        except DamagedRouteFile as error:  # no journal yet: the record goes there, the file stays as it is
            fresh = heart.empty(route)
            state = State(fresh, fresh, None, states.read_file(project, route), "damaged", damage=str(error))
        if state is not None and state.status == "damaged" and state.token is not None:
            _refuse_damaged_journal(project, route)
        if state is None:
            fresh = heart.empty(route)
            state = State(fresh, fresh, None, states.read_file(project, route), "missing")
        writer = RouteWriter(project, route, state)
        try:
            yield writer
        finally:
            if writer.owes:
                with suppress(OSError):  # what was to be written tells its own error
                    writer.show()
            writer.remember()


def _refuse_damaged_journal(project: Project, route: str) -> None:
    """A journal that cannot be read cannot be written to either: its revision is not known."""
    for _ in journal.read(project.store, route):
        pass
