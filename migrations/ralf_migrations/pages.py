"""Reads what agents wrote in Markdown for those after them: DECISIONS.md of runs that are over, and RALF-CONTEXT.md,
the page that each loop overwrote to tell the next one where the work stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ralf.project import Project
from ralf.text.cleaning import trimmed
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import session_of
from ralf_integrations.blackbox5.runs import markdown, parts as documents
from ralf_integrations.blackbox5.runs.decisions import WrittenDecision, decisions_in, lines_within
from ralf_integrations.blackbox5.runs.folder import AGENTS, time_of
from ralf_integrations.blackbox5.runs.markdown import ITEM, Line, plain
from ralf_migrations.reading import (
    FIELD,
    Reading,
    Source,
    agent_of_run,
    beginning,
    opened,
    route_of,
    task_in,
    task_of_run,
)

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
_MOST, _LONGEST = 12, 300


def read_decisions(project: Project, path: Path) -> Reading:
    """What a document of decisions comes to."""
    source, folder = opened(project, path), path.parent
    found = decisions_in(source.text)
    if not found:
        return Reading("nothing", why="no decisions in it")
    route = route_of(task_of_run(folder) or task_in(source.excerpt(1, 12)), agent_of_run(folder))
    of_run = path.name.upper() == "DECISIONS.MD"
    session = session_of(folder, project.root) if of_run else source.session()
    when = time_of(source.excerpt(1, found[0].first_line))
    events = _notes(source, found, session, when, title=f"Decisions of {folder.name}", aside=True)
    return Reading("imported", [(route, source.notes(events, "decisions-md"))])


def by_time(path: Path) -> tuple[str, str]:
    """The page that was written last comes last: it tells where the work stands."""
    return time_of(beginning(path)), path.as_posix()


def read_context(project: Project, path: Path) -> Reading:
    """What such a page comes to: a note for each of its parts, the decisions in it, what comes next."""
    source = opened(project, path)
    parts = documents.parts_of(path.name, source.text)
    if not any(part.is_written for part in parts):
        return Reading("nothing", why="no words in it")
    lines = markdown.lines_of(source.text)
    headed = (_AGENT.search(line.heading) for line in lines if line.level)
    fields = (field for line in lines if not line.fence and (field := FIELD.match(line.text)))
    agents = [found["agent"] or found["known"] for found in headed if found]
    agents += [plain(field["value"]) for field in fields if field["name"].lower() in ("agent", "agent type")]
    route = route_of("", next(iter(agents), ""))
    when = time_of(source.excerpt(1, 10))
    title = plain(next((part.heading for part in parts if not part.top), "The page"))
    events = _notes(source, decisions_in(source.text, mixed=True), source.session(), when, title=title)
    work = {"source_of_context": {"path": source.name, "sha256": source.sha256, "updated": when}, **_work(parts)}
    told = f"RALF context, last updated {when or 'at a time that it does not tell'}: {title}"
    events.append(source.note(told, timestamp=when, title=title, work=work))
    page = source.notes(events, "ralf-context")
    page.agent_type = route if agents else ""
    return Reading("imported", [(route, page)])


def _notes(
    source: Source, found: Sequence[WrittenDecision], session: str, when: str, *, title: str, **fields: object
) -> list[Event]:
    """The decisions of a document, and what stands between them, part by part, in the order in which they stand."""
    events = [source.decision(one, session, when=when, title=title) for one in found]
    events += source.rest(lines_within(found), timestamp=when, title=title, **fields)
    return sorted(events, key=lambda event: int(event.input["line"]))


def _work(parts: Sequence[documents.Part]) -> dict[str, Any]:
    """What a page says of the next steps, of findings and blockers; what it says first counts."""
    work: dict[str, Any] = {}
    for key, wanted in _INTO.items():
        lines = next((one.lines for one in parts if not one.top and wanted.search(one.heading[:_LONGEST])), ())
        items = [item for item in _items(lines[1:]) if not _NOTHING.match(item)][:_MOST]
        work |= {key: items} if items else {}
    return work


def _items(lines: Sequence[Line]) -> Iterator[str]:
    """The items of a part: its headings or lines in bold that number something, else its outermost numbers and
    bullets, else all lines in bold.
    """
    rows = [one for one in lines if not (one.fence or one.level or one.rule) and one.text.strip()]
    bold = [line for line in rows if _BOLD.match(line.text)]
    kinds = (
        [line for line in lines if line.level and _NAMED.match(line.heading)],
        [line for line in bold if _NAMED.match(line.text[2:])],
        [line for line in rows if not line.indent and ITEM.match(line.text)],
        bold,
    )
    for line in next(filter(None, kinds), ()):
        found = ITEM.match(line.text)
        yield trimmed(plain(line.heading or (found["text"] if found else line.text)).strip(" :"), _LONGEST)
