"""The named fields of a part of a document: `**Decision:** …`, `### Rationale`, `- Impact: …`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ralf_integrations.blackbox5.runs.markdown import Line, plain, text_of

FIELD = re.compile(
    r"(?P<bullet>[-*+]\s+)?(?P<mark>\*\*|\*|)(?:[^\w\s*:|`\[(]{1,3}\s*)?(?P<name>[A-Za-z][\w /'&()#.+-]{0,58}?)"
    r"(?::(?P=mark)|(?P=mark)\s*:)(?=\s|$)(?P<rest>.*)$"
)
"""A named field at the beginning of a line; `rest`: its value, or the beginning of it."""
BOLD_LINE = re.compile(r"\s*\*\*([^*\n]{1,120}?):?\*\*:?\s*$")
"""A line in bold, which may be a heading in all but its form."""
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
_KNOWN = [(key, re.compile(rf"(?:{names})$", re.IGNORECASE)) for key, names in _KEYS.items()]
_MAIN = ("decision", "rationale", "options", "alternative", "why not", "reversibility")
"""Names that count in bold also below a heading that is a field itself."""
_AROUND = re.compile(r"^[\W\d_]+|[\W_]+$")
_LONGEST_NAME = 200

Form = Literal["heading", "bold", "bullet", "plain"]


@dataclass(slots=True)
class Field:
    """A field: its name as written, its key where the name is known ("" else), how it was written, its lines, and
    whether one of these is a heading.
    """

    name: str
    key: str
    form: Form
    lines: list[Line] = field(default_factory=list)
    is_deep: bool = False

    @property
    def value(self) -> str:
        """Its text; the rule at its end, and blank lines around it, do not belong to it."""
        return text_of(self.lines)


def key_of(name: str) -> str:
    """What a name stands for: decision, rationale, context, options …; "" for one that is not known."""
    bare = _AROUND.sub("", name).strip() if len(name) <= _LONGEST_NAME else ""
    return next((key for key, known in _KNOWN if known.match(bare)), "")


def fields_of(lines: Sequence[Line]) -> tuple[list[Line], list[Field]]:
    """What stands before the first field, and the fields.

    A name in bold at the beginning of a line begins one, and so does a heading; bullets and bare names do where the
    name is known and no other form is in use. Below a name in bold without a value, another one belongs to its value.
    """
    lead: list[Line] = []
    made: list[Field] = []
    for line in lines:
        begun = None if line.fence or line.rule else _begun(line, made[-1] if made else None)
        if begun is not None:
            made.append(begun)
        else:
            (made[-1].lines if made else lead).append(line)
            if made and line.level:
                made[-1].is_deep = True
    return lead, made


def _begun(line: Line, now: Field | None) -> Field | None:
    """The field that a line begins, None for a line of the field before it."""
    if line.level:
        key = key_of(line.heading)
        is_told_below = now is not None and now.key == "rationale" and not key and (now.is_deep or not now.value)
        return None if is_told_below else Field(plain(line.heading), key, "heading")
    if (found := FIELD.match(line.text)) is None:
        return None
    key = key_of(found["name"])
    form: Form = "bullet" if found["bullet"] else "bold" if found["mark"] else "plain"
    if form != "bold" and (not key or (now is not None and now.form != form)):
        return None
    if now is not None and _belongs(key, now):
        return None
    rest = found["rest"].strip()
    return Field(plain(found["name"]), key, form, [line._replace(text=rest)] if rest else [])


def _belongs(key: str, now: Field) -> bool:
    """Whether a name in bold is of the value of the field before it."""
    if now.is_deep:
        return True
    is_known = key not in ("", "other")
    if now.form == "heading":
        return key not in _MAIN if is_known else now.key != "decision"
    return not is_known and not now.value
