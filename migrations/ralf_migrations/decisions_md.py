"""Reads DECISIONS.md of runs that are over: each decision with its choice, its reason and what was rejected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ralf.runs import markdown
from ralf.runs.decisionsmd import decisions_in
from ralf.runs.written import WrittenDecision, decision_tree, time_of
from ralf.transcripts.events import Event
from ralf.transcripts.notes import note, session_of
from ralf_migrations import routes
from ralf_migrations.places import Kind
from ralf_migrations.reading import Part, Reading, Source, beginning, notes
from ralf_migrations.report import Field

_LOOKS = re.compile(r"^#+ .*\bdecisions?\b", re.IGNORECASE | re.MULTILINE)


def _looks(path: Path) -> bool:
    return bool(_LOOKS.search(beginning(path)))


KIND = Kind(("decisions.md", "*decisions.md", "decisions-*.md"), ".md", _looks)


def read(source: Source) -> Reading:
    """What a document of decisions comes to."""
    found = decisions_in(source.text)
    if not found:
        sections = markdown.sections_of(markdown.lines_of(source.text))
        fields = tuple(
            Field(f"{'#' * one.level} {one.heading}", "left", "a skeleton: nothing was decided") for one in sections
        )
        return Reading("nothing", "DECISIONS.md", fields=fields, why="no decisions in it")
    route, rule = _route(source)
    in_its_run = source.path.name.upper() == "DECISIONS.MD"
    session = session_of(source.path.parent, source.project.root) if in_its_run else source.session()
    when = time_of("\n".join(source.lines[: found[0].first_line]))
    events = [_note(source, one, session, when) for one in found]
    rest = list(_rest(source, found))
    events += [event for event, _ in rest]
    return Reading(
        "imported",
        "DECISIONS.md",
        (Part(route, notes(source, events, what="decisions-md")),),
        rule,
        (*_fields(found), *(field for _, field in rest)),
        decisions=len(found),
        notes=len(events),
    )


def _route(source: Source) -> tuple[str, str]:
    route, rule = routes.of_run(source.path.parent)
    if rule != routes.TASK:
        head = "\n".join(source.lines[:12])
        if task := routes.task_in(head):
            return routes.of_task(task)
    return route, rule


def _note(source: Source, one: WrittenDecision, session: str, when: str) -> Event:
    tree = decision_tree(one, session)
    excerpt = source.excerpt(one.first_line, one.last_line).strip("\n")
    return note(
        excerpt,
        path=source.name,
        line=one.first_line,
        timestamp=tree.get("timestamp", "") or when,
        title=f"Decisions of {source.path.parent.name}",
        decision=tree,
        file_sha256=source.sha256,
    )


def _fields(found: Sequence[WrittenDecision]) -> Iterator[Field]:
    told = {
        "title or choice": ("decision.decision", len(found)),
        "label": ("decision.label", sum(bool(one.label) for one in found)),
        "rationale": ("decision.rationale", sum(bool(one.rationale) for one in found)),
        "alternatives": ("decision.alternatives", sum(len(one.alternatives) for one in found)),
        "status": ("decision.status", sum(bool(one.status) for one in found)),
        "timestamp": ("decision.timestamp", sum(bool(one.timestamp) for one in found)),
    }
    for name, (where, count) in told.items():
        if count:
            yield Field(name, "carried", where, count)
    others: dict[str, int] = {}
    for one in found:
        for name in one.fields:
            others[name] = others.get(name, 0) + 1
    for name, count in others.items():
        carried = name in ("context", "reversibility", "consequences")
        yield Field(name, "carried" if carried else "evidence", f"decision.{name}" if carried else "its words", count)


def _rest(source: Source, found: Sequence[WrittenDecision]) -> Iterator[tuple[Event, Field]]:
    """What stands between the decisions, in its words, by the heading above it."""
    within = {number for one in found for number in range(one.first_line, one.last_line + 1)}
    lines = markdown.lines_of(source.text)
    heading, first, kept = "above the first heading", 1, list[str]()
    for line in [*lines, markdown.Line(len(lines) + 1, "", level=1, heading="")]:
        inside = line.number in within
        if line.level or inside:
            if text := "\n".join(kept).strip("\n -"):
                event = note(f"{heading}\n\n{text}", path=source.name, line=first, aside=True)
                yield event, Field(heading, "evidence", "its words")
            kept = []
        if line.level and not inside:
            heading, first = f"{'#' * line.level} {line.heading}", line.number
        elif not inside and not line.rule:
            kept.append(line.text)
