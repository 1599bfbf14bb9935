"""What a person pastes into a message is their request, never their rule: their own lines are what is left of it.

A paste is told by marks, and by what stands around it, never by its length alone. Some marks show where it ends: a
fence, a quotation, a tag, a frame of dashes, lines that each carry a time or a name. A mail, a conversation or what is
announced ("from the README:") has no end of its own: it goes to the end of the message. In doubt a line is pasted: the
request keeps it all the same.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from ralf.facts import pastewords
from ralf.facts.errors import telling_errors
from ralf.text.cleaning import without_middle
from ralf.text.matcher import AnyOf
from ralf.text.patterns import regex

_LONGEST = 40_000  # characters of a message that are read

_HEAD, _TAIL = 600, 160  # characters that are kept of a paste in a long request

_ORDERS = 800  # of the sentences between them that order something

_FENCE = regex(r"\s{0,99}+(`{3,}|~{3,}|\"{3,}|'{3,})")

_QUOTED = regex(r"\s{0,3}>")

_INDENTED = regex(r"(?: {4}|\t)\s{0,99}+\S")

_ITEM = regex(r"\s{0,99}+(?:[-*+•]|\(?(?:\d{1,3}|[a-zA-Z])[.):])\s")

_TAG = regex(r"<([a-zA-Z][\w.:-]*)(?:\s[^<>]*)?>")

_CLOSING = regex(r"</([a-zA-Z][\w.:-]*)\s*>")

_INLINE = frozenset(("a", "b", "br", "code", "em", "i", "kbd", "mark", "small", "span", "strong", "sub", "sup", "u"))

_RULED = regex(r"\s{0,99}+(?:([-=*_~#])\1{2,}|([-=*_~#])\2{2,}[^-=*_~#\n]{1,60}(?:\2{2,})?)\s{0,99}+\Z")

_FRAMED = AnyOf(
    r"\b(?:begin|start|original|forwarded|weitergeleitet|ursprüngliche|transféré|reenviado|inoltrato|anfang)\w*\b"
)

_TIME = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[.,]\d{1,9})?(?: ?[AaPp]\.?[Mm]\.?)?"

_STAMPED = AnyOf(
    rf"\s{{0,99}}+(?:\[[^\]\n]{{0,40}}{_TIME}[^\]\n]{{0,12}}\]|\d{{4}}[-/.]\d\d[-/.]\d\d[T ]?\S{{0,40}}"
    rf"|[A-Z][a-z]{{2}} +\d{{1,2}} {_TIME}"
    rf"|\(?{_TIME}\)?[ |\t-]+\S"
    r"|(?:(?:npm|yarn|pnpm|pip|cargo|gradle|mvn|make|docker|git) )?\[?(?-i:TRACE|DEBUG|DEBU|INFO|NOTICE|WARN(?:ING)?"
    r"|ERROR|ERRO|ERR!|FATAL|CRITICAL)\]?[:\s]"
    r"|\[?(?:trace|debug|info|notice|warn(?:ing)?|error|fatal|critical)\]?:\s"
    r"|<[@+~]?[\w\[\]|^-]{1,24}> |\[?\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b"
    r"|\[(?!(?-i:[A-Z]{3,24}\]))[A-Z][\w .-]{0,24}\] |§ ?\d"
    r"|\d{1,4}\.\d{1,4}(?:\.\d{1,4}){0,6}\.?\s"
    r"|(?:art(?:icle|ikel|ículo)?|section|clause|abschnitt|ziffer)\.? ?\d)",
)
"""A line of a log, a conversation or a contract: it begins with a time, a level, a nickname or a clause's number."""

_SHOWN = regex(
    r"\s{0,99}+(?:[$%\u276f»] |>>> |PS [A-Z]:|[\w./\\-]{1,200}\.\w{1,8}:\d+(?::\d+)?[: ]|[+-]{3} [ab]/|@@ |diff --git "
    r"|commit [0-9a-f]{7,40}\b"
    r"|//|/\*|\*/|--\[|(?:def|class|function|interface|struct|enum) \w[^\n]{0,300}[:{(]\s{0,99}+\Z"
    r"|(?:const|let|var) \w+ ="
    r"|#include\b|import \w+;"
    r"|at [\w$.<>]{1,200}\(|File \"[^\"]{1,400}\", line \d|Traceback |#{2}\[|[{\[]\s{0,99}+(?:\"|'|\{|\[|\Z))"
)
"""A line that a program printed."""

_HEADER = AnyOf(
    r"\s{0,99}+\*{0,3}(?:from|to|cc|bcc|sent|date|subject|reply-to|message-id|von|an|gesendet|datum|betreff|de|à"
    r"|envoyé|objet|para|fecha|asunto|enviado|da|oggetto|inviato|assunto|author|title|labels?|body|aan|onderwerp)"
    r"\*{0,3}:\*{0,3}[ \t]{0,99}\S",
)

_SENDER = AnyOf(
    r"\s{0,99}+\*{0,3}(?:from|von|de|da|author|sender|absender|expéditeur|van)\*{0,3}:\*{0,3}[^\n@]{0,200}@"
)

_ROLE = AnyOf(
    r"\s{0,99}+(?:\*\*|#{1,6} |\[|<)?(?:human|assistant|user|system|ai|bot|agent|claude|chatgpt|gpt(?:-\d\S{0,20})?"
    r"|gemini|copilot|customer|support|operator|interviewer|q|a|comment by [^:\n]{1,40}|me|you)(?:\]"
    r"|>)?(?: said)?(?:\*\*)?:(?:\*\*)?(?:\s|\Z)",
)

_NAMED = regex(
    r"\s{0,99}+(?:[-*] )?\**([^\W\d_][\w.'\u2019-]*(?: [^\W_][\w.'\u2019-]*){0,2})\**"
    r"(?: \([^)\n]{1,30}\))?:\**(?=\s|\Z)"
)

_POSTED = regex(
    rf"\A\s{{0,99}}+\*{{0,3}}@?[^\W\d_][\w.,'\u2019 -]{{1,40}}\*{{0,3}}"
    rf"(?:\s{{1,20}}+(?:[\u2014\u2013·|-]\s{{0,9}}+)?(?:\(?[\w ,]{{0,14}}{_TIME}\)?"
    rf"|(?:commented|schrieb|wrote|écrit|a écrit|escribió)\b[^.!?\n]{{0,40}}|·[^\n]{{0,200}}|APP {_TIME})"
    r"\s{0,99}+)\Z"
)
"""The line above a message in a copied conversation: a name and a time."""

_QUOTES = {
    '"': '"',
    "\u201c": "\u201d",
    "\u201e": "\u201c\u201d",
    "«": "»",
    "»": "«",
    "\u2018": "\u2019",
    "\u2039": "\u203a",
}


def own(text: str) -> str:
    """The first 40,000 characters of a message, with an empty line in the place of each that is pasted."""
    text = text[:_LONGEST]
    lines = zip(text.split("\n"), marked(text), strict=True)
    return "\n".join("" if is_pasted else _without_report(line) for line, is_pasted in lines)


def _without_report(line: str) -> str:
    """A line without what it tells of somebody behind a colon: "Ann wrote: never …"."""
    told = pastewords.REPORTS.match(line) or pastewords.TAKEN_FROM.match(line)
    return line[: told.end()] if told else line


_ERRORS = 2  # lines of a paste's middle that name one, and stay


def shortened(text: str) -> str:
    """A message in which each paste has lost its middle, and which has lost its own where it is longer than 40,000
    characters: what a person wrote around a paste stands whole. Of what shows no end, and may be theirs, the sentences
    that order or forbid stay, too.
    """
    text = without_middle(text, 3 * _LONGEST // 4, _LONGEST // 4 - 3)[0] if len(text) > _LONGEST else text
    lines, (pasted, sure) = text.split("\n"), _read(text)
    kept: list[str] = []
    for (is_pasted, is_sure), numbers in groupby(range(len(lines)), lambda n: (pasted[n], sure[n])):
        part = "\n".join(lines[number] for number in numbers)
        if is_pasted and not is_sure and len(part) > _HEAD + _TAIL:
            part = f"{part[:_HEAD]}{_orders(part[_HEAD:-_TAIL])}{part[-_TAIL:]}"
        kept.append(_without_middle(part) if is_sure else part)
    return "\n".join(kept)


def _without_middle(part: str) -> str:
    """A paste without its middle, but for the first lines there that name an error."""
    kept, omitted = without_middle(part, _HEAD, _TAIL)
    named = [line for line in telling_errors(part, len(part)) if line not in kept][:_ERRORS] if omitted else []
    cut = kept.find(" … ", _HEAD // 2)
    return f"{kept[:cut]}{''.join(f' … {line}' for line in named)}{kept[cut:]}" if named else kept


def _orders(text: str) -> str:
    """The sentences of a text that order or forbid something, an ellipsis in the place of all others."""
    found = [one for one in pastewords.SENTENCE.findall(text) if pastewords.ORDERS(one)]
    told = "… ".join(["", *found, ""])
    return without_middle(told, _ORDERS, 0)[0] if len(told) > _ORDERS else told or "…"


def marked(text: str) -> tuple[bool, ...]:
    """For each line of a message, whether it is pasted."""
    return _read(text)[0]


@lru_cache(maxsize=64)
def _read(text: str) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """For each line of a message, whether it is pasted, and whether that is sure."""
    found = _Message(text.split("\n"))
    return tuple(found.pasted), tuple(found.sure)


_BARS = frozenset(("---", "===", "***", "___", "~~~", "###", "+++", "<<<", ">>>"))

_LAST_WORDS = 5  # of the last line of a letter: a name, or a wish


def _language(text: str) -> str:
    """The language of a paragraph, by its commonest words; "" where that is not clear."""
    said = [word.strip(".,;:!?()\"'").lower() for word in text.split()]
    counts = sorted(
        ((sum(w in known for w in said), name) for name, known in pastewords.WORDS_OF.items()), reverse=True
    )
    (most, name), (second, _) = counts[:2]
    return name if most >= 4 and most >= 2 * second and len(said) >= 8 else ""


_TYPED = regex(
    r"(?:and |but |so |also )?we (?:also |just |still |then |do )?(?:need|should|want|must|have) (?:to )?[a-z]"
)


def _is_typed(text: str) -> bool:
    """Whether a paragraph begins without a capital by saying what "we" need: documents and letters do not begin so."""
    return bool(_TYPED.match(text))


class _Paragraph(NamedTuple):
    """A paragraph of a message: its first line, the line behind its last, and its text."""

    begin: int
    end: int
    text: str


def _paragraphs(lines: Sequence[str]) -> list[_Paragraph]:
    runs = groupby(range(len(lines)), lambda number: bool(lines[number].strip()))
    ranges = [(numbers[0], numbers[-1] + 1) for filled, run in runs if filled and (numbers := [*run])]
    return [_Paragraph(begin, end, "\n".join(lines[begin:end])) for begin, end in ranges]


class _Message:
    """The lines of a message, which of them are pasted, and which of these show it themselves (`sure`)."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._paragraphs = _paragraphs(lines)
        self.pasted = [False] * len(lines)
        self._fences()
        self._tags()
        self._quotations()
        self.pasted = [known or bool(_QUOTED.match(line)) for known, line in zip(self.pasted, lines, strict=True)]
        self._indented()
        self._cut_out()
        self._framed()
        self._rows()
        self._printed()
        self.sure = list(self.pasted)
        self._looked_back_at()
        self._signed()
        self._in_another_language()
        first = min(self._endless(), default=len(lines))
        near_end = len(self._paragraphs) < 3 or first >= self._paragraphs[-2].begin
        if near_end and not any(self.pasted):  # nothing else shows where a paste begins
            self._asked_about()
            self._titled()
            self._beside_a_question()
        self._mark(first, self._closing(first) - 1)

    def _mark(self, first: int, last: int) -> None:
        self.pasted[first : last + 1] = [True] * (last + 1 - first)

    def _mark_all(self, parts: Iterable[_Paragraph]) -> None:
        for part in parts:
            self._mark(part.begin, part.end - 1)

    def _unmarked(self) -> Iterator[tuple[int, str]]:
        """The lines with text that are not known to be pasted yet, with their numbers."""
        return ((n, line) for n, line in enumerate(self.lines) if line.strip() and not self.pasted[n])

    def _last_of_paragraph(self, number: int) -> int:
        """The last line of the paragraph in which a line with text stands."""
        return self._paragraphs[bisect_right(self._paragraphs, number, key=lambda part: part.end)].end - 1

    def _closing(self, first: int) -> int:
        """The first line of the paragraph in which a person asks, behind a paste that shows no end, else the number of
        lines. What goes before the paste asks for nothing, so that the message's end must; and a letter has an end.
        """
        opening = "\n".join(
            line for line, is_pasted in zip(self.lines[:first], self.pasted, strict=False) if not is_pasted
        )
        begin, _, text = self._paragraphs[-1] if self._paragraphs else (0, 0, "")
        before = self.lines[self._before(begin)] if begin else ""
        if (
            begin <= first
            or self.pasted[begin]
            or pastewords.ASKS_ME.search(opening)
            or not pastewords.ASKS_ME.search(text)
        ):
            return len(self.lines)
        opens = (
            _ITEM,
            _HEADER,
            _ROLE,
            _POSTED,
            _STAMPED,
            pastewords.SIGNED,
            pastewords.GREETING,
            pastewords.PAGE,
            _QUOTED,
            _RULED,
        )
        if any(sign.match(self.lines[begin]) for sign in opens):
            return len(self.lines)
        letter = any(
            _SENDER.match(line) or _HEADER.match(line) or pastewords.GREETING.match(line) for line in self.lines[:begin]
        )
        ended = len(before.split()) <= _LAST_WORDS and not before.rstrip().endswith((".", "?", ":"))
        return begin if ended or not letter or self.pasted[self._before(begin)] else len(self.lines)

    def _signed(self) -> None:
        """A letter that is signed, where more follows: from its greeting, else from the message's beginning."""
        signed = [n for n, line in self._unmarked() if pastewords.SIGNED.match(line)]
        if not signed:
            return
        last = self._last_of_paragraph(signed[-1])
        after = self._after(last)
        if after < len(self.lines) and self.lines[after].lstrip()[:2].lower() != "ps":
            greeted = (n for n in range(signed[0]) if pastewords.GREETING.match(self.lines[n]))
            self._mark(next(greeted, 0), last)

    def _asked_about(self) -> None:
        """All but the first or the last paragraph, where that asks about a text and in no other a person speaks."""
        parts = self._paragraphs
        for part in (parts[0], parts[-1]) if len(parts) > 1 else ():
            others = [other for other in parts if other is not part]
            spoken = any(pastewords.SPEAKS.search(other.text) for other in others)
            if spoken or len(part.text.split()) > pastewords.ASKED_ABOUT:
                continue
            points = pastewords.POINTS_AT(part.text) and not any(pastewords.OF_US(other.text) for other in others)
            if points or pastewords.ABOUT_A_TEXT(part.text):
                self._mark_all(others)
                return

    def _titled(self) -> None:
        """What begins as a page or a numbered part does, up to the last paragraph, in which a person asks."""
        parts = self._paragraphs
        if len(parts) < 2 or any(self.pasted) or not pastewords.TITLE.match(self.lines[parts[0].begin]):
            return
        block = "\n".join(self.lines[: parts[-1].begin])
        if pastewords.ASKS_ME.search(parts[-1].text) and not pastewords.SPEAKS.search(block):
            self._mark(0, parts[-1].begin - 1)

    def _beside_a_question(self) -> None:
        """What stands beside a first or last paragraph that asks, where it is more than a rule or two and no list that
        the person calls theirs: all of it, where nobody speaks of themselves in it or asks for something; of a message
        of two or three paragraphs each in which nobody does, or beside which others are asked about.
        """
        parts = self._paragraphs
        if len(parts) < 2 or any(self.pasted):
            return
        edges = (parts[0], parts[-1])
        asking = [p for p in edges if pastewords.ASKS_ME.search(p.text) and not pastewords.GREETS_MANY.match(p.text)]
        rest = [p for p in parts if p not in asking]
        if not asking or any(pastewords.OWN_LIST(p.text) for p in rest):
            return
        spoken = [p for p in rest if pastewords.OWN_VOICE.search(p.text) or _is_typed(p.text)]
        others = any(pastewords.OF_SOMEBODY(p.text) for p in asking)
        if spoken or any(pastewords.ASKS_ME.search(p.text) for p in rest):
            long = [p for p in rest if len(p.text.split()) > pastewords.RULE_OR_TWO]
            rest = [p for p in long if others or p not in spoken] if len(parts) < 4 else []
        elif sum(len(p.text.split()) for p in rest) <= pastewords.RULE_OR_TWO:
            return
        self._mark_all(rest)

    def _in_another_language(self) -> None:
        """Paragraphs in another language than that of the paragraph that asks."""
        parts = [part for part in self._paragraphs if not all(self.pasted[part.begin : part.end])]
        spoken = [_language(part.text) for part in parts]
        if len(set(filter(None, spoken))) < 2:
            return
        asking = [n for n, part in enumerate(parts) if spoken[n] and pastewords.ASKS_ME.search(part.text)]
        edges = [n for n in asking if n in (0, len(parts) - 1)] or asking
        if edges:
            own = ("", spoken[edges[0]])
            self._mark_all(part for part, language in zip(parts, spoken, strict=True) if language not in own)

    # ---- pastes that end ----

    def _fences(self) -> None:
        """Fences: one that is never closed goes to the end."""
        fence = ""
        for number, line in enumerate(self.lines):
            found = _FENCE.match(line)
            if fence:
                self.pasted[number] = True
                if found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
                    fence = ""
            elif found:
                fence = found[1][:3]
                self.pasted[number] = True
                if line.count(fence) % 2 == 0:
                    fence = ""

    def _tags(self) -> None:
        """Tags, each to the last closing tag of its name."""
        closings = {name: number for number, line in enumerate(self.lines) for name in _CLOSING.findall(line)}
        for number, line in self._unmarked():
            names = [name for name in _TAG.findall(line) if name.lower() not in _INLINE]
            self._mark(number, max((closings.get(name, -1) for name in names), default=-1))

    def _quotations(self) -> None:
        """Paragraphs in quotation marks: from one at a line's beginning to the last one at a line's end."""
        for number, line in self._unmarked():
            if ends := tuple(_QUOTES.get(line.lstrip()[0], "")):
                closed = [n for n in range(number, len(self.lines)) if self.lines[n].rstrip(" .,;").endswith(ends)]
                if closed and (closed[-1] > number or len(line.split()) > 3):
                    self._mark(number, closed[-1])
                return

    def _indented(self) -> None:
        """Blocks that are set in, other than what continues a list; a message that is set in as a whole is none."""
        filled = [line for line in self.lines if line.strip()]
        if not filled or all(_INDENTED.match(line) for line in filled):
            return
        in_list = False
        for number, line in enumerate(self.lines):
            if _INDENTED.match(line):
                self.pasted[number] |= not in_list
            elif line.strip():
                in_list = bool(_ITEM.match(line)) or (in_list and line.startswith(" "))

    def _framed(self) -> None:
        """Frames of dashes, equals signs or stars below an announcement, to the last line of the same sign."""
        last = {found[1] or found[2]: n for n, line in enumerate(self.lines) if (found := _RULED.match(line))}
        for number, line in self._unmarked():
            found = _RULED.match(line)
            if found is None:
                continue
            sign = found[1] or found[2]
            before = self._before(number)
            titled = not found[1] and _FRAMED(line)
            if not titled and (found[2] or sign == "#" or before < 0 or not self._announces(before, nearby=True)):
                continue
            if found[1] and number and self.lines[number - 1].strip():
                continue  # a line below a heading
            self._mark(number, last[sign] if last[sign] > number else len(self.lines) - 1)

    def _cut_out(self) -> None:
        """What stands between two lines of signs that hold the same words: "===8<=== cut here ===8<===" """
        seen: dict[str, int] = {}
        for number, line in enumerate(map(str.strip, self.lines)):
            words = "".join(filter(str.isalpha, line)).lower()
            if words and line[:3] in _BARS and line[-3:] in _BARS:
                if words in seen:
                    self._mark(seen.pop(words), number)
                else:
                    seen[words] = number

    def _rows(self) -> None:
        """Rows that each begin with a time, a level or a nickname, and what stands between the first and the last."""
        rows = [n for n, line in self._unmarked() if _STAMPED.match(line)]
        if rows:
            self._mark(rows[0], rows[-1])

    def _printed(self) -> None:
        """What a program printed: from its first line to the end of that paragraph; JSON to its last bracket."""
        closed = max((n for n, line in enumerate(self.lines) if line.rstrip(" ,;").endswith(("}", "]"))), default=-1)
        for number, line in self._unmarked():
            if _SHOWN.match(line):
                last = self._last_of_paragraph(number)
                self._mark(number, max(last, closed) if line.lstrip()[0] in "{[" else last)

    # ---- pastes without an end ----

    def _endless(self) -> Iterator[int]:
        """The lines from which a mail, a conversation or something announced goes to the end."""
        names: dict[str, list[int]] = {}
        talks, begun = self._talks(), False
        for number, line in self._unmarked():
            mail = _SENDER.match(line) or (_HEADER.match(line) and self._header_beside(number))
            talk = _POSTED.match(line) or (talks and _ROLE.match(line))
            if mail or talk or pastewords.WIKI.match(line) or (begun and pastewords.GREETING.match(line)):
                yield number
            named = _NAMED.match(line)
            if named and not _ITEM.match(line):
                names.setdefault(named[1].lower(), []).append(number)
            if line.strip() == pastewords.PLAN:
                yield number + 1
            if begun and pastewords.PAGE.match(line):
                yield self._second()
            begun = True
            if self._announces(number):
                following = self._after(number)
                if following < len(self.lines) and not self.pasted[following]:
                    yield number + 1
        yield from (numbers[0] for numbers in names.values() if len(numbers) > 1)

    def _second(self) -> int:
        """The first line of the second paragraph: behind what a person says of a page."""
        first = self._after(-1)
        empty = next((n for n in range(first, len(self.lines)) if not self.lines[n].strip()), first - 1)
        return self._after(empty)

    def _looked_back_at(self) -> None:
        """What stands before "That's from their handbook": all paragraphs up to it."""
        for number in reversed(range(len(self.lines))):
            line = self.lines[number]
            if self.pasted[number] or not pastewords.LOOKS_BACK.match(line):
                continue
            before = self._before(number)
            first = re.split(r"(?<=[.!?,]) ", line)[0]
            signs = (pastewords.WHAT_THEY, pastewords.SOURCE, pastewords.TELLS, pastewords.OTHERS)
            if 0 <= before < number - 1 and any(sign.search(first) for sign in signs):
                self._mark(0, before)
                return

    def _header_beside(self, number: int) -> bool:
        return any(_HEADER.match(self.lines[n]) for n in (number - 1, number + 1) if 0 <= n < len(self.lines))

    def _talks(self) -> bool:
        """Whether lines begin with at least one speaker, of whom an agent is one, or two."""
        spoken = [line for line in self.lines if _ROLE.match(line)]
        return len(spoken) > 1 or bool(
            spoken and re.match(r"\W*(?:human|assistant|user|ai|chatgpt)\b", spoken[0], re.I)
        )

    def _announces(self, number: int, *, nearby: bool = False) -> bool:
        """Whether a line announces what follows it as somebody else's: "the README says:", "Summarise this mail:".

        nearby  a frame follows: an announcement needs no colon
        """
        line = self.lines[number].strip()
        if not line or self.pasted[number]:
            return False
        ends = line.endswith(":")
        paragraph_ends = number + 1 == len(self.lines) or not self.lines[number + 1].strip()
        if not (nearby or ends) and (not paragraph_ends or len(line.split()) > pastewords.ANNOUNCEMENT):
            return False
        last = re.split(r"(?<=[.!?]) ", line)[-1]
        if pastewords.OWN_LIST(last) and not pastewords.COPIED(last):
            return False
        if pastewords.I_SAID(last) or pastewords.PASTES_NOTHING(line) or pastewords.FILES.match(line):
            return False
        told, copied, source = pastewords.TELLS(line), pastewords.COPIED(line), pastewords.SOURCE(line)
        if nearby:
            return bool(told or copied or source or pastewords.HANDLES(line))
        if ends:
            this = pastewords.THIS(last) and not pastewords.LIKE_THIS(last)
            signs = (pastewords.SOURCE, pastewords.TELLS, pastewords.COPIED, pastewords.HANDLES, pastewords.OTHERS)
            return bool(this) or any(sign.search(last) for sign in signs)
        short = len(line.split()) <= 4 and line[-1] not in ".!?"
        return bool(
            (copied and source)
            or pastewords.HANDED_IN(line)
            or pastewords.POINTED_AT(line)
            or (short and (source or told))
        )

    def _before(self, number: int) -> int:
        return next((n for n in range(number - 1, -1, -1) if self.lines[n].strip()), -1)

    def _after(self, number: int) -> int:
        return next((n for n in range(number + 1, len(self.lines)) if self.lines[n].strip()), len(self.lines))
