"""An item in one line, for a person or an agent."""

from __future__ import annotations

from ralf.memory.model import Item
from ralf.text.cleaning import trimmed

_LONGEST = 400  # characters of a line


def line(item: Item) -> str:
    """What an item says, with what speaks for it, in one line that begins with its label."""
    said = _said(item)
    notes = [f"since {item.stale}" if item.stale else "", f"until {item.expires}" if item.expires else ""]
    notes += ["offered: not accepted yet" if item.status == "offered" else ""]
    more = "; ".join(filter(None, (counted(item), *notes)))
    return f"[{item.id}] {trimmed(said, _LONGEST)} ({more})"


def counted(item: Item) -> str:
    """How often an item was used, and how sure it is."""
    uses = f"{item.uses:,} use{'s' * (item.uses != 1)}"
    return f"{uses}, {100 * item.confidence:.0f}% confidence"


def _said(item: Item) -> str:
    if item.kind == "trap":
        what = f"`{item.command}` failed" if item.command else item.text
        if item.error:
            what += f': "{item.error}"'
        return f"{what}; what resolved it: {item.resolution}" if item.resolution else what
    if item.kind == "command":
        worked = f", passed {item.successes:,} times" if item.successes else ""
        seen = f", last {item.last_seen[:10]}" if item.last_seen else ""
        return f"{item.purpose or 'command'}: `{item.command or item.text}`{worked}{seen}"
    if item.kind == "preference" and item.key:
        return f"{item.key}: {item.value}"
    if item.kind == "relationship" and item.agent:
        return f"{item.agent}: {item.context}"
    return item.text
