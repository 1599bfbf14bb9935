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
from ralf.agent.records import Heard, StepState
from ralf.agent.steplog import holder_name, prepare
from ralf.errors import Conflict, NotFound, UnknownToken, UsageError
from ralf.project import Project
from ralf.storage import locks
from ralf.storage.engine_calls import fenced
from ralf.storage.journal import Entry, Token, understood
from ralf.text.frozen import NamedTuple

_VERSION = 1

_MOST_ID = 150  # characters


class Sent(NamedTuple):
    """A signal in the inbox: its number, its place, and its data as the record has them."""

    number: int
    token: Token
    id: str
    name: str
    by: str
    at: str
    data: Mapping[str, Any]
    origin: str = ""


# ---- sending ----


def send_signal(
    run: str,
    name: str,
    data: bytes | str = b"",
    *,
    by: str = "",
    origin: str = "",
    id: str | None = None,  # noqa: A002
    root: str | os.PathLike[str] | None = None,
) -> Signal:
    """Send a signal to a run, from any process, even before the run exists; durable when this returns.

    data  bytes; a text is sent as UTF-8
    by    the sender's name, as it gives it; "": what the environment says
    origin  `user` or `agent`, by who has typed the command that sends it; "": a program that says neither
    id    the sender's own, for who may send twice: the same id is sent once, and the first signal returned

    UsageError for a refused name or id, Fenced, Busy, OSError.
    """
    check_names(run)
    check_names(name, what="signal")
    if id is not None and not (0 < len(id) <= _MOST_ID and id.isprintable()):
        raise UsageError(ascii(id)[:80], f"refused as a signal's id: 1 to {_MOST_ID} printable characters")
    project, stream = projects.find(root), records.inbox_of(run)
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
        **({"origin": origin} if origin else {}),
        "data": contents.pack(project.store, content, run),
    }
    # The lock only gives senders turns: what keeps two from one place is that the head is compared.
    with fenced(run), locks.locked(project.folder / "locks" / "signals" / f"{run}.lock", f"{run}: its inbox"):
        while True:
            newest = project.store.newest(stream)
            number = _parsed(run, newest).number + 1 if newest else 1
            line = contents.encoded({**tree, "n": number, "at": records.time_text(time.time())})
            after = newest.token if newest else None
            try:
                token = project.store.append(stream, line, id=str(tree["id"]), after=after, is_new=id is None)
            except Conflict:
                continue
            return signal_of(project, _parsed(run, project.store.entry(stream, token)))


def _parsed(where: str, entry: Entry) -> Sent:
    with understood(where):
        tree = json.loads(entry.record)
        if tree["v"] > _VERSION:
            raise UsageError(where, "has a signal of a later version of ralf", "use that version, or a later one")
        id_, name, by, at = (str(tree[field]) for field in ("id", "name", "by", "at"))
        return Sent(int(tree["n"]), entry.token, id_, name, by, at, dict(tree["data"]), str(tree.get("origin", "")))


def signal_of(project: Project, sent: Sent) -> Signal:
    """A signal as it is handed over."""
    return Signal(
        sent.id, sent.name, contents.unpack(project.store, sent.data, sent.name), sent.at, sent.by, sent.origin
    )


def count_of(project: Project, run: str) -> int:
    """How many signals were sent to a run."""
    newest = project.store.newest(records.inbox_of(run))
    return _parsed(run, newest).number if newest else 0


def sent_to(project: Project, run: str, after: Token | None = None) -> list[Sent]:
    """The signals that were sent to a run after a place, or all, oldest first; not looked into. DamagedJournal,
    UsageError, UnknownToken.
    """
    check_names(run)
    return [_parsed(run, entry) for entry in project.store.read(records.inbox_of(run), after=after)]


# ---- receiving ----


class Inbox:
    """The inbox of a run as one step reads it, from the position up to which it has received signals, recorded or not:
    see `ralf.agent.records.StepState.inbox`.

    Signals that nobody waits for stay; those behind the first of them are read once by each process.
    """

    def __init__(self, project: Project, run: str) -> None:
        self._project, self._run = project, run
        self._replays: list[Heard] = []  # outcomes that are to be returned again
        self._unrecorded: list[Heard] = []  # outcomes on which no record depends yet
        self._go_to(StepState().inbox)

    def _go_to(self, position: Mapping[str, Any]) -> None:
        self._position = position
        self._head: Token | None = None
        self._read_to: Token | None = position["token"] or None
        self._waiting: list[Sent] = []  # those behind the position's number, received ones among them

    def begin(self, state: StepState) -> None:
        """Go on behind what the records of the step say was received."""
        self._replays, self._unrecorded = [Heard(*one) for one in state.replays], []
        if self._position != state.inbox:
            self._go_to(state.inbox)

    def received(self) -> dict[str, Any]:
        """What the next record says: the outcomes of waits that it depends on, and the position behind them."""
        return {"heard": self._unrecorded, "inbox": self._position} if self._unrecorded else {}

    def recorded(self) -> None:
        """Know that a record has said it."""
        self._unrecorded = []

    def ahead(self) -> list[Heard]:
        """Signals that were received before a crash and not returned again yet: a state cannot cover them."""
        return [one for one in self._replays if one.number]

    def outcome(self, name: str, *, is_last: bool) -> tuple[bool, Signal | None]:
        """Whether a wait for a name is over, and the signal that ended it. `is_last`: it is over without one, too."""
        for again in self._replays:
            if again.name == name:
                signal = self.signal(again)
                self._replays.remove(again)
                return True, signal
        sent = self.next(name)
        signal = signal_of(self._project, sent) if sent is not None else None
        if sent is not None or is_last:
            self._unrecorded.append(self._receive(sent) if sent is not None else Heard(name))
        return sent is not None or is_last, signal

    def next(self, name: str) -> Sent | None:
        """The first signal of a name that was not received; None for none. Looks at the stream's head alone, unless
        something came.
        """
        if (head := self._project.store.head(records.inbox_of(self._run))) != self._head:
            try:
                found = sent_to(self._project, self._run, self._read_to)
            except UnknownToken:  # the stream was rewritten
                self._waiting, found = [], sent_to(self._project, self._run)
            number = self._position["number"]
            self._waiting += [one for one in found if one.number > number and contents.is_kept(one.data)]
            self._head, self._read_to = head, found[-1].token if found else self._read_to
        last = max(self._position["number"], self._position["beyond"].get(name, 0))
        return next((one for one in self._waiting if one.name == name and one.number > last), None)

    def _receive(self, sent: Sent) -> Heard:
        beyond = {**self._position["beyond"], sent.name: sent.number}
        number, token = self._position["number"], self._position["token"]
        while self._waiting and self._waiting[0].number <= beyond.get(self._waiting[0].name, 0):
            number, token, *_ = self._waiting.pop(0)
        beyond = {name: last for name, last in beyond.items() if last > number}
        self._position = {"number": number, "token": token, "beyond": beyond}
        return Heard(sent.name, sent.number, sent.token)

    def signal(self, heard: Heard) -> Signal | None:
        """The signal of an outcome, None for a time-out. NotFound where it is gone."""
        if not heard.number:
            return None
        try:
            entry = self._project.store.entry(records.inbox_of(self._run), heard.token)
            return signal_of(self._project, _parsed(self._run, entry))
        except UnknownToken:  # the stream was rewritten
            for one in sent_to(self._project, self._run):
                if one.number == heard.number:
                    return signal_of(self._project, one)
        raise NotFound(self._run, f"its signal {heard.number} is gone")
