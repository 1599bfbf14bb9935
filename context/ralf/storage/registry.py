"""The user's own folder: a registration of each project; and which user a store belongs to."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from codecs import BOM_UTF8
from contextlib import suppress
from pathlib import Path
from typing import Any

from ralf import environment
from ralf.errors import Damaged, OtherOwner, UsageError
from ralf.storage import files, git_files, locks
from ralf.text import digests

# ---- a file that must be the user's own: no one else can write it ----

_MOST_BYTES = 1 << 20

_REFUSED = {errno.ELOOP: "is a symbolic link: not read", errno.EINVAL: "is no regular file"}


def read(path: Path) -> str | None:
    """The file's text, None where there is none; UsageError when it is not the user's alone, Damaged when not UTF-8."""
    content = content_of(path)
    return None if content is None else text_of(path, content)


def text_of(path: Path, content: bytes) -> str:
    """The text of a file of the user's own; Damaged when it is not UTF-8."""
    try:
        return content.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError:
        raise Damaged(path, "not UTF-8", "mend the file: one `key: value` a line") from None


def content_of(path: Path) -> bytes | None:
    """The file's bytes, None where there is none; UsageError when it is not the user's alone."""
    try:
        opened = files.open_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        what = _REFUSED.get(error.errno or 0) or f"cannot be read: {error.strerror}"
        raise UsageError(path, what, f"write a file of its own: {path}") from None
    with opened as file:
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid():
            raise UsageError(path, "belongs to somebody else: not read", f"chown {os.geteuid()} {path}")
        if found.st_mode & 0o077:
            raise UsageError(path, "others may read or write it: not read", f"chmod 600 {path}")
        return file.read(_MOST_BYTES)


# ---- the user's own folder: a registration of each project ----
#
#     $XDG_CONFIG_HOME/ralf/            0700; ~/.config/ralf where the variable is unset
#       projects/NAME.json              0600; NAME: the project's real path with %2F for each slash
#
# It lies in no repository, so nothing that comes with one can opt a project in, or know the id of its store.

PROJECTS = "projects"

_LONGEST = 200  # bytes of a path in a file's name; of a longer one its sha256 stands there

_HINT = "remove the file, then: ralf init"


class Registration:
    """What this user has said of the project at `path`, and the keys that their ralf has made for its store.

    path           the real path of the project's directory (of the main worktree of a linked one)
    hooks          whether clients' hooks are to act there
    share          whether git is to see what is decided
    key            64 hexadecimal digits, "" where the store is not this user's; the store's id is made of it, and an
                   engine's records are encrypted with it
    redaction_key  64 hexadecimal digits: the tags of redacted secrets are made with it
    cache          the name of the cache's folder, which no one else can guess
    unaccepted     sha256 of the configuration that was there before and that the user has not accepted, by its name
    accepted       sha256 of the configuration that they have accepted, and of the file of what may be run here that
                   they have allowed, by name
    pinned         sha256 of scripts that ralf has installed, by absolute path: texts of ours may name them
    """

    __slots__ = (
        *("path", "hooks", "share", "key", "redaction_key", "cache", "unaccepted", "accepted", "pinned"),
        "_brought",
    )

    def __init__(self, path: str) -> None:
        self.path = path
        self.hooks = self.share = False
        self.key = self.redaction_key = self.cache = ""
        self.unaccepted: dict[str, str] = {}
        self.accepted: dict[str, str] = {}
        self.pinned: dict[str, str] = {}
        self._brought: dict[bytes, bool] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Registration) and self.tree() == other.tree()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def tree(self) -> dict[str, Any]:
        """Its fields, by name."""
        return {name: getattr(self, name) for name in _FIELDS}

    def put(self, **values: Any) -> None:
        """Set fields of this object."""
        for name, value in values.items():
            setattr(self, name, value)

    def update(self, **changes: Any) -> None:
        """Change what is said, here and in the file; errors as for `registry.update`."""
        self.put(**update(Path(self.path), **changes).tree())

    def refresh(self) -> None:
        """Read again what is said: another process may have said it since. Errors as for `registry.find`."""
        if (found := find(Path(self.path))) is not None:
            self.put(**found.tree())

    @property
    def id(self) -> str:
        """The id of the store, which stands in each record of it; "" where that is not this user's."""
        return digests.blake2b(bytes.fromhex(self.key), digest_size=16, person=b"store").hexdigest() if self.key else ""

    @property
    def has_opted_in(self) -> bool:
        """Whether clients' hooks act in this project."""
        return self.hooks and bool(self.key)

    def is_brought_by_git(self, path: Path, content: bytes) -> bool:
        """Whether git tracks a file of the store, has these bytes of it, or cannot say it. A process asks once.

        What git writes may have other bytes than it stores: of another encoding, or made by a filter.
        """
        if content not in self._brought:
            self._brought[content] = any(git_files.brought({path: content}, lambda _: False))
        return self._brought[content]

    def installed(self, script: str) -> str:
        """The sha256 of the script that this user's ralf has installed at a real path, in this project or another one;
        "" for none.
        """
        if script in self.pinned:
            return self.pinned[script]
        if script.startswith(f"{self.path}{os.sep}"):
            return ""  # no other project's ralf has installed it
        return next((each.pinned[script] for each in everyone() if script in each.pinned), "")


_FIELDS = Registration.__slots__[:-1]

_KEYS = {"key": 32, "redaction_key": 32, "cache": 8}  # bytes


_found_before: dict[tuple[str, int], tuple[tuple[int, ...], str]] = {}
"""By file and user, the file's stamp and text: a process reads it again only where it was changed."""

_FINE, _COARSE = 50_000_000, 2_000_000_000
"""Nanoseconds after which every change of a file also changes its times: where they have a fraction of a millisecond,
by the kernel's clock, and elsewhere, as no file system has a coarser one.
"""


def settled_stamp(path: str | Path) -> tuple[int, ...]:
    """What changes with a file; () for none, and where it was changed so lately that one more change may not show."""
    with suppress(OSError):
        return stamp_if_settled(os.lstat(path))
    return ()


def stamp_if_settled(found: os.stat_result) -> tuple[int, ...]:
    """The same of a file whose status is known."""
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    if changed > time.time_ns() - (_FINE if changed % 1_000_000 else _COARSE):
        return ()
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def folder() -> Path | None:
    """The user's own folder, whether it is there or not; None for a user without a home."""
    return environment.user_folder()


def path_of(root: Path) -> Path | None:
    """The file of the project at `root`; None for a user without a home."""
    place = folder()
    return None if place is None else _path_in(place, os.path.realpath(root))


def _path_in(place: Path, real: str) -> Path:
    return place / f"{PROJECTS}/{_name_of(real)}.json"


def of(root: Path) -> Registration:
    """What the user has said of the project at `root`, if anything. Errors as for `find`."""
    return find(root) or Registration(os.path.realpath(root))


def find(root: Path) -> Registration | None:
    """What the user has said of the project at `root`, None for nothing.

    UsageError when someone else could have written the file, Damaged when it cannot be read.
    """
    real, place = os.path.realpath(root), folder()
    if place is None:
        return None
    path = _path_in(place, real)
    key, stamp = (os.fspath(path), os.geteuid()), settled_stamp(path)
    before = _found_before.get(key)
    if stamp and before is not None and before[0] == stamp:
        return _parsed(path, before[1], real)
    try:
        text = read(path)
    except UsageError:
        if not os.path.exists(path):  # noqa: PTH110  # a folder that may not be looked into holds nothing for us
            return None
        raise
    found = None if text is None else _parsed(path, text, real)
    if text is not None and stamp:
        _found_before[key] = stamp, text
    return found


def update(root: Path, **changes: Any) -> Registration:
    """Change what is said of the project at `root`; keys that it has none of are made.

    changes  fields of `Registration`; with `key=""` no keys are made

    OSError where the user's folder cannot be written, or for a user without a home; other errors as for `find`.
    """
    from ralf.storage import durable  # loaded only by writers

    path = path_of(root)
    if path is None:
        raise FileNotFoundError(f"{root}: this user has no home folder")
    _prepare(path.parent)
    with locks.locked(path.parent.with_suffix(".lock"), str(path)):
        found = of(root)
        before = found.tree()
        found.put(**changes)
        if "key" not in changes or found.key:
            found.put(**{name: getattr(found, name) or os.urandom(size).hex() for name, size in _KEYS.items()})
        if found.tree() != before or not path.exists():
            durable.write(path, (json.dumps(found.tree(), indent=2, ensure_ascii=False) + "\n").encode())
    return found


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
        with suppress(UsageError, Damaged):
            text = read(path)
            known = _parsed(path, text, None) if text is not None else None
            if known is not None and path.name == f"{_name_of(known.path)}.json":
                found.append(known)
    return found


def _name_of(path: str) -> str:
    quoted = os.fsencode(path).replace(b"%", b"%25").replace(b"/", b"%2F")
    return os.fsdecode(quoted) if len(quoted) <= _LONGEST else digests.sha256(os.fsencode(path)).hexdigest()


def _prepare(projects: Path) -> None:
    """Make the user's folder, 0700 whatever the umask; UsageError for one that others may write to."""
    files.make(projects.parent.parent)
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
        found = Registration(str(tree["path"]))
        for name in _FIELDS:
            blank = getattr(found, name)
            value = tree.get(name, blank)
            if not isinstance(value, type(blank)) or not all(
                isinstance(one, str) for one in (value.values() if isinstance(value, dict) else ())
            ):
                raise TypeError(f"{name} is not what ralf writes")  # noqa: TRY301  # as what else cannot be read
            found.put(**{name: value})
        if len(bytes.fromhex(found.key + found.redaction_key)) % 32:
            raise ValueError("a key is too short")  # noqa: TRY301
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise Damaged(path, f"cannot be read: {error}", _HINT) from None
    if root is not None and found.path != root:
        raise Damaged(path, f"is of {found.path}", _HINT)
    return found


# ---- which user a store belongs to: another user's is neither read nor written, as they could change it any time ----
#
# As in git, the user who runs sudo counts for root, too, and projects can be named as safe, in the variable
# `RALF_SAFE_DIRECTORIES`.


def check(folder: Path) -> None:
    """OtherOwner where a store, or the folder that it lies in, belongs to another user.

    folder  of the store; need not exist
    """
    mine = own_ids()
    stamps = settled_stamp(folder.parent), settled_stamp(folder), mine
    if all(stamps) and _checked.get(folder) == stamps:
        return
    others = [(path, owner) for path, owner in _owners(folder) if owner not in mine]
    for path, owner in others:
        import shlex

        if os.path.realpath(folder.parents[1]) not in environment.safe_directories():
            root = shlex.quote(os.path.realpath(folder.parents[1]))
            what = f"belongs to {_name(owner)}, not to {_name(os.geteuid())}: not used"
            raise OtherOwner(path, what, f"if that is well: export RALF_SAFE_DIRECTORIES={root}")
    if not others:
        _checked[folder] = stamps


_checked: dict[Path, tuple[tuple[int, ...], tuple[int, ...], set[int]]] = {}


def own_ids() -> set[int]:
    """The users that this one is: itself, and for root the one that it was called by."""
    user = os.geteuid()
    through_sudo = environment.sudo_user() if user == 0 else None
    return {user} if through_sudo is None else {user, through_sudo}


def _owners(folder: Path) -> list[tuple[str, int]]:
    """The owners of the store's folder, of the one that it lies in, and of the folders in it."""
    found = []
    for path in (os.fspath(folder.parent), os.fspath(folder)):
        with suppress(OSError):  # not there, or not to be looked at: then it is not used either
            status = os.lstat(path)
            found.append((path, status.st_uid))
            if stat.S_ISLNK(status.st_mode):  # its owner says where it leads
                found.append((path, os.stat(path).st_uid))  # noqa: PTH116
    with suppress(OSError), os.scandir(folder) as entries:
        folders = (entry for entry in entries if entry.is_dir(follow_symlinks=False))
        found.extend((entry.path, entry.stat(follow_symlinks=False).st_uid) for entry in folders)
    return found


def _name(user: int) -> str:
    import pwd  # loaded only for a refusal

    try:
        return f"{pwd.getpwuid(user).pw_name} (user {user})"
    except KeyError:
        return f"user {user}"
