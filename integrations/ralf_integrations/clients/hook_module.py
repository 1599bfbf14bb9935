"""A client's plugin that calls the hooks: a JavaScript module in a file of its own, with the command in it.

Its last line has a checksum of the lines above. So lines that a person has added to the file are told from ours: around
the module they stay when it is taken out; within it nothing is taken out, for the rest would not be a module.
"""

from __future__ import annotations

import hashlib
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
_LAST = "// ralf: end of what ralf has written, "
_END = regex(rf"(?m)^{_LAST}([0-9a-f]{{16}})\r?\n")
_SET = regex(r"(?m)^const (COMMAND|LIMITS) = (.*)$")


def text_of(client: Client, *, shared: bool) -> str:
    """The module: as it lies in this package, with the command of an event and the seconds that each may take."""
    template = (Path(__file__).parent / client.module).read_text(encoding="utf-8")
    command = json.dumps(client.command(_EVENT, shared=shared), ensure_ascii=False)
    limits = json.dumps({event: hook.seconds for event, hook in client.installed.items()})
    text = template.replace(f"{_COMMAND}[]\n", f"{_COMMAND}{command}\n")
    text = text.replace(f"{_LIMITS}{{}}\n", f"{_LIMITS}{limits}\n")
    return f"{text}{_LAST}{_sum(text)}\n"


def insertions(path: Path, text: str, client: Client, *, shared: bool) -> list[Insertion]:
    """What makes an empty file the module. UsageError for a file that holds something else."""
    if text.strip():
        raise UsageError(path, "holds lines that ralf did not write: left as it is", "move them to another file")
    return [Insertion(len(text), text_of(client, shared=shared))]


def stripped(path: Path, text: str) -> str:
    """The text without the module, of whatever version. UsageError where a person has changed the module itself."""
    while (start := text.find(_FIRST)) >= 0:
        end = _END.search(text, start)
        if end is None or (start and text[start - 1] != "\n") or _sum(text[start : end.start()]) != end[1]:
            what = "holds lines that ralf did not write, within its plugin: left as it is"
            raise UsageError(path, what, f"move your lines to another file in {path.parent}, then delete this one")
        text = text[:start] + text[end.end() :]
    return text


def ours(text: str) -> list[Ours]:
    """The entries that settings would have in place of the module; [] for another one, or one that was changed so that
    nobody can say.
    """
    start = text.find(_FIRST)
    if start < 0:
        return []
    try:
        found: dict[str, Any] = {name: json.loads(value) for name, value in _SET.findall(text, start)}
        words, events = [str(word) for word in found["COMMAND"]], [str(event) for event in found["LIMITS"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    named = [(event, [event if word == _EVENT else word for word in words]) for event in events]
    made = [Ours(event, {"command": words[0], "args": words[1:]}) for event, words in named if words]
    return [one for one in made if is_ours(one.entry) or one.words[:2] == ["ralf", "hook"]]


def _sum(text: str) -> str:
    """Of the text as it was before git or an editor converted its ends of lines."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")).hexdigest()[:16]
