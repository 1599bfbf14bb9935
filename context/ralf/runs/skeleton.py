"""Tells what somebody wrote into a document from what its template, or the loop that made the run, had put there.

Nine of ten documents of a run hold nothing but that. What does not count: headings, rules, comments, marks that are to
be filled in, names of fields without a value, the fields that say which run it is, tables without a filled row, and the
lines that the loop itself writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.runs.markdown import Line
from ralf.text import one_line

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
_LONGEST = 2_000  # characters of a line that are looked at
_LEAST_WORDS = 2
"""Words of a whole part below which nothing is said: "Done." is, `commit_changes` is not."""

_NAME = re.compile(r"(?<![a-z])[a-z]+(?:_[a-z]+)+|run-[\w-]+|CORE-[\w-]+")
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
    said = " ".join(_said(line, header=header) for place, line in enumerate(lines) if place not in heads)
    return len(_WORD.findall(_NAME.sub(" ", said))) >= _LEAST_WORDS or bool(_DONE.search(said))


_DONE = re.compile(r"\b(?:done|fixed|failed|passed|works|finished|completed?)\b", re.IGNORECASE)


def without_marks(lines: Sequence[Line]) -> list[Line]:
    """The lines without those that only a template, or the loop, has put there; what names a field stays."""
    tables = _heads_of_tables(lines)
    return [
        line
        for place, line in enumerate(lines)
        if line.fenced or line.level or line.rule or not line.text.strip() or place in tables or not _is_mark(line.text)
    ]


def _said(line: Line, *, header: bool) -> str:
    """The words of a line that somebody wrote, "" for none; of a very long one those at its beginning."""
    line = line._replace(text=line.text[:_LONGEST]) if len(line.text) > _LONGEST else line
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
    if len(text) > _LONGEST:
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
