"""The pieces of which the text of a context is made, in the order of the text, each with its rank.

Pieces begin with a letter, `#`, `-`, `>` or `*` and end with a line break: that keeps the sum of their tokens from
ever being below the tokens of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ralf.text import one_line

if TYPE_CHECKING:
    from ralf.context import RouteContext
    from ralf.model import CommandFact, Decision, ErrorFact

# Ranks: what is left out last comes first.
(
    STANDING, REQUEST, RULE, NEXT, FAILED_APPROACH, DECISION, STATEMENT, CHANGED, NEWEST, UNSOLVED, DONE, SECTION,
    ASKED, FAILED_COMMAND, READ, PASSED, RETIRED,
) = range(17)  # fmt: skip
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
    """

    text: str
    group: str
    rank: int
    order: int = 0
    noun: str = "line"
    cuttable: bool = False


def pieces(context: RouteContext, section: str | None = None) -> Iterator[Piece]:
    """The pieces of a context, or of one of its `SECTIONS`."""
    if section is not None:
        yield from SECTIONS[section](context)
        return
    yield from _top(context)
    yield from _goal(context)
    yield from _work(context)
    yield from _decided(context)
    yield from _files(context)
    yield from _history(context)
    yield from _record(context)


def _goal(context: RouteContext) -> Iterator[Piece]:
    if context.goal:
        yield Piece(_quoted(context.goal), "Goal", STANDING, noun="line", cuttable=True)


def _work(context: RouteContext) -> Iterator[Piece]:
    yield from _standing(context)
    yield from _next(context)
    yield from _not_again(context)


def _facts(context: RouteContext) -> Iterator[Piece]:
    yield from _files(context)
    yield from _record(context)


def _top(context: RouteContext) -> Iterator[Piece]:
    header = context.context_checkpoint
    count = f"{header.checkpoint_count} checkpoint{'s' if header.checkpoint_count != 1 else ''}"
    last = f", last {_name(header.last_checkpoint)}" if header.last_checkpoint else ""
    yield Piece(f"# Context of {_name(context.route)}\n", "", STANDING)
    yield Piece(f"_Notes kept by ralf, not instructions: revision {context.revision}, {count}{last}._\n", "", STANDING)
    for warning in context.warnings:
        yield Piece(f"**Warning:** {one_line(warning)}\n", "", STANDING)


def _standing(context: RouteContext) -> Iterator[Piece]:
    work = context.active_work
    group = "Where things stand"
    words = [work.current_task, work.task_title, work.current_phase, work.work_status, work.outcome]
    line = ", ".join(one_line(word) for word in words if word)
    if work.plan_step is not None:
        line += f"{', ' if line else ''}step {work.plan_step}" + (f" of {work.total_steps}" if work.total_steps else "")
    if work.attempts is not None:
        line += f"{', ' if line else ''}attempt {work.attempts}"
    if line:
        yield Piece(f"- {line}\n", group, STANDING)
    for number, request in enumerate(_last_requests(context)):
        text = f"**Asked {'last' if number == 0 else 'before'}:**\n{_quoted(request)}"
        yield Piece(text, group, REQUEST, number, noun="request", cuttable=True)
    if work.last_statement:
        text = f"**The agent said last:**\n{_quoted(work.last_statement)}"
        yield Piece(text, group, STATEMENT, cuttable=True)
    for number, step in enumerate(work.completed_steps[::-1]):
        label = f"step {step.step}: " if step.step is not None else ""
        result = f" → {one_line(step.result)}" if step.result else ""
        yield Piece(f"- done: {label}{one_line(step.description)}{result}\n", group, DONE, number)
    for finding in work.findings:
        yield Piece(f"- found: {one_line(finding)}\n", group, UNSOLVED)


def _last_requests(context: RouteContext) -> list[str]:
    """The newest requests, back to the last one that says something (25 characters or more)."""
    found = []
    for fact in reversed(context.facts.requests):
        found.append(fact.request)
        if len(fact.request) >= 25 or len(found) == 3:
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
        yield Piece(f"- [{_name(todo.status)}] {one_line(todo.content)}\n", "Next", NEXT, number)
    for blocker in work.blockers:
        yield Piece(f"- blocked: {one_line(blocker)}\n", "Next", NEXT)


def _not_again(context: RouteContext) -> Iterator[Piece]:
    group = "Not again"
    for number, decision in enumerate(reversed(context.decisions)):
        if decision.kind == "failed-approach" and decision.status == "active":
            yield Piece(_decision(decision), group, FAILED_APPROACH, number, noun="decision")
    for number, error in enumerate(reversed(context.facts.errors)):
        if not error.fixed_by:
            yield Piece(_error(error), group, UNSOLVED, number, noun="fact")


def _decided(context: RouteContext) -> Iterator[Piece]:
    newest_first = list(enumerate(reversed(context.decisions)))
    active = [(n, item) for n, item in newest_first if item.status == "active" and item.kind != "failed-approach"]
    for number, decision in active:
        if decision.kind == "rule" or decision.pinned:
            rank = RULE if decision.pinned else DECISION
            yield Piece(_decision(decision), "Rules", rank, number, noun="decision")
    for number, decision in active:
        if decision.kind != "rule" and not decision.pinned:
            yield Piece(_decision(decision), "Decisions", DECISION, number, noun="decision")
    for number, decision in newest_first:
        if decision.status != "active":
            yield Piece(_decision(decision), "No longer valid", RETIRED, number, noun="decision")


def _decision(decision: Decision) -> str:
    by = f" by {decision.superseded_by}" if decision.superseded_by else ""
    label = _name(decision.id if decision.status == "active" else f"{decision.id} [{decision.status}{by}]")
    parts = [f"{label}: {one_line(decision.decision)}"]
    parts += [f"Because: {one_line(decision.rationale)}"] if decision.rationale else []
    parts += [f"Rejected: {'; '.join(map(one_line, decision.alternatives))}"] if decision.alternatives else []
    ended = [part if part.endswith((".", "!", "?", "…", ":")) else f"{part}." for part in parts[:-1]]
    return f"- {' '.join([*ended, parts[-1]])}\n"


def _error(error: ErrorFact) -> str:
    command = f" (from: {one_line(error.command)})" if error.command else ""
    return f"- error: {one_line(error.error)}{command}\n"


def _files(context: RouteContext) -> Iterator[Piece]:
    did = {path.path: path.did for path in context.facts.paths}
    opened = [file.path for file in reversed(context.active_work.open_files)]
    for number, path in enumerate(opened):
        done = ", ".join(("open", *did.get(path, ())))
        yield Piece(f"- {_name(done)}: {_name(path)}\n", "Files", CHANGED, number, noun="fact")
    changed = [path for path in reversed(context.facts.paths) if set(path.did) - {"read"} and path.path not in opened]
    for number, fact in enumerate(changed, start=len(opened)):
        yield Piece(f"- {_name(', '.join(fact.did))}: {_name(fact.path)}\n", "Files", CHANGED, number, noun="fact")


def _history(context: RouteContext) -> Iterator[Piece]:
    for number, section in enumerate(context.body.sections):
        label = f"Checkpoint {section.number}" if section.number is not None else "Section"
        group = f"{label}: {one_line(section.title)}" if section.title else label
        rank = NEWEST if number == 0 else SECTION
        for part, block in enumerate(_blocks(section.text)):
            yield Piece(block, group, rank, number * 1000 + part)


def _blocks(text: str) -> Iterator[str]:
    """A section's lines, each a block with the lines that continue it; blank lines do not count."""
    block = ""
    for line in text.split("\n"):
        if line.startswith((" ", "\t")) and block:
            block += f"{line}\n"
        elif line.strip():
            if block:
                yield block
            block = f"{line if not line.startswith(('/', ' ', chr(9))) else '- ' + line.lstrip()}\n"
    if block:
        yield block


def _record(context: RouteContext) -> Iterator[Piece]:
    facts = context.facts
    for number, commit in enumerate(reversed(facts.commits)):
        yield Piece(f"- {_name(commit.commit)} {one_line(commit.message)}\n", "Commits", DONE, number, noun="fact")
    for number, test in enumerate(reversed(facts.tests)):
        yield Piece(f"- {one_line(test.result)} (from: {one_line(test.command)})\n", "Tests", DONE, number, noun="fact")
    for number, error in enumerate(reversed(facts.errors)):
        if error.fixed_by:
            text = f"{_error(error).rstrip()} → solved: {one_line(error.fixed_by)}\n"
            yield Piece(text, "Errors that were solved", FAILED_COMMAND, number, noun="fact")
    for failed in (True, False):
        for number, command in enumerate(reversed(facts.commands)):
            if (command.status == "failed") == failed:
                group = "Commands that failed" if failed else "Commands that passed"
                yield Piece(_command(command), group, FAILED_COMMAND if failed else PASSED, number, noun="fact")
    for number, path in enumerate(reversed(facts.paths)):
        if set(path.did) <= {"read"}:
            yield Piece(f"- read: {_name(path.path)}\n", "Files that were only read", READ, number, noun="fact")
    for number, request in enumerate(reversed(facts.requests)):
        yield Piece(_quoted(request.request), "All requests, newest first", ASKED, number, noun="request")


def _command(command: CommandFact) -> str:
    status = _name(command.status if command.exit in (None, 0) else f"{command.status}, exit {command.exit}")
    times = f", {command.failures} of {command.runs} times" if command.failures and command.runs > 1 else ""
    return f"- {one_line(command.command)} ({status}{times})\n"


def _name(text: str) -> str:
    """A path or label as it is, but for a line break, which would begin a line of its own."""
    return text.replace("\n", "\\n")


def _quoted(text: str) -> str:
    return "".join(f"> {line}\n" for line in text.strip().split("\n"))


SECTIONS: dict[str, Callable[[RouteContext], Iterator[Piece]]] = {
    "goal": _goal,
    "work": _work,
    "decisions": _decided,
    "facts": _facts,
    "history": _history,
}
