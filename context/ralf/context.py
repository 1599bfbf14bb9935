"""The context of a route: what its file holds, as one immutable value that can be rendered within a budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ralf.index.searchwords import Word
from ralf.model import ActiveWork, Checkpoint, Comment, Decision, Extra, Facts, Section, Spend, Tombstone, Unresolved
from ralf.tree import NOT_STORED

FORMAT_VERSION = "1.1.0"
BODY = "#body"
"""Key of the Markdown body in a context's tree; no plain key of the front matter begins so."""

Counts = Mapping[str, int]
"""o200k_base tokens of rendered items, by `ralf.briefing.brief.key` of the items' text."""


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
    """What has happened since the last checkpoint, as the reader saw it (`ralf.briefing.since`).

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

    def render(
        self,
        max_tokens: int | None = None,
        *,
        query: str | None = None,
        section: str | None = None,
        fenced: bool = True,
    ) -> str:
        """The context as Markdown for an agent or a person, what matters most first.

        max_tokens  hard limit: at most that many o200k_base tokens, and at most four times as many characters; None:
                    all. Goal, active work, pinned rules and active decisions are the last to go. The text ends by
                    saying what was left out and how to get it.
        query       what is kept is ordered by relevance to it
        section     only this part: brief (what comes before the history), resume (what a session is handed that goes on
                    with the work), goal, work, decisions, facts or history
        fenced      between two lines that say that this is data, not instructions, and that no content can forge
                    (`ralf.briefing.fence`); they count within `max_tokens`, and a budget too small for them gives ""
        """
        from ralf.briefing.brief import render

        most = self.budget if max_tokens is None else max_tokens
        return render(self, most, query=query or self.query, section=section, fenced=fenced)

    def with_defaults(
        self, max_tokens: int | None, query: str | None, valued: tuple[tuple[Word, float], ...] = ()
    ) -> RouteContext:
        """The same context, whose `render` has these defaults; `valued`: the query's words, each with its worth."""
        return replace(self, budget=max_tokens, query=query, valued=valued)

    @property
    def history(self) -> str:
        """The Markdown of the sections, newest first."""
        from ralf.document import render_sections

        return render_sections(self.body.sections)
