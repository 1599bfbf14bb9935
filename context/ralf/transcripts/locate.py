"""The logs that the user's own clients have written: of a project or a session; nothing else is read unasked."""

from __future__ import annotations

import json
import os
import posixpath
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path

from ralf import environment
from ralf.project import Project
from ralf.storage import git_files
from ralf.storage.files import open_regular
from ralf.text.cleaning import clean

# --------------------
# Which files are logs that the user's own clients have written: what nobody has named on a command line is read only
# from there. A payload, a cache or an agent may name any file.
#
#     Claude Code   $CLAUDE_CONFIG_DIR/projects, else ~/.claude/projects
#     Codex         $CODEX_HOME/sessions, else ~/.codex/sessions
#     Gemini CLI    $GEMINI_CLI_HOME/.gemini/tmp, else ~/.gemini/tmp


_ROLLOUT = re.compile(r"rollout-.+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")


def session_of(path: Path) -> str:
    """The session that a client's log is of, as its reader would say, told by its name."""
    rollout = _ROLLOUT.match(path.stem)
    return rollout[1] if rollout else clean(path.stem)


def is_own(path: str | os.PathLike[str]) -> bool:
    """Whether a path lies in a session folder of the user's clients, by its real path, and is a regular file of this
    user there, or nothing yet. A file that git tracks came with a repository, wherever it lies. Never an error.
    """
    try:
        real = os.path.realpath(path)
        folder = next((each for each in _session_folders() if real.startswith(f"{each}/")), None)
        if folder is None:
            return False
        found = Path(real).stat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return False
    return not git_files.tracks(Path(folder), Path(real))  # a repository can lie around the session folder


def _session_folders() -> tuple[str, ...]:
    claude, codex, gemini = environment.claude_folder(), environment.codex_folder(), environment.gemini_folder()
    places = (claude and claude / "projects", codex and codex / "sessions", gemini and gemini / "tmp")
    return tuple(_real(os.fspath(place.absolute())) for place in places if place)


@lru_cache(maxsize=16)
def _real(place: str) -> str:
    return os.path.realpath(place)


# ---- the transcripts of a project or of a session ----


_ID = re.compile(r"[A-Za-z0-9-]{1,64}")

_FIRST = 4 << 10  # bytes in which Codex's newer versions say where a session works

_HEAD = 64 << 10  # bytes in which older ones do

_CWD = re.compile(rb'"cwd"\s*:\s*("(?:[^"\\]|\\.)*")|<cwd>([^<>\\\n"]{1,4096})</cwd>')

_OTHERS = re.compile(rb'"source"\s*:\s*\{\s*"(?:subagent|internal)"|"thread_source"\s*:\s*"(?!user")')

LOOKED_AT = 200
"""Codex keeps the sessions of all projects in one place: how many beginnings are read to find a project's newest."""


def newest_first(project: Project, *, most: int = LOOKED_AT) -> list[Path]:
    """This project's transcripts of Claude Code and Codex, newest first; [] where none is kept, or nobody may look.

    Of Codex those that are among its `most` newest sessions of all projects.
    """
    found = [*of_claude_code(project), *of_codex(project, most=most)]
    return [path for _, path in sorted(found, reverse=True)]


def of_session(session: str, *, most: int = LOOKED_AT) -> Path | None:
    """The transcript of a session, wherever it works; None where no client keeps it. Of Codex as in `newest_first`."""
    if not _ID.fullmatch(session):
        return None
    claude, codex = environment.claude_folder(), environment.codex_folder()
    folders = _named(claude / "projects") if claude is not None else []
    kept = (path for folder in folders if (path := folder / f"{session}.jsonl").is_file())
    found = next(filter(is_own, kept), None)
    if found is not None or codex is None:
        return found
    rollouts = (path for path in islice(_rollouts(codex / "sessions"), most) if path.stem.endswith(f"-{session}"))
    return next(filter(is_own, rollouts), None)


def of_claude_code(project: Project) -> Iterator[tuple[float, Path]]:
    """Claude Code's transcripts of a project, and when each was last written, in no particular order."""
    home = environment.claude_folder()
    if home is None:
        return
    folder = home / "projects" / "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project.root))
    with suppress(OSError):
        for path in folder.glob("*.jsonl"):
            with suppress(FileNotFoundError):  # the client has removed it meanwhile
                if is_own(path):
                    yield path.stat().st_mtime, path


def of_codex(project: Project, *, most: int = LOOKED_AT) -> Iterator[tuple[float, Path]]:
    """Codex's transcripts of a project, and when each was last written: those that began last come first.

    A session is the project's where its working directory is the project's or lies in it. Sessions of the client's own
    agents are left out. `most` beginnings are read.
    """
    home = environment.codex_folder()
    if home is None:
        return
    roots = {os.fspath(project.root), os.path.realpath(project.root)}
    for path in islice(_rollouts(home / "sessions"), most):
        with suppress(OSError):
            cwd = posixpath.normpath(_working_directory(path))
            if any(cwd == root or cwd.startswith(root.rstrip("/") + "/") for root in roots) and is_own(path):
                yield path.stat().st_mtime, path


def _rollouts(folder: Path) -> Iterator[Path]:
    """All rollouts, those of the newest day first; a day's folder is `YYYY/MM/DD`, its files have their time's name."""
    for year in _named(folder):
        for month in _named(year):
            for day in _named(month):
                for path in _named(day):
                    if path.name.startswith("rollout-") and path.suffix == ".jsonl":
                        yield path


def _named(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir(), reverse=True)
    except OSError:
        return []


def _working_directory(path: Path) -> str:
    """Where the session of a rollout works; "" where it does not say, or is none of the user's own."""
    with open_regular(path, follow=True, buffering=0) as file:
        data = file.read(_FIRST)
        found = _CWD.search(data) or _CWD.search(data := data + file.read(_HEAD))
    if found is None or _OTHERS.search(data[:_FIRST]):
        return ""
    with suppress(ValueError):
        return str(json.loads(found[1])) if found[1] else found[2].decode()
    return ""
