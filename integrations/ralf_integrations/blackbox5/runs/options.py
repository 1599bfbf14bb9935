"""The options that a decision had, as documents list them, in their words: which was chosen, and which were not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ralf_integrations.blackbox5.runs.markdown import plain
from ralf_integrations.blackbox5.runs.outline import Node

_NO = r"reject(?:ed|ion)?|declined|discarded|dismissed|ruled out|not (?:chosen|selected|needed|required)"
_YES = r"selected|chosen|chose|accepted|adopted|approved|picked|preferred|winner"
_NAMED = re.compile(
    r"\**\s*(?P<name>(?:Option|Alternative|OPT|ALT)[ -]?#?\w{1,4})"
    r"\s*+\**+\s*+[:.)—\u2013-]++\s*+\**+\s*+(?P<words>.*)$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\s*(?P<name>\d{1,3}|[A-Za-z])[.)]\s+(?P<words>.*)$")
_VERDICT = re.compile(  # behind a mark, or in brackets: else the word is a part of the option
    rf"(?:[:→>—\u2013✅✓❌✗(\[]|\s-)[\s✅✓❌✗*]{{0,9}}(?:(?P<no>{_NO})|(?P<yes>{_YES}))\b", re.I
)
_NOTE = re.compile(
    r"\W*(?:pros?|cons?|(?:dis)?advantages?|benefits?|drawbacks?|risks?|reasons?|why(?: not)?|evidence \w+"
    rf"|{_NO}|{_YES})\W*:",
    re.IGNORECASE,
)
_NOTED = re.compile(rf"\W*(?:(?:decision|verdict|status|result)\W+)?(?:(?P<no>{_NO})|(?P<yes>{_YES}))\b", re.I)
_NONE = re.compile(r"\W*+(?:(?:none|n/?a|nothing|not applicable)\W*+|no alternatives?\b.*)?$", re.IGNORECASE)
_HEAD = re.compile(r"\s[-\u2013—→]\s|:\s|\s\(")


@dataclass(slots=True)
class Option:
    """One option: its name (`OPT-001`, `2`, `B`), its words, what stands below it, and whether it is listed where the
    chosen one is not.
    """

    name: str
    text: str
    notes: list[str] = field(default_factory=list)
    is_other: bool = False

    @property
    def verdict(self) -> bool | None:
        """True: chosen, False: rejected, None: the document does not say so beside it."""
        told = (_VERDICT.search(self.text), *map(_NOTED.match, self.notes))
        return next((found["yes"] is not None for found in told if found is not None), None)

    def as_alternative(self) -> str:
        """As a decision's alternative: the option, and what stands below it."""
        return f"{self.text.rstrip(':')}: {'; '.join(self.notes)}" if self.notes else self.text

    def is_rejected(self, taken: Option | None) -> bool:
        """Whether it is one of the alternatives: where nobody can tell the chosen one, only if it is called rejected,
        or is listed where the chosen one is not.
        """
        return not self.verdict and (self.is_other or taken is not None or self.verdict is False)

    @property
    def head(self) -> str:
        """Its words without what is said of it."""
        return _HEAD.split(self.text, maxsplit=1)[0]

    @property
    def called(self) -> str:
        """How a text names it: `opt-001`, `option 2`."""
        return (self.name if re.search(r"[A-Za-z]{2}", self.name) else f"option {self.name}").casefold()


def options_of(told: Node) -> list[Option]:
    """The options that a field lists: items, names in bold or headings, each with what stands below it. A text without
    a list is one option. `is_other` where the field does not call them options.
    """
    named = [one for one in told.walk() if _NAMED.match(one.words)]
    listed = named or [one for one in told.inner if not is_note(one.words)]
    made = [_option(one.line.text if one.form == "item" else one.words, one.words, one) for one in listed]
    if not listed and (lines := told.value.split("\n")) != [""]:
        made = [Option("", plain(lines[0]), [*map(plain, filter(str.strip, lines[1:]))])]
    for option in made:
        option.is_other = "option" not in told.name.lower()
    return [option for option in made if not _NONE.match(option.text)]


def _option(line: str, words: str, node: Node) -> Option:
    named, numbered = _NAMED.match(words), _NUMBERED.match(line)
    text = named["words"].removesuffix("**") if named else words
    notes = [
        plain(one.text) for one in node.lines if one.text.strip() and not one.fence and one.number > node.line.number
    ]
    found = Option((named or numbered or {"name": ""})["name"], plain(text), notes)
    return found if found.text or not notes else Option(found.name, notes[0], notes[1:])


def is_note(words: str) -> bool:
    """Whether words only say what is for or against an option."""
    return _NOTE.match(words) is not None


def chosen(options: Sequence[Option], selection: str) -> Option | None:
    """The option that a document calls the chosen one, else the only one that its selection names, or whose words at
    its head stand there, or which begins with the selection.
    """
    said = plain(selection).casefold()

    def has(words: str) -> bool:
        return bool(words) and re.search(rf"(?<![\w-]){re.escape(words)}(?![\w-])", said) is not None

    def begins(text: str) -> bool:
        return bool(said) and text.casefold().startswith(said)

    called = [option for option in options if option.verdict]
    named = [option for option in options if option.name and has(option.called)]
    open_ = [one for one in options if one.verdict is None and (has(one.head.casefold()) or begins(one.text))]
    return called[0] if called else next((found[0] for found in (named, open_) if len(found) == 1), None)
