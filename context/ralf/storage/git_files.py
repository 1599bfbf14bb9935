"""What git says of a folder: what it tracks and has brought, and by its own files the worktree and the branch."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import environment
from ralf.errors import UsageError
from ralf.storage.files import content_of
from ralf.text.frozen import NamedTuple

if TYPE_CHECKING:
    import subprocess


# ---- asking git ----
#
# A repository can hold another, bare one, beside a file, which knows of no file; and name a program that git runs.
# Nothing is fetched, either: a partial clone fetches what it lacks by any protocol that its own settings allow, and one
# of them is a program.
_HARDENED = ("core.fsmonitor=false", "safe.bareRepository=explicit", "protocol.allow=never")

_ALONE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}

_TIMEOUT = 20  # seconds

_MOST = 64 * 1024  # bytes of a `.git` file that are read


class Unreadable(Exception):
    """git does not say it."""


class NoGit(Unreadable):
    """There is no git program: nobody clones or commits here."""


def ask(
    folder: Path,
    arguments: Iterable[str | bytes],
    environment: Mapping[str, str],
    given: bytes = b"",
    *,
    seconds: float = _TIMEOUT,
) -> subprocess.CompletedProcess[bytes] | None:
    """What git answers in a folder; None where there is no git. subprocess.TimeoutExpired when it takes too long.

    given    its standard input
    seconds  that it may take

    Nothing that the repository configures is run.
    """
    import subprocess  # loaded only to ask git

    command = ["git", *(word for setting in _HARDENED for word in ("-c", setting)), *arguments]
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env={**environment, **_ALONE},
            input=given,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except OSError:
        return None


def _git(top: Path, *words: bytes, given: bytes = b"") -> bytes:
    """What git prints of a worktree. Unreadable where it fails, takes too long, or would wait for a pipe."""
    import subprocess  # loaded only to ask git

    for _, git in _folders(top / "file"):
        if any((git / name).exists() and not (git / name).is_file() for name in ("HEAD", "config", "index")):
            raise Unreadable(f"{git}: holds no repository")
    try:
        done = ask(top, words, environment.of_a_model(), given)
    except subprocess.TimeoutExpired as error:
        raise Unreadable(str(error)) from None
    if done is None:
        raise NoGit("there is no git")
    if done.returncode:
        raise Unreadable(done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:200])
    return done.stdout


# ---- what git tracks ----

Stamp = tuple[int, int, int, int]


def indexes_around(folder: Path) -> list[Path]:
    """Where each repository around a folder, without links in its path, lists what it tracks; the innermost first."""
    return [git / "index" for _, git in _folders(folder / "file")]


def stamps(indexes: Iterable[Path]) -> tuple[Stamp | None, ...]:
    """What changes of such lists when git tracks something else; None for one that is not there."""
    return tuple(map(_stamp, indexes))


def _stamp(index: Path) -> Stamp | None:
    with suppress(OSError, ValueError):
        status = index.stat()
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
    return None


def tracked_below(folder: Path) -> frozenset[str]:
    """The paths below a folder, relative to it, that git tracks. UsageError where it cannot tell."""
    found = set[str]()
    for top, _ in _with_an_index(_real(folder) / "file"):
        below = _real(folder).relative_to(top).as_posix()
        try:
            said = _git(top, b"--literal-pathspecs", b"ls-files", b"-z", b"--", os.fsencode(below))
        except NoGit:
            break
        except Unreadable as error:
            raise UsageError(top, f"git cannot say what it tracks: {error}", f"git -C {top} status") from None
        begin = "" if below == "." else f"{below}/"
        found |= {os.fsdecode(name)[len(begin) :] for name in said.split(b"\0") if name.startswith(os.fsencode(begin))}
    return frozenset(found - {""})


def tracks(root: Path, path: Path) -> bool:
    """Whether git tracks a path below `root`, or what lies in it where it is a folder; also where no one can tell.

    root  a repository's top, a linked worktree, a submodule, or a folder that lies in one
    """
    place = _real_file(root / path)
    try:
        return any(
            _git(top, b"--literal-pathspecs", b"ls-files", b"-z", b"--", os.fsencode(place.relative_to(top)))
            for top, _ in _with_an_index(place)
        )
    except Unreadable as error:
        return not isinstance(error, NoGit)


# ---- what git has brought ----

_IDENT = rb"\$Id:[^$\n]*\$"


def brought(
    files: Mapping[Path, bytes], is_known: Callable[[bytes], bool] = lambda _: True, *, anywhere: bool = True
) -> tuple[set[Path], set[Path]]:
    """Those of many files, with their bytes, that git has brought, and those of which nobody can tell now, as git is at
    work. It has brought a file where it has these bytes for it in HEAD or in its index, or others that are not known.

    anywhere  or has these bytes for whatever file in whatever commit: `git restore --source` and `git stash pop` write
              files of which neither HEAD nor the index says anything

    All that git is asked is asked once.
    """
    found: set[Path] = set()
    unsure: set[Path] = set()
    tops: dict[tuple[Path, Path], dict[bytes, Path]] = {}
    for path in files:
        real = _real_file(path)
        for top, git in _with_an_index(real):
            tops.setdefault((top, git), {})[os.fsencode(real.relative_to(top))] = path
    for (top, git), names in tops.items():
        left = {name: (path, files[path]) for name, path in names.items() if path not in found}
        try:
            if (git / "index.lock").exists():  # git is at work: it may have written files that no object holds yet
                unsure |= {path for path, _ in left.values()}
            elif left:
                found |= _brought_to(top, left, is_known, anywhere=anywhere)
        except NoGit:
            continue
        except Unreadable:
            unsure |= {path for path, _ in left.values()}
    return found, unsure - found


def _brought_to(
    top: Path, files: Mapping[bytes, tuple[Path, bytes]], is_known: Callable[[bytes], bool], *, anywhere: bool
) -> set[Path]:
    """Those of the files below a worktree, by their names in it, that git has brought. One whose name has a line break,
    as git cannot be asked for it in a line, counts as brought.
    """
    asked: list[tuple[Path, bytes]] = []
    ids: dict[Path, set[bytes]] = {}
    odd = {path for name, (path, _) in files.items() if b"\n" in name}
    for name, (path, content) in files.items():
        if path in odd:
            continue
        ids[path] = {one for form in (_forms(content) if content else ()) for one in _ids_of(form)}
        asked += [(path, place + name) for place in (b"HEAD:", b":")]
        asked += [(path, one) for one in ids[path]] if anywhere else []
    said = _git(top, b"cat-file", b"--batch-check", given=b"".join(b"%b\n" % what for _, what in asked)).splitlines()
    if len(said) != len(asked):
        raise Unreadable(f"{top}: git answered {len(said)} of {len(asked)} questions")
    blobs = [(path, line.split(b" ")[0]) for (path, _), line in zip(asked, said, strict=True) if b" blob " in line]
    found = odd | {path for path, blob in blobs if blob in ids[path]}
    others = {blob for path, blob in blobs if path not in found}
    unknown = {blob for blob in others if not is_known(_git(top, b"cat-file", b"blob", blob))}
    return found | {path for path, blob in blobs if blob in unknown and path not in found}


def _forms(content: bytes) -> set[bytes]:
    """The bytes that git may have for a file that holds these."""
    forms = {content, content.replace(b"\r\n", b"\n")}
    return forms | {re.sub(_IDENT, b"$Id$", form) for form in forms}


def _ids_of(content: bytes) -> set[bytes]:
    """The ids of a blob with these bytes, of either kind of repository."""
    import hashlib  # which loads OpenSSL

    framed = b"blob %d\0%s" % (len(content), content)
    return {made.hexdigest().encode() for made in (hashlib.sha1(framed, usedforsecurity=False), hashlib.sha256(framed))}


def _real_file(file: Path) -> Path:
    """The path of a file by which its repository knows it; where the file itself is a link, that is what git tracks."""
    return _real(file.parent) / file.name


def _folders(file: Path) -> Iterator[tuple[Path, Path]]:
    """Each worktree around a file, the nearest first, and where git keeps what is its own."""
    for top in file.parents:
        git = top / ".git"
        try:
            mode = git.stat().st_mode
        except (OSError, ValueError):
            continue
        if stat.S_ISDIR(mode):
            yield top, git
        elif stat.S_ISREG(mode) and (named := _text_of(git, "surrogateescape")).startswith("gitdir:"):
            yield top, _folder_named(top, named)  # of a linked worktree, or of a submodule


def _with_an_index(file: Path) -> Iterator[tuple[Path, Path]]:
    """The worktrees around a file in which something may have been checked out or added, as `_folders`."""
    return ((top, git) for top, git in _folders(file) if os.path.lexists(git / "index") or not git.is_dir())


# ---- a repository's main worktree and branch ----


def main_worktree(root: Path) -> Path:
    """The main worktree of a linked one, else `root` itself.

    In a linked worktree `.git` is a file that names `MAIN/.git/worktrees/NAME`, where a file names it in turn.
    """
    git = root / ".git"
    if not git.is_file():
        return root
    folder = _real(_folder_named(root, _text_of(git)))
    if folder.parent.name != "worktrees" or folder.parent.parent.name != ".git":
        return root
    if _real(folder / _text_of(folder / "gitdir")) != _real(git):
        return root  # that repository knows nothing of a worktree here: anybody can write a `.git` file
    return folder.parent.parent.parent


def worktree(folder: Path) -> Path | None:
    """The top of the git worktree in which a folder lies, None where it lies in none. The folder may be gone."""
    place = _real(folder)
    return next((top for top in (place, *place.parents) if (top / ".git").exists()), None)


class Status(NamedTuple):
    """What a worktree looks like at this moment.

    branch  "" where none is checked out
    head    the commit, cut to seven digits, "" for none; `subject`: its message's first line
    files   that are changed or new, by their paths from the worktree's top
    """

    branch: str
    head: str
    subject: str
    files: tuple[str, ...]


_ASKED_FOR = 0.3  # seconds

_READ_ONLY = ("--no-optional-locks", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")


def status(top: Path, environment: Mapping[str, str]) -> Status | None:
    """What git says of a worktree, None where it cannot say it within 0.3 s. Nothing is written, and nothing run that
    the repository configures: one that brings filters, which git would run to compare a file, is not asked.
    """
    import subprocess  # loaded only to ask git

    deadline = time.monotonic() + _ASKED_FOR

    def answer(*words: str) -> str | None:
        done = ask(top, [*_READ_ONLY, *words], environment, seconds=max(0.01, deadline - time.monotonic()))
        return done.stdout.decode(errors="replace") if done is not None and done.returncode == 0 else None

    try:
        filters = answer("config", "--show-scope", "--name-only", "--get-regexp", r"^filter\.") or ""
        if any(line.startswith(("local", "worktree")) for line in filters.splitlines()):
            return None
        said = answer("status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "-z")
        if said is None:
            return None
        subject = answer("log", "-1", "--format=%s") or ""
    except subprocess.TimeoutExpired:
        return None
    head, branch, files = "", "", list[str]()
    lines = iter(said.split("\0"))
    for line in lines:
        if line.startswith("# branch.oid ") and not line.endswith("(initial)"):
            head = line.split()[-1][:7]
        elif line.startswith("# branch.head ") and not line.endswith("(detached)"):
            branch = line.removeprefix("# branch.head ")
        elif (place := _BEFORE_PATH.get(line[:2])) is not None:
            files.append(line.split(" ", place)[-1])
            if line.startswith("2 "):
                next(lines, "")  # the path that it had before
    return Status(branch, head, subject.strip(), tuple(files))


_BEFORE_PATH = {"1 ": 8, "2 ": 9, "u ": 10, "? ": 1}
"""How many fields stand before the path in a line of `git status --porcelain=v2`."""


def branch(root: Path) -> str:
    """The branch that is checked out, "" for none."""
    git = next((git for _, git in _folders(root / "HEAD")), None)
    head = _text_of(git / "HEAD") if git else ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # `resolve` raises where links go round in a circle, in some versions


def _folder_named(top: Path, text: str) -> Path:
    """The folder that the text of a worktree's `.git` file names."""
    return top / text.removeprefix("gitdir:").strip()


def _text_of(path: Path, errors: str = "strict") -> str:
    """The text of one of git's files, "" where it cannot be read: anything may lie there."""
    try:
        return content_of(path, follow=True, most=_MOST).decode(errors=errors).replace("\0", "").strip()
    except (OSError, ValueError):
        return ""
