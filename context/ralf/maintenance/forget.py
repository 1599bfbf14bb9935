"""Forgets an item, a text or a whole route: purges the words from every record, blob, file and cache."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ralf import project as projects, routing
from ralf.document import index, place as places, record
from ralf.document.tree import from_tree, to_tree
from ralf.errors import Busy, DamagedRouteFile, UsageError
from ralf.maintenance import memories, remnants, runs, session_logs, set_aside
from ralf.maintenance.purge import (
    Item,
    Purge,
    Target,
    Wording,
    holds,
    of_item,
    of_text,
    purged_evidence,
    remains,
    unpacked,
)
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route import filed, history, state
from ralf.route.family import document_of
from ralf.route.load import load_state
from ralf.route.routefile import parse
from ralf.route.write import open_route, utc_now
from ralf.storage import durable, journal, locks, shared_files
from ralf.storage.durable import removed, sync_below
from ralf.storage.journal import Digest, required
from ralf.tasks import folders
from ralf.text import cleaning
from ralf.text.patterns import regex
from ralf.transcripts.events import named_digests

# --------------------
# Forget an item or a text.
#
# The order makes every crash safe: the store verifies, and the same call completes the forget. First a record that
# names what is forgotten (labels and hashes, no words), then the evidence without the words, the records of the other
# routes, the records of this one, and each route's file after its records; last the old evidence, the caches and the
# search index. So the journal holds the words until nothing else is left to purge. The end is a search of every file.


_DIGITS = 32  # of a digest in a record: whoever looks for the blobs that records name does not take it for one

_ROUTES = journal.stream_of("")

_NAMES = ("old", "new")  # of routes, in what tells of a move

_MOST_TRIES = 5  # at a route into which somebody writes the words again


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of a forget, or of its dry run.

    ids      labels of what is forgotten, () for a text and for a whole route
    whole    whether it is the route itself
    done     whether it was done, or only looked at
    records  how many records were changed, by route; of a stream `moved/NAME`, whose name or target held the words, how
             many were dropped with it
    files    route files that were written anew or removed, and files beside them; by their whole path the session logs
             outside the store in which words were masked
    blobs    how many blobs were put anew without the words, or dropped
    caches   files of the cache that were removed; the search index among them
    left     files below the context folder and that of tasks, and session logs, in which the words still stand: [] is
             the proof that they are gone
    """

    route: str
    ids: tuple[str, ...]
    done: bool
    whole: bool = False
    records: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    blobs: int = 0
    caches: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def touched(self) -> bool:
        """Whether anything held the words."""
        return bool(self.records or self.files or self.blobs)


def forget(
    route: str,
    id: str | None = None,  # noqa: A002
    *,
    text: str | None = None,
    dry_run: bool = False,
    root: str | os.PathLike[str] | None = None,
) -> Forgotten:
    """Purge the words of a decision or a checkpoint's section, or a text, from the whole store.

    id       a label as `why` takes it: `DEC-003`, `cp-2`
    text     a text instead: in every route, whatever it is part of
    dry_run  only look what would be touched

    A decision is taken away with its reason and its rejected options, and never extracted again; of a checkpoint its
    section and its evidence are. Reasons and options of one or two words go with the decision; they are not looked for
    elsewhere. Done again it completes what was broken off, and changes nothing where that is complete. Raises
    RouteNotFound, NotFound (no such item), UsageError (a refused name, a text too short), Busy, OSError, Damaged
    (what cannot be read cannot be purged: nothing was done).
    """
    project = projects.find(root)
    found = routing.existing(project, route)
    if (id is None) == (text is None):
        raise UsageError(found, "forget an item or a text", f"ralf context forget {found} DEC-001")

    def forgetting() -> _Forgetting:
        if text is not None:
            return _Forgetting(project, found, of_text(found, text))
        label = history.label(id or "", "DEC")
        return _Forgetting(project, found, of_item(project, found, label))

    if dry_run:
        return forgetting().looked_at()
    with alone(project):
        found = routing.existing(project, route)  # it may have been renamed meanwhile
        routing.check_at_rest(project, found)
        if project.store.head(journal.stream_of(found)) is not None:
            with open_route(project, found) as writer:
                writer.absorb_edits()  # what a person wrote into the file is in the journal now
        return forgetting().run()


class _Forgetting:
    """One call of `forget`."""

    def __init__(self, project: Project, route: str, target: Target) -> None:
        self._project = project
        self._store = project.store
        self._heap = required(project.store.properties.heap, "drop blobs")
        self._replacing = required(project.store.properties.replace, "replace records")
        self._stream = journal.stream_of(route)
        self._route = route
        self._target = target
        self._streams = list(self._store.streams(""))
        self._digests: dict[Digest, Digest] = {}  # old to new
        self._gone: list[Digest] = []
        self._records: dict[str, int] = {}
        self._files: list[str] = []

    def looked_at(self) -> Forgotten:
        """Report what would be touched."""
        self._find_blobs(named_digests(self._store, self._streams))
        for stream in self._streams:
            if changed := self._changed(stream):
                self._records[_route_of(stream)] = changed
        logs = self._blanked_logs(dry_run=True) + session_logs.with_words(self._project, self._target.wording)
        self._files = [*self._files_held(), *map(str, logs)]
        return self._report(_caches_with(self._project, self._target.wording), done=False)

    def run(self) -> Forgotten:
        """Forget, and report what was done."""
        self._check_at_rest()
        self._drop_runs()
        logs = self._blanked_logs(dry_run=False)
        self._purge_all()
        self._heap.sweep()
        logs += session_logs.mask_words(self._project, self._target.wording)
        self._files += map(str, logs)
        dropped = self._drop_caches()
        sync_below(self._project.folder)
        return self._report(dropped, done=True)

    def _blanked_logs(self, *, dry_run: bool) -> list[Path]:
        return session_logs.of_checkpoints(self._project, self._route, self._target.item.revisions, dry_run=dry_run)

    def _check_at_rest(self) -> None:
        """Busy where a route that holds the words is being renamed or merged: it may lie in two streams."""
        for move in routing.moves_of(self._project):
            for route in (move.old, move.new) if not move.arrived else ():
                stream = journal.stream_of(route)
                if self._changed(stream) or self._is_in_file(stream):
                    routing.check_at_rest(self._project, route)

    def _drop_runs(self) -> None:
        """Drop the runs that hold the words, first: where a process holds one, nothing is done."""
        for stream in list(self._streams):
            if runs.is_of_run([stream]) and (count := self._changed(stream)):
                self._records[stream] = count
                runs.drop(self._project, stream)
        self._streams = list(self._store.streams(""))

    def _purge_all(self) -> None:
        named = named_digests(self._store, self._streams)
        self._find_blobs(named)
        held = [stream for stream in sorted(self._streams) if self._changed(stream) or self._is_in_file(stream)]
        self._files = self._files_held()
        if not (held or self._files or self._digests or self._gone or self._target.item.label):
            return
        broken_off = self._begin(named)
        for stream in held:
            if memories.is_memory(stream):
                self._records[stream] = memories.rewritten(self._project, stream, partial(self._replace, stream))
            elif stream.startswith(routing.MOVED):  # a name without the words would be another's
                self._records[stream] = self._changed(stream)
                self._replacing.drop(stream)
            elif not stream.startswith(_ROUTES):
                self._records[stream] = self._replace(stream)
            elif stream != self._stream:
                self._purge(stream)
        _sweep_temporary(self._project)
        for path in _loose_files(self._project):
            stream = journal.stream_of(_route_of_file(path, self._project))
            if purge_file(self._project, path, self._purge_of(stream)):
                self._files.append(self._project.name_of(path))
        if self._store.head(self._stream) is not None:
            self._purge(self._stream)
        shared_files.rewrite(self._project.folder / shared_files.FOLDER, self._target.wording.without)
        now = named_digests(self._store, self._streams)
        for digest in (*self._digests, *self._gone, *broken_off):
            if now.get(digest, set()) <= named.get(digest, set()):  # else a checkpoint has come that needs it
                self._heap.drop_blob(digest)

    # ---- blobs ----

    def _find_blobs(self, named: Mapping[Digest, set[str]]) -> None:
        """The blobs that hold the words; those that no record names need no copy without them."""
        wording = self._target.wording
        records = journal.read(self._store, self._route)
        files = {record.render for _, record in records if not record.foreign}  # of which some are kept
        for blob in list(self._heap.blobs()):
            streams = named.get(blob.digest, set())
            if blob.digest in files or (blob.digest in self._target.evidence and streams == {self._stream}):
                self._gone.append(blob.digest)
                continue
            content = _content(self._project, blob.digest)
            if not wording.stands_in(content.decode("utf-8", "replace")):
                continue
            if not streams:
                self._gone.append(blob.digest)
            elif not runs.is_of_run(streams):
                self._digests[blob.digest] = hashlib.sha256(_purged(content, wording)).hexdigest()

    def _begin(self, named: Mapping[Digest, set[str]]) -> list[Digest]:
        """Say what is forgotten, and put the evidence anew; returns the old blobs of a call that was broken off."""
        label = self._target.item.label
        with journal.understood(self._route):
            told = [
                record.payload
                for _, record in journal.read(self._store, self._route)
                if record.kind == "forget" and label and label in record.payload.get("ids", ())
            ]
        old = [*self._digests, *self._gone]
        if self._store.head(self._stream) is not None and (self._target.wording or not told):
            payload = {
                "ids": [label] if label else [],
                "tombstones": [to_tree(stone) for stone in self._target.stones],
                "blobs": sorted(digest[:_DIGITS] for digest in old),
                "timestamp": utc_now(),
            }
            with open_route(self._project, self._route) as writer:
                writer.absorb_edits()
                writer.append("forget", payload, id=f"forget-{label or 'text'}-{uuid.uuid4().hex}")
                writer.render_file()
        for digest in self._digests:
            self._store.put_blob([_purged(_content(self._project, digest), self._target.wording)])
        listed = {str(digest) for payload in told for digest in payload.get("blobs", ())}
        return [
            blob.digest for blob in self._heap.blobs() if blob.digest[:_DIGITS] in listed and blob.digest not in named
        ]

    # ---- records ----

    def _purge_of(self, stream: str) -> Purge:
        item = self._target.item if stream == self._stream else Item()
        return Purge(stream, self._target.wording, item, self._digests)

    def _replace(self, stream: str) -> int:
        return self._replacing.replace(stream, self._purge_of(stream))

    def _changed(self, stream: str) -> int:
        """How many records of a stream hold something that is to be forgotten; of one that tells of moves, all, where a
        name does.
        """
        if stream.startswith(routing.MOVED):
            payloads = [journal.parsed(stream, entry).payload for entry in self._store.read(stream)]
            names = [stream.removeprefix(routing.MOVED), *(str(one.get(key, "")) for one in payloads for key in _NAMES)]
            return len(payloads) if any(map(self._target.wording.stands_in, names)) else 0
        if runs.is_of_run([stream]):
            return runs.count_held(self._project, stream, self._target.wording)
        purge = self._purge_of(stream)
        for entry in self._store.read(stream):
            purge(entry)
        return purge.changed

    def _is_in_file(self, stream: str) -> bool:
        """Whether the file of a route or a memory holds the words, or what its writers left beside it."""
        if memories.is_memory(stream):
            return memories.holds_words(self._project, stream, lambda path: holds(path, self._target.wording))
        if not stream.startswith(_ROUTES):
            return False
        found = (self._project.route_file(_route_of(stream)), *_displaced(self._project, stream))
        return any(holds(one, self._target.wording) for one in found)

    def _purge(self, stream: str) -> None:
        """Purge a route's records, and then its file; a person who saves the old words meanwhile is taken in first."""
        route = _route_of(stream)
        path = self._project.live_file(route)  # that of an archived one is brought back
        rewritten = False
        for _ in range(_MOST_TRIES):
            with locks.locked(self._project.worker_lock(route), f"{route}: the model's work"):
                with open_route(self._project, route) as writer:
                    writer.absorb_edits()
                if not self._rewrite(route):
                    continue
                rewritten = True
                before = state.read_file(self._project, route)
                with open_route(self._project, route) as writer:
                    writer.absorb_edits()
                    writer.render_file()
                    damaged = bool(writer.damage) or writer.foreign
                    removed(_displaced(self._project, journal.stream_of(route)))  # it shows the words
                if state.read_file(self._project, route) != before:  # also where the words are not known any more
                    self._files.append(self._project.name_of(path))
            if damaged or not self._is_in_file(journal.stream_of(route)):
                return
        if not rewritten:
            raise Busy(
                route, "its file is saved faster than it can be purged", "close it in the editor, then try again"
            )

    def _rewrite(self, route: str) -> bool:
        """Rewrite a route's records; False where its file was saved meanwhile and has to be taken in first.

        The file goes first, for it shows the old words and would be taken for an edit of the new ones; who is broken
        off leaves a journal that makes it anew.
        """
        with locks.locked(self._project.route_lock(route), route):
            found = load_state(self._project, route)
            is_ours = found is not None and found.status in ("current", "stale", "missing")
            if not is_ours and not _is_apart(self._project, route):
                return False
            stream = journal.stream_of(route)
            if not self._changed(stream):
                return True
            file = [self._project.route_file(route)] if is_ours else []
            removed([*_displaced(self._project, stream), *file])
            purge = self._purge_of(stream)
            # With a new mark: an old buffer is no edit of what the route is now.
            self._replacing.replace(stream, lambda entry: purge(entry._replace(record=record.with_new_mark(entry))))
            self._records[route] = self._records.get(route, 0) + purge.changed
            return True

    # ---- files and caches ----

    def _drop_caches(self) -> list[Path]:
        """Remove what holds the words; where they are not known any more, all that can be made anew."""
        gone = _caches_with(self._project, self._target.wording)
        removed(gone)
        return gone

    # ---- the report ----

    def _files_held(self) -> list[str]:
        shared = (self._project.folder / shared_files.FOLDER).glob("*/*")
        found = (*_loose_files(self._project), *sorted(shared))
        return [self._project.name_of(path) for path in found if holds(path, self._target.wording)]

    def _report(self, caches: Iterable[Path], *, done: bool) -> Forgotten:
        wording = self._target.wording
        tasks = self._project.folder.parent / folders.TASKS
        left = [*remains(self._project.folder, wording), *remains(tasks, wording)] if done else []
        logs = session_logs.with_words(self._project, wording) if done else []
        return Forgotten(
            route=self._route,
            ids=(self._target.item.label,) if self._target.item.label else (),
            done=done,
            records=self._records,
            files=tuple(dict.fromkeys(self._files)),
            blobs=len(self._digests) + len(self._gone),
            caches=tuple(self._project.name_of(path) for path in caches),
            left=(*(self._project.name_of(path) for path in left), *map(str, logs)),
        )


def _purged(content: bytes, wording: Wording) -> bytes:
    """A blob without the words."""
    if content.startswith(b"---\n"):  # a file that was absorbed: words may stand over several of its lines
        return wording.without(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return purged_evidence(content, wording)


def _route_of(stream: str) -> str:
    return stream.removeprefix(_ROUTES)


def _content(project: Project, digest: Digest) -> bytes:
    with project.store.open_blob(digest) as file:
        return file.read()


def alone(project: Project) -> AbstractContextManager[object]:
    """Hold the project's lock for forgetting: two at once would wait for each other's routes."""
    return locks.locked(project.folder / "locks" / "forget.lock", f"{project.folder}: another forget")


def held(project: Project, names: Iterable[str]) -> ExitStack:
    """Hold routes, always in the same order, so that two that do it wait for each other in turn; a model's work on any
    of them first, for that takes minutes.
    """
    stack, names = ExitStack(), sorted(set(names))
    try:
        for name in names:
            stack.enter_context(locks.locked(project.worker_lock(name), f"{name}: the model's work"))
        for name in names:
            stack.enter_context(locks.locked(project.route_lock(name), name))
    except BaseException:
        stack.close()
        raise
    return stack


# --------------------
# Files that no journal makes, and caches.


_APART = ("cache", "installed", "locks", "shared")
"""Folders of the store whose files are dropped, or are not to be changed: what holds the words there is named."""

_STORED = regex(r"journal/.*\.jsonl(?:\.gz)?|blobs/[0-9a-f]{2}/[0-9a-f]{64}|blobs/gone|\.gitignore|config[a-z.]*\.yaml")


def _loose_files(project: Project) -> Iterator[Path]:
    """Every file of the store that no journal, blob or setting is, wherever it lies, and those of tasks. What a writer
    is about to put in place, or has displaced, is its own: the next writer sweeps it.
    """
    found = [project.folder.parents[1] / name for name in folders.scan(project.folder.parent / folders.TASKS)]
    for top, inner, names in os.walk(project.folder):
        inner[:] = [name for name in inner if Path(top) != project.folder or name not in _APART]
        found += [Path(top, name) for name in names]
    for path in sorted(found):
        is_apart = durable.is_temporary(path.name) or _STORED.fullmatch(project.name_of(path)) is not None
        is_apart = is_apart or (path.parent == project.folder / "prev" / "routes" and _is_route(project, path))
        if not is_apart and path.is_file() and not path.is_symlink():
            yield path


def _is_route(project: Project, displaced: Path) -> bool:
    """Whether what a writer displaced is a route's; else it lies under a name that one had."""
    name = displaced.name.removeprefix(".").partition(".md")[0]
    return project.store.head(journal.stream_of(name)) is not None


def _displaced(project: Project, stream: str) -> list[Path]:
    """What writers have displaced of a route's file."""
    return places.all_displaced(document_of(project, _route_of(stream)).place)


def _route_of_file(path: Path, project: Project) -> str:
    """The route whose file this is, "" for none."""
    own = path.suffix == ".md" and path.parent in (project.routes, project.routes / "archive")
    route = path.name.removesuffix(".md") if own else ""
    return route if cleaning.is_valid(route) else ""


def _is_apart(project: Project, route: str) -> bool:
    """Whether a route's file is not made from its journal: somebody brought it, or it cannot be read."""
    try:
        state = load_state(project, route)
    except DamagedRouteFile:
        return True
    return state is not None and state.status in ("foreign", "damaged")


def purge_file(project: Project, path: Path, purge: Purge) -> bool:
    """Purge a file that is not made from a journal: brought, damaged, or set aside; whether it had to be."""
    wording, route = purge.wording, _route_of_file(path, project)
    if not holds(path, wording) or (route and not _is_apart(project, route)):
        return False

    try:
        content = path.read_bytes()
    except FileNotFoundError:  # what a writer set aside, and has taken in by now
        return False
    if packed := list(unpacked(content)):  # of what is damaged the words cannot be taken out as it is
        content = b"".join(packed)
    if packed or path.parent.name not in ("routes", "archive"):
        purged = purged_evidence(content, wording)
    else:
        try:
            said = to_tree(filed.with_own_lines(parse(content, path)))
            purged = filed.content_of(from_tree(RouteContext, purge.purged(said)))
        except DamagedRouteFile:
            purged = wording.without(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    durable.write(path, purged)
    return True


def _sweep_temporary(project: Project) -> None:
    """Remove what a forget left that died while it purged a file, for who is alone at it: no writer puts one there."""
    durable.removed(path for path in project.routes.glob(".ralf-*") if durable.is_temporary(path.name))


def _caches_with(project: Project, wording: Wording) -> list[Path]:
    """The files of the cache that hold the words, and the indexes, which do in their own way."""
    return sorted({*remains(project.folder / "cache", wording), *index.files_in(project.cache)})


# --------------------
# Forget a whole route: journal, file, caches, evidence of no other route, and copies that a repair kept.
#
# The journal goes last: until it is gone, the route can be forgotten again, and a crash leaves a store that verifies.


def forget_route(route: str, *, dry_run: bool = False, root: str | os.PathLike[str] | None = None) -> Forgotten:
    """Remove all that the store has of a route; other routes keep what they have.

    What others of the store say of it stays, and so does the client's transcript: a checkpoint takes it in anew. In the
    logs that ralf itself keeps of opencode's sessions, what its checkpoints were made of is masked. Raises
    RouteNotFound, UsageError (a refused name), Busy, OSError, DamagedJournal (it is not known what other routes need).
    """
    project = projects.find(root)
    if dry_run:
        found = routing.existing(project, route)
        routing.check_at_rest(project, found)
        return _gone(project, found, dry_run=True)
    with alone(project):  # so that no rename begins from here on
        found = routing.existing(project, route)
        routing.check_at_rest(project, found)
        with held(project, [found, *routing.names_before(project, found)]):
            return _gone(project, found, dry_run=False)


def _gone(project: Project, route: str, *, dry_run: bool) -> Forgotten:
    stream, properties = journal.stream_of(route), project.store.properties
    names = (route, *routing.names_before(project, route))
    heap, replacing = required(properties.heap, "drop blobs"), required(properties.replace, "drop streams")
    streams = list(project.store.streams(""))
    named = named_digests(project.store, streams)
    kept = [path for name in names for path in set_aside.of_route(project, name)]
    lost = set_aside.digests_named(kept) - named.keys()  # of records that were damaged
    own = lost | {digest for digest, streams in named.items() if streams == {stream}}
    blobs = [blob.digest for blob in heap.blobs() if blob.digest in own]
    kept_blobs = set_aside.blobs(project, own)
    count = sum(1 for _ in project.store.read(stream))
    logs = session_logs.of_checkpoints(project, route, dry_run=dry_run)
    shown = [path for name in names for path in remnants.files_of(project, name)]
    caches, left = list(remnants.caches_of(project, names)), list[Path]()
    if not dry_run:
        for name in names:
            removed(_displaced(project, journal.stream_of(name)))
        removed(shown)
        for digest in blobs:
            heap.drop_blob(digest)
        removed(kept_blobs)
        removed(kept)  # now that nothing is needed any more that these name
        remnants.remove(caches)
        for dropped in (*routing.streams_of_moves(project, route), stream):
            replacing.drop(dropped)
        heap.sweep()
        remnants.remove(remnants.caches_of(project, names))  # a search may have come in between
        sync_below(project.folder)
        left = [
            path for name in names for path in (*remnants.files_of(project, name), *set_aside.of_route(project, name))
        ]
        left += [*remnants.caches_of(project, names), *set_aside.blobs(project, own)]
    return Forgotten(
        route=route,
        ids=(),
        done=not dry_run,
        whole=True,
        records={route: count} if count else {},
        files=(*(project.name_of(path) for path in [*shown, *kept, *kept_blobs]), *map(str, logs)),
        blobs=len(blobs),
        caches=tuple(project.name_of(path) for path in caches),
        left=tuple(project.name_of(path) for path in left),
    )
