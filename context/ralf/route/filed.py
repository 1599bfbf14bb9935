"""The route file of a context: its text begins with the brief, and what a person wrote into that stays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ralf.brief import rendering, wording
from ralf.format import routefile, spread
from ralf.model import Decision, RouteContext
from ralf.storage import files
from ralf.text import tokens

BRIEF_BYTES = 2_300
"""Of the brief in the file: a page of it, for who opens the file. What is handed to agents has a budget of its own."""


_last: tuple[RouteContext, str, bytes] | None = None
"""What was made last: a record names the file before it is written. Replaced as a whole: threads may be looking."""


def content_of(context: RouteContext, clone: str = "") -> bytes:
    """The bytes of a context's route file: always the same for the same context.

    clone  the tag of the clone that writes it, where route files are shared: then it is laid out for git to merge
           (`ralf.format.spread`), and has no brief, which would be another one in each clone
    """
    global _last
    last = _last
    if last is None or last[0] is not context or last[1] != clone:
        last = _last = context, clone, _content_of(spread.laid_out(context, clone))
    return last[2]


def _content_of(context: RouteContext) -> bytes:
    brief = "" if context.body.is_spread else brief_of(context)
    return routefile.render(replace(context, body=replace(context.body, brief=brief, is_brief_edited=False))).encode()


SCHEMA_FILE = Path(routefile.__file__).with_name("route-file.schema.json")


def place_schema(folder: Path) -> None:
    """Put the schema for editors beside the route files, unless it is there. It is a help: no error is raised."""
    path = folder / routefile.SCHEMA
    with suppress(OSError):
        if not path.exists() or path.stat().st_size != SCHEMA_FILE.stat().st_size:
            # in place: a writer that dies leaves nothing else behind
            with open(path, "wb", opener=files.open_single_link) as file:
                file.write(SCHEMA_FILE.read_bytes())
                os.fsync(file.fileno())


def brief_of(context: RouteContext) -> str:
    """The text with which the body of a context's file begins."""
    size = BRIEF_BYTES
    context = context.as_filed()
    context = replace(context, decisions=tuple(_shown(context.decisions)))
    while tokens.estimate(text := rendering.filed(context, size)) > routefile.BRIEF_TOKENS:
        size = size * 3 // 4
    return text.rstrip("\n").replace("\n## ", "\n\n## ")  # as people like to see it


def _shown(decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions of which the brief in the file may show any: of those in force, beside rules, the newest that would
    fill it.
    """
    left, left_out = BRIEF_BYTES, set[int]()
    for item in reversed(decisions):
        if item.status == "active" and item.kind == "decision" and not item.pinned:
            if left <= 0:
                left_out.add(id(item))
            else:
                left -= len(wording.decision(item))
    return [item for item in decisions if id(item) not in left_out]


def with_own_lines(found: RouteContext, base: RouteContext | None = None) -> RouteContext:
    """What a file says, with the lines that a person wrote into its brief below it: the next write makes the brief
    anew.

    base  what the file showed before; None where that is not known
    """
    if not found.body.is_brief_edited:
        return found
    known = {line for context in (found, base) if context is not None for line in brief_of(context).split("\n")}
    own = [routefile.as_note(line) for line in _own(found.body.brief, known)]
    before = "\n\n".join(filter(None, ["\n".join(own), found.body.before]))
    has_moved = bool(own) or found.body.has_moved
    return replace(found, body=replace(found.body, before=before, brief="", is_brief_edited=False, has_moved=has_moved))


def _own(brief: str, known: set[str]) -> Iterator[str]:
    kept = {line.strip() for line in known}
    return (line for line in brief.split("\n") if line.strip() and line.strip() not in kept)
