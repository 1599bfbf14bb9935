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
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from ralf_integrations.blackbox5.runs import markdown
from ralf_integrations.blackbox5.runs.folder import time_of
from ralf_integrations.blackbox5.runs.markdown import (
    ITEM,
    Field,
    Line,
    Section,
    cells_of,
    fields_of,
    key_of,
    plain,
    stripped,
    tables_of,
    text_of,
)
from ralf_integrations.blackbox5.runs.written import Option, WrittenDecision, chosen, options_of, rejected

_ID = r"(?:D|DEC|ADR|DR)[-_ ]?\d[\w.-]*|(?:D|DEC|ADR)-[A-Z][\w.-]*\d"
"""Labels that only decisions have."""

_SPEAKS = re.compile(r"\bdecisions?\b", re.IGNORECASE)
_OF_OTHER_THINGS = re.compile(
    r"\b(?:summary|metrics|framework|criteria|tree|quality|review|rationale|log|registry|record(?:ing)?|format|process"
    r"|guide(?:lines)?|template|when|how|pending|open|upcoming|future|required|needed|outstanding|unresolved|to make"
    r"|awaiting)\b",
    re.IGNORECASE,
)
_LABELLED_ITEM = re.compile(
    rf"(?P<mark>[-*+•]\s+|\d{{1,3}}[.)]\s+)?(?P<bold>\*\*)?\[?(?P<label>{_ID}|Decision\s*#?\d{{1,3}})\]?(?:\*\*)?"
    r"\s*[:—\u2013]\s*(?:\*\*)?\s*(?P<title>\S.*)$"
)
_BOLD_LINE = re.compile(r"\*\*([^*]+)\*\*:?\s*$")
_COLUMNS = (
    ("label", re.compile(r"#|no\.?|nr\.?|id|decision id|decision #", re.IGNORECASE)),
    ("title", re.compile(r"decisions?|title|topic|what|decision made|decision point", re.IGNORECASE)),
    (
        "text",
        re.compile(r"(?:option )?(?:selected|chosen)(?: option)?|choice|selection|action|resolution", re.IGNORECASE),
    ),
    ("rationale", re.compile(r"rationale|reason(?:ing)?|why|justification|because", re.IGNORECASE)),
    ("alternatives", re.compile(r"(?:alternatives?|options?)(?: (?:considered|rejected))?|rejected", re.IGNORECASE)),
    ("status", re.compile(r"status|state", re.IGNORECASE)),
    ("timestamp", re.compile(r"timestamp|date|time|when", re.IGNORECASE)),
)
_AS_LABEL = re.compile(rf"(?:{_ID}|#?\d{{1,4}}[a-z]?|meta)$", re.IGNORECASE)
_NUMBERED = re.compile(
    r"\A(?:[A-Z][\w-]{0,30}[ -]){0,3}Decision\s*+(?:#|No\.?\s*+)?(?P<label>[A-Z]{0,4}-?\d[\w.-]*)?"
    r"\s*+(?:[:—\u2013]|(?<=\s)-(?=\s)|$)\s*+(?P<title>.*)$",
    re.IGNORECASE,
)
_LABELLED = re.compile(rf"\[?(?P<label>{_ID})(?:\]?\s*(?:[:.)—\u2013]|\s-(?=\s)|$)|\])\s*(?P<title>.*)$")
_SHOWS = re.compile(
    r"(?:decision )?(?:examples?|samples?|templates?|formats?)(?: (?:decisions?|entry|format))?(?::.*)?\W*$"
    r"|how to (?:write|record|document|read|use)\b",
    re.IGNORECASE,
)
"""Headings below which it stands how a decision is written down."""

_LISTS = re.compile(r"(?:[\w-]+ ){0,2}decisions(?: \w+)?\W*$", re.IGNORECASE)  # a heading above decisions, itself none
_COUNTED = re.compile(r"(?P<label>\d{1,3})[.):]\s+(?P<title>.+)$")
_PLACEHOLDER = re.compile(
    r"FILL_ME|TODO|TBD|\.{3}|…|-+|_+|n/?a|none(?: (?:yet|made))?|title|decision title"
    r"|no (?:\w+ ){0,3}decisions?\b.*|nothing (?:was )?decided\b.*"
    r"|\[[^\]]*\]|\{[^}]*\}+|<[^>]*>",
    re.IGNORECASE,
)
_ASKS = re.compile(r"(?:what|why|how|which|who|when|where)\b[^.?\n]*\?\W*$", re.IGNORECASE)
_UNDECIDED = re.compile(r"\W*(?:pending|open|proposed|undecided|tbd|to be decided|needed|under \w+)\b", re.IGNORECASE)
_TAKEN_UP = ("rationale", "alternative", "why not", "status", "timestamp", "id", "title")
_OF_THE_LOOP = re.compile(r"Based on BB5 state analysis|beginning work", re.IGNORECASE)
"""Reasons that the loop itself writes into every run."""


def decisions_in(text: str, *, mixed: bool = False) -> list[WrittenDecision]:
    """The decisions of a document, in its order; [] for one in which nothing was decided.

    mixed  whether it tells other things, too: then a part counts only where it is called a decision
    """
    lines = markdown.lines_of(text)
    sections = markdown.sections_of(lines)
    if sections and _title_of(sections[0]) is None and not _speaks(sections[0].heading):
        lines = markdown.titled(lines)
        sections = markdown.sections_of(lines)
    made = _in_sections(sections, mixed=mixed)
    if made:
        return _labelled_by_tables(made, list(tables_of(lines)))
    if found := _in_items(lines) or ([] if mixed else _in_tables(lines)):
        return found
    undecided = {line.number for one in sections if (_title_of(one) or ("", ""))[0] for line in one.lines}
    left = [line for line in lines if line.number not in undecided]  # a list in one that is none lists its options
    return _below_headings(sections) or _in_bullets(left, mixed=mixed) or ([] if mixed else _counted(sections))


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
        if mixed and name is None and not any(map(_speaks, section.under[1:])):
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
        if _speaks(above) and not key_of(section.heading) and not _LISTS.match(plain(section.heading)):
            made.append(_of_section(section, "", section.heading, section.lines))
    return list(filter(None, made))


def _counted(sections: Sequence[Section]) -> list[WrittenDecision]:
    """The parts with a number in their heading."""
    counted = [section for section in sections if section.level > 1 and _COUNTED.match(plain(section.heading))]
    made = (_of_section(section, "", plain(section.heading), section.own) for section in counted)
    return list(filter(None, made))


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
    forms = ("bold", "plain") if _speaks(section.heading) else ("bold", "bullet", "plain")  # a list is one of several
    keys = {field.key for field in fields if field.form in forms}
    below = [line.heading for line in section.lines if line.level == section.level + 1]
    return bool(keys & {"decision", "rationale"}) or any(key_of(heading) == "decision" for heading in below)


def _of_section(section: Section, label: str, title: str, lines: Sequence[Line]) -> WrittenDecision | None:
    if not label and (counted := _COUNTED.match(title)):
        label, title = counted["label"], counted["title"]
    place = section.first, section._replace(lines=tuple(lines)).last
    made = _decision_of(title.replace("~~", ""), label, lines, place)
    return replace(made, status=made.status or "withdrawn") if made and section.heading.startswith("~~") else made


# ---- items with a label ----


def _speaks(heading: str) -> bool:
    """Whether decisions that were made are listed below a heading, or a line in bold."""
    return bool(_SPEAKS.search(heading)) and not _OF_OTHER_THINGS.search(heading)


def _in_items(lines: Sequence[Line]) -> list[WrittenDecision]:
    """Items that begin with a label: `**D-009: Title**` anywhere, `- D-006: text` below what speaks of decisions."""
    made = []
    end = 0
    about = ""  # the heading, or the line in bold, that the items stand under
    for place, line in enumerate(lines):
        if place < end:
            continue
        found = None if line.fenced or line.level else _LABELLED_ITEM.match(line.text.strip())
        if line.level or (not found and line.text.startswith("**")):
            about = line.heading or line.text
        if not found or not ((found["bold"] and not found["mark"]) or _speaks(about)):
            continue
        end = _end_of_item(lines, place, marked=bool(found["mark"]))
        title = found["title"].rstrip().removesuffix("**") if found["bold"] else found["title"]
        last = next(row.number for row in reversed(lines[place:end]) if row.text.strip())
        made.append(_decision_of(title, found["label"], _outdented(lines[place + 1 : end]), (line.number, last)))
    return list(filter(None, made))


def _outdented(lines: Sequence[Line]) -> list[Line]:
    return [line._replace(text=line.text.lstrip()) if ITEM.match(line.text) else line for line in lines]


def _end_of_item(lines: Sequence[Line], place: int, *, marked: bool) -> int:
    """Where an item ends: at the next one, a heading, a rule, or what stands no deeper than it does."""
    depth = lines[place].indent
    for end in range(place + 1, len(lines)):
        line = lines[end]
        if line.level or line.rule or (not line.fenced and _LABELLED_ITEM.match(line.text.strip())):
            return end
        if not line.text.strip():
            continue
        if marked and line.indent <= depth and not line.fenced:
            return end
        if not marked and not ITEM.match(line.text) and line.indent == 0 and not lines[end - 1].text.strip():
            return end
    return len(lines)


# ---- tables ----


def _columns(table: Sequence[Line]) -> dict[str, int]:
    columns: dict[str, int] = {}
    for place, name in enumerate(cells_of(table[0])):
        known = next((key for key, names in _COLUMNS if names.fullmatch(plain(name))), "")
        if known and known not in columns:
            columns[known] = place
    return columns


def _in_tables(lines: Sequence[Line]) -> list[WrittenDecision]:
    """The rows of the tables that have a column for the decision."""
    made = []
    for table in tables_of(lines):
        names, columns = [plain(name) for name in cells_of(table[0])], _columns(table)
        if "title" in columns or "text" in columns:
            made += [_of_row(row.number, [*cells_of(row), *[""] * len(names)], names, columns) for row in table[2:]]
    return list(filter(None, made))


def _of_row(number: int, cells: Sequence[str], names: Sequence[str], columns: dict[str, int]) -> WrittenDecision | None:
    cell = {key: cells[place] for key, place in columns.items()}
    label, title, text = (cell.get(key, "") for key in ("label", "title", "text"))
    if not label and _AS_LABEL.match(title):
        label, title = title, ""
    title, text = ("" if _is_placeholder(value) else plain(value) for value in (title, text))
    if not title and not text:
        return None
    if any(_OF_THE_LOOP.fullmatch(plain(cell.get(key, ""))) for key in ("rationale", "status")):
        return None
    others = set(range(len(names))) - set(columns.values())
    alternatives = cell.get("alternatives", "")
    return WrittenDecision(
        first_line=number,
        last_line=number,
        label=plain(label).lstrip("#"),
        title=title,
        text=text,
        rationale=cell.get("rationale", ""),
        alternatives=tuple(option.as_alternative() for option in options_of([Line(number, alternatives)])),
        status=plain(cell.get("status", "")),
        timestamp=time_of(cell.get("timestamp", "")),
        fields=_by_known_name({names[place]: cells[place] for place in sorted(others) if cells[place]}),
    )


def _labelled_by_tables(made: list[WrittenDecision], tables: Sequence[Sequence[Line]]) -> list[WrittenDecision]:
    """The decisions with the labels that a table gives them which lists as many, in the same order."""
    for table in tables:
        columns = _columns(table)
        rows = [cells_of(row) for row in table[2:]]
        for place in (columns[key] for key in ("label", "title") if key in columns):
            labels = [plain(cells[place]) if place < len(cells) else "" for cells in rows]
            if len(rows) == len(made) and all(re.fullmatch(_ID, label) for label in labels):
                return [
                    one if re.fullmatch(_ID, one.label) else replace(one, label=label)
                    for one, label in zip(made, labels, strict=True)
                ]
    return made


# ---- items below a heading that speaks of decisions ----


def _in_bullets(lines: Sequence[Line], *, mixed: bool) -> list[WrittenDecision]:
    """The items below headings, or bold lines, that speak of decisions; below the title, too, unless `mixed`."""
    made = []
    below = in_bold = False
    end = 0
    for place, line in enumerate(lines):
        if place < end:
            continue
        if line.level:
            below, in_bold = (line.level > 1 or not mixed) and _speaks(line.heading), False
        elif not line.fenced and (bold := _BOLD_LINE.match(line.text)) and (in_bold or not below):
            below = in_bold = _speaks(bold[1])
        found = None if line.fenced or not below else ITEM.match(line.text)
        if found is None or line.indent:
            continue
        behind = (other for other in range(place + 1, len(lines)) if not _is_inside(lines[other]))
        end = next(behind, len(lines))
        title, text = _halves(found["text"])
        decision = _decision_of(title, "", _outdented(lines[place + 1 : end]), (line.number, lines[end - 1].number))
        if decision is not None and not _is_metadata(found["text"]):
            made.append(replace(decision, rationale=decision.rationale or text))
    return made


def _is_inside(line: Line) -> bool:
    """Whether a line below an item belongs to it."""
    return line.fenced or line.text[:1].isspace()


def _halves(item: str) -> tuple[str, str]:
    """`**Choice** - reason` in two; a choice without one is whole, and so is `**Decision:** choice`."""
    named = re.match(r"\*\*([^*]+):\*\*\s*(\S.*)$", item)
    if named and key_of(named[1]) == "decision":
        return named[2], ""
    found = re.match(r"\*\*(.+?)\*\*\s*[:—\u2013-]*\s*(.*)$", item)
    return (found[1].rstrip(":"), found[2]) if found else (item, "")


def _is_metadata(item: str) -> bool:
    """Whether an item tells which run or task it is, or a field of something else."""
    found = re.match(r"\*\*([^*]+):\*\*|\*\*([^*]+)\*\*:", item)
    name = (found[1] or found[2]) if found is not None else ""
    if not name or key_of(name) == "decision":
        return False
    return key_of(name) != "" or not markdown.says_something([Line(1, item)], header=True)


# ---- one part as the decision that it tells ----


def _is_placeholder(text: str) -> bool:
    """Whether a template's mark, or nothing, stands where words should."""
    return _PLACEHOLDER.fullmatch(plain(text).strip(" :*`")) is not None or not plain(text).strip(" :*`#")


def _decision_of(title: str, label: str, lines: Sequence[Line], place: tuple[int, int]) -> WrittenDecision | None:
    """The decision that stands at `place` (first and last line) under a title, its `lines` below; None where only a
    template's marks are there, or what the loop wrote.
    """
    lead, fields = fields_of(lines)
    by_key: defaultdict[str, list[Field]] = defaultdict(list)
    for field in fields:
        by_key[field.key].append(field)
    said = next((field for field in (*by_key["decision"], *by_key["approach"]) if not field.is_empty), None)
    selection = said.value if said is not None else ""
    options = [option for field in by_key["options"] for option in options_of(field.lines)]
    taken = chosen(options, selection)
    text, lead_rest = _choice(selection, taken, lead)
    rationale = _joined(by_key["rationale"]) or lead_rest
    all_others = not any("option" in field.name.lower() for field in by_key["options"])
    single = _single_alternatives(by_key["alternative"], by_key["why not"])
    alternatives = (*rejected(options, taken, all_others=all_others), *single)
    others = [field for field in fields if field is not said and field.key not in _TAKEN_UP and field.value]
    rest = {field.name: field.value for field in others if field.key != "options" or not alternatives}
    if rationale and _OF_THE_LOOP.fullmatch(plain(rationale)):
        return None
    title = title or _first(by_key["title"])
    status = plain(_first(by_key["status"]))
    asked = _ASKS.match(plain(text))
    title = "" if _is_placeholder(title) else plain(title)
    text, rationale = ("" if _is_placeholder(said) or _ASKS.match(plain(said)) else said for said in (text, rationale))
    if not (title or text) or (not text and not rationale and (asked or _says_nothing(lead, fields))):
        return None
    if not text and _UNDECIDED.match(status):
        return None
    return WrittenDecision(
        first_line=place[0],
        last_line=place[1],
        label=label or plain(_first(by_key["id"])),
        title=title,
        text=text,
        rationale=rationale,
        alternatives=alternatives,
        status=status,
        timestamp=next((time for field in by_key["timestamp"] if (time := time_of(field.value))), ""),
        fields=_by_known_name(rest),
    )


def _says_nothing(lead: Sequence[Line], fields: Sequence[Field]) -> bool:
    """Whether all that stands below a heading are a template's marks."""
    values = [*(line.text for line in lead), *(field.value for field in fields)]
    filled = [value for value in values if value.strip()]
    return bool(filled) and all(map(_is_placeholder, filled))


def _choice(selection: str, taken: Option | None, lead: Sequence[Line]) -> tuple[str, str]:
    """The words of the choice, and what of the lead is left as its reason."""
    if taken is not None and (not selection or (taken.text and _only_names(selection, taken))):
        return taken.text, text_of(lead)
    return (selection, text_of(lead)) if selection else _first_said(lead)


def _only_names(selection: str, taken: Option) -> bool:
    """Whether a selection is an option's name, at most with what the option says: `OPT-002`, `Option B (Stubs)`."""
    named = rf"(?:option\s*)?{re.escape(taken.name)}(?P<gloss>\W.*)?"
    found = re.fullmatch(named, plain(selection).strip(" .*`"), re.IGNORECASE)
    if not taken.name or found is None:
        return False
    words, said = (set(re.findall(r"\w{2,}", one.casefold())) for one in (found["gloss"] or "", taken.text))
    return words <= said


def _first_said(lead: Sequence[Line]) -> tuple[str, str]:
    """The first paragraph or bullet of a text, and the rest of it."""
    lines = stripped([line for line in lead if not line.rule])
    if not lines or lines[0].fenced or lines[0].text.lstrip().startswith("|"):
        return "", text_of(lines)
    item = ITEM.match(lines[0].text)
    rest = takewhile(lambda line: _goes_on(line, lines[0], item), lines[1:])
    first = [item["text"] if item else lines[0].text, *(line.text for line in rest)]
    return "\n".join(line.rstrip() for line in first).strip(), text_of(lines[len(first) :])


def _goes_on(line: Line, first: Line, item: re.Match[str] | None) -> bool:
    """Whether a line belongs to the paragraph or item that begins with `first`; of items only deeper ones do."""
    if not line.text.strip() or line.fenced:
        return False
    return not ITEM.match(line.text) or (item is not None and line.indent > first.indent)


def _first(fields: Sequence[Field]) -> str:
    return next((field.value for field in fields if not field.is_empty), "")


def _joined(fields: Sequence[Field]) -> str:
    return "\n\n".join(field.value for field in fields if not field.is_empty)


def _single_alternatives(fields: Sequence[Field], reasons: Sequence[Field]) -> Iterator[str]:
    """`**Alternative Considered:** X` with `**Why Alternative Rejected:**`, in the order of both."""
    why = [*map(_as_reason, reasons), *[""] * len(fields)]
    for field, reason in zip(fields, why, strict=False):
        for option in options_of(field.lines):
            option.reasons = option.reasons or [reason] * bool(reason)
            yield option.as_alternative()


def _as_reason(field: Field) -> str:
    return "; ".join(
        plain(found["text"] if (found := ITEM.match(line.text)) else line.text)
        for line in field.lines
        if line.text.strip()
    )


def _by_known_name(fields: dict[str, str]) -> dict[str, str]:
    """The fields, one that is known under its key."""
    made: dict[str, str] = {}
    for name, value in fields.items():
        key = key_of(name) if key_of(name) in ("context", "reversibility", "consequences") else name
        made[key if key not in made else name] = value
    return made
