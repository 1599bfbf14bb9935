"""A context as text for the next agent, what matters most first, within a hard budget of tokens.

The text is made of pieces. Each has a rank: the lower, the later it is left out. A piece's tokens were counted when
it was written; pieces begin with a letter, `#`, `-`, `>` or `*` and end with a line break, which keeps the sum of their
counts from ever being below the count of the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from ralf import config
from ralf.brief.pieces import REORDERED_FROM, Piece, pieces, ways
from ralf.text import cleaning
from ralf.text.cleaning import FENCE_TOKENS, SHORT_FENCE_TOKENS, Word, fence_characters, one_line, shown
from ralf.text.matcher import likeness, words

if TYPE_CHECKING:
    from ralf.model import Counts, RouteContext


CHARACTERS_PER_TOKEN = 4

_FEW = 300  # bytes that may go uncounted: what is known only at a read

Terms = tuple[tuple[Word, float], ...]


def render(
    context: RouteContext,
    max_tokens: int | None = None,
    *,
    query: str | None = None,
    section: str | None = None,
    fenced: bool = True,
) -> str:
    """Return the context as Markdown for an agent or a person, what matters most first.

    max_tokens  hard limit: at most that many o200k_base tokens, and at most four times as many characters; None: the
                context's own default, else all. Goal, active work, pinned rules and active decisions are the last to
                go. The text ends by saying what was left out and how to get it.
    query       what is kept is ordered by relevance to it; None: the context's own default
    section     only this part: brief (what comes before the history), resume (what a session is handed that goes on
                with the work), goal, work, decisions, facts or history
    fenced      between two lines that say that this is data, not instructions, and that no content can forge
                (`ralf.text.cleaning`); they count within `max_tokens`, and a budget too small for them gives ""
    """
    max_tokens = context.budget if max_tokens is None else max_tokens
    parts = list(pieces(context, section))
    if max_tokens is None:
        text = _joined(parts) + _closing(context, {}, short=False)
        return cleaning.fenced(text) if fenced else text
    short = max_tokens // 3 < FENCE_TOKENS
    tokens, characters = max(0, max_tokens), CHARACTERS_PER_TOKEN * max(0, max_tokens)
    if fenced:
        tokens -= SHORT_FENCE_TOKENS if short else FENCE_TOKENS
        characters -= fence_characters(short=short)
    text = _Budget(tokens, characters, context.counts).fit(context, parts, _terms(context, query or context.query))
    return cleaning.fenced(text, short=short) if fenced else text


def counted(context: RouteContext) -> dict[str, int]:
    """The o200k_base tokens of every piece of a context, heading and closing line, by `key`; known counts are
    reused.
    """
    from ralf.text import tokens

    texts = {key(text): text for text in dict.fromkeys(_countable(context)) if text}
    counts = {name: context.counts[name] for name in texts if name in context.counts}
    missing = [name for name in texts if name not in counts]
    counts.update(zip(missing, tokens.count_many(texts[name] for name in missing), strict=True))
    return counts


def key(text: str) -> str:
    """The name under which a piece's count is kept."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _countable(context: RouteContext) -> Iterator[str]:
    whole, resumed, facts = ways(context)
    group = ""
    for piece in whole:
        yield piece.text
        yield piece.short
        if piece.group != group:
            group = piece.group
            yield _heading(group)
    for piece in resumed:
        yield piece.short
    for piece in facts:
        yield piece.text  # by themselves they tell names that elsewhere stand above
    for nouns in (_NOUNS, _NOUNS[1:]):
        yield _closing(context, dict.fromkeys(nouns, 99_999), short=False)
    yield _closing(context, {}, short=True)


# ---- fitting ----


class _Budget:
    """How many tokens and characters are left. Every price is an upper bound of what the text really takes."""

    def __init__(self, tokens: int, characters: int, counts: Counts) -> None:
        self._tokens = tokens
        self._characters = characters
        self._counts = counts
        self._exact = False

    def fit(self, context: RouteContext, pieces: list[Piece], terms: Terms) -> str:
        if self._uncounted(pieces) > _FEW and sum(self._price(text) for text in _countable(context)) > self._tokens:
            self._exact = True  # many are new, and it is tight: count them
        shortens = any(piece.short for piece in pieces)
        closing = _closing(context, dict.fromkeys(_NOUNS if shortens else _NOUNS[1:], 99_999), short=False)
        if self._price(closing) > self._tokens // 3:
            closing = _closing(context, {}, short=True)
        self._take(closing)
        kept: dict[int, str] = {}
        runs = list(accumulate((a.group != b.group for a, b in pairwise(pieces)), initial=0))
        headed: set[int] = set()  # runs, for the same heading may stand over two of them
        for number, whole in _in_order(pieces, terms):
            piece = pieces[number]
            before = kept.get(number, "")  # its short form, which the whole replaces
            text = piece.text if whole else piece.short
            heading = "" if runs[number] in headed else _heading(piece.group)
            self._give_back(before)
            if self._fits(heading, text, piece.tag):
                kept[number] = text
            elif before:
                self._take(before)
                continue
            elif piece.cuttable and (start := self._start(heading, text)):
                kept[number] = start
            else:
                continue
            self._take(heading, kept[number], piece.tag)
            headed.add(runs[number])
        left_out: dict[str, int] = {}
        for number, piece in enumerate(pieces):
            if kept.get(number) != piece.text:
                shortened = kept.get(number) and kept[number] == piece.short
                noun = "reason" if shortened and piece.noun == "decision" else piece.noun
                left_out[noun] = left_out.get(noun, 0) + 1
        chosen = [replace(pieces[number], text=kept[number]) for number in sorted(kept)]
        text = _joined(chosen)
        if not left_out and closing.startswith("_("):
            closing = ""
        elif not closing.startswith("_("):
            closing = _closing(context, left_out, short=False)
        return text + closing if self._tokens >= 0 and self._characters >= 0 else text

    def _uncounted(self, pieces: Iterable[Piece]) -> int:
        """Bytes of the pieces that were not counted when they were written."""
        return sum(len(piece.text.encode()) for piece in pieces if key(piece.text) not in self._counts)

    def _price(self, text: str) -> int:
        if not text:
            return 0
        known = self._counts.get(key(text))
        if known is not None:
            return known
        if self._exact:
            from ralf.text import tokens

            return tokens.count(text)
        return len(text.encode())  # no token is shorter than a byte

    def _fits(self, *texts: str) -> bool:
        return sum(map(self._price, texts)) <= self._tokens and sum(map(len, texts)) <= self._characters

    def _take(self, *texts: str) -> None:
        self._tokens -= sum(map(self._price, texts))
        self._characters -= sum(map(len, texts))

    def _give_back(self, text: str) -> None:
        self._tokens += self._price(text)
        self._characters += len(text)

    def _start(self, heading: str, text: str) -> str:
        """As much of the beginning of `text` as surely fits, "" when that is next to nothing."""
        room = min(self._tokens - self._price(heading), self._characters - len(heading)) - len("…\n".encode())
        start = text.encode()[: max(0, room)].decode(errors="ignore")
        start = start[: start.rfind(" ")] if " " in start else ""
        return f"{start.rstrip()}…\n" if len(start) >= 40 else ""


def _in_order(pieces: Sequence[Piece], terms: Terms) -> list[tuple[int, bool]]:
    """Which piece comes when, and whether as a whole: one with a short form comes twice."""
    forms = [(n, True) for n in range(len(pieces))] + [(n, False) for n, piece in enumerate(pieces) if piece.short]
    return sorted(forms, key=lambda form: _precedence(pieces[form[0]], form, terms))


def _precedence(piece: Piece, form: tuple[int, bool], terms: Terms) -> tuple[int, float, int, int]:
    number, whole = form
    rank = piece.whole if piece.short and whole else piece.rank
    matches = likeness(terms, piece.text) if terms and rank >= REORDERED_FROM else 0
    return (rank if not matches else REORDERED_FROM, -matches, piece.order, number)


def _terms(context: RouteContext, query: str | None) -> Terms:
    """The words of a query with what each is worth: what the search index says, else all alike."""
    if not query:
        return ()
    if context.valued and query == context.query:
        return context.valued
    return tuple((word, word.weight) for word in words(query))


def _joined(pieces: Sequence[Piece]) -> str:
    parts, group = [], None
    for piece in pieces:
        if piece.group != group:
            group = piece.group
            parts.append(_heading(group))
        parts.append(f"{piece.text[:-1]}{piece.tag}\n" if piece.tag else piece.text)
    return "".join(parts)


def _heading(group: str) -> str:
    return f"## {group}\n" if group else ""


_NOUNS = ("reason", "decision", "fact", "line", "section", "request")


def _closing(context: RouteContext, left_out: dict[str, int], *, short: bool) -> str:
    """What is not in the text, and how to get it."""
    route = shown(one_line(context.route))
    if short:
        return config.typed(f"_(cut: `ralf context show {route}`)_\n", context.command)
    folded = context.folded
    parts = [f"{count} {noun}{'s' if count != 1 else ''}" for noun, count in left_out.items() if count]
    text = f"_Left out of this text: {', '.join(parts)}; all of it: `ralf context show {route}`._\n" if parts else ""
    older = [
        (folded.decision_count, "older decision"),
        (folded.fact_count, "older fact"),
        (folded.section_count, "older section"),
    ]
    if any(count for count, _ in older):
        names = ", ".join(f"{count} {noun}{'s' if count != 1 else ''}" for count, noun in older if count)
        text += f"_Moved out of the file: {names}; find them: `ralf context search QUERY --route {route}`._\n"
    return config.typed(text, context.command)
