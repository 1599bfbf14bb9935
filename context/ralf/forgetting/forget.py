"""Forgetting: the words of an item of a route, or any text, are purged from every record, blob, file and cache.

The order is such that a kill at any moment leaves a store that verifies, and that the same call then completes it: a
record that says what is forgotten (labels and hashes, no words); the evidence anew, without the words; the records of
the other routes, those of this one, each route's file after its records; the old evidence, the caches that hold the
words, the search index. So the journal tells the words until nothing but what a record names has to go. At the end
everything is read back.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ralf import evidence, journal, project as projects, routing, snapshot, state as states
from ralf.errors import Busy, UsageError
from ralf.files import atomic, locks
from ralf.files.placing import hidden_beside, removed, sync_below
from ralf.forgetting import loosefiles
from ralf.forgetting.forgettable import Target, of_item, of_text
from ralf.forgetting.purge import Item, Purge, purged_evidence
from ralf.forgetting.remains import holds, remains
from ralf.past import history
from ralf.project import Project
from ralf.store import Digest
from ralf.tree import to_tree
from ralf.writer import writing

_DIGITS = 32  # of a digest in a record: whoever looks for the blobs that records name does not take it for one
_ROUTES = journal.stream_of("")
_MOST_TRIES = 5  # at a route into which somebody writes the words again


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a forget came to, or would.

    ids      labels of what is forgotten, () for a text and for a whole route
    whole    whether it is the route itself
    done     whether it was done, or only looked at
    records  how many records were changed, by route
    files    route files that were written anew or removed, and files beside them
    blobs    how many blobs were put anew without the words, or dropped
    caches   files of the cache that were removed; the search index among them
    left     files below the context folder in which the words still stand: [] is the proof that they are gone
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
    project.check_links()
    found = routing.existing(project, route)
    if (id is None) == (text is None):
        raise UsageError(found, "forget an item or a text", f"ralf context forget {found} DEC-001")
    label = history.label(id or "", "DEC")
    if dry_run:
        target = of_text(found, text) if text is not None else of_item(project, found, label)
        return _Forgetting(project, found, target).looked_at()
    with alone(project):
        if project.store.head(journal.stream_of(found)) is not None:
            with writing(project, found):
                pass  # what a person wrote into the file is in the journal now
        target = of_text(found, text) if text is not None else of_item(project, found, label)
        return _Forgetting(project, found, target).run()


class _Forgetting:
    """One call of `forget`."""

    def __init__(self, project: Project, route: str, target: Target) -> None:
        self._project = project
        self._store = project.store
        self._stream = journal.stream_of(route)
        self._route = route
        self._target = target
        self._digests: dict[Digest, Digest] = {}  # old to new
        self._gone: list[Digest] = []
        self._records: dict[str, int] = {}
        self._files: list[str] = []

    def looked_at(self) -> Forgotten:
        """What would be touched."""
        self._find_blobs(evidence.named(self._store))
        for stream in self._store.streams(""):
            if changed := self._changed(stream):
                self._records[_route_of(stream)] = changed
        self._files = self._files_held()
        return self._report(loosefiles.caches(self._project, self._target.wording), done=False)

    def run(self) -> Forgotten:
        """Do it."""
        self._purge_all()
        self._store.sweep()
        dropped = self._drop_caches()
        sync_below(self._project.folder)
        return self._report(dropped, done=True)

    def _purge_all(self) -> None:
        named = evidence.named(self._store)
        self._find_blobs(named)
        held = [
            stream for stream in sorted(self._store.streams("")) if self._changed(stream) or self._is_in_file(stream)
        ]
        self._files = self._files_held()
        if not (held or self._files or self._digests or self._gone or self._target.item.label):
            return
        broken_off = self._begin(named)
        for stream in held:
            if not stream.startswith(_ROUTES):
                self._records[stream] = self._store.rewrite(stream, self._purge_of(stream))
            elif stream != self._stream:
                self._purge(stream)
        loosefiles.sweep(self._project)
        for path in loosefiles.files(self._project):
            stream = journal.stream_of(loosefiles.route_of(path, self._project))
            if loosefiles.purge(self._project, path, self._purge_of(stream)):
                self._files.append(self._told(path))
        if self._store.head(self._stream) is not None:
            self._purge(self._stream)
        now = evidence.named(self._store)
        for digest in (*self._digests, *self._gone, *broken_off):
            if now.get(digest, set()) <= named.get(digest, set()):  # else a checkpoint has come that needs it
                self._store.drop_blob(digest)

    # ---- blobs ----

    def _find_blobs(self, named: Mapping[Digest, set[str]]) -> None:
        """The blobs that hold the words; those that no record names need no copy without them."""
        wording = self._target.wording
        records = journal.read(self._store, self._route)
        files = {record.render for _, record in records if not record.foreign}  # of which some are kept
        for blob in list(self._store.blobs()):
            streams = named.get(blob.digest, set())
            if blob.digest in files or (blob.digest in self._target.evidence and streams == {self._stream}):
                self._gone.append(blob.digest)
                continue
            content = _content(self._project, blob.digest)
            if not wording.stands_in(content.decode("utf-8", "replace")):
                continue
            purged = purged_evidence(content, wording)
            if not streams:
                self._gone.append(blob.digest)
            elif purged != content:
                self._digests[blob.digest] = hashlib.sha256(purged).hexdigest()

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
                "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            with writing(self._project, self._route) as writer:
                writer.append("forget", payload, id=f"forget-{label or 'text'}-{writer.context.revision}")
                writer.show()
        for digest in self._digests:
            self._store.put_blob([purged_evidence(_content(self._project, digest), self._target.wording)])
        listed = {str(digest) for payload in told for digest in payload.get("blobs", ())}
        return [
            blob.digest for blob in self._store.blobs() if blob.digest[:_DIGITS] in listed and blob.digest not in named
        ]

    # ---- records ----

    def _purge_of(self, stream: str) -> Purge:
        item = self._target.item if stream == self._stream else Item()
        return Purge(stream, self._target.wording, item, self._digests)

    def _changed(self, stream: str) -> int:
        """How many records of a stream hold something that is to be forgotten."""
        purge = self._purge_of(stream)
        for entry in self._store.read(stream):
            purge(entry)
        return purge.changed

    def _is_in_file(self, stream: str) -> bool:
        """Whether a route's file holds the words, or what its writers left beside it."""
        path = self._project.routes / f"{_route_of(stream)}.md"
        found = (path, *hidden_beside(path)) if stream.startswith(_ROUTES) else ()
        return any(holds(one, self._target.wording) for one in found)

    def _purge(self, stream: str) -> None:
        """Purge a route's records, and then its file; a person who saves the old words meanwhile is taken in first."""
        route = _route_of(stream)
        path = self._project.route_file(route)
        rewritten = False
        for _ in range(_MOST_TRIES):
            with locks.held(self._project.worker_lock(route), f"{route}: the model's work"):
                with writing(self._project, route):
                    pass
                if not self._rewrite(route):
                    continue
                rewritten = True
                before = states.read_file(self._project, route)
                with writing(self._project, route, leave=False) as writer:
                    writer.show()
                    damaged = bool(writer.damage) or writer.foreign
                    atomic.sweep(path, grace=0)  # what was displaced shows the words
                if states.read_file(self._project, route) != before:  # also where the words are not known any more
                    self._files.append(self._told(path))
            if damaged or not self._is_in_file(journal.stream_of(route)):
                return
        if not rewritten:
            raise Busy(
                route, "its file is saved faster than it can be purged", "close it in the editor, then try again"
            )

    def _rewrite(self, route: str) -> bool:
        """Rewrite a route's records; False where its file was saved meanwhile and has to be taken in first.

        The snapshot stays, though no place in it counts any more: it tells that the file, which shows the words until
        it is rendered anew, is ours and not a person's edit.
        """
        with locks.held(self._project.route_lock(route), route):
            kept = snapshot.load(self._project.cache, route)
            content = states.read_file(self._project, route)
            ours = kept is not None and states.digest_of(content or b"") in {digest for _, digest in kept.renders}
            if content and not ours and not loosefiles.is_apart(self._project, route):
                return False
            stream = journal.stream_of(route)
            if not self._changed(stream):
                return True
            # What names places of the journal goes first: it would be of another.
            removed([self._project.cache / "sessions" / f"{route}.jsonl"])
            purge = self._purge_of(stream)
            self._store.rewrite(stream, purge)
            self._records[route] = self._records.get(route, 0) + purge.changed
            return True

    # ---- files and caches ----

    def _drop_caches(self) -> list[Path]:
        """Remove what holds the words; where they are not known any more, all that can be made anew."""
        gone = loosefiles.caches(self._project, self._target.wording)
        if not self._target.wording:
            gone += loosefiles.made_anew(self._project)
        removed(gone)
        return gone

    # ---- telling ----

    def _files_held(self) -> list[str]:
        return [self._told(path) for path in loosefiles.files(self._project) if holds(path, self._target.wording)]

    def _told(self, path: Path) -> str:
        return self._project.name_of(path)

    def _report(self, caches: Iterable[Path], *, done: bool) -> Forgotten:
        left = remains(self._project.folder, self._target.wording) if done else []
        return Forgotten(
            route=self._route,
            ids=(self._target.item.label,) if self._target.item.label else (),
            done=done,
            records=self._records,
            files=tuple(dict.fromkeys(self._files)),
            blobs=len(self._digests) + len(self._gone),
            caches=tuple(self._told(path) for path in caches),
            left=tuple(self._told(path) for path in left),
        )


def _route_of(stream: str) -> str:
    return stream.removeprefix(_ROUTES)


def _content(project: Project, digest: Digest) -> bytes:
    with project.store.open_blob(digest) as file:
        return file.read()


@contextmanager
def alone(project: Project) -> Iterator[None]:
    """Hold the project's forgetting: two at once would wait for each other's routes."""
    with locks.held(project.folder / "locks" / "forget.lock", f"{project.folder}: another forget"):
        yield
