"""A plan as plain text: its chains one below the other, with checkpoints, sync points and what became of each task."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from ralf.tasks.model import TaskState
from ralf.tasks.sequence import BY_BUDGET, BY_COUNT, BY_SYNC, BY_TASK, SETTLED, Chain, Plan
from ralf.text.cleaning import clean, one_line

WIDTH = 100
"""Columns of the widest line."""

MARKS = {"completed": "✓", "failed": "✗", "cancelled": "-", "pending": "○"}

RUNNING, GONE, WAITS = "▶", "?", "←"

_LEGEND = {
    "✓": "completed",
    "✗": "failed",
    "-": "cancelled",
    "○": "pending",
    RUNNING: "somebody is at it",
    GONE: "no such task",
    WAITS: "waits for a task of another chain",
}

_LONGEST_ID, _LONGEST_WAIT, _LONGEST_NAME = 30, 40, 60

_RULE = "──"


def draw(plan: Plan, states: Iterable[TaskState]) -> str:
    """The plan as lines of at most 100 columns."""
    known = {state.task.id: state for state in states}
    if not plan.chains:
        return "Nothing is planned.\n"
    used = set[str]()
    parts = ["".join(f"{line}\n" for line in _chain(chain, plan, known, used)) for chain in plan.chains]
    legend = " · ".join(f"{mark} {what}" for mark, what in _LEGEND.items() if mark in used)
    return "\n".join([*parts, f"{legend}\n"])


def _chain(chain: Chain, plan: Plan, known: Mapping[str, TaskState], used: set[str]) -> Iterator[str]:
    kind = "role" if chain.role else "route" if chain.route else ""
    about = f" · {_count(len(chain.tasks), 'task')}"
    if chain.tokens:
        about += f" · ~{chain.tokens:,} tokens a task{' (a guess)' if chain.guessed else ''}"
    yield _cut(f"{kind} {chain.name}" if kind else "tasks without a role or route", WIDTH - _width(about)) + about
    broad = min(max((_width(each) for each in map(_id, chain.tasks)), default=0), _LONGEST_ID)
    for number, ids in enumerate(chain.segments):
        if number:
            yield f"  {_RULE} {_checkpoint(chain.placed[number - 1], plan)} {_RULE}"
        for each in ids:
            yield _task(each, chain, plan, known, used, broad)


def _checkpoint(placed: str, plan: Plan) -> str:
    if placed == BY_SYNC:
        return "sync point"
    why = {
        BY_TASK: "the task asks for it",
        BY_COUNT: f"every {_count(plan.every or 0, 'task')}",
        BY_BUDGET: f"{plan.budget or 0:,} tokens",
    }
    return f"checkpoint: {why.get(placed) or _cut(placed, _LONGEST_NAME)}"


def _task(each: str, chain: Chain, plan: Plan, known: Mapping[str, TaskState], used: set[str], broad: int) -> str:
    state = known.get(each)
    mark = GONE
    if state is not None:
        is_running = state.claim is not None and state.task.status not in SETTLED
        mark = RUNNING if is_running else MARKS.get(state.task.status, MARKS["pending"])
    name = _cut(each, _LONGEST_ID)
    line = f"  {mark} {name}{' ' * (broad - _width(name))}"
    arrow = _arrow(state, chain, plan, known) if state is not None else ""
    used.update(filter(None, (mark, arrow and WAITS)))
    if state is not None and state.task.title:
        line += f"  {_cut(state.task.title, WIDTH - _width(line) - _width(arrow) - 2)}"
    return f"{line}{arrow}".rstrip()


def _arrow(state: TaskState, chain: Chain, plan: Plan, known: Mapping[str, TaskState]) -> str:
    """What the task waits for in other chains."""
    if state.task.status in SETTLED:
        return ""
    others = [each for each in state.task.after if (other := plan.chain(each)) is not None and other is not chain]
    waits = [each for each in others if each not in known or known[each].task.status not in SETTLED]
    if not waits:
        return ""
    more = f" +{len(waits) - 1}" if len(waits) > 1 else ""
    return f"  {WAITS} {_cut(waits[0], _LONGEST_WAIT - len(more))}{more}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _id(each: str) -> str:
    return _cut(each, _LONGEST_ID)


# ---- columns ----


def _cut(text: str, most: int) -> str:
    """The text on one line of at most so many columns, without what a terminal would obey."""
    text = one_line(clean(text[: 20 * WIDTH]))
    if len(text) * 2 <= most or _width(text) <= most:
        return text
    fits = sum(width < most for width in accumulate(map(_columns, text)))
    return text[:fits].rstrip() + "…"


def _width(text: str) -> int:
    """The columns that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
