"""Reads Pilot's checkpoint.json, the newest of an agent and the older ones in `history/`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ralf.document.tree import load as load_json
from ralf.text.cleaning import clean
from ralf.transcripts.events import Event
from ralf_integrations.blackbox5.runs.decisions import statement_of
from ralf_integrations.blackbox5.runs.registry import decision_of
from ralf_migrations import reading
from ralf_migrations.reading import Kind, Part, Reading, Source, Unreadable, in_words

KIND = Kind(("checkpoint.json", "checkpoint-v*.json"), lambda _: False)

_PATHS = ("path", "file_path", "file", "filename", "name")
_MARKS = ("task_id", "plan_step", "completed_steps", "key_decisions", "current_context", "session_id", "saved_at")
_NOTHING: tuple[object, ...] = (None, "", [], {})

_said = partial(in_words, mark=":")


def order(path: Path) -> tuple[str, int, int]:
    """What is older first: the versions of an agent by their number, then the newest one."""
    found = re.search(r"-v(\d+)\.json$", path.name)
    agent = path.parent.parent if path.parent.name == "history" else path.parent
    return agent.as_posix(), found is None, int(found[1]) if found else 0


def read(source: Source) -> Reading:
    """What a checkpoint comes to: one of ours, with where the work stood."""
    try:
        tree = load_json(source.text)
    except ValueError as error:
        raise Unreadable(f"no JSON: {error}") from None
    inner = [value for value in tree.values() if isinstance(value, dict)] if isinstance(tree, dict) else []
    if len(inner) == 1 and not any(key in tree for key in _MARKS):
        tree = inner[0]  # it stands under a name of its own
    if not isinstance(tree, dict) or sum(key in tree for key in _MARKS) < 2:
        return Reading("left", "unknown", why="no checkpoint of Pilot: none of its keys is there")
    work = {name: value for name, read in _WORK.items() if (value := read(tree)) not in _NOTHING}
    paths = [{"path": path, "did": ["edited"]} for path in _paths(tree.get("files_modified")) if path]
    decisions = list(_decisions(source, tree))
    if not (work or paths or decisions):
        return Reading("nothing", "checkpoint.json", why="saved without a task, a step or a word")
    folder = source.path.parent.parent if source.path.parent.name == "history" else source.path.parent
    task = _said(tree.get("task_id"))
    route, rule = (
        reading.route_of_task(task) if task else reading.route_of_agent(_said(tree.get("session_id")) or folder.name)
    )
    rest = {key: value for key, value in tree.items() if key not in _TAKEN_UP}
    work["pilot_checkpoint"] = {**rest, "source": {"path": source.name, "sha256": source.sha256}}
    state = source.note(
        _words(tree),
        timestamp=_time(tree.get("saved_at")),
        title=_said(tree.get("task_title")) or task or "Checkpoint of Pilot",
        work=work,
        facts={"paths": paths} if paths else {},
    )
    parts = (Part(route, source.notes([state, *decisions], "pilot-checkpoint")),)
    return Reading("imported", "checkpoint.json", parts, rule, len(decisions), len(decisions) + 1)


def _words(tree: Mapping[str, Any]) -> str:
    """The checkpoint in words, a line a field, a list an item a line."""
    lines = []
    for key, value in tree.items():
        if isinstance(value, list):
            lines += [f"{key}:", *(f"- {_said(item)}" for item in value)] if value else []
        elif value not in _NOTHING:
            lines.append(f"{key}: {_said(value) if not isinstance(value, str) else clean(value)}")
    return "\n".join(lines)


def _decisions(source: Source, tree: Mapping[str, Any]) -> Iterator[Event]:
    value = tree.get("key_decisions")
    is_named = isinstance(value, Mapping) and decision_of(value, (1, 1)) is None
    items = value.items() if isinstance(value, Mapping) and is_named else (("", item) for item in _listed(value))
    for number, (name, item) in enumerate(items, start=1):
        found = decision_of(item if isinstance(item, Mapping) else {"decision": _said(item)}, (1, 1))
        if found is None:
            continue
        text = statement_of(found)
        line = next((number for number, line in enumerate(source.lines, start=1) if text[:40] in line), 1)
        found = replace(found, label=found.label or str(name) or str(number), first_line=line)
        words = f"key decision {number}: {f'{name}: ' if name else ''}{_said(item)}"
        event = source.decision(found, source.session(), text=words)
        yield replace(event, timestamp=_time(tree.get("saved_at")))


def _number(value: object, *, last: bool = False) -> int | None:
    """A whole number, also as `2.0`, or the first or last one of `2 of 4`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value) if abs(value) < 1 << 53 else None
    found = re.findall(r"\d{1,9}", value) if isinstance(value, str) else []
    return int(found[-1 if last else 0]) if len(found) > last else None


def _time(value: object) -> str:
    """A time as it was written; seconds since 1970 as a date."""
    if isinstance(value, (int, float)) and 0 < value < 1 << 35:
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return _said(value)


def _steps(value: object) -> list[dict[str, Any]]:
    if isinstance(value, Mapping) and not {"step", "description"} & set(value):
        value = [{"description": said, "step": _number(name)} for name, said in value.items()]
    made = []
    for number, step in enumerate(_listed(value), start=1):
        tree = step if isinstance(step, Mapping) else {"description": step}
        named = tree.get("step")
        told = {key: _said(inner) for key, inner in tree.items() if key != "step"}
        made.append({"step": named if isinstance(named, int) else number, **told})
    return made


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value in _NOTHING else [value]


def _paths(value: object) -> Iterator[str]:
    is_named = isinstance(value, Mapping) and not set(_PATHS) & set(value)
    for item in list(value) if isinstance(value, Mapping) and is_named else _listed(value):
        told = (item.get(key) for key in _PATHS) if isinstance(item, Mapping) else [item]
        yield next(filter(None, map(_said, told)), "")


_WORK: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "current_task": lambda tree: _said(tree.get("task_id")),
    "task_title": lambda tree: _said(tree.get("task_title")),
    "plan_step": lambda tree: _number(tree.get("plan_step")),
    "total_steps": lambda tree: _number(tree.get("total_steps")) or _number(str(tree.get("plan_step")), last=True),
    "completed_steps": lambda tree: _steps(tree.get("completed_steps")),
    "findings": lambda tree: [_said(item) for item in _listed(tree.get("important_findings"))],
    "last_statement": lambda tree: _said(tree.get("current_context")),
}
"""Fields of the active work, and what of a checkpoint they are."""

_TAKEN_UP = (
    *("saved_at", "task_id", "task_title", "plan_step", "total_steps", "completed_steps"),
    *("key_decisions", "files_modified", "current_context", "important_findings"),
)
