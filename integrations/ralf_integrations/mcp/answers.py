"""The lines of the MCP tools' answers, and as many of them as fit a budget; all words of others in the fence."""

from __future__ import annotations

from collections.abc import Sequence

from ralf.finding.reader import RouteSummary
from ralf.finding.search import SearchHit
from ralf.text import tokens
from ralf.text.cleaning import FENCE_TOKENS, clean, fence_characters, fenced, one_line, shown, trimmed
from ralf.text.tokens import CHARACTERS_PER_TOKEN

_NAME = 200  # characters of a short field that comes out of a file


def of_hit(number: int, hit: SearchHit) -> str:
    """Where a hit was found, and below that its words, set in."""
    status = f" [{hit.status}]" if hit.status not in ("", "active") else ""
    source = f" ({short(hit.source)})" if hit.source else ""
    lines = shown(hit.text).strip().split("\n")
    return f"{number}. {hit.route} {hit.kind} {short(hit.id)}{status}{source}\n" + "".join(
        f"   {line}".rstrip() + "\n" for line in lines
    )


def of_route(number: int, found: RouteSummary) -> str:
    """A route in the list of routes."""
    parts = [f"{found.checkpoint_count} checkpoints"]
    parts += [f"last {short(found.last_checkpoint)}"] if found.last_checkpoint else []
    parts += [short(part) for part in (found.current_task, found.title, found.work_status) if part]
    parts += [f"asked last: {short(found.last_request)}"] if found.last_request else []
    parts += [f"damaged: {short(found.damage)}"] if found.damage else []
    parts += ["holds what came with the repository"] if found.foreign else []
    return f"{number}. {found.route}: {', '.join(parts)}\n"


def noted(text: str) -> str:
    """A few words with names in them, in a short fence; "" for none."""
    return fenced(shown(text), short=True)


def short(text: str) -> str:
    """A short field that comes out of a file, on one line."""
    return trimmed(shown(one_line(clean(text))), _NAME)


def listed(lines: Sequence[str], max_tokens: int, more: str, notes: str = "", *, left: int = 0) -> str:
    """The first lines that fit a budget with their fence, and at least a part of the first; "" for none at all.

    more   how to get those that are left out, of which `left` are not among the lines
    notes  come after them
    """
    kept: list[str] = []
    room_tokens = max_tokens - FENCE_TOKENS - 20 - tokens.count(notes)  # and the line of what is left out
    room = CHARACTERS_PER_TOKEN * (max_tokens - FENCE_TOKENS - 20) - fence_characters() - len(notes)
    for text in lines:
        cut = text if kept else _cut(text, room_tokens, room)
        size = tokens.count(cut) + 1
        if size > room_tokens or len(cut) > room:
            break
        kept.append(cut)
        room_tokens, room = room_tokens - size, room - len(cut)
    left += len(lines) - len(kept)
    closing = f"({left} more: {more})\n" if left else ""
    return fenced("".join(kept) + closing + notes)


def _cut(text: str, most_tokens: int, most_characters: int) -> str:
    size = most_characters
    while tokens.count(cut := text if len(text) <= size else f"{trimmed(text, size - 1)}\n") + 1 > most_tokens:
        size = len(cut) * 2 // 3
        if size < 3:
            return ""
    return cut
