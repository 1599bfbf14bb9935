"""The store of an earlier version, or of a project that was moved: whose it is, and taking it as this user's own."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import checkout, fingerprint, journal, names
from ralf.errors import DamagedJournal, RalfError
from ralf.files import folders, locks, ownfile
from ralf.ownership import gitview, registry
from ralf.ownership.registry import ADOPTING, UNANSWERED, Registration
from ralf.transcripts import ofproject

if TYPE_CHECKING:
    from ralf.project import Project

_SESSIONS_CACHE = ("chosen", "named", "hooks", "nudged", "orchestrators", "runs", "budgets", "deprecated")
_DERIVED_CACHE = ("routes", "renders", "sessions", "open", *_SESSIONS_CACHE)

_MOST_SESSIONS = 200  # whose logs are looked for, newest first
_MOST_ROLLOUTS = 20_000  # of Codex, of all projects, among which a session is looked for


@dataclass(frozen=True, slots=True)
class Found:
    """What a store holds that this user's ralf has not written, or not under this registration.

    streams  the streams with such records, and how many records each has
    proven   a session whose log in the user's own client folder proves that the store is theirs, "" for none
    moved    the registration of another path whose key fits the seals, None for none
    """

    streams: dict[str, int]
    proven: str = ""
    moved: Registration | None = None


def register(project: Project) -> Registration:
    """Register a project with new keys, or complete what was begun. A store that was there before is adopted where that
    is proven; else it waits for the person's answer. Errors as for `registry.update`, and of the store.
    """
    owner = project.owner
    is_empty = not any(project.store.streams(""))  # before the registration: who fills a store has one first
    found = owner.look_again()
    if found is not None and found.pending == ADOPTING:
        return adopt(project)
    if found is not None:
        return found
    if is_empty:
        return owner.add(redaction_key=_old_redaction_key(project, is_ours=False))
    if _proof(project):
        return adopt(project)
    return owner.add(pending=UNANSWERED)


def look(project: Project) -> Found:
    """What the store holds that is not this user's by its seals. Reads only."""
    streams: dict[str, int] = {}
    for stream in sorted(project.store.streams("")):
        with suppress(DamagedJournal):
            count = sum(entry.foreign for entry in project.store.read(stream))
            if count:
                streams[stream] = count
    return Found(streams, proven=_proof(project) if streams else "", moved=_moved(project) if streams else None)


def adopt(project: Project) -> Registration:
    """Take a store as this user's own: its records get seals, its redaction key and what its cache knew of sessions
    become theirs. A stream that git tracks came with a repository and stays foreign. Broken off, `register` completes
    it.

    Errors as for `registry.update`, and of the store; Busy while somebody writes.
    """
    from ralf import optin
    from ralf.secrets import redaction

    owner = project.owner
    opted_in = project.config_file.exists() and not _has_brought_settings(project)
    moved = _moved(project)
    old_key = moved.redaction_key if moved else _old_redaction_key(project, is_ours=True)
    kept: dict[str, object] = {"seal_key": moved.seal_key, "cache": moved.cache} if moved else {}
    if old_key:
        kept["redaction_key"] = old_key
    owner.update(pending=ADOPTING, **kept)
    for stream in sorted(project.store.streams("")):
        if not _is_tracked(project, stream):
            _seal(project, stream)
    _move_cache(project)
    if opted_in:
        optin.accept_settings(project)
    if not moved:
        redaction.remove_key_from_file(project)
    hooks = {"hooks": True, "since": time.time()} if opted_in and not owner.has_opted_in else {}
    return owner.update(pending="", share=gitview.is_shared(project), **hooks)


def _seal(project: Project, stream: str) -> None:
    route = stream.removeprefix("routes/")
    with ExitStack() as held:
        if route != stream and names.is_valid(route):
            held.enter_context(locks.held(project.route_lock(route), route))
        with suppress(DamagedJournal):  # `verify` names it; what can be read of it stays foreign
            project.store.adopt(stream)


def _move_cache(project: Project) -> None:
    """Move what an earlier version's cache knew of sessions into ours, and remove the rest, which is made anew."""
    top = project.folder / "cache"
    for name in _SESSIONS_CACHE:
        if (top / name).is_dir() and not (project.cache / name).exists():
            with suppress(OSError):
                folders.make(project.cache)
                (top / name).rename(project.cache / name)
    for path in top.iterdir() if top.is_dir() else ():
        if path.name in _DERIVED_CACHE:
            shutil.rmtree(path, ignore_errors=True)
        elif path.name.startswith("search") and path.is_file():
            path.unlink(missing_ok=True)


def _moved(project: Project) -> Registration | None:
    """The registration of another path under whose key records of this store are sealed."""
    from ralf.storage.filestore import FileStore
    from ralf.storage.sealed import SealedStore

    here = os.path.realpath(project.folder.parent.parent)
    others = [each for each in registry.everyone() if each.seal_key and each.path != here]
    if not others:
        return None
    plain = FileStore(project.folder)
    for stream in sorted(plain.streams("")):
        with suppress(RalfError, OSError):
            head = plain.head(stream)
            for each in others if head else ():
                key = bytes.fromhex(each.seal_key)
                store = SealedStore(plain, lambda key=key: key, lambda _: False)  # type: ignore[misc]
                if head and not store.entry(stream, head).foreign:
                    return each
    return None


def _proof(project: Project) -> str:
    """A session of the store whose log lies in the user's own client folder and begins as the journal says; "" for
    none. Nobody else knows how such a log begins.
    """
    for tried, (session, head, size) in enumerate(_sessions(project)):
        if tried == _MOST_SESSIONS:
            break
        path = ofproject.of_session(session, most=_MOST_ROLLOUTS)
        if path is None:
            continue
        with suppress(OSError):
            found = fingerprint.take(path, min(size, path.stat().st_size))
            if found is not None and found.head == head and size >= fingerprint.HEAD // 4:
                return session
    return ""


def _sessions(project: Project) -> Iterator[tuple[str, str, int]]:
    """The sessions that the journals name, newest first: id, hash of the log's head, bytes that were read of it."""
    seen = set()
    for stream in sorted(project.store.streams("routes/")):
        if _is_tracked(project, stream):
            continue
        route = stream.removeprefix("routes/")
        found = []
        with suppress(DamagedJournal):
            for _, record in journal.read(project.store, route):
                source = record.payload.get("source")
                if record.kind == "checkpoint" and isinstance(source, dict):
                    found.append((str(source.get("session", "")), str(source.get("head", "")), source.get("to_byte")))
        for session, head, size in reversed(found):
            if session and head and isinstance(size, int) and (session, head) not in seen:
                seen.add((session, head))
                yield session, head, size


def _has_brought_settings(project: Project) -> bool:
    """Whether git tracks the settings: an earlier version never had it do so. They opt nobody in."""
    return checkout.tracks(project.folder.parents[1], project.config_file.relative_to(project.folder.parents[1]))


def _is_tracked(project: Project, stream: str) -> bool:
    path = Path(".autonomous", "context", "journal", f"{stream}.jsonl")
    return checkout.tracks(project.folder.parent.parent, path)


def _old_redaction_key(project: Project, *, is_ours: bool) -> str:
    """The key that an earlier version kept in `config.local.yaml`; "" for none, or where the store is not known to be
    this user's. The caller keeps it in the registration.
    """
    from ralf.secrets import redaction

    if not is_ours and project.local_config_file.exists() and ownfile.may_be_cloned(project.local_config_file):
        return ""
    with suppress(RalfError, OSError):
        return redaction.key_in_file(project) or ""
    return ""
