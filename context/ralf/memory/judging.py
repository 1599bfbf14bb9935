"""What came of items that were handed over: helpful, harmful, or stale because what they name is gone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ralf.errors import NotFound, RalfError
from ralf.facts.commands import simple_commands
from ralf.memory import records, writing
from ralf.memory.harvest import runs
from ralf.memory.model import Item
from ralf.memory.ranking import text_of
from ralf.memory.records import Delta
from ralf.memory.repairs import beginning
from ralf.project import Project
from ralf.route import history
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex
from ralf.transcripts.events import EvidenceLine, read_evidence

_PATH = regex(r"(?<![\w@+/~:.-])(?:[\w@+-][\w@.+-]*+/)++[\w@.+-]*\w")

_MADE = frozenset("build dist target out node_modules vendor coverage tmp venv __pycache__".split())
"""Folders whose files come and go."""

_UNKNOWN = regex(
    r"(?:command )?not found\b|\bmissing script\b|\bno such (?:file|command|target|task)\b|\bno rule to make target\b"
    r"|\b(?:unknown|unrecognized|unrecognised|invalid|no such) (?:command|option|argument|flag|task|subcommand)s?\b"
    r"|\bdoes not exist\b|\bis not recognized\b",
    re.I,
)
"""What is printed where a command, or one of its flags, is no more."""

_LONGEST_OUTPUT = 4_000  # characters of an output in which such words are looked for

_EDIT = "edit "  # begins the resolution of a trap that was an edit

_BY_TREE = "the tree: "  # begins the reasons that the tree gave, and may take back


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one item: helpful, harmful or stale, with the reason and the evidence."""

    id: str
    verdict: str
    reason: str = ""
    evidence: str = ""


def judge(
    project: Project, route: str, *, agent: str, session: str, labels: Sequence[str], after: int = 0
) -> list[Verdict]:
    """Record what came of items that were handed to a session, once for each item and session.

    labels  of the items whose arrival is confirmed (`Selection.items`)
    after   the line of the transcript after which they were handed over

    Helpful: the command or the resolution of an item ran later, or a path that it names was touched. Harmful: the error
    of a trap occurred again, and its resolution was not what followed. Stale: its command, or a flag of it, is unknown.
    An item of which nothing is to be seen has no outcome. Errors: `writing.record`; DamagedJournal.
    """
    names = {f"outcome-{session}-{label}": label for label in labels}
    wanted = {names[name] for name in writing.unrecorded(project, agent, names)}
    items = [item for item in writing.load(project, agent).items if item.id in wanted] if wanted else []
    lines = _lines(project, route, session, after) if items else []
    found: list[Verdict] = []
    for item in items:
        verdict = _verdict(item, lines)
        if verdict is None:
            continue
        evidence = (verdict.evidence,)
        deltas: list[Delta] = [records.Outcome(item.id, verdict.verdict, verdict.reason, evidence)]
        if verdict.verdict == "helpful" and item.kind != "command":  # a command that passes is counted as it is
            deltas.append(records.Used(item.id))
        with suppress(NotFound):  # somebody drops it at this moment
            writing.record(project, agent, deltas, id=f"outcome-{session}-{item.id}")
            found.append(verdict)
    return found


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of evidence, and the checkpoint that has it, as a reference begins."""

    where: str
    line: EvidenceLine

    @property
    def reference(self) -> str:
        return f"{self.where} lines {self.line.line}-{self.line.last}"


def _lines(project: Project, route: str, session: str, after: int) -> list[_Line]:
    """The calls and results of a session behind a line, oldest first."""
    undone = history.undone(project, route)
    found: list[_Line] = []
    for label, record in history.checkpoints(project, route):
        source = record.payload.get("source")
        if label in undone or record.foreign or not isinstance(source, Mapping) or source.get("session") != session:
            continue
        with suppress(RalfError):  # pruned, or damaged
            read = read_evidence(project.store, str(record.payload.get("evidence", "")))
            of_tools = (one for one in read if one.line > after and one.kind in ("call", "result"))
            found += [_Line(f"{route} {label}", one) for one in of_tools]
    return found


def _verdict(item: Item, lines: Sequence[_Line]) -> Verdict | None:
    if item.kind == "trap":
        return _of_trap(item, lines)
    if item.kind == "command":
        return _of_command(item, lines)
    used = _touches(_paths_in(text_of(item)), lines)
    return Verdict(item.id, "helpful", evidence=lines[used].reference) if used >= 0 else None


def _of_trap(item: Item, lines: Sequence[_Line]) -> Verdict | None:
    error = beginning(item.error)
    failed = _last(n for n, one in enumerate(lines) if one.line.kind == "result" and error and error in one.line.text)
    if item.resolution.startswith(_EDIT):
        followed = _touches(item.resolution.removeprefix(_EDIT).split(", "), lines)
    else:
        followed = _runs_last(item.resolution, lines)
    if failed >= 0 and failed > followed:
        return Verdict(item.id, "harmful", "the error occurred again", lines[failed].reference)
    used = max(followed, _runs_last(item.command, lines))
    return Verdict(item.id, "helpful", evidence=lines[used].reference) if used >= 0 else None


def _of_command(item: Item, lines: Sequence[_Line]) -> Verdict | None:
    place = _runs_last(item.command, lines)
    if place < 0:
        return None
    reference = lines[place].reference
    output = next((one.line.text for one in lines[place + 1 :] if one.line.kind == "result"), "")[:_LONGEST_OUTPUT]
    names = {word for simple in simple_commands(item.command) for word in simple.words if len(word) > 1}
    for told in output.splitlines():
        if _UNKNOWN.search(told) and any(name in told for name in names):
            return Verdict(item.id, "stale", "the command, or a flag of it, is unknown", reference)
    return Verdict(item.id, "helpful", evidence=reference)


def _runs_last(command: str, lines: Sequence[_Line]) -> int:
    """The place of the last call that runs a command, -1 for none."""
    return _last(n for n, one in enumerate(lines) if runs(one.line, command))


def _touches(paths: Iterable[str], lines: Sequence[_Line]) -> int:
    """The place of the last call that names one of some paths, -1 for none."""
    wanted = [path for path in paths if path]
    calls = (n for n, one in enumerate(lines) if one.line.kind == "call")
    return _last(n for n in calls if any(path in lines[n].line.text for path in wanted))


def _last(places: Iterable[int]) -> int:
    return max(places, default=-1)


# ---- by the tree ----


def _paths_in(text: str) -> list[str]:
    return _PATH.findall(text)


def mark_stale(project: Project, agent: str) -> list[Verdict]:
    """Mark items that name a path or a script which is gone from the tree; and take that back of those that name what
    is there again. Errors: `writing.record`.

    A path counts whose uppermost folder is there: any other one may be relative to somewhere else.
    """
    found: list[Verdict] = []
    for item in writing.load(project, agent).items:
        reason = _gone(project.root, item)
        if reason and not item.stale:
            found.append(Verdict(item.id, "stale", reason))
        elif item.stale.startswith(_BY_TREE) and not reason:
            found.append(Verdict(item.id, "fresh"))
    if found:
        deltas = [records.Outcome(one.id, one.verdict, one.reason) for one in found]
        writing.record(project, agent, deltas)
    return found


def _gone(root: Path, item: Item) -> str:
    """Why an item does not hold any more, "" where it may."""
    if item.kind in ("preference", "relationship"):
        return ""
    text = item.resolution if item.kind == "trap" else item.command or item.text
    paths = [] if "cd " in text else _paths_in(text)
    gone = next((path for path in paths if _is_gone(root, path)), "")
    if gone:
        return f"{_BY_TREE}the path {gone} is gone"
    script = _script_of(text)
    return f"{_BY_TREE}package.json has no script {script}" if script and _lacks(root, script) else ""


def _is_gone(root: Path, path: str) -> bool:
    parts = Path(path).parts
    if ".." in parts or parts[0] in _MADE or not (root / parts[0]).is_dir():
        return False
    return not (root / path).exists()


def _script_of(command: str) -> str:
    """The script of the package that a command runs, "" for none."""
    simple = [one.words for one in simple_commands(command) if one.words]
    words = list(simple[0]) if len(simple) == 1 else []
    return words[2] if len(words) > 2 and words[0] in ("npm", "pnpm", "yarn") and words[1] == "run" else ""


def _lacks(root: Path, script: str) -> bool:
    """Whether a package that is there has no such script."""
    try:
        tree: Any = json.loads((root / "package.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    scripts = tree.get("scripts") if isinstance(tree, dict) else None
    return isinstance(scripts, dict) and script not in scripts
