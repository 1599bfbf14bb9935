"""What a segment of a transcript came to, by the client's records: the entries of a route's talk and log, in order.

A checkpoint records them as they are; state, talk, log and brief are folds over those of a whole route. An entry that
completes an earlier one (the result of a call, a to-do list) has its `id`, and takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ralf.text.frozen import MISSING, dataclass, fields

MessageForm = Literal["", "queued", "answer", "plan", "refused", "command", "program", "ran", "unsent"]
"""How a person's words came; see `ralf.transcripts.events.Form`. ran: a command of the person's own; unsent: taken back
into the input field before it was sent.
"""


@dataclass(frozen=True, slots=True)
class Message:
    """The person's own words.

    id        the record's id; "SESSION:LINE" where the client gives none
    at        when they came, ISO 8601, "" where that is unknown
    parent    id of what they follow in the conversation, "" where that is unknown
    text      all of the words, redacted
    about     what they answer, as the client recorded it: a question, a plan, a refused call
    options   what could be chosen
    call      the id of the call that they refuse
    output    of a command of the person's own: what it printed
    line      line of the transcript, from 1; `session`: the client's
    """

    id: str
    at: str = ""
    session: str = ""
    line: int = 0
    form: MessageForm = ""
    text: str = ""
    parent: str = ""
    about: str = ""
    options: tuple[str, ...] = ()
    call: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """A text of the agent's, in the main chain."""

    at: str = ""
    line: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class GitFact:
    """What a command of git's or its output says.

    kind   commit, amended (hash, subject; "" where git did not print them) · applied (as commit, but of no edits:
           a merge, a cherry-pick) · tip (hash, subject) · moved (commits were made or taken in, which git did not
           print) · dropped (commits, how many is not known) · branch (name, HEAD for none) · push (new tip, branch) ·
           request (number of a pull request, what was done to it) · undone (path, "" for all: changes were taken back
           or put away) · hidden (a commit, of which is not known whether it was made) · clean · changed (path, of a
           status) · merging; others of earlier versions
    """

    kind: str
    value: str = ""
    subject: str = ""


StepKind = Literal["command", "edit", "look", "question", "plan", "agent", "other"]

Outcome = Literal["", "ok", "failed", "refused", "running", "failed by output", "passed by output", "not shown"]
"""How a call ended: "" no result yet; the last three: a pipe or `||` hides the exit status, and the output says it has
failed, that it has passed, or neither.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A call and its result.

    id       the call's id
    at       time of the result, of the call while it has none
    tool     the client's name of the tool
    object   the command as typed, a path, a pattern, a question, a plan, or what a sub-agent was asked
    folder   where it ran, where that is not the project's folder
    checks   keys of the checks whose end the outcome is; see `ralf.facts.checks`
    status   the exit status, where it is known
    lines    failing lines; of a check that passed the runner's own line; else the last line of the output
    files    (path, what was done to it): created, edited, deleted
    added    the first lines that an edit added; `comments`: the comments among all that it added; `uncommented`: those
             that it took out
    output   the head of a result; of a sub-agent the end of its report
    agent    the sub-agent that made the call
    looks    it lists, searches or prints, and changes nothing
    """

    id: str
    at: str = ""
    line: int = 0
    kind: StepKind = "other"
    tool: str = ""
    object: str = ""
    folder: str = ""
    outcome: Outcome = ""
    status: int | None = None
    checks: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    added: str = ""
    comments: tuple[str, ...] = ()
    uncommented: tuple[str, ...] = ()
    output: str = ""
    git: tuple[GitFact, ...] = ()
    agent: str = ""
    looks: bool = False

    @property
    def has_failed(self) -> bool:
        """Whether it failed, by its status or by its output."""
        return self.outcome in ("failed", "failed by output")

    @property
    def has_passed(self) -> bool:
        """Whether it passed, by its status or by its output."""
        return self.outcome in ("ok", "passed by output")


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the agent's to-do list; `status`: pending, in_progress, completed."""

    id: str
    text: str
    status: str = "pending"


MarkKind = Literal[
    "ended",
    "interrupted",
    "stopped",
    "todos",
    "started",
    "finished",
    "branch",
    "rewound",
    "titled",
    "requested",
    "handed",
    "sent",
    "unsent",
    "noticed",
    "unread",
]


@dataclass(frozen=True, slots=True)
class Mark:
    """What the client recorded besides words and calls.

    kind   ended, interrupted, stopped (the service failed), titled, requested (a pull request): see
           `ralf.transcripts.events.Form`; todos: the whole list as it is from here on; started, finished: a task in the
           background; branch: what is checked out; rewound: back to before a message, or by a number of turns;
           handed, sent, unsent, noticed: what became of the client's queue; unread: a record over 8 MiB, which nobody
           can tell from a message
    value  its words: the client's reason or error, the branch, the id of a task, of a message, the number of turns
    text   what a task in the background runs
    items  the to-do list
    """

    kind: MarkKind
    at: str = ""
    line: int = 0
    value: str = ""
    text: str = ""
    items: tuple[Item, ...] = ()


Entry = Message | Said | Step | Mark


@dataclass(frozen=True, slots=True)
class SessionEntries:
    """What one session came to, oldest first.

    session     the client's id of it
    in_project  whether it ran in the project's own repository when its newest checkpoint was made
    """

    session: str
    entries: tuple[Entry, ...] = ()
    in_project: bool = False


# ---- entries as records hold them ----

_NAMES: dict[str, type[Message | Said | Step | Mark]] = {"message": Message, "said": Said, "step": Step, "mark": Mark}

_KEYS = {cls: name for name, cls in _NAMES.items()}


def to_tree(entry: Entry) -> dict[str, Any]:
    """An entry as a record holds it: `entry` says of which type it is; what is as by default is left out."""
    tree: dict[str, Any] = {"entry": _KEYS[entry.__class__]}
    for field in fields(entry):
        value = getattr(entry, field.name)
        if value != field.default:
            tree[field.name] = [_plain(one) for one in value] if isinstance(value, tuple) else value
    return tree


def from_tree(tree: Mapping[str, Any]) -> Entry | None:
    """The entry that a record holds; None for one of a later version, which this one cannot read."""
    cls = _NAMES.get(str(tree.get("entry")))
    if cls is None:
        return None
    values: dict[str, Any] = {}
    for field in fields(cls):
        value = tree.get(field.name, MISSING)
        if value is MISSING:
            continue
        if field.name in _TUPLES:
            made = _TUPLES[field.name]
            value = tuple(made(one) for one in value) if isinstance(value, list) else ()
        elif field.name != "status" and not isinstance(value, str | bool | int):
            continue
        values[field.name] = value
    return cls(**values) if "id" in values or cls in (Said, Mark) else None


def _plain(value: object) -> object:
    if isinstance(value, GitFact | Item):
        return [getattr(value, field.name) for field in fields(value)]
    return list(value) if isinstance(value, tuple) else value


def _pair(value: Sequence[object]) -> tuple[str, str]:
    first, second = value
    return str(first), str(second)


_TUPLES: dict[str, Callable[[Any], Any]] = {
    "files": _pair,
    "git": lambda values: GitFact(*map(str, values)),
    "items": lambda values: Item(*map(str, values)),
    "checks": str,
    "lines": str,
    "comments": str,
    "uncommented": str,
    "options": str,
}
"""How the values of a field that holds several are made from a record's."""
