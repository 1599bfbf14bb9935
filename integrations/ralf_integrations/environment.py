"""What a client's environment says to its hooks; the only module here that looks at it, but for the instant path."""

from __future__ import annotations

import os
from pathlib import Path

from ralf import environment

_OF_A_REPOSITORY = frozenset(
    "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR"
    " GIT_NAMESPACE GIT_PREFIX GIT_CEILING_DIRECTORIES".split()
)


def claude_folder() -> Path | None:
    """Where Claude Code was started, which stays while its working directory changes; None where it does not say."""
    found = os.environ.get("CLAUDE_PROJECT_DIR", "")
    return Path(found) if found.startswith("/") and "\0" not in found else None


def claude_compacts_at() -> int:
    """The percent of its window at which a person has it compact, where that is sooner than it does by itself, else
    100.
    """
    found = number("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")
    return found if 0 < found < 100 else 100


def claude_is_headless() -> bool:
    """Whether it ends with this turn: print mode, or the SDK."""
    return os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk")


def blackbox5_root() -> Path | None:
    """The tree that `BLACKBOX5_HOME` or `BB5_HOME` names, else `~/.blackbox5`; None for a user without a home."""
    try:
        return _path("BLACKBOX5_HOME") or _path("BB5_HOME") or Path.home() / ".blackbox5"
    except RuntimeError:
        return None


def blackbox5_engines() -> list[Path]:
    """The engines that `BB5_ENGINE_ROOT` and `RALF_ENGINE_DIR` name."""
    return [path for name in ("BB5_ENGINE_ROOT", "RALF_ENGINE_DIR") if (path := _path(name)) is not None]


def blackbox5_memory() -> Path | None:
    """Where the tree keeps its projects, by `BB5_MEMORY_PATH`; None where that does not say."""
    return _path("BB5_MEMORY_PATH")


def blackbox5_project() -> str:
    """The name of the project that is meant, by `BB5_PROJECT`."""
    return os.environ.get("BB5_PROJECT", "").strip() or "blackbox5"


def route() -> tuple[str, str]:
    """The route that is meant, and the variable that says so; two empty texts where none does."""
    for variable in ("BB5_ROUTE", "RALF_TASK_ID", "BB5_TASK_ID"):
        if value := os.environ.get(variable, "").strip():
            return value, variable
    return "", ""


def run() -> tuple[str, str, str]:
    """The run of a loop that we are part of: its folder, its id and its agent's name; "" for what nothing says."""
    folder = os.environ.get("RALF_RUN_DIR", "") or os.environ.get("RALF_RUN_FOLDER", "")
    agent = os.environ.get("RALF_AGENT_TYPE", "").strip()
    agent = agent if agent.replace("-", "").replace("_", "").isalnum() else ""
    return folder.strip(), os.environ.get("RALF_RUN_ID", "").strip(), agent


def in_a_run() -> bool:
    """Whether we are part of a run of a loop."""
    return any(run()[:2])


def checkpoints_are_off() -> bool:
    """Whether `BB5_DISABLE_CHECKPOINTS` asks for none."""
    return os.environ.get("BB5_DISABLE_CHECKPOINTS", "").strip().lower() not in ("", "0", "false", "no", "off")


def of_an_agent() -> dict[str, str]:
    """The environment for an agent that a loop starts: without what belongs to the session or run that started the
    loop, and without what points git at one repository; with everything else, the user's keys among it.
    """
    git = {name: value for name, value in os.environ.items() if name.startswith("GIT_")}
    return environment.of_a_model() | {name: value for name, value in git.items() if name not in _OF_A_REPOSITORY}


def _path(variable: str) -> Path | None:
    found = os.environ.get(variable, "")
    return Path(found).expanduser() if found and "\0" not in found else None


def number(variable: str) -> int:
    """The number that a variable holds, 0 for none."""
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0
