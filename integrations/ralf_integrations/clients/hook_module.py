"""A client's plugin that calls the hooks: a JavaScript module in a file of its own, with the command in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ralf.errors import UsageError
from ralf.text.patterns import regex
from ralf_integrations.client import Client
from ralf_integrations.clients.jsontext import Insertion
from ralf_integrations.clients.settings import Ours, is_ours

_EVENT = "EVENT"
_COMMAND = "const COMMAND = "
_LIMITS = "const LIMITS = "
_FIRST = "// ralf: written by `ralf init"
_SET = regex(r"(?m)^const (COMMAND|LIMITS) = (.*)$")


def text_of(client: Client, *, shared: bool) -> str:
    """The module: as it lies in this package, with the command of an event and the seconds that each may take."""
    template = (Path(__file__).parent / client.module).read_text(encoding="utf-8")
    command = json.dumps(client.command(_EVENT, shared=shared), ensure_ascii=False)
    limits = json.dumps({event: hook.seconds for event, hook in client.installed.items()})
    text = template.replace(f"{_COMMAND}[]\n", f"{_COMMAND}{command}\n")
    return text.replace(f"{_LIMITS}{{}}\n", f"{_LIMITS}{limits}\n")


def insertions(path: Path, text: str, client: Client, *, shared: bool) -> list[Insertion]:
    """What makes an empty file the module. UsageError for a file that holds something else."""
    if text.strip():
        raise UsageError(path, "holds a module that ralf did not write: left as it is", "move it to another name")
    return [Insertion(len(text), text_of(client, shared=shared))]


def stripped(text: str) -> str:
    """The text without the module, of whatever version."""
    return "" if text.startswith(_FIRST) else text


def ours(text: str) -> list[Ours]:
    """The entries that settings would have in place of the module; [] for another one, or one that was changed so that
    nobody can say.
    """
    if not text.startswith(_FIRST):
        return []
    try:
        found: dict[str, Any] = {name: json.loads(value) for name, value in _SET.findall(text)}
        words, events = [str(word) for word in found["COMMAND"]], [str(event) for event in found["LIMITS"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    named = [(event, [event if word == _EVENT else word for word in words]) for event in events]
    made = [Ours(event, {"command": words[0], "args": words[1:]}) for event, words in named if words]
    return [one for one in made if is_ours(one.entry) or one.words[:2] == ["ralf", "hook"]]
