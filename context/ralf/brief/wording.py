"""What a context holds, said in lines for a reader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ralf.brief.changes import checkpoint_number
from ralf.facts.errors import says_failed
from ralf.format.codec import ById
from ralf.model import ActiveWork, Body, Decision, RouteContext
from ralf.text.cleaning import clean, one_line, prose, trimmed
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.model import CommandFact, ErrorFact, HandOver, RequestFact, TestFact, WorkingTree


WORDLESS = "Work without words"
"""The title of a checkpoint in which nothing was said and no file changed."""

NOTHING_SAID = "Nothing worth keeping was said in this segment."
"""What stands in the section of a segment without words."""

PROPOSED = "proposed, and neither accepted nor made: "
"""How a next step begins that only the agent wants."""

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
    others = [one for one in item.aliases if one != item.id]
    also = f" (elsewhere {', '.join(others)})" if others else ""
    label = name(item.id if item.status == "active" else f"{item.id} [{item.status}{by}]") + name(also)
    label += tag(item.origin)
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


def request(fact: RequestFact) -> str:
    """What was asked for, as a quotation."""
    return tagged(quoted(fact.request), fact.origin)


MOST_NAMED = 8
"""Files on one line."""

_MOST_COMMITS = 4  # on one line

_RUN = 90  # characters of a test run's command, and of its result, beside the files that it has not seen


def working_tree(git: WorkingTree, tests: Sequence[TestFact] = ()) -> Iterator[str]:
    """Branch, commit, uncommitted files, and what of them was changed after the last test run, a line each."""
    where = [f"branch {name(git.branch)}"] if git.branch else []
    where += [f"at commit {one_line(git.commit)}"] if git.commit else []
    where += [f"its pull request #{name(git.pull_request)}"] if git.pull_request else []
    untested = git.untested if tests else ()
    run = (
        f"`{trimmed(one_line(tests[-1].command), _RUN)}`: {trimmed(one_line(tests[-1].result), _RUN)}" if tests else ""
    )
    if where:
        yield f"- {', '.join(where)}\n"
    if where and git.uncommitted:
        is_all = set(untested) >= set(git.uncommitted)
        state = "uncommitted, and changed after the last test run" if is_all else "uncommitted"
        yield f"- {state}: {newest_first(git.uncommitted)}\n"
        if is_all:
            yield f"- that run: {run}\n"
            untested = ()
    elif git.branch and not git.uncommitted:
        yield "- nothing uncommitted that the session changed\n"
    if where and tests and not untested and says_failed(tests[-1].result):
        yield f"- the last test run failed: {run}\n"
    if untested:
        yield f"- changed after the last test run: {newest_first(untested)}; that run: {run}\n"


def committed(git: WorkingTree) -> str:
    """What the session has committed, on one line; "" for nothing that the first line does not say."""
    if not git.commits or (git.commits == (git.commit,) and not git.pushed):
        return ""
    pushed = " and pushed" if git.pushed else ""
    newest = newest_first([trimmed(commit, _RUN) for commit in git.commits], "; ", _MOST_COMMITS, "and older ones")
    is_told = bool(git.commit) or git.commits[-1].startswith("merge of ")
    moved = "" if is_told else ", before the last merge, rebase or reset"
    return f"- committed{pushed} in this session{moved}, newest first: {newest}\n"


def newest_first(names: Sequence[str], separator: str = ", ", most: int = MOST_NAMED, rest: str = "") -> str:
    """Names on one line, the newest first, and how many more there are; or `rest`, where not all were counted."""
    more = len(names) - most
    shown = separator.join(name(one_line(one)) for one in [*reversed(names)][:most])
    return f"{shown} {rest or f'and {more} more'}" if more > 0 else shown


_AUTHORS = {
    "agent": "the agent",
    "compaction": "the client's own summary of its window",
    "user": "the user",
    "import": "somebody else (import)",
}


def tokens_after(handover: HandOver, context: RouteContext) -> int:
    """Tokens of work that came after a hand-over, which it knows nothing of; of what no checkpoint covers yet the
    share that came after it by the clock.
    """
    since = context.since
    covered = max(0, context.total_tokens_consumed - max(0, handover.tokens))
    return covered + round(since.tokens * _later_share(handover.timestamp, context.last_checkpoint, since.minutes))


def _later_share(time: str, start: str, minutes: int | None) -> float:
    """Which share of so many minutes from a start on lies behind a time; 1 where the times do not tell."""
    try:
        gone = (datetime.fromisoformat(time) - datetime.fromisoformat(start)).total_seconds() / 60
    except (ValueError, TypeError):
        return 1.0
    return 1.0 if gone <= 0 else max(0.0, 1 - gone / minutes) if minutes else 0.0


NEW = 25_000
"""Tokens of work after a hand-over up to which it says better than rules what the goal is and what comes next."""


def new_handover(context: RouteContext) -> HandOver | None:
    """The hand-over, where so little came after it that it still says how things stand."""
    handover = context.handover
    return handover if handover is not None and tokens_after(handover, context) <= NEW else None


def knows_all(context: RouteContext) -> bool:
    """Whether nothing came after the hand-over of somebody who knew the work."""
    handover = new_handover(context)
    return handover is not None and handover.author != "compaction" and not tokens_after(handover, context)


def chosen_at(context: RouteContext) -> str:
    """When a new hand-over said which decisions bind, "" where none did: one that names few of many may only add to
    what is known.
    """
    handover = new_handover(context)
    if handover is None:
        return ""
    named = sum(item.source is None and item.timestamp == handover.timestamp for item in context.decisions)
    active = [item for item in context.active_decisions if item.kind == "decision" and not item.pinned]
    found = sum(item.source is not None for item in active)
    return handover.timestamp if named >= _CHOSEN and 2 * named >= found else ""


_CHOSEN = 2  # decisions that a hand-over names at the least, where it says which ones bind


def covered(context: RouteContext) -> Iterator[tuple[int, bool]]:
    """The numbers of the checkpoints of which a new hand-over knows, and whether a model has told what they came to; a
    client's own summary tells only where its window ended.
    """
    handover, end = new_handover(context), context.total_tokens_consumed
    if handover is None or handover.author == "compaction":
        return
    for entry in reversed(context.checkpoint_history):
        if end <= handover.tokens:
            yield checkpoint_number(entry.checkpoint_id), bool(entry.refines)
        end -= entry.tokens


def handed_over_by(handover: HandOver) -> str:
    """Who handed over, and when."""
    author = _AUTHORS.get(handover.author, one_line(handover.author)) or "the agent"
    when = f", {name(handover.timestamp)}" if handover.timestamp else ""
    return f"Hand-over, by {author}{when}"


def handover_heading(handover: HandOver, context: RouteContext) -> str:
    """Who handed over, when, and how much came after it."""
    after = tokens_after(handover, context)
    since = f"; about {after:,} tokens of work came after it" if after else ""
    return f"{handed_over_by(handover)}{since}"


def handover_lines(handover: HandOver, *, is_old: bool = False) -> Iterator[str]:
    """A hand-over, a line for each thing that it says, what matters most first; of an old one what was next then may be
    done by now.
    """
    for label, told in (("goal", handover.goal), ("state", handover.state)):
        if told:
            yield f"- {label}: {prose(told)}\n"
    parts = (
        ("next, then" if is_old else "next", handover.next),
        ("open question", handover.questions),
        ("done", handover.done),
        ("exact", handover.names),
        ("concluded, not verified", handover.inferred),
    )
    for label, items in parts:
        yield from (f"- {label}: {prose(item)}\n" for item in items)
    if handover.text.strip():
        yield quoted(handover.text)
    if handover.dropped:
        sentences = f"{handover.dropped} sentence{'s' * (handover.dropped != 1)}"
        yield f"- left out: {sentences} with a name or number that stands nowhere in the transcript\n"


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

SECTIONS = {
    "goal": ("goal", "began as"),
    "work": (
        "handed over",
        "git",
        "running",
        "task",
        "next step",
        "to-do",
        "blocked",
        "done",
        "found",
        "said",
        "seen",
        "asked",
        "run",
        "open file",
    ),
    "decisions": ("decision", _RULE, "failed approach"),
    "facts": ("file", "name", "command", "error", "commit", "test"),
    "history": ("history", "text"),
}
"""Of each section of a context's text, what the lines are called that belong to it."""


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
        handover=None,
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
    if context.goal:
        yield f"goal: {context.goal}"
    if context.began_as:
        yield f"began as: {context.began_as}"
    if context.handover is not None:
        lines = (line for told in handover_lines(context.handover) for line in told.splitlines())
        yield from (f"handed over: {line.removeprefix('- ').removeprefix('> ')}" for line in lines)
    yield from _work(context.active_work)
    for item in reversed(context.decisions):
        kind = _RULE if _is_rule(item) else item.kind.replace("-", " ")
        kind = kind if kind in SECTIONS["decisions"] else "decision"
        yield f"{kind} {decision(replace(item, origin='')).removeprefix('- ')}"
    for fact in reversed(context.facts.requests):
        yield f"asked: {fact.request}"
    yield from _history(context.body)
    yield from _facts(context)


def _work(work: ActiveWork) -> Iterator[str]:
    words = [work.current_task, work.task_title, work.current_phase, work.work_status, work.outcome]
    words += [f"step {work.plan_step}"] if work.plan_step is not None else []
    if any(words):
        yield f"task: {', '.join(filter(None, words))}"
    yield from (f"git: {line.removeprefix('- ')}" for line in (*working_tree(work.git), committed(work.git)) if line)
    yield from (f"running: {task.task} ({task.id})" for task in work.running)
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
    yield from (f"command: {command(fact).removeprefix('- ')}" for fact in reversed(facts.commands))
    yield from (f"error: {error(fact).removeprefix('- error: ')}" for fact in reversed(facts.errors))
    yield from (f"commit: {fact.commit} {fact.message}" for fact in reversed(facts.commits))
    yield from (f"test: {fact.result} (from: {fact.command})" for fact in reversed(facts.tests))
    yield from (f"name: {name}" for name in reversed(facts.names))
