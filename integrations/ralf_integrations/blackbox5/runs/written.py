"""Decisions and their options as documents have them, and a decision as one of `ralf.model`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ralf.document.tree import to_tree
from ralf.model import Decision
from ralf.text.cleaning import clean
from ralf_integrations.blackbox5.runs.folder import time_of
from ralf_integrations.blackbox5.runs.markdown import Line, plain

# ---- options ----


_ITEM = re.compile(r"(\s*)(?:[-*+•]|\(?(\d{1,3}|[A-Za-z])[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")

_NAMED = re.compile(
    r"\s*(?:#{1,6}\s+)?(?:\*+\s*)?((?:Option|Alternative|OPT|ALT)[ -]?#?\w{1,4})\s*(?:\*+\s*)?[:.)—\u2013-]+"
    r"\s*\**\s*(.*)$",
    re.I,
)

_BOLD_LINE = re.compile(r"\*\*(?!\s)[^*]+\*\*:?\s*(?:\(.*\)|[-\u2013—:].*)?$")

_NO = r"reject(?:ed|ion)?|declined|discarded|dismissed|ruled out|not (?:chosen|selected|needed|required)|against"

_YES = r"selected|chosen|chose|accepted|adopted|approved|picked|preferred|winner"

_VERDICT = re.compile(
    r"(?<![\s:→>,.\u2013—-])[\s:→>,.\u2013—-]*+(?:[(\[*]{1,4}+\s*+)?"
    rf"\b(?:(?P<no>{_NO})|(?P<yes>{_YES}))\b\s*[)\]*]*(?P<why>.*)$",
    re.I,
)

_NOTE = re.compile(
    rf"\**(?:(?P<no>{_NO})|(?P<yes>{_YES})|(?P<why>reasons?|why(?: not)?|because)|(?P<pro>pros?|advantages?|benefits?)"
    r"|(?P<con>cons?|disadvantages?|drawbacks?)|(?P<verdict>decision|verdict|outcome|result|status))\b"
    r"\**\s*:\**\s*(?P<text>.*)$",
    re.IGNORECASE,
)

_OTHER_NOTE = re.compile(r"\**[A-Z][\w /-]{1,24}:\**\s")

_NONE = re.compile(r"\W*+(?:(?:none|n/?a|nothing|not applicable)\W*+|no alternatives?\b.*)?$", re.IGNORECASE)

_HEAD = re.compile(r"\s[-\u2013—]\s|:\s|\s\(")

_LONG_WORD = re.compile(r"[^\W_]{2,}")

_BEFORE = 40  # characters before a word that judges in which its mark may stand

_ENOUGH = 0.5  # of an option's words in what was chosen, or of its words in the option


@dataclass(slots=True)
class Option:
    """One option: its name (`OPT-001`, `2`, `B`), its words, and what is said of it.

    verdict   True: chosen, False: rejected, None: the document does not say so beside it
    reasons   why it was not chosen; `against`: its disadvantages
    """

    name: str
    text: str
    verdict: bool | None = None
    reasons: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)

    def as_alternative(self) -> str:
        """As a decision's alternative: "option: why not"."""
        why = "; ".join(self.reasons or self.against)
        return f"{self.text.rstrip(':')}: {why}" if why else self.text


class _Row(NamedTuple):
    """A line of a list of options: how deep it stands, its mark (None without one, "" for a bullet) and its words."""

    indent: int
    mark: str | None
    words: str
    named: re.Match[str] | None
    bold: bool
    note: bool


def options_of(lines: Sequence[Line]) -> list[Option]:
    """The options that lines list: bullets, numbers, bold lines or headings `Option 2: …`, each with what stands below
    it. A text without a list is one option.
    """
    rows = [_row(line) for line in lines if line.text.strip() and not line.rule and not line.fenced]
    begins = _beginnings(rows)
    is_list = any(map(begins, rows))
    made: list[Option] = []
    note = _Note("", 0)
    for row in rows:
        if not made and not begins(row) and is_list:
            continue  # said before the first option
        if begins(row) or not made:
            name, words = (row.named[1], row.named[2].removesuffix("**")) if row.named else (row.mark or "", row.words)
            made.append(_option(name, words))
            note = _Note("", 0)
        else:
            note = _noted(made[-1], row, note)
    return [option for option in made if not _NONE.match(option.text)]


def _row(line: Line) -> _Row:
    text = line.text.rstrip()
    item = _ITEM.match(text)
    words = item[3] if item else line.heading or text.strip()
    indent = len(item[1]) if item else len(text) - len(text.lstrip())
    mark = (item[2] or "") if item else None
    bold = item is None and indent == 0 and bool(_BOLD_LINE.match(words) or line.level)
    return _Row(indent, mark, words, _NAMED.match(words), bold, bool(_NOTE.match(words)))


def _beginnings(rows: Sequence[_Row]) -> Callable[[_Row], bool]:
    """Which rows begin an option: those that are called one, else bold lines, else the outermost items."""
    if any(row.named for row in rows):
        return lambda row: row.named is not None
    if rows and rows[0].bold and not rows[0].note:
        return lambda row: row.bold and not row.note
    outermost = min((row.indent for row in rows if row.mark is not None and not row.note), default=0)
    return lambda row: row.mark is not None and not row.note and row.indent == outermost


def _option(name: str, words: str) -> Option:
    text = plain(words)
    verdict, why = None, ""
    found = next((hit for hit in _VERDICT.finditer(text) if _is_verdict(text, hit)), None)
    if found:
        verdict = bool(found["yes"])
        why = found["why"].strip(" :\u2013—-.,;)(").removeprefix("due to ").removeprefix("because ").removeprefix("as ")
        text = text[: found.start()].rstrip(" :→>(\u2013—-,[✅✓✔❌✗")
    return Option(name, text, verdict, [why] if why and verdict is False else [])


def _is_verdict(text: str, found: re.Match[str]) -> bool:
    """Whether a word like "rejected" judges the option, rather than being part of it: behind a mark, or in brackets."""
    place = found.start("no") if found["no"] else found.start("yes")
    before = text[max(0, place - _BEFORE) : place].rstrip()
    return bool(before) and before[-1] in ":→>(\u2013—-[*✅✓✔❌✗"


class _Note(NamedTuple):
    """Whose list the rows below belong to: no, why, con, pro …; and how deep its name stands."""

    kind: str
    indent: int


def _noted(option: Option, row: _Row, note: _Note) -> _Note:
    """Take in what is said of an option; returns whose list goes on below."""
    found = _NOTE.match(row.words)
    if found is None:
        text = plain(row.words)
        if row.indent <= note.indent and _OTHER_NOTE.match(row.words):
            return _Note("", row.indent)
        if note.kind in ("no", "why"):
            option.reasons.append(text)
        elif note.kind == "con":
            option.against.append(text)
        elif not option.text and text:
            option.text = text
        return note
    kind = next(key for key in ("no", "yes", "why", "con", "pro", "verdict") if found[key])
    text = plain(found["text"])
    if kind in ("no", "yes"):
        option.verdict = kind == "yes"
    if kind == "verdict":
        option.verdict = not re.match(rf"\W*(?:{_NO})", text, re.IGNORECASE)
        kind, text = ("no", re.sub(rf"^\W*(?:{_NO})\W*", "", text, flags=re.I)) if not option.verdict else ("yes", "")
    if text and kind in ("no", "why"):
        option.reasons.append(text)
    elif text and kind == "con":
        option.against.append(text)
    return _Note(kind, row.indent)


def chosen(options: Sequence[Option], selection: str) -> Option | None:
    """The option that a document calls the chosen one, or that the words of its selection mean."""
    for option in options:
        if option.verdict:
            return option
    names = [option for option in options if option.name and _names(option.name, selection)]
    if len(names) == 1:
        return names[0]
    wanted = _stems(selection)
    best, most = None, 0.0
    for option in options:
        whole, head = (
            _share(wanted, _stems(words)) for words in (option.text, _HEAD.split(option.text, maxsplit=1)[0])
        )
        if option.verdict is not False and max(whole, head) >= _ENOUGH and whole + head > most:
            best, most = option, whole + head
    return best


def rejected(options: Sequence[Option], taken: Option | None, *, all_others: bool = False) -> tuple[str, ...]:
    """The alternatives: every option but the chosen one.

    all_others  whether the chosen one is not among them; else, where none of them can be told to be it, only those
                count that are called rejected
    """
    known = all_others or taken is not None
    return tuple(
        option.as_alternative()
        for option in options
        if option is not taken and not option.verdict and (known or option.verdict is False)
    )


def _share(wanted: frozenset[str], stems: frozenset[str]) -> float:
    return len(wanted & stems) / min(len(wanted), len(stems)) if wanted and stems else 0.0


def _names(name: str, selection: str) -> bool:
    bare = name if re.search(r"[A-Za-z]{2}", name) else rf"(?:option|alternative|choice|#)\s*{re.escape(name)}"
    found = re.search(rf"(?<![\w-]){bare if bare != name else re.escape(name)}(?![\w-])", selection, re.IGNORECASE)
    return found is not None


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.casefold()[:5] for word in _LONG_WORD.findall(text)) - _COMMON


_COMMON = frozenset("the and for with from into that this only use using not but are was will all per via then".split())


# ---- decisions ----


_STATUSES = {
    "reversed": re.compile(r"\b(?:roll(?:ed)?[ _-]?back|revers(?:ed|al)|reverted|undone)\b", re.IGNORECASE),
    "superseded": re.compile(r"\b(?:supersed\w*|deprecated|replaced|obsolete|downgraded)\b", re.IGNORECASE),
    "dropped": re.compile(r"\b(?:rejected|declined|dropped|withdrawn|abandoned|cancell?ed)\b", re.IGNORECASE),
}

_WORD = re.compile(r"\w+")

_NAMELESS = re.compile(
    r"(?:(?:the|final|meta|key|cycle|main)[ -])?decisions?(?: made| log)?$|decisions?\b.*\b(?:task|run)-", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class WrittenDecision:
    """One decision of a document.

    first_line, last_line  where it stands, counted from 1; its heading, row or bullet is the first line
    label         what the document calls it: `DEC-001`, `D-9`, `3`; "" where it has no name
    title         the words of its heading, "" where there are none
    text          the choice in its own words; "" where the title is all there is
    rationale     why, over as many lines as it was written
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


def statement_of(written: WrittenDecision) -> str:
    """What was decided, on one line: the title and the choice, each where the other does not say it already."""
    title, text = plain(written.title), plain(written.text)
    if not text or not title or _NAMELESS.match(title):
        return text or title
    if title.casefold() in text.casefold():
        return text
    return title if _words(text) in _words(title) else f"{title.rstrip(':.')}: {text}"


def decision_tree(written: WrittenDecision, session: str = "", *, origin: str = "") -> dict[str, Any]:
    """The tree of `ralf.model.Decision` that a written decision is.

    session  what its label is qualified by, since labels begin anew in every document; see `label` in the tree
    origin   who made it; "" where its transcript says that

    Beside the fields of a decision it has `label` (`SESSION#D-9`), and what was written of `reversibility`, `context`
    and `consequences`. Statuses become those of the model; what was written stays under `written_status` where the
    model has no word for it.
    """
    extra: dict[str, Any] = {}
    if written.label:
        extra["label"] = f"{session}#{written.label}" if session else written.label
    for name in ("reversibility", "context", "consequences"):
        value = written.fields.get(name)
        if value not in (None, "", [], {}):
            extra[name] = plain(value) if isinstance(value, str) else value
    status = status_of(written.status)
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


def status_of(written: str) -> str:
    """A status as documents have them as one of the model's: what is not taken back is active."""
    return next((status for status, words in _STATUSES.items() if words.search(written)), "active")


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "
