"""What the environment says of us; the only module that looks at it."""

from __future__ import annotations

import os
from pathlib import Path

_ROUTE_VARIABLES = ("BB5_ROUTE", "RALF_TASK_ID", "BB5_TASK_ID")
_OURS = ("GIT_", "RALF_", "BB5_")
_SESSIONS = ("CODEX_THREAD_ID", "CLAUDE_CODE_SESSION_ID")  # a Codex that Claude Code runs has both
_OF_A_SESSION = frozenset(
    {
        *_SESSIONS,
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_PROJECT_DIR",
        "CODEX_CI",
        "CODEX_SESSION_ID",
        "CODEX_TOOL_CALL_ID",
    }
)


def project_directory() -> str:
    """The project that is meant, or its `.autonomous`; "" where nothing says it."""
    return os.environ.get("RALF_PROJECT_DIR", "")


def route() -> tuple[str, str]:
    """The route that is meant, and the variable that says so; two empty texts where none does."""
    for variable in _ROUTE_VARIABLES:
        if value := os.environ.get(variable, "").strip():
            return value, variable
    return "", ""


def run() -> tuple[str, str, str]:
    """The run of a loop that we are part of: its folder, its id and its agent's name; "" for what nothing says."""
    folder = os.environ.get("RALF_RUN_DIR", "") or os.environ.get("RALF_RUN_FOLDER", "")
    agent = os.environ.get("RALF_AGENT_TYPE", "").strip()
    agent = agent if agent.replace("-", "").replace("_", "").isalnum() else ""
    return folder.strip(), os.environ.get("RALF_RUN_ID", "").strip(), agent


def session() -> str:
    """The session of the client that runs us, "" for none."""
    return next((value for variable in _SESSIONS if (value := os.environ.get(variable, ""))), "")


def claude_folder() -> Path | None:
    """Where Claude Code keeps what is the user's; None for a user whom the machine does not know, as in a container."""
    try:
        return Path(os.environ.get("CLAUDE_CONFIG_DIR", "") or Path.home() / ".claude")
    except RuntimeError:
        return None


def codex_folder() -> Path | None:
    """Where Codex keeps what is the user's; None for a user whom the machine does not know."""
    try:
        return Path(os.environ.get("CODEX_HOME", "") or Path.home() / ".codex")
    except RuntimeError:
        return None


def command() -> str:
    """What is typed in place of `ralf`, as the script of a loop says it; "" where we were not called by one."""
    found = os.environ.get("RALF_COMMAND", "")
    return found if found.isprintable() and "`" not in found else ""


def editor() -> str:
    """The command line of the person's editor: `$VISUAL`, else `$EDITOR`, else `vi`."""
    return os.environ.get("VISUAL", "").strip() or os.environ.get("EDITOR", "").strip() or "vi"


def of_a_model() -> dict[str, str]:
    """The environment for a command that is not part of this session: without what points at a repository, a route,
    or the client that runs us; with the user's login.
    """
    return {
        name: value for name, value in os.environ.items() if not name.startswith(_OURS) and name not in _OF_A_SESSION
    }
