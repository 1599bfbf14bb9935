"""How this command is typed in a project: as `ralf`, or by a loop's script, in whose tree `ralf` is another program."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

from ralf import environment
from ralf.files.opening import content_of

NAME = "ralf"
SCRIPT = Path("hooks", "context-checkpoint.sh")
"""The loop's script, below a project's folder: it calls this command whatever else is called so."""

_MOST = 64 << 10  # bytes of a script

_TYPED = (
    rf"(?<![\w./-]){NAME} (?=(?:context|doctor|health|hook|init|mcp|migrate|nudge|off|on|orchestrator|route|status)\b)"
)
_VERBS = "archive|checkpoint|decide|diff|drop|edit|forget|list|log|prune|revert|search|show|trust|use|verify|watch|why"
_OWN = (
    rf"\s*+(?:--load-context(?:[ =][ ]?\S{{1,100}}+)?|/{NAME}:\w[^\n]*+"
    rf"|(?:[`$!]\s?)?{NAME}[ ](?:(?:doctor|health|init|off|on|status)(?:[ ]-[^\n]*+)?"
    rf"|(?:context|route)[ ](?:{_VERBS})\b[^\n]*+|--?\w[^\n]*+)`?)\s*+\Z"
)


def of(folder: Path, pinned: Callable[[str], str]) -> str:
    """What is typed in place of `ralf` in the project whose `.autonomous/context` this is, or where the loop's script
    that runs us says so.

    pinned  the sha256 of the script that this user's ralf has installed at a real path, "" for none

    No other script is ever named, whatever lies in its place and whoever says so: an agent would run it.
    """
    for script in (_script_in(environment.command()), folder / SCRIPT):
        expected = pinned(os.path.realpath(script)) if script is not None else ""
        if script is not None and expected and digest_of(script) == expected and os.access(script, os.X_OK):
            import shlex

            return f"{shlex.quote(str(script))} {NAME}"
    return NAME


def _script_in(said: str) -> Path | None:
    """The script that a command names, None for any other command."""
    if not said:
        return None
    import shlex  # few projects have a script

    try:
        words = shlex.split(said)
    except ValueError:
        return None
    return Path(words[0]) if len(words) == 2 and words[1] == NAME and words[0].startswith("/") else None


def digest_of(script: Path) -> str:
    """The sha256 of a script that is a regular file of this user, which nobody else may write; "" for anything else."""
    try:
        found = script.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
            return ""
        return hashlib.sha256(content_of(script, most=_MOST)).hexdigest()
    except OSError:
        return ""


def is_all(text: str) -> bool:
    """Whether a text is a command of ours, or of a client to us, and nothing more: no request."""
    return re.match(_OWN, text) is not None


def typed(text: str, command: str) -> str:
    """A text of ours with the commands in it as they are typed."""
    return text if command == NAME else re.sub(_TYPED, lambda found: f"{command} ", text)
