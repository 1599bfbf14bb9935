"""The account of a migration: what became of every file, and of every field in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage import durable, files
from ralf.storage.files import content_of

Fate = Literal["carried", "evidence", "left"]
"""Carried: into a field of the route; evidence: kept in its words, found by search; left: not taken, and why."""

Outcome = Literal["imported", "nothing", "left", "unreadable", "backup"]
"""Imported; nothing was written in it; left out; not to be read; a backup of something."""

_FOLDER = "migrations"
_MOST = 64 << 20


@dataclass(frozen=True, slots=True)
class Field:
    """What became of one field.

    name   its keys, joined by dots, `[]` for the items of a list; a heading with its marks; a line of a header
    where  the field of the route that it went to, or why it was left
    count  how often it is there
    """

    name: str
    fate: Fate
    where: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file, or of one run folder.

    path       relative to the project where it lies in it
    shape      what it was recognised as
    routes     where it went, `rule` why there
    decisions, notes  how many it holds of each; notes: pieces of text that are kept
    why        of a file that was not imported
    written    checkpoints that this call has written, None in a dry run
    """

    path: str
    outcome: Outcome
    shape: str = ""
    sha256: str = ""
    size: int = 0
    routes: tuple[str, ...] = ()
    rule: str = ""
    decisions: int = 0
    notes: int = 0
    why: str = ""
    fields: tuple[Field, ...] = ()
    written: int | None = None

    def count(self, fate: Fate) -> int:
        """How many fields had this fate."""
        return sum(one.count for one in self.fields if one.fate == fate)


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What a migration came to.

    files    every file that was looked at, by path
    backups  copies that were passed over, their paths
    path     the file that holds this account, None in a dry run
    """

    source: str
    files: tuple[FileReport, ...]
    backups: tuple[str, ...] = ()
    dry_run: bool = False
    path: Path | None = None
    warnings: tuple[str, ...] = field(default=())

    def those(self, outcome: Outcome) -> tuple[FileReport, ...]:
        """The files with this outcome."""
        return tuple(one for one in self.files if one.outcome == outcome)

    @property
    def decisions(self) -> int:
        """Decisions of all files."""
        return sum(one.decisions for one in self.files)

    @property
    def written(self) -> int:
        """Checkpoints that this call has written."""
        return sum(one.written or 0 for one in self.files)

    @property
    def routes(self) -> tuple[str, ...]:
        """The routes that something went to."""
        return tuple(sorted({route for one in self.files for route in one.routes}))


def keep(project: Project, report: MigrationReport) -> Path:
    """Write the account to `.autonomous/context/migrations/SOURCE.json`, beside what earlier calls found elsewhere;
    nothing is written where it says the same already. It holds no time: the same files give the same bytes. It names
    keys and headings, and quotes no text. Each file has a line, so that nobody need hold all of them.
    """
    path = project.folder / _FOLDER / f"{report.source}.json"
    entries = {one.path: _line(project, _entry(one)) for one in report.files}
    entries |= {name: _line(project, {"path": name, "outcome": "backup"}) for name in report.backups}
    before = _content(path)
    entries = {**_others(before, entries.keys()), **entries}
    totals: Counter[str] = Counter()
    for line in entries.values():
        totals.update(_counts(json.loads(line)))
    head = _line(project, {"source": report.source, "totals": dict(sorted(totals.items()))})[:-1]
    lines = ",\n".join(entries[name] for name in sorted(entries))
    content = f'{head}, "files": [\n{lines}\n]}}\n'.encode("utf-8", "replace")
    if before != content:
        project.git.check_untracked(path)
        files.make(path.parent)
        durable.write(path, content)
    return path


def _entry(one: FileReport) -> dict[str, Any]:
    """A file as the account has it: its fields by what became of them, each name with how often it is there."""
    tree: dict[str, Any] = {key: value for key in _KEYS if (value := getattr(one, key)) not in ("", 0, ())}
    fates: dict[tuple[str, str], dict[str, int]] = {}
    for each in one.fields:
        names = fates.setdefault((each.fate, each.where), {})
        names[each.name] = names.get(each.name, 0) + each.count
    tree["fields"] = [{"fate": fate, "where": where, "names": names} for (fate, where), names in fates.items()]
    return tree


_KEYS = ("path", "outcome", "shape", "sha256", "size", "routes", "rule", "decisions", "notes", "why")


def _line(project: Project, tree: dict[str, Any]) -> str:
    return json.dumps(redactor_for(project).tree(tree), ensure_ascii=False)


def _counts(entry: Mapping[str, Any]) -> dict[str, int]:
    counts = {entry["outcome"]: 1, "decisions": int(entry.get("decisions", 0))}
    for each in entry.get("fields", ()):
        name = f"fields {each['fate']}"
        counts[name] = counts.get(name, 0) + sum(map(int, each["names"].values()))
    return counts


def _others(content: bytes, known: Container[str]) -> dict[str, str]:
    """The lines of the account that stands there, but for those of files that are known; none of another shape."""
    found = {}
    for raw in content.split(b"\n"):
        if not raw.startswith(b'{"path": '):
            continue
        try:
            line = raw.decode().removesuffix(",")
            entry = json.loads(line)
            if entry["path"] not in known and _counts(entry):
                found[str(entry["path"])] = line
        except (ValueError, AttributeError, KeyError, TypeError):
            continue
    return found


def _content(path: Path) -> bytes:
    try:
        return content_of(path, most=_MOST)
    except OSError:
        return b""
