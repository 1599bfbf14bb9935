"""How this command is typed in a project: as `ralf`, or by a loop's script, in whose tree `ralf` is another program."""

from __future__ import annotations

import os
import re
import shlex
import stat
from pathlib import Path

from ralf import environment
from ralf.errors import UsageError
from ralf.files import ownfile

NAME = "ralf"
SCRIPT = Path("hooks", "context-checkpoint.sh")
"""The loop's script, below a project's folder: it calls this command whatever else is called so."""

_TYPED = re.compile(
    rf"(?<![\w./-]){NAME} (?=(?:context|doctor|health|hook|init|mcp|migrate|nudge|off|on|orchestrator|route|status)\b)"
)


def of(folder: Path) -> str:
    """What is typed in place of `ralf` in the project whose `.autonomous/context` this is.

    A script that came with a clone is never named: an agent would run it.
    """
    if said := environment.command():
        return said
    script = folder / SCRIPT
    return f"{shlex.quote(str(script))} {NAME}" if _is_ours(script) else NAME


def _is_ours(script: Path) -> bool:
    try:
        found = script.lstat()
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
        return False
    if not os.access(script, os.X_OK):
        return False
    if ownfile.may_be_cloned(script):
        try:
            ownfile.check_not_cloned(script, environment.of_a_model())
        except UsageError:
            return False
    return True


def typed(text: str, command: str) -> str:
    """A text of ours with the commands in it as they are typed."""
    return text if command == NAME else _TYPED.sub(lambda found: f"{command} ", text)
