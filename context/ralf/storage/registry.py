"""The user's own folder: registrations of projects, the keys of their stores, and whose a store is."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shlex
import stat
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ralf import environment
from ralf.errors import Damaged, OtherOwner, RalfError, UsageError
from ralf.storage import files, git_files, locks
from ralf.text.frozen import dataclass

# ---- a file that must be the user's own: no one else wrote it, and it did not come with a clone ----

_MOST_BYTES = 1 << 20

_REFUSED = {errno.ELOOP: "is a symbolic link: not read", errno.EINVAL: "is no regular file"}


def read(path: Path, *, others: int = 0) -> str | None:
    """The file's text, None where there is none; UsageError when it is not the user's alone, Damaged when not UTF-8.

    others  the bits of its mode that other users may have
    """
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
        # A file that a clone has made is refused as well, unless the umask is strict: `check_not_cloned`.
        if found.st_mode & 0o077 & ~others:
            raise UsageError(path, "others may read or write it: not read", f"chmod 600 {path}")
        try:
            return file.read(_MOST_BYTES).removeprefix(BOM_UTF8).decode()
        except UnicodeDecodeError:
            raise Damaged(path, "not UTF-8", "mend the file: one `key: value` a line") from None


def check_not_cloned(path: Path) -> None:
    """UsageError when git tracks the file, or cannot say: then whoever wrote the repository may have written it."""
    if path.exists() and git_files.tracks(path.parent, Path(path.name)):
        what = "is committed, or git cannot say whether it is: nothing in it is run"
        raise UsageError(path, what, f"git -C {path.parent} rm --cached {path.name}")


# ---- the user's own folder: per project whether hooks act there, and the keys of its store ----
#
#     $XDG_CONFIG_HOME/ralf/            0700; ~/.config/ralf where the variable is unset
#       projects/NAME.json              0600; NAME: the project's real path with %2F for each slash
#
# It lies in no repository, so nothing that comes with one can opt a project in, or hold a key.

PROJECTS = "projects"

ADOPTING, UNANSWERED = "adopting", "unanswered"
"""What `Registration.pending` says: the seals are being put, and may have to be completed; no one has answered yet."""

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
    cache          the name of the cache's folder, which no one else can guess
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


_found_before: dict[tuple[str, int], tuple[tuple[int, ...], Registration]] = {}
"""By file and user, the file's stamp and what it said: a process reads it again only where it was changed."""

_FINE, _COARSE = 50_000_000, 2_000_000_000
"""Nanoseconds after which every change of a file also changes its times: where they have a fraction of a millisecond,
by the kernel's clock, and elsewhere, as no file system has a coarser one.
"""


def settled_stamp(path: str | Path) -> tuple[int, ...]:
    """What changes with a file; () for none, and where it was changed so lately that one more change may not show."""
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    if changed > time.time_ns() - (_FINE if changed % 1_000_000 else _COARSE):
        return ()
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def folder() -> Path | None:
    """The user's own folder, whether it is there or not; None for a user without a home."""
    return environment.user_folder()


def path_of(root: Path) -> Path | None:
    """The file of the project at `root`; None for a user without a home."""
    return _path_of(os.path.realpath(root))


def _path_of(root: str) -> Path | None:
    place = folder()
    return None if place is None else place / f"{PROJECTS}/{_name_of(root)}.json"


def find(root: Path) -> Registration | None:
    """What the user has said of the project at `root`, None for nothing.

    UsageError when someone else could have written the file, Damaged when it cannot be read.
    """
    real = os.path.realpath(root)
    path = _path_of(real)
    if path is None:
        return None
    key, stamp = (os.fspath(path), os.geteuid()), settled_stamp(path)
    before = _found_before.get(key)
    if stamp and before is not None and before[0] == stamp:
        return before[1]
    try:
        text = read(path)
    except UsageError:
        if not os.path.exists(path):  # noqa: PTH110  # a folder that may not be looked into holds nothing for us
            return None
        raise
    found = None if text is None else _parsed(path, text, real)
    if found is not None and stamp:
        _found_before[key] = stamp, found
    return found


def update(root: Path, **changes: Any) -> Registration:
    """Change what is said of the project at `root`; a project without a registration gets one, with new keys.

    changes  fields of `Registration`

    OSError where the user's folder cannot be written, or for a user without a home; other errors as for `find`.
    """
    return _changed(root, lambda found, made: replace(found or made, **changes))


def _changed(root: Path, change: Callable[[Registration | None, Registration], Registration]) -> Registration:
    """What `change` makes of the project's registration and of a new one, kept under the lock of all of them."""
    from ralf.storage import durable  # loaded only by writers

    path = path_of(root)
    if path is None:
        raise FileNotFoundError(f"{root}: this user has no home folder")
    _prepare(path.parent)
    with locks.locked(path.parent.with_suffix(".lock"), str(path)):
        found = find(root)
        made = Registration(os.path.realpath(root), seal_key=os.urandom(32).hex(), cache=os.urandom(8).hex())
        after = change(found, made)
        if after != found:
            durable.write(path, (json.dumps(asdict(after), indent=2, ensure_ascii=False) + "\n").encode())
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
        with suppress(UsageError, Damaged):
            text = read(path)
            known = _parsed(path, text, None) if text is not None else None
            if known is not None and path.name == f"{_name_of(known.path)}.json":
                found.append(known)
    return found


def _name_of(path: str) -> str:
    quoted = os.fsencode(path).replace(b"%", b"%25").replace(b"/", b"%2F")
    return os.fsdecode(quoted) if len(quoted) <= _LONGEST else hashlib.sha256(os.fsencode(path)).hexdigest()


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


# ---- which user a store belongs to: another user's is neither read nor written, as they could change it any time ----
#
# As in git, the user who runs sudo counts for root, too, and projects can be named as safe: in the variable
# `RALF_SAFE_DIRECTORIES`, or in `$XDG_CONFIG_HOME/ralf/safe_directories`, one absolute path a line.

_READABLE = 0o044

SAFE = "safe_directories"


def check(folder: Path) -> None:
    """OtherOwner where a store, or the folder that it lies in, belongs to another user. UsageError, Damaged where the
    file of the projects that are safe cannot be used.

    folder  of the store; need not exist
    """
    mine = own_ids()
    for path, owner in _owners(folder):
        if owner not in mine and not _is_safe(folder.parents[1]):
            root = shlex.quote(os.path.realpath(folder.parents[1]))
            what = f"belongs to {_name(owner)}, not to {_name(os.geteuid())}: not used"
            raise OtherOwner(path, what, f"if that is well: export RALF_SAFE_DIRECTORIES={root}")


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


def _is_safe(root: Path) -> bool:
    real = os.path.realpath(root)
    return real in environment.safe_directories() or real in _named()


def _named() -> list[str]:
    """The projects that the user's own file names, real paths."""
    folder = environment.user_folder()
    if folder is None or not os.path.exists(folder / SAFE):  # noqa: PTH110  # or it may not be looked into
        return []
    text = read(folder / SAFE, others=_READABLE)
    lines = (line.strip() for line in (text or "").splitlines())
    return [os.path.realpath(line) for line in lines if line.startswith("/")]


def _name(user: int) -> str:
    import pwd  # loaded only for a refusal

    try:
        return f"{pwd.getpwuid(user).pw_name} (user {user})"
    except KeyError:
        return f"user {user}"


# ---- what this user owns of a project's store ----

NO_FOLDER = (
    "this user has no folder for settings that can be written: what is recorded now cannot be told from what came with"
    " the repository; set RALF_TRUST to the project's absolute path, or XDG_CONFIG_HOME"
)


_VOUCHED_CACHE = Path(".autonomous", "context", "cache", "vouched")


class Owner:
    """This user, as the owner of one project's store. Read when first asked for; `update` changes it.

    root  the directory that the store's `.autonomous` lies in
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def registration(self) -> Registration | None:
        """What the user has said of the project, None for nothing. UsageError, Damaged as `registry.find`."""
        return find(self._root)

    @cached_property
    def vouches(self) -> bool:
        """Whether `RALF_TRUST` names the project; it counts only for a user without a folder that can be written."""
        if os.path.realpath(self._root) not in environment.vouched_paths():
            return False
        place = folder()
        return place is None or not place.is_dir() or not os.access(place, os.W_OK)

    @property
    def has_opted_in(self) -> bool:
        """Whether clients' hooks act in this project."""
        found = self.registration
        return self.vouches or (found is not None and found.hooks)

    @property
    def seal_key(self) -> bytes | None:
        """The key of the seals of this project's journal, None where there is none."""
        found = self.registration
        return bytes.fromhex(found.seal_key) if found is not None and found.seal_key else None

    @cached_property
    def cache(self) -> str:
        """The name of the cache's folder. No one who made a repository or an archive can have known it.

        Without a registration it is another one in each process: nothing is found there.
        """
        found = self.registration
        if found is not None and found.cache:
            return found.cache
        if self.vouches and not git_files.tracks(self._root, _VOUCHED_CACHE):
            return "vouched"
        return f"none-{os.urandom(8).hex()}"

    def update(self, **changes: Any) -> Registration:
        """Change the registration, or make one; errors as for `registry.update`."""
        return self._keep(update(self._root, **changes))

    def add(self, **values: Any) -> Registration:
        """Make a registration, or read the one that another process has made meanwhile; errors as for `update`."""
        return self._keep(_changed(self._root, lambda found, made: found or replace(made, **values)))

    def complete(self, **values: Any) -> Registration:
        """Set empty fields: of two processes that make a key, both get the first one's. Errors as for `update`."""

        def completed(found: Registration | None, made: Registration) -> Registration:
            before = found or made
            return replace(before, **{name: value for name, value in values.items() if not getattr(before, name)})

        return self._keep(_changed(self._root, completed))

    def look_again(self) -> Registration | None:
        """The registration as it is now: another process may have made it since it was first asked for."""
        found = find(self._root)
        return None if found is None else self._keep(found)

    def _keep(self, found: Registration) -> Registration:
        self.__dict__["registration"] = found
        for name in ("cache", "vouches"):
            self.__dict__.pop(name, None)
        return found

    @property
    def is_established(self) -> bool:
        """Whether what is written now can be told as this user's later: nothing has to be registered first."""
        return self.vouches or (self.registration is not None and self.registration.pending != "adopting")

    def has_not_accepted(self, path: Path) -> bool:
        """Whether a file of the store is one that was there before the project was opted in, as it was then."""
        found = self.registration
        refused = found.unaccepted.get(path.name) if found is not None else None
        if refused is None:
            return False
        try:
            return hashlib.sha256(files.content_of(path)).hexdigest() == refused
        except OSError:
            return False

    def is_brought_by_git(self, path: Path, content: bytes) -> bool:
        """Whether git has these bytes of a file of the store, or cannot say it."""
        return any(git_files.brought({path: content}, lambda _: True))

    def pinned(self, script: str) -> str:
        """The sha256 of the script that this user's ralf has installed at a real path, in this project or another one;
        "" for none.
        """
        with suppress(RalfError):
            found = self.registration
            if found is not None and script in found.pinned:
                return found.pinned[script]
        if script.startswith(f"{os.path.realpath(self._root)}{os.sep}"):
            return ""  # no other project's ralf has installed it
        return next((each.pinned[script] for each in everyone() if script in each.pinned), "")
