"""The inbox of a run: signals in the order in which they were sent, and a position that moves with a step's records.

Every step of a run hears every signal once: a step's position is part of its own records.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from ralf import project as projects
from ralf.agent import contents, records
from ralf.agent.model import Signal, check_names
from ralf.agent.records import Heard, Position
from ralf.agent.steplog import holder_name, prepare
from ralf.errors import MEND_JOURNAL, Conflict, DamagedJournal, NotFound, UnknownToken, UsageError
from ralf.project import Project
from ralf.storage import locks
from ralf.storage.engine_calls import fenced
from ralf.storage.journal import MALFORMED, Entry, Token
from ralf.text.frozen import dataclass

Root = str | os.PathLike[str] | None

_VERSION = 1

_MOST_ID = 150  # characters


@dataclass(frozen=True, slots=True)
class Sent:
    """A signal in the inbox: its number, its place, and its data as the record has them."""

    number: int
    token: Token
    id: str
    name: str
    by: str
    at: str
    data: Mapping[str, Any]


# ---- sending ----


def send_signal(
    run: str,
    name: str,
    data: bytes | str = b"",
    *,
    by: str = "",
    id: str | None = None,  # noqa: A002
    root: Root = None,
) -> Signal:
    """Send a signal to a run, from any process, even before the run exists; durable when this returns.

    data  bytes; a text is sent as UTF-8
    by    the sender's name; "": what the environment says
    id    the sender's own, for who may send twice: the same id is sent once, and the first signal returned

    UsageError for a refused name or id, Fenced, Busy, OSError.
    """
    check_names(run)
    check_names(name, what="signal")
    if id is not None and not (0 < len(id) <= _MOST_ID and id.isprintable()):
        raise UsageError(ascii(id)[:80], f"refused as a signal's id: 1 to {_MOST_ID} printable characters")
    project = projects.find(root)
    stream = records.inbox_of(run)
    try:
        content = data.encode() if isinstance(data, str) else data
    except UnicodeEncodeError:
        raise UsageError(run, "the signal's text has half of a character: no UTF-8", "send bytes") from None
    prepare(project, stream)
    tree = {
        "v": _VERSION,
        "kind": "signal",
        "id": id or os.urandom(8).hex(),
        "name": name,
        "by": holder_name(project, by),
        "data": contents.pack(project.store, content, run),
    }
    # The lock only gives senders turns: what keeps two from one place is that the head is compared.
    lock = project.folder / "locks" / "signals" / f"{run}.lock"
    with fenced(run), locks.locked(lock, f"{run}: its inbox"):
        while True:
            newest = _newest(project, run)
            told = {**tree, "n": newest.number + 1 if newest else 1, "at": records.time_text(time.time())}
            line, head = records.line_of(told), newest.token if newest else None
            try:
                token = project.store.append(stream, line, id=str(tree["id"]), after=head, is_new=id is None)
            except Conflict:
                continue
            return signal_of(project, _parsed(run, project.store.entry(stream, token)))


def _newest(project: Project, run: str) -> Sent | None:
    """The newest signal, None for none."""
    entry = project.store.newest(records.inbox_of(run))
    return _parsed(run, entry) if entry is not None else None


def _parsed(where: str, entry: Entry) -> Sent:
    try:
        tree = json.loads(entry.record)
        if tree["v"] > _VERSION:
            raise UsageError(where, "has a signal of a later version of ralf", "use that version, or a later one")
        data = dict(tree["data"])
        id_, name, by, at = (str(tree[field]) for field in ("id", "name", "by", "at"))
        return Sent(int(tree["n"]), entry.token, id_, name, by, at, data)
    except MALFORMED as error:
        what = f"the record {entry.id!r} is not a signal: {type(error).__name__}"
        raise DamagedJournal(where, what, MEND_JOURNAL) from None


def signal_of(project: Project, sent: Sent) -> Signal:
    """A signal as it is handed over."""
    return Signal(sent.id, sent.name, contents.unpack(project.store, sent.data, sent.name), sent.at, sent.by)


def count_of(project: Project, run: str) -> int:
    """How many signals were sent to a run."""
    newest = _newest(project, run)
    return newest.number if newest else 0


def sent_to(project: Project, run: str) -> list[Sent]:
    """All signals that were sent to a run, oldest first; not looked into. DamagedJournal, UsageError."""
    check_names(run)
    return [_parsed(run, entry) for entry in project.store.read(records.inbox_of(run))]


# ---- receiving ----


class Inbox:
    """The inbox of a run as one step reads it. `position` is what the step has received, recorded or not.

    Signals that nobody waits for stay; those behind the first of them are read once by each process.
    """

    def __init__(self, project: Project, run: str, position: Position) -> None:
        self._project = project
        self._run = run
        self._stream = records.inbox_of(run)
        self.position = position
        self._head: Token | None = None
        self._read_to: Token | None = position.token or None
        self._waiting: list[Sent] = []  # those behind the position's number, received ones among them

    def next(self, name: str) -> Sent | None:
        """The first signal of a name that was not received; None for none. Looks at the stream's head alone, unless
        something came.
        """
        self._renew()
        return next(
            (one for one in self._waiting if one.name == name and not self.position.has(name, one.number)), None
        )

    def receive(self, sent: Sent) -> Heard:
        """Take a signal as received."""
        beyond = {**self.position.beyond, sent.name: sent.number}
        number, token = self.position.number, self.position.token
        while self._waiting and self._waiting[0].number <= beyond.get(self._waiting[0].name, 0):
            gone = self._waiting.pop(0)
            number, token = gone.number, gone.token
        self.position = Position(number, token, {name: last for name, last in beyond.items() if last > number})
        return Heard(sent.name, sent.number, sent.token)

    def signal(self, heard: Heard) -> Signal | None:
        """The signal of an outcome, None for a time-out. NotFound where it is gone."""
        if not heard.number:
            return None
        try:
            entry = self._project.store.entry(self._stream, heard.token)
        except UnknownToken:  # the stream was rewritten
            found = (_parsed(self._run, one) for one in self._project.store.read(self._stream))
            sent = next((one for one in found if one.number == heard.number), None)
            if sent is None:
                raise NotFound(self._run, f"its signal {heard.number} is gone") from None
            return signal_of(self._project, sent)
        return signal_of(self._project, _parsed(self._run, entry))

    def _renew(self) -> None:
        if (head := self._project.store.head(self._stream)) != self._head:
            try:
                self._add(self._read_to)
            except UnknownToken:
                self._waiting = []
                self._add(None)
            self._head = head

    def _add(self, after: Token | None) -> None:
        for entry in self._project.store.read(self._stream, after=after):
            sent = _parsed(self._run, entry)
            if sent.number > self.position.number and contents.is_kept(sent.data):
                self._waiting.append(sent)
            self._read_to = entry.token
