"""What changed from one context to another, in lines for a reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ralf.brief.wording import PLACES, plain, value
from ralf.document.tree import to_tree
from ralf.model import Checkpoint, Decision, Facts, RouteContext
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
    found = [*_fields(before, after), *_decisions(before.decisions, after.decisions), *_facts(before, after)]
    found.sort(key=lambda one: SUBJECTS.index(one.subject))
    return tuple(replace(one, id=value(one.id), text=trimmed(one_line(one.text), _MOST)) for one in found)


# ---- fields ----

_Field = tuple[str, str, str, str]
"""Subject, id, the words before the value, and of an item of a list the item in words."""


def _fields(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    was, now = dict(_values(before)), dict(_values(after))
    oldest = max(min(map(_number, context.checkpoint_history), default=0) for context in (before, after))
    for field in {**now, **was}:
        old, new = was.get(field), now.get(field)
        subject, id_, label, item = field
        is_moved = subject == "checkpoints" and not (old and new) and _digits(id_) < oldest
        if (old or None) != (new or None) and not is_moved:
            what = "added" if not old else "gone" if not new else "changed"
            both = f"{value(old, _SHORT)} → {value(new, _SHORT)}" if old else value(new)
            yield Told(subject, what, id_, label + (item or both))


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
    texts = {one.number: one.text for one in context.body.sections}
    for one in context.checkpoint_history:
        title = value(one.summary_ref.partition(": ")[2] or one.summary_ref.lstrip("# "))
        yield ("checkpoints", one.checkpoint_id, "", title), [one.summarizer, texts.get(_number(one), "")]
    for section in context.body.sections:
        if section.number is None:
            yield ("checkpoints", f"### {section.title}", "", ""), section.text
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


def _number(entry: Checkpoint) -> int:
    return _digits(entry.checkpoint_id)


def _digits(name: str) -> int:
    """The number of a checkpoint, `cp-012`; of another section one that no checkpoint reaches."""
    digits = name.removeprefix("cp-")
    return int(digits) if digits.isdecimal() and len(digits) < 10 else 10**10


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
            yield Told(
                "decisions",
                "changed",
                after.id,
                f"{plain(key)}: {value(one.get(key), _SHORT)} → {value(other.get(key), _SHORT)}",
            )


def _claim(item: Decision) -> str:
    rejected = f"Rejected: {value(list(item.alternatives))}" if item.alternatives else ""
    reason = f"Because: {value(item.rationale)}" if item.rationale else ""
    instead = f"Replaces {value(item.supersedes)}" if item.supersedes else ""
    parts = filter(None, [value(item.decision), reason, rejected, instead])
    return " ".join(part if part.endswith((".", "!", "?", "…")) else f"{part}." for part in parts)


def _facts(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    is_folded = after.folded.fact_count > before.folded.fact_count
    for kind in (field.name for field in fields(Facts) if field.name != "extra"):
        was, now = (dict.fromkeys(map(_name, getattr(context.facts, kind))) for context in (before, after))
        added, gone = [one for one in now if one not in was], [one for one in was if one not in now]
        for what, names in (("added", added), ("gone", [] if is_folded else gone)):
            if names:
                shown = ", ".join(trimmed(one_line(name), 80) for name in names[-_NAMED:])
                more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
                yield Told("facts", what, kind, f"{len(names)} {kind if len(names) > 1 else kind[:-1]}: {shown}{more}")


def _name(fact: Any) -> str:
    return fact if isinstance(fact, str) else str(next(iter(to_tree(fact).values()), ""))
