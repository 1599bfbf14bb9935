"""Markdown as people and agents write it, line by line: markdown-it-py says what each line is, every line keeps its
words and number. On top of that: sections, fences, tables, and which lines somebody really wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

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
    table  the number of the first line of the table that it belongs to; 0 for none
    """

    number: int
    text: str
    fence: int = 0
    level: int = 0
    heading: str = ""
    rule: bool = False
    table: int = 0

    @property
    def indent(self) -> int:
        """How deep it stands."""
        return len(self.text) - len(self.text.lstrip())

    @property
    def is_marked(self) -> bool:
        """Whether it only structures the document: a heading, a rule, the head of a table, the mark of a fence."""
        is_head = bool(self.table) and self.number <= self.table + 1
        is_mark = bool(self.fence) and self.text.lstrip().startswith(("```", "~~~"))
        return bool(self.level) or self.rule or is_head or is_mark


class Fence(NamedTuple):
    """A fenced block: its content, the first and last line of that, and the headings above it, outermost first."""

    text: str
    first: int
    last: int
    under: tuple[str, ...]


class Section(NamedTuple):
    """A heading and all lines below it down to the next heading of its level or a higher one; `own`: those down to the
    next heading of any level.
    """

    heading: str
    level: int
    first: int
    lines: tuple[Line, ...]
    own: tuple[Line, ...]

    @property
    def last(self) -> int:
        """The number of its last line that is neither empty nor a rule at its end."""
        return last_of(self.lines, self.first)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark").enable("table")
    made.disable(["lheading", "reference"])  # `---` below text is a rule here
    made.core.ruler.enableOnly(["normalize", "block"])
    return made


@lru_cache(16)  # what reads a document asks for its lines again and again
def lines_of(text: str) -> Sequence[Line]:
    """The lines of a document."""
    made = [Line(number, line) for number, line in enumerate(text.split("\n"), start=1)]
    tokens = _parser().parse(text)
    for place, token in enumerate(tokens):
        first, last = token.map or (0, 0)
        block = made[first:last]
        if token.type == "heading_open" and not token.level and tokens[place + 1].content:
            made[first] = made[first]._replace(level=int(token.tag[1]), heading=tokens[place + 1].content)
        elif token.type == "fence":
            made[first:last] = [line._replace(fence=first + 1) for line in block]
        elif token.type == "table_open":
            made[first:last] = [line._replace(table=first + 1) for line in block]
        elif token.type == "hr" and not token.level:
            made[first] = made[first]._replace(rule=True)
        elif token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            rest = token.content.partition("-->")[2].split("\n")[0].strip()
            made[first:last] = [line._replace(text="") for line in block[:-1]] + [block[-1]._replace(text=rest)]
    return tuple(
        line if line.fence or line.level else line._replace(text=_COMMENT.sub("", line.text).rstrip()) for line in made
    )


def sections_of(lines: Sequence[Line]) -> list[Section]:
    """Every section of a document, in the order of their headings."""
    places = [place for place, line in enumerate(lines) if line.level]
    made = []
    for at, place in enumerate(places):
        line, below = lines[place], range(at + 1, len(places))
        end = next((places[other] for other in below if lines[places[other]].level <= line.level), len(lines))
        own = lines[place + 1 : places[at + 1] if below else len(lines)]
        made.append(Section(line.heading, line.level, line.number, tuple(lines[place + 1 : end]), tuple(own)))
    return made


def fences_of(lines: Sequence[Line]) -> list[Fence]:
    """The fenced blocks of a document, one that never ends included."""
    made = []
    under: list[Line] = []
    for number, group in groupby(lines, key=lambda line: line.fence):
        if not number:
            for line in (line for line in group if line.level):
                under = [*(one for one in under if one.level < line.level), line]
            continue
        content = [line.text for line in group][1:]
        if content and content[-1].strip() and set(content[-1].strip()) <= set("`~"):
            content.pop()
        headings = tuple(one.heading for one in under)
        made.append(Fence("\n".join(content), number + 1, number + max(1, len(content)), headings))
    return made


def tables_of(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The tables of a document, each as its lines."""
    return (list(group) for number, group in groupby(lines, key=lambda line: line.table) if number)


def cells_of(line: Line) -> list[str]:
    """The cells of a row."""
    cells = re.split(r"(?<!\\)\|", line.text.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


def last_of(lines: Sequence[Line], first: int) -> int:
    """The number of the last of these lines that is neither empty nor a rule at their end; `first` for none."""
    return next((line.number for line in reversed(lines) if line.text.strip() and not line.rule), first)


_FOOTER = re.compile(r"\s*(?:(?:\*\*[^*]+\*\*|\*[^*]+\*|_[^_]+_|\*\*[^*]+:\*\*.*)\s*)?$")


def text_of(lines: Sequence[Line]) -> str:
    """The text of lines, without what frames it: blank lines, a rule at the end and the footer behind that."""
    rule = next((place for place, line in enumerate(lines) if line.rule), len(lines))
    is_footer = all(_FOOTER.match(line.text) for line in lines[rule:] if not line.rule)
    return "\n".join(line.text.rstrip() for line in stripped(lines[:rule] if is_footer else lines))


def stripped(lines: Sequence[Line], *, rules: bool = False) -> Sequence[Line]:
    """Lines without the blank ones around them; `rules`: nor the rules there."""
    said = [place for place, line in enumerate(lines) if line.text.strip() and not (rules and line.rule)]
    return lines[said[0] : said[-1] + 1] if said else ()


_BOLD = re.compile(rf"(?P<name>{NAMED})|(?P<mark>\*\*|__)(?=\S)(?P<bold>(?:(?!\s(?P=mark)).)+?)(?<=\S)(?P=mark)")


def plain(text: str) -> str:
    """Markdown's words on one line: without the stars of bold text and the dashes of lists, and what cannot be kept."""
    return prose(_BOLD.sub(lambda found: found["name"] or found["bold"], clean(text)))


# ---- what somebody wrote ----
# Nine of ten documents of a run hold nothing but their template. What does not count: headings, rules, comments, marks
# that are to be filled in, fields without a value and those that say which run it is, heads of tables, and the lines
# that the loop itself writes.

_MARKER = re.compile(r"\s*(?:>\s*)*(?:(?:[-*+]|\d{1,3}[.)])(?:\s+|$))?(?:\[[ xX]?\](?:\s+|$))?")
_VALUE = re.compile(
    r"(?P<bold>\*\*|__)?(?P<name>[A-Za-z][^*_:\n]{0,59}):?(?(bold)(?P=bold)\s*:?|(?<=:))\s*(?P<value>.*)$"
)
_OF_THE_RUN = frozenset(
    "run task loop agent git session id number type folder directory start started end ended time at completed finished"
    " duration date timestamp created last updated project status priority action phase branch commit model version"
    " iteration owner author category parent previous".split()
)
"""The words of the names of fields that say which run it is."""
_MARK = re.compile(r"\[[^\]\n]{0,200}\](?!\()|\{\{?[^}\n]{0,100}\}?\}|<[A-Za-z_][\w /|-]{0,60}>|\$\{?\w+\}?|FILL_ME\w*")
_EITHER = r"(?:added|created|modified|deleted|high|medium|low|yes|no|completed?|partial|blocked|failed|pending|success)"
_EMPTY = re.compile(
    r"(?:TO ?DO|TBD|N/?A|none(?: yet| made| identified)?|pending|in[ _]progress|unknown|not (?:yet|started|applicable)"
    r"|to be (?:filled(?: in)?|determined|written|added)|nothing (?:yet|so far)"
    r"|no (?:tasks?|blockers?|decisions?)(?: (?:yet|made))?|criterion \d|YYYY-MM-DD|HH:MM(?::SS)?"
    rf"|{_EITHER}(?: ?[/|] ?{_EITHER})+)?[\s.…:|/-]*",
    re.IGNORECASE,
)
_OF_THE_LOOP = re.compile(
    r"Previous: \S* ?\(status:.*\)|No previous run|(?:Execute:? )?(?:[a-z]+(?:_[a-z]+)+)|Complete and exit"
    r"|Activate BB5 Core Agent Team|Log all decisions and learnings|Based on BB5 state analysis|beginning work"
    r"|No AI provider configured\b.*|To complete manually:|Review active tasks in \S+|Check previous run: \S+"
    r"|Update this run folder with results"
    r"|To enable agent teams, install GLM:|curl -fsSL https://glm\.ai/\S+ \| sh|Or set ANTHROPIC_API_KEY for Claude"
    r"|Action required: \S+|Priority: \w+"
)
_GENERATED = re.compile(
    r"[*_](?=.*[*_]\Z).*?\b(?:template|generated|fill(?:ed)? (?:in|out)|edit as needed)\b.*", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_LONGEST_LINE = 2_000  # characters of a line that are looked at
_LEAST_WORDS = 2  # of a whole part below which nothing is said
_CODE_NAME = re.compile(r"(?<![a-z])[a-z]+(?:_[a-z]+)+|run-[\w-]+|CORE-[\w-]+")
_DONE = re.compile(r"\b(?:done|fixed|failed|passed|works|finished|completed?)\b", re.IGNORECASE)


def says_something(lines: Sequence[Line], *, header: bool = False) -> bool:
    """Whether anybody wrote anything in these lines: two words at least that are no names of code, or "Done.".

    header  they stand at a document's top, where every field names the run
    """
    said = " ".join(_written(line, header=header) for line in lines)
    return len(_WORD.findall(_CODE_NAME.sub(" ", said))) >= _LEAST_WORDS or bool(_DONE.search(said))


def without_marks(lines: Sequence[Line]) -> list[Line]:
    """The lines without those that only a template, or the loop, has put there; what names a field stays."""
    return [line for line in lines if line.is_marked or line.fence or not line.text.strip() or _is_kept(line)]


def _is_kept(line: Line) -> bool:
    bare, named = _bare(line)
    said = named["value"] if named is not None else bare
    return not is_of_the_loop(bare) and (any(map(_words, said.split("|"))) or (named is not None and not said))


def _bare(line: Line) -> tuple[str, re.Match[str] | None]:
    """A line without the marks of an item, and as a field with a value; of a very long one its beginning."""
    bare = one_line(_MARKER.sub("", line.text[:_LONGEST_LINE], count=1))
    return bare, _VALUE.fullmatch(bare)


def _written(line: Line, *, header: bool = False) -> str:
    """The words of a line that somebody wrote, "" for none."""
    if line.is_marked:
        return ""
    if line.fence or line.table:
        return " ".join(map(_words, line.text[:_LONGEST_LINE].split("|")))
    text, named = _bare(line)
    if named is None or is_of_the_loop(text):
        return "" if is_of_the_loop(text) else _words(text)
    is_header = (header and named["bold"]) or set(named["name"].casefold().split()) <= _OF_THE_RUN
    return "" if is_header or is_of_the_loop(named["value"]) else _words(named["value"])


def _words(text: str) -> str:
    """A text without marks; "" for one that says that there is nothing."""
    left = _MARK.sub(" ", text).strip()
    return "" if _EMPTY.fullmatch(left.strip(" *_`")) else left


def is_of_the_loop(text: str) -> bool:
    """Whether the loop itself, or a template, has written a line."""
    return bool(_GENERATED.fullmatch(text) or _OF_THE_LOOP.fullmatch(text.strip("*_ ")))
