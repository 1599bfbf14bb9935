"""What a Codex tool's output says: the words of the tool, apart from what the client wrote around them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ralf.text import clean
from ralf.transcripts.content import blocks, words

_HEADER = re.compile(
    r"(?:(?:Chunk ID|Wall time|Exit code|Process exited with code|Process running with session ID|Original token count"
    r"|Total output lines|Script (?:completed|failed|terminated|running))\b[^\n]{0,200}\n)+Output:\n"
)
_STATUS = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.M)
_RUNNING = re.compile(r"^Process running with session ID (\d{1,18})$", re.M)
_SCRIPT_FAILED = re.compile(r"^Script (?:failed|terminated)\b", re.M)
_NEVER_RAN = re.compile(
    r"unsupported (?:custom tool )?call\b|failed to parse function arguments|(?:exec command|patch) rejected\b"
    r"|rejected by user|tool call (?:was )?(?:rejected|denied)|user (?:rejected|denied|cancelled)\b"
)
_FAILED = re.compile(
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


def taken_apart(value: object) -> Output:
    """The output of a call, in any of the forms in which versions of the client have written it.

    A text; blocks of text; a text that is JSON with `output` and `metadata.exit_code`; an object with `content` and
    `success`. A text may begin with lines of the client's that end with `Output:`.
    """
    if isinstance(value, Mapping):
        found = _apart(words(value.get("content")) or words(value.get("output")))
        return replace(found, failed=found.failed or value.get("success") is False)
    if not isinstance(value, str):
        return _apart(_joined(value))
    tree = _tree(value)
    if tree is None:
        return _apart(clean(value))
    metadata = tree.get("metadata")
    status = metadata.get("exit_code") if isinstance(metadata, dict) else None
    status = status if isinstance(status, int) and not isinstance(status, bool) else None
    return Output(words(tree["output"]), status, failed=bool(status))


def _tree(text: str) -> dict[str, Any] | None:
    if not text.startswith("{") or '"metadata"' not in text:
        return None
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) and isinstance(tree.get("output"), str) and "metadata" in tree else None


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
    return found
