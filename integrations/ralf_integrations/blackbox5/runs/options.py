"""The options that a decision had, as documents list them: each with its verdict, and why it was not chosen."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ralf_integrations.blackbox5.runs.markdown import Line, plain

NO = r"reject(?:ed|ion)?|declined|discarded|dismissed|ruled out|not (?:chosen|selected|needed|required)|against"
_YES = r"selected|chosen|chose|accepted|adopted|approved|picked|preferred|winner"
_ITEM = re.compile(r"(\s*)(?:[-*+•]|\(?(\d{1,3}|[A-Za-z])[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_NAMED = re.compile(
    r"\s*(?:#{1,6}\s+)?(?:\*+\s*)?((?:Option|Alternative|OPT|ALT)[ -]?#?\w{1,4})\s*(?:\*+\s*)?[:.)—\u2013-]+"
    r"\s*\**\s*(.*)$",
    re.I,
)
_VERDICT = re.compile(  # behind a mark, or in brackets: else the word is a part of the option
    r"(?<![\s:→>,.\u2013—-])(?=[\s,.]*+[:→>(\u2013—\[*✅✓✔❌✗-])[\s:→>,.\u2013—✅✓✔❌✗-]*+(?:[(\[*]{1,4}+\s*+)?"
    rf"(?<=[:→>(\u2013—\[*✅✓✔❌✗\s-])\b(?:(?P<no>{NO})|(?P<yes>{_YES}))\b\s*[)\]*]*(?P<why>.*)$",
    re.I,
)
_NOTE = re.compile(
    rf"\**(?:(?P<no>{NO})|(?P<yes>{_YES})|(?P<why>reasons?|why(?: not)?|because)|(?P<pro>pros?|advantages?|benefits?)"
    r"|(?P<con>cons?|disadvantages?|drawbacks?)|(?P<verdict>decision|verdict|outcome|result|status))\b"
    r"\**\s*:\**\s*(?P<text>.*)$",
    re.IGNORECASE,
)
_OTHER_NOTE = re.compile(r"\**[A-Z][\w /-]{1,24}:\**\s")
_NONE = re.compile(r"\W*+(?:(?:none|n/?a|nothing|not applicable)\W*+|no alternatives?\b.*)?$", re.IGNORECASE)
_HEAD = re.compile(r"\s[-\u2013—]\s|:\s|\s\(")
_LONG_WORD = re.compile(r"[^\W_]{2,}")
_COMMON = frozenset("the and for with from into that this only use using not but are was will all per via then".split())
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
    note: re.Match[str] | None


def options_of(lines: Sequence[Line]) -> list[Option]:
    """The options that lines list: bullets, numbers, bold lines or headings `Option 2: …`, each with what stands below
    it. A text without a list is one option.
    """
    rows = [_row(line) for line in lines if line.text.strip() and not line.rule and not line.fence]
    begins = _beginnings(rows)
    while rows and not begins(rows[0]) and any(map(begins, rows)):
        rows.pop(0)  # said before the first option
    made: list[Option] = []
    about, depth = "", 0  # whose list goes on below: no, why, con …
    for row in rows:
        if begins(row) or not made:
            name, words = (row.named[1], row.named[2].removesuffix("**")) if row.named else (row.mark or "", row.words)
            made.append(_option(name, words))
            about, depth = "", 0
        elif row.note is not None:
            about, depth = _noted(made[-1], row.note), row.indent
        elif row.indent <= depth and _OTHER_NOTE.match(row.words):
            about, depth = "", row.indent
        else:
            _go_on(made[-1], about, plain(row.words))
    return [option for option in made if not _NONE.match(option.text)]


def _row(line: Line) -> _Row:
    text = line.text.rstrip()
    item = _ITEM.match(text)
    words = item[3] if item else line.heading or text.strip()
    indent = len(item[1]) if item else line.indent
    return _Row(indent, (item[2] or "") if item else None, words, _NAMED.match(words), _NOTE.match(words))


def _beginnings(rows: Sequence[_Row]) -> Callable[[_Row], bool]:
    """Which rows begin an option: those that are called one, else the outermost items."""
    if any(row.named for row in rows):
        return lambda row: row.named is not None
    outermost = min((row.indent for row in rows if row.mark is not None and not row.note), default=0)
    return lambda row: row.mark is not None and not row.note and row.indent == outermost


def _option(name: str, words: str) -> Option:
    text = plain(words)
    found = _VERDICT.search(text)
    if found is None or not found.start():
        return Option(name, text)
    why = re.sub(r"^(?:due to|because|as) ", "", found["why"].strip(" :\u2013—-.,;)("))
    rejected = found["no"] is not None
    return Option(name, text[: found.start()].rstrip(" ,["), not rejected, [why] if why and rejected else [])


def _noted(option: Option, found: re.Match[str]) -> str:
    """Take in a note on an option; returns whose list goes on below."""
    kind = next(key for key in ("no", "yes", "why", "con", "pro", "verdict") if found[key])
    text = plain(found["text"])
    if kind == "verdict":
        rest = re.sub(rf"^\W*(?:{NO})\W*", "", text, flags=re.I)
        kind, text = ("no", rest) if rest != text else ("yes", "")
    if kind in ("no", "yes"):
        option.verdict = kind == "yes"
    if text and kind in ("no", "why", "con"):
        _go_on(option, kind, text)
    return kind


def _go_on(option: Option, about: str, text: str) -> None:
    if about in ("no", "why"):
        option.reasons.append(text)
    elif about == "con":
        option.against.append(text)
    elif not option.text:
        option.text = text


def chosen(options: Sequence[Option], selection: str) -> Option | None:
    """The option that a document calls the chosen one, or that the words of its selection mean."""
    if called := [option for option in options if option.verdict]:
        return called[0]
    names = [option for option in options if option.name and _names(option.name, selection)]
    if len(names) == 1:
        return names[0]
    wanted = _stems(selection)
    best, most = None, 0.0
    for option in options:
        shares = [_share(wanted, _stems(words)) for words in (option.text, _HEAD.split(option.text, maxsplit=1)[0])]
        if option.verdict is None and max(shares) >= _ENOUGH and sum(shares) > most:
            best, most = option, sum(shares)
    return best


def rejected(options: Sequence[Option], taken: Option | None, *, all_others: bool = False) -> tuple[str, ...]:
    """The alternatives: every option but the chosen one; where none of them can be told to be it, only those that are
    called rejected, unless the chosen one is not among them (`all_others`).
    """
    known = all_others or taken is not None
    left = [one for one in options if one is not taken and not one.verdict and (known or one.verdict is False)]
    return tuple(option.as_alternative() for option in left)


def _names(name: str, selection: str) -> bool:
    is_word = re.search(r"[A-Za-z]{2}", name)
    bare = re.escape(name) if is_word else rf"(?:option|alternative|choice|#)\s*{re.escape(name)}"
    return re.search(rf"(?<![\w-]){bare}(?![\w-])", selection, re.IGNORECASE) is not None


def _share(wanted: frozenset[str], stems: frozenset[str]) -> float:
    return len(wanted & stems) / min(len(wanted), len(stems)) if wanted and stems else 0.0


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.casefold()[:5] for word in _LONG_WORD.findall(text)) - _COMMON
