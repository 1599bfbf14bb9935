"""What a run of an agent is, as callers see it: signals, saved states, the status of a step, and when to try again."""

from __future__ import annotations

from ralf.errors import UsageError
from ralf.text import cleaning
from ralf.text.frozen import dataclass, field

MAIN = "main"
"""The step that is meant where none is named."""

STATUSES = ("new", "running", "waiting", "paused", "lost", "completed", "failed", "dead", "cancelled")
"""What a step can be.

    new        has no record yet
    running    a live process holds it
    waiting    no one holds it; it continues at `not_before`, or as soon as someone claims it
    paused     waits for a signal, or for the end of its time-out
    lost       its holder died, or gave no sign of life for the length of its lease; the next process continues
    completed, failed, dead, cancelled   ended; `retry_run` reopens the last three
"""

ENDED = ("completed", "failed", "dead", "cancelled")

LONGEST_WAIT = 366 * 86_400.0
"""Seconds that a pause, a delay or a lease may last."""


def check_names(*names: str, what: str = "run or step") -> None:
    """UsageError for a name of a run, a step or a signal that a route could not have."""
    for name in names:
        if not isinstance(name, str):
            raise UsageError(ascii(name)[:80], f"is not the name of a {what}: a text is expected")
        try:
            cleaning.check(name)
        except UsageError as error:
            raise UsageError(
                error.where, error.what.replace("a route name", f"the name of a {what}"), error.hint
            ) from None


_MOST_KEY = 500  # characters


def check_key(key: object, where: str, *, printable: bool = False) -> None:
    """UsageError for what can be no key of a call or a stored result. `where`: the run, for messages."""
    if not isinstance(key, str) or not 0 < len(key) <= _MOST_KEY:
        raise UsageError(where, f"a key is a text of 1 to {_MOST_KEY} characters, not {ascii(key)[:80]}")
    if printable and not key.isprintable():
        raise UsageError(where, f"the key {ascii(key)[:80]} has characters that are not printable")
    if any("\ud800" <= character <= "\udfff" for character in key):
        raise UsageError(where, f"the key {ascii(key)[:80]} has half of a character: no UTF-8")


def at_least_one(value: int, what: str) -> int:
    """A count; UsageError where it is none, or less than 1."""
    if not isinstance(value, int) or value < 1:
        raise UsageError(what, f"{ascii(value)[:80]} is not a whole number of at least 1")
    return value


def seconds(value: float, what: str, *, least: float = 0.0) -> float:
    """A number of seconds; UsageError where it is none, or out of range."""
    if not isinstance(value, (int, float)) or not least <= value <= LONGEST_WAIT:  # NaN, too
        raise UsageError(what, f"{ascii(value)[:80]} is not a number of seconds from {least:g} to {LONGEST_WAIT:g}")
    return float(value)


@dataclass(frozen=True, slots=True)
class Signal:
    """A message to a run.

    id    unique within the run: the sender's own, or one that was made
    name  what it is waited for by
    data  the bytes as they were sent
    sent  when, as ISO 8601 in UTC; by: who, "" where no one said so
    origin  `user` (a person typed it at a terminal), `agent` (anybody else's command), or "" (a program sent it)
    """

    id: str
    name: str
    data: bytes = field(default=b"", repr=False)
    sent: str = ""
    by: str = ""
    origin: str = ""

    @property
    def text(self) -> str:
        """The data as UTF-8; UnicodeDecodeError where it is not."""
        return self.data.decode()


@dataclass(frozen=True, slots=True)
class SavedState:
    """A state that was saved.

    number     1 for the run's first, then one more each
    iteration  in which it was saved
    at         when, as ISO 8601 in UTC
    size       bytes
    kept       whether its content is still there; old ones go (`ralf.agent.states`)
    """

    number: int
    iteration: int
    at: str
    size: int
    kept: bool = True


@dataclass(frozen=True, slots=True)
class RunState:
    """What is known of a step of a run: metadata only, no content.

    status      one of `STATUSES`
    steps       the names of all steps that the run has
    iteration   1, then one more after each `continue_with`; attempt: 1, then one more after each failure in it
    losses      claims of this iteration whose holders died or fell silent
    term        number of the newest claim; by, process: who has it, while it is running
    states      how many states were saved; size: bytes of the newest
    signals     how many were sent; heard: how many of them were received
    calls       how many `once` made in this iteration; repeats: how many were made again for want of an answer
    began, at   of the first and of the newest record, as ISO 8601 in UTC; "" for none
    not_before  when it continues, "" for at once; of a pause the end of its time-out
    waits_for   name of the signal that a pause waits for, else ""
    reason      of the last failure, cancellation or dead letter, redacted, else ""
    """

    run: str
    step: str = MAIN
    status: str = "new"
    steps: tuple[str, ...] = ()
    iteration: int = 1
    attempt: int = 1
    losses: int = 0
    term: int = 0
    by: str = ""
    process: int = 0
    states: int = 0
    size: int = 0
    signals: int = 0
    heard: int = 0
    calls: int = 0
    repeats: int = 0
    began: str = ""
    at: str = ""
    not_before: str = ""
    waits_for: str = ""
    reason: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing happens any more unless someone retries it."""
        return self.status in ENDED


@dataclass(frozen=True, slots=True)
class RunList:
    """Steps of runs, by name.

    counts   of all that there are, by status
    damaged  runs whose records cannot be read, and why
    foreign  steps all of whose records somebody else has written: they are not listed
    """

    runs: tuple[RunState, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    damaged: tuple[tuple[str, str], ...] = ()
    foreign: tuple[str, ...] = ()


KINDS = ("exponential", "linear", "fixed")


@dataclass(frozen=True, slots=True)
class Retry:
    """When a failed iteration is tried again.

    kind        of the delay's growth: exponential (times `multiplier` each), linear (`initial` more each), fixed
    attempts    how many there are in all, the first one included; then the run is dead
    initial     seconds before the second attempt; maximum: of any delay

    UsageError for values that make no sense.
    """

    kind: str = "exponential"
    attempts: int = 5
    initial: float = 1.0
    maximum: float = 60.0
    multiplier: float = 2.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(ascii(self.kind), f"not a kind of retry; choose one of: {', '.join(KINDS)}")
        at_least_one(self.attempts, "attempts")
        seconds(self.initial, "initial")
        seconds(self.maximum, "maximum")
        if not 1.0 <= self.multiplier <= 1_000.0:
            raise UsageError("multiplier", f"{self.multiplier} is not a number from 1 to 1000")

    def delay(self, attempt: int) -> float:
        """Seconds between an attempt, counted from 1, that failed and the next one."""
        before = max(1, attempt)
        if self.kind == "exponential":
            try:
                found = self.initial * float(self.multiplier) ** (before - 1)  # of a whole number it takes for ever
            except OverflowError:
                found = self.maximum
        else:
            found = self.initial * before if self.kind == "linear" else self.initial
        return min(found, self.maximum)
