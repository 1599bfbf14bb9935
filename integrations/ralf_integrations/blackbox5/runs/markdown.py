"""Reads Markdown as people and agents write it, line by line, so that every part keeps its words and line numbers.

Lines come first: headings, fences and rules are marked, comments are taken out. Sections, fences, tables and named
fields (`**Rationale:** …`, `- Status: …`, `### Context`) are runs of these lines. `says_something` tells what somebody
wrote from what a template, or the loop, had put there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ralf.text.cleaning import NAMED, clean, one_line, prose

# ---- lines and sections ----


_FENCE = re.compile(r" {0,3}(?:[-*+] +)?(`{3,}|~{3,})[ \t]*([^`\n]*)$")

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t](.*)$")

_UNDERLINED = re.compile(r"^(\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?)__(?=[A-Z\d])([^_\n]{1,120})__(?!\w)")

ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[(?P<box>[ xX~>/])\](?!\()\s*)?(?P<text>\S.*)$")
"""An item of a list: a bullet or a number, a box that may be ticked, and its words."""

_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")

_FIELD_NAME = r"[A-Za-z][\w /'&()#.+-]{0,58}?"

_BOLD_FIELD = re.compile(
    rf"(?P<bullet>[-*+]\s+)?(?P<mark>\*\*|__|\*)(?:[^\w\s*:|`\[(]{{1,3}}\s*)?(?P<name>{_FIELD_NAME})(?P<colon>:)?(?P=mark)"
    r"(?P<colon2>\s*:)?(?P<rest>.*)$"
)

_PLAIN_FIELD = re.compile(rf"(?P<bullet>[-*+]\s+)?(?P<name>{_FIELD_NAME}):(?=\s|$)(?P<rest>.*)$")

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


class Line(NamedTuple):
    """One line; `number` counts from 1.

    text     without its line end, and without comments (outside of fences)
    fenced   whether it belongs to a fence, whose marks included
    level    of a heading, else 0; `heading`: its words
    rule     whether it is a thematic break
    """

    number: int
    text: str
    fenced: bool = False
    level: int = 0
    heading: str = ""
    rule: bool = False

    @property
    def indent(self) -> int:
        """How deep it stands."""
        return len(self.text) - len(self.text.lstrip())


class Fence(NamedTuple):
    """A fenced block: the first word after its mark, its content, and the lines of the content.

    under  the headings above it, the outermost first
    """

    info: str
    text: str
    first: int
    last: int
    under: tuple[str, ...]


class Section(NamedTuple):
    """A heading and all lines below it down to the next heading of its level or a higher one.

    own    the lines down to the next heading of any level
    under  the headings above it, the outermost first
    """

    level: int
    heading: str
    first: int
    lines: tuple[Line, ...]
    own: tuple[Line, ...]
    under: tuple[str, ...]

    @property
    def last(self) -> int:
        """The number of its last line that is neither empty nor a rule at its end."""
        return next((line.number for line in reversed(self.lines) if line.text.strip() and not line.rule), self.first)


def lines_of(text: str) -> list[Line]:
    """The lines of a document. A fence that never ends goes to the end; so does a comment. A line that begins with a
    `__Name__` begins with a `**Name**`.
    """
    made: list[Line] = []
    fence = ""
    commented = False
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip("\r")
        if fence:
            made.append(Line(number, line, fenced=True))
            fence = "" if _closes(line, fence) else fence
            continue
        line, commented = _uncommented(line, within=commented)
        if opened := _FENCE.match(line):
            fence = opened[1]
            made.append(Line(number, line, fenced=True))
        elif (found := _HEADING.match(line)) and (heading := _unclosed(found[2])):
            made.append(Line(number, line, level=len(found[1]), heading=heading))
        else:
            line = _UNDERLINED.sub(r"\1**\2**", line, count=1) if "__" in line else line
            made.append(Line(number, line, rule=bool(_RULE.match(line))))
    return made


def _unclosed(heading: str) -> str:
    """A heading's words without the marks that may stand behind them."""
    words = heading.strip()
    left = words.rstrip("#")
    return left.rstrip() if not left or left[-1] in " \t" else words


def titled(lines: Sequence[Line]) -> list[Line]:
    """The lines with their headings raised so that the title's level is 1, where a document has one: the first heading,
    which no other is as high as.
    """
    levels = [line.level for line in lines if line.level]
    raised = levels[0] - 1 if len(levels) > 1 and levels[0] < min(levels[1:]) else 0
    return (
        [line._replace(level=line.level - raised) if line.level else line for line in lines] if raised else list(lines)
    )


def _uncommented(line: str, *, within: bool) -> tuple[str, bool]:
    """A line without comments, and whether one goes on behind it."""
    left = ""
    while line:
        if within:
            _, ended, line = line.partition("-->")
            within = not ended
        else:
            before, opened, line = line.partition("<!--")
            left += before
            within = bool(opened)
    return left.rstrip() if left.strip() else "", within


def sections_of(lines: Sequence[Line]) -> list[Section]:
    """Every section of a document, in the order of their headings."""
    places = [place for place, line in enumerate(lines) if line.level]
    under: list[int] = []
    above: list[tuple[str, ...]] = []
    ends: dict[int, int] = {}
    for place in places:
        while under and lines[under[-1]].level >= lines[place].level:
            ends[under.pop()] = place
        above.append(tuple(lines[other].heading for other in under))
        under.append(place)
    return [
        Section(
            *(lines[place].level, lines[place].heading, lines[place].number),
            tuple(lines[place + 1 : ends.get(place, len(lines))]),
            tuple(lines[place + 1 : following]),
            headings,
        )
        for place, following, headings in zip(places, [*places[1:], len(lines)], above, strict=False)
    ]


def fences_of(lines: Sequence[Line]) -> list[Fence]:
    """The fenced blocks of a document, one that never ends included."""
    made = []
    under: list[Line] = []
    end = -1
    for place, line in enumerate(lines):
        if line.level:
            under = [*(other for other in under if other.level < line.level), line]
        opened = _FENCE.match(line.text) if line.fenced and place > end else None
        if opened is None:
            continue
        end = next((one for one in range(place + 1, len(lines)) if _closes(lines[one].text, opened[1])), len(lines))
        content = [one.text for one in lines[place + 1 : end]]
        info = next(iter(opened[2].split()), "")
        last = line.number + max(1, len(content))
        made.append(Fence(info, "\n".join(content), line.number + 1, last, tuple(one.heading for one in under)))
    return made


def _closes(text: str, mark: str) -> bool:
    """Whether a line ends the fence that was opened with a mark."""
    words = text.strip()
    return words.startswith(mark) and not words.strip(mark[0])


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


def cells_of(line: Line) -> list[str]:
    """The cells of a row."""
    cells = re.split(r"(?<!\\)\|", line.text.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


# ---- named fields ----


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
    found = _BOLD_FIELD.match(line.text)
    if found and (found["colon"] or found["colon2"]):
        return _in_bold(line, found, current)
    found = _PLAIN_FIELD.match(line.text)
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
    return "\n".join(line.text.rstrip() for line in stripped(kept))


def stripped(lines: Sequence[Line], *, rules: bool = False) -> Sequence[Line]:
    """Lines without the blank ones around them; `rules`: nor the rules there."""
    said = [place for place, line in enumerate(lines) if line.text.strip() and not (rules and line.rule)]
    return lines[said[0] : said[-1] + 1] if said else ()


# ---- what somebody wrote ----
# Nine of ten documents of a run hold nothing but their template. What does not count: headings, rules, comments, marks
# that are to be filled in, names of fields without a value, the fields that say which run it is, tables without a
# filled row, and the lines that the loop itself writes.


_MARKER = re.compile(r"\s*(?:>\s*)*(?:(?:[-*+]|\d{1,3}[.)])(?:\s+|$))?(?:\[[ xX]?\](?:\s+|$))?")

_FIELD = re.compile(r"(?:\*\*|__)(?P<name>[^*_\n]{1,60}?):?(?:\*\*|__)\s*:?\s*(?P<value>.*)$")

_BARE_FIELD = re.compile(r"(?P<name>[A-Z][\w /-]{1,40}):\s*(?P<value>.*)$")

_NAMES_THE_RUN = re.compile(
    r"(?:re)?start(?:ed)?(?: at| time)?|completed(?: at)?|ended(?: at)?|end time|finished|duration|date|time(?:stamp)?"
    r"|created|(?:last )?updated|run(?: id| number| folder| dir(?:ectory)?)?|task(?: id| type)?|loop(?: number| type)?"
    r"|agent(?: type)?|project|status|priority|action|type|phase|branch|git (?:branch|commit)|commit|model|version"
    r"|session(?: id)?|iteration|owner|author|category|parent|(?:active|previous) (?:tasks|run(?: status)?)"
    r"|queue depth",
    re.IGNORECASE,
)

_MARK = re.compile(r"\[[^\]\n]{0,200}\](?!\()|\{\{?[^}\n]{0,100}\}?\}|<[A-Za-z_][\w /|-]{0,60}>|\$\{?\w+\}?|FILL_ME\w*")

_EITHER = r"(?:added|created|modified|deleted|high|medium|low|yes|no|completed?|partial|blocked|failed|pending|success)"

_EMPTY = re.compile(
    r"(?:TO ?DO|TBD|N/?A|none(?: yet| made| identified)?|pending|in[ _]progress|unknown|not (?:yet|started|applicable)"
    r"|to be (?:filled(?: in)?|determined|written|added)|nothing (?:yet|so far)"
    r"|no (?:tasks?|blockers?|decisions?)(?: (?:yet|made))?|criterion \d|YYYY-MM-DD|HH:MM(?::SS)?"
    rf"|{_EITHER}(?: ?[/|] ?{_EITHER})+)?[\s.…:|/-]*",
    re.IGNORECASE,
)

_GENERATED = re.compile(r"\b(?:template|generated|fill(?:ed)? (?:in|out)|edit as needed)\b", re.IGNORECASE)

_WORD = re.compile(r"[^\W\d_]{2,}")

_LONGEST_LINE = 2_000  # characters of a line that are looked at

_LEAST_WORDS = 2
"""Words of a whole part below which nothing is said: "Done." is, `commit_changes` is not."""

_CODE_NAME = re.compile(r"(?<![a-z])[a-z]+(?:_[a-z]+)+|run-[\w-]+|CORE-[\w-]+")

_OF_THE_LOOP = re.compile(
    r"Previous: \S* ?\(status:.*\)|No previous run|(?:Active tasks|Git changes|Recent runs|Goals defined): \d*"
    r"|Activate BB5 Core Agent Team|(?:Execute:? )?(?:[a-z]+(?:_[a-z]+)+)|Log all decisions and learnings"
    r"|Complete and exit"
    r"|Based on BB5 state analysis|beginning work|No AI provider configured\b.*|Action required: \S+|Priority: \w+"
    r"|To complete manually:|Review active tasks in \S+|Check previous run: \S+|Update this run folder with results"
    r"|To enable agent teams, install GLM:|curl -fsSL https://glm\.ai/\S+ \| sh|Or set ANTHROPIC_API_KEY for Claude",
)


def says_something(lines: Sequence[Line], *, header: bool = False) -> bool:
    """Whether anybody wrote anything in these lines.

    header  they stand at a document's top, where every field names the run
    """
    heads = _heads_of_tables(lines)
    said = " ".join(_written_words(line, header=header) for place, line in enumerate(lines) if place not in heads)
    return len(_WORD.findall(_CODE_NAME.sub(" ", said))) >= _LEAST_WORDS or bool(_DONE.search(said))


_DONE = re.compile(r"\b(?:done|fixed|failed|passed|works|finished|completed?)\b", re.IGNORECASE)


def without_marks(lines: Sequence[Line]) -> list[Line]:
    """The lines without those that only a template, or the loop, has put there; what names a field stays."""
    tables = _heads_of_tables(lines)
    return [
        line
        for place, line in enumerate(lines)
        if line.fenced or line.level or line.rule or not line.text.strip() or place in tables or not _is_mark(line.text)
    ]


def _written_words(line: Line, *, header: bool) -> str:
    """The words of a line that somebody wrote, "" for none; of a very long one those at its beginning."""
    line = line._replace(text=line.text[:_LONGEST_LINE]) if len(line.text) > _LONGEST_LINE else line
    if not line.text or line.level or line.rule or (line.fenced and line.text.lstrip().startswith(("```", "~~~"))):
        return ""
    if line.fenced:
        return _words(line.text)
    text = one_line(_MARKER.sub("", line.text, count=1))
    if text.startswith("|"):
        return "" if set(text) <= set("|-: ") else " ".join(map(_words, text.split("|")))
    if _is_generated(text) or _OF_THE_LOOP.fullmatch(text.strip("*_ ")):
        return ""
    field = _FIELD.fullmatch(text) or _BARE_FIELD.fullmatch(text)
    if field is not None:
        named = _NAMES_THE_RUN.fullmatch(field["name"].strip(" :*_"))
        if (header and text.startswith(("**", "__"))) or named or _OF_THE_LOOP.fullmatch(field["value"].strip()):
            return ""
        text = field["value"]
    return _words(text)


def _words(text: str) -> str:
    """A text without marks; "" for one that says that there is nothing."""
    left = _MARK.sub(" ", text).strip()
    return "" if _EMPTY.fullmatch(left.strip(" *_`")) else left


def _is_mark(text: str) -> bool:
    """Whether a line holds nothing but a mark to be filled in, or is the loop's own."""
    if len(text) > _LONGEST_LINE:
        return False
    bare = one_line(_MARKER.sub("", text, count=1))
    if not bare or _is_generated(bare) or _OF_THE_LOOP.fullmatch(bare.strip("*_ ")):
        return True
    field = _FIELD.fullmatch(bare)
    if field is not None:
        return bool(field["value"].strip()) and _is_empty(field["value"])
    return _is_empty(bare)


def _is_generated(text: str) -> bool:
    """Whether a line in italics or in bold says that a template wrote it."""
    return text.startswith(("*", "_")) and text.endswith(("*", "_")) and _GENERATED.search(text) is not None


def _is_empty(text: str) -> bool:
    cells = _MARK.sub(" ", text).split("|")
    return all(_EMPTY.fullmatch(cell.strip(" *_`")) for cell in cells)


def _heads_of_tables(lines: Sequence[Line]) -> set[int]:
    rows = [line.text.strip() for line in lines]
    return {
        place + offset
        for place in range(len(rows) - 1)
        for offset in (0, 1)
        if rows[place].startswith("|") and rows[place + 1].startswith("|") and set(rows[place + 1]) <= set("|-: ")
    }


# ---- words and times ----


_BOLD = re.compile(rf"(?P<name>{NAMED})|(?P<mark>\*\*|__)(?=\S)(?P<bold>(?:(?!\s(?P=mark)).)+?)(?<=\S)(?P=mark)")


def plain(text: str) -> str:
    """Markdown's words on one line: without the stars of bold text and the dashes of lists, and what cannot be kept."""
    return prose(_BOLD.sub(lambda found: found["name"] or found["bold"], clean(text)))
