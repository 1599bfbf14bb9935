"""Any text, in every field, through file and journal and back: no difference, and nothing forged.

    python -m tests.faults.roundtrip --rounds 1000000 --jobs 2

Text comes in through the door (`text.clean`, `text.as_section`, `text.one_line`); behind it the round trip is exact:

file     `parse(render(context))` is the context but for what is derived; at the margin of the front matter stand its
         own keys and nothing else, and the body has one history, the headings of its sections, one footer, no fence and
         no conflict marker but ours
journal  a record comes back out of the store as it was put in, and what it folds to survives the file, too
brief    one line opens the fence and one ends it, whatever stands between
memory   the file of a memory says every field of each of its items
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.contexts import as_read
from tests.faults import rig
from tests.faults.mutations import TOKENS
from tests.storekit import MEMORY

from ralf.document.family import Stamp
from ralf.document.tree import to_tree
from ralf.document.yaml_text import dump
from ralf.memory import file as memory_file
from ralf.memory.family import Cleaner
from ralf.memory.model import CHOICES, KINDS, Item, Memory, item_of, tree_of
from ralf.model import BODY, Body, Decision, RouteContext, Section
from ralf.route import filed, routefile
from ralf.route.fold import apply, empty
from ralf.storage import journal
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Record
from ralf.text.cleaning import as_section, clean, one_line

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

_NOT_SHOWN = (BODY, "dropped", "forgotten")


def text(rng: random.Random) -> str:
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
        return rng.choice(_STATUS) if name == "status" else text(rng)
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
    if typing.get_origin(hint) is typing.Literal:
        return rng.choice(typing.get_args(hint))
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
        key = one_line(text(rng))[:100]
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
        return {one_line(text(rng))[:100]: _tree(rng, depth - 1) for _ in range(rng.randrange(3))}
    return rng.choice((text(rng), text(rng), True, None, 7, -(10**16), 0.25))


def _sections(rng: random.Random) -> tuple[Section, ...]:
    count = rng.choice((0, 1, 1, 2, 3))
    titles = (one_line(text(rng)).removesuffix("(Current)").rstrip() for _ in range(count))
    return tuple(Section(count - n, title, section_text(rng)) for n, title in enumerate(titles))


def section_text(rng: random.Random) -> str:
    """A section as ralf writes it."""
    return as_section(text(rng)).strip("\n")


def differences(rng: random.Random) -> Iterator[str]:
    """What one case comes back as that it was not, and what it forged."""
    context: RouteContext = of(rng, RouteContext)
    yield from (*_of_file(context), *_of_page(context), *_of_brief(context), *_of_memory(rng))
    record = Record(1, rng.choice(("checkpoint", "decision")), _payload(rng))
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        store = FileStore(Path(folder))
        journal.append(store, "r", record, id=f"id {text(rng)[:40]}", after=None)
        if [found for _, found in journal.read(store, "r")] != [record]:
            yield "the record is another when it is read"
    yield from (f"folded, {what}" for what in _of_file(apply(empty("r"), record)))


def _payload(rng: random.Random) -> dict[str, Any]:
    context = of(rng, RouteContext)
    decisions = [to_tree(of(rng, Decision)) for _ in range(rng.randrange(3))]
    return {
        "decision": to_tree(of(rng, Decision)) | {"id": "DEC-001", "decision": text(rng) or "x"},
        "decisions": decisions,
        "period": [text(rng), text(rng)],
        "tokens": rng.randrange(10**6),
        "title": text(rng),
        "text": text(rng),
        "key_events": [text(rng)],
        "reason": text(rng),
        "goal": text(rng),
        "agent_type": text(rng),
        "facts": to_tree(context.facts),
        "active_work": to_tree(context.active_work),
        "source": {"session": text(rng), "from_line": 1, "to_line": 9},
    }


def _of_file(context: RouteContext) -> list[str]:
    try:
        written = routefile.render(context)
        found = routefile.parse(written.encode(), "x.md")
    except Exception as error:  # whatever it is, the text did not come back
        return [f"{type(error).__name__}: {error}"]
    wrong = [] if found == as_read(context) else ["the context is another when it is read"]
    lines = written.split("\n")
    end = lines.index("---", 1)
    margin = [line for line in lines[1:end] if line[:1] not in ("", " ")]
    keys = [dump({key: 1}).removesuffix(" 1\n") for key in to_tree(context) if key not in _NOT_SHOWN]
    if len(margin) != len(keys) or not all(line.startswith(key) for line, key in zip(margin, keys, strict=True)):
        wrong.append(f"at the margin: {margin}, expected {keys}")
    body = lines[end + 1 :]
    headings = [line for line in body if line.startswith("#")]
    expected = 1 + len(context.body.sections)
    if len(headings) != expected or headings[0] != routefile.HISTORY:
        wrong.append(f"headings: {headings}")
    if sum(line == "---" for line in body) != 1 or body.count(routefile.FOOTER) != 1:
        wrong.append("a forged rule or footer")
    if any(re.match(r"<{7} |={7}$|>{7} |`{3}|~{3}", line) for line in body):
        wrong.append("a forged fence or conflict marker")
    return wrong


def _of_page(context: RouteContext) -> list[str]:
    """The same of the file as it is written, with its brief: that nothing in it forges a mark or a part of the file."""
    try:
        page = filed.content_of(context)
        found = routefile.parse(page, "x.md")
    except Exception as error:
        return [f"with its brief: {type(error).__name__}: {error}"]
    wrong = [] if found == as_read(context) else ["with its brief: the context is another when it is read"]
    if found.body.is_brief_edited or found.body.brief != filed.brief_of(context):
        wrong.append("with its brief: it does not stand alone between its marks")
    return wrong


def _of_brief(context: RouteContext) -> list[str]:
    lines = context.render().splitlines()
    opened = [number for number, line in enumerate(lines) if "<!--" in line]
    return [] if opened == [0, len(lines) - 1] else [f"the fence opens or ends in lines {opened} of {len(lines)}"]


def _of_memory(rng: random.Random) -> list[str]:
    cleaner, memory = Cleaner(str), Memory("main", revision=7)
    for number, kind in enumerate(KINDS):
        values = {name: text(rng) for name in ("text", "command", "error", "value", "context", "source", "resolution")}
        values |= {"purpose": rng.choice(CHOICES["purpose"]), "type": rng.choice(CHOICES["type"])}
        values |= {"key": f"key {number}", "agent": "a", "uses": rng.randrange(99), "routes": ("r1", "r2")}
        known = {name: value for name, value in tree_of(Item("", kind, **values)).items() if name not in ("id", "kind")}
        item = item_of({"id": f"{kind}-1", "kind": kind, **cleaner.fields(kind, known)})
        memory = memory.put(replace(item, extra={"own field": cleaner.line(text(rng)) or "x"}))
    shown = memory_file.parse(memory_file.render(memory, Stamp(7, memory_file.LAYOUT, "0123abcd")), Path("m.md")).tree
    found = {entry.label: {"uses": "0", **entry.fields} for entry in shown.entries}
    said = {item.id: {"uses": "0", **memory_file.fields_of(item)} for item in memory.items}
    return [
        f"memory: {label}: {found.get(label)} is not {said[label]}" for label in said if found.get(label) != said[label]
    ]


_render = routefile.render


def _unquoted(context: RouteContext, *more: Any) -> str:
    """A file in whose front matter the goal stands as it was said."""
    written = _render(replace(context, goal=""), *more)
    return written.replace("\n---\n", f"\ngoal: {context.goal}\n---\n", 1) if context.goal else written


BROKEN = {"nothing is quoted": lambda: patch.object(routefile, "render", _unquoted)}


def run(size: rig.Rounds, seed: int, _: Sequence[str] = ()) -> rig.Found:
    """So many cases; what was wrong."""
    return rig.cases(differences, size.rounds, seed, first=size.first, jobs=size.jobs)


if __name__ == "__main__":
    sys.exit(rig.command("roundtrip", rig.Rounds(4_000), run, broken=BROKEN))
