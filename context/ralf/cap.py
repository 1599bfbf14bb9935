"""The cap: what a route file folds when it would grow beyond it, and in which order. Order and reasons:
docs/format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from ralf import tokens
from ralf.context import Folded, RouteContext
from ralf.model import Checkpoint, CommandFact, Decision, PathFact, Section
from ralf.tree import to_tree

T = TypeVar("T")

CAP = 20_000
"""Tokens that a route file may have, by estimate."""

TARGET = 19_000  # folded down to this, so that not every small write has to fold
_PER_KEY = 5  # tokens of a key with its punctuation and indent
SHOWN_TOMBSTONES = 64
KEPT_SECTIONS = 3
KEPT_ENTRIES, FEW_ENTRIES = 8, 2
KEPT_DECISIONS = 10
KEPT_FACTS = {"names": 80, "commands": 10, "paths": 30, "tests": 3, "errors": 5, "commits": 5, "requests": 8}
"""The newest of each kind, which the next agent needs most: they fold after the details of decisions."""
FEW_FACTS = {"names": 25, "commands": 4, "paths": 10, "tests": 1, "errors": 3, "commits": 3, "requests": 3}
"""The newest of those, which stay until decisions have to go."""

_FROM_A_DOCUMENT = ("context", "reversibility", "consequences", "written_status")
"""What a decision that somebody wrote down in a document tells beside its reason; see `ralf.runs.written`."""


class _Kind(NamedTuple):
    """One kind of what folds.

    oldest   what may go of a context, oldest first, each with about the tokens that this saves
    without  a context without the first so many of them
    """

    oldest: Callable[[RouteContext], Iterator[tuple[Any, int]]]
    without: Callable[[RouteContext, list[Any]], RouteContext]


def shown(context: RouteContext) -> RouteContext:
    """What the file of a context shows: of many tombstones the newest. All of them count, but nobody reads them."""
    more = len(context.dropped) - SHOWN_TOMBSTONES
    if more <= 0:
        return context
    folded = replace(context.folded, tombstone_count=context.folded.tombstone_count + more)
    return replace(context, dropped=context.dropped[more:], folded=folded)


def capped(context: RouteContext) -> RouteContext:
    """`context`, with as much folded as its file needs to keep to the cap."""
    while (size := _size(context)) > CAP:
        folded = _folded(context, size)
        if folded is context:
            break  # what is left never folds
        context = folded  # what one thing saves is an estimate: after many, look again
    return context


def _folded(context: RouteContext, size: int) -> RouteContext:
    for kind, down_to in _ORDER:
        if size <= down_to:
            break
        going = []
        for item, saved in kind.oldest(context):
            if size <= down_to:
                break
            going.append(item)
            size -= saved
        if going:
            context = kind.without(context, going)
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


# ---- what folds ----


def _sections(keep: int) -> _Kind:
    def oldest(context: RouteContext) -> Iterator[tuple[Section, int]]:
        from ralf.document import render_sections

        for section in context.body.sections[keep:][::-1]:
            yield section, tokens.estimate(render_sections((section,)))

    def without(context: RouteContext, going: list[Section]) -> RouteContext:
        body = replace(context.body, sections=context.body.sections[: -len(going)])
        return replace(context, body=body, folded=_more(context, "section_count", going))

    return _Kind(oldest, without)


def _entries(keep: int) -> _Kind:
    def without(context: RouteContext, going: list[Checkpoint]) -> RouteContext:
        return replace(context, checkpoint_history=context.checkpoint_history[len(going) :])

    return _Kind(lambda context: _costs(context.checkpoint_history[:-keep]), without)


def _decisions(wanted: Callable[[Decision], bool]) -> _Kind:
    def without(context: RouteContext, going: list[Decision]) -> RouteContext:
        kept = _others(context.decisions, going)
        return replace(context, decisions=kept, folded=_more(context, "decision_count", going))

    return _Kind(lambda context: _costs(filter(wanted, context.decisions[:-KEPT_DECISIONS])), without)


def _details(keep: int) -> _Kind:
    """Why, instead of what, when and where: the journal tells it, and `ralf context why`."""

    def oldest(context: RouteContext) -> Iterator[tuple[Decision, int]]:
        for decision in context.decisions[: max(0, len(context.decisions) - keep)]:
            if not decision.pinned and not is_bare(decision):
                yield decision, _cost(decision) - _cost(_bare(decision))

    def without(context: RouteContext, going: list[Decision]) -> RouteContext:
        bare = set(map(id, going))
        decisions = tuple(_bare(item) if id(item) in bare else item for item in context.decisions)
        return replace(context, decisions=decisions, folded=_more(context, "rationale_count", going))

    return _Kind(oldest, without)


def is_bare(decision: Decision) -> bool:
    """Whether a decision stands without what the cap takes from it: the journal may have more of it."""
    return not (decision.timestamp or decision.rationale or decision.alternatives or decision.source is not None)


def _bare(decision: Decision) -> Decision:
    extra = {key: value for key, value in decision.extra.items() if key not in _FROM_A_DOCUMENT}
    return replace(decision, timestamp="", rationale="", alternatives=(), source=None, extra=extra)


def _facts(name: str, wanted: Callable[[Any], bool] = lambda _: True, *, keep: int) -> _Kind:
    def oldest(context: RouteContext) -> Iterator[tuple[Any, int]]:
        facts = getattr(context.facts, name)
        return _costs(filter(wanted, facts[: max(0, len(facts) - keep)]))

    def without(context: RouteContext, going: list[Any]) -> RouteContext:
        kept: Any = {name: _others(getattr(context.facts, name), going)}
        return replace(context, facts=replace(context.facts, **kept), folded=_more(context, "fact_count", going))

    return _Kind(oldest, without)


def _unresolved(context: RouteContext, going: list[Any]) -> RouteContext:
    return replace(context, unresolved=context.unresolved[len(going) :])


def _costs(items: Iterable[Any]) -> Iterator[tuple[Any, int]]:
    return ((item, _cost(item)) for item in items)


def _others(items: tuple[T, ...], going: list[T]) -> tuple[T, ...]:
    gone = set(map(id, going))
    return tuple(item for item in items if id(item) not in gone)


def _more(context: RouteContext, count: str, going: list[Any]) -> Folded:
    """What was folded before, and these as well."""
    counted: Any = {count: getattr(context.folded, count) + len(going)}
    return replace(context.folded, **counted)


def _passed(command: CommandFact) -> bool:
    return command.status != "failed"


def _only_read(path: PathFact) -> bool:
    return set(path.did) <= {"read"}


_FACTS = ("tests", "errors", "commits", "commands", "paths", "names", "requests")
_ORDER: tuple[tuple[_Kind, int], ...] = (
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
    (_Kind(lambda context: _costs(context.unresolved), _unresolved), CAP),
    (_decisions(lambda decision: not decision.pinned), CAP),  # not one more than has to go
    *((_facts(kind, keep=0), CAP) for kind in _FACTS),
    (
        _decisions(lambda decision: decision.pinned),
        CAP,
    ),  # rules that alone would pass the cap: a file must stay readable
)
"""What folds, in this order, and down to how many tokens."""
