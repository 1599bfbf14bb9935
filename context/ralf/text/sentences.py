"""What a text says: its sentences, without code, quotes and tables; and the promise that it makes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ralf.text.cleaning import NAMED
from ralf.text.patterns import regex

_LONGEST = 40_000  # characters of one message that are read

_FENCE = regex(r"^\s*(`{3,}|~{3,})")

_ITEM = regex(r"^\s{0,12}(?:[-*+•]|(?:\*\*)?\(?(?:\d{1,2}|[a-zA-Z]|[ivx]{2,4})[.)])\s+(?:\[[ xX]\]\s+)?(?=\S)")

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

    kind  text, item (of a list) or heading
    """

    text: str
    kind: str


@lru_cache(maxsize=256)  # the messages of one segment, read by several
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a message in order, each on one line, Markdown emphasis removed, code and quotes left out."""
    text = text[:_LONGEST]
    found: list[Sentence] = []
    block: list[str] = []
    kind, fence = "text", ""

    def close() -> None:
        nonlocal kind
        found.extend(Sentence(sentence, kind) for sentence in split(plain(" ".join(block))))
        block.clear()
        kind = "text"

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
            found.append(Sentence(plain(heading[1] if heading else line), "heading"))
        elif item := _ITEM.match(line):
            close()
            kind = "item"
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
