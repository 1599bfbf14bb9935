"""What a fresh agent reads first, as a value and as text within a hard budget.

In one fence stands what ralf tells it to do, in a second one what others wrote, as data.

Its task comes first; then, in an order that does not depend on the budget, what its route and the tasks before it came
to, and what comes next. What was left out is counted at the end, with the command that shows it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from ralf.model import NOT_STORED, Carried, Decision, RouteContext
from ralf.tasks.model import Attempt, TaskState
from ralf.text.cleaning import (
    FENCE_TOKENS,
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
class Before:
    """A task that comes before: in its chain, or it depends on it.

    status     completed, or how it stands
    evidence   claimed, verified, failed or stale; "" for none
    summary    what came of it, as whoever did it said
    decisions  that are in force in its route
    handover   what its agent wrote for the next one, where it is new
    files      of the project that were edited for it, the newest first
    """

    id: str = ""
    title: str = ""
    status: str = ""
    finished: str = ""
    evidence: str = ""
    summary: str = ""
    route: str = ""
    decisions: tuple[Decision, ...] = ()
    handover: Carried | None = None
    files: tuple[str, ...] = ()
    is_foreign: bool = field(default=False, metadata=NOT_STORED)


@dataclass(frozen=True, slots=True)
class Next:
    """A task that comes after this one in its chain."""

    id: str = ""
    title: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a fresh agent reads first; `render` is its text.

    agent       its name
    action      work, claim, wait, hand-over, stop, look or end
    task        that it holds, or that was asked for; of one that was handed over, that it did last
    lease       the token of its claim
    brief       of the task's route, as it has room in the text
    before      the tasks before it, the nearest first; `more_before`: how many there are beyond
    unread      routes of `before` whose decisions were not read
    next        the tasks after it up to the next checkpoint; `more_next`: how many more of them there are
    checkpoint  whether a checkpoint comes after the task itself
    after_checkpoint  the first task after the next checkpoint, None where there is none
    chain       the name of its chain in the plan, its role or route; it is task `position` of `length` there, 0 of 0
                without a plan
    pending     how many tasks are pending; told where it holds none, and so is `ready`
    holder      who holds the task, where that is somebody else
    warnings    what could not be read
    made        the text for `max_tokens`, where it was made with the brief
    """

    agent: str = ""
    action: str = "work"
    task: TaskState | None = None
    lease: str = ""
    brief: str = ""
    before: tuple[Before, ...] = ()
    more_before: int = 0
    unread: tuple[str, ...] = ()
    next: tuple[Next, ...] = ()
    more_next: int = 0
    checkpoint: bool = False
    after_checkpoint: Next | None = None
    chain: str = ""
    position: int = 0
    length: int = 0
    pending: int = 0
    ready: tuple[Next, ...] = ()
    holder: str = ""
    warnings: tuple[str, ...] = ()
    context: RouteContext | None = field(default=None, compare=False, repr=False, metadata=NOT_STORED)
    command: str = field(default="ralf", repr=False, metadata=NOT_STORED)
    max_tokens: int = field(default=MAX_TOKENS, repr=False, metadata=NOT_STORED)
    made: str = field(default="", compare=False, repr=False, metadata=NOT_STORED)

    def render(self, max_tokens: int | None = None, *, fenced: bool = True) -> str:
        """The text, at most so many o200k_base tokens and four times as many characters.

        fenced  in two fences, ralf's own orders and the notes of others; for a person, who reads none, without
        """
        wanted = self.max_tokens if max_tokens is None else max_tokens
        text = self.made if self.made and wanted == self.max_tokens else composed(self, wanted).text
        lines = text.splitlines(keepends=True)
        return text if fenced else "".join(line for line in lines if not line.startswith(OWN_OUTPUT))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data, empty fields left out."""
        from ralf.document.tree import to_tree

        tree = to_tree(replace(self, task=None))
        if self.task is not None:
            path = self.task.path
            tree["task"] = to_tree(replace(self.task, path=None)) | ({"path": os.fspath(path)} if path else {})
        return {"agent": self.agent, "action": self.action, "checkpoint": self.checkpoint} | tree

    @property
    def ended(self) -> list[Attempt]:
        """The attempts at the task before this one, the oldest first."""
        if self.task is None:
            return []
        now = self.task.claim.number if self.task.claim is not None else -1
        return [one for one in self.task.attempts if one.number != now and one.outcome]


# ---- within a budget ----


class Composed(NamedTuple):
    """The text, and the brief in it."""

    text: str = ""
    brief: str = ""


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

_TITLE, _SHORT, _STATEMENT, _LINE, _NOTE = 160, 240, 220, 400, 600
"""Characters of a title, of a summary that gave way, of a decision without its reasons, of a warning, of a note."""

_MOST_WARNINGS, _MOST_FILES, _OWN_FILES = 3, 8, 3  # files: names on a line, and of how many of the nearest tasks

_LEAST_TEXT, _STEP = 40, 1.06  # characters of the task's text, and by how much more a longer form of it has

_BRIEF = 0.35
"""Share of the room that the task itself leaves, which the brief has for itself."""

_LEAST_BRIEF = 80  # tokens below which a brief says nothing

_WHOLE = 999  # a length beyond every one: the longest

_ALL = slice(None)

_ORDER = (
    ("report", slice(1), _WHOLE), ("hand-over line", slice(4), 0), ("decision", slice(6), 0),
    ("coming task", slice(3), 0), ("report", slice(4), 0), ("hand-over line", _ALL, 0), ("decision", _ALL, 0),
    ("report", _ALL, 0), ("coming task", _ALL, 0), ("report", _ALL, 1), ("decision", _ALL, 1), ("report", _ALL, 2),
    ("files", _ALL, 0),
)  # fmt: skip
"""Beside the task: what is shown, which of it, and at which length; most needed first."""

_HOW = (
    (("text", "attempt"), "task show {task}"),
    (("report",), "task show ID"),
    (("earlier task",), "task list --status completed"),
    (("hand-over line", "decision", "unread route"), "context show ROUTE"),
    (("brief of its route",), "context show {route} --brief"),
    (("coming task",), "serialize --draw"),
)
"""What can be left out or shortened, and the command that shows it."""

_Levels = tuple[str, int, tuple[str, ...]]
"""A piece: what it is called where it is left out, its heading, and its text at each length, shortest first."""


def composed(found: Refresh, most: int) -> Composed:
    """The text for at most so many o200k_base tokens, and four times as many characters; "" for too few."""
    from ralf.brief.filling import Budget  # for start-up: nothing else needs token counts

    most = max(0, most)
    lines = [*orders(found)]
    ordered = in_fence("".join(long for long, _ in lines), label=ORDERS)
    own, others = _numbered(_of_the_task(found)), _numbered(_others(found))
    if found.context is None and not (found.more_before or found.unread or found.more_next):
        for piece in (*own.values(), *others.values()):
            piece.level = len(piece.levels) - 1
        whole = ordered + in_fence(_joined(own, others))
        if len(whole.encode("utf-8", "replace")) <= most:  # it fits if each byte were a token: no need to count them
            return Composed(whole)
        for piece in (*own.values(), *others.values()):
            piece.level = -1
    budget = Budget(most)
    if not Budget(most // 2).take([ordered]):
        ordered = in_fence("".join(short for _, short in lines), label=ORDERS)
    if not budget.take([ordered]):
        return Composed()
    is_short = (most - budget.tokens) // 3 < FENCE_TOKENS
    closing = _closing(found, Counter({noun: 99_999 for nouns, _ in _HOW for noun in nouns}))
    if not Budget((most - budget.tokens) // 4).take([closing]):
        closing = _cut(found)
    if not budget.take([in_fence("-", short=is_short), closing]):
        return Composed(ordered)
    brief = _filled(found, budget, own, others)
    left = _left_out(found, own, others, brief)
    text = _joined(own, others) + brief
    if left:
        text += closing if closing == _cut(found) else _closing(found, left)
    return Composed(ordered + in_fence(text, short=is_short), brief)


def _numbered(found: Iterator[_Levels]) -> dict[str, Piece]:
    """Pieces in their order, called by what they are and their number."""
    from ralf.brief.filling import Piece

    pieces: dict[str, Piece] = {}
    count = Counter[str]()
    for noun, group, levels in found:
        texts = tuple(dict.fromkeys(shown(text).strip("\n") for text in levels))
        pieces[f"{noun}.{count[noun]}"] = Piece((group, len(pieces)), texts, [(_HEADINGS[group], _HEADINGS[group])])
        count[noun] += 1
    return pieces


def _joined(*groups: dict[str, Piece]) -> str:
    from ralf.brief.filling import joined

    text = joined(chain.from_iterable(pieces.values() for pieces in groups))
    return f"{text}\n" if text else ""


def _filled(found: Refresh, budget: Budget, own: dict[str, Piece], others: dict[str, Piece]) -> str:
    """Show what there is room for: the task, then the others, but for a share that the brief has; the brief, which has
    what is left, too.
    """
    from ralf.brief.filling import fill

    if not fill(budget, own, [(key, _WHOLE) for key in own]):
        return ""
    kinds: dict[str, list[str]] = {}
    for key in others:
        kinds.setdefault(key.partition(".")[0], []).append(key)
    grants = [(key, level) for kind, which, level in _ORDER for key in kinds.get(kind, [])[which]]
    most, context, brief = budget.most or 0, found.context, ""
    has_brief = context is not None and not context.wholly_foreign
    budget.most = most - int(_BRIEF * (most - budget.tokens)) * has_brief
    fill(budget, others, grants)
    budget.most = most
    room = min(most - budget.tokens, most - budget.characters // 4) - 1
    if context is not None and has_brief and room >= _LEAST_BRIEF:
        from ralf.brief.views import render

        text = render(context.without_foreign(), room, section="brief", fenced=False)
        brief = text if text and budget.take([text]) else ""
    fill(budget, others, grants)
    return brief


def _left_out(found: Refresh, own: dict[str, Piece], others: dict[str, Piece], brief: str) -> Counter[str]:
    left = Counter(key.partition(".")[0] for key, piece in (*own.items(), *others.items()) if not piece.is_whole)
    left["earlier task"], left["unread route"] = found.more_before, len(found.unread)
    left["coming task"] += found.more_next
    left["brief of its route"] = int(not brief and found.context is not None and not found.context.wholly_foreign)
    known = {noun for nouns, _ in _HOW for noun in nouns}
    return Counter({noun: count for noun, count in left.items() if count and noun in known})


def _closing(found: Refresh, left: Counter[str]) -> str:
    """What was left out or shortened, and how to get it."""
    parts = []
    for nouns, how in _HOW:
        told = [f"{left[noun]} {noun}{'s' * (left[noun] > 1)}" for noun in nouns if left[noun]]
        if told:
            command = how.format(task=_task_id(found), route=_route_id(found))
            parts.append(f"{', '.join(told)} (`{found.command} {command}`)")
    return f"_Left out or cut: {'; '.join(parts)}._\n"


def _cut(found: Refresh) -> str:
    return f"_(cut: `{found.command} task show {_task_id(found)}`)_\n"


# ---- what ralf itself says ----

_AGENT = regex(r"[^\w.@:/+-]+")

_OUTCOME = regex(r"[a-z][a-z-]{0,20}")


def _agent(name: str) -> str:
    """A name of an agent, as far as nothing but a name can be read in it."""
    return trimmed(_AGENT.sub("-", clean(name)), 64).strip("-…") or "an agent"


def _id(name: str) -> str:
    """The id of a task or a route, for a line of ours; one that could say something else is not repeated."""
    return name if is_valid(name) else "ID"


def _task_id(found: Refresh) -> str:
    return _id(found.task.task.id) if found.task is not None else "ID"


def _route_id(found: Refresh) -> str:
    return _id(found.task.task.context_route) if found.task is not None else "ROUTE"


def _outcome(attempt: Attempt) -> str:
    return attempt.outcome if _OUTCOME.fullmatch(attempt.outcome) else "unknown"


def orders(found: Refresh) -> Iterator[tuple[str, str]]:
    """What to do, a line each, in its long and its short form."""
    ralf, agent, task, state = found.command, _agent(found.agent), _task_id(found), found.task
    handover = f"{ralf} handover {_route_id(found)} <<'EOF'"
    end = (
        f"`{handover}` with ## Now and ## Next, then end your session. Do not claim another task: a fresh agent "
        "continues"
    )
    holder = state.claim.by if state is not None and state.claim is not None else ""
    pending = f"{found.pending:,} task{'s are' if found.pending != 1 else ' is'} pending"
    none = (f"# You are {agent}, and hold no task\n", f"# {agent}: no task\n")
    if found.action == "work" and state is not None:
        yield from _working(found, state, agent, end)
    elif found.action == "hand-over":
        yield f"# You are {agent}, at a checkpoint\n", f"# {agent}: checkpoint\n"
        yield f"- {task} was the last task before a checkpoint. Run {end}.\n", f"- `{handover}`, then end\n"
    elif found.action == "stop":
        held = f"; {_agent(holder)} holds it now" if holder else ""
        yield f"# Stop: {agent} does not hold {task} any more\n", f"# Stop: {task} is not yours\n"
        yield f"- Your lease has expired{held}. Do not change anything else, and end your session.\n", "- end\n"
    elif found.action == "look" and state is not None and state.is_foreign:
        yield "# A task that came with the repository\n", "# A foreign task\n"
        yield f"- No one works on it before a person has accepted it: `{ralf} task trust`.\n", "- not accepted\n"
    elif found.action == "look":
        held = f"{_agent(found.holder)} holds it" if found.holder else "no one holds it"
        is_free = not found.holder and state is not None and state.task.status == "pending"
        more = f" To work on it: `{ralf} task claim {task}`." if is_free else ""
        yield f"# Task {task}\n", f"# {task}\n"
        yield f"- It is not yours: {held}.{more}\n", f"- {held}\n"
    elif found.action == "claim":
        yield none
        yield (
            f"- {pending}. Claim the next one with `{ralf} task claim`, then read `{ralf} refresh` again.\n",
            f"- `{ralf} task claim`, `{ralf} refresh`\n",
        )
    elif found.action == "wait":
        yield none
        yield (
            f"- {pending}, and none can be claimed now: others hold them, or they are blocked "
            f"(`{ralf} task list`). End your session.\n",
            "- nothing is ready: end\n",
        )
    else:
        yield none
        yield "- No task is pending: end your session.\n", "- nothing is pending: end\n"


def _working(found: Refresh, state: TaskState, agent: str, end: str) -> Iterator[tuple[str, str]]:
    ralf, task, earlier = found.command, _task_id(found), found.ended
    which = f" ({found.position:,} of {found.length:,} in its chain)" if found.position else ""
    yield f"# You are {agent}, a fresh agent on task {task}{which}\n", f"# {agent}: {task}\n"
    has_more = found.before or found.more_before or earlier or found.context is not None
    known = (
        "You do not have the earlier context; the notes below summarise it."
        if has_more
        else "Nothing was done before, as far as ralf knows; the notes below are complete."
    )
    yield (
        f'- {known} Your work is what they say under "Your task", and nothing else; the rest is background. '
        "Keep to the decisions in force.\n",
        "",
    )
    if earlier:
        number, outcome = len(earlier) + 1, _outcome(earlier[-1])
        yield (
            f"- This is attempt {number}; the previous one ended: {outcome}. Its work may be incomplete: check the "
            "files (`git status`, `git diff`) before you change anything, and continue from there.\n",
            f"- attempt {number}; the previous one: {outcome}\n",
        )
    yield (
        f'- Report progress as you go; if you are stopped, the next agent reads it: `{ralf} task progress "TEXT"`\n',
        f'- `{ralf} task progress "TEXT"`\n',
    )
    checked = "the `verify:` command must pass" if state.task.verify.strip() else "run the tests after your last edit"
    yield (
        f'- When it is done ({checked}): `{ralf} task done "RESULT, AND WHAT LATER TASKS MUST KNOW"`\n',
        f'- `{ralf} task done "SUMMARY"`\n',
    )
    yield f'- If it cannot be done: `{ralf} task fail "WHY"`\n', f'- `{ralf} task fail "WHY"`\n'
    if found.checkpoint:
        yield f"- After that comes a checkpoint: run {end}.\n", "- then hand over and end\n"
    elif found.position and not found.next and not found.more_next:
        yield "- It is the last task of its chain: after that, end your session.\n", "- then end\n"
    else:
        later = "; the checkpoint comes later" if found.after_checkpoint is not None else ""
        yield (
            f"- After that, claim the next task with `{ralf} task claim` and read `{ralf} refresh`{later}.\n",
            f"- then `{ralf} task claim`\n",
        )


# ---- what others said ----


def _of_the_task(found: Refresh) -> Iterator[_Levels]:
    """What is to be known of the task, what matters most first."""
    state = found.task
    if state is None:
        return
    task, name = state.task, trimmed(one_line(clean(state.task.id)), 64)
    if state.is_foreign:
        yield "", _YOURS, (f"- {name} (import): came with the repository, and is not shown",)
        return
    title = one_line(clean(task.title))
    more = [f"role {one_line(task.role)}"] if task.role else []
    more += [f"tags {', '.join(map(one_line, task.tags))}"] if task.tags else []
    more += [f"written by {one_line(task.created_by)}"] if task.created_by else []
    more += [task.status] if task.status != "pending" else []
    about = trimmed(f" ({'; '.join(more)})", _SHORT) if more else ""
    yield "", _YOURS, (f"- {name}", f"- {name}: {trimmed(title, _TITLE)}", f"- {name}: {title}{about}")
    if text := clean(task.text).strip():
        lengths = [float(_LEAST_TEXT)]
        while (length := lengths[-1] * _STEP) < min(len(text), 4 * found.max_tokens):
            lengths.append(length)
        forms = [trimmed(text, int(length)) for length in lengths] + [text]
        yield "text", _YOURS, tuple("\n".join(f"> {line}" for line in form.split("\n")) for form in forms)
    if command := one_line(clean(task.verify)):
        yield "", _YOURS, (f"- verify: `{trimmed(command, _TITLE)}`", f"- verify: `{command}`")
    if (proof := state.evidence) is not None and proof.state == "failed":
        how = "it took too long" if proof.exit_status is None else f"exit status {proof.exit_status}"
        head = f"- refused as done, {_time(proof.at)}: `{trimmed(one_line(clean(proof.command)), _TITLE)}`: {how}"
        output = prose(clean(proof.output))[-_NOTE:]
        yield "", _YOURS, (head, f"{head}: {output}") if output else (head,)
    if said := prose(clean(state.progress)):
        when = f", {_time(state.progress_at)}" if state.progress_at else ""
        yield "", _YOURS, (f"- progress: {trimmed(said, _SHORT)}", f"- progress{when}: {said}")
    for number, attempt in enumerate(reversed(found.ended)):
        when = " to ".join(filter(None, (_time(attempt.began), _time(attempt.ended))))
        head = f"- earlier attempt, by {_agent(attempt.by)}{f', {when}' if when else ''}: {_outcome(attempt)}"
        note = trimmed(prose(clean(attempt.note)), _SHORT if number else _NOTE)
        yield "attempt", _YOURS, (head, f"{head}: {note}") if note else (head,)
    if found.context is None:
        yield "", _YOURS, ("- its route has no notes yet: none of its sessions was checkpointed",)
    elif found.context.wholly_foreign:
        yield "", _YOURS, ("- the notes of its route came with the repository, and are not shown (import)",)
    for warning in found.warnings[:_MOST_WARNINGS]:
        yield "", _YOURS, (f"- warning: {trimmed(one_line(clean(warning)), _LINE)}",)


def _others(found: Refresh) -> Iterator[_Levels]:
    """What is to be known beside the task and the brief of its route."""
    for one in found.before:
        yield "report", _EARLIER, _report(one)
    for one in found.before[:_OWN_FILES]:
        if one.files:
            names = ", ".join(one_line(clean(name)) for name in one.files[:_MOST_FILES])
            rest = len(one.files) - _MOST_FILES
            more = f" and {rest} more" if rest > 0 else ""
            yield "files", _EARLIER, (f"- files edited for {_id(one.id)}: {names}{more}",)
    yield from _handed(found)
    yield from _decided(found)
    if found.task is None and not found.ready:
        return
    for coming in found.next:
        yield "coming task", _LATER, (f"- {_named(coming)}",)
    if found.task is not None and (found.next or found.checkpoint) and found.after_checkpoint is not None:
        yield "coming task", _LATER, (f"- then a checkpoint; after it: {_named(found.after_checkpoint)}",)
    for coming in found.ready:
        yield "coming task", _LATER, (f"- ready: {_named(coming)}",)


def _report(one: Before) -> tuple[str, ...]:
    """What a task before came to: its title alone, shortened, and whole."""
    name = trimmed(one_line(clean(one.id)), 64)
    if one.is_foreign:
        return (f"- {name} (import): came with the repository, and is not shown",)
    how = ", ".join(filter(None, (one.status, one.evidence if one.evidence != "claimed" else "not verified")))
    said = prose(clean(one.summary)) or "no summary"
    head = f"- {name}: {trimmed(one_line(clean(one.title)), _TITLE)} ({how})"
    return head, f"{head}: {trimmed(said, _SHORT)}", f"{head}: {said}"


def _handed(found: Refresh) -> Iterator[_Levels]:
    """The hand-over of the nearest task with one, where it is of another route: else the brief tells it."""
    own = found.context.route if found.context is not None else found.task.task.context_route if found.task else ""
    one = next((one for one in found.before if one.handover and one.route != own), None)
    if one is None or one.handover is None:
        return
    from ralf.brief.wording import handed_over_by, handover_lines

    by = one_line(handed_over_by(one.handover.last)).removeprefix("Hand-over, ") if one.handover.last else ""
    for number, line in enumerate(handover_lines(one.handover)):
        yield "hand-over line", _HANDED, (f"- from {_id(one.id)}, {by}\n{line}" if number == 0 else line,)


def _decided(found: Refresh) -> Iterator[_Levels]:
    """The decisions in force in the routes before, without their reasons and with them, each once; rules first. Those
    of the task's own route stand in its brief.
    """
    seen = {prose(item.decision).casefold() for item in (found.context.active_decisions if found.context else ())}
    items: list[tuple[str, Decision]] = []
    for one in found.before:
        for item in reversed(one.decisions):
            said = prose(item.decision).casefold()
            if said and said not in seen:
                seen.add(said)
                items.append((one.route, item))
    if items:
        from ralf.brief import wording
    for route, item in sorted(items, key=lambda one: not (one[1].pinned or one[1].kind == "rule")):
        kind = {"rule": "rule ", "failed-approach": "failed approach "}.get(item.kind, "")
        head = f"- {trimmed(one_line(clean(route)), 64)} {kind}"
        short, whole = wording.statement(item, _STATEMENT), clean(wording.decision(item))
        yield "decision", _CHOSEN, (head + short.removeprefix("- "), head + whole.removeprefix("- "))


def _time(text: str) -> str:
    """A time to the minute."""
    text = one_line(clean(text))
    return f"{text[:16]}Z" if text.endswith("Z") and len(text) > 17 else text[:32]


def _named(one: Next) -> str:
    return f"{trimmed(one_line(clean(one.id)), 64)}: {trimmed(one_line(clean(one.title)), _TITLE)}"
