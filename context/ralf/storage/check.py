"""The check of a store's journals, line by line: what is as it was written, and what is kept aside."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ralf.errors import DamagedJournal
from ralf.storage import durable, earlier, journal_file
from ralf.storage.files import content_of
from ralf.storage.filestore import Stream
from ralf.storage.journal import MALFORMED, Entry, Files
from ralf.storage.own import OwnStore

DAMAGED = ".damaged"
"""The ending of the file, beside a journal, a route file or a blob, in which what is damaged of it is kept."""

_NUMBERED = ("routes/", "agents/")  # begin the names of streams each of whose records has the next number


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was left, or worth a word.

    path    the file that it is about
    what    what is wrong with it, or to be noted of it
    repair  what a repair would do, "" for nothing
    damage  whether it is damage; else all is fine with it as it stands
    """

    path: Path
    what: str
    repair: str = ""
    damage: bool = True


class Line(NamedTuple):
    """A line of a journal: its place, its bytes, the record in it, and the number of that, 0 for none."""

    start: int
    content: bytes
    entry: Entry
    number: int = 0


@dataclass
class Scan:
    """A journal as it stands.

    path     what findings about it are about
    lines    that are as they were written, in order; damaged: the others, with their places
    wrong    what is wrong with it as a file, "" for nothing
    torn     bytes behind its last line: never acknowledged
    missing  the numbers of records that are not there and of which no repair tells, as first and last of each gap
    """

    stream: str
    path: Path
    lines: list[Line] = field(default_factory=list)
    damaged: list[tuple[int, bytes]] = field(default_factory=list)
    wrong: str = ""
    torn: bytes = b""

    @property
    def is_ordered(self) -> bool:
        """Whether its records stand in the order of their numbers."""
        return all(one.number <= other.number for one, other in pairwise(self.lines))

    @property
    def missing(self) -> list[tuple[int, int]]:
        """See above."""
        numbers = sorted({0, *(line.number for line in self.lines)})
        found = [(one + 1, other - 1) for one, other in pairwise(numbers) if other > one + 1]
        trees = (json.loads(line.entry.record) for line in self.lines if b'"repair"' in line.entry.record)
        told = [gap for tree in trees if tree.get("kind") == "repair" for gap in tree["payload"].get("missing", ())]
        return [gap for gap in found if list(gap) not in told]

    @property
    def is_damaged(self) -> bool:
        """Whether a reader would find fault with it."""
        return bool(self.wrong or self.damaged or self.missing or not self.is_ordered)


def scan(store: OwnStore, folder: Path, stream: str) -> Scan:
    """All of a stream: of the embedded store line by line, of another one up to what its port cannot read; nothing of
    somebody else's. OSError.
    """
    with suppress(DamagedJournal):
        if store.is_foreign(stream):
            return Scan(stream, Stream(folder, stream).path)
    if store.files is not None:
        return scan_files(Stream(folder, stream))
    found = Scan(stream, folder / stream)
    try:
        found.lines += [Line(0, b"", entry) for entry in store.inner.read(stream)]
    except DamagedJournal as error:
        found.wrong = error.what
    return found


def scan_files(journal: Stream) -> Scan:
    """All of a stream of the embedded store, whoever's it is. OSError."""
    stream = journal.name
    is_packed = not os.path.lexists(journal.path) and journal.packed.exists()
    found = Scan(stream, journal.packed if is_packed else journal.path)
    ids = set[str]()
    for start, line in _lines(journal, found):
        if not line.endswith(b"\n"):
            found.torn = line
            continue
        try:
            entry = journal_file.parsed(found.path, start, line)
            number = _number(entry) if stream.startswith(_NUMBERED) else 0
        except (DamagedJournal, *MALFORMED):
            found.damaged.append((start, line))
            continue
        if entry.id in ids:
            found.damaged.append((start, line))
        else:
            ids.add(entry.id)
            found.lines.append(Line(start, line, entry, number))
    return found


def _number(entry: Entry) -> int:
    tree = json.loads(entry.record)
    return int(tree["revision"] if "revision" in tree else tree["n"])


def _lines(journal: Stream, found: Scan) -> Iterator[tuple[int, bytes]]:
    """Place and bytes of each line that can be read; a torn one has no line break. Says in the scan what is wrong with
    the file.
    """
    try:
        with journal.opened() as opened:
            yield from opened.lines(torn=True)
    except FileNotFoundError:
        pass
    except DamagedJournal as error:
        found.wrong, start = error.what, 0
        if found.path.is_file() and not found.path.is_symlink():
            content = content_of(found.path)
            content = journal_file.unpacked(content) if found.path == journal.packed else content
            for line in content.split(b"\n"):
                if line:
                    yield start, line + b"\n"  # the last one, too: what an archive holds was acknowledged
                start += len(line) + 1


def mend(folder: Path, found: Scan) -> list[Path]:
    """Write a damaged or torn journal anew of its whole lines, for a caller that holds the stream; else sweep what dead
    writers left. What is damaged is kept. Returns the files that were swept.
    """
    journal = Stream(folder, found.stream)
    if not (found.is_damaged or found.torn):
        return journal.sweep()
    if found.wrong:
        aside(found.path)
    elif bad := [*(line for _, line in found.damaged), *([found.torn + b"\n"] if found.torn else [])]:
        kept = journal.damaged
        durable.replace_durably(kept, [*([kept.read_bytes()] if kept.exists() else []), *bad])
    pieces = [*((line.start, line.content) for line in found.lines), *found.damaged]
    end = max((start + len(content) for start, content in pieces), default=0) + len(found.torn)
    journal.put(end + 1, [line.content for line in sorted(found.lines, key=lambda one: one.number)])
    earlier.sweep(journal.path)
    return []


def set_aside(files: Files, stream: str) -> Path | None:
    """Rewrite a stream without its damaged lines, which are kept; the file that has them, None for none, and for a
    journal that cannot be read otherwise. Every token of the stream is void then.
    """
    journal = Stream(files.folder, stream)
    with journal.writing():
        found = scan_files(journal)
        if found.wrong or not found.damaged:
            return None
        mend(files.folder, found)
    return journal.damaged


def aside(path: Path) -> Path:
    """Move a file, or whatever lies in its place, to a free name that says that it is damaged; where it lies now."""
    number, target = 0, path.with_name(f"{path.name}{DAMAGED}")
    while os.path.lexists(target):
        number += 1
        target = path.with_name(f"{path.name}.{number}{DAMAGED}")
    path.rename(target)  # a link itself, not what it names
    return target
