"""The file of a memory: Markdown that a person edits anywhere, and that is parsed back whole.

A section for each kind, an item for each bullet: its label in brackets, what it says, its uses and confidence; below
it, indented, a line for each other field. What is no item is a note of its section and stays where it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from ralf.document.family import Parsed, Stamp
from ralf.errors import Damaged
from ralf.memory.model import FIELDS, KINDS, LISTS, OWN, Item, Memory, label_of
from ralf.text.cleaning import one_line
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

LONGEST_FILE = 4 << 20
"""Bytes of a file that is read."""

LAYOUT = 2

_HEADINGS = {kind.heading.casefold(): name for name, kind in KINDS.items()}

_FOOT = "Edit freely: ralf takes changes in."

_FOOTER = regex(r"[*_]" + re.escape(_FOOT) + r"[*_]")

_STAMP = regex(r"[*_]Revision (\d{1,9})\.(\d{1,9})\.([0-9a-f]{8}) of this memory[*_]")

_TITLE = regex(r"# Agent Memory - .*|[*_]Last compacted: .*[*_]")

_MADE = regex(r"_Left out here: .*_|\s+- contradicts: .*")
"""Other lines that rendering has made in layout 1."""

_BULLET = regex(r" ?[-*+] (?P<text>.*)")

_LABELLED = regex(r"\[(?P<label>[a-z]+-\d{1,9})\] ?(?P<text>.*)")

_FIELD = regex(r"\s+[-*+] (?P<name>[A-Za-z][A-Za-z0-9 _-]{0,39}):(?: (?P<value>.*))?")

_SUFFIX = regex(r"\((?P<uses>\d{1,10}) uses?, (?P<percent>\d{1,3}(?:\.\d{1,8})?)% confidence\)")

_CODE = regex(r" {0,3}(?P<mark>`{3,}|~{3,})")


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
class Tree:
    """What a file says.

    entries  in the file's order; of two with one label the second has none
    kinds    whose heading is there
    """

    entries: tuple[Entry, ...] = ()
    kinds: frozenset[str] = frozenset()
    notes: Mapping[str, str] = field(default_factory=dict)


# ---- rendering ----


def render(memory: Memory, stamp: Stamp) -> bytes:
    """The file of a memory: the same bytes for the same memory."""
    patterns = len(memory.of_kind("pattern"))
    blocks = [
        f"# Agent Memory - {memory.agent}",
        f"_Last compacted: {memory.last_compacted or 'never'} | Outcomes: {memory.outcomes} | Patterns: {patterns}_",
        f"_Revision {stamp} of this memory_",
        memory.notes.get("", ""),
    ]
    for name, kind in KINDS.items():
        lines = [line for item in memory.of_kind(name) for line in lines_of(item)]
        note = memory.notes.get(kind.heading, "")
        blocks += [f"## {kind.heading}", note, "\n".join(lines)] if note or lines else []
    for heading, text in memory.notes.items():
        if heading and heading.casefold() not in _HEADINGS:
            blocks += [f"## {heading}", text]
    blocks.append(f"---\n\n*{_FOOT}*\n")
    return "\n\n".join(filter(None, blocks)).encode()


def lines_of(item: Item) -> list[str]:
    """The lines of one item."""
    found, kind = dict(fields_of(item)), KINDS[item.kind]
    uses, confidence = found.pop("uses", "0"), found.pop("confidence")
    if kind.before and (kind.before in found or kind.head in found):
        text = f"{found.pop(kind.before, '')}: {found.pop(kind.head, '')}".strip()
    else:
        text = found.pop("text" if kind.before else kind.head, "")
    counted = f"({uses} {'use' if uses == '1' else 'uses'}, {confidence}% confidence)"
    head = " ".join(filter(None, (f"- [{item.id}]", text, counted)))
    return [head, *(f"  - {name}: {value}".rstrip() for name, value in found.items())]


def fields_of(item: Item) -> dict[str, str]:
    """The fields of an item as a file says them."""
    values = {name: getattr(item, name) for name in OWN}
    found = {
        name: "; ".join(value) if name in LISTS else str(value)
        for name, value in values.items()
        if value != FIELDS[name] or name == "origin"
    }
    return {**found, "confidence": item.percent, **item.extra}


# ---- parsing ----


def parse(content: bytes, path: Path) -> Parsed:
    """What a file says: a `Tree`. Damaged for one that is too large, has conflict markers, or is no UTF-8."""
    mend = f"mend it in an editor, or remove it to have it made anew: {os.fspath(path)}"
    if len(content) > LONGEST_FILE:
        raise Damaged(path, f"has {len(content):,} bytes, and {LONGEST_FILE:,} are read", "make it smaller")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Damaged(path, f"is no UTF-8 at byte {error.start}", mend) from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in lines):
        raise Damaged(path, "has conflict markers: not read as an edit", mend)
    foot = next((n for n in reversed(range(len(lines))) if _FOOTER.fullmatch(lines[n].strip())), len(lines))
    above = lines[:foot]
    while above and (not above[-1].strip() or (foot < len(lines) and above[-1].strip() in ("---", "***", "___"))):
        if above.pop().strip():
            break
    parser = _Parser()
    for part in (above, lines[foot + 1 :]):  # what is written below the last line is kept at the beginning
        parser.begin_section("")
        if parser.read(part):
            raise Damaged(path, f"the block of code below {parser.heading or 'its title'!r} has no end", mend)
    return Parsed(parser.tree(), parser.stamp, foot < len(lines))


class _Parser:
    """One reading of a file."""

    def __init__(self) -> None:
        self.heading = ""
        self.stamp: Stamp | None = None
        self._notes: dict[str, list[str]] = {}
        self._kinds: set[str] = set()
        self._items: list[tuple[str, str, dict[str, str]]] = []  # label, kind, fields as text; "": of the bullet
        self._name: str | None = None  # of the field that the next line may go on with; None behind an item

    def read(self, lines: Sequence[str]) -> bool:
        """Read lines; whether a block of code has no end."""
        fence = ""
        for line in lines:
            code = _CODE.match(line)
            if fence or (code and (self._name is None or not line[0].isspace())):
                self._name = None
                self._note(line)
                if code and (not fence or (code["mark"].startswith(fence) and line.strip() == code["mark"])):
                    fence = "" if fence else code["mark"]
            elif line.startswith("## "):
                self.begin_section(one_line(line[3:]))
            else:
                self._line(line)
        return bool(fence)

    def tree(self) -> Tree:
        """What was read."""
        seen: set[str] = set()
        entries = []
        for label, kind, read in self._items:
            if fields := _fields_of(kind, read):
                entries.append(Entry("" if label in seen else label, kind, fields))
                seen.add(label)
        texts = {heading: "\n".join(lines).strip("\n") for heading, lines in self._notes.items()}
        notes = {heading: text for heading, text in texts.items() if text}
        return Tree(tuple(entries), frozenset(self._kinds), notes)

    def begin_section(self, heading: str) -> None:
        """Go on below a heading, "" for the beginning."""
        kind = _HEADINGS.get(heading.casefold())
        self._name = None
        self.heading = KINDS[kind].heading if kind else heading
        self._kinds |= {kind} if kind else set()

    def _note(self, line: str) -> None:
        self._notes.setdefault(self.heading, []).append(line)

    def _line(self, line: str) -> None:
        kind = _HEADINGS.get(self.heading.casefold(), "")
        if not self.heading and (found := _STAMP.fullmatch(line.strip())):
            self.stamp = self.stamp or Stamp(int(found[1]), int(found[2]), found[3])
        elif _MADE.fullmatch(line.rstrip()) or (not self.heading and _TITLE.fullmatch(line.strip())):
            pass
        elif kind and (bullet := _BULLET.fullmatch(line)):
            labelled = _LABELLED.fullmatch(bullet["text"])
            own = label_of(labelled["label"])[0] if labelled else ""
            text = labelled["text"] if labelled and own else bullet["text"]
            self._items.append((labelled["label"] if labelled and own else "", own or kind, {"": text}))
            self._name = ""
        elif self._name is not None and line.strip():
            self._go_on(line)
        else:
            self._name = None
            if line.strip() or self._notes.get(self.heading, [""])[-1]:
                self._note(line.rstrip())

    def _go_on(self, line: str) -> None:
        """A line of an item: a field, or more of the one before."""
        fields, text = self._items[-1][2], line.strip()
        if found := _FIELD.fullmatch(line):
            name = found["name"].strip().replace(" ", "_")
            self._name = name if name.casefold() in FIELDS else found["name"].strip()
            fields[self._name] = found["value"] or ""
            return
        name = self._name or ""
        fields[name] = f"{fields.get(name, '')} {text}".strip()


def _fields_of(kind: str, read: Mapping[str, str]) -> dict[str, str]:
    """The fields of an item, of what its bullet and the lines below say."""
    head, schema = one_line(read[""]), KINDS[kind]
    found: dict[str, str] = {}
    if counted := [*_SUFFIX.finditer(head)][-1:]:
        (last,) = counted
        head = one_line(f"{head[: last.start()]} {head[last.end() :]}")
        found = {"uses": str(int(last["uses"])), "confidence": last["percent"]}
    key, colon, value = head.partition(": " if ": " in head else ":")
    if schema.before and colon:
        found |= {schema.before: key.strip(), schema.head: value.strip()}
    elif head:
        found["text" if schema.before else schema.head] = head
    for name, value in read.items():
        if name:
            found[name.casefold() if name.casefold() in OWN else name] = one_line(value)
    return {name: value for name, value in found.items() if value}
