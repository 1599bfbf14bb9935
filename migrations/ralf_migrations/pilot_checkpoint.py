"""Reads Pilot's checkpoint.json, the newest of an agent and the older ones in `history/`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ralf.document.tree import load as load_json
from ralf.text.cleaning import clean
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import note
from ralf_integrations.blackbox5.runs.registry import decision_of
from ralf_integrations.blackbox5.runs.written import decision_tree, statement_of
from ralf_migrations import reading
from ralf_migrations.reading import Kind, Part, Reading, Source, Unreadable, accounted, in_words, notes

_NAME = regex(r"checkpoint(?:-v\d+)?\.json$", re.IGNORECASE)
_KNOWN = {
    "version": "active_work.pilot_checkpoint",
    "session_id": "the session's name; active_work.pilot_checkpoint",
    "saved_at": "when it was said",
    "task_id": "active_work.current_task",
    "task_title": "active_work.task_title",
    "plan_step": "active_work.plan_step",
    "total_steps": "active_work.total_steps",
    "completed_steps": "active_work.completed_steps",
    "key_decisions": "decisions",
    "files_modified": "facts.paths",
    "current_context": "active_work.last_statement; evidence",
    "important_findings": "active_work.findings",
    "tool_call_count": "active_work.pilot_checkpoint",
    "output_bytes": "active_work.pilot_checkpoint",
}
_OTHER = ("carried", "active_work.pilot_checkpoint")
_PATHS = ("path", "file_path", "file", "filename", "name")
_MARKS = ("task_id", "plan_step", "completed_steps", "key_decisions", "current_context", "session_id", "saved_at")


_said = partial(in_words, mark=":")

KIND = Kind(("checkpoint.json", "checkpoint-v*.json"), ".json", lambda path: bool(_NAME.search(path.name)))


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
    tree = _unwrapped(tree)
    if not isinstance(tree, dict) or sum(key in tree for key in _MARKS) < 2:
        return Reading("left", "unknown", why="no checkpoint of Pilot: none of its keys is there")
    decisions = list(_decisions(source, tree))
    said = {key: value for key, value in tree.items() if value not in (None, "", [], {})}
    if not any(
        key in said
        for key in _KNOWN
        if key not in ("version", "session_id", "saved_at", "tool_call_count", "output_bytes")
    ):
        fields = tuple(accounted(tree, {}, ("left", "nothing in it")))
        return Reading("nothing", "checkpoint.json", fields=fields, why="saved without a task, a step or a word")
    route, rule = _route(source, tree)
    events = [_note(source, tree), *decisions]
    return Reading(
        "imported",
        "checkpoint.json",
        (Part(route, notes(source, events, what="pilot-checkpoint")),),
        rule,
        tuple(accounted(tree, {key: ("carried", where) for key, where in _KNOWN.items()}, _OTHER)),
        decisions=len(decisions),
        notes=len(events),
    )


def _unwrapped(tree: object) -> object:
    """A checkpoint, also where it stands under a name of its own."""
    inner = [value for value in tree.values() if isinstance(value, dict)] if isinstance(tree, dict) else []
    wrapped = len(inner) == 1 and not any(key in tree for key in _MARKS)  # type: ignore[operator]
    return inner[0] if wrapped and sum(key in inner[0] for key in _MARKS) > 1 else tree


def _route(source: Source, tree: Mapping[str, Any]) -> tuple[str, str]:
    if task := _said(tree.get("task_id")):
        return reading.route_of_task(task)
    session = _said(tree.get("session_id"))
    folder = source.path.parent.parent if source.path.parent.name == "history" else source.path.parent
    return reading.route_of_agent(session or folder.name)


def _note(source: Source, tree: Mapping[str, Any]) -> Event:
    work: dict[str, Any] = {
        "current_task": _said(tree.get("task_id")),
        "task_title": _said(tree.get("task_title")),
        "plan_step": _number(tree.get("plan_step")),
        "total_steps": _number(tree.get("total_steps")) or _number(str(tree.get("plan_step")), last=True),
        "completed_steps": _steps(tree.get("completed_steps")),
        "findings": [_said(item) for item in _listed(tree.get("important_findings"))],
        "last_statement": _said(tree.get("current_context")),
    }
    rest = {key: value for key, value in tree.items() if key not in _KNOWN or "pilot_checkpoint" in _KNOWN[key]}
    work = {key: value for key, value in work.items() if value not in (None, "", [])}
    work["pilot_checkpoint"] = {**rest, "source": {"path": source.name, "sha256": source.sha256}}
    paths = [{"path": _path(item), "did": ["edited"]} for item in _files(tree.get("files_modified")) if _path(item)]
    title = _said(tree.get("task_title")) or _said(tree.get("task_id")) or "Checkpoint of Pilot"
    return note(
        _words(tree),
        path=source.name,
        line=1,
        timestamp=_time(tree.get("saved_at")),
        title=title,
        work=work,
        facts={"paths": paths} if paths else {},
    )


def _words(tree: Mapping[str, Any]) -> str:
    """The checkpoint in words, a line a field, a list an item a line."""
    lines = []
    for key, value in tree.items():
        if isinstance(value, list):
            lines += [f"{key}:", *(f"- {_said(item)}" for item in value)] if value else []
        elif value not in (None, "", {}):
            lines.append(f"{key}: {_said(value) if not isinstance(value, str) else clean(value)}")
    return "\n".join(lines)


def _decisions(source: Source, tree: Mapping[str, Any]) -> Iterator[Event]:
    for number, (name, item) in enumerate(_named(tree.get("key_decisions")), start=1):
        given = item if isinstance(item, Mapping) else {"decision": item if isinstance(item, str) else _said(item)}
        found = decision_of(given, (1, 1))
        if found is None:
            continue
        found = replace(found, label=found.label or name or str(number))
        text = statement_of(found)
        yield note(
            f"key decision {number}: {f'{name}: ' if name else ''}{_said(item)}",
            path=source.name,
            line=next((number for number, line in enumerate(source.lines, start=1) if text[:40] in line), 1),
            timestamp=_time(tree.get("saved_at")),
            decision=decision_tree(found, source.session()),
            file_sha256=source.sha256,
        )


def _named(value: object) -> list[tuple[str, Any]]:
    """The items of a list, or those of a mapping with their names."""
    if isinstance(value, Mapping) and decision_of(value, (1, 1)) is None:
        return [(str(name), item) for name, item in value.items()]
    return [("", item) for item in _listed(value)]


def _number(value: object, *, last: bool = False) -> int | None:
    """A whole number, also as `2.0`, or the first or last one of `2 of 4`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value) if value == value and abs(value) < 1 << 53 else None
    found = re.findall(r"\d{1,9}", value) if isinstance(value, str) else []
    return int(found[-1 if last else 0]) if found and (not last or len(found) > 1) else None


def _time(value: object) -> str:
    """A time as it was written; seconds since 1970 as a date."""
    if isinstance(value, (int, float)) and 0 < value < 1 << 35:
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return _said(value)


def _steps(value: object) -> list[dict[str, Any]]:
    if isinstance(value, Mapping) and not {"step", "description"} & set(value):
        return [
            _step({"description": said, "step": _number(name)}, n) for n, (name, said) in enumerate(value.items(), 1)
        ]
    return [_step(step, number) for number, step in enumerate(_listed(value), start=1)]


def _step(step: object, number: int) -> dict[str, Any]:
    if not isinstance(step, Mapping):
        return {"step": number, "description": _said(step)}
    named = step.get("step")
    made = {"step": named if isinstance(named, int) else number}
    return made | {key: _said(value) for key, value in step.items() if key != "step"}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value in (None, "", {}) else [value]


def _files(value: object) -> list[Any]:
    return list(value) if isinstance(value, Mapping) and not set(_PATHS) & set(value) else _listed(value)


def _path(item: object) -> str:
    if isinstance(item, Mapping):
        return next((said for key in _PATHS if (said := _said(item.get(key)))), "")
    return _said(item)
