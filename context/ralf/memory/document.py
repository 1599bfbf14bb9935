"""The file of a memory: Markdown that a person edits anywhere, and that is parsed back whole.

A section for each kind, an item for each bullet: its label in brackets, what it says, its uses and confidence; below
it, indented, a line for each other field. What is no item is a note of its section and stays where it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from ralf.document.family import Parsed, Stamp
from ralf.errors import Damaged
from ralf.memory.fold import LISTS
from ralf.memory.model import Item, Memory, label_of, order_of
from ralf.memory.ranking import contradictions, related, worth
from ralf.memory.records import fields_of
from ralf.text.cleaning import one_line
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

MOST_BYTES = 128 << 10
"""Bytes of items that a file shows; those of the least worth are left out, and it says so."""

LONGEST_FILE = 4 << 20
"""Bytes of a file that is read."""

HEADINGS = {
    "trap": "Traps",
    "command": "Commands that Work",
    "pattern": "Workflow Patterns",
    "preference": "Tool Preferences",
    "fact": "Organizational Knowledge",
    "relationship": "Relationships",
}

_METRICS = "Improvement Metrics"

_KIND_OF = {heading.casefold(): kind for kind, heading in HEADINGS.items()}

_ORDER = (*HEADINGS.values(), _METRICS)

LAYOUT = 1

_FOOT = "Edit freely: ralf takes changes in."

_FOOTER = regex(r"[*_]" + re.escape(_FOOT) + r"[*_]")

_TITLE = regex(r"# Agent Memory - .*")

_COUNTED = regex(r"[*_]Last compacted: .*[*_]")

_STAMP = regex(r"[*_]Revision (\d{1,9})\.(\d{1,9})\.([0-9a-f]{8}) of this memory[*_]")

_LEFT_OUT = regex(r"_Left out here: .*_")

_BULLET = regex(r" ?[-*+] (?P<text>.*)")

_LABELLED = regex(r"\[(?P<label>[a-z]+-\d{1,9})\] ?(?P<text>.*)")

_FIELD = regex(r"\s+[-*+] (?P<name>[A-Za-z][A-Za-z0-9 _-]{0,39}):(?: (?P<value>.*))?")

_SUFFIX = regex(r"\((?P<uses>\d{1,10}) uses?, (?P<percent>\d{1,3}(?:\.\d{1,8})?)% confidence\)")

_CODE = regex(r" {0,3}(?P<mark>`{3,}|~{3,})")

_HEAD = {"command": "command", "preference": "value", "relationship": "context"}
"""The field that a bullet begins with, where it is not the text; `_BEFORE`: what stands before it, with a colon."""

_BEFORE = {"preference": "key", "relationship": "agent"}

_DERIVED = ("contradicts",)  # lines that are made, and not read


@dataclass(frozen=True, slots=True)
class Entry:
    """An item as a file says it.

    label   "" for one that a person has added
    fields  by name, as text; what does not stand there is as it is at first. `confidence` is in percent
    """

    label: str
    kind: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says.

    entries  in the file's order; of two with one label the second has none
    kinds    whose heading is there
    """

    entries: tuple[Entry, ...] = ()
    kinds: frozenset[str] = frozenset()
    metrics: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


# ---- rendering ----


def render(memory: Memory, stamp: Stamp, *, most: int = MOST_BYTES) -> bytes:
    """The file of a memory: the same bytes for the same memory. `most`: bytes of items that are shown."""
    shown = _fitting(memory.items, most)
    left = len(memory.items) - len(shown)
    last = memory.last_compacted or "never"
    patterns = sum(item.kind == "pattern" for item in shown)
    blocks = [
        f"# Agent Memory - {memory.agent}",
        f"_Last compacted: {last} | Outcomes: {memory.outcomes} | Patterns: {patterns}_",
        f"_Revision {stamp} of this memory_",
        memory.notes.get("", ""),
    ]
    for kind, heading in HEADINGS.items():
        items = [item for item in shown if item.kind == kind]
        said = [memory.notes.get(heading, ""), "\n".join(_lines(items))]
        if any(said):
            blocks += [f"## {heading}", *said]
    metrics = "\n".join(f"- {name}: {value}" for name, value in memory.metrics.items())
    if metrics or memory.notes.get(_METRICS):
        blocks += [f"## {_METRICS}", memory.notes.get(_METRICS, ""), metrics]
    for heading, text in memory.notes.items():
        if heading and heading not in _ORDER:
            blocks += [f"## {heading}", text]
    if left:
        which = "1 item" if left == 1 else f"{left:,} items"
        blocks.append(f"_Left out here: {which} of the least worth; all of them: `ralf memory show --all`_")
    blocks.append(f"---\n\n*{_FOOT}*\n")
    return "\n\n".join(filter(None, blocks)).encode()


def _fitting(items: tuple[Item, ...], most: int) -> list[Item]:
    """The items of the highest worth that fit, in their order."""
    size, chosen = 0, list[Item]()
    for item in sorted(items, key=lambda item: (-worth(item), len(item.id), item.id)):
        size += size_of(item)
        if size > most:
            break
        chosen.append(item)
    return sorted(chosen, key=order_of)


def size_of(item: Item) -> int:
    """The bytes of an item's lines."""
    return len("\n".join(lines_of(item)).encode()) + 1


def _lines(items: list[Item]) -> Iterator[str]:
    against = contradictions(items)
    for item in related(items):
        yield from lines_of(item)
        if item.id in against:
            yield f"  - contradicts: {', '.join(against[item.id])}"


def lines_of(item: Item) -> list[str]:
    """The lines of one item."""
    found = entry_of(item).fields
    head = _HEAD.get(item.kind, "text")
    text = found.get(head, "")
    before = _BEFORE.get(item.kind, "")
    if before and not (text or before in found):
        head, text = "text", found.get("text", "")
    elif before:
        text = f"{found.get(before, '')}: {text}".strip()
    uses = found.get("uses", "0")
    counted = f"({uses} {'use' if uses == '1' else 'uses'}, {found['confidence']}% confidence)"
    lines = [" ".join(filter(None, (f"- [{item.id}]", text, counted)))]
    told = {head, before, "uses", "confidence"}
    lines += [f"  - {name}: {value}".rstrip() for name, value in found.items() if name not in told]
    return lines


def entry_of(item: Item) -> Entry:
    """An item as a file says it."""
    found: dict[str, str] = {}
    for name, default in fields_of(Item):
        value = getattr(item, name)
        if name in ("id", "kind", "base", "extra") or (value == default and name != "origin"):
            continue
        found[name] = "; ".join(value) if name in LISTS else str(value)
    found["confidence"] = percent_of(item)
    return Entry(item.id, item.kind, {**found, **item.extra})


def percent_of(item: Item) -> str:
    """An item's confidence in percent: whole ones, but for one that somebody has stated more finely."""
    percent = 100 * item.confidence
    return f"{percent:.0f}" if item.base == 1.0 else f"{percent:.6g}"


# ---- parsing ----


def parse(content: bytes, path: Path) -> Parsed:
    """What a file says: a `Document`. Damaged for one that is too large, has conflict markers, or is no UTF-8."""
    if len(content) > LONGEST_FILE:
        raise Damaged(path, f"has {len(content):,} bytes, and {LONGEST_FILE:,} are read", "make it smaller")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Damaged(path, f"is no UTF-8 at byte {error.start}", _mend(path)) from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in lines):
        raise Damaged(path, "has conflict markers: not read as an edit", _mend(path))
    return _Parser(lines, path).parsed()


def _mend(path: Path) -> str:
    return f"mend it in an editor, or remove it to have it made anew: {os.fspath(path)}"


class _Parser:
    """One reading of a file."""

    def __init__(self, lines: list[str], path: Path) -> None:
        self._lines = lines
        self._path = path
        self._heading = ""
        self._entries: list[Entry] = []
        self._notes: dict[str, list[str]] = {}
        self._metrics: dict[str, str] = {}
        self._open: dict[str, str] | None = None  # fields of the item that is being read
        self._last = ""  # name of its last one
        self._fence = ""
        self._kind = ""
        self._label = ""
        self._kinds: set[str] = set()
        self._stamp: Stamp | None = None

    def parsed(self) -> Parsed:
        """Read it."""
        is_whole, place = self._footer()
        for line in self._lines[:place]:
            self._line(line)
        self._close()
        if self._fence:
            what = f"the block of code below {self._heading or 'its title'!r} has no end"
            raise Damaged(self._path, what, _mend(self._path))
        self._heading = ""
        for line in self._lines[place:]:  # written below the last line: kept at the beginning
            self._line(line)
        self._close()
        texts = {heading: "\n".join(lines).strip("\n") for heading, lines in self._notes.items()}
        seen: set[str] = set()
        entries = []
        for entry in self._entries:
            is_new = not entry.label or entry.label in seen
            entries.append(Entry("" if is_new else entry.label, entry.kind, entry.fields))
            seen.add(entry.label)
        notes = {heading: text for heading, text in texts.items() if text}
        return Parsed(Document(tuple(entries), frozenset(self._kinds), self._metrics, notes), self._stamp, is_whole)

    def _footer(self) -> tuple[bool, int]:
        """Whether there is a footer, which is taken off, and where it stood."""
        for place in range(len(self._lines) - 1, -1, -1):
            if _FOOTER.fullmatch(self._lines[place].strip()):
                del self._lines[place]
                before = place - 1
                while before >= 0 and not self._lines[before].strip():
                    before -= 1
                if before >= 0 and self._lines[before].strip() in ("---", "***", "___"):
                    del self._lines[before:place]
                    place = before
                return True, place
        return False, len(self._lines)

    def _line(self, line: str) -> None:
        if self._fence or (_CODE.match(line) and (self._open is None or not line[0].isspace())):
            self._close()
            self._code(line)
            return
        if line.startswith("## "):
            self._close()
            heading = one_line(line[3:])
            self._heading = next((one for one in _ORDER if one.casefold() == heading.casefold()), heading)
            if self._heading in HEADINGS.values():
                self._kinds.add(_KIND_OF[self._heading.casefold()])
            elif self._heading not in _ORDER:
                self._notes.setdefault(self._heading, [])
            return
        if self._is_made(line):
            self._close()
            return
        known = self._heading in _ORDER
        if known and (bullet := _BULLET.fullmatch(line)):
            self._close()
            self._begin(bullet["text"])
        elif self._open is not None and line[:1].isspace() and line.strip():
            self._field(line)
        elif self._open is not None and not line.strip():
            self._close()
        elif self._open is not None and known:
            self._more(line)  # a paragraph of Markdown goes on without indentation
        else:
            self._close()
            note = self._notes.setdefault(self._heading, [])
            if line.strip() or (note and note[-1]):
                note.append(line.rstrip())

    def _code(self, line: str) -> None:
        """A line of a block of code: a note, whatever it looks like."""
        found = _CODE.match(line)
        if not self._fence and found:
            self._fence = found["mark"]
        elif found and found["mark"].startswith(self._fence) and line.strip() == found["mark"]:
            self._fence = ""
        self._notes.setdefault(self._heading, []).append(line)

    def _is_made(self, line: str) -> bool:
        """Whether a line is one that rendering makes anew."""
        if self._heading == "" and (found := _STAMP.fullmatch(line.strip())):
            self._stamp = self._stamp or Stamp(int(found[1]), int(found[2]), found[3])
            return True
        if self._heading == "" and (_TITLE.fullmatch(line) or _COUNTED.fullmatch(line.strip())):
            return True
        if self._open is None and (found := _FIELD.fullmatch(line)) and found["name"].casefold() in _DERIVED:
            return True  # of an item that was taken out
        return _LEFT_OUT.fullmatch(line.rstrip()) is not None

    def _begin(self, text: str) -> None:
        if self._heading == _METRICS:
            name, _, value = text.partition(":")
            name, value = one_line(name), one_line(value)
            if name and value:
                self._metrics[name] = value
            else:
                self._notes.setdefault(self._heading, []).append(f"- {text}")
            return
        kind = _KIND_OF[self._heading.casefold()]
        found = _LABELLED.fullmatch(text)
        self._label, self._kind = "", kind
        if found and label_of(found["label"])[1]:
            self._label, text = found["label"], found["text"]
            self._kind = label_of(self._label)[0]
        self._open, self._last = {"": text}, ""

    def _field(self, line: str) -> None:
        found = _FIELD.fullmatch(line)
        if self._open is None:
            return
        if found is None:
            self._more(line)
            return
        name = found["name"].strip().replace(" ", "_") if _is_known(found["name"]) else found["name"].strip()
        self._last = name
        self._open[name] = found["value"] or ""

    def _more(self, line: str) -> None:
        """A line that goes on with the one before; a bullet that names no field is a note of the item."""
        if self._open is None:
            return
        text = line.strip()
        if bullet := _BULLET.fullmatch(text):
            self._last, text = "note", bullet["text"]
            before = self._open.get("note", "")
            self._open["note"] = f"{before}; {text}" if before else text
            return
        self._open[self._last] = f"{self._open[self._last]} {text}".strip()

    def _close(self) -> None:
        if self._open is not None:
            fields = _fields_of(self._kind, self._open)
            if fields:
                self._entries.append(Entry(self._label, self._kind, fields))
        self._open = None


_KNOWN = {name.casefold() for name, _ in fields_of(Item)}


def _is_known(name: str) -> bool:
    return name.strip().replace(" ", "_").casefold() in _KNOWN


def _fields_of(kind: str, read: Mapping[str, str]) -> dict[str, str]:
    """The fields of an item, of what its bullet and the lines below say."""
    head = one_line(read[""])
    found: dict[str, str] = {}
    if counted := [*_SUFFIX.finditer(head)][-1:]:
        (last,) = counted
        head = one_line(f"{head[: last.start()]} {head[last.end() :]}")
        found = {"uses": str(int(last["uses"])), "confidence": last["percent"]}
    name = _HEAD.get(kind, "text")
    if before := _BEFORE.get(kind):
        key, colon, value = head.partition(": " if ": " in head else ":")
        if colon:
            found |= {before: key.strip(), name: value.strip()}
        elif head:
            found["text"] = head
    elif head:
        found[name] = head
    for each, value in read.items():
        if each and each.casefold() not in _DERIVED:
            known = each.casefold()
            found[known if known in _KNOWN and known not in ("id", "kind", "base", "extra") else each] = one_line(value)
    return {each: value for each, value in found.items() if value}
