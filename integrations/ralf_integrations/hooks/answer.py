"""What a hook answers a client: JSON with no key that the event's contract does not list, and no longer than it takes.

Claude Code turns a text of more than 10,000 characters into a file's name and a preview, without an error; Codex cuts
it in the middle, and refuses an answer with a key that it does not know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from ralf.text import clean, one_line
from ralf.trim import trimmed
from ralf_integrations.hooks.payload import Payload

LIMIT = 10_000
"""Characters that an answer's text may have in any client."""

_LONGEST_NOTICE = 600  # characters

_WITH_CONTEXT = {
    "claude-code": ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolBatch"),
    "codex": ("SessionStart", "UserPromptSubmit", "PostToolUse"),
    "gemini": ("SessionStart", "BeforeAgent", "AfterTool"),
}
"""By client, the events whose answer can hand the model a text."""

_WITH_NOTICE = {
    "claude-code": (
        *("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolBatch"),
        *("PreCompact", "PostCompact", "Stop", "SessionEnd"),
    ),
    "codex": ("SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "PostCompact", "Stop"),
    "gemini": ("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent"),
}
"""By client, the events whose answer can show the person a line."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a hook has to say; all of it "" for nothing.

    context   for the model, at most LIMIT characters (`fitted`)
    notice    one line for the person; what it quotes is cleaned and cut when it is written
    steering  what the client's own summary of its window is to keep; only Claude Code takes it, before a compaction
    """

    context: str = ""
    notice: str = ""
    steering: str = ""


def takes_context(payload: Payload) -> bool:
    """Whether an answer to this event can hand the model a text."""
    return payload.name in _WITH_CONTEXT[payload.client]


def takes_notice(payload: Payload) -> bool:
    """Whether an answer to this event can show the person a line that is seen: the last one is not."""
    return payload.event != "session-end" and payload.name in _WITH_NOTICE[payload.client]


def written(answer: Answer, payload: Payload) -> str:
    """The standard output that says an answer to a client, "" for nothing to say."""
    if answer.steering and payload.client == "claude-code" and payload.event == "before-compaction":
        return fitted(answer.steering, "")  # plain text there; JSON would be steering, too
    tree: dict[str, object] = {}
    if answer.notice and payload.name in _WITH_NOTICE[payload.client]:
        tree["systemMessage"] = trimmed(one_line(clean(answer.notice)), _LONGEST_NOTICE)
    if answer.context and takes_context(payload):
        context = fitted(answer.context, "")
        tree["hookSpecificOutput"] = {"hookEventName": payload.name, "additionalContext": context}
    return json.dumps(tree, ensure_ascii=True) if tree else ""


def fitted(text: str, ending: str) -> str:
    """`text` within LIMIT characters: cut at the end of a line, with `ending` behind it, which says where the rest is.

    Characters as JavaScript counts them: one outside the basic plane is two.
    """
    if length(text) <= LIMIT:
        return text
    room = LIMIT - length(ending) - 1
    kept = text.encode("utf-16-le", "surrogatepass")[: 2 * room].decode("utf-16-le", "ignore")
    return f"{kept[: kept.rfind(chr(10)) + 1] or kept}{ending}"


def length(text: str) -> int:
    """Characters as JavaScript counts them."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
