"""Cuts a conversation so that it fits into a budget: what leads it stays, and then what is newest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ralf.conversation.messages import Count, Message, checked, cost, groups, is_request, is_system, shortened
from ralf.errors import UsageError
from ralf.text import tokens
from ralf.text.frozen import dataclass

Pins = Collection[int] | Callable[[Message], bool]
"""The messages that stay: their indices, or what says so of each."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """A conversation that fits into its budget.

    messages   those that stay, in their order
    cut        the indices of those that were left out
    shortened  the indices of those whose texts were cut, since nothing else could be left out
    tokens     of the messages, as `messages.cost` counts them
    """

    messages: tuple[Message, ...]
    cut: tuple[int, ...] = ()
    shortened: tuple[int, ...] = ()
    tokens: int = 0


def truncate(messages: Sequence[Message], budget: int, *, pins: Pins = (), count: Count | None = None) -> Truncation:
    """The messages that stay where a conversation may have `budget` tokens, and never more, whatever it holds.

    pins   messages that stay: indices, or a function that says so of a message
    count  how many tokens a text has; None: exactly, by o200k_base

    The system prompt stays, then pins, the newest request of a user, and the newest messages, as many as fit without a
    gap. A tool's call and its results stay or go together. Where not even those that are to stay fit, their longest
    texts are cut in the middle and say so; where that does not do, the oldest pins go, then the request, and then the
    system prompt. The newest messages are shortened too, where not one of them would stay. UsageError for a negative
    budget or an index that is none.
    """
    if not isinstance(budget, int) or budget < 0:
        raise UsageError(ascii(budget)[:80], "a budget is a whole number of tokens, 0 or more")
    counted = count if count is not None else tokens.count
    together = groups(checked(messages))
    group_of = {index: group for group in together for index in group}
    kept: dict[int, Message] = {}
    shorter: set[int] = set()
    costs: dict[int, int] = {}

    def price(group: Sequence[int]) -> int:
        for index in group:
            if index not in costs:
                costs[index] = cost(messages[index], counted)
        return sum(costs[index] for index in group)

    # What is to stay whatever is newest, the first to go last.
    leading = [index for index, message in enumerate(messages) if is_system(message)]
    leading += _request(messages)
    leading += sorted(_pinned(messages, pins), reverse=True)
    must = [index for lead in dict.fromkeys(leading) for index in group_of[lead]]
    must = list(dict.fromkeys(must))
    left = budget
    if price(must) <= budget:
        kept = {index: messages[index] for index in must}
        left -= price(must)
    else:
        while must:
            fitting = shortened([messages[index] for index in must], budget, counted)
            if fitting is not None:
                kept = dict(zip(must, fitting, strict=True))
                shorter = {index for index in must if kept[index] != messages[index]}
                break
            gone = group_of[must[-1]]
            must = [index for index in must if index not in gone]
        left = 0

    newest = [group for group in sorted(together, key=lambda group: group[-1], reverse=True) if group[0] not in kept]
    for place, group in enumerate(newest):
        if left and price(group) <= left:
            kept |= {index: messages[index] for index in group}
            left -= price(group)
            continue
        if not place and left:
            fitting = shortened([messages[index] for index in group], left, counted)
            if fitting is not None:
                kept |= dict(zip(group, fitting, strict=True))
                shorter |= {index for index in group if kept[index] != messages[index]}
        break

    order = sorted(kept)
    return Truncation(
        tuple(kept[index] for index in order),
        tuple(index for index in range(len(messages)) if index not in kept),
        tuple(sorted(shorter)),
        sum(cost(kept[index], counted) for index in order),
    )


def _pinned(messages: Sequence[Message], pins: Pins) -> list[int]:
    if callable(pins):
        return [index for index, message in enumerate(messages) if pins(message)]
    for index in pins:
        if not isinstance(index, int) or not 0 <= index < len(messages):
            raise UsageError(f"pin {ascii(index)[:80]}", f"no index of one of {len(messages)} messages")
    return list(pins)


def _request(messages: Sequence[Message]) -> list[int]:
    """The newest request of a user."""
    return [index for index in range(len(messages) - 1, -1, -1) if is_request(messages[index])][:1]
