"""The memory of an agent as a family of documents: how it folds, what its file shows, what a change of that means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ralf.document.access import BY_AGENT
from ralf.document.family import Parsed, Stamp
from ralf.document.record import Enveloped, Record
from ralf.document.rows import Rows
from ralf.memory import file
from ralf.memory.file import Tree, fields_of
from ralf.memory.fold import Delta, apply, by_agent
from ralf.memory.model import Memory, item_of, tree_of
from ralf.memory.records import checked, delta
from ralf.text.frozen import dataclass

_ROW = "memory"


@dataclass(frozen=True, slots=True)
class MemoryFamily(Enveloped):
    """The memory of one agent. `redact` removes secrets from a text. See `ralf.document.family.Family`."""

    agent: str
    redact: Callable[[str], str]
    layout: int = file.LAYOUT

    def memory(self, rows: Rows) -> Memory:
        """The memory that rows hold."""
        if rows.held is None:
            tree = rows.one(_ROW) or {}
            entries = {label: item_of(item) for label, item in tree.get("entries", {}).items()}
            rows.held = Memory(**{**tree, "agent": self.agent, "entries": entries})
        return rows.held  # type: ignore[no-any-return]

    def fold(self, rows: Rows, record: Record) -> None:
        """See `Family.fold`."""
        memory = self.memory(rows)
        for each in record.body.get("deltas", ()):
            memory = apply(memory, by_agent(each) if record.by == BY_AGENT else each, record.at)
        rows.held = replace(memory, revision=record.revision, last_written=record.at)
        rows.put(_ROW, lambda: _tree_of(rows.held))

    def render(self, rows: Rows, stamp: Stamp) -> bytes:
        """See `Family.render`."""
        return file.render(self.memory(rows), stamp)

    def parse(self, content: bytes, path: Path) -> Parsed:
        """See `Family.parse`."""
        return file.parse(content, path)

    def changes(self, base: Tree | None, found: Tree, rows: Rows, *, is_whole: bool) -> Mapping[str, Any] | None:
        """See `Family.changes`."""
        memory = self.memory(rows)
        deltas = [*checked(memory, [*_differences(base, found, memory, is_whole)], self.redact, by_hand=True)]
        return {"deltas": deltas} if deltas else None

    def redacted(self, text: str) -> str:
        """See `Family.redacted`."""
        return self.redact(text)


def _tree_of(memory: Memory) -> dict[str, Any]:
    tree = {one.name: getattr(memory, one.name) for one in fields(Memory) if one.name not in ("agent", "warnings")}
    return {**tree, "entries": {label: tree_of(item) for label, item in memory.entries.items()}}


def _differences(base: Tree | None, found: Tree, memory: Memory, is_whole: bool) -> Iterator[Delta]:
    """What was changed from one file to another, as deltas by a person. `base`: None where nobody knows."""
    before = {entry.label: entry.fields for entry in base.entries} if base is not None else {}
    for entry in found.entries:
        item = memory.get(entry.label)
        known = before.get(entry.label, fields_of(item) if item is not None else {}) if entry.label else {}
        changes = _changed(known, entry.fields)
        if item is None and changes:
            yield delta("add", item={"kind": entry.kind, "origin": "person", **entry.fields})
        elif changes:
            yield delta("edit", entry.label, values=changes, origin="person")
    if base is not None and is_whole:
        there = {entry.label for entry in found.entries}
        for entry in base.entries:
            if entry.label not in there and entry.kind in found.kinds and memory.get(entry.label) is not None:
                yield delta("drop", entry.label, reason="taken out of the file", origin="person")
    notes = base.notes if base is not None else memory.notes
    for name in {**notes, **found.notes}:
        if notes.get(name, "") != found.notes.get(name, "") and (is_whole or name in found.notes):
            yield delta("note", heading=name, text=found.notes.get(name, ""))


def _changed(base: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """The fields that differ, with what the second one says; "" where it has none any more. Who takes the uses and the
    confidence out of a bullet has not said that there are none.
    """
    names = dict.fromkeys((*(name for name in base if name not in ("uses", "confidence")), *found))
    return {name: found.get(name, "") for name in names if base.get(name, "") != found.get(name, "")}
