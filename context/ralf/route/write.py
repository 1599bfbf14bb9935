"""The writer: one at a time for each route; a record is acknowledged before the file shows it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ralf import routing
from ralf.errors import (
    MEND_JOURNAL,
    DamagedJournal,
    DamagedRouteFile,
    RalfError,
    UnknownToken,
    UnreadableRouteFile,
)
from ralf.format import merge
from ralf.format.codec import to_tree
from ralf.format.routefile import FOOTER
from ralf.model import RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import archive, edits, filed, fold, foreign, shared, state as states
from ralf.route.load import read_state, with_file, without_file
from ralf.route.state import State
from ralf.route.unresolved import places
from ralf.storage import durable, files, journal
from ralf.storage.journal import Record, Token
from ralf.text import tokens

_MOST_MERGES = 8  # saves by an editor that one write absorbs

_PATIENCE = 0.1  # seconds that a write waits for an editor to finish a save

_END = FOOTER.encode()  # a complete file ends with it

_NEXT_SHOWS = "the next write shows what this one wrote"

_SAVING = f"another program is saving it; {_NEXT_SHOWS}"

_MOVED = "lines that were written into its brief, or among its facts, stand below the brief now: it is made anew"

_KEPT = "what was written is in the journal, which is read"

_MOST_OWED = 64  # records that writers leave to the next one to render: half a second of uninterrupted writing


def utc_now() -> str:
    """The time as records have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class RouteWriter:
    """Writes to a route whose lock is held; made by `open_route`.

    A write is `absorb_edits`, any number of `append`, and `render_file`; `open_route` ends it with `save_snapshot`.
    """

    def __init__(
        self,
        project: Project,
        route: str,
        state: State,
        *,
        saving: bool = False,
        unseen: Sequence[durable.DisplacedFile] = (),
        leave: bool = True,
    ) -> None:
        """Write nothing: `absorb_edits` is the first step that does.

        saving  whether an editor is in the middle of a save: then the file is neither read nor written
        unseen  saves that a writer displaced and did not live to absorb
        leave   whether `render_file` may be left to the next writer
        """
        self._project = project
        self._route = route
        self._path = project.route_file(route)
        self._state = state
        self._unseen = unseen
        self._content = state.content  # what is known of the file, and in the journal
        self._clean: set[str] = set()  # digests of a person's files, the changes in which hold no secret
        self._stands = True  # as far as is known, it is that still
        self._saving = saving
        self._digest = states.digest_of(state.content or b"")
        self._renders = [known for known in state.renders if known[0] or saving or known[1] == self._digest]
        self.damage = state.damage  # a file that cannot be read is never overwritten
        self.foreign = state.status == "foreign"  # nor is one that somebody else has written, or absorbed
        self.token: Token | None = state.token
        self.context: RouteContext = state.recorded
        self.warnings: list[str] = []
        self._absorbed = False
        self._owes = False  # the journal has more than the file shows
        self._next_shows = leave and files.is_lock_awaited(project.route_lock(route))
        self._leaves = self._next_shows and self._may_leave(state)

    def absorb_edits(self) -> None:
        """Record what a person saved into the file, or a dead writer displaced; every write begins with it."""
        state = self._state
        if state.unplaced:  # the snapshot that knows them as ours gives way to one of this journal
            foreign.remember(self._project, self._route, [digest for _, digest in state.unplaced])
        if self.foreign:
            self.warnings.append(self._foreign_warning)
        if foreign.is_put_back(self._project, self._route, state):
            self.warnings.append(self._put_back_warning(state))
        if state.lost:
            self.warnings.append(states.lost_warning(self._path, state.lost, self.context.revision))
        owes = state.behind and not self._leaves_file
        if state.status == "own":
            self._import(state)
            owes = True
        rescued = [self._rescue(aside) for aside in self._unseen]
        if any(rescued):  # they are older than what the file holds now
            owes = True
            self._merge(state.content or b"")
        elif state.changes:
            self._record_edit(state)
            owes = True
        self._absorbed, self._owes = True, owes
        if self._project.git.shares():
            self._share_newest()
        # Before anything else: what undoes the edit would be undone by the file.
        if (states.TAKEN_IN, states.digest_of(state.content or b"")) in self._renders:
            with suppress(OSError):  # it is remembered as well
                self.render_file()

    def _share_newest(self) -> None:
        """Share what a writer has recorded that was killed before it did."""
        newest = journal.newest(self._project.store, self._route) if self.token is not None else None
        if newest is None or newest.kind not in shared.KINDS or newest.revision != self.context.revision:
            return
        if not shared.is_published(self._project, self._route, newest.revision):
            before = foreign.folded_to(self._project, self._route, newest.revision - 1) or fold.empty(self._route)
            told = shared.publish_or_tell(self._project, self._route, newest, before, self.context)
            self.warnings += [told] if told else []

    def append(self, kind: str, payload: Mapping[str, Any], *, id: str, shown: bool = True) -> RouteContext:  # noqa: A002
        """Append one record and return the new context. The record is durable and read back when this returns.

        A record whose id the journal already has changes nothing.

        shown  whether the route file is to show this revision: after `render_file`, unless the next writer does it
        """
        payload = edits.labelled(self.context, kind, payload, self._project.git.clone)
        record = journal.sealed(Record(self.context.revision + 1, kind, payload))
        context = fold.apply(self.context, record)
        if shown and not self._leaves_file and not self._leaves:
            content = filed.content_of(context)
            record = replace(record, render=states.digest_of(content))
            self._keep_base(record.revision, content)
        token = journal.append(self._project.store, self._route, record, id=id, after=self.token)
        if self._read_back(token, record):
            before, self.token, self.context = self.context, token, context
            told = shared.publish_or_tell(self._project, self._route, record, before, context)
            self.warnings += [told] if told else []
        return self.context

    def _keep_base(self, revision: int, content: bytes) -> None:
        """Store every so many revisions' file as a blob: a fold without a cache starts there."""
        before = max((known for known, _ in self._renders), default=0)
        if fold.has_base(before, revision):
            with suppress(OSError, RalfError):  # it only saves time
                self._project.store.put_blob([content])

    def render_file(self) -> None:
        """Make the route file show the newest revision, absorbing what a person saves meanwhile, and read it back.

        If an editor takes longer over a save than a write waits, the file is left alone: the journal has the record. If
        another writer waits, that one renders the file: in a queue, most files would be replaced unseen.
        """
        if not self._absorbed:
            raise RuntimeError("absorb_edits comes first: the file may hold a save that is in no record")
        if not self._leaves_file and not self._leaves:
            problem = _SAVING if self._saving else self._write_until_shown()
            warning = f"{self._path}: {problem}"
            if problem and warning not in self.warnings:
                self.warnings.append(warning)
        self._owes = False

    def save_snapshot(self) -> None:
        """Cache the folded state for the next read or write."""
        if self.token is not None:
            kept = states.Snapshot(self.token, self.context, tuple(self._renders))
            states.save_snapshot(self._project.cache, self._route, kept, shown=self._shows_newest)

    def close(self) -> None:
        """Render the file if it is behind the journal, and save the snapshot, even after an error in between.

        Does nothing if `absorb_edits` did not complete.
        """
        if not self._absorbed:
            return
        if self._owes:
            with suppress(OSError):  # the write itself has reported its error
                self.render_file()
        self.save_snapshot()

    def follow(self, change: Callable[[], None]) -> RouteContext:
        """Have `change` replace the journal or append to it, and go on from what it holds then; the file is behind.

        The file shows no more than the journal has (`absorb_edits`), and is remembered so first: it stays so, should
        this process end in between.
        """
        if not self._absorbed:
            raise RuntimeError("absorb_edits comes first: the file may hold a save that is in no record")
        if self._content and not self._leaves_file:
            self._renders = [(states.TAKEN_IN, self._digest)]
        kept = states.Snapshot("", fold.empty(self._route), tuple(self._renders))
        states.save_snapshot(self._project.cache, self._route, kept, shown=False)
        change()
        self.token = self._project.store.head(journal.stream_of(self._route))
        self.context = fold.fold(*foreign.records_from_base(self._project, self._route))
        self._owes = not self._leaves_file
        return self.context

    def accept(self, kind: str, payload: Mapping[str, Any], *, id: str, content: bytes | None) -> RouteContext:  # noqa: A002
        """Append a record of the foreign content that the user has accepted, and render the file.

        content  the file that was looked at: if it has changed since, it is left as it is, with a warning
        """
        self.append(kind, payload, id=id, shown=False)
        if self.foreign and content == self._content:
            self.foreign = False
            self.warnings.remove(self._foreign_warning)
            self._renders.append((states.TAKEN_IN, self._digest))
        self.render_file()
        return self.context

    # ---- the file ----

    @property
    def file_digest(self) -> str:
        """The sha256 of the route file as it is known, all of which the journal has once edits are absorbed."""
        return self._digest

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

    @property
    def _shows_newest(self) -> bool:
        """Whether the route file is our render of the newest revision, as far as is known."""
        return self._stands and (self.context.revision, self._digest) in self._renders

    def _may_leave(self, state: State) -> bool:
        """Whether the waiting writer may render the file: only if the file is ours, and for a few records at most."""
        if state.status not in ("current", "stale") or not self._renders or not self._renders[-1][0]:
            return False
        return self.context.revision - self._renders[-1][0] < _MOST_OWED

    def _write_until_shown(self) -> str:
        """Write the file until it shows everything. Return why it does not, "" if it does or `damage` says why."""
        for _ in range(_MOST_MERGES):
            try:
                if self._write_file() or self._next_shows:
                    return ""
            except durable.CannotReplace as error:
                return f"{error.strerror}: left as it is, for a save would be lost; {_KEPT}"
            except durable.BeingSaved:  # their file is in its place: ours would have hidden what is saved into it
                found = files.settled(self._path, _PATIENCE, end=_END)
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
        """Write the file once. Return False if that displaced an edit, which is now a record to be rendered."""
        content = filed.content_of(self.context)
        shown = (self.context.revision, states.digest_of(content))
        before = [known for known in self._renders if known != shown and known[0]]
        self._renders = [*before, shown]
        # Remembered before anyone can see it: it is the base of an edit that is saved at once.
        states.keep_shown(self._project.cache, self._route, self.context.as_filed(), self.token or "")
        if self._content != content:
            filed.place_schema(self._project.routes)
            try:
                displaced = durable.exchange(self._path, content, self._digest)
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
        # If a person has saved or removed it since, the next write handles that: it expects our file.
        self._stands = states.read_file(self._project, self._route) == content
        return True

    def _tell_owner(self, displaced: durable.DisplacedFile) -> None:
        """Warn if the file could not keep its owner."""
        with suppress(OSError):
            before, now = os.lstat(displaced.path), os.lstat(self._path)
            if before.st_uid != now.st_uid:
                what = f"belonged to user {before.st_uid}, and only root can leave it so: it belongs to you now"
                self.warnings.append(f"{self._path}: {what}")

    def _rescue(self, displaced: durable.DisplacedFile) -> bool:
        """Absorb a save that a write displaced, and only then drop it. Return whether it changed anything."""
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

    def _drop(self, displaced: durable.DisplacedFile) -> None:
        """Drop a displaced file that the journal covers; remove it at once if a person wrote a secret into it."""
        if self._is_ours(states.digest_of(displaced.content)) or not self._holds_secrets(displaced.content):
            displaced.drop()
        else:
            displaced.remove()

    def _is_ours(self, digest: str) -> bool:
        return any(revision and digest == known for revision, known in self._renders)

    def _holds_secrets(self, content: bytes) -> bool:
        """Whether a person's file, header included, holds secrets. Lines that our render has, too, are redacted."""
        ours = set(self._content.split(b"\n")) if self._content and self._is_ours(self._digest) else set()
        text = b"\n".join(line for line in content.split(b"\n") if line not in ours).decode("utf-8", "replace")
        if redactor_for(self._project).text(text) != text:
            return True
        if not content or states.digest_of(content) in self._clean:
            return False
        try:  # a secret that is escaped, or spans several lines, does not look like one
            theirs = to_tree(states.parse_file(self._project, self._route, content))
        except DamagedRouteFile:
            return True
        return any(states.redacted(self._project, one) != one for one in merge.diff(to_tree(self.context), theirs))

    def _merge(self, saved: bytes) -> State:
        """Record a person's changes in a file, and return the file's state."""
        state = State(self.context, self.context, self.token, saved, "missing", renders=tuple(self._renders))
        if saved:
            state = with_file(self._project, self._route, state, saved)
        if state.changes:
            self._record_edit(state)
        return state

    # ---- edits and imports ----

    def _import(self, state: State) -> None:
        digest = states.digest_of(state.content or b"")
        payload = {"document": redactor_for(self._project).tree(to_tree(state.context)), **_lost(state)}
        self.append("import", payload, id=f"import-{digest}", shown=False)
        self._renders.append((states.TAKEN_IN, digest))

    def _record_edit(self, state: State) -> None:
        digest = states.digest_of(state.content or b"")
        changes = [states.redacted(self._project, one) for one in state.changes]
        payload: dict[str, Any] = {"timestamp": utc_now(), "changes": changes, **_lost(state)}
        if state.base not in (0, self.context.revision):  # else it is the record before this one
            payload["base"] = state.base
        if state.undoes:
            payload["undoes"] = list(state.undoes)
        if state.whole and changes == list(state.changes):
            self._clean.add(digest)
        if state.status == "foreign":  # the rest of the file must not become the person's
            self.append("edit", payload, id=f"edit-{self.context.revision}-{digest[:32]}", shown=False)
        else:
            self.append("edit", payload, id=f"edit-{self.context.revision}-{digest}", shown=False)
            self._renders.append((states.TAKEN_IN, digest))
        if state.moved:
            self.warnings.append(f"{self._path}: {_MOVED}")
        for place in places(state.changes):
            what = "changed by hand, and meanwhile otherwise: the edit stands"
            self.warnings.append(
                f"{self._path}: {place}: {what}, the other value is under `unresolved`; settle it there"
            )

    def _read_back(self, token: Token, written: Record) -> bool:
        """Whether the journal has the record as it was written; False if an earlier record already had its id."""
        with suppress(UnknownToken):
            found = journal.at(self._project.store, self._route, token)
            if found == written:
                return True
            if found.revision < written.revision:
                return False
        raise DamagedJournal(self._route, "what was written is not what is read back", MEND_JOURNAL)


def _lost(state: State) -> dict[str, list[int]]:
    """The payload field of a record that absorbs a file newer than its journal: the first and last lost revision."""
    return {"lost": [state.recorded.revision + 1, state.lost]} if state.lost else {}


@contextmanager
def open_route(project: Project, route: str, *, leave: bool = True) -> Iterator[RouteWriter]:
    """Lock a route for a block of writing, and read its state. Creates the store on first use.

    Writes nothing by itself: no record, no route file, no snapshot. At the end of the block `RouteWriter.close`
    completes what the block began.

    leave  whether a waiting writer may render the file instead of this block

    Raises Busy when another writer holds it too long, OSError when the folder cannot be written, DamagedJournal when
    the journal cannot be read, UsageError where the store is not to be written (`Project.prepare`), or git tracks the
    file and this user does not share it: then nothing was written.
    """
    project.prepare()
    tokens.count("a")  # opens the table of ranks before other writers have to wait for it
    with files.locked(project.route_lock(route), route, seen=True):
        archive.bring_back(project, route)
        unseen = durable.sweep(project.route_file(route), end=_END)  # dead writers' temporary files
        saving, state = _read_state(project, route)
        if state.token is None:
            routing.check_begun_anew(project, route)
        if state.status == "damaged" and state.token is not None:
            _refuse_damaged_journal(project, route)
        committed = "" if state.damage else project.git.would_commit(project.route_file(route))
        if committed:
            state = replace(state, damage=committed)  # the file is left as it is; the journal has what is written
        writer = RouteWriter(project, route, state, saving=saving, unseen=unseen, leave=leave)
        writer.warnings += filter(None, [committed])
        try:
            yield writer
        finally:
            writer.close()
    archive.when_due(project, but=route)


def _read_state(project: Project, route: str) -> tuple[bool, State]:
    """Whether an editor is in the middle of saving the route file, and the route's state."""
    try:
        saving, content = _file_of(project, route)
    except UnreadableRouteFile as error:
        return False, _unread(project, route, error)
    try:
        state = read_state(project, route, content)
    except DamagedRouteFile as error:  # no journal yet: the record goes there, the file stays as it is
        return saving, _of_file_alone(route, content, error)
    if state is None:
        fresh = fold.empty(route)
        state = State(fresh, fresh, None, content, "missing")
    return saving, state


def _unread(project: Project, route: str, error: UnreadableRouteFile) -> State:
    try:
        return without_file(project, route, error)
    except UnreadableRouteFile:  # no journal yet
        return _of_file_alone(route, None, error)


def _of_file_alone(route: str, content: bytes | None, error: DamagedRouteFile) -> State:
    fresh = fold.empty(route)
    return State(fresh, fresh, None, content, "damaged", damage=str(error))


def _file_of(project: Project, route: str) -> tuple[bool, bytes | None]:
    """Whether an editor is saving the route file right now, and the file's bytes if not.

    Half a save can look like a complete file: read as an edit, it would delete the other half.
    """
    try:
        content = files.settled(project.route_file(route), _PATIENCE, states.MAX_BYTES + 1, _END)
    except OSError:
        content = b""
    if content is None:
        return True, None
    if not content or len(content) > states.MAX_BYTES:  # or missing, a link, not a file: read_file handles each
        return False, states.read_file(project, route)
    return False, content


def _refuse_damaged_journal(project: Project, route: str) -> None:
    """Raise DamagedJournal: a journal that cannot be read cannot be written, as its revision is unknown."""
    for _ in journal.read(project.store, route):
        pass
