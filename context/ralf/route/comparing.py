"""What changed from one context to another, in lines for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from ralf.brief.wording import PLACES, plain, value
from ralf.document.bullets import bullet_of
from ralf.document.tree import to_tree
from ralf.model import Facts, RouteContext
from ralf.text.cleaning import one_line, trimmed

SUBJECTS = ("goal", "handover", "decisions", "work", "checkpoints", "facts", "notes", "other")
"""What is described, in this order."""

_SHORT, _MOST = 120, 1_500  # characters of one of two values, and of a text

_NAMED = 6  # facts of a kind that are named, the others are counted

_SKIPPED = {
    "handover": ("author", "model", "at", "session", "parts", "marks"),
    "decisions": ("status", "supersedes", "superseded_by", "source", "further_sources", "timestamp"),
    "work": ("now", "by_hand"),
    "notes": ("sections",),
}
"""Fields of each subject that follow from others, or that are told otherwise."""


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
    found = [*_fields(before, after), *_decisions(before, after), *_facts(before, after)]
    found.sort(key=lambda one: SUBJECTS.index(one.subject))
    return tuple(replace(one, id=value(one.id), text=trimmed(one_line(one.text), _MOST)) for one in found)


class _Field(NamedTuple):
    """A thing that a context says; `words`: that alone, "" where its value says it."""

    subject: str
    id: str
    label: str = ""
    words: str = ""


def _fields(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    was, now = dict(_values(before)), dict(_values(after))
    oldest = max(_numbers(context)[:1] for context in (before, after))
    for field in {**now, **was}:
        old, new = was.get(field) or None, now.get(field) or None
        is_moved = field.subject == "checkpoints" and not (old and new) and [_number(field.id)] < oldest
        if old != new and not is_moved:
            what = "added" if not old else "gone" if not new else "changed"
            yield Told(field.subject, what, field.id, field.label + (field.words or _both(old, new)))


def _values(context: RouteContext) -> Iterator[tuple[_Field, Any]]:
    last, body = context.handover.last, to_tree(context.body)
    yield _Field("goal", "goal"), context.goal
    yield from _of("handover", to_tree(last) if last is not None else {})
    yield from ((_Field("handover", entry.id), entry.text) for entry in context.handover.kept)
    yield from _of("work", to_tree(context.active_work))
    yield from _of("notes", {PLACES.get(key, key): found for key, found in body.items()})
    yield from _of("other", context.extra)
    texts = {one.number: one.text for one in context.body.sections}
    for number, one in zip(_numbers(context), context.checkpoint_history, strict=True):
        title = value(one.summary_ref.partition(": ")[2] or one.summary_ref.lstrip("# "))
        yield _Field("checkpoints", one.checkpoint_id, words=title), [one.summarizer, texts.get(number)]
    own = (one for one in context.body.sections if one.number is None)
    yield from ((_Field("checkpoints", f"### {one.title}"), one.text) for one in own)


def _of(subject: str, tree: Mapping[str, Any]) -> Iterator[tuple[_Field, Any]]:
    """The fields of a tree, and each item of those that are lists."""
    for key, found in tree.items():
        if key not in _SKIPPED.get(subject, ()):
            label, items = f"{plain(key)}: ", found if isinstance(found, list) else ()
            yield from ((_Field(subject, key, label, _item(item)), item) for item in items)
            if not isinstance(found, list):
                yield _Field(subject, key, label), found


def _item(item: Any) -> str:
    """A to-do, a step or a file as a person reads it."""
    tree = item if isinstance(item, dict) else {"content": item}
    status = f" [{tree['status']}]" if "status" in tree else ""
    what = next(filter(None, map(tree.get, ("content", "description", "path"))), item)
    return value(f"{value(what)}{status}" + (f" → {tree['result']}" if tree.get("result") else ""))


def _numbers(context: RouteContext) -> list[int]:
    """The numbers of its checkpoints, oldest first."""
    return [_number(entry.checkpoint_id) for entry in context.checkpoint_history]


def _number(name: str) -> int:
    """The number of a checkpoint, `cp-012`; of another section one that no checkpoint reaches."""
    digits = name.removeprefix("cp-")
    return int(digits) if digits.isdecimal() and len(digits) < 10 else 10**10


def _both(old: Any, new: Any) -> str:
    return f"{value(old, _SHORT)} → {value(new, _SHORT)}" if old else value(new)


def _decisions(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    was, now = ({item.id: item for item in context.decisions} for context in (before, after))
    yield from (Told("decisions", "gone", id_, value(was[id_].decision)) for id_ in was if id_ not in now)
    for id_, item in now.items():
        old = was.get(id_)
        is_active = item.status == "active"
        if old is None:
            words = bullet_of(replace(item, id="", status="active", superseded_by="", origin="")).removeprefix("- : ")
            words += f" (replaces {item.supersedes})" if item.supersedes else ""
            yield Told("decisions", "added" if is_active else item.status, id_, words)
            continue
        if old.status != item.status:
            by = f" ({item.status} by {item.superseded_by})" if item.superseded_by else ""
            yield Told("decisions", "active again" if is_active else item.status, id_, f"{value(item.decision)}{by}")
        one, other = to_tree(old), to_tree(item)
        for key in dict.fromkeys((*other, *one)):
            if key not in _SKIPPED["decisions"] and one.get(key) != other.get(key):
                yield Told("decisions", "changed", id_, f"{plain(key)}: {_both(one.get(key), other.get(key))}")


def _facts(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    is_folded = after.folded.fact_count > before.folded.fact_count
    for kind in (field.name for field in fields(Facts) if field.name != "extra"):
        was, now = (dict.fromkeys(map(_name, getattr(context.facts, kind))) for context in (before, after))
        for what, one, other in (("added", now, was), ("gone", {} if is_folded else was, now)):
            if names := [name for name in one if name not in other]:
                shown = ", ".join(trimmed(one_line(name), 80) for name in names[-_NAMED:])
                more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
                yield Told("facts", what, kind, f"{len(names)} {kind if len(names) > 1 else kind[:-1]}: {shown}{more}")


def _name(fact: Any) -> str:
    return fact if isinstance(fact, str) else str(next(iter(to_tree(fact).values()), ""))
