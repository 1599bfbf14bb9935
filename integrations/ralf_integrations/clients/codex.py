"""Codex: its hooks in a project's `.codex/hooks.json`, which it reads once the project and the hooks are trusted."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ralf_integrations.clients.settings import Client

_SECONDS = 30
_AT_THE_END = 3  # it takes no more, and complains of each session


def _entry(command: Sequence[str], seconds: int, _: bool) -> Mapping[str, Any]:
    return {"type": "command", "command": shlex.join(command), "timeout": seconds}


CODEX = Client(
    name="codex",
    title="Codex",
    program="codex",
    local=".codex/hooks.json",
    shared=".codex/hooks.json",
    seconds={
        "SessionStart": _SECONDS,
        "UserPromptSubmit": _SECONDS,
        "PostToolUse": _SECONDS,
        "PreCompact": _SECONDS,
        "PostCompact": _SECONDS,
        "Stop": _SECONDS,
        "SessionEnd": _AT_THE_END,
    },
    entry=_entry,
    then=(
        "Codex reads a project's hooks once you trust the project: say so when it asks, or run: codex exec --trust",
        "and runs each once you have looked at it: type /hooks in Codex, and trust those of ralf",
    ),
)
"""One file for both kinds of settings: it has no local one."""
