"""The route file as text: parse and render, nothing else. Format: docs/format.md."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any

import frontmatter
from frontmatter.default_handlers import BaseHandler

from ralf import comments, tokens, yamltext, yamlwriting
from ralf.context import BODY, FORMAT_VERSION, RouteContext
from ralf.errors import DamagedRouteFile, LaterRouteFile
from ralf.model import Comment, Section
from ralf.remembered import Remembered
from ralf.tree import BadTree, Tree, from_tree, outline

FENCE = "---"
HISTORY = "## Compressed History"
FOOTER = "*Kept by ralf. Edit freely: changes are taken in at the next write.*"

MAX_LINES, MAX_SECTIONS = 200_000, 1_000
"""A file with more is not read: ours hold a few, and what compares sections takes time by their square."""

_VERSION = re.compile(r"([0-9]{1,9})\.[0-9]+\.[0-9]+\Z")
_HISTORIES = (HISTORY, "## Checkpoint History")
_OLD_FOOTER = "*This file is automatically managed. Do not edit manually.*"
_SECTION = re.compile(r"### Checkpoint (\d{1,9})(?:: (.*))?\Z")
_HEADING = re.compile(r"#{1,2} ")
_CURRENT = " (Current)"
_CONFLICT = re.compile(r"(?m)^(?:<{7} |>{7} )")
_CODE_FENCE = re.compile(r"(`{3,}|~{3,})")  # at the margin only: lines that ralf writes are never there


# ---- parsing ----


class _Guarded(BaseHandler):
    """Gives the library our own cut between front matter and body, and reads the first by the guarded loader."""

    FM_BOUNDARY = re.compile(rf"(?m)^{FENCE}$")

    def __init__(self, front: str) -> None:
        super().__init__()
        self._front = front

    def split(self, _: str) -> tuple[str, str]:
        return self._front, ""

    def load(self, fm: str, **_: object) -> dict[str, Any]:
        return yamltext.load(fm)


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
    try:
        tree, _ = frontmatter.parse(text, handler=_Guarded(front))
    except yamltext.BadYaml as error:
        raise DamagedRouteFile(where, error.what, _hint(where), line=error.line + 1 if error.line else 0) from None
    try:
        context = from_tree(RouteContext, {**tree, BODY: {**_body(body), **layout}})
    except BadTree as error:
        raise DamagedRouteFile(where, str(error), _hint(where)) from None
    _check_version(context.context_checkpoint.version, where)
    noted = comments.found(front)
    return replace(context, body=replace(context.body, comments=_kept(noted, context))) if noted else context


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
    shown = outline(context)
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


_last: tuple[RouteContext | None, list[str]] = (None, [])


def render(context: RouteContext) -> str:
    """The route file that shows a context; `parse(render(context)) == context` for clean text."""
    text = "\n".join(_pieces(context)) + "\n"
    body = context.body
    if body.crlf:
        text = text.replace("\n", "\r\n")
    return f"\ufeff{text}" if body.bom else text


def estimate(context: RouteContext) -> int:
    """About how many tokens the route file has: what `tokens.estimate` says of its text, made anew only where the text
    is new.
    """
    pieces = _pieces(context)
    return sum(map(_estimates.__getitem__, pieces)) + pieces.count("")  # a line break, too, where there is no more


_estimates = Remembered(tokens.estimate)


def _pieces(context: RouteContext) -> list[str]:
    """The text in pieces that a line break joins.

    Those of the last context are remembered: a write renders the same one to measure it, to hash it and to store it.
    """
    global _last
    last = _last  # another thread may put another context's there
    if last[0] is not context:
        last = _last = (context, _made(context))
    return last[1]


def _made(context: RouteContext) -> list[str]:
    from ralf.cap import shown  # which measures by what is written here

    tree = outline(shown(context))
    body = context.body
    tree.pop(BODY, None)
    front = [FENCE, *_front(tree, {comment.key: comment.text for comment in body.comments}), FENCE]
    below = [body.before, HISTORY, body.preface, *_sections(body.sections), body.after, FENCE, FOOTER, body.below]
    return front + [piece for text in below if text for piece in ("", text)]


def _front(tree: Tree, noted: Mapping[str, str]) -> list[str]:
    """The front matter, each comment above its key; what was noted above a key that is gone stands at the end."""
    if not noted:
        return yamlwriting.pieces(tree)
    lines: list[str] = []
    for key, value in tree.items():
        lines += comments.lines_of(noted, key)
        lines += yamlwriting.pieces({key: value})
    for key in noted:
        if key not in tree:
            lines += comments.lines_of(noted, key)
    return lines


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
