"""Decisions as a run writes them down: in Markdown, whatever the form, and as one of `ralf.model`.

Of these forms the first one that a document uses counts:

* Sections that call themselves a decision (`## Decision 3: Title`, `### DEC-001: Title`), or have a choice or a reason
  as a field of their own. The choice is a field, else the option that is called the selected one, else the next line or
  bullet, else the title.
* Items with a label: `**D-009: Title**`, `- D-006: text`.
* Rows of a table with a column for the decision.
* Items below a heading that speaks of decisions.

Text in fences and comments, placeholders of templates and what the loop writes itself are no decisions.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from ralf.document.tree import to_tree
from ralf.model import Decision
from ralf.text.cleaning import clean
from ralf_integrations.blackbox5.runs import markdown
from ralf_integrations.blackbox5.runs.fields import BOLD_LINE, Field, fields_of, key_of
from ralf_integrations.blackbox5.runs.folder import time_of
from ralf_integrations.blackbox5.runs.markdown import ITEM, Line, Section, cells_of, plain
from ralf_integrations.blackbox5.runs.options import Option, chosen, options_of

KEPT = ("context", "reversibility", "consequences")
"""Fields of a decision that are kept under their names."""

NOTHING: tuple[object, ...] = (None, "", [], {})
"""Values that say nothing."""


@dataclass(frozen=True, slots=True)
class WrittenDecision:
    """One decision of a document.

    first_line, last_line  where it stands, counted from 1
    label         what the document calls it: `DEC-001`, `D-9`, `3`; "" where it has no name
    title, text   the words of its heading, and the choice in its own words; either may be ""
    alternatives  what was rejected, each "option: why not", or the option alone
    status, timestamp  as written
    fields        everything else, by the name that it has there: context, reversibility, consequences …
    """

    first_line: int
    last_line: int
    label: str = ""
    title: str = ""
    text: str = ""
    rationale: str = ""
    alternatives: tuple[str, ...] = ()
    status: str = ""
    timestamp: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


def lines_within(found: Iterable[WrittenDecision]) -> set[int]:
    """The numbers of the lines on which decisions stand."""
    return {number for one in found for number in range(one.first_line, one.last_line + 1)}


# ---- as a decision of the model ----

_STATUSES = {
    "reversed": r"\b(?:roll(?:ed)?[ _-]?back|revers(?:ed|al)|reverted|undone)\b",
    "superseded": r"\b(?:supersed\w*|deprecated|replaced|obsolete|downgraded)\b",
    "dropped": r"\b(?:rejected|declined|dropped|withdrawn|abandoned|cancell?ed)\b",
}


def statement_of(written: WrittenDecision) -> str:
    """What was decided, on one line: the title and the choice, each where the other does not say it already."""
    title, text = plain(written.title), plain(written.text)
    if not text or not title:
        return text or title
    if title.casefold() in text.casefold():
        return text
    return title if _words(text) in _words(title) else f"{title.rstrip(':.')}: {text}"


def _words(text: str) -> str:
    return " ".join(["", *re.findall(r"\w+", text.casefold()), ""])


def decision_tree(written: WrittenDecision, session: str = "", *, origin: str = "") -> dict[str, Any]:
    """The tree of `ralf.model.Decision` that a written decision is.

    session  what its `label` is qualified by, since labels begin anew in every document: `SESSION#D-9`
    origin   who made it; "" where its transcript says that

    A status that the model has no word for is kept as `written_status`.
    """
    extra: dict[str, Any] = {}
    if written.label:
        extra["label"] = f"{session}#{written.label}" if session else written.label
    told = ((name, written.fields.get(name)) for name in KEPT)
    extra |= {name: plain(value) if isinstance(value, str) else value for name, value in told if value not in NOTHING}
    status = next((name for name, words in _STATUSES.items() if re.search(words, written.status, re.I)), "active")
    if written.status and status == "active":
        extra["written_status"] = plain(written.status)
    return to_tree(
        Decision(
            decision=statement_of(written),
            rationale=clean(written.rationale).strip(),
            alternatives=tuple(plain(option) for option in written.alternatives),
            status=status,
            timestamp=time_of(written.timestamp),
            origin=origin,
            extra=extra,
        )
    )


# ---- the forms of a document ----

_ID = r"(?:D|DEC|ADR|DR)[-_ ]?\d[\w.-]*|(?:D|DEC|ADR)-[A-Z][\w.-]*\d"
"""Labels that only decisions have."""
_OF_OTHER_THINGS = re.compile(
    r"\b(?:summary|metrics|framework|criteria|tree|quality|review|rationale|log|registry|format|process|guide(?:lines)?"
    r"|template|examples?|samples?|when|how|pending|open|upcoming|future|required|needed|outstanding|unresolved)\b",
    re.IGNORECASE,
)
_LABELLED_ITEM = re.compile(
    rf"(?P<mark>[-*+•]\s+|\d{{1,3}}[.)]\s+)?(?P<bold>\*\*)?\[?(?P<label>{_ID}|Decision\s*#?\d{{1,3}})\]?(?:\*\*)?"
    r"\s*[:—\u2013]\s*(?:\*\*)?\s*(?P<title>\S.*)$"
)
_TITLES = (
    re.compile(rf"\[?(?P<label>{_ID})(?:\]?\s*(?:[:.)—\u2013]|\s-(?=\s)|$)|\])\s*(?P<title>.*)$"),
    re.compile(
        r"\A(?:[A-Z][\w-]{0,30}[ -]){0,3}Decision\s*+(?:#|No\.?\s*+)?(?P<label>[A-Z]{0,4}-?\d[\w.-]*)?"
        r"\s*+(?:[:—\u2013]|(?<=\s)-(?=\s)|$)\s*+(?P<title>.*)$",
        re.IGNORECASE,
    ),
)
_COUNTED = re.compile(r"(?P<label>\d{1,3})[.):]\s+(?P<title>.+)$")
_SHOWS = re.compile(
    r"(?:decision )?(?:examples?|samples?|templates?|formats?)\b|how to (?:write|record|document|read|use)\b", re.I
)
"""A heading below which it stands how a decision is written down."""


def decisions_in(text: str, *, mixed: bool = False) -> list[WrittenDecision]:
    """The decisions of a document, in its order; [] for one in which nothing was decided.

    mixed  whether it tells other things, too: then a part counts only where it is called a decision
    """
    lines = markdown.lines_of(text)
    sections = markdown.sections_of(lines)
    if found := _in_sections(sections, mixed=mixed):
        return found
    undecided = {line.number for one in sections if (_title_of(one) or ("", ""))[0] for line in one.lines}
    left = [line for line in lines if line.number not in undecided]  # a list in one that is none lists its options
    listed = _in_items(left, mixed=mixed)
    labelled = [one for one in listed if one.label]
    return labelled or ([] if mixed else _in_tables(lines)) or listed


def _speaks(heading: str) -> bool:
    """Whether decisions that were made are listed below a heading, or a line in bold."""
    return bool(re.search(r"\bdecisions?\b", heading, re.I)) and not _OF_OTHER_THINGS.search(heading)


def _in_sections(sections: Sequence[Section], *, mixed: bool) -> list[WrittenDecision]:
    titled = [section.first for section in sections if _title_of(section) is not None]
    made = []
    last = 0  # the last line of the decision before: what stands within it belongs to it
    for section in sections:
        if section.first <= last or any(_SHOWS.match(plain(heading)) for heading in (*section.under, section.heading)):
            continue
        name = _title_of(section)
        following = bisect(titled, section.first)
        inner = bisect(titled, section.last) > following
        if inner and (name is None or (section.level == 1 and not name[0])):
            continue
        if name is None and (not _decides(section) or (mixed and not any(map(_speaks, section.under[1:])))):
            continue
        within = [line for line in section.lines if not inner or line.number < titled[following]]
        last = max((line.number for line in within), default=section.first)
        label, title = name or ("", section.heading)
        if not label and (counted := _COUNTED.match(title)):
            label, title = counted["label"], counted["title"]
        made.append(_decision_of(title, label, within, (section.first, section._replace(lines=tuple(within)).last)))
    return list(filter(None, made))


def _title_of(section: Section) -> tuple[str, str] | None:
    """The label and title of a heading that calls itself a decision; None for any other."""
    heading = re.sub(r"^[^\w\[]+", "", plain(section.heading))
    found = next(filter(None, (form.match(heading) for form in _TITLES)), None)
    if found is None or heading.casefold() == "decision":
        return None
    return (found["label"] or "").lstrip("-"), found["title"].strip() or ("" if found["label"] else heading)


def _decides(section: Section) -> bool:
    """Whether a section whose heading does not say so tells a choice, or a reason, of its own."""
    if key_of(section.heading):
        return False
    _, fields = fields_of(list(takewhile(lambda line: not line.rule, section.own)))  # then the document's own end
    keys = {field.key for field in fields if field.form != "bullet" or not _speaks(section.heading)}
    below = [line.heading for line in section.lines if line.level == section.level + 1]
    return bool(keys & {"decision", "rationale"}) or any(key_of(heading) == "decision" for heading in below)


def _in_items(lines: Sequence[Line], *, mixed: bool) -> list[WrittenDecision]:
    """Items with a label: `**D-009: Title**` anywhere, `- D-006: text` below what speaks of decisions; and all other
    items there; below the title, too, unless `mixed`.
    """
    made = []
    end = 0
    is_listed = in_bold = False  # below a heading, or a line in bold, that speaks of decisions
    for place, line in enumerate(lines):
        if place < end or line.fence:
            continue
        found, item = _LABELLED_ITEM.match(line.text.strip()), ITEM.match(line.text)
        bold = BOLD_LINE.match(line.text)
        if line.level:
            is_listed, in_bold = _speaks(line.heading) and not (mixed and line.level == 1), False
        elif found and ((found["bold"] and not found["mark"]) or is_listed):
            end = _end_of_item(lines, place, marked=bool(found["mark"]))
            title = found["title"].rstrip().removesuffix("**") if found["bold"] else found["title"]
            made.append(_of_item(title, found["label"], lines[place:end]))
        elif bold and (in_bold or not is_listed):
            is_listed = in_bold = _speaks(bold[1])
        elif item and is_listed and not line.indent and not _is_metadata(item["text"]):
            end = _end_of_item(lines, place, marked=True)
            title, text = _halves(item["text"])
            decision = _of_item(title, "", lines[place:end])
            made.append(decision and replace(decision, rationale=decision.rationale or text))
    return list(filter(None, made))


def _of_item(title: str, label: str, lines: Sequence[Line]) -> WrittenDecision | None:
    last = next(line.number for line in reversed(lines) if line.text.strip())
    below = [line._replace(text=line.text.lstrip()) if ITEM.match(line.text) else line for line in lines[1:]]
    return _decision_of(title, label, below, (lines[0].number, last))


def _end_of_item(lines: Sequence[Line], place: int, *, marked: bool) -> int:
    """Where an item ends: at the next one, a heading, a rule, or what stands no deeper than it does."""
    for end in range(place + 1, len(lines)):
        line = lines[end]
        if line.level or line.rule or (not line.fence and _LABELLED_ITEM.match(line.text.strip())):
            return end
        if not line.text.strip() or line.fence:
            continue
        after_gap = not ITEM.match(line.text) and not line.indent and not lines[end - 1].text.strip()
        if (marked and line.indent <= lines[place].indent) or (not marked and after_gap):
            return end
    return len(lines)


def _in_tables(lines: Sequence[Line]) -> list[WrittenDecision]:
    """The rows of the tables that have a column for the decision: each cell is a field that its column names."""
    made = []
    for head, _, *rows in markdown.tables_of(lines):
        names = ["ID" if re.fullmatch(r"#|n[or]\.?", name, re.I) else plain(name) for name in cells_of(head)]
        decided = [place for place, name in enumerate(names) if key_of(name) == "decision"]
        if len(decided) > 1:  # what it is about, and the choice
            names[decided[0]] = "Title"
        if decided or any(key_of(name) == "title" for name in names):
            for row in rows:
                cells = (
                    Line(row.number, f"**{name}:** {cell}") for name, cell in zip(names, cells_of(row), strict=False)
                )
                made.append(_decision_of("", "", [*cells], (row.number, row.number)))
    return list(filter(None, made))


def _halves(item: str) -> tuple[str, str]:
    """`**Choice** - reason` in two; a choice without one is whole, and so is `**Decision:** choice`."""
    named = re.match(r"\*\*([^*]+):\*\*\s*(\S.*)$", item)
    if named and key_of(named[1]) == "decision":
        return named[2], ""
    found = re.match(r"\*\*(.+?)\*\*\s*[:—\u2013-]*\s*(.*)$", item)
    return (found[1].rstrip(":"), found[2]) if found else (item, "")


def _is_metadata(item: str) -> bool:
    """Whether an item tells which run or task it is, or a field of something else."""
    found = re.match(r"\*\*([^*]+?)(?::\*\*|\*\*:)", item)
    key = key_of(found[1]) if found is not None else "decision"
    return key != "decision" and bool(key or not markdown.says_something([Line(1, item)], header=True))


# ---- one part as the decision that it tells ----

_PLACEHOLDER = re.compile(
    r"FILL_ME|TODO|TBD|\.{3}|…|-+|_+|n/?a|none(?: (?:yet|made))?|title|decision title"
    r"|no (?:\w+ ){0,3}decisions?\b.*|nothing (?:was )?decided\b.*"
    r"|\[[^\]]*\]|\{[^}]*\}+|<[^>]*>",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(r"\W*(?:pending|open|proposed|undecided|tbd|to be decided|needed|under \w+)\b", re.IGNORECASE)
_TAKEN_UP = ("rationale", "alternative", "why not", "status", "timestamp", "id", "title")


def _is_placeholder(text: str) -> bool:
    """Whether a template's mark, or nothing, stands where words should."""
    bare = plain(text).strip(" :*`")
    return _PLACEHOLDER.fullmatch(bare) is not None or not bare.strip(" #")


def _decision_of(title: str, label: str, lines: Sequence[Line], place: tuple[int, int]) -> WrittenDecision | None:
    """The decision that stands at `place` (first and last line) under a title, its `lines` below; None where only a
    template's marks are there, or what the loop wrote.
    """
    lead, fields = fields_of(lines)
    by_key: defaultdict[str, list[Field]] = defaultdict(list)
    for told in fields:
        by_key[told.key].append(told)
    first = {key: next((one.value for one in by_key[key] if one.value), "") for key in ("title", "status", "id")}
    said = next((field for field in (*by_key["decision"], *by_key["approach"]) if field.value), None)
    text = said.value if said is not None else ""
    options = _options_in(fields)
    taken = chosen(options, text)
    lead_rest = markdown.text_of(lead)
    if taken is not None and plain(text).strip(" .*`").casefold() in ("", taken.name.casefold(), taken.called):
        text = taken.text
    elif not text:
        text, lead_rest = _first_said(lead)
    rationale = "\n\n".join(field.value for field in by_key["rationale"] if field.value) or lead_rest
    if markdown.is_of_the_loop(plain(rationale)):
        return None
    alternatives = tuple(one.as_alternative() for one in options if one is not taken and one.is_rejected(taken))
    others = [field for field in fields if field is not said and field.key not in _TAKEN_UP and field.value]
    filled = [value for value in (*(line.text for line in lead), *(field.value for field in fields)) if value.strip()]
    is_empty = bool(filled) and all(map(_is_placeholder, filled))
    title, text, rationale = ("" if _is_placeholder(one) else one for one in (title or first["title"], text, rationale))
    label, title = label or plain(first["id"]), plain(title)
    if not label and re.fullmatch(_ID, title or plain(text)):
        label, title, text = title or plain(text), "", text if title else ""
    if not (title or text) or (not text and ((not rationale and is_empty) or _UNDECIDED.match(plain(first["status"])))):
        return None
    return WrittenDecision(
        *place,
        label=label,
        title=title,
        text=text,
        rationale=rationale,
        alternatives=alternatives,
        status=plain(first["status"]),
        timestamp=next((time for field in by_key["timestamp"] if (time := time_of(field.value))), ""),
        fields=_by_known_name({one.name: one.value for one in others if one.key != "options" or not alternatives}),
    )


def _options_in(fields: Sequence[Field]) -> list[Option]:
    """The options of all fields that list them, with what another field says of why one was rejected."""
    made: list[Option] = []
    for told in fields:
        if told.key in ("options", "alternative"):
            found = options_of(told.lines)
            made += found if "option" in told.name.lower() else [replace(one, is_other=True) for one in found]
        elif told.key == "why not" and made:
            made[-1].notes += ["; ".join(plain(line.text) for line in told.lines if line.text.strip())]
    return made


def _first_said(lead: Sequence[Line]) -> tuple[str, str]:
    """The first paragraph or bullet of a text, and the rest of it."""
    lines = markdown.stripped([line for line in lead if not line.rule])
    if not lines or lines[0].fence or lines[0].table:
        return "", markdown.text_of(lines)
    item = ITEM.match(lines[0].text)
    first = [item["text"] if item else lines[0].text]
    for line in lines[1:]:  # of items only deeper ones belong to it
        is_other = ITEM.match(line.text) and not (item and line.indent > lines[0].indent)
        if not line.text.strip() or line.fence or is_other:
            break
        first.append(line.text)
    return "\n".join(map(str.rstrip, first)).strip(), markdown.text_of(lines[len(first) :])


def _by_known_name(fields: dict[str, str]) -> dict[str, str]:
    """The fields, one that is known under its key."""
    made: dict[str, str] = {}
    for name, value in fields.items():
        key = key_of(name) if key_of(name) in KEPT else name
        made[key if key not in made else name] = value
    return made
