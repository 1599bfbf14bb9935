"""What the MCP tools answer: figures, labels and times of ours, and `text` for the model.

Whatever words somebody else may have chosen, also in the name of a route, an id, a source or a path, stand in `text`
and `warnings` alone, in the fence that says that they are data: clients hand the other fields to the model as they are
(`labels` makes them). The answers have no slots: the SDK takes a slot for a default when it makes their schema.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Context:
    """A route's context: its bookkeeping, and its text within the budget. `rule`: how the route was chosen; `foreign`:
    whether it holds what came with the repository.
    """

    rule: str
    revision: int
    checkpoint_count: int
    last_checkpoint: str
    total_tokens_consumed: int
    text: str
    warnings: str = ""
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """What was found; its route, source and words are in `Found.text`, under `number`."""

    number: int
    kind: str
    id: str
    score: float
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

    revision: int
    checkpoints: list[Written]
    tokens_read: int
    tokens_stored: int
    kept: int
    dropped: int
    text: str
    warnings: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the list of routes; its name is in `Routes.text`, under `number`."""

    number: int
    revision: int
    last_checkpoint: str
    checkpoint_count: int
    total_tokens_consumed: int
    damaged: bool
    foreign: bool


@dataclass(frozen=True)
class Routes:
    """The routes of the project, the newest checkpoint first. `current`: the number of the one that is meant when none
    is named, 0 where it is not among them; `rule`: how that was chosen.
    """

    routes: list[Route]
    left_out: int
    current: int
    rule: str
    text: str


@dataclass(frozen=True)
class Used:
    """The route that was chosen: for a session or, where the client names none, for the project."""

    for_session: bool
    exists: bool
    text: str
