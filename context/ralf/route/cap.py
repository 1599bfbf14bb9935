"""The cap: what a route file folds when it would grow beyond it; and tombstones of what was dropped."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from ralf.format.codec import to_tree
from ralf.model import (
    FEW_ENTRIES,
    ActiveWork,
    Checkpoint,
    CommandFact,
    Decision,
    Folded,
    PathFact,
    RouteContext,
    Section,
    Tombstone,
)
from ralf.route.sections import STAGES
from ralf.text import tokens
from ralf.text.patterns import regex

# ---- tombstones: a hash of a decision's words, and 12 bits of each word, too little to tell which word it was ----


_SAID_DIGITS = 12

_RECORD_DIGITS = 8

_WORD = regex(r"\w+")


def tombstone(decision: Decision) -> Tombstone:
    """The tombstone of a decision."""
    from ralf.text.matcher import affirmed  # here and below: only who buries something pays for it

    words = _fingerprints(affirmed(decision.decision))
    return Tombstone(decision.id, decision.kind, _hash(decision), "".join(sorted(words)), "".join(_records(decision)))


def is_of(tombstones: Iterable[Tombstone], versions: Sequence[Decision]) -> bool:
    """Whether one of the tombstones is that of a decision, given in all its versions: it says the same, or a clone
    recorded it at that time and it bears a label of then, whatever its words are now.
    """
    said = {_hash(version) for version in versions}
    records = {record for version in versions for record in _records(version)}
    return any(stone.said in said or not records.isdisjoint(_records_of(stone)) for stone in tombstones)


def _records_of(stone: Tombstone) -> Iterator[str]:
    return (stone.record[place : place + _RECORD_DIGITS] for place in range(0, len(stone.record), _RECORD_DIGITS))


def _records(decision: Decision) -> list[str]:
    if not (decision.clone and decision.timestamp):
        return []
    signed = (f"{label} {decision.timestamp} {decision.clone}" for label in (decision.id,))
    hashes = (hashlib.sha256(one.encode("utf-8", "surrogatepass")).hexdigest() for one in signed)
    return [hashed[:_RECORD_DIGITS] for hashed in hashes]


def of(context: RouteContext) -> tuple[Tombstone, ...]:
    """All tombstones of a route."""
    return context.dropped + context.forgotten  # one of them alone is the same tuple, about which more is known


def cover(tombstones: Sequence[Tombstone], decision: Decision) -> bool:
    """Whether a decision says what lies under one of the tombstones, in the same words or in nearly the same."""
    return bool(covering(tombstones, decision))


def covering(tombstones: Sequence[Tombstone], decision: Decision) -> list[Tombstone]:
    """The tombstones, in their order, under which lies what a decision says, in the same words or in nearly the
    same. What was asked of many before is looked up: the next question costs no more than with a few.
    """
    stones = tuple(tombstones)
    if not stones:
        return []
    from ralf.text.matcher import FEWEST_ALIKE, affirmed, alike, takes_back

    said, failed, returns = _hash(decision), decision.kind == "failed-approach", takes_back(decision.decision)
    words = _fingerprints(affirmed(decision.decision))

    def covers(stone: Tombstone) -> bool:
        if stone.said == said:
            return True
        return (stone.kind == "failed-approach") == failed and not returns and alike(words, frozenset(_words_of(stone)))

    places = _places_of(stones)
    likely = (stones[place] for place in places.likely(said, words, FEWEST_ALIKE))
    return [stone for stone in (*likely, *stones[places.count :]) if covers(stone)]


def is_buried(tombstones: tuple[Tombstone, ...], label: str) -> bool:
    """Whether one of the tombstones is that of a label."""
    places = _places_of(tombstones)
    return label in places.labels or any(stone.id == label for stone in tombstones[places.count :])


class _Places:
    """Where the tombstones of a tuple stand that may cover a decision.

    labels  of all of them
    """

    def __init__(self, stones: tuple[Tombstone, ...]) -> None:
        self.stones = stones
        self.count = len(stones)
        self.labels = frozenset(stone.id for stone in stones)
        self._said: dict[str, list[int]] = {}
        self._words: dict[str, list[int]] = {}
        for place, stone in enumerate(stones):
            self._said.setdefault(stone.said, []).append(place)
            for word in set(_words_of(stone)):
                self._words.setdefault(word, []).append(place)

    def likely(self, said: str, words: frozenset[str], fewest: int) -> list[int]:
        """Where those stand that say the same, or have at least so many of the words."""
        shared = Counter(place for word in words for place in self._words.get(word, ()))
        alike = [place for place, count in shared.items() if count >= fewest]
        return sorted({*alike, *self._said.get(said, ())})


_LOOSE = 64  # tombstones that are looked at one by one: the newest, so that not each drop makes it all anew

_MOST_KNOWN = 4  # routes that a process asks about in turns

_known: tuple[_Places, ...] = (_Places(()),)
"""Never changed but replaced as a whole: another thread may be looking."""


def _places_of(stones: tuple[Tombstone, ...]) -> _Places:
    """The places of all but the last few."""
    global _known
    for known in _known:
        if known.stones is stones:
            return known
        if known.count <= len(stones) <= known.count + _LOOSE and stones[: known.count] == known.stones:
            return known
    made = _Places(stones)
    _known = (_known[0], *_known[1:][1 - _MOST_KNOWN :], made)
    return made


def _words_of(stone: Tombstone) -> list[str]:
    return [stone.words[place : place + 2] for place in range(0, len(stone.words), 2)]


def _hash(decision: Decision) -> str:
    words = " ".join(_WORD.findall(decision.decision.casefold())) or decision.decision
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:_SAID_DIGITS]


def _fingerprints(words: Iterable[str]) -> frozenset[str]:
    """12 bits of each word's hash, as two characters."""
    hashes = (hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest() for word in words)
    return frozenset(base64.urlsafe_b64encode(hashed[:3])[:2].decode() for hashed in hashes)


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

    def left(stones: tuple[Tombstone, ...]) -> tuple[Tombstone, ...]:
        gone = set(map(id, covering(stones, decision)))
        if not gone and not is_buried(stones, decision.id):
            return stones
        return tuple(stone for stone in stones if stone.id != decision.id and id(stone) not in gone)

    dropped, forgotten = left(context.dropped), left(context.forgotten)
    if dropped is context.dropped and forgotten is context.forgotten:
        return context
    return replace(context, dropped=dropped, forgotten=forgotten)


def as_edited(before: RouteContext, edited: RouteContext) -> RouteContext:
    """A context that a person edited: decisions that they took out are dropped, those brought back are not."""
    was, now = ({item.id: item for item in context.decisions} for context in (before, edited))
    for label, item in was.items():
        after = now.get(label)
        if after is None or (after.status == "dropped" and item.status != "dropped"):
            edited = replace(edited, dropped=_with(edited.dropped, [tombstone(item)]))
    buried = {stone.id for stone in of(edited)}
    for label, item in now.items():
        old = was.get(label)
        if item.status == "active" and (old is None or old.status == "dropped" or (label in buried)):
            edited = raised(edited, item)
    return edited


def _with(stones: tuple[Tombstone, ...], more: Sequence[Tombstone]) -> tuple[Tombstone, ...]:
    ids = {stone.id for stone in more}
    if any(is_buried(stones, label) for label in ids):
        stones = tuple(stone for stone in stones if stone.id not in ids)
    return (*stones, *more)


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


T = TypeVar("T")

CAP = 20_000
"""Tokens that a route file may have, by estimate."""

TARGET = 19_000  # folded down to this, so that not every small write has to fold

_PER_KEY = 5  # tokens of a key with its punctuation and indent

KEPT_SECTIONS = 3

KEPT_ENTRIES = 8

KEPT_DECISIONS = 10

KEPT_FACTS = {"names": 80, "commands": 10, "paths": 30, "tests": 3, "errors": 5, "commits": 5, "requests": 8}
"""The newest of each kind, which the next agent needs most: they fold after the details of decisions."""

FEW_FACTS = {"names": 25, "commands": 4, "paths": 10, "tests": 1, "errors": 3, "commits": 3, "requests": 3}
"""The newest of those, which stay until decisions have to go."""

_FROM_A_DOCUMENT = ("context", "reversibility", "consequences", "written_status")
"""What a decision that somebody wrote down in a document tells beside its reason."""


class _Kind(NamedTuple):
    """One kind of what folds.

    oldest   what may go of a context, oldest first, each with about the tokens that this saves
    without  a context without the first so many of them
    """

    oldest: Callable[[RouteContext], Iterator[tuple[Any, int]]]
    without: Callable[[RouteContext, list[Any]], RouteContext]


def capped(context: RouteContext) -> RouteContext:
    """`context`, with as much folded as its file needs to keep to the cap."""
    from ralf.format.routefile import estimate  # here: who only buries something needs no file

    while (size := estimate(context)) > CAP:
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
        from ralf.format.routefile import render_sections

        for section in context.body.sections[keep:][::-1]:
            yield section, tokens.estimate(render_sections((section,)))

    def without(context: RouteContext, going: list[Section]) -> RouteContext:
        body = replace(context.body, sections=context.body.sections[: -len(going)])
        return replace(context, body=body, folded=_more(context, "section_count", going))

    return _Kind(oldest, without)


def _shortened(stage: Callable[[str], str]) -> _Kind:
    """All sections but the newest, shortened to a stage."""

    def oldest(context: RouteContext) -> Iterator[tuple[Section, int]]:
        for section in context.body.sections[:0:-1]:
            if (text := stage(section.text)) != section.text:
                yield section, tokens.estimate(section.text) - tokens.estimate(text)

    def without(context: RouteContext, going: list[Section]) -> RouteContext:
        gone = set(map(id, going))
        kept = (replace(one, text=stage(one.text)) if id(one) in gone else one for one in context.body.sections)
        return replace(context, body=replace(context.body, sections=tuple(kept)))

    return _Kind(oldest, without)


def _entries(keep: int) -> _Kind:
    def without(context: RouteContext, going: list[Checkpoint]) -> RouteContext:
        return replace(context, checkpoint_history=context.checkpoint_history[len(going) :])

    return _Kind(lambda context: _costs(context.checkpoint_history[:-keep]), without)


def _decisions(wanted: Callable[[Decision], bool]) -> _Kind:
    return _Kind(lambda context: _costs(filter(wanted, context.decisions[:-KEPT_DECISIONS])), _without_decisions)


def _without_decisions(context: RouteContext, going: list[Decision]) -> RouteContext:
    kept = _others(context.decisions, going)
    return replace(context, decisions=kept, folded=_more(context, "decision_count", going))


def _long(context: RouteContext) -> Iterator[tuple[Decision, int]]:
    """Where a rule would have to go: the decisions, also the newest, that take more than their share of the file, the
    longest first.
    """
    if not any(item.pinned for item in context.decisions[:-KEPT_DECISIONS]):
        return
    costs = [
        (item, cost) for item, cost in _costs(context.decisions) if cost > CAP // KEPT_DECISIONS and not item.pinned
    ]
    yield from sorted(costs, key=lambda one: -one[1])


def _is_done(decision: Decision) -> bool:
    return decision.status in ("done", "proposed") and not decision.pinned


def _details(keep: int, wanted: Callable[[Decision], bool] = lambda _: True) -> _Kind:
    """Why, instead of what, when and where: the journal tells it, and `ralf context why`."""

    def oldest(context: RouteContext) -> Iterator[tuple[Decision, int]]:
        for decision in context.decisions[: max(0, len(context.decisions) - keep)]:
            if not decision.pinned and not is_bare(decision) and wanted(decision):
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
    *((_shortened(stage), TARGET) for stage in STAGES),
    (_sections(KEPT_SECTIONS), TARGET),
    (_entries(KEPT_ENTRIES), TARGET),
    (_decisions(lambda decision: decision.status not in ("active", "done") and not decision.pinned), TARGET),
    (_details(0, _is_done), TARGET),  # nobody has to follow it any more; that it was asked for stays
    (_facts("commands", _passed, keep=0), TARGET),
    (_facts("paths", _only_read, keep=KEPT_FACTS["paths"]), TARGET),
    *((_facts(kind, keep=KEPT_FACTS[kind]), TARGET) for kind in _FACTS),
    (_sections(1), TARGET),
    (_details(KEPT_DECISIONS), TARGET),
    (_details(0), TARGET),
    (_decisions(_is_done), TARGET),
    *((_facts(kind, keep=FEW_FACTS[kind]), TARGET) for kind in _FACTS),
    (_entries(FEW_ENTRIES), TARGET),
    (_decisions(lambda decision: not decision.pinned), CAP),  # not one more than has to go
    *((_facts(kind, keep=0), CAP) for kind in _FACTS),
    (_Kind(_long, _without_decisions), CAP),
    (
        _decisions(lambda decision: decision.pinned),
        CAP,
    ),  # rules that alone would pass the cap: a file must stay readable
)
"""What folds, in this order, and down to how many tokens."""
