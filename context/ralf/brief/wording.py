"""What a context holds, said in lines for a reader."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ralf.brief.handover import author, said, since
from ralf.format.codec import ById, to_tree
from ralf.format.merge import find
from ralf.model import BODY, ActiveWork, Body, Carried, Decision, RouteContext
from ralf.text.cleaning import clean, one_line, prose, trimmed
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.model import CommandFact, ErrorFact, HandOver, WorkingTree


# ---- single items ----

_LINE_BREAK = regex(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

_OWN = frozenset(("", "user", "agent", "human-edit"))


def tag(origin: str) -> str:
    """What is said of an item, on its own line, that neither this user nor their agent has said; "" for theirs."""
    return "" if origin in _OWN else f" ({name(one_line(origin))})"


def tagged(text: str, origin: str) -> str:
    """A text of one or more lines, the first of which says where it came from, unless it is this user's."""
    if origin in _OWN:
        return text
    first, _, rest = text.partition("\n")
    return f"{first}{tag(origin)}\n{rest}"


def decision(item: Decision) -> str:
    """A decision with its reasons; made once: each write asks it of all decisions, several times."""
    return _decisions.of((item,))[0]


def _decision(item: Decision) -> str:
    by = f" by {item.superseded_by}" if item.superseded_by else ""
    label = name(item.id if item.status == "active" else f"{item.id} [{item.status}{by}]")
    label += f" ({name(str(item.extra.get('by', '')))}, another clone)" if item.origin == "clone" else tag(item.origin)
    parts = [f"{label}: {prose(item.decision)}"]
    why = "Came of it" if item.status == "done" else "Because"
    parts += [f"{why}: {prose(item.rationale)}"] if item.rationale else []
    parts += [f"Rejected: {_listed(item.alternatives)}"] if item.alternatives else []
    ended = [part if part.endswith((".", "!", "?", "…", ":")) else f"{part}." for part in parts[:-1]]
    return f"- {' '.join([*ended, parts[-1]])}\n"


_decisions = ById(_decision)


def _listed(options: Sequence[str]) -> str:
    """Options one behind the other, numbered where one of them is a list itself."""
    told = [one_line(option) for option in options]
    if len(told) > 1 and any(";" in option for option in told):
        told = [f"({number}) {option}" for number, option in enumerate(told, start=1)]
    return "; ".join(told)


def statement(item: Decision, most: int) -> str:
    """A decision without its reasons, its words in at most `most` characters."""
    return f"- {trimmed(f'{name(item.id)}{tag(item.origin)}: {prose(item.decision)}', most)}\n"


def error(fact: ErrorFact) -> str:
    """An error, and the command that ended with it."""
    command = f" (from: {trimmed(one_line(fact.command), _RUN)})" if fact.command else ""
    return f"- error: {one_line(fact.error)}{command}{_of(fact)}\n"


def command(fact: CommandFact) -> str:
    """A command, and how it ended."""
    status = name(fact.status if fact.exit in (None, 0) else f"{fact.status}, exit {fact.exit}")
    times = f", {fact.failures} of {fact.runs} times" if fact.failures and fact.runs > 1 else ""
    return f"- {one_line(fact.command)} ({status}{times}){_of(fact)}\n"


MOST_NAMED = 8
"""Files on one line."""

_RUN = 90  # characters of a test run's command, and of its result, beside the files that it has not seen


def working_tree(git: WorkingTree) -> Iterator[str]:
    """Branch and commit, and what is not committed, a line each."""
    words = (("branch ", git.branch), ("at commit ", one_line(git.commit)), ("its pull request #", git.pull_request))
    if where := [f"{label}{name(found)}" for label, found in words if found]:
        yield f"- {', '.join(where)}\n"
    if git.uncommitted:
        more = len(git.uncommitted) - MOST_NAMED
        names = ", ".join(name(one_line(one)) for one in git.uncommitted[: -MOST_NAMED - 1 : -1])
        yield f"- uncommitted: {names}{f' and {more} more' if more > 0 else ''}\n"


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


def blocks(text: str) -> Iterator[str]:
    """A section's lines, each a block with the lines that continue it; blank lines do not count."""
    block = ""
    for line in clean(text).split("\n"):
        if line.startswith((" ", "\t")) and block:
            block += f"{line}\n"
        elif line.strip():
            if block:
                yield block
            block = f"{line if not line.startswith(('/', ' ', chr(9))) else '- ' + line.lstrip()}\n"
    if block:
        yield block


def name(text: str) -> str:
    """A path or label as it is, but for a line break, which would begin a line of its own."""
    return _LINE_BREAK.sub(r"\\n", text)


# ---- fields and their values ----

_LONGEST_VALUE = 300  # characters of one value that are shown; the changes as data have it whole

PLACES = {
    "before": "text above the history",
    "preface": "text below the heading of the history",
    "after": "text below the history",
    "below": "text below the footer",
    "crlf": "line ends",
    "bom": "byte order mark",
    "comments": "comments of the front matter",
}
"""The parts of a file's text beside its sections."""


def place(at: Sequence[str]) -> str:
    """The place of a change in words: `DEC-003 rationale`, `checkpoint 2`, `next steps`."""
    first, *rest = at or ("",)
    if first == BODY and len(rest) > 1 and rest[0] == "sections":
        kind = "section" if rest[1].startswith("#") else "checkpoint"
        return " ".join([kind, rest[1].removeprefix("### "), *map(plain, rest[2:])])
    if first == BODY:
        return PLACES.get(rest[0], rest[0]) if rest else "the text"
    if first == "decisions" and rest:
        return " ".join([rest[0], *map(plain, rest[1:])])
    if first in ("active_work", "facts", "checkpoint_history") and rest:
        first, *rest = rest
    return " ".join([plain(first), *rest])


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


def told_unresolved(context: RouteContext) -> Iterator[str]:
    """Each unresolved field on one line: the place, the value that holds, and the others."""
    tree = to_tree(context) if context.unresolved else {}
    for entry in context.unresolved:
        yield f"{place(entry.at)}: {value(_worded(find(tree, entry.at)))}; also said: {said_too(entry.also)}"


def said_too(values: Sequence[Any]) -> str:
    """The values that do not hold, on one line."""
    return "; or: ".join(value(_worded(one)) for one in values)


_UNSAID = frozenset(("id", "kind", "clone", "timestamp", "origin", "source", "further_sources", "aliases"))


def _worded(found: Any) -> Any:
    """A value as a person reads it: an item by its words, not as data."""
    if isinstance(found, str) and found[:1] in ("{", "["):  # one that was too deep for the front matter
        with suppress(ValueError, RecursionError):
            found = json.loads(found)
    if isinstance(found, dict):
        told = ((key, value(_worded(inner))) for key, inner in found.items() if key not in _UNSAID and inner)
        return "; ".join(f"{plain(key)}: {text}" for key, text in told)
    if isinstance(found, list) and any(isinstance(item, (dict, list)) for item in found):
        return " / ".join(value(_worded(item)) for item in found)
    return found


# ---- content that came with a repository ----

LABEL = "Came with the repository; not written by your ralf"

ORIGIN = "import"

MOST_LINES, _LONGEST = 300, 600

MANY = 1_000_000
"""More lines than any context has."""

_RULE = "rule"

_WHERE_IT_STANDS = (
    "current_task", "current_phase", "work_status", "plan_step", "total_steps", "completed_steps", "open_files"
)  # fmt: skip
"""The fields of work that are no instruction."""

_SAYS_WHOSE = regex(r"\((user|agent|human-edit)\)", re.I)


def told(context: RouteContext, most: int = MOST_LINES) -> tuple[str, ...]:
    """All that a context holds, a line each, what would matter most first; at most so many, and then how many more
    there are.
    """
    return bounded(_lines(context), most)


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
    for _, label, lines in _LINES:
        yield from (f"{label}{line}" for line in lines(context) if line)


def _task(context: RouteContext) -> list[str]:
    work = context.active_work
    step = f"step {work.plan_step}" if work.plan_step is not None else ""
    words = (work.current_task, work.task_title, work.current_phase, work.work_status, work.outcome, step)
    return [", ".join(filter(None, words))]


def _labelled(item: Decision) -> str:
    kind = _RULE if _is_rule(item) else item.kind.replace("-", " ")
    kind = kind if kind in SECTIONS["decisions"] else "decision"
    return f"{kind} {decision(replace(item, origin='')).removeprefix('- ')}"


def _sections(body: Body) -> Iterator[str]:
    for section in body.sections:
        number = f"checkpoint {section.number}: " if section.number is not None else ""
        yield f"{number}{section.title}"
        yield from (line for line in section.text.split("\n") if line.strip())


def _texts(body: Body) -> Iterator[str]:
    for text in (body.before, body.preface, body.after, body.below):
        yield from (line for line in text.split("\n") if line.strip())
    yield from (comment.text for comment in body.comments)


_LINES: tuple[tuple[str, str, Callable[[RouteContext], Iterable[str]]], ...] = (
    ("goal", "goal: ", lambda c: [c.goal]),
    ("goal", "began as: ", lambda c: [c.began_as]),
    ("work", "handed over: ", lambda c: (line.removeprefix("- ") for line in handover_lines(c.handover))),
    ("work", "task: ", _task),
    ("work", "git: ", lambda c: (line.removeprefix("- ") for line in working_tree(c.active_work.git))),
    ("work", "running: ", lambda c: (f"{task.task} ({task.id})" for task in c.active_work.running)),
    ("work", "next step: ", lambda c: c.active_work.next_steps),
    ("work", "to-do: ", lambda c: (f"[{todo.status}] {todo.content}" for todo in c.active_work.todos)),
    ("work", "blocked: ", lambda c: c.active_work.blockers),
    ("work", "found: ", lambda c: c.active_work.findings),
    ("work", "asked: ", lambda c: [c.active_work.last_request]),
    ("work", "said: ", lambda c: [c.active_work.last_statement]),
    ("work", "seen: ", lambda c: [c.active_work.last_output]),
    ("work", "done: ", lambda c: (f"{step.description}: {step.result}" for step in c.active_work.completed_steps)),
    ("work", "run: ", lambda c: (f"{run.run} {run.outcome} {run.said}" for run in c.active_work.last_runs)),
    ("work", "open file: ", lambda c: (file.path for file in c.active_work.open_files)),
    ("decisions", "", lambda c: map(_labelled, reversed(c.decisions))),
    ("work", "asked: ", lambda c: (fact.request for fact in reversed(c.facts.requests))),
    ("history", "history: ", lambda c: _sections(c.body)),
    ("history", "text: ", lambda c: _texts(c.body)),
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
