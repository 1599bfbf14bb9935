"""An item in one line, for a person or an agent."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable
from dataclasses import replace

from ralf.memory.model import KINDS, Item
from ralf.text.cleaning import fenced, shown, trimmed

_LONGEST = 400  # characters of a line

_LONGEST_HANDED = 120  # characters of an error that is handed to an agent


_WHO = {
    "person": "the person",
    "file": "by hand in the file",
    "agent": "the agent",
    "model": "a model",
    "mechanical": "a log",
}


def line(item: Item) -> str:
    """What an item says, whose it is, and what speaks for it, in one line that begins with its label."""
    counted = f"{item.uses:,} use{'s' * (item.uses != 1)}, {100 * item.confidence:.0f}% confidence"
    last = [f"last {item.last_seen[:10]}"] if item.kind == "command" else []
    return _line(item, [_WHO[item.origin], counted, *last])


def handed(item: Item) -> str:
    """What an item says, for an agent, and whose it is: shorter than `line`, as it is paid for each time."""
    return _line(replace(item, error=trimmed(item.error, _LONGEST_HANDED)), [_WHO[item.origin]])


def _line(item: Item, notes: list[str]) -> str:
    until = [f"until {item.expires}"] if item.expires else []
    offer = ["offered: not accepted yet"] if item.status == "offered" else []
    more = "; ".join([*notes, *until, *offer])
    return f"[{item.id}] {trimmed(_said(item), _LONGEST)}" + (f" ({more})" if more else "")


def _said(item: Item) -> str:
    if item.kind == "trap":
        what = f"`{item.command}` failed" if item.command else item.text
        what += f': "{item.error}"' if item.error else ""
        return f"{what}; what resolved it: {item.resolution}" if item.resolution else what
    if item.kind == "command":
        return f"{item.purpose or 'command'}: `{item.command or item.text}`"
    kind = KINDS[item.kind]
    before = getattr(item, kind.before) if kind.before else ""
    return f"{before}: {getattr(item, kind.head)}" if before else item.text


def fenced_lines(items: Iterable[Item], line: Callable[[Item], str], label: str = "") -> str:
    """A line for each item, a person's first, in a fence that says that they are data; "" for none."""
    ordered = sorted(items, key=lambda item: item.origin != "person")
    return fenced("\n".join(f"- {shown(line(item))}" for item in ordered), label=label).rstrip()


def parted(items: Iterable[Item], line: Callable[[Item], str]) -> list[str]:
    """A line for each item: what a person said in plain ones, all else in a fence that says that it is data; so what a
    trap quotes, though a person edited it.
    """
    items = list(items)
    plain = [item for item in items if item.origin == "person" and item.kind != "trap"]
    quoted = fenced_lines((item for item in items if item not in plain), line)
    return [*(f"- {shown(line(item))}" for item in plain), *([quoted] if quoted else [])]


def longest(most: int, fits: Callable[[int], bool]) -> int:
    """The highest number up to the most that fits, 0 for none; what fits with more items fits with fewer."""
    return bisect(range(1, most + 1), 0, key=lambda number: 0 if fits(number) else 1)
