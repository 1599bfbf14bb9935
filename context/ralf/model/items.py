"""The items of a route file, as plain immutable values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ralf.model.handover import Ended
from ralf.text.frozen import dataclass, field

# The source of every field is docs/format.md. Fields that a file has and this version does not know are kept in `extra`
# and written back. Times are ISO 8601 text as found; "" and () mean that nothing is known.

Extra = Mapping[str, Any]

SHA256_DIGITS = 16

MOST_SOURCES = 4
"""Places at which a decision that is said again and again is remembered to have been said."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a claim was found: lines of a session's transcript, counted from 1, and what they said, as the first
    `SHA256_DIGITS` hexadecimal digits of its sha256.

    quote  exact words of the message there; `by`: whose message it is, person or agent, "" where the words were not
           found and it is the person's message at the line
    """

    session: str = ""
    first_line: int = 0
    last_line: int = 0
    sha256: str = ""
    quote: str = ""
    by: str = ""
    extra: Extra = field(default_factory=dict)


EXTRACTED = "extracted"
"""The origin of a decision that nobody recorded."""

OF_A_PERSON = ("user", "answer", "human-edit")
"""Origins of what a person decided, by a command, a tool's question or an edit of the file."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A choice with its reason and what was rejected for it.

    id            a label within the route, `DEC-001`; "" until the route has given it one
    kind          decision, rule (a standing instruction) or failed-approach
    status        active, superseded, reversed, done (carried out, and binds nobody any more), proposed (by the agent,
                  and neither accepted nor made) or dropped
    rationale     why it is so; of one that is done, what came of it
    alternatives  each "option: why not", or the option alone
    source        where it was said first; `further_sources`: where it was said again, at most `MOST_SOURCES` in all
    origin        user, agent, model (`model`: its name), answer (a person's to a tool's question, or a plan that they
                  approved), human-edit or import; unknown, where a writer did not say whose it is; `EXTRACTED` where
                  a rule of an earlier version read it out of prose: it binds nobody
    not_found     names in it that stand nowhere in the record
    ended         who ended it, why and when, where another hand-over did
    clone         tag of the clone that recorded it, where route files are shared; "" else
    """

    id: str = ""
    kind: str = "decision"
    pinned: bool = False
    timestamp: str = ""
    decision: str = ""
    rationale: str = ""
    status: str = "active"
    alternatives: tuple[str, ...] = ()
    supersedes: str = ""
    superseded_by: str = ""
    source: Source | None = None
    further_sources: tuple[Source, ...] = ()
    origin: str = ""
    model: str = ""
    not_found: tuple[str, ...] = ()
    ended: Ended | None = None
    clone: str = ""
    extra: Extra = field(default_factory=dict)

    @property
    def always_written(self) -> tuple[str, ...]:
        """The status is told even where it is active, but not of one whose details the cap has folded."""
        return ("status",) if self.timestamp or self.rationale or self.source is not None else ()


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What tells a decision again that was dropped or forgotten, without its words; see `ralf.route.cap`.

    id      the label that it had
    said    the first hexadecimal digits of the sha256 of its text's words, case aside
    words   two characters for each word that says what it is about
    record  of one that a clone signed, for each label that it bore, a hash of that, its time and its clone: it tells
            the decision again in other words
    """

    id: str = ""
    kind: str = "decision"
    said: str = ""
    words: str = ""
    record: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pin:
    """A message of the person's that every brief shows.

    id      the message's; `line`, `session`: where it stands, `at`: when it came
    words   the message, at most 4,000 characters of it
    origin  who pinned it, as a decision's
    """

    id: str = ""
    line: int = 0
    session: str = ""
    at: str = ""
    words: str = ""
    origin: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that was being worked on."""

    path: str = ""
    last_modified: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the plan that is done."""

    step: int | None = None
    description: str = ""
    result: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Todo:
    """An entry of the client's to-do list; status pending, in_progress or completed."""

    content: str = ""
    status: str = "pending"
    id: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a loop on a route, and what came of it.

    run        its folder's path in the project, `runs/executor/run-0018`; its id where only that is known
    number     which attempt it was, None where it has not been counted
    outcome    COMPLETE, PARTIAL, BLOCKED, RETRY, FAILED or another word that it promised; "" where it said none
    timestamp  when it ended, else when it began
    said       one line on what came of it, in its own words
    """

    run: str = ""
    number: int | None = None
    outcome: str = ""
    timestamp: str = ""
    said: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A command or a sub-agent that was still at it in the background: its id, what it is, when it was started."""

    id: str = ""
    task: str = ""
    started: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkingTree:
    """What git has of the project, as the session's own commands and their output tell it.

    branch       that is checked out, "" where unknown or detached
    commit       the newest commit, "64274e0f Extract shared helper": its abbreviated hash and its subject
    uncommitted  paths that were changed and not committed, relative to the project, the newest last
    commits      the newest that the agent made on this branch, oldest first, as `commit`
    pushed       whether a push came after the newest of them
    pull_request number of the branch's pull request, "" where none was made or checked out
    untested     paths that were changed after the last run of tests
    """

    branch: str = ""
    commit: str = ""
    uncommitted: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    pushed: bool = False
    pull_request: str = ""
    untested: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ActiveWork:
    """Where the work stands: what is being done, how far it is, what comes next.

    work_status    where the answer to the last message stands, by the record: not_begun, in_progress, waiting,
                   interrupted, stopped or answered; or what a task, a person or a document says
    last_request   the person's last message on one line, last_statement the agent's last text after it, both cut
    last_output    of earlier versions: what the last tool call printed
    tried          what failed and was not repeated with success, was refused, undone or taken back by rewinding
    now            the file's part "Now": the last message and where its answer stands, the state, what was done since
    by_hand        those of the to-dos, next steps, blockers and findings that a person wrote: no checkpoint takes them
                   out
    attempts       sessions that have worked on the route, None for one, 0 where it has documents alone; runs of a loop
                   are counted by the run
    last_progress  the attempt in which something last changed: a file, a commit, a test's result
    outcome        how the last attempt said that it ended: COMPLETE, PARTIAL, BLOCKED …
    origin         import, where it came with a file and no session; "" else
    last_runs      the last runs of a loop, the newest last
    running        what went on in the background, the newest last
    git            branch, commit and uncommitted files
    """

    current_task: str = ""
    current_phase: str = ""
    work_status: str = ""
    task_title: str = ""
    last_request: str = ""
    plan_step: int | None = None
    total_steps: int | None = None
    last_statement: str = ""
    last_output: str = ""
    completed_steps: tuple[Step, ...] = ()
    todos: tuple[Todo, ...] = ()
    next_steps: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    attempts: int | None = None
    last_progress: int | None = None
    outcome: str = ""
    last_runs: tuple[Attempt, ...] = ()
    origin: str = ""
    open_files: tuple[OpenFile, ...] = ()
    running: tuple[RunningTask, ...] = ()
    git: WorkingTree = field(default_factory=WorkingTree)
    tried: tuple[str, ...] = ()
    now: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PathFact:
    """A path and what was done to it: `did` lists created, edited, deleted, read, each once, in that order."""

    path: str = ""
    did: tuple[str, ...] = ()
    last: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommandFact:
    """A shell command as it was typed, and how it ended the last time.

    status    passed or failed
    exit      the exit status of one that failed, None where the client does not tell it
    runs      how often it ran; `failures`, how often it failed
    omitted   characters left out of the middle of a long command, where `…` stands
    """

    command: str = ""
    status: str = "passed"
    exit: int | None = None
    runs: int = 1
    failures: int = 0
    last: str = ""
    omitted: int = 0
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ErrorFact:
    """The first line that names an error, the command it came from, and what was done before that command passed."""

    error: str = ""
    command: str = ""
    fixed_by: str = ""
    last: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommitFact:
    """A commit that was made."""

    commit: str = ""
    message: str = ""
    last: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TestFact:
    """What a test run said of itself, in its own words (`result`), and the command that ran it."""

    command: str = ""
    result: str = ""
    last: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestFact:
    """What a person said, verbatim; `omitted` characters were left out of the middle of a long one.

    origin  import, for one that stood in a file; "" else
    kind    how it came, as `ralf.model.entries.Message.form`
    line    of its transcript, 0 for none
    """

    request: str = ""
    last: str = ""
    omitted: int = 0
    origin: str = ""
    kind: str = ""
    line: int = 0
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """What was taken from the transcript mechanically, oldest first; exact strings, never paraphrased.

    Each fact's `last`, when it was seen last, stands in the record of its segment; a route's facts do not tell it.

    names  identifiers, commits and ids that earlier versions ranked
    """

    paths: tuple[PathFact, ...] = ()
    commands: tuple[CommandFact, ...] = ()
    errors: tuple[ErrorFact, ...] = ()
    commits: tuple[CommitFact, ...] = ()
    tests: tuple[TestFact, ...] = ()
    requests: tuple[RequestFact, ...] = ()
    names: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One entry of the checkpoint history.

    checkpoint_id  `cp-001`; the number is the one in the section's heading
    timestamp      time of the segment's last record
    tokens         o200k_base tokens of the segment
    tokens_stored  o200k_base tokens of what the segment came to
    refines        the summariser whose section a model improved; `summarizer` is then the model's
    spent_tokens   tokens that the model read and wrote for it; `cost_usd`, what its tool said that this cost
    unrefined      why the model that was asked did not improve it
    settled        no model is asked about it again
    origin         import, where it was made of a file and no session; "" else
    """

    checkpoint_id: str = ""
    timestamp: str = ""
    tokens: int = 0
    summary_ref: str = ""
    key_events: tuple[str, ...] = ()
    reason: str = ""
    summarizer: str = ""
    session: str = ""
    lines: str = ""
    tokens_stored: int | None = None
    refines: str = ""
    spent_tokens: int | None = None
    cost_usd: float | None = None
    unrefined: str = ""
    settled: bool = False
    origin: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spend:
    """What models have been asked for a route, and what it took.

    calls             how often a model answered or was tried
    tokens            tokens that the tools reported, read and written
    estimated_tokens  tokens of the calls whose tool reports none, by estimate
    cost_usd          money that the tools reported; those that report none add nothing
    day               the newest day (UTC) with a call; `day_tokens` and `day_cost_usd` are of that day, estimates
                      included
    summarizer        who was asked last
    succeeded         when a call last did
    failed            when the calls since then failed, at most the last three; `failure` says why the last one did
    """

    calls: int = 0
    tokens: int = 0
    estimated_tokens: int = 0
    cost_usd: float = 0.0
    day: str = ""
    day_tokens: int = 0
    day_cost_usd: float = 0.0
    summarizer: str = ""
    succeeded: str = ""
    failed: tuple[str, ...] = ()
    failure: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comment:
    """What a person noted in the front matter, above a top-level key; "" for below all of them."""

    key: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A checkpoint's part of the compressed history: the heading without its number, and the Markdown below it."""

    number: int | None = None
    title: str = ""
    text: str = ""


NOT_STORED = {"stored": False}
"""Metadata of a dataclass field that is no part of the tree; a field with `key` stands under that key."""
