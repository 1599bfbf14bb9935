"""What a fresh agent is told, and its words: what ralf tells it to do, and what others said, each in its forms."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ralf.model import NOT_STORED, Carried, Decision, RouteContext
from ralf.tasks.model import Attempt, TaskState
from ralf.text.cleaning import clean, is_valid, one_line, prose, shown, trimmed
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

MAX_TOKENS = 2_500


# ---- what there is to tell ----


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

    if TYPE_CHECKING:  # bound by `ralf.tasks.refresh`: how it is fitted into a budget is for a higher module to say

        def render(self, max_tokens: int | None = None, *, fenced: bool = True) -> str:
            """The text, at most so many o200k_base tokens and four times as many characters; see `refresh_text`.

            fenced  in two fences, ralf's own orders and the notes of others; for a person, who reads none, without
            """

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data, empty fields left out."""
        from ralf.format.codec import to_tree

        tree = to_tree(replace(self, task=None))
        if self.task is not None:
            path = self.task.path
            tree["task"] = to_tree(replace(self.task, path=None)) | ({"path": os.fspath(path)} if path else {})
        return {"agent": self.agent, "action": self.action, "checkpoint": self.checkpoint} | tree


# ---- forms ----

TITLE, SHORT, STATEMENT, LINE, NOTE = 160, 240, 220, 400, 600
"""Characters of a title, of a summary that gave way, of a decision without its reasons, of a warning, of a note."""

_MOST_FILES = 8  # names on a line

_OWN_FILES = 3  # of the nearest tasks the edited files are told


class Piece(NamedTuple):
    """A part of the text: its forms, the longest first, under a heading; what it is called where it is left out."""

    forms: tuple[str, ...]
    group: str
    noun: str = ""


# ---- what ralf itself says ----

_AGENT = regex(r"[^\w.@:/+-]+")

_WORD = regex(r"[a-z][a-z-]{0,20}")


def agent_name(name: str) -> str:
    """A name of an agent, as far as nothing but a name can be read in it."""
    return trimmed(_AGENT.sub("-", clean(name)), 64).strip("-…") or "an agent"


def id_of(name: str) -> str:
    """The id of a task or a route, for a line of ours; one that could say something else is not repeated."""
    return name if is_valid(name) else "ID"


def orders(found: Refresh) -> Iterator[tuple[str, str]]:
    """What to do, a line each, in its long and its short form."""
    ralf, agent = found.command, agent_name(found.agent)
    task = id_of(found.task.task.id) if found.task is not None else ""
    route = id_of(found.task.task.context_route) if found.task is not None else ""
    state = f"{ralf} handover {route} <<'EOF'"
    end = (
        f"`{state}` with ## Now and ## Next, then end your session. Do not claim another task: a fresh agent continues"
    )
    if found.action == "work" and found.task is not None:
        yield from _working(found, agent, task, end)
    elif found.action == "hand-over":
        yield f"# You are {agent}, at a checkpoint\n", f"# {agent}: checkpoint\n"
        yield f"- {task} was the last task before a checkpoint. Run {end}.\n", f"- `{state}`, then end\n"
    elif found.action == "stop":
        held = f"; {agent_name(found.task.claim.by)} holds it now" if found.task and found.task.claim else ""
        yield f"# Stop: {agent} does not hold {task} any more\n", f"# Stop: {task} is not yours\n"
        yield f"- Your lease has expired{held}. Do not change anything else, and end your session.\n", "- end\n"
    elif found.action == "look":
        held = f"{agent_name(found.holder)} holds it" if found.holder else "no one holds it"
        if found.task is not None and found.task.is_foreign:
            yield "# A task that came with the repository\n", "# A foreign task\n"
            yield f"- No one works on it before a person has accepted it: `{ralf} task trust`.\n", "- not accepted\n"
            return
        yield f"# Task {task}\n", f"# {task}\n"
        if not found.holder and found.task is not None and found.task.task.status == "pending":
            yield f"- It is not yours: {held}. To work on it: `{ralf} task claim {task}`.\n", f"- {held}\n"
        else:
            yield f"- It is not yours: {held}.\n", f"- {held}\n"
    else:
        yield f"# You are {agent}, and hold no task\n", f"# {agent}: no task\n"
        pending = f"{found.pending:,} task{'s are' if found.pending != 1 else ' is'} pending"
        if found.action == "claim":
            yield (
                f"- {pending}. Claim the next one with `{ralf} task claim`, then read `{ralf} refresh` again.\n",
                f"- `{ralf} task claim`, `{ralf} refresh`\n",
            )
        elif found.action == "wait":
            yield (
                f"- {pending}, and none can be claimed now: others hold them, or they are blocked "
                f"(`{ralf} task list`). End your session.\n",
                "- nothing is ready: end\n",
            )
        else:
            yield "- No task is pending: end your session.\n", "- nothing is pending: end\n"


def _working(found: Refresh, agent: str, task: str, end: str) -> Iterator[tuple[str, str]]:
    ralf, state = found.command, found.task
    if state is None:
        return
    which = f" ({found.position:,} of {found.length:,} in its chain)" if found.position else ""
    yield f"# You are {agent}, a fresh agent on task {task}{which}\n", f"# {agent}: {task}\n"
    yield (
        f'- {_known(found)} Your work is what they say under "Your task", and nothing else; the rest is background. '
        "Keep to the decisions in force.\n",
        "",
    )
    if earlier := _ended(found):
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


def _known(found: Refresh) -> str:
    if found.before or found.more_before or _ended(found) or found.context is not None:
        return "You do not have the earlier context; the notes below summarise it."
    return "Nothing was done before, as far as ralf knows; the notes below are complete."


def _ended(found: Refresh) -> list[Attempt]:
    """The attempts at the task before this one, the oldest first."""
    state = found.task
    if state is None:
        return []
    now = state.claim.number if state.claim is not None else -1
    return [one for one in state.attempts if one.number != now and one.outcome]


def _outcome(attempt: Attempt) -> str:
    return attempt.outcome if _WORD.fullmatch(attempt.outcome) else "unknown"


# ---- what others said ----

YOURS, EARLIER, HANDED, CHOSEN, LATER = GROUPS = (
    "Your task",
    "Tasks before it, nearest first, as reported by their agents",
    "Hand-over",
    "Decisions in force from the tasks before it",
    "After it",
)
"""The headings, in the order of the text."""


def heading(group: str) -> str:
    """The line above the pieces of a group."""
    return f"## {group}\n"


def quoted(text: str) -> str:
    """A text of several lines as a quotation."""
    return shown("".join(f"> {line}\n" for line in text.strip().split("\n")))


def forms_of(*texts: str) -> tuple[str, ...]:
    """The forms of a piece, safe to be shown, each once."""
    return tuple(dict.fromkeys(shown(text) for text in texts))


def title(found: Refresh) -> Iterator[Piece]:
    """The task's id and title."""
    state = found.task
    if state is None:
        return
    task = state.task
    id_ = trimmed(one_line(clean(task.id)), 64)
    if state.is_foreign:
        yield Piece(forms_of(f"- {id_} (import): came with the repository, and is not shown\n"), YOURS)
        return
    named = one_line(clean(task.title))
    more = [f"role {one_line(task.role)}"] if task.role else []
    more += [f"tags {', '.join(map(one_line, task.tags))}"] if task.tags else []
    more += [f"written by {one_line(task.created_by)}"] if task.created_by else []
    more += [f"{task.status}"] if task.status != "pending" else []
    about = trimmed(f" ({'; '.join(more)})", SHORT) if more else ""
    short = f"- {id_}: {trimmed(named, TITLE)}\n"
    yield Piece(forms_of(f"- {id_}: {named}{about}\n", short, f"- {id_}\n"), YOURS)


def of_the_task(found: Refresh) -> Iterator[Piece]:
    """What else is to be known of the task, what matters most first."""
    state = found.task
    if state is None or state.is_foreign:
        return
    if state.task.verify.strip():
        command = one_line(clean(state.task.verify))
        yield Piece(forms_of(f"- verify: `{command}`\n", f"- verify: `{trimmed(command, TITLE)}`\n"), YOURS)
    if state.progress.strip():
        when = f", {_time(state.progress_at)}" if state.progress_at else ""
        said = prose(clean(state.progress))
        yield Piece(forms_of(f"- progress{when}: {said}\n", f"- progress: {trimmed(said, SHORT)}\n"), YOURS)
    for number, attempt in enumerate(reversed(_ended(found))):
        yield Piece(_attempt_forms(attempt, is_last=not number), YOURS, "earlier attempt")
    if found.context is None:
        yield Piece(forms_of("- its route has no notes yet: none of its sessions was checkpointed\n"), YOURS)
    elif found.context.wholly_foreign:
        yield Piece(forms_of("- the notes of its route came with the repository, and are not shown (import)\n"), YOURS)
    for warning in found.warnings[:3]:
        yield Piece(forms_of(f"- warning: {trimmed(one_line(clean(warning)), LINE)}\n"), YOURS)


def _attempt_forms(attempt: Attempt, *, is_last: bool) -> tuple[str, ...]:
    when = " to ".join(filter(None, (_time(attempt.began), _time(attempt.ended))))
    head = f"- earlier attempt, by {agent_name(attempt.by)}{f', {when}' if when else ''}: {_outcome(attempt)}"
    note = prose(clean(attempt.note))
    if not note:
        return forms_of(f"{head}\n")
    return forms_of(f"{head}: {trimmed(note, NOTE if is_last else SHORT)}\n", f"{head}\n")


def _time(text: str) -> str:
    """A time to the minute."""
    text = one_line(clean(text))
    return f"{text[:16]}Z" if text.endswith("Z") and len(text) > 17 else text[:32]


def summary_forms(one: Before) -> tuple[str, ...]:
    """What a task before came to: whole, shortened, and its title alone."""
    id_ = trimmed(one_line(clean(one.id)), 64)
    if one.is_foreign:
        return forms_of(f"- {id_} (import): came with the repository, and is not shown\n")
    how = ", ".join(filter(None, (one.status, one.evidence if one.evidence != "claimed" else "not verified")))
    named = trimmed(one_line(clean(one.title)), TITLE)
    said = prose(clean(one.summary)) or "no summary"
    head = f"- {id_}: {named} ({how})"
    return forms_of(f"{head}: {said}\n", f"{head}: {trimmed(said, SHORT)}\n", f"{head}\n")


def decision_forms(route: str, item: Decision) -> tuple[str, ...]:
    """A decision of a route before, with its reasons and without."""
    from ralf.brief import wording

    head = f"- {trimmed(one_line(clean(route)), 64)} "
    kind = {"rule": "rule ", "failed-approach": "failed approach "}.get(item.kind, "")
    whole = clean(wording.decision(item)).removeprefix("- ")
    return forms_of(f"{head}{kind}{whole}", f"{head}{kind}{wording.statement(item, STATEMENT).removeprefix('- ')}")


def coming(found: Refresh) -> Iterator[str]:
    """The tasks that come, a line each."""
    for one in found.next:
        yield f"- {_named(one)}\n"
    if found.task is not None and (found.next or found.checkpoint) and found.after_checkpoint is not None:
        yield f"- then a checkpoint; after it: {_named(found.after_checkpoint)}\n"
    for one in found.ready:
        yield f"- ready: {_named(one)}\n"


def _named(one: Next) -> str:
    return f"{trimmed(one_line(clean(one.id)), 64)}: {trimmed(one_line(clean(one.title)), TITLE)}"


def files(before: Sequence[Before]) -> Iterator[str]:
    """The files that were edited for the nearest tasks, a line each."""
    for one in before[:_OWN_FILES]:
        if one.files:
            names = ", ".join(one_line(clean(name)) for name in one.files[:_MOST_FILES])
            more = len(one.files) - _MOST_FILES
            yield f"- files edited for {id_of(one.id)}: {names}{f' and {more} more' if more > 0 else ''}\n"
