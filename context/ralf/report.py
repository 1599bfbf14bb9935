"""What a call of `checkpoint` tells its caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ralf.model import Attempt, Checkpoint
from ralf.proving.loss import LossReport, Sums

if TYPE_CHECKING:
    from ralf.refining.refine import Refinement


@dataclass(frozen=True, slots=True)
class CheckpointReport(Sums):
    """What one call came to.

    checkpoints    those written by this call, oldest first; () when nothing was new
    tokens_read    o200k_base tokens of the segments
    tokens_stored  o200k_base tokens of what they came to
    kept, merged, dropped  items of the segments that are given back, that were folded into those, and that are left
                   to the evidence
    losses         the same by kind, one report a checkpoint
    path           the route file
    run            the run whose folder was read, and what came of it, also where nothing was written; None for any
                   other transcript
    skipped        transcript records that were not used, by type or reason
    warnings       what the reader should know, such as lines that could not be read, or a summary that was refused
    damage         why the route file could not be made to show it, "" for nothing: it is in the journal
    refinements    what a model that was asked for made of them
    """

    route: str
    revision: int
    checkpoints: tuple[Checkpoint, ...]
    reason: str
    summarizer: str
    losses: tuple[LossReport, ...]
    path: Path
    run: Attempt | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    damage: str = ""
    refinements: tuple[Refinement, ...] = ()

    @property
    def tokens_read(self) -> int:
        """Tokens of the segments."""
        return sum(loss.tokens for loss in self.losses)

    @property
    def tokens_stored(self) -> int:
        """Tokens of what they came to."""
        return sum(loss.tokens_stored for loss in self.losses)

    @property
    def ratio(self) -> float:
        """Tokens read per token stored, 0 when nothing was stored."""
        return self.tokens_read / self.tokens_stored if self.tokens_stored else 0.0
