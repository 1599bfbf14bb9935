"""What a context holds, said in lines for a reader."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ralf.brief.handover import since
from ralf.brief.handover_bullets import author, said
from ralf.document.bullets import bullet_of, name, tag
from ralf.model import BODY, ActiveWork, Body, Carried, Decision, RouteContext
from ralf.text.cleaning import clean, one_line, prose, trimmed
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.model import CommandFact, ErrorFact, HandOver, Step


# ---- single items ----


def decision(item: Decision) -> str:
    """A decision with its reasons, on a line."""
    return f"{bullet_of(item)}\n"


def statement(item: Decision, most: int) -> str:
    """A decision without its reasons, its words in at most `most` characters."""
    return f"- {trimmed(f'{name(item.id)}{tag(item.origin)}: {prose(item.decision)}', most)}\n"


def error(fact: ErrorFact) -> str:
    """An error, the command that ended with it, and what fixed it."""
    command = f" (from: {trimmed(one_line(fact.command), _RUN)})" if fact.command else ""
    fixed = f" \u2192 {one_line(fact.fixed_by)}" if fact.fixed_by else ""
    return f"- error: {one_line(fact.error)}{command}{fixed}{_of(fact)}\n"


def command(fact: CommandFact) -> str:
    """A command, and how it ended."""
    status = name(fact.status if fact.exit in (None, 0) else f"{fact.status}, exit {fact.exit}")
    times = f", {fact.failures} of {fact.runs} times" if fact.failures and fact.runs > 1 else ""
    return f"- {one_line(fact.command)} ({status}{times}){_of(fact)}\n"


_RUN = 90  # characters of a test run's command, and of its result, beside the files that it has not seen


def new_handover(context: RouteContext) -> HandOver | None:
    """The last hand-over, where nothing but reading came after it."""
    last = context.handover.last
    if last is None or not context.sessions:
        return last if last is not None and last.at >= context.last_checkpoint else None
    return last if since(last, (entry for one in context.sessions for entry in one.entries)).is_fresh else None


def handed_over_by(handover: HandOver) -> str:
    """Who handed over, and when."""
    return f"Hand-over, by {author(handover)}" + (f", {name(handover.at)}" if handover.at else "")


def handover_lines(carried: Carried, *, is_old: bool = False) -> Iterator[str]:
    """What is handed over, a line for each thing that it says; of an old one what was next then may be done by now."""
    yield from (f"- {label}: {prose(text)}\n" for label, text in said(carried, is_old=is_old))


def _of(fact: CommandFact | ErrorFact) -> str:
    return tag(str(fact.extra.get("origin", "")))


def quoted(text: str) -> str:
    """A text of several lines as a quotation."""
    return "".join(f"> {line}\n" for line in clean(text).strip().split("\n"))


_BLOCK = regex(r"(?m)^.*\S.*(?:\n[^\S\n].*)*")


def blocks(text: str) -> list[str]:
    """A section's lines, each a block with the lines that continue it; blank lines do not count."""
    return [block if block[0] not in "/ \t" else f"- {block.lstrip()}" for block in _BLOCK.findall(clean(text))]


# ---- fields and their values ----

_LONGEST_VALUE = 300  # characters of one value that are shown; the changes as data have it whole

PLACES = {
    "before": "text above the history",
    "preface": "text below the heading of the history",
    "after": "text below the history",
    "below": "text below the footer",
    "comments": "comments of the front matter",
}
"""The parts of a file's text beside its sections."""


def place(at: Sequence[str]) -> str:
    """The place of a change in words: `DEC-003 rationale`, `checkpoint 2`, `next steps`."""
    parts = [part for part in at if part not in _CONTAINERS or part == at[-1]]
    return " ".join(PLACES.get(part, plain(part.removeprefix("### "))) for part in parts) or "the text"


_CONTAINERS = (BODY, "sections", "decisions", "active_work", "facts", "checkpoint_history")


def plain(key: str) -> str:
    """The name of a field as a person reads it."""
    return key.replace("_", " ")


def value(found: Any, most: int = _LONGEST_VALUE) -> str:
    """A value of a tree on one line, long ones cut."""
    if found is None or found == [] or found == "":
        return "nothing"
    if isinstance(found, list) and not any(isinstance(item, (dict, list)) for item in found):
        found = "; ".join(map(str, found))
    return trimmed(one_line(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)), most)


# ---- content that came with a repository ----

LABEL = "Came with the repository; not written by your ralf"

ORIGIN = "import"

MOST_LINES, _LONGEST = 300, 600

_RULE = "rule"

_WHERE_IT_STANDS = (
    "current_task", "current_phase", "work_status", "plan_step", "total_steps", "completed_steps", "open_files"
)  # fmt: skip
"""The fields of work that are no instruction."""

_SAYS_WHOSE = regex(r"\((user|agent|human-edit|by hand)\)", re.I)


def told(context: RouteContext, most: int = MOST_LINES) -> tuple[str, ...]:
    """All that a context holds, a line each, what would matter most first; at most so many, and then how many more
    there are.
    """
    return bounded(labelled(context), most)


def bounded(found: Iterable[str], most: int = MOST_LINES) -> tuple[str, ...]:
    """Lines, each once, cut where they are long, and no more of them than anybody reads.

    What they say of whose words they are stands in other brackets: it is no origin such as ralf writes.
    """
    made = list(dict.fromkeys(trimmed(_SAYS_WHOSE.sub(r"[\1]", one_line(clean(line))), _LONGEST) for line in found))
    more = len(made) - most
    return (*made[:most], f"text: {more:,} more lines") if more > 0 else tuple(made)


def apart(context: RouteContext) -> RouteContext:
    """A context of which nothing is this user's, as it may be served: see `RouteContext.wholly_foreign`."""
    decisions, work = context.decisions, context.active_work
    moved = RouteContext(
        goal=context.goal,
        began_as=context.began_as,
        handover=context.handover,
        active_work=replace(work, **{name: getattr(ActiveWork(), name) for name in _WHERE_IT_STANDS}),
        decisions=tuple(item for item in decisions if _is_rule(item)),
        facts=replace(RouteContext().facts, requests=context.facts.requests),
        body=replace(context.body, sections=()),
    )
    return replace(
        context,
        goal="",
        goal_origin="",
        began_as="",
        handover=Carried(),
        active_work=ActiveWork(**{name: getattr(work, name) for name in _WHERE_IT_STANDS}, origin=ORIGIN),
        decisions=tuple(
            replace(item, kind="decision", pinned=False, origin=ORIGIN) for item in decisions if not _is_rule(item)
        ),
        facts=replace(context.facts, requests=()),
        body=Body(sections=context.body.sections),
        extra={},
        foreign=True,
        foreign_notes=told(moved),
        wholly_foreign=True,
    )


def _is_rule(item: Decision) -> bool:
    return item.kind == _RULE or item.pinned


def labelled(context: RouteContext, labels: Sequence[str] = ("",)) -> Iterator[str]:
    """What a context holds, a line each, with what it is before it; `labels`: those of the lines that are wanted."""
    for _, label, lines in _LINES:
        if label.startswith(tuple(labels)):
            yield from (f"{label}{line}" for line in lines(context) if line.strip())


def _done(step: Step) -> str:
    return f"{step.description} \u2192 {step.result}" if step.result else step.description


def _lines_of(*texts: str) -> list[str]:
    return "\n".join(texts).split("\n")


def _labelled(item: Decision) -> str:
    kind = _RULE if _is_rule(item) else item.kind.replace("-", " ")
    kind = kind if kind in SECTIONS["decisions"] else "decision"
    return f"{kind} {decision(replace(item, origin='')).removeprefix('- ')}"


_TASK = attrgetter("current_task", "task_title", "current_phase", "work_status", "outcome")

_LINES: tuple[tuple[str, str, Callable[[RouteContext], Iterable[str]]], ...] = (
    ("goal", "goal: ", lambda c: [c.goal]),
    ("goal", "began as: ", lambda c: [c.began_as]),
    ("work", "handed over: ", lambda c: (line.removeprefix("- ") for line in handover_lines(c.handover))),
    ("work", "task: ", lambda c: [", ".join(filter(None, _TASK(c.active_work)))]),
    ("work", "step: ", lambda c: [str(c.active_work.plan_step or "")]),
    ("work", "branch: ", lambda c: [c.active_work.git.branch]),
    ("work", "commit: ", lambda c: [c.active_work.git.commit]),
    ("work", "pull request: ", lambda c: [c.active_work.git.pull_request]),
    ("work", "uncommitted: ", lambda c: reversed(c.active_work.git.uncommitted)),
    ("work", "running: ", lambda c: (f"{task.task} ({task.id})" for task in c.active_work.running)),
    ("work", "next step: ", lambda c: c.active_work.next_steps),
    ("work", "to-do: ", lambda c: (f"[{todo.status}] {todo.content}" for todo in c.active_work.todos)),
    ("work", "blocked: ", lambda c: c.active_work.blockers),
    ("work", "found: ", lambda c: c.active_work.findings),
    ("work", "asked last: ", lambda c: [c.active_work.last_request]),
    ("work", "said last: ", lambda c: [c.active_work.last_statement]),
    ("work", "seen: ", lambda c: [c.active_work.last_output]),
    ("work", "done: ", lambda c: map(_done, c.active_work.completed_steps)),
    ("work", "run: ", lambda c: (f"{run.run} {run.outcome} {run.said}" for run in c.active_work.last_runs)),
    ("work", "open file: ", lambda c: (file.path for file in c.active_work.open_files)),
    ("decisions", "", lambda c: map(_labelled, reversed(c.decisions))),
    ("work", "asked: ", lambda c: (fact.request for fact in reversed(c.facts.requests))),
    ("history", "history: ", lambda c: (line for one in c.body.sections for line in _lines_of(one.title, one.text))),
    ("history", "text: ", lambda c: _lines_of(c.body.notes)),
    ("history", "text: ", lambda c: (comment.text for comment in c.body.comments)),
    ("facts", "file: ", lambda c: (f"{', '.join(fact.did)}: {fact.path}" for fact in reversed(c.facts.paths))),
    ("facts", "command: ", lambda c: (command(fact).removeprefix("- ") for fact in reversed(c.facts.commands))),
    ("facts", "error: ", lambda c: (error(fact).removeprefix("- error: ") for fact in reversed(c.facts.errors))),
    ("facts", "commit: ", lambda c: (f"{fact.commit} {fact.message}" for fact in reversed(c.facts.commits))),
    ("facts", "test: ", lambda c: (f"{fact.result} (from: {fact.command})" for fact in reversed(c.facts.tests))),
    ("facts", "name: ", lambda c: reversed(c.facts.names)),
)
"""All that a context holds, what would matter most first: section of its text, label, and the lines."""

SECTIONS = {section: tuple(label for at, label, _ in _LINES if at == section) for section, _, _ in _LINES}
"""The labels of the lines that belong to each section of a context's text."""

SECTIONS["decisions"] = ("decision", _RULE, "failed approach")

NEXT = ("next step: ", "blocked: ", "found: ")

STANDS = (
    *NEXT,
    "branch: ",
    "commit: ",
    "pull request: ",
    "uncommitted: ",
    "to-do: ",
    "asked last: ",
    "said last: ",
    "done: ",
)
"""What is said of the work; and that of a route without a record."""

FACTS = (*SECTIONS["facts"], "asked: ")
