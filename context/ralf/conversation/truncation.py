"""Cuts a conversation so that it fits into a budget: what leads it stays, and then what is newest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache

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


def truncate(messages: Sequence[Message], budget: int, *, pins: Pins = (), count: Count = tokens.count) -> Truncation:
    """The messages that stay where a conversation may have `budget` tokens, and never more, whatever it holds.

    pins   messages that stay: indices, or a function that says so of a message
    count  how many tokens a text has; exactly, by o200k_base, if not given

    The system prompt stays, then pins, the newest request of a user, and the newest messages, as many as fit without a
    gap. A tool's call and its results stay or go together. Where not even those that are to stay fit, their longest
    texts are cut in the middle and say so; where that does not do, the oldest pins go, then the request, and then the
    system prompt. The newest messages are shortened too, where not one of them would stay. UsageError for a negative
    budget or an index that is none.
    """
    if not isinstance(budget, int) or budget < 0:
        raise UsageError(ascii(budget)[:80], "a budget is a whole number of tokens, 0 or more")
    together = groups(checked(messages))
    group_of = {index: group for group in together for index in group}
    price = cache(lambda index: cost(messages[index], count))

    def fitting(indices: Sequence[int], room: int) -> dict[int, Message] | None:
        """Some messages, shortened where they do not fit; None where they cannot."""
        own: list[Message] | None = [messages[index] for index in indices]
        if sum(map(price, indices)) > room:
            own = shortened([messages[index] for index in indices], room, count)
        return dict(zip(indices, own, strict=True)) if own is not None else None

    # What is to stay whatever is newest, the first to go last.
    leading = [index for index, message in enumerate(messages) if is_system(message)]
    leading += [index for index in reversed(range(len(messages))) if is_request(messages[index])][:1]
    leading += sorted(pinned(messages, pins), reverse=True)
    must = list(dict.fromkeys(index for lead in leading for index in group_of[lead]))
    kept = fitting(must, budget)
    while kept is None:
        must = [index for index in must if index not in group_of[must[-1]]]
        kept = fitting(must, budget)
    left = max(0, budget - sum(map(price, must)))
    newest = [group for group in sorted(together, key=lambda group: group[-1], reverse=True) if group[0] not in kept]
    for place, group in enumerate(newest if left else ()):
        needed = sum(map(price, group))
        found = fitting(group, left) if needed <= left or not place else None
        if found is None:
            break
        kept |= found
        left -= min(left, needed)

    order = sorted(kept)
    return Truncation(
        tuple(kept[index] for index in order),
        tuple(index for index in range(len(messages)) if index not in kept),
        tuple(index for index in order if kept[index] != messages[index]),
        sum(cost(kept[index], count) for index in order),
    )


def pinned(messages: Sequence[Message], pins: Pins) -> list[int]:
    """The indices of the messages that are pinned; UsageError for one that is none."""
    found = [index for index, message in enumerate(messages) if pins(message)] if callable(pins) else list(pins)
    for index in found:
        if not isinstance(index, int) or not 0 <= index < len(messages):
            raise UsageError(f"pin {ascii(index)[:80]}", f"no index of one of {len(messages)} messages")
    return found
