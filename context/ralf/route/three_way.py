"""Values of a shared route file, merged three ways: what they were, are in the older version and in the newer. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from ralf.format.codec import to_tree
from ralf.model import MOST_SOURCES, ActiveWork, Comment, Decision, Facts, Source
from ralf.route import cap

NOTHING: Any = object()
"""What stands where there was no value."""

_RANKS = {status: rank for rank, status in enumerate(("active", "proposed", "done", "superseded", "reversed"), 1)}

_HIGHEST = len(_RANKS) + 1  # dropped, and what only a later version knows

_DETAILS = ("timestamp", "rationale", "alternatives", "source")
"""What the cap takes from old decisions: that a file lacks it says nothing."""

UNMARKED_WORK = frozenset(
    "last_request last_statement last_output attempts last_progress outcome last_runs origin running git tried"
    " now".split()
)
"""Fields of the active work that each checkpoint sets: the newer version's stand, and that is all."""


def merged(base: Any, older: Any, newer: Any) -> tuple[Any, bool]:
    """The value of two that is not what it was; where both are not, the newer version's, and whether that is so."""
    if older == newer or newer == base:
        return older, False
    if older == base:
        return newer, False
    return newer, True


def of(item: Any, name: str) -> Any:
    """A field, `NOTHING` of an item that there is not."""
    return NOTHING if item is None else getattr(item, name)


def plain(value: Any) -> Any:
    """A value as `unresolved` holds it."""
    if value is NOTHING or value is None:
        return None
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    return to_tree(value) if hasattr(value, "__dataclass_fields__") else value


# ---- decisions ----


def rank(status: str) -> int:
    """Of two statuses that a decision was given at the same time the one of the higher rank stands."""
    return _RANKS.get(status, _HIGHEST)


def origin(base: Any, older: str, newer: str) -> str:
    """Whose an item is: what a clone has accepted of another one is an import there, and nowhere else."""
    named = [one for one in (older, newer) if one and one != "import"]
    if len(set(named)) > 1:
        return str(merged(base, older, newer)[0])
    return named[0] if named else older or newer


def with_details(item: Decision | None, base: Decision | None) -> Decision | None:
    """A decision with the details that the cap took from it on one side, as they were."""
    if item is None or base is None or not cap.is_bare(item) or cap.is_bare(base):
        return item
    details: dict[str, Any] = {name: getattr(base, name) for name in _DETAILS}
    return replace(item, **details, extra={**base.extra, **item.extra})


def is_unchanged(item: Decision, base: Decision) -> bool:
    """Whether a decision says what it said."""
    names = ("kind", "decision", "rationale", "status", "alternatives")
    return all(getattr(item, name) == getattr(base, name) for name in names)


def sources(base: Decision | None, older: Decision, newer: Decision) -> dict[str, Any]:
    """Where a decision was said, by both."""
    first = merged(of(base, "source"), older.source, newer.source)[0]
    found: dict[str, Source] = {}
    for item in (older, newer):
        for one in (item.source, *item.further_sources):
            if one is not None and one != first:
                found[json.dumps(to_tree(one), sort_keys=True)] = one
    return {"source": first, "further_sources": tuple(found.values())[: MOST_SOURCES - 1]}


# ---- items that are counted and extracted ----


def merged_item(base: Any, older: Any, newer: Any) -> Any:
    """An item, field by field, the newer version's where both changed it; that of one where the other lacks it."""
    if older is None or newer is None:
        return older if newer is None else newer
    names = [field.name for field in fields(newer) if field.name != "origin"]
    values = {name: merged(of(base, name), getattr(older, name), getattr(newer, name))[0] for name in names}
    return replace(newer, **values, **_origin_of(base, older, newer))


def united(base: Sequence[Any], older: Sequence[Any], newer: Sequence[Any], key: Callable[[Any], Any]) -> Any:
    """The items of both; one that was there and that one side has taken out is gone. Of one that both have, as the side
    has it that changed it.
    """
    was, one, other = ({key(item): item for item in items} for items in (base, older, newer))
    made = []
    for name in dict.fromkeys((*one, *other)):
        if name in one and name in other:
            made.append(merged(was.get(name), one[name], other[name])[0])
        elif name not in was:
            made.append(one[name] if name in one else other[name])
    return tuple(made)


def work(base: ActiveWork | None, older: ActiveWork, newer: ActiveWork) -> tuple[ActiveWork, dict[str, Any]]:
    """Where the work stands, and the fields that both changed, each with the value that does not stand."""
    values: dict[str, Any] = {}
    both: dict[str, Any] = {}
    fresh = ActiveWork()
    for field in fields(ActiveWork):
        name = field.name
        was, one, other = of(base, name), getattr(older, name), getattr(newer, name)
        if name == "extra":
            values[name] = {**one, **other}
        elif isinstance(one, tuple) and name not in UNMARKED_WORK:
            values[name] = united(() if was is NOTHING else was, one, other, _work_key)
        else:
            values[name], is_both = merged(was, one, other)
            if is_both and name not in UNMARKED_WORK and one != getattr(fresh, name):
                both[name] = plain(one)
    return ActiveWork(**values), both


def _work_key(item: Any) -> Any:
    for name in ("content", "path", "description"):
        if hasattr(item, name):
            return getattr(item, "step", None), getattr(item, name)
    return item


def facts(older: Facts, newer: Facts) -> Facts:
    """All facts of both, each once: what one no longer has may be what its cap has folded."""
    values: dict[str, Any] = {}
    for field in fields(Facts):
        one, other = getattr(older, field.name), getattr(newer, field.name)
        if field.name == "extra":
            values[field.name] = {**one, **other}
            continue
        known = {_fact_key(fact): fact for fact in one}
        made = {key: _newer_fact(known.get(key), fact) for fact in other for key in [_fact_key(fact)]}
        values[field.name] = tuple((known | made).values())
    values["names"] = values["names"][-cap.KEPT_FACTS["names"] :]
    return Facts(**values)


def _fact_key(fact: Any) -> Any:
    if isinstance(fact, str):
        return fact
    tree = to_tree(fact)
    named = ("path", "error", "commit", "request")
    return next(((name, tree[name]) for name in named if name in tree), ("", tree.get("command"), tree.get("result")))


def _newer_fact(older: Any, newer: Any) -> Any:
    """A fact that both have: the newer version's, with all that was done to a path."""
    if older is None or isinstance(newer, str):
        return newer
    values = _origin_of(None, older, newer)
    if hasattr(newer, "did"):
        values["did"] = tuple(dict.fromkeys((*older.did, *newer.did)))
    return replace(newer, **values) if values else newer


def _origin_of(base: Any, older: Any, newer: Any) -> dict[str, Any]:
    """The origin of an item that both have, as a field; {} of one that has none."""
    if not hasattr(newer, "origin"):
        return {}
    return {"origin": origin(of(base, "origin"), older.origin, newer.origin)}


def comments(older: Sequence[Comment], newer: Sequence[Comment]) -> tuple[Comment, ...]:
    """The comments of both: those above one key stand together."""
    if older == newer:
        return tuple(older)
    lines: dict[str, dict[str, None]] = {}
    for comment in (*older, *newer):
        lines.setdefault(comment.key, {}).update(dict.fromkeys(comment.text.split("\n")))
    return tuple(Comment(key, "\n".join(said)) for key, said in sorted(lines.items()))
