"""The route file as text: parse and render, nothing else; its comments kept. Format: docs/format.md."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any

from ralf.errors import DamagedRouteFile, LaterRouteFile
from ralf.format.codec import BadTree, Tree, from_tree, shallow, sizes, written_item, yaml_pieces
from ralf.model import BODY, FORMAT_VERSION, Comment, Decision, RouteContext, Section
from ralf.text import tokens
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.format import guarded_yaml


FENCE = "---"

HISTORY = "## Compressed History"

FOOTER = "*Kept by ralf. Edit freely: changes are taken in at the next write.*"

MAX_LINES, MAX_SECTIONS = 200_000, 1_000
"""A file with more is not read: ours hold a few, and what compares sections takes time by their square."""

_VERSION = regex(r"([0-9]{1,9})\.[0-9]+\.[0-9]+\Z")

_HISTORIES = (HISTORY, "## Checkpoint History")

_OLD_FOOTER = "*This file is automatically managed. Do not edit manually.*"

_SECTION = regex(r"### Checkpoint (\d{1,9})(?:: (.*))?\Z")

_HEADING = regex(r"#{1,2} ")

_CURRENT = " (Current)"

_CONFLICT = regex(r"(?m)^(?:<{7} |>{7} )")

_CODE_FENCE = regex(r"(`{3,}|~{3,})")  # at the margin only: lines that ralf writes are never there

# ---- parsing ----


def parse(content: bytes, where: object) -> RouteContext:
    """The context that a route file holds. DamagedRouteFile says what is wrong and in which line; `where` names the
    file.
    """
    try:
        text = content.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DamagedRouteFile(where, "not UTF-8", _hint(where), line=line) from None
    layout = {"crlf": "\r\n" in text and text.count("\r\n") == text.count("\n"), "bom": content.startswith(BOM_UTF8)}
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        raise DamagedRouteFile(where, "conflict markers of a merge", _hint(where), line=line)
    for sign, most, what in (("\n", MAX_LINES, "lines"), ("\n### ", MAX_SECTIONS, "headings of sections")):
        if text.count(sign) > most:
            raise DamagedRouteFile(where, f"more than {most:,} {what}", _hint(where))
    front, body = _split(text, where)
    from ralf.format import (
        guarded_yaml,  # here, and frontmatter below: a write that knows what its file holds parses none
    )

    try:
        tree = _front_matter(text, front)
    except guarded_yaml.BadYaml as error:
        raise DamagedRouteFile(where, error.what, _hint(where), line=error.line + 1 if error.line else 0) from None
    try:
        context = from_tree(RouteContext, {**tree, BODY: {**_body(body), **layout}})
    except BadTree as error:
        raise DamagedRouteFile(where, str(error), _hint(where)) from None
    _check_version(context.context_checkpoint.version, where)
    noted = found(front)
    return replace(context, body=replace(context.body, comments=_kept(noted, context))) if noted else context


def _front_matter(text: str, front: str) -> Tree:
    """What the front matter holds. The library is given our own cut between it and the body, and our guarded loader."""
    import frontmatter
    from frontmatter.default_handlers import BaseHandler

    class Guarded(BaseHandler):
        FM_BOUNDARY = re.compile(rf"(?m)^{FENCE}$")

        def split(self, _: str) -> tuple[str, str]:
            return front, ""

        def load(self, fm: str, **_: object) -> dict[str, Any]:
            return _loaded(fm)

    tree, _ = frontmatter.parse(text, handler=Guarded())
    return tree


_LISTED = regex(r"(?m)^decisions:\n(  - [^\n]*\n(?:(?:  [^\n]*)?\n)*+)(?![ \t])")

_NEXT_ITEM = regex(r"\n(?=  - )")


def _loaded(front: str) -> Tree:
    """What the guarded loader reads. Decisions that stand as they were written here are not read again, but taken as
    the objects that they were.

    The list is taken out, and each other decision is read by itself: whatever would make something else of them (a
    quotation that is open, a second key) makes an error of one, or leaves the mark in another place. Then all is read.
    """
    from ralf.format import guarded_yaml

    listed = _LISTED.search(front)
    texts = _NEXT_ITEM.split(listed[1][:-1]) if listed else []
    known = [written_item(Decision, text) for text in texts]
    mostly = len(known) <= guarded_yaml.MAX_ITEMS and 2 * sum(map(bool, known)) > len(known)
    if listed and mostly and len(front) <= guarded_yaml.MAX_BYTES:
        mark = f"list-{os.urandom(8).hex()}"
        with suppress(guarded_yaml.BadYaml, KeyError):
            tree = guarded_yaml.load(f"{front[: listed.start()]}decisions: [{mark}]\n{front[listed.end() :]}")
            made = [
                guarded_yaml.load(f"decisions:\n{text}\n")["decisions"] if item is None else [item]
                for text, item in zip(texts, known, strict=True)
            ]
            if tree.get("decisions") == [mark] and all(isinstance(one, list) and len(one) == 1 for one in made):
                return tree | {"decisions": [item for (item,) in made]}
    return guarded_yaml.load(front)


def _check_version(version: str, where: object) -> None:
    """LaterRouteFile for a format that need not mean what it means here: what we wrote of it would be less."""
    said = _VERSION.match(version)
    if said and int(said[1]) > int(FORMAT_VERSION.partition(".")[0]):
        what = f"is of format {version[:40]}, written by a later version of ralf: left as it is"
        raise LaterRouteFile(where, what, "update ralf, or move the file away to have it made anew from the journal")


def _kept(noted: Mapping[str, str], context: RouteContext) -> tuple[Comment, ...]:
    """The comments by the key above which they will stand, in the order of a file of ours; at the end those of a key
    that holds nothing.
    """
    shown = shallow(context)
    kept = [Comment(key, noted[key]) for key in shown if key in noted]
    rest = [said for key, said in noted.items() if key not in shown]
    return (*kept, Comment(text="\n".join(rest))) if rest else tuple(kept)


def _split(text: str, where: object) -> tuple[str, str]:
    """Front matter and body: between the first line and the next that is exactly the fence, and what follows."""
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        raise DamagedRouteFile(where, f"does not begin with {FENCE}", _hint(where), line=1)
    for number, line in enumerate(lines[1:], start=1):
        if line == FENCE:
            return "".join(line + "\n" for line in lines[1:number]), "\n".join(lines[number + 1 :])
    raise DamagedRouteFile(where, f"the front matter has no closing {FENCE}", _hint(where), line=1)


def _hint(where: object) -> str:
    return f"mend the file, or move it away to have it made anew from the journal: {where}"


def _body(text: str) -> Tree:
    lines = text.split("\n")
    fenced = _fenced(lines)
    free = [number for number in range(len(lines)) if number not in fenced]
    footer = next((number for number in free if _is_footer(lines, number)), len(lines))
    below = _between(lines, _behind_footer(lines, footer), len(lines))
    start = next((number for number in free if number < footer and lines[number].rstrip() in _HISTORIES), None)
    if start is None:
        return {"before": _between(lines, 0, footer), "below": below}
    free = [number for number in free if start < number < footer]
    end = _end_of_history(lines, free, footer)
    heads = [number for number in free if number < end and lines[number].startswith("### ")]
    return {
        "before": _between(lines, 0, start),
        "preface": _between(lines, start + 1, heads[0] if heads else end),
        "sections": [
            _section(lines[head].rstrip(), _between(lines, head + 1, last, leading=False))
            for head, last in zip(heads, [*heads[1:], end], strict=False)
        ],
        "after": _between(lines, end, footer, leading=False),
        "below": below,
    }


def _between(lines: list[str], first: int, last: int, *, leading: bool = True) -> str:
    """Lines as text, without the blank line that a file has before it (`leading`) and after it; "" for blank ones."""
    part = lines[first:last]
    if not any(part):
        return ""
    if leading and not part[0]:
        part = part[1:]
    return "\n".join(part[:-1] if not part[-1] else part)


def _end_of_history(lines: list[str], free: list[int], footer: int) -> int:
    """Where the history ends: at a heading of its own level or above, unless an older checkpoint follows below it."""
    numbers = {number: int(match[1]) for number in free if (match := _SECTION.match(lines[number].rstrip()))}
    follows: dict[int, float] = {}  # of each line, the lowest number of a section below it
    lowest: float = inf
    for number in reversed(free):
        follows[number] = lowest
        lowest = min(lowest, numbers.get(number, inf))
    seen: float = inf
    for number in free:
        if _HEADING.match(lines[number]) and not follows[number] < seen:
            return number
        seen = min(seen, numbers.get(number, inf))
    return footer


def _section(heading: str, text: str) -> Tree:
    match = _SECTION.match(heading)
    if match is None:
        return {"title": heading.removeprefix("### "), "text": text}
    return {"number": int(match[1]), "title": (match[2] or "").removesuffix(_CURRENT.strip()).rstrip(), "text": text}


def _fenced(lines: list[str]) -> set[int]:
    """The numbers of the lines that are code between fences; a fence that is never closed is none."""
    marks = [(n, match[1], line[match.end() :]) for n, line in enumerate(lines) if (match := _CODE_FENCE.match(line))]
    closing: list[int] = []  # of each mark: how long a fence of its kind may be to be closed further down
    longest = {"`": 0, "~": 0}
    for _, mark, rest in reversed(marks):
        closing.append(longest[mark[0]])
        if not rest.strip():
            longest[mark[0]] = max(longest[mark[0]], len(mark))
    fenced: set[int] = set()
    opened: tuple[int, str] | None = None
    for (number, mark, rest), closed in zip(marks, reversed(closing), strict=True):
        if opened is None:
            if len(mark) <= closed and "`" not in rest:
                opened = number, mark
        elif mark[0] == opened[1][0] and len(mark) >= len(opened[1]) and not rest.strip():
            fenced.update(range(opened[0], number + 1))
            opened = None
    return fenced


def _is_footer(lines: list[str], number: int) -> bool:
    """Whether our footer stands here, or the rule before it."""
    if lines[number] == FENCE:
        number += 1
        while number < len(lines) and not lines[number].strip():
            number += 1
    return number < len(lines) and lines[number] in (FOOTER, _OLD_FOOTER)


def _behind_footer(lines: list[str], number: int) -> int:
    """The line behind the footer that stands here; the end where none does."""
    while number < len(lines) and lines[number] not in (FOOTER, _OLD_FOOTER):
        number += 1
    return min(number + 1, len(lines))


# ---- rendering ----


def render(context: RouteContext) -> str:
    """The route file that shows a context; `parse(render(context)) == context` for clean text."""
    text = "\n".join(_pieces(context)) + "\n"
    body = context.body
    if body.crlf:
        text = text.replace("\n", "\r\n")
    return f"\ufeff{text}" if body.bom else text


def estimate(context: RouteContext) -> int:
    """About how many tokens the route file has: what `tokens.estimate` says of its text."""
    pieces = _pieces(replace(context, decisions=context.decisions[:1]))
    breaks = pieces.count("")  # a line break, too, where there is no more
    return sum(map(_estimate, pieces)) + breaks + sum(sizes.of(context.decisions[1:]))


# A fold measures the file after each record.
_estimate = lru_cache(maxsize=1024)(tokens.estimate)


def _pieces(context: RouteContext) -> list[str]:
    """The text in pieces that a line break joins."""
    tree = shallow(context.as_filed())
    body = context.body
    tree.pop(BODY, None)
    front = [FENCE, *_front(tree, {comment.key: comment.text for comment in body.comments}), FENCE]
    below = [body.before, HISTORY, body.preface, *_sections(body.sections), body.after, FENCE, FOOTER, body.below]
    return front + [piece for text in below if text for piece in ("", text)]


def _front(tree: Tree, noted: Mapping[str, str]) -> list[str]:
    """The front matter, each comment above its key; what was noted above a key that is gone stands at the end."""
    if not noted:
        return yaml_pieces(tree)
    lines = [line for key, inner in tree.items() for line in (*lines_of(noted, key), *yaml_pieces({key: inner}))]
    return lines + [line for key in noted if key not in tree for line in lines_of(noted, key)]


def render_sections(sections: tuple[Section, ...]) -> str:
    """The Markdown of sections, in their order; the one with the highest number is marked as current."""
    return "\n".join(f"{text}\n" for text in _sections(sections))


def _sections(sections: tuple[Section, ...]) -> Iterator[str]:
    newest = max((section.number or 0 for section in sections), default=0)
    for section in sections:
        if section.number is None:
            heading = f"### {section.title}"
        else:
            title = f": {section.title}" if section.title else ""
            mark = _CURRENT if section.number == newest and title else ""
            heading = f"### Checkpoint {section.number}{title}{mark}"
        yield f"{heading}\n{section.text}" if section.text else heading


# ---- comments ----
# YAML's loaders drop comments. One above or behind a top-level key stays there; one further inside moves above the key
# that it is in, and says which line it was about.

# Not `(?:[^"]|\\.)*`: that keeps every character on a stack, 80 MB for a long scalar.
_QUOTED = regex(r""""[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\n]*(?:''[^'\n]*)*'""")

_MARK = regex(r"#(?<![^ \t\n].)")

_INDICATOR = regex(r"[|>][-+0-9]*")

_ABOUT = 80  # characters of the line that a comment was about

_Span = tuple[int, int]


def found(front: str) -> dict[str, str]:
    """The comments of front matter that can be loaded, by the top-level key above which they stand, "" for the end."""
    if not _MARK.search(front) or not _MARK.search(_QUOTED.sub('""', front)):
        return {}  # as are nearly all
    covered, keys = _covered(front)
    lines = front.split("\n")
    comments: dict[str, list[str]] = {}
    for number, line in enumerate(lines):
        place = next((m.start() for m in _MARK.finditer(line) if not _within(covered.get(number, ()), m.start())), None)
        if place is None:
            continue
        said = clean(line[place:]).rstrip()
        if place == 0:
            key = next((name for at, name in keys if at > number), "")
        else:
            at, key = max(((at, name) for at, name in keys if at <= number), default=(number, ""))
            if (at != number or not line[:place].strip()) and (about := _about(lines, number, place)):
                said = f"{said} ← {about}"
        comments.setdefault(key, []).append(said)
    return {key: "\n".join(said) for key, said in comments.items()}


def lines_of(comments: Mapping[str, str], key: str) -> Iterable[str]:
    """The lines of the comment above a key; nothing else than a comment, whatever the text is."""
    for line in clean(comments.get(key, "")).split("\n"):
        if line.strip():
            yield line if line.startswith("#") else f"# {line}"


def _covered(front: str) -> tuple[dict[int, list[_Span]], list[tuple[int, str]]]:
    """The columns that scalars cover in each line, and the top-level keys with their lines."""
    from ralf.format import guarded_yaml  # the parser: only what is read needs it

    covered: dict[int, list[_Span]] = {}
    keys: list[tuple[int, str]] = []
    lines = front.split("\n")
    for scalar in guarded_yaml.scalars(front):
        for number, span in _spans(scalar, lines):
            covered.setdefault(number, []).append(span)
        if scalar.top:
            keys.append((scalar.line, scalar.text))
    return covered, keys


def _spans(scalar: guarded_yaml.Scalar, lines: list[str]) -> Iterable[tuple[int, _Span]]:
    if scalar.style in ("|", ">"):  # a comment may stand behind the indicator
        indicator = _INDICATOR.match(lines[scalar.line], scalar.column)
        yield scalar.line, (scalar.column, indicator.end() if indicator else scalar.column + 1)
        last = scalar.last if scalar.end else scalar.last - 1
        yield from ((number, (0, len(lines[number]))) for number in range(scalar.line + 1, min(last + 1, len(lines))))
        return
    for number in range(scalar.line, scalar.last + 1):
        first = scalar.column if number == scalar.line else 0
        yield number, (first, scalar.end if number == scalar.last else len(lines[number]))


def _within(spans: Iterable[_Span], place: int) -> bool:
    return any(first <= place < last for first, last in spans)


def _about(lines: list[str], number: int, place: int) -> str:
    """The line that a comment stands in or above."""
    line = lines[number][:place].strip()
    following = (text.strip() for text in lines[number + 1 :] if text.strip() and not text.strip().startswith("#"))
    return trimmed(one_line(line or next(following, "")).removeprefix("- "), _ABOUT)
