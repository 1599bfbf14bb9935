"""Markdown as people and agents write it, line by line: markdown-it-py says what each line is, every line keeps its
words and number. On top of that: sections, fences, tables, named fields, and which lines somebody really wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Literal, NamedTuple

from ralf.text.cleaning import NAMED, clean, one_line, prose

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# ---- lines, sections, fences, tables ----

ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[(?P<box>[ xX~>/])\](?!\()\s*)?(?P<text>\S.*)$")
"""An item of a list: a bullet or a number, a box that may be ticked, and its words."""

_COMMENT = re.compile(r"<!--(?:(?!<!--).)*?-->")


class Line(NamedTuple):
    """One line; `number` counts from 1.

    text   as written, without comments
    fence  the number of the first line of the fence that it belongs to, whose marks included; 0 for none
    level  of a heading, else 0; `heading`: its words
    rule   whether it is a thematic break
    """

    number: int
    text: str
    fence: int = 0
    level: int = 0
    heading: str = ""
    rule: bool = False

    @property
    def indent(self) -> int:
        """How deep it stands."""
        return len(self.text) - len(self.text.lstrip())


class Fence(NamedTuple):
    """A fenced block: its content, the first and last line of that, and the headings above it, outermost first."""

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


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    made = (
        MarkdownIt("commonmark").enable("table").disable(["lheading", "reference"])
    )  # `---` below text is a rule here
    made.core.ruler.enableOnly(["normalize", "block"])
    return made


@lru_cache(16)  # what reads a document asks for its lines again and again
def lines_of(text: str) -> Sequence[Line]:
    """The lines of a document."""
    raw = text.split("\n")
    made = [Line(number, line) for number, line in enumerate(raw, start=1)]
    tokens = _parser().parse(text)
    for token, following in zip_longest(tokens, tokens[1:]):
        first, last = token.map or (0, 0)
        if token.type == "heading_open" and not token.level and following is not None and following.content:
            made[first] = made[first]._replace(level=int(token.tag[1]), heading=following.content)
        elif token.type == "fence":
            made[first:last] = [line._replace(fence=first + 1) for line in made[first:last]]
        elif token.type == "hr" and not token.level:
            made[first] = made[first]._replace(rule=True)
        elif token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            _, ended, rest = token.content.partition("-->")
            made[first:last] = [line._replace(text="") for line in made[first:last]]
            made[last - 1] = made[last - 1]._replace(text=rest.split("\n")[0] if ended and rest.strip() else "")
    return tuple(line if line.fence or line.level else _tidied(line) for line in made)


def _tidied(line: Line) -> Line:
    text = (_COMMENT.sub("", line.text) if "<!--" in line.text else line.text).rstrip()
    return line if text == line.text else line._replace(text=text)


def sections_of(lines: Sequence[Line]) -> list[Section]:
    """Every section of a document, in the order of their headings."""
    places = [place for place, line in enumerate(lines) if line.level]
    open_: list[int] = []
    above: list[tuple[str, ...]] = []
    ends: dict[int, int] = {}
    for place in places:
        while open_ and lines[open_[-1]].level >= lines[place].level:
            ends[open_.pop()] = place
        above.append(tuple(lines[other].heading for other in open_))
        open_.append(place)
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
    for number, group in groupby(lines, key=lambda line: line.fence):
        inner = list(group)
        if not number:
            for line in inner:
                under = [*(one for one in under if one.level < line.level), line] if line.level else under
            continue
        mark, *content = (line.text for line in inner)
        if content and content[-1].strip() and set(content[-1].strip()) <= set("`~"):
            content.pop()
        info = next(iter(mark.lstrip(" -*+`~").split()), "")
        headings = tuple(one.heading for one in under)
        made.append(Fence(info, "\n".join(content), number + 1, number + max(1, len(content)), headings))
    return made


def tables_of(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The tables of a document, each as its lines."""
    for is_row, group in groupby(lines, key=lambda line: not line.fence and line.text.lstrip().startswith("|")):
        rows = list(group) if is_row else []
        if len(rows) > 2 and set(rows[1].text) <= set("|-: \t"):
            yield rows


def cells_of(line: Line) -> list[str]:
    """The cells of a row."""
    cells = re.split(r"(?<!\\)\|", line.text.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


def text_of(lines: Sequence[Line]) -> str:
    """The text of lines, without what frames it: blank lines, a rule at the end and the footer behind that."""
    kept = list(lines)
    rules = [place for place, line in enumerate(kept) if line.rule]
    if rules and all(_FOOTER.match(line.text) for line in kept[rules[0] + 1 :] if not line.rule):
        kept = kept[: rules[0]]
    return "\n".join(line.text.rstrip() for line in stripped(kept))


_FOOTER = re.compile(r"\s*(?:(?:\*\*[^*]+\*\*|\*[^*]+\*|_[^_]+_|\*\*[^*]+:\*\*.*)\s*)?$")


def stripped(lines: Sequence[Line], *, rules: bool = False) -> Sequence[Line]:
    """Lines without the blank ones around them; `rules`: nor the rules there."""
    said = [place for place, line in enumerate(lines) if line.text.strip() and not (rules and line.rule)]
    return lines[said[0] : said[-1] + 1] if said else ()


_BOLD = re.compile(rf"(?P<name>{NAMED})|(?P<mark>\*\*|__)(?=\S)(?P<bold>(?:(?!\s(?P=mark)).)+?)(?<=\S)(?P=mark)")


def plain(text: str) -> str:
    """Markdown's words on one line: without the stars of bold text and the dashes of lists, and what cannot be kept."""
    return prose(_BOLD.sub(lambda found: found["name"] or found["bold"], clean(text)))


# ---- named fields ----

_NAME = r"[A-Za-z][\w /'&()#.+-]{0,58}?"
_BOLD_FIELD = re.compile(
    rf"(?P<bullet>[-*+]\s+)?(?P<mark>\*\*|\*)(?:[^\w\s*:|`\[(]{{1,3}}\s*)?(?P<name>{_NAME})(?P<colon>:)?(?P=mark)"
    r"(?P<colon2>\s*:)?(?P<rest>.*)$"
)
_PLAIN_FIELD = re.compile(rf"(?P<bullet>[-*+]\s+)?(?P<name>{_NAME}):(?=\s|$)(?P<rest>.*)$")
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

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands in it yet."""
        return not any(line.text.strip() and not line.rule for line in self.lines)


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
    within = now is not None and now.is_deep  # in a part of its value that has a heading of its own
    if line.level:
        key = key_of(line.heading)
        told_below = now is not None and now.key == "rationale" and not key and (now.is_empty or within)
        return None if told_below else Field(plain(line.heading), key, "heading")
    found = _BOLD_FIELD.match(line.text)
    form: Form
    if found and (found["colon"] or found["colon2"]):
        key, form = key_of(found["name"]), "bullet" if found["bullet"] else "bold"
        if form == "bullet" and (not key or (now is not None and now.form != "bullet")):
            return None
        known = key not in ("", "other")
        if now is not None and (
            within
            or (not known and (now.is_empty or (now.form == "heading" and now.key != "decision")))
            or (known and now.form == "heading" and key not in _MAIN)
        ):
            return None
    else:
        found = _PLAIN_FIELD.match(line.text)
        if found is None or not (key := key_of(found["name"])):
            return None
        form = "bullet" if found["bullet"] else "plain"
        if now is not None and (now.form in ("heading", "bold") or (form == "plain" and now.form == "bullet")):
            return None
    rest = found["rest"].strip()
    return Field(plain(found["name"]).rstrip(":"), key, form, [line._replace(text=rest)] if rest else [])


# ---- what somebody wrote ----
# Nine of ten documents of a run hold nothing but their template. What does not count: headings, rules, comments, marks
# that are to be filled in, names of fields without a value, the fields that say which run it is, tables without a
# filled row, and the lines that the loop itself writes.

_MARKER = re.compile(r"\s*(?:>\s*)*(?:(?:[-*+]|\d{1,3}[.)])(?:\s+|$))?(?:\[[ xX]?\](?:\s+|$))?")
_VALUE = re.compile(r"(?:\*\*|__)(?P<name>[^*_\n]{1,60}?):?(?:\*\*|__)\s*:?\s*(?P<value>.*)$")
_BARE_VALUE = re.compile(r"(?P<name>[A-Z][\w /-]{1,40}):\s*(?P<value>.*)$")
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
_GENERATED = re.compile(
    r"[*_](?=.*[*_]\Z).*?\b(?:template|generated|fill(?:ed)? (?:in|out)|edit as needed)\b.*", re.IGNORECASE
)
_OF_THE_LOOP = re.compile(
    r"Previous: \S* ?\(status:.*\)|No previous run|(?:Active tasks|Git changes|Recent runs|Goals defined): \d*"
    r"|Activate BB5 Core Agent Team|(?:Execute:? )?(?:[a-z]+(?:_[a-z]+)+)|Log all decisions and learnings"
    r"|Complete and exit"
    r"|Based on BB5 state analysis|beginning work|No AI provider configured\b.*|Action required: \S+|Priority: \w+"
    r"|To complete manually:|Review active tasks in \S+|Check previous run: \S+|Update this run folder with results"
    r"|To enable agent teams, install GLM:|curl -fsSL https://glm\.ai/\S+ \| sh|Or set ANTHROPIC_API_KEY for Claude",
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_LONGEST_LINE = 2_000  # characters of a line that are looked at
_LEAST_WORDS = 2  # of a whole part below which nothing is said: "Done." is, `commit_changes` is not
_CODE_NAME = re.compile(r"(?<![a-z])[a-z]+(?:_[a-z]+)+|run-[\w-]+|CORE-[\w-]+")
_DONE = re.compile(r"\b(?:done|fixed|failed|passed|works|finished|completed?)\b", re.IGNORECASE)


def says_something(lines: Sequence[Line], *, header: bool = False) -> bool:
    """Whether anybody wrote anything in these lines.

    header  they stand at a document's top, where every field names the run
    """
    heads = _heads_of_tables(lines)
    said = " ".join(_written(line, header=header) for place, line in enumerate(lines) if place not in heads)
    return len(_WORD.findall(_CODE_NAME.sub(" ", said))) >= _LEAST_WORDS or bool(_DONE.search(said))


def without_marks(lines: Sequence[Line]) -> list[Line]:
    """The lines without those that only a template, or the loop, has put there; what names a field stays."""
    heads = _heads_of_tables(lines)
    return [line for place, line in enumerate(lines) if place in heads or not _is_mark(line)]


def _written(line: Line, *, header: bool) -> str:
    """The words of a line that somebody wrote, "" for none; of a very long one those at its beginning."""
    whole = line.text[:_LONGEST_LINE]
    if not whole or line.level or line.rule or (line.fence and whole.lstrip().startswith(("```", "~~~"))):
        return ""
    if line.fence:
        return _words(whole)
    text = one_line(_MARKER.sub("", whole, count=1))
    if text.startswith("|"):
        return "" if set(text) <= set("|-: ") else " ".join(map(_words, text.split("|")))
    if _is_of_the_loop(text):
        return ""
    named = _VALUE.fullmatch(text) or _BARE_VALUE.fullmatch(text)
    if named is None:
        return _words(text)
    is_header = (header and text.startswith("**")) or _NAMES_THE_RUN.fullmatch(named["name"].strip(" :*_"))
    return "" if is_header or _OF_THE_LOOP.fullmatch(named["value"].strip()) else _words(named["value"])


def _words(text: str) -> str:
    """A text without marks; "" for one that says that there is nothing."""
    left = _MARK.sub(" ", text).strip()
    return "" if _EMPTY.fullmatch(left.strip(" *_`")) else left


def _is_mark(line: Line) -> bool:
    """Whether a line holds nothing but a mark to be filled in, or is the loop's own."""
    if line.fence or line.level or line.rule or not line.text.strip() or len(line.text) > _LONGEST_LINE:
        return False
    bare = one_line(_MARKER.sub("", line.text, count=1))
    named = _VALUE.fullmatch(bare)
    if not bare or _is_of_the_loop(bare) or (named is not None and not named["value"].strip()):
        return named is None or _is_of_the_loop(bare)
    return not any(map(_words, (named["value"] if named is not None else bare).split("|")))


def _is_of_the_loop(text: str) -> bool:
    return bool(_GENERATED.fullmatch(text) or _OF_THE_LOOP.fullmatch(text.strip("*_ ")))


def _heads_of_tables(lines: Sequence[Line]) -> set[int]:
    rows = [line.text.strip() for line in lines]
    heads = (
        n for n in range(len(rows) - 1) if rows[n][:1] == rows[n + 1][:1] == "|" and set(rows[n + 1]) <= set("|-: ")
    )
    return {place for head in heads for place in (head, head + 1)}
