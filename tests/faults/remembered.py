"""Random edits by hand of the file of a memory, as people make them: no field is lost, and nothing else changes.

    python -m tests.faults.remembered --rounds 20000 --jobs 2

Each round renders a memory of hostile texts, changes the file (a field, a new or a removed bullet, a note, a section of
one's own; with other bullets, line ends, indentation, and long lines wrapped), and takes the file in. Every
item has to be as it was but for what was changed, and the file rendered anew has to say all that the memory holds.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ralf.document.family import Stamp
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.memory import family as memory_family, file as memory_file
from ralf.memory.family import Cleaner, MemoryFamily
from ralf.memory.file import fields_of, lines_of, parse, render
from ralf.memory.model import CHOICES, FIELDS, KINDS, ORIGINS, Item, Memory, item_of, tree_of

PATH = Path("memory/main.md")
STAMP = Stamp(7, memory_file.LAYOUT, "0123abcd")
_CHUNK = 500
_PARTS = (
    *("npm test", "`pytest -q`", "[trap-1]", "[fact-9] x", "(3 uses, 90% confidence)", "key: value", "a: b: c", "::"),
    *("- a list item", "* star", "## Traps", "# Agent Memory - x", "---", "```", "~~~", "<!-- ralf memory -->", "-->"),
    *("_Left out here: 3 items_", "_Last compacted: never_", "*Edit freely: ralf takes changes in.*"),
    *("naïve", "日本語"),
    *("<<<<<<< HEAD", ">>>>>>> x", "Revision 3 of this memory.", "a; b; c", "|", "\\", '"', "'", "{}", "1", "."),
    "x" * 80,
)  # fmt: skip
_TEXTS = ("text", "source", "added", "last_seen", "expires")
_OF_KIND = {
    "trap": ("command", "error", "resolution"),
    "command": ("command", "purpose"),
    "preference": ("key", "value"),
    "fact": ("text",),
    "pattern": ("text", "type"),
    "relationship": ("agent", "context"),
}


@dataclass
class Edit:
    """A file that was edited, and what the memory is to be then."""

    text: str
    items: dict[str, Item]
    new: list[Item] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)


# ---- memories ----


def words(random_: random.Random, cleaner: Cleaner) -> str:
    """A hostile text, as the memory keeps it."""
    found = " ".join(random_.choice(_PARTS) for _ in range(random_.randint(1, 4)))
    return cleaner.line(found)


def made_item(random_: random.Random, label: str, kind: str, cleaner: Cleaner) -> Item:
    """An item of a kind with any of its fields."""
    values: dict[str, Any] = {name: words(random_, cleaner) for name in _TEXTS if random_.random() < 0.3}
    for name in _OF_KIND[kind]:
        values[name] = words(random_, cleaner)
    values |= {"purpose": random_.choice(CHOICES["purpose"])} if kind == "command" else {}
    values |= {"type": random_.choice(CHOICES["type"])} if kind == "pattern" else {}
    for name in ("uses", "helpful", "harmful"):
        values[name] = random_.choice((0, 0, 1, random_.randint(0, 10**6)))
    for name in ("routes", "evidence"):
        values[name] = tuple(
            cleaner.value(name, [f"{words(random_, cleaner)} {n}" for n in range(random_.randint(0, 3))])
        )
    extra = {f"own{n} field": words(random_, cleaner) for n in range(random_.choice((0, 0, 1, 2)))}
    item = Item(label, kind, origin=random_.choice(ORIGINS), **values)
    values = {name: value for name, value in tree_of(item).items() if name not in ("id", "kind")}
    return replace(item_of({"id": label, "kind": kind, **cleaner.fields(kind, values)}), extra=extra)


def made_memory(random_: random.Random) -> Memory:
    """A memory of a few items of any kind."""
    cleaner = Cleaner(str)
    items, keys = [], set[str]()
    for kind in KINDS:
        for number in range(1, random_.choice((1, 2, 3, 4))):
            item = made_item(random_, f"{kind}-{number}", kind, cleaner)
            if kind == "preference":
                item = replace(item, key=f"{item.key} {number}".strip())
                if item.key.casefold() in keys:
                    continue
                keys.add(item.key.casefold())
            items.append(item)
    return memory_of(items)


def memory_of(items: Iterable[Item]) -> Memory:
    """A memory with some items."""
    memory = Memory("main", revision=7)
    for item in items:
        memory = memory.put(item)
    return memory


# ---- what a person does to the text ----


def by_hand(random_: random.Random, lines: list[str]) -> str:
    """The lines of an item as another editor or person would write them."""
    bullet, indent = random_.choice("-*+"), random_.choice(("  ", "    ", "\t"))
    made = []
    for place, line in enumerate(lines):
        text = f"{bullet}{line[1:]}" if place == 0 else f"{indent}{bullet}{line.lstrip()[1:]}"
        if random_.random() < 0.2:
            text = wrapped(random_, text, indent if place == 0 else 2 * indent)
        made.append(text + random_.choice(("", "", " ")))
    return "\n".join(made)


def wrapped(random_: random.Random, text: str, indent: str) -> str:
    """A line broken at a space where Markdown goes on with the same text."""
    begin = text.find(": ") + 2 if ": " in text else 12
    places = [
        n for n, sign in enumerate(text) if sign == " " and n > begin and text[n + 1 : n + 2] not in ("-", "*", "+", "")
    ]
    if not places:
        return text
    place = random_.choice(places)
    return f"{text[:place]}\n{indent}{text[place + 1 :]}"


def change(random_: random.Random, memory: Memory, edit: Edit) -> None:
    """A field of an item gets another value, or is taken out, or is a new one."""
    cleaner = Cleaner(str)
    item = random_.choice(memory.items)
    name = random_.choice(
        (*_TEXTS, *_OF_KIND[item.kind], "uses", "helpful", "harmful", "routes", "evidence", "confidence", "extra")
    )
    value: Any = words(random_, cleaner)
    if name in ("uses", "helpful", "harmful"):
        value = random_.randint(0, 10**6)
    elif name in ("routes", "evidence"):
        value = tuple(cleaner.value(name, [words(random_, cleaner) for _ in range(random_.randint(0, 3))]))
    elif name == "purpose":
        value = random_.choice(CHOICES["purpose"])
    elif name == "type":
        value = random_.choice(CHOICES["type"])
    elif name == "confidence":
        value = random_.randint(0, 100) / 100
    elif name == "key":
        value = f"a new key {random_.random()}"
    elif name == "agent":
        value = cleaner.value("agent", value) or "x"
    elif name == "error":
        value = value[:150].strip()
    elif name not in _OF_KIND[item.kind] and random_.random() < 0.3:
        value = ""  # the line is taken out
    values = {"own field of mine": value} if name == "extra" else {name: value}
    after = memory_family.edited(item, values)
    if after == item:
        return
    after = replace(after, origin="file")
    shown = replace(after, origin=item.origin)
    if item.kind in ("preference", "relationship") and "" in (getattr(shown, n) for n in _OF_KIND[item.kind]):
        return
    lines = lines_of(shown)
    if name != "confidence":  # nobody works the percentage out again
        lines[0] = f"{item.percent}% confidence)".join(lines[0].rsplit(f"{shown.percent}% confidence)", 1))
    elif shown.percent == item.percent:
        return
    edit.text = edit.text.replace("\n".join(lines_of(item)) + "\n", by_hand(random_, lines) + "\n", 1)
    edit.items[item.id] = after


def drop(random_: random.Random, memory: Memory, edit: Edit) -> None:
    """A bullet is taken out."""
    item = random_.choice(memory.items)
    edit.text = edit.text.replace("\n".join(lines_of(item)) + "\n", "", 1)
    del edit.items[item.id]


def add(random_: random.Random, memory: Memory, edit: Edit) -> None:
    """A bullet without a label is put in below a heading."""
    cleaner = Cleaner(str)
    kind = random_.choice([*KINDS])
    item = replace(made_item(random_, "", kind, cleaner), origin="file", base=1.0)
    if kind == "preference":
        item = replace(item, key=f"a new key {random_.random()}")
    if memory.alike(item) is not None:
        return  # that one is seen again
    heading = f"\n\n## {KINDS[kind].heading}\n"
    own = by_hand(random_, [line.replace("[] ", "", 1) if n == 0 else line for n, line in enumerate(lines_of(item))])
    if memory_file._LABELLED.fullmatch(own.partition("\n")[0][2:]):
        return  # a text that begins like a label is one
    if heading in edit.text:
        edit.text = edit.text.replace(heading, f"{heading}\n{own}\n\n", 1)
    else:
        edit.text = edit.text.replace("---\n\n*Edit", f"{heading[2:]}\n{own}\n\n---\n\n*Edit", 1)
    edit.new.append(item)


def note(random_: random.Random, memory: Memory, edit: Edit) -> None:
    """A section of one's own, with a block of code that looks like anything."""
    text = "Think of this:\n\n```\n- [trap-1] not an item\n## no heading\n```\n\n- a point"
    edit.text = edit.text.replace("---\n\n*Edit", f"## My own\n\n{text}\n\n---\n\n*Edit", 1)
    edit.notes["My own"] = text


EDITS = (change, change, change, change, drop, add, add, note)


# ---- a round ----


def fault(seed: int) -> str:
    """What is wrong with a round, "" for nothing."""
    random_ = random.Random(seed)
    memory = made_memory(random_)
    if not memory.items:
        return ""
    content = render(memory, STAMP)
    edit = Edit(content.decode(), {item.id: item for item in memory.items})
    work = random_.choice(EDITS)
    work(random_, memory, edit)
    text = edit.text.replace("\n", "\r\n") if random_.random() < 0.1 else edit.text
    after = taken_in(memory, content, text.encode())
    new = {item.id: item for item in after.items if memory.get(item.id) is None}
    for label, item in edit.items.items():
        if after.get(label) != item:
            return f"{work.__name__}: {_differing(item, after.get(label))}"
    if len(after.items) - len(new) != len(edit.items):
        return f"{work.__name__}: an item that was taken out is there, or one that was not is gone"
    if [_plain(item) for item in new.values()] != [_plain(item) for item in edit.new]:
        return f"{work.__name__}: {list(new.values())} is not {edit.new}"
    if dict(after.notes) != edit.notes:
        return f"{work.__name__}: notes are others: {after.notes}"
    entries = {entry.label: entry.fields for entry in parse(render(after, STAMP), PATH).tree.entries}
    said = {item.id: fields_of(item) for item in after.items}
    if {label: _told(found) for label, found in entries.items()} != {
        label: _told(found) for label, found in said.items()
    }:
        return f"{work.__name__}: the file does not say all: {_first(entries, said)}"
    return ""


def taken_in(memory: Memory, before: bytes, content: bytes) -> Memory:
    """The memory with what a person changed from one file to another."""
    family, rows = MemoryFamily("main", str), Rows()
    rows.held = memory
    body = family.changes(parse(before, PATH).tree, parse(content, PATH).tree, rows, is_whole=True)
    if body is not None:
        family.fold(rows, Record(memory.revision + 1, "2026-01-01T00:00:00Z", body))
    return family.memory(rows)


def _plain(item: Item) -> Item:
    """An item without what a write gives it."""
    added = "" if item.added == "2026-01-01T00:00:00Z" else item.added
    last_seen = "" if item.last_seen in (added, "2026-01-01T00:00:00Z") else item.last_seen
    return replace(item, id="", added=added, last_seen=last_seen)


def _told(fields: Mapping[str, str]) -> dict[str, str]:
    return {"uses": "0", **fields}


def _differing(wanted: Item, found: Item | None) -> str:
    if found is None:
        return f"{wanted.id} is gone"
    names = [name for name in FIELDS if getattr(wanted, name) != getattr(found, name)]
    return f"{wanted.id}: " + "; ".join(
        f"{name}: {getattr(wanted, name)!r} is {getattr(found, name)!r}" for name in names
    )


def _first(entries: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    for label in said:
        wanted, found = _told(said[label]), _told(entries.get(label, {}))
        names = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
        if names:
            return f"{label}: " + "; ".join(f"{name}: {wanted.get(name)!r} is {found.get(name)!r}" for name in names)
    return ""


def _forgetful(kind: str, read: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in _fields_of(kind, read).items() if name in FIELDS or name == "confidence"}


_fields_of = memory_file._fields_of


def _chunk(first: int, last: int, broken: bool) -> list[str]:
    with patch.object(memory_file, "_fields_of", _forgetful if broken else _fields_of):
        return [f"seed {seed}: {found}" for seed in range(first, last) if (found := fault(seed))]


def run(rounds: int, *, seed: int = 0, jobs: int = 1, broken: bool = False) -> list[str]:
    """The faults of so many rounds; `broken`: with a parser that forgets what it does not know."""
    starts = range(seed * 1_000_000, seed * 1_000_000 + rounds, _CHUNK)
    ends = [min(start + _CHUNK, seed * 1_000_000 + rounds) for start in starts]
    if jobs == 1:
        return [found for first, last in zip(starts, ends, strict=True) for found in _chunk(first, last, broken)]
    with ProcessPoolExecutor(jobs) as pool:
        done = pool.map(_chunk, starts, ends, [broken] * len(ends))
        return [found for chunk in done for found in chunk]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    faults = run(given.rounds, seed=given.seed, jobs=given.jobs)
    for found in faults[:20]:
        print(found)
    print(f"remembered: {given.rounds:,} hand edits, seed {given.seed}: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
