"""The named fields of a document's part: `**Rationale:** …`, `- Status: …`, `### Context`, whatever their form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ralf.runs.markdown import Line
from ralf.runs.written import plain

_NAME = r"[A-Za-z][\w /'&()#.+-]{0,58}?"
_BOLD = re.compile(
    rf"(?P<bullet>[-*+]\s+)?(?P<mark>\*\*|__|\*)(?:[^\w\s*:|`\[(]{{1,3}}\s*)?(?P<name>{_NAME})(?P<colon>:)?(?P=mark)"
    r"(?P<colon2>\s*:)?(?P<rest>.*)$"
)
_PLAIN = re.compile(rf"(?P<bullet>[-*+]\s+)?(?P<name>{_NAME}):(?=\s|$)(?P<rest>.*)$")
_FOOTER = re.compile(r"\s*(?:(?:\*\*[^*]+\*\*|\*[^*]+\*|_[^_]+_|\*\*[^*]+:\*\*.*)\s*)?$")

_KEYS = {
    "decision": r"(?:the |final )?decision(?: made)?|(?:selected|chosen)(?: option| approach| solution| choice)?"
    r"|selection|choice(?: made)?|resolution|(?:we )?decided|we chose|what(?: was decided)?",
    "approach": r"(?:final |proposed )?(?:approach|solution)|action(?: taken)?",
    "rationale": r"(?:the )?rationale(?: for .*)?|reasons?|reasoning|why(?: this| chosen)?|because|justification",
    "context": r"context|background|problem(?: statement)?|situation|question|issue",
    "options": r"(?:considered |other )?options?(?: considered| evaluated)?|considered"
    r"|rejected (?:options|alternatives)|alternatives(?: options)?(?: considered| rejected| evaluated)?",
    "alternative": r"(?:rejected )?alternative(?: considered)?",
    "why not": r"why (?:the )?alternatives? (?:was |were )?rejected|why (?:not|rejected)"
    r"|reasons? (?:for rejection|rejected)",
    "status": r"(?:decision )?status|state",
    "timestamp": r"timestamp|date(?: decided)?|time|decided (?:at|on)|when",
    "reversibility": r"reversibility|reversible\??",
    "consequences": r"consequences?|trade-?offs?|implications?",
    "other": r"outcomes?|impacts?|success criteria|next steps?|actions?(?: .*)?|expected .*|risks?(?: assessment)?"
    r"|validation|metrics|follow-?ups?(?: .*)?|implementation(?: .*)?|references?|notes?",
    "id": r"(?:decision )?id",
    "title": r"(?:decision )?title|topic",
}
_MAIN = ("decision", "rationale", "options", "alternative", "why not", "reversibility")
"""Names that count in bold also below a heading that is a field itself."""

_REMARK = re.compile(r"\s*\([^)]*\)\s*$")  # in parentheses, at a name's end
_AROUND = re.compile(r"^[\W\d_]+|[\W_]+$")
_LONGEST = 200  # characters of a name
_KNOWN = [(key, re.compile(rf"(?:{names})$", re.IGNORECASE)) for key, names in _KEYS.items()]


@dataclass(slots=True)
class Field:
    """A field: its name as written, its key where the name is known ("" else), and the lines of its value.

    form  heading, bold, bullet or plain: how its name was written
    """

    name: str
    key: str
    form: str
    lines: list[Line] = field(default_factory=list)

    @property
    def value(self) -> str:
        """Its text; the rule at its end, and blank lines around it, do not belong to it."""
        return text_of(self.lines)

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands in it yet."""
        return not any(line.text.strip() and not line.rule for line in self.lines)


def key_of(name: str) -> str:
    """What a name stands for: decision, rationale, context, options …; "" for one that is not known."""
    if len(name) > _LONGEST:
        return ""
    bare = _AROUND.sub("", _REMARK.sub("", name)).strip()
    return next((key for key, known in _KNOWN if known.match(bare)), "")


def fields_of(lines: Sequence[Line]) -> tuple[list[Line], list[Field]]:
    """What stands before the first field, and the fields.

    A name in bold at the beginning of a line begins one, and so does a heading; bullets and bare names do where the
    name is known and no other form is in use. Below a name in bold without a value, another one belongs to its value.
    """
    lead: list[Line] = []
    made: list[Field] = []
    for line in lines:
        begun = _begun(line, made[-1] if made else None)
        if begun is not None:
            made.append(begun)
        elif made:
            made[-1].lines.append(line)
        else:
            lead.append(line)
    return lead, made


def _begun(line: Line, current: Field | None) -> Field | None:
    if line.fenced or line.rule:
        return None
    if line.level:
        return _below_heading(line, current)
    found = _BOLD.match(line.text)
    if found and (found["colon"] or found["colon2"]):
        return _in_bold(line, found, current)
    found = _PLAIN.match(line.text)
    if found is None or not (key := key_of(found["name"])):
        return None
    form = "bullet" if found["bullet"] else "plain"
    if current is not None and (current.form in ("heading", "bold") or (form == "plain" and current.form == "bullet")):
        return None
    return _field(found["name"], key, form, line, found["rest"])


def _below_heading(line: Line, current: Field | None) -> Field | None:
    key = key_of(line.heading)
    if current is None or key or current.key != "rationale":
        return Field(plain(line.heading), key, "heading")
    if current.is_empty or any(row.level for row in current.lines):
        return None  # a reason told below headings of its own
    return Field(plain(line.heading), key, "heading")


def _in_bold(line: Line, found: re.Match[str], current: Field | None) -> Field | None:
    key = key_of(found["name"])
    bullet = bool(found["bullet"])
    if bullet and (not key or (current is not None and current.form != "bullet")):
        return None
    if current is not None:
        if any(row.level for row in current.lines):
            return None  # in a part of the value that has a heading of its own
        known = key not in ("", "other")
        if not known and (current.is_empty or (current.form == "heading" and current.key != "decision")):
            return None
        if known and current.form == "heading" and key not in _MAIN:
            return None
    return _field(found["name"], key, "bullet" if bullet else "bold", line, found["rest"])


def _field(name: str, key: str, form: str, line: Line, rest: str) -> Field:
    made = Field(plain(name).rstrip(":"), key, form)
    rest = rest.strip()
    if rest:
        made.lines.append(line._replace(text=rest))
    return made


def text_of(lines: Sequence[Line]) -> str:
    """The text of lines, without what frames it: blank lines, a rule at the end and the footer behind that."""
    kept = list(lines)
    rules = [place for place, line in enumerate(kept) if line.rule]
    if rules and all(_FOOTER.match(line.text) for line in kept[rules[0] + 1 :] if not line.rule):
        kept = kept[: rules[0]]
    while kept and not kept[-1].text.strip():
        kept.pop()
    while kept and not kept[0].text.strip():
        kept.pop(0)
    return "\n".join(line.text.rstrip() for line in kept)
