"""The records of a step of a run, one class for each kind, and what they come to: pure, no file is looked at.

Every record also has the state of the step before it (`was`), so that a process that comes anew reads the newest record
alone, and what that names by its place in the stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, ClassVar

from ralf.agent import contents
from ralf.agent.contents import Tree, size_of
from ralf.errors import MEND_JOURNAL, DamagedJournal, UsageError
from ralf.storage.journal import MALFORMED, Entry, Token
from ralf.text.frozen import dataclass, field, fields

VERSION = 1

RUNS, SIGNALS, OUTPUT = "runs/", "signals/", "output/"
"""What the names of the streams of runs begin with."""


def stream_of(run: str, step: str) -> str:
    """The stream of a step's records."""
    return f"{RUNS}{run}/{step}"


def inbox_of(run: str) -> str:
    """The stream of a run's signals."""
    return f"{SIGNALS}{run}"


def output_of(run: str, step: str) -> str:
    """The stream of a step's output."""
    return f"{OUTPUT}{run}/{step}"


def time_text(at: float) -> str:
    """Seconds since 1970 as records have them."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def seconds_of(at: str) -> float:
    """A time of a record in seconds since 1970, 0.0 for none."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


# ---- parts of records ----


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a step, and since when: `writer` is unique to the object that claimed it; see `ralf.tasks.origin` for the
    process.
    """

    writer: str = ""
    by: str = ""
    process: int = 0
    born: int = 0
    machine: str = ""
    seconds: float = 300.0
    since: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """The outcome of a wait: the signal's number and place in the inbox, or 0 and "" for a time-out."""

    name: str = ""
    number: int = 0
    token: Token = ""


@dataclass(frozen=True, slots=True)
class Position:
    """How much of the inbox was received: all signals up to `number`, and of the names in `beyond` up to theirs."""

    number: int = 0
    token: Token = ""
    beyond: Mapping[str, int] = field(default_factory=dict)

    def has(self, name: str, number: int) -> bool:
        """Whether a signal was received."""
        return number <= max(self.number, self.beyond.get(name, 0))


# ---- the kinds ----


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim. Of the first one `nonce` names the run's life, and `input` is the run's.

    lost     whether the holder before was gone
    resumed  how a pause ended with it: "signal", "timeout"; "" for no pause
    """

    kind: ClassVar[str] = "claimed"
    term: int = 0
    holder: Holder = field(default_factory=Holder)
    nonce: str = ""
    input: Tree | None = None
    lost: bool = False
    resumed: str = ""
    heard: tuple[Heard, ...] = ()
    inbox: Position | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved state; `ahead`: outcomes of waits that it does not cover, to be returned again."""

    kind: ClassVar[str] = "saved"
    number: int = 0
    state: Tree | None = None
    ahead: tuple[Heard, ...] = ()
    heard: tuple[Heard, ...] = ()
    inbox: Position | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that is about to be made; `repeat`: how many times it was made before without an answer."""

    kind: ClassVar[str] = "asked"
    key: str = ""
    repeat: int = 0
    heard: tuple[Heard, ...] = ()
    inbox: Position | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of a call: bytes, or with `is_json` a JSON value."""

    kind: ClassVar[str] = "answered"
    key: str = ""
    answer: Tree | None = None
    is_json: bool = False
    heard: tuple[Heard, ...] = ()
    inbox: Position | None = None


DECISIONS = ("continue", "complete", "fail", "fail-for-good", "pause")


@dataclass(frozen=True, slots=True)
class Decided:
    """The end of an iteration, an attempt, or the step.

    state, number  saved with it, and its number; None, 0 for none
    ahead          as in `Saved`
    not_before     when the step continues, "" for at once; of a pause when its time is up
    name           of the signal that a pause waits for
    releases       whether the claim ends with it
    """

    kind: ClassVar[str] = "decided"
    decision: str = "continue"
    output: Tree | None = None
    state: Tree | None = None
    number: int = 0
    ahead: tuple[Heard, ...] = ()
    reason: str = ""
    not_before: str = ""
    name: str = ""
    releases: bool = False
    heard: tuple[Heard, ...] = ()
    inbox: Position | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A large result under a key; `sum` tells whether other bytes are the same."""

    kind: ClassVar[str] = "external"
    key: str = ""
    sum: str = ""
    blob: Tree | None = None


@dataclass(frozen=True, slots=True)
class Renewed:
    """A sign of life, where no file can show it."""

    kind: ClassVar[str] = "renewed"


@dataclass(frozen=True, slots=True)
class Released:
    """The end of a claim without a decision."""

    kind: ClassVar[str] = "released"


@dataclass(frozen=True, slots=True)
class Retried:
    """A step that is reopened, or is to continue at once."""

    kind: ClassVar[str] = "retried"
    by: str = ""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A step that somebody ended."""

    kind: ClassVar[str] = "cancelled"
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Dead:
    """A step that is given up: a dead letter."""

    kind: ClassVar[str] = "dead"
    reason: str = ""
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Pruned:
    """Contents were looked through, and some are perhaps gone: `left` bytes of them stay.

    young  the blobs that were too young to be dropped, each with a space before it: no one is to take them for named
    """

    kind: ClassVar[str] = "pruned"
    left: int = 0
    young: str = ""


Body = Claimed | Saved | Asked | Answered | Decided | Stored | Renewed | Released | Retried | Cancelled | Dead | Pruned

_KINDS: dict[str, type[Any]] = {
    each.kind: each
    for each in (
        Claimed,
        Saved,
        Asked,
        Answered,
        Decided,
        Stored,
        Renewed,
        Released,
        Retried,
        Cancelled,
        Dead,
        Pruned,
    )
}


# ---- the state of a step ----


@dataclass(frozen=True, slots=True)
class StepState:
    """What the records of a step come to. Whatever grows with the run is named by a place in the stream (`…_at`).

    records      how many there are; began, at: times of the first and the newest one
    nonce        names this life of the run: a forgotten run that begins anew has another one
    term         of the newest claim; holder: who has it, None for no one
    phase        "" while it is open, "paused", or one of `ralf.agent.model.ENDED`
    pause        name of the signal that a pause waits for
    resumed      how the last pause of this iteration ended; resumed_by: by which signal
    states       number of the newest state; state_at: its record's place, state_record: its number, state_size: bytes
    held         bytes of all contents; left: what the last look at them left (`ralf.agent.states`)
    trail        place of the newest record of this iteration that has a call, or the outcome of a wait
    input_at     place of the record that has this iteration's input; output_at: that has the step's result
    stored_at    place of the newest stored result
    inbox        what was received; heard: how many signals
    ahead        outcomes of waits that are to be returned again, though they came before the newest state
    """

    records: int = 0
    nonce: str = ""
    began: str = ""
    at: str = ""
    term: int = 0
    holder: Holder | None = None
    iteration: int = 1
    attempt: int = 1
    losses: int = 0
    phase: str = ""
    not_before: str = ""
    pause: str = ""
    resumed: str = ""
    resumed_by: Heard | None = None
    reason: str = ""
    states: int = 0
    state_at: Token = ""
    state_record: int = 0
    state_size: int = 0
    held: int = 0
    left: int = 0
    trail: Token = ""
    calls: int = 0
    repeats: int = 0
    input_at: Token = ""
    output_at: Token = ""
    stored_at: Token = ""
    inbox: Position = field(default_factory=Position)
    heard: int = 0
    ahead: tuple[Heard, ...] = ()


_STATE_FIELDS = tuple(each.name for each in fields(StepState))

_values_of = attrgetter(*_STATE_FIELDS)


@dataclass(frozen=True, slots=True)
class Record:
    """One record: its number in the step, its time, who wrote it, and the state before it."""

    number: int
    at: str
    writer: str
    body: Body
    was: StepState = field(default_factory=StepState)


def apply(state: StepState, record: Record, token: Token) -> StepState:
    """The state after a record at a place."""
    values = _APPLY[type(record.body)](state, record.body, token)
    before = dict(zip(_STATE_FIELDS, _values_of(state), strict=True))
    return StepState(
        **{**before, "records": record.number, "at": record.at, "began": state.began or record.at, **values}
    )


def fold(records: Iterable[tuple[Token, Record]]) -> StepState:
    """What records, the oldest first, come to; what they say of the state before them does not count."""
    state = StepState()
    for token, record in records:
        state = apply(state, record, token)
    return state


_Values = dict[str, Any]


def _received(state: StepState, body: Any, trail: Token) -> _Values:
    """What changes by the outcomes of waits on which a record depends, and with it as the trail's end."""
    count = state.heard + sum(1 for one in body.heard if one.number)
    return {"inbox": body.inbox or state.inbox, "heard": count, "trail": trail}


def _saved(state: StepState, tree: Tree, number: int, token: Token) -> _Values:
    """What changes by a saved state, but for `held`."""
    return {
        "states": number,
        "state_at": token,
        "state_record": state.records + 1,
        "state_size": size_of(tree),
    }


_NO_HOLDER: _Values = {"holder": None, "not_before": ""}

_AFRESH: _Values = {"attempt": 1, "losses": 0}

_NOT_RESUMED: _Values = {"resumed": "", "resumed_by": None}


def _claim(state: StepState, body: Any, token: Token) -> _Values:
    values = {
        "term": body.term,
        "holder": body.holder,
        "nonce": state.nonce or body.nonce,
        "losses": state.losses + body.lost,
        "not_before": "",
        "input_at": state.input_at or token,
        "held": state.held + size_of(body.input),
    }
    if body.resumed:
        by = body.heard[0] if body.heard else None
        values |= {"phase": "", "pause": "", "resumed": body.resumed, "resumed_by": by}
        values |= _received(state, body, state.trail)
    return values


def _save(state: StepState, body: Any, token: Token) -> _Values:
    tree = body.state or {}
    values = _received(state, body, state.trail) | _saved(state, tree, body.number, token)
    return {**values, "ahead": body.ahead, "held": state.held + size_of(tree)}


def _ask(state: StepState, body: Any, token: Token) -> _Values:
    calls, repeats = state.calls + (not body.repeat), state.repeats + (body.repeat > 0)
    return {**_received(state, body, token), "calls": calls, "repeats": repeats}


def _answer(state: StepState, body: Any, token: Token) -> _Values:
    return {**_received(state, body, token), "held": state.held + size_of(body.answer)}


def _decide(state: StepState, body: Any, token: Token) -> _Values:
    values = {
        **_received(state, body, state.trail),
        "not_before": body.not_before,
        "reason": body.reason,
        "held": state.held + size_of(body.output) + size_of(body.state),
    }
    if body.state is not None:
        values |= _saved(state, body.state, body.number, token)
    if body.releases:
        values["holder"] = None
    if body.decision == "continue":
        values |= {"iteration": state.iteration + 1, "input_at": token, "ahead": body.ahead}
        return {**values, **_AFRESH, **_NOT_RESUMED, "trail": "", "calls": 0, "repeats": 0}
    if body.decision == "fail":
        return {**values, "attempt": state.attempt + 1}
    if body.decision == "pause":
        return {**values, **_NOT_RESUMED, "phase": "paused", "pause": body.name}
    if body.decision == "complete":
        return {**values, "phase": "completed", "output_at": token}
    return {**values, "phase": "failed"}


def _store(state: StepState, body: Any, token: Token) -> _Values:
    return {"stored_at": token, "held": state.held + size_of(body.blob)}


def _renew(_state: StepState, _body: Any, _token: Token) -> _Values:
    return {}


def _release(_state: StepState, _body: Any, _token: Token) -> _Values:
    return {"holder": None}


def _retry(state: StepState, _body: Any, _token: Token) -> _Values:
    resumed = "retried" if state.phase == "paused" else state.resumed
    return {**_NO_HOLDER, **_AFRESH, "phase": "", "pause": "", "reason": "", "resumed": resumed}


def _cancel(_state: StepState, body: Any, _token: Token) -> _Values:
    return {**_NO_HOLDER, "phase": "cancelled", "pause": "", "reason": body.reason}


def _die(_state: StepState, body: Any, _token: Token) -> _Values:
    return {**_NO_HOLDER, "phase": "dead", "reason": body.reason}


def _prune(_state: StepState, body: Any, _token: Token) -> _Values:
    return {"held": body.left, "left": body.left}


_APPLY: dict[type[Any], Callable[[StepState, Any, Token], _Values]] = {
    Claimed: _claim,
    Saved: _save,
    Asked: _ask,
    Answered: _answer,
    Decided: _decide,
    Stored: _store,
    Renewed: _renew,
    Released: _release,
    Retried: _retry,
    Cancelled: _cancel,
    Dead: _die,
    Pruned: _prune,
}


# ---- as JSON ----


def tree_of(value: Any) -> dict[str, Any]:
    """A part as a plain tree; what is as it always is at first is left out."""
    tree = {}
    for name, default in _defaults(type(value)):
        found = getattr(value, name)
        if found != default:
            tree[name] = _plain(found)
    return tree


def _plain(value: Any) -> Any:
    if isinstance(value, Heard):
        return [value.name, value.number, value.token]
    if isinstance(value, (Holder, Position)):
        return tree_of(value)
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


_known: dict[type[Any], tuple[tuple[str, Any], ...]] = {}


def _defaults(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """The names of a part's fields, and what they are at first."""
    if kind not in _known:
        _known[kind] = tuple(
            (each.name, each.default_factory() if callable(each.default_factory) else each.default)
            for each in fields(kind)
        )
    return _known[kind]


_PARTS: dict[str, Callable[[Any], Any]] = {
    "holder": lambda tree: _made(Holder, tree),
    "inbox": lambda tree: _made(Position, tree),
    "resumed_by": lambda tree: Heard(*tree),
    "ahead": lambda tree: tuple(Heard(*one) for one in tree),
    "heard": lambda tree: tuple(Heard(*one) for one in tree) if isinstance(tree, list) else int(tree),
}


def _made(kind: type[Any], tree: Mapping[str, Any]) -> Any:
    """A part of its plain tree; names that are not known here are passed over."""
    return kind(
        **{
            name: _PARTS[name](tree[name]) if name in _PARTS and tree[name] is not None else tree[name]
            for name, _ in _defaults(kind)
            if name in tree
        }
    )


def encoded(record: Record) -> bytes:
    """A record as one line of JSON."""
    tree: dict[str, Any] = {
        "v": VERSION,
        "n": record.number,
        "at": record.at,
        "kind": record.body.kind,
        "w": record.writer,
        **tree_of(record.body),
    }
    return line_of(tree, f',"was":{_state_text(record.was)}')


def line_of(tree: dict[str, Any], more: str = "") -> bytes:
    """A record's tree as one line of JSON, its contents last; `more`: further members before them, after a comma."""
    found = [(name, tree.pop(name)) for name in contents.FIELDS if tree.get(name) is not None]
    line = f"{_as_json(tree)[:-1]}{more}".encode()
    parts = [b',"%s":%s' % (name.encode(), contents.encoded(content)) for name, content in found]
    return b"%s%s}" % (line, b"".join(parts))


_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_last_encoded: tuple[tuple[Any, ...], tuple[str, ...]] = ((object(),) * len(_STATE_FIELDS), ("",) * len(_STATE_FIELDS))
"""The values of the state that was encoded last, and what each is as a member in JSON: most are the same again."""


def _state_text(state: StepState) -> str:
    """A state as JSON; what is as it always is at first is left out."""
    global _last_encoded
    values, (before, known) = _values_of(state), _last_encoded
    members = tuple(
        text if value is old else _member(name, default, value)
        for (name, default), value, old, text in zip(_defaults(StepState), values, before, known, strict=True)
    )
    _last_encoded = values, members
    return f"{{{''.join(members)[1:]}}}"


def _member(name: str, default: Any, value: Any) -> str:
    if value == default:
        return ""
    return f',"{name}":{value if type(value) is int else _as_json(_plain(value))}'


def parsed(where: str, entry: Entry) -> Record:
    """The record in an entry. DamagedJournal for one that is none; UsageError for one of a later version."""
    try:
        tree = json.loads(entry.record)
        if tree["v"] > VERSION or tree["kind"] not in _KINDS:
            raise UsageError(where, "was written by a later version of ralf", "use that version, or a later one")
        body = _made(_KINDS[tree["kind"]], tree)
        return Record(int(tree["n"]), str(tree["at"]), str(tree["w"]), body, _made(StepState, tree["was"]))
    except MALFORMED as error:
        what = f"the record {entry.id!r} is not one of a run: {type(error).__name__}"
        raise DamagedJournal(where, what, MEND_JOURNAL) from None
