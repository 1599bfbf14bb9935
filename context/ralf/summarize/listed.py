"""The items of a route that a model is shown and asked about, each by an id."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ralf.model import ActiveWork, Decision, ErrorFact
from ralf.text.cleaning import one_line, trimmed

MOST_LISTED = {"decisions": 40, "next_steps": 8, "blockers": 5, "findings": 8, "errors": 8}
"""Newest items of each kind that are shown."""

_LONGEST = 360  # characters of an item

_PREFIXES = {"next_steps": "N", "blockers": "B", "findings": "F", "errors": "E"}


@dataclass(frozen=True)
class Listed:
    """What is in force: decisions, next steps, blockers and findings that no person wrote, errors that nothing fixed.

    own  decisions that no model may change: a person wrote, changed, recorded or pinned them
    """

    decisions: tuple[Decision, ...] = ()
    next_steps: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    errors: tuple[ErrorFact, ...] = ()
    own: frozenset[str] = frozenset()

    @staticmethod
    def of(
        decisions: Sequence[Decision],
        work: ActiveWork,
        errors: Sequence[ErrorFact],
        edited: Collection[str] = (),
    ) -> Listed:
        """What is listed of a route: of each kind the newest, and of what is too much the oldest not.

        edited  decisions of which a person has changed the words
        """
        texts: dict[str, Any] = {
            kind: tuple(item for item in getattr(work, kind) if item not in work.by_hand)[-MOST_LISTED[kind] :]
            for kind in ("next_steps", "blockers", "findings")
        }
        active = tuple(item for item in decisions if item.status == "active")[-MOST_LISTED["decisions"] :]
        unfixed = tuple(error for error in errors if not error.fixed_by)[-MOST_LISTED["errors"] :]
        own = frozenset(item.id for item in active if item.id in edited or _is_own(item))
        return Listed(decisions=active, errors=unfixed, own=own, **texts)

    def is_own(self, item: Decision) -> bool:
        """Whether a person wrote, changed, recorded or pinned a decision: then no model may touch it."""
        return item.id in self.own or _is_own(item)

    @cached_property
    def by_id(self) -> Mapping[str, tuple[str, Any]]:
        """Each item by its id, with its kind."""
        found: dict[str, tuple[str, Any]] = {item.id: ("decisions", item) for item in self.decisions if item.id}
        for kind, prefix in _PREFIXES.items():
            found |= {f"{prefix}{n}": (kind, item) for n, item in enumerate(getattr(self, kind), start=1)}
        return found

    def lines(self) -> Iterator[str]:
        """One line for each item."""
        for label, (kind, item) in self.by_id.items():
            plain = f"{_KIND.get(kind)}: {item}"
            text = (
                _told(item, self.is_own(item)) if kind == "decisions" else _error(item) if kind == "errors" else plain
            )
            yield f"{label} {trimmed(one_line(text), _LONGEST)}"


_KIND = {"next_steps": "next", "blockers": "blocked", "findings": "found"}


def _told(item: Decision, is_own: bool) -> str:
    kind = "" if item.kind == "decision" else f"{item.kind}, "
    why = f" BECAUSE {item.rationale}" if item.rationale else ""
    options = f" REJECTED {'; '.join(item.alternatives)}" if item.alternatives else ""
    own = ", a person's own: keep" if is_own else ""
    return f"({kind}{item.origin or 'unknown'}{own}): {item.decision}{why}{options}"


def _error(item: ErrorFact) -> str:
    return f"error: {trimmed(item.error, 160)} FROM {trimmed(one_line(item.command), 120)}"


def _is_own(item: Decision) -> bool:
    by_person = item.source is None and item.origin not in ("agent", "import")
    return item.origin == "human-edit" or by_person or (item.pinned and item.kind != "rule")
