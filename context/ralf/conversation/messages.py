"""The messages of a conversation, in the shapes of Anthropic's and OpenAI's interfaces, which one list may mix.

A message is a mapping with a `role`, and a `content` that is a text or a list of blocks. A tool's call is a block of a
type such as `tool_use`, an element of `tool_calls`, or an item of a type such as `function_call`; its result is a block
of a type such as `tool_result`, a message of the role `tool`, or an item of a type such as `function_call_output`. What
else a message has is kept as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ralf.errors import UsageError
from ralf.text.patterns import regex

Message = Mapping[str, Any]

Count = Callable[[str], int]
"""How many tokens a text has."""

IMAGE_TOKENS = 1_600
"""What an image or a document counts whose bytes stand in the message: about the most that an image costs."""

_IMAGE = regex(r'\{[^{}]*"type": "base64"[^{}]*\}|\{[^{}]*"url": "data:[^{}]*\}')
"""What holds the bytes of an image or a document, in JSON: a source of Base64, or a URL of data."""

_MOST_CHARACTERS = 64  # of a token, as good as always

TOO_DEEP = 1 << 40
"""Tokens of a message that JSON cannot hold: it fits into no budget."""

_SYSTEM = ("system", "developer")

_CALLS = ("tool_use", "_call")  # end the types: `mcp_tool_use`, `custom_tool_call`

_RESULTS = ("tool_result", "_call_output")

_ANSWERED = ("tool_use_id", "tool_call_id", "call_id", "id")  # what names the call of a result


def checked(messages: Sequence[Any]) -> Sequence[Message]:
    """The same messages; UsageError for one that is no mapping."""
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            what = f"a mapping is expected, and this is of type {type(message).__name__}"
            raise UsageError(f"message {index}", what, "of a model of pydantic: message.model_dump()")
    return messages


# ---- who says what ----


def is_system(message: Message) -> bool:
    """Whether a message is part of the system prompt."""
    return message.get("role") in _SYSTEM


def is_request(message: Message) -> bool:
    """Whether somebody asks for something in a message: it is a user's, and more than results of tools."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    is_asked = any(block and not (isinstance(block, dict) and is_result(block)) for block in blocks)
    return is_asked and message.get("role") == "user"


def is_result(block: Message) -> bool:
    """Whether a block of a content, or an item, is the result of a tool."""
    return _ends(block, _RESULTS)


def _ends(block: Message, ends: tuple[str, ...]) -> bool:
    type_ = block.get("type")
    return isinstance(type_, str) and type_.endswith(ends)


def calls(message: Message) -> set[str]:
    """The ids of the tools' calls in a message."""
    made = message.get("tool_calls")
    found = [block.get("call_id") or block.get("id") for block in _blocks(message) if _ends(block, _CALLS)]
    found += [call.get("id") for call in made if isinstance(call, dict)] if isinstance(made, list) else []
    return {id_ for id_ in found if isinstance(id_, str)}


def results(message: Message) -> set[str]:
    """The ids of the calls whose results stand in a message."""
    answers = (block for block in _blocks(message) if is_result(block) or block.get("role") == "tool")
    found = {next((block[key] for key in _ANSWERED if block.get(key)), None) for block in answers}
    return {id_ for id_ in found if isinstance(id_, str)}


def _blocks(message: Message) -> list[Message]:
    """A message, which may be an item, and the blocks of its content."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [message, *(block for block in blocks if isinstance(block, dict))]


def as_chat(message: Message) -> Message:
    """A call or a result that is an item as the chat message which a transcript has of it; others as they are."""
    id_ = message.get("call_id") or message.get("id")
    if "role" not in message and _ends(message, _CALLS):
        given = next((message[key] for key in ("arguments", "input", "action") if key in message), None)
        function = {"name": message.get("name") or message["type"], "arguments": given}
        return {"role": "assistant", "tool_calls": [{"id": id_, "function": function}]}
    if "role" not in message and is_result(message):
        return {"role": "tool", "tool_call_id": id_, "content": message.get("output")}
    return message


def groups(messages: Sequence[Message]) -> list[list[int]]:
    """The indices of the messages, in groups that are kept or cut as one: a call and its result stay together, and an
    item of reasoning with what follows it, which OpenAI's interface refuses without it.

    Each group, and the list of them, is in the messages' order. An id that is used again means the call before it.
    """
    group_of: dict[int, list[int]] = {}
    caller: dict[str, int] = {}
    for index, message in enumerate(messages):
        joined = {caller[id_] for id_ in results(message) if id_ in caller}
        if index and messages[index - 1].get("type") == "reasoning":
            joined.add(index - 1)
        group, *others = {id(group_of[one]): group_of[one] for one in sorted(joined)}.values() or [[]]
        for other in others:
            group += other
            group_of |= dict.fromkeys(other, group)
        if others:
            group.sort()
        group.append(index)
        group_of[index] = group
        caller |= dict.fromkeys(calls(message), index)
    return list({group[0]: group for _, group in sorted(group_of.items())}.values())


# ---- what they cost ----


def cost(message: Message, count: Count) -> int:
    """The tokens of a message as JSON, which is a little more than its text has; an image counts `IMAGE_TOKENS`."""
    try:
        text = json.dumps(dict(message), ensure_ascii=False, default=str)
    except (RecursionError, TypeError, ValueError):
        return TOO_DEEP
    text, images = _IMAGE.subn("{}", text)
    return count(text) + images * IMAGE_TOKENS


# ---- cutting within their texts ----


def shortened(messages: Sequence[Message], budget: int, count: Count) -> list[Message] | None:
    """The messages with their longest texts cut in the middle, each to the same length, so that they fit into a budget
    of tokens; None where they do not fit without any text. Calls, ids and what a model has signed stay as they are.
    """
    low, high = 0, budget * _MOST_CHARACTERS
    made = [_cut(message, low) for message in messages]
    if sum(cost(message, count) for message in made) > budget:
        return None
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        longer = [_cut(message, middle) for message in messages]
        if sum(cost(message, count) for message in longer) > budget:
            high = middle
        else:
            low, made = middle, longer
    return made


def _cut(message: Message, level: int) -> Message:
    """A message with each of its texts cut to a length, those of a tool's result, too."""

    def text(value: str) -> str:
        if len(value) <= level:
            return value
        head, tail = value[: level - level // 3], value[len(value) - level // 3 :]
        cut = f"{head}\n[… {len(value) - len(head) - len(tail):,} characters left out …]\n{tail}"
        return cut if len(cut) < len(value) else value

    def result(value: Any) -> Any:
        return changed({"content": value}, text, result)["content"]

    return changed(message, text, result)


def changed(message: Message, text: Callable[[str], str], result: Callable[[Any], Any]) -> Message:
    """A message with its texts and the contents of its tools' results changed; no call, thought or image is."""

    def block(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if is_result(value):
            return {**value, **{key: result(value[key]) for key in ("content", "output") if key in value}}
        return {**value, "text": text(value["text"])} if isinstance(value.get("text"), str) else value

    made, content = dict(message), message.get("content")
    if message.get("role") == "tool" and content is not None:
        made["content"] = result(content)
    elif isinstance(content, str):
        made["content"] = text(content)
    elif isinstance(content, list):
        made["content"] = list(map(block, content))
    if is_result(message) and "output" in message:
        made["output"] = result(message["output"])
    return made
