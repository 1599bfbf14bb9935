"""What a session's health comes to, and the rules by which it is warned of: data, one line a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

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
                             ended, or killed (its process is gone and it never said that it ended)
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
    problem: str = ""
    compactions: int = 0
    minutes_since_compaction: float | None = None
    minutes_to_threshold: float | None = None
    active_task_tokens: int = 0
    memory_size: int = 0
    allocation: Allocation | None = None
    warnings: tuple[Warned, ...] = ()


class Rule(NamedTuple):
    """A rule: its name, what to say of a session that breaks it ("" for one that does not), and what to do then."""

    name: str
    broken: Callable[[Session, Config], str]
    hint: str


RULES: tuple[Rule, ...] = (
    Rule(
        "pressure",
        lambda one, settings: (
            f"its window is {one.percent:.0f} % full"
            if _alive(one) and one.percent is not None and one.percent >= settings.health_pressure
            else ""
        ),
        "compact it, or hand over: ralf send TEXT --session {session}",
    ),
    Rule(
        "task",
        lambda one, _: (
            alert_of(one.tokens, one.active_task_tokens, one.window) if _alive(one) and one.tokens is not None else ""
        ),
        'ralf task edit TASK --into "TITLE" --into "TITLE", or: ralf checkpoint {route} --transcript {transcript}',
    ),
    Rule(
        "compaction",
        lambda one, _: (
            f"its client compacts in about {one.minutes_to_compaction:.0f} minutes"
            if one.state == "working" and one.minutes_to_compaction is not None and one.minutes_to_compaction <= _SOON
            else ""
        ),
        "ralf checkpoint {route} --transcript {transcript}",
    ),
    Rule(
        "unsaved",
        lambda one, settings: (
            f"about {one.unsaved:,} tokens are in no checkpoint"
            if one.unsaved >= _OVERDUE * settings.segment_limit
            else ""
        ),
        "ralf checkpoint {route} --transcript {transcript}; do its hooks run? ralf doctor",
    ),
    Rule(
        "silent",
        lambda one, _: (
            f"nothing has come for {one.minutes_silent:.0f} minutes in an open turn"
            if one.state == "silent" and one.minutes_silent < _DAY
            else ""
        ),
        "look at it: it may wait for a permission, or hang",
    ),
    Rule("stuck", lambda one, _: one.stuck, "look at it, or tell it: ralf send TEXT --session {session}"),
    Rule(
        "killed",
        lambda one, _: (
            f"its process is gone, and about {one.unsaved:,} tokens are in no checkpoint"
            if one.state == "killed" and one.unsaved
            else ""
        ),
        "ralf checkpoint {route} --transcript {transcript}",
    ),
    Rule(
        "undelivered",
        lambda one, _: (
            f"{one.notices} notice{'s wait' if one.notices > 1 else ' waits'} for a session that is over"
            if one.notices and one.state in ("ended", "killed")
            else ""
        ),
        "tell another session of the route: ralf send TEXT --route {route}",
    ),
    Rule("unreadable", lambda one, _: one.problem, "name its log: ralf checkpoint {route} --transcript FILE"),
)


def broken(session: Session, settings: Config) -> Iterator[Warned]:
    """The rules that a session breaks."""
    for rule in RULES:
        if text := rule.broken(session, settings):
            places = {"session": session.session, "route": session.route, "transcript": session.transcript}
            yield Warned(rule.name, text, rule.hint.format(**places))


def _alive(session: Session) -> bool:
    return session.state not in ("ended", "killed")
