"""What git sees of a store, nothing or what this user shares, and what is put right of it.

`.gitignore` does not hide what a repository tracks: nothing of this user's goes into such a file. It is corrected at
every write.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from ralf.errors import UsageError
from ralf.storage import git_files, locks, registry
from ralf.storage.files import content_of, open_single_link
from ralf.storage.registry import Registration
from ralf.text import digests

IGNORE_ALL = "*\n"

IGNORE_ALL_BUT_SHARED = "*\n!shared/\n!shared/*/\n!shared/*/*.json\n"

_IGNORE = ".gitignore"

_MOST = 1 << 20  # bytes of a `.gitignore`

_MOMENT = 0.05  # seconds for which a look at it holds

_known: dict[tuple[str, tuple[git_files.Stamp | None, ...]], frozenset[str]] = {}


class GitView:
    """What git sees of the store in a folder whose owner is known, and what is put right of it.

    cache  the folder of what can be made anew
    """

    def __init__(self, folder: Path, owner: Registration, cache: Path) -> None:
        self._folder = folder
        self._owner = owner
        self._place = cache / "tracked"  # of what git tracks
        self._ignore: tuple[float, str | None] = -_MOMENT, None  # when it was looked at, and what it says

    @cached_property
    def _indexes(self) -> list[Path]:
        real = Path(self._owner.path, *self._folder.parts[-2:])
        if real.is_symlink() or real.parent.is_symlink():
            real = Path(os.path.realpath(self._folder))
        return git_files.indexes_around(real)

    def tracked(self) -> frozenset[str]:
        """The paths below the store's folder, relative to it, that git tracks. UsageError where git cannot tell."""
        found = git_files.stamps(self._indexes)
        if not any(found):
            return frozenset()
        key = (os.fspath(self._folder), found)
        if key not in _known:
            names = self._remembered(found)
            if names is None:
                names = git_files.tracked_below(self._folder)
                self._remember(found, names)
            _known.clear()
            _known[key] = names
        return _known[key]

    def tracks(self, path: Path) -> bool:
        """Whether git tracks a file of the store. UsageError where git cannot tell."""
        tracked = self.tracked()
        return bool(tracked) and path.relative_to(self._folder).as_posix() in tracked

    def check_untracked(self, path: Path) -> None:
        """UsageError for a file of the store that git tracks: what is written into it would be committed."""
        if self.tracks(path):
            self._refuse(path, "git tracks it: what is recorded there would be committed with the next change")

    def has_brought(self, path: Path, content: bytes, is_known: Callable[[bytes], bool]) -> bool:
        """Whether git has brought a file of the store with these bytes, or cannot tell now; see `git_files.brought`.

        is_known  whether other bytes that git has of it are this user's
        """
        return bool(self._indexes) and any(git_files.brought({path: content}, is_known))

    def would_commit(self, path: Path) -> str:
        """Why a route file is left as it is: git tracks it; "" where it may be written."""
        if f"routes/{path.name}" not in self.tracked():
            return ""
        where = self._folder.parents[1]
        return f"{path}: git tracks it, so it is left as it is: git -C {where} rm --cached {path.relative_to(where)}"

    def shares(self) -> bool:
        """Whether this user shares what they decide."""
        return self._owner.share and bool(self._owner.key)

    @property
    def clone(self) -> str:
        """The tag of this clone in the labels that it gives; "" where it shares nothing, or is not known again."""
        if not self.shares():
            return ""
        return digests.blake2b(b"clone", key=bytes.fromhex(self._owner.key), digest_size=3).hexdigest()

    def share(self) -> None:
        """Let git see from now on what this clone shares. Errors: `registry.update`, `hide`."""
        self._owner.update(share=True)
        self._hide(shared=True)

    def hide(self) -> None:
        """Put right what git is to see of the store, whose folders are there.

        UsageError where what is wrong is committed, so that a change of it would be, too; OSError.
        """
        self._hide(shared=self.shares())

    def _hide(self, *, shared: bool) -> None:
        top, wanted = self._folder / _IGNORE, IGNORE_ALL_BUT_SHARED if shared else IGNORE_ALL
        found = self._ignored()
        if found == wanted:
            return
        if _IGNORE not in self.tracked():
            self._put(top, wanted)
            self._ignore = -_MOMENT, None
        elif found is None or not _hides_enough(found):
            self._refuse(top)

    def is_hidden(self) -> bool:
        """Whether git sees no more of the store than it is to see; False where nobody has written to the store yet."""
        try:
            found = self._ignored()
        except OSError:
            return False
        return found is not None and _hides_enough(found)

    def _ignored(self) -> str | None:
        """What the store's `.gitignore` says, None for none."""
        if (now := time.monotonic()) - self._ignore[0] >= _MOMENT:
            self._ignore = now, _content(self._folder / _IGNORE)
        return self._ignore[1]

    def is_shared(self) -> bool:
        """Whether the store's `.gitignore` shows git what is shared."""
        return _content(self._folder / _IGNORE) == IGNORE_ALL_BUT_SHARED

    def _refuse(self, path: Path, what: str = "is committed, and does not hide from git what it has to hide") -> None:
        where = self._folder.parents[1]
        raise UsageError(path, what, f"git -C {where} rm -q --cached {path.relative_to(where)}")

    def _put(self, path: Path, content: str) -> None:
        from ralf.storage import durable  # only who has to write pays for it

        if not os.path.lexists(path):
            durable.add(path, content.encode())  # so short that it needs no temporary file; and twice it is put right
            return
        with locks.locked(self._folder / "locks" / "ignore.lock", str(path)):
            durable.write(path, content.encode())

    def _remembered(self, found: tuple[git_files.Stamp | None, ...]) -> frozenset[str] | None:
        with suppress(OSError, ValueError, RecursionError, TypeError):
            stamps, names = json.loads(content_of(self._place))
            if stamps == [stamp and list(stamp) for stamp in found]:
                return frozenset(map(str, names))
        return None

    def _remember(self, found: tuple[git_files.Stamp | None, ...], names: frozenset[str]) -> None:
        with suppress(OSError):  # without it the index is read again; and half of it is no JSON
            if self._place.parent.is_dir():
                with open(self._place, "w", opener=open_single_link, encoding="utf-8") as file:
                    file.write(json.dumps([found, sorted(names)]))


def _hides_enough(content: str) -> bool:
    """Whether a `.gitignore` hides all but what is shared."""
    lines = [line for line in content.split("\n") if line and not line.startswith("#")]
    return lines[:1] == ["*"] and set(lines) <= set(IGNORE_ALL_BUT_SHARED.split("\n"))


_read_before: dict[Path, tuple[tuple[int, ...], str]] = {}

_NOT_READ_BY_GIT = (errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.EFBIG)  # a link, a pipe, a device, too large


def _content(path: Path) -> str | None:
    """What a `.gitignore` says to git; None for none. git does not follow a link in its place."""
    stamp, before = registry.settled_stamp(path), _read_before.get(path)
    if stamp and before is not None and before[0] == stamp:
        return before[1]
    try:
        found = content_of(path, most=_MOST).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in _NOT_READ_BY_GIT:
            raise
        return ""
    _read_before[path] = stamp, found
    return found
