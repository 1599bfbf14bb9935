"""The options that a decision had, as documents list them: each with its verdict, and why it was not chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ralf_integrations.blackbox5.runs.markdown import Line, plain

_NO = r"reject(?:ed|ion)?|declined|discarded|dismissed|ruled out|not (?:chosen|selected|needed|required)"
_YES = r"selected|chosen|chose|accepted|adopted|approved|picked|preferred|winner"
_ITEM = re.compile(r"(\s*)(?:[-*+•]|\(?(\d{1,3}|[A-Za-z])[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_NAMED = re.compile(
    r"\s*(?:\*+\s*)?((?:Option|Alternative|OPT|ALT)[ -]?#?\w{1,4})\s*(?:\*+\s*)?[:.)—\u2013-]+\s*\**\s*(.*)$", re.I
)
_VERDICT = re.compile(  # behind a mark, or in brackets: else the word is a part of the option
    rf"\s*(?:[:→>—\u2013✅✓❌✗]|\s-|\(|\[)[\s✅✓❌✗*]*(?:(?P<no>{_NO})|(?P<yes>{_YES}))\b\W*(?P<why>.*)$", re.I
)
_NOTE = re.compile(
    rf"\**(?:(?P<no>{_NO})|(?P<yes>{_YES})|(?P<why>reasons?|why(?: not)?|because)"
    r"|(?P<con>cons?|disadvantages?|drawbacks?)|(?P<verdict>decision|verdict|outcome|result|status)"
    r"|(?P<other>[A-Z][\w /-]{1,24}))\**\s*:\**(?=\s|$)\s*(?P<text>.*)$",
    re.IGNORECASE,
)
_NONE = re.compile(r"\W*+(?:(?:none|n/?a|nothing|not applicable)\W*+|no alternatives?\b.*)?$", re.IGNORECASE)
_HEAD = re.compile(r"\s[-\u2013—]\s|:\s|\s\(")


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

    def is_named(self, selection: str) -> bool:
        """Whether a selection is the option's name, at most with what it says: `OPT-002`, `Option B (Stubs)`."""
        named = rf"(?:option\s*)?{re.escape(self.name)}(?P<gloss>\W.*)?"
        found = re.fullmatch(named, plain(selection).strip(" .*`"), re.IGNORECASE)
        if not self.name or found is None:
            return False
        words, said = (set(re.findall(r"\w{2,}", one.casefold())) for one in (found["gloss"] or "", self.text))
        return words <= said


def options_of(lines: Sequence[Line]) -> list[Option]:
    """The options that lines list: bullets, numbers, bold lines or headings `Option 2: …`, each with what stands below
    it. A text without a list is one option.
    """
    rows = []
    for line in (line for line in lines if line.text.strip() and not line.rule and not line.fence):
        item = _ITEM.match(line.text)
        words = item[3] if item else line.heading or line.text.strip()
        rows.append((len(item[1]) if item else -1, (item[2] or "") if item else "", words, _NAMED.match(words)))
    has_names = any(named for *_, named in rows)
    outermost = min((indent for indent, _, words, _ in rows if indent >= 0 and not _is_note(words)), default=-1)
    made: list[Option] = []
    list_: list[str] | None = None  # that goes on below: reasons, disadvantages
    for indent, mark, words, named in rows:
        begins = named is not None if has_names else indent == outermost and not _is_note(words)
        if begins:
            made.append(_option(named[1], named[2].removesuffix("**")) if named else _option(mark, words))
            list_ = None
        elif not made:
            continue  # said before the first option
        elif note := _NOTE.match(words):
            list_ = _noted(made[-1], note)
        elif list_ is not None:
            list_.append(plain(words))
        elif not made[-1].text:
            made[-1].text = plain(words)
    return [option for option in made if not _NONE.match(option.text)]


def _is_note(words: str) -> bool:
    found = _NOTE.match(words)
    return found is not None and not found["other"]


def _option(name: str, words: str) -> Option:
    text = plain(words)
    found = _VERDICT.search(text)
    if found is None or not found.start():
        return Option(name, text)
    why = re.sub(r"^(?:due to|because|as) ", "", found["why"].strip(" :\u2013—-.,;)(*"))
    rejected = found["no"] is not None
    return Option(name, text[: found.start()].rstrip(" ,["), not rejected, [why] if why and rejected else [])


def _noted(option: Option, found: re.Match[str]) -> list[str] | None:
    """Take in a note on an option; returns the list that goes on below."""
    text = plain(found["text"])
    if found["verdict"]:
        rest = re.sub(rf"^\W*(?:{_NO})\W*", "", text, flags=re.I)
        option.verdict, text = rest == text, rest if rest != text else ""
    elif found["no"] or found["yes"]:
        option.verdict = found["yes"] is not None
    list_ = option.against if found["con"] else option.reasons if found["no"] or found["why"] or text else None
    if found["other"] or found["yes"]:
        return None
    if text and list_ is not None:
        list_.append(text)
    return list_


def chosen(options: Sequence[Option], selection: str) -> Option | None:
    """The option that a document calls the chosen one, or that its selection names, or begins with."""
    if called := [option for option in options if option.verdict]:
        return called[0]
    named = [option for option in options if option.name and _names(option.name, selection)]
    said = plain(selection).casefold()
    heads = [option for option in options if option.verdict is None and _is_said(option, said)]
    return next((found[0] for found in (named, heads) if len(found) == 1), None)


def _is_said(option: Option, selection: str) -> bool:
    """Whether the words of an option, or those at its head, are those of a selection."""
    head = _HEAD.split(option.text, maxsplit=1)[0].casefold()
    return bool(selection and head) and (
        re.search(rf"(?<!\w){re.escape(head)}(?!\w)", selection) is not None
        or option.text.casefold().startswith(selection)
    )


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
