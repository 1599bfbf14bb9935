"""Redaction: each secret of a text gives way to `[REDACTED:kind:tag]`, before anything is made of the text.

The tag is a short hash under the project's key: equal secrets stay recognisably equal, and nobody without the key can
try words against it. Redacting what is redacted changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from ralf.redact import commands, grammar, keys, names, rules, tables, values, vendors
from ralf.redact.engine import Expression, Hit, Lines, Rule, Text, Words
from ralf.redact.marks import MARKER, Known, Span, marked, merged
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.transcripts.events import Event


def _named(text: Text, there: Collection[str]) -> Iterator[Hit]:
    """What a name before it calls a secret."""
    stems = list(names.stems_of(text.low, there))
    yield from grammar.find(text, stems)
    yield from tables.find(text, [stem.start() for stem in stems])


RULES = (
    *rules.rules(),
    keys.RULE,
    Rule(names.WORDS, _named),
    commands.RULE,
    tables.MANIFEST,
    *(Rule(one.words, one.find) for one in vendors.rules()),
)
"""What finds secrets; of two that find the same one the first, which is always the same, names it."""

_WORDS = Words([word for rule in RULES for word in rule.words])


@lru_cache(2048)
def _rules_for(there: tuple[str, ...]) -> tuple[Sequence[Rule], frozenset[str]]:
    """The rules that may find something in a text in which these words stand; and the words."""
    words = frozenset(there)
    return [rule for rule in RULES if not words.isdisjoint(rule.words)], words


_ESCAPED_BREAK = regex(r"(?<!\\)(?:\\++r)?+\\++n|\r\n")
_MOST_PASSES = 3  # what stands behind a marker may be a secret of its own; one pass is the rule


_LABEL_KEYS = ("name", "key", "label", "element", "field", "secretName")

_VALUE_KEYS = ("value", "text", "secretText", "content")
"""Of the arguments of tools: a field that is filled in, a setting, an entry of a form."""

_OF_FORMS = regex(r"(?i)[ _](?:field|input|(?:text ?)?box)\Z")


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
            spans = self.spans(text, self.hits(text))
            if not spans:
                break
            text = marked(text, spans)
        return text

    def spans(self, text: str, hits: Iterable[Hit]) -> list[Span]:
        """What is to stand in the places of a text's secrets."""
        return [Span(start, end, self.marker(kind, text[start:end])) for start, end, kind in hits]

    def tree(self, value: Any, known: Known | None = None) -> Any:
        """Plain data with every string redacted, keys included; a string under a key is judged by the key, too.

        known  secrets that are looked for, too
        """
        text = self.text if known is None else lambda value: known.replaced(self.text(value))
        return self._tree(value, cache(text), {})  # the same keys and paths stand in it many times

    def named(self, tree: Any) -> dict[str, str]:
        """The values of a tree that their keys call secrets, with their markers."""
        found: dict[str, str] = {}
        self._tree(tree, str, found)
        return found

    def _tree(self, value: Any, text: Callable[[str], str], named: dict[str, str], key: str = "") -> Any:
        if isinstance(value, str):
            if not (key and value and self._is_named(key, value)):
                return text(value)
            return named.setdefault(value, self.marker("secret", value))
        if isinstance(value, Mapping):
            label = next((value[key] for key in _LABEL_KEYS if isinstance(value.get(key), str)), "")
            label = "_".join(_OF_FORMS.sub("", label).split()) if len(label) <= names.LONGEST_NAME else ""
            return {
                text(str(key)): self._tree(item, text, named, label if label and key in _VALUE_KEYS else str(key))
                for key, item in value.items()
            }
        return [self._tree(item, text, named) for item in value] if isinstance(value, list | tuple) else value

    def _is_named(self, key: str, value: str) -> bool:
        """Whether a value is a secret because its key says so."""
        if not names.is_name(key) or "\n" in value or MARKER.match(value):
            return False
        head = f'"{key}": "'
        return any(hit[:2] == (len(head), len(head) + len(value)) for hit in self.hits(f'{head}{value}"'))

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
        from ralf.redact import borders  # who redacts single texts knows no borders

        return borders.redacted(self, events, tails or {}, following, known if known is not None else {})

    # ---- one text ----

    def hits(self, text: str) -> list[Hit]:
        """The secrets of a text, in order, none over another."""
        if not Lines.may_be(text):
            return self._hits(text)
        lines = Lines(text)
        found = self._hits(lines.text)
        return [Hit(lines.place(hit.start), lines.place(hit.end - 1) + 1, hit.kind) for hit in found]

    def _hits(self, text: str) -> list[Hit]:
        looked = Text(text)
        there = _WORDS.within(looked)
        if not there and not self._patterns:
            return []
        rules, words = _rules_for(tuple(there))
        found = [hit for rule in rules for hit in rule.find(looked, words)]
        for places in (places for pattern in self._patterns for places in pattern.matches(looked)):
            start, end = next((place for place in places[1:2] if place[0] >= 0), places[0])
            found += [Hit(start, end, "pattern")] if start < end else []
        if found and "[REDACTED:" in text:
            marks = [mark.span() for mark in MARKER.finditer(text)]
            last = [bisect_left(marks, (hit.end,)) - 1 for hit in found]  # the marker that begins before a hit's end
            found = [hit for hit, mark in zip(found, last, strict=True) if mark < 0 or marks[mark][1] <= hit.start]
        return merged(found)

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
