"""What a client tells a hook, in one shape, and what the hook answers.

An answer is JSON with no key that the event's contract does not list, and no longer than the client takes: Claude Code
turns a text of more than 10,000 characters into a file's name and a preview, without an error; Codex cuts it in the
middle, and refuses an answer with a key that it does not know.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import dataclass
from ralf_integrations.client import CLIENTS, OTHER, Client, Event, Hook

_LONGEST = 1_000_000  # characters of one text


@dataclass(frozen=True, slots=True)
class Payload:
    """One call of a hook."""

    client: str  # who calls, by name (`sender` is its record)
    name: str  # its name of the event, which an answer has to repeat
    event: Event  # what has happened
    session: str  # the session's id, as the client wrote it: text, never a path
    transcript: Path | None = None  # where the client writes its session log, if it said so. It need not be there yet
    cwd: Path | None = None  # the session's working directory
    source: str = ""  # session-start: startup, resume, clear, compact or fork
    prompt: str = ""  # prompt: what was typed
    trigger: str = ""  # compactions: manual or auto
    summary: str = ""  # after-compaction: what the client's window now begins with
    agent: str = ""  # of whom this is, where it is not the session itself: a subagent, or the compaction

    @property
    def sender(self) -> Client:
        """What ralf knows of the client."""
        return CLIENTS[self.client]

    @property
    def hook(self) -> Hook:
        """What ralf knows of the client's event."""
        return self.sender.hooks.get(self.name, OTHER)


def parse(name: str, data: bytes, client: str) -> Payload | None:
    """What a hook got on its standard input; None where nothing can be made of it. Never an error."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    session = _text(tree, "session_id") if isinstance(tree, dict) else ""
    if not session:
        return None
    agent, summary = _text(tree, "agent_id"), _text(tree, "compact_summary")
    prompt = _text(tree, "prompt")
    if CLIENTS[client].marks_injected:
        from ralf.transcripts.gemini import without_injected  # few clients write into the prompt

        prompt = without_injected(prompt)
    if name == "SubagentStop":  # of all subagents, the one that has compacted the window has no type
        ends_compaction = tree.get("agent_type") == ""
        agent = "" if ends_compaction else agent or "subagent"
        summary = _text(tree, "last_assistant_message") if ends_compaction else ""
    return Payload(
        client=client,
        name=name,
        event=CLIENTS[client].hooks.get(name, OTHER).event,
        session=session,
        transcript=_path(tree, "transcript_path"),
        cwd=_path(tree, "cwd"),
        source=_text(tree, "source"),
        prompt=prompt,
        trigger=_text(tree, "trigger"),
        summary=summary,
        agent=agent,
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


# ---- the answer ----

LIMIT = 10_000
"""Characters that an answer's text may have in any client."""

_LONGEST_NOTICE = 600  # characters


@dataclass(frozen=True, slots=True)
class Answer:
    """What a hook has to say; all of it "" for nothing."""

    context: str = ""  # for the model, at most LIMIT characters (`fitted`)
    notice: str = ""  # one line for the person; what it quotes is cleaned and cut when it is written
    steering: str = ""  # before a compaction: what the client's own summary is to keep, where it `takes_steering`
    what: str = ""  # the context is: as in `session_registry.Handed`
    labels: tuple[str, ...] = ()  # of the items of a memory in it


def takes_context(payload: Payload) -> bool:
    """Whether an answer to this event can hand the model a text."""
    return payload.hook.context


def takes_notice(payload: Payload) -> bool:
    """Whether an answer to this event can show the person a line that is seen: the last one is not."""
    return payload.event != "session-end" and payload.hook.notice


def written(answer: Answer, payload: Payload) -> str:
    """The standard output that says an answer to a client, "" for nothing to say."""
    if answer.steering and payload.sender.takes_steering and payload.event == "before-compaction":
        return fitted(answer.steering)  # plain text there; JSON would be steering, too
    tree: dict[str, object] = {}
    if answer.notice and payload.hook.notice:
        tree["systemMessage"] = trimmed(one_line(clean(answer.notice)), _LONGEST_NOTICE)
    if answer.context and takes_context(payload):
        tree["hookSpecificOutput"] = {"hookEventName": payload.name, "additionalContext": fitted(answer.context)}
    return json.dumps(tree, ensure_ascii=True) if tree else ""


def fitted(text: str) -> str:
    """`text` within LIMIT characters: cut at the end of a line."""
    if length(text) <= LIMIT:
        return text
    kept = text.encode("utf-16-le", "surrogatepass")[: 2 * LIMIT].decode("utf-16-le", "ignore")
    return kept[: kept.rfind("\n") + 1] or kept


def length(text: str) -> int:
    """Characters as JavaScript counts them: one outside the basic plane is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
