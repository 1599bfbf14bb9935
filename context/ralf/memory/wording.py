"""An item in one line, for a person or an agent; and items and changes out of what somebody types."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ralf.errors import UsageError
from ralf.memory.fold import Delta
from ralf.memory.model import KINDS, Item
from ralf.memory.records import delta, new_item
from ralf.text.cleaning import fenced, shown, trimmed

_LONGEST = 400  # characters of a line

_LONGEST_HANDED = 120  # characters of an error that is handed to an agent


def line(item: Item) -> str:
    """What an item says, with what speaks for it, in one line that begins with its label."""
    return f"[{item.id}] {trimmed(_said(item), _LONGEST)} ({'; '.join([_counted(item), *_notes(item)])})"


def handed(item: Item) -> str:
    """What an item says, for an agent: shorter than `line`, as it is paid for each time."""
    short = replace(item, error=trimmed(item.error, _LONGEST_HANDED), successes=0, last_seen="")
    is_judged = bool(item.helpful or item.harmful) and item.kind not in ("trap", "command")
    notes = [*([_counted(item)] if is_judged else []), *_notes(item)]
    return f"[{item.id}] {trimmed(_said(short), _LONGEST)}" + (f" ({'; '.join(notes)})" if notes else "")


def _notes(item: Item) -> list[str]:
    """What else there is to know before an item is followed."""
    offer = "offered: not accepted yet" if item.status == "offered" else ""
    stale, until = f"since {item.stale}" if item.stale else "", f"until {item.expires}" if item.expires else ""
    return [*filter(None, (stale, until, offer))]


def _counted(item: Item) -> str:
    return f"{item.uses:,} use{'s' * (item.uses != 1)}, {100 * item.confidence:.0f}% confidence"


def _said(item: Item) -> str:
    if item.kind == "trap":
        what = f"`{item.command}` failed" if item.command else item.text
        what += f': "{item.error}"' if item.error else ""
        return f"{what}; what resolved it: {item.resolution}" if item.resolution else what
    if item.kind == "command":
        worked = f", passed {item.successes:,} times" if item.successes else ""
        seen = f", last {item.last_seen[:10]}" if item.last_seen else ""
        return f"{item.purpose or 'command'}: `{item.command or item.text}`{worked}{seen}"
    kind = KINDS[item.kind]
    before = getattr(item, kind.before) if kind.before else ""
    return f"{before}: {getattr(item, kind.head)}" if before else item.text


def parted(items: Iterable[Item], line: Callable[[Item], str], label: str = "") -> list[str]:
    """A line for each item: what a person said in plain ones, all else in a fence that says that it is data; so what a
    trap quotes, though a person edited it.
    """
    said = [(item.origin == "person" and item.kind != "trap", f"- {shown(line(item))}") for item in items]
    found = "\n".join(text for is_plain, text in said if not is_plain)
    return [*(text for is_plain, text in said if is_plain), *([fenced(found, label=label).rstrip()] if found else [])]


def longest(most: int, fits: Callable[[int], bool]) -> int:
    """The highest number up to the most that fits, 0 for none; what fits with more items fits with fewer."""
    return bisect(range(1, most + 1), 0, key=lambda number: 0 if fits(number) else 1)


# ---- what somebody types ----


def stated(kind: str, text: str, **values: Any) -> Delta:
    """The delta that adds what somebody says in one text: a trap's or a command's command line, a preference or a
    relationship as "NAME: what", else the text itself. UsageError.

    values  further fields
    """
    schema = KINDS[kind]
    own: dict[str, Any] = {"command": text, "uses": 1} if kind == "trap" else {schema.head: text}
    if schema.before:
        name, colon, what = text.partition(": " if ": " in text else ":")
        if not (colon and name.strip() and what.strip()):
            raise UsageError(kind, 'say "NAME: what"', f'ralf memory add {kind} "NAME: what"')
        own = {schema.before: name.strip(), schema.head: what.strip()}
    return new_item(kind, **own, **values)


def edit_of(label: str, values: Sequence[str], origin: str = "person") -> Delta:
    """The delta of `FIELD=VALUE` that somebody types about an item; confidence is from 0 to 1 or in percent."""
    typed: dict[str, Any] = {}
    for value in values:
        name, sign, what = value.partition("=")
        if not sign or not name.strip():
            raise UsageError(value[:80], "is not FIELD=VALUE", "ralf memory edit --help")
        typed[name.strip()] = what
    share = typed.get("confidence", "")
    if share.replace(".", "", 1).isdigit():  # of 1, not in percent
        typed["confidence"] = float(share)
    return delta("edit", label, values=typed, origin=origin)
