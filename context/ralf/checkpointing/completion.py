"""Tells where in a session a task is complete: by the agent's own promise, or by the command that completes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

# Compiled where they are first needed: most hooks meet none of what they look for.
_CODE = r"(?s)```.*?(?:```|\Z)|`[^`\n]*`"

_PROMISE = r"(?im)<promise>\s*(?:COMPLETED?|DONE)\s*</promise>[ \t.!]*$"

_DONE = (
    r"(?m)(?:^|[;&|(]|\bthen\b)[ \t]*+(?:\w++=[^\s;&|(]*+[ \t]++)*+(?:[^\s;&|(]*/)?ralf(?:[ \t]++--root[ \t]++\S++)?"
    r"[ \t]++task[ \t]++done\b"
)


def promises(text: str) -> bool:
    """Whether an agent's message promises completion: `<promise>COMPLETE</promise>` at a line's end, outside code."""
    return "<promise>" in text and re.search(_PROMISE, re.sub(_CODE, "", text)) is not None


def completes(given: Mapping[str, Any]) -> bool:
    """Whether the arguments of a call hold the command that completes a task, `ralf task done`."""
    return any("task" in text and re.search(_DONE, text) is not None for text in _commands(given))


def _commands(given: Mapping[str, Any]) -> Iterable[str]:
    for key in ("command", "cmd", "script"):
        value = given.get(key)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):  # ["bash", "-lc", "ralf task done …"], or the command itself
            words = [word for word in value if isinstance(word, str)]
            yield from words
            yield " ".join(words)
