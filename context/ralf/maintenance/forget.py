"""Forgets an item, a text or a whole route: purges the words from every record, blob, file and cache."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ralf import project as projects, routing
from ralf.agent import contents, records
from ralf.agent.listing import forget_run
from ralf.document import access, index, record
from ralf.document.tree import to_tree
from ralf.errors import NotFound, UsageError
from ralf.maintenance import session_logs
from ralf.maintenance.documents import ROUTES, Kept, all_kept, kept
from ralf.maintenance.purge import Wording, files_below, holds, line_of, remains
from ralf.maintenance.target import Item, Target, of_item, of_text
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import history
from ralf.route.write import open_route, utc_now
from ralf.storage import durable, journal, locks, shared_files
from ralf.storage.durable import removed, sync_below
from ralf.storage.files import content_of
from ralf.storage.journal import MALFORMED, Digest, Entry
from ralf.storage.journal_file import unpacked
from ralf.tasks import folders
from ralf.text.patterns import regex
from ralf.transcripts import opencode
from ralf.transcripts.events import digests_in, named_digests

_DIGITS = 32  # of a digest in a record: whoever looks for the blobs that records name does not take it for one

_ENVELOPE = ("v", "n", "revision", "parent", "kind", "at", "mark", "render", "digest", "save")  # no words of anybody

_OF_RUNS = (records.RUNS, records.SIGNALS, records.OUTPUT)

_APART = regex(
    r"(?:cache|installed|locks|shared)/|(?:journal/.*\.jsonl(?:\.gz)?|blobs/[0-9a-f]{2}/[0-9a-f]{64}|blobs/gone|\.gitignore"
    r"|config[a-z.]*\.yaml)\Z"
)
"""Files of the store that are not masked: they are rewritten as what they are, or dropped, or named."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of a forget, or of its dry run.

    ids      labels of what is forgotten, () for a text and for a whole route
    whole    whether it is the route itself
    done     whether it was done, or only looked at
    records  how many records held the words, by route, or by the stream of something else; of a stream `moved/NAME`
             and of a run all, which are dropped
    files    that held the words, or were the route's; by their whole path the session logs outside the store
    blobs    how many blobs were put anew without the words, or dropped
    left     files below the context folder and that of tasks, and session logs, in which the words still stand: () is
             the proof that they are gone
    """

    route: str
    ids: tuple[str, ...]
    done: bool
    whole: bool = False
    records: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    blobs: int = 0
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
        raise UsageError(found, "forget an item or a text", f"ralf forget {found} DEC-001")
    with nullcontext() if dry_run else alone(project):
        found = routing.existing(project, route)  # it may have been renamed meanwhile
        document = kept(project, journal.stream_of(found))
        if not dry_run and document is not None and project.store.head(document.document.stream) is not None:
            document.settle()  # what a person wrote into the file is in the journal now
        target = (
            of_text(found, text, redactor_for(project).text)
            if text is not None
            else of_item(project, found, history.label(id or "", "DEC"))
        )
        for one in all_kept(project) if not dry_run else ():
            if any(holds(path, target.wording) for path in one.files):
                one.settle()
        forgetting = _Forgetting(project, found, target)
        if not dry_run:
            forgetting.erase()
        return forgetting.report(done=not dry_run)


def alone(project: Project) -> AbstractContextManager[object]:
    """Hold the project's lock for forgetting and renaming: two at once would wait for each other's routes."""
    return locks.locked(project.folder / "locks" / "forget.lock", f"{project.folder}: another forget")


@contextmanager
def held(project: Project, names: Iterable[str]) -> Iterator[None]:
    """Hold routes, always in the same order, so that two that do it wait for each other in turn; a model's work on any
    of them first, for that takes minutes.
    """
    ordered = sorted(set(names))
    with ExitStack() as stack:
        for name in ordered:
            stack.enter_context(locks.locked(project.worker_lock(name), f"{name}: the model's work"))
        for name in ordered:
            stack.enter_context(locks.locked(project.route_lock(name), name))
        yield


class _Forgetting:
    """One forget of an item or a text: what holds the words, and the steps that erase them.

    The order makes every crash safe: the store verifies, and the same call completes the forget. First a record that
    names what is forgotten (labels and hashes, no words), then the evidence without the words, the other records and
    files, the records of this route and its file; last the old evidence, the caches and the search index. So the
    journal holds the words until nothing else is left to purge. The end is a search of every file.
    """

    def __init__(self, project: Project, route: str, target: Target) -> None:
        self._project, self._store = project, project.store
        self._route, self._stream = route, journal.stream_of(route)
        self._item, self._wording = target.item, target.wording
        self._target = target
        streams = sorted(self._store.streams(""))
        self._named = named_digests(self._store, streams)
        self._digests: dict[Digest, Digest] = {}  # old to new
        self._gone: list[Digest] = []
        self._find_blobs()
        self._documents = {one.document.stream: one for one in all_kept(project)}
        self._records = {stream: count for stream in streams if (count := self._count(stream))}
        masked = [path for path in files_below(project.folder) if self._is_masked(path)]
        masked += (project.folder.parents[1] / name for name in folders.scan(_tasks(project)))
        self._files = sorted(path for path in masked if holds(path, self._wording))
        self._shared = remains(project.folder / shared_files.FOLDER, self._wording)
        self._segments = session_logs.segments(project, route, target.item.revisions)
        self._logs = session_logs.with_words(project, self._wording)

    # ---- what holds the words ----

    def _find_blobs(self) -> None:
        """The blobs that hold the words; those that no record names need no copy without them."""
        for blob in list(self._store.blobs()):
            streams = self._named.get(blob.digest, set())
            is_own = blob.digest in self._target.evidence and streams == {self._stream}
            content = self._content(blob.digest)
            made = self._wording.masked(content)
            if is_own or (made != content and not streams):
                self._gone.append(blob.digest)
            elif made != content and not all(stream.startswith(_OF_RUNS) for stream in streams):
                self._digests[blob.digest] = hashlib.sha256(made).hexdigest()

    def _content(self, digest: Digest) -> bytes:
        with self._store.open_blob(digest) as file:
            return file.read()

    def _is_masked(self, path: Path) -> bool:
        """Whether a file of the store is masked. What a writer is about to put in place is its own."""
        return not durable.is_temporary(path.name) and not _APART.match(self._project.name_of(path))

    def _count(self, stream: str) -> int:
        """How many records of a stream hold something that is to be forgotten; of what goes as a whole, all."""
        entries = list(self._store.read(stream))
        if stream.startswith(_OF_RUNS):  # in formats that nobody knows
            texts = [text for entry in entries for text in self._texts_of_run(stream, entry)]
            texts.append("".join(texts[1::2]))  # output is cut where time was up, in the middle of a word
            return len(entries) if any(map(self._wording.stands_in, texts)) else 0
        if stream.startswith(routing.MOVED):  # a name without the words would be another's
            payloads = [json.loads(entry.record).get("payload", {}) for entry in entries]
            names = [stream.removeprefix(routing.MOVED), *(str(one.get("new", "")) for one in payloads)]
            return len(entries) if any(map(self._wording.stands_in, names)) else 0
        return sum(self._masked(stream, entry)[1] for entry in entries)

    def _texts_of_run(self, stream: str, entry: Entry) -> tuple[str, str]:
        """A record of a run, and the contents that it has."""
        found = b""
        with suppress(NotFound, *MALFORMED):
            packed = contents.found(json.loads(entry.record))
            found = b"".join(contents.unpack(self._store, one, stream) for one in packed)
        return entry.record.decode("utf-8", "replace"), found.decode("utf-8", "replace")

    def _masked(self, stream: str, entry: Entry) -> tuple[bytes, bool]:
        """A record without what is to be forgotten, and whether it held any of that."""
        item = self._item if stream == self._stream else Item()
        with journal.understood(stream):
            tree = json.loads(entry.record)
            made = {key: value if key in _ENVELOPE else self._wording.taken_out(value) for key, value in tree.items()}
            if isinstance(made.get("payload"), dict):
                made["payload"] = item.without(made["payload"], int(tree.get("revision", 0)))
        line = line_of(made)
        for old, new in self._digests.items():
            line = line.replace(old.encode(), new.encode())
        is_changed = line != line_of(tree)
        if is_changed and "payload" in tree:
            line = line_of(json.loads(line) | {"purged": True})
        if stream in self._documents and tree.get("render"):  # the file of that shows the words: none of ours now
            line = line_of(json.loads(line) | {"render": ""})
        return line if line != line_of(tree) else entry.record, is_changed

    # ---- the steps ----

    def erase(self) -> None:
        """Purge what holds the words."""
        for stream in [stream for stream in self._records if stream.startswith(_OF_RUNS)]:
            with suppress(NotFound):  # Claimed where a process holds it: then nothing is done
                forget_run(stream.split("/")[1], root=self._project.root)
        for segment in self._segments:
            segment.blank()
        for path in self._logs:
            opencode.mask(path, self._wording.spans)
        if self._records or self._files or self._shared or self._digests or self._gone or self._item.label:
            self._purge()
        self._store.sweep()
        self._drop_caches()
        sync_below(self._project.folder)

    def _drop_caches(self) -> None:
        removed(index.files_in(self._project.cache))  # which hold words in their own way, and are the largest
        removed(remains(self._project.folder / "cache", self._wording))

    def _purge(self) -> None:
        old = [*self._begin(), *self._digests, *self._gone]
        streams = [stream for stream in self._records if not stream.startswith(_OF_RUNS) and stream != self._stream]
        for stream in streams:
            if stream.startswith(routing.MOVED):
                self._store.drop(stream)
            elif stream not in self._documents:
                self._store.replace(stream, lambda entry, stream=stream: self._masked(stream, entry)[0])  # type: ignore[misc]
        documents = {path: one for one in self._documents.values() for path in one.files}
        dirty = {stream for stream in (*streams, self._stream) if stream in self._documents and stream in self._records}
        dirty |= {documents[path].document.stream for path in self._files if path in documents}
        for stream in sorted(dirty - {self._stream}):
            self._rewrite(self._documents[stream])
        removed(
            path for path in self._project.routes.glob(".ralf-*") if durable.is_temporary(path.name)
        )  # a dead forget's
        for path in self._files:
            if path not in documents:
                self._mask(path)
        if self._stream in dirty:
            self._rewrite(self._documents[self._stream])
        shared_files.rewrite(self._project.folder / shared_files.FOLDER, self._wording.without)
        now = named_digests(self._store) if old else {}
        for digest in old:
            if now.get(digest, set()) <= self._named.get(digest, set()):  # else a checkpoint has come that needs it
                self._store.drop_blob(digest)

    def _begin(self) -> list[Digest]:
        """Say what is forgotten, and put the evidence anew; returns the old blobs of a call that was broken off."""
        label, read = self._item.label, journal.read(self._store, self._route, kinds=("forget",))
        with journal.understood(self._route):
            before = [found.payload for _, found in read if label and label in found.payload.get("ids", ())]
        if self._stream in self._documents and (self._wording or not before):
            payload = {
                "ids": [label] if label else [],
                "tombstones": [to_tree(stone) for stone in self._target.stones],
                "blobs": sorted(digest[:_DIGITS] for digest in (*self._digests, *self._gone)),
                "timestamp": utc_now(),
            }
            with open_route(self._project, self._route) as writer:
                writer.append("forget", payload, id=f"forget-{label or 'text'}-{uuid.uuid4().hex}")
        for digest in self._digests:
            self._store.put_blob([self._wording.masked(self._content(digest))])
        listed = {str(digest) for payload in before for digest in payload.get("blobs", ())}
        blobs = [blob.digest for blob in self._store.blobs()]
        return [digest for digest in blobs if digest[:_DIGITS] in listed and digest not in self._named]

    def _rewrite(self, one: Kept) -> None:
        """Purge a document's records, and then its file.

        The file goes first, for it shows the old words and would be an edit of the new ones; who is broken off leaves a
        journal that makes it anew. The document gets a new mark: an old buffer is no edit of what it is now.
        """
        document = one.document
        with locks.locked(self._project.worker_lock(document.name), f"{document.name}: the model's work"):
            with access.writing(document) as writer:
                writer.absorb()  # what was saved at this moment
                is_left = writer.is_left
                removed(path for path in one.files if path != document.place.file or not is_left)

                def changed(entry: Entry) -> bytes:
                    return record.with_new_mark(entry._replace(record=self._masked(document.stream, entry)[0]))

                self._store.replace(document.stream, changed)
            one.settle()
        for path in document.place.file.parent.glob("*.displaced-*"):  # what it has just set aside may hold the words
            self._mask(path)
        if is_left:
            self._mask(document.place.file)

    def _mask(self, path: Path) -> None:
        """Purge a file that is not made from a journal: brought, damaged, or set aside."""
        with suppress(FileNotFoundError):  # what a writer set aside, and has absorbed by now
            content = unpacked(content_of(path))
            if (made := self._wording.masked(content)) != content:
                durable.write(path, made)

    def report(self, *, done: bool) -> Forgotten:
        """What was found, and once it is done what is left of it."""
        project = self._project
        left = [*map(project.name_of, _found(project, self._wording))] if done else []
        left += map(str, session_logs.with_words(project, self._wording) if done else ())
        files = [project.name_of(path) for path in (*self._files, *self._shared)]
        files += map(str, sorted({*self._logs, *(segment.log for segment in self._segments)}))
        return Forgotten(
            route=self._route,
            ids=(self._item.label,) if self._item.label else (),
            done=done,
            records={stream.removeprefix(ROUTES): count for stream, count in self._records.items()},
            files=tuple(files),
            blobs=len(self._digests) + len(self._gone),
            left=tuple(left),
        )


def _tasks(project: Project) -> Path:
    return project.folder.parent / folders.TASKS


def _found(project: Project, wording: Wording) -> list[Path]:
    """Every file of the store and of tasks in which the words stand, or whose name they are a part of."""
    folders_ = (project.folder, _tasks(project))
    named = (path for folder in folders_ for path in files_below(folder) if wording.stands_in(_named(path, folder)))
    return sorted({*(path for folder in folders_ for path in remains(folder, wording)), *named})


def _named(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder))


# ---- a whole route ----


def forget_route(route: str, *, dry_run: bool = False, root: str | os.PathLike[str] | None = None) -> Forgotten:
    """Remove all that the store has of a route, under each of its names; other routes keep what they have.

    The journal goes last: until it is gone, the route can be forgotten again, and a crash leaves a store that verifies.
    What others of the store say of it stays, and so does the client's transcript: a checkpoint takes it in anew. In the
    logs that ralf itself keeps of opencode's sessions, what its checkpoints were made of is masked. Raises
    RouteNotFound, UsageError (a refused name), Busy, OSError, DamagedJournal (it is not known what other routes need).
    """
    project = projects.find(root)
    with nullcontext() if dry_run else alone(project):  # so that no rename begins from here on
        found = routing.existing(project, route)
        names = [found, *routing.names_before(project, found)]
        with nullcontext() if dry_run else held(project, names):
            return _forget_route(project, found, names, dry_run=dry_run)


def _forget_route(project: Project, route: str, names: list[str], *, dry_run: bool) -> Forgotten:
    stream, store = journal.stream_of(route), project.store
    named, files = named_digests(project.store), _files_of(project, names)
    own = {digest for digest, streams in named.items() if streams == {stream}}
    for path in files:  # of records that were damaged
        with suppress(OSError):
            own |= digests_in(unpacked(content_of(path))) - named.keys()
    blobs = [blob.digest for blob in store.blobs() if blob.digest in own]
    files += [path for path in sorted((project.folder / "blobs").rglob("*.damaged")) if path.name[:64] in own]
    count = sum(1 for _ in project.store.read(stream))
    segments = session_logs.segments(project, route)
    shared = shared_files.of_routes(project.folder / shared_files.FOLDER, names)
    if not dry_run:
        shared_files.empty(project.folder / shared_files.FOLDER, names)
        for segment in segments:
            segment.blank()
        removed(files)
        for digest in blobs:
            store.drop_blob(digest)
        _remove_caches(project, names)
        for dropped in (*routing.streams_of_moves(project, route), stream):
            store.drop(dropped)
        store.sweep()
        _remove_caches(project, names)  # a search may have come in between
        sync_below(project.folder)
    return Forgotten(
        route=route,
        ids=(),
        done=not dry_run,
        whole=True,
        records={route: count} if count else {},
        files=(*map(project.name_of, (*files, *shared)), *sorted({str(segment.log) for segment in segments})),
        blobs=len(blobs),
        left=() if dry_run else tuple(map(project.name_of, _files_of(project, names))),
    )


def _files_of(project: Project, names: Iterable[str]) -> list[Path]:
    """The files of a route beside its journal: its own, and what writers and repairs kept of it."""
    ours = "|".join(map(re.escape, names))
    kept = r"(?:\.jsonl(?:\.gz)?|\.md)?(?:\.\d+)?\.damaged|\.displaced-[0-9a-f]+"
    pattern = re.compile(rf"\.?(?:{ours})(?:\.md(?:\.aside|\.new)?|{kept})", re.I)
    folders_ = ("routes", "routes/archive", "prev/routes", "journal/routes", "journal/moved")
    found = [path for name in folders_ for path in (project.folder / name).glob("*")]
    return sorted(path for path in found if pattern.fullmatch(path.name))


def _remove_caches(project: Project, names: Iterable[str]) -> None:
    """Remove what the caches of all users have of a route, by a name of it in a path or a file, and the indexes."""
    named = re.compile(rb"(?<![\w.-])(?:%s)(?![\w-])" % "|".join(map(re.escape, names)).encode())
    files = index.files_in(project.cache)
    for path in (project.folder / "cache").rglob("*"):
        with suppress(OSError):
            if path.is_dir() and named.search(os.fsencode(path.name)):
                shutil.rmtree(path)
            elif named.search(os.fsencode(path.name)) or named.search(content_of(path)):
                files.append(path)
    removed(files)
