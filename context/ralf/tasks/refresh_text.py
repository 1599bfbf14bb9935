"""What a fresh agent reads first, as a value and as text within a hard budget.

In one fence stands what ralf tells it to do, in a second one what others wrote, as data.

Its task comes first; then, in an order that does not depend on the budget, what its route and the tasks before it came
to, and what comes next. The last line says how to get what was left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from ralf.model import NOT_STORED, Carried, Decision, RouteContext
from ralf.tasks.model import Attempt, Task, TaskState
from ralf.text.cleaning import (
    OWN_OUTPUT,
    clean,
    fenced as in_fence,
    is_valid,
    one_line,
    prose,
    shown,
    trimmed,
)
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.brief.filling import Budget, Piece

MAX_TOKENS = 2_500


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A task before or after another one.

    status    as its file says, or foreign: then nothing else is told
    evidence  claimed, verified, failed or stale; "" for none
    summary   what came of it, as whoever did it said
    files     of the project that were edited for it, the newest first
    """

    id: str = ""
    title: str = ""
    status: str = ""
    evidence: str = ""
    summary: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a fresh agent reads first; `render` is its text.

    agent       its name
    action      work, claim, hand-over, stop or look
    task        that it holds, or that was asked for; of one that was handed over, that it did last
    lease       the token of its claim
    before      the tasks before it, the nearest first
    decisions   in force in their routes, each with its route before its id; rules first
    handover    what the nearest of them with a new one handed over, from the route `handed_from`
    in_plan     whether the plan has the task
    next        the next tasks of its chain that are pending
    checkpoint  whether a checkpoint comes after the task itself
    holder      who holds the task, where that is somebody else
    warnings    what could not be read
    context     of its route; None for one that has nothing yet
    """

    agent: str = ""
    action: str = "work"
    task: TaskState | None = None
    lease: str = ""
    before: tuple[Neighbour, ...] = ()
    decisions: tuple[Decision, ...] = ()
    handover: Carried | None = None
    handed_from: str = ""
    in_plan: bool = False
    next: tuple[Neighbour, ...] = ()
    checkpoint: bool = False
    holder: str = ""
    warnings: tuple[str, ...] = ()
    context: RouteContext | None = field(default=None, compare=False, repr=False, metadata=NOT_STORED)
    command: str = field(default="ralf", repr=False, metadata=NOT_STORED)
    max_tokens: int = field(default=MAX_TOKENS, repr=False, metadata=NOT_STORED)

    def render(self, max_tokens: int | None = None, *, fenced: bool = True) -> str:
        """The text, at most so many o200k_base tokens and four times as many characters; "" for too few.

        fenced  in two fences, ralf's own orders and the notes of others; for a person, who reads none, without
        """
        text = composed(self, self.max_tokens if max_tokens is None else max_tokens)[0]
        lines = text.splitlines(keepends=True)
        return text if fenced else "".join(line for line in lines if not line.startswith(OWN_OUTPUT))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data, with the brief of its route, empty fields left out."""
        from ralf.document.tree import to_tree

        tree = to_tree(replace(self, task=None))
        if self.task is not None:
            path = self.task.path
            tree["task"] = to_tree(replace(self.task, path=None)) | ({"path": os.fspath(path)} if path else {})
        if brief := composed(self, self.max_tokens)[1]:
            tree["brief"] = brief
        return {"agent": self.agent, "action": self.action, "checkpoint": self.checkpoint} | tree

    @property
    def ended(self) -> list[Attempt]:
        """The attempts at the task before this one, the oldest first."""
        if self.task is None:
            return []
        now = self.task.claim.number if self.task.claim is not None else -1
        return [one for one in self.task.attempts if one.number != now and one.outcome]


# ---- within a budget ----

ORDERS = "from ralf, which runs this plan: who you are, and what to do now"
"""The label of the first fence: nothing of others' words stands in it."""

_HEADINGS = (
    "## Your task",
    "## Tasks before it, nearest first, as reported by their agents",
    "## Hand-over",
    "## Decisions in force from the tasks before it",
    "## After it",
)
_YOURS, _EARLIER, _HANDED, _CHOSEN, _LATER = range(len(_HEADINGS))

_FIRST = {_EARLIER: 1, _HANDED: 4, _CHOSEN: 6, _LATER: 3}
"""How many pieces of a section come before the others of all sections, at their shortest."""

_TITLE, _SHORT, _STATEMENT, _NOTE = 160, 240, 220, 600
"""Characters of a title, of a text that gave way, of a decision without its reasons, of a note or a warning."""

_LEAST_TEXT, _STEP = 40, 1.06  # characters of the task's text, and by how much more a longer form of it has

_BRIEF = 0.35
"""Share of the room that the task itself leaves, which the brief has for itself."""

_LEAST_BRIEF = 80  # tokens below which a brief says nothing

_WHOLE = 999  # a length beyond every one: the longest

_CLOSING = (
    "_Not all of it: `{ralf} task show {task}`, `{ralf} context show {route}`, `{ralf} task list --all`, "
    "`{ralf} serialize --draw`._\n"
)

_Levels = tuple[int, tuple[str, ...]]
"""A piece: its heading, and its text at each length, shortest first."""


def composed(found: Refresh, most: int) -> tuple[str, str]:
    """The text for at most so many o200k_base tokens, and four times as many characters, and the brief in it."""
    from ralf.brief.filling import Budget, Piece, joined  # for start-up: nothing else needs token counts

    pieces: dict[str, Piece] = {}
    for group, levels in (*_of_the_task(found), *_others(found)):
        texts = tuple(dict.fromkeys(shown(text).strip("\n") for text in levels))
        place = group, len(pieces)
        pieces[f"{group}.{place[1]}"] = Piece(place, texts, [(_HEADINGS[group], _HEADINGS[group])])
    ordered = in_fence("".join(f"{line}\n" for line in orders(found)), label=ORDERS)
    has_brief = found.context is not None and not found.context.wholly_foreign
    if not has_brief:
        for piece in pieces.values():
            piece.level = len(piece.levels) - 1
        whole = ordered + in_fence(joined(pieces.values()))
        if len(whole.encode("utf-8", "replace")) <= most:  # it fits if each byte were a token: no need to count them
            return whole, ""
        for piece in pieces.values():
            piece.level = -1
    task = found.task.task if found.task is not None else Task()
    budget, closing = (
        Budget(max(0, most)),
        _CLOSING.format(ralf=found.command, task=_id(task.id), route=_id(task.context_route)),
    )
    if not budget.take([ordered, in_fence("-"), closing]):
        return "", ""
    brief = _filled(found if has_brief else replace(found, context=None), budget, pieces)
    text = joined(pieces.values())
    text = (f"{text}\n" if text else "") + brief
    is_whole = all(piece.is_whole for piece in pieces.values()) and bool(brief) == has_brief
    return ordered + in_fence(text if is_whole else text + closing), brief


def _filled(found: Refresh, budget: Budget, pieces: dict[str, Piece]) -> str:
    """Show what there is room for: the task, then the others, but for a share that the brief has; the brief, which has
    what is left, too.
    """
    from ralf.brief.filling import fill

    keys = [[key for key, piece in pieces.items() if piece.place[0] == group] for group in range(len(_HEADINGS))]
    if not fill(budget, pieces, [(key, _WHOLE) for key in keys[_YOURS]]):
        return ""
    grants = [
        (key, _WHOLE if group == _EARLIER else 0) for group, count in _FIRST.items() for key in keys[group][:count]
    ]
    grants += [(key, level) for level in (0, 1, _WHOLE) for group in _FIRST for key in keys[group]]
    most, brief = budget.most or 0, ""
    budget.most = most - int(_BRIEF * (most - budget.tokens)) * (found.context is not None)
    fill(budget, pieces, grants)
    budget.most = most
    room = min(most - budget.tokens, most - budget.characters // 4) - 1
    if found.context is not None and room >= _LEAST_BRIEF:
        from ralf.brief.views import render

        text = render(found.context.without_foreign(), room, section="brief", fenced=False)
        brief = text if text and budget.take([text]) else ""
    fill(budget, pieces, grants)
    return brief


# ---- what ralf itself says ----

_AGENT = regex(r"[^\w.@:/+-]+")


def _agent(name: str) -> str:
    """A name of an agent, as far as nothing but a name can be read in it."""
    return trimmed(_AGENT.sub("-", clean(name)), 64).strip("-…") or "an agent"


def _id(name: str) -> str:
    """The id of a task or a route, for a line of ours; one that could say something else is not repeated."""
    return name if is_valid(name) else "ID"


def orders(found: Refresh) -> Iterator[str]:
    """What to do, a line each."""
    ralf, agent, state = found.command, _agent(found.agent), found.task or TaskState()
    task = _id(state.task.id)
    end = (
        f"`{ralf} handover {_id(state.task.context_route)} <<'EOF'` with ## Now and ## Next, then end your session. "
        "Do not claim another task: a fresh agent continues"
    )
    holder = _agent(state.claim.by) if state.claim is not None else "no one"
    if found.action == "work":
        yield from _working(found, state, task, end)
    elif found.action == "hand-over":
        yield f"# You are {agent}, at a checkpoint"
        yield f"- {task} was the last task before a checkpoint. Run {end}."
    elif found.action == "stop":
        yield f"# Stop: {agent} does not hold {task} any more"
        yield f"- Your lease has expired; {holder} holds it now. Do not change anything else, and end your session."
    elif found.action == "look" and state.is_foreign:
        yield "# A task that came with the repository"
        yield f"- No one works on it before a person has accepted it: `{ralf} context trust`."
    elif found.action == "look":
        yield f"# Task {task}"
        is_free = state.claim is None and state.task.status == "pending"
        more = f" To work on it: `{ralf} task claim {task}`." if is_free else ""
        yield f"- It is not yours: {holder} holds it.{more}"
    else:
        yield f"# You are {agent}, and hold no task"
        yield (
            f"- Claim the next one with `{ralf} task claim`, then read `{ralf} refresh` again. If none can be claimed, "
            "end your session."
        )


def _working(found: Refresh, state: TaskState, task: str, end: str) -> Iterator[str]:
    ralf, earlier = found.command, found.ended
    yield f"# You are {_agent(found.agent)}, a fresh agent on task {task}"
    known = (
        "You do not have the earlier context; the notes below summarise it."
        if found.before or earlier or found.context is not None
        else "Nothing was done before, as far as ralf knows; the notes below are complete."
    )
    yield (
        f'- {known} Your work is what they say under "Your task", and nothing else; the rest is background. '
        "Keep to the decisions in force."
    )
    if earlier:
        yield (
            f"- This is attempt {len(earlier) + 1}; the previous one ended: {_agent(earlier[-1].outcome)}. Its work "
            "may be incomplete: check the files (`git status`, `git diff`) before you change anything, and continue "
            "from there."
        )
    yield f'- Report progress as you go; if you are stopped, the next agent reads it: `{ralf} task progress "TEXT"`'
    checked = "the `verify:` command must pass" if state.task.verify.strip() else "run the tests after your last edit"
    yield f'- When it is done ({checked}): `{ralf} task done "RESULT, AND WHAT LATER TASKS MUST KNOW"`'
    yield f'- If it cannot be done: `{ralf} task fail "WHY"`'
    if found.checkpoint:
        yield f"- After that comes a checkpoint: run {end}."
    elif found.in_plan and not found.next:
        yield "- It is the last task of its chain: after that, end your session."
    else:
        yield f"- After that, claim the next task with `{ralf} task claim` and read `{ralf} refresh`."


# ---- what others said ----


def _of_the_task(found: Refresh) -> Iterator[_Levels]:
    """What is to be known of the task, what matters most first."""
    state = found.task
    if state is None:
        return
    task, name = state.task, trimmed(one_line(clean(state.task.id)), 64)
    if state.is_foreign:
        yield _YOURS, (f"- {name} (import): came with the repository, and is not shown",)
        return
    title = one_line(clean(task.title))
    more = [
        f"{key} {one_line(value)}" for key, value in (("role", task.role), ("written by", task.created_by)) if value
    ]
    more += [task.status] if task.status != "pending" else []
    about = trimmed(f" ({'; '.join(more)})", _SHORT) if more else ""
    yield _YOURS, (f"- {name}", f"- {name}: {trimmed(title, _TITLE)}", f"- {name}: {title}{about}")
    if text := clean(task.text).strip():
        lengths = [_LEAST_TEXT]
        while lengths[-1] < min(len(text), 4 * found.max_tokens):
            lengths.append(int(lengths[-1] * _STEP) + 1)
        forms = [*(trimmed(text, length) for length in lengths), text]
        yield _YOURS, tuple("\n".join(f"> {line}" for line in form.split("\n")) for form in forms)
    if command := one_line(clean(task.verify)):
        yield _YOURS, (f"- verify: `{trimmed(command, _TITLE)}`", f"- verify: `{command}`")
    if (proof := state.evidence) is not None and proof.state == "failed":
        how = "it took too long" if proof.exit_status is None else f"exit status {proof.exit_status}"
        head = f"- refused as done, {_time(proof.at)}: `{trimmed(one_line(clean(proof.command)), _TITLE)}`: {how}"
        yield _YOURS, (head, f"{head}: {prose(clean(proof.output))[-_NOTE:]}")
    if said := prose(clean(state.progress)):
        when = f", {_time(state.progress_at)}" if state.progress_at else ""
        yield _YOURS, (f"- progress: {trimmed(said, _SHORT)}", f"- progress{when}: {said}")
    for attempt in reversed(found.ended):
        when = " to ".join(filter(None, (_time(attempt.began), _time(attempt.ended))))
        head = f"- earlier attempt, by {_agent(attempt.by)}{f', {when}' if when else ''}: {_agent(attempt.outcome)}"
        yield _YOURS, (head, f"{head}: {trimmed(prose(clean(attempt.note)), _NOTE)}" if attempt.note else head)
    if found.context is None:
        yield _YOURS, ("- its route has no notes yet: none of its sessions was checkpointed",)
    elif found.context.wholly_foreign:
        yield _YOURS, ("- the notes of its route came with the repository, and are not shown (import)",)
    for warning in found.warnings:
        yield _YOURS, (f"- warning: {trimmed(one_line(clean(warning)), _NOTE)}",)


def _others(found: Refresh) -> Iterator[_Levels]:
    """What is to be known beside the task and the brief of its route."""
    for one in found.before:
        how = ", ".join(filter(None, (one.status, one.evidence if one.evidence != "claimed" else "not verified")))
        head = f"- {_named(one)} ({how})"
        files = f"; edited: {', '.join(one_line(clean(name)) for name in one.files)}" if one.files else ""
        said = prose(clean(one.summary)) or "no summary"
        yield (
            _EARLIER,
            (head,)
            if one.status == "foreign"
            else (head, f"{head}: {trimmed(said, _SHORT)}", f"{head}: {said}{files}"),
        )
    if found.handover is not None or found.decisions:
        from ralf.brief import wording
    if found.handover is not None and found.handover.last is not None:
        by = one_line(wording.handed_over_by(found.handover.last)).removeprefix("Hand-over, ")
        yield _HANDED, (f"- from {_id(found.handed_from)}, {by}",)
        for line in wording.handover_lines(found.handover):
            yield _HANDED, (line,)
    for item in found.decisions:
        item = replace(item, id=item.id if item.kind == "decision" else f"{item.id} {item.kind}")
        yield _CHOSEN, (wording.statement(item, _STATEMENT), clean(wording.decision(item)))
    for coming in found.next:
        yield _LATER, (f"- {_named(coming)}",)


def _time(text: str) -> str:
    """A time to the minute."""
    text = one_line(clean(text))
    return f"{text[:16]}Z" if text.endswith("Z") and len(text) > 17 else text[:32]


def _named(one: Neighbour) -> str:
    name = trimmed(one_line(clean(one.id)), 64)
    return f"{name}: {trimmed(one_line(clean(one.title)), _TITLE)}" if one.status != "foreign" else name
