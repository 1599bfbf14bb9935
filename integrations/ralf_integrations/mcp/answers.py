"""What the MCP tools answer: each a value with the fields of the Python API, and `text` for the model.

Words that come out of a route stand in `text` alone, in the fence that says that they are data; the other fields are
names, numbers and labels. The answers have no slots: the SDK takes a slot for a default when it makes their schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Context:
    """A route's context: its bookkeeping, and its text within the budget. `rule`: how the route was chosen."""

    route: str
    rule: str
    revision: int
    checkpoint_count: int
    last_checkpoint: str
    total_tokens_consumed: int
    text: str
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Hit:
    """Where something was found; its words are in `Found.text`, under the same number."""

    route: str
    kind: str
    id: str
    score: float
    source: str
    status: str


@dataclass(frozen=True)
class Found:
    """What a search found, best first; `left_out`: hits for which the budget had no room."""

    hits: list[Hit]
    left_out: int
    text: str


@dataclass(frozen=True)
class Recorded:
    """A decision that was recorded, or that was known in the same words."""

    route: str
    id: str
    kind: str
    status: str
    origin: str
    timestamp: str
    supersedes: str
    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """One checkpoint that was written."""

    checkpoint_id: str
    tokens: int
    tokens_stored: int | None
    recall: float | None


@dataclass(frozen=True)
class Checkpointed:
    """What a checkpoint came to; `checkpoints` is empty where nothing was new."""

    route: str
    revision: int
    transcript: str
    checkpoints: list[Written]
    tokens_read: int
    tokens_stored: int
    kept: int
    dropped: int
    text: str
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the list of routes."""

    route: str
    revision: int
    last_checkpoint: str
    checkpoint_count: int
    total_tokens_consumed: int
    damaged: bool


@dataclass(frozen=True)
class Routes:
    """The routes of the project, the newest checkpoint first, and the one that is meant when none is named."""

    routes: list[Route]
    left_out: int
    current: str
    rule: str
    text: str


@dataclass(frozen=True)
class Used:
    """The route that was chosen, for a session or, where the client names none, for the project (`session` is "")."""

    route: str
    session: str
    exists: bool
    text: str
