"""The decisions of a DECISIONS.md, in every form in which agents have written them.

Known forms, the first one that a document uses counts:

* Sections: `## Decision 3: Title`, `### Decision: Title`, `## Meta-Decision: Title`, `## DEC-001: Title`, `## D-9 — …`,
  `# ADR-004: Title`, and any heading with a choice or a reason below it (`## 1. Title`, `## Title`). Below it stand
  fields: `**Decision:**`, `**Selected:**`, `**Selected Option:** OPT-003 (…)`, `**CHOSEN:**`, `### Decision`,
  `**Rationale:**`, `- **Rationale:** …`, `Rationale: …`, on the line of the name or below it, over any number of lines.
  Without a field for it the choice is the option that is called the selected one, else the next line or bullet, else
  the title.
* Items with a label: `**D-009: Title**` or `- D-006: text`, reasons in bullets below.
* Rows of a table with a column for the decision.
* Items below a heading that speaks of decisions: `## Decisions Made`.

Options: `**Options Considered:**` with numbers, letters or `- **OPT-001:** …`, pros and cons below;
`### Alternatives Considered` with `(REJECTED)` and `(SELECTED)`; `**X** - Rejected because …`; `A) X → Rejected (…)`;
`**Alternative Considered:**` with `**Why Alternative Rejected:**`. Tables that sum up sections give these their labels.
Text in fences and comments, placeholders of templates and what the loop writes itself are no decisions.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from ralf.runs import markdown
from ralf.runs.decisionlists import ID, in_bullets, in_items, in_tables, labelled_by_tables, speaks, tables_of
from ralf.runs.decisionpart import decision_of
from ralf.runs.fields import fields_of, key_of
from ralf.runs.markdown import Line, Section
from ralf.runs.written import WrittenDecision, plain

_NUMBERED = re.compile(
    r"\A(?:[A-Z][\w-]{0,30}[ -]){0,3}Decision\s*+(?:#|No\.?\s*+)?(?P<label>[A-Z]{0,4}-?\d[\w.-]*)?"
    r"\s*+(?:[:—\u2013]|(?<=\s)-(?=\s)|$)\s*+(?P<title>.*)$",
    re.IGNORECASE,
)
_LABELLED = re.compile(rf"\[?(?P<label>{ID})(?:\]?\s*(?:[:.)—\u2013]|\s-(?=\s)|$)|\])\s*(?P<title>.*)$")
_SHOWS = re.compile(
    r"(?:decision )?(?:examples?|samples?|templates?|formats?)(?: (?:decisions?|entry|format))?(?::.*)?\W*$"
    r"|how to (?:write|record|document|read|use)\b",
    re.IGNORECASE,
)
"""Headings below which it stands how a decision is written down."""

_LISTS = re.compile(r"(?:[\w-]+ ){0,2}decisions(?: \w+)?\W*$", re.IGNORECASE)  # a heading above decisions, itself none
_COUNTED = re.compile(r"(?P<label>\d{1,3})[.):]\s+(?P<title>.+)$")


def decisions_in(text: str, *, mixed: bool = False) -> list[WrittenDecision]:
    """The decisions of a document, in its order; [] for one in which nothing was decided.

    mixed  whether it tells other things, too: then a part counts only where it is called a decision
    """
    lines = markdown.lines_of(text)
    sections = markdown.sections_of(lines)
    if sections and _title_of(sections[0]) is None and not speaks(sections[0].heading):
        lines = markdown.titled(lines)
        sections = markdown.sections_of(lines)
    made = _in_sections(sections, mixed=mixed)
    if made:
        return labelled_by_tables(made, list(tables_of(lines)))
    if found := in_items(lines) or ([] if mixed else in_tables(lines)):
        return found
    undecided = {line.number for one in sections if (_title_of(one) or ("", ""))[0] for line in one.lines}
    left = [line for line in lines if line.number not in undecided]  # a list in one that is none lists its options
    return _below_headings(sections) or in_bullets(left, mixed=mixed) or ([] if mixed else _counted(sections))


# ---- sections ----


def _in_sections(sections: Sequence[Section], *, mixed: bool) -> list[WrittenDecision]:
    titled = [section.first for section in sections if _title_of(section) is not None]
    made = []
    last = 0  # the last line of the decision before: what stands within it belongs to it
    for section in sections:
        if section.first <= last or any(_SHOWS.match(plain(heading)) for heading in (*section.under, section.heading)):
            continue
        inner = bisect(titled, section.last) > bisect(titled, section.first)
        name = _title_of(section)
        if inner and (name is None or (section.level == 1 and not name[0])):
            continue
        if name is None and not _decides(section):
            continue
        if mixed and name is None and not any(map(speaks, section.under[1:])):
            continue
        end = titled[bisect(titled, section.first)] if inner else 0  # what it holds of decisions is not its own
        within = tuple(line for line in section.lines if not end or line.number < end)
        decision = _of_section(section, *(name or ("", section.heading)), within)
        last = max((line.number for line in within), default=section.first)
        if decision is not None:
            made.append(decision)
    return made


def _below_headings(sections: Sequence[Section]) -> list[WrittenDecision]:
    """The parts below a heading that speaks of decisions, where they have headings of their own."""
    made = []
    for section in sections:
        above = section.under[-1] if section.under and (len(section.under) > 1 or section.level > 2) else ""
        if above and speaks(above) and not key_of(section.heading) and not _LISTS.match(plain(section.heading)):
            made.append(_of_section(section, "", section.heading, section.lines))
    return [decision for decision in made if decision is not None]


def _counted(sections: Sequence[Section]) -> list[WrittenDecision]:
    """The parts with a number in their heading."""
    counted = [section for section in sections if section.level > 1 and _COUNTED.match(plain(section.heading))]
    made = [_of_section(section, "", plain(section.heading), section.own) for section in counted]
    return [decision for decision in made if decision is not None]


def _title_of(section: Section) -> tuple[str, str] | None:
    """The label and title of a heading that calls itself a decision; None for any other."""
    heading = re.sub(r"^[^\w\[]+", "", plain(section.heading))
    for form in (_LABELLED, _NUMBERED):
        if found := form.match(heading):
            if form is _NUMBERED and not found["label"] and not found["title"] and heading.casefold() == "decision":
                return None
            return (found["label"] or "").lstrip("-"), found["title"].strip() or ("" if found["label"] else heading)
    return None


def _decides(section: Section) -> bool:
    """Whether a section whose heading does not say so tells a choice, or a reason, of its own."""
    if key_of(section.heading):
        return False
    own = list(takewhile(lambda line: not line.rule, section.own))  # what follows may be the document's own end
    _, fields = fields_of(own)
    forms = ("bold", "plain") if speaks(section.heading) else ("bold", "bullet", "plain")  # a list is one of several
    keys = {field.key for field in fields if field.form in forms}
    below = [line.heading for line in section.lines if line.level == section.level + 1]
    return bool(keys & {"decision", "rationale"}) or any(key_of(heading) == "decision" for heading in below)


def _of_section(section: Section, label: str, title: str, lines: Sequence[Line]) -> WrittenDecision | None:
    if not label and (counted := _COUNTED.match(title)):
        label, title = counted["label"], counted["title"]
    place = section.first, section._replace(lines=tuple(lines)).last
    made = decision_of(title.replace("~~", ""), label, lines, place)
    return replace(made, status=made.status or "withdrawn") if made and section.heading.startswith("~~") else made
