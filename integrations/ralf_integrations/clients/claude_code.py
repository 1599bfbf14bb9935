"""Claude Code: its hooks in a project's settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ralf_integrations.clients.settings import Client

_SECONDS = 30
_AT_THE_END = 5  # the client's own limit is 1.5; what takes longer is done by a process of its own


def _entry(command: Sequence[str], seconds: int, shared: bool) -> Mapping[str, Any]:
    if shared:
        return {"type": "command", "command": shlex.join(command), "timeout": seconds}
    return {"type": "command", "command": command[0], "args": list(command[1:]), "timeout": seconds}


CLAUDE_CODE = Client(
    name="claude-code",
    title="Claude Code",
    program="claude",
    local=".claude/settings.local.json",
    shared=".claude/settings.json",
    seconds={
        "SessionStart": _SECONDS,
        "UserPromptSubmit": _SECONDS,
        "PostToolBatch": _SECONDS,
        "PreCompact": _SECONDS,
        "PostCompact": _SECONDS,
        "SubagentStop": _SECONDS,
        "Stop": _SECONDS,
        "SessionEnd": _AT_THE_END,
        "TaskCompleted": _SECONDS,
    },
    entry=_entry,
    matchers={"SubagentStop": "^$"},  # the compaction's own agent, which has no type, and tells the summary first
    then=("a session that is open goes on without them: start a new one",),
)
"""Its local settings are not committed; the exec form needs no shell."""
