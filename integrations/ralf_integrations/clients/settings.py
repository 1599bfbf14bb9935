"""A client's hooks in the text of its settings: which entries are ours, how they get in and out of it. All pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ralf.errors import UsageError
from ralf_integrations.clients import jsontext
from ralf_integrations.clients.jsontext import Insertion, NoJson, Value

EMPTY = "{}\n"
"""Settings in which nothing is set."""

_MODULE = "ralf_integrations"
_MOST_WORDS = 5  # `ralf hook EVENT --client NAME`


class Ours(NamedTuple):
    """An entry of ours in a client's settings."""

    event: str
    entry: Any

    @property
    def words(self) -> list[str]:
        """The arguments of its process."""
        return words_of(self.entry)


def insertions(path: Path, text: str, groups: Mapping[str, Mapping[str, Any]]) -> list[Insertion]:
    """What makes settings that hold none of our entries hold them. UsageError for what are no settings."""
    top = _settings(path, text)
    hooks = top.get("hooks")
    if hooks is None:
        return [jsontext.member(text, top, top, [("hooks", {event: [group] for event, group in groups.items()})])]
    if hooks.kind != "object":
        raise _unexpected(path, "hooks", "an object")
    found, new = [], []
    for event, group in groups.items():
        there = hooks.get(event)
        if there is None:
            new.append((event, [group]))
        elif there.kind == "list":
            found.append(jsontext.item(text, top, there, [group]))
        else:
            raise _unexpected(path, f"hooks.{event}", "a list")
    return [*found, jsontext.member(text, top, hooks, new)] if new else found


def ours(path: Path, text: str) -> list[Ours]:
    """Our entries in settings, whoever wrote them there. UsageError for what are no settings."""
    return [Ours(place.event, place.entry.tree()) for place in _places(_settings(path, text))]


def stripped(path: Path, text: str) -> str:
    """Settings without our entries, and without a list or object that held nothing else. UsageError as above."""
    while place := next(_places(_settings(path, text)), None):
        text = jsontext.without(text, place.of, place.number)
    return text


def is_empty(text: str) -> bool:
    """Whether settings set nothing."""
    if not text.strip():
        return True
    try:
        top = jsontext.parsed(text)
    except NoJson:
        return False
    return top.kind == "object" and not top.members


def words_of(entry: Any) -> list[str]:
    """The arguments of the process that an entry starts, [] where it starts none."""
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(command, str):
        return []
    if isinstance(given := entry.get("args"), list):
        return [command, *map(str, given)]
    try:
        return shlex.split(command)
    except ValueError:
        return []


def is_ours(entry: Any) -> bool:
    """Whether an entry calls ralf, in one of the two forms that we write, of whatever version."""
    words = words_of(entry)
    if words[:2] == ["ralf", "hook"]:
        return len(words) <= _MOST_WORDS and not set("".join(words)) & set(";|&<>`$\n")
    return words[1:3] == ["-I", "-S"] and any(f"/{_MODULE}/" in f"{word}/" for word in words[3:])


class _Place(NamedTuple):
    """Where an entry of ours stands. Without it goes item or member `number` of `of`, which holds nothing else."""

    event: str
    entry: Value
    of: Value
    number: int


def _places(top: Value) -> Iterator[_Place]:
    hooks = top.get("hooks")
    for number, (event, _, groups) in enumerate(hooks.members if hooks is not None else ()):
        for place, group in enumerate(groups.items):
            entries = group.get("hooks")
            for index, entry in enumerate(entries.items if entries is not None else ()):
                if is_ours(entry.tree()) and hooks is not None and entries is not None:
                    last = max(n for n, (name, _, _) in enumerate(top.members) if name == "hooks")
                    around = ((entries, index), (groups, place), (hooks, number), (top, last))
                    of, at = next((one for one in around if len(one[0].items or one[0].members) > 1), around[-1])
                    yield _Place(event, entry, of, at)


def _settings(path: Path, text: str) -> Value:
    try:
        top = jsontext.parsed(text if text.strip() else EMPTY)
    except NoJson as error:
        hint = "mend the file; JSON has no comments, and no comma behind the last item"
        raise UsageError(path, f"is no JSON: {error}", hint) from None
    if top.kind != "object":
        raise UsageError(path, "is no JSON object: nothing can be added to it", "settings begin with { and end with }")
    return top


def _unexpected(path: Path, where: str, kind: str) -> UsageError:
    return UsageError(path, f"{where}: expected {kind}", "mend the file, or move it away")
