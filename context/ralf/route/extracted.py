"""What rules of earlier versions took for decisions: their records are read, and no longer count as somebody's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ralf.format.codec import from_tree
from ralf.model import EXTRACTED, Decision, RouteContext
from ralf.route.edits import with_decision

BY_RULES = ("user", "agent")
"""Whom these rules took for the author of a decision."""


def is_by_rules(payload: Mapping[str, Any]) -> bool:
    """Whether a checkpoint is of an earlier version, whose rules read decisions out of prose."""
    return "entries" not in payload and payload.get("summarizer") == "extractive"


def with_decisions(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with the decisions of a checkpoint of an earlier version, whose rules read them out of prose: they
    say nothing of what somebody recorded.
    """
    for item in payload.get("decisions", ()):
        made = from_tree(Decision, item)
        if made.origin in BY_RULES:
            recorded = {known.id for known in context.decisions if known.origin != EXTRACTED}
            if made.id in recorded:
                continue
            made = replace(made, origin=EXTRACTED, supersedes="" if made.supersedes in recorded else made.supersedes)
        context = with_decision(context, made)
    return context


def still(before: RouteContext, edited: RouteContext) -> Iterator[Decision]:
    """The decisions of an edited context: a file of an earlier version, which says of what rules extracted that it is
    somebody's, does not make it so.
    """
    extracted = {item.id: item.decision for item in before.decisions if item.origin == EXTRACTED}
    for item in edited.decisions:
        yield replace(item, origin=EXTRACTED) if extracted.get(item.id) == item.decision else item
