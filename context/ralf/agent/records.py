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
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from ralf.agent import contents
from ralf.agent.model import SavedState
from ralf.document.family import Family
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.errors import UsageError
from ralf.storage.journal import Entry, Token, understood

VERSION = 2
"""Of a record. One of version 1 also has the state before it, `was`, which is passed over."""

RUNS, SIGNALS, OUTPUT = "runs/", "signals/", "output/"
"""What the names of the streams of runs begin with."""

_KINDS = frozenset(
    "claimed saved asked answered decided external renewed released retried cancelled dead pruned".split()
)

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


def where_of(stream: str) -> str:
    """How a step is called in messages."""
    return stream.removeprefix(RUNS).removesuffix("/main")


def time_text(at: float) -> str:
    """Seconds since 1970 as records have them."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:23] + "Z"


def seconds_of(at: str) -> float:
    """A time of a record in seconds since 1970, 0.0 for none."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


def body(kind: str, **members: Any) -> Body:
    """The body of a record; what is empty is left out."""
    return {"kind": kind} | {name: value for name, value in members.items() if value}


class Heard(NamedTuple):
    """The outcome of a wait: the signal's number and place in the inbox, or 0 and "" for a time-out."""

    name: str
    number: int = 0
    token: Token = ""


NOT_CALLED = [0, "", False]
"""What `StepState.calls` would say of a call that was never made."""


class StepState(NamedTuple):
    """What is known of a step, as JSON has it.

    records      how many there are; began, at: times of the first and the newest one
    nonce        names this life of the run: a forgotten run that begins anew has another one
    term         of the newest claim; holder: who has it as its record says, None for no one
    phase        "" while it is open, "paused", or one of `ralf.agent.model.ENDED`
    waits_for    name of the signal that a pause waits for
    resumed      how the last pause of this iteration ended; resumed_by: by which signal
    states       number of the newest state; state_at: its record's place, size: bytes
    held         bytes of all contents since the last look at them, and of what that left (`ralf.agent.states`): left
    calls        of this iteration, by key: how often each was made, the place of its answer, and whether that is JSON
    input_at     place of the record that has this iteration's input; output_at: that has the step's result
    inbox        what was received: all signals up to `number`, at `token`, and of the names in `beyond` up to theirs
    heard        how many signals that were
    replays      outcomes of waits that records depend on and no saved state covers, oldest first
    """

    records: int = 0
    began: str = ""
    at: str = ""
    nonce: str = ""
    term: int = 0
    holder: Mapping[str, Any] | None = None
    iteration: int = 1
    attempt: int = 1
    losses: int = 0
    phase: str = ""
    not_before: str = ""
    waits_for: str = ""
    resumed: str = ""
    resumed_by: list[Any] | None = None
    reason: str = ""
    states: int = 0
    state_at: Token = ""
    size: int = 0
    held: int = 0
    left: int = 0
    calls: Mapping[str, list[Any]] = {}
    input_at: Token = ""
    output_at: Token = ""
    inbox: Mapping[str, Any] = {"number": 0, "token": "", "beyond": {}}
    heard: int = 0
    replays: Sequence[list[Any]] = ()


def after(state: StepState, record: Record) -> StepState:
    """What a step comes to with one more record, whose body has its `place`."""
    held = state.held + sum(tree["size"] for name in contents.FIELDS if (tree := record.body.get(name)))
    counted = {"records": record.revision, "began": state.began or record.at, "at": record.at, "held": held}
    return state._replace(**counted | _changes(state, record.body))


def _changes(state: StepState, body: Body) -> dict[str, Any]:
    """What a record changes beside what is counted of all."""
    place, waits = body["place"], [list(one) for one in body.get("heard") or ()]
    received: dict[str, Any] = {
        "inbox": body.get("inbox") or state.inbox,
        "heard": state.heard + sum(1 for one in waits if one[1]),
    }
    saved: dict[str, Any] = {}
    if (tree := body.get("state")) is not None:
        ahead = [list(one) for one in body.get("ahead") or ()]
        saved = {"states": body["number"], "state_at": place, "size": tree["size"], "replays": ahead}
    match body["kind"]:
        case "claimed":
            changes = {
                "term": body["term"],
                "holder": body["holder"],
                "nonce": state.nonce or body.get("nonce", ""),
                "losses": state.losses + bool(body.get("lost")),
                "not_before": "",
                "input_at": state.input_at or place,
            }
            if how := body.get("resumed"):
                changes |= received | {"phase": "", "waits_for": "", "resumed": how}
                changes["resumed_by"] = waits[0] if waits else None
            return changes
        case "saved":
            return received | saved
        case "asked" | "answered":
            key = body["key"]
            call = [body.get("repeat", 0) + 1, "", False]
            if body["kind"] == "answered":
                call = [state.calls.get(key, NOT_CALLED)[0], place, bool(body.get("is_json"))]
            return received | {"calls": {**state.calls, key: call}, "replays": [*state.replays, *waits]}
        case "decided":
            ends = {"holder": None} if body.get("releases") else {}
            ends |= {"not_before": body.get("not_before", ""), "reason": body.get("reason", "")}
            return received | saved | ends | _decided(state, body)
        case "released":
            return {"holder": None}
        case "retried":
            how = "retried" if state.phase == "paused" else state.resumed
            return _CLOSED | {"attempt": 1, "losses": 0, "phase": "", "reason": "", "resumed": how}
        case "cancelled" | "dead":
            return _CLOSED | {"phase": body["kind"], "reason": body.get("reason", "")}
        case "pruned":
            return {"held": body.get("left", 0), "left": body.get("left", 0)}
    return {}


_CLOSED: dict[str, Any] = {"holder": None, "not_before": "", "waits_for": ""}

_NOT_RESUMED: dict[str, Any] = {"resumed": "", "resumed_by": None}


def _decided(state: StepState, body: Body) -> dict[str, Any]:
    match body.get("decision", "continue"):
        case "continue":
            ahead = [list(one) for one in body.get("ahead") or ()]
            afresh = {"iteration": state.iteration + 1, "attempt": 1, "losses": 0, "calls": {}, "replays": ahead}
            return _NOT_RESUMED | afresh | {"input_at": body["place"]}
        case "fail":
            return {"attempt": state.attempt + 1}
        case "pause":
            return _NOT_RESUMED | {"phase": "paused", "waits_for": body["name"]}
        case "complete":
            return {"phase": "completed", "output_at": body["place"]}
    return {"phase": "failed"}


# ---- the family ----

_STEP, _STATES, _STORED = "step", "state/", "stored/"
"""The keys of rows, or what they begin with."""


class _Runs:
    """The records of runs, and how they fold into rows."""

    layout = 0

    def decoded(self, stream: str, entry: Entry) -> Record:
        """See `Family.decoded`. UsageError for a record of a later version."""
        where = where_of(stream)
        with understood(where):
            tree = json.loads(entry.record)
            if tree["v"] > VERSION or tree["kind"] not in _KINDS:
                raise UsageError(where, "was written by a later version of ralf", "use that version, or a later one")
            return Record(int(tree["n"]), str(tree["at"]), tree | {"place": entry.token}, str(tree["w"]))

    def encoded(self, record: Record) -> bytes:
        """See `Family.encoded`."""
        tree = {"v": VERSION, "n": record.revision, "at": record.at, "w": record.by, **record.body}
        return contents.encoded(tree)

    def fold(self, rows: Rows, record: Record) -> None:
        """See `Family.fold`."""
        before, body = step_of(rows), record.body
        rows.held = after(before, record)
        rows.put(_STEP, rows.held._asdict())
        if (tree := body.get("state")) is not None:
            row = [body["place"], before.iteration, record.at, tree["size"], contents.is_kept(tree)]
            rows.put(f"{_STATES}{body['number']:010}", row)
        elif body["kind"] == "external":
            rows.put(f"{_STORED}{body['key']}", [body["place"], body["sum"]])


RUNS_FAMILY = cast("Family", _Runs())
"""Of a family, what a document without a file needs."""


def step_of(rows: Rows) -> StepState:
    """The state of a step."""
    if rows.held is None:
        rows.held = StepState(**rows.one(_STEP) or {})
    found: StepState = rows.held
    return found


def states_of(rows: Rows) -> list[SavedState]:
    """The saved states, oldest first."""
    return [SavedState(int(key.removeprefix(_STATES)), *row[1:]) for key, row in rows.under(_STATES)]


def state_at(rows: Rows, number: int) -> Token:
    """The place of the record with the state of a number, "" for none."""
    return str((rows.one(f"{_STATES}{number:010}") or [""])[0])


def stored_places(rows: Rows) -> set[Token]:
    """The places of the newest results of all keys."""
    return {place for _, (place, _) in rows.under(_STORED)}


def stored_at(rows: Rows, key: str) -> tuple[Token, str]:
    """The place and the sum of the newest result that was stored under a key, "" for none."""
    place, sum_ = rows.one(f"{_STORED}{key}") or ("", "")
    return place, sum_
