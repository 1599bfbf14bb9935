"""Divides a conversation at the tasks that it completes: what is done can be compacted, what is at hand stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from ralf.checkpointing.completion import completes, promises
from ralf.conversation.messages import Message, calls, groups, is_system
from ralf.conversation.summary import is_summary
from ralf.text.frozen import dataclass

Completed = Collection[int] | Callable[[Message], bool]
"""The messages with which a task is complete: their indices, or what says so of each."""


@dataclass(frozen=True, slots=True)
class Segments:
    """The messages of a conversation by their indices, each in one place.

    completed  those of each completed task, oldest first
    current    those of the task at hand
    kept       system prompts, and summaries that stand for what was compacted before
    """

    completed: tuple[tuple[int, ...], ...]
    current: tuple[int, ...]
    kept: tuple[int, ...]


def segments_of(messages: Sequence[Message], completed: Completed | None = None) -> Segments:
    """Divide a conversation. None: a task is complete where the agent promises it (`<promise>COMPLETE</promise>`) or
    its call of `ralf task done` was answered.

    A segment ends behind the results of the calls that were open then, and behind what the agent still says of it.
    """
    ends = sorted(
        {_end(messages, index, together) for together in [groups(messages)] for index in _marked(messages, completed)}
    )
    kept = {index for index, message in enumerate(messages) if is_system(message) or is_summary(message)}
    parts, start = [], 0
    for end in [*ends, len(messages)]:
        parts.append(tuple(index for index in range(start, end) if index not in kept))
        start = max(start, end)
    return Segments(tuple(part for part in parts[:-1] if part), parts[-1], tuple(sorted(kept)))


def _marked(messages: Sequence[Message], completed: Completed | None) -> Iterator[int]:
    if completed is None:
        yield from _own_marks(messages)
    elif callable(completed):
        yield from (index for index, message in enumerate(messages) if completed(message))
    else:
        yield from (index for index in completed if 0 <= index < len(messages))


def _end(messages: Sequence[Message], index: int, together: Sequence[Sequence[int]]) -> int:
    """The index before which the segment ends that a message completes."""
    end = index + 1
    for group in together:  # in the order of their first messages: a later one may reach further
        if group[0] < end:
            end = max(end, group[-1] + 1)
    while end < len(messages) and messages[end].get("role") == "assistant" and not calls(messages[end]):
        end += 1
    return end


def _own_marks(messages: Sequence[Message]) -> Iterator[int]:
    """The messages that complete a task: those that promise it, and results of `ralf task done` that do not fail."""
    finishing: set[str] = set()
    for index, message in enumerate(messages):
        if message.get("role") == "assistant" and any(map(promises, _texts(message.get("content")))):
            yield index
        finishing |= {id_ for id_, given in _calls(message) if completes(given)}
        if any(id_ in finishing and not _has_failed(result) for id_, result in _results(message)):
            yield index


def _has_failed(result: Mapping[str, Any]) -> bool:
    """Whether a call failed: its result says so, or the command's own error stands in it."""
    content = result.get("content", result.get("output"))
    text = "\n".join(_texts(content))
    return result.get("is_error") is True or any(line.startswith("error: ") for line in text.split("\n"))


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in _mappings(content):
        if block.get("type") in ("text", "output_text") and isinstance(block.get("text"), str):
            yield block["text"]


def _calls(message: Message) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The calls in a message, in each shape that it may have: their ids and arguments."""
    found = [(block.get("id"), block.get("input")) for block in _mappings(message.get("content"))]
    for call in _mappings(message.get("tool_calls")):
        function = call.get("function")
        found.append((call.get("id"), function.get("arguments") if isinstance(function, Mapping) else None))
    found.append((message.get("call_id"), message.get("arguments")))
    for id_, given in found:
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                continue
        if isinstance(id_, str) and isinstance(given, Mapping):
            yield id_, given


def _results(message: Message) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The results in a message, each with the id of its call."""
    for one in (message, *_mappings(message.get("content"))):
        id_ = one.get("tool_use_id") or one.get("tool_call_id") or one.get("call_id")
        if isinstance(id_, str) and ("content" in one or "output" in one):
            yield id_, one


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, Mapping))
