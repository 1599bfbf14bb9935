"""The cap: what a route file folds when it would grow beyond it, and in which order. Order and reasons:
docs/format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ralf import tokens
from ralf.context import RouteContext
from ralf.model import CommandFact, Decision, PathFact
from ralf.tree import to_tree

CAP = 20_000
"""Tokens that a route file may have, by estimate."""

TARGET = 19_000  # folded down to this, so that not every small write has to fold
_PER_KEY = 5  # tokens of a key with its punctuation and indent
KEPT_SECTIONS = 3
KEPT_ENTRIES, FEW_ENTRIES = 8, 2
KEPT_DECISIONS = 10
KEPT_FACTS = {"names": 80, "commands": 10, "paths": 30, "tests": 3, "errors": 5, "commits": 5, "requests": 8}
"""The newest of each kind, which the next agent needs most: they fold after the details of decisions."""
FEW_FACTS = {"names": 25, "commands": 4, "paths": 10, "tests": 1, "errors": 3, "commits": 3, "requests": 3}
"""The newest of those, which stay until decisions have to go."""

_FROM_A_DOCUMENT = ("context", "reversibility", "consequences", "written_status")
"""What a decision that somebody wrote down in a document tells beside its reason; see `ralf.runs.written`."""

Step = tuple[Callable[[RouteContext], RouteContext], int]
"""How to fold one thing, and the estimated tokens that this saves."""


def capped(context: RouteContext) -> RouteContext:
    """`context`, with as much folded as its file needs to keep to the cap."""
    while (size := _size(context)) > CAP:
        folded = _folded(context, size)
        if folded is context:
            break  # what is left never folds
        context = folded  # what one thing saves is an estimate: after many, look again
    return context


def _folded(context: RouteContext, size: int) -> RouteContext:
    for steps, down_to in _ORDER:
        for fold, saved in steps(context):
            if size <= down_to:
                return context
            context = fold(context)
            size -= saved
    return context


def _size(context: RouteContext) -> int:
    from ralf.document import estimate

    return estimate(context)


def _cost(item: Any) -> int:
    """About what an item takes in the file; `capped` looks again, so that a rough figure does."""
    return _PER_KEY + _tokens(item if isinstance(item, str) else to_tree(item))


def _tokens(tree: Any) -> int:
    if isinstance(tree, dict):
        return sum(_PER_KEY + _tokens(inner) for inner in tree.values())
    if isinstance(tree, list):
        return sum(_PER_KEY // 2 + _tokens(inner) for inner in tree)
    return tokens.estimate(str(tree))


# ---- what folds, in order; each yields steps from the oldest on ----


def _sections(keep: int) -> Callable[[RouteContext], Iterator[Step]]:
    def steps(context: RouteContext) -> Iterator[Step]:
        from ralf.document import render_sections

        for section in context.body.sections[keep:][::-1]:
            yield _drop_last_section, tokens.estimate(render_sections((section,)))

    return steps


def _drop_last_section(context: RouteContext) -> RouteContext:
    body = replace(context.body, sections=context.body.sections[:-1])
    return replace(context, body=body, folded=replace(context.folded, section_count=context.folded.section_count + 1))


def _entries(keep: int) -> Callable[[RouteContext], Iterator[Step]]:
    def steps(context: RouteContext) -> Iterator[Step]:
        for entry in context.checkpoint_history[:-keep]:
            yield (lambda c: replace(c, checkpoint_history=c.checkpoint_history[1:])), _cost(entry)

    return steps


def _decisions(wanted: Callable[[Decision], bool]) -> Callable[[RouteContext], Iterator[Step]]:
    def steps(context: RouteContext) -> Iterator[Step]:
        for decision in context.decisions[:-KEPT_DECISIONS]:
            if wanted(decision):
                yield _without_decision(decision), _cost(decision)

    return steps


def _without_decision(decision: Decision) -> Callable[[RouteContext], RouteContext]:
    def fold(context: RouteContext) -> RouteContext:
        kept = tuple(item for item in context.decisions if item is not decision)
        return replace(
            context, decisions=kept, folded=replace(context.folded, decision_count=context.folded.decision_count + 1)
        )

    return fold


def _details(keep: int) -> Callable[[RouteContext], Iterator[Step]]:
    """Why, instead of what, when and where: the journal tells it, and `ralf context why`."""

    def steps(context: RouteContext) -> Iterator[Step]:
        for decision in context.decisions[: max(0, len(context.decisions) - keep)]:
            if not decision.pinned and not is_bare(decision):
                extra = {key: value for key, value in decision.extra.items() if key not in _FROM_A_DOCUMENT}
                bare = replace(decision, timestamp="", rationale="", alternatives=(), source=None, extra=extra)
                yield _with_bare(decision, bare), _cost(decision) - _cost(bare)

    return steps


def is_bare(decision: Decision) -> bool:
    """Whether a decision stands without what the cap takes from it: the journal may have more of it."""
    return not (decision.timestamp or decision.rationale or decision.alternatives or decision.source is not None)


def _with_bare(decision: Decision, bare: Decision) -> Callable[[RouteContext], RouteContext]:
    def fold(context: RouteContext) -> RouteContext:
        kept = tuple(bare if item is decision else item for item in context.decisions)
        return replace(
            context, decisions=kept, folded=replace(context.folded, rationale_count=context.folded.rationale_count + 1)
        )

    return fold


def _facts(
    kind: str, wanted: Callable[[Any], bool] = lambda _: True, *, keep: int
) -> Callable[[RouteContext], Iterator[Step]]:
    def steps(context: RouteContext) -> Iterator[Step]:
        facts = getattr(context.facts, kind)
        for fact in facts[: max(0, len(facts) - keep)]:
            if wanted(fact):
                yield _without_fact(kind, fact), _cost(fact)

    return steps


def _without_fact(kind: str, fact: object) -> Callable[[RouteContext], RouteContext]:
    def fold(context: RouteContext) -> RouteContext:
        kept = tuple(item for item in getattr(context.facts, kind) if item is not fact)
        changed: Any = {kind: kept}
        facts = replace(context.facts, **changed)
        return replace(context, facts=facts, folded=replace(context.folded, fact_count=context.folded.fact_count + 1))

    return fold


def _unresolved(context: RouteContext) -> Iterator[Step]:
    for entry in context.unresolved:
        yield (lambda c: replace(c, unresolved=c.unresolved[1:])), _cost(entry)


def _passed(command: CommandFact) -> bool:
    return command.status != "failed"


def _only_read(path: PathFact) -> bool:
    return set(path.did) <= {"read"}


_FACTS = ("tests", "errors", "commits", "commands", "paths", "names", "requests")
_ORDER: tuple[tuple[Callable[[RouteContext], Iterator[Step]], int], ...] = (
    (_sections(KEPT_SECTIONS), TARGET),
    (_entries(KEPT_ENTRIES), TARGET),
    (_decisions(lambda decision: decision.status != "active" and not decision.pinned), TARGET),
    (_facts("commands", _passed, keep=0), TARGET),
    (_facts("paths", _only_read, keep=KEPT_FACTS["paths"]), TARGET),
    *((_facts(kind, keep=KEPT_FACTS[kind]), TARGET) for kind in _FACTS),
    (_sections(1), TARGET),
    (_details(KEPT_DECISIONS), TARGET),
    (_details(0), TARGET),
    *((_facts(kind, keep=FEW_FACTS[kind]), TARGET) for kind in _FACTS),
    (_entries(FEW_ENTRIES), TARGET),
    (_unresolved, CAP),
    (_decisions(lambda decision: not decision.pinned), CAP),  # not one more than has to go
    *((_facts(kind, keep=0), CAP) for kind in _FACTS),
    (
        _decisions(lambda decision: decision.pinned),
        CAP,
    ),  # rules that alone would pass the cap: a file must stay readable
)
"""What folds, in this order, and down to how many tokens."""
