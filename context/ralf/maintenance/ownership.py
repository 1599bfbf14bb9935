"""What is this user's own: a project that they opt in, a store that was there before."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ralf import config
from ralf.errors import Damaged, DamagedJournal, RalfError, UsageError
from ralf.model import Carried
from ralf.project import CONTEXT, NO_FOLDER, OUTSIDE, Project
from ralf.route import fold, shared
from ralf.route.load import load_state
from ralf.storage import durable, files, git_files, registry
from ralf.storage.journal import Entry
from ralf.storage.own import id_of
from ralf.storage.registry import Registration
from ralf.transcripts.events import digests_in

# --------------------
# Opt a project in and out: its registration in the user's folder, its settings, and what git sees.

CONFIG_TEXT = """\
# ralf: the settings of this project. All keys: docs/config.md
#threshold: 50000         # tokens since the last checkpoint; or a share of the window (25%)
#window: 200000           # context window size in tokens, if the client does not report it
#pressure: 60             # percent of the window at which a checkpoint falls due
"""


class Step(NamedTuple):
    """One thing that would be or was done to a path."""

    path: Path
    what: str


def plan_init(project: Project, *, share: bool) -> list[Step]:
    """What `init` would do; [] when everything is in place. UsageError where there is no git to share by."""
    if share and git_files.worktree(project.folder.parent.parent) is None:
        raise UsageError(project.root, "no git repository: what is shared goes through git", "git init")
    steps = []
    if not project.owner.has_opted_in:
        steps.append(Step(registry.folder() or project.root, "change: hooks act in this project"))
    if not project.config_file.exists():
        steps.append(Step(project.config_file, "create: settings"))
    ignore = project.folder / ".gitignore"
    if not ignore.exists():
        seen = "git sees what you share alone" if share else "git sees nothing of it"
        steps.append(Step(ignore, f"create: {seen}"))
    elif share and not (project.git.shares() and project.git.is_shared()):
        steps.append(Step(ignore, "change: git sees what you share"))
    return steps


def lines_that_set(project: Project) -> list[str]:
    """The lines of the configuration that set something, as they stand there; [] for none, or none that can be read."""
    try:
        text = config.decoded(project.config_file, files.content_of(project.config_file))
    except (OSError, Damaged):
        return []
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def accept_settings(project: Project, *, seen: str = "") -> bool:
    """Take the configuration for the user's own; whether it was still what the user was shown. Errors as for
    `registry.update`.

    seen  `digest_of_settings` from before it was shown; "": as it is now
    """
    digest = digest_of_settings(project)
    if seen and digest != seen:
        return False
    if digest:
        project.owner.update(accepted=project.owner.accepted | {project.config_file.name: digest})
    return True


def digest_of_settings(project: Project) -> str:
    """The sha256 of the configuration as it is now, "" for none."""
    try:
        return hashlib.sha256(files.content_of(project.config_file)).hexdigest()
    except OSError:
        return ""


def init(project: Project, *, share: bool, accept: bool = False) -> list[Step]:
    """Opt a project in; done twice it changes nothing. Returns what was done.

    accept  whether the person has seen, on a terminal, the settings that were there before, and takes them as theirs;
            nothing else that was there before is accepted

    UsageError for a user without a folder for settings that can be written.
    """
    steps = plan_init(project, share=share)
    if not project.owner.has_opted_in:
        before = digest_of_settings(project)
        found = {project.config_file.name: before} if before else {}
        is_new = not (project.owner.key or project.folder.exists())
        _register(project)
        try:
            project.prepare()
        except (OSError, RalfError):
            if is_new and not project.folder.exists():
                registry.remove(Path(project.owner.path))
            raise
        if not project.owner.hooks:
            accepted = project.owner.accepted | (found if accept else {})
            project.owner.update(hooks=True, unaccepted={} if accept else found, accepted=accepted)
    project.prepare()
    planned = {step.path.name for step in steps}
    if project.config_file.name in planned:
        durable.write(project.config_file, CONFIG_TEXT.encode())
    if share:
        if ".gitignore" in planned:
            project.git.share()
        _share_all(project)
    return steps


def _register(project: Project) -> None:
    """Register a project, with what was said of another path where it was moved from there. UsageError for a user
    without a folder for settings that can be written.
    """
    moved = None if project.owner.key else moved_from(project)
    try:
        if moved is None:
            project.owner.update()
        else:
            known = moved.tree() | {"path": project.owner.path}
            known["accepted"].pop(project.local_config_file.name, None)  # what may be run is allowed for a path
            project.owner.update(**known)
            registry.remove(Path(moved.path))
    except OSError as error:
        raise UsageError(
            registry.folder() or project.root, f"{NO_FOLDER}: {error.strerror or error}", OUTSIDE
        ) from None


def _share_all(project: Project) -> None:
    """Share what was decided before this clone shared anything."""
    known = shared.own_routes(project)
    for stream in sorted(project.store.streams("routes/")):
        route = stream.removeprefix("routes/")
        state = load_state(project, route)
        if state is not None and not state.context.wholly_foreign and route not in known:
            active = replace(state.recorded, decisions=state.recorded.active_decisions, handover=Carried(), dropped=())
            shared.publish(project, route, state.recorded.revision, fold.empty(route), active)


def plan_uninstall(project: Project) -> list[Step]:
    """What `uninstall` would do; [] for a project that has not opted in."""
    steps = []
    if project.owner.hooks:
        steps.append(Step(registry.folder() or project.root, "change: hooks do nothing in this project"))
    if project.config_file.exists():
        steps.append(Step(project.config_file, "remove: settings"))
    return steps


def uninstall(project: Project) -> list[Step]:
    """Opt a project out. Routes, journals, blobs and the keys stay. Returns what was done."""
    steps = plan_uninstall(project)
    project.config_file.unlink(missing_ok=True)
    if project.owner.hooks:
        project.owner.update(hooks=False)
    return steps


def switch(project: Project, *, on: bool) -> bool:
    """Switch the clients' hooks in this project; whether that changed anything. Errors: `settings.change_setting`."""
    from ralf.config.settings import change_setting  # seldom

    return change_setting(project, "hooks", ["on" if on else "off"])


# ---- a store that was there before: of a project that was moved, or of a folder of the user's that was lost ----


def moved_from(project: Project) -> Registration | None:
    """The registration of another path, where no store is any more, to which records of this store belong."""
    here = os.path.realpath(project.folder.parent.parent)
    others = {each.id: each for each in registry.everyone() if each.key and each.path != here}
    for stream in project.store.streams("") if others else ():
        with suppress(RalfError, OSError):
            entry = project.store.inner.newest(stream)
            found = others.get(id_of(entry.record)) if entry is not None else None
            if found is not None and not Path(found.path, CONTEXT, "journal").exists():
                return found
    return None


Theirs = dict[str, tuple[bytes, ...]]
"""Streams that are not this user's, with the digests of their records, in order."""


def find_theirs(project: Project) -> Theirs:
    """The streams of the store that are not this user's. Reads only."""
    found = Theirs()
    for stream in sorted(project.store.streams("")):
        with suppress(DamagedJournal):
            if project.store.is_foreign(stream):
                found[stream] = tuple(map(digest, records_of(project, stream)))
    return found


def records_of(project: Project, stream: str) -> Iterator[bytes]:
    """The records of a stream, whoever's they are, up to the first that cannot be read."""
    with suppress(DamagedJournal):
        yield from (entry.record for entry in project.store.inner.read(stream))


def texts_of(project: Project, record: bytes) -> Iterator[str]:
    """What a record says: its line, and the blobs that it names, of the store, as text."""
    yield record.decode("utf-8", "replace")
    for name in sorted(digests_in(record)):
        with suppress(RalfError, OSError), project.store.inner.open_blob(name) as file:
            yield file.read().decode("utf-8", "replace")


def digest(record: bytes) -> bytes:
    """What tells a record from any other."""
    return hashlib.sha256(record).digest()


def adopt(project: Project, seen: Theirs | None = None) -> None:
    """Take records as this user's own, as they were shown to them: they get the store's id. What has come since, and a
    stream that git tracks, which came with a repository, stays foreign. Done again it is completed.

    seen  as of `find_theirs`; None: all that there are

    Errors as for `registry.update`, and of the store; Busy while somebody writes.
    """
    _register(project)
    files = project.store.files
    tracked = {project.folder / name for name in project.git.tracked()}
    for stream, digests in (find_theirs(project) if seen is None else seen).items():
        if files is None or files.path(stream) not in tracked:
            shown = frozenset(digests)

            def own(entry: Entry, shown: frozenset[bytes] = shown) -> bytes:
                return _as_own(project, entry) if digest(entry.record) in shown else entry.record

            with suppress(DamagedJournal):  # `verify` names it
                project.store.inner.replace(stream, own)


_SEALED = re.compile(rb',"seal":"[0-9a-f]{32}"\}\Z')


def _as_own(project: Project, entry: Entry) -> bytes:
    """A record with the id of this store in place of another one's, or of the seal of an earlier version."""
    record = _SEALED.sub(b"}", project.store.without_id(entry).record)
    if other := id_of(record):
        record = b"{" + record[len(b'{"store":""') + len(other) :].removeprefix(b",")
    return project.store.with_id(record)
