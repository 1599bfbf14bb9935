"""Tells where in a session a task is complete: by the agent's own promise, or by the command that completes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ralf.transcripts.events import Event

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


class Completion:
    """Fed with the events of a session, says at which of them a task is complete."""

    def __init__(self) -> None:
        self._calls: set[str] = set()  # of the command, without a result yet

    def by(self, event: Event) -> bool:
        """Whether a task is complete with an event. What a sub-agent did completes none."""
        if event.agent:
            return False
        if event.kind == "call" and completes(event.input):
            self._calls.add(event.call_id)
        elif event.kind == "result" and event.call_id in self._calls:
            self._calls.remove(event.call_id)
            return not event.failed
        return event.kind == "assistant" and promises(event.text)


def _commands(given: Mapping[str, Any]) -> Iterable[str]:
    for key in ("command", "cmd", "script"):
        value = given.get(key)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):  # ["bash", "-lc", "ralf task done …"], or the command itself
            words = [word for word in value if isinstance(word, str)]
            yield from words
            yield " ".join(words)
