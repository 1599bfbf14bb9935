"""What the tools of a Codex session did: calls, their results, and processes that went on in the background."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any

from ralf.transcripts import codexoutput, codextyped
from ralf.transcripts.content import Record, arguments, leaves, whole, words
from ralf.transcripts.events import Event
from ralf.transcripts.records import Base
from ralf.trim import without_middle

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""Types of the items that are calls, and of those that are what a tool answered."""

WITHIN = "exec-"
"""How the ids begin of what a script has called: the conversation itself holds no record of that."""

_ESCAPED = re.compile(rb"%([0-9a-fA-F]{2})")
_OUTPUT_KEPT = (6_000, 6_000)  # characters of what a command printed that no item of the conversation shows


class Calls:
    """The calls of one reading whose results are still to come. `others` takes our own output out of a text.

    A command that goes on in the background has no result before its end: an event tells that, or the output of a later
    call that asked its process.
    """

    def __init__(self, others: Callable[[str], str]) -> None:
        self._others = others
        self._tools: dict[str, str] = {}
        self._asked: dict[str, Mapping[str, Any]] = {}
        self._running: dict[str, str] = {}  # process → the call that started it, "" once its end was told
        self._polls: dict[str, str] = {}  # call → the process that it asks

    def tells(self, id_: str) -> bool:
        """Whether an event about a command or patch of this id says what no item of the conversation does."""
        return id_.startswith(WITHIN) or id_ in self._running.values()

    def called(self, inner: str, payload: Record, base: Base) -> list[Event]:
        """The events of an item that is a call."""
        call_id = words(payload.get("call_id")) or words(payload.get("id"))
        if inner == "local_shell_call":
            return [self._call("local_shell", call_id, payload.get("action"), base)]
        if inner == "web_search_call":  # its answer is not recorded
            call = self._call("web_search", call_id, payload.get("action"), base)
            self._tools.pop(call_id, None)
            return [call, base.event("result", "", tool="web_search", call_id=call_id)]
        given = payload.get("arguments" if inner == "function_call" else "input")
        name, space = words(payload.get("name")), words(payload.get("namespace"))
        name = f"{space}__{name}" if space not in ("", "functions") else name
        if isinstance(given, str):
            tree = _parsed(given) if inner == "function_call" else None
            given = {"input": given} if tree is None else tree
        return [self._call(name, call_id, given, base)]

    def _call(self, name: str, call_id: str, given: object, base: Base, *, cwd: str = "") -> Event:
        taken = arguments(given)
        self._tools[call_id] = name
        if name == "write_stdin":
            self._polls[call_id] = str(taken.get("session_id", ""))
        elif name == "request_user_input":
            self._asked[call_id] = taken
        where = cwd or words(taken.get("workdir")) or words(taken.get("working_directory"))
        where = posixpath.normpath(posixpath.join(base.cwd, where)) if where else base.cwd
        return base.event("call", leaves(taken), tool=name, call_id=call_id, input=taken, cwd=where)

    def answered(self, payload: Record, base: Base) -> list[Event]:
        """The events of an item that is what a tool answered."""
        call_id = words(payload.get("call_id"))
        tool, output = self._tools.pop(call_id, ""), codexoutput.taken_apart(payload.get("output"))
        process = self._polls.pop(call_id, "")
        if output.running and not process:
            self._running[output.running] = call_id
            return [base.event("result", self._others(output.text), tool=tool)]  # not yet the call's result
        answer, secret = codextyped.answered(self._asked.pop(call_id, None), output.text)
        text = "" if secret else self._others(output.text)
        ended: dict[str, Any] = {
            "exit_status": output.status,
            "failed": output.failed,
            "refused": output.refused,
        }
        made = []
        if process in self._running and not output.refused:
            started = self._running[process]
            if started and output.status is not None:
                self._running[process] = ""
                made.append(base.event("result", text, tool="exec_command", call_id=started, **ended))
                text = ""
            ended = {}
        made.append(base.event("result", text, tool=tool, call_id=call_id, **ended))
        if answer:
            made.append(base.event("user", answer))
        return made

    def executed(self, item: Record, base: Base) -> list[Event]:
        """A command of which an event tells: one that a script ran, or the end of one in the background."""
        id_, status = words(item.get("id")), whole(item.get("exit_code"))
        text = self._others(without_middle(words(item.get("aggregated_output")), *_OUTPUT_KEPT)[0])
        failed = bool(status) or item.get("status") == "failed"
        result = base.event(
            "result",
            text,
            tool="exec_command",
            call_id=id_,
            exit_status=status,
            failed=failed,
            refused=item.get("status") == "declined",
        )
        process = next((name for name, call in self._running.items() if call == id_), None)
        if process is not None and status is not None:
            self._running[process] = ""
            return [result]
        if not id_.startswith(WITHIN):
            return []  # it was stopped with the client, or is in the conversation itself
        call = self._call("exec_command", id_, {"command": item.get("command")}, base, cwd=_folder(item.get("cwd")))
        self._tools.pop(id_, None)
        return [call, result]

    def patched(self, item: Record, base: Base) -> list[Event]:
        """Files that a script changed, of which an event tells."""
        id_, changes = words(item.get("id")), item.get("changes")
        if not id_.startswith(WITHIN) or not isinstance(changes, dict):
            return []
        failed = item.get("status") != "completed"
        text = "\n".join(part for path, change in changes.items() for part in (words(path), leaves(change)) if part)
        call = base.event("call", text, tool="apply_patch", call_id=id_, input=arguments({"changes": changes}))
        output = self._others(words(item.get("stderr" if failed else "stdout")))
        return [call, base.event("result", output, tool="apply_patch", call_id=id_, failed=failed)]


def _folder(value: object) -> str:
    """A folder that newer versions write as a `file:` URL."""
    text = words(value)
    if not text.startswith("file://"):
        return text
    plain = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), text.removeprefix("file://").encode())
    return words(plain.decode("utf-8", "replace"))


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None
