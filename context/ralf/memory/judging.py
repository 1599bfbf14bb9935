"""What came of items that were handed to a session: whether its log shows that they helped."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ralf.errors import NotFound
from ralf.facts.state import simple_parts
from ralf.memory import writing
from ralf.memory.model import Item
from ralf.memory.records import delta
from ralf.model.entries import Step
from ralf.project import Project
from ralf.route.entries import sessions_of
from ralf.text.cleaning import one_line

_BEGINNING = 60  # characters by which an error is known again


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
    wanted = {names[name] for name in writing.unrecorded(project, agent, names)}
    items = [item for item in writing.load(project, agent).items if item.id in wanted] if wanted else []
    logs = sessions_of(project, route) if items else ()
    entries = [entry for log in logs if log.session == session for entry in log.entries]
    steps = [entry for entry in entries if isinstance(entry, Step) and entry.line > after]
    found: dict[str, str] = {}
    for item in items:
        is_trap = item.kind == "trap"
        said = item.resolution if is_trap else item.command
        text = "" if item.kind == "command" else said or item.words
        used = max((n for n, step in enumerate(steps) if _uses(step, said, text)), default=-1)
        failed = max((n for n, step in enumerate(steps) if is_trap and _has_error(item, step)), default=-1)
        verdict = "harmful" if failed > used else "helpful"
        if is_trap and verdict == "helpful":
            used = max((used, *(n for n, step in enumerate(steps) if _uses(step, item.command, ""))))
        if max(used, failed) < 0:
            continue
        evidence = f"{route} {session} line {steps[max(used, failed)].line}"
        deltas = [delta("outcome", item.id, verdict=verdict, evidence=(evidence,))]
        if verdict == "helpful" and item.kind != "command":  # a command that passes is counted as it is
            deltas.append(delta("use", item.id))
        with suppress(NotFound):  # somebody drops it at this moment
            writing.record(project, agent, deltas, id=f"outcome-{session}-{item.id}")
            found[item.id] = verdict
    return found


def _uses(step: Step, command: str, text: str) -> bool:
    """Whether a step runs a command, or touches a path that a text names."""
    if step.kind == "command" and command and {*simple_parts(command)} <= {*simple_parts(step.object)}:
        return True
    paths = [path for path, _ in step.files] + [step.object] * (step.kind == "look")
    return any(("/" in path or "." in path) and path in text for path in paths)


def _has_error(item: Item, step: Step) -> bool:
    error = item.error[:_BEGINNING].rstrip("…")
    return bool(error) and step.has_failed and any(error in one_line(line) for line in (*step.lines, step.output))
