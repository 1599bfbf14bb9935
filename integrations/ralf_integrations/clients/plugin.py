"""The plugin of Claude Code: a folder that is made from the same events, commands and texts as everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ralf import __version__
from ralf.errors import Busy, UsageError
from ralf.storage import durable, files as safe_files
from ralf.storage.files import content_of
from ralf_integrations.client import CLAUDE_CODE, packaged_text

NAME = "ralf"
COMMANDS = ("checkpoint", "handover", "show", "route")
_MANIFEST = ".claude-plugin/plugin.json"
_DESCRIPTION = "Keeps what a long-running coding agent must not forget: checkpoints, decisions, on demand."
_AUTHOR = {"name": "The ralf authors"}


def files() -> dict[str, str]:
    """Each file of the plugin, by its path in the folder."""
    manifest = {
        "name": NAME,
        "version": __version__,
        "description": _DESCRIPTION,
        "author": _AUTHOR,
        "license": "MIT",
        "keywords": ["context", "memory", "checkpoint"],
    }
    market = {
        "name": NAME,
        "owner": _AUTHOR,
        "description": _DESCRIPTION,
        "plugins": [{"name": NAME, "source": "./", "description": _DESCRIPTION}],
    }
    groups = CLAUDE_CODE.groups(shared=True)
    hooks = {"description": _DESCRIPTION, "hooks": {event: [group] for event, group in groups.items()}}
    server = {"mcpServers": {NAME: {"command": "ralf", "args": ["mcp"]}}}
    return {
        _MANIFEST: _json(manifest),
        ".claude-plugin/marketplace.json": _json(market),
        "hooks/hooks.json": _json(hooks),
        ".mcp.json": _json(server),
        "skills/ralf/SKILL.md": packaged_text("skill.md") + packaged_text("guidance.md"),
        **{f"commands/{name}.md": packaged_text(f"commands/{name}.md") for name in COMMANDS},
        "README.md": packaged_text("README.md"),
    }


def plan(folder: Path) -> dict[Path, bytes]:
    """The files of the plugin that are not in a folder as they should be. UsageError for a folder of another plugin,
    and for a link in it.
    """
    _check(folder)
    wanted = {folder / name: text.encode() for name, text in files().items()}
    return {path: content for path, content in wanted.items() if _content(path) != content}


def write(changes: dict[Path, bytes]) -> None:
    """Write them, the manifest last: a plugin is one when it is whole."""
    for path in sorted(changes, key=lambda path: path.name == "plugin.json"):
        safe_files.make(path.parent, mode=safe_files.NOT_WRITABLE_BY_OTHERS)
        durable.write(path, changes[path], mode=path.parent.stat().st_mode & 0o644)
        if _content(path) != changes[path]:
            raise Busy(path, "was changed in the moment it was written", "look at it, and try again")


def _check(folder: Path) -> None:
    for name in files():
        for place in (folder / name, *(folder / name).parents):
            if place == folder:
                break
            if place.is_symlink():
                raise UsageError(place, "is a symbolic link: not written through", "name an empty folder")
    there = _content(folder / _MANIFEST)
    try:
        name = NAME if there is None else json.loads(there)["name"]
    except (ValueError, TypeError, KeyError, RecursionError):
        name = ""
    if name != NAME:
        raise UsageError(folder, "holds another plugin", "name an empty folder")


def _content(path: Path) -> bytes | None:
    try:
        return content_of(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _json(tree: Any) -> str:
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"
