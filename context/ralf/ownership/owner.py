"""What this user owns of a project's store: the registration, the key of the seals, and what is vouched for."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralf import checkout, environment
from ralf.errors import Busy, RalfError
from ralf.files.opening import content_of
from ralf.ownership import registry
from ralf.ownership.registry import Registration

if TYPE_CHECKING:
    from ralf.project import Project

NO_FOLDER = (
    "this user has no folder for settings that can be written: what is recorded now cannot be told from what came with"
    " the repository; set RALF_TRUST to the project's absolute path, or XDG_CONFIG_HOME"
)


class Owner:
    """This user, as the owner of one project's store. Read when first asked for; `update` changes it."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._root = project.folder.parent.parent

    @cached_property
    def registration(self) -> Registration | None:
        """What the user has said of the project, None for nothing. UsageError, Damaged as `registry.find`."""
        return registry.find(self._root)

    @cached_property
    def vouches(self) -> bool:
        """Whether `RALF_TRUST` names the project; it counts only for a user without a folder that can be written."""
        named = environment.vouched_paths()
        return bool(named) and os.path.realpath(self._root) in named and not registry.is_writable()

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

    def vouches_for(self, stream: str) -> bool:
        """Whether records of a stream that bear no seal are the user's: the store is vouched for, and git, which would
        have brought them, does not track their file.
        """
        return self.vouches and not self._tracks(f"journal/{stream}.jsonl")

    @cached_property
    def cache(self) -> str:
        """The name of the cache's folder. Nobody who made a repository or an archive can have known it.

        Without a registration it is another one in each process: nothing is found there.
        """
        found = self.registration
        if found is not None and found.cache:
            return found.cache
        if self.vouches and not self._tracks("cache/vouched/"):
            return "vouched"
        return f"none-{os.urandom(8).hex()}"

    def update(self, **changes: Any) -> Registration:
        """Change the registration, or make one; errors as for `registry.update`."""
        return self._keep(registry.update(self._root, **changes))

    def add(self, **values: Any) -> Registration:
        """Make a registration, or read the one that another process has made meanwhile; see `registry.add`."""
        return self._keep(registry.add(self._root, **values))

    def complete(self, **values: Any) -> Registration:
        """Set what the registration does not say yet, or make one; see `registry.complete`."""
        return self._keep(registry.complete(self._root, **values))

    def look_again(self) -> Registration | None:
        """The registration as it is now: another process may have made it since it was first asked for."""
        found = registry.find(self._root)
        return None if found is None else self._keep(found)

    def _keep(self, found: Registration) -> Registration:
        self.__dict__["registration"] = found
        for name in ("cache", "vouches"):
            self.__dict__.pop(name, None)
        return found

    def establish(self) -> None:
        """Make a registration where there is none and one can be made, so that what is written now can be told as ours
        later. An earlier version's store is adopted where the user's own client logs prove it. Busy while another
        process registers projects: without the registration what is written would count as somebody else's.
        """
        if self.vouches or (self.registration is not None and self.registration.pending != "adopting"):
            return
        from ralf.ownership import adoption

        try:
            adoption.register(self._project)
        except Busy:
            raise
        except (OSError, RalfError):  # no folder of the user's that can be written: every write says so
            pass

    def has_not_accepted(self, path: Path) -> bool:
        """Whether a file of the store is one that was there before the project was opted in, as it was then."""
        found = self.registration
        refused = found.unaccepted.get(path.name) if found is not None else None
        if refused is None:
            return False
        try:
            return hashlib.sha256(content_of(path)).hexdigest() == refused
        except OSError:
            return False

    def is_brought_by_git(self, path: Path, content: bytes) -> bool:
        """Whether git tracks a file of the store and has brought these bytes of it."""
        from ralf import gitblobs  # most settings say nothing that git could have brought

        found = checkout.checked_out(self._root, path.relative_to(self._root), content)
        return found == content or gitblobs.is_stored(path, content)

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
        return next((each.pinned[script] for each in registry.everyone() if script in each.pinned), "")

    def _tracks(self, path: str) -> bool:
        return checkout.tracks(self._root, Path(".autonomous", "context", path))
