"""What a client tells a hook, in one shape, whichever client it is and whatever it sent.

Contracts: Claude Code 2.1, Codex 0.169, Gemini CLI 0.61; payloads as captured from the programs themselves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

Event = Literal[
    "session-start",
    "prompt",
    "tools-used",
    "before-compaction",
    "after-compaction",
    "task-completed",
    "stopped",
    "session-end",
    "other",
]
"""What has happened, in our words; `other` is anything that we do nothing about."""

Client = Literal["claude-code", "codex", "gemini"]

_SHARED: Mapping[str, Event] = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tools-used",
    "PreCompact": "before-compaction",
    "PostCompact": "after-compaction",
    "Stop": "stopped",
    "SessionEnd": "session-end",
}
EVENTS: Mapping[Client, Mapping[str, Event]] = MappingProxyType(
    {
        "claude-code": {
            **_SHARED,
            "PostToolBatch": "tools-used",
            "TaskCompleted": "task-completed",
            "SubagentStop": "after-compaction",  # the compaction's own agent: it tells the summary first
        },
        "codex": _SHARED,
        "gemini": {  # its PreCompress comes before every call of the model: no compaction
            "SessionStart": "session-start",
            "BeforeAgent": "prompt",
            "AfterTool": "tools-used",
            "AfterAgent": "stopped",
            "SessionEnd": "session-end",
        },
    }
)
"""By client, what its events are to us."""

_LONGEST = 1_000_000  # characters of one text


@dataclass(frozen=True, slots=True)
class Payload:
    """One call of a hook.

    client      who calls
    name        its name of the event, which an answer has to repeat
    event       what has happened
    session     the session's id, as the client wrote it: text, never a path
    transcript  where the client writes its session log; None where it did not say. It need not be there yet
    cwd         the session's working directory, None where it did not say
    source      session-start: startup, resume, clear, compact or fork
    prompt      prompt: what was typed
    trigger     compactions: manual or auto
    summary     after-compaction: what the client's window now begins with
    reason      session-end: as the client says
    agent       of whom this is, where it is not the session itself: a subagent, or the compaction
    again       stopped: whether the agent goes on because a hook has stopped it before
    """

    client: Client
    name: str
    event: Event
    session: str
    transcript: Path | None = None
    cwd: Path | None = None
    source: str = ""
    prompt: str = ""
    trigger: str = ""
    summary: str = ""
    reason: str = ""
    agent: str = ""
    again: bool = False


def parse(name: str, data: bytes, client: Client) -> Payload | None:
    """What a hook got on its standard input; None where nothing can be made of it. Never an error."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    session = _text(tree, "session_id") if isinstance(tree, dict) else ""
    if not session:
        return None
    agent, summary = _text(tree, "agent_id"), _text(tree, "compact_summary")
    if name == "SubagentStop":  # of all subagents, the one that has compacted the window has no type
        ends_compaction = tree.get("agent_type") == ""
        agent = "" if ends_compaction else agent or "subagent"
        summary = _text(tree, "last_assistant_message") if ends_compaction else ""
    return Payload(
        client=client,
        name=name,
        event=EVENTS[client].get(name, "other"),
        session=session,
        transcript=_path(tree, "transcript_path"),
        cwd=_path(tree, "cwd"),
        source=_text(tree, "source"),
        prompt=_text(tree, "prompt"),
        trigger=_text(tree, "trigger"),
        summary=summary,
        reason=_text(tree, "reason"),
        agent=agent,
        again=tree.get("stop_hook_active") is True,
    )


def _text(tree: Mapping[str, Any], key: str) -> str:
    value = tree.get(key)
    return value[:_LONGEST] if isinstance(value, str) else ""


def _path(tree: Mapping[str, Any], key: str) -> Path | None:
    text = _text(tree, key)
    try:
        path = Path(os.fsdecode(os.fsencode(text))) if text and "\0" not in text else None
    except UnicodeEncodeError:  # half a character: no file has such a name
        return None
    return path if path is not None and path.is_absolute() else None
