"""The context of a route: all that its file holds, and what a reader knows besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralf.model.entries import SessionEntries
from ralf.model.handover import Carried
from ralf.model.items import (
    EXTRACTED,
    NOT_STORED,
    ActiveWork,
    Checkpoint,
    Comment,
    Decision,
    Extra,
    Facts,
    Pin,
    Section,
    Spend,
    Tombstone,
)
from ralf.model.kept import with_decisions
from ralf.text.frozen import dataclass, field, replace

FORMAT_VERSION = "1.3.0"

LAYOUT = 2
"""Of the route file: what one of another layout lacks was not taken out of it."""

BODY = "#body"
"""Key of the Markdown body in a context's tree; no plain key of the front matter begins so."""


@dataclass(frozen=True, slots=True)
class Header:
    """The file's `context_checkpoint`: which route, which revision, how much has gone by.

    mark     the stamp of the file: revision, layout and the route's own mark, which its first record has
    spend    what models have been asked for the route
    """

    version: str = ""
    route: str = ""
    agent_type: str = ""
    revision: int = 0
    mark: str = ""
    created: str = ""
    last_checkpoint: str = ""
    checkpoint_count: int = 0
    tokens_at_checkpoint: int = 0
    total_tokens_consumed: int = 0
    decision_count: int = 0
    spend: Spend = field(default_factory=Spend)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Folded:
    """How many items the cap has moved out of the file."""

    section_count: int = 0
    decision_count: int = 0
    rationale_count: int = 0
    fact_count: int = 0
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Body:
    """The file's Markdown, and how the file is laid out.

    before     text above the heading of the history
    sections   newest first
    after      text below them, from a heading on
    preface    text between the heading of the history and the sections; `below`: below the footer
    comments   of the front matter
    brief      the derived text at its beginning, as it was composed or read; `is_brief_edited`: somebody wrote into it
    is_cut     whether the file has not our footer: what was below may have been cut off
    """

    before: str = ""
    sections: tuple[Section, ...] = ()
    after: str = ""
    preface: str = ""
    below: str = ""
    comments: tuple[Comment, ...] = ()
    brief: str = field(default="", compare=False, metadata=NOT_STORED)
    is_brief_edited: bool = field(default=False, compare=False, metadata=NOT_STORED)
    is_cut: bool = field(default=False, compare=False, metadata=NOT_STORED)

    @property
    def notes(self) -> str:
        """What a person wrote into the file, wherever it stands in it."""
        return "\n\n".join(text for text in (self.before, self.preface, self.after, self.below) if text.strip())


@dataclass(frozen=True, slots=True)
class GitNow:
    """What git says of the project at this moment.

    text    that, in one line
    branch  "" where none is checked out; `head`: the commit, cut to seven digits, "" for none
    files   that are not committed, by their paths from the project's folder; a new folder ends with a slash
    """

    text: str = ""
    branch: str = ""
    head: str = ""
    files: tuple[str, ...] = ()

    def lists(self, path: str) -> bool:
        """Whether git lists a file as not committed."""
        return any(path == one or (one.endswith("/") and path.startswith(one)) for one in self.files)


@dataclass(frozen=True, slots=True)
class RouteContext:
    """What a route file holds. Times are ISO 8601 text, tokens are o200k_base tokens.

    goal         what the work is about now; `goal_origin`: import, where it came with a file
    began_as     the route's first message
    handover     what was handed over last, and what it left open, done and found; `carried`: with the decisions
    decisions    oldest first, of every status
    active_work  where the work stands
    pinned       messages that every brief shows
    facts        what was taken from the transcripts mechanically
    checkpoints  the checkpoint history, oldest first
    history      the Markdown of the sections, newest first
    folded       how much the cap has moved out of the file; search and the journal still have it
    dropped      decisions that a person dropped, and `forgotten`, those whose words were purged: none is taken from a
                 transcript again
    warnings     what the reader should know of the file: damaged, edited, behind its journal
    since        about how many tokens of the newest session no checkpoint covers (`ralf.finding.since`)
    in_run       the run of a loop in which the reader is, "" for none
    stuck        what whoever tries once more should hear, where many attempts have changed nothing; "" else
    command      how `ralf` is typed in the project
    foreign      whether the route has more than this user's ralf wrote: in its file or in records of its journal
    foreign_notes  that, a line each, as far as it stands in none of the fields
    foreign_by   whose clones have shared some of that, and nobody has accepted it
    sessions     what this user's sessions came to, by the clients' records: talk and log
    now          what git says of the project at this moment, None where it was not asked
    size         tokens of its file, at most, by estimate; 0: nobody has measured it
    wholly_foreign  whether nothing of the route is this user's. Then the fields hold what came with the repository:
                 decisions of the origin `import`, facts and history, but no rule, goal, request or next step
    """

    context_checkpoint: Header = field(default_factory=Header)
    goal: str = ""
    goal_origin: str = ""
    began_as: str = ""
    handover: Carried = field(default_factory=Carried)
    active_work: ActiveWork = field(default_factory=ActiveWork)
    decisions: tuple[Decision, ...] = ()
    pinned: tuple[Pin, ...] = ()
    facts: Facts = field(default_factory=Facts)
    checkpoint_history: tuple[Checkpoint, ...] = ()
    folded: Folded = field(default_factory=Folded)
    dropped: tuple[Tombstone, ...] = ()
    forgotten: tuple[Tombstone, ...] = ()
    body: Body = field(default_factory=Body, metadata={"key": BODY})
    extra: Extra = field(default_factory=dict)
    warnings: tuple[str, ...] = field(default=(), compare=False, metadata=NOT_STORED)
    since: int = field(default=0, compare=False, metadata=NOT_STORED)
    in_run: str = field(default="", compare=False, metadata=NOT_STORED)
    stuck: str = field(default="", compare=False, metadata=NOT_STORED)
    command: str = field(default="ralf", compare=False, repr=False, metadata=NOT_STORED)
    foreign: bool = field(default=False, compare=False, metadata=NOT_STORED)
    foreign_notes: tuple[str, ...] = field(default=(), compare=False, metadata=NOT_STORED)
    foreign_by: tuple[str, ...] = field(default=(), compare=False, metadata=NOT_STORED)
    wholly_foreign: bool = field(default=False, compare=False, metadata=NOT_STORED)
    sessions: tuple[SessionEntries, ...] = field(default=(), compare=False, repr=False, metadata=NOT_STORED)
    now: GitNow | None = field(default=None, compare=False, repr=False, metadata=NOT_STORED)
    size: int = field(default=0, compare=False, repr=False, metadata=NOT_STORED)
    budget: int | None = field(default=None, compare=False, repr=False, metadata=NOT_STORED)
    query: str | None = field(default=None, compare=False, repr=False, metadata=NOT_STORED)

    def without_foreign(self) -> RouteContext:
        """The same without what is foreign, for a text that nobody asked for. Not of one that is wholly foreign."""
        return replace(self, foreign=False, foreign_notes=(), foreign_by=())

    @property
    def carried(self) -> Carried:
        """All that the route hands over: the last hand-over, its entries and the decisions in force."""
        return with_decisions(self.handover, self.decisions)

    @property
    def route(self) -> str:
        """The route's name."""
        return self.context_checkpoint.route

    @property
    def revision(self) -> int:
        """The journal revision that this shows; 0 for a file that has no journal."""
        return self.context_checkpoint.revision

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

    @property
    def active_decisions(self) -> tuple[Decision, ...]:
        """The decisions, rules and failed approaches that somebody recorded and that hold, oldest first."""
        return tuple(item for item in self.decisions if item.status == "active" and item.origin != EXTRACTED)

    def with_pin(self, pin: Pin) -> RouteContext:
        """The same context with a message pinned; one that is pinned stays pinned once."""
        return replace(self, pinned=(*(one for one in self.pinned if one.id != pin.id), pin))

    def with_defaults(self, max_tokens: int | None, query: str | None) -> RouteContext:
        """The same context, whose `render` has these defaults."""
        return replace(self, budget=max_tokens, query=query)

    if TYPE_CHECKING:  # bound by `ralf/__init__`: how a context is rendered is for higher floors to say

        def render(
            self,
            max_tokens: int | None = None,
            *,
            query: str | None = None,
            section: str | None = None,
            fenced: bool = True,
        ) -> str:
            """The context as Markdown; see `ralf.brief.views.render`."""

        @property
        def history(self) -> str:
            """The Markdown of the sections, newest first."""
