"""Reads RALF-CONTEXT.md, the page that each loop overwrote to tell the next one where the work stands."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ralf.text.patterns import regex
from ralf.transcripts.notes import note
from ralf_integrations.blackbox5.runs import markdown
from ralf_integrations.blackbox5.runs.decisionsmd import decisions_in
from ralf_integrations.blackbox5.runs.folder import time_of
from ralf_integrations.blackbox5.runs.markdown import ITEM, Line, Section, plain
from ralf_integrations.blackbox5.runs.written import WrittenDecision, lines_within
from ralf_migrations import reading
from ralf_migrations.reading import FIELD, Kind, Part, Reading, Source, beginning, decision_note, notes, text_of
from ralf_migrations.report import Field

_NEXT = regex(r"\b(?:next|to do|todo|upcoming|remaining)\b(?!.*\bpredictions?\b)", re.IGNORECASE)
_NOW = regex(r"\b(?:worked on|this loop|current|accomplished|done|completed|summary)\b", re.IGNORECASE)
_FINDINGS = regex(r"\b(?:insights?|findings?|discover(?:y|ies)|learnings?|lessons?)\b", re.IGNORECASE)
_BLOCKERS = regex(r"\b(?:blockers?|blocked|obstacles?)\b", re.IGNORECASE)
_BOLD = regex(r"\*\*(?P<text>[^*]+)\*\*:?\s*(?P<rest>.*)$")
_AGENT = regex(
    rf"\((?P<agent>[A-Z][a-z]+)\s+(?:Run|Loop)\b|\b(?P<known>(?i:{'|'.join(reading.AGENTS)}))\s+(?:Run|Loop)\b"
)
_NAMED = regex(r"(?:\d{1,2}\.|(?:Insight|Finding|Discovery|Lesson|Learning)\b)")
_NOTHING = regex(r"(?:none|n/?a|no (?:blockers|questions).*|nothing)\W*$", re.IGNORECASE)
_MOST, _LONGEST = 12, 300


_LOOKS = regex(r"(?im)^# RALF.{0,20}context")
KIND = Kind(("ralf-context.md", "ralf-context*.md"), ".md", lambda path: bool(_LOOKS.search(beginning(path))))


def order(path: Path) -> tuple[str, str]:
    """The page that was written last comes last: it tells where the work stands."""
    return time_of(beginning(path)), path.as_posix()


def read(source: Source) -> Reading:
    """What such a page comes to: a note for each of its parts, the decisions in it, what comes next."""
    lines = markdown.titled(markdown.lines_of(source.text))
    sections = _parts(lines)
    if not sections:
        return Reading("nothing", "RALF-CONTEXT.md", fields=(Field("the page", "left", "empty"),), why="no words in it")
    found = sorted(decisions_in(source.text, mixed=True), key=lambda one: one.first_line)
    starts = [one.first_line for one in found]
    top = next((line.heading for line in lines if line.level == 1), "")
    when = time_of(top) or time_of("\n".join(line.text for line in lines[:10]))
    route, rule = _route(lines)
    work = {"source_of_context": {"path": source.name, "sha256": source.sha256, "updated": when}, **_work(sections)}
    title = plain(next((one.heading for one in sections if _NOW.search(one.heading)), sections[0].heading))
    events, fields = [], [Field(f"# {top}", "carried", "when it was said", 1)] if top else []
    for section in sections:
        own = found[bisect_left(starts, section.first) : bisect_right(starts, section.last)]
        events += [decision_note(source, one, source.session(), when) for one in own]
        if text := _without(section, own):
            text = f"## {section.heading}\n\n{text}"
            events.append(note(text, path=source.name, line=section.first, timestamp=when, title=title))
        fields += _fields(section, own)
    head = text_of([line for line in lines if line.number < sections[0].first and not line.level])
    if head:
        events.insert(0, note(head, path=source.name, line=1, timestamp=when))
        fields.append(Field("above the first heading", "evidence", "its words"))
    told = f"RALF context, last updated {when or 'at a time that it does not tell'}: {title}"
    events.append(note(told, path=source.name, line=1, timestamp=when, title=title, work=work))
    return Reading(
        "imported",
        "RALF-CONTEXT.md",
        (Part(route, notes(source, events, what="ralf-context")),),
        rule,
        tuple(fields),
        decisions=len(found),
        notes=len(events),
    )


def _parts(lines: Sequence[Line]) -> list[Section]:
    """The page in its parts: by its main headings below the title, else as one."""
    sections = markdown.sections_of(lines)
    main = min((one.level for one in sections if one.level > 1), default=0)
    if main:
        return [one for one in sections if one.level == main]
    rest = tuple(line for line in lines if not line.level)
    return [Section(2, "The page", 1, rest, rest, ())] if text_of(rest) else []


def _route(lines: Sequence[Line]) -> tuple[str, str]:
    for line in lines:
        if line.level and (found := _AGENT.search(line.heading)):
            return reading.route_of_agent(found["agent"] or found["known"])
    for line in lines:
        if not line.fenced and (field := FIELD.match(line.text)) and field["name"].lower() in ("agent", "agent type"):
            return reading.route_of_agent(plain(field["value"]))
    return reading.FALLBACK, reading.BY_NEITHER


def _without(section: Section, found: Sequence[WrittenDecision]) -> str:
    """A section's words but for the decisions in it, which are notes of their own."""
    within = lines_within(found)
    kept = [
        line._replace(text=f"{'#' * line.level} {line.heading}" if line.level else line.text)
        for line in section.lines
        if line.number not in within
    ]
    return text_of(kept)


def _work(sections: Sequence[Section]) -> dict[str, Any]:
    """What a page says of the next steps, of findings and blockers; what it says first counts."""
    work: dict[str, Any] = {}
    for key, wanted in (("next_steps", _NEXT), ("findings", _FINDINGS), ("blockers", _BLOCKERS)):
        section = next((one for one in sections if wanted.search(one.heading[:_LONGEST])), None)
        if section is not None:
            work[key] = [item for item in _items(section) if not _NOTHING.match(item)][:_MOST]
    return {key: value for key, value in work.items() if value}


def _items(section: Section) -> Iterator[str]:
    """The items of a section: its headings or lines in bold that number something, else its outermost numbers and
    bullets, else all lines in bold.
    """
    headed = [line for line in section.lines if line.level and _NAMED.match(line.heading)]
    rows = [
        line for line in section.lines if not line.fenced and not line.level and not line.rule and line.text.strip()
    ]
    bold = [line for line in rows if _BOLD.match(line.text)]
    outer = [line for line in rows if not line.indent and ITEM.match(line.text)]
    numbered = [line for line in bold if _NAMED.match(line.text[2:])]
    for line in headed or numbered or outer or bold:
        found = ITEM.match(line.text)
        text = plain(line.heading or (found["text"] if found else line.text)).strip(" :")
        yield text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _fields(section: Section, found: Sequence[WrittenDecision]) -> Iterator[Field]:
    where = {"active_work.next_steps": _NEXT, "active_work.findings": _FINDINGS, "active_work.blockers": _BLOCKERS}
    into = next((name for name, wanted in where.items() if wanted.search(section.heading[:_LONGEST])), "")
    heading = f"## {section.heading}"
    yield Field(
        heading, "carried" if into else "evidence", f"{into}; evidence" if into else "its words, and the section"
    )
    within = lines_within(found)
    for line in section.lines:
        if line.level == section.level + 1 and line.number not in within:
            yield Field(f"### {line.heading}", "evidence", "its words, and the section")
    if found:
        yield Field(f"{heading}: decisions", "carried", "decisions", len(found))
