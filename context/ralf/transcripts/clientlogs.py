"""Which files are logs that the user's own clients have written: what nobody has named on a command line is read only
from there. A payload, a cache or an agent may name any file.

    Claude Code   $CLAUDE_CONFIG_DIR/projects, else ~/.claude/projects
    Codex         $CODEX_HOME/sessions, else ~/.codex/sessions
    Gemini CLI    $GEMINI_CLI_HOME/.gemini/tmp, else ~/.gemini/tmp
"""

from __future__ import annotations

import os
import re
import stat
from functools import lru_cache
from pathlib import Path

from ralf import checkout, environment
from ralf.text import clean

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
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not _is_tracked(folder, real)


def _session_folders() -> tuple[str, ...]:
    claude, codex, gemini = environment.claude_folder(), environment.codex_folder(), environment.gemini_folder()
    places = (claude and claude / "projects", codex and codex / "sessions", gemini and gemini / "tmp")
    return tuple(_real(os.fspath(place.absolute())) for place in places if place)


@lru_cache(maxsize=16)
def _real(place: str) -> str:
    return os.path.realpath(place)


def _is_tracked(folder: str, real: str) -> bool:
    """Whether a repository around the session folder tracks a log: one that lets clients keep their logs within it."""
    return checkout.tracks(Path(folder), Path(real))
