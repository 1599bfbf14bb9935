"""The pieces of what a route has done: its history, section by section, and its facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ralf.briefing import lines
from ralf.briefing.piece import ASKED, ASKED_WHOLE, DONE, FAILED_COMMAND, NEWEST, PASSED, READ, SECTION, Piece
from ralf.text import one_line
from ralf.trim import trimmed

if TYPE_CHECKING:
    from ralf.context import RouteContext
    from ralf.model import Checkpoint

FAILED = "Commands that failed"
"""Their heading."""

_LITTLE = 300  # characters of sections that say next to nothing
SUBSTANTIAL = 25  # characters from which a request says something by itself
_REQUEST = 120  # characters of a request in brief
_PATHS_PER_LINE = 8
_DIGITS = 10  # of a checkpoint's number


def history(context: RouteContext) -> Iterator[Piece]:
    """The sections, newest first, in blocks; where not all fits, the end of a section stays longest."""
    origins = {_number(entry): entry.origin for entry in context.checkpoint_history if entry.origin}
    said = 0  # characters of newer sections: one of a stretch without words is not what the route has to say
    for number, section in enumerate(context.body.sections):
        label = f"Checkpoint {section.number}" if section.number is not None else "Section"
        group = f"{label}: {one_line(section.title)}" if section.title else label
        group += lines.tag(origins.get(section.number, ""))
        blocks = list(lines.blocks(section.text))
        for part, block in enumerate(blocks):
            late = len(blocks) - part  # where not all fits, the end of a segment says most
            yield Piece(block, group, NEWEST if said < _LITTLE else SECTION, number * 1000 + late)
        said += len(section.text)


def _number(entry: Checkpoint) -> int | None:
    """The number of a checkpoint's section."""
    digits = entry.checkpoint_id.removeprefix("cp-")
    return int(digits) if digits.isdecimal() and len(digits) < _DIGITS else None


def record(context: RouteContext, told: str = "") -> Iterator[Piece]:
    """The facts that no successor reads first; requests that are `told` anyway wait longest."""
    facts = context.facts
    for number, commit in enumerate(reversed(facts.commits)):
        yield Piece(f"- {lines.name(commit.commit)} {one_line(commit.message)}\n", "Commits", DONE, number, noun="fact")
    for number, test in enumerate(reversed(facts.tests)):
        yield Piece(f"- {one_line(test.result)} (from: {one_line(test.command)})\n", "Tests", DONE, number, noun="fact")
    for number, error in enumerate(reversed(facts.errors)):
        if error.fixed_by:
            text = f"{lines.error(error).rstrip()} → solved: {one_line(error.fixed_by)}\n"
            yield Piece(text, "Errors that were solved", FAILED_COMMAND, number, noun="fact")
    for failed in (True, False):
        for number, command in enumerate(reversed(facts.commands)):
            if (command.status == "failed") == failed:
                group = FAILED if failed else "Commands that passed"
                yield Piece(lines.command(command), group, FAILED_COMMAND if failed else PASSED, number, noun="fact")
    read = [lines.name(path.path) for path in reversed(facts.paths) if set(path.did) <= {"read"}]
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
        short = lines.tagged(f"> {brief}\n", fact.origin) if brief != line else ""
        text = lines.request(fact)
        yield Piece(text, "All requests, newest first", rank, number, noun="request", short=short, whole=ASKED_WHOLE)
