"""What an agent said and wrote: its messages, the plans, comments and documents it wrote for people, the reports of its
sub-agents, and the conclusions of its reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ralf.extraction.commands import command_text, is_shell
from ralf.prose import Sentence, sentences
from ralf.transcripts.events import Event

LONGEST = 16_000
"""Characters of one text that are read."""

Voice = Literal["said", "wrote", "reported", "thought", "noted"]
"""How a statement was made: said in the conversation, written for people (a plan, a comment, a document, a commit
message), reported by a sub-agent, thought, or noted down in a document that is the transcript itself.
"""

_PROSE_KEYS = ("plan", "body", "comment", "message", "description", "summary", "text")
_DOCUMENT = re.compile(r"\.(?:md|mdx|rst|txt|adoc|org)$", re.I)
_FILE_KEYS = ("file_path", "path", "filePath", "target_file")
_CONTENT_KEYS = ("content", "new_string", "file_text", "new_str")
_HEREDOC = re.compile(r"<<-?[ \t]{0,8}(['\"]?)([A-Za-z_]\w{0,60})\1")
_MOST_HEREDOCS = 4
_TOLD = re.compile(r"\bgit\b[^\n|]{0,40}\b(?:commit|tag|notes)\b|\b(?:gh|glab|hub|jira|linear)\b")
_MESSAGE = re.compile(r"\s-m\s+(?:\"((?:[^\"\\$]|\\.){20,})\"|'([^']{20,})')")
_LEAST = 40  # characters from which an argument is prose
_SUBAGENT = re.compile(r"(?:^|_)(?:task|agent|subagent|spawn_agent|delegate)$", re.I)


@dataclass(frozen=True, slots=True)
class Statement:
    """One text, cut into sentences."""

    voice: Voice
    event: Event
    said: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a person asked for, "" at a segment's beginning, and what the agent stated until the next time."""

    request: str
    statements: list[Statement]

    @property
    def spoken(self) -> list[Statement]:
        """What was said in the conversation, message by message."""
        return [statement for statement in self.statements if statement.voice == "said"]


def exchanges(events: Sequence[Event]) -> list[Exchange]:
    """The conversation of a segment, in order."""
    out: list[Exchange] = []
    for event in events:
        if event.kind == "user" and event.text.strip():
            out.append(Exchange(event.text, []))
            continue
        for voice, text in _texts(event):
            said = sentences(text[:LONGEST])
            if said:
                if not out:
                    out.append(Exchange("", []))
                out[-1].statements.append(Statement(voice, event, said))
    return out


def _texts(event: Event) -> Iterator[tuple[Voice, str]]:
    if event.kind == "assistant":
        yield "said", event.text
    elif event.kind == "thinking":
        yield "thought", event.text
    elif event.kind == "note":
        if "decision" not in event.input and event.input.get("aside") is not True:  # what it decides is listed
            yield "noted", event.text
    elif event.agent:
        return  # a sub-agent's own; its report is the answer to the call that started it
    elif event.kind == "call":
        for text in _written(event.tool, event.input):
            yield "wrote", text
    elif event.kind == "result" and not event.failed and _SUBAGENT.search(event.tool):
        yield "reported", event.text


def _written(tool: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """The prose in a call's arguments: what the agent meant for people, not for a program."""
    if is_shell(tool):
        command = command_text(arguments)
        if _TOLD.search(command):
            yield from _heredocs(command)
            yield from (match[1] or match[2] for match in _MESSAGE.finditer(command))
        return
    if any(_DOCUMENT.search(str(arguments.get(key, ""))) for key in _FILE_KEYS):
        keys: tuple[str, ...] = _CONTENT_KEYS
    elif any(key in arguments for key in (*_FILE_KEYS, "pattern", "todos", "prompt")):
        return
    else:
        keys = _PROSE_KEYS
    for key in keys:
        text = arguments.get(key)
        if isinstance(text, str) and len(text) >= _LEAST:
            yield text


def _heredocs(command: str) -> Iterator[str]:
    """The bodies of a command's first here-documents."""
    at = 0
    for _ in range(_MOST_HEREDOCS):
        match = _HEREDOC.search(command, at)
        at = command.find("\n", match.end()) if match is not None else -1
        if match is None or at < 0:
            return
        end = re.compile(rf"\n[ \t]*+{match[2]}\b").search(command, at)
        at += 1
        if end is not None:
            yield command[at : end.start()]
