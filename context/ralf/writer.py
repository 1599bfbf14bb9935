"""Writing to a route: one writer at a time; a record is acknowledged first, then the file is made to show it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ralf import cap, journal, labels, merge, route as heart, snapshot, state as states, unresolved
from ralf.briefing import brief
from ralf.context import RouteContext
from ralf.document import FOOTER, render
from ralf.errors import (
    MEND_JOURNAL,
    DamagedJournal,
    DamagedRouteFile,
    RalfError,
    UnknownToken,
    UnreadableRouteFile,
)
from ralf.files import atomic, leases, locks
from ralf.journal import Record
from ralf.ownership import gitview, routefiles
from ralf.project import Project
from ralf.state import State
from ralf.store import Token
from ralf.tree import to_tree

_MOST_MERGES = 8  # saves by an editor that are taken in during one write
_PATIENCE = 0.1  # seconds that a write waits for an editor in the middle of a save
_END = FOOTER.encode()  # of a file that is whole
_NEXT_SHOWS = "the next write shows what this one wrote"
_SAVING = f"another program is saving it; {_NEXT_SHOWS}"
_KEPT = "what was written is in the journal, which is read"
_MOST_OWED = 64  # records that writers leave to the next one to show: half a second of writing without a pause


class RouteWriter:
    """Who may write to a route now. Made by `writing`; everything is read under the lock that it holds."""

    def __init__(
        self,
        project: Project,
        route: str,
        state: State,
        *,
        saving: bool = False,
        unseen: Sequence[atomic.Aside] = (),
        leave: bool = True,
    ) -> None:
        """Take in what a person saved.

        saving  whether an editor is in the middle of it: then the file is neither read nor written
        unseen  saves that a writer displaced and did not live to take in
        leave   whether `show` may be left to the next writer
        """
        self._project = project
        self._route = route
        self._path = project.route_file(route)
        self._content = state.content  # what is known of the file, and in the journal
        self._clean: set[str] = set()  # digests of a person's files, the changes in which hold no secret
        self._stands = True  # as far as is known, it is that still
        self._saving = saving
        file = self._digest = states.digest_of(state.content or b"")
        self._renders = [known for known in state.renders if known[0] or saving or known[1] == file]
        if state.unplaced:  # the snapshot that knows them as ours gives way to one of this journal
            routefiles.remember_digests(project, route, [digest for _, digest in state.unplaced])
        self.damage = state.damage  # a file that cannot be read is never overwritten
        self.foreign = state.status == "foreign"  # nor is one that somebody else has written, or taken in
        self.token: Token | None = state.token
        self.context: RouteContext = state.recorded
        self._counts = state.recorded.counts
        self.warnings: list[str] = [self._foreign_warning] if self.foreign else []
        if states.is_put_back(project, route, state):
            self.warnings.append(self._put_back_warning(state))
        if state.lost:
            self.warnings.append(states.lost_warning(self._path, state.lost, self.context.revision))
        self.owes = state.behind and not self._leaves_file  # the journal has more than the file shows
        self._waited_for = locks.is_waited_for(project.route_lock(route))
        self._next_shows = leave and self._waited_for
        self._leaves = self._next_shows and self._may_leave(state)
        if state.status == "own":
            self._import(state)
        rescued = [self._rescue(aside) for aside in unseen]
        if any(rescued):  # they are older than what the file holds now
            self.owes = True
            self._merge(state.content or b"")
        elif state.changes:
            self._record_edit(state)
            self.owes = True
        if (states.TAKEN_IN, file) in self._renders:  # before anything else: what undoes it would be undone by the file
            with suppress(OSError):  # it is remembered as well
                self.show()
                self.owes = False

    def append(self, kind: str, payload: Mapping[str, Any], *, id: str, shown: bool = True) -> RouteContext:  # noqa: A002
        """Append one record and return what the route comes to; acknowledged, and read back, when this returns.

        A record whose id is in the journal already changes nothing.

        shown  whether the route file is to show this revision (it does after `show`, unless that is left to the next)
        """
        record = journal.sealed(Record(self.context.revision + 1, kind, labels.labelled(self.context, kind, payload)))
        context = heart.apply(self.context, record)
        if shown and not self._leaves_file and not self._leaves:
            content = render(context).encode()
            record = replace(record, render=states.digest_of(content))
            self._keep_base(record.revision, content)
        token = journal.append(self._project.store, self._route, record, id=id, after=self.token)
        if self._read_back(token, record):
            self.token = token
            self.context = context
        return self.context

    def _keep_base(self, revision: int, content: bytes) -> None:
        """Keep the file that shows a revision as a blob, once in so many: a fold without a cache begins there."""
        before = max((known for known, _ in self._renders), default=0)
        if heart.has_base(before, revision):
            with suppress(OSError, RalfError):  # it saves time, no more
                self._project.store.put_blob([content])

    def show(self) -> None:
        """Make the route file show the newest revision, taking in what a person saves meanwhile, and read it back.

        An editor that takes longer over a save than a write waits is left to it: the journal has what was written.
        Where another writer waits, it is left to that one, so that of many writers who queue not each makes a file that
        nobody gets to see.
        """
        if not self._leaves_file and not self._leaves:
            problem = _SAVING if self._saving else self._write_until_shown()
            warning = f"{self._path}: {problem}"
            if problem and warning not in self.warnings:
                self.warnings.append(warning)
        self.owes = False

    def remember(self) -> None:
        """Keep what was folded and counted, so that the next read or write need not do it again."""
        if self.token is not None:
            context = replace(self.context, counts=self._counts)
            if not self._waited_for:  # who comes next counts what is new since
                # No tokenizer fits into the memory there is, or the interpreter ends and loads none any more. What is
                # acknowledged is written by now, and no error may say otherwise.
                with suppress(MemoryError, RuntimeError):
                    context = replace(context, counts=brief.counted(context))
            kept = snapshot.Snapshot(self.token, context, tuple(self._renders))
            shown = self._stands and (self.context.revision, self._digest) in self._renders
            snapshot.save(self._project.cache, self._route, kept, shown=shown)

    def accept(self, kind: str, payload: Mapping[str, Any], *, id: str, content: bytes | None) -> RouteContext:  # noqa: A002
        """Append a record of what is foreign in the route and the user has accepted, and make the file show it.

        content  the file that was looked at: one that has changed since is left as it is, and told in `warnings`
        """
        self.append(kind, payload, id=id, shown=False)
        if self.foreign and content == self._content:
            self.foreign = False
            self.warnings.remove(self._foreign_warning)
            self._renders.append((states.TAKEN_IN, self._digest))
        self.show()
        return self.context

    # ---- the file ----

    @property
    def _leaves_file(self) -> bool:
        return bool(self.damage) or self.foreign

    @property
    def _foreign_warning(self) -> str:
        accept = f"look at it, and accept it: ralf context trust {self._route}"
        return f"{self._path}: came with the repository, not written by your ralf: left as it is; {accept}"

    def _put_back_warning(self, state: State) -> str:
        if state.undoes:
            return f"{self._path}: is as it was before an edit that was taken in: that edit is taken back"
        digest = states.digest_of(state.content or b"")
        revision = next(one for one, known in state.renders if known == digest)
        back = f"to go back to it: ralf context revert {self._route} r{revision}"
        return f"{self._path}: shows revision {revision} again, an older one: it is written anew; {back}"

    def _may_leave(self, state: State) -> bool:
        """Whether showing what is written may be left to the writer that waits: it looks at the journal first, as each
        does. Not where the file is anything but ours, and not for more than a few records, whoever keeps coming.
        """
        if state.status not in ("current", "stale") or not self._renders or not self._renders[-1][0]:
            return False
        return self.context.revision - self._renders[-1][0] < _MOST_OWED

    def _write_until_shown(self) -> str:
        """Write the file until it shows everything; why it does not, "" where it does, or where `damage` says why."""
        for _ in range(_MOST_MERGES):
            try:
                if self._write_file() or self._next_shows:
                    return ""
            except atomic.CannotReplace as error:
                return f"{error.strerror}: left as it is, for a save would be lost; {_KEPT}"
            except atomic.BeingSaved:  # their file is in its place: ours would have hidden what is saved into it
                found = leases.settled(self._path, _PATIENCE, end=_END)
                if found is None:
                    self._saving = True
                    return _SAVING
                if found != self._content:
                    state = self._merge(found)
                    self.damage, self.foreign = state.damage, state.status == "foreign"
                    self.warnings += [self._foreign_warning] if self.foreign else []
                    self._content, self._digest = found, states.digest_of(found)
                if self._leaves_file:
                    return ""
        return f"changes faster than it can be written; {_NEXT_SHOWS}"

    def _write_file(self) -> bool:
        """Write the file once; False when that displaced an edit, which is then in the journal and has to be shown."""
        content = render(self.context).encode()
        shown = (self.context.revision, states.digest_of(content))
        before = [known for known in self._renders if known != shown and known[0]]
        self._renders = [*before, shown]
        # Remembered before it can be seen: whoever saves it at once has it known as the base of the edit.
        snapshot.keep_shown(self._project.cache, self._route, cap.shown(self.context), self.token or "")
        if self._content != content:
            try:
                displaced = atomic.exchange(self._path, content, self._digest)
            except OSError:
                self._renders = [*before[:-1], shown, *before[-1:]]  # the newest is the one that stands in its place
                raise
            if displaced is not None:
                self._tell_owner(displaced)
            expected, self._content, self._digest = self._content, content, shown[1]
            if displaced is not None and displaced.content == expected:
                self._drop(displaced)
            elif displaced is not None and self._rescue(displaced):
                return False
        # Where a person has saved or taken it away since, the next write sees to it: ours is what that one expects.
        self._stands = states.read_file(self._project, self._route) == content
        return True

    def _tell_owner(self, displaced: atomic.Aside) -> None:
        """Say so where the file cannot stay with whom it belonged to."""
        with suppress(OSError):
            before, now = os.lstat(displaced.path), os.lstat(self._path)
            if before.st_uid != now.st_uid:
                what = f"belonged to user {before.st_uid}, and only root can leave it so: it belongs to you now"
                self.warnings.append(f"{self._path}: {what}")

    def _rescue(self, displaced: atomic.Aside) -> bool:
        """Take in what a person saved and a write displaced, and only then drop it; True when it changed something."""
        before = self.context.revision
        state = self._merge(displaced.content)
        if state.damage or state.status == "foreign":
            kept = self._path.with_suffix(f".displaced-{states.digest_of(displaced.content)[:8]}")
            displaced.keep(kept)
            why = f"cannot be read: {state.damage}" if state.damage else "not written by your ralf: not taken in"
            self.warnings.append(f"{kept}: saved while the file was written, and {why}")
        else:
            self._drop(displaced)
        return self.context.revision > before

    def _drop(self, displaced: atomic.Aside) -> None:
        """Be done with a file that the journal has all of; at once where a person wrote a secret into it."""
        if self._is_ours(states.digest_of(displaced.content)) or not self._holds_secrets(displaced.content):
            displaced.drop()
        else:
            displaced.remove()

    def _is_ours(self, digest: str) -> bool:
        return any(revision and digest == known for revision, known in self._renders)

    def _holds_secrets(self, content: bytes) -> bool:
        """Whether a person's file does, its header included. What it shares with ours was redacted before."""
        ours = set(self._content.split(b"\n")) if self._content and self._is_ours(self._digest) else set()
        text = b"\n".join(line for line in content.split(b"\n") if line not in ours).decode("utf-8", "replace")
        if self._project.redactor.text(text) != text:
            return True
        if not content or states.digest_of(content) in self._clean:
            return False
        try:  # over several lines, or escaped, it looks like none
            theirs = to_tree(states.parsed(self._project, self._route, content))
        except DamagedRouteFile:
            return True
        changes = merge.diff(to_tree(self.context), theirs)
        return any(states.redacted(self._project, one) != one for one in changes)

    def _merge(self, saved: bytes) -> State:
        """Record what a person changed in a file; what the file is."""
        state = State(self.context, self.context, self.token, saved, "missing", renders=tuple(self._renders))
        if saved:
            state = states.with_file(self._project, self._route, state, saved)
        if state.changes:
            self._record_edit(state)
        return state

    # ---- edits and imports ----

    def _import(self, state: State) -> None:
        digest = states.digest_of(state.content or b"")
        document = self._project.redactor.tree(to_tree(state.context))
        payload = {"document": document, **_lost(state)}
        self.append("import", payload, id=f"import-{digest}", shown=False)
        self._renders.append((states.TAKEN_IN, digest))
        self.owes = True

    def _record_edit(self, state: State) -> None:
        digest = states.digest_of(state.content or b"")
        taken = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        changes = [states.redacted(self._project, one) for one in state.changes]
        payload: dict[str, Any] = {"timestamp": taken, "changes": changes, **_lost(state)}
        if state.base not in (0, self.context.revision):  # else it is the record before this one
            payload["base"] = state.base
        if state.undoes:
            payload["undoes"] = list(state.undoes)
        if state.whole and changes == list(state.changes):
            self._clean.add(digest)
        if state.status == "foreign":  # what is not a person's in it is not to become theirs
            self.append("edit", payload, id=f"edit-{self.context.revision}-{digest[:32]}", shown=False)
        else:
            self.append("edit", payload, id=f"edit-{self.context.revision}-{digest}", shown=False)
            self._renders.append((states.TAKEN_IN, digest))
        for place in unresolved.places(state.changes):
            path = self._project.route_file(self._route)
            what = "changed by hand, and meanwhile otherwise: the edit stands"
            self.warnings.append(f"{path}: {place}: {what}, the other value is under `unresolved`; settle it there")

    def _read_back(self, token: Token, written: Record) -> bool:
        """Whether the journal has the record as it was written; False when another had landed under its id before."""
        with suppress(UnknownToken):
            found = journal.at(self._project.store, self._route, token)
            if found == written:
                return True
            if found.revision < written.revision:
                return False
        raise DamagedJournal(self._route, "what was written is not what is read back", MEND_JOURNAL)


def _lost(state: State) -> dict[str, list[int]]:
    """What a record says that takes in a file newer than its journal: the first and the last revision that are lost."""
    return {"lost": [state.recorded.revision + 1, state.lost]} if state.lost else {}


@contextmanager
def writing(project: Project, route: str, *, leave: bool = True) -> Iterator[RouteWriter]:
    """Hold a route for a block of writing. Made on first use; a person's edits are taken in first.

    leave  whether the file may be left as it is where another writer waits, who makes it show all; else it shows this
           block's work when that is done

    Busy when another writer holds it too long, OSError when the folder cannot be written, DamagedJournal when the
    journal cannot be read, UsageError where the store is not to be written (`Project.prepare`), or git tracks the file
    and this user does not share it: then nothing was written.
    """
    project.prepare()
    with locks.held(project.route_lock(route), route, seen=True):
        unseen = atomic.sweep(project.route_file(route), end=_END)
        saving, content, state = False, None, None
        try:
            saving, content = _file_of(project, route)
        except UnreadableRouteFile as error:
            state = _unread(project, route, error)
        else:
            try:
                state = states.of(project, route, content)
            except DamagedRouteFile as error:  # no journal yet: the record goes there, the file stays as it is
                state = _of_file_alone(route, content, error)
        if state is not None and state.status == "damaged" and state.token is not None:
            _refuse_damaged_journal(project, route)
        if state is None:
            fresh = heart.empty(route)
            state = State(fresh, fresh, None, content, "missing")
        if not state.damage and (what := gitview.would_commit(project, route)):
            state = replace(state, damage=what)  # the file is left as it is; the journal has what is written
        writer = RouteWriter(project, route, state, saving=saving, unseen=unseen, leave=leave)
        try:
            yield writer
        finally:
            if writer.owes:
                with suppress(OSError):  # what was to be written tells its own error
                    writer.show()
            writer.remember()


def _unread(project: Project, route: str, error: UnreadableRouteFile) -> State:
    try:
        return states.without_file(project, route, error)
    except UnreadableRouteFile:  # no journal yet
        return _of_file_alone(route, None, error)


def _of_file_alone(route: str, content: bytes | None, error: DamagedRouteFile) -> State:
    fresh = heart.empty(route)
    return State(fresh, fresh, None, content, "damaged", damage=str(error))


def _file_of(project: Project, route: str) -> tuple[bool, bytes | None]:
    """Whether an editor is in the middle of saving the route file, and its bytes where none is.

    Half a save may well be a whole file: taken for an edit, it would delete the other half.
    """
    try:
        content = leases.settled(project.route_file(route), _PATIENCE, states.MAX_BYTES + 1, _END)
    except OSError:
        content = b""
    if content is None:
        return True, None
    if not content or len(content) > states.MAX_BYTES:  # or none there, a link, no file: this one knows about each
        return False, states.read_file(project, route)
    return False, content


def _refuse_damaged_journal(project: Project, route: str) -> None:
    """A journal that cannot be read cannot be written to either: its revision is not known."""
    for _ in journal.read(project.store, route):
        pass
