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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ralf.document.tree import to_tree
from ralf.model import Decision
from ralf.text.cleaning import clean
from ralf_integrations.blackbox5.runs import markdown
from ralf_integrations.blackbox5.runs.folder import time_of
from ralf_integrations.blackbox5.runs.markdown import ITEM, Line, cells_of, plain
from ralf_integrations.blackbox5.runs.options import Option, chosen, options_of
from ralf_integrations.blackbox5.runs.outline import FIELD, Node, key_of, outline

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
    rf"(?:\*\*)?\[?(?P<label>{_ID}|Decision\s*#?\d{{1,3}})\]?(?:\*\*)?\s*[:—\u2013]\s*(?:\*\*)?\s*(?P<title>\S.*)$"
)
_TITLES = (
    re.compile(rf"\A\[?(?P<label>{_ID})(?:\]?\s*(?:[:.)—\u2013]|\s-(?=\s)|$)|\])\s*(?P<title>.*)$"),
    re.compile(
        r"\A(?:[A-Z][\w-]{0,30}[ -]){0,3}Decision\s*+(?:#|No\.?\s*+)?(?P<label>[A-Z]{0,4}-?\d[\w.-]*)?"
        r"\s*+(?:[:—\u2013]|(?<=\s)-(?=\s)|$)\s*+(?P<title>.*)$",
        re.IGNORECASE,
    ),
)
_COUNTED = re.compile(r"(?P<label>\d{1,3})[.):]\s+(?P<title>.+)$")
_REASONED = re.compile(r"\*\*(?P<choice>.+?)\*\*\s*[:—\u2013-]*\s*(?P<why>.*)$")
_SHOWS = re.compile(
    r"(?:decision )?(?:examples?|samples?|templates?|formats?)\b|how to (?:write|record|document|read|use)\b", re.I
)
"""A heading below which it stands how a decision is written down."""


def decisions_in(text: str, *, mixed: bool = False) -> list[WrittenDecision]:
    """The decisions of a document, in its order; [] for one in which nothing was decided.

    mixed  whether it tells other things, too: then a part counts only where it is called a decision
    """
    lines = markdown.lines_of(text)
    root = outline(lines)
    if found := [*_in_sections(root, mixed=mixed)]:
        return found
    listed = [*_in_items(root, mixed=mixed)]
    labelled = [one for one in listed if one.label]
    return labelled or ([] if mixed else [*_in_tables(lines)]) or listed


def _speaks(heading: str) -> bool:
    """Whether decisions that were made are listed below a heading, or a line in bold."""
    return bool(re.search(r"\bdecisions?\b", heading, re.I)) and not _OF_OTHER_THINGS.search(heading)


def _in_sections(node: Node, *, mixed: bool, is_listed: bool = False) -> Iterator[WrittenDecision]:
    """The sections that call themselves a decision, or tell a choice or a reason of their own; of a document that tells
    other things these only below a heading that speaks of decisions.
    """
    for section in (one for one in node.inner if one.form == "heading" and not _SHOWS.match(one.name)):
        title = _title_of(section)
        is_divided = any(one.form == "heading" and not one.key and _title_of(one) for one in section.walk())
        if not is_divided and (title or (_decides(section) and (is_listed or not mixed))):
            counted = _COUNTED.match(section.name) if title is None or not title[0] else None
            label, words = (counted["label"], counted["title"]) if counted else title or ("", section.name)
            yield from _told(section, words, label)
        else:
            is_below = is_listed or (section.depth > 1 and _speaks(section.name))
            yield from _in_sections(section, mixed=mixed, is_listed=is_below)


def _title_of(section: Node) -> tuple[str, str] | None:
    """The label and title of a heading that calls itself a decision; None for any other."""
    heading = re.sub(r"^[^\w\[]+", "", section.name)
    found = next(filter(None, (form.match(heading) for form in _TITLES)), None)
    if found is None or heading.casefold() == "decision":
        return None
    return (found["label"] or "").lstrip("-"), found["title"].strip() or ("" if found["label"] else heading)


def _decides(section: Node) -> bool:
    """Whether a section whose heading does not say so tells a choice, or a reason, of its own; what stands behind a
    rule is the document's end.
    """
    end = next((line.number for line in section.lines if line.rule), section.last + 1)
    own = [one for one in section.inner if one.line.number < end and (one.form != "item" or not _speaks(section.name))]
    told = {one.key for one in own if one.form != "heading" or one.key == "decision"}
    return not section.key and bool(told & {"decision", "rationale"})


def _in_items(node: Node, *, mixed: bool, is_listed: bool = False) -> Iterator[WrittenDecision]:
    """Items with a label: `**D-009: Title**` anywhere, `- D-006: text` below what speaks of decisions; and all other
    items there, `**choice** - reason` in two; below the title, too, unless `mixed`.
    """
    for one in node.inner:
        found = _LABELLED_ITEM.match(one.words) if one.form != "heading" else None
        if found and (one.form == "bold" or is_listed):
            yield from _told(one, found["title"].rstrip().removesuffix("**"), found["label"])
        elif one.form == "item":
            is_field = FIELD.match(one.words) is not None  # such as one that names the run
            is_said = not is_field or markdown.says_something([Line(1, one.words)], header=True)
            if is_listed and (one.key == "decision" or (not one.key and is_said)):
                named = _REASONED.match(one.words) if not one.key else None
                title = named["choice"].rstrip(":") if named else "" if one.key else one.words
                told = _told(one, title, "")
                yield from (replace(each, rationale=each.rationale or (named["why"] if named else "")) for each in told)
        elif not (_title_of(one) or ("", ""))[0]:  # a list in one that is none lists its options
            is_below = _speaks(one.name) and not one.has_rest and not (mixed and one.depth == 1)
            yield from _in_items(one, mixed=mixed, is_listed=is_below or (is_listed and one.form == "bold"))


def _in_tables(lines: Sequence[Line]) -> Iterator[WrittenDecision]:
    """The rows of the tables that have a column for the decision: each cell is a field that its column names."""
    for head, _, *rows in markdown.tables_of(lines):
        names = [*map(plain, cells_of(head))]
        decided = [place for place, name in enumerate(names) if key_of(name) == "decision"]
        if len(decided) > 1:  # what it is about, and the choice
            names[decided[0]] = "Title"
        for row in rows if decided or any(key_of(name) == "title" for name in names) else ():
            told = Node("item", 0, row, "", "")
            for name, cell in zip(names, cells_of(row), strict=False):
                told.inner.append(Node("bold", 1, row, cell, name, [row._replace(text=cell, table=0)]))
            yield from _told(told, "", "")


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


def _told(node: Node, title: str, label: str) -> Iterator[WrittenDecision]:
    """The decision that a part tells; none where only a template's marks are there, or what the loop wrote."""
    fields = [one for one in node.fields() if one.value]
    begins = min((one.line.number for one in node.fields()), default=node.last + 1)
    lead = [line for line in node.lines if line.number < begins]

    def first(*keys: str) -> str:
        return next((one.value for key in keys for one in fields if one.key == key), "")

    text, rest = first("decision", "approach"), markdown.text_of(lead)
    said = next((one for one in fields if one.value == text and one.key in ("decision", "approach")), None)
    options = _options_in(fields)
    taken = chosen(options, text)
    bare = plain(text).strip(" .*`").casefold()
    named = bare.partition(" (")[0] if bare.endswith(")") else bare
    if taken is not None and named in ("", taken.name.casefold()):
        text = taken.text
    elif not text:
        text, rest = _first_said(lead)
    rationale = "\n\n".join(one.value for one in fields if one.key == "rationale") or rest
    filled = [value for value in (*(line.text for line in lead), *(one.value for one in fields)) if value.strip()]
    is_empty = bool(filled) and all(map(_is_placeholder, filled))
    title, text, rationale = ("" if _is_placeholder(one) else one for one in (title or first("title"), text, rationale))
    status, is_of_the_loop = plain(first("status")), markdown.is_of_the_loop(plain(rationale))
    is_none = not text and (not title or (not rationale and is_empty) or _UNDECIDED.match(status))
    if is_none or is_of_the_loop:
        return
    alternatives = tuple(one.as_alternative() for one in options if one is not taken and one.is_rejected(taken))
    others: dict[str, str] = {}
    for one in fields:
        if one is not said and one.key not in _TAKEN_UP and (one.key != "options" or not alternatives):
            others.setdefault(one.key if one.key in KEPT else one.name, one.value)
    yield WrittenDecision(
        node.line.number,
        node.last,
        label=label or plain(first("id")),
        title=plain(title),
        text=text,
        rationale=rationale,
        alternatives=alternatives,
        status=status,
        timestamp=next((time for one in fields if one.key == "timestamp" and (time := time_of(one.value))), ""),
        fields=others,
    )


def _options_in(fields: Sequence[Node]) -> list[Option]:
    """The options of all fields that list them, with what another field says of why one was rejected."""
    made: list[Option] = []
    for told in fields:
        if told.key in ("options", "alternative"):
            made += options_of(told)
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
