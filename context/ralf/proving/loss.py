"""The loss report: what of a segment a checkpoint kept, merged and dropped, by kind, and where the dropped part is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ralf import project as projects, routing
from ralf.errors import NotFound
from ralf.labels import said
from ralf.model import Decision
from ralf.past import history
from ralf.project import Project
from ralf.proving.items import KINDS, Item
from ralf.proving.probe import Words


@dataclass(frozen=True, slots=True)
class Loss:
    """What became of the items of one kind: every one that occurred is in one of the three counts.

    kept     given back by the checkpoint
    merged   seen again, or said again, and folded into one that was kept
    dropped  not in the checkpoint; its evidence holds them, at `lines` of the session
    """

    kind: str
    kept: int
    merged: int
    dropped: int
    lines: str = ""

    @property
    def total(self) -> int:
        """How many there were."""
        return self.kept + self.merged + self.dropped


class Sums:
    """Adds up what `losses` count."""

    __slots__ = ()
    losses: Sequence[Loss | LossReport]

    @property
    def kept(self) -> int:
        """Items of all kinds that are given back."""
        return sum(loss.kept for loss in self.losses)

    @property
    def merged(self) -> int:
        """Items of all kinds that were folded into kept ones."""
        return sum(loss.merged for loss in self.losses)

    @property
    def dropped(self) -> int:
        """Items of all kinds that only the evidence holds."""
        return sum(loss.dropped for loss in self.losses)


@dataclass(frozen=True, slots=True)
class LossReport(Sums):
    """What one checkpoint came to.

    tokens, tokens_stored  o200k_base tokens of the segment, and of what it came to
    recall                 share of the probes that the checkpoint's part of the file gives back
    recall_with_search     share that it or its evidence gives back
    added                  what the probe found missing, so that it was added to the section: how many of each kind
    refused                the summariser whose work was refused, and why
    evidence               whether its evidence is still kept
    """

    route: str
    checkpoint_id: str
    summarizer: str
    session: str
    lines: str
    tokens: int
    tokens_stored: int
    recall: float | None
    recall_with_search: float | None
    added: Mapping[str, int]
    refused: str
    evidence: bool
    losses: tuple[Loss, ...]


def account(
    items: Iterable[Item], words: Words, decisions: Sequence[Decision], known: Sequence[Decision]
) -> tuple[Loss, ...]:
    """What became of a segment's items.

    words      what the checkpoint says
    decisions  those that it lists; `known`, the route's active ones before it, into which a repeated one is merged
    """
    kept: dict[str, int] = {}
    merged: dict[str, int] = {}
    dropped: dict[str, list[int]] = {}
    given: dict[tuple[str, str], bool] = {}
    for item in items:
        again = item.key in given
        if not again:
            given[item.key] = words.give_back(item)
        if not given[item.key]:
            dropped.setdefault(item.kind, []).append(item.line)
        else:
            counted = merged if again or item.kind == "decisions" else kept
            counted[item.kind] = counted.get(item.kind, 0) + 1
    before = set(map(said, known))
    for decision in decisions:  # what a sentence came to is the listed decision; the sentences are merged into it
        counted = merged if said(decision) in before else kept
        counted["decisions"] = counted.get("decisions", 0) + 1
    return tuple(
        Loss(kind, kept.get(kind, 0), merged.get(kind, 0), len(dropped.get(kind, ())), _ranges(dropped.get(kind, ())))
        for kind in KINDS
        if kind in kept or kind in merged or kind in dropped
    )


def to_record(losses: Sequence[Loss]) -> dict[str, Any]:
    """Losses as a checkpoint's record holds them: the sums, and by kind what was kept, merged, dropped, and the lines
    of what was dropped.
    """
    return {
        "kept": sum(one.kept for one in losses),
        "dropped": sum(one.dropped for one in losses),
        "loss": {one.kind: [one.kept, one.merged, one.dropped, *filter(None, [one.lines])] for one in losses},
    }


def from_record(payload: Mapping[str, Any]) -> tuple[Loss, ...]:
    """The losses that a checkpoint's record holds."""
    return tuple(
        Loss(kind, int(kept), int(merged), int(dropped), "".join(lines))
        for kind, (kept, merged, dropped, *lines) in payload.get("loss", {}).items()
    )


def loss_reports(route: str, *, at: str | None = None, root: str | os.PathLike[str] | None = None) -> list[LossReport]:
    """What each checkpoint of a route kept, merged and dropped, oldest first.

    at  this checkpoint only: `cp-002` or `2`

    Raises RouteNotFound, NotFound (no such checkpoint), UsageError (a refused name), DamagedJournal.
    """
    project = projects.find(root)
    found = routing.existing(project, route)
    wanted = history.label(at) if at is not None else None
    reports = [
        report(project, found, checkpoint_id, record.payload)
        for checkpoint_id, record in history.checkpoints(project, found)
        if wanted in (None, checkpoint_id)
    ]
    if wanted is not None and not reports:
        raise NotFound(found, f"has no checkpoint {at}", f"ralf context show {found} --loss")
    return reports


def report(project: Project, route: str, checkpoint_id: str, payload: Mapping[str, Any]) -> LossReport:
    """The loss report that a checkpoint's record holds."""
    source = payload.get("source", {})
    digest = str(payload.get("evidence", ""))
    return LossReport(
        route=route,
        checkpoint_id=checkpoint_id,
        summarizer=str(payload.get("summarizer", "")),
        session=str(source.get("session", "")),
        lines=history.lines_of(payload),
        tokens=int(payload.get("tokens", 0)),
        tokens_stored=int(payload.get("tokens_stored", 0)),
        recall=payload.get("recall"),
        recall_with_search=payload.get("recall_with_search"),
        added=payload.get("added", {}),
        refused=str(payload.get("refused", "")),
        evidence=bool(digest) and project.store.has_blob(digest),
        losses=from_record(payload),
    )


def _ranges(lines: Iterable[int]) -> str:
    """Line numbers in few words: `12, 18-22`."""
    parts: list[list[int]] = []
    for line in sorted(set(lines)):
        if parts and line <= parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)
