"""Finds the names that a successor is likely to need again: identifiers, commits, ids, places, quantities with unit.

A name counts more the more it was said and the later; what a tool printed counts little, unless it is the last that
the agent saw. Names are exact strings of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ralf.transcripts.events import Event

MOST = 150
"""Names that a route keeps."""

_SHARE = 1 / 2_200  # names of one stretch, per character of its text
_LONGEST, _LONGEST_PRINTED = 20_000, 4_000  # characters that are read of what was said, and of what a tool printed
_HALF_LIFE = 100_000  # characters after which saying a name counts half
_LAST_SEEN = 4_000  # characters at the end of a stretch within which also a tool's output counts
_JUST_SEEN = 2.0
_SAID = {"user": 4.0, "assistant": 3.0, "thinking": 1.5, "call": 1.5, "result": 0.2, "note": 2.0}

_NAME = re.compile(
    r"(?<![\w/.@+~-])(?=[\w/.@+~#-])"
    r"(?![A-Za-z][a-z]*+\.?+(?![\w/.@+~-]|\(\)))"  # a plain word: most are, and none of what follows has to look at it
    r"(?:"
    r"(?P<id>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"
    r"|(?P<commit>(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40})"
    r"|(?=[\w@+.~-]*+/)"
    r"(?P<path>(?:~|\.{1,2})?/?(?:[\w@+.-]{1,80}/){1,16}[\w@+-][\w@+.-]{0,80}\.[A-Za-z]\w{0,7}(?!:\d|\()(?=[^\w/]|$))"
    r"|(?=[\w./-]*+:\d)(?P<place>[\w./-]{0,160}\w\.[A-Za-z]{1,5}:\d+)"
    r"|(?P<ticket>#\d{2,6}|[A-Z]{2,10}-\d{1,6})"
    r"|(?P<quantity>\d[\d,.]{0,16}\d ?(?:ms|[KMG]i?B|tokens|seconds))"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(\))?)"
    r")(?![\w-])"
)
_SHAPED = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]|[A-Z]{2}[a-z]{2}|\A(?>.*?\w\.\w).*[A-Z]|\(\)$")


def names_in(text: str) -> Iterator[str]:
    """The names in a text, as they stand there, each once; what stands for a secret has none."""
    if "[REDACTED:" in text:
        from ralf.secrets.secretspans import MARKER  # a checkpoint without news pays for none of the rules of secrets

        text = MARKER.sub(" ", text)
    found: set[str] = set()
    for match in _NAME.finditer(text):
        name = match.group()
        if name not in found and (match.lastgroup != "name" or (5 <= len(name) <= 60 and _SHAPED.search(name))):
            found.add(name)
            yield name


def ranked(events: Sequence[Event], known: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of a stretch of events that are worth keeping, the likeliest to be needed again last.

    known  paths that are kept anyway: files of their names are left out
    """
    files = {path.rpartition("/")[2] for path in known}
    forms: dict[str, dict[str, float]] = {}  # what one name is called, and how much each form was said
    size = after = sum(len(event.text) for event in events)
    for event in events:
        after -= len(event.text)
        weight = _SAID.get(event.kind, 0.0)
        if event.kind == "result" and after < _LAST_SEEN:
            weight = _JUST_SEEN
        if weight and event.input.get("aside") is not True:
            weight *= 0.5 ** (after / _HALF_LIFE)
            most = _LONGEST_PRINTED if event.kind == "result" else _LONGEST
            for name in names_in(event.text[:most]):
                if name.rpartition("/")[2] in files:
                    continue
                said = forms.setdefault(_core(name), {})
                said[name] = said.get(name, 0.0) + weight
    scores = {_shown(said): sum(said.values()) for said in forms.values()}
    most = min(MOST, int(size * _SHARE) + 1)
    return tuple(sorted(scores, key=lambda name: (scores[name], name))[-most:])


def combined(before: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """The names of a route with those of a newer stretch, likeliest last; those of both count for both."""
    scores = {_core(name): (place + 1) / len(before) / 2 for place, name in enumerate(before)}
    for place, name in enumerate(new):
        scores[_core(name)] = scores.get(_core(name), 0.0) + (place + 1) / len(new)
    shown = {_core(name): name for name in (*before, *new)}
    return tuple(shown[core] for core in sorted(scores, key=lambda core: (scores[core], core))[-MOST:])


def _core(name: str) -> str:
    """What the forms of a name have in common: `store.GetRef()` and `GetRef` are one, `Set()` and `a.Set()` are not."""
    bare = name.removesuffix("()")
    last = bare.rpartition(".")[2]
    return last if len(last) >= 8 and _SHAPED.search(last) else bare


def _shown(said: dict[str, float]) -> str:
    """The form said most; with its parentheses where it was said with them."""
    best = max(said, key=lambda name: (said[name], len(name), name))
    return f"{best}()" if f"{best}()" in said else best
