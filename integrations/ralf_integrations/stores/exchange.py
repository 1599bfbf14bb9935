"""Exchanges the records of routes and memories with NATS servers, for `store: files+nats`: delivers our own ones, takes
in all others.

The servers' order is everybody's. A machine has their records in that order, and behind them those that it has not
delivered yet. Where another machine was first, the records that wait are put behind its records (`following`), and then
delivered: so the journal of each machine, once nothing waits, is byte for byte the one on the servers.

A record has one id wherever it lies: who has it and who lacks it follows from ids alone, and nothing else is kept but a
cache of where the last exchange ended. So what a crash left, a restored backup or servers that have lost everything
need no case of their own: each record that the servers lack waits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from ralf.errors import Busy, Conflict, Fenced, NotFound, RalfError, UnknownToken
from ralf.project import Project
from ralf.storage import files, journal
from ralf.storage.files import content_of
from ralf.storage.journal import Entry, Token
from ralf_integrations.stores import purged
from ralf_integrations.stores.files_and_nats import DROPPED, EXCHANGED, FilesAndNats, append_last, blobs_named, hashed
from ralf_integrations.stores.following import Follow, Following, Memories, Routes

P = ParamSpec("P")
T = TypeVar("T")

SECONDS = 10.0
"""How long an exchange goes on that a command or a worker makes beside its work."""

REACHED_WITHIN = 2.0
"""Seconds that the servers may take to answer first; afterwards `_ANSWERED_WITHIN` a call."""

_ANSWERED_WITHIN = 5.0

_SHORTEST, _LONGEST = 5.0, 300.0  # seconds without another attempt, after one that did not reach the servers

_MOST_TRIES = 20  # at a stream to which other machines append meanwhile

_SETTLED = 2.0  # seconds after which every change of a file changes its times, too

_CACHE = "exchange.json"


@dataclass(slots=True)
class State:
    """What is kept of the last exchange; all of it can be had again.

    marks    by the beginning of streams' names, the newest message of such a stream on the servers
    owed     streams that could not be exchanged
    dropped  the place in the servers' stream of dropped ones
    places   by stream, the places here and on the servers up to which both are the same, and its mark here (`_mark`)
    reached  when the servers answered last, in seconds since 1970; 0: never
    again    when they may be asked again; `wait`: after how many seconds
    problem  why they could not be reached, or what could not be exchanged
    """

    marks: dict[str, tuple[int, str]] = field(default_factory=dict)
    owed: list[str] = field(default_factory=list)
    dropped: list[Token] = field(default_factory=list)
    places: dict[str, tuple[Token, Token, str]] = field(default_factory=dict)
    reached: float = 0.0
    again: float = 0.0
    wait: float = 0.0
    problem: str = ""


class Exchanged(NamedTuple):
    """What an exchange came to, or how things stand.

    waiting    records that are not on the servers yet
    since      when the servers were reached last, in seconds since 1970; 0: never
    delivered, taken_in  records
    problem    why not all was exchanged, "" where it was
    is_away    whether the servers were not reached
    """

    waiting: int
    since: float
    delivered: int = 0
    taken_in: int = 0
    problem: str = ""
    is_away: bool = False


class _Away(Exception):
    """The servers do not answer."""


class _Late(Exception):
    """The time is over; the rest is for the next exchange."""


def store_of(project: Project) -> FilesAndNats | None:
    """The store of a project with `store: files+nats`, else None. Errors: as of `Project.store`."""
    found = project.store.inner
    return found if isinstance(found, FilesAndNats) else None


def exchange(
    project: Project, *, seconds: float = SECONDS, insist: bool = False, whole: bool = False
) -> Exchanged | None:
    """Exchange records with the servers; None for a project with another store.

    seconds  after so many the rest is left to the next exchange
    insist   ask the servers though they were away a moment ago, and wait for an exchange that another process makes
    whole    compare all streams with those on the servers, not only those that have changed

    Whatever goes wrong is told in the result, not raised: what is recorded here is durable. UsageError for a
    configuration that makes no sense.
    """
    store = store_of(project)
    if store is None:
        return None
    state = _load(project)
    if not insist and 0 < state.again - time.time() <= _LONGEST:  # later than that: the clock was wrong
        return standing(project)
    try:
        with files.locked(project.folder / "locks" / "exchange.lock", "exchange", files.LOCK_TIMEOUT if insist else 0):
            state = _load(project)
            if whole:
                state.marks, state.places = {}, {}
            work = _Exchange(project, store, state, time.monotonic() + seconds)
            work.run()
            _save(project, state)
    except Busy:  # another one is at it
        return standing(project)
    count = _waiting(store, state)
    return Exchanged(count, state.reached, work.delivered, work.taken_in, state.problem, state.wait > 0)


def standing(project: Project) -> Exchanged | None:
    """How many records wait, and since when; asks no server. None for a project with another store."""
    store = store_of(project)
    if store is None:
        return None
    state = _load(project)
    return Exchanged(_waiting(store, state), state.reached, problem=state.problem, is_away=state.wait > 0)


def _waiting(store: FilesAndNats, state: State) -> int:
    count = 0
    marks = _marks(store)
    for stream in _streams(store):
        here, _, mark = state.places.get(stream, ("", "", ""))
        if mark and mark.partition(" ")[0] == marks.get(stream):
            continue
        with suppress(RalfError):
            if store.local.head(stream) != here:
                try:
                    count += sum(1 for _ in store.local.read(stream, after=here or None))
                except UnknownToken:  # replaced since: whether the servers have them is not known before they are asked
                    count += sum(1 for _ in store.local.read(stream))
    return count


def _streams(store: FilesAndNats) -> list[str]:
    """The streams here that are exchanged."""
    return [stream for prefix in EXCHANGED for stream in store.local.streams(prefix)]


def _marks(store: FilesAndNats) -> dict[str, str]:
    """By stream what stays the same only while its journal does."""
    return {f"{prefix}{name}": mark for prefix in EXCHANGED for name, mark in store.local.marks(prefix[:-1]).items()}


class _Exchange:
    """One exchange."""

    def __init__(self, project: Project, store: FilesAndNats, state: State, end: float) -> None:
        self._project = project
        self._store = store
        self._local = store.local
        self._engine: Any = store.engine
        self._state = state
        self._end = end
        self._kinds: tuple[Following, ...] = (Routes(project, store), Memories(project, store))
        self.delivered = 0
        self.taken_in = 0

    def run(self) -> None:
        """Exchange what there is; what goes wrong stands in the state."""
        state, problems, owed = self._state, list[str](), list[str]()
        whole = self._engine
        try:
            self._engine = whole.within(REACHED_WITHIN)
            changes = {one: self._asked(self._engine.changed, one, state.marks.get(one)) for one in EXCHANGED}
            state.reached, state.again, state.wait = time.time(), 0.0, 0.0
            self._engine = whole.within(_ANSWERED_WITHIN)
            self._exchange_dropped()
            for stream in self._to_look_at({one: streams for one, (_, streams) in changes.items()}):
                try:
                    self._exchange(stream)
                except (RalfError, OSError) as error:  # damage, or a writer that holds it: others need not wait
                    problems.append(str(error))
                    owed.append(stream)
            state.marks = {one: mark for one, (mark, _) in changes.items() if mark is not None}
            state.owed = owed
            state.reached = time.time()
        except _Away as error:
            state.wait = min(max(_SHORTEST, 2 * state.wait), _LONGEST)
            state.again = time.time() + state.wait
            problems.append(str(error))
        except _Late:
            problems.append("there was no time for all of it: the next command goes on")
        except (RalfError, OSError) as error:
            problems.append(str(error))
        state.problem = "; ".join(dict.fromkeys(problems))

    def _asked(self, ask: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """What the servers answer. _Away, _Late; Conflict and other errors as they are."""
        if time.monotonic() > self._end:
            raise _Late
        try:
            return ask(*args, **named)
        except Fenced as error:
            raise _Away(str(error)) from error

    def _read_there(self, stream: str) -> list[Entry]:
        return self._asked(lambda: list(self._engine.read(stream)))

    def _page_there(self, stream: str, after: Token) -> list[Entry]:
        """The first records after a place: what was read of a long stream counts though the time is over then."""
        found: list[Entry] = self._asked(self._engine.page, stream, after or None)
        return found

    def _streams_there(self, prefix: str) -> frozenset[str]:
        return frozenset(self._engine.streams(prefix))

    def _kind(self, stream: str) -> Following:
        return next(kind for kind in self._kinds if stream.startswith(kind.prefix))

    def _to_look_at(self, changed: Mapping[str, frozenset[str] | None]) -> list[str]:
        """The streams that may differ.

        changed  by the beginning of their names, those that have changed there; None: any may have
        """
        ours, found = _streams(self._store), {*self._state.owed}
        for prefix, theirs in changed.items():
            if theirs is None:
                theirs = self._asked(self._streams_there, prefix)
                found |= {stream for stream in ours if stream.startswith(prefix)}
            found |= theirs
        marks = _marks(self._store)
        known = {name: mark for name, (_, _, mark) in self._state.places.items() if mark}
        found |= {name for name in ours if name not in known or known[name] != self._mark(name, marks)}
        return sorted(found)

    def _mark(self, stream: str, marks: Mapping[str, str]) -> str:
        """What stays the same while a stream's journal and its file do; "" where that cannot be told yet."""
        journal_mark = marks.get(stream, "")
        try:
            found = self._kind(stream).file(stream).lstat()
        except OSError:
            return journal_mark
        is_settled = time.time() - found.st_ctime > _SETTLED
        return (
            f"{journal_mark} {found.st_ino}:{found.st_size}:{found.st_ctime_ns}" if journal_mark and is_settled else ""
        )

    # ---- streams that were dropped ----

    def _exchange_dropped(self) -> None:
        """Have both sides know what was dropped, and then drop it on the servers: whoever finds it missing there finds
        the reason, too.
        """
        engine, local = self._engine, self._local
        heads = [local.head(DROPPED) or "", self._asked(engine.head, DROPPED) or ""]
        if heads == self._state.dropped or not any(heads):
            return
        for entry in local.read(DROPPED):
            self._asked(append_last, engine, DROPPED, entry.record, id=entry.id)
        entries = self._read_there(DROPPED)
        for entry in entries:
            append_last(local, DROPPED, entry.record, id=entry.id)
        for entry in entries:
            self._drop_there(json.loads(entry.record))
        self._state.dropped = [local.head(DROPPED) or "", entries[-1].token]

    def _drop_there(self, tree: dict[str, Any]) -> None:
        """Drop a stream on the servers, and the blobs that only its records named. Records of other machines that came
        after the drop go with it: these have them, and deliver them again.
        """
        stream, ids = str(tree["stream"]), set(tree["ids"])
        entries = self._read_there(stream)
        if any(hashed(entry.id) in ids for entry in entries):
            self._asked(self._engine.properties.replace.drop, stream)
            self._drop_blobs_there(entries)
        self._state.places.pop(stream, None)

    def _drop_blobs_there(self, entries: Sequence[Entry]) -> None:
        named = {digest for entry in entries for digest in blobs_named(entry.record)}
        for digest in sorted(named - self._named_here()):
            self._asked(self._engine.properties.heap.drop_blob, digest)

    def _named_here(self) -> set[str]:
        """The blobs that records of this machine name."""
        entries = (entry for stream in _streams(self._store) for entry in self._local.read(stream))
        return {digest for entry in entries for digest in blobs_named(entry.record)}

    # ---- one stream ----

    def _exchange(self, stream: str) -> None:
        self._kind(stream).absorb(stream)
        tries, there = 0, ""
        while tries < _MOST_TRIES:
            tails = self._tails(stream)
            tries, there = tries + 1 if tails.there == there else 0, tails.there
            if tails.theirs or any(self._is_dropped(stream, entry) for entry in tails.ours):
                self._take_in(stream)
                continue
            try:
                self._deliver(stream, tails)
            except Conflict:
                continue
            return
        raise Busy(stream, "other machines write to it again and again", "try again")

    def _tails(self, stream: str) -> _Tails:
        """What follows on the records that both sides have, byte for byte, from the beginning."""
        here, there, _ = self._state.places.get(stream, ("", "", ""))
        try:
            ours = list(self._local.read(stream, after=here or None))
            theirs = self._page_there(stream, there)
        except UnknownToken:
            here = there = ""
            self._exchange_dropped()
            ours = list(self._local.read(stream))
            theirs = self._page_there(stream, there)
        while theirs and ours:
            same = 0
            for one, other in zip(ours, theirs, strict=False):
                if (one.id, one.record) != (other.id, other.record):
                    break
                here, there, same = one.token, other.token, same + 1
            ours, is_all = ours[same:], same == len(theirs)
            self._state.places[stream] = (here, there, "")
            theirs = self._page_there(stream, there) if is_all else theirs[same:]
            if not is_all:
                break
        self._note(stream, here, there)
        return _Tails(here, there, ours, theirs)

    def _note(self, stream: str, here: Token, there: Token) -> None:
        """Know up to where both sides are the same, and the mark of the stream where that is all of it."""
        is_all = here and self._local.head(stream) == here
        mark = self._mark(stream, _marks(self._store)) if is_all else ""
        self._state.places[stream] = (here, there, mark)

    def _deliver(self, stream: str, tails: _Tails) -> None:
        """Append what waits to the servers' stream, in order. Conflict where another machine was faster."""
        here, there = tails.here, tails.there
        for entry in tails.ours:
            self._asked(FilesAndNats(self._local, self._engine).send_blobs, entry.record)
            there = self._asked(self._engine.append, stream, entry.record, id=entry.id, after=there or None)
            here = entry.token
            self._state.places[stream] = (here, there, "")
            self.delivered += 1
        self._note(stream, here, there)

    def _is_dropped(self, stream: str, entry: Entry) -> bool:
        return hashed(entry.id) in self._store.dropped_of(stream)

    def _take_in(self, stream: str) -> None:
        """Have the journal here go on from the servers' records, with what waits behind them."""
        kind = self._kind(stream)
        with kind.held(stream) as follow:
            tails, dropped = self._tails(stream), self._store.dropped_of(stream)
            left = [entry for entry in tails.ours if hashed(entry.id) not in dropped]
            if left or tails.theirs or tails.here:
                replaced = self._follow(stream, follow, tails, left)
                if any(b'"purged":true' in entry.record for entry in tails.theirs) or len(left) < len(tails.ours):
                    kind.clear(stream, replaced, self._named_here())
                return
        kind.forget(stream)
        self._state.places.pop(stream, None)

    def _follow(self, stream: str, follow: Follow, tails: _Tails, left: Sequence[Entry]) -> list[Entry]:
        """Bring a journal up to date, for a caller that holds it. Returns the records that are others now.

        left  those of ours that were not dropped elsewhere
        """
        for entry in tails.theirs:
            self._fetch_blobs(entry)
        if not tails.ours:
            follow(lambda: self._append(stream, tails.here, tails.theirs))
            self.taken_in += len(tails.theirs)
            return []
        store = self._project.store
        mine = {entry.id: store.opened(stream, entry) for entry in left}
        lead = [self._without_forgotten(stream, entry, mine.get(entry.id)) for entry in tails.theirs]
        if lead != tails.theirs:
            self._replace_there(stream, lead)
        shared = self._up_to(stream, tails.here)
        before, onto = ([store.opened(stream, entry) for entry in entries] for entries in (shared, lead))
        moved = self._kind(stream).moved(stream, before, onto, list(mine.values()))
        waiting = [
            one if one.foreign else one._replace(record=store.sealed(stream, one.record)) for one in moved.entries
        ]
        made, head = [*shared, *lead, *waiting], self._local.head(stream)
        follow(lambda: self._local.write_anew(stream, [(one.id, one.record) for one in made], head=head), moved)
        if lead and lead == tails.theirs:  # else the places there are others by now
            last = len(shared) + len(lead) - 1
            here = next(islice(self._local.read(stream), last, None)).token
            self._state.places[stream] = (here, lead[-1].token, "")
        self.taken_in += sum(entry.id not in mine for entry in lead)
        now = {entry.id: entry.record for entry in made}
        return [entry for entry in tails.ours if now.get(entry.id) != entry.record]

    def _without_forgotten(self, stream: str, entry: Entry, ours: Entry | None) -> Entry:
        """A record of the servers without what was forgotten of it here."""
        store, kind = self._project.store, self._kind(stream)
        opened = store.opened(stream, entry)
        made = purged.without_both(
            opened, ours, lambda record: store.sealed(stream, record), part=kind.part, number=kind.number
        )
        return entry if made is None else entry._replace(record=made)

    def _append(self, stream: str, head: Token, entries: Sequence[Entry]) -> None:
        for entry in entries:
            head = self._local.append(stream, entry.record, id=entry.id, after=head or None)

    def _replace_there(self, stream: str, lead: Sequence[Entry]) -> None:
        """Have the servers forget what was forgotten here."""
        records = {entry.id: entry.record for entry in lead}
        replaced: list[Entry] = []

        def change(entry: Entry) -> bytes:
            record = records.get(entry.id, entry.record)
            if record != entry.record:
                replaced.append(entry)
            return record

        self._asked(self._engine.properties.replace.replace, stream, change)
        self._drop_blobs_there(replaced)

    def _up_to(self, stream: str, place: Token) -> list[Entry]:
        found = []
        for entry in self._local.read(stream) if place else ():
            found.append(entry)
            if entry.token == place:
                break
        return found

    def _fetch_blobs(self, entry: Entry) -> None:
        """Keep the evidence of a record here, too."""
        for digest in blobs_named(entry.record):
            with suppress(NotFound):
                if not self._local.has_blob(digest):
                    self._local.put_blob([self._asked(self._engine.open_blob, digest).read()])


class _Tails(NamedTuple):
    """What follows on the places `here` and `there`, up to which both sides have the same; "" for the beginning.

    theirs  the first of them: where there are more, a later look has them
    """

    here: Token
    there: Token
    ours: list[Entry]
    theirs: list[Entry]


# ---- the cache ----


def _path(project: Project) -> Path:
    return project.cache / _CACHE


def _load(project: Project) -> State:
    try:
        tree = json.loads(content_of(_path(project)))
        return State(
            marks={str(name): (int(seq), str(id_)) for name, (seq, id_) in tree["marks"].items()},
            owed=[str(one) for one in tree["owed"]],
            dropped=[str(one) for one in tree["dropped"]],
            places={str(name): (str(a), str(b), str(c)) for name, (a, b, c) in tree["places"].items()},
            reached=float(tree["reached"]),
            again=float(tree["again"]),
            wait=float(tree["wait"]),
            problem=str(tree["problem"]),
        )
    except (OSError, *journal.MALFORMED):
        return State()


def _save(project: Project, state: State) -> None:
    from dataclasses import asdict

    path = _path(project)
    with suppress(OSError):  # without it the next exchange compares everything
        project.make_room(path)
        files.replace_undurably(path, json.dumps(asdict(state)).encode(), path.with_name(f".{_CACHE}.tmp"))
