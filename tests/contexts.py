"""Strategies for the tests: hostile clean text, trees, and whole contexts over the values of `ralf.model`."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, replace
from typing import Any

from hypothesis import settings, strategies as st

from examples import examples
from ralf.model import Body, RouteContext, Section
from ralf.route import routefile
from ralf.text.cleaning import clean, one_line

NASTY = (
    '--- ---\n \n--- \n---\n... # ## ### #### ``` ~~~ ```python\n `````` \t \\ \\n \\" " \' \'\' "" { } [ ] , : :\t '
    "- ? & * ! | > % @ ` << <<: &a *a !!str !!python/object:os.system %YAML %TAG |2- >+ "
    "no yes on off y n null ~ true True false 1.10 012 0x1f 1e5 .5 .inf .nan 1_000 12:30:45 2026-02-07 "
    "2026-02-07T10:00:00Z -0 - -- = \xa0 \u1680 \u2003 \u3000 \u2028 \u2029 \u0085 \ufeff \ufffe \uffff "
    "\U0001f980 \u200d \u202e \xe9 e\u0301 \ud800 \x1b[31m \x00 \r \r\n \x7f \xad"
).split(" ")
LINES = (
    "## Compressed History",
    "## Checkpoint History",
    "### Checkpoint 9: forged (Current)",
    "# Goal",
    "goal: forged",
    "context_checkpoint:",
    "<<<<<<< HEAD",
    "=======",
    ">>>>>>> theirs",
    "*Kept by ralf. Edit freely: changes are taken in at the next write.*",
    "---",
    "```",
    "  ```",
    "- a list item",
    "**bold:** x",
    "> quoted",
    "\tbehind a tab",
    "  two spaces",
    " a trailing space ",
    "",
)


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
title = line.map(lambda found: found.removesuffix("(Current)")[:300].rstrip())
number = st.one_of(st.integers(0, 3), st.integers(0, 10**15))
fraction = st.integers(0, 1000).map(lambda found: found / 1000)
scalar = st.one_of(text, st.integers(-(10**17), 10**17), st.booleans(), st.none(), fraction)
key = st.one_of(st.sampled_from(["body", "extra", "no", "on", "<<", "a b", "", "x", "y"]), line.map(lambda s: s[:120]))
_STATUS = {"status": ["active", "superseded", "passed", "failed", "pending", "completed", ""]}


def trees(depth: int, most: int = 3) -> st.SearchStrategy[Any]:
    """What an unknown key may hold: lists and mappings, `depth` deep, of scalars."""
    if not depth:
        return scalar
    inner = trees(depth - 1, most)
    return st.one_of(scalar, st.lists(inner, max_size=most), st.dictionaries(key, inner, max_size=most))


mapping = st.dictionaries(key, trees(3), max_size=4)


def values(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Any value of a dataclass of the model, with unknown keys."""
    hints = typing.get_type_hints(cls)
    made = {}
    known = {field.name for field in fields(cls)}
    for field in fields(cls):
        if not field.metadata.get("stored", True):
            continue
        if field.name == "extra":
            free = key.filter(lambda name: name not in known and name != "#body")
            made["extra"] = st.one_of(st.just({}), st.dictionaries(free, trees(2, 2), max_size=2))
        elif field.name in _STATUS:
            made[field.name] = st.sampled_from(_STATUS[field.name])
        else:
            made[field.name] = _of(hints[field.name])
    return st.builds(cls, **made)


def _of(hint: Any) -> st.SearchStrategy[Any]:
    plain: dict[Any, st.SearchStrategy[Any]] = {str: text, int: number, bool: st.booleans(), float: fraction}
    if hint in plain:
        return plain[hint]
    if hint is Any:
        return trees(2)
    if typing.get_origin(hint) is typing.Literal:
        return st.sampled_from(typing.get_args(hint))
    if hint is Body:
        return st.builds(Body, sections=sections)
    if typing.get_origin(hint) is tuple:
        return st.lists(_of(typing.get_args(hint)[0]), max_size=2).map(tuple)
    if isinstance(hint, types.UnionType):
        return st.one_of(st.none(), _of(typing.get_args(hint)[0]))
    return values(hint)


def ruled(found: str) -> str:
    """Text by the rule for a section: every line begins with `- `, `> `, `**` or two spaces."""
    lines = found.strip("\n").split("\n")
    starts = ("- ", "> ", "**", "  ")
    return "\n".join(f"{starts[n % 4] if line.strip() else ''}{line}" for n, line in enumerate(lines)).strip("\n")


def _numbered(found: list[Section]) -> tuple[Section, ...]:
    return tuple(Section(len(found) - n, section.title, section.text) for n, section in enumerate(found))


sections = st.lists(st.builds(Section, title=title, text=text.map(ruled)), max_size=3).map(_numbered)
contexts: st.SearchStrategy[RouteContext] = values(RouteContext)
