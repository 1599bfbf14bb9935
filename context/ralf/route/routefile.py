"""The route file as text: parse and render, nothing else. Format: docs/format.md."""

from __future__ import annotations

import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from ralf.document import comments, yaml_text
from ralf.document.tree import BadTree, Tree, from_tree, to_tree
from ralf.errors import DamagedRouteFile, LaterRouteFile
from ralf.model import BODY, FORMAT_VERSION, Body, Comment, Decision, RouteContext, Section
from ralf.text.frozen import by_identity, replace
from ralf.text.patterns import regex

FENCE = "---"

HISTORY = "## Compressed History"

FOOTER = "*Kept by ralf. Edit freely: changes are taken in at the next write.*"

_DECISIONS = "decisions"

NOW = "## Now"
"""The heading of what the record says of the work: a part of its own, for the front matter has no place for it."""

_BEGINS, _ENDS = "<!-- ralf:{}", "<!-- ralf:{} ends -->"

_BRIEF = "<!-- ralf:brief {}: written anew at each write. Edits of bullets count; other lines of yours move above. -->"

_BRIEF_SUM = regex(r"<!-- ralf:brief (x[0-9a-f]{8})\b")

MAX_LINES, MAX_SECTIONS = 200_000, 1_000
"""A file with more is not read: ours hold a few, and what compares sections takes time by their square."""

_VERSION = regex(r"([0-9]{1,9})\.[0-9]+\.[0-9]+\Z")

_HISTORIES = (HISTORY, "## Checkpoint History")

_FOOTERS = (FOOTER, "*This file is automatically managed. Do not edit manually.*")

_LAST_WORDS = regex(r"Kept by ralf\. Edit freely|This file is automatically managed")

_SECTION = regex(r"### Checkpoint (\d{1,9})(?:: (.*))?\Z")

_CURRENT = " (Current)"

_CONFLICT = regex(r"(?m)^(?:<{7} |>{7} )")

_CODE_FENCE = regex(r"(`{3,}+|~{3,}+)(?!.*`)")  # at the margin only: lines that ralf writes are never there

_STRUCTURAL = regex(r"#{1,6}(?: |\Z)|---|[`~]{3}|<!-- ralf:|\*(?:Kept by ralf|This file is auto)")

# ---- parsing ----


def parse(content: bytes, where: object) -> RouteContext:
    """The context that a route file holds. DamagedRouteFile says what is wrong and in which line; `where` names the
    file.
    """

    def damaged(what: str, line: int = 0) -> DamagedRouteFile:
        hint = f"mend the file, or move it away to have it made anew from the journal: {where}"
        return DamagedRouteFile(where, what, hint, line=line)

    try:
        text = content.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise damaged("not UTF-8", error.object.count(b"\n", 0, error.start) + 1) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if conflict := _CONFLICT.search(text):
        raise damaged("conflict markers of a merge", text.count("\n", 0, conflict.start()) + 1)
    for sign, most, what in (("\n", MAX_LINES, "lines"), ("\n### ", MAX_SECTIONS, "headings of sections")):
        if text.count(sign) > most:
            raise damaged(f"more than {most:,} {what}")
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        raise damaged(f"does not begin with {FENCE}", 1)
    if FENCE not in lines[1:]:
        raise damaged(f"the front matter has no closing {FENCE}", 1)
    begin = lines.index(FENCE, 1) + 1
    front, lines = "".join(f"{line}\n" for line in lines[1 : begin - 1]), lines[begin:]
    from ralf.document import guarded_yaml  # here: a write that knows what its file holds parses none

    try:
        tree = _front_matter(text, front)
        _taken_out(lines, "facts")  # which files of an earlier layout have
        brief = _taken_out(lines, "brief")
        context = from_tree(RouteContext, {**tree, BODY: _body(lines)})
    except guarded_yaml.BadYaml as error:
        raise damaged(error.what, error.line + 1 if error.line else 0) from None
    except _BadPart as error:
        line, what = error.args
        raise damaged(what, line + begin + 1) from None
    except BadTree as error:
        raise damaged(str(error)) from None
    version = context.context_checkpoint.version
    if (found := _VERSION.match(version)) and int(found[1]) > int(FORMAT_VERSION.partition(".")[0]):
        what = f"is of format {version[:40]}, written by a later version of ralf: left as it is"
        raise LaterRouteFile(where, what, "update ralf, or move the file away to have it made anew from the journal")
    work, shown, noted = context.active_work, "\n".join(brief[1:-1]), comments.found(front)
    sum_ = _BRIEF_SUM.match(brief[0]) if brief else None
    body = replace(
        context.body,
        brief=shown,
        comments=_kept(noted, context),
        is_brief_edited=bool(brief) and (sum_ is None or sum_[1] != _sum_of(shown)),
        is_cut=not any(map(_LAST_WORDS.search, reversed(lines))),
    )
    return replace(context, active_work=replace(work, now=work.now or now_in(shown)), body=body)


class _BadPart(ValueError):
    """A part of ours in the body that nobody can read: the number of its line within the body, from 0, and why."""


def _front_matter(text: str, front: str) -> Tree:
    """What the front matter holds. The library is given our own cut between it and the body, and our guarded loader."""
    import frontmatter
    from frontmatter.default_handlers import BaseHandler

    from ralf.document import guarded_yaml

    class Guarded(BaseHandler):
        FM_BOUNDARY = re.compile(rf"(?m)^{FENCE}$")

        def split(self, _: str) -> tuple[str, str]:
            return front, ""

        def load(self, fm: str, **_: object) -> dict[str, Any]:
            return guarded_yaml.load(fm)

    return frontmatter.parse(text, handler=Guarded())[0]


def _taken_out(lines: list[str], name: str) -> list[str]:
    """Take a part of ours out of the lines, with the blank line before it, and return its lines with both marks;
    nothing where it is not there.

    Wherever it is: no line in it can be taken for one of a person's, and no fence of theirs hides it. Of two nobody can
    tell which one says what is so: they are reported.
    """
    begins, ends = _BEGINS.format(name), _ENDS.format(name)
    marks = [n for n, line in enumerate(lines) if line.startswith((f"{begins} ", f"{begins}:"))]
    odd = [mark for n, mark in enumerate(marks) if n > 1 or (lines[mark].rstrip() == ends) != (n == 1)]
    if odd or len(marks) == 1:
        what = f"a part of ralf is one line `{begins} … -->`, and one line `{ends}` below it: no other, and none alone"
        raise _BadPart((odd or marks)[0], what)
    if not marks:
        return []
    first, last = marks[0], marks[1] + 1
    part = lines[first:last]
    del lines[first - 1 if first and not lines[first - 1] else first : last]
    return part


def as_note(line: str) -> str:
    """A line that a person wrote into our part as one that can be anywhere."""
    return f"  {line}" if _STRUCTURAL.match(line) else line


def now_in(brief: str) -> str:
    """What our part has below the heading "Now", up to the next heading of its level."""
    lines = iter(brief.split("\n"))
    if brief.startswith("# ") or NOW not in lines:  # which takes all lines up to it
        return ""
    return "\n".join(takewhile(lambda line: not line.startswith("## "), lines)).strip("\n")


def can_be_now(text: str) -> bool:
    """Whether a text can be below the heading "Now": it is read back, and no line of it is structure of the file."""
    lines = (line for line in text.split("\n") if not line.startswith("### "))
    is_plain = not any(map(_STRUCTURAL.match, lines)) and not _CONFLICT.search(text)
    return is_plain and now_in(f"{NOW}\n\n{text}") == text


def _sum_of(text: str) -> str:
    return f"x{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def _kept(noted: Mapping[str, str], context: RouteContext) -> tuple[Comment, ...]:
    """The comments by the key above which they will be, in the order of a file of ours; at the end those of a key that
    holds nothing.
    """
    shown = to_tree(context) if noted else {}
    kept = [Comment(key, noted[key]) for key in shown if key in noted]
    rest = [text for key, text in noted.items() if key not in shown]
    return (*kept, Comment(text="\n".join(rest))) if rest else tuple(kept)


def _body(lines: list[str]) -> Tree:
    fenced = _fenced(lines)
    free = [number for number in range(len(lines)) if number not in fenced]
    footer = next((number for number in free if _is_footer(lines, number)), len(lines))
    end = next((number + 1 for number in range(footer, len(lines)) if lines[number] in _FOOTERS), len(lines))
    below = _between(lines, end, len(lines))
    start = next((number for number in free if number < footer and lines[number].rstrip() in _HISTORIES), None)
    if start is None:
        return {"before": _between(lines, 0, footer), "below": below}
    free = [number for number in free if start < number < footer]
    last = max((number for number in free if _SECTION.match(lines[number].rstrip())), default=start)
    end = next((number for number in free if number > last and lines[number].startswith(("# ", "## "))), footer)
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
    return "\n".join(part[leading and not part[0] : len(part) - (not part[-1])])


def _section(heading: str, text: str) -> Tree:
    match = _SECTION.match(heading)
    if match is None:
        return {"title": heading.removeprefix("### "), "text": text}
    return {"number": int(match[1]), "title": (match[2] or "").removesuffix(_CURRENT.strip()).rstrip(), "text": text}


def _fenced(lines: list[str]) -> set[int]:
    """The numbers of the lines that are code between fences; a fence that is never closed is none."""
    fenced: set[int] = set()
    begin, mark = 0, ""
    for number, line in enumerate(lines):
        if mark and line.startswith(mark) and not line.rstrip().strip(mark[0]):
            fenced.update(range(begin, number + 1))
            mark = ""
        elif not mark and (match := _CODE_FENCE.match(line)):
            begin, mark = number, match[1]
    return fenced


def _is_footer(lines: list[str], number: int) -> bool:
    """Whether our footer is here, or the rule before it."""
    if lines[number] == FENCE:
        number = next((n for n in range(number + 1, len(lines)) if lines[n].strip()), number)
    return lines[number] in _FOOTERS


# ---- rendering ----


def render(context: RouteContext, brief: str | None = None) -> str:
    """The route file that shows a context. Not in it: tombstones, and where decisions were said.

    brief  our part above the history, None: what the context has
    """
    body, work = context.body, context.active_work
    brief = body.brief if brief is None else brief
    work = replace(work, now="") if work.now and now_in(brief) == work.now else work
    shown = replace(context, active_work=work, decisions=context.decisions[:1], body=Body())
    tree = to_tree(shown)  # the other decisions: see `_lines_of`
    for key in ("dropped", "forgotten"):
        tree.pop(key, None)
    last = tree.get("handover", {}).get("last", {})
    for key in ("now", "why", "next") if "parts" in last else ():  # they follow from the parts
        last.pop(key, None)
    above = [_BRIEF.format(_sum_of(brief)), brief, _ENDS.format("brief")] if brief else []
    history = [[text] for text in (HISTORY, body.preface, *_sections(body.sections)) if text]
    before, after, below = ([text] if text else [] for text in (body.before, body.after, body.below))
    parts = [before, above, *history, after, [FENCE], [FOOTER], below]
    noted = {one.key: one.text for one in body.comments}
    lines = [FENCE, *_front(tree, context.decisions, noted), FENCE]
    return "\n".join([*lines, *(piece for part in parts if part for piece in ("", *part))]) + "\n"


def _filed(item: Decision) -> Decision:
    """A decision without the places where it was said: the journal has them. Words that it rests on are shown."""
    if item.source is not None and (item.source.quote or item.source.extra):
        return item
    return replace(item, source=None, further_sources=()) if item.source or item.further_sources else item


@by_identity
def _lines_of(item: Decision) -> str:
    """The lines of a decision in the front matter."""
    return "\n".join(yaml_text.lines({_DECISIONS: [to_tree(_filed(item))]})[1:])


def _front(tree: Tree, decisions: Iterable[Decision], noted: Mapping[str, str]) -> Iterator[str]:
    """The front matter, each comment above its key; what was noted above a key that is gone is at the end."""
    for key, inner in tree.items():
        yield from comments.lines_of(noted, key)
        if key == _DECISIONS:
            yield f"{_DECISIONS}:"
            yield from map(_lines_of, decisions)
        else:
            yield from yaml_text.lines({key: inner})
    for key in noted:
        if key not in tree:
            yield from comments.lines_of(noted, key)


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
