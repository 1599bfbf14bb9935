"""Cuts a text to a length at the borders of its lines and sentences, and says where something is missing.

What is shown at a length is shown at every larger one: pieces are taken in an order that does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

_LONG_LINE, _LONG_CODE = 240, 260  # characters from which a line is cut into sentences, and code is only counted

_PASTE_LINES, _PASTE = 6, 300  # lines and characters from which a code block in a message is a paste

PASTE = 4_000
"""Characters from which a message is mostly something pasted."""

_SAYS_SIZE = 1_500  # characters of a message from which a cut one says its size

_END = regex(r"(?:(?<!\b\w)\.|[!?\u061f\u06d4])[\"')\]\u00bb\u201d]?\s+|[\u3002\uff01\uff1f]")

_WIDE = regex(r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff]")

_FENCE = regex(r"\s*(?:```|~~~)")

_HEAD, _RULE = regex(r"\A\s{0,3}#{1,6}\s+"), regex(r"\s*(?:-{3,}|={3,}|\*{3,}|_{3,}|\|[\s:|-]*-[\s:|-]*\|)\s*\Z")

_ROW, _BORDER, _BOLD = regex(r"\s*\|.*\|\s*\Z"), regex(r"\s*(?<!\\)\|\s*"), regex(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")

_ASKS, _LEADS_UP = ("?", "\uff1f", "\u061f"), (":", "\uff1a")

LEFT_OUT = "[\u2026]"
"""What stands between two parts of a text that were not next to each other."""


def units(text: str) -> int:
    """Length in characters, one of a wide script counting three."""
    return len(text) + 2 * len(_WIDE.findall(text))


def plain(text: str) -> str:
    """An agent's text without blank lines, marks of headings, bold, rules and bars of tables, outside code."""
    lines = []
    is_code = False
    for line in _without_blank_lines(text).splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            if _RULE.match(line):
                continue
            if _ROW.match(line):
                line = "; ".join(cell for cell in _BORDER.split(line) if cell)
            line = _BOLD.sub(r"\1", _HEAD.sub("", line))
        lines.append(line)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece that is kept whole: a line, a sentence of a long one, a code block. `before`: what separates it."""

    text: str
    before: str


def cut(text: str, most: int) -> str:
    """An agent's text of at most about `most` units: whole pieces from its head and its end, made `plain`."""
    return cuts(text, [most])[0]


def cuts(text: str, lengths: Iterable[int], *, is_answered: bool = False) -> list[str]:
    """An agent's text as for `cut` at several lengths.

    is_answered  something was said to it since: a question at its end is the first to go
    """
    text = plain(text)
    size = units(text)
    return [text if size <= most else _shortened(text, most, is_answered=is_answered) for most in lengths]


def cut_end(text: str, least: int, most: int, *, to_question: bool = False) -> str:
    """The end of a text: whole sentences from the back, outside code, until `least` units, at most `most`.

    to_question  of a text that asks something: the end of it up to its last question
    """
    kept: list[Unit] = []
    size = 0
    pieces = [*_pieces(plain(text), longest=0)]
    asks = (number for number in reversed(range(len(pieces))) if pieces[number].text.rstrip("*_ ").endswith(_ASKS))
    for piece in reversed(pieces[: next(asks, -1) + 1 if to_question else None] or pieces):
        if _is_code(piece.text):
            if kept:
                break
            continue
        length = units(piece.text)
        if kept and size < least and size + length > most:
            words = piece.text.split(" ")
            kept.append(
                Unit("\u2026 " + " ".join(words[-max(1, len(words) * (least - size) // length) :]), piece.before)
            )
        if kept and (size >= least or size + length > most):
            break
        kept.append(piece)
        size += length
    found = "".join(f"{' ' if piece.before else ''}{piece.text}" for piece in reversed(kept)).strip()
    if units(found) <= most:
        return found
    end = found[-most * len(found) // units(found) :]
    return f"\u2026 {end.partition(' ')[2] or end}"


def message(text: str, most: int) -> str:
    """A person's message of at most about `most` units: pasted blocks go first, and a long one says its size.

    As much is kept of its end, where the request often stands, as of its head; of one that is mostly something pasted
    the end is the last to go: there stands what the person says of it.
    """
    text = _without_blank_lines(text)
    if units(text) <= most:
        return text
    shorter = "\n".join(_without_pastes(text))
    kept = shorter
    if units(shorter) > most:
        kept = _shortened(shorter, most, begins_at_end=len(text) > PASTE, heads=1)
    return kept + (f" [{len(text):,} characters in all]" if len(text) > _SAYS_SIZE else "")


# ---- what a text is made of ----


def _without_blank_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\r\n").rstrip().splitlines() if line.strip()).strip()


def _without_pastes(text: str) -> Iterator[str]:
    """The lines of a message, of a long code block only its ends."""
    block: list[str] = []
    for line in text.splitlines():
        if block or _FENCE.match(line):
            block.append(line)
            if len(block) > 1 and _FENCE.match(line):
                yield from _paste(block)
                block = []
        else:
            yield line
    yield from _paste(block)


def _paste(block: list[str]) -> Iterator[str]:
    inner, size = block[1 : -1 if len(block) > 1 and _FENCE.match(block[-1]) else None], sum(map(len, block))
    if len(inner) <= _PASTE_LINES and size <= _PASTE:
        yield from block
        return
    yield f"[pasted, {len(inner)} lines, {size:,} characters]"
    for line in (*inner[:2], *inner[max(2, len(inner) - 2) :]):
        yield _inside(line, _LONG_LINE)


def _pieces(text: str, longest: int = _LONG_LINE) -> Iterator[Unit]:
    """The pieces of a text without blank lines."""
    block: list[str] = []
    for line in text.split("\n"):
        if block or _FENCE.match(line):
            block.append(line)
            if len(block) > 1 and _FENCE.match(line):
                yield Unit(_code(block), "\n")
                block = []
        else:
            for number, part in enumerate(_sentences(line) if len(line) > longest else [line]):
                before = "\n" if not number else " " if part[:1].isspace() else ""
                yield Unit(part.strip() if number else part, before)
    if block:
        yield Unit(_code(block), "\n")


def _sentences(line: str) -> Iterator[str]:
    """The sentences of a line, each with the space before it: one ends where no small letter follows."""
    start = 0
    for match in _END.finditer(line):
        if match.end() < len(line) and not line[match.end()].islower():
            end = match.end() - match[0][-1:].isspace()
            yield line[start:end].rstrip()
            start = end
    if line[start:].strip():
        yield line[start:].rstrip()


def _code(block: list[str]) -> str:
    text = "\n".join(block)
    lines = len(block) - 1 - (len(block) > 1 and _FENCE.match(block[-1]) is not None)
    return text if len(text) <= _LONG_CODE else f"[code, {lines} lines]"


def _is_code(text: str) -> bool:
    return _FENCE.match(text) is not None or text.startswith("[code, ")


# ---- which pieces are kept ----


def _shortened(text: str, most: int, *, is_answered: bool = False, begins_at_end: bool = False, heads: int = 2) -> str:
    pieces = [*_pieces(text)]
    kept: set[int] = set()
    room = most
    for number in _order(pieces, is_answered=is_answered, begins_at_end=begins_at_end, heads=heads):
        room -= units(pieces[number].text) + 1
        if room < 0 and kept:
            break
        kept.add(number)
        if room < 0:
            pieces[number] = Unit(_inside(pieces[number].text, most), pieces[number].before)
    if kept == {0} and len(pieces) > 1 and _leads_up(pieces[0]) and units(pieces[0].text) < most // 2:
        kept.add(1)
        pieces[1] = Unit(_inside(pieces[1].text, most - units(pieces[0].text)), pieces[1].before)
    for number in sorted(kept):  # without what leads up to it, an item may say the opposite: "Do not:"
        lead = _lead_of(pieces, number)
        if lead is not None and lead not in kept:
            kept.add(lead)
    led = {_lead_of(pieces, number) for number in kept}
    for number in sorted(kept, reverse=True):  # what only leads up to something that is missing says nothing
        if len(kept) > 1 and number + 1 not in kept and number not in led and _leads_up(pieces[number]):
            kept.remove(number)
    return _joined(pieces, sorted(kept))


_AN_ITEM = regex(r"\s*(?:[-*+\u2022]|\d{1,3}[.):\u3001]|[A-Ha-h][.)])\s*\S")

_LONGEST_LEAD = 160  # units


def _lead_of(pieces: Sequence[Unit], number: int) -> int | None:
    """The number of the line that leads up to the list in which a piece is an item, if it is a short one."""
    if not _AN_ITEM.match(pieces[number].text):
        return None
    while number and _AN_ITEM.match(pieces[number].text):
        number -= 1
    is_lead = _leads_up(pieces[number]) and units(pieces[number].text) <= _LONGEST_LEAD
    return number if is_lead else None


def _leads_up(piece: Unit) -> bool:
    return piece.text.rstrip("*_ ").endswith(_LEADS_UP)


def _order(pieces: Sequence[Unit], *, is_answered: bool, begins_at_end: bool, heads: int) -> Iterator[int]:
    """The pieces' numbers, most needed first: from the head `heads` times as much as from the end, by length."""
    low, high = 0, len(pieces) - 1
    asks = high if is_answered and high and pieces[high].text.rstrip("*_ ").endswith(_ASKS) else -1
    high -= asks >= 0
    head, tail = (1, 0) if begins_at_end else (0, 0)
    while low <= high:
        if head <= heads * tail:
            head += units(pieces[low].text)
            yield low
            low += 1
        else:
            tail += units(pieces[high].text)
            yield high
            high -= 1
    if asks >= 0:
        yield asks


def _joined(pieces: Sequence[Unit], numbers: Sequence[int]) -> str:
    text = ""
    expected = 0
    for number in numbers:
        if number != expected:
            text += f" {LEFT_OUT}" if text else LEFT_OUT
        text += (pieces[number].before if text else "") + pieces[number].text
        expected = number + 1
    return text + (f" {LEFT_OUT}" if expected < len(pieces) and not text.endswith("\u2026") else "")


def _inside(text: str, most: int) -> str:
    """The head of one long piece, cut at a space."""
    if units(text) <= most:
        return text
    kept = text[: max(1, most * len(text) // units(text))]
    return kept.rpartition(" ")[0].rstrip() + " \u2026" if " " in kept[len(kept) // 2 :] else kept + "\u2026"
