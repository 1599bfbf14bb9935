"""What changed from one context to another, in lines for a reader."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ralf.brief.wording import PLACES, plain, value
from ralf.document.tree import to_tree
from ralf.model import FEW_ENTRIES, Decision, Facts, RouteContext
from ralf.text.cleaning import one_line, trimmed

SUBJECTS = ("goal", "handover", "decisions", "work", "checkpoints", "facts", "notes", "other")
"""What is described, in this order."""

_SHORT, _MOST = 120, 1_500  # characters of one of two values, and of a text

_NAMED = 6  # facts of a kind that are named, the others are counted

_LINKS = ("status", "supersedes", "superseded_by", "source", "further_sources", "timestamp")

_OF_WRITING = ("author", "model", "at", "session", "parts", "marks")


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that changed.

    subject  one of `SUBJECTS`
    what     added, changed, gone; of decisions also superseded, reversed, done, dropped, active again
    id       DEC-003, cp-002, the name of a field, a kind of facts
    text     in words, on one line
    """

    subject: str
    what: str
    id: str
    text: str


def in_words(before: RouteContext, after: RouteContext) -> tuple[Told, ...]:
    """What changed, subject by subject; what the cap has moved out of the file has not changed."""
    found = [
        *_fields(before, after),
        *_decisions(before.decisions, after.decisions),
        *_checkpoints(before, after),
        *_facts(before, after),
    ]
    found.sort(key=lambda one: SUBJECTS.index(one.subject))
    return tuple(replace(one, id=value(one.id), text=trimmed(one_line(one.text), _MOST)) for one in found)


# ---- fields ----

_Field = tuple[str, str, str, str]
"""Subject, id, the words before the value, and of an item of a list the item in words."""


def _fields(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    was, now = dict(_values(before)), dict(_values(after))
    for field in dict.fromkeys((*now, *was)):
        old, new = was.get(field), now.get(field)
        if (old or None) != (new or None):
            subject, id_, label, item = field
            yield Told(subject, _kind(old, new), id_, label + (item or _from_to(old, new)))


def _values(context: RouteContext) -> Iterator[tuple[_Field, Any]]:
    yield ("goal", "goal", "", ""), context.goal
    last, body = context.handover.last, to_tree(context.body)
    for key, found in to_tree(last).items() if last is not None else ():
        if key not in _OF_WRITING:
            yield ("handover", key, f"{plain(key)}: ", ""), found
    for entry in context.handover.kept:
        yield ("handover", entry.id, "", ""), entry.text
    for key, found in to_tree(context.active_work).items():
        if isinstance(found, list):
            yield from ((("work", key, f"{plain(key)}: ", item), item) for item in map(_item, found))
        elif key != "now":  # it follows from the others
            yield ("work", key, f"{plain(key)}: ", ""), found
    for key, name in PLACES.items():
        yield ("notes", name, f"{name}: ", ""), body.get(key)
    for key, found in context.extra.items():
        yield ("other", key, f"{key}: ", ""), found


def _item(item: Any) -> str:
    """A to-do, a step or a file as a person reads it."""
    if not isinstance(item, dict):
        return value(item)
    status = f" [{item['status']}]" if "status" in item else ""
    what = item.get("content") or item.get("description") or item.get("path") or value(item)
    result = f" → {item['result']}" if item.get("result") else ""
    return value(f"{what}{status}{result}")


def _kind(was: Any, now: Any) -> str:
    return "added" if not was else "gone" if not now else "changed"


def _from_to(was: Any, now: Any) -> str:
    return f"{value(was, _SHORT)} → {value(now, _SHORT)}" if was else value(now)


# ---- items ----


def _decisions(before: Sequence[Decision], after: Sequence[Decision]) -> Iterator[Told]:
    was, now = _numbered(before), _numbered(after)
    for key, item in now.items():
        if key not in was:
            yield Told("decisions", "added" if item.status == "active" else item.status, item.id, _claim(item))
        elif item != was[key]:
            yield from _decision(was[key], item)
    yield from (Told("decisions", "gone", item.id, value(item.decision)) for key, item in was.items() if key not in now)


def _numbered(decisions: Sequence[Decision]) -> dict[tuple[str, int], Decision]:
    """Decisions by their id, and which of those that have it: whoever edits the file may copy one."""
    counts: Counter[str] = Counter()
    found = {}
    for item in decisions:
        found[item.id, counts[item.id]] = item
        counts[item.id] += 1
    return found


def _decision(before: Decision, after: Decision) -> Iterator[Told]:
    if (before.status, before.superseded_by) != (after.status, after.superseded_by):
        what = after.status if before.status != after.status else "changed"
        by = f" ({value(after.status)} by {value(after.superseded_by)})" if after.superseded_by else ""
        what = "active again" if what == "active" else what
        yield Told("decisions", what, after.id, f"{value(after.decision)}{by}")
    one, other = to_tree(before), to_tree(after)
    for key in dict.fromkeys((*other, *one)):
        if key not in _LINKS and one.get(key) != other.get(key):
            yield Told("decisions", "changed", after.id, f"{plain(key)}: {_from_to(one.get(key), other.get(key))}")


def _claim(item: Decision) -> str:
    rejected = f"Rejected: {value(list(item.alternatives))}" if item.alternatives else ""
    reason = f"Because: {value(item.rationale)}" if item.rationale else ""
    instead = f"Replaces {value(item.supersedes)}" if item.supersedes else ""
    parts = filter(None, [value(item.decision), reason, rejected, instead])
    return " ".join(part if part.endswith((".", "!", "?", "…")) else f"{part}." for part in parts)


def _checkpoints(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    """Checkpoints and sections; one that is older than all others is only moved out of the file by the cap."""
    was, now = _sections(before), _sections(after)
    for name in dict.fromkeys((*now, *was)):
        others = now if name not in now else was
        is_moved = name not in others and len(others) >= FEW_ENTRIES and _number(name) < min(map(_number, others))
        if was.get(name) != now.get(name) and not is_moved:
            yield Told("checkpoints", _kind(was.get(name), now.get(name)), name, (now.get(name) or was[name])[0])


def _sections(context: RouteContext) -> dict[str, tuple[str, ...]]:
    """What stands under the name of each checkpoint and of each other section; the first is said of it."""
    texts = {one.number: one.text for one in context.body.sections}
    found = {
        one.checkpoint_id: (
            value(one.summary_ref.partition(": ")[2] or one.summary_ref.lstrip("# ")),
            one.summarizer,
            texts.get(_number(one.checkpoint_id), ""),
        )
        for one in context.checkpoint_history
    }
    return found | {f"### {one.title}": (value(one.text),) for one in context.body.sections if one.number is None}


def _number(name: str) -> int:
    """The number of a checkpoint, `cp-012`; of another section one that no checkpoint reaches."""
    digits = name.removeprefix("cp-")
    return int(digits) if digits.isdecimal() and len(digits) < 10 else 10**10


def _facts(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    for kind in (field.name for field in fields(Facts) if field.name != "extra"):
        was, now = (_known(getattr(context.facts, kind)) for context in (before, after))
        groups = {"added": now.keys() - was.keys(), "gone": was.keys() - now.keys()}
        groups["changed"] = {name for name in now.keys() & was.keys() if now[name] != was[name]}
        if after.folded.fact_count > before.folded.fact_count:
            groups["gone"] = set()
        for what, those in groups.items():
            if names := [name for name in (now if what != "gone" else was) if name in those]:
                yield Told("facts", what, kind, _counted(kind, names))


def _counted(kind: str, names: Collection[str]) -> str:
    shown = ", ".join(trimmed(one_line(name), 80) for name in [*names][-_NAMED:])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} {kind if len(names) > 1 else kind[:-1]}: {shown}{more}"


def _known(facts: Sequence[Any]) -> dict[str, str]:
    """The facts of a kind by what they are of, with what is said of them."""
    trees = [{"name": one} if isinstance(one, str) else to_tree(replace(one, last="")) for one in facts]
    return {
        str(next(iter(tree.values()), "")): json.dumps(tree | {"runs": 0, "failures": 0}, sort_keys=True)
        for tree in trees
    }
