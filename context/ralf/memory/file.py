"""The file of a memory: Markdown that a person edits anywhere, and that is parsed back whole.

A section for each kind, an item for each bullet: its label in brackets, what it says, its uses and confidence; below
it, indented, a line for each other field. What is no item is a note of its section and stays where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ralf.document.family import Parsed, Stamp
from ralf.errors import Damaged
from ralf.memory.model import FIELDS, KINDS, LISTS, OWN, Item, Memory, label_of
from ralf.text.cleaning import one_line
from ralf.text.frozen import dataclass, field
from ralf.text.patterns import regex

LONGEST_FILE = 4 << 20
"""Bytes of a file that is read."""

LAYOUT = 2

_HEADINGS = {kind.heading.casefold(): name for name, kind in KINDS.items()}

_MEND = "mend it in an editor, or remove it to have it made anew: {}"

_FOOT = "Edit freely: ralf takes changes in."

_FOOTER = regex(r"[*_]" + re.escape(_FOOT) + r"[*_]")

_STAMP = regex(r"[*_]Revision (\d{1,9})\.(\d{1,9})\.([0-9a-f]{8}) of this memory[*_]")

_TITLE = regex(r"# Agent Memory - .*|[*_]Last compacted: .*[*_]")

_BULLET = regex(r" ?[-*+] (?P<text>.*)")

_LABELLED = regex(r"\[(?P<label>[a-z]+-\d{1,9})\] ?(?P<text>.*)")

_FIELD = regex(r"\s+[-*+] (?P<name>[A-Za-z][A-Za-z0-9 _-]{0,39}):(?: (?P<value>.*))?")

_SUFFIX = regex(r"\((?P<uses>\d{1,10}) uses?, (?P<percent>\d{1,3}(?:\.\d{1,8})?)% confidence\)")


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
    fields, kind = dict(fields_of(item)), KINDS[item.kind]
    uses, confidence = fields.pop("uses", "0"), fields.pop("confidence")
    is_named = kind.before and (kind.before in fields or kind.head in fields)
    before = f"{fields.pop(kind.before, '')}: " if is_named else ""
    text = f"{before}{fields.pop('text' if kind.before and not is_named else kind.head, '')}".strip()
    counted = f"({uses} {'use' if uses == '1' else 'uses'}, {confidence}% confidence)"
    head = " ".join(filter(None, (f"- [{item.id}]", text, counted)))
    return [head, *(f"  - {name}: {value}".rstrip() for name, value in fields.items())]


def fields_of(item: Item) -> dict[str, str]:
    """The fields of an item as a file says them."""
    values = {name: getattr(item, name) for name in OWN}
    texts = {
        name: "; ".join(value) if name in LISTS else str(value)
        for name, value in values.items()
        if value != FIELDS[name] or name == "origin"
    }
    return {**texts, "confidence": item.percent, **item.extra}


# ---- parsing ----


def parse(content: bytes, path: Path) -> Parsed:
    """What a file says: a `Tree`. Damaged for one that has conflict markers or a block of code without an end, or is no
    UTF-8.
    """
    lines = _decoded(content, path).split("\n")
    foot = next((n for n in reversed(range(len(lines))) if _FOOTER.fullmatch(lines[n].strip())), len(lines))
    above = lines[:foot]
    while above and (not above[-1].strip() or (foot < len(lines) and above[-1].strip() in ("---", "***", "___"))):
        if above.pop().strip():
            break
    items: list[tuple[str, str, dict[str, str]]] = []  # label, kind, fields as text; "": of the bullet
    notes: dict[str, list[str]] = {}
    headings, stamp = set[str](), None
    last: str | None = None  # the field that the next line may go on with; None behind an item
    for part in (above, lines[foot + 1 :]):  # what is written below the last line is kept at the beginning
        for heading, line, is_code in _with_headings(part, path):
            kind = _HEADINGS.get(heading.casefold(), "")
            headings.add(kind)
            stamped = _STAMP.fullmatch(line.strip()) if not heading else None
            if bullet := _BULLET.fullmatch(line) if kind and not is_code else None:
                labelled = _LABELLED.fullmatch(bullet["text"])
                own = label_of(labelled["label"])[0] if labelled else ""
                label, text = (labelled["label"], labelled["text"]) if labelled and own else ("", bullet["text"])
                items.append((label, own or kind, {"": text}))
                last = ""
            elif last is not None and line.strip() and not is_code:
                last = _go_on(items[-1][2], last, line)
            elif stamped and not is_code:
                stamp = stamp or Stamp(int(stamped[1]), int(stamped[2]), stamped[3])
            elif is_code or heading or not _TITLE.fullmatch(line.strip()):
                last = None
                if is_code or line.strip() or notes.get(heading, [""])[-1]:
                    notes.setdefault(heading, []).append(line if is_code else line.rstrip())
    texts = {heading: "\n".join(part).strip("\n") for heading, part in notes.items()}
    kinds = frozenset(filter(None, headings))
    tree = Tree(tuple(_entries(items)), kinds, {heading: text for heading, text in texts.items() if text})
    return Parsed(tree, stamp, foot < len(lines))


def _decoded(content: bytes, path: Path) -> str:
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Damaged(path, f"is no UTF-8 at byte {error.start}", _MEND.format(path)) from None
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in text.split("\n")):
        raise Damaged(path, "has conflict markers: not read as an edit", _MEND.format(path))
    return text


def _with_headings(lines: Sequence[str], path: Path) -> Iterator[tuple[str, str, bool]]:
    """Each line below its heading, and whether it belongs to a block of code; a heading itself is an empty line."""
    heading, is_open = "", False
    for line in lines:
        is_fence = line.startswith(("```", "~~~"))
        is_heading = not is_open and line.startswith("## ")
        if is_heading:
            kind = _HEADINGS.get(one_line(line[3:]).casefold())
            heading = KINDS[kind].heading if kind else one_line(line[3:])
        yield heading, "" if is_heading else line, is_open or is_fence
        is_open ^= is_fence
    if is_open:
        raise Damaged(path, f"the block of code below {heading or 'its title'!r} has no end", _MEND.format(path))


def _go_on(fields: dict[str, str], name: str, line: str) -> str:
    """Take a line of an item: a field, or more of the one before; the name of the field."""
    if match := _FIELD.fullmatch(line):
        name = match["name"].strip()
        own = name.casefold().replace(" ", "_")
        name = own if own in OWN else f"own {name}" if own in FIELDS else name
        fields[name] = match["value"] or ""
    else:
        fields[name] = f"{fields.get(name, '')} {line.strip()}".strip()
    return name


def _entries(items: Iterable[tuple[str, str, Mapping[str, str]]]) -> Iterator[Entry]:
    labels: set[str] = set()
    for label, kind, read in items:
        if fields := _fields_of(kind, read):
            yield Entry("" if label in labels else label, kind, fields)
            labels.add(label)


def _fields_of(kind: str, read: Mapping[str, str]) -> dict[str, str]:
    """The fields of an item, of what its bullet and the lines below say."""
    head, schema = one_line(read[""]), KINDS[kind]
    fields: dict[str, str] = {}
    if counted := [*_SUFFIX.finditer(head)][-1:]:
        (last,) = counted
        head = one_line(f"{head[: last.start()]} {head[last.end() :]}")
        fields = {"uses": str(int(last["uses"])), "confidence": last["percent"]}
    key, colon, value = head.partition(": " if ": " in head else ":")
    if schema.before and colon:
        fields |= {schema.before: key.strip(), schema.head: value.strip()}
    elif head:
        fields["text" if schema.before else schema.head] = head
    fields |= {name: one_line(value) for name, value in read.items() if name}
    return {name: value for name, value in fields.items() if value}
