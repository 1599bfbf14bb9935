"""A plan as plain text: its chains one below the other, with checkpoints, sync points and what became of each task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ralf.tasks.model import TaskState
from ralf.tasks.sequence import BY_SYNC, SETTLED, Chain, Plan
from ralf.text.cleaning import clean, one_line, trimmed

_MARKS = {"completed": "✓", "failed": "✗", "cancelled": "-", "pending": "○", "": "?"}

_CLAIMED = "▶"

_ID, _TEXT = 40, 60  # characters of an id, of a title or name


def draw(plan: Plan, states: Iterable[TaskState]) -> str:
    """The plan, a line for each task and checkpoint; a task that waits for another chain says for which."""
    known = {state.task.id: state for state in states}
    keys = plan.keys()
    parts = ["\n".join([*_chain(chain, known, keys), ""]) for chain in plan.chains]
    return "\n".join(parts) or "Nothing is planned.\n"


def _chain(chain: Chain, known: Mapping[str, TaskState], keys: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    kind = f"{'role' if chain.role else 'route'} {_shown(chain.name, _TEXT)}"
    count = len(chain.tasks)
    yield f"{kind if chain.name else 'tasks without a role or route'} · {count:,} task{'s' * (count != 1)}"
    width = max(len(_shown(id_, _ID)) for id_ in chain.tasks)
    for who, ids in zip(("", *chain.placed), chain.segments, strict=True):
        if who:
            yield f"  ── {'sync point' if who == BY_SYNC else f'checkpoint: {_shown(who, _TEXT)}'} ──"
        for id_ in ids:
            state = known.get(id_, TaskState())
            status = state.task.status if id_ in known else ""
            mark = _CLAIMED if state.claim is not None and status not in SETTLED else _MARKS[status]
            others = [on for on in state.task.after if keys.get(on, chain.key) != chain.key]
            waits = f"  ← {_shown(', '.join(others), _TEXT)}" if others and status not in SETTLED else ""
            yield f"  {mark} {_shown(id_, _ID):{width}}  {_shown(state.task.title, _TEXT)}{waits}".rstrip()


def _shown(text: str, most: int) -> str:
    return trimmed(one_line(clean(text)), most)
