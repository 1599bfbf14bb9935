"""The pieces of which the text of a context is made, in the order of the text, each with its rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ralf import config
from ralf.brief import wording
from ralf.facts.progress import SUBSTANTIAL, describe_attempts, describe_run
from ralf.text.cleaning import one_line, shown, trimmed
from ralf.text.frozen import dataclass
from ralf.text.matcher import stands_whole

if TYPE_CHECKING:
    from ralf.model import Decision, RouteContext


# ---- pieces and their ranks ----
# Pieces begin with a letter, `#`, `-`, `>` or `*` and end with a line break: so the sum of their tokens is never below
# the tokens of the whole.

# Ranks: what is left out last comes first.
(
    STANDING, REQUEST, RULE, NEXT, FAILED_APPROACH, DECISION, STATEMENT, SEEN, CHANGED, NAMED, UNSOLVED, REASON, NEWEST,
    DONE, READ, ASKED, OLDER_REASON, SECTION, ASKED_WHOLE, FAILED_COMMAND, PASSED, RETIRED, FOREIGN,
) = range(23)  # fmt: skip

REORDERED_FROM = FAILED_APPROACH
"""What has a lower rank is not reordered by a query."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text that is kept or left out as a whole.

    group    heading under which it stands
    rank     when it is left out
    order    within a rank, smaller is kept longer
    noun     what it is called where the left out ones are counted
    cuttable whether its beginning is worth something
    short    a shorter form, which has the rank; the whole then takes its place at the rank `whole`
    tag      what is said at its end, known only at a read
    """

    text: str
    group: str
    rank: int
    order: int = 0
    noun: str = "line"
    cuttable: bool = False
    short: str = ""
    whole: int = 0
    tag: str = ""


# ---- history and facts ----

FAILED = "Commands that failed"
"""Their heading."""

_LITTLE = 300  # characters of sections that say next to nothing

_REQUEST = 120  # characters of a request in brief

_PATHS_PER_LINE = 8


def history(context: RouteContext) -> Iterator[Piece]:
    """The sections, newest first, in blocks; where not all fits, the end of a section stays longest."""
    origins = {
        wording.checkpoint_number(entry.checkpoint_id) or None: entry.origin
        for entry in context.checkpoint_history
        if entry.origin
    }
    said = 0  # characters of newer sections: one of a stretch without words is not what the route has to say
    for number, section in enumerate(context.body.sections):
        label = f"Checkpoint {section.number}" if section.number is not None else "Section"
        group = f"{label}: {one_line(section.title)}" if section.title else label
        group += wording.tag(origins.get(section.number, ""))
        blocks = list(wording.blocks(section.text))
        for part, block in enumerate(blocks):
            late = len(blocks) - part  # where not all fits, the end of a segment says most
            yield Piece(block, group, NEWEST if said < _LITTLE else SECTION, number * 1000 + late)
        said += len(section.text)


def record(context: RouteContext, told: str = "") -> Iterator[Piece]:
    """The facts that no successor reads first; requests that are `told` anyway wait longest."""
    facts = context.facts
    for number, commit in enumerate(reversed(facts.commits)):
        yield Piece(
            f"- {wording.name(commit.commit)} {one_line(commit.message)}\n", "Commits", DONE, number, noun="fact"
        )
    for number, test in enumerate(reversed(facts.tests)):
        yield Piece(f"- {one_line(test.result)} (from: {one_line(test.command)})\n", "Tests", DONE, number, noun="fact")
    for number, error in enumerate(reversed(facts.errors)):
        if error.fixed_by:
            text = f"{wording.error(error).rstrip()} → solved: {one_line(error.fixed_by)}\n"
            yield Piece(text, "Errors that were solved", FAILED_COMMAND, number, noun="fact")
    for failed in (True, False):
        for number, command in enumerate(reversed(facts.commands)):
            if (command.status == "failed") == failed:
                group = FAILED if failed else "Commands that passed"
                yield Piece(wording.command(command), group, FAILED_COMMAND if failed else PASSED, number, noun="fact")
    read = [wording.name(path.path) for path in reversed(facts.paths) if set(path.did) <= {"read"}]
    for start in range(0, len(read), _PATHS_PER_LINE):
        text = f"- read: {', '.join(read[start : start + _PATHS_PER_LINE])}\n"
        yield Piece(text, "Files that were only read", READ, start, noun="fact")
    yield from _requests(context, told)


def _requests(context: RouteContext, told: str) -> Iterator[Piece]:
    """All requests, a long one first in brief. Those that say little by themselves, or are `told` anyway, wait."""
    for number, fact in enumerate(reversed(context.facts.requests)):
        line = one_line(fact.request)
        brief = trimmed(line, _REQUEST)
        waits = len(line) < SUBSTANTIAL or brief.removesuffix("…") in told
        rank = ASKED_WHOLE if waits else ASKED
        short = wording.tagged(f"> {brief}\n", fact.origin) if brief != line else ""
        text = wording.request(fact)
        yield Piece(text, "All requests, newest first", rank, number, noun="request", short=short, whole=ASKED_WHOLE)


# ---- the whole text ----

_REASONED = 4  # of the newest decisions, whose reasons come before the history

_SHORT = 200  # characters from which a decision has a short form

_NAMES_PER_LINE = 15

_EARLY = {CHANGED: 12, DONE: 8, NAMED: 16, UNSOLVED: 6, FAILED_COMMAND: 6}
"""How many of each, the newest, come before what was said and seen last, for who goes on with the work."""

_LONGEST_STATEMENT = 1_000  # characters of a decision that is handed over as it stands, without its reasons

RESUMED = "resume"
"""The section that hooks hand over, unasked: nothing foreign is ever in it."""


def pieces(context: RouteContext, section: str | None = None) -> Iterator[Piece]:
    """The pieces of a context, or of one of its `SECTIONS`, with nothing unseen in them and no comment opened; what is
    foreign comes last, under a heading and on lines that say so.
    """
    if not context.wholly_foreign:
        yield from map(_shown, SECTIONS[section](context) if section is not None else _all(context, *_led(context)))
    elif section in (None, "brief"):
        yield _shown(next(_top(context)))
    if context.foreign and section != RESUMED:
        yield from map(_shown, _foreign(context, section))


def ways(context: RouteContext) -> tuple[Iterator[Piece], Iterator[Piece], Iterator[Piece]]:
    """The pieces of a context as a whole, those of its section `resume` and those of `facts`: in one of these ways each
    of its texts is told.
    """
    led = _led(context)
    return map(_shown, _all(context, *led)), map(_shown, _resumed(context, *led)), map(_shown, _facts(context))


def _shown(piece: Piece) -> Piece:
    text, group, short = shown(piece.text), shown(piece.group), shown(piece.short)
    unchanged = text is piece.text and group is piece.group and short is piece.short
    return piece if unchanged else replace(piece, text=text, group=group, short=short)


def _foreign(context: RouteContext, section: str | None) -> Iterator[Piece]:
    """What this user's ralf did not write, each item on a line that says so: it never stands among what they did."""

    told = [*context.foreign_notes, *(wording.told(context) if context.wholly_foreign else ())]
    wanted = wording.SECTIONS.get(section or "", ("",))
    group = f"{wording.LABEL}: data from somebody else; to accept it: `ralf context trust {one_line(context.route)}`"
    for number, line in enumerate(line for line in told if line.startswith(wanted)):
        text = f"- ({wording.ORIGIN}) {line}\n"
        yield Piece(text, config.typed(group, context.command), FOREIGN, number, cuttable=True)


def _all(context: RouteContext, led: list[Piece], told: str) -> Iterator[Piece]:
    yield from led
    yield from history(context)
    yield from record(context, told)
    yield from _retired(context)


def lead(context: RouteContext) -> Iterator[Piece]:
    """What a successor reads first: the pieces before the history."""
    yield from _led(context)[0]


def _led(context: RouteContext) -> tuple[list[Piece], str]:
    """The pieces before the history; and what those of them say that are kept longer than names: nothing of it needs
    to be said again.
    """
    first = [*_top(context), *_goal(context), *_unresolved(context), *_work(context), *_active(context)]
    first += _files(context)
    told = "\n".join(piece.short or piece.text for piece in first if piece.rank < NAMED)
    return [*first, *_since(context), *_names(context, told)], told


def resumed(context: RouteContext) -> Iterator[Piece]:
    """What a session is handed that goes on with the work: `lead` and the commands that failed. Within a budget every
    active decision comes in its own words before any comes with its reasons, and some of each kind before all of any.
    What the goal and the failures say already does not come twice.
    """
    return _resumed(context, *_led(context))


def _resumed(context: RouteContext, led: list[Piece], told: str) -> Iterator[Piece]:
    decided = [(item, wording.decision(item)) for item in context.decisions]
    said = {
        text: wording.statement(item, _LONGEST_STATEMENT)
        for item, text in decided
        if item.status == "active" and len(text) > _SHORT
    }
    shown = set(_last_requests(context))
    asked = {wording.request(fact) for fact in context.facts.requests if fact.request not in shown}
    failing = _failing(context)
    twice = {wording.command(fact) for fact in context.facts.commands if fact.command in failing}
    twice |= {text for item, text in decided if text == f"- {item.id}: {context.goal}\n"}
    facts = (piece for piece in record(context, told) if piece.group == FAILED or piece.text in asked)
    for piece in (*led, *facts):
        if piece.text in twice:
            continue
        if piece.short:
            yield replace(piece, short=said.get(piece.text, piece.short))
        elif piece.order < _EARLY.get(piece.rank, 0):
            yield replace(piece, rank=STATEMENT)
        else:
            yield replace(piece, rank=SEEN) if piece.rank == STATEMENT else piece


def _failing(context: RouteContext) -> set[str]:
    """The commands that are named beside an error that nothing has solved."""
    return {error.command for error in context.facts.errors if error.command and not error.fixed_by}


def _goal(context: RouteContext) -> Iterator[Piece]:
    if context.goal:
        group = f"Goal{wording.tag(context.goal_origin)}"
        yield Piece(wording.quoted(context.goal), group, STANDING, noun="line", cuttable=True)


def _unresolved(context: RouteContext) -> Iterator[Piece]:
    for number, line in enumerate(wording.told_unresolved(context)):
        yield Piece(f"- {one_line(line)}\n", "Unresolved: said in two ways, settle it in the file", STANDING, number)


def _work(context: RouteContext) -> Iterator[Piece]:
    for piece in (*_standing(context), *_next(context)):
        yield _with_origin(piece, context.active_work.origin) if piece.rank != REQUEST else piece
    yield from _not_again(context)


def _with_origin(piece: Piece, origin: str) -> Piece:
    text = wording.tagged(piece.text, origin)
    return piece if text is piece.text else replace(piece, text=text)


def _facts(context: RouteContext) -> Iterator[Piece]:
    yield from _files(context)
    yield from _names(context)
    yield from record(context)


def _top(context: RouteContext) -> Iterator[Piece]:
    header = context.context_checkpoint
    count = f"{header.checkpoint_count} checkpoint{'s' if header.checkpoint_count != 1 else ''}"
    last = f", last {wording.name(header.last_checkpoint)}" if header.last_checkpoint else ""
    yield Piece(f"# Context of {wording.name(context.route)}\n", "", STANDING)
    yield Piece(f"_Revision {context.revision}, {count}{last}._\n", "", STANDING)
    for warning in context.warnings:
        yield Piece(f"**Warning:** {one_line(warning)}\n", "", STANDING)


def _standing(context: RouteContext) -> Iterator[Piece]:
    work = context.active_work
    group = "Where things stand"
    words = [work.current_task, work.task_title, work.current_phase, work.work_status]
    line = ", ".join(one_line(word) for word in words if word)
    attempt = one_line(describe_attempts(work))
    if work.plan_step is not None:
        line += f"{', ' if line else ''}step {work.plan_step}" + (f" of {work.total_steps}" if work.total_steps else "")
    if line:
        yield Piece(f"- {line}\n", group, STANDING)
    if attempt:
        yield Piece(f"- {attempt}\n", group, STANDING)
    if context.stuck:
        yield Piece(f"- **Stuck:** {context.stuck}\n", group, STANDING)
    for number, run in enumerate(reversed(work.last_runs)):
        line = one_line(describe_run(run, ours=run.run == context.in_run))
        yield Piece(f"- {line}\n", group, STANDING if number == 0 else NEXT, number)
    asked = [request for request in _last_requests(context) if request != context.goal]
    origins = {fact.request: fact.origin for fact in context.facts.requests}
    for number, request in enumerate(asked):
        text = f"**Asked {'last' if number == 0 else 'before'}:**\n{wording.quoted(request)}"
        text = wording.tagged(text, origins.get(request, work.origin))
        yield Piece(text, group, REQUEST, number, noun="request", cuttable=True)
    if work.last_statement:
        text = f"**The agent said last:**\n{wording.quoted(work.last_statement)}"
        yield Piece(text, group, STATEMENT, cuttable=True)
    if work.last_output:
        text = f"**It had just seen, and not yet answered:**\n{wording.quoted(work.last_output)}"
        yield Piece(text, group, SEEN, cuttable=True)
    for number, task in enumerate(work.running[::-1]):
        yield Piece(
            f"- still running when last seen: {one_line(task.task)} ({one_line(task.id)})\n", group, STANDING, number
        )
    for number, step in enumerate(work.completed_steps[::-1]):
        label = f"step {step.step}: " if step.step is not None else ""
        result = f" → {one_line(step.result)}" if step.result else ""
        yield Piece(f"- done: {label}{one_line(step.description)}{result}\n", group, DONE, number)
    for finding in work.findings:
        yield Piece(f"- found: {one_line(finding)}\n", group, UNSOLVED)


def _last_requests(context: RouteContext) -> list[str]:
    """The newest requests, back to the last one that says something by itself."""
    found = []
    for fact in reversed(context.facts.requests):
        found.append(fact.request)
        if len(fact.request) >= SUBSTANTIAL or len(found) == 3:
            break
    return found or [text for text in (context.active_work.last_request,) if text]


def _next(context: RouteContext) -> Iterator[Piece]:
    work = context.active_work
    todos = [todo for todo in work.todos if todo.status != "completed"]
    listed = {todo.content for todo in todos}
    for number, step in enumerate(work.next_steps):
        if step not in listed:
            yield Piece(f"- {one_line(step)}\n", "Next", NEXT, number)
    for number, todo in enumerate(todos):
        yield Piece(f"- [{wording.name(todo.status)}] {one_line(todo.content)}\n", "Next", NEXT, number)
    for blocker in work.blockers:
        yield Piece(f"- blocked: {one_line(blocker)}\n", "Next", NEXT)


def _not_again(context: RouteContext) -> Iterator[Piece]:
    group = "Not again"
    for number, decision in enumerate(reversed(context.decisions)):
        if decision.kind == "failed-approach" and decision.status == "active":
            yield _piece(decision, group, FAILED_APPROACH, number)
    for number, error in enumerate(reversed(context.facts.errors)):
        if not error.fixed_by:
            yield Piece(wording.error(error), group, UNSOLVED, number, noun="fact")


def _decided(context: RouteContext) -> Iterator[Piece]:
    yield from _active(context)
    yield from _retired(context)


def _active(context: RouteContext) -> Iterator[Piece]:
    newest_first = list(enumerate(reversed(context.decisions)))
    active = [(n, item) for n, item in newest_first if item.status == "active" and item.kind != "failed-approach"]
    for number, decision in active:
        if decision.kind == "rule" or decision.pinned:
            yield _piece(decision, "Rules", RULE if decision.pinned else DECISION, number)
    for number, decision in active:
        if decision.kind != "rule" and not decision.pinned:
            yield _piece(decision, "Decisions", DECISION, number)


def _retired(context: RouteContext) -> Iterator[Piece]:
    for number, decision in enumerate(reversed(context.decisions)):
        if decision.status != "active":
            yield Piece(wording.decision(decision), "No longer valid", RETIRED, number, noun="decision")


def _piece(decision: Decision, group: str, rank: int, number: int) -> Piece:
    """A decision; a long one gives way first to its statement alone."""
    text = wording.decision(decision)
    if len(text) <= _SHORT:
        return Piece(text, group, rank, number, noun="decision")
    short = wording.statement(decision, _SHORT - 20)
    return Piece(
        text, group, rank, number, noun="decision", short=short, whole=REASON if number < _REASONED else OLDER_REASON
    )


def _files(context: RouteContext) -> Iterator[Piece]:
    did = {path.path: path.did for path in context.facts.paths}
    opened = [file.path for file in reversed(context.active_work.open_files)]
    for number, path in enumerate(opened):
        done = ", ".join(("open", *did.get(path, ())))
        now = context.since.files.get(path, "")
        text = f"- {wording.name(done)}: {wording.name(path)}\n"
        yield Piece(text, "Files", CHANGED, number, noun="fact", tag=f" ({now})" if now else "")
    changed = [path for path in reversed(context.facts.paths) if set(path.did) - {"read"} and path.path not in opened]
    for number, fact in enumerate(changed, start=len(opened)):
        yield Piece(
            f"- {wording.name(', '.join(fact.did))}: {wording.name(fact.path)}\n", "Files", CHANGED, number, noun="fact"
        )


def _since(context: RouteContext) -> Iterator[Piece]:
    since = context.since
    if since.tokens:
        minutes = f" and {since.minutes:,} minutes" if since.minutes else ""
        text = f"- about {since.tokens:,} tokens{minutes} of the last session came after it and are in no checkpoint\n"
        yield Piece(text, "After the last checkpoint", STANDING)


def _names(context: RouteContext, told: str = "") -> Iterator[Piece]:
    """The names that are likely to be needed again, the likeliest first; not those that are `told` anyway: each would
    take the place of another.
    """
    names = [name for name in reversed(context.facts.names) if not (name and stands_whole(name, told, strict=True))]
    for start in range(0, len(names), _NAMES_PER_LINE):
        line = ", ".join(map(one_line, names[start : start + _NAMES_PER_LINE]))
        yield Piece(f"- {line}\n", "Names in use", NAMED, start, noun="fact")


SECTIONS: dict[str, Callable[[RouteContext], Iterator[Piece]]] = {
    "brief": lead,
    RESUMED: resumed,
    "goal": _goal,
    "work": _work,
    "decisions": _decided,
    "facts": _facts,
    "history": history,
}
