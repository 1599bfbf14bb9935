"""Strategies for the tests: hostile clean text, trees, and whole contexts over the values of `ralf.model`."""

from __future__ import annotations

import random
import types
import typing
from dataclasses import fields, replace
from functools import cache
from typing import Any

from hypothesis import settings, strategies as st
from tests.faults.mutations import TOKENS

from examples import examples
from ralf.model import BODY, Body, RouteContext, Section
from ralf.route import routefile
from ralf.text.cleaning import as_section, clean, one_line

NASTY = (
    '--- ---\n \n--- \n---\n... # ## ### #### ``` ~~~ ```python\n `````` \t \\ \\n \\" " \' \'\' "" { } [ ] , : :\t '
    "- ? & * ! | > % @ ` << <<: &a *a !!str !!python/object:os.system %YAML %TAG |2- >+ "
    "no yes on off y n null ~ true True false 1.10 012 0x1f 1e5 .5 .inf .nan 1_000 12:30:45 2026-02-07 "
    "2026-02-07T10:00:00Z -0 - -- = \xa0 \u1680 \u2003 \u3000 \u2028 \u2029 \u0085 \ufeff \ufffe \uffff "
    "\U0001f980 \u200d \u202e \xe9 e\u0301 \ud800 \x1b[31m \x00 \r \r\n \x7f \xad"
).split(" ")
LINES = (
    "## Compressed History", "## Checkpoint History", "### Checkpoint 9: forged (Current)", "# Goal", "goal: forged",
    "context_checkpoint:", "decisions:", "  - id: forged", "<<<<<<< HEAD", "=======", ">>>>>>> theirs",
    routefile.FOOTER,
    "---", "...", "```", "~~~~", "- a list item", "**bold:** x", "> quoted", "\tbehind a tab", "  two spaces", " one ",
    "",
)  # fmt: skip
PARTS = (
    *(token.decode("utf-8", "surrogatepass") for token in TOKENS if len(token) < 400),
    *(f"\n{line}\n" for line in LINES),
    *("word", " ", "  ", "\n", "\n\n", "long " * 80, "x" * 300, "'", '"', "\\", ": ", " #", "\u2028", "\r", "\x85"),
)  # fmt: skip
_STATUS = ("active", "superseded", "passed", "failed", "pending", "completed", "")


def as_read(context: RouteContext) -> RouteContext:
    """What the file of a context is read as: without tombstones, and without places of decisions unless they quote."""
    return replace(context, decisions=tuple(map(routefile._filed, context.decisions)), dropped=(), forgotten=())


quick = settings(max_examples=examples(50), derandomize=True, deadline=None, database=None)
"""The same examples in every run; slow machines are no failure."""

_part = st.one_of(
    st.sampled_from(NASTY),
    st.sampled_from([f"\n{line}\n" for line in LINES]),
    st.sampled_from([" ", "  ", "\n", "\n\n", "word", "more words of text", "long " * 600, "x" * 3000]),
    st.text(max_size=8),
)


def texts(parts: int = 5) -> st.SearchStrategy[str]:
    """Clean text, of what has broken other formats."""
    return st.lists(_part, max_size=parts).map(lambda found: clean("".join(found)))


text = texts()
line = text.map(one_line)
fraction = st.integers(0, 1000).map(lambda found: found / 1000)
scalar = st.one_of(text, st.integers(-(10**17), 10**17), st.booleans(), st.none(), fraction)
key = st.one_of(st.sampled_from(["body", "extra", "no", "on", "<<", "a b", "", "x", "y"]), line.map(lambda s: s[:120]))


def trees(depth: int, most: int = 3) -> st.SearchStrategy[Any]:
    """What an unknown key may hold: lists and mappings, `depth` deep, of scalars."""
    if not depth:
        return scalar
    inner = trees(depth - 1, most)
    return st.one_of(scalar, st.lists(inner, max_size=most), st.dictionaries(key, inner, max_size=most))


mapping = st.dictionaries(key, trees(3), max_size=4)


def ruled(found: str) -> str:
    """Text by the rule for a section: every line begins with `- `, `> `, `**` or two spaces."""
    lines = found.strip("\n").split("\n")
    starts = ("- ", "> ", "**", "  ")
    return "\n".join(f"{starts[n % 4] if line.strip() else ''}{line}" for n, line in enumerate(lines)).strip("\n")


def hostile(rng: random.Random) -> str:
    """Text as it comes in, cleaned: none, a word, or whatever has broken other formats."""
    how = rng.random()
    if how < 0.3:
        return ""
    if how < 0.5:
        return rng.choice(("word", "some words", "DEC-001", "src/a.py", "2026-03-01T08:00:00Z", "no", "1.10", "12"))
    parts = rng.choices(PARTS, k=rng.choice((1, 1, 2, 3, 6)))
    if rng.random() < 0.3:
        parts.append("".join(map(chr, rng.choices(range(0x110000), k=4))))
    return clean("".join(parts))


def value(rng: random.Random, hint: Any, name: str = "") -> Any:
    """A value of a field of the model."""
    if hint is str:
        return rng.choice(_STATUS) if name == "status" else hostile(rng)
    if hint is Any:
        return _tree(rng, 2)
    if hint is int:
        return rng.choice((0, 1, 3, 10**15))
    if hint is bool:
        return rng.random() < 0.5
    if hint is float:
        return rng.choice((0.0, 0.5, 0.1 + 0.2, 1e-7, 123456.75))
    if typing.get_origin(hint) is typing.Literal:
        return rng.choice(typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return tuple(value(rng, typing.get_args(hint)[0]) for _ in range(rng.choice((0, 0, 1, 1, 2))))
    if isinstance(hint, types.UnionType):
        return None if rng.random() < 0.5 else value(rng, typing.get_args(hint)[0])
    return of(rng, hint)


def of(rng: random.Random, cls: Any) -> Any:
    """Any value of a dataclass of the model, unknown keys included."""
    if cls is Body:
        return Body(sections=_sections(rng))
    made = {name: value(rng, hint, name) for name, hint in _hints(cls) if rng.random() < 0.7}
    if rng.random() < 0.15 and "extra" in cls.__dataclass_fields__:
        known = {name for name, _ in _hints(cls)} | {BODY}
        key = one_line(hostile(rng))[:100]
        made["extra"] = {} if key in known else {key: _tree(rng, 2)}
    return cls(**made)


@cache
def _hints(cls: Any) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(cls)
    return tuple((f.name, hints[f.name]) for f in fields(cls) if f.name != "extra" and f.metadata.get("stored", True))


def _tree(rng: random.Random, depth: int) -> Any:
    how = rng.random()
    if depth and how < 0.2:
        return [_tree(rng, depth - 1) for _ in range(rng.randrange(3))]
    if depth and how < 0.4:
        return {one_line(hostile(rng))[:100]: _tree(rng, depth - 1) for _ in range(rng.randrange(3))}
    return rng.choice((hostile(rng), hostile(rng), True, None, 7, -(10**16), 0.25))


def _sections(rng: random.Random) -> tuple[Section, ...]:
    count = rng.choice((0, 1, 1, 2, 3))
    titles = (one_line(hostile(rng)).removesuffix("(Current)").rstrip() for _ in range(count))
    return tuple(Section(count - n, title, as_section(hostile(rng)).strip("\n")) for n, title in enumerate(titles))


contexts = st.randoms(use_true_random=True).map(lambda rng: of(rng, RouteContext))
"""Any context, of hostile text in every field."""
