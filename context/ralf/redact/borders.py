"""Where secrets stand in a run of events: whole, printed by a call, cut by a border between two, or without their end.

The texts of a kind are one stream, which is looked through around its borders as any text is. Of a secret that spans a
border each event gives the piece that stands in it, if that looks as if it was made at random: a short message stays.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, compress, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from ralf.redact import commands, grammar, rules, vendors
from ralf.redact.engine import Hit
from ralf.redact.marks import MARKER, Known, Span, marked, merged
from ralf.redact.table import words
from ralf.redact.values import ID, MIXED, NOTHING, RANDOM, odds, strength
from ralf.text.frozen import replace
from ralf.text.patterns import regex
from ralf.transcripts.events import Event

if TYPE_CHECKING:
    from typing import Protocol

    class Redactor(Protocol):
        """What is asked of `ralf.redact.redactor.Redactor`, which asks this module."""

        def hits(self, text: str) -> list[Hit]: ...  # noqa: D102
        def spans(self, text: str, hits: Iterable[Hit]) -> list[Span]: ...  # noqa: D102
        def marker(self, kind: str, secret: str) -> str: ...  # noqa: D102
        def text(self, text: str) -> str: ...  # noqa: D102
        def tree(self, tree: Any, known: Known | None = None) -> Any: ...  # noqa: D102
        def named(self, tree: Any) -> dict[str, str]: ...  # noqa: D102


_STREAMS = ("result", "assistant")  # what comes in pieces
_IN_FIELDS = ("user", "note", "mark", "other")  # whose fields hold words that their text does not
_LONGEST = 4096  # characters of a secret that is looked for again, or of a word
_GAP = 40  # characters between a border and what is right behind it, at most
_NEAR = 300  # characters before and behind a border that are looked at together
_LONG = regex(r"-----(?:BEGIN|END) [^-\n]{0,40}PRIVATE KEY|kind[\"\\]*:\s*[\"\\]*Secret(?![A-Za-z])")
_BEFORE, _BEHIND = 8 << 10, 32 << 10  # so much around a key's or a manifest's sign is looked at together

# ---- pieces and ends ----

_SHORT, _LEAST_SHORT = 8, 12  # characters of a word that tells little, and the bits that it must tell
_LEAST, _LEAST_NEEDED = 10, 8  # bits that others must tell, less one for each character


def _size(piece: str, *, needed: bool) -> int:
    """How much of a piece behind a border is a part of a secret: up to the last word that looks like one.

    needed  what stands before it is a secret only together with it
    """
    for found in reversed([*re.finditer(r"\S+", piece)]):
        word = found[0].strip("\"'`;,")
        short = len(word) < _SHORT or word.isdigit()
        least = _LEAST_SHORT if short else (_LEAST_NEEDED if needed else _LEAST) - len(word)
        if word.endswith("-----") or (odds(word) > least and not _stands_for(word)):
            return found.end() if piece[found.end() :].strip() else len(piece)
    return 0


def _stands_for(word: str) -> bool:
    """Whether a word only stands for a secret, as a date or `xxxx`; what begins with a sign may be the end of one."""
    return strength(word.lstrip("$-.+/=@:^%{<[(!")) == NOTHING


def _edge(text: str, place: int) -> int:
    """Where the word begins in which a place lies."""
    before = text[max(0, place - _LONGEST) : place]
    return place if before[-1:].isspace() else place - len("".join(before.rsplit(None, 1)[-1:]))


@cache
def _token() -> re.Pattern[str]:
    """Matches what begins with a literal of tokens, but for those with which hashes and words begin, too."""
    tokens = (*rules.formats(), *vendors.rules())
    found = {literal for rule in tokens for literal in getattr(rule, "literals", ())}.difference(words("syllables"))
    literals = sorted((literal for literal in found if literal.strip("0123456789abcdef")), key=len, reverse=True)
    begins = "|".join((*map(re.escape, literals), "[0-9]{8,10}:AA"))  # Telegram's begin with the number of a bot
    return re.compile(rf"(?<![\w.+-])(?<!base64,)(?:{begins})([^\s\"'`<>()\\,;]*)")


def cut_off(text: str) -> Iterator[Hit]:
    """A token whose beginning ends a text: a client cut it short, or the rest comes later."""
    end = len(text.rstrip().rstrip("…"))
    start = _edge(text, end) if _ENDS.match(text, max(0, end - 1), end) else end
    for token in _token().finditer(text, start, end) if end - start > len("s.01234") else ():
        rest = token[1] if token.end() == end and not _HEX.match(token[0]) else ""
        if len(rest) > len("01234") and odds(rest) > -len(rest) and not _stands_for(rest):
            yield Hit(token.start(), end, "cut-off")


_HEX = regex(r"[0-9A-F]+\Z")
_ENDS = regex(r"[\w=.-]")
_ALONE = regex(r"\S{8,4096}+(?=[ \t]*(?:\r?\n|\Z))")  # the rest of what a call printed
_MORE = "q7Rt2bVx9MpL4sKd8WzY3nCf"
_MAY_FOLLOW = (_MORE, f"{_MORE}@h", "h", "@h", " | docker login --password-stdin")  # and make it a secret
_OF_MANIFESTS = ("\nkind: Secret\n", '"},"kind":"Secret"}')  # may follow where a manifest has its data
_DATA = regex(r"(?i)data[\"\\]*\s*:")


def unfinished(hits: Callable[[str], list[Hit]], end: str) -> Iterator[Hit]:
    """The secrets of an end of which nobody knows yet what follows: what would be one with this or that behind it.

    hits  finds the secrets of a text
    """
    known = {hit.start for hit in hits(end)}
    may_follow = _MAY_FOLLOW + _OF_MANIFESTS if _DATA.search(end) else _MAY_FOLLOW
    for hit in (hit for more in may_follow for hit in hits(end + more) if not end.endswith((")", "]", "}"))):
        part = end[hit.start : hit.end]
        whole = hit.kind == "vendor-token" or strength(part) == ID or part.startswith("http")  # an id, say
        if part and hit.start not in known and not whole and _size(part, needed=True):
            yield Hit(hit.start, hit.start + len(part), "cut-off")


# ---- a run of events ----


def redacted(
    redactor: Redactor,
    events: Sequence[Event],
    tails: Mapping[str, str],
    following: Sequence[Event],
    known: dict[str, str],
) -> tuple[list[Event], dict[str, str]]:
    """What `Redactor.events` returns."""
    every = [*events, *following]
    calls = {event.call_id: event.text for event in every if event.kind == "call"}
    found: list[list[Span]] = []
    for event in every:
        hits = redactor.hits(event.text)
        if event.kind == "result" and event.call_id:
            hits += commands.printed(calls.get(event.call_id, ""), event.text)
        if event.kind not in _STREAMS:
            hits += cut_off(event.text)
        found.append(redactor.spans(event.text, hits))
        if event.input and (named := redactor.named(event.input)):
            found[-1] += Known(named).spans(event.text)
    talk = [number for number, event in enumerate(every) if event.kind in ("user", "assistant")]
    for asking, number in pairwise(talk):
        answer = every[number]
        of_form = answer.form == "answer"  # to a question that a tool of the client put, whose result repeats it
        question = str(answer.input.get("about", "")) if of_form else every[asking].text
        spans = redactor.spans(answer.text, grammar.answered(question, answer.text))
        found[number] += spans
        if of_form and number and every[number - 1].kind == "result":
            repeated = {f'="{answer.text}"': f'="{span.marker}"' for span in spans}
            found[number - 1] += Known(repeated).spans(every[number - 1].text)
    streams = {
        kind: [number for number, event in enumerate(every) if event.kind == kind and event.text] for kind in _STREAMS
    }
    for kind, numbers in streams.items():
        if numbers:
            texts = [every[number].text for number in numbers]
            stream = _Stream(redactor, tails.get(kind, ""), texts, [found[number] for number in numbers])
            stream.add(unknown=numbers[-1] < len(events))
    for event, spans in zip(every, found, strict=True):
        for span in spans:
            secret = event.text[span.start : span.end]
            told = strength(secret) if _SHORT <= len(secret) <= _LONGEST else NOTHING
            if told == RANDOM or (told >= MIXED and any(map(str.isdigit, secret))):
                known[secret] = span.marker
    again = Known(known)
    found = [merged([*spans, *again.spans(event.text)]) for event, spans in zip(every, found, strict=True)]
    names = dict.fromkeys(name for event in events for name in _named(event))
    have_some = bool(redactor.hits("\n".join(names)))
    changed = {name: text for name in names if have_some and (text := redactor.text(name)) != name}
    clean = [_clean(redactor, event, spans, changed) for event, spans in zip(events, found, strict=False)]
    ends = dict(tails)
    for kind, numbers in streams.items():
        texts = [clean[number].text for number in numbers if number < len(events)]
        if texts:
            behind = [(len(every[number].text), found[number]) for number in numbers[len(texts) :]]
            ends[kind] = _tail(tails.get(kind, ""), texts, _rest(behind))
    return clean, ends


_NAMES = ("tool", "call_id", "cwd", "branch", "task", "agent")

_named = attrgetter(*_NAMES)


def _clean(redactor: Redactor, event: Event, spans: Sequence[Span], changed: Mapping[str, str]) -> Event:
    """An event without its secrets. `changed`: the names that hold some, as they are to be shown."""
    if not spans and not changed and event.kind not in _IN_FIELDS:
        return event
    text = redactor.text(marked(event.text, spans)) if spans else event.text
    tree = event.input
    if tree and (spans or event.kind in _IN_FIELDS):
        tree = redactor.tree(tree, Known({event.text[span.start : span.end]: span.marker for span in spans}))
    names = {field: changed[name] for field, name in zip(_NAMES, _named(event), strict=True) if name in changed}
    is_same = text == event.text and tree == event.input and not names
    return event if is_same else replace(event, text=text, input=tree, **cast("dict[str, Any]", names))


# ---- from one run to the next ----

_GOES_ON = regex(  # how many characters of it follow, where known, or a piece that is too short to tell
    r"(?:\[REDACTED:([a-z0-9-]{1,40}):[0-9a-f]{8}\])+(?:\+([0-9]{1,6})|[^\s\"'`<>()]{0,11}[; ]{0,2})\Z"
)
_KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7q7Rt2bVx9MpL"


def _tail(before: str, texts: Sequence[str], rest: int) -> str:
    """The end of redacted texts that a secret may go on from, and how many characters of what follows belong to it."""
    whole = _plain(_plain(before) + "".join(texts)[-_BEFORE:])  # whatever a text says of itself
    shown = whole[-_NEAR:]
    manifest = whole.rfind("Secret", whole.rfind("\n---") + 1)
    if manifest >= 0 and _LONG.search(whole, max(0, manifest - 20), manifest + len("Secret")):
        shown = f"kind: Secret\ndata:{shown[shown.find(chr(10)) :]}"
    return f"{shown}+{rest}" if rest and _GOES_ON.search(shown) else shown


def _plain(end: str) -> str:
    """An end without the number of characters that follow."""
    goes_on = _GOES_ON.search(end, max(0, len(end) - 80))
    return end[: goes_on.start(2) - 1] if goes_on is not None and goes_on[2] else end


def _rest(texts: Sequence[tuple[int, Sequence[Span]]]) -> int:
    """How much of some texts, each by its size and what was found in it, is secret from their beginning."""
    rest = 0
    for size, spans in texts:
        first = spans[0].end if spans and not spans[0].start else 0
        rest += first
        if first < size:
            break
    return rest


class _Stream:
    """The texts of a kind as one text, behind the redacted end of what came before.

    found  what was found in each text, to which the stream adds
    """

    def __init__(self, redactor: Redactor, tail: str, texts: Sequence[str], found: Sequence[list[Span]]) -> None:
        self._redactor = redactor
        goes_on = _GOES_ON.search(tail)
        self._kind, self._left = (goes_on[1], int(goes_on[2] or 0)) if goes_on is not None else ("", 0)
        tail = _plain(tail)
        if goes_on is not None and not self._left:  # a secret stands for it, so that what goes on from it is found
            in_address = tail.endswith("//", 0, goes_on.start())
            secret = _KEY if self._kind == "private-key" else _MORE if in_address else f"password={_MORE}"
            tail = tail[: goes_on.start()] + secret + MARKER.sub("", goes_on[0])
        tail = MARKER.sub(_MORE, tail)
        self._found = [[], *found]
        self._text = "".join([tail, *texts])
        self._ends = list(accumulate(map(len, texts), initial=len(tail)))  # the first is the tail's
        ended = [any(span.end == len(text) for span in spans) for text, spans in zip(texts, found, strict=True)]
        ended.insert(0, self._kind != "cut-off")
        self._whole = {*compress(self._ends, ended)}  # behind these a secret stands that is one without what follows

    def add(self, *, unknown: bool) -> None:
        """Add the secrets that span borders, and those without their end.

        unknown  whether nobody knows what follows
        """
        text, hits, first = self._text, self._redactor.hits, self._ends[0]
        for begin, end in pairwise(self._ends):
            if begin < first + self._left:
                self._add(0, Hit(begin, min(end, first + self._left), self._kind))
        for start, stop, _ in self._windows():
            for hit in hits(text[start:stop]):
                self._add(start, hit, judge=True)
        for number, (begin, end) in enumerate(pairwise(self._ends), 1):
            for span in list(self._found[number]):
                rest = _ALONE.match(text, end) if ":printed:" in span.marker and begin + span.end == end else None
                if rest is not None and strength(rest[0]) != ID:
                    self._add(begin, Hit(span.start, rest.end() - begin, "printed"))
            start = _edge(text, max(0, end - _NEAR))
            for hit in cut_off(text[start:end]):
                if not any(begin + span.end > start + hit.start for span in self._found[number]):
                    self._add(start, hit)
        start = _edge(text, max(0, len(text) - _NEAR))
        for hit in unfinished(hits, text[start:]) if unknown else ():
            self._add(start, hit)

    def _windows(self) -> list[Span]:
        """The places around borders, and around the signs of what is long, that are looked at together."""
        signs = _LONG.finditer(self._text) if "PRIVATE KEY" in self._text or "Secret" in self._text else ()
        places = [Span(max(0, sign.start() - _BEFORE), sign.end() + _BEHIND, "") for sign in signs]
        for border in self._ends[:-1] if self._ends[0] else self._ends[1:-1]:
            stop = border + _NEAR
            rest = self._text[stop : stop + _LONGEST].split(None, 1)[:1]  # of a word
            places.append(Span(_edge(self._text, max(0, border - _NEAR)), stop + len("".join(rest)), ""))
        return merged(places)

    def _add(self, start: int, hit: Hit, *, judge: bool = False) -> None:
        """Add the pieces of a hit, which was found from `start` on: of those right behind a border only what looks
        random, but for a token that ends where its form ends.

        judge  also what does not begin before the border: what calls it a secret may stand there
        """
        first, last = start + hit.start, start + hit.end
        pieces = []  # each text's number, where it begins, and where the piece does and ends
        for number in range(max(1, bisect_right(self._ends, first)), len(self._ends)):
            begin, end = self._ends[number - 1], self._ends[number]
            if begin >= last:
                break
            at, stop = max(first, begin), min(last, end)
            before, piece = self._text[begin : min(at, begin + _GAP)], self._text[at:stop]
            is_behind = begin and (judge or first < begin) and not before.strip(" \"'`\n") and len(before) < _GAP
            if is_behind and not (stop < last and "\n" in piece):
                needed = first < begin and begin not in self._whole
                size = _size(piece, needed=needed)
                if not (
                    needed and hit.kind != "cut-off" and size < len(piece) and self._is_exact(first, at, stop, last)
                ):
                    stop = at + size
            pieces.append((number, begin, at, stop))
        if len(pieces) > 1 and all(at == stop for _, _, at, stop in pieces[1:]):
            number, begin, at, stop = pieces[0]
            pieces = [(number, begin, at, at + _size(self._text[at:stop], needed=True))]
        shown = self._redactor.marker(hit.kind, "".join(self._text[at:stop] for _, _, at, stop in pieces))
        for number, begin, at, stop in pieces:
            if at < stop:
                self._found[number].insert(0, Span(at - begin, stop - begin, shown))

    def _is_exact(self, first: int, at: int, stop: int, last: int) -> bool:
        """Whether a secret is none without a piece within it, or a token without its last character: no message fits
        in by chance.
        """
        if stop == last:
            if not _token().match(self._text, first, last):
                return False
            at = last - 1
        start = _edge(self._text, max(0, first - _NEAR))
        text = self._text[start:at] + self._text[stop:last]
        return not any(hit.end == len(text) for hit in self._redactor.hits(text))
