"""Tasks, claims and evidence as plain immutable values.

Times are ISO 8601 text in UTC; "" and () mean that nothing is known. docs/tasks.md is the format of the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ralf.text.frozen import dataclass, field

Extra = Mapping[str, Any]

STATUSES = ("pending", "completed", "failed", "cancelled")
"""What the file of a task can say of it. A claim is no status: it binds one store, and is a record there."""

ENDED_ITSELF = ("done", "failed", "released", "handed-over")
"""Outcomes of a claim whose holder knows of its end."""

PRIORITIES = {"critical": 10, "high": 8, "medium": 5, "low": 3}
"""Words for priorities."""
MAX_BYTES = 1 << 20
"""A larger file is not read as a task."""

PRIORITY = 5
"""The priority of a task of which none is said; 1 to 10, 10 comes first."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the file of a task says.

    id          `TASK-7k3q`; also the name of its file
    text        Markdown, what is to be done
    role        which kind of agent does it; "" for any
    after       the ids of the tasks that must be completed before it
    checkpoint  whether whoever completes it hands over and ends: a fresh agent goes on
    verify      a command that says by its exit status whether the task is done
    route       where its context is kept; "" for a route of its own, called as the task
    """

    id: str = ""
    title: str = ""
    text: str = ""
    status: str = "pending"
    priority: int = PRIORITY
    tags: tuple[str, ...] = ()
    role: str = ""
    after: tuple[str, ...] = ()
    checkpoint: bool = False
    verify: str = ""
    route: str = ""
    created: str = ""
    created_by: str = ""
    extra: Extra = field(default_factory=dict)

    @property
    def context_route(self) -> str:
        """The route of the task's context."""
        return self.route or self.id


@dataclass(frozen=True, slots=True)
class Claim:
    """Who has a task, and until when.

    number   the revision of the claim's record in the stream `tasks`: a later claim has a higher one (fencing)
    by       the holder's name
    seconds  how long it lasts without a sign of life
    process  of the agent, 0 where it is not known; `born`: when it started, by `machine`'s clock
    sign     when its holder last gave a sign of life that is a record
    """

    number: int = 0
    by: str = ""
    claimed: str = ""
    seconds: int = 900
    process: int = 0
    born: int = 0
    machine: str = ""
    sign: str = field(default="", compare=False)

    def lease(self, task: str) -> str:
        """The token that whoever holds the claim shows, `TASK-7k3q:17`; the environment's `RALF_LEASE`."""
        return f"{task}:{self.number}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One claim of a task, and how it ended.

    outcome  done, failed, released, lost (its lease ran out), crashed, killed, hung (its time was up), unfinished (the
             agent ended and said nothing), limit (its client's usage limit: no failure) or handed-over (its window was
             full: no failure); "" while it lasts
    """

    number: int = 0
    by: str = ""
    began: str = ""
    ended: str = ""
    outcome: str = ""
    note: str = ""


NO_FAILURE = ("", "done", "released", "limit", "handed-over")
"""Outcomes of an attempt that are not counted when it is asked whether a task is tried again."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What says that a task is done.

    state        claimed (somebody says so), verified (a command, or the last test run after the last edit, passed),
                 failed (it did not pass) or stale (verified, and edited since)
    command      what was run, and its exit status
    files        of each file that was edited for the task its sha256 at that time, by its path in the project
    """

    state: str = "claimed"
    command: str = ""
    exit_status: int | None = None
    at: str = ""
    output: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskState:
    """A task with what this store knows of it.

    path        of its file
    claim       who has it now; None for nobody
    attempts    of all claims, the oldest first
    progress    what its holder said last, and when: it begins anew with each task, and survives a claim's end
    summary     what came of it, as whoever did it says; of a failed one `reason`
    waits_for   ids that keep it from being claimed: dependencies and what the plan puts before it
    is_foreign  git or an archive brought its file, and nobody has accepted it: it is never claimed
    has_edited_verify  whether its `verify` came by an edit of its file or with a list, and nobody has accepted it: it
                is never run
    has_agents_verify  whether no person chose it, and none has accepted it: it runs in no process of a person's
    has_agents_words   whether no person has reworded it since it was added, but an agent or a script
    author      who added it, whatever its file says since
    """

    task: Task = Task()
    path: Path | None = None
    claim: Claim | None = None
    attempts: tuple[Attempt, ...] = ()
    progress: str = ""
    progress_at: str = ""
    summary: str = ""
    reason: str = ""
    finished: str = ""
    tokens: int = 0
    evidence: Evidence | None = None
    waits_for: tuple[str, ...] = ()
    is_foreign: bool = False
    has_edited_verify: bool = False
    has_agents_verify: bool = False
    has_agents_words: bool = False
    author: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def failures(self) -> int:
        """How many attempts failed since the last one that did not."""
        count = 0
        for attempt in reversed(self.attempts):
            if attempt.outcome == "done":
                break
            count += attempt.outcome not in NO_FAILURE
        return count


@dataclass(frozen=True, slots=True)
class TaskList:
    """Tasks that were asked for, in the order in which they would be claimed.

    counts   of all tasks: by status, and `ready claimed blocked foreign`
    left     how many more there are than the limit let through
    damaged  files that cannot be read as tasks, and why
    """

    tasks: tuple[TaskState, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    left: int = 0
    damaged: tuple[tuple[Path, str], ...] = ()
    warnings: tuple[str, ...] = ()
