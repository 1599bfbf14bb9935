"""Whose a route file is, where it is no render of ours: this user's own edit, or what git or an archive brought.

Only bytes that nobody knows are looked at so closely; a read or a write that finds our own render never comes here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ralf import checkout, gitblobs, journal, snapshot
from ralf.errors import DamagedJournal
from ralf.files import folders
from ralf.files.opening import content_of, ours_alone
from ralf.ownership import users

if TYPE_CHECKING:
    from ralf.context import RouteContext
    from ralf.project import Project

_MOST_READ = 32  # edits of a route that are remembered to have been read
_DIGEST = 64
_WRITTEN_HERE = 2.0  # seconds between the times of writing and of change of a file that was written where it lies
_COARSE = 0.01  # seconds by which a file system's clock may be behind the other one


def brought(project: Project, route: str, content: bytes) -> bytes | None:
    """What git has brought of a route file that differs from ours, None where nothing of it is foreign.

    That is all of it, or the file that this user has changed since. What this store has written itself, or has taken
    for an edit before, is not foreign, though git may have checked it out anew.
    """
    if _is_remembered(project, route, _digest(content)):
        return None
    root, path = project.folder.parents[1], project.route_file(route)
    found = checkout.checked_out(root, path.relative_to(root), content)
    if found != content and gitblobs.is_stored(path, content):
        found = content
    return None if found is None or is_known(project, route, found) else found


def is_own(project: Project, route: str, content: bytes) -> bool:
    """Whether a route file that has no journal, or one that cannot be read, is this user's: ralf wrote it for them, or
    it has come here since they opted in, by themselves, and nothing of it by git.
    """
    if is_known(project, route, content):
        return True
    owner = project.owner
    found = owner.registration
    if not owner.vouches:
        if found is None or not found.since or _digest(content) in found.unaccepted.values():
            return False
        try:
            told = project.route_file(route).lstat()
        except OSError:
            return False
        if told.st_uid not in users.own_ids():
            return False
        # An archive and a copy bring an older time of writing, or a made-up one; nobody can foresee the moment.
        if told.st_mtime + _COARSE < found.since or abs(told.st_ctime - told.st_mtime) > _WRITTEN_HERE:
            return False
    return brought(project, route, content) is None


def is_known(project: Project, route: str, content: bytes) -> bool:
    """Whether this store has written just this route file, or an edit that left it so was read or taken in."""
    digest = _digest(content)
    if _is_remembered(project, route, digest):
        return True
    with suppress(DamagedJournal):
        for entry in project.store.read(journal.stream_of(route)):
            if not entry.foreign and (entry.id.endswith(f"-{digest}") or journal.parsed(route, entry).render == digest):
                return True
    return False


def is_gits(project: Project, route: str, content: bytes) -> bool:
    """Whether git has, or once had, just these bytes of a route file."""
    root, path = project.folder.parents[1], project.route_file(route)
    return checkout.checked_out(root, path.relative_to(root), content) == content or gitblobs.is_stored(path, content)


def is_taken_in(project: Project, route: str, content: bytes) -> bool:
    """Whether the journal has a record of this user's that took in just this route file."""
    digest = _digest(content)
    with suppress(DamagedJournal):
        entries = project.store.read(journal.stream_of(route))
        return any(entry.id.endswith(f"-{digest}") and not entry.foreign for entry in entries)
    return False


def is_of_lost_record(
    project: Project, route: str, content: bytes, found: RouteContext, recorded: RouteContext
) -> bool:
    """Whether a file that shows a later revision than its journal has is this user's: a render of a record that was
    lost, or their edit of one. Where nothing remembers it, it is as one without a journal, of a route that began when
    the journal says.
    """
    if not found.lineage:
        return False
    if is_known(project, route, content) or is_edit(project, route, content, found):
        return True
    return found.created == recorded.created != "" and is_own(project, route, content)


def is_edit(project: Project, route: str, content: bytes, found: RouteContext) -> bool:
    """Whether a file is a person's edit of one that the cache knows as ours, and git did not bring it.

    found  what the file says
    """
    kept, shown = snapshot.load(project.cache, route), snapshot.shown_at(project.cache, route, found.revision)
    lineages = {known.context.lineage for known in (kept, shown) if known is not None}
    return found.lineage in lineages - {""} and brought(project, route, content) is None


def remember_read(project: Project, route: str, content: bytes) -> None:
    """Note that an edit of a route file was read as this user's: should they commit it, it stays theirs.

    Only where git could be taken for who brought it. A cache that cannot be written costs that knowledge, no data.
    """
    if gitblobs.is_in_repository(project.route_file(route)):
        remember(project, route, content)


def remember(project: Project, route: str, content: bytes) -> None:
    """Note that a route file is this user's as it stands."""
    remember_digests(project, route, [_digest(content)])


def remember_digests(project: Project, route: str, digests: Sequence[str]) -> None:
    """Note that route files of these digests are this user's."""
    owner = project.owner
    if owner.registration is None and not owner.vouches:
        return  # the cache has no place
    known, path = _read(project, route), project.cache / "read" / route
    new = [digest for digest in digests if digest not in known]
    if not new:
        return
    temporary = path.with_name(f".{route}.{new[-1][:8]}.json.tmp")
    with suppress(OSError):
        folders.make(path.parent)
        try:
            with open(temporary, "x", opener=ours_alone, encoding="ascii") as file:
                file.write("".join(f"{one}\n" for one in [*known, *new][-_MOST_READ:]))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(project: Project, route: str) -> list[str]:
    try:
        found = content_of(project.cache / "read" / route).decode("ascii").split("\n")
    except (OSError, UnicodeDecodeError):
        return []
    return [one for one in found if len(one) == _DIGEST]


def _is_remembered(project: Project, route: str, digest: str) -> bool:
    kept = snapshot.load(project.cache, route)
    if kept is not None and any(digest == known for _, known in kept.renders):
        return True
    return digest in _read(project, route)
