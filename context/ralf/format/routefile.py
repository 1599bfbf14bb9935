"""The route file as text: parse and render, nothing else. Format: docs/format.md."""

from __future__ import annotations

import os
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from math import inf
from typing import Any

from ralf.errors import DamagedRouteFile, LaterRouteFile
from ralf.format import comments, listing, places
from ralf.format.codec import BadTree, ById, Tree, from_tree, shallow, written_item, yaml_pieces
from ralf.format.listing import Listed
from ralf.model import BODY, FORMAT_VERSION, Body, Comment, Decision, Facts, RouteContext, Section
from ralf.text import tokens
from ralf.text.patterns import regex

FENCE = "---"

HISTORY = "## Compressed History"

FOOTER = "*Kept by ralf. Edit freely: changes are taken in at the next write.*"

BRIEF_TOKENS, HANDED_TOKENS = 700, 1_600
"""What our part above the history may take beside what the record says of now, by estimate; and its hand-over."""

NOW = "## Now"
"""The heading of what the record says of the work: a part of its own, for the front matter has no place for it."""

MOST_IN_FRONT = 0.42
"""The share of a file that its front matter may take, by estimate, so that it surely has at most half of it. Older
decisions stand below the history where it would be more.
"""

SHORT_FILE = 3_500
"""Tokens up to which a file is short enough to be read whole: its front matter may take any share."""

_BEGINS, _ENDS = "<!-- ralf:{}", "<!-- ralf:{} ends -->"

_BRIEF = "<!-- ralf:brief {}: written anew at each write. Edits of bullets count; other lines of yours move above. -->"

_BRIEF_SUM = regex(r"<!-- ralf:brief (x[0-9a-f]{8})\b")

_FACTS = "<!-- ralf:facts: written anew at each write. Edits of decisions count; other lines of yours move above. -->"

_SCHEMA = "# yaml-language-server: $schema="

SCHEMA = "route-file.schema.json"
"""The file beside the route files in which editors find the schema of the front matter (`ralf.format.schema`)."""

MAX_LINES, MAX_SECTIONS = 200_000, 1_000
"""A file with more is not read: ours hold a few, and what compares sections takes time by their square."""

_VERSION = regex(r"([0-9]{1,9})\.[0-9]+\.[0-9]+\Z")

_HISTORIES = (HISTORY, "## Checkpoint History")

_OLD_FOOTER = "*This file is automatically managed. Do not edit manually.*"

_LAST_WORDS = regex(r"Kept by ralf\. Edit freely|This file is automatically managed")

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

    front = f"\n{front}".replace(f"\n{_SCHEMA}{SCHEMA}\n", "\n")[1:]
    try:
        tree = _front_matter(text, front)
    except guarded_yaml.BadYaml as error:
        number = error.line + 1 if error.line else 0
        raise DamagedRouteFile(where, error.what, _hint(where), line=number) from None
    lines = body.split("\n")
    offset = text.count("\n") - len(lines) + 2
    brief, below = _cut_out(lines, offset, where)
    older, listed = listing.read(below[1:-1])
    try:
        context = from_tree(RouteContext, {**tree, BODY: _body(lines)})
    except BadTree as error:
        raise DamagedRouteFile(where, str(error), _hint(where)) from None
    _check_version(context.context_checkpoint.version, where)
    is_cut = not any(_LAST_WORDS.search(line) for line in reversed(lines))
    shown = replace(_with_brief(context.body, brief), listed="\n".join(listed), is_cut=is_cut)
    context = replace(context, decisions=(*older, *context.decisions), body=shown)
    if not context.active_work.now and (now := now_in(shown.brief)):
        context = replace(context, active_work=replace(context.active_work, now=now))
    noted = comments.found(front, ours=f"{_SCHEMA}{SCHEMA}")  # there still where an editor has moved it
    return replace(context, body=replace(context.body, comments=_kept(noted, context))) if noted else context


def _cut_out(lines: list[str], offset: int, where: object) -> tuple[list[str], list[str]]:
    """Take our parts, the brief and the facts, out of the lines, each with the blank line before it, and return their
    lines with both marks; nothing for one that is not there.

    Wherever they stand: no line in them can be taken for one of a person's, and no fence of theirs hides them. Of two
    nobody can tell which one says what is so: they are reported.
    """
    spans = [_span(lines, name, offset, where) for name in ("brief", "facts")]
    for (first, last), (other, _) in (spans, spans[::-1]):
        if first < other < last:
            raise DamagedRouteFile(where, "a part of ralf within another", _hint(where), line=other + offset)
    brief, facts = (lines[first:last] for first, last in spans)
    for first, last in sorted(spans, reverse=True):
        del lines[first - 1 if first and first < last and not lines[first - 1] else first : last]
    return brief, facts


def _span(lines: Sequence[str], name: str, offset: int, where: object) -> tuple[int, int]:
    """Where a part of ours begins, and where it has ended."""
    begins, ends = _BEGINS.format(name), _ENDS.format(name)

    def damaged(number: int, what: str) -> DamagedRouteFile:
        return DamagedRouteFile(where, what, _hint(where), line=number + offset)

    marks = [n for n, line in enumerate(lines) if line.startswith((f"{begins} ", f"{begins}:"))]
    if not marks:
        return 0, 0
    first = marks[0]
    if lines[first].rstrip() == ends:
        raise damaged(first, f"the end of a part, without `{begins} … -->` above it")
    last = next((n for n in marks if lines[n].rstrip() == ends), None)
    if last is None:
        raise damaged(first, f"a part without `{ends}` below it")
    if more := [n for n in marks if n not in (first, last)]:
        raise damaged(more[0], f"a second part that begins with `{begins}`, or a second end: leave one")
    return first, last + 1


_STRUCTURAL = regex(r"#{1,6}(?: |\Z)|---|[`~]{3}|<!-- ralf:|\*(?:Kept by ralf|This file is auto)")


def as_note(line: str) -> str:
    """A line that a person wrote into one of our parts as one that can stand anywhere."""
    return f"  {line}" if _STRUCTURAL.match(line) else line


def _with_brief(body: Body, lines: list[str]) -> Body:
    if not lines:
        return body
    told, text = _BRIEF_SUM.match(lines[0]), "\n".join(lines[1:-1])
    return replace(body, brief=text, is_brief_edited=told is None or told[1] != _sum_of(text))


def now_in(brief: str) -> str:
    """What stands in our part below the heading "Now", up to the next heading of its level."""
    if brief.startswith("# "):  # as earlier versions laid it out
        return ""
    lines = iter(brief.split("\n"))
    if NOW not in lines:  # which takes all lines up to it
        return ""
    return "\n".join(takewhile(lambda line: not line.startswith("## "), lines)).strip("\n")


def can_be_now(text: str) -> bool:
    """Whether a text can stand below the heading "Now": it is read back, and no line of it is structure of the file."""
    lines = (line for line in text.split("\n") if not line.startswith("### "))
    is_plain = not any(map(_STRUCTURAL.match, lines)) and not _CONFLICT.search(text)
    return is_plain and now_in(f"{NOW}\n\n{text}") == text


def _sum_of(text: str) -> str:
    return f"x{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"


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


def _body(lines: list[str]) -> Tree:
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
    """The route file that shows a context. `parse` reads all of it but facts, and what is derived from the rest."""
    return "\n".join(_whole(context)) + "\n"


def _listed_size(decision: Decision) -> int:
    (line,) = listing.decision_lines.of((decision,))
    return tokens.estimate(line) + places.TOKENS * len(places.of(decision)) + 1


_in_body = ById(_listed_size)
"""As `places.sizes`, of a decision among the older ones, below the history."""


def estimate(context: RouteContext) -> int:
    """About how many tokens the route file has: what `tokens.estimate` says of its text."""
    now = tokens.estimate(context.active_work.now)
    work = replace(context.active_work, now="")
    context = replace(context, body=replace(context.body, brief=""), active_work=work)
    front, body = (_sum_of_estimates(part) for part in _pieces(replace(context, decisions=context.decisions[:1])))
    front, body = front + sum(places.sizes.of(context.decisions[1:])), body + now + BRIEF_TOKENS
    body += min(HANDED_TOKENS, front) if context.handover.last is not None else 0  # it says nothing that front does not
    return _moved(context, front, body)[1]


def _moved(context: RouteContext, front: int, body: int) -> tuple[int, int]:
    """How many decisions stand below the history, for a front matter and a body of so many tokens with all in the
    first, the places where they were said as well; and how many tokens the file then has.
    """
    moved = 0
    if front + body > SHORT_FILE:
        for size, listed in zip(places.sizes.of(context.decisions), _listed_sizes(context.decisions), strict=True):
            if front <= MOST_IN_FRONT * (front + body):
                break
            front, body, moved = front - size, body + listed, moved + 1
    return moved, front + body


def _listed_sizes(decisions: Sequence[Decision]) -> Iterator[int]:
    """What each takes in the body, a few at a time: the newest stay in the front matter, and need no size there."""
    for start in range(0, len(decisions), _FEW):
        yield from _in_body.of(decisions[start : start + _FEW])


_FEW = 32


def _sum_of_estimates(pieces: Sequence[str]) -> int:
    return sum(map(_estimate, pieces)) + pieces.count("")  # a line break, too, where there is no more


# A fold measures the file after each record.
_estimate = lru_cache(maxsize=1024)(tokens.estimate)


def _whole(context: RouteContext) -> list[str]:
    """The text in pieces that a line break joins, with as many decisions in its front matter as it has room for."""
    front, body = _pieces(context)
    told = places.TOKENS * sum(len(places.of(item)) for item in context.decisions)  # as `_moved` counts them
    older, _ = _moved(context, _sum_of_estimates(front) + told, _sum_of_estimates(body) - told)
    front, body = _pieces(context, older) if older else (front, body)
    return front + body


def _pieces(context: RouteContext, moved: int = 0) -> tuple[list[str], list[str]]:
    """The front matter and the body in pieces that a line break joins; `moved`: decisions that stand in the body."""
    context = context.as_filed()
    told = places.told(context.decisions)
    decisions = places.without(context.decisions, told)
    words: dict[str, Any] = {key: getattr(context.active_work, key) for key in ("last_statement", "last_output")}
    none: dict[str, Any] = dict.fromkeys(words, "")
    if now_in(context.body.brief) == context.active_work.now:
        none["now"] = ""
    work = replace(context.active_work, **none)
    body = context.body
    tree = shallow(replace(context, facts=_NO_FACTS, active_work=work))
    tree.pop(BODY, None)
    if context.handover.last is not None and context.handover.last.parts:
        last = {key: value for key, value in tree["handover"]["last"].items() if key not in ("now", "why", "next")}
        tree["handover"] = {**tree["handover"], "last": last}  # they follow from the parts
    if moved < len(decisions):
        tree |= {"decisions": decisions[moved:]} if "decisions" in tree else {}
    else:
        tree.pop("decisions", None)
    notes = {comment.key: comment.text for comment in body.comments}
    front = [FENCE, *_front(tree, notes), *(_schema_line(notes) if tree else ()), FENCE]
    listed = listing.lines(Listed(context.facts, told, tuple(context.decisions[:moved]), words))
    brief = [_BRIEF.format(_sum_of(body.brief)), body.brief, _ENDS.format("brief")] if body.brief else []
    facts = [_FACTS, *listed, _ENDS.format("facts")] if listed else []
    history = [[text] for text in (HISTORY, body.preface, *_sections(body.sections)) if text]
    kept = ([text] if text else [] for text in (body.before, body.after, body.below))
    before, after, below = kept
    parts = [before, brief, *history, facts, after, [FENCE], [FOOTER], below]
    return front, [piece for part in parts if part for piece in ("", *part)]


_NO_FACTS = Facts()


def _schema_line(notes: Mapping[str, str]) -> list[str]:
    """What tells editors the schema, unless a person named another one."""
    return [] if any(_SCHEMA in note for note in notes.values()) else [f"{_SCHEMA}{SCHEMA}"]


def _front(tree: Tree, noted: Mapping[str, str]) -> list[str]:
    """The front matter, each comment above its key; what was noted above a key that is gone stands at the end."""
    if not noted:
        return yaml_pieces(tree)
    lines = [
        line for key, inner in tree.items() for line in (*comments.lines_of(noted, key), *yaml_pieces({key: inner}))
    ]
    return lines + [line for key in noted if key not in tree for line in comments.lines_of(noted, key)]


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
