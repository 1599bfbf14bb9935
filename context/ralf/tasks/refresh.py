"""What a fresh agent reads first: who it is, its task, what came before, what comes next, and what to do.

Only what is needed is read, however many tasks there are: the states of the task, of the next few and of those before
it, and the contexts of a few routes.

The text has a hard budget. In one fence stands what ralf tells the agent to do, in a second one what others wrote, as
data: its task first; then, in an order that does not depend on the budget, what its route and the tasks before it came
to, and what comes next. The last line says how to get what was left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ralf import environment, project as projects
from ralf.errors import RalfError, RouteNotFound
from ralf.model import NOT_STORED, Carried, Decision, RouteContext
from ralf.tasks import leases
from ralf.tasks.model import ENDED_ITSELF, Attempt, Task, TaskState
from ralf.tasks.routes import route_of
from ralf.text.cleaning import OWN_OUTPUT, clean, fenced as in_fence, is_valid, one_line, prose, shown, trimmed
from ralf.text.frozen import dataclass, field, replace
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.project import Project
    from ralf.tasks.book import Book

MAX_TOKENS = 2_500

MOST_BEFORE = 64
"""Tasks before this one that are read, the nearest."""

MOST_ROUTES = 24
"""Tasks before this one of which the routes are read, the nearest."""

_MOST_NEXT = 12  # tasks after this one whose titles are read

_MOST_FILES = 8  # that are named of a task before this one


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
        text = _composed(self, self.max_tokens if max_tokens is None else max_tokens)[0]
        lines = text.splitlines(keepends=True)
        return text if fenced else "".join(line for line in lines if not line.startswith(OWN_OUTPUT))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data, with the brief of its route, empty fields left out."""
        from ralf.document.tree import to_tree

        tree = to_tree(replace(self, task=None))
        if self.task is not None:
            path = self.task.path
            tree["task"] = to_tree(replace(self.task, path=None)) | ({"path": os.fspath(path)} if path else {})
        if brief := _composed(self, self.max_tokens)[1]:
            tree["brief"] = brief
        return {"agent": self.agent, "action": self.action, "checkpoint": self.checkpoint} | tree


def refresh(
    *,
    by: str = "",
    lease: str | None = None,
    task: str | None = None,
    max_tokens: int = MAX_TOKENS,
    root: str | os.PathLike[str] | None = None,
) -> Refresh:
    """What a fresh agent reads first.

    by          its name; "": as a claim would name it
    lease       the token of its claim; None: that of the environment. To read this is a sign of life of its holder
    task        the task, by id or title, held or not; None: that of the lease, else the one that the agent holds
    max_tokens  of `render`, and of the brief in it

    Writes nothing. TaskNotFound, UsageError for a title that several have, and for what is no lease.
    """
    from ralf.tasks import keeping, store

    project = projects.find(root)
    by, lease = store.holder(project, by), environment.lease() if lease is None else lease
    if lease:
        keeping.touch(lease, root=root)
    return store.Tasks(project).read(
        lambda book: gather(project, book, by=by, lease=lease, task=task, max_tokens=max_tokens)
    )


def gather(
    project: Project, book: Book, *, by: str, lease: str = "", task: str | None = None, max_tokens: int = MAX_TOKENS
) -> Refresh:
    """What an agent reads first: see `refresh`, which finds all that this is given."""
    action, state = _meant(book, by, lease, task)
    found = Refresh(agent=by, action=action, task=state, command=project.command, max_tokens=max_tokens)
    if state is None:
        return found
    id_, claim, warnings = state.task.id, state.claim, [*filter(None, [book.plan[1]])]
    segments = book.around(id_, MOST_BEFORE, _MOST_NEXT)
    row = [*segments]
    place = row.index(id_) if row else 0
    later = book.states(row[place + 1 :]).values()
    following = tuple(_neighbour(one) for one in later if one.task.status == "pending")
    meets = any(segments[one.id] == segments[id_] for one in following[:1])
    checkpoint = state.task.checkpoint or bool(following and not meets)
    found = replace(found, in_plan=bool(row), next=following, checkpoint=checkpoint)
    if action == "hand-over" and not checkpoint:  # the rest of its segment comes first
        return replace(found, action="claim")
    if action not in ("work", "look"):
        return found
    from ralf.finding.reader import get_context  # for start-up: a task often has no route yet

    if claim is not None:
        found = replace(found, lease=claim.lease(id_)) if action == "work" else replace(found, holder=claim.by)
    context = _context(project, state, warnings, lambda route: get_context(route, root=project.root))
    found = _with_inherited(project, replace(found, context=context), _before(book, state, row[:place]), warnings)
    return replace(found, warnings=tuple(warnings))


# ---- which task is meant ----


def _meant(book: Book, by: str, lease: str, task: str | None) -> tuple[str, TaskState | None]:
    """What is to be done, and with which task."""
    if task is not None:
        state = book.get(book.resolve(task))
        is_own = state.claim is not None and (state.claim.by == by or state.claim.lease(state.task.id) == lease)
        return "work" if is_own else "look", state
    id_, number = leases.parsed(lease) if lease else ("", 0)
    leased = book.states([id_]).get(id_) if lease else None
    if leased is not None and leased.claim is not None and leased.claim.number == number:
        return "work", leased
    for one in book.states(book.claimed()).values():
        if one.claim is not None and one.claim.by == by:  # the lease may be that of a task that was done before
            return "work", one
    if leased is None:
        return "claim", None
    has_ended = any(one.number == number and one.outcome in ENDED_ITSELF for one in leased.attempts)
    return "hand-over" if has_ended else "stop", leased


# ---- what came before ----


def _neighbour(state: TaskState) -> Neighbour:
    """A task beside this one: nothing is said of what somebody else has written."""
    task, proof = state.task, state.evidence
    if state.is_foreign:
        return Neighbour(task.id, status="foreign")
    summary = state.summary or (state.reason if task.status == "failed" else "")
    return Neighbour(task.id, task.title, task.status, proof.state if proof is not None else "", summary)


def _before(book: Book, state: TaskState, earlier: Sequence[str]) -> list[TaskState]:
    """The tasks before one, the nearest first: those before it in its chain, and those that it depends on, directly or
    not.
    """
    found: dict[str, TaskState] = {}
    level = [*earlier[-1:], *state.task.after, *earlier[-2 : -MOST_BEFORE - 1 : -1]]
    while level and len(found) < MOST_BEFORE:
        wanted = [one for one in dict.fromkeys(level) if one not in found and one != state.task.id]
        new = book.states(wanted[: MOST_BEFORE - len(found)])
        found |= new
        level = [on for one in new.values() for on in one.task.after]
    return [*found.values()]


def _context(
    project: Project, state: TaskState, warnings: list[str], read: Callable[[str], RouteContext | None]
) -> RouteContext | None:
    """The context of a task's route, None where it has nothing yet, or cannot be read."""
    try:
        route = route_of(project, state.task.context_route)  # without a look at the names of all others
        return read(route) if route is not None else None
    except RouteNotFound:
        return None
    except (RalfError, OSError) as error:
        warnings.append(str(error))
        return None


def _with_inherited(project: Project, found: Refresh, before: Sequence[TaskState], warnings: list[str]) -> Refresh:
    """With what the tasks before one, and their routes, leave to it. What its own route says, or another one before, is
    not said again.
    """
    if not before:
        return found
    from ralf.route.load import load_state  # for start-up: a first task has nothing before it
    from ralf.tasks.evidence import edited

    def read(route: str) -> RouteContext | None:
        state = load_state(project, route)
        return state.context if state is not None else None

    routes = {found.context.route} if found.context is not None else set()
    said = {prose(item.decision).casefold() for item in (found.context.active_decisions if found.context else ())}
    decisions, neighbours = list[Decision](), [*map(_neighbour, before)]
    for number, state in enumerate(before[:MOST_ROUTES]):
        context = _context(project, state, warnings, read)
        if context is None or context.wholly_foreign or context.route in routes:
            continue
        routes.add(context.route)
        neighbours[number] = replace(neighbours[number], files=tuple(edited(context)[: -_MOST_FILES - 1 : -1]))
        for item in reversed(context.active_decisions):
            if (words := prose(item.decision).casefold()) and words not in said:
                said.add(words)
                decisions.append(replace(item, id=f"{context.route} {item.id}"))
        if found.handover is None and context.handover.last is not None:
            from ralf.brief.wording import new_handover

            if new_handover(context) is not None:
                found = replace(found, handover=context.handover, handed_from=context.route)
    decisions.sort(key=lambda item: not (item.pinned or item.kind == "rule"))
    return replace(found, before=tuple(neighbours), decisions=tuple(decisions))


# ---- what ralf itself says ----

LABEL = "from ralf, which runs this plan: who you are, and what to do now"
"""The label of the first fence: nothing of others' words stands in it."""

_END = (
    "`{ralf} handover {route} <<'EOF'` with ## Now and ## Next, then end your session. "
    "Do not claim another task: a fresh agent continues"
)

_ORDERS = {
    "work": """\
# You are {agent}, a fresh agent on task {task}
- {known} Your work is what they say under "Your task", and nothing else; the rest is background. \
Keep to the decisions in force.
{again}\
- Report progress as you go; if you are stopped, the next agent reads it: `{ralf} task progress "TEXT"`
- When it is done ({checked}): `{ralf} task done "RESULT, AND WHAT LATER TASKS MUST KNOW"`
- If it cannot be done: `{ralf} task fail "WHY"`
- {then}
""",
    "hand-over": f"""\
# You are {{agent}}, at a checkpoint
- {{task}} was the last task before a checkpoint. Run {_END}.
""",
    "stop": """\
# Stop: {agent} does not hold {task} any more
- Your lease has expired; {holder} holds it now. Do not change anything else, and end your session.
""",
    "claim": """\
# You are {agent}, and hold no task
- Claim the next one with `{ralf} task claim`, then read `{ralf} task show` again. \
If none can be claimed, end your session.
""",
    "look": """\
# Task {task}
- It is not yours: {holder} holds it.{free}
""",
    "foreign": """\
# A task that came with the repository
- No one works on it before a person has accepted it: `{ralf} trust`.
""",
}
"""What to do, by the action."""

_FRESH = "Nothing was done before, as far as ralf knows; the notes below are complete."

_KNOWN = "You do not have the earlier context; the notes below summarise it."

_AGAIN = (
    "- This is attempt {count}; the previous one ended: {outcome}. Its work may be incomplete: check the files "
    "(`git status`, `git diff`) before you change anything, and continue from there.\n"
)

_NAME = regex(r"[^\w.@:/+-]+")


def _agent(name: str) -> str:
    """A name of an agent, as far as nothing but a name can be read in it."""
    return trimmed(_NAME.sub("-", clean(name)), 64).strip("-…") or "an agent"


def _id(name: str) -> str:
    """The id of a task or a route, for a line of ours; one that could say something else is not repeated."""
    return name if is_valid(name) else "ID"


def _orders(found: Refresh, ended: Sequence[Attempt]) -> str:
    state, ralf = found.task or TaskState(), found.command
    task, route = _id(state.task.id), _id(state.task.context_route)
    if found.checkpoint:
        then = f"After that comes a checkpoint: run {_END.format(ralf=ralf, route=route)}."
    elif found.in_plan and not found.next:
        then = "It is the last task of its chain: after that, end your session."
    else:
        then = f"After that, claim the next task with `{ralf} task claim` and read `{ralf} task show`. "
        then += "If none can be claimed, end your session."
    is_begun = bool(found.before or ended or state.progress or state.evidence) or found.context is not None
    is_free = state.claim is None and state.task.status == "pending"
    return _ORDERS["foreign" if found.action == "look" and state.is_foreign else found.action].format(
        agent=_agent(found.agent),
        ralf=ralf,
        task=task,
        route=route,
        holder=_agent(state.claim.by) if state.claim is not None else "no one",
        free=f" To work on it: `{ralf} task claim {task}`." if is_free else "",
        known=_KNOWN if is_begun else _FRESH,
        again=_AGAIN.format(count=len(ended) + 1, outcome=_agent(ended[-1].outcome)) if ended else "",
        checked="the `verify:` command must pass"
        if state.task.verify.strip()
        else "run the tests after your last edit",
        then=then,
    )


# ---- what others said ----

_HEADINGS = (
    "## Your task",
    "## Tasks before it, nearest first, as reported by their agents",
    "## Hand-over",
    "## Decisions in force from the tasks before it",
    "## After it",
)
_YOURS, _EARLIER, _HANDED, _CHOSEN, _LATER = range(len(_HEADINGS))

_TITLE, _SHORT, _STATEMENT, _NOTE = 160, 240, 220, 600
"""Characters of a title, of a text that gave way, of a decision without its reasons, of a note or a warning."""

_LEAST_TEXT, _STEP, _STEPS = 40, 1.06, 128
"""Characters of the task's text at its shortest, and by how much longer each of so many forms is than the last one."""

_Piece = tuple[int, tuple[str, ...]]
"""A piece: its heading, and its text at each length, shortest first."""


def _piece(group: int, head: str, text: str = "", most: int = _SHORT) -> _Piece:
    """A piece that says a text behind its head, whole or cut, or the head alone."""
    return group, (head, f"{head}: {trimmed(text, most)}", f"{head}: {text}") if text else (head,)


def _of_the_task(found: Refresh, ended: Sequence[Attempt]) -> Iterator[_Piece]:
    """What is to be known of the task, what matters most first."""
    if (state := found.task) is None:
        return
    task = state.task
    name = f"- {trimmed(_line(task.id), 64)}"
    if state.is_foreign:
        yield _piece(_YOURS, f"{name} (import): came with the repository, and is not shown")
        return
    more = [
        f"role {_line(task.role)}" * bool(task.role),
        f"written by {_line(state.author)}" * bool(state.author),
        "reworded by an agent" * state.has_agents_words,
    ]
    about = "; ".join(filter(None, (*more, task.status * (task.status != "pending"))))
    yield _piece(_YOURS, name, _line(task.title) + trimmed(f" ({about})" if about else "", _SHORT), _TITLE)
    if (proof := state.evidence) is not None and proof.state == "failed":
        how = "it took too long" if proof.exit_status is None else f"exit status {proof.exit_status}"
        head = f"- refused as done, {_time(proof.at)}: `{trimmed(_line(proof.command), _TITLE)}`: {how}"
        yield _piece(_YOURS, head, prose(clean(proof.output))[-_NOTE:], _NOTE)
    if text := clean(task.text).strip():
        most = min(len(text), 4 * found.max_tokens)
        lengths = [length for step in range(_STEPS) if (length := int(_LEAST_TEXT * _STEP**step)) < most]
        forms = [*(trimmed(text, length) for length in lengths), text]
        yield _YOURS, tuple("\n".join(f"> {line}" for line in form.split("\n")) for form in forms)
    if command := _line(task.verify):
        yield _YOURS, (f"- verify: `{trimmed(command, _TITLE)}`", f"- verify: `{command}`")
    if said := prose(clean(state.progress)):
        when = f", {_time(state.progress_at)}" if state.progress_at else ""
        yield _YOURS, (f"- progress: {trimmed(said, _SHORT)}", f"- progress{when}: {said}")
    for attempt in reversed(ended):
        when = " to ".join(filter(None, (_time(attempt.began), _time(attempt.ended))))
        head = f"- earlier attempt, by {_agent(attempt.by)}{f', {when}' if when else ''}: {_agent(attempt.outcome)}"
        yield _piece(_YOURS, head, trimmed(prose(clean(attempt.note)), _NOTE), _NOTE)
    if found.context is None:
        yield _piece(_YOURS, "- its route has no notes yet: none of its sessions was checkpointed")
    elif found.context.wholly_foreign:
        yield _piece(_YOURS, "- the notes of its route came with the repository, and are not shown (import)")
    for warning in found.warnings:
        yield _piece(_YOURS, f"- warning: {trimmed(_line(warning), _NOTE)}")


def _others(found: Refresh) -> Iterator[_Piece]:
    """What is to be known beside the task and the brief of its route."""
    for one in found.before:
        how = ", ".join(filter(None, (one.status, one.evidence if one.evidence != "claimed" else "not verified")))
        files = f"; edited: {', '.join(map(_line, one.files))}" if one.files else ""
        said = (prose(clean(one.summary)) or "no summary") + files
        yield _piece(_EARLIER, f"- {_named(one)} ({how})", said if one.status != "foreign" else "")
    if found.handover is not None or found.decisions:
        from ralf.brief import wording
    if found.handover is not None and found.handover.last is not None:
        by = _line(wording.handed_over_by(found.handover.last)).removeprefix("Hand-over, ")
        yield _piece(_HANDED, f"- from {_id(found.handed_from)}, {by}")
        yield from (_piece(_HANDED, line) for line in wording.handover_lines(found.handover))
    for item in found.decisions:
        item = replace(item, id=item.id if item.kind == "decision" else f"{item.id} {item.kind}")
        yield _CHOSEN, (wording.statement(item, _STATEMENT), clean(wording.decision(item)))
    yield from (_piece(_LATER, f"- {_named(coming)}") for coming in found.next)


def _line(text: str) -> str:
    return one_line(clean(text))


def _time(text: str) -> str:
    """A time to the minute."""
    text = _line(text)
    return f"{text[:16]}Z" if text.endswith("Z") and len(text) > 17 else text[:32]


def _named(one: Neighbour) -> str:
    name = trimmed(_line(one.id), 64)
    return f"{name}: {trimmed(_line(one.title), _TITLE)}" if one.status != "foreign" else name


# ---- within a budget ----

_FIRST = {_EARLIER: 1, _HANDED: 4, _CHOSEN: 6, _LATER: 3}
"""How many pieces of a section come before the others of all sections, at their shortest."""

_BRIEF = 0.35
"""Share of the room that the task itself leaves, which the brief has for itself."""

_LEAST_BRIEF = 80  # tokens below which a brief says nothing

_WHOLE = 999  # a length beyond every one: the longest

_CLOSING = (
    "_Not all of it: `{ralf} task show {task}`, `{ralf} show {route}`, `{ralf} task list --all`, "
    "`{ralf} plan --draw`._\n"
)


def _composed(found: Refresh, most: int) -> tuple[str, str]:
    """The text for at most so many o200k_base tokens, and four times as many characters, and the brief in it.

    The task is shown first, then the others, but for a share that the brief has; the brief has what is left, too.
    """
    from ralf.brief.filling import Budget, Piece, fill, joined  # for start-up: nothing else needs token counts

    state = found.task or TaskState(Task())
    now = state.claim.number if state.claim is not None else -1
    ended = [one for one in state.attempts if one.number != now and one.outcome]
    keys: list[list[str]] = [[] for _ in _HEADINGS]
    pieces: dict[str, Piece] = {}
    for group, levels in (*_of_the_task(found, ended), *_others(found)):
        texts = tuple(dict.fromkeys(shown(text).strip("\n") for text in levels))
        keys[group].append(f"{group}.{len(pieces)}")
        pieces[keys[group][-1]] = Piece((group, len(pieces)), texts, [(_HEADINGS[group], _HEADINGS[group])])
    ordered = in_fence(_orders(found, ended), label=LABEL)
    context = found.context.without_foreign() if found.context and not found.context.wholly_foreign else None
    if context is None:
        whole = [replace(piece, level=len(piece.levels) - 1) for piece in pieces.values()]
        text = ordered + in_fence(joined(whole))
        if len(text.encode("utf-8", "replace")) <= most:  # it fits if each byte were a token: no need to count them
            return text, ""
    closing = _CLOSING.format(ralf=found.command, task=_id(state.task.id), route=_id(state.task.context_route))
    budget, brief = Budget(max(0, most)), ""
    if not budget.take([ordered, in_fence("-"), closing]):
        return "", ""
    if fill(budget, pieces, [(key, _WHOLE) for key in keys[_YOURS]]):
        grants = [(key, _WHOLE * (group == _EARLIER)) for group, count in _FIRST.items() for key in keys[group][:count]]
        grants += [(key, level) for level in (0, 1, _WHOLE) for group in _FIRST for key in keys[group]]
        budget.most = most - int(_BRIEF * (most - budget.tokens)) * (context is not None)
        fill(budget, pieces, grants)
        budget.most = most
        room = min(most - budget.tokens, most - budget.characters // 4) - 1
        if context is not None and room >= _LEAST_BRIEF:
            from ralf.brief.views import render

            text = render(context, room, section="brief", fenced=False)
            brief = text if text and budget.take([text]) else ""
        fill(budget, pieces, grants)
    text = joined(pieces.values())
    text = (f"{text}\n" if text else "") + brief
    is_whole = all(piece.is_whole for piece in pieces.values()) and bool(brief) == (context is not None)
    return ordered + in_fence(text if is_whole else text + closing), brief
