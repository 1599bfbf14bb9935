"""The cap: what a route file folds when it would grow beyond it; and tombstones of what was dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ralf.document import yaml_text
from ralf.document.tree import to_tree
from ralf.model import ActiveWork, Decision, RouteContext, Tombstone
from ralf.text import digests, tokens
from ralf.text.frozen import NamedTuple, replace
from ralf.text.patterns import regex

# ---- tombstones: a hash of a decision's words ----

_SAID_DIGITS = 12

_WORD = regex(r"\w+")


def tombstone(decision: Decision) -> Tombstone:
    """The tombstone of a decision."""
    return Tombstone(decision.id, decision.kind, _hash(decision))


def of(context: RouteContext) -> tuple[Tombstone, ...]:
    """All tombstones of a route."""
    return context.dropped + context.forgotten


def cover(tombstones: Sequence[Tombstone], decision: Decision) -> bool:
    """Whether a decision says what lies under one of the tombstones: in the same words, case and signs aside."""
    return bool(covering(tombstones, decision))


def covering(tombstones: Sequence[Tombstone], decision: Decision) -> list[Tombstone]:
    """The tombstones, in their order, under which lies what a decision says."""
    said = _hash(decision) if tombstones else ""
    return [stone for stone in tombstones if stone.said == said]


def is_buried(tombstones: Sequence[Tombstone], label: str) -> bool:
    """Whether one of the tombstones is that of a label."""
    return any(stone.id == label for stone in tombstones)


def _hash(decision: Decision) -> str:
    words = " ".join(_WORD.findall(decision.decision.casefold())) or decision.decision
    return digests.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:_SAID_DIGITS]


# ---- what burying and raising makes of a route ----


def dropped(context: RouteContext, stone: Tombstone) -> RouteContext:
    """The context with a decision dropped, whether or not the cap has folded it away."""
    decisions = tuple(replace(item, status="dropped") if item.id == stone.id else item for item in context.decisions)
    return replace(context, decisions=decisions, dropped=_with(context.dropped, [stone]))


def forgotten(context: RouteContext, stones: Sequence[Tombstone]) -> RouteContext:
    """The context without decisions whose words were purged."""
    ids = {stone.id for stone in stones}
    return replace(
        context,
        decisions=tuple(item for item in context.decisions if item.id not in ids),
        dropped=tuple(stone for stone in context.dropped if stone.id not in ids),
        forgotten=_with(context.forgotten, stones),
    )


def raised(context: RouteContext, decision: Decision) -> RouteContext:
    """The context without the tombstones over a decision that a person brings back."""
    if not of(context):
        return context
    gone = {stone.id for stone in covering(of(context), decision)} | {decision.id}
    dropped, forgotten = (
        tuple(stone for stone in stones if stone.id not in gone) for stones in (context.dropped, context.forgotten)
    )
    return replace(context, dropped=dropped, forgotten=forgotten)


def as_edited(before: RouteContext, edited: RouteContext) -> RouteContext:
    """A context that a person edited: decisions that they took out are dropped, those brought back are not."""
    was, now = ({item.id: item for item in context.decisions} for context in (before, edited))
    there = {label for label, item in now.items() if item.status != "dropped"}
    gone = [
        tombstone(item)
        for label, item in was.items()
        if label not in there and (label not in now or item.status != "dropped")
    ]
    edited = replace(edited, dropped=_with(edited.dropped, gone))
    buried = {stone.id for stone in of(edited)}
    for label, item in now.items():
        if item.status == "active" and (label not in was or was[label].status == "dropped" or label in buried):
            edited = raised(edited, item)
    return edited


def _with(stones: tuple[Tombstone, ...], more: Sequence[Tombstone]) -> tuple[Tombstone, ...]:
    ids = {stone.id for stone in more}
    return (*(stone for stone in stones if stone.id not in ids), *more)


# ---- what a person wrote into the active work stays until they remove it or it is done ----


_LISTS = ("next_steps", "blockers", "findings")

_DONE = "completed"


def edited(before: ActiveWork, after: ActiveWork) -> ActiveWork:
    """`after`, a person's edit of `before`, with the items marked that are theirs."""
    known, stand = set(_items(before)), dict.fromkeys(_items(after))
    own = (item for item in stand if item in after.by_hand or item not in known)
    return replace(after, by_hand=tuple(own))


def kept(before: ActiveWork, after: ActiveWork) -> ActiveWork:
    """`after`, the work by a segment or a model, plus the items that a person wrote into `before`."""
    if not before.by_hand:
        return after
    done = {todo.content for todo in after.todos if todo.status == _DONE}
    done.update(step.description for step in after.completed_steps)
    own = set(before.by_hand) - done
    lists: dict[str, Any] = {
        key: tuple(dict.fromkeys([*(item for item in getattr(before, key) if item in own), *getattr(after, key)]))
        for key in _LISTS
    }
    named = {todo.content for todo in after.todos}
    todos = (todo for todo in before.todos if todo.content in own - named and todo.status != _DONE)
    made = replace(after, **lists, todos=(*todos, *after.todos))
    stand = set(_items(made))
    return replace(made, by_hand=tuple(item for item in before.by_hand if item in own and item in stand))


def _items(work: ActiveWork) -> Iterator[str]:
    for key in _LISTS:
        yield from getattr(work, key)
    yield from (todo.content for todo in work.todos)


# ---- the cap; its order and reasons: docs/format.md ----

CAP = 20_000
"""Tokens that a route file may have, by estimate."""

TARGET = 18_000  # folded down to this, so that few writes have to fold

KEPT_DECISIONS = 10

_MOST_ADDED, _PER_RECORD = 2, 60
"""A record makes a file at most so many times larger as it has tokens, in front matter and body, and so many more."""


def within(before: RouteContext, after: RouteContext, payload: object) -> RouteContext:
    """What a record with a payload has made of a context, with as much folded as its file needs to keep to the cap.

    The file is measured only where it may pass the cap: `size` says how large it is at most.
    """
    most = before.size + _MOST_ADDED * tokens.estimate(repr(payload)) + _PER_RECORD
    return replace(after, size=most) if before.size and after.size and most <= CAP else capped(after)


def capped(context: RouteContext) -> RouteContext:
    """`context`, with as much folded as its file needs to keep to the cap, and its size."""
    from ralf.route.filed import content_of  # here: who only buries something needs no file

    while (size := tokens.estimate(content_of(context).decode())) > CAP:
        folded = _folded(context, size - TARGET)
        if folded is context:
            break  # what is left never folds
        context = folded  # what one thing saves is an estimate: after many, look again
    return replace(context, size=size)


class _Step(NamedTuple):
    """Items of one kind that leave the file, the oldest first.

    items    their place in a context: names of fields
    keep     so many of the newest stay
    counts   the field of `Folded` that counts them, "" for none
    wanted   which leave
    is_bare  whether they leave only their details
    """

    items: str
    keep: int
    counts: str = ""
    wanted: Callable[[Any], bool] = lambda _: True
    is_bare: bool = False


def _folded(context: RouteContext, excess: int) -> RouteContext:
    """The context with about so many tokens less in its file, as far as there is something to fold."""
    for step in _ORDER:
        group, _, name = step.items.rpartition(".")
        holder: Any = getattr(context, group) if group else context
        items = getattr(holder, name)
        places = range(len(items) - step.keep)
        made: dict[int, Any] = {}
        for place in (len(items) - 1 - n for n in places) if name == "sections" else places:  # the newest is on top
            if excess <= 0:
                break
            new = bare(items[place]) if step.is_bare else None
            if step.wanted(items[place]) and new != items[place]:
                made[place] = new
                excess -= _size(items[place]) - _size(new)
        if made:
            kept = tuple(new for place, item in enumerate(items) if (new := made.get(place, item)) is not None)
            holder = replace(holder, **{name: kept})
            context = replace(context, **{group: holder}) if group else holder
        if made and step.counts:
            counted: Any = {step.counts: getattr(context.folded, step.counts) + len(made)}
            context = replace(context, folded=replace(context.folded, **counted))
    return context


def _size(item: Any) -> int:
    """About how many tokens an item takes in the file."""
    tree = item if isinstance(item, str) or item is None else to_tree(item)
    return tokens.estimate("\n".join(yaml_text.lines({"": [tree]}))) if tree else 0


# ---- what folds ----

_FROM_A_DOCUMENT = ("context", "reversibility", "consequences", "written_status")
"""What a decision that somebody wrote down in a document tells beside its reason."""


def is_bare(decision: Decision) -> bool:
    """Whether a decision is without what the cap takes from it: the journal may have more of it."""
    return not (decision.timestamp or decision.rationale or decision.alternatives or decision.source is not None)


def bare(decision: Decision) -> Decision:
    """A decision without these details."""
    extra = {key: value for key, value in decision.extra.items() if key not in _FROM_A_DOCUMENT}
    return replace(decision, timestamp="", rationale="", alternatives=(), source=None, extra=extra)


def _is_free(decision: Decision) -> bool:
    return not decision.pinned


def _is_over(decision: Decision) -> bool:
    return decision.status != "active" and not decision.pinned


def _is_long(decision: Decision) -> bool:
    """Whether it takes more than its share of the file."""
    return not decision.pinned and _size(decision) > CAP // KEPT_DECISIONS


def _facts(keep: int) -> Iterator[_Step]:
    for kind in ("tests", "errors", "commits", "commands", "paths", "names", "requests"):
        yield _Step(f"facts.{kind}", keep, "fact_count")


_ORDER: tuple[_Step, ...] = (
    *_facts(30),
    _Step("body.sections", 1, "section_count", lambda section: section.number is not None),  # others are a person's
    _Step("checkpoint_history", 8),
    _Step("decisions", KEPT_DECISIONS, "decision_count", _is_over),
    *_facts(10),
    _Step("decisions", 0, "rationale_count", _is_free, is_bare=True),
    _Step("checkpoint_history", 2),
    _Step("decisions", KEPT_DECISIONS, "decision_count", _is_free),
    *_facts(0),
    _Step("decisions", 0, "decision_count", _is_long),
    # rules that alone would pass the cap: a file must stay readable
    _Step("decisions", KEPT_DECISIONS, "decision_count"),
)
"""What folds, in this order."""
