"""Cuts a text to a length at the borders of its lines and sentences, and says where something is missing.

What is shown at a length is shown at every larger one: pieces are taken in an order that does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from ralf.text.frozen import dataclass, replace
from ralf.text.patterns import regex

_LONG_LINE, _LONG_CODE = 240, 260  # characters from which a line is cut into sentences, and code is only counted

_PASTE_LINES, _PASTE = 6, 300  # lines and characters from which a code block in a message is a paste

_LONG, _LONGEST_TYPED = 4_000, 10_000  # characters from which a message may be, and is, mostly something pasted

_NO_PROSE = regex(r"[0-9_/\\|=<>{}\[\]@$%&^~+]")

_MOST_NO_PROSE = 0.08  # of the characters of orders that somebody wrote; a log has twice as many

_SAYS_SIZE = 1_500  # characters of a message from which a cut one says its size

_END = regex(r"(?:(?<!\b\w)\.|[!?\u061f\u06d4])[\"')\]\u00bb\u201d]?\s+|[\u3002\uff01\uff1f]")

_WIDE = regex(r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff]")

_FENCE = regex(r"\s*(?:```|~~~)")

_HEAD = regex(r"\A\s{0,3}#{1,6}\s+")

_RULE = regex(r"\s*+(?:-{3,}|={3,}|\*{3,}|_{3,}|\|(?=[\s:|]*-)[\s:|-]*\|)\s*\Z")

_HEADING = regex(r"\s{0,3}(?:#{1,6}\s+\S|\*\*(?=\S)[^*]+(?<=\S)\*\*:?\s*\Z)")  # a line of bold is one, too

_ROW, _BORDER, _BOLD = regex(r"\s*\|.*\|\s*\Z"), regex(r"(?<!\\)\|"), regex(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")

_ASKS, _LEADS_UP = ("?", "\uff1f", "\u061f"), (":", "\uff1a")

LEFT_OUT = "[\u2026]"
"""What stands between two parts of a text that were not next to each other."""


def units(text: str) -> int:
    """Length in characters, one of a wide script counting three."""
    return len(text) + 2 * len(_WIDE.findall(text))


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece that is kept whole: a line, a sentence of a long one, a code block.

    before   what separates it from the one before
    is_head  it is a heading
    """

    text: str
    before: str = "\n"
    is_head: bool = False
    is_code: bool = False

    def ends_with(self, marks: tuple[str, ...]) -> bool:
        """Whether one of some marks stands at its end, or before the marks of bold there."""
        return self.text.rstrip("*_ ").endswith(marks)


def plain(text: str) -> str:
    """An agent's text without blank lines, marks of headings, bold, rules and bars of tables, outside code."""
    return "\n".join(line.text for line in _plain(text))


@lru_cache(maxsize=8)  # a brief shows one text in several places
def _plain(text: str) -> Sequence[Unit]:
    found = []
    for line in _lines(_without_blank_lines(text)):
        if line.is_code:
            found.append(line)
        elif not _RULE.match(line.text):
            row = _ROW.match(line.text)
            words = "; ".join(filter(None, map(str.strip, _BORDER.split(line.text)))) if row else line.text
            found.append(Unit(_BOLD.sub(r"\1", _HEAD.sub("", words)), is_head=line.is_head))
    return found


def cut(text: str, most: int) -> str:
    """An agent's text of at most about `most` units: whole pieces from its head and its end, made `plain`."""
    return cuts(text, [most])[0]


def cuts(text: str, lengths: Iterable[int], *, is_answered: bool = False) -> list[str]:
    """An agent's text as for `cut` at several lengths.

    is_answered  something was said to it since: a question at its end is the first to go
    """
    lines = _plain(text)
    text = "\n".join(line.text for line in lines)
    size = units(text)
    lengths = [*lengths]
    shorter = _shortened(lines, [most for most in lengths if most < size], is_answered=is_answered)
    return [text if size <= most else next(shorter) for most in lengths]


def cut_end(text: str, least: int, most: int, *, to_question: bool = False) -> str:
    """The end of a text: whole sentences from the back, outside code, until `least` units, at most `most`.

    to_question  of a text that asks something: the end of it up to its last question
    """
    pieces = [*_pieces(_plain(text), longest=0)]
    asks = [number for number, piece in enumerate(pieces) if piece.ends_with(_ASKS)]
    kept = ""
    for piece in reversed(pieces[: asks[-1] + 1] if asks and to_question else pieces):
        if kept and (piece.is_code or units(kept.strip()) >= least):
            break
        if piece.text and not piece.is_code:
            kept = (" " if piece.before else "") + piece.text + kept
    return _end(kept.strip(), most)


def is_pasted(text: str) -> bool:
    """Whether a person's message is mostly something pasted: it is long, and no prose, or longer than anybody types."""
    if len(text) <= _LONG:
        return False
    prose = "".join(line.text for line in _lines(text) if not line.is_code)
    return len(text) > _LONGEST_TYPED or len(_NO_PROSE.findall(prose)) > len(prose) * _MOST_NO_PROSE


def messages(text: str, lengths: Iterable[int]) -> list[str]:
    """A person's message at several lengths, of at most about so many units: pasted blocks go first, and a long one
    says its size.

    As much is kept of its end, where the request often stands, as of its head; of one that is mostly something pasted
    the end is the last to go: there stands what the person says of it.
    """
    lengths, whole = [*lengths], _without_blank_lines(text)
    if units(whole) <= min(lengths):
        return [whole for _ in lengths]
    text = "\n".join(line.text for line in _lines(whole) if line.is_code or not _RULE.match(line.text))
    lines = [*_lines("\n".join(_paste(line.text) if line.is_code else line.text for line in _lines(text)))]
    kept, size = "\n".join(line.text for line in lines), units(whole)
    short = [most for most in lengths if most < units(kept)]
    shorter = _shortened(lines, short, begins_at_end=is_pasted(text), is_of_person=True)
    says = f" [{len(text):,} characters in all]" if len(text) > _SAYS_SIZE else ""
    return [whole if size <= most else (next(shorter) if most in short else kept) + says for most in lengths]


def message(text: str, most: int) -> str:
    """A person's message at one length, as of `messages`."""
    return messages(text, [most])[0]


# ---- what a text is made of ----


def _without_blank_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\r\n").rstrip().splitlines() if line.strip()).strip()


def _lines(text: str) -> Iterator[Unit]:
    """The lines of a text without blank lines, a code block as one."""
    block: list[str] = []
    for line in text.split("\n"):
        block.append(line)
        if not _FENCE.match(block[0]):
            yield Unit(line, is_head=_HEADING.match(line) is not None)
            block = []
        elif len(block) > 1 and _FENCE.match(line):
            yield Unit("\n".join(block), is_code=True)
            block = []
    if block:
        yield Unit("\n".join(block), is_code=True)


def _inner(block: str) -> list[str]:
    """The lines of a code block between its fences."""
    lines = block.split("\n")
    return lines[1 : -1 if len(lines) > 1 and _FENCE.match(lines[-1]) else None]


def _paste(block: str) -> str:
    """A code block in a message, of a long one only its ends."""
    inner, size = _inner(block), len(block.replace("\n", ""))
    if len(inner) <= _PASTE_LINES and size <= _PASTE:
        return block
    ends = (_inside(line, _LONG_LINE) for line in (*inner[:2], *inner[max(2, len(inner) - 2) :]))
    return "\n".join([f"[pasted, {len(inner)} lines, {size:,} characters]", *ends])


def _pieces(lines: Iterable[Unit], longest: int = _LONG_LINE) -> Iterator[Unit]:
    """The pieces of some lines."""
    for line in lines:
        if line.is_code:
            is_long = len(line.text) > _LONG_CODE
            yield replace(line, text=f"[code, {len(_inner(line.text))} lines]") if is_long else line
            continue
        for number, part in enumerate(_sentences(line.text) if len(line.text) > longest else [line.text]):
            before = "\n" if not number else " " if part[:1].isspace() else ""
            yield Unit(part.strip() if number else part, before, line.is_head)


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


# ---- which pieces are kept ----


def _shortened(
    lines: Sequence[Unit],
    lengths: Sequence[int],
    *,
    is_answered: bool = False,
    begins_at_end: bool = False,
    is_of_person: bool = False,
) -> Iterator[str]:
    """By length the pieces that fit, with what leads up to them; what only leads up is no content, but for a person's
    words.
    """
    pieces = [*_pieces(_ends(lines, max(lengths, default=0)))]
    leads = _leads(pieces)
    leading = set[int]() if is_of_person else {lead for above in leads for lead in above}
    content = [n for n, piece in enumerate(pieces) if is_of_person or not (n in leading or _only_leads(piece))] or [0]
    words = [number for number in content if not pieces[number].is_code]
    heads = 1 if is_of_person else 2
    order = _order([pieces[n] for n in words], is_answered=is_answered, begins_at_end=begins_at_end, heads=heads)
    wanted = [*(words[place] for place in order), *(n for n in content if pieces[n].is_code)]
    for most in lengths:
        yield _joined(pieces, _fitting(pieces, leads, wanted, most), drops_leads=not is_of_person)


def _ends(lines: Sequence[Unit], most: int) -> Sequence[Unit]:
    """The lines of a text that may be shown of it at a length: those at its head and at its end that fill it, the
    latter from the heading on under which they stand, and from what leads up to their list.
    """
    head = next((at for at, size in enumerate(accumulate(map(_least, lines))) if size > most), len(lines))
    tail = next((at for at, size in enumerate(accumulate(map(_least, reversed(lines)))) if size > most), len(lines))
    start = len(lines) - 1 - tail
    while start > head and _AN_ITEM.match(lines[start].text):
        start -= 1
    start = next((at for at in range(start, head, -1) if lines[at].is_head), start)
    return lines if start <= head + 1 else [*lines[: head + 1], *lines[start:]]


def _least(line: Unit) -> int:
    """The least room that a line takes where it is shown whole."""
    return min(len(line.text), len("[code]") if line.is_code else len(line.text)) + 1


def _fitting(pieces: Sequence[Unit], leads: Sequence[list[int]], wanted: Iterable[int], most: int) -> dict[int, str]:
    """The text of each piece that fits, by its number, with what leads up to it; `wanted`: most needed first."""
    kept: dict[int, str] = {}
    room = most
    for number in wanted:
        new = {lead: _as_lead(pieces[lead]) for lead in leads[number] if lead not in kept}
        new[number] = pieces[number].text
        room -= sum(units(text) + 1 for text in new.values())
        if room < 0 and kept:
            break
        kept |= new
        if room < 0:
            kept[number] = _inside(new[number], max(units(new[number]) + room, most // 2))
    return kept


_AN_ITEM = regex(r"\s*(?:[-*+\u2022]|\d{1,3}[.):\u3001]|[A-Ha-h][.)])\s*\S")

_LONGEST_LEAD = 160  # units


def _leads(pieces: Sequence[Unit]) -> list[list[int]]:
    """By piece the numbers of those above it without which it may say something else, nearest first: the line that
    leads up to it or to its list ("Do not:"), and its heading.
    """
    found: list[list[int]] = []
    heading, up = list[int](), list[int]()
    for number, piece in enumerate(pieces):
        if piece.is_head:
            heading, up = [], []
        elif number and pieces[number - 1].ends_with(_LEADS_UP):
            up = [number - 1]
        elif piece.before == "\n" and not _AN_ITEM.match(piece.text):
            up = []
        found.append([*dict.fromkeys([*up, *heading])])
        heading = [number] if piece.is_head else heading
    return found


def _only_leads(piece: Unit) -> bool:
    return piece.is_head or piece.ends_with(_LEADS_UP)


def _as_lead(piece: Unit) -> str:
    """A piece as it is shown for what is below it: of a long one the sentence that leads up to that, else the head."""
    if units(piece.text) <= _LONGEST_LEAD:
        return piece.text
    if not piece.ends_with(_LEADS_UP):
        return _inside(piece.text, _LONGEST_LEAD)
    *_, sentence = _sentences(piece.text)
    return f"\u2026 {sentence.strip()[-_LONGEST_LEAD:]}"


def _order(pieces: Sequence[Unit], *, is_answered: bool, begins_at_end: bool, heads: int) -> Iterator[int]:
    """The pieces' numbers, most needed first: from the head `heads` times as much as from the end, by length."""
    asks_last = is_answered and len(pieces) > 1 and pieces[-1].ends_with(_ASKS)
    low, high = 0, len(pieces) - 1 - asks_last
    head, tail = int(begins_at_end), 0
    while low <= high:
        if head <= heads * tail:
            head += units(pieces[low].text)
            yield low
            low += 1
        else:
            tail += units(pieces[high].text)
            yield high
            high -= 1
    if asks_last:
        yield len(pieces) - 1


def _joined(pieces: Sequence[Unit], kept: Mapping[int, str], *, drops_leads: bool) -> str:
    text = ""
    expected = 0
    for number in sorted(kept):
        if number > expected and not (drops_leads and all(map(_only_leads, pieces[expected:number]))):
            text += f" {LEFT_OUT}" if text else LEFT_OUT
        text += (pieces[number].before if text else "") + kept[number]
        expected = number + 1
    return text + (f" {LEFT_OUT}" if expected < len(pieces) and not text.endswith("\u2026") else "")


def _inside(text: str, most: int) -> str:
    """The head of one long piece, cut at a space."""
    if units(text) <= most:
        return text
    kept = text[: max(1, most * len(text) // units(text))]
    return kept.rpartition(" ")[0].rstrip() + " \u2026" if " " in kept[len(kept) // 2 :] else kept + "\u2026"


def _end(text: str, most: int) -> str:
    """The end of one long piece, cut at a space."""
    if units(text) <= most:
        return text
    kept = text[-max(1, most * len(text) // units(text)) :]
    return f"\u2026 {kept.partition(' ')[2] or kept}"
