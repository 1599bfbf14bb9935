"""The route file as text: parse and render, nothing else. Format: docs/format.md."""

from __future__ import annotations

import re
from typing import Any

import frontmatter
from frontmatter.default_handlers import BaseHandler

from ralf import yamltext
from ralf.context import BODY, RouteContext
from ralf.errors import DamagedRouteFile
from ralf.model import Section
from ralf.tree import BadTree, Tree, from_tree, to_tree

FENCE = "---"
HISTORY = "## Compressed History"
FOOTER = "*Kept by ralf. Edit freely: changes are taken in at the next write.*"

_HISTORIES = (HISTORY, "## Checkpoint History")
_OLD_FOOTER = "*This file is automatically managed. Do not edit manually.*"
_SECTION = re.compile(r"### Checkpoint (\d{1,9})(?:: (.*))?\Z")
_HEADING = re.compile(r"#{1,2} ")
_CURRENT = " (Current)"
_CONFLICT = re.compile(r"(?m)^(?:<{7} |={7}$|>{7} )")
_CODE_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


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
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DamagedRouteFile(where, "not UTF-8", _hint(where), line=line) from None
    text = text.replace("\r\n", "\n")
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        raise DamagedRouteFile(where, "conflict markers of a merge", _hint(where), line=line)
    front, body = _split(text, where)
    try:
        tree, _ = frontmatter.parse(text, handler=_Guarded(front))
    except yamltext.BadYaml as error:
        raise DamagedRouteFile(where, error.what, _hint(where), line=error.line + 1 if error.line else 0) from None
    try:
        return from_tree(RouteContext, {**tree, BODY: _body(body)})
    except BadTree as error:
        raise DamagedRouteFile(where, str(error), _hint(where)) from None


def _split(text: str, where: object) -> tuple[str, str]:
    """Front matter and body: between the first line and the next that is exactly the fence, and what follows."""
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        raise DamagedRouteFile(where, f"does not begin with {FENCE}", _hint(where), line=1)
    for number, line in enumerate(lines[1:], start=1):
        if line == FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    raise DamagedRouteFile(where, f"the front matter has no closing {FENCE}", _hint(where), line=1)


def _hint(where: object) -> str:
    return f"mend the file, or move it away to have it made anew from the journal: {where}"


def _body(text: str) -> Tree:
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if line.rstrip() in _HISTORIES), None)
    if start is None:
        return {"before": _after("\n".join(lines))}
    sections: list[Tree] = []
    current: list[str] = []
    preface = current
    fence = ""
    end = len(lines)
    for number in range(start + 1, len(lines)):
        line = lines[number]
        fence = _fence_after(fence, line)
        if not fence and (_HEADING.match(line) or _is_footer(lines, number)):
            end = number
            break
        if not fence and line.startswith("### "):
            current = []
            sections.append({"heading": line.rstrip(), "lines": current})
        else:
            current.append(line)
    before = "\n".join([*lines[:start], *preface]).strip("\n")
    return {
        "before": before,
        "sections": [_section(section["heading"], "\n".join(section["lines"]).strip("\n")) for section in sections],
        "after": _after("\n".join(lines[end:])),
    }


def _section(heading: str, text: str) -> Tree:
    match = _SECTION.match(heading)
    if match is None:
        return {"title": heading.removeprefix("### "), "text": text}
    return {"number": int(match[1]), "title": (match[2] or "").removesuffix(_CURRENT.strip()).rstrip(), "text": text}


def _fence_after(fence: str, line: str) -> str:
    """The code fence that is open after a line, "" for none."""
    match = _CODE_FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    return "" if match[1][0] == fence[0] and len(match[1]) >= len(fence) and not line.strip(" `~") else fence


def _is_footer(lines: list[str], number: int) -> bool:
    """Whether the rule before our footer stands here."""
    following = next((line for line in lines[number + 1 :] if line.strip()), "")
    return lines[number] == FENCE and following in (FOOTER, _OLD_FOOTER)


def _after(text: str) -> str:
    """Text that a person put around the history, without our footer and the rule above it."""
    for footer in (FOOTER, _OLD_FOOTER):
        if text.rstrip().endswith(footer):
            text = text.rstrip().removesuffix(footer).rstrip().removesuffix(FENCE)
    return text.strip("\n")


# ---- rendering ----


def render(context: RouteContext) -> str:
    """The route file that shows a context; `parse(render(context)) == context` for clean text."""
    tree = to_tree(context)
    body = context.body
    tree.pop(BODY, None)
    parts = [f"{FENCE}\n{yamltext.dump(tree)}{FENCE}\n"]
    if body.before:
        parts.append(body.before + "\n")
    parts.append(HISTORY + "\n")
    if body.sections:
        parts.append(render_sections(body.sections))
    if body.after:
        parts.append(body.after + "\n")
    parts += [f"{FENCE}\n", FOOTER + "\n"]
    return "\n".join(parts)


def render_sections(sections: tuple[Section, ...]) -> str:
    """The Markdown of sections, in their order; the one with the highest number is marked as current."""
    newest = max((section.number or 0 for section in sections), default=0)
    return "\n".join(_rendered(section, newest) for section in sections)


def _rendered(section: Section, newest: int) -> str:
    if section.number is None:
        heading = f"### {section.title}"
    else:
        title = f": {section.title}" if section.title else ""
        mark = _CURRENT if section.number == newest and title else ""
        heading = f"### Checkpoint {section.number}{title}{mark}"
    return f"{heading}\n{section.text}\n" if section.text else f"{heading}\n"
