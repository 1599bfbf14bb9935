"""Reads a hand-over that an agent or a person wrote as Markdown, and says in one line what was taken of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ralf.model.handover import KEPT, NAMES, Author, HandOver, Kept, Kind, Part
from ralf.text import tokens
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.patterns import regex

MOST_TOKENS = 2_000
"""Of a whole text; the end of what matters least gives way."""

_GIVES_WAY: tuple[Kind, ...] = ("fact", "done", "avoid", "lasting", "", "why", "open", "decision", "next", "now")

_HEADINGS: dict[Kind, str] = {
    "now": "now|state|where it stands",
    "why": "why|goal",
    "next": "next",
    "open": "open|questions",
    "decision": "decided|decisions",
    "avoid": "avoid|dropped|given up|do not|traps",
    "done": "done",
    "fact": "facts|notes",
    "lasting": "lasting",
}
"""The closed list of headings, in any case, also as a bold lead or with a colon."""

_KIND_OF: dict[str, Kind] = {word: kind for kind, words in _HEADINGS.items() for word in words.split("|")}

_HEADING = regex(r"#{1,6}[ \t]+(.*)()$")

_BOLD = regex(r"(?:\*\*|__)([^*\n]{1,80}?):?(?:\*\*|__):?[ \t]*(.*)$")

_LEAD = regex(r"([A-Za-z][A-Za-z ]{1,18}?)[ \t]*[:\uff1a][ \t]*(.*)$")

_BULLET = regex(r"([ \t]*)([-*+\u2022]|\d{1,3}[.)])[ \t]+(.*)$")

_FIELD = regex(r"(?i)[ \t]*(?:[-*+\u2022][ \t]+)?(why|not)[ \t]*[:\uff1a][ \t]*(.*)$")


@dataclass
class Bullet:
    """A bullet or a paragraph of a part, with what its `why:` and `not:` lines say; `mark`: "- ", "1. " or ""."""

    text: str
    mark: str = ""
    reason: str = ""
    rejected: list[str] = field(default_factory=list)


@dataclass
class Section:
    """A part of a text: its heading as it was written, "" for none, and its bullets and paragraphs."""

    kind: Kind
    heading: str = ""
    bullets: list[Bullet] = field(default_factory=list)

    @property
    def is_kept(self) -> bool:
        """Whether its bullets are entries of their own."""
        return self.kind in KEPT or self.kind == "lasting"


def parse(text: str, *, author: Author, at: str = "", session: str = "") -> tuple[HandOver, tuple[Kept, ...]]:
    """What a text in Markdown hands over, and its entries, which have no ids yet; without any heading all is `now`."""
    sections = list(sections_of(clean(text)))
    left_out = _shorten(sections)
    entries = tuple(
        Kept(
            kind=section.kind,
            text=one_line(bullet.text),
            reason=one_line(bullet.reason),
            rejected=tuple(map(one_line, bullet.rejected)),
            author=author,
            at=at,
            session=session,
        )
        for section in sections
        if section.is_kept
        for bullet in section.bullets
    )
    parts = [
        Part(one.kind, one.heading, () if one.is_kept else tuple(bullet.mark + bullet.text for bullet in one.bullets))
        for one in sections
    ]
    handover = HandOver(
        author=author,
        at=at,
        session=session,
        parts=tuple(parts),
        left_out=tuple(f"{count} {NAMES[kind]}" for kind, count in left_out.items()),
    )
    return handover, entries


def sections_of(text: str) -> Iterator[Section]:
    """The parts of a text in its order; what stands before the first heading is `now`."""
    current = Section("now")
    goes_on = in_code = False  # goes_on: the line before belongs to the last bullet
    for line in text.split("\n"):
        is_code = in_code or line.lstrip().startswith("```")
        in_code ^= line.lstrip().startswith("```")
        if not is_code:
            if current.is_kept and current.bullets and (found := _FIELD.match(line)):
                bullet, goes_on = current.bullets[-1], False
                if found[1].lower() == "why":
                    bullet.reason = f"{bullet.reason} {found[2]}".strip()
                else:
                    bullet.rejected.append(found[2].strip())
                continue
            if heading := _heading(line):
                if current.bullets:
                    yield current
                current, line, goes_on = Section(*heading[:2]), heading[2], False
        if line.strip() or is_code:
            _put(current.bullets, line, goes_on=goes_on, is_code=is_code)
        goes_on = bool(line.strip() or is_code)
    if current.bullets:
        yield current


def _heading(line: str) -> tuple[Kind, str, str] | None:
    """The kind of a part that a line begins, its heading, and what stands behind it on the line."""
    found = _HEADING.match(line) or _BOLD.match(line) or _LEAD.match(line)
    if found is None:
        return None
    words, rest = found[1].rstrip("# \t").strip("*_: \uff1a"), found[2]
    kind = _KIND_OF.get(words.lower())
    if kind is None and (rest or line[:1] not in "#*_"):  # only a line of its own is an unknown heading
        return None
    return kind or "", words, rest


def _put(bullets: list[Bullet], line: str, *, goes_on: bool, is_code: bool) -> None:
    """Add a line: as a bullet of its own, or to the last one."""
    bullet = None if is_code else _BULLET.match(line)
    if bullet and len(bullet[1].expandtabs(4)) < 2:
        bullets.append(Bullet(bullet[3].strip(), f"{bullet[2]} "))
    elif bullets and (goes_on or is_code or line[:1] in " \t"):
        bullets[-1].text += f"\n{line.rstrip()}"
    else:
        bullets.append(Bullet(line.strip()))


def _shorten(sections: list[Section]) -> Counter[Kind]:
    """Take the ends of the least important parts off a text that is too long; how many items each part loses."""
    lost: Counter[Kind] = Counter()
    size = sum(_cost(bullet) for section in sections for bullet in section.bullets)
    for kind in _GIVES_WAY:
        for section in [one for one in reversed(sections) if one.kind == kind]:
            while size > MOST_TOKENS and section.bullets:
                lost[kind] += 1
                if kind == "now" and len(section.bullets) == 1:  # nothing else is left
                    text = section.bullets[0].text
                    section.bullets[0].text = trimmed(text, len(text) * MOST_TOKENS // size)
                    return lost
                size -= _cost(section.bullets.pop())
    return lost


def _cost(bullet: Bullet) -> int:
    return sum(tokens.estimate(text) + 4 for text in (bullet.text, bullet.reason, *bullet.rejected) if text)


def reply(route: str, handover: HandOver, added: Iterable[Kept]) -> str:
    """What was taken of a hand-over, in one line; `added`: its new entries, numbered."""
    entries = list(added)
    parts = [name for name in ("now", "why") if getattr(handover, name)]
    if handover.next:
        parts.append(f"{len(handover.next)} next")
    for kind in (*KEPT, "lasting"):
        ids = [entry.id for entry in entries if entry.kind == kind]
        span = f"{min(ids)} to {max(ids)}" if len(ids) > 1 else "".join(ids)
        if ids:
            parts.append(f"{len(ids)} {NAMES[kind]}" + (f" ({span})" if kind == "decision" else ""))
    if others := sum(1 for part in handover.parts if part.kind == ""):
        parts.append(f"{others} other")
    text = f"{route}: {', '.join(parts) or 'nothing'}"
    if marks := dict.fromkeys((*handover.marks, *(mark for entry in entries for mark in entry.marks))):
        text += f"; not found in the record: {', '.join(f'`{mark}`' for mark in marks)}"
    if handover.left_out:
        text += f"; too long, left out: {', '.join(handover.left_out)}"
    return text
