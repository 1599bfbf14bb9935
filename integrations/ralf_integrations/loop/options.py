"""What a loop is asked to do, what it may use up, what it tells while it runs, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ralf.errors import UsageError
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf_integrations.loop.launch import Agent

_NO_CAP = ("none", "off", "unlimited")
_DURATION = regex(
    r"(?:(?P<d>\d{1,4})d)?(?:(?P<h>\d{1,5})h)?(?:(?P<m>\d{1,6})m)?"
    r"(?:(?P<s>\d{1,8}(?:\.\d{1,3})?)(?:s|$))?(?:(?P<ms>\d{1,8})ms)?"
)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001}
_AMOUNT = regex(r"\$?(\d{1,12}(?:[_,]\d{3})*(?:\.\d{1,6})?)([kKmM]?)")
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used up, as far as clients report it."""

    starts: int = 0  # agents that were started
    tokens: int = 0  # input without what the cache held, and output
    usd: float = 0.0
    unknown: int = 0  # starts whose client reported no tokens
    unpriced: int = 0  # no price

    def plus(self, tokens: int | None, usd: float | None) -> Spent:
        """With one start more that is over; None: its client did not report it."""
        unknown, unpriced = self.unknown + (tokens is None), self.unpriced + (usd is None)
        return Spent(self.starts, self.tokens + (tokens or 0), self.usd + (usd or 0.0), unknown, unpriced)


@dataclass(frozen=True, slots=True)
class Caps:
    """How much a loop may use up; None: no end."""

    starts: int | None = 200  # agents that may be started; the last one's outcome counts as any other's
    tokens: int | None = 50_000_000  # agents that run when it is reached are ended, and their claims released
    usd: float | None = 100.0  # known when a start is over: those that run go on
    seconds: float | None = 86_400.0  # since the loop began: as tokens

    def reached(self, spent: Spent, seconds: float) -> str:
        """Which cap is reached, in words; "" for none."""
        if self.starts is not None and spent.starts >= self.starts:
            return f"starts: {spent.starts} of {self.starts}"
        if self.usd is not None and spent.usd >= self.usd:
            return f"money: ${spent.usd:.2f} of ${self.usd:.2f}{_least(spent.unpriced)}"
        return self.reached_by_running(spent, seconds)

    def reached_by_running(self, spent: Spent, seconds: float) -> str:
        """Which cap is reached that ends agents, in words; "" for none."""
        if self.seconds is not None and seconds >= self.seconds:
            return f"time: {duration_text(self.seconds)}"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"tokens: {spent.tokens:,} of {self.tokens:,}{_least(spent.unknown)}"
        return ""


def _least(unknown: int) -> str:
    return f" and what {unknown} start{'s' * (unknown != 1)} used, which is unknown" if unknown else ""


def spent_text(spent: Spent) -> str:
    """What was used up, in words."""
    parts = [f"{spent.starts} start{'s' * (spent.starts != 1)}"]
    parts += [f"{spent.tokens:,} tokens"] if spent.tokens or not spent.unknown else []
    parts += [f"${spent.usd:.2f}"] if spent.usd else []
    if over := max(spent.unknown, spent.unpriced):
        what = "tokens and money" if spent.unknown == spent.unpriced else "tokens or money"
        whose = " (adopted ones included)" if over > spent.starts else ""
        parts.append(f"{what} of {over} agent{'s' * (over != 1)}{whose} unknown")
    return ", ".join(parts)


# ---- as a person types them ----


def seconds_of(text: str, name: str, *, least: float = 0.001) -> float | None:
    """A duration, `90`, `200ms`, `45s`, `30m`, `2h30m`, `1d`; None for none. UsageError for anything else, and for less
    than the `least` seconds.
    """
    if text.strip().lower() in _NO_CAP:
        return None
    found = _DURATION.fullmatch(text.strip().lower())
    given = [(unit, value) for unit, value in found.groupdict().items() if value] if found else []
    seconds = sum(float(value) * _SECONDS[unit] for unit, value in given)
    if not given or seconds < least:
        what = f"{text!a} is not a duration such as 200ms, 45s, 30m, 2h30m or 1d, or none"
        raise UsageError(name, what, "ralf loop --help")
    return seconds


def amount_of(text: str, name: str) -> float | None:
    """A number, `200`, `2.5M`, `$20`; None for none. UsageError for anything else, and for 0."""
    if text.strip().lower() in _NO_CAP:
        return None
    found = _AMOUNT.fullmatch(text.strip())
    amount = float(found[1].replace(",", "").replace("_", "")) * _TIMES[found[2].lower()] if found else 0
    if amount <= 0:
        raise UsageError(name, f"{text!a} is not a number above 0, or none", "ralf loop --help")
    return amount


def duration_text(seconds: float) -> str:
    """A duration as it is typed."""
    if seconds < 60:
        return f"{seconds:g}s"
    rest = round(seconds)
    parts = []
    for unit in "dhms":
        count, rest = divmod(rest, int(_SECONDS[unit]))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])


@dataclass(frozen=True, slots=True)
class Options:
    """How a loop works."""

    agents: tuple[Agent, ...]  # the commands, one for each role; the one without a role takes what no other does
    workers: int = 1  # how many agents run at once
    caps: Caps = field(default_factory=Caps)
    retries: int = 3  # how often a task is tried again after an attempt that failed
    timeout: float | None = 7_200.0  # seconds that a start may take, None for any
    grace: float = 5.0  # seconds between asking an agent to end and killing it
    stall: int = 3  # rounds of a task without a change after which it is given up, 0 for never
    park: bool = True  # whether a usage limit is waited for
    adopt: bool = True  # whether agents of a loop that was killed go on; else they are ended
    worktrees: Path | None = None  # a folder with a git worktree for each worker; None: all work in the project
    backoff: float = 1.0  # seconds before the first retry; twice as many before each further one

    def agent_for(self, role: str) -> Agent | None:
        """Who works on tasks of a role; None for nobody."""
        by_role = {agent.role: agent for agent in self.agents}
        return by_role.get(role) or by_role.get("")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    at: str  # local time with its offset: `2026-11-26T14:02:11+01:00`
    kind: str  # start, end, retry, park, adopt, stop, wait, verify, over or warning
    text: str  # in our words
    worker: str = ""
    task: str = ""
    detail: str = ""  # in others': a task's title, what an agent printed last, the reason that it gave

    @property
    def line(self) -> str:
        """In our words, as one line."""
        return " ".join(filter(None, (self.at[11:19], self.worker, self.task, self.text)))

    @property
    def whole(self) -> str:
        """All of it, for a person."""
        return f"{self.line}: {self.detail}" if self.detail else self.line


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A task that is not done, or not proven, and why."""

    task: str
    title: str
    why: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a loop came to."""

    reason: str  # why it ended
    completed: int = 0
    unfinished: tuple[Unfinished, ...] = ()  # the tasks that are not completed
    unproven: tuple[Unfinished, ...] = ()  # completed, but not verified
    spent: Spent = field(default_factory=Spent)

    @property
    def status(self) -> int:
        """The exit status: 0 if there are none of either, else 1."""
        return 1 if self.unfinished or self.unproven else 0
