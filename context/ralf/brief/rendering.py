"""A context as text for the next agent, what matters most first, within a hard budget of tokens.

The text is made of pieces. Each stands in a part, and each part has its share of the budget; what one part leaves goes
to the others, from the first to the last, so that the last ones shrink first. A piece's tokens were counted when it was
written; pieces begin with a letter, `#`, `-`, `>` or `*` and end with a line break, which keeps the sum of their counts
from ever being below the count of the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ralf import config
from ralf.brief.parts import ASKED, FOREIGN, REORDERED_FROM, TOLD, Part, Piece
from ralf.brief.pieces import SECTIONS, pieces, ways
from ralf.errors import UsageError
from ralf.text import cleaning
from ralf.text.cleaning import FENCE_TOKENS, SHORT_FENCE_TOKENS, Word, fence_characters, one_line, shown
from ralf.text.matcher import likeness, words
from ralf.text.patterns import regex

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
                with the work), goal, work, decisions, facts or history; UsageError for any other
    fenced      between two lines that say that this is data, not instructions, and that no content can forge
                (`ralf.text.cleaning`); they count within `max_tokens`, and a budget too small for them gives ""
    """
    if section is not None and section not in SECTIONS:
        raise UsageError(section, f"no such section; known: {', '.join(SECTIONS)}", 'render(section="brief")')
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
    budget = _Budget(tokens, characters, context.counts, enough=0 if section else _ENOUGH)
    text = budget.fit(context, parts, _terms(context, query or context.query))
    return cleaning.fenced(text, short=short) if fenced else text


def filed(context: RouteContext, characters: int) -> str:
    """The brief as the route file begins with it: at most so many bytes, without what only a reader knows.

    No token is counted, so that the same context gives the same text, whatever was counted before.
    """
    parts = list(pieces(context.as_recorded(), "brief"))
    return _Budget(characters, characters, {}, in_bytes=True).fit(context, parts, ())


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
    whole, resumed, by_themselves = ways(context)
    group = ""
    for piece in whole:
        yield piece.text
        yield piece.short
        if piece.cut:
            yield from _fragments(piece.text)
        if piece.group != group:
            group = piece.group
            yield _heading(group)
    for piece in resumed:
        yield piece.short
    for piece in by_themselves:
        yield piece.text
    for nouns in (_NOUNS, _NOUNS[1:]):
        yield _closing(context, dict.fromkeys(nouns, 99_999), short=False)
    yield _closing(context, {}, short=True)
    yield from (_ENDS, _SKIPS)


# ---- fitting ----


class _Kept(NamedTuple):
    """The text that a piece gets, and what it takes: an upper bound of tokens, and characters."""

    text: str = ""
    price: int = 0
    size: int = 0


_NOTHING = _Kept()


class _Budget:
    """How many tokens and characters are left. Every price is an upper bound of what the text really takes."""

    def __init__(
        self, tokens: int, characters: int, counts: Counts, *, enough: int = 0, in_bytes: bool = False
    ) -> None:
        self._enough = enough  # tokens of a budget from which also the parts without a share get what is left
        self._in_bytes = in_bytes  # each byte is a token
        self._tokens = tokens
        self._characters = characters
        self._counts = counts
        self._exact = False

    def fit(self, context: RouteContext, pieces: list[Piece], terms: Terms) -> str:
        if (
            not self._in_bytes
            and self._uncounted(pieces) > _FEW
            and sum(self._price(text) for text in _countable(context)) > self._tokens
        ):
            self._exact = True  # many are new, and it is tight: count them
        shortens = any(piece.short and piece.noun == "decision" for piece in pieces)
        closing = _closing(context, dict.fromkeys(_NOUNS if shortens else _NOUNS[1:], 99_999), short=False)
        if self._in_bytes:
            closing = ""
        elif self._price(closing) > self._tokens // 3:
            closing = _closing(context, {}, short=True)
        self._spend(self._price(closing), len(closing))
        kept = {number: found.text for number, found in self._chosen(pieces, terms).items()}
        left_out: dict[str, int] = {}
        for number, piece in enumerate(pieces):
            if kept.get(number) != piece.text:
                shortened = kept.get(number) and kept[number] == piece.short
                noun = "reason" if shortened and piece.noun == "decision" else piece.noun
                left_out[noun] = left_out.get(noun, 0) + 1
        chosen = [replace(pieces[number], text=kept[number]) for number in sorted(kept)]
        text = _joined(chosen)
        if not closing or (not left_out and closing.startswith("_(")):
            closing = ""
        elif not closing.startswith("_("):
            closing = _closing(context, left_out, short=False)
        return text + closing if self._tokens >= 0 and self._characters >= 0 else text

    def _chosen(self, pieces: list[Piece], terms: Terms) -> dict[int, _Kept]:
        """The text that each piece gets, by its number; those that get none are left out.

        First each part takes its share, with the shorter forms; where a query is given, what it asks for takes the
        shares of the parts that it reorders. What is left goes to the parts before the decisions, then to the others
        that have a share, in the shorter forms again, and then to all, from the first part to the last; in a small
        budget to those alone that have a share, and to the newest requests: a brief that is filled up says less.
        """
        kept: dict[int, _Kept] = {}
        runs = list(accumulate((a.group != b.group for a, b in pairwise(pieces)), initial=0))
        headed: set[int] = set()  # runs, for the same heading may stand over two of them
        whole = self._tokens
        matches = [likeness(terms, piece.text) if terms and piece.part >= REORDERED_FROM else 0 for piece in pieces]
        numbers = sorted(range(len(pieces)), key=lambda n: (pieces[n].part, -matches[n], pieces[n].order, n))

        def keep(number: int, piece: Piece, most: int) -> int:
            return self._keep(number, piece, kept, runs, headed, most)

        def share_out(numbers: Iterable[int]) -> None:
            for part, members in groupby(numbers, key=lambda number: pieces[number].part):
                is_free = whole < _SMALL and part < REORDERED_FROM
                share = before = whole if is_free else int(whole * part.share)
                for number in members if share else ():
                    piece = _shorter(pieces[number])
                    if not is_free or piece.cut != "middle":
                        share -= keep(number, piece, min(share, int(before * piece.most)))

        first = [number for number in numbers if pieces[number].part < REORDERED_FROM]
        share_out(first)
        for number in sorted(numbers[len(first) :], key=lambda n: -matches[n]):
            if matches[number]:
                keep(number, pieces[number], whole)
        share_out(numbers[len(first) :])
        for number in sorted(first, key=lambda number: pieces[number].cut == "middle"):  # the long ones take the rest
            keep(number, pieces[number], whole)
        for number in numbers:
            if pieces[number].part.share and number not in kept:
                keep(number, _shorter(pieces[number]), whole)
        turns = [(piece.part, n, _shorter(piece)) for n, piece in enumerate(pieces)]
        turns += [(piece.whole or piece.part, n, piece) for n, piece in enumerate(pieces) if piece.short]
        is_told = any(piece.part is TOLD for piece in pieces)
        if whole < self._enough and not any(matches):
            turns = [
                turn
                for turn in turns
                if turn[0].share or turn[0] is FOREIGN or _is_request_told(turn[0], turn[2], is_told)
            ]
        for _, number, piece in sorted(turns, key=lambda turn: (turn[0], turn[2].order, turn[1])):
            keep(number, piece, whole)
        return kept

    def _keep(
        self, number: int, piece: Piece, kept: dict[int, _Kept], runs: list[int], headed: set[int], most: int
    ) -> int:
        """Keep a piece, in the longest form that takes at most so many tokens, and return what it takes more."""
        before = kept.get(number, _NOTHING)
        if len(before.text) >= len(piece.text):
            return 0
        heading = "" if runs[number] in headed else _heading(piece.group)
        had = self._tokens
        self._spend(self._price(heading) - before.price, len(heading) - before.size)
        found = self._whole(piece, most) or (self._cut(piece, most) if piece.cut else None)
        if found is not None and len(found.text) > len(before.text):
            self._spend(found.price, found.size)
            kept[number] = found
            headed.add(runs[number])
        else:
            self._spend(before.price - self._price(heading), before.size - len(heading))
        return had - self._tokens

    def _whole(self, piece: Piece, most: int) -> _Kept | None:
        """The piece, or its shorter form, if that takes at most so many tokens."""
        for form in (piece.text, piece.short):
            price = self._price(form) + self._price(piece.tag)
            size = len(form) + len(piece.tag)
            if form and price <= min(most, self._tokens) and size <= self._characters:
                return _Kept(form, price, size)
        return None

    def _uncounted(self, pieces: Iterable[Piece]) -> int:
        """Bytes of the pieces that were not counted when they were written."""
        return sum(len(piece.text.encode()) for piece in pieces if key(piece.text) not in self._counts)

    def _price(self, text: str) -> int:
        if not text:
            return 0
        if self._in_bytes:
            return len(text.encode())
        known = self._counts.get(key(text))
        if known is not None:
            return known
        if self._exact:
            from ralf.text import tokens

            return tokens.count(text)
        return len(text.encode())  # no token is shorter than a byte

    def _spend(self, tokens: int, characters: int) -> None:
        self._tokens -= tokens
        self._characters -= characters

    def _cut(self, piece: Piece, most: int) -> _Kept | None:
        """As much of the beginning of a piece, or of its beginning and its end, as surely fits; None for next to
        nothing.
        """
        glue = _SKIPS if piece.cut == "middle" else _ENDS
        around = self._price(glue) + self._price(piece.tag) + _SAFE
        more = len(glue) + len(piece.tag) + _SAFE
        tokens, characters = min(most, self._tokens) - around, self._characters - more
        fragments = _fragments(piece.text)
        head = self._as_many(fragments, tokens, characters, _HEAD if piece.cut == "middle" else 1.0)
        start = "".join(fragments[:head]).rstrip()
        spent = sum(map(self._price, fragments[:head]))
        tail = 0
        if piece.cut == "middle" and head:
            tail = self._as_many(fragments[head:][::-1], tokens - spent, characters - len(start), 1.0)
        end = "".join(fragments[len(fragments) - tail :])
        spent += sum(map(self._price, fragments[len(fragments) - tail :]))
        if tail and not end.startswith((">", "*")):
            end = f"> …{end}"
        text = f"{start}{_SKIPS}{end}" if tail else f"{start}{_ENDS}"
        least = _LEAST if piece.cut == "end" else 3 * _LEAST
        return _Kept(text, spent + around, len(text) + more) if head and len(text) >= least else None

    def _as_many(self, fragments: Sequence[str], tokens: int, characters: int, share: float) -> int:
        """How many fragments, from the first on, fit into a share of so many tokens and characters."""
        tokens, characters = int(tokens * share), int(characters * share)
        for number, fragment in enumerate(fragments):
            tokens -= self._price(fragment)
            characters -= len(fragment)
            if tokens < 0 or characters < 0:
                return number
        return len(fragments)


_ENOUGH = 4_000
"""Tokens of a budget from which also the parts without a share get what is left."""

_RECENT_REQUESTS = 8
"""The newest requests, which a small budget tells beside the exchanges."""

_SMALL = 400
"""Tokens of a budget below which no share holds a line: what stands before the decisions takes what it needs, without
the long texts.
"""

_HEAD = 0.5  # share of a text whose middle is cut that its beginning gets: the question stands at the end

_LEAST = 40  # characters below which the rest of a text is not worth a place

_SAFE = 6  # tokens and characters: what the marks beside a cut take at the most beyond what was counted

_ENDS, _SKIPS = "…\n", " […]\n"

_LONGEST_FRAGMENT = 160

_BREAK = regex(r"[^\n]{60,160}?(?=[ ][A-Za-z][^\n]{20})|[^\n]{1,160}")


def _fragments(text: str) -> list[str]:
    """A text in fragments that are counted by themselves: lines, long ones broken before a word."""
    found: list[str] = []
    for line in text.splitlines(keepends=True):
        if len(line) <= _LONGEST_FRAGMENT:
            found.append(line)
        else:
            parts = _BREAK.findall(line.rstrip("\n"))
            found += [*parts[:-1], parts[-1] + "\n"]
    return found


def _is_request_told(part: Part, piece: Piece, is_told: bool) -> bool:
    """Whether a small budget tells a request: of those whose exchanges it tells, the newest."""
    return part is ASKED and (not is_told or piece.order < _RECENT_REQUESTS)


def _shorter(piece: Piece) -> Piece:
    """The piece in its shorter form, if it has one."""
    return replace(piece, text=piece.short, short="") if piece.short else piece


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
