"""What a session's health comes to, and the rules by which it is warned of: data, one line a rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ralf.allocation.gauge import alert_of
from ralf.allocation.shares import Allocation
from ralf.config import Config

GONE = ("ended", "killed")
"""States of sessions that are over."""

_SOON = 10  # minutes before a compaction
_DAY = 24 * 60  # minutes: who has been silent for longer was left by its person long ago
_OVERDUE = 1.25  # of the threshold: a checkpoint should have been made


@dataclass(frozen=True, slots=True)
class Warned:
    """A rule that a session breaks: its name, what is wrong, and what to do."""

    rule: str
    text: str
    hint: str


@dataclass(frozen=True, slots=True)
class Session:
    """The health of one session. Minutes to something are an estimate: 0 for due, None where nobody can tell."""

    session: str
    client: str
    route: str
    transcript: str
    state: str  # working, waiting (for the person), silent, stuck, parked (at a usage limit), ended or killed
    tokens: int | None  # in the client's window, None where unknown
    window: int
    percent: float | None
    growth: float | None  # tokens that the window gains in a minute
    unsaved: int  # tokens that no checkpoint has, an estimate
    minutes_to_checkpoint: float | None
    minutes_to_compaction: float | None  # by the client
    last_checkpoint: str  # time of the last record that a checkpoint has of the session, "" for none
    minutes_since_checkpoint: float | None
    minutes_silent: float  # since the last record
    last: str  # time of the last record
    seen_by_hooks: bool  # whether a hook has ever called for it
    told: int = 0  # the highest percent that its own hooks have told the agent of
    compaction: int = 0  # the byte of the log at which the last compaction stands, 0 for none that was seen
    notices: int = 0  # that wait in its inbox
    stuck: str = ""  # why it is
    parked: str = ""  # what its client says of the usage limit
    parked_until: float = 0.0  # when that ends, seconds since 1970, 0 where nobody knows
    problem: str = ""  # why its log could not be read
    compactions: int = 0  # how often its window was compacted, as far as hooks and the end of its log tell
    minutes_since_compaction: float | None = None
    minutes_to_threshold: float | None = None  # until the window is so full that completed work should be compacted
    active_task_tokens: int = 0  # since the last task was complete, an estimate
    memory_size: int = 0  # bytes of the project's memory documents
    allocation: Allocation | None = None  # the shares of its window
    warnings: tuple[Warned, ...] = ()


def broken(one: Session, settings: Config) -> Iterator[Warned]:
    """The rules that a session breaks."""
    log = f"{one.route} --transcript {one.transcript}"
    soon, unsaved = one.minutes_to_compaction, f"about {one.unsaved:,} tokens are in no checkpoint"
    if one.state not in GONE:
        if one.percent is not None and one.percent >= settings.health_pressure:
            hint = f"compact it, or hand over: ralf send {one.session} TEXT"
            yield Warned("pressure", f"its window is {one.percent:.0f} % full", hint)
        if one.tokens is not None and (alert := alert_of(one.tokens, one.active_task_tokens, one.window)):
            hint = f'ralf task edit TASK --into "TITLE" --into "TITLE", or: ralf checkpoint {log}'
            yield Warned("task", alert, hint)
    if one.state == "working" and soon is not None and soon <= _SOON:
        yield Warned("compaction", f"its client compacts in about {soon:.0f} minutes", f"ralf checkpoint {log}")
    if one.unsaved >= _OVERDUE * settings.segment_limit:
        yield Warned("unsaved", unsaved, f"ralf checkpoint {log}; do its hooks run? ralf doctor")
    if one.state == "silent" and one.minutes_silent < _DAY:
        text = f"nothing has come for {one.minutes_silent:.0f} minutes in an open turn"
        yield Warned("silent", text, "look at it: it may wait for a permission, or hang")
    if one.stuck:
        yield Warned("stuck", one.stuck, f"look at it, or tell it: ralf send {one.session} TEXT")
    if one.state == "killed" and one.unsaved:
        yield Warned("killed", f"its process is gone, and {unsaved}", f"ralf checkpoint {log}")
    if one.notices and one.state in GONE:
        text = f"{one.notices} notice{'s wait' if one.notices > 1 else ' waits'} for a session that is over"
        yield Warned("undelivered", text, f"tell another session of the route: ralf send {one.route} TEXT")
    if one.problem:
        yield Warned("unreadable", one.problem, f"name its log: ralf checkpoint {one.route} --transcript FILE")
