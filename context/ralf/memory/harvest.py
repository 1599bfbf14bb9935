"""Learns from a route's log what holds beyond its task: commands that failed, with what ran before they passed, and
checks that pass; what came of items that were handed over; and offers what a hand-over calls lasting.

The log is the client's record. So the text of a tool becomes an error, in quotes, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ralf.errors import NotFound
from ralf.facts.checks import checks_in, is_test, is_whole, most_telling
from ralf.facts.commands import only_looks, simple_commands
from ralf.facts.state import simple_parts
from ralf.memory import writing
from ralf.memory.family import Delta, delta, new_item
from ralf.memory.model import DEFAULT_AGENT, LONGEST_QUOTE, Item, check_agent
from ralf.model import Kept
from ralf.model.entries import SessionEntries, Step
from ralf.project import Project
from ralf.route.entries import sessions_of
from ralf.route.load import load_state
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex

_LONGEST_COMMAND = 200  # characters of a command that is worth typing again

_LONGEST_TITLE = 300  # characters

_BEGINNING = 60  # characters by which an error is known again

_VIEWED = regex(r" ?2>&1| ?\| ?(?:head|tail|cat|tee)\b(?:[^|&;'\"2]|2(?!>&1))*+")  # how much of an output is shown

_CONFIGURATION = regex(
    r"(?:\A|/)\.[^/]++(?:/.*)?\Z|(?:\A|/)(?:settings|config|conf|etc)/"
    r"|\.(?:toml|cfg|ini|ya?ml|conf|config|properties|env|lock|plist|rc|service|gradle|tf|local)\Z"
    r"|(?:\A|/)(?:Makefile|Dockerfile|Procfile|Gemfile|package\.json|tsconfig[^/]*+|[^/]*+(?:settings|config)[^/]*+)\Z"
)


def take_in(project: Project, route: str, *, agent: str = DEFAULT_AGENT) -> int:
    """Take what a route's log and hand-over hold into the memory of an agent: for the end of a task or a session. How
    much of it is new.

    Each failure, each command of a session and each offer counts once, however often this is called and whoever else
    does it. A process that is killed leaves whole records. What came with the repository or was reverted is passed
    over. Errors: `writing.record`; DamagedJournal.
    """
    check_agent(agent)
    lessons: dict[str, Delta] = {}
    for one in sessions_of(project, route):
        lessons |= dict(_learned(route, one))
    lessons |= dict(_lasting(project, route))
    fresh = writing.unrecorded(project, agent, lessons)
    for name in fresh:
        writing.record(project, agent, [lessons[name]], id=name)
    return len(fresh)


def _name(kind: str, *parts: object) -> str:
    """The name of a record. No label is part of it: another machine may have given that."""
    text = json.dumps(parts, default=str)
    return f"{kind}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


# ---- what the log holds ----


def _learned(route: str, session: SessionEntries) -> Iterator[tuple[str, Delta]]:
    """The traps and commands of a session, each with the name of its record."""
    steps = [entry for entry in session.entries if isinstance(entry, Step)]

    def proved(kind: str, first: Step, last: Step, **said: str) -> Delta:
        lines = f"lines {first.line}-{last.line}" if first is not last else f"line {last.line}"
        evidence = f"{route} {session.session} {lines}"
        given = {"uses": 1, "routes": (route,), "evidence": (evidence,), "last_seen": last.at}
        return new_item(kind, command=_typed(first), origin="mechanical", **said, **given)

    for failed, error, resolution, passed in _traps(steps):
        quote = trimmed(one_line(error), LONGEST_QUOTE)
        trap = proved("trap", failed, passed, error=quote, resolution=resolution)
        yield _name("trap", session.session, failed.id, failed.line), trap
    for step in steps:
        purpose = _purpose(step)
        if purpose is not None:
            yield _name("command", session.session, _typed(step)), proved("command", step, step, purpose=purpose)


def _traps(steps: Sequence[Step]) -> Iterator[tuple[Step, str, str, Step]]:
    """Each command that failed and whose error was over when it ran again: the failure, the error, what was done last
    in between, and the run that had it no more. Who edited sources in between has repaired what is in the tree.
    """
    failures: dict[tuple[str, str], int] = {}
    for number, step in enumerate(steps):
        if step.kind != "command" or not (step.has_passed or step.has_failed) or "\n" in step.object:
            continue
        command = step.agent, _typed(step)
        place = failures.pop(command, number)
        if errors := most_telling([line for line in steps[place].lines if line not in step.lines], 1):
            resolution = _resolution(steps[place + 1 : number], command[1])
            if resolution:
                yield steps[place], errors[0], resolution, step
        if step.has_failed:
            failures[command] = number


def _resolution(between: Sequence[Step], command: str) -> str:
    """What was done last between two runs of a command, "" for nothing that another task could repeat."""
    last = ""
    for step in between:
        edited = [path for path, _ in step.files] if step.kind == "edit" else []
        if not all(map(_CONFIGURATION.search, edited)):
            return ""
        if edited:
            last = f"edit {', '.join(edited)}"
        elif step.kind == "command" and (step.has_passed or step.outcome == "not shown"):  # behind a pipe
            typed = _typed(step)
            looks = step.looks or step.git or "\n" in step.object or only_looks(typed.rpartition("|")[2])
            last = typed if not looks and typed != command else last
    return last


def _typed(step: Step) -> str:
    text = step.object.rstrip()
    end = len(text)
    for start, behind in reversed([found.span() for found in _VIEWED.finditer(text)]):
        end = start if behind == end else end
    return one_line(text[:end])


def _purpose(step: Step) -> str | None:
    """What a command is for that checks the project, and not one file of it, and that passed; None for any other."""
    if step.kind != "command" or step.outcome != "ok" or not step.checks or len(step.object) > _LONGEST_COMMAND:
        return None
    simple = simple_commands(step.object)
    checks = checks_in(simple)
    is_only = all(place in checks or one.words[:1] == ("cd",) for place, one in enumerate(simple))
    purpose = "test" if any(map(is_test, checks.values())) else ""
    return purpose if is_only and all(map(is_whole, checks.values())) else None


# ---- what a hand-over calls lasting ----


def _lasting(project: Project, route: str) -> Iterator[tuple[str, Delta]]:
    """What hand-overs of a route call lasting, as offers: each once, also where it was turned down."""
    state = load_state(project, route)
    if state is not None and not state.context.wholly_foreign:
        for one in reversed(state.context.handover.offers):
            yield _name("lasting", one_line(one.text).casefold()), _offer(route, one)


def _offer(route: str, one: Kept) -> Delta:
    """What is offered: the person's words with the sentence as their title, else the sentence of who wrote it."""
    place = f"{route} {one.session} line {one.line}" if one.session and one.line else route
    given = {"status": "offered", "uses": 1, "routes": (route,), "evidence": (place,), "last_seen": one.at}
    if one.by == "person":
        title, origin = trimmed(one_line(one.text), _LONGEST_TITLE), "person" if one.author == "person" else "model"
        source = "a person said so"
        return new_item("preference", key=title, value=one.words, source=source, origin=origin, **given)
    by = "agent" if one.author == "agent" else "model"
    source = f"the {by} in a hand-over{f' ({one.model})' if one.model else ''}"
    return new_item("fact", text=one_line(one.text), source=source, origin=by, **given)


# ---- what came of what was handed over ----


def judge(
    project: Project, route: str, *, agent: str, session: str, labels: Sequence[str], after: int = 0
) -> dict[str, str]:
    """Record what came of items that were handed to a session, once for each item and session: helpful or harmful, by
    label.

    labels  of the items whose arrival is confirmed (`Selection.items`)
    after   the line of the transcript after which they were handed over

    Helpful: the command or the resolution of an item ran later, or a path that it names was touched. Harmful: the error
    of a trap occurred again, and its resolution did not follow. An item of which nothing is to be seen has no outcome.
    Errors: `writing.record`; DamagedJournal.
    """
    names = {f"outcome-{session}-{label}": label for label in labels}
    memory = writing.load(project, agent)
    logs = [log for log in sessions_of(project, route) if log.session == session]
    steps = [entry for log in logs for entry in log.entries if isinstance(entry, Step) and entry.line > after]
    verdicts: dict[str, str] = {}
    for name in writing.unrecorded(project, agent, names):
        item = memory.get(names[name])
        verdict, step = _outcome(item, steps) if item is not None else ("", None)
        if item is None or step is None:
            continue
        deltas = [delta("outcome", item.id, verdict=verdict, evidence=(f"{route} {session} line {step.line}",))]
        if verdict == "helpful" and item.kind != "command":  # a command that passes is counted as it is
            deltas.append(delta("use", item.id))
        with suppress(NotFound):  # somebody drops it at this moment
            writing.record(project, agent, deltas, id=name)
            verdicts[item.id] = verdict
    return verdicts


def _outcome(item: Item, steps: Sequence[Step]) -> tuple[str, Step | None]:
    """What came of an item in the steps of a session, and which of them shows it; None for nothing to be seen."""
    is_trap = item.kind == "trap"
    said = item.resolution if is_trap else item.command
    text = "" if item.kind == "command" else said or item.words
    used = [step for step in steps if _uses(step, said, text)][-1:]
    failed = [step for step in steps if is_trap and _has_error(item, step)][-1:]
    if failed and (not used or failed[0].line > used[0].line):
        return "harmful", failed[0]
    ran = [step for step in steps if is_trap and _uses(step, item.command, "")][-1:]
    return "helpful", max((*used, *ran), key=lambda step: step.line, default=None)


def _uses(step: Step, command: str, text: str) -> bool:
    """Whether a step runs a command, or touches a path that a text names."""
    if step.kind == "command" and command and {*simple_parts(command)} <= {*simple_parts(step.object)}:
        return True
    paths = [path for path, _ in step.files] + [step.object] * (step.kind == "look")
    return any(("/" in path or "." in path) and path in text for path in paths)


def _has_error(item: Item, step: Step) -> bool:
    error = item.error[:_BEGINNING].rstrip("…")
    return bool(error) and step.has_failed and any(error in one_line(line) for line in (*step.lines, step.output))
