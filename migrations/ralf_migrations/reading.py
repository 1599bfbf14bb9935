"""Finds the files of a source, and reads them: the notes for each route, and the account of the fields."""

from __future__ import annotations

import codecs
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from ralf.document.guarded_yaml import BadYaml
from ralf.model import Attempt
from ralf.project import Project
from ralf.storage.files import content_of, open_regular
from ralf.text import cleaning
from ralf.text.cleaning import clean
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import Notes, note, session_of
from ralf.transcripts.reader import Transcript
from ralf_integrations.blackbox5.runs import handwritten, registry, runfolder
from ralf_integrations.blackbox5.runs.folder import RunFolder, read_recorded, task_id
from ralf_integrations.blackbox5.runs.markdown import Line, plain, stripped
from ralf_integrations.blackbox5.runs.written import WrittenDecision, decision_tree
from ralf_migrations.report import Field, Outcome

# ---- finding files ----


_PASSED_OVER = frozenset(
    {
        ".git",
        ".templates",
        "templates",
        "_templates",
        ".hg",
        ".svn",
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".tox",
    }
)
"""Folders that hold no source: those of programs, and of templates."""

_BACKUPS = ("*.backup", "*.backup.*", "*.bak", "*~", "*.orig")


@dataclass(slots=True)
class Found:
    """What was found.

    paths    the files, or folders, of the source
    strange  files that somebody named the folder of, which are none of the source
    backups  copies of such files, and folders of copies
    """

    paths: list[Path] = field(default_factory=list)
    strange: list[Path] = field(default_factory=list)
    backups: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kind:
    """What the files of a source look like.

    names   patterns of their names, case aside
    looks   whether a file of another name is one, by what stands in it: asked of the files that lie directly in a
            folder which somebody named
    suffix  of the files that are asked
    """

    names: tuple[str, ...]
    suffix: str
    looks: Callable[[Path], bool]

    def is_named(self, name: str) -> bool:
        """Whether a file's name is one of the source's."""
        return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in self.names)


def is_backup(name: str) -> bool:
    """Whether a file or folder is a copy of something, by its name."""
    return any(fnmatchcase(name.lower(), pattern) for pattern in _BACKUPS)


def find_files(base: Path, kind: Kind, *, named: bool, store: Path) -> Found:
    """The files of a kind below `base`, or `base` itself where it is a file.

    named  whether somebody named `base`: then its files of other names are looked into
    store  ralf's own folder, which holds no source
    """
    if not base.is_dir():
        return Found([base])
    seen = Found()
    for folder, names in _walk(base, store, seen):
        for name in names:
            path = folder / name
            if is_backup(name):
                if kind.is_named(_original(name)):
                    seen.backups.append(path)
            elif kind.is_named(name):
                seen.paths.append(path)
            elif named and folder == base and name.lower().endswith(kind.suffix):
                (seen.paths if kind.looks(path) else seen.strange).append(path)
    return seen


def find_folders(base: Path, is_one: Callable[[Path, list[str], bool], bool], *, store: Path) -> Found:
    """The folders below `base` that are of the source, `base` itself included.

    is_one  asked of a folder, the names of its files, and whether it lies within one of the source
    """
    seen = Found()
    inner: set[Path] = set()
    for folder, names in _walk(base, store, seen):
        if is_one(folder, names, not inner.isdisjoint(folder.parents)):
            inner.add(folder)
    seen.paths = sorted(inner)
    return seen


def _walk(base: Path, store: Path, seen: Found) -> Iterator[tuple[Path, list[str]]]:
    """Every folder and the names of its files; links are not followed, a folder that cannot be read is strange."""
    for place, inner, names in os.walk(base, onerror=lambda error: seen.strange.append(Path(error.filename))):
        folder = Path(place)
        inner[:] = sorted(name for name in inner if name not in _PASSED_OVER and folder / name != store)
        seen.backups += [folder / name for name in inner if is_backup(name)]
        inner[:] = [name for name in inner if not is_backup(name)]
        yield folder, sorted(names)


def _original(name: str) -> str:
    """The name of the file that a backup is of: `DECISIONS.md.backup.2026` → `DECISIONS.md`."""
    for mark in (".backup", ".bak", ".orig", "~"):
        head, found, tail = name.partition(mark)
        if found:
            return head if "." in head else head + tail[tail.rfind(".") :] if "." in tail else head
    return name


# ---- reading files ----


MAX_BYTES = 16 << 20
"""Bytes of one file that are read; a larger one is listed as one that cannot be read."""

FIELD = regex(r"\s*(?:[-*+]\s+)?\*\*(?P<name>[A-Za-z][\w ]{0,39}?)\s*(?::\*\*|\*\*\s*:)\s*(?P<value>.*)$")
"""A field in bold, also as a bullet: `**Task:** TASK-7`, `- **Status**: done`."""


@dataclass(frozen=True)
class Source:
    """A file that is to be taken over, as it stands.

    name    its path in the project, or the whole of it outside: how reports and decisions name it
    sha256  of its bytes
    """

    project: Project
    path: Path
    name: str
    sha256: str
    size: int
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """Its lines."""
        return self.text.split("\n")

    def excerpt(self, first: int, last: int) -> str:
        """Some of its lines, counted from 1, both included."""
        return "\n".join(self.lines[first - 1 : last])

    def session(self, part: str = "") -> str:
        """Its name as a session, or that of a part of it."""
        session = session_of(self.path, self.project.root)
        return f"{session}#{part}" if part else session


@dataclass(frozen=True, slots=True)
class Part:
    """What goes into one route, as one transcript."""

    route: str
    transcript: Transcript


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file comes to.

    outcome  imported where there are parts, or why there are none
    rule     why its routes are those
    sha256, size  of a folder's files together; a file's are its own
    """

    outcome: Outcome
    shape: str
    parts: tuple[Part, ...] = ()
    rule: str = ""
    fields: tuple[Field, ...] = ()
    decisions: int = 0
    notes: int = 0
    why: str = ""
    sha256: str = ""
    size: int = 0


class Unreadable(Exception):
    """A file whose content cannot be told: no access, no text, no YAML or JSON; the message says which."""


def opened(project: Project, path: Path) -> Source:
    """A file with its text; Unreadable for anything else."""
    try:
        content = content_of(path, most=MAX_BYTES)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"no UTF-8 text: byte {0 if is_wide else error.start:,}") from None
    if "\0" in text:
        raise Unreadable("no text: it holds a NUL byte")
    text = handwritten.without_control(text.replace("\r\n", "\n").replace("\r", "\n"))
    return Source(project, path, name_of(project, path), hashlib.sha256(content).hexdigest(), len(content), text)


def beginning(path: Path, most: int = 4_096) -> str:
    """The first bytes of a file as text, "" for what is no regular file, or cannot be read."""
    try:
        with open_regular(path) as file:
            text = file.read(most).decode("utf-8-sig", "replace")
            return text.replace("\r\n", "\n").replace("\r", "\n")
    except OSError:
        return ""


def name_of(project: Project, path: Path) -> str:
    """A path as reports name it: from the project on, whole where it lies outside."""
    whole = path.absolute()
    for base in (project.root.absolute(), project.root.resolve()):
        if whole == base or base in whole.parents:
            return clean(whole.relative_to(base).as_posix())
    return clean(whole.as_posix())


def notes(
    source: Source, events: Iterable[Event], *, part: str = "", what: str, attempt: Attempt | None = None
) -> Notes:
    """Notes of a source as a transcript of what somebody brought.

    part     which part of it, where it has several
    attempt  the run that this part is of, if it is one
    """
    return Notes(source.path, source.session(part), events, format=what, origin="import", attempt=attempt)


def decision_note(source: Source, one: WrittenDecision, session: str, when: str, **fields: str) -> Event:
    """A decision of a document in its own words, and as a decision; `when` where it does not say that itself."""
    tree = decision_tree(one, session)
    return note(
        source.excerpt(one.first_line, one.last_line).strip("\n"),
        path=source.name,
        line=one.first_line,
        timestamp=tree.get("timestamp", "") or when,
        **fields,
        decision=tree,
        file_sha256=source.sha256,
    )


def leaves(tree: object, at: str = "") -> list[str]:
    """The names of all values of a tree, `[]` for the items of a list, each as often as it is there; an empty list or
    mapping is a value.
    """
    if isinstance(tree, Mapping) and tree:
        return [name for key, value in tree.items() for name in leaves(value, f"{at}.{key}" if at else str(key))]
    if isinstance(tree, list) and any(isinstance(item, (Mapping, list)) for item in tree):
        return [name for item in tree for name in leaves(item, f"{at}[]")]
    return [at] if at else []


def accounted(tree: object, fates: Mapping[str, tuple[str, str]], default: tuple[str, str]) -> list[Field]:
    """An account of all values of a tree.

    fates    by the beginning of a name (`work_queue`), fate and where; the longest that fits counts
    default  of the others
    """
    made = []
    for name, count in Counter(leaves(tree)).items():
        keys = [key for key in fates if name == key or name.startswith((f"{key}.", f"{key}["))]
        fate, where = fates[max(keys, key=len)] if keys else default
        made.append(Field(name, fate, where, count))  # type: ignore[arg-type]
    return made


def in_words(value: object, *, mark: str = "") -> str:
    """A value in words, on one line; `mark` stands behind the names of what a mapping holds."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}{mark} {in_words(inner, mark=mark)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(in_words(item, mark=mark) for item in value)
    return "" if value is None else plain(str(value))


def text_of(lines: Sequence[Line]) -> str:
    """Lines as they stand, without the blank ones and rules around them."""
    return "\n".join(line.text for line in stripped(lines, rules=True))


# ---- routes ----


BY_TASK, BY_AGENT, BY_NEITHER = "the task", "the agent's name", "neither a task nor an agent is told"
"""Why a route was chosen."""

FALLBACK = "default"

_TASK_ID = regex(r"\b(?:TASK|RALF|BUG|FEAT|PLAN|CORE|DOCS|IMP)-[A-Za-z0-9][\w-]*")

AGENTS = (
    "planner",
    "executor",
    "architect",
    "scout",
    "analyst",
    "verifier",
    "validator",
    "auditor",
    "fixer",
    "research",
)

_RUN_NAME = regex(r"run-.*|\d{8}[-_]\d{6}.*")

_NO_AGENTS = frozenset(
    "runs runs.migrated archived completed research unknown agents active working tasks memory .autonomous".split()
)


def route_of_task(task: str) -> tuple[str, str]:
    """A task's route, and the rule."""
    return cleaning.slug(task), BY_TASK


def route_of_agent(agent: str) -> tuple[str, str]:
    """An agent's route, and the rule."""
    return cleaning.slug("-".join(agent.lower().split())), BY_AGENT


def route_of_run(folder: Path) -> tuple[str, str]:
    """The route of a run folder, and the rule; the folder need not be there any more."""
    run = RunFolder(folder)
    if task := run.task or _task_in_files(run) or task_above(folder):
        return route_of_task(task)
    agent = run.agent or agent_in(folder)
    return route_of_agent(agent) if agent else (FALLBACK, BY_NEITHER)


def _task_in_files(run: RunFolder) -> str:
    """The task that a run's records tell, else its documents, at their tops, else its registry of decisions."""
    with suppress(OSError, BadYaml):
        if task := read_recorded(run).task or runfolder.task_in_documents(run):
            return task
        if runfolder.REGISTRY in run.files:
            return task_id(registry.read(run.text(runfolder.REGISTRY)).task)
    return ""


def task_above(path: Path) -> str:
    """The task in whose folder a path lies, "" for none."""
    return next((part for part in reversed(path.parts) if _TASK_ID.fullmatch(part) and task_in(part)), "")


def task_in(text: str) -> str:
    """The first id of a task that a text names, "" for none."""
    found = _TASK_ID.search(text)
    return found[0].rstrip("-") if found and any(map(str.isdigit, found[0])) else ""


def agent_in(path: Path) -> str:
    """The agent that a path names, "" for none: `agents/NAME/…`, or one that is known."""
    parts = path.parts
    for part in reversed(parts):
        head = part.lower().partition("__")[0]
        if head in AGENTS:
            return head
    for place, part in enumerate(parts[:-1]):
        if part == "agents" and parts[place + 1] not in _NO_AGENTS and not _RUN_NAME.match(parts[place + 1]):
            return parts[place + 1]
    return ""
