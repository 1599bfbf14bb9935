"""A document as an outline: its headings, names in bold and items, each with what stands below it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ralf_integrations.blackbox5.runs.markdown import ITEM, Line, plain, text_of

FIELD = re.compile(
    r"(?P<bullet>[-*+]\s+)?(?P<mark>\*\*|\*|)(?:[^\w\s*:|`\[(]{1,3}\s*)?(?P<name>[A-Za-z][\w /'&()#.+-]{0,58}?)"
    r"(?::(?P=mark)|(?P=mark)\s*:)(?=\s|$)(?P<rest>.*)$"
)
"""A named field at the beginning of a line; `rest`: its value, or the beginning of it."""
_BOLD_LINE = re.compile(r"\*\*([^*\n]{1,120}?):?\*\*:?\s*$")
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
    "id": r"(?:decision )?id|#|n[or]\.?",
    "title": r"(?:decision )?title|topic",
}
_KNOWN = [(key, re.compile(rf"(?:{names})$", re.IGNORECASE)) for key, names in _KEYS.items()]
_MAIN = ("decision", "rationale", "options", "alternative", "why not", "reversibility")
"""Names that in bold end a heading which is a field itself."""
_AROUND = re.compile(r"^[\W\d_]+(?=\w)|(?<=\w)[\W_]+$")
_LONGEST_NAME = 200
_BOLD, _WITHIN, _DEEP, _ITEM = 7, 8, 9, 10  # depths below those of headings
_DEEPEST = 40  # characters before an item


def key_of(name: str) -> str:
    """What a name stands for: decision, rationale, context, options …; "" for one that is not known."""
    bare = _AROUND.sub("", name).strip() if len(name) <= _LONGEST_NAME else ""
    return next((key for key, known in _KNOWN if known.match(bare)), "")


@dataclass
class Node:
    """A heading, a line or name in bold, or an item.

    words  its own, as written; `name`: those of a heading or a field, all of another one
    lines  what stands below it; of a field its value
    """

    form: Literal["heading", "bold", "item"]
    depth: int
    line: Line
    words: str
    name: str
    lines: list[Line] = field(default_factory=list)
    inner: list[Node] = field(default_factory=list)

    @cached_property
    def key(self) -> str:
        """What its name stands for."""
        return key_of(self.name)

    @property
    def has_rest(self) -> bool:
        """Whether its value begins on its own line."""
        return bool(self.lines) and self.lines[0].number == self.line.number

    @property
    def value(self) -> str:
        """The text below it; the rule at its end, and blank lines around it, do not belong to it."""
        return text_of(self.lines)

    @property
    def last(self) -> int:
        """The number of its last line that is neither empty nor a rule at its end."""
        said = (line.number for line in reversed(self.lines) if line.text.strip() and not line.rule)
        return next(said, self.line.number)

    def walk(self) -> Iterator[Node]:
        """All nodes below it, in their order."""
        for one in self.inner:
            yield one
            yield from one.walk()

    def fields(self) -> list[Node]:
        """The fields of a part: headings and names in bold, those below a name that is not known, too; items with a
        known name where no others come before.
        """
        found: list[Node] = []
        for one in self.inner:
            if one.form != "item":
                found += [one, *(one.fields() if not one.key else ())]
            elif one.key and all(other.form == "item" for other in found):
                found.append(one)
        return found


def outline(lines: Sequence[Line]) -> Node:
    """The outline of lines, below a root without words."""
    root = Node("heading", 0, Line(0, ""), "", "")
    open_ = [root]
    was_blank = False
    for line in lines:
        made = None if line.fence or line.rule or line.table else _node(line)
        if made is not None:
            made.depth = _depth(made, open_)
        at_edge = was_blank and bool(line.text.strip()) and not line.indent
        depth = made.depth if made is not None else _ITEM if at_edge else _ITEM + _DEEPEST + 1
        while open_[-1].depth >= depth:
            open_.pop()
        for one in open_:
            one.lines.append(line)
        if made is not None:
            open_[-1].inner.append(made)
            open_.append(made)
        was_blank = not line.text.strip()
    return root


def _node(line: Line) -> Node | None:
    """The heading, name or item that a line is; None for any other line."""
    if line.level:
        return Node("heading", line.level, line, line.heading, plain(line.heading))
    item, bold = ITEM.match(line.text), _BOLD_LINE.match(line.text)
    words = item["text"] if item else line.text
    found = FIELD.match(words)
    if item is None and not bold and not (found and found["mark"]):
        return None
    made = Node(
        "item" if item else "bold", _ITEM + min(line.indent, _DEEPEST) if item else _BOLD, line, words, plain(words)
    )
    if found is not None and (item is None or key_of(found["name"])):
        made.name = plain(found["name"])
        made.lines += [line._replace(text=found["rest"].strip())] if found["rest"].strip() else []
    elif bold is not None:
        made.name = plain(bold[1])
    return made


def _depth(made: Node, open_: Sequence[Node]) -> int:
    """How deep a node stands: what only structures the value of a field stands within that."""
    heading = next(one for one in reversed(open_) if one.form == "heading")
    above = next((one for one in reversed(open_) if one.depth == _BOLD), None)
    is_value = above is not None and (above.inner[0].depth == _WITHIN if above.inner else not above.value)
    if made.form == "heading":
        is_reason = is_value and above is not None and above.key == "rationale" and not made.key
        return _WITHIN if is_reason else made.depth
    if made.form == "bold" and heading.depth == _WITHIN:
        return _DEEP
    if made.form == "bold" and made.key in _MAIN and heading.key:
        return heading.depth
    return _WITHIN if made.form == "bold" and is_value and made.key in ("", "other") else made.depth
