"""What a loop is asked to do, what it tells while it runs, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ralf_integrations.loop.caps import Caps, Spent
from ralf_integrations.loop.launch import Agent


@dataclass(frozen=True, slots=True)
class Options:
    """How a loop works.

    agents    the commands, one for each role; the one without a role takes what no other does
    workers   how many agents run at once
    caps      what it may use up
    retries   how often a task is tried again after an attempt that failed
    timeout   seconds that a start may take, None for any
    grace     seconds between asking an agent to end and killing it
    stall     rounds of a task without a change after which it is given up, 0 for never
    park      whether a usage limit is waited for
    adopt     whether agents of a loop that was killed go on; else they are ended
    worktrees  a folder with a git worktree for each worker, None: all work in the project
    backoff   seconds before the first retry; twice as many before each further one, at most `longest`
    tokens    of the text that a fresh agent reads first
    detached  whether it has no terminal
    """

    agents: tuple[Agent, ...]
    workers: int = 1
    caps: Caps = field(default_factory=Caps)
    retries: int = 3
    timeout: float | None = 7_200.0
    grace: float = 5.0
    stall: int = 3
    park: bool = True
    adopt: bool = True
    worktrees: Path | None = None
    backoff: float = 1.0
    longest: float = 300.0
    seconds: int = 900
    tokens: int = 2_500
    detached: bool = False

    def agent_for(self, role: str) -> Agent | None:
        """Who works on tasks of a role; None for nobody."""
        by_role = {agent.role: agent for agent in self.agents}
        return by_role.get(role) or by_role.get("")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    at      local time with its offset: `2026-11-26T14:02:11+01:00`
    kind    start, end, retry, park, adopt, stop, wait, verify, over or warning
    text    in our words
    detail  in others': a task's title, what an agent printed last, the reason that it gave
    """

    at: str
    kind: str
    text: str
    worker: str = ""
    task: str = ""
    detail: str = ""

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
    """What a loop came to.

    reason      why it ended
    unfinished  the tasks that are not completed; `unproven`: completed, but not verified
    status      0 if there are none of either, else 1
    """

    reason: str
    completed: int = 0
    unfinished: tuple[Unfinished, ...] = ()
    unproven: tuple[Unfinished, ...] = ()
    spent: Spent = field(default_factory=Spent)

    @property
    def status(self) -> int:
        """The exit status."""
        return 1 if self.unfinished or self.unproven else 0
