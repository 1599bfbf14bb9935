"""The errors of hooks and of the processes they start: a bounded log, and one line that the next answer shows, once.

A hook must not break the client, so this is the only place where its errors are seen. What such a process has to say
that is no error waits for the same answer.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from ralf.errors import Fenced, RalfError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage.files import content_of, open_single_link
from ralf.text.cleaning import clean, one_line

MOST = 64 << 10
"""Bytes that the log has at most."""

_LONGEST = 400  # characters of a line
_UNREADABLE = (RalfError, OSError)


def log(project: Project) -> Path:
    """Returns the log's path. It has a line for each error, oldest first, with its time (UTC)."""
    return project.cache / "hooks.log"


def add(project: Project, where: str, error: BaseException) -> None:
    """Log an error. Never raises; secrets are redacted, or the message is left out. Of an engine that is away the log
    alone tells: what was due stays due.
    """
    what = _what(project, error)
    line = f"{where}: {what}"
    with suppress(*_UNREADABLE):
        path = log(project)
        project.make_room(path, prepare=True)
        before = _content(path)
        is_new = f": {what}\n" not in before  # another event may have met the same
        entry = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n"
        mode = "a"
        if len(before.encode()) + len(entry.encode()) > MOST:
            mode, entry = "w", before[-MOST // 4 :].partition("\n")[2] + entry
        with open(path, mode, opener=open_single_link, encoding="utf-8") as file:
            file.write(entry)
        if is_new and not isinstance(error, Fenced):
            with open(_unsaid(project), "w", opener=open_single_link, encoding="utf-8") as file:
                file.write(f"{line} (more in {path})")


def leave(project: Project, line: str) -> None:
    """Leave a line that is no error for the next answer to show, unless one waits. Never raises."""
    with suppress(*_UNREADABLE), open(_unsaid(project), "x", opener=open_single_link, encoding="utf-8") as file:
        file.write(line)


def take_unsaid(project: Project) -> str:
    """Returns the line to show, "" for none. Of several hooks at the same time one gets it."""
    path = _unsaid(project)
    mine = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.rename(mine)
    except OSError:
        return ""
    try:
        line = one_line(clean(_content(mine)))
    finally:
        with suppress(OSError):
            mine.unlink()
    return f"ralf: {line}" if line else ""


def _what(project: Project, error: BaseException) -> str:
    """An error in words, without secrets; one that is not ours with the module and line that raised it."""
    import traceback  # no hook that does its work needs it

    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    short = str(error) if isinstance(error, RalfError) else f"{type(error).__name__} at {place}"
    hint = f"; {error.hint}" if isinstance(error, RalfError) and error.hint else ""
    what = f"{short}{hint}" if isinstance(error, RalfError) else f"{short}: {error}"
    try:
        what = redactor_for(project).text(clean(what))
    except Exception:  # noqa: BLE001  # the configuration may be what is wrong
        what = short
    return one_line(clean(what))[:_LONGEST]


def _content(path: Path) -> str:
    try:
        return content_of(path, most=2 * MOST).decode("utf-8", "replace")
    except OSError:
        return ""


def _unsaid(project: Project) -> Path:
    return project.cache / "hooks.unsaid"
