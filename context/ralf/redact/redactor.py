"""Redaction: each secret of a text gives way to `[REDACTED:kind:tag]`, before anything is made of the text.

The tag is a short hash under the project's key: equal secrets stay recognisably equal, and nobody without the key can
try words against it. Redacting what is redacted changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from ralf.redact import assignments, commands, keys, labels, names, rules, tables, values, vendors
from ralf.redact.engine import Expression, Hit, Text, Words
from ralf.redact.marks import MARKER, Known, Span, marked, merged
from ralf.text.frozen import replace
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.transcripts.events import Event

    class Rule(Protocol):
        """What finds secrets of a sort."""

        @property
        def words(self) -> Sequence[str]:
            """One of them, in lower case, is in a text in which it finds something."""

        def find(self, text: Text, there: Collection[str], /) -> Iterator[Hit]:
            """The secrets of a text in which these words stand, in no order; they may overlap."""


class _Names:
    """What a name before it calls a secret."""

    words = names.WORDS

    def find(self, text: Text, there: Collection[str]) -> Iterator[Hit]:
        stems = list(names.stems_of(text.low, there))
        yield from assignments.find(text, stems)
        yield from labels.find(text, stems)
        yield from tables.find_in_tables(text.raw, [stem.start() for stem in stems])


RULES: tuple[Rule, ...] = (
    *rules.formats(),
    *rules.shapes(),
    keys.Armour(),
    _Names(),
    commands.Commands(),
    tables.Manifest(),
    *vendors.rules(),
)
"""What finds secrets; where two find the same one, the first names it."""

_BY_WORD: dict[str, list[int]] = {}
for _number, _rule in enumerate(RULES):
    for _word in _rule.words:
        _BY_WORD.setdefault(_word, []).append(_number)

_WORDS = Words(tuple(_BY_WORD))

_ESCAPED_BREAK = regex(r"(?<!\\)(?:\\++r)?+\\++n|\r\n")

_IN_FIELDS = ("user", "note", "mark", "other")
"""Kinds of events whose fields hold words that their text does not."""

_MOST_PASSES = 3  # what stands behind a marker may be a secret of its own; one pass is the rule


class Redactor:
    """Redacts texts, trees and events under one key: the same key and text give the same bytes.

    patterns  the user's own: their first group is the secret, the whole match where they have none
    problem   what is wrong with the key, "" for nothing
    """

    def __init__(self, key: bytes, patterns: Sequence[Expression] = (), *, problem: str = "") -> None:
        self._key = key
        self._patterns = tuple(patterns)
        self.problem = problem

    def text(self, text: str) -> str:
        """The text without its secrets."""
        for _ in range(_MOST_PASSES):
            hits = self.hits(text)
            if not hits:
                break
            text = marked(
                text, [Span(hit.start, hit.end, self.marker(hit.kind, text[hit.start : hit.end])) for hit in hits]
            )
        return text

    def tree(self, value: Any) -> Any:
        """Plain data with every string redacted, keys included; a string under a key is judged by the key, too."""
        return self._tree(value, cache(self.text))  # the same keys and paths stand in it many times

    def _tree(self, value: Any, text: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, Mapping):
            return {text(str(key)): self._under(str(key), item, text) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._tree(item, text) for item in value]
        return value

    def _under(self, key: str, value: Any, text: Callable[[str], str]) -> Any:
        if isinstance(value, str) and self._is_named(key, value):
            return self.marker("secret", value)
        return self._tree(value, text)

    def events(
        self,
        events: Sequence[Event],
        *,
        tails: Mapping[str, str] | None = None,
        following: Sequence[Event] = (),
        known: dict[str, str] | None = None,
    ) -> tuple[list[Event], dict[str, str]]:
        """The events without their secrets, also those that the border between two events of a kind cuts in two; and
        the ends, by kind, that what comes next may go on with.

        tails      such ends of what came before
        following  the first events of what comes next, where it is known
        known      random secrets of earlier events, with their markers: found again, and added to
        """
        from ralf.redact import borders  # here and below: who redacts single texts knows no borders

        found, rests = borders.spans(self, events, tails or {}, following, known)
        plain = self._names(events)
        clean = [self._event(event, its, plain) for event, its in zip(events, found, strict=True)]
        return clean, borders.open_ends(clean, tails or {}, rests)

    def _names(self, events: Sequence[Event]) -> dict[str, str]:
        """The names that events bear, each redacted; all at once, for they are many and short."""
        known = list(dict.fromkeys(name for event in events for name in (event.tool, event.call_id, event.cwd)))
        if not self.hits("\n".join(known)):
            return {name: name for name in known}
        return {name: self.text(name) for name in known}

    def _event(self, event: Event, hits: Sequence[Span], plain: Mapping[str, str]) -> Event:
        text = self.text(marked(event.text, hits)) if hits else event.text
        tree = event.input
        if tree and (hits or event.kind in _IN_FIELDS or any(map(names.is_name, _keys(tree)))):
            secrets = Known({event.text[span.start : span.end]: span.marker for span in hits})
            tree = _replaced(self.tree(tree), secrets)
        tool, call, cwd = plain[event.tool], plain[event.call_id], plain[event.cwd]
        if (text, tree, tool, call, cwd) == (event.text, event.input, event.tool, event.call_id, event.cwd):
            return event
        return replace(event, text=text, input=tree, tool=tool, call_id=call, cwd=cwd)

    def named(self, tree: Any) -> Iterator[tuple[str, str]]:
        """The values of a tree that their keys call secrets, each with its marker."""
        for key, item in _items(tree):
            if not isinstance(item, str):
                yield from self.named(item)
            elif item and self._is_named(key, item):
                yield item, self.marker("secret", item)

    def _is_named(self, key: str, value: str) -> bool:
        """Whether a value is a secret because its key says so."""
        if not names.is_name(key) or "\n" in value or MARKER.match(value):
            return False
        head = f'"{key}": "'
        text = Text(f'{head}{value}"')
        hits = assignments.find(text, list(names.stems_of(text.low, names.WORDS)))
        return any(hit[:2] == (len(head), len(head) + len(value)) for hit in hits)

    # ---- one text ----

    def hits(self, text: str) -> list[Hit]:
        """The secrets of a text, in order, none over another."""
        looked = Text(text)
        there = _WORDS.within(looked.low)
        numbers = sorted(
            {number for word in there for number in _BY_WORD[word]}
        )  # of two finds the same is always first
        words = frozenset(there)
        found = [hit for number in numbers for hit in RULES[number].find(looked, words)]
        found.extend(self._of_the_user(looked))
        if not found:
            return []
        known = [marker.span() for marker in MARKER.finditer(text)] if "[REDACTED:" in text else []
        return merged(hit for hit in found if not any(hit.start < end and start < hit.end for start, end in known))

    def _of_the_user(self, text: Text) -> Iterator[Hit]:
        for pattern in self._patterns:
            for places in pattern.matches(text):
                start, end = next((place for place in places[1:2] if place[0] >= 0), places[0])
                if start < end:
                    yield Hit(start, end, "pattern")

    def digest(self, text: str) -> str:
        """What tells a text again under this key, and nothing of it to who has not the key: 16 hexadecimal digits."""
        return self._sum(text).hex()[:16]

    def marker(self, kind: str, secret: str) -> str:
        """What stands for a secret: equal for equal ones, also where one of them is escaped."""
        return f"[REDACTED:{kind}:{self._tag(secret)}]"

    def _tag(self, secret: str) -> str:
        plain = _ESCAPED_BREAK.sub("\n", secret).replace("\\/", "/").strip()
        return self._sum(plain).hex()[:8]

    def _sum(self, text: str) -> bytes:
        import hmac  # which loads OpenSSL; few texts have a secret

        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")

    def recognized(self, text: str, markers: Mapping[str, str]) -> dict[str, str]:
        """The random secrets of a text that markers stand for elsewhere, each with its marker. Whoever has kept no
        secret, but what was redacted, finds them again so.

        markers  by their tags
        """
        found = set(_candidates(text)) if markers else ()
        tags = ((part, self._tag(part)) for part in found)
        return {part: markers[tag] for part, tag in tags if tag in markers and values.strength(part) == values.RANDOM}


_CHUNK = regex(r"\S{12,4096}")

_SIGN = regex(r"\x1b\[[0-9;]{0,20}[A-Za-z]|\\[nrt]|[^A-Za-z0-9]|\Z")

_MOST_PLACES = 40  # between a beginning and an end of a secret at which it might end, too


def _candidates(text: str) -> Iterator[str]:
    """The parts of a text that may be secrets: of each run without blanks, what lies between two signs or ends."""
    for chunk in _CHUNK.finditer(text):
        places = sorted(
            {chunk.start(), *(place for sign in _SIGN.finditer(text, *chunk.span()) for place in sign.span())}
        )
        for number, start in enumerate(places):
            yield from (text[start:end] for end in places[number + 1 : number + _MOST_PLACES] if end - start > 11)


def _items(tree: Any) -> list[tuple[str, Any]]:
    """The items of an object or a list, each with its key; in a list the key is "", which names no secret."""
    if isinstance(tree, Mapping):
        return [(str(key), item) for key, item in tree.items()]
    return [("", item) for item in tree] if isinstance(tree, list | tuple) else []


def _keys(tree: Any) -> Iterator[str]:
    for key, item in _items(tree):
        yield key
        yield from _keys(item)


def _replaced(tree: Any, secrets: Known) -> Any:
    if isinstance(tree, str):
        return secrets.replaced(tree)
    if isinstance(tree, Mapping):
        return {key: _replaced(item, secrets) for key, item in tree.items()}
    if isinstance(tree, list):
        return [_replaced(item, secrets) for item in tree]
    return tree
