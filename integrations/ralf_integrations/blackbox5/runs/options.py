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
_NUMBERED = re.compile(r"\s*(?P<name>\d{1,3}|[A-Za-z])[.)]\s")
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
    """One option: its name (`OPT-001`, `Option B`), its words, what stands below it, and whether it is listed where the
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


def options_of(told: Node) -> list[Option]:
    """The options that a field lists: items, names in bold or headings, each with what stands below it. A text without
    a list is one option. `is_other` where the field does not call them options.
    """
    named = [one for one in told.walk() if _NAMED.match(one.words)]
    made = []
    for one in named or [one for one in told.inner if not is_note(one.words)] or [told]:
        found = _NAMED.match(one.words)
        words = found["words"].removesuffix("**") if found else one.words
        below = [line.text for line in one.lines if not line.fence and line.number > one.line.number]
        notes = [plain(line) for line in (told.value.split("\n") if one is told else below) if line.strip()]
        text = "" if one is told else plain(words)
        text, notes = (text, notes) if text or not notes else (notes[0], notes[1:])
        if not _NONE.match(text):
            number = _NUMBERED.match(one.line.text)
            name = found["name"] if found else f"option {number['name']}" if number else ""
            made.append(Option(name, text, notes, "option" not in told.name.lower()))
    return made


def is_note(words: str) -> bool:
    """Whether words only say what is for or against an option."""
    return _NOTE.match(words) is not None


def chosen(options: Sequence[Option], selection: str) -> Option | None:
    """The option that a document calls the chosen one, else the only one that its selection names, by its name or the
    words at its head.
    """
    said = plain(selection).casefold()

    def only(found: Sequence[Option]) -> Option | None:
        return found[0] if len(found) == 1 else None

    def has(words: str) -> bool:
        return bool(words) and re.search(rf"(?<![\w-]){re.escape(words.casefold())}(?![\w-])", said) is not None

    return (
        next((one for one in options if one.verdict), None)
        or only([one for one in options if has(one.name)])
        or only([one for one in options if one.verdict is None and has(_HEAD.split(one.text, maxsplit=1)[0])])
    )
