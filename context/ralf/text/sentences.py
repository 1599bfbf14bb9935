"""What a text says: its sentences, without code, quotes and tables; its promise; what it claims and bears out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from ralf.text.cleaning import NAMED, one_line
from ralf.text.matcher import stands_whole
from ralf.text.patterns import regex

_LONGEST = 40_000  # characters of one message that are read

_FENCE = regex(r"^\s*(`{3,}|~{3,})")

_ITEM = regex(r"^\s{0,12}(?:([-*+•])|(?:\*\*)?\(?(\d{1,2}|[a-zA-Z]|[ivx]{2,4})[.)])\s+(?:\[[ xX]\]\s+)?(?=\S)")

_HEADING = regex(r"^\s{0,3}#{1,6}\s+(.*)$")

_BOLD_LINE = regex(r"^\s*\*\*[^*\n]{1,120}\*\*:?\s*$")

_SKIPPED = regex(r"^\s*(?:[|>│├└┌┐┘┤┬┴┼━─═⎿↳▸]|-{3,}\s*$|={3,}\s*$|\*{3,}\s*$|</?[a-z_-]+>\s*$)")

_CODE_LINE = regex(r"^(?: {4,}|\t)\S|^\s*(?://|/\*|\$ |>>> |@@ |diff --git|\+\+\+ |--- a/)|[{};]\s*$")

_EMPHASIS = regex(rf"(?P<name>{NAMED})|\*\*|(?<!\w)__(?=\w)|(?<=\w)__(?!\w)")

_BOX = regex(r"[│├└┌┐┘┤┬┴┼━─═]")

_END = regex(r"(?:(?<![.!?…])[.!?…]++[\"')\]*_\u201d\u2019]{0,3}|:)\s+(?=[\"'(\[*_`\u201c]{0,3}[A-Z0-9`/.\[]|[a-z])")

_ABBREVIATED = regex(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|incl|resp|max|min|ca|bzw|ggf|z\.b|u\.a|d\.h|p\.ex|fig|sec|dr|mr"
    r"|ms|st|al|[a-z])\.$",
    re.I,
)

_NUMBER = regex(r"(?<![^\s(])(\d{1,2})\.$")

_BEFORE_NUMBER = regex(r"(?<![^\W\d_])([^\W\d_]{1,30})\s{1,3}\d{1,2}\.$")

_ORDINAL = frozenset(
    "am der die das den dem des dieser diese dieses jeder jede jedes ein eine einen einem einer im zum zur vom bis ab"
    " seit und beim dein deine mein meine unser unsere".split()
)
"""German words before a number whose full stop makes it an ordinal."""

_MONTH = regex(r"(?:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez)[a-zä]{0,6}\b", re.I)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a message.

    kind       text, item (of a list) or heading
    mark       items: the number or letter before it, "-" where it has none, "" after an item's first sentence
    paragraph  which paragraph or item of the message it belongs to
    """

    text: str
    kind: str
    mark: str
    paragraph: int


@lru_cache(maxsize=256)  # the messages of one segment, read by several
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a message in order, each on one line, Markdown emphasis removed, code and quotes left out."""
    text = text[:_LONGEST]
    found: list[Sentence] = []
    block: list[str] = []
    kind, mark, paragraph, fence = "text", "", 0, ""

    def close() -> None:
        nonlocal paragraph, kind, mark
        if block:
            for number, sentence in enumerate(split(plain(" ".join(block)))):
                found.append(Sentence(sentence, kind, mark if number == 0 else "", paragraph))
            paragraph += 1
            block.clear()
        kind, mark = "text", ""

    for line in text.split("\n"):
        opened = _FENCE.match(line)
        if fence:
            fence = "" if opened and opened[1].startswith(fence) else fence
        elif opened:
            close()
            fence = opened[1][:3]
        elif not line.strip():
            close()
        elif (heading := _HEADING.match(line)) or (_BOLD_LINE.match(line) and not _ITEM.match(line)):
            close()
            found.append(Sentence(plain(heading[1] if heading else line), "heading", "", paragraph))
            paragraph += 1
        elif item := _ITEM.match(line):
            close()
            kind, mark = "item", (item[2] or "-").lower()
            block.append(line[item.end() :])
        elif _SKIPPED.match(line) or _BOX.search(line) or (_CODE_LINE.search(line) and not block):
            close()
        else:
            block.append(line.strip())
    close()
    return tuple(found)


def plain(text: str) -> str:
    """One line without Markdown emphasis; names (`cleaning.NAMED`) stay, single signs in backticks lose these."""
    return " ".join(re.sub(r"`([^`]{1,2})`", r"\1", _EMPHASIS.sub(lambda found: found["name"] or "", text)).split())


def joined(texts: Iterable[str]) -> str:
    """Sentences and list items on one line, with a semicolon where the first has no end of its own."""
    out = ""
    for text in texts:
        out += text if not out else (" " if out[-1] in ".!?:;,…" else "; ") + text
    return out


def split(text: str) -> list[str]:
    """The sentences of one paragraph. A colon ends no sentence; a dot in an abbreviation or a name does not either."""
    found: list[str] = []
    start = counted = signs = 0
    for match in _END.finditer(text):
        end = match.end()
        signs += text.count("`", counted, end)
        counted, sign, place = end, match.group(), match.start() + 1
        # "ok. do it" ends a sentence; "panic! within", "the ? operator" and "so... do it" do not.
        goes_on = sign[0] == ":" or (text[end : end + 1].islower() and (sign[0] != "." or sign.startswith("..")))
        abbreviated = goes_on or signs % 2 or _ABBREVIATED.search(text[max(start, place - 13) : place])
        if not abbreviated and not _is_mark(text, start, place, end):
            found.append(text[start:end].strip())
            start, signs = end, 0
    rest = text[start:].strip()
    return [*found, rest] if rest else found


def _is_mark(text: str, start: int, place: int, end: int) -> bool:
    """Whether the full stop before a place belongs to a number: of a list within the paragraph, or to an ordinal."""
    numbered = _NUMBER.search(text, max(start, place - 4), place)
    before = _BEFORE_NUMBER.search(text, max(start, place - 40), place) if numbered else None
    if numbered is None or before is None:
        return numbered is not None
    listed = int(numbered[1]) > 1 and f"{int(numbered[1]) - 1}. " in text[:place]
    return listed or before[1].lower() in _ORDINAL or _MONTH.match(text, end) is not None


# ---- promise tags ----

_PROMISE = regex(r"<promise>\s*([A-Za-z][A-Za-z _-]{1,38}?)\s*</promise>")

_CODE_FENCE = regex(r" {0,3}(`{3,}|~{3,})")

_WORDS_OR_MARKS = regex(r"[\w`'\"|/>\u2018-\u201f\u00ab\u00bb]")

_QUOTES = regex(r"[`'\"\u2018-\u201f\u00ab]")

_LEADS_UP = regex(
    r"(?!\s*[-+*•]\s)[\W_]*"
    r"|(?=.*?[^\W\d_])(?:\W*+\w++)*+(?=\W*?[.!?)\]…✅✓✔])\W*"
    r"|\W*(?:(?:final|exit|run|task) )?(?:promise|status|outcome|result|verdict)\W*",
    re.IGNORECASE,
)


def promised(text: str) -> str:
    """The last promise tag that an output makes, in capitals; "" for none.

    A tag is made where it stands for itself: on a line of its own, behind a whole sentence, or behind a name such as
    `Status:`. One in a fence, in code, in a quotation, or inside a sentence tells how to promise: the prompt does so.
    """
    made = shown = fence = ""
    for line in text.split("\n") if "<promise>" in text else ():
        if mark := _CODE_FENCE.match(line):
            if not fence:
                fence, shown = mark[1], ""
            elif mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence, shown = "", ""
        elif "<promise>" in line:
            shown = (_made_in(line) or shown) if fence else ""
            made = made if fence else _made_in(line) or made
    return shown or made  # a fence that never ends is none: an output may begin in the middle of one


def _made_in(line: str) -> str:
    tags = list(_PROMISE.finditer(line))
    if not tags or line.lstrip().startswith(">"):
        return ""
    between = "".join(line[one.end() : other.start()] for one, other in pairwise(tags))
    before, after = line[: tags[0].start()], line[tags[-1].end() :]
    if _WORDS_OR_MARKS.search(between + after) or _QUOTES.search(before[-1:]) or not _LEADS_UP.fullmatch(before):
        return ""
    return tags[-1][1].strip().upper()


# ---- claims, and what bears them out ----

_QUOTED = regex(r"`([^`]+)`")

_EDGES = ".,;:!?…()[]{}<>\"'*_“”‘’«»|—–"  # noqa: RUF001  # typographic quotes and dashes are what is stripped

_PLAIN = regex(r"[^\W\d_]+(?:['’][^\W\d_]{1,2})?\Z")  # noqa: RUF001  # an apostrophe

_CLAIMED_NUMBER = regex(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])")

_WORD = regex(r"[^\W\d_]+")

_CASELESS = regex("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_DENIAL = regex(r"\b(?:not|never|cannot|no longer)\b|n['’]t\b", re.I)  # noqa: RUF001  # an apostrophe

_NEGATIVE = regex(
    r"\b(?:not|never|no|none|nothing|cannot|without|avoid\w*|dropp?\w*|remov\w*|reject\w*|instead|rather|stop\w*|fail\w*)\b"
    r"|n['’]t\b",  # noqa: RUF001  # an apostrophe
    re.I,
)

_SENTENCE = regex(r"(?:^|[.!?:;]\s+|\s[—–-]\s)[\"'(*]*([^\W\d_]+)", re.M)  # noqa: RUF001

_STOP = frozenset(
    """
    about above after again against because been before being below between both could does doing down during each
    from further have having here into itself just more most once only other over same should some such than that
    their them then there these they this those through under until very were what when where which while with would
    will your also used uses using make made need needs must instead rather chose choose chosen decided decision
    agent user work next step
    """.split()
)

_OPENERS = _STOP | frozenset(
    """
    the and but for its our all any one two yes let now never always add adopt allow apply ask avoid build call change
    check choose commit copy create delete do drop fix follow go have implement keep leave let make merge move name open
    pass pin prefer put read remove rename replace return revert run say send set show skip split start stop store take
    tell test try turn update use wait wants write
    """.split()
)
"""Words that open a sentence without being a name."""

_HUMP = regex(r"[^\W\d_](?=[A-Z][a-z])|[a-z](?=[A-Z])")

_FORM = regex(r"(?:ed|ing|ly)\Z")

_CUT = regex(r"(?<=[.!?;])\s+|\n+")

_REACH = 4  # words that a "not" speaks of

_STEM = 5  # characters that two forms of a word share


_TOKEN = regex(r"\w+")

_ENDINGS = ("", "s", "es", "d", "ed", "ing", "r", "er", "rs", "ers", "ly", "ion", "ions")


class Support:
    """A text that a claim is held against."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.parts = tuple(texts)
        self._text = one_line("\n".join(self.parts))

    def __bool__(self) -> bool:
        return bool(self._text)

    @cached_property
    def _folded(self) -> str:
        return self._text.casefold()

    @cached_property
    def _sentences(self) -> tuple[str, ...]:
        return tuple(sentence for part in self.parts for sentence in _CUT.split(part) if sentence.strip())

    @cached_property
    def _numbers(self) -> Mapping[str, frozenset[str]]:
        """Each number with the words that stand beside it."""
        found: dict[str, frozenset[str]] = {}
        for sentence in self._sentences:
            for number in _CLAIMED_NUMBER.findall(sentence):
                plain = number.replace(",", "")
                found[plain] = found.get(plain, frozenset()) | _all_units(sentence)
        return found

    @cached_property
    def _units(self) -> frozenset[str]:
        return _all_units(self._text)

    def missing(self, text: str, beyond: Support | None = None) -> list[str]:
        """The names, paths and numbers of a text that do not stand here; a number has to stand with a word of it.

        beyond  where a proper noun or an abbreviation, which is no path, number or identifier, may stand as well
        """
        words = _all_units(text)
        missing = [claim for claim in claims(text) if not self._has(claim, words)]
        return [claim for claim in missing if not (beyond and _is_word(claim) and beyond.knows(claim))]

    def missing_of(self, wanted: Iterable[str]) -> list[str]:
        """Those of some names, paths and numbers that do not stand here."""
        return [claim for claim in wanted if not self._has(claim, frozenset())]

    def share(self, text: str) -> float:
        """The share of a text's words that stand here, in any form; 1 for a text without words of its own."""
        wanted = _all_units(text)
        return len(wanted & self._units) / len(wanted) if wanted else 1.0

    def bears_out(self, text: str, least: float, beyond: Support | None = None) -> bool:
        """Whether every name of a text and this share of its words stand here, and both say yes, or both no."""
        borne = self and not self.missing(text, beyond) and self.share(text) >= least and not self.denies(text)
        if not borne or not _DENIAL.search(text):
            return bool(borne)
        denied, near = _denied_units(_DENIAL, text), self._nearest(text)
        if not denied:  # short names only: that something is denied has to do
            return any(_NEGATIVE.search(sentence) for sentence in near)
        return any(denied & _denied_units(_NEGATIVE, sentence) for sentence in near)

    def denies(self, text: str) -> bool:
        """Whether what comes nearest to a text here says no to a word that the text says yes to."""
        near = () if _NEGATIVE.search(text) else self._nearest(text)[:1]
        return any(_denied_units(_DENIAL, sentence) & _all_units(text) for sentence in near)

    def knows(self, word: str) -> bool:
        """Whether a word stands here, in whatever letters."""
        return stands_whole(word.casefold(), self._folded)

    def uses(self, word: str) -> bool:
        """Whether a word stands here in small letters, in any form: then it is no name."""
        stem = word.lower().rstrip("s")
        if not _TOKEN.fullmatch(stem):
            return stands_whole(stem, self._text)
        return any(stem + ending in self._tokens for ending in _ENDINGS)

    @cached_property
    def _tokens(self) -> frozenset[str]:
        return frozenset(_TOKEN.findall(self._text))

    def _nearest(self, text: str) -> list[str]:
        """The two sentences that have most of a text's words, best first."""
        wanted = _all_units(text)
        return sorted(self._sentences, key=lambda sentence: -len(wanted & _all_units(sentence)))[:2]

    def _has(self, claim: str, words: frozenset[str]) -> bool:
        if _CLAIMED_NUMBER.fullmatch(claim):
            beside = self._numbers.get(claim.replace(",", ""))
            return beside is not None and (not words or not words.isdisjoint(beside))
        if _is_word(claim):
            return stands_whole(claim.casefold(), self._folded)
        return stands_whole(claim, self._text)


def claims(text: str) -> list[str]:
    """What of a text can be true or false by itself: quoted code, paths, names, numbers and proper nouns, each once.

    A name is any word that is not made of letters alone, or has a capital where no sentence begins.
    """
    found = [one_line(quoted).strip().removesuffix("()") for quoted in _QUOTED.findall(text)]
    rest = _QUOTED.sub(" ", text)
    openings = {match.start(1) for match in _SENTENCE.finditer(rest)}
    for match in re.finditer(r"\S+", rest):
        token = re.sub(r"(?:['’]s|\(\))\Z", "", match.group().strip(_EDGES))  # noqa: RUF001  # an apostrophe
        at = match.start() + match.group().index(token)
        parts = token.split("-")
        if all(_PLAIN.match(part) for part in parts):
            opens = at in openings
            found += [
                part
                for place, part in enumerate(parts)
                if len(part) > 1
                and (part[1:] != part[1:].lower() or (part[:1] != part[:1].lower() and not (opens and not place)))
            ]
        elif any(character.isalnum() for character in token):
            found.append(token)
    return [claim for claim in dict.fromkeys(found) if claim]


def _is_word(claim: str) -> bool:
    return _PLAIN.match(claim) is not None and _HUMP.search(claim) is None


def is_denial(text: str) -> bool:
    """Whether a text says no to anything: not, never, no longer, without, instead …"""
    return _NEGATIVE.search(text) is not None


def openers(text: str) -> list[str]:
    """The words with a capital that open a sentence and may be names: nobody can tell by the capital."""
    found = _SENTENCE.findall(_QUOTED.sub(" ", text))
    return [
        word
        for word in found
        if word[0] != word[0].lower() and word.casefold() not in _OPENERS and not _FORM.search(word) and len(word) > 2
    ]


def _denied_units(word: re.Pattern[str], text: str) -> frozenset[str]:
    """The words that a "not" in a text speaks of: the few behind it."""
    behind = (" ".join(text[found.end() :].split()[:_REACH]) for found in word.finditer(text))
    return frozenset(unit for words in behind for unit in _all_units(words))


def _all_units(text: str) -> frozenset[str]:
    return frozenset(unit for word in _WORD.findall(text) for unit in _units_of(word))


def _units_of(word: str) -> Iterable[str]:
    folded = word.casefold()
    if _CASELESS.search(word):  # written without spaces: its pairs of characters
        return [folded[place : place + 2] for place in range(max(1, len(folded) - 1))]
    return [] if len(folded) < 4 or folded in _STOP else [folded[:_STEM]]
