"""What the slow way leaves to `instant`: until when a session needs no look. A cache: losing it costs a look.

A hint holds while everything that it was made of stands as it did: the configuration, the chosen route, the inbox, the
transcript's identity.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ralf import names
from ralf.config import Config
from ralf.files.opening import content_of, ours_alone
from ralf.project import Project
from ralf_integrations.hooks import growth, instant, pressure, usage
from ralf_integrations.hooks.usage import Look

BYTES = instant.BYTES

_SOON = 2 * instant.FEWEST  # then a look sees whether the checkpoint that was started has been made

_DAYS = 90
"""After which what is remembered of a session goes: its client has long deleted the transcript."""


def write(
    project: Project,
    session: str,
    transcript: Path | None,
    *,
    size: int,
    until: int,
    low: int = 0,
    mark: int = 0,
    scale: float = 0.0,
    left: int = 0,
    filled: int = 0,
    what: str = "",
    window: int = 0,
    off: bool = False,
) -> None:
    """Foretell that a session needs no look. Where the transcript has grown beyond `until`, `instant` counts what is
    new, and writes the hint forward while something is left.

    size   bytes of the transcript at this look
    until  bytes that it has to have before anything can fall due
    low    tokens in the client's window below which it has been emptied: marks are to be told again
    mark   tokens in it at which the agent is to be told, 0 for none
    scale  tokens for each estimated one in this session's texts, 0.0 where nobody has counted any
    left   tokens that may follow before anything falls due; 0: then only a look can tell
    filled  tokens in the client's window, 0 where unknown or where no mark is near enough to matter
    what   the transcript's format; of one that is not among `growth.FORMATS` a look tells
    window  size of the client's window
    off    hooks do nothing in this project
    """
    context = os.fspath(project.folder)
    slug = names.slug(session)
    inode = 0
    if transcript is not None:
        with suppress(OSError):
            inode = transcript.stat().st_ino
    figures = (
        instant.stamp(os.fspath(project.config_file)),
        instant.stamp(f"{project.cache}/chosen/{slug}"),
        instant.size(instant.inbox_of(context, slug)),
        inode,
        size,
        until,
        low,
        mark,
        round(1000 * scale),
        math.ceil(1000 * usage.factor(scale)),
        left,
        filled,
        growth.FORMATS.index(what) if what in growth.FORMATS else 0,
        window,
    )
    path = b"" if transcript is None else os.fsencode(transcript)
    line = f"{'off' if off else 'on'} {instant.VERSION} {' '.join(map(str, figures))} ".encode() + path + b"\n"
    with suppress(OSError):  # without it the next hook looks again
        place = _path(project, session)
        project.make_room(place, prepare=True)
        with open(place, "wb", opener=ours_alone) as file:
            file.write(line)


def foretell(
    project: Project, session: str, transcript: Path | None, look: Look, *, settings: Config, told: int, scale: float
) -> None:
    """Foretell it from a look at the session.

    told   the highest mark of pressure that the agent was told of
    scale  as for `write`
    """
    mark = pressure.following(settings, look, told)
    until = look.size + (_SOON if look.due else max(instant.FEWEST, int(BYTES * look.left)))
    filled = (look.filled or 0) if 0 < mark <= look.compacts else 0
    if filled:
        until = min(until, look.size + max(instant.FEWEST, int(BYTES * (mark - filled))))
    write(
        project,
        session,
        transcript,
        size=look.size,
        until=until,
        low=pressure.emptied(look, told),
        mark=mark,
        scale=scale,
        left=0 if look.due or settings.limits.adaptive else look.left,  # what is nearer by edits, tokens do not tell
        filled=filled,
        what=look.format,
        window=look.window,
    )


def scale(project: Project, session: str) -> float:
    """The `scale` that was written last, 0.0 for none."""
    with suppress(OSError, ValueError, IndexError):
        return int(content_of(_path(project, session)).split(b" ", 16)[10]) / 1000
    return 0.0


def called(project: Project, session: str) -> float:
    """When a hook of this session called last, seconds since 1970; 0.0 where nobody knows."""
    with suppress(OSError):
        return _path(project, session).stat().st_mtime
    return 0.0


def last_called(project: Project) -> float:
    """When a hook of any session called last, seconds since 1970; 0.0 where none has, or nobody knows."""
    return max((when for _, when in _times(project)), default=0.0)


def sweep(project: Project) -> None:
    """Remove what is remembered of sessions that have long been over."""
    for path, when in _times(project):
        if time.time() - when > _DAYS * 86_400:
            with suppress(OSError):
                Path(path).unlink()


def _times(project: Project) -> Iterator[tuple[str, float]]:
    """What is remembered of sessions, each file with its time."""
    with suppress(OSError), os.scandir(f"{project.cache}{instant.HINTS}") as entries:
        for entry in entries:
            with suppress(OSError):
                yield entry.path, entry.stat(follow_symlinks=False).st_mtime


def _path(project: Project, session: str) -> Path:
    return Path(f"{project.cache}{instant.HINTS}{names.slug(session)}{instant.HINT}")
