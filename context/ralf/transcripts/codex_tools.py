"""What the tools of Codex were called with and answered, and what a person answered by one of them."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ralf.text.cleaning import clean, without_middle
from ralf.text.frozen import dataclass, replace
from ralf.text.patterns import regex
from ralf.transcripts.events import DECLINED, Event, Record, arguments, blocks, labels, leaves, object_in, whole, words
from ralf.transcripts.lines import Base, parsed

# ---- the output of a tool, without what the client wrote around it ----


_HEADER = regex(
    r"(?:(?:Chunk ID|Wall time|Exit code|Process exited with code|Process running with session ID|Original token count"
    r"|Total output lines|Script (?:completed|failed|terminated|running))\b[^\n]{0,200}\n)+Output:\n"
)

_STATUS = regex(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.M)

_EXITED = regex(r"Process exited with code (-?\d{1,9})(?:\n|\Z)")
"""How a script prints what a command answered that it has run."""

_IN_SCRIPT = regex(
    r"\bexec_command\(\s*\{[^{}]{0,2000}?\bcmd\s*:\s*"
    r"(\"(?:[^\"\\\n]|\\.){1,20000}+\"|'(?:[^'\\\n]|\\.){1,20000}+'|`(?:[^`\\]|\\.){1,20000}+`)",
    re.S,
)
"""A command in a script, as a literal of JavaScript."""

_RUNNING = regex(r"^Process running with session ID (\d{1,18})$", re.M)

_CANCELLED = "request_user_input was cancelled before receiving a response"
"""What the client answers in the place of a person who closed a question."""

_SCRIPT_FAILED = regex(r"^Script (?:failed|terminated)\b", re.M)

_NEVER_RAN = regex(
    rf"{_CANCELLED}|unsupported (?:custom tool )?call\b|failed to parse function arguments"
    r"|(?:exec command|patch) rejected\b|rejected by user|tool call (?:was )?(?:rejected|denied)"
    r"|user (?:rejected|denied|cancelled)\b"
    r'|exec_command failed: CreateProcess \{ message: "Rejected\('
)

_DECLINED = regex(
    rf"{_CANCELLED}|(?:exec command|patch) rejected by user|rejected by user|tool call (?:was )?(?:rejected|denied)"
    r"|user (?:rejected|denied|cancelled)\b"
)
"""How an output begins where the person declined the call: the others never ran for other reasons."""

_FAILED = regex(
    r"aborted\b|command (?:timed out|aborted)\b|execution error\b|apply_patch verification failed\b"
    r"|(?:exec_command|write_stdin) failed\b|err(?:or)?: |unable to locate image\b|Script error\b"
)


@dataclass(frozen=True, slots=True)
class Output:
    """An output taken apart.

    text     the tool's words
    status   the command's exit status, None where nothing tells it
    running  the client's name of the process, where the command goes on in the background; else ""
    failed   it did not do what it was called for; `refused`: it never ran
    """

    text: str
    status: int | None = None
    running: str = ""
    failed: bool = False
    refused: bool = False


def parse_output(value: object) -> Output:
    """The output of a call, in any of the forms in which versions of the client have written it.

    A text; blocks of text; a text that is JSON with `output` and `metadata.exit_code`; an object with `content` and
    `success`. A text may begin with lines of the client's that end with `Output:`.
    """
    if isinstance(value, Mapping):
        found = _apart(words(value.get("content")) or words(value.get("output")))
        return replace(found, failed=found.failed or value.get("success") is False)
    if not isinstance(value, str):
        return _apart(_joined(value))
    tree = parsed(value) if value.startswith("{") and '"metadata"' in value else None
    if tree is None or not isinstance(tree.get("output"), str) or "metadata" not in tree:
        return _apart(clean(value))
    status = object_in(tree, "metadata").get("exit_code")
    status = status if isinstance(status, int) and not isinstance(status, bool) else None
    return Output(words(tree["output"]), status, failed=bool(status))


def _joined(content: object) -> str:
    parts = [words(block.get("text")) for block in blocks(content)]
    return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts if part).removesuffix("\n")


def _apart(text: str) -> Output:
    found = Output(text)
    header = _HEADER.match(text)
    if header is None:
        refused = bool(_NEVER_RAN.match(text))
        return Output(text, failed=refused or bool(_FAILED.match(text)), refused=refused)
    for _ in range(2):  # a patch within a command has a header of its own
        if header is None or found.status is not None:
            break
        status, running = _STATUS.search(header[0]), _RUNNING.search(header[0])
        found = Output(
            found.text[header.end() :],
            int(status[1]) if status else None,
            running[1] if running else found.running,
            found.failed or bool(status and int(status[1])) or bool(_SCRIPT_FAILED.search(header[0])),
        )
        header = _HEADER.match(found.text)
    if found.status is None and text.startswith("Script ") and _EXITED.match(found.text):
        return _exited(found.text)
    return found


def _exited(text: str) -> Output:
    """What a script prints of a command that it has run: a line with the exit status, and the output."""
    status = _EXITED.match(text)
    return Output(text[status.end() :], int(status[1]), failed=status[1] != "0") if status else Output(text)


def commands_in(script: str) -> list[str]:
    """The commands that a script runs, [] where one of them is not written out."""
    commands = [_literal(match[1]) for match in _IN_SCRIPT.finditer(script)]
    return commands if all(commands) and len(commands) == script.count("exec_command(") else []


def _literal(text: str) -> str:
    """The value of a literal of JavaScript, "" for what only a run would tell."""
    inner = text[1:-1]
    if text[0] == "`" and "${" in inner:
        return ""
    if text[0] != '"':
        inner = re.sub(r"\\(['`$])", r"\1", inner).replace("\n", "\\n").replace("\t", "\\t")
        inner = re.sub(r'(?<!\\)"', r'\\"', inner)
    try:
        return words(json.loads(f'"{inner}"'))
    except ValueError:
        return ""


# ---- calls, their results, and processes in the background ----


CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})

OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""Types of the items that are calls, and of those that are what a tool answered."""

WITHIN = "exec-"
"""How the ids begin of what a script has called: the conversation itself holds no record of that."""

_ESCAPED = regex(rb"%([0-9a-fA-F]{2})")

OUTPUT_KEPT = (6_000, 6_000)
"""Characters of the head and the end of what a command printed that no item of the conversation shows."""


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
        self._scripts: dict[str, list[str]] = {}  # call → the commands of a script, unless an event tells them

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
        if name == "exec" and isinstance(given, str) and (commands := commands_in(given)):
            self._scripts[call_id] = commands
        if isinstance(given, str):
            tree = parsed(given) if inner == "function_call" else None
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
        tool, output = self._tools.pop(call_id, ""), parse_output(payload.get("output"))
        process = self._polls.pop(call_id, "")
        if events := self._of_script(call_id, payload.get("output"), output, base):
            return events
        if output.running and not process:
            self._running[output.running] = call_id
            return [base.event("result", self._others(output.text), tool=tool)]  # not yet the call's result
        answers, secret = answers_given(self._asked.pop(call_id, None), output.text)
        text = "" if secret else self._others(output.text)
        ended: dict[str, Any] = {
            "exit_status": output.status,
            "failed": output.failed,
            "refused": output.refused,
            "form": "refused" if output.refused and _DECLINED.match(output.text) else "",
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
        made += [base.event("user", answer, form="answer", input=about) for answer, about in answers]
        return made

    def _of_script(self, call_id: str, value: object, output: Output, base: Base) -> list[Event]:
        """The commands of a script whose output tells their results: all of them, or the only one."""
        commands = self._scripts.pop(call_id, [])
        texts = [words(block.get("text")) for block in blocks(value)] if isinstance(value, list) else []
        results = [_exited(text) for text in texts if _EXITED.match(text)]
        if len(commands) == 1 and len(results) != 1:
            results = [output]
        if not commands or len(commands) != len(results) or output.refused or output.running:
            return []
        failed = bool(texts and _SCRIPT_FAILED.match(texts[0]))
        events = [base.event("result", "", tool="exec", call_id=call_id, failed=failed)]
        for number, (command, result) in enumerate(zip(commands, results, strict=True), 1):
            id_, text = f"{call_id}/{number}", self._others(result.text)
            events.append(self._call("exec_command", id_, {"cmd": command}, base))
            self._tools.pop(id_, None)
            ended: dict[str, Any] = {"exit_status": result.status, "failed": result.failed}
            events.append(base.event("result", text, tool="exec_command", call_id=id_, **ended))
        return events

    def executed(self, item: Record, base: Base) -> list[Event]:
        """A command of which an event tells: one that a script ran, or the end of one in the background."""
        id_, status = words(item.get("id")), whole(item.get("exit_code"))
        text = self._others(without_middle(words(item.get("aggregated_output")), *OUTPUT_KEPT)[0])
        result = base.event(
            "result",
            text,
            tool="exec_command",
            call_id=id_,
            exit_status=status,
            failed=bool(status) or item.get("status") == "failed",
            refused=item.get("status") == "declined",
            form="refused" if item.get("status") == "declined" else "",
        )
        process = next((name for name, call in self._running.items() if call == id_), None)
        if process is not None and status is not None:
            self._running[process] = ""
            return [result]
        if not id_.startswith(WITHIN):
            return []  # it was stopped with the client, or is in the conversation itself
        self._scripts.clear()
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


# ---- what a person answered ----

_NOTE = "user_note: "


def answers_given(asked: object, output: str) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
    """What a person answered to `request_user_input`: the answers, each with what it answers; whether one is secret,
    which is left out.

    asked   the call's arguments
    output  the text of its output: JSON, or the client's sentence for a question that was closed
    """
    try:
        given = {} if output.startswith(_CANCELLED) else dict(json.loads(output)["answers"])
        questions = [dict(question) for question in asked["questions"]]  # type: ignore[index]
    except (ValueError, TypeError, KeyError, RecursionError):
        return [], False
    answers, secret = list[tuple[str, dict[str, Any]]](), False
    for question in questions:
        value = object_in(given, words(question.get("id"))).get("answers")
        texts = [words(text) for text in value] if isinstance(value, list) else []
        about = {"about": words(question.get("question")), "options": labels(question.get("options"))}
        if question.get("isSecret") is True:
            secret = secret or bool(texts)
        elif chosen := ", ".join(text for text in texts if text and not text.startswith(_NOTE)):
            answers.append(("\n".join([chosen, *_notes(texts)]), about))
        elif _notes(texts) or not given:
            answers.append(("\n".join(_notes(texts)) or DECLINED, about))
    return answers, secret


def _notes(texts: Iterable[str]) -> list[str]:
    return [text.removeprefix(_NOTE) for text in texts if text.startswith(_NOTE)]
