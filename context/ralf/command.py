"""How this command is typed in a project: as `ralf`, or by a loop's script, in whose tree `ralf` is another program."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from ralf import environment

NAME = "ralf"
SCRIPT = Path("hooks", "context-checkpoint.sh")
"""The loop's script, below a project's folder: it calls this command whatever else is called so."""

_TYPED = re.compile(
    rf"(?<![\w./-]){NAME} (?=(?:context|doctor|health|hook|init|mcp|migrate|nudge|off|on|orchestrator|route|status)\b)"
)


def of(folder: Path) -> str:
    """What is typed in place of `ralf` in the project whose `.autonomous/context` this is."""
    if said := environment.command():
        return said
    script = folder / SCRIPT
    return f"{shlex.quote(str(script))} {NAME}" if os.access(script, os.X_OK) else NAME


def typed(text: str, command: str) -> str:
    """A text of ours with the commands in it as they are typed."""
    return text if command == NAME else _TYPED.sub(lambda found: f"{command} ", text)
