"""Puts a route's entries into turns: one thread, without what was taken back by rewinding, each message once."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ralf.model.entries import Entry, Mark, Message, Said, SessionEntries, Step
from ralf.talk.cutting import units

_REPEATED = 60  # units from which a message that is sent again is shown once

_SAME = 60  # first characters by which a message is the same as one that was taken back into the input field


@dataclass
class Turn:
    """One message of the person, and all that follows until the next one.

    message  None for what came before the first one
    entries  what followed, in order; a command of the person's own or a message that was not sent among them
    before   the agent's texts since the message before, oldest first
    sent     how often the message was sent
    unread   it was queued, and nothing says that the agent got it
    """

    message: Message | None
    entries: list[Entry] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    sent: int = 1
    unread: bool = False

    @property
    def texts(self) -> list[Said]:
        """What the agent said in it."""
        return [entry for entry in self.entries if isinstance(entry, Said)]

    @property
    def steps(self) -> list[Step]:
        """What was done in it."""
        return [entry for entry in self.entries if isinstance(entry, Step)]

    @property
    def asides(self) -> list[Message]:
        """What the person ran, or typed and took back, in it."""
        return [entry for entry in self.entries if isinstance(entry, Message)]

    @property
    def closing(self) -> Said | None:
        """The agent's last text in it."""
        return next((entry for entry in reversed(self.entries) if isinstance(entry, Said)), None)

    def has(self, kind: str) -> bool:
        """Whether a mark of this kind stands in it."""
        return any(isinstance(entry, Mark) and entry.kind == kind for entry in self.entries)


@dataclass
class Talk:
    """The turns of a route, oldest first, and the messages that were taken back by rewinding, with the files that the
    agent had edited for each.
    """

    turns: list[Turn] = field(default_factory=list)
    taken_back: list[tuple[Message, list[str]]] = field(default_factory=list)
    title: str = ""

    @property
    def entries(self) -> list[Entry]:
        """All entries that stand, in order."""
        return [one for turn in self.turns for one in ([turn.message] if turn.message else []) + turn.entries]

    @property
    def last(self) -> Turn | None:
        """The turn of the newest message."""
        return next((turn for turn in reversed(self.turns) if turn.message is not None), None)


def course(turn: Turn) -> list[Entry]:
    """What the agent said and did in a turn, with the marks that say how it went on.

    That the turn ended says nothing where the service failed, or the person interrupted it or refused a call.
    """
    found: list[Entry] = []
    for entry in turn.entries:
        if isinstance(entry, Mark):
            is_cut = bool(found) and (
                isinstance(found[-1], Mark) or (isinstance(found[-1], Step) and found[-1].outcome == "refused")
            )
            if entry.kind in ("interrupted", "stopped") or (entry.kind == "ended" and not is_cut):
                found.append(entry)
        elif not isinstance(entry, Message):
            found.append(entry)
    return found


def refused_last(turn: Turn) -> Step | None:
    """The call that the person refused, if nothing but an interruption came after it in a turn."""
    said_and_done = (one for one in reversed(course(turn)) if not (isinstance(one, Mark) and one.kind == "interrupted"))
    newest = next(said_and_done, None)
    return newest if isinstance(newest, Step) and newest.outcome == "refused" else None


@dataclass
class _Places:
    """Where messages stand in a talk, by what tells them: a session of any length is read in one pass."""

    talk: Talk
    found: dict[tuple[object, ...], deque[tuple[int, Message]]] = field(default_factory=dict)

    def first(self, *key: object) -> int | None:
        """The number of the first turn whose message has this; None for none that stands."""
        turns, known = self.talk.turns, self.found.get(key, deque())
        while known and not (known[0][0] < len(turns) and turns[known[0][0]].message is known[0][1]):
            known.popleft()  # it was taken back, or sent again
        return known[0][0] if known else None

    def add(self, message: Message) -> None:
        """The message of the newest turn."""
        for key in _keys(message):
            self.found.setdefault(key, deque()).append((len(self.talk.turns) - 1, message))


def _keys(message: Message) -> Iterator[tuple[object, ...]]:
    yield "id", message.id
    yield from _copies(message)
    if message.parent and message.form in _TYPED:
        yield "parent", message.parent
    if units(message.text) > _REPEATED:
        yield "text", message.text


def _copies(message: Message) -> Iterator[tuple[object, ...]]:
    said = message.text, message.about
    yield "copy", message.id, *said
    if message.at:
        yield "at", message.at, *said


def thread(entries: Sequence[Entry]) -> Talk:
    """The talk that some entries of one session, in order, come to."""
    talk = Talk([Turn(None)])
    places = _Places(talk)
    waiting: list[Message | None] = []  # what is queued; None for the client's own notices
    completed: dict[str, Step] = {entry.id: entry for entry in entries if isinstance(entry, Step) and entry.outcome}
    for entry in entries:
        if isinstance(entry, Message):
            if entry.form == "queued":
                waiting.append(entry)
            elif entry.form in ("ran", "unsent"):
                talk.turns[-1].entries.append(entry)
            else:
                _begin(places, entry)
        elif isinstance(entry, Mark) and entry.kind in ("handed", "sent", "unsent", "noticed"):
            _queue(places, entry, waiting)
        elif isinstance(entry, Mark) and entry.kind == "rewound":
            _rewind(talk, _first_taken_back(places, entry.value))
        elif isinstance(entry, Step) and not entry.outcome and entry.id in completed:
            continue  # its result follows
        else:
            if isinstance(entry, Mark) and entry.kind == "titled":
                talk.title = entry.value
            talk.turns[-1].entries.append(entry)
    for message in waiting:
        if message is not None:
            _begin(places, message, unread=True)
    _settle_unsent(talk)
    return talk


def joined(sessions: Sequence[SessionEntries]) -> Talk:
    """The talk of several sessions, one after the other; the one with the newest entry comes last: it leads."""
    ordered = sorted((one.entries for one in sessions if one.entries), key=lambda entries: max(e.at for e in entries))
    if len(ordered) > 1:
        ordered[:-1] = sorted(ordered[:-1], key=lambda entries: min(e.at for e in entries))
    talks = [thread(entries) for entries in ordered]
    return Talk(
        [turn for talk in talks for turn in talk.turns],
        [taken for talk in talks for taken in talk.taken_back],
        next((talk.title for talk in reversed(talks) if talk.title), ""),
    )


_TYPED = ("", "command", "program")  # forms of messages at which a conversation can fork: the others are results

_FACTS = ("branch", "started", "finished", "titled", "requested")  # marks that a rewinding does not take back


def _begin(places: _Places, message: Message, *, unread: bool = False) -> None:
    """Begin a turn, unless it is a copy of one; rewind where its parent has been followed by another message."""
    talk = places.talk
    if any(places.first(*key) is not None for key in _copies(message)):
        return
    if message.parent and message.form in _TYPED:
        same = places.first("parent", message.parent)  # all that stand with one parent have one id
        if same is not None and (known := talk.turns[same].message) is not None and known.id != message.id:
            _rewind(talk, same)
    before = [said.text for said in talk.turns[-1].texts]
    sent = 1
    if units(message.text) > _REPEATED and (again := places.first("text", message.text)) is not None:
        sent += talk.turns[again].sent
        talk.turns[again].message = None
    talk.turns.append(Turn(message, before=before, sent=sent, unread=unread))
    places.add(message)


def _queue(places: _Places, mark: Mark, waiting: list[Message | None]) -> None:
    """What became of the client's queue."""
    talk = places.talk
    if mark.kind == "noticed":
        waiting.append(None)
    elif mark.kind == "unsent":
        talk.turns[-1].entries += [replace(message, form="unsent") for message in waiting if message is not None]
        waiting.clear()
    else:
        head = mark.value[:_SAME]  # without words it is the first that waits
        fits = (n for n, one in enumerate(waiting) if not head or (one is not None and one.text.startswith(head)))
        place = next(fits, None)
        message = waiting.pop(place) if place is not None else None
        if message is not None:
            _begin(places, replace(message, form="") if mark.kind == "sent" else message)


def _first_taken_back(places: _Places, value: str) -> int | None:
    """The number of the first turn that a rewinding takes back: by its message's id, or by how many they are."""
    if not (value.isdecimal() and len(value) < 6):
        return places.first("id", value)
    count, first = int(value), None
    for number in range(len(places.talk.turns) - 1, -1, -1):
        if count and places.talk.turns[number].message is not None:
            first, count = number, count - 1
        if not count:
            break
    return first


def _rewind(talk: Talk, first: int | None) -> None:
    """Take back a turn and all that follow it; what they committed stays committed."""
    if first is None:
        return
    gone = talk.turns[first:]
    del talk.turns[first:]
    if not talk.turns:
        talk.turns.append(Turn(None))
    for turn in gone:
        if turn.message is not None:
            files = list(dict.fromkeys(path for step in turn.steps for path, _ in step.files))
            talk.taken_back.append((turn.message, files))
        talk.turns[-1].entries += [entry for entry in turn.entries if isinstance(entry, Mark) and entry.kind in _FACTS]
        for step in turn.steps:
            kept = tuple(fact for fact in step.git if fact.kind in ("commit", "amended", "applied", "push", "request"))
            if kept:
                talk.turns[-1].entries.append(
                    Step(step.id, step.at, step.line, step.kind, step.tool, step.object, outcome=step.outcome, git=kept)
                )


def _settle_unsent(talk: Talk) -> None:
    """Drop what was taken back into the input field and then sent after all."""
    sent = sorted(turn.message.text for turn in talk.turns if turn.message is not None)

    def is_sent(text: str) -> bool:
        place = bisect_left(sent, text)
        return place < len(sent) and sent[place].startswith(text)

    for turn in talk.turns:
        turn.entries = [
            entry
            for entry in turn.entries
            if not (isinstance(entry, Message) and entry.form == "unsent" and is_sent(entry.text[:_SAME]))
        ]
