"""Random conversations, cut to random budgets and divided at random: none is over its budget, no message gets lost, and
no call is parted from its result.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from ralf.compaction.segments import Segments, segments_of
from ralf.conversation.truncation import Truncation, truncate
from ralf.text import tokens

Made = list[dict[str, Any]]

_WORDS = (
    "the server tests fail because import of config.yaml is slow 42 — naïve 😀 \n def x(): return {'a': 1} \\".split(
        " "
    )
)


def conversation(dice: random.Random) -> Made:
    """A conversation of up to 40 turns in either shape, or in both; now and then with what no interface would take."""
    made: Made = []
    for _ in range(dice.choice((0, 0, 1, 1, 1, 2))):
        made.append({"role": dice.choice(("system", "developer")), "content": _text(dice)})
    open_calls: list[tuple[str, str]] = []
    for number in range(dice.randint(0, 40)):
        kind = dice.random()
        if open_calls and kind < 0.6:
            made += _answers(dice, open_calls)
        elif kind < 0.75:
            made.append({"role": "user", "content": _text(dice) if dice.random() < 0.7 else [_block(dice)]})
        else:
            made.append(_call(dice, number, open_calls))
        if dice.random() < 0.02:
            made.append(dice.choice(_ODD))
    return made


def finished(dice: random.Random, messages: Made) -> Made:
    """A conversation in which up to three tasks are completed anywhere, also between a call and its result."""
    made = list(messages)
    for place in sorted(dice.sample(range(len(made) + 1), min(3, len(made))), reverse=True):
        made.insert(place, {"role": "assistant", "content": "Done.\n<promise>COMPLETE</promise>"})
    return made


_ODD: Made = [
    {},
    {"role": "tool", "tool_call_id": "nobody", "content": "an answer without a call"},
    {"role": "user", "content": None},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "nobody", "content": "again"}]},
    {"role": "assistant", "content": "", "tool_calls": []},
    {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "A" * 5_000}}]},
]


def _text(dice: random.Random) -> str:
    length = dice.choice((0, 1, 5, 20, 100, 400))
    return dice.choice(("", " ", "\n")).join(dice.choices(_WORDS, k=length))


def _block(dice: random.Random) -> dict[str, Any]:
    return {"type": "text", "text": _text(dice)}


def _call(dice: random.Random, number: int, open_calls: list[tuple[str, str]]) -> dict[str, Any]:
    """An assistant's message with up to three calls; an id may have been used before."""
    names = [
        f"call-{dice.randint(0, 9) if dice.random() < 0.1 else number * 10 + one}" for one in range(dice.randint(0, 3))
    ]
    if dice.random() < 0.5:
        open_calls += [("anthropic", name) for name in names]
        blocks = [{"type": "tool_use", "id": name, "name": "Bash", "input": {"command": _text(dice)}} for name in names]
        return {"role": "assistant", "content": [_block(dice), *blocks]}
    open_calls += [("openai", name) for name in names]
    function = [{"id": name, "function": {"name": "sh", "arguments": json.dumps({"x": _text(dice)})}} for name in names]
    return {"role": "assistant", "content": _text(dice), "tool_calls": function}


def _answers(dice: random.Random, open_calls: list[tuple[str, str]]) -> Made:
    """Results of some calls that have none: in one user's message, or in one of a tool each."""
    taken = [open_calls.pop(dice.randrange(len(open_calls))) for _ in range(dice.randint(1, len(open_calls)))]
    blocks = [
        {"type": "tool_result", "tool_use_id": name, "content": _text(dice) if dice.random() < 0.7 else [_block(dice)]}
        for shape, name in taken
        if shape == "anthropic"
    ]
    made: Made = [{"role": "user", "content": blocks}] if blocks else []
    return made + [
        {"role": "tool", "tool_call_id": name, "content": _text(dice)} for shape, name in taken if shape == "openai"
    ]


# ---- the judge: it knows nothing of how the conversation was cut ----


def faults(messages: Made, budget: int, cut: Truncation, pins: Sequence[int]) -> list[str]:
    """What is wrong with a conversation that was cut."""
    found = []
    kept = [index for index in range(len(messages)) if index not in set(cut.cut)]
    if len(kept) != len(cut.messages):
        return ["the messages that stay are not those that were not cut"]
    if sum(_tokens(message) for message in cut.messages) > budget:
        found.append(f"over budget: {budget}")
    partners = _partners(messages)
    found += [f"{one} stays without {other}" for one in kept for other in partners.get(one, ()) if other not in kept]
    for index, message in zip(kept, cut.messages, strict=True):
        if message != messages[index] and index not in cut.shortened:
            found.append(f"{index} was changed unsaid")
        if _ids(message) != _ids(messages[index]):
            found.append(f"{index} has other calls or results")
    lost = {index for index in pins if index not in kept}
    if lost and 3 * sum(100 + _tokens(message) for message in messages) <= budget:  # far from what could be tight
        found.append(f"pins {lost} were cut though all would fit")
    if not cut.cut and not cut.shortened and list(cut.messages) != messages:
        found.append("what fits was changed")
    return found


def faults_of_division(messages: Made, found: Segments, pins: Sequence[int]) -> list[str]:
    """What is wrong with a conversation that was divided."""
    parts = [*found.completed, found.current, found.kept]
    if sorted(index for part in parts for index in part) != list(range(len(messages))):
        return ["a message is in no part, or in two"]
    part_of = {index: number for number, part in enumerate(parts) for index in part}
    wrong = [f"pin {index} may be compacted" for index in pins if index not in found.kept]
    pairs = ((one, other) for one, others in _partners(messages).items() for other in others)
    wrong += [f"{one} is parted from {other}" for one, other in pairs if part_of[one] != part_of[other]]
    own = [index for part in parts[:-1] for index in part]
    return wrong + (["a part begins before the one ahead of it ends"] if own != sorted(own) else [])


def _tokens(message: Any) -> int:
    """The tokens of all texts of a message, images left out."""

    def texts(value: Any) -> str:
        if isinstance(value, dict):
            return "" if value.get("type") == "base64" else "\n".join(map(texts, value.values()))
        return "\n".join(map(texts, value)) if isinstance(value, list) else value if isinstance(value, str) else ""

    return tokens.count(texts(dict(message)))


def _ids(message: Any) -> tuple[list[str], list[str]]:
    content = message.get("content")
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    called = [one["id"] for one in blocks if one.get("type") == "tool_use"]
    called += [one["id"] for one in message.get("tool_calls", ())]
    answered = [one["tool_use_id"] for one in blocks if one.get("type") == "tool_result"]
    return called, answered + ([message["tool_call_id"]] if message.get("role") == "tool" else [])


def _partners(messages: Made) -> dict[int, set[int]]:
    """By message those that hold the call of its result, or the result of its call."""
    made: dict[int, set[int]] = {}
    caller: dict[str, int] = {}
    for index, message in enumerate(messages):
        called, answered = _ids(message)
        for id_ in answered:
            if id_ in caller:
                made.setdefault(index, set()).add(caller[id_])
                made.setdefault(caller[id_], set()).add(index)
        caller |= dict.fromkeys(called, index)
    return made


def run(count: int, seed: int = 0) -> list[str]:
    """The faults of as many random conversations."""
    found = []
    for number in range(seed, seed + count):
        dice = random.Random(number)
        messages = conversation(dice)
        budget = dice.choice((0, 1, 10, 50, 200, 1_000, 5_000, 100_000))
        pins = dice.sample(range(len(messages)), min(len(messages), dice.choice((0, 0, 1, 3))))
        cut = truncate(messages, budget, pins=pins)
        wrong = faults(messages, budget, cut, pins)
        messages = finished(dice, messages)
        pins = dice.sample(range(len(messages)), min(len(messages), dice.choice((0, 0, 1, 3))))
        wrong += faults_of_division(messages, segments_of(messages, pins=pins), pins)
        found += [f"conversation {number}: {fault}" for fault in wrong]
    return found
