"""Hits and routes as the lines of an answer's text, and as many of them as fit a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from ralf import tokens
from ralf.briefing.brief import CHARACTERS_PER_TOKEN
from ralf.briefing.fence import TOKENS, characters, fenced, shown
from ralf.reader import RouteSummary
from ralf.search import SearchHit
from ralf.text import clean, one_line
from ralf.trim import trimmed

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
    parts += [short(part) for part in (found.current_task, found.work_status) if part]
    parts += [f"damaged: {short(found.damage)}"] if found.damage else []
    parts += ["holds what came with the repository"] if found.foreign else []
    return f"{number}. {found.route}: {', '.join(parts)}\n"


def noted(text: str) -> str:
    """A few words with names in them, in a short fence; "" for none."""
    return fenced(shown(text), short=True)


def short(text: str) -> str:
    """A short field that comes out of a file, on one line."""
    return trimmed(shown(one_line(clean(text))), _NAME)


def fitting(texts: Sequence[str], max_tokens: int) -> list[str]:
    """The first texts that fit a budget with their fence; at least a part of the first."""
    left = max_tokens - TOKENS - 20  # and the closing line
    room = CHARACTERS_PER_TOKEN * left - characters()
    kept: list[str] = []
    for text in texts:
        cut = text if kept else _cut(text, left, room)
        size = tokens.count(cut) + 1
        if size > left or len(cut) > room:
            break
        kept.append(cut)
        left, room = left - size, room - len(cut)
    return kept


def _cut(text: str, most_tokens: int, most_characters: int) -> str:
    size = most_characters
    while tokens.count(cut := text if len(text) <= size else f"{trimmed(text, size - 1)}\n") + 1 > most_tokens:
        size = len(cut) * 2 // 3
        if size < 3:
            return ""
    return cut
