"""Run folders: their names and files, what their records say, which one is ours and which came before it."""

from __future__ import annotations

import codecs
import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ralf.document import guarded_yaml
from ralf.document.tree import load as load_json
from ralf.project import Project
from ralf.route import offsets
from ralf.route.load import load_state
from ralf.storage import git_files
from ralf.storage.files import content_of
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line
from ralf.transcripts.events import leaves
from ralf.transcripts.notes import session_of
from ralf_integrations import environment
from ralf_integrations.blackbox5.runs import handwritten

# ---- folder names and files ----


MAX_DOCUMENT = 1 << 20
"""Bytes of one document that are read; a longer one is named, and left alone."""

_MOST_FILES = 200

_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)[_-](\d\d)(\d\d)(\d\d)")

_NAME = re.compile(
    rf"run-(?:(?P<stamp>{_STAMP.pattern})(?:-(?P<task>[A-Za-z][\w.-]*))?|(?P<epoch>\d{{10}})|(?P<number>\d{{1,6}})|.+)\Z"
)

_TASK = re.compile(r"[A-Z][A-Z0-9]{1,15}(?:-[A-Za-z0-9_.]+)*-[A-Za-z0-9_.]+\Z")

_ID = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")

_AGENTS = ("planner", "executor", "architect", "scout", "analyst", "verifier", "validator", "research")

_FIRST = ("THOUGHTS.md", "ASSUMPTIONS.md", "DECISIONS.md")

_LAST = ("LEARNINGS.md", "RESULTS.md", "SUMMARY.md")

_MARKS = (*_FIRST, *_LAST, "metadata.yaml", ".ralf-metadata", "RUN.yaml", "context.yaml", "status.txt", "tracking.json")

_GIVEN = re.compile(r"(?i)(?:.*prompt|AGENT_CONTEXT|TASK-CONTEXT|ACTIVE-CONTEXT|README|task)\.md\Z")
"""Documents that the run was given, not those that it wrote."""

_OUTPUT = re.compile(r"(?i).*(?:output|claude|session|agent)[\w.-]*\.(?:log|txt)\Z")


@dataclass(frozen=True)
class RunFolder:
    """A run's folder. Links in it are not followed, and nothing in it is ever written."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's own name, by which the run goes: `run-0018`, which other agents may have, too."""
        return self.path.name

    @cached_property
    def agent(self) -> str:
        """The agent in whose folder it lies, "" where the path does not tell."""
        parts = [part.lower() for part in self.path.absolute().parts[-4:-1]]
        return next((part for part in reversed(parts) if part in _AGENTS), "")

    @cached_property
    def task(self) -> str:
        """The task that the folder's name tells, "" for none."""
        found = _NAME.match(self.name)
        task = (found["task"] or "") if found is not None else self.name
        if found is None and not _TASK.match(task):
            return ""
        return task_id(task)

    @cached_property
    def started(self) -> str:
        """When the run began, by the folder's name: of the machine's own time, which has no zone here; "" for none."""
        found = _NAME.match(self.name)
        if found is None:
            return ""
        try:
            if found["epoch"]:
                return f"{datetime.fromtimestamp(int(found['epoch']), UTC):%Y-%m-%dT%H:%M:%SZ}"
            if stamp := _STAMP.match(found["stamp"] or ""):
                return datetime(*map(int, stamp.groups())).isoformat()  # type: ignore[arg-type]
        except (ValueError, OverflowError):
            pass
        return ""

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The names of its regular files, sorted, at most 200. OSError where it is gone."""
        with os.scandir(self.path) as entries:
            found = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        return tuple(found[:_MOST_FILES])

    @cached_property
    def documents(self) -> tuple[str, ...]:
        """The Markdown that the run wrote, what came of it last."""
        known = [name for name in self.files if name.lower().endswith(".md") and name not in self.given]
        by_name = {name.upper(): name for name in known}
        first = [by_name[name.upper()] for name in _FIRST if name.upper() in by_name]
        last = [by_name[name.upper()] for name in _LAST if name.upper() in by_name]
        return (*first, *(name for name in known if name not in first and name not in last), *last)

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The Markdown that the run was given: its prompt, its task."""
        return tuple(name for name in self.files if _GIVEN.match(name))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """What the run's client printed, where the loop kept it."""
        return tuple(name for name in self.files if _OUTPUT.match(name))

    def text(self, name: str) -> str:
        """A file's text. OSError where it cannot be read, is none, is a link, or has more than `MAX_DOCUMENT` bytes."""
        content = content_of(self.path / name, most=MAX_DOCUMENT)
        is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        if not is_wide and b"\0" in content:
            raise OSError(errno.EILSEQ, "no text: it holds a NUL byte")
        text = (
            content.decode("utf-16" if is_wide else "utf-8", "replace")
            .removeprefix("\ufeff")
            .replace("\r\n", "\n")
            .replace("\r", "\n")
        )
        return text.replace("\x85", " ").replace("\u2028", " ").replace("\u2029", " ")  # no line ends but for some


def is_run(path: Path) -> bool:
    """Whether a folder is a run's: by its name, or by what lies in it."""
    if not path.is_dir():
        return False
    return bool(_NAME.match(path.name)) or any((path / name).is_file() for name in _MARKS)


def task_id(text: str) -> str:
    """The id of a task that a text begins with, as a route may be called; "" for what is none."""
    word = _ID.match(text.strip().strip("[](){}'\"`*"))
    found = word[0] if word is not None else ""
    if not any(map(str.isdigit, found)) and "-" not in found:
        return ""
    return found if cleaning.is_valid(found) else cleaning.slug(found)


def siblings(folder: RunFolder) -> Iterator[RunFolder]:
    """The other run folders beside one, the newest first, by their names."""
    try:
        with os.scandir(folder.path.parent) as entries:
            found = [
                entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name != folder.name
            ]
    except OSError:
        return
    for name in sorted((name for name in found if _NAME.match(name)), key=_age, reverse=True):
        yield RunFolder(folder.path.parent / name)


def _age(name: str) -> tuple[str, str]:
    run = RunFolder(Path(name))
    return run.started, name


# ---- folders that git brought ----


def is_brought(folder: RunFolder) -> bool:
    """Whether the bytes of any document of a run are those that git has for it: then a clone or a pull may have brought
    them. What the run, or a person, has changed since is their own.
    """
    contents = dict[Path, bytes]()
    for name in folder.files:
        try:
            contents[folder.path / name] = content_of(folder.path / name, most=MAX_DOCUMENT)
        except OSError:  # too long to be read: tracked is enough
            if git_files.tracks(folder.path, Path(name)):
                return True
    return any(git_files.brought(contents, anywhere=False))


# ---- outcomes ----


_OUTCOMES = {
    "COMPLETE": re.compile(
        r"\b(?:complete[d]?|success(?:ful(?:ly)?)?|succeeded|done|finished|passed|merged)\b", re.IGNORECASE
    ),
    "PARTIAL": re.compile(r"\bpartial(?:ly)?\b|\bincomplete\b", re.IGNORECASE),
    "BLOCKED": re.compile(r"\bblock(?:ed|ing)\b|\bwaiting\b|\bon hold\b", re.IGNORECASE),
    "RETRY": re.compile(r"\bretry\b|\btry again\b", re.IGNORECASE),
    "FAILED": re.compile(r"\bfail(?:ed|ure)?\b|\berrored\b|\baborted\b|\bcancel?led\b|\babandoned\b", re.IGNORECASE),
}

_UNDER_WAY = re.compile(
    r"\b(?:in[ _-]?progress|pending|started|active|running|claimed|queued|to ?do|open|not)\b", re.IGNORECASE
)

_LONGEST_STATUS = 60  # characters of a status


def outcome_of(status: str) -> str:
    """What a status as documents have it says of a run's end; "" where the run is under way, or nobody can tell."""
    if len(status) > _LONGEST_STATUS or _UNDER_WAY.search(status):
        return ""
    for outcome in ("FAILED", "BLOCKED", "RETRY", "PARTIAL", "COMPLETE"):
        if _OUTCOMES[outcome].search(status.replace("_", " ")):
            return outcome
    return ""


# ---- records ----
# metadata.yaml (the loop's, the executor's, the session hook's), .ralf-metadata, RUN.yaml, context.yaml, status.txt and
# tracking.json: none has to be there, and none is believed against one that says more.


RECORDS = ("metadata.yaml", ".ralf-metadata", "RUN.yaml", "context.yaml", "status.txt", "tracking.json")
"""The files that are read."""

_LISTS = {
    "actions": ("actions_taken", "actions"),
    "discoveries": ("discoveries", "findings"),
    "learnings": ("learnings",),
    "assumptions": ("assumptions",),
    "questions": ("questions_asked", "questions_answered", "questions"),
    "next_steps": ("next_steps",),
    "blockers": ("blockers",),
    "created tasks": ("tasks_created",),
    "finished tasks": ("tasks_completed",),
}

_PARTS = ("", "state", "results", "loop", "run", "context", "git")

_WORDS_KEYS = (
    *("discovery", "assumption", "statement", "learning", "question", "action"),
    *("description", "title", "message", "text"),
)

_OURS = "checkpoints"
"""The key under which a run's checkpoints are noted in its tracking: taken in, it would be another checkpoint."""

_NOTHING = ("", "none", "null", "n/a", "unknown", "pending", "-")


@dataclass(slots=True)
class Recorded:
    """What is recorded of a run; "" and () where nothing is.

    outcome     how it ended, in one of the words of `outcomes`; `status`, as it was written
    started, ended  ISO 8601 as written
    told        named lists of what it did and found, each entry in words: actions, discoveries, next_steps, blockers …
    notes       prose
    paths       (path, created or edited); `commits`: (hash, message)
    decisions   of RUN.yaml and of a tracked run's log, as trees, each with the words that stand there
    rest        everything else that is filled in, `loop.number: 47`
    file        which file the lists and notes are of
    problems    files that could not be read as what they are, and why
    unread      what of them could not: file, line and words
    """

    task: str = ""
    title: str = ""
    agent: str = ""
    outcome: str = ""
    status: str = ""
    started: str = ""
    ended: str = ""
    summary: str = ""
    notes: list[str] = field(default_factory=list)
    told: dict[str, list[str]] = field(default_factory=dict)
    paths: list[tuple[str, str]] = field(default_factory=list)
    commits: list[tuple[str, str]] = field(default_factory=list)
    decisions: list[Mapping[str, Any]] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    file: str = ""
    problems: dict[str, str] = field(default_factory=dict)
    unread: list[tuple[str, int, str]] = field(default_factory=list)


def read_recorded(folder: RunFolder) -> Recorded:
    """What a run's folder records beside its documents."""
    found = Recorded()
    for name in RECORDS:
        if name not in folder.files:
            continue
        text = ""
        try:
            text = folder.text(name)
            if name == "status.txt":
                _take_status(found, text.strip())
            elif name.endswith(".json"):
                _take(found, _object(text), name)
            else:
                record = handwritten.salvage(text)
                _take(found, record.tree, name)
                if record.broken:
                    first, _, what = record.broken[-1]
                    found.problems[name] = f"line {first}: {what}"
                found.unread += [(name, *words) for words in handwritten.words_at(text, record.broken)]
        except (guarded_yaml.BadYaml, ValueError, OSError) as error:
            if text.strip():
                found.unread.append((name, 1, text))
            found.problems[name] = one_line(str(getattr(error, "what", "") or getattr(error, "strerror", "") or error))
    return found


def _object(text: str) -> Mapping[str, Any]:
    tree = load_json(text)
    if not isinstance(tree, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004  # what it holds, not what we were given
    return tree


def _take_status(found: Recorded, status: str) -> None:
    """A status of its own file counts more than one in a record: the loop writes it last."""
    line = one_line(clean(status))
    found.outcome = outcome_of(line) or found.outcome
    found.status = line if outcome_of(line) else found.status or line


def _take(found: Recorded, tree: Mapping[str, Any], name: str) -> None:
    if isinstance(task := tree.get("task"), Mapping):
        tree = {**tree, "task": "", **{f"task_{key}": task[key] for key in ("id", "title", "status") if key in task}}
    parts = {key: part for key in _PARTS if isinstance(part := tree if not key else tree.get(key), Mapping)}
    known: set[tuple[str, str]] = set()

    def first(*keys: str) -> str:
        for key in keys:
            for at, part in parts.items():
                if key in part:
                    known.add((at, key))
                    if said := _text_of(part[key]):
                        return said
        return ""

    found.task = found.task or task_id(first("task_claimed", "task_id")) or _numbered(first("task", "current_task"))
    found.title = found.title or first("task_title")
    found.agent = found.agent or first("agent", "agent_type", "agent_id")
    found.started = found.started or time_of(first("timestamp_start", "started", "start_time", "started_at"))
    found.started = found.started or time_of(first("timestamp"))
    found.ended = found.ended or time_of(first("timestamp_end", "end_time", "completed_at"))
    status = first("task_status", "status", "result")
    found.status = found.status or status
    found.outcome = found.outcome or outcome_of(status)
    found.summary = found.summary or first("summary")
    for prose in (first("notes"), first("thoughts"), first("error")):
        if prose:
            found.notes.append(prose)
            found.file = found.file or name
    for what, keys in _LISTS.items():
        for entry in _entries(parts, keys, known):
            found.told.setdefault(what, []).append(entry)
            found.file = found.file or name
    if found.summary:
        found.file = found.file or name
    _take_paths(found, parts, known)
    for logged in _listed(tree.get("progress_log")):
        _take_progress(found, logged, name)
    found.decisions += [entry for entry in _listed(tree.get("decisions")) if isinstance(entry, Mapping)]
    known |= {("", key) for key in (*_PARTS, "decisions", "progress_log", "git_commits", _OURS)}
    for at, part in parts.items():
        for key, value in part.items():
            if (at, str(key)) not in known and (said := one_line(leaves(value))) and said.casefold() not in _NOTHING:
                found.rest.append(f"{at + '.' if at else ''}{key}: {said}")


def _numbered(task: str) -> str:
    """The id of a task where a field holds one, "" for words."""
    found = task_id(task)
    return found if any(map(str.isdigit, found)) else ""


def _take_paths(found: Recorded, parts: Mapping[str, Mapping[str, Any]], known: set[tuple[str, str]]) -> None:
    for key, did in (("files_created", "created"), ("files_modified", "edited"), ("files_deleted", "deleted")):
        for at, part in parts.items():
            known.add((at, key))
            lists = [
                part.get(key),
                *(entry.get(key) for entry in _listed(part.get("actions_taken")) if isinstance(entry, dict)),
            ]
            for named in [entry for listed in lists for entry in _listed(listed)]:
                if isinstance(named, str) and (path := clean(named.strip())) and (path, did) not in found.paths:
                    found.paths.append((path, did))
    for at, part in parts.items():
        known.add((at, "commit_hash"))
        if (commit := _text_of(part.get("commit_hash"))) and commit.casefold() not in _NOTHING:
            found.commits.append((commit, ""))
    for logged in _listed(parts[""].get("git_commits")):
        if isinstance(logged, Mapping) and (commit := _text_of(logged.get("hash"))):
            found.commits.append((commit, _text_of(logged.get("message"))))


def _take_progress(found: Recorded, entry: object, name: str) -> None:
    """A line of a tracked run's log; one that it calls a decision is one."""
    if not isinstance(entry, Mapping) or not (message := _text_of(entry.get("message"))):
        return
    if entry.get("category") == "decision":
        found.decisions.append({"decision": message, "timestamp": time_of(_text_of(entry.get("timestamp")))})
    found.told.setdefault("progress", []).append(message)
    found.file = found.file or name


def _entries(
    parts: Mapping[str, Mapping[str, Any]], keys: tuple[str, ...], known: set[tuple[str, str]]
) -> Iterator[str]:
    for at, part in parts.items():
        for key in keys:
            if key in part:
                known.add((at, key))
                yield from (said for entry in _listed(part[key]) if (said := _entry(entry)))


def _entry(entry: object) -> str:
    """An entry of a list in words: what it says, then its other fields."""
    if not isinstance(entry, Mapping):
        return _text_of(entry)
    key = next((key for key in _WORDS_KEYS if _text_of(entry.get(key))), "")
    rest = [f"{name}: {said}" for name, value in entry.items() if name != key and (said := one_line(leaves(value)))]
    said = _text_of(entry.get(key))
    return f"{said} ({'; '.join(rest)})" if said and rest else said or "; ".join(rest)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) and value.strip() else []


def _text_of(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return ""
    said = clean(str(value)).strip() if isinstance(value, str | int | float) else ""
    return "" if said.casefold() in ("null", "none", "~") else said


# ---- the current run ----


_QUEUES = (
    ".autonomous/agents/communications/queue.yaml",
    ".autonomous/communications/queue.yaml",
    "agents/communications/queue.yaml",
)

_PLACES = (".autonomous/runs", "runs", "runs/{agent}", ".autonomous/agents/{agent}/runs")


def current_folder(root: Path) -> RunFolder | None:
    """The folder of the run that we are part of; None where we are of none, or it has none.

    root  the project's directory
    """
    named, run, agent = environment.run()
    if named:
        path = Path(named)
        return RunFolder(path) if path.is_dir() else None
    return next((RunFolder(path) for path in _current_places(root, run, agent) if path.is_dir()), None) if run else None


def current_run(root: Path) -> str:
    """The name of the run that we are part of, as a run folder's session has it, else its id; "" for none."""
    named, run, _ = environment.run()
    if not named and not run:
        return ""
    found = current_folder(root)
    if found is not None:
        return session_of(found.path, root)
    return session_of(Path(named), root) if named else run


def named_task(root: Path) -> str:
    """The task that the name of our run's folder tells, `run-20260209_163419-TASK-7`; "" for none."""
    named, run, _ = environment.run()
    found = current_folder(root)
    return (found or RunFolder(Path(named or run))).task


def noted_task(root: Path) -> str:
    """The task that the metadata of our run says it has claimed; "" for none."""
    found = current_folder(root)
    try:
        return read_recorded(found).task if found is not None else ""
    except OSError:
        return ""


def claimed_task(root: Path) -> str:
    """The task of the queue's entry that our run has claimed; "" for none, and where there is no queue to be read."""
    named, run, _ = environment.run()
    runs = {run, Path(named).name} - {""}
    runs |= {f"run-{one}" for one in runs} | {one.removeprefix("run-") for one in runs}
    for place in _QUEUES:
        try:
            queue = guarded_yaml.load(content_of(root / place, most=MAX_DOCUMENT).decode("utf-8", "replace"))
        except (OSError, guarded_yaml.BadYaml):
            continue
        for entry in (queue.get(key) for key in ("tasks", "queue")):
            for task in entry if isinstance(entry, list) else ():
                if isinstance(task, dict) and str(task.get("claimed_by", "")) in runs:
                    return task_id(str(task.get("id") or task.get("task_id") or ""))
    return ""


def _current_places(root: Path, run: str, agent: str) -> Iterator[Path]:
    if "/" in run or run in (".", ".."):
        return
    names = dict.fromkeys((run, run if run.startswith("run-") else f"run-{run}"))
    for place in _PLACES:
        if agent or "{agent}" not in place:
            yield from (root / place.format(agent=agent) / name for name in names)


# ---- earlier runs ----


_MOST_SIBLINGS = 20  # newest folders that are looked at


def earlier_runs(project: Project, route: str) -> list[RunFolder]:
    """Run folders of a route that may hold what it does not have, the oldest first: of the twenty newest beside ours
    those of its task of which it has no record, and those of its last runs that it knows no end of. Not ours itself,
    and none that began elsewhere and came with git.
    """
    ours = current_folder(project.root)
    if ours is None:
        return []
    found = {folder.path.resolve(): folder for folder in (*_unknown(project, route, ours), *_unended(project, route))}
    found.pop(ours.path.resolve(), None)
    return list(found.values())


def _unknown(project: Project, route: str, ours: RunFolder) -> list[RunFolder]:
    found = []
    for number, folder in enumerate(siblings(ours)):
        if number == _MOST_SIBLINGS:
            break
        [(known, _)] = offsets.known_runs(project, route, [{"run": session_of(folder.path, project.root)}])
        if not known and task_of_run(folder).casefold() == route.casefold() and not is_brought(folder):
            found.append(folder)
    return found[::-1]


def _unended(project: Project, route: str) -> Iterator[RunFolder]:
    state = load_state(project, route)
    for run in state.context.active_work.last_runs if state is not None else ():
        path = project.root / run.run
        if not run.outcome and ".." not in path.parts and is_run(path):
            yield RunFolder(path)


def task_of_run(folder: RunFolder) -> str:
    """The task that a run worked on, by its folder's name or its metadata; "" where neither tells."""
    if folder.task:
        return folder.task
    with suppress(OSError):
        return read_recorded(folder).task
    return ""


# ---- words and times ----


_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?Z|[+-]\d\d:?\d\d)?)?")


def time_of(text: str) -> str:
    """The first ISO 8601 time or date in a text, as written; "" where it has none."""
    found = _TIME.search(text)
    return found[0].replace(" Z", "Z") if found else ""
