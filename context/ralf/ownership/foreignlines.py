"""What came with a repository, told so that nobody takes it for anybody's words: a line for each item. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ralf import tombstones
from ralf.briefing import lines
from ralf.context import Body, RouteContext
from ralf.model import ActiveWork, Decision
from ralf.text import clean, one_line
from ralf.trim import trimmed

LABEL = "Came with the repository; not written by your ralf"
ORIGIN = "import"
MOST_LINES, _LONGEST = 300, 600
_RULE = "rule"
_SAYS_WHOSE = re.compile(r"\((user|agent|human-edit)\)", re.I)

SECTIONS = {
    "goal": ("goal",),
    "work": ("task", "next step", "to-do", "blocked", "done", "found", "said", "seen", "asked", "run", "open file"),
    "decisions": ("decision", _RULE, "failed approach"),
    "facts": ("file", "name", "command", "error", "commit", "test"),
    "history": ("history", "text"),
}
"""Of each section of a context's text, what the lines are called that belong to it."""


def told(context: RouteContext) -> tuple[str, ...]:
    """All that a context holds, a line each, what would matter most first; at most `MOST_LINES`, and then how many
    more there are.
    """
    return bounded(_lines(context))


def dropped(ours: RouteContext, theirs: RouteContext) -> Iterator[str]:
    """A line for each decision that stands in ours and that theirs has dropped and shows no more."""
    stones, shown = tombstones.of(theirs), {item.id for item in theirs.decisions}
    for item in (one for one in ours.decisions if one.status == "active" and one.id not in shown):
        if tombstones.cover([stone for stone in stones if stone.id == item.id], item):
            yield f"decision {lines.decision(replace(item, origin='', status='dropped')).removeprefix('- ')}"


def bounded(found: Iterable[str]) -> tuple[str, ...]:
    """Lines, each once, cut where they are long, and no more of them than anybody reads.

    What they say of whose words they are stands in other brackets: it is no origin such as ralf writes.
    """
    made = list(dict.fromkeys(trimmed(_SAYS_WHOSE.sub(r"[\1]", one_line(clean(line))), _LONGEST) for line in found))
    more = len(made) - MOST_LINES
    return (*made[:MOST_LINES], f"text: {more:,} more lines") if more > 0 else tuple(made)


def apart(context: RouteContext) -> RouteContext:
    """A context of which nothing is this user's, as it may be served: see `RouteContext.wholly_foreign`."""
    decisions = context.decisions
    moved = RouteContext(
        goal=context.goal,
        active_work=replace(
            context.active_work,
            current_task="",
            current_phase="",
            work_status="",
            plan_step=None,
            total_steps=None,
            completed_steps=(),
            open_files=(),
        ),
        decisions=tuple(item for item in decisions if _is_rule(item)),
        facts=replace(RouteContext().facts, requests=context.facts.requests),
        body=replace(context.body, sections=()),
    )
    work = context.active_work
    return replace(
        context,
        goal="",
        goal_origin="",
        active_work=ActiveWork(
            current_task=work.current_task,
            current_phase=work.current_phase,
            work_status=work.work_status,
            plan_step=work.plan_step,
            total_steps=work.total_steps,
            completed_steps=work.completed_steps,
            open_files=work.open_files,
            origin=ORIGIN,
        ),
        decisions=tuple(
            replace(item, kind="decision", pinned=False, origin=ORIGIN) for item in decisions if not _is_rule(item)
        ),
        facts=replace(context.facts, requests=()),
        unresolved=(),
        body=Body(sections=context.body.sections),
        extra={},
        foreign=True,
        foreign_notes=told(moved),
        wholly_foreign=True,
    )


def _is_rule(item: Decision) -> bool:
    return item.kind == _RULE or item.pinned


def _lines(context: RouteContext) -> Iterator[str]:
    if context.goal:
        yield f"goal: {context.goal}"
    yield from _work(context.active_work)
    for item in reversed(context.decisions):
        kind = _RULE if _is_rule(item) else item.kind.replace("-", " ")
        kind = kind if kind in SECTIONS["decisions"] else "decision"
        yield f"{kind} {lines.decision(replace(item, origin='')).removeprefix('- ')}"
    for fact in reversed(context.facts.requests):
        yield f"asked: {fact.request}"
    yield from _history(context.body)
    yield from _facts(context)


def _work(work: ActiveWork) -> Iterator[str]:
    words = [work.current_task, work.task_title, work.current_phase, work.work_status, work.outcome]
    words += [f"step {work.plan_step}"] if work.plan_step is not None else []
    if any(words):
        yield f"task: {', '.join(filter(None, words))}"
    yield from (f"next step: {step}" for step in work.next_steps)
    yield from (f"to-do: [{todo.status}] {todo.content}" for todo in work.todos)
    yield from (f"blocked: {text}" for text in work.blockers)
    yield from (f"found: {text}" for text in work.findings)
    yield from (f"asked: {text}" for text in filter(None, [work.last_request]))
    yield from (f"said: {text}" for text in filter(None, [work.last_statement]))
    yield from (f"seen: {text}" for text in filter(None, [work.last_output]))
    yield from (f"done: {step.description}: {step.result}" for step in work.completed_steps)
    yield from (f"run: {run.run} {run.outcome} {run.said}" for run in work.last_runs)
    yield from (f"open file: {file.path}" for file in work.open_files)


def _history(body: Body) -> Iterator[str]:
    for section in body.sections:
        number = f"checkpoint {section.number}: " if section.number is not None else ""
        yield f"history: {number}{section.title}"
        yield from (f"history: {line}" for line in section.text.split("\n") if line.strip())
    for text in (body.before, body.preface, body.after, body.below):
        yield from (f"text: {line}" for line in text.split("\n") if line.strip())
    yield from (f"text: {comment.text}" for comment in body.comments)


def _facts(context: RouteContext) -> Iterator[str]:
    facts = context.facts
    yield from (f"file: {', '.join(fact.did)}: {fact.path}" for fact in reversed(facts.paths))
    yield from (f"command: {lines.command(fact).removeprefix('- ')}" for fact in reversed(facts.commands))
    yield from (f"error: {lines.error(fact).removeprefix('- error: ')}" for fact in reversed(facts.errors))
    yield from (f"commit: {fact.commit} {fact.message}" for fact in reversed(facts.commits))
    yield from (f"test: {fact.result} (from: {fact.command})" for fact in reversed(facts.tests))
    yield from (f"name: {name}" for name in reversed(facts.names))
