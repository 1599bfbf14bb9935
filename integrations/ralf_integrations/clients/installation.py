"""What ralf puts into a file that is not its own, and takes out of it again, byte for byte.

Only insertions are made. A record says where they are and how the file was with them: while it still is, taking them
out is exact. Where somebody has changed it since, what is ours is found and taken out, and the rest stays as it is now.
The record holds nothing of the file itself: settings can hold secrets.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ralf import config
from ralf.errors import Busy, UsageError
from ralf.project import Project
from ralf.storage import durable, files, users_files
from ralf.storage.files import content_of
from ralf_integrations.client import CLIENTS, Client
from ralf_integrations.clients import agents_md, excluding, hook_module, jsontext, settings
from ralf_integrations.clients.jsontext import Insertion
from ralf_integrations.clients.settings import Ours


@dataclass(frozen=True, slots=True)
class Part:
    """Something of ours in a file.

    insertions  what adds it to a text that does not hold it; UsageError for a text that cannot
    holds       whether a text holds it, as this version writes it
    stripped    a text without it, found by what it looks like
    new         the text that it is added to where there is no file
    is_empty    whether a text is of no use to anybody without it
    runs        whether the file, where we make it, is a program
    """

    path: Path
    insertions: Callable[[str], Iterable[Insertion]]
    holds: Callable[[str], bool]
    stripped: Callable[[str], str]
    new: str = ""
    is_empty: Callable[[str], bool] = lambda text: not text.strip()
    runs: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of a file.

    before, after  its bytes; None: no file
    record         what is to be remembered of it; None: nothing
    runs           whether it is made a program, where it is made
    """

    path: Path
    before: bytes | None
    after: bytes | None
    record: Record | None
    runs: bool = False

    @property
    def what(self) -> str:
        """In a word."""
        if self.before == self.after:
            return "accept"
        return "create" if self.before is None else "remove" if self.after is None else "change"

    def diff(self) -> str:
        """As a unified diff."""
        before, after = _lines(self.before), _lines(self.after)
        old, new = ("/dev/null" if side is None else str(self.path) for side in (self.before, self.after))
        lines = difflib.unified_diff(before, after, fromfile=old, tofile=new)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of a file that we put something into.

    path    the file, for whoever looks: nothing is done to a path because it stands here
    sha256  of the file as we left it
    ranges  what was inserted: place and length in characters
    file    whether we made the file
    folder  how many folders we made: the one that it lies in, and those above that
    """

    path: str
    sha256: str
    ranges: tuple[tuple[int, int], ...]
    file: bool
    folder: int


def of_client(project: Project, client: Client, *, shared: bool) -> Part:
    """A client's hooks in its settings, or the plugin that calls them."""
    path = client.path(project.root, shared=shared)
    if client.module:
        return Part(
            path=path,
            insertions=lambda text: hook_module.insertions(path, text, client, shared=shared),
            holds=lambda text: hook_module.text_of(client, shared=shared) in text,
            stripped=lambda text: hook_module.stripped(path, text),
        )
    groups = client.groups(shared=shared)
    wanted = [(event, dict(entry)) for event, entry in client.entries(shared=shared).items()]

    def holds(text: str) -> bool:
        return sorted(map(tuple, settings.ours(path, text)), key=repr) == sorted(wanted, key=repr)

    return Part(
        path=path,
        insertions=lambda text: settings.insertions(path, text, groups),
        holds=holds,
        stripped=lambda text: settings.stripped(path, text),
        new=settings.EMPTY,
        is_empty=settings.is_empty,
    )


def of_agents_md(project: Project) -> Part:
    """The section of AGENTS.md."""
    return Part(project.root / agents_md.PATH, agents_md.insertions, agents_md.holds, agents_md.stripped)


def of_exclude(project: Project, client: Client) -> Part | None:
    """What keeps a client's local settings, which name a Python of this machine, out of git; None where there are none,
    and outside a repository whose own folder lies in its place.
    """
    path = excluding.place(project.root) if client.has_local else None
    if path is None:
        return None
    line = excluding.line(project, client)
    return Part(
        path=path,
        insertions=lambda text: excluding.insertions(text, line),
        holds=lambda text: excluding.holds(text, line),
        stripped=lambda text: excluding.stripped(text, line),
    )


def plan(project: Project, part: Part) -> Change | None:
    """What would put a part into its file; None where it is in there. UsageError for a file that cannot take it."""
    before = users_files.content(part.path, project.root)
    text = users_files.decoded(part.path, before)
    if text is not None and part.holds(text):
        # A script of an earlier version's installation, byte for byte what we would write, is not pinned yet.
        return (
            Change(part.path, before, before, None, True) if part.runs and not is_pinned(project, part.path) else None
        )
    record = _read(project, part.path)
    base = _restored(part, before, text, record)
    ours = before is None or (record is not None and record.file and part.is_empty(base))
    after, ranges = _inserted(part, base)
    content = after.encode("utf-8", "surrogatepass")
    folder = _missing(part.path.parent) or _made(project, part.path.parent)
    record = Record(str(part.path), _sha256(content), tuple(ranges), ours, folder)
    return Change(part.path, before, content, record, part.runs)


def plan_removal(project: Project, part: Part) -> Change | None:
    """What would take a part out of its file; None where it is not in there. UsageError for a file that is none, and
    for one from which it cannot be taken without a person's lines.
    """
    before = users_files.content(part.path, project.root)
    text = users_files.decoded(part.path, before)
    if before is None or text is None:
        return None
    record = _read(project, part.path)
    base = _restored(part, before, text, record)
    if base == text:
        return None
    gone = record is not None and record.file and part.is_empty(base)
    return Change(part.path, before, None if gone else base.encode("utf-8", "surrogatepass"), None)


def remembered(project: Project) -> list[Part]:
    """Every part that was put into its file from here, and those that are in a file that nobody shares."""
    found = [of_agents_md(project)] if _read(project, project.root / agents_md.PATH) is not None else []
    for client in CLIENTS.values():
        for shared in (False, True) if client.has_local else (True,):
            path = client.path(project.root, shared=shared)
            if _read(project, path) is not None or (not shared and is_installed(client, path)):
                found.append(of_client(project, client, shared=shared))
        if (excluded := of_exclude(project, client)) is not None and _read(project, excluded.path) is not None:
            found.append(excluded)
    return found


def is_needed(project: Project, part: Part) -> bool:
    """Whether a part serves what is installed elsewhere, too: the exclusion of settings that another worktree has."""
    if part.path.name != excluding.NAME:
        return False
    own = [client.path(project.root, shared=False) for client in CLIENTS.values() if client.has_local]
    records = filter(None, map(_at, (project.folder / "installed").glob("*.json")))
    others = {Path(record.path) for record in records}.difference(own)
    ends = [path.relative_to(project.root).parts for path in own]
    return any(path.parts[-len(end) :] == end for path in others for end in ends)


def is_remembered(project: Project, path: Path) -> bool:
    """Whether something was put into a file from here."""
    return _read(project, path) is not None


def is_installed(client: Client, path: Path) -> bool:
    """Whether settings hold hooks of ours; not where they cannot be read."""
    with suppress(UsageError, OSError):
        text = users_files.decoded(path, users_files.content(path))
        return text is not None and bool(called(client, path, text))
    return False


def called(client: Client, path: Path, text: str) -> list[Ours]:
    """The entries by which a client's settings, or its plugin, call ralf. UsageError for what are no settings."""
    return hook_module.ours(text) if client.module else settings.ours(path, text)


def is_pinned(project: Project, path: Path) -> bool:
    """Whether texts of ours may name a script, as it is now: this user's ralf has installed it."""
    digest = config.digest_of(path)
    return bool(digest) and project.owner.installed(os.path.realpath(path)) == digest


def apply(project: Project, change: Change) -> None:
    """Do it. Busy where the file has changed since it was planned; OSError, and nothing done, where it cannot be
    written.
    """
    path = change.path
    if users_files.content(path, project.root) != change.before:
        raise Busy(path, "was changed meanwhile: left as it is", "try again")
    if change.runs and change.after == change.before:
        _pin(project, path)
        return
    before = _read(project, path)
    if change.record is not None:
        _remember(project, path, change.record)  # first: what is remembered of nothing does no harm
    if change.after is None:
        path.unlink()
        with suppress(OSError):  # somebody else has something in there
            for folder in list(path.parents)[: before.folder if before is not None else 0]:
                folder.rmdir()
    else:
        inside = path.is_relative_to(project.folder)
        files.make(path.parent, mode=files.PRIVATE if inside else files.NOT_WRITABLE_BY_OTHERS)
        users_files.replace(path, change.before, change.after, _mode(path, runs=change.runs))
    if users_files.content(path) != change.after:
        raise Busy(path, "was changed in the moment it was written", "look at it, and try again")
    if change.record is None:
        _forget(project, path)
    if change.runs:
        _pin(project, path)
    elif change.after is None:
        _unpin(project, path)


# ---- the scripts that texts of ours may name ----


def _pin(project: Project, path: Path) -> None:
    """Let texts of ours name a script, as it is now. Errors: `registry.update`."""
    pins = project.owner.pinned | {os.path.realpath(path): config.digest_of(path)}
    with suppress(OSError):  # a user without a folder of their own: then no text names it
        project.owner.update(pinned=pins)


def _unpin(project: Project, path: Path) -> None:
    pins, real = project.owner.pinned, os.path.realpath(path)
    if real in pins:
        project.owner.update(pinned={name: digest for name, digest in pins.items() if name != real})


# ---- the file ----


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines(keepends=True)


def _restored(part: Part, before: bytes | None, text: str | None, record: Record | None) -> str:
    """The text without what is ours."""
    if before is None or text is None:
        return part.new
    if record is not None and record.sha256 == _sha256(before):
        return jsontext.cut(text, record.ranges)
    return part.stripped(text)


def _inserted(part: Part, base: str) -> tuple[str, list[tuple[int, int]]]:
    """The text with the part in it, and where that is; an empty text gets all of what a new file would hold."""
    if base.strip() or not part.new.strip():
        return jsontext.inserted(base, part.insertions(base))
    made, _ = jsontext.inserted(part.new, part.insertions(part.new))
    return base + made, [(len(base), len(made))]


def _mode(path: Path, *, runs: bool) -> int:
    """The file's own mode; for a new one, that of its folder, where it is no program without the right to enter it,
    and no other user's right to write.
    """
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return stat.S_IMODE(path.parent.stat().st_mode) & (0o755 if runs else 0o644)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# ---- what is remembered ----


def _place(project: Project, path: Path) -> Path:
    """The record's own file: several worktrees share a store."""
    return project.folder / "installed" / f"{_sha256(os.fsencode(os.path.realpath(path)))[:16]}.json"


def _remember(project: Project, path: Path, record: Record) -> None:
    project.prepare()
    place = _place(project, path)
    files.make(place.parent)
    durable.write(place, json.dumps(asdict(record)).encode())


def _forget(project: Project, path: Path) -> None:
    place = _place(project, path)
    place.unlink(missing_ok=True)
    with suppress(OSError):
        place.parent.rmdir()


def _missing(folder: Path) -> int:
    """How many folders have to be made for a file that is to lie in one."""
    return 0 if folder.exists() else 1 + _missing(folder.parent)


def _made(project: Project, folder: Path) -> int:
    """How many folders from one upwards we made, for whichever of its files."""
    records = filter(None, map(_at, (project.folder / "installed").glob("*.json")))
    return max((record.folder for record in records if Path(record.path).parent == folder), default=0)


def _read(project: Project, path: Path) -> Record | None:
    return _at(_place(project, path))


def _at(place: Path) -> Record | None:
    """What a record says; nothing where it cannot be read, or makes no sense."""
    try:
        tree = json.loads(content_of(place, most=users_files.MOST))
        ranges = tuple((int(place), int(length)) for place, length in tree["ranges"])
        return Record(str(tree["path"]), str(tree["sha256"]), ranges, tree["file"] is True, int(tree["folder"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
