"""The records of a step of a run, and what they come to: a family of documents that has no file. Pure.

A record is a tree with its `kind`:

    claimed    a claim: `term`, `holder`, `lost` where the one before was gone, `resumed` and how a pause ended with it
               ("signal", "timeout"); the first has the run's `input` and the `nonce` that names this life of the run
    saved      a `state` and its `number`
    asked      a call is about to be made: `key`, and `repeat`, how often it was made before without an answer
    answered   its `answer`: bytes, or with `is_json` a JSON value
    decided    the end of an iteration, an attempt or the step: `decision` (continue, complete, fail, fail-for-good,
               pause), `output`, `state` and `number`, `reason`, `not_before` (of a pause when its time is up), `name`
               of the signal that a pause waits for, `releases` where the claim ends with it
    external   a stored result: `key`, `sum` (tells whether other bytes are the same), `blob`
    renewed, released                a sign of life, where no file can show it; the end of a claim without a decision
    retried, cancelled, dead         by whom or why a step is reopened or ended
    pruned                           contents were looked through: `left` bytes stay

Of what depends on waits, `heard` has their outcomes, `inbox` the position in the inbox behind them, and `ahead` what
came before a state that does not cover it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, cast

from ralf.agent import contents
from ralf.document.family import Family
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.errors import MEND_JOURNAL, DamagedJournal, UsageError
from ralf.storage.journal import MALFORMED, Digest, Entry, Token

VERSION = 2
"""Of a record. One of version 1 also has the state before it, `was`, which is passed over."""

RUNS, SIGNALS, OUTPUT = "runs/", "signals/", "output/"
"""What the names of the streams of runs begin with."""

Body = Mapping[str, Any]


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


class Holder(NamedTuple):
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


class Heard(NamedTuple):
    """The outcome of a wait: the signal's number and place in the inbox, or 0 and "" for a time-out."""

    name: str = ""
    number: int = 0
    token: Token = ""


class Position(NamedTuple):
    """How much of the inbox was received: all signals up to `number`, and of the names in `beyond` up to theirs."""

    number: int = 0
    token: Token = ""
    beyond: Mapping[str, int] = {}

    def has(self, name: str, number: int) -> bool:
        """Whether a signal was received."""
        return number <= max(self.number, self.beyond.get(name, 0))


def body(kind: str, **members: Any) -> Body:
    """The body of a record; what is empty is left out."""
    return {"kind": kind} | {name: value for name, value in members.items() if value}


# ---- what the records of a step come to ----


class StepState(NamedTuple):
    """What is known of a step without its calls and contents, which have rows of their own.

    records      how many there are; began, at: times of the first and the newest one
    nonce        names this life of the run: a forgotten run that begins anew has another one
    term         of the newest claim; holder: who has it, None for no one
    phase        "" while it is open, "paused", or one of `ralf.agent.model.ENDED`
    pause        name of the signal that a pause waits for
    resumed      how the last pause of this iteration ended; resumed_by: by which signal
    states       number of the newest state; state_at: its record's place, state_size: bytes
    held         bytes of all contents; left: what the last look at them left (`ralf.agent.states`)
    kept         how many contents are still there
    calls        of this iteration; repeats: how many of them were made again for want of an answer
    input_at     place of the record that has this iteration's input; output_at: that has the step's result
    inbox        what was received; heard: how many signals
    replays      outcomes of waits that records depend on and no saved state covers, oldest first
    """

    records: int = 0
    began: str = ""
    at: str = ""
    nonce: str = ""
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
    state_size: int = 0
    held: int = 0
    left: int = 0
    kept: int = 0
    calls: int = 0
    repeats: int = 0
    input_at: Token = ""
    output_at: Token = ""
    inbox: Position = Position()
    heard: int = 0
    replays: tuple[Heard, ...] = ()


class Call(NamedTuple):
    """A call of this iteration: how often it was made, and the place of its answer, "" for none; see `answered`."""

    asked: int = 0
    answer_at: Token = ""
    is_json: bool = False


class Content(NamedTuple):
    """A content of a record: the record's number, place and time, its iteration, the content's field, its size, whether
    it is still there, and its blobs; of a state its number, of a stored result its key.
    """

    record: int
    place: Token
    at: str
    iteration: int
    field: str
    size: int
    is_kept: bool
    blobs: list[Digest]
    name: str | int


_STEP, _CALLS, _CONTENTS, _STATES, _STORED = "step", "call/", "content/", "content/state/", "stored/"
"""The keys of rows, or what they begin with."""

_FIELDS = ("state", "output", "answer", "input", "blob")
"""The contents of records."""


def step_of(rows: Rows) -> StepState:
    """The state of a step."""
    if rows.held is None:
        tree = rows.one(_STEP) or {}
        made = {
            "holder": tree.get("holder") and Holder(*tree["holder"]),
            "resumed_by": tree.get("resumed_by") and Heard(*tree["resumed_by"]),
            "inbox": Position(*tree.get("inbox", ())),
            "replays": tuple(Heard(*one) for one in tree.get("replays", ())),
        }
        rows.held = StepState(**tree | made)
    found: StepState = rows.held
    return found


def call_of(rows: Rows, key: str) -> Call:
    """A call of this iteration."""
    return Call(*rows.one(_key_of_call(rows, key)) or ())


def contents_of(rows: Rows) -> list[Content]:
    """The contents of all records, oldest first."""
    return sorted(Content(*row) for _, row in rows.under(_CONTENTS))


def states_of(rows: Rows) -> list[Content]:
    """The saved states, oldest first."""
    return [Content(*row) for _, row in rows.under(_STATES)]


def state_at(rows: Rows, number: int | None) -> Token:
    """The place of the record with the newest state, or that of a number; "" for none."""
    if number is None:
        return step_of(rows).state_at
    row = rows.one(_key("state", number))
    return Content(*row).place if row else ""


def stored_at(rows: Rows, key: str) -> tuple[Token, str]:
    """The place and the sum of the newest result that was stored under a key, "" for none."""
    place, sum_ = rows.one(f"{_STORED}{key}") or ("", "")
    return place, sum_


def in_hand(rows: Rows) -> Rows:
    """Rows above those that the next records of a step need: of its state and its calls."""
    made = Rows()
    made.held = step_of(rows)
    for key, row in rows.under(_CALLS):
        made.put(key, row)
    return Rows(made)


def _key_of_call(rows: Rows, key: str) -> str:
    return f"{_CALLS}{step_of(rows).iteration}/{key}"


def _key(field: str, number: int) -> str:
    return f"{_CONTENTS}{field}/{number:010}"


# ---- the family ----


class _Runs:
    """The records of runs, and how they fold into rows."""

    layout = 0

    def decoded(self, stream: str, entry: Entry) -> Record:
        """See `Family.decoded`. UsageError for a record of a later version."""
        where = where_of(stream)
        try:
            tree = json.loads(entry.record)
            if tree["v"] > VERSION or tree["kind"] not in _CHANGES:
                raise UsageError(where, "was written by a later version of ralf", "use that version, or a later one")
            return Record(int(tree["n"]), str(tree["at"]), tree | {"place": entry.token}, str(tree["w"]))
        except MALFORMED as error:
            what = f"the record {entry.id!r} is not one of a run: {type(error).__name__}"
            raise DamagedJournal(where, what, MEND_JOURNAL) from None

    def encoded(self, record: Record) -> bytes:
        """See `Family.encoded`."""
        return line_of({"v": VERSION, "n": record.revision, "at": record.at, "w": record.by, **record.body})

    def fold(self, rows: Rows, record: Record) -> None:
        """See `Family.fold`; the body has the record's `place` in the stream."""
        state, body = step_of(rows), record.body
        kind, place = body["kind"], body["place"]
        held = kept = 0
        for field in _FIELDS:
            if (tree := body.get(field)) is not None:
                number = body["number"] if field == "state" else record.revision
                is_kept, name = contents.is_kept(tree), body.get("key", number)
                blobs = list(contents.blobs_of(tree))
                size, about = contents.size_of(tree), (record.revision, place, record.at, state.iteration)
                rows.put(_key(field, number), Content(*about, field, size, is_kept, blobs, name))
                held, kept = held + size, kept + is_kept
        if kind in ("asked", "answered"):
            asked = Call(body.get("repeat", 0) + 1)
            answered = call_of(rows, body["key"])._replace(answer_at=place, is_json=bool(body.get("is_json")))
            rows.put(_key_of_call(rows, body["key"]), asked if kind == "asked" else answered)
        elif kind == "external":
            rows.put(f"{_STORED}{body['key']}", (place, body["sum"]))
        elif body.get("decision") == "continue":
            for key, _ in [*rows.under(_CALLS)]:
                rows.put(key, None)
        changes: _Changes = {
            "records": record.revision,
            "began": state.began or record.at,
            "at": record.at,
            "held": state.held + held,
            "kept": state.kept + kept,
        }
        rows.held = state._replace(**changes | _CHANGES[kind](state, body))
        rows.put(_STEP, partial(_row_of, rows.held))


RUNS_FAMILY = cast("Family", _Runs())
"""Of a family, what a document without a file needs."""


def where_of(stream: str) -> str:
    """How a step is called in messages."""
    return stream.removeprefix(RUNS).removesuffix("/main")


def _row_of(state: StepState) -> dict[str, Any]:
    """A state as a row: what is as it always is at first is left out."""
    defaults = StepState._field_defaults
    return {name: value for name, value in state._asdict().items() if value != defaults[name]}


# ---- what changes with a record of each kind ----

_Changes = dict[str, Any]

_AFRESH: _Changes = {"attempt": 1, "losses": 0}

_CLOSED: _Changes = {"holder": None, "not_before": "", "pause": ""}

_NOT_RESUMED: _Changes = {"resumed": "", "resumed_by": None}


def _heard(members: Any) -> tuple[Heard, ...]:
    return tuple(Heard(*one) for one in members or ())


def _received(state: StepState, body: Body) -> _Changes:
    """What changes by the outcomes of waits on which a record depends."""
    inbox = Position(**body["inbox"]) if body.get("inbox") else state.inbox
    return {"inbox": inbox, "heard": state.heard + sum(1 for one in _heard(body.get("heard")) if one.number)}


def _claimed(state: StepState, body: Body) -> _Changes:
    changes = {
        "term": body["term"],
        "holder": Holder(**body["holder"]),
        "nonce": state.nonce or body.get("nonce", ""),
        "losses": state.losses + bool(body.get("lost")),
        "not_before": "",
        "input_at": state.input_at or body["place"],
    }
    if body.get("resumed"):
        by = next(iter(_heard(body.get("heard"))), None)
        changes |= {"phase": "", "pause": "", "resumed": body["resumed"], "resumed_by": by}
        changes |= _received(state, body)
    return changes


def _saved(state: StepState, body: Body) -> _Changes:
    return {
        **_received(state, body),
        "states": body["number"],
        "state_at": body["place"],
        "state_size": contents.size_of(body["state"]),
        "replays": _heard(body.get("ahead")),
    }


def _asked(state: StepState, body: Body) -> _Changes:
    count = "repeats" if body.get("repeat") else "calls"
    return {**_answered(state, body), count: getattr(state, count) + 1}


def _answered(state: StepState, body: Body) -> _Changes:
    return {**_received(state, body), "replays": state.replays + _heard(body.get("heard"))}


def _decided(state: StepState, body: Body) -> _Changes:
    changes = _saved(state, body) if body.get("state") is not None else _received(state, body)
    changes |= {"not_before": body.get("not_before", ""), "reason": body.get("reason", "")}
    if body.get("releases"):
        changes["holder"] = None
    decision = body.get("decision", "continue")
    if decision == "continue":
        changes |= _AFRESH | _NOT_RESUMED | {"iteration": state.iteration + 1, "input_at": body["place"]}
        changes |= {"replays": _heard(body.get("ahead")), "calls": 0, "repeats": 0}
    elif decision == "fail":
        changes["attempt"] = state.attempt + 1
    elif decision == "pause":
        changes |= _NOT_RESUMED | {"phase": "paused", "pause": body["name"]}
    elif decision == "complete":
        changes |= {"phase": "completed", "output_at": body["place"]}
    else:
        changes["phase"] = "failed"
    return changes


def _retried(state: StepState, _: Body) -> _Changes:
    resumed = "retried" if state.phase == "paused" else state.resumed
    return {**_CLOSED, **_AFRESH, "phase": "", "reason": "", "resumed": resumed}


def _ended(_: StepState, body: Body) -> _Changes:
    return {**_CLOSED, "phase": body["kind"], "reason": body.get("reason", "")}


_CHANGES: dict[str, Callable[[StepState, Body], _Changes]] = {
    "claimed": _claimed,
    "saved": _saved,
    "asked": _asked,
    "answered": _answered,
    "decided": _decided,
    "external": lambda _, __: {},
    "renewed": lambda _, __: {},
    "released": lambda _, __: {"holder": None},
    "retried": _retried,
    "cancelled": _ended,
    "dead": _ended,
    "pruned": lambda _, body: {"held": body.get("left", 0), "left": body.get("left", 0)},
}


def line_of(tree: Mapping[str, Any]) -> bytes:
    """A record's tree as one line of JSON, its contents last."""
    found = {name: tree[name] for name in contents.FIELDS if tree.get(name) is not None}
    line = _as_json({name: value for name, value in tree.items() if name not in found})[:-1].encode()
    return b"%s%s}" % (
        line,
        b"".join(b',"%s":%s' % (name.encode(), contents.encoded(one)) for name, one in found.items()),
    )


_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
