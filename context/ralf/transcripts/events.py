"""The event model that every transcript reader produces, the content of messages, and the evidence made of events."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ralf.text.cleaning import clean
from ralf.text.frozen import dataclass, field
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.storage.journal import Digest, Store

Kind = Literal["user", "assistant", "thinking", "call", "result", "compaction", "note", "mark", "other"]
"""What an event is.

user        a request or answer that a person typed (also while the agent worked); `form` says how it came
assistant   what the agent said
thinking    the agent's reasoning, where the client records it
call        a tool call
result      what a tool answered
compaction  the client compacted its window here; `text` is its summary and is never summarised again
note        what a run or an agent wrote down in a document: `text` its words, `input` what of it stands in fields
            (`ralf.transcripts.notes`). Its prose is kept, searched and may be summed up, but never mined for decisions
mark        what the client recorded besides: that a turn has ended, that the person interrupted it; `form` says which
other       anything else of the conversation that carries usage or state, never summarised; its `text` is what the
            client itself said in the agent's place (a failed request), which is evidence and nothing more. With a
            `tool` it tells the agent's to-do list, and `input` is as that tool would have it
"""


Form = Literal[
    "",
    "queued",
    "answer",
    "plan",
    "refused",
    "cancelled",
    "command",
    "program",
    "ended",
    "interrupted",
    "stopped",
    "ran",
    "printed",
    "noticed",
    "handed",
    "sent",
    "unsent",
    "rewound",
    "titled",
    "requested",
]
"""How a person's words came, or what a mark says. Of a `result`, "refused": the person declined the call;
"cancelled": the client dropped it, since another one that was made at once had failed.

Of a `user` event:

""        typed as a message
queued    typed while the agent worked, and waiting from here on
answer    chosen or typed in answer to a question of a tool: `about` the question, `options` what could be chosen
plan      a plan was approved: `about` its text
refused   said with the refusal of a call, whose `call_id` it has
command   a slash command with its arguments
program   sent by a program

Of a `mark`:

ended        the turn is at its end
interrupted  the person interrupted the turn; `text` the client's reason, "" for none
stopped      the service failed; `text` its words
ran          a command that the person ran: `text`
printed      what that command printed: `text`; its status is in the fields of a result
noticed      a notice of the client's was queued, like a person's words
handed       the running turn got something queued: `text`, or, where that is "", the oldest
sent         something queued begins a turn here: as `handed`
unsent       all that is queued was taken back into the input field
rewound      the conversation was rewound: `to` the id of the message that is the first taken back, or `turns`, how many
titled       the client's title for the session: `text`
requested    a pull request: `text` its number or address
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
    form         user, marks and results: see `Form`
    id           user: the record's own id, "" where it has none
    parent       user: the id of the message or answer that it follows in the conversation, "" where that is not known:
                 of two that follow the same one, the earlier was taken back by rewinding
    input        calls: the arguments as the client recorded them, their strings cleaned like the text; notes: fields;
                 user and marks: what `Form` names
    call_id      what joins a call and its result; of a person's words: the call that they declined with them
    failed       results: the client called it an error, or the exit status is not 0
    exit_status  results of commands: the status where the client tells it, else None
    refused      results: the call never ran (declined by a person, rejected by the client)
    created      results: the tool says that it created the file (rather than changed it)
    cwd          working directory at that moment, "" where unknown
    branch       git branch at that moment, "" where the client does not tell it
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
    form: Form = ""
    id: str = ""
    parent: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = ""
    failed: bool = False
    exit_status: int | None = None
    refused: bool = False
    created: bool = False
    cwd: str = ""
    branch: str = ""
    window: int | None = None
    capacity: int | None = None
    agent: str = ""
    task: str = ""
    before: int | None = None
    cut: int = 0


# ---- the content of messages: a string, or a list of typed blocks; anything else is passed over ----


Record = Mapping[str, Any]


def blocks(content: object) -> Iterator[Record]:
    """The blocks of a content; a string is one text block."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield block
            elif isinstance(block, str):
                yield {"type": "text", "text": block}


def words(value: object) -> str:
    """A string cleaned of terminal codes, "" for anything else."""
    return clean(value) if isinstance(value, str) else ""


def time_of(value: object) -> str:
    """A time as the client wrote it, "" for what is no ISO 8601 date and time."""
    return value if isinstance(value, str) and _TIME.match(value) else ""


_TIME = regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?\Z", re.ASCII)


def whole(value: object) -> int | None:
    """A count: a whole number that is not negative; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def tokens_of(usage: Record, *keys: str) -> int | None:
    """The sum of the token counts under some keys; None where the first one is missing."""
    counts = [whole(usage.get(key)) for key in keys]
    return None if counts[0] is None else sum(count or 0 for count in counts)


def said(content: object) -> str:
    """The text blocks of a content, one below the other."""
    parts = (words(block.get("text")) for block in blocks(content) if block.get("type") in _TEXTS)
    return "\n".join(part for part in parts if part)


_TEXTS = ("text", "input_text", "output_text")


def leaves(value: object) -> str:
    """The strings and numbers in a JSON value, in order, one a line."""
    found: list[str] = []
    left: list[object] = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            found.append(clean(item))
        elif isinstance(item, dict):
            left.extend(reversed(item.values()))
        elif isinstance(item, list):
            left.extend(reversed(item))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            found.append(str(item))
    return "\n".join(found)


def arguments(value: object) -> dict[str, Any]:
    """A call's arguments with every string in them cleaned, keys too; {} for anything that is no object."""
    return {clean(str(key)): _cleaned(item) for key, item in value.items()} if isinstance(value, dict) else {}


def _cleaned(value: object, depth: int = 0) -> Any:
    if isinstance(value, str):
        return clean(value)
    if depth > _DEEPEST and isinstance(value, dict | list):
        return None  # no tool's argument; the event's text has its words
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in value]
    return value


_DEEPEST = 50


def object_in(record: Record, key: str) -> Record:
    """Return the object that a record has under a key, an empty one where it has none."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def first(records: Iterable[Record], key: str) -> str:
    """The first string that a record has under a key, "" if none has."""
    return next((found for record in records if (found := words(record.get(key)))), "")


DECLINED = "(declined)"
"""The words of an answer where a person closed the question."""


def labels(options: object) -> list[str]:
    """The labels of the options that a question offers."""
    found = options if isinstance(options, list) else []
    return [words(option.get("label") if isinstance(option, dict) else option) for option in found]


_ELEMENT = regex(r"<([A-Za-z][\w:.-]{0,80})(?:\s[^<>]*)?>")


def is_frame(text: str) -> bool:
    """Whether a text is one element, `<name>…</name>`, from its first to its last character."""
    opening = _ELEMENT.match(text)
    if opening is None:
        return False
    name, closing = opening[1], f"</{opening[1]}>"
    if not text.endswith(closing):
        return False
    at, last, depth = opening.end(), len(text) - len(closing), 1
    while (end := text.find(closing, at)) != last:
        depth += text.count(f"<{name}>", at, end) + text.count(f"<{name} ", at, end) - 1
        if depth == 0:
            return False
        at = end + len(closing)
    return True


# ---- the session that a log is of, by its file name ----


_ROLLOUT = regex(r"rollout-.+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")


def session_of_log(path: Path) -> str:
    """The session that a client's log is of, as its reader would say, told by its name."""
    rollout = _ROLLOUT.match(path.stem)
    return rollout[1] if rollout else clean(path.stem)


# ---- the exit status that the text or record of an answer tells, where the log has no field for it ----


_LONGEST = 300  # characters of a line that may tell a status

_NUMBER = r"[ \t]{0,2}[:=]?[ \t]{0,2}(-?\d{1,5})\b"

_TELLS = regex(
    r"[\W_]{0,3}(?:error[: ]{1,2})?(?:(?:the )?(?:process|command|shell|script|program)\b[ :]{0,2})?"
    r"(?:(?:finished|exited|failed|completed|terminated|returned|ended)[ :]{1,2})?(?:with )?(?:a )?(?:non-?zero )?"
    r"(?:returncode>?|return code|(?:exit|return)[ _-]?(?:code|status)>?|(?<=exited )(?:with )?(?:code|status)"
    rf"|(?<=with )(?:code|status)){_NUMBER}",
    re.I,
)

_RAISED = r"(?:<exception>.{0,2000}?</exception>\s{0,4})?"

_EXCEPTION = regex(_RAISED, re.S)

_OBSERVATION = regex(rf"\s{{0,4}}{_RAISED}<returncode>-?\d{{1,5}}</returncode>", re.S)

_KEYS = ("returncode", "exit_code", "exitCode", "exit_status")


def status_of(text: str, record: Record) -> int | None:
    """The exit status that an answer tells: in a field of its record, in its first line, or in its last one."""
    holders = [record, *(record[key] for key in ("extra", "metadata") if isinstance(record.get(key), dict))]
    told = [holder.get(key) for holder in holders for key in _KEYS]
    if (field := next((one for one in told if isinstance(one, int) and not isinstance(one, bool)), None)) is not None:
        return field
    text = text.strip()
    raised = _EXCEPTION.match(text)
    first = text[raised.end() if raised else 0 :].partition("\n")[0]
    for line in (first, text.rpartition("\n")[2]):
        if len(line) <= _LONGEST and (found := _TELLS.match(line.strip())):
            return int(found[1])
    return None


def is_observation(text: str) -> bool:
    """Whether a text is how mini-swe-agent shows the answer of a command."""
    return _OBSERVATION.match(text) is not None


# ---- evidence: the redacted text of a segment's events with their line numbers, by which a claim can be traced ----


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """One event of a segment: its first and last line in the transcript, from 1, its kind, the tool, and its text."""

    line: int
    last: int
    kind: str
    tool: str
    text: str


def keep_evidence(store: Store, events: Iterable[Event]) -> Digest:
    """Keep the events' text as a blob; the same events give the same digest."""
    return store.put_blob(_evidence_line(event) for event in events if event.text)


def read_evidence(store: Store, digest: Digest, only: Container[int] | None = None) -> Iterator[EvidenceLine]:
    """The lines of a segment's evidence; with `only`, those that begin at these lines of the transcript.

    Raises BlobNotFound where it was pruned, DamagedBlob where its bytes have changed.
    """
    with store.open_blob(digest) as file:
        for line in file:
            # the number is read off the first key: most lines are not wanted, so they are not parsed
            if only is None or int(line[len(_LINE_KEY) : line.index(b",")]) in only:
                yield EvidenceLine(**json.loads(line))


def named_digests(store: Store, streams: Iterable[str] | None = None) -> dict[Digest, set[str]]:
    """The digests that records name, of some streams or of all, each with the streams of those records. Raises
    DamagedJournal.
    """
    found: dict[Digest, set[str]] = {}
    for stream in store.streams("") if streams is None else streams:
        for entry in store.read(stream):
            for digest in digests_in(entry.record):
                found.setdefault(digest, set()).add(stream)
    return found


def digests_in(content: bytes) -> set[Digest]:
    """The strings in some bytes that may be digests of blobs."""
    return {match.decode() for match in _DIGEST.findall(content)}


_LINE_KEY = b'{"line":'

_DIGEST = regex(rb'"([0-9a-f]{64})"')


def _evidence_line(event: Event) -> bytes:
    line = {
        "line": event.start.line + 1,
        "last": event.end.line,
        "kind": event.kind,
        "tool": event.tool,
        "text": event.text,
    }
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
