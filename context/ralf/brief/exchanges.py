"""The sections of a context as pieces: as they stand, and exchange by exchange."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ralf.brief import wording
from ralf.brief.changes import checkpoint_number
from ralf.brief.parts import NEWEST, SECTIONS_, THOUGHT, TOLD, Piece
from ralf.facts.progress import SUBSTANTIAL
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex
from ralf.text.sentences import joined, split

if TYPE_CHECKING:
    from ralf.model import RouteContext, Section

_LITTLE = 300  # characters of sections that say next to nothing


def history(context: RouteContext) -> Iterator[Piece]:
    """The sections, newest first, in blocks; where not all fits, the end of a section stays longest."""
    origins = _origins(context)
    said = 0  # characters of newer sections: one of a stretch without words is not what the route has to say
    for number, section in enumerate(context.body.sections):
        group = _heading(section, section.title, origins)
        blocks = list(wording.blocks(section.text))
        for part, block in enumerate(blocks):
            late = len(blocks) - part  # where not all fits, the end of a segment says most
            yield Piece(block, group, NEWEST if said < _LITTLE else SECTIONS_, number * 1000 + late)
        said += len(section.text)


_COUNTS = ("**Period:**", "**Tokens:**")
"""How lines of a section begin from which a successor learns nothing."""

_ASKED_MARK, _THOUGHT, _DID = "**Asked:** ", "thought: ", "did: "

_TO = " (to: "
"""What stands in a section behind a request that only answers: the question."""


def answering(context: RouteContext, request: str) -> str:
    """The question that a short request answered, as the newest section that tells of it has it; "" for none."""
    mark = f"{_ASKED_MARK}{one_line(request)}{_TO}"
    for section in context.body.sections[:_SECTIONS]:
        for line in reversed(section.text.split("\n")):
            _, found, rest = line.partition(mark)
            if found:
                return rest.rstrip(")")
    return ""


_PICKS = regex(r"- asked: (?:[0-9a-e](?: and [0-9a-e])?|y|yes|yep|yeah|ok|okay|sure)\b[^\w(]{0,9}\(to: ", re.I)

_SECTIONS = 2  # newest ones in which the last requests stand

_RECENT = 4  # exchanges that stay longest because they are the newest; of the others those with most exact names

_MOST = 14  # exchanges that a brief tells

_EXCHANGE, _ASKED = 440, 110  # characters of an exchange in its shorter form, and of the request in it

_ANSWER = 160  # characters of the answer, however much was done

_EXACT = regex(r"`[^`\n]+`|\b[0-9a-f]{7,40}\b|#\d+|\b[A-Z]{2,10}-\d+|\b\w+(?:[._/]\w+)+|\b[a-z]+[A-Z]\w*|\b\d[\d.]*\b")

SAID_THEN = "what was asked, and said of it then"
"""The heading of a section whose title the history tells."""

_AROUND = 40  # characters that a sentence takes beside its words


def exchanges(context: RouteContext) -> Iterator[Piece]:
    """What was asked and what was said of it then, exchange by exchange, the newest first; thoughts, which nobody has
    said, come last. Where not all fits, the newest stay, and those that hold most exact names and numbers for their
    length: what a successor can neither guess nor look up. What a new hand-over knows of waits for room.
    """
    origins = _origins(context)
    covered = dict(wording.covered(context))
    found: list[Piece] = []
    for section in context.body.sections:
        group = _heading(section, section.title if section.number not in origins else SAID_THEN, origins)
        for block in reversed([block for block in wording.blocks(section.text) if not block.startswith(_COUNTS)]):
            made = _exchange(block, group)
            found += map(_waiting, made) if section.number in covered else made
    told = [piece for piece in found if piece.part is not THOUGHT]
    answers = {id(piece) for piece in told[_RECENT:] if _says_nothing(piece.text)}
    found = [replace(piece, part=THOUGHT) if id(piece) in answers else piece for piece in found]
    told = [piece for piece in found if piece.part is not THOUGHT]
    ranked = sorted(told[_RECENT:], key=lambda piece: -_density(piece.short or piece.text))
    orders = {id(piece): number for number, piece in enumerate([*told[:_RECENT], *ranked])}
    for piece in found:
        order = orders.get(id(piece), 0)
        yield replace(piece, order=order, part=NEWEST if piece.part is TOLD and order >= _MOST else piece.part)


def _waiting(piece: Piece) -> Piece:
    return replace(piece, part=NEWEST) if piece.part is TOLD else piece


def _says_nothing(text: str) -> bool:
    """Whether an exchange is a request of which nothing was said, or an answer that led to no deed: what was chosen
    stands among the decisions.
    """
    if text.startswith("- asked: ") and " → " not in text:
        return True
    return _PICKS.match(text) is not None and f"({_DID}" not in text


def _origins(context: RouteContext) -> dict[int | None, str]:
    """The origin of each checkpoint by its number: "" for this user's own sessions."""
    return {checkpoint_number(entry.checkpoint_id) or None: entry.origin for entry in context.checkpoint_history}


def _heading(section: Section, title: str, origins: dict[int | None, str]) -> str:
    label = f"Checkpoint {section.number}" if section.number is not None else "Section"
    return (f"{label}: {one_line(title)}" if title else label) + wording.tag(origins.get(section.number, ""))


def _exchange(block: str, group: str) -> Iterator[Piece]:
    """A block of a section: a request and what was said of it, or something that was said; then thoughts."""
    first, *rest = (line.strip().removeprefix("- ") for line in block.rstrip("\n").split("\n"))
    thoughts = [line for line in (first, *rest) if line.startswith(_THOUGHT)]
    did = [f"({line})" for line in rest if line.startswith(_DID)]
    said = [line for line in rest if not line.startswith((_THOUGHT, _DID))]
    asked = f"asked: {first.removeprefix(_ASKED_MARK)}" if first.startswith(_ASKED_MARK) else ""
    if not asked and not first.startswith(_THOUGHT):
        said.insert(0, first)
    text = " → ".join(filter(None, (asked, " ".join([*said, *did]))))
    if len(text) >= SUBSTANTIAL and text != wording.NOTHING_SAID:
        short = (
            ""
            if len(text) <= _EXCHANGE and len(said) < 2
            else f"- {_in_short(trimmed(asked, _ASKED), said, ' '.join(did))}\n"
        )
        yield Piece(f"- {text}\n", group, TOLD, short=short, whole=NEWEST)
    elif text != wording.NOTHING_SAID:
        yield from [Piece(f"- {text}\n", group, THOUGHT)] if text else ()  # "yes", of which nothing was said
    yield from (Piece(f"- {thought}\n", group, THOUGHT) for thought in thoughts)


def _in_short(asked: str, said: list[str], did: str) -> str:
    """A request, as much as there is room for of what was said of it last, and what was done."""
    parts = [part for line in said[-1:] for sentence in split(line) for part in sentence.split("; ")]
    room, kept = max(_EXCHANGE - len(asked) - len(did), _ANSWER), []
    ranked = sorted(range(1, len(parts)), key=lambda number: (-_density(parts[number]), number))
    for number in (0, *ranked) if parts else ():
        if len(parts[number]) + len("; ") <= room:
            kept.append(number)
            room -= len(parts[number]) + len("; ")
    answer = joined(parts[number] for number in sorted(kept)) or trimmed(" ".join(parts), room)
    return " → ".join(filter(None, (asked, " ".join(filter(None, (answer, did))))))


@lru_cache(maxsize=4096)  # each write asks it of each line, several times, and most lines stay
def _density(text: str) -> float:
    return len(set(_EXACT.findall(text))) / (len(text) + _AROUND)
