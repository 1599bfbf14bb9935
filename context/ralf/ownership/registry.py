"""The user's own folder, and what it says of each project: whether hooks act there, and the keys of its store.

    $XDG_CONFIG_HOME/ralf/            0700; ~/.config/ralf where the variable is unset
      projects/NAME.json              0600; NAME: the project's real path with %2F for each slash

Nothing of this lies in a repository, so nothing that came with one can opt a project in, or hold a key.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ralf import environment
from ralf.errors import Damaged, UsageError
from ralf.files import folders, ownfile

PROJECTS = "projects"
ADOPTING, UNANSWERED = "adopting", "unanswered"
"""What `Registration.pending` says: the seals are being put, and may have to be completed; nobody has answered yet."""

_LONGEST = 200  # bytes of a path in a file's name; of a longer one its sha256 stands there
_HINT = "remove the file, then: ralf init"


@dataclass(frozen=True, slots=True)
class Registration:
    """What this user has said of the project at `path`, and the keys that their ralf has made for its store.

    path           the real path of the project's directory (of the main worktree of a linked one)
    hooks          whether clients' hooks act there: the project is opted in
    since          when it was opted in, seconds since 1970; 0.0 where it is not
    share          whether git is to see the route files
    seal_key       64 hexadecimal digits: the journal's records are sealed with it
    redaction_key  64 hexadecimal digits: the tags of redacted secrets are made with it
    cache          the name of the cache's folder, which nobody else can guess
    unaccepted     sha256 of files of the store that were there before and that the user has not accepted, by name
    accepted       sha256 of such files that they have accepted on a terminal
    pinned         sha256 of scripts that ralf has installed, by absolute path: texts of ours may name them
    pending        "adopting" while an earlier store is taken as the user's own, "unanswered" while that waits for
                   their answer (`ralf context trust`), else ""
    """

    path: str
    hooks: bool = False
    since: float = 0.0
    share: bool = False
    seal_key: str = ""
    redaction_key: str = ""
    cache: str = ""
    unaccepted: Mapping[str, str] = field(default_factory=dict)
    accepted: Mapping[str, str] = field(default_factory=dict)
    pinned: Mapping[str, str] = field(default_factory=dict)
    pending: str = ""


_DIGESTS = ("unaccepted", "accepted", "pinned")
_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("path", "seal_key", "redaction_key", "cache", "pending"), str),
    **dict.fromkeys(("hooks", "share"), bool),
    **dict.fromkeys(_DIGESTS, dict),
    "since": (int, float),
}


def folder() -> Path | None:
    """The user's own folder, whether it is there or not; None for a user without a home."""
    return environment.user_folder()


def is_writable() -> bool:
    """Whether the user's folder is there and can be written."""
    place = folder()
    return place is not None and place.is_dir() and os.access(place, os.W_OK)


def path_of(root: Path) -> Path | None:
    """The file of the project at `root`; None for a user without a home."""
    place = folder()
    return None if place is None else place / PROJECTS / f"{_name_of(os.path.realpath(root))}.json"


def find(root: Path) -> Registration | None:
    """What the user has said of the project at `root`, None for nothing.

    UsageError when somebody else could have written the file, Damaged when it cannot be read.
    """
    path = path_of(root)
    if path is None:
        return None
    try:
        text = ownfile.read(path)
    except UsageError:
        if not os.path.exists(path):  # noqa: PTH110  # a folder that may not be looked into holds nothing for us
            return None
        raise
    return None if text is None else _parsed(path, text, os.path.realpath(root))


def update(root: Path, **changes: Any) -> Registration:
    """Change what is said of the project at `root`; a project without a registration gets one, with new keys.

    changes  fields of `Registration`

    OSError where the user's folder cannot be written, or for a user without a home; other errors as for `find`.
    """
    return _changed(root, lambda found, made: replace(found or made, **changes))


def add(root: Path, **values: Any) -> Registration:
    """Register the project at `root`; one that another process has registered meanwhile stays as it is. Errors as for
    `update`.
    """
    return _changed(root, lambda found, made: found or replace(made, **values))


def complete(root: Path, **values: Any) -> Registration:
    """Set those of the fields that say nothing yet: of two processes that make a key, both get the first one's. Errors
    as for `update`.
    """

    def completed(found: Registration | None, made: Registration) -> Registration:
        before = found or made
        return replace(before, **{name: value for name, value in values.items() if not getattr(before, name)})

    return _changed(root, completed)


def _changed(root: Path, change: Callable[[Registration | None, Registration], Registration]) -> Registration:
    """What `change` makes of the project's registration and of a new one, kept under the lock of all of them."""
    from ralf.files import atomic, locks  # only who writes pays for it

    path = path_of(root)
    if path is None:
        raise FileNotFoundError(f"{root}: this user has no home folder")
    _prepare(path.parent)
    with locks.held(path.parent.with_suffix(".lock"), str(path)):
        found = find(root)
        made = Registration(os.path.realpath(root), seal_key=os.urandom(32).hex(), cache=os.urandom(8).hex())
        after = change(found, made)
        if after != found:
            atomic.write(path, (json.dumps(asdict(after), indent=2, ensure_ascii=False) + "\n").encode())
    return after


def remove(root: Path) -> bool:
    """Forget the project at `root`; whether anything was said of it. OSError."""
    path = path_of(root)
    if path is None or not path.exists():
        return False
    path.unlink()
    return True


def everyone() -> list[Registration]:
    """Every project that the user has said something of; files that cannot be read are left out."""
    place = folder()
    found = []
    for path in sorted((place / PROJECTS).glob("*.json")) if place is not None else ():
        try:
            text = ownfile.read(path)
            known = _parsed(path, text, None) if text is not None else None
        except (UsageError, Damaged):
            continue
        if known is not None and path.name == f"{_name_of(known.path)}.json":
            found.append(known)
    return found


def _name_of(path: str) -> str:
    quoted = os.fsencode(path).replace(b"%", b"%25").replace(b"/", b"%2F")
    return os.fsdecode(quoted) if len(quoted) <= _LONGEST else hashlib.sha256(os.fsencode(path)).hexdigest()


def _prepare(projects: Path) -> None:
    """Make the user's folder, 0700 whatever the umask; UsageError for one that others may write to."""
    folders.make(projects.parent.parent)
    for place in (projects.parent, projects):
        try:
            place.mkdir(mode=0o700)
            place.chmod(0o700)
        except FileExistsError:
            found = place.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
                raise UsageError(place, "is not this user's alone: not used", f"chmod 700 {place}") from None


def _parsed(path: Path, text: str, root: str | None) -> Registration:
    try:
        tree = json.loads(text)
        values = {each.name: tree[each.name] for each in fields(Registration) if each.name in tree}
        keys = bytes.fromhex(values.get("seal_key", "") + values.get("redaction_key", ""))
        digests = [digest for name in _DIGESTS for digest in values.get(name, {}).values()]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(path, f"cannot be read: {error}", _HINT) from None
    fits = all(isinstance(value, _KINDS[name]) for name, value in values.items())
    if not fits or len(keys) % 32 or not all(isinstance(digest, str) for digest in digests) or "path" not in values:
        raise Damaged(path, "is not what ralf writes", _HINT)
    found = Registration(**values)
    if root is not None and found.path != root:
        raise Damaged(path, f"is of {found.path}", _HINT)
    return found
