"""What happened to a route, record by record, in words; and the way back to an earlier checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ralf import project as projects, routing
from ralf.brief import wording
from ralf.brief.wording import place, value
from ralf.facts.progress import UNSAID
from ralf.format import merge
from ralf.format.codec import Tree, to_tree
from ralf.model import Checkpoint, RouteContext
from ralf.route import fold, history
from ralf.route.history import Difference
from ralf.route.write import open_route
from ralf.storage.journal import Record, understood
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line

# ---- the records in words ----


_MOST = 4  # places of an edit, or decisions of a checkpoint, that are named


@dataclass(frozen=True, slots=True)
class Event:
    """One record of a route.

    kind   checkpoint, refinement, unrefined, decision, edit, drop, forget, revert, import …
    id     what it brought or is about: cp-002, DEC-003, "" for nothing that has a label
    time   ISO 8601, "" where the record has none
    who    user, agent, human-edit, import, or the name of a model
    text   what it brought, on one line
    foreign  this user's ralf did not write the record: of what stands in it only that is told
    """

    revision: int
    kind: str
    id: str
    time: str
    who: str
    text: str
    foreign: bool = False


def log(route: str, *, limit: int | None = None, root: str | os.PathLike[str] | None = None) -> list[Event]:
    """What happened to a route, newest first; `limit`: the newest so many.

    Reads the whole journal. Raises RouteNotFound, UsageError (a refused name), DamagedJournal.
    """
    project = projects.find(root)
    found = routing.existing(project, route)
    words: dict[str, str] = {}
    with understood(found):
        events = [_event(label, record, words) for label, record in history.records(project, found)]
    return events[::-1][:limit]


def _event(label: str, record: Record, words: dict[str, str]) -> Event:
    """What a record brought; `words`: of each decision so far, by its label, added to."""
    if record.foreign:
        return Event(record.revision, "foreign", "", "", wording.ORIGIN, wording.LABEL, foreign=True)
    payload = record.payload
    told = _TOLD.get(record.kind, _other)
    id_, time, who, text = told(payload, label)
    if record.kind == "drop":
        text = ": ".join(filter(None, (words.get(id_, ""), text)))
    words.update(_decisions(payload))
    return Event(record.revision, record.kind, id_, time, who, value(text) if text else "")


_Told = tuple[str, str, str, str]


def _checkpoint(payload: Mapping[str, Any], label: str) -> _Told:
    time = str((*payload.get("period", ()), "", "")[1])
    return label, time, "agent", "; ".join(filter(None, [str(payload.get("title", "")), _decided(payload)]))


def _refinement(payload: Mapping[str, Any], _: str) -> _Told:
    amended = [str(item.get("id", "")) for item in payload.get("amended", ())]
    parts = [str(payload.get("title", "")), _decided(payload), f"changed {_few(amended)}" if amended else ""]
    return *_of_model(payload), f"improved: {'; '.join(filter(None, parts))}"


def _unrefined(payload: Mapping[str, Any], _: str) -> _Told:
    return *_of_model(payload), f"not improved: {payload.get('reason', '')}"


def _of_model(payload: Mapping[str, Any]) -> tuple[str, str, str]:
    return tuple(str(payload.get(key, "")) for key in ("refines", "called", "summarizer"))  # type: ignore[return-value]


def _attempt(payload: Mapping[str, Any], _: str) -> _Told:
    runs = payload.get("attempts") or [{}]
    told = [str(run.get("outcome") or "") or (UNSAID if not run.get("said") else "") for run in runs]
    said = str(runs[-1].get("said") or "")
    text = ": ".join(filter(None, (_few(told) if len(runs) > 1 else told[0], said if len(runs) == 1 else "")))
    return _few([str(run.get("run", "")) for run in runs]), str(payload.get("timestamp", "")), "agent", text


def _decision(payload: Mapping[str, Any], _: str) -> _Told:
    item = payload.get("decision") or {}
    replaces = f" (replaces {item['supersedes']})" if item.get("supersedes") else ""
    return *(str(item.get(key, "")) for key in ("id", "timestamp", "origin")), f"{item.get('decision', '')}{replaces}"  # type: ignore[return-value]


def _edit(payload: Mapping[str, Any], _: str) -> _Told:
    who = str(payload.get("origin") or "human-edit")
    lost = "what the file still showed of lost records: " if payload.get("lost") else ""
    return "", str(payload.get("timestamp", "")), who, lost + "; ".join(_places(payload.get("changes", ())))


def _places(changes: Any) -> Iterator[str]:
    """What an edit changed, each item or field once, the first few by name."""
    places: dict[str, str] = {}
    for change in changes:
        at = [str(key) for key in change["at"]]
        if "order" not in change and change.get("removed") != "empty":
            places.setdefault(place(at), _done(at, change))
    told = [f"{done}{name}" for name, done in places.items()] or ["order of lists"]
    yield from told[:_MOST]
    if len(told) > _MOST:
        yield f"and {len(told) - _MOST} more"


def _done(at: list[str], change: Mapping[str, Any]) -> str:
    if change.get("removed"):
        return "removed "
    return "added " if len(at) == 2 and at[0] == "decisions" else ""


def _import(payload: Mapping[str, Any], _: str) -> _Told:
    document = payload.get("document", {})
    header = document.get("context_checkpoint", {})
    text = f"{len(document.get('decisions', ()))} decisions, {header.get('checkpoint_count', 0)} checkpoints"
    return "", str(header.get("last_checkpoint", "")), "import", text


def _revert(payload: Mapping[str, Any], label: str) -> _Told:
    because = f": {payload['because']}" if payload.get("because") else ""
    return label, str(payload.get("timestamp", "")), "user", f"{payload.get('title', '')}{because}"


def _drop(payload: Mapping[str, Any], _: str) -> _Told:
    label = str(payload.get("tombstone", {}).get("id", ""))
    return label, str(payload.get("timestamp", "")), "user", str(payload.get("because", ""))


def _forget(payload: Mapping[str, Any], _: str) -> _Told:
    ids = _few([str(one) for one in payload.get("ids", ())])
    return ids, str(payload.get("timestamp", "")), "user", "its words were purged" if ids else "a text was purged"


def _other(payload: Mapping[str, Any], _: str) -> _Told:
    """A kind that this module has no words for: what its payload says of itself."""
    ids = payload.get("id") or payload.get("ids") or ""
    named = _few([str(one) for one in ids]) if isinstance(ids, list) else str(ids)
    time = str(payload.get("timestamp", ""))
    return named, time, str(payload.get("origin", "")), str(payload.get("because", ""))


def _decisions(payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The decisions that a record brings: label and words."""
    document = payload.get("document") or {}
    for item in (*payload.get("decisions", ()), *document.get("decisions", ()), payload.get("decision") or {}):
        if item:
            yield str(item.get("id", "")), str(item.get("decision", ""))


def _decided(payload: Mapping[str, Any]) -> str:
    labels = [str(item.get("id", "")) for item in payload.get("decisions", ())]
    return f"decided {_few(labels)}" if labels else ""


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


_TOLD = {
    "checkpoint": _checkpoint,
    "refinement": _refinement,
    "unrefined": _unrefined,
    "attempt": _attempt,
    "decision": _decision,
    "edit": _edit,
    "import": _import,
    "drop": _drop,
    "forget": _forget,
    "revert": _revert,
}


# ---- revert: a new record and a new checkpoint, never a removal ----


@dataclass(frozen=True, slots=True)
class Reverted:
    """What a revert came to.

    checkpoint  the new checkpoint that says so; None where nothing was done: a dry run, or the route is so already
    to          what it went back to: `cp-002` or `r12`
    difference  what changed by it, or would change
    warnings    what the caller should know of; `damage`: what is wrong with the route file, which then stays as it is
    """

    route: str
    to: str
    checkpoint: Checkpoint | None
    difference: Difference
    warnings: tuple[str, ...] = ()
    damage: str = ""


def revert(
    route: str,
    to: str,
    *,
    because: str = "",
    dry_run: bool = False,
    root: str | os.PathLike[str] | None = None,
) -> Reverted:
    """Give a route the content that it had right after a checkpoint or revision; durable when this returns.

    to       `cp-002`, `2`, or `r12`; `because`: why
    dry_run  only say what would change

    Edits that wait in the route file are taken in first, so that the journal has them. What was taken of transcripts is
    not taken again, no label is given twice, and all that is undone stays in the journal: a revert to the revision
    before this one brings it back. Raises RouteNotFound, NotFound (no such checkpoint or revision), UsageError (a
    refused name), Busy, DamagedJournal, OSError.
    """
    project = projects.find(root)
    found = routing.existing(project, cleaning.check(route))
    moment = history.label(to)
    if dry_run:
        then = history.contexts_at(project, found, [moment])[moment]
        now = history.at_present(project, found)
        would = fold.apply(
            now,
            Record(
                now.revision + 1,
                fold.REVERT,
                revert_payload(now, then, moment, because=because, timestamp=_now()),
            ),
        )
        told = history.between(project, found, (history.NOW, now), (moment, now if is_as(now, then) else would))
        return Reverted(found, moment, None, told)
    with open_route(project, found) as writer:
        writer.absorb_edits()
        then = history.contexts_at(project, found, [moment])[moment]
        now = writer.context
        if is_as(now, then):
            told = history.between(project, found, (history.NOW, now), (moment, now))
            return Reverted(found, moment, None, told, tuple(writer.warnings), writer.damage)
        payload = revert_payload(now, then, moment, because=because, timestamp=_now())
        after = writer.append(fold.REVERT, payload, id=f"revert-{now.revision}-{then.revision}")
        writer.render_file()
        warnings, damage = tuple(writer.warnings), writer.damage
    told = history.between(project, found, (f"r{now.revision}", now), (f"r{after.revision}", after))
    return Reverted(found, moment, after.checkpoint_history[-1], told, warnings, damage)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_STAYS = ("context_checkpoint", "forgotten")
"""What is no content: the books, and what was purged, which no revert brings back."""


def revert_payload(
    now: RouteContext, then: RouteContext, moment: str, *, because: str, timestamp: str
) -> dict[str, Any]:
    """The record that gives `now` the content of `then`, which is named by `moment`: `cp-002` or `r12`."""
    named = f"checkpoint {int(moment[3:])}" if moment.startswith("cp-") else f"revision {then.revision}"
    because = one_line(clean(because))
    return {
        "to": moment,
        "to_revision": then.revision,
        "number": fold.next_number(now),
        "timestamp": timestamp,
        "title": f"Reverted to {named}",
        "because": because,
        "text": _text(now, then, because),
        "changes": changes_back(now, then),
    }


def _text(now: RouteContext, then: RouteContext, because: str) -> str:
    """The section of a revert. It names what went and came, and repeats none of it: that may be why it went."""
    lines = [f"- Because: {because}"] if because else []
    for word, before, after in (("Undone", now, then), ("Back", then, now)):
        entries = {entry.checkpoint_id for entry in after.checkpoint_history}
        decisions = {item.id for item in after.decisions}
        found = [entry.checkpoint_id for entry in before.checkpoint_history if entry.checkpoint_id not in entries]
        found += [item.id for item in before.decisions if item.id not in decisions]
        if found:
            lines.append(f"- {word}: {', '.join(map(one_line, found))}")
    lines.append(f"- To take this back: `ralf context revert {now.route} r{now.revision}`")
    return "\n".join(lines)


def changes_back(now: RouteContext, then: RouteContext) -> list[merge.Change]:
    """The changes that give `now` the content of `then`; how the file is written down (line ends) is no content."""
    layout = {name: getattr(now.body, name) for name in ("bom", "crlf") if hasattr(now.body, name)}
    return merge.diff(_content(now), _content(replace(then, body=replace(then.body, **layout))))


def is_as(now: RouteContext, then: RouteContext) -> bool:
    """Whether two contexts hold the same but for what reverts say of themselves."""
    return not changes_back(without_reverts(now), without_reverts(then))


def without_reverts(context: RouteContext) -> RouteContext:
    """A context without the entries and sections of its reverts."""
    own = {entry.checkpoint_id for entry in context.checkpoint_history if entry.reason == fold.REVERT}
    sections = tuple(s for s in context.body.sections if s.number is None or f"cp-{s.number:03d}" not in own)
    entries = tuple(entry for entry in context.checkpoint_history if entry.checkpoint_id not in own)
    return replace(context, checkpoint_history=entries, body=replace(context.body, sections=sections))


def _content(context: RouteContext) -> Tree:
    return {key: inner for key, inner in to_tree(context).items() if key not in _STAYS}
