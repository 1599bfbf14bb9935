"""What a session's health comes to, and the rules by which it is warned of: data, one line a rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ralf.allocation.gauge import alert_of
from ralf.allocation.shares import Allocation
from ralf.config import Config

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
    """The health of one session.

    state                    working, waiting (for the person), silent (the turn is open and nothing comes), stuck,
                             parked (at the usage limit of its client), ended, or killed (its process is gone and it
                             never said that it ended)
    tokens, window, percent  in the client's window, its size, and how full that is; None where unknown
    growth                   tokens that the window gains in a minute
    unsaved                  tokens that no checkpoint has, an estimate
    minutes_to_checkpoint    until the next one falls due, as things go; 0: one is due; None: cannot be told
    minutes_to_compaction    until the client compacts its window
    last_checkpoint          time of the last record that a checkpoint has of the session, "" for none
    minutes_silent           since the last record
    seen_by_hooks            whether a hook has ever called for it
    told                     the highest percent that its own hooks have told the agent of
    compaction               the byte of the log at which the last compaction stands, 0 for none that was seen
    notices                  that wait in its inbox
    stuck                    why it is, "" where it is not
    parked                   what its client says of the usage limit, and when that ends, seconds since 1970, 0 where
                             nobody knows
    problem                  why its log could not be read, "" for nothing
    compactions              how often its window was compacted, as far as hooks and the end of its log tell
    minutes_since_compaction since the last of these, None for none
    minutes_to_threshold     until the window is 80 % full, where completed work should be compacted; None as above
    active_task_tokens       of the task at hand, an estimate: since the last one was complete
    memory_size              bytes of the project's memory documents
    allocation               the shares of its window
    """

    session: str
    client: str
    route: str
    transcript: str
    state: str
    tokens: int | None
    window: int
    percent: float | None
    growth: float | None
    unsaved: int
    minutes_to_checkpoint: float | None
    minutes_to_compaction: float | None
    last_checkpoint: str
    minutes_since_checkpoint: float | None
    minutes_silent: float
    last: str
    seen_by_hooks: bool
    told: int = 0
    compaction: int = 0
    notices: int = 0
    stuck: str = ""
    parked: str = ""
    parked_until: float = 0.0
    problem: str = ""
    compactions: int = 0
    minutes_since_compaction: float | None = None
    minutes_to_threshold: float | None = None
    active_task_tokens: int = 0
    memory_size: int = 0
    allocation: Allocation | None = None
    warnings: tuple[Warned, ...] = ()


def broken(one: Session, settings: Config) -> Iterator[Warned]:
    """The rules that a session breaks."""
    log = f"{one.route} --transcript {one.transcript}"
    soon, unsaved = one.minutes_to_compaction, f"about {one.unsaved:,} tokens are in no checkpoint"
    if one.state not in ("ended", "killed"):
        if one.percent is not None and one.percent >= settings.health_pressure:
            hint = f"compact it, or hand over: ralf send {one.session} TEXT"
            yield Warned("pressure", f"its window is {one.percent:.0f} % full", hint)
        if one.tokens is not None and (alert := alert_of(one.tokens, one.active_task_tokens, one.window)):
            hint = f'ralf task edit TASK --into "TITLE" --into "TITLE", or: ralf checkpoint {log}'
            yield Warned("task", alert, hint)
    if one.state == "working" and soon is not None and soon <= _SOON:
        text = f"its client compacts in about {soon:.0f} minutes"
        yield Warned("compaction", text, f"ralf checkpoint {log}")
    if one.unsaved >= _OVERDUE * settings.segment_limit:
        yield Warned("unsaved", unsaved, f"ralf checkpoint {log}; do its hooks run? ralf doctor")
    if one.state == "silent" and one.minutes_silent < _DAY:
        text = f"nothing has come for {one.minutes_silent:.0f} minutes in an open turn"
        yield Warned("silent", text, "look at it: it may wait for a permission, or hang")
    if one.stuck:
        yield Warned("stuck", one.stuck, f"look at it, or tell it: ralf send {one.session} TEXT")
    if one.state == "killed" and one.unsaved:
        yield Warned("killed", f"its process is gone, and {unsaved}", f"ralf checkpoint {log}")
    if one.notices and one.state in ("ended", "killed"):
        text = f"{one.notices} notice{'s wait' if one.notices > 1 else ' waits'} for a session that is over"
        yield Warned("undelivered", text, f"tell another session of the route: ralf send {one.route} TEXT")
    if one.problem:
        yield Warned("unreadable", one.problem, f"name its log: ralf checkpoint {one.route} --transcript FILE")
