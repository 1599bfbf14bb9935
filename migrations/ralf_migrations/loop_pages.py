"""Reads RALF-CONTEXT.md, the page that each loop overwrote to tell the next one where the work stands."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ralf.text.patterns import regex
from ralf_integrations.blackbox5.runs import markdown
from ralf_integrations.blackbox5.runs.decisions import WrittenDecision, decisions_in, lines_within
from ralf_integrations.blackbox5.runs.folder import AGENTS, time_of
from ralf_integrations.blackbox5.runs.markdown import ITEM, Line, Section, plain
from ralf_migrations import reading
from ralf_migrations.reading import FIELD, Kind, Part, Reading, Source, beginning, text_of

_INTO = {
    "next_steps": regex(r"\b(?:next|to do|todo|upcoming|remaining)\b(?!.*\bpredictions?\b)", re.IGNORECASE),
    "findings": regex(r"\b(?:insights?|findings?|discover(?:y|ies)|learnings?|lessons?)\b", re.IGNORECASE),
    "blockers": regex(r"\b(?:blockers?|blocked|obstacles?)\b", re.IGNORECASE),
}
"""By field of the active work, the headings below which it stands."""

_BOLD = regex(r"\*\*(?P<text>[^*]+)\*\*:?\s*(?P<rest>.*)$")
_AGENT = regex(rf"\((?P<agent>[A-Z][a-z]+)\s+(?:Run|Loop)\b|\b(?P<known>(?i:{'|'.join(AGENTS)}))\s+(?:Run|Loop)\b")
_NAMED = regex(r"(?:\d{1,2}\.|(?:Insight|Finding|Discovery|Lesson|Learning)\b)")
_NOTHING = regex(r"(?:none|n/?a|no (?:blockers|questions).*|nothing)\W*$", re.IGNORECASE)
_LOOKS = regex(r"(?im)^# RALF.{0,20}context")
_MOST, _LONGEST = 12, 300

KIND = Kind(("ralf-context.md", "ralf-context*.md"), lambda text: bool(_LOOKS.search(text[:4_096])))


def order(path: Path) -> tuple[str, str]:
    """The page that was written last comes last: it tells where the work stands."""
    return time_of(beginning(path, 4_096)), path.as_posix()


def read(source: Source) -> Reading:
    """What such a page comes to: a note for each of its parts, the decisions in it, what comes next."""
    lines = markdown.lines_of(source.text)
    sections = _parts(lines)
    if not sections:
        return Reading("nothing", "RALF-CONTEXT.md", why="no words in it")
    found = sorted(decisions_in(source.text, mixed=True), key=lambda one: one.first_line)
    starts = [one.first_line for one in found]
    top = next((line.heading for line in lines if line.level == 1), "")
    when = time_of(top) or time_of("\n".join(line.text for line in lines[:10]))
    route, rule = _route(lines)
    work = {"source_of_context": {"path": source.name, "sha256": source.sha256, "updated": when}, **_work(sections)}
    title = plain(sections[0].heading)
    head = text_of([line for line in lines if line.number < sections[0].first and not line.level])
    events = [source.note(head, timestamp=when)] if head else []
    for section in sections:
        own = found[bisect_left(starts, section.first) : bisect_right(starts, section.last)]
        events += [source.decision(one, source.session(), when) for one in own]
        if text := _without(section, own):
            text = f"## {section.heading}\n\n{text}"
            events.append(source.note(text, section.first, timestamp=when, title=title))
    told = f"RALF context, last updated {when or 'at a time that it does not tell'}: {title}"
    events.append(source.note(told, timestamp=when, title=title, work=work))
    page = source.notes(events, "ralf-context")
    page.agent_type = route if rule == reading.BY_AGENT else ""
    return Reading("imported", "RALF-CONTEXT.md", (Part(route, page),), rule, len(found), len(events))


def _parts(lines: Sequence[Line]) -> list[Section]:
    """The page in its parts: by its main headings below the title, else as one."""
    sections = markdown.sections_of(lines)
    main = min((one.level for one in sections if one.level > 1), default=0)
    if main:
        return [one for one in sections if one.level == main]
    rest = tuple(line for line in lines if not line.level)
    return [Section(2, "The page", 1, rest, rest, ())] if text_of(rest) else []


def _route(lines: Sequence[Line]) -> tuple[str, str]:
    headed = (_AGENT.search(line.heading) for line in lines if line.level)
    fields = (found for line in lines if not line.fence and (found := FIELD.match(line.text)))
    agents = [found["agent"] or found["known"] for found in headed if found]
    agents += [plain(field["value"]) for field in fields if field["name"].lower() in ("agent", "agent type")]
    return reading.route_of_agent(agents[0] if agents else "")


def _without(section: Section, found: Sequence[WrittenDecision]) -> str:
    """A section's words but for the decisions in it, which are notes of their own."""
    within = lines_within(found)
    kept = (line for line in section.lines if line.number not in within)
    return text_of([line._replace(text=f"{'#' * line.level} {line.heading}") if line.level else line for line in kept])


def _work(sections: Sequence[Section]) -> dict[str, Any]:
    """What a page says of the next steps, of findings and blockers; what it says first counts."""
    work: dict[str, Any] = {}
    for key, wanted in _INTO.items():
        section = next((one for one in sections if wanted.search(one.heading[:_LONGEST])), None)
        items = [item for item in _items(section) if not _NOTHING.match(item)][:_MOST] if section else []
        work |= {key: items} if items else {}
    return work


def _items(section: Section) -> Iterator[str]:
    """The items of a section: its headings or lines in bold that number something, else its outermost numbers and
    bullets, else all lines in bold.
    """
    headed = [line for line in section.lines if line.level and _NAMED.match(line.heading)]
    rows = [one for one in section.lines if not (one.fence or one.level or one.rule) and one.text.strip()]
    bold = [line for line in rows if _BOLD.match(line.text)]
    outer = [line for line in rows if not line.indent and ITEM.match(line.text)]
    numbered = [line for line in bold if _NAMED.match(line.text[2:])]
    for line in headed or numbered or outer or bold:
        found = ITEM.match(line.text)
        text = plain(line.heading or (found["text"] if found else line.text)).strip(" :")
        yield text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
