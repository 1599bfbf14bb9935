"""What the MCP tools answer: figures, labels and times of ours, and `text` for the model; all within a budget.

Whatever words somebody else may have chosen, also in the name of a route, an id, a source or a path, stand in `text`
and `warnings` alone, in the fence that says that they are data: clients hand the other fields to the model as they are.
The answers have no slots: the SDK takes a slot for a default when it makes their schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from ralf.finding.reader import RouteSummary
from ralf.finding.search import SearchHit
from ralf.routing import BRANCH
from ralf.text import tokens
from ralf.text.cleaning import FENCE_TOKENS, clean, fence_characters, fenced, one_line, shown, trimmed
from ralf.text.patterns import regex
from ralf.text.tokens import CHARACTERS_PER_TOKEN


@dataclass(frozen=True)
class Context:
    """A route's context: its bookkeeping, and its text within the budget. `rule`: how the route was chosen; `foreign`:
    whether it holds what came with the repository.
    """

    rule: str
    revision: int
    checkpoint_count: int
    last_checkpoint: str
    total_tokens_consumed: int
    text: str
    warnings: str = ""
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """What was found; its route, source and words are in `Found.text`, under `number`."""

    number: int
    kind: str
    id: str
    score: float
    status: str


@dataclass(frozen=True)
class Found:
    """What a search found, best first; `left_out`: hits for which the budget had no room."""

    hits: list[Hit]
    left_out: int
    text: str


@dataclass(frozen=True)
class Recorded:
    """A decision that was recorded, or that was known in the same words."""

    id: str
    kind: str
    status: str
    origin: str
    timestamp: str
    supersedes: str
    text: str


@dataclass(frozen=True)
class HandedOver:
    """A hand-over that was recorded: the ids of its new entries, and names in it that are not in the record."""

    ids: list[str]
    not_found: list[str]
    timestamp: str
    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """One checkpoint that was written."""

    checkpoint_id: str
    tokens: int
    tokens_stored: int | None


@dataclass(frozen=True)
class Checkpointed:
    """What a checkpoint came to; `checkpoints` is empty where nothing was new."""

    revision: int
    checkpoints: list[Written]
    tokens_read: int
    tokens_stored: int
    text: str
    warnings: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the list of routes; its name is in `Routes.text`, under `number`."""

    number: int
    revision: int
    last_checkpoint: str
    checkpoint_count: int
    total_tokens_consumed: int
    damaged: bool
    foreign: bool


@dataclass(frozen=True)
class Routes:
    """The routes of the project, the newest checkpoint first. `current`: the number of the one that is meant when none
    is named, 0 where it is not among them; `rule`: how that was chosen.
    """

    routes: list[Route]
    left_out: int
    current: int
    rule: str
    text: str


@dataclass(frozen=True)
class Used:
    """The route that was chosen for the session."""

    exists: bool
    text: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """An item of an agent's memory; its words are in `Memory.text`, below its id."""

    id: str
    kind: str
    status: str
    origin: str
    uses: int
    confidence: float


@dataclass(frozen=True)
class Memory:
    """What an agent has learned: the items that fit, the most valuable first; `left_out`: those for which there was no
    room.
    """

    items: list[Remembered]
    left_out: int
    text: str
    warnings: str = ""


@dataclass(frozen=True)
class Proposed:
    """An item that was offered to the user, or that is known in the same words."""

    id: str
    kind: str
    status: str
    text: str


@dataclass(frozen=True)
class Sent:
    """That a message to an agent was left in its inbox."""

    tokens: int
    text: str


@dataclass(frozen=True)
class Received:
    """The messages that waited for this agent."""

    count: int
    text: str


# ---- labels, ids and times of ours, which can spell nobody's words, and so may stand outside the fence ----


KINDS = (
    *("decision", "rule", "failed-approach"),
    *("turn", "text", "failure", "note", "handover", "checkpoint", "evidence"),
)
STATUSES = ("active", "superseded", "reversed", "done", "proposed", "dropped", "taken back", "reverted")
ORIGINS = ("user", "agent", "answer", "human-edit", "import", "unknown")

_ID = regex(r"(?:DEC|cp|trap|command|preference|fact|pattern|relationship)-\d{1,9}", re.ASCII)
_TIME = regex(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII)


def label(text: str, known: Collection[str]) -> str:
    """A label, "" where it is none that is known."""
    return text if text in known else ""


def id_of(text: str) -> str:
    """The id of a decision, a checkpoint or an item of a memory as ralf gives it, "" for another."""
    return text if _ID.fullmatch(text) else ""


def time_of(text: str) -> str:
    """An ISO 8601 time or date, "" for anything else."""
    return text if _TIME.fullmatch(text) else ""


def rule_of(rule: str) -> str:
    """How a route was chosen, without the name of a branch."""
    return BRANCH if rule.startswith(f"{BRANCH} ") else rule


# ---- hits and routes as lines, and as many of them as fit a budget of tokens ----


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


def fitting(texts: Sequence[str], max_tokens: int) -> list[str]:
    """The first texts that fit a budget with their fence; at least a part of the first."""
    left = max_tokens - FENCE_TOKENS - 20  # and the closing line
    room = CHARACTERS_PER_TOKEN * left - fence_characters()
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


# ---- what an answer takes of a client's window: the structured content as JSON, which holds the text, too ----


LEAST_TEXT = 70
"""Tokens of a text in its fence, below which it says nothing."""

Answer = TypeVar("Answer")


def within_budget(made: Callable[[int], Answer], max_tokens: int) -> Answer:
    """The answer whose whole takes at most `max_tokens` of a window; `made` makes it for so many tokens of text.

    Below about 200 tokens, where the figures and labels alone may take more, the text is within the budget.
    """
    left = max_tokens
    while True:
        found = made(left)
        over = taken(found) - max_tokens
        if over <= 0 or left <= LEAST_TEXT:
            return found
        left = max(LEAST_TEXT, left - over)


def taken(answer: Any) -> int:
    """The o200k_base tokens of an answer as clients show it."""
    return tokens.count(json.dumps(asdict(answer), ensure_ascii=False, separators=(",", ":")))
