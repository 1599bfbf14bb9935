"""The agent's to-do list, as its tools and the client give it: whole lists and single changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf.facts.commands import flat
from ralf.model.entries import Item
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex
from ralf.transcripts.events import Event

_MOST, _LONGEST = 200, 300  # items that are followed; characters of one

_WHOLE = frozenset({"todowrite", "updateplan", "todolist", "writetodos"})

_TASK = frozenset({"taskcreate", "taskupdate", "tasklist"})

_NUMBER = regex(r"#(\w+)")

_LISTED = regex(r"(?m)^#(\w+)[.:]? \[(\w+)\] (.+)$")

_STATUSES = {
    "in_progress": "in_progress",
    "in-progress": "in_progress",
    "active": "in_progress",
    "completed": "completed",
    "complete": "completed",
    "done": "completed",
}

_GONE = ("deleted", "cancelled", "canceled")


def is_todo_tool(tool: str) -> bool:
    """Whether a tool of this name changes or shows the client's own to-do list."""
    return flat(tool) in _WHOLE | _TASK


def after(items: Sequence[Item], call: Event, result: Event) -> tuple[Item, ...] | None:
    """The list after one call and its result; None where they change nothing."""
    if result.failed:
        return None
    lists = [call.input[key] for key in ("todos", "plan", "items") if isinstance(call.input.get(key), list)]
    match flat(call.tool):
        case name if name in _WHOLE and lists:
            return _items(lists[0])
        case "taskcreate":
            return _created(items, call, result)
        case "taskupdate":
            return _updated(items, call.input)
        case "tasklist" if listed := _LISTED.findall(result.text):
            texts = {item.id: item.text for item in items}
            return tuple(_item(texts.get(id_, line), status, id_) for id_, status, line in listed)
    return None


def _created(items: Sequence[Item], call: Event, result: Event) -> tuple[Item, ...] | None:
    number = _NUMBER.search(result.text)
    subject = str(call.input.get("subject") or call.input.get("description") or "").strip()
    if not subject:
        return None
    new = _item(subject, "pending", number[1] if number else "")
    is_next_list = items and all(old.status == "completed" for old in items) and new.id == "1"
    return (new,) if is_next_list else (*items, new)[-_MOST:]


def _updated(items: Sequence[Item], arguments: Mapping[str, Any]) -> tuple[Item, ...]:
    id_ = str(arguments.get("taskId") or arguments.get("task_id") or arguments.get("id") or "").lstrip("#")
    status = str(arguments.get("status") or "").lower()
    subject = str(arguments.get("subject") or "").strip()
    return tuple(
        replace(item, status=_STATUSES.get(status, status and "pending") or item.status, text=subject or item.text)
        if item.id == id_
        else item
        for item in items
        if item.id != id_ or status not in _GONE
    )


def _items(listed: Sequence[Any]) -> tuple[Item, ...]:
    entries = [{"content": entry} if isinstance(entry, str) else entry for entry in listed]
    items = [
        _item(_content(entry), entry.get("status"), entry.get("id") or number)
        for number, entry in enumerate(entries, 1)
        if isinstance(entry, Mapping) and str(entry.get("status")).lower() not in _GONE
    ]
    return tuple(item for item in items if item.text)[-_MOST:]


def _item(text: str, status: object = None, id_: object = None) -> Item:
    return Item(
        one_line(str(id_ or "")), trimmed(one_line(text), _LONGEST), _STATUSES.get(str(status or "").lower(), "pending")
    )


def _content(entry: Mapping[str, Any]) -> str:
    keys = ("content", "step", "subject", "title", "text", "description")
    return next((entry[key] for key in keys if isinstance(entry.get(key), str)), "")
