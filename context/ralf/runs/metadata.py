"""What the files beside a run's documents record of it, in all their shapes, as one value.

metadata.yaml (the loop's, the executor's, the session hook's), .ralf-metadata, RUN.yaml, context.yaml, status.txt and
tracking.json; none has to be there, and none is believed against one that says more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ralf import jsontext, yamltext
from ralf.runs import handwritten, outcomes
from ralf.runs.folder import RunFolder, task_id
from ralf.text import clean, one_line
from ralf.transcripts.content import leaves

NAMES = ("metadata.yaml", ".ralf-metadata", "RUN.yaml", "context.yaml", "status.txt", "tracking.json")
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
_TEXTS = (
    *("discovery", "assumption", "statement", "learning", "question", "action"),
    *("description", "title", "message", "text"),
)
_OURS = "checkpoints"
"""The key under which a run's checkpoints are noted in its tracking: taken in, it would be another checkpoint."""

_NOTHING = ("", "none", "null", "n/a", "unknown", "pending", "-")


@dataclass(slots=True)
class Recorded:
    """What is recorded of a run; "" and () where nothing is.

    outcome     how it ended, in one of the words of `ralf.runs.outcomes`; `status`, as it was written
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


def read(folder: RunFolder) -> Recorded:
    """What a run's folder records beside its documents."""
    found = Recorded()
    for name in NAMES:
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
        except (yamltext.BadYaml, ValueError, OSError) as error:
            if text.strip():
                found.unread.append((name, 1, text))
            found.problems[name] = one_line(str(getattr(error, "what", "") or getattr(error, "strerror", "") or error))
    return found


def _object(text: str) -> Mapping[str, Any]:
    tree = jsontext.load(text)
    if not isinstance(tree, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004  # what it holds, not what we were given
    return tree


def _take_status(found: Recorded, status: str) -> None:
    """A status of its own file counts more than one in a record: the loop writes it last."""
    line = one_line(clean(status))
    found.outcome = outcomes.outcome_of(line) or found.outcome
    found.status = line if outcomes.outcome_of(line) else found.status or line


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
                    if said := _text(part[key]):
                        return said
        return ""

    found.task = found.task or task_id(first("task_claimed", "task_id")) or _numbered(first("task", "current_task"))
    found.title = found.title or first("task_title")
    found.agent = found.agent or first("agent", "agent_type", "agent_id")
    found.started = found.started or _time(first("timestamp_start", "started", "start_time", "started_at"))
    found.started = found.started or _time(first("timestamp"))
    found.ended = found.ended or _time(first("timestamp_end", "end_time", "completed_at"))
    status = first("task_status", "status", "result")
    found.status = found.status or status
    found.outcome = found.outcome or outcomes.outcome_of(status)
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
        for key in ("commit_hash",):
            known.add((at, key))
            if (commit := _text(part.get(key))) and commit.casefold() not in _NOTHING:
                found.commits.append((commit, ""))
    for logged in _listed(parts[""].get("git_commits")):
        if isinstance(logged, Mapping) and (commit := _text(logged.get("hash"))):
            found.commits.append((commit, _text(logged.get("message"))))


def _take_progress(found: Recorded, entry: object, name: str) -> None:
    """A line of a tracked run's log; one that it calls a decision is one."""
    if not isinstance(entry, Mapping) or not (message := _text(entry.get("message"))):
        return
    if entry.get("category") == "decision":
        found.decisions.append({"decision": message, "timestamp": _time(_text(entry.get("timestamp")))})
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
        return _text(entry)
    key = next((key for key in _TEXTS if _text(entry.get(key))), "")
    rest = [f"{name}: {said}" for name, value in entry.items() if name != key and (said := one_line(leaves(value)))]
    said = _text(entry.get(key))
    return f"{said} ({'; '.join(rest)})" if said and rest else said or "; ".join(rest)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) and value.strip() else []


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return ""
    said = clean(str(value)).strip() if isinstance(value, str | int | float) else ""
    return "" if said.casefold() in ("null", "none", "~") else said


def _time(text: str) -> str:
    from ralf.runs.written import time_of

    return time_of(text)
