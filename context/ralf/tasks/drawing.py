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

_Keys = Mapping[str, tuple[str, str]]


def draw(plan: Plan, states: Iterable[TaskState]) -> str:
    """The plan as lines of at most 100 columns."""
    known = {state.task.id: state for state in states}
    if not plan.chains:
        return "Nothing is planned.\n"
    keys, parts = plan.keys(), list[str]()
    for chain in plan.chains:
        parts.append("".join(f"{line}\n" for line in _chain(chain, plan, known, keys)))
    text = "\n".join(parts)
    used = {line[2:3] for line in text.splitlines()} | ({WAITS} if f"  {WAITS} " in text else set())
    legend = " · ".join(f"{mark} {what}" for mark, what in _LEGEND.items() if mark in used)
    return f"{text}\n{legend}\n"


def _chain(chain: Chain, plan: Plan, known: Mapping[str, TaskState], keys: _Keys) -> Iterator[str]:
    kind = "role" if chain.role else "route" if chain.route else ""
    about = f" · {_count(len(chain.tasks), 'task')}"
    if chain.tokens:
        about += f" · ~{chain.tokens:,} tokens a task{' (a guess)' if chain.guessed else ''}"
    yield _cut(f"{kind} {chain.name}" if kind else "tasks without a role or route", WIDTH - _width(about)) + about
    broad = max((_width(_cut(each, _LONGEST_ID)) for each in chain.tasks), default=0)
    for number, ids in enumerate(chain.segments):
        if number:
            yield f"  {_RULE} {_checkpoint(chain.placed[number - 1], plan)} {_RULE}"
        yield from (_task(each, known, keys, broad) for each in ids)


def _checkpoint(placed: str, plan: Plan) -> str:
    if placed == BY_SYNC:
        return "sync point"
    why = {
        BY_TASK: "the task asks for it",
        BY_COUNT: f"every {_count(plan.every or 0, 'task')}",
        BY_BUDGET: f"{plan.budget or 0:,} tokens",
    }
    return f"checkpoint: {why.get(placed) or _cut(placed, _LONGEST_NAME)}"


def _task(id_: str, known: Mapping[str, TaskState], keys: _Keys, broad: int) -> str:
    name, state = _cut(id_, _LONGEST_ID), known.get(id_)
    if state is None:
        return f"  {GONE} {name}"
    is_open = state.task.status not in SETTLED
    mark = RUNNING if is_open and state.claim is not None else MARKS.get(state.task.status, MARKS["pending"])
    waits = [each for each in state.task.after if is_open and keys.get(each, keys[id_]) != keys[id_]]
    waits = [each for each in waits if each not in known or known[each].task.status not in SETTLED]
    more = f" +{len(waits) - 1}" if len(waits) > 1 else ""
    arrow = f"  {WAITS} {_cut(waits[0], _LONGEST_WAIT - len(more))}{more}" if waits else ""
    line = f"  {mark} {name}{' ' * (broad - _width(name))}"
    if state.task.title:
        line += f"  {_cut(state.task.title, WIDTH - _width(line) - _width(arrow) - 2)}"
    return f"{line}{arrow}".rstrip()


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


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
