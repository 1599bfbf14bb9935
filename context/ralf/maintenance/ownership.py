"""What is this user's own: a project that they opt in, an earlier store adopted."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ralf import config, environment
from ralf.errors import Busy, Damaged, DamagedJournal, RalfError, UsageError
from ralf.project import Project
from ralf.route import shared
from ralf.route.load import load_state
from ralf.route.write import utc_now
from ralf.storage import durable, files, git_files, journal, registry
from ralf.storage.registry import ADOPTING, UNANSWERED, Registration
from ralf.text import cleaning
from ralf.text.patterns import regex
from ralf.transcripts import lines
from ralf.transcripts.reader import log_of_session

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
            durable.write_file(step.path, CONFIG_TEXT.encode())
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


# --------------------
# The store of an earlier version, or of a project that was moved: find its owner, adopt it.

_KEY = regex(r"^redaction_key:[ \t]*(['\"]?)([0-9a-f]{64})\1[ \t]*(?:#.*)?$", re.M)
_KEY_LINE = regex(_KEY.pattern + r"\n?", re.M)

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


def establish(project: Project) -> None:
    """Register a project that is not registered, where that is possible, so that what is written now can be told as
    ours later. An earlier version's store is adopted where the user's own client logs prove it. Busy while another
    process registers projects: without the registration what is written would count as somebody else's.
    """
    try:
        register(project)
    except Busy:
        raise
    except (OSError, RalfError):  # no folder of the user's that can be written: every write says so
        pass


def register(project: Project) -> Registration:
    """Register a project with new keys, or complete what was begun. A store that was there before is adopted where that
    is proven; else it waits for the person's answer. Errors as for `registry.update`, and of the store.
    """
    owner = project.owner
    is_empty = not any(project.store.streams(""))  # before the registration: who fills a store has one first
    found = owner.look_again()
    if found is not None and found.pending != ADOPTING:
        return found
    if found is None and is_empty:
        return owner.add(redaction_key=_old_redaction_key(project, is_ours=False))
    if found is not None or _proof(project):
        return adopt(project)
    return owner.add(pending=UNANSWERED)


def find_unsealed(project: Project) -> Found:
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
    owner = project.owner
    top, settings = project.folder.parents[1], project.config_file
    # An earlier version never had git track the settings: tracked ones opt nobody in.
    opted_in = settings.exists() and not git_files.tracks(top, settings.relative_to(top))
    moved = _moved(project)
    old_key = moved.redaction_key if moved else _old_redaction_key(project, is_ours=True)
    kept: dict[str, object] = {"seal_key": moved.seal_key, "cache": moved.cache} if moved else {}
    if old_key:
        kept["redaction_key"] = old_key
    owner.update(pending=ADOPTING, **kept)
    for stream in sorted(project.store.streams("")):
        if not project.tracks(stream):
            _seal(project, stream)
    _move_cache(project)
    if opted_in:
        accept_settings(project)
    if not moved:
        _remove_key_from_file(project)
    hooks = {"hooks": True, "since": time.time()} if opted_in and not owner.has_opted_in else {}
    return owner.update(pending="", share=project.git.is_shared(), **hooks)


def _seal(project: Project, stream: str) -> None:
    route = stream.removeprefix("routes/")
    is_route = route != stream and cleaning.is_valid(route)
    lock = files.locked(project.route_lock(route), route) if is_route else nullcontext()
    with lock, suppress(DamagedJournal):  # `verify` names it; what can be read of it stays foreign
        project.store.adopt(stream)


def _move_cache(project: Project) -> None:
    """Move what an earlier version's cache knew of sessions into ours, and remove the rest, which is made anew."""
    top = project.folder / "cache"
    for name in _SESSIONS_CACHE:
        if (top / name).is_dir() and not (project.cache / name).exists():
            with suppress(OSError):
                files.make(project.cache)
                (top / name).rename(project.cache / name)
    for path in top.iterdir() if top.is_dir() else ():
        if path.name in _DERIVED_CACHE:
            shutil.rmtree(path, ignore_errors=True)
        elif path.name.startswith("search") and path.is_file():
            path.unlink(missing_ok=True)


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


def _proof(project: Project) -> str:
    """A session of the store whose log lies in the user's own client folder and begins as the journal says; "" for
    none. Nobody else knows how such a log begins.
    """
    for tried, (session, head, size) in enumerate(_sessions(project)):
        if tried == _MOST_SESSIONS:
            break
        path = log_of_session(session, most=_MOST_ROLLOUTS)
        if path is None:
            continue
        with suppress(OSError):
            found = lines.take_fingerprint(path, min(size, path.stat().st_size))
            if found is not None and found.head == head and size >= lines.FINGERPRINT_HEAD // 4:
                return session
    return ""


def _sessions(project: Project) -> Iterator[tuple[str, str, int]]:
    """The sessions that the journals name, newest first: id, hash of the log's head, bytes that were read of it."""
    seen = set()
    for stream in sorted(project.store.streams("routes/")):
        if project.tracks(stream):
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


def _old_redaction_key(project: Project, *, is_ours: bool) -> str:
    """The key that an earlier version kept in `config.local.yaml`; "" for none, or where the store is not known to be
    this user's. The caller keeps it in the registration.
    """
    path = project.local_config_file
    if not is_ours and path.exists() and git_files.tracks(path.parent, path.relative_to(path.parent)):
        return ""
    with suppress(RalfError, OSError):
        return _key_in_file(project) or ""
    return ""


def _key_in_file(project: Project) -> str | None:
    """Return the key that earlier versions kept in `config.local.yaml`, None for none; UsageError where it is something
    else, or the file is not the user's own.
    """
    path = project.local_config_file
    text = registry.read(path)
    if not text or "redaction_key" not in text:
        return None
    plain = _KEY.search(text)
    found = plain[2] if plain else config.tree_of(path, text).get("redaction_key")
    if found is None:
        return None
    if not isinstance(found, str) or not re.fullmatch("[0-9a-f]{64}", found):
        raise UsageError(path, "redaction_key: expected 64 hexadecimal digits", "remove the line: a key is made")
    registry.check_not_cloned(path, environment.of_a_model())
    return found


def _remove_key_from_file(project: Project) -> None:
    """Take the key of earlier versions out of `config.local.yaml`; a file that held nothing else goes. What cannot be
    changed stays. Busy, OSError as for any write.
    """
    path = project.local_config_file
    with files.locked(project.folder / "locks" / "config.local.lock", str(path)):
        text = ""
        with suppress(UsageError, Damaged):
            text = registry.read(path) or ""
        rest = _KEY_LINE.sub("", text)
        if rest.strip() and rest != text:
            durable.write(path, rest.encode())
        elif text and not rest.strip():
            path.unlink()
