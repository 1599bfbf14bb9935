"""Gemini CLI: its hooks in a project's `.gemini/settings.json`, under event names of its own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ralf_integrations.clients.settings import Client

_SECONDS = 30
_AT_THE_END = 5


def _entry(command: Sequence[str], seconds: int, _: bool) -> Mapping[str, Any]:
    return {"type": "command", "command": shlex.join(command), "timeout": 1000 * seconds}  # milliseconds


GEMINI = Client(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    local=".gemini/settings.json",
    shared=".gemini/settings.json",
    seconds={
        "SessionStart": _SECONDS,
        "BeforeAgent": _SECONDS,
        "AfterTool": _SECONDS,
        "AfterAgent": _SECONDS,
        "SessionEnd": _AT_THE_END,
    },
    entry=_entry,
    then=("Gemini CLI reads a project's settings once you trust its folder",),
)
"""One file for both kinds of settings. PreCompress is no sign of a compaction, and not asked for."""
