"""Reads the hand-over, and lists of decisions, back from the sections of a route file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ralf.brief.handover_bullets import HEADING, NOT_FOUND, levels_of, tail
from ralf.document.bullets import parts_of
from ralf.model.handover import KEPT, Carried, HandOver, Kept, Kind, Part
from ralf.talk.handover_text import Bullet, Section, sections_of
from ralf.text.cleaning import one_line
from ralf.text.patterns import regex

_WRITTEN = regex(r"\*Written by .*\*")

_ID = regex(r"((?:OPEN|DONE|FACT|DEC)-[\w-]+)(?: \([^()]*\))?:? +(.*)")

_INDENT = regex(r"(?m)^(?:> ?|  )")

_MORE = regex(r"and [0-9,]+ older: in the front matter")


def parse(text: str, carried: Carried) -> Carried:
    """What a section says: the moment, and the entries that stand in it. `carried`: what it was rendered from.

    A bullet that nobody changed is its entry again; a changed or a new one is the file's, and a new one has no id.
    """
    lines = [line for line in text.split("\n") if line != HEADING and not _WRITTEN.fullmatch(line)]
    parts = list(sections_of("\n".join(lines)))
    last = carried.last or HandOver(author="file")
    written = {part.kind for part in last.parts}
    made = tuple(
        Part(part.kind, part.heading, () if part.is_kept else tuple(map(_unmarked, part.bullets)))
        for part in parts
        if part.kind in written or not part.is_kept
    )
    of_parts = HandOver(parts=made)
    is_free = bool(last.parts) or any(part.kind == "" for part in made)
    moment = replace(last, now=of_parts.now, why=of_parts.why, next=of_parts.next, parts=made if is_free else ())
    return replace(carried, last=moment, kept=tuple(_entries(parts, carried)))


def listed(text: str, carried: Carried, lines: Mapping[str, str]) -> Iterator[Kept]:
    """The decisions in a list of the file, as `parse` reads the entries of a section.

    lines  by the ids of decisions: their lines as they are listed, without "- "
    """
    bullets = [bullet for bullet in _bullets_of(text) if bullet.mark and not _MORE.fullmatch(one_line(bullet.text))]
    return _entries([Section("decision", bullets=bullets)], carried, lines)


def paragraphs(text: str) -> list[str]:
    """What stands in a list of the file and is no bullet."""
    return [bullet.text for bullet in _bullets_of(text) if not bullet.mark]


def _bullets_of(text: str) -> list[Bullet]:
    return [bullet for part in sections_of(f"**Decided:**\n{text}") for bullet in part.bullets]


def _entries(parts: Iterable[Section], carried: Carried, lines: Mapping[str, str] | None = None) -> Iterator[Kept]:
    """The entries in a section; a second one of an id is a new one.

    lines  by the ids of entries: their lines as they are shown
    """
    known = {entry.id: entry for entry in carried.kept if entry.ended is None}
    if lines is None:
        lines = {id_: levels_of(entry, above=carried.last)[-1].removeprefix("- ") for id_, entry in known.items()}
    shown = ((lines.get(id_, ""), entry) for id_, entry in known.items())
    ours = {words: entry for line, entry in shown for words in (line, entry.text)}  # somebody may take the id out
    seen = set[str]()
    for kind, bullet in ((one.kind, bullet) for one in parts if one.is_kept for bullet in one.bullets):
        entry = ours.get(one_line(bullet.text))
        if entry is None or KEPT.get(kind) != KEPT[entry.kind]:
            entry = _entry(kind, bullet, known)
        elif entry.id in seen:  # a copy
            continue
        yield replace(entry, kind=kind, id="" if entry.id in seen else entry.id)
        seen.update(filter(None, [entry.id]))


def _unmarked(bullet: Bullet) -> str:
    """A bullet of the moment without what `section` adds to it."""
    text = _INDENT.sub("", bullet.mark + bullet.text)
    return text.rpartition(NOT_FOUND)[0] if NOT_FOUND in text and text.endswith(")") else text


def _entry(kind: Kind, bullet: Bullet, known: Mapping[str, Kept]) -> Kept:
    """A bullet that was changed or added; the words of a message are changed by no edit."""
    text = one_line(bullet.text)
    found = _ID.fullmatch(text)
    old = known.get(found[1]) if found else None
    if found is not None and old is not None:
        text = found[2].replace(tail(old), "")
    made = old if old is not None and KEPT.get(kind) == KEPT[old.kind] else Kept(kind)
    text, reason, options = parts_of(text)
    options = (*options, *bullet.rejected)
    return replace(made, text=text, reason=reason or bullet.reason, rejected=options, author="file", model="", marks=())
