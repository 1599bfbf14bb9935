"""The messages of a conversation, in the shapes of Anthropic's and OpenAI's interfaces, which one list may mix.

A message is a mapping with a `role`, and a `content` that is a text or a list of blocks. A tool's call is a block of a
type such as `tool_use`, an element of `tool_calls`, or an item of a type such as `function_call`; its result is a block
of a type such as `tool_result`, a message of the role `tool`, or an item of a type such as `function_call_output`. What
else a message has is kept as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ralf.errors import UsageError

Message = Mapping[str, Any]

Count = Callable[[str], int]
"""How many tokens a text has."""

IMAGE_TOKENS = 1_600
"""What an image or a document counts whose bytes stand in the message: about the most that an image costs."""

_MOST_CHARACTERS = 64  # of a token, as good as always

TOO_DEEP = 1 << 40
"""Tokens of a message that JSON cannot hold: it fits into no budget."""

_SYSTEM = ("system", "developer")

_CALLS = ("tool_use", "_call")  # end the types: `mcp_tool_use`, `custom_tool_call`

_RESULTS = ("tool_result", "_call_output")


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
    if message.get("role") != "user":
        return False
    content = message.get("content")
    if isinstance(content, list):
        return any(not (isinstance(block, dict) and is_result(block)) for block in content)
    return bool(content)


def is_result(block: Message) -> bool:
    """Whether a block of a content, or an item, is the result of a tool."""
    return _ends(block, _RESULTS)


def _ends(block: Message, ends: tuple[str, ...]) -> bool:
    type_ = block.get("type")
    return isinstance(type_, str) and type_.endswith(ends)


def calls(message: Message) -> set[str]:
    """The ids of the tools' calls in a message."""
    found = [block.get("id") or block.get("call_id") for block in _blocks(message) if _ends(block, _CALLS)]
    if _ends(message, _CALLS):
        found.append(message.get("call_id"))
    if isinstance(made := message.get("tool_calls"), list):
        found += [call.get("id") for call in made if isinstance(call, dict)]
    return {id_ for id_ in found if isinstance(id_, str)}


def results(message: Message) -> set[str]:
    """The ids of the calls whose results stand in a message."""
    found = [block.get("tool_use_id") or block.get("call_id") for block in _blocks(message) if is_result(block)]
    if message.get("role") == "tool":
        found.append(message.get("tool_call_id"))
    if is_result(message):
        found.append(message.get("call_id") or message.get("id"))
    return {id_ for id_ in found if isinstance(id_, str)}


def _blocks(message: Message) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def groups(messages: Sequence[Message]) -> list[list[int]]:
    """The indices of the messages, in groups that are kept or cut as one: a call and its result stay together, and an
    item of reasoning with what follows it, which OpenAI's interface refuses without it.

    Each group, and the list of them, is in the messages' order. An id that is used again means the call before it.
    """
    leader = list(range(len(messages)))

    def leading(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    def join(one: int, other: int) -> None:
        first, second = sorted((leading(one), leading(other)))
        leader[second] = first

    caller: dict[str, int] = {}
    for index, message in enumerate(messages):
        if index and messages[index - 1].get("type") == "reasoning":
            join(index - 1, index)
        for id_ in results(message):
            if id_ in caller:
                join(caller[id_], index)
        caller |= dict.fromkeys(calls(message), index)
    found: dict[int, list[int]] = {}
    for index in range(len(messages)):
        found.setdefault(leading(index), []).append(index)
    return list(found.values())


# ---- what they cost ----


def cost(message: Message, count: Count) -> int:
    """The tokens of a message as JSON, which is a little more than its text has; an image counts `IMAGE_TOKENS`."""
    images = 0

    def without_images(value: Any) -> Any:
        nonlocal images
        if isinstance(value, dict):
            if _is_image(value):
                images += 1
                return {}
            return {key: without_images(item) for key, item in value.items()}
        return [without_images(item) for item in value] if isinstance(value, list | tuple) else value

    try:
        text = json.dumps(without_images(dict(message)), ensure_ascii=False, default=str)
    except (RecursionError, TypeError, ValueError):
        return TOO_DEEP
    return count(text) + images * IMAGE_TOKENS


def _is_image(value: dict[str, Any]) -> bool:
    """Whether this is what holds the bytes of an image or a document: a source of Base64, or a URL of data."""
    if value.get("type") == "base64" and isinstance(value.get("data"), str):
        return True
    url = value.get("url")
    return isinstance(url, str) and url.startswith("data:")


# ---- cutting within their texts ----


def shortened(messages: Sequence[Message], budget: int, count: Count) -> list[Message] | None:
    """The messages with their longest texts cut in the middle, each to the same length, so that they fit into a budget
    of tokens; None where they do not fit without any text. Calls, ids and what a model has signed stay as they are.
    """

    def at_level(level: int) -> list[Message]:
        return [_cut(message, level) for message in messages]

    def fits(level: int) -> bool:
        return sum(cost(message, count) for message in at_level(level)) <= budget

    if not fits(0):
        return None
    longest = max((len(text) for message in messages for text in _texts(message)), default=0)
    low, high = 0, min(longest, budget * _MOST_CHARACTERS)
    if high == longest and fits(high):
        return list(messages)
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return at_level(low)


def _texts(message: Message) -> Iterator[str]:
    """The texts that `_cut` may cut."""
    found: list[str] = []

    def noted(text: str) -> str:
        found.append(text)
        return text

    _changed(message, noted)
    yield from found


def _cut(message: Message, level: int) -> Message:
    return _changed(message, lambda text: _cut_text(text, level))


def _cut_text(text: str, level: int) -> str:
    if len(text) <= level:
        return text
    head, tail = text[: level - level // 3], text[len(text) - level // 3 :]
    cut = f"{head}\n[… {len(text) - len(head) - len(tail):,} characters left out …]\n{tail}"
    return cut if len(cut) < len(text) else text


def _changed(message: Message, change: Callable[[str], str]) -> Message:
    """A message with its texts changed: those of a tool's result, too, none of a call, a thought or an image."""

    def content(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        return [block(item) for item in value] if isinstance(value, list) else value

    def block(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        made = dict(value)
        if isinstance(value.get("text"), str):
            made["text"] = change(value["text"])
        if is_result(value):
            made |= {key: content(value[key]) for key in ("content", "output") if key in value}
        return made

    made = dict(message)
    made |= {key: content(message[key]) for key in ("content", "output") if key in message}
    return made
