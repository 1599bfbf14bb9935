"""Decisions that a document lists: items with labels, rows of tables, bullets below a heading that speaks of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ralf.runs import skeleton
from ralf.runs.decisionpart import BULLET, OF_THE_LOOP, by_known_name, decision_of, is_placeholder
from ralf.runs.fields import key_of
from ralf.runs.markdown import Line
from ralf.runs.options import options_of
from ralf.runs.written import WrittenDecision, plain, time_of

ID = r"(?:D|DEC|ADR|DR)[-_ ]?\d[\w.-]*|(?:D|DEC|ADR)-[A-Z][\w.-]*\d"
"""Labels that only decisions have."""

_SPEAKS = re.compile(r"\bdecisions?\b", re.IGNORECASE)
_OF_OTHER_THINGS = re.compile(
    r"\b(?:summary|metrics|framework|criteria|tree|quality|review|rationale|log|registry|record(?:ing)?|format|process"
    r"|guide(?:lines)?|template|when|how|pending|open|upcoming|future|required|needed|outstanding|unresolved|to make"
    r"|awaiting)\b",
    re.IGNORECASE,
)
_ITEM = re.compile(
    rf"(?P<mark>[-*+•]\s+|\d{{1,3}}[.)]\s+)?(?P<bold>\*\*)?\[?(?P<label>{ID}|Decision\s*#?\d{{1,3}})\]?(?:\*\*)?"
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
_AS_LABEL = re.compile(rf"(?:{ID}|#?\d{{1,4}}[a-z]?|meta)$", re.IGNORECASE)


# ---- items with a label ----


def speaks(heading: str) -> bool:
    """Whether decisions that were made are listed below a heading, or a line in bold."""
    return bool(_SPEAKS.search(heading)) and not _OF_OTHER_THINGS.search(heading)


def in_items(lines: Sequence[Line]) -> list[WrittenDecision]:
    """Items that begin with a label: `**D-009: Title**` anywhere, `- D-006: text` below what speaks of decisions."""
    made = []
    place = 0
    about = ""  # the heading, or the line in bold, that the items stand under
    while place < len(lines):
        line = lines[place]
        found = None if line.fenced or line.level else _ITEM.match(line.text.strip())
        if line.level or (not found and line.text.startswith("**")):
            about = line.heading or line.text
        counts = found and ((found["bold"] and not found["mark"]) or speaks(about))
        if not found or not counts:
            place += 1
            continue
        end = _end_of_item(lines, place, marked=bool(found["mark"]))
        title = found["title"].rstrip().removesuffix("**") if found["bold"] else found["title"]
        last = next(row.number for row in reversed(lines[place:end]) if row.text.strip())
        body = [row._replace(text=_outdented(row.text)) for row in lines[place + 1 : end]]
        decision = decision_of(title, found["label"], body, (line.number, last))
        if decision is not None:
            made.append(decision)
        place = end
    return made


def _outdented(text: str) -> str:
    return text.lstrip() if BULLET.match(text) else text


def _end_of_item(lines: Sequence[Line], place: int, *, marked: bool) -> int:
    """Where an item ends: at the next one, a heading, a rule, or what stands no deeper than it does."""
    depth = len(lines[place].text) - len(lines[place].text.lstrip())
    end = place + 1
    while end < len(lines):
        line = lines[end]
        text = line.text
        if line.level or line.rule or (not line.fenced and _ITEM.match(text.strip())):
            break
        indent = len(text) - len(text.lstrip())
        if marked and text.strip() and indent <= depth and not line.fenced:
            break
        if not marked and text.strip() and not BULLET.match(text) and indent == 0 and not lines[end - 1].text.strip():
            break
        end += 1
    return end


# ---- tables ----


def tables_of(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The tables of a document, each as its lines."""
    table: list[Line] = []
    for line in [*lines, Line(0, "")]:
        if not line.fenced and line.text.lstrip().startswith("|"):
            table.append(line)
            continue
        if len(table) > 2 and set(table[1].text) <= set("|-: \t"):
            yield table
        table = []


def _cells(line: Line) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.text.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _columns(table: Sequence[Line]) -> dict[str, int]:
    columns: dict[str, int] = {}
    for place, name in enumerate(_cells(table[0])):
        known = next((key for key, names in _COLUMNS if names.fullmatch(plain(name))), "")
        if known and known not in columns:
            columns[known] = place
    return columns


def in_tables(lines: Sequence[Line]) -> list[WrittenDecision]:
    """The rows of the tables that have a column for the decision."""
    made = []
    for table in tables_of(lines):
        names, columns = [plain(name) for name in _cells(table[0])], _columns(table)
        if "title" not in columns and "text" not in columns:
            continue
        for row in table[2:]:
            cells = [*_cells(row), *[""] * len(names)]
            decision = _of_row(row.number, cells, names, columns)
            if decision is not None:
                made.append(decision)
    return made


def _of_row(number: int, cells: Sequence[str], names: Sequence[str], columns: dict[str, int]) -> WrittenDecision | None:
    cell = {key: cells[place] for key, place in columns.items()}
    label, title, text = (cell.get(key, "") for key in ("label", "title", "text"))
    if not label and _AS_LABEL.match(title):
        label, title = title, ""
    title, text = ("" if is_placeholder(value) else plain(value) for value in (title, text))
    if not title and not text:
        return None
    if OF_THE_LOOP.fullmatch(plain(cell.get("rationale", ""))) or OF_THE_LOOP.fullmatch(plain(cell.get("status", ""))):
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
        fields=by_known_name({names[place]: cells[place] for place in sorted(others) if cells[place]}),
    )


def labelled_by_tables(made: list[WrittenDecision], tables: Sequence[Sequence[Line]]) -> list[WrittenDecision]:
    """The decisions with the labels that a table gives them which lists as many, in the same order."""
    for table in tables:
        columns = _columns(table)
        rows = [_cells(row) for row in table[2:]]
        places = [columns[key] for key in ("label", "title") if key in columns]
        for place in places:
            labels = [plain(cells[place]) if place < len(cells) else "" for cells in rows]
            if len(rows) == len(made) and all(re.fullmatch(ID, label) for label in labels):
                return [
                    one if re.fullmatch(ID, one.label) else replace(one, label=label)
                    for one, label in zip(made, labels, strict=True)
                ]
    return made


# ---- items below a heading that speaks of decisions ----


def in_bullets(lines: Sequence[Line], *, mixed: bool) -> list[WrittenDecision]:
    """The items below headings, or bold lines, that speak of decisions; below the title, too, unless `mixed`."""
    made = []
    below = in_bold = False
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.level:
            below, in_bold = (line.level > 1 or not mixed) and speaks(line.heading), False
        elif not line.fenced and (bold := _BOLD_LINE.match(line.text)) and (in_bold or not below):
            below = in_bold = speaks(bold[1])
        found = None if line.fenced or not below else BULLET.match(line.text)
        if found is None or found[1]:
            place += 1
            continue
        end = place + 1
        while end < len(lines) and (lines[end].fenced or lines[end].text[:1].isspace()):
            end += 1
        title, text = _halves(found[2])
        body = [row._replace(text=_outdented(row.text)) for row in lines[place + 1 : end]]
        decision = decision_of(title, "", body, (line.number, lines[end - 1].number))
        if decision is not None and not _is_metadata(found[2]):
            made.append(decision if not text else replace(decision, rationale=decision.rationale or text))
        place = end
    return made


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
    return key_of(name) != "" or not skeleton.says_something([Line(1, item)], header=True)
