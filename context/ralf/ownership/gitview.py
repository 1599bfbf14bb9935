"""What git sees of a store: nothing, or the route files once this user shares them (`ralf init --share`).

Git reads `.gitignore` of the store's folder, and of `routes/` where that one lets it in; both are put right at every
write. What a repository tracks is not hidden by them, so nothing of this user's is written into such a file, but for
route files that they share.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import environment
from ralf.errors import UsageError
from ralf.files import gitindex
from ralf.files.opening import content_of, ours_alone

if TYPE_CHECKING:
    from ralf.project import Project

IGNORE_ALL = "*\n"
IGNORE_ALL_BUT_ROUTES = "*\n!routes/\n!routes/*.md\n"
_EARLIER = "*\n!.gitignore\n!routes/\n!routes/*.md\n"  # was itself committed, and may still be
_IGNORE = ".gitignore"
_MOST = 1 << 20  # bytes of a `.gitignore`

_known: dict[tuple[str, tuple[gitindex.Stamp | None, ...]], frozenset[str]] = {}


def tracked(project: Project) -> frozenset[str]:
    """The paths below the store's folder, relative to it, that git tracks. UsageError where git cannot tell."""
    indexes = project.git_indexes
    found = gitindex.stamps(indexes)
    if not any(found):
        return frozenset()
    key = (os.fspath(project.folder), found)
    if key not in _known:
        names = _remembered(project, found)
        if names is None:
            names = gitindex.tracked_below(project.folder, indexes, environment.of_a_model())
            _remember(project, found, names)
        _known.clear()
        _known[key] = names
    return _known[key]


def check_untracked(project: Project, path: Path) -> None:
    """UsageError for a file of the store that git tracks: what is written into it would be committed."""
    name = path.relative_to(project.folder).as_posix()
    if name in tracked(project):
        where = project.folder.parents[1]
        what = "git tracks it: what is recorded there would be committed with the next change"
        raise UsageError(path, what, f"git -C {where} rm -q --cached {path.relative_to(where)}")


def would_commit(project: Project, route: str) -> str:
    """Why a route file is left as it is: git tracks it, and this user shares none; "" where it may be written."""
    path = project.route_file(route)
    if shares(project) or f"routes/{path.name}" not in tracked(project):
        return ""
    return f"{path}: git tracks it, and you do not share your route files, so it is left as it is: ralf init --share"


def shares(project: Project) -> bool:
    """Whether this user shares the route files; without a registration, where they vouch for what the store says."""
    found = project.owner.registration
    return found.share if found is not None else project.owner.vouches and is_shared(project)


def share(project: Project) -> None:
    """Let git see the route files from now on. Errors: `registry.update`, `hide`."""
    if not project.owner.vouches:
        project.owner.update(share=True)
    _hide(project, shared=True)


def hide(project: Project) -> None:
    """Put right what git is to see of the store, whose folders are there.

    UsageError where what is wrong is committed, so that a change of it would be, too; OSError.
    """
    _hide(project, shared=shares(project))


def _hide(project: Project, *, shared: bool) -> None:
    top, wanted = project.folder / _IGNORE, IGNORE_ALL_BUT_ROUTES if shared else IGNORE_ALL
    found = _content(top)
    if found != wanted:
        if _IGNORE not in tracked(project):
            _put(project, top, wanted)
            found = wanted
        elif found is None:
            _put(project, top, _EARLIER)  # as it was: a change of it would be staged
            found = _EARLIER
        elif not _hides_enough(found):
            _refuse(project, top)
    below = project.routes / _IGNORE
    if shared:
        _open_routes(project, below)
    elif found != IGNORE_ALL and _content(below) != IGNORE_ALL:
        if f"routes/{_IGNORE}" in tracked(project):
            _refuse(project, below)
        _put(project, below, IGNORE_ALL)


def is_hidden(project: Project) -> bool:
    """Whether git sees no more of the store than it is to see; False where nobody has written to the store yet."""
    found = _content(project.folder / _IGNORE)
    return found is not None and (found == IGNORE_ALL or _hides_enough(found))


def is_shared(project: Project) -> bool:
    """Whether the store's `.gitignore` lets git see the route files, as this version or an earlier one writes it."""
    return _content(project.folder / _IGNORE) in (IGNORE_ALL_BUT_ROUTES, _EARLIER)


def _open_routes(project: Project, path: Path) -> None:
    """Let git see the route files, and no other file beside them; what a person keeps out of it stays out.

    A committed one stays: what it can show lies in `routes/`, which this user shares.
    """
    found = _content(path)
    if found is None or f"routes/{_IGNORE}" in tracked(project):
        return
    if found == IGNORE_ALL or any(line.startswith("!") for line in found.splitlines()):
        path.unlink()


def _hides_enough(content: str) -> bool:
    """Whether a `.gitignore` hides all but route files and itself."""
    lines = [line for line in content.split("\n") if line and not line.startswith("#")]
    shown = {line for line in lines if line.startswith("!")}
    return lines[:1] == ["*"] and shown <= set(_EARLIER.split("\n"))


def _refuse(project: Project, path: Path) -> None:
    where = project.folder.parents[1]
    what = "is committed, and does not hide from git what it has to hide"
    raise UsageError(path, what, f"git -C {where} rm -q --cached {path.relative_to(where)}")


def _content(path: Path) -> str | None:
    """What a `.gitignore` says to git; None for none. git does not follow a link in its place."""
    try:
        return content_of(path, most=_MOST).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.EACCES):
            raise
        return ""  # nothing that git reads


def _put(project: Project, path: Path, content: str) -> None:
    from ralf.files import atomic, locks  # only who has to write pays for it

    if not os.path.lexists(path):
        atomic.add(path, content.encode())  # so short that it needs no temporary file; and twice it is put right
        return
    with locks.held(project.folder / "locks" / "ignore.lock", str(path)):
        atomic.sweep(path, grace=0)
        atomic.write(path, content.encode())


# ---- what is remembered ----


def _place(project: Project) -> Path:
    return project.cache / "tracked"


def _remembered(project: Project, found: tuple[gitindex.Stamp | None, ...]) -> frozenset[str] | None:
    with suppress(OSError, ValueError, RecursionError, TypeError):
        stamps, names = json.loads(content_of(_place(project)))
        if stamps == [stamp and list(stamp) for stamp in found]:
            return frozenset(map(str, names))
    return None


def _remember(project: Project, found: tuple[gitindex.Stamp | None, ...], names: frozenset[str]) -> None:
    place = _place(project)
    with suppress(OSError):  # without it the index is read again; and half of it is no JSON
        if place.parent.is_dir():
            with open(place, "w", opener=ours_alone, encoding="utf-8") as file:
                file.write(json.dumps([found, sorted(names)]))
