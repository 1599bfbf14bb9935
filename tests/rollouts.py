"""Codex rollouts made for tests: the records of newer versions, of those before them, and of the first ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]

SESSION = "01a2022f-cadb-7ed3-8fff-beb8d7fb9968"
WHEN = "2026-11-22T07:36:57.020Z"
WINDOW = 258_400


def wrapped(kind: str, payload: Mapping[str, Any], when: str = WHEN) -> Record:
    return {"timestamp": when, "ordinal": 0, "type": kind, "payload": dict(payload)}


def item(type_: str, **fields: Any) -> Record:
    return wrapped("response_item", {"type": type_, **fields})


def event(type_: str, **fields: Any) -> Record:
    return wrapped("event_msg", {"type": type_, **fields})


def completed(type_: str, id_: str, **fields: Any) -> Record:
    """An event of the versions that tell items of a turn."""
    return event("item_completed", thread_id=SESSION, turn_id="t", item={"type": type_, "id": id_, **fields})


def meta(cwd: str = "/w", session: str = SESSION, **fields: Any) -> Record:
    payload = {"id": session, "timestamp": WHEN, "cwd": cwd, "cli_version": "0.169.0", "source": "cli"}
    return wrapped("session_meta", payload | {"base_instructions": {"text": "You are Codex."}} | fields)


def turn(cwd: str = "/w") -> Record:
    return wrapped("turn_context", {"turn_id": "t", "cwd": cwd, "model": "m"})


def message(role: str, *texts: str, kinds: Sequence[str] | None = None, id_: str = "m") -> Record:
    block = "output_text" if role == "assistant" else "input_text"
    passed = {} if kinds is None else {"internal_chat_message_metadata_passthrough": {"content_item_kinds": kinds}}
    return item("message", id=id_, role=role, content=[{"type": block, "text": text} for text in texts], **passed)


def typed(text: str) -> list[Record]:
    """What a person typed: a message and an event."""
    told = completed("UserMessage", "u", content=[{"type": "text", "text": text, "text_elements": []}])
    return [message("user", text, kinds=["user.text"]), told]


def typed_before(text: str) -> list[Record]:
    """The same as versions before 0.14x wrote it."""
    return [message("user", text), event("user_message", message=text, kind="plain")]


def injected(*texts: str, kind: str = "environments.environment_context") -> Record:
    return message("user", *texts, kinds=[kind] * len(texts))


def handed(text: str) -> Record:
    """What a hook handed over."""
    return message("developer", text, kinds=["hooks.additional_context"])


def agent(text: str, id_: str = "a") -> list[Record]:
    """What the agent said: an event and a message."""
    return [
        completed("AgentMessage", id_, content=[{"type": "Text", "text": text}]),
        message("assistant", text, id_=id_),
    ]


def call(name: str, arguments: Mapping[str, Any] | str, call_id: str = "call_1") -> Record:
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return item("function_call", name=name, arguments=given, call_id=call_id)


def custom(name: str, text: str, call_id: str = "call_1") -> Record:
    return item("custom_tool_call", name=name, input=text, call_id=call_id)


def output(text: Any, call_id: str = "call_1", *, of: str = "function_call_output") -> Record:
    return item(of, call_id=call_id, output=text)


def ran(text: str, status: int = 0, call_id: str = "call_1") -> Record:
    """What a command printed, as newer versions tell it."""
    header = (
        f"Chunk ID: a5deb4\nWall time: 0.0000 seconds\nProcess exited with code {status}\nOriginal token count: 1\n"
    )
    return output(f"{header}Output:\n{text}", call_id)


def counted(total: int, window: int | None = WINDOW) -> Record:
    usage = {"input_tokens": total - 60, "cached_input_tokens": 10, "output_tokens": 60, "total_tokens": total}
    info = {"total_token_usage": {"total_tokens": 9 * total}, "last_token_usage": usage, "model_context_window": window}
    return event("token_count", info=info, rate_limits=None)


def compacted(summary: str) -> Record:
    told = f"Another language model started to solve this problem:\n{summary}"
    return wrapped("compacted", {"message": told, "replacement_history": [{"type": "message", "role": "user"}]})


def write(path: Path, *records: Record | Sequence[Record]) -> Path:
    """A rollout of these records, some of which come in lists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in flat(*records)))
    return path


def flat(*records: Record | Sequence[Record]) -> list[Record]:
    return [one for some in records for one in ([some] if isinstance(some, dict) else some)]
