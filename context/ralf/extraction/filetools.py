"""Knows the clients' file tools: what a tool does to a file, and which file its arguments name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_DONE = ("created", "edited", "deleted", "read")
_PATH_KEYS = ("file_path", "notebook_path", "absolute_path", "filePath", "filepath", "target_file", "path")
_VERBS = (
    ("delete", "deleted"),
    ("remove", "deleted"),
    ("edit", "edited"),
    ("replace", "edited"),
    ("insert", "edited"),
    ("append", "edited"),
    ("patch", "edited"),
    ("diff", "edited"),
    ("write", "edited"),
    ("createfile", "created"),
    ("read", "read"),
    ("view", "read"),
    ("openfile", "read"),
)


def named_in(arguments: Mapping[str, Any]) -> str:
    """The path that a file tool's arguments name, "" where there is none."""
    return next((arguments[key] for key in _PATH_KEYS if isinstance(arguments.get(key), str)), "")


_SHOWN = re.compile(r"(?m)^((?:[\w@.+~-]{0,80}/){0,16}[\w@.+-]{1,80}\.[A-Za-z]\w{0,7}):\d+:")
_LONGEST_OUTPUT, _MOST_SHOWN = 20_000, 3
_FILE = re.compile(r"[^/\\]\.[A-Za-z]\w{0,7}$")


def did_by(tool: str, arguments: Mapping[str, Any]) -> str:
    """What a tool of this name does to the file that its arguments name; "" if it is no file tool."""
    name = tool.lower().rpartition("__")[2].replace("_", "").replace("-", "").replace(".", "")
    if "strreplace" in name or "texteditor" in name:
        return {"view": "read", "create": "created"}.get(str(arguments.get("command", "")), "edited")
    if (
        any(word in name for word in ("grep", "glob", "search", "list", "find", "issue", "comment"))
        and "replace" not in name
    ):
        return "read" if "grep" in name and _FILE.search(named_in(arguments)) else ""  # one file was searched
    for word, did in _VERBS:
        if word in name:
            return did
    return ""


_CHANGES = {"add": "created", "update": "edited", "delete": "deleted"}


def changed(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(path, what was done to it) of a call whose arguments list changes by path, as Codex tells a patch's outcome."""
    changes = arguments.get("changes")
    found: list[tuple[str, str]] = []
    for path, change in changes.items() if isinstance(changes, Mapping) else ():
        did = _CHANGES.get(str(change.get("type"))) if isinstance(change, Mapping) else None
        moved = change.get("move_path") if did else None
        if did and isinstance(moved, str) and moved:
            found += [(path, "deleted"), (moved, "created")]
        elif did:
            found.append((path, did))
    return found


def shown_by(tool: str, output: str) -> tuple[str, ...]:
    """The files of which a search over folders shows lines, where they are few enough to have been looked at."""
    if "grep" not in tool.lower():
        return ()
    shown = tuple(dict.fromkeys(_SHOWN.findall(output[:_LONGEST_OUTPUT])))
    return shown if len(shown) <= _MOST_SHOWN else ()


def changes_file(tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a tool call writes, creates or deletes the file that its arguments name."""
    return did_by(tool, arguments) in ("edited", "created", "deleted")


def in_order(did: Sequence[str]) -> tuple[str, ...]:
    """What was done to a file, each once, in one order."""
    return tuple(word for word in _DONE if word in did)
