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
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.contexts import as_read, hostile, of
from tests.faults import rig
from tests.storekit import MEMORY

from ralf.document.family import Stamp
from ralf.document.tree import to_tree
from ralf.document.yaml_text import dump
from ralf.memory import file as memory_file
from ralf.memory.family import Cleaner
from ralf.memory.model import CHOICES, KINDS, Item, Memory, item_of, tree_of
from ralf.model import BODY, Decision, RouteContext
from ralf.route import filed, routefile
from ralf.route.fold import apply, empty
from ralf.storage import journal
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Record

_NOT_SHOWN = (BODY, "dropped", "forgotten")


def differences(rng: random.Random) -> Iterator[str]:
    """What one case comes back as that it was not, and what it forged."""
    context: RouteContext = of(rng, RouteContext)
    yield from (*_of_file(context), *_of_page(context), *_of_brief(context), *_of_memory(rng))
    record = Record(1, rng.choice(("checkpoint", "decision")), _payload(rng))
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        store = FileStore(Path(folder))
        journal.append(store, "r", record, id=f"id {hostile(rng)[:40]}", after=None)
        if [found for _, found in journal.read(store, "r")] != [record]:
            yield "the record is another when it is read"
    yield from (f"folded, {what}" for what in _of_file(apply(empty("r"), record)))


def _payload(rng: random.Random) -> dict[str, Any]:
    context = of(rng, RouteContext)
    decisions = [to_tree(of(rng, Decision)) for _ in range(rng.randrange(3))]
    return {
        "decision": to_tree(of(rng, Decision)) | {"id": "DEC-001", "decision": hostile(rng) or "x"},
        "decisions": decisions,
        "period": [hostile(rng), hostile(rng)],
        "tokens": rng.randrange(10**6),
        "title": hostile(rng),
        "text": hostile(rng),
        "key_events": [hostile(rng)],
        "reason": hostile(rng),
        "goal": hostile(rng),
        "agent_type": hostile(rng),
        "facts": to_tree(context.facts),
        "active_work": to_tree(context.active_work),
        "source": {"session": hostile(rng), "from_line": 1, "to_line": 9},
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
        values = {
            name: hostile(rng) for name in ("text", "command", "error", "value", "context", "source", "resolution")
        }
        values |= {"purpose": rng.choice(CHOICES["purpose"]), "type": rng.choice(CHOICES["type"])}
        values |= {"key": f"key {number}", "agent": "a", "uses": rng.randrange(99), "routes": ("r1", "r2")}
        known = {name: value for name, value in tree_of(Item("", kind, **values)).items() if name not in ("id", "kind")}
        item = item_of({"id": f"{kind}-1", "kind": kind, **cleaner.fields(kind, known)})
        memory = memory.put(replace(item, extra={"own field": cleaner.line(hostile(rng)) or "x"}))
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
