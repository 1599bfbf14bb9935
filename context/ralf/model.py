"""What a route file holds, as plain immutable values, and the context of a route, which holds them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from ralf.text.cleaning import Word
from ralf.text.frozen import dataclass

# The source of every field is docs/format.md. Fields that a file has and this version does not know are kept in `extra`
# and written back. Times are ISO 8601 text as found; "" and () mean that nothing is known.

Extra = Mapping[str, Any]

SHA256_DIGITS = 16

MOST_SOURCES = 4
"""Places at which a decision that is said again and again is remembered to have been said."""

FEW_ENTRIES = 2
"""Entries of the checkpoint history that the cap leaves in every file."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a claim was found: lines of a session's transcript, counted from 1, and what they said, as the first
    `SHA256_DIGITS` hexadecimal digits of its sha256.
    """

    session: str = ""
    first_line: int = 0
    last_line: int = 0
    sha256: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """A choice with its reason and what was rejected for it.

    id            a label within the route, `DEC-001`; "" until the route has given it one
    kind          decision, rule (a standing instruction) or failed-approach
    status        active, superseded, reversed or dropped
    alternatives  each "option: why not", or the option alone
    source        where it was said first; `further_sources`: where it was said again, at most `MOST_SOURCES` in all
    origin        user, agent, human-edit or import
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
    extra: Extra = field(default_factory=dict)

    @property
    def always_written(self) -> tuple[str, ...]:
        """The status is told even where it is active, but not of one whose details the cap has folded."""
        return ("status",) if self.timestamp or self.rationale or self.source is not None else ()


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What tells a decision again that was dropped or forgotten, without its words; see `ralf.route.cap`.

    id     the label that it had
    said   the first hexadecimal digits of the sha256 of its text's words, case aside
    words  two characters for each word that says what it is about
    """

    id: str = ""
    kind: str = "decision"
    said: str = ""
    words: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A field that a person changed in the file while it changed in the journal, too: see `ralf.brief.wording`.

    at    the keys to it, a list item under its identity
    also  the values that do not stand there, None for one that was removed
    """

    at: tuple[str, ...] = ()
    also: tuple[Any, ...] = ()
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
class ActiveWork:
    """Where the work stands: what is being done, how far it is, what comes next.

    last_output    what the last tool call was and printed, where the agent had not yet said anything about it
    by_hand        those of the to-dos, next steps, blockers and findings that a person wrote: no checkpoint takes them
                   out
    attempts       sessions that have worked on the route, None for one, 0 where it has documents alone; runs of a loop
                   are counted by the run
    last_progress  the attempt in which something last changed: a file, a commit, a test's result
    outcome        how the last attempt said that it ended: COMPLETE, PARTIAL, BLOCKED …
    origin         import, where it came with a file and no session; "" else
    last_runs      the last runs of a loop, the newest last
    running        what went on in the background, the newest last
    """

    current_task: str = ""
    current_phase: str = ""
    work_status: str = ""
    task_title: str = ""
    plan_step: int | None = None
    total_steps: int | None = None
    last_request: str = ""
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
    """What a person asked for, verbatim; `omitted` characters were left out of the middle of a long one. `origin`:
    import, for one that stood in a file; "" else.
    """

    request: str = ""
    last: str = ""
    omitted: int = 0
    origin: str = ""
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """What was taken from the transcript mechanically, oldest first; exact strings, never paraphrased.

    Each fact's `last`, when it was seen last, stands in the record of its segment; a route's facts do not tell it.

    names  identifiers, commits, ids, places and quantities that are likely to be needed again, the likeliest last
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
    kept, dropped  items that were kept of it, and candidates that were not
    recall         share of the segment's facts that the checkpoint gives back, 0 to 1, None where it was not measured
    refines        the summariser whose section a model improved; `summarizer` is then the model's
    spent_tokens   tokens that the model read and wrote for it; `cost_usd`, what its tool said that this cost
    unrefined      why the model that was asked did not improve it
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
    kept: int | None = None
    dropped: int | None = None
    recall: float | None = None
    refines: str = ""
    spent_tokens: int | None = None
    cost_usd: float | None = None
    unrefined: str = ""
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


# ---- the context of a route ----

FORMAT_VERSION = "1.1.0"

BODY = "#body"
"""Key of the Markdown body in a context's tree; no plain key of the front matter begins so."""

SHOWN_TOMBSTONES = 64

Counts = Mapping[str, int]
"""o200k_base tokens of rendered items, by `ralf.brief.rendering.key` of the items' text."""


@dataclass(frozen=True, slots=True)
class Header:
    """The file's `context_checkpoint`: which route, which revision, how much has gone by.

    lineage  names all records up to the revision: two files of one lineage come from the same history
    spend    what models have been asked for the route
    foreign_records  how many of them this user's ralf did not write; they say nothing of the route
    joined   lineages of other histories that this one was made to take in, the newest last: where a colleague's file
             names one of ours it goes on from there
    later_records    how many of them are of a later format, which this version passes over
    """

    version: str = ""
    route: str = ""
    agent_type: str = ""
    revision: int = 0
    lineage: str = ""
    created: str = ""
    last_checkpoint: str = ""
    checkpoint_count: int = 0
    tokens_at_checkpoint: int = 0
    total_tokens_consumed: int = 0
    decision_count: int = 0
    foreign_records: int = 0
    joined: tuple[str, ...] = ()
    later_records: int = 0
    spend: Spend = field(default_factory=Spend)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Folded:
    """How many items the cap has moved out of the file. Tombstones stay in the context: only the file has fewer."""

    section_count: int = 0
    decision_count: int = 0
    rationale_count: int = 0
    fact_count: int = 0
    tombstone_count: int = 0
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Body:
    """The file's Markdown, and how the file is laid out.

    before     text above the heading of the history
    sections   newest first
    after      text below them, from a heading on
    preface    text between the heading of the history and the sections; `below`: below the footer
    comments   of the front matter
    crlf, bom  whether lines end with CRLF, and whether a byte order mark stands first
    """

    before: str = ""
    sections: tuple[Section, ...] = ()
    after: str = ""
    preface: str = ""
    below: str = ""
    comments: tuple[Comment, ...] = ()
    crlf: bool = False
    bom: bool = False


@dataclass(frozen=True, slots=True)
class Since:
    """What has happened since the last checkpoint, as the reader saw it (`ralf.finding.reader`).

    files    open files that are not what they were then: path → what they are now
    tokens   of the newest known session that no checkpoint covers, an estimate
    minutes  from the last checkpoint to that session's last record, None where its times do not tell
    """

    files: Mapping[str, str] = field(default_factory=dict)
    tokens: int = 0
    minutes: int | None = None


@dataclass(frozen=True, slots=True)
class RouteContext:
    """What a route file holds. Times are ISO 8601 text, tokens are o200k_base tokens.

    goal         the route's first real request; `goal_origin`: import, where it came with a file
    decisions    oldest first, of every status
    active_work  where the work stands
    unresolved   fields that two sides changed at the same time: the other values
    facts        what was taken from the transcripts mechanically
    checkpoints  the checkpoint history, oldest first
    history      the Markdown of the sections, newest first
    folded       how much the cap has moved out of the file; search and the journal still have it
    dropped      decisions that a person dropped, and `forgotten`, those whose words were purged: none is taken from a
                 transcript again
    warnings     what the reader should know of the file: damaged, edited, behind its journal
    since        what has happened since the last checkpoint
    in_run       the run of a loop in which the reader is, "" for none
    stuck        what whoever tries once more should hear, where many attempts have changed nothing; "" else
    command      how `ralf` is typed in the project
    foreign      whether the route has more than this user's ralf wrote: in its file or in records of its journal
    foreign_notes  that, a line each, as far as it stands in none of the fields
    wholly_foreign  whether nothing of the route is this user's. Then the fields hold what came with the repository:
                 decisions of the origin `import`, facts and history, but no rule, goal, request or next step
    """

    context_checkpoint: Header = field(default_factory=Header)
    goal: str = ""
    goal_origin: str = ""
    active_work: ActiveWork = field(default_factory=ActiveWork)
    unresolved: tuple[Unresolved, ...] = ()
    decisions: tuple[Decision, ...] = ()
    facts: Facts = field(default_factory=Facts)
    checkpoint_history: tuple[Checkpoint, ...] = ()
    folded: Folded = field(default_factory=Folded)
    dropped: tuple[Tombstone, ...] = ()
    forgotten: tuple[Tombstone, ...] = ()
    body: Body = field(default_factory=Body, metadata={"key": BODY})
    extra: Extra = field(default_factory=dict)
    warnings: tuple[str, ...] = field(default=(), compare=False, metadata=NOT_STORED)
    since: Since = field(default_factory=Since, compare=False, metadata=NOT_STORED)
    in_run: str = field(default="", compare=False, metadata=NOT_STORED)
    stuck: str = field(default="", compare=False, metadata=NOT_STORED)
    command: str = field(default="ralf", compare=False, repr=False, metadata=NOT_STORED)
    foreign: bool = field(default=False, compare=False, metadata=NOT_STORED)
    foreign_notes: tuple[str, ...] = field(default=(), compare=False, metadata=NOT_STORED)
    wholly_foreign: bool = field(default=False, compare=False, metadata=NOT_STORED)
    counts: Counts = field(default_factory=dict, compare=False, repr=False, metadata=NOT_STORED)
    budget: int | None = field(default=None, compare=False, repr=False, metadata=NOT_STORED)
    query: str | None = field(default=None, compare=False, repr=False, metadata=NOT_STORED)
    valued: tuple[tuple[Word, float], ...] = field(default=(), compare=False, repr=False, metadata=NOT_STORED)

    def without_foreign(self) -> RouteContext:
        """The same without what is foreign, for a text that nobody asked for. Not of one that is wholly foreign."""
        return replace(self, foreign=False, foreign_notes=())

    def as_filed(self) -> RouteContext:
        """Return what the file shows of it: of many tombstones the newest. All of them count, but nobody reads them."""
        more = len(self.dropped) - SHOWN_TOMBSTONES
        if more <= 0:
            return self
        folded = replace(self.folded, tombstone_count=self.folded.tombstone_count + more)
        return replace(self, dropped=self.dropped[more:], folded=folded)

    @property
    def route(self) -> str:
        """The route's name."""
        return self.context_checkpoint.route

    @property
    def revision(self) -> int:
        """The journal revision that this shows; 0 for a file that has no journal."""
        return self.context_checkpoint.revision

    @property
    def lineage(self) -> str:
        """Names the history that this comes from; "" for a file that has no journal."""
        return self.context_checkpoint.lineage

    @property
    def agent_type(self) -> str:
        """The kind of agent that works on the route, "" where unknown."""
        return self.context_checkpoint.agent_type

    @property
    def created(self) -> str:
        """Time of the route's first record."""
        return self.context_checkpoint.created

    @property
    def last_checkpoint(self) -> str:
        """Time of the newest checkpoint's last record."""
        return self.context_checkpoint.last_checkpoint

    @property
    def checkpoint_count(self) -> int:
        """How many checkpoints the route has had."""
        return self.context_checkpoint.checkpoint_count

    @property
    def total_tokens_consumed(self) -> int:
        """Tokens of all segments so far."""
        return self.context_checkpoint.total_tokens_consumed

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The checkpoint history, oldest first."""
        return self.checkpoint_history

    def with_defaults(
        self, max_tokens: int | None, query: str | None, valued: tuple[tuple[Word, float], ...] = ()
    ) -> RouteContext:
        """The same context, whose `render` has these defaults; `valued`: the query's words, each with its worth."""
        return replace(self, budget=max_tokens, query=query, valued=valued)

    if TYPE_CHECKING:  # bound by `ralf/__init__`: how a context is rendered is for higher floors to say

        def render(
            self,
            max_tokens: int | None = None,
            *,
            query: str | None = None,
            section: str | None = None,
            fenced: bool = True,
        ) -> str:
            """The context as Markdown; see `ralf.brief.rendering.render`."""

        @property
        def history(self) -> str:
            """The Markdown of the sections, newest first."""
