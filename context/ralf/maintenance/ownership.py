"""What is this user's own: a project that they opt in, a store that was there before."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ralf import config
from ralf.errors import Busy, Damaged, DamagedJournal, RalfError, UsageError
from ralf.project import Project
from ralf.route import shared
from ralf.route.load import load_state
from ralf.route.write import utc_now
from ralf.storage import durable, files, git_files, locks, registry
from ralf.storage.registry import ADOPTING, UNANSWERED, Registration
from ralf.text import cleaning

# --------------------
# Opt a project in and out: its registration in the user's folder, its settings, and what git sees.

CONFIG_TEXT = """\
# ralf: the settings of this project. All keys: docs/config.md
#threshold: 50000         # tokens since the last checkpoint; or a share of the window (25%), or adaptive
#window: 200000           # context window size in tokens, if the client does not report it
#pressure: 60             # percent of the window at which a checkpoint falls due
"""

_NO_HOME = "this user has no folder for settings that can be written"


class Step(NamedTuple):
    """One thing that would be or was done to a path."""

    path: Path
    what: str


def plan_init(project: Project, *, share: bool) -> list[Step]:
    """What `init` would do; [] when everything is in place."""
    steps = []
    if not project.owner.has_opted_in:
        where = registry.folder()
        steps.append(Step(where or project.root, "change: hooks act in this project" if where else _NO_HOME))
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
    found = project.owner.registration
    accepted = dict(found.accepted) if found is not None else {}
    project.owner.update(accepted=accepted | ({project.config_file.name: digest} if digest else {}))
    return True


def digest_of_settings(project: Project) -> str:
    """The sha256 of the configuration as it is now, "" for none."""
    return _digests(project).get(project.config_file.name, "")


def init(project: Project, *, share: bool, accept: bool = False) -> list[Step]:
    """Opt a project in; done twice it changes nothing. Returns what was done.

    accept  whether the person has seen, on a terminal, the settings that were there before, and takes them as theirs;
            nothing else that was there before is accepted

    UsageError for a user without a folder for settings that can be written.
    """
    steps = plan_init(project, share=share)
    before = {} if project.owner.has_opted_in else _digests(project)
    project.prepare()
    if not project.owner.has_opted_in:
        name = project.config_file.name
        taken = {name: before[name]} if accept and name in before else {}
        refused = {each: digest for each, digest in before.items() if each not in taken}
        from ralf.tasks import trust  # an opt-in is rare

        trust.begin(project)
        try:
            project.owner.update(hooks=True, since=time.time(), unaccepted=refused, accepted=taken)
        except OSError as error:
            where, what = registry.folder() or project.root, f"{_NO_HOME}: {error.strerror or error}"
            hint = f"RALF_TRUST={shlex.quote(os.path.realpath(project.folder.parent.parent))}"
            raise UsageError(where, what, hint) from None
    for step in steps:
        if step.path == project.config_file:
            durable.write(step.path, CONFIG_TEXT.encode())
        elif step.path.name == ".gitignore" and share:
            project.git.share()
    if share:
        _share_all(project)
    return steps


def _share_all(project: Project) -> None:
    """Share what was decided before this clone shared anything."""
    for stream in sorted(project.store.streams("routes/")):
        state = load_state(project, stream.removeprefix("routes/"))
        if state is not None and not state.context.wholly_foreign:
            shared.publish_all(project, state.recorded.route, state.recorded, utc_now())


def _digests(project: Project) -> dict[str, str]:
    """The sha256 of the files of a store that steer what is done, as they are now."""
    found = {}
    for path in (project.config_file, project.local_config_file):
        with suppress(OSError):
            found[path.name] = hashlib.sha256(files.content_of(path)).hexdigest()
    return found


def plan_uninstall(project: Project) -> list[Step]:
    """What `uninstall` would do; [] for a project that has not opted in."""
    steps = []
    found = project.owner.registration
    if found is not None and found.hooks:
        where = registry.folder() or project.root
        steps.append(Step(where, "change: hooks do nothing in this project"))
    if project.config_file.exists():
        steps.append(Step(project.config_file, "remove: settings"))
    return steps


def uninstall(project: Project) -> list[Step]:
    """Opt a project out. Routes, journals, blobs and the keys stay. Returns what was done."""
    steps = plan_uninstall(project)
    for step in steps:
        if step.path == project.config_file:
            step.path.unlink()
        else:
            project.owner.update(hooks=False, since=0.0)
    return steps


def switch(project: Project, *, on: bool) -> bool:
    """Switch the clients' hooks in this project; whether that changed anything. The rest of the file stays as it is.

    UsageError where the project has not opted in, and where the file has no room for the line; Damaged for a file that
    is no configuration.
    """
    path = project.config_file
    if not project.owner.has_opted_in:
        raise UsageError(path.parent, "this project has not opted in", "ralf init")
    wanted = "on" if on else "off"
    if config.load(path).hooks == wanted:
        return False
    text = config.decoded(path, files.content_of(path)) if path.exists() else CONFIG_TEXT
    durable.write(path, config.with_setting(path, text, "hooks", wanted).encode())
    return True


# ---- a store that was there before: of a project that was moved, or of a folder of the user's that was lost ----


@dataclass(frozen=True, slots=True)
class Found:
    """What a store holds that this user's ralf has not written, or not under this registration.

    streams  the streams with such records, and how many records each has
    moved    the registration of another path whose key fits the seals, None for none
    """

    streams: dict[str, int]
    moved: Registration | None = None


def establish(project: Project) -> None:
    """Register a project that is not registered, where that is possible, so that what is written now can be told as
    ours later. Busy while another process registers projects: without the registration what is written would count as
    somebody else's.
    """
    try:
        register(project)
    except Busy:
        raise
    except (OSError, RalfError):  # no folder of the user's that can be written: every write says so
        pass


def register(project: Project) -> Registration:
    """Register a project with new keys, or complete what was begun. A store that was there before waits for the
    person's answer. Errors as for `registry.update`, and of the store.
    """
    owner = project.owner
    is_empty = not any(project.store.streams(""))  # before the registration: who fills a store has one first
    found = owner.look_again()
    if found is not None:
        return adopt(project) if found.pending == ADOPTING else found
    return owner.add() if is_empty else owner.add(pending=UNANSWERED)


def find_unsealed(project: Project) -> Found:
    """What the store holds that is not this user's by its seals. Reads only."""
    streams: dict[str, int] = {}
    for stream in sorted(project.store.streams("")):
        if count := sum(1 for _ in unsealed(project, stream)):
            streams[stream] = count
    return Found(streams, _moved(project) if streams else None)


def unsealed(project: Project, stream: str) -> Iterator[bytes]:
    """The records of a stream that are not this user's by their seals, up to the first that cannot be read."""
    with suppress(DamagedJournal):
        yield from (entry.record for entry in project.store.read(stream) if entry.foreign)


def adopt(project: Project) -> Registration:
    """Take a store as this user's own: its records get seals. A stream that git tracks came with a repository and stays
    foreign. Broken off, `register` completes it.

    Errors as for `registry.update`, and of the store; Busy while somebody writes.
    """
    owner = project.owner
    top, settings = project.folder.parents[1], project.config_file
    # Settings of ours are not tracked: tracked ones opt nobody in.
    opted_in = settings.exists() and not git_files.tracks(top, settings.relative_to(top))
    moved = _moved(project)
    names = ("seal_key", "redaction_key", "cache")
    owner.update(pending=ADOPTING, **({name: getattr(moved, name) for name in names} if moved else {}))
    for stream in sorted(project.store.streams("")):
        if not project.tracks(stream):
            _seal(project, stream)
    if opted_in:
        accept_settings(project)
    hooks = {"hooks": True, "since": time.time()} if opted_in and not owner.has_opted_in else {}
    return owner.update(pending="", share=project.git.is_shared(), **hooks)


def _seal(project: Project, stream: str) -> None:
    route = stream.removeprefix("routes/")
    is_route = route != stream and cleaning.is_valid(route)
    lock = locks.locked(project.route_lock(route), route) if is_route else nullcontext()
    with lock, suppress(DamagedJournal):  # `verify` names it; what can be read of it stays foreign
        project.store.adopt(stream)


def _moved(project: Project) -> Registration | None:
    """The registration of another path under whose key records of this store are sealed."""
    here = os.path.realpath(project.folder.parent.parent)
    others = [each for each in registry.everyone() if each.seal_key and each.path != here]
    if not others:
        return None
    for stream in sorted(project.store.streams("")):
        with suppress(RalfError, OSError):
            head = project.store.head(stream)
            for each in others if head else ():
                if head and not project.store.under(bytes.fromhex(each.seal_key)).entry(stream, head).foreign:
                    return each
    return None
