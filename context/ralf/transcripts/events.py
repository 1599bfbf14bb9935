"""The one event model that every transcript reader produces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["user", "assistant", "thinking", "call", "result", "compaction", "note", "other"]
"""What an event is.

user        a request or answer that a person typed (also while the agent worked)
assistant   what the agent said
thinking    the agent's reasoning, where the client records it
call        a tool call
result      what a tool answered
compaction  the client compacted its window here; `text` is its summary and is never summarised again
note        what a run or an agent wrote down in a document: `text` its words, `input` what of it stands in fields
            (`ralf.transcripts.notes`). Its prose is kept, searched and may be summed up, but never mined for decisions
other       anything else of the conversation that carries usage or state, never summarised (`text` is empty)
"""


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two records of a transcript: `byte` bytes and `line` lines lie before it.

    For formats without lines (a JSON array), `line` counts records.
    """

    byte: int = 0
    line: int = 0


START = Position()
"""The beginning of a transcript."""


@dataclass(frozen=True, slots=True)
class Event:
    """One piece of content of one record.

    text         messages: the words; calls: the input's values, one per line; results: the output. Unpaired surrogates
                 are replaced, terminal escape sequences removed; nothing else is changed.
    start, end   the places before and after the record in which it stands (records with several events share them)
    timestamp    as the client wrote it, ISO 8601, or "" where it wrote none
    tool         calls and results: the tool's name ("" where a result's call was never seen)
    input        calls: the arguments as the client recorded them, their strings cleaned like the text; notes: fields
    call_id      what joins a call and its result; of a person's words: the call that they declined with them
    failed       results: the client called it an error, or the exit status is not 0
    exit_status  results of commands: the status where the client tells it, else None
    refused      results: the call never ran (declined by a person, rejected by the client)
    created      results: the tool says that it created the file (rather than changed it)
    cwd          working directory at that moment, "" where unknown
    window       assistant, compaction and other: tokens in the client's window after this event, None where unknown
    capacity     the size of that window in tokens, where the client tells it with this event, else None
    agent        calls and results: the sub-agent whose they are, "" for the session's own
    task         results: the task that goes on in the background; other: the one that has ended
    before       compaction: tokens in the window when the client began it by itself, None where it does not tell
    cut          characters of the record that were not held in memory (lines over 8 MiB)
    """

    kind: Kind
    text: str
    start: Position
    end: Position
    timestamp: str = ""
    tool: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = ""
    failed: bool = False
    exit_status: int | None = None
    refused: bool = False
    created: bool = False
    cwd: str = ""
    window: int | None = None
    capacity: int | None = None
    agent: str = ""
    task: str = ""
    before: int | None = None
    cut: int = 0
