"""What a revert makes of a route: pure functions of the record `revert`.

The content goes back: decisions, work, goal, facts, sections, notes, tombstones. The bookkeeping does not: revision,
lineage, spend, tokens, where sessions stand, and the counters of labels, so that none is given twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ralf import merge
from ralf.context import RouteContext
from ralf.model import Checkpoint, Section
from ralf.text import as_section, clean, one_line
from ralf.tree import Tree, from_tree, to_tree

KIND = "revert"
_STAYS = ("context_checkpoint", "forgotten")
"""What is no content: the books, and what was purged, which no revert brings back."""


def payload(now: RouteContext, then: RouteContext, moment: str, *, because: str, timestamp: str) -> dict[str, Any]:
    """The record that gives `now` the content of `then`, which is named by `moment`: `cp-002` or `r12`."""
    named = f"checkpoint {int(moment[3:])}" if moment.startswith("cp-") else f"revision {then.revision}"
    because = one_line(clean(because))
    return {
        "to": moment,
        "to_revision": then.revision,
        "number": next_number(now),
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
    own = {entry.checkpoint_id for entry in context.checkpoint_history if entry.reason == KIND}
    sections = tuple(s for s in context.body.sections if s.number is None or f"cp-{s.number:03d}" not in own)
    entries = tuple(entry for entry in context.checkpoint_history if entry.checkpoint_id not in own)
    return replace(context, checkpoint_history=entries, body=replace(context.body, sections=sections))


def next_number(context: RouteContext) -> int:
    """The number of a route's next checkpoint."""
    return max([context.checkpoint_count, *(section.number or 0 for section in context.body.sections)]) + 1


def apply(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with its content put back, and a checkpoint of its own that says so."""
    header = context.context_checkpoint
    tree = merge.apply(to_tree(context), payload.get("changes", ()))
    purged = {stone.get("id") for stone in tree.get("forgotten", ())}
    back = from_tree(RouteContext, tree)
    back = replace(back, decisions=tuple(item for item in back.decisions if item.id not in purged))
    number = int(payload.get("number", 0)) or next_number(context)
    title = one_line(str(payload.get("title", "")))
    time = str(payload.get("timestamp", ""))
    entry = Checkpoint(
        checkpoint_id=f"cp-{number:03d}",
        timestamp=time,
        summary_ref=f"### Checkpoint {number}: {title}",
        reason=KIND,
    )
    head = f"**Time:** {time}\n" if time else ""
    text = as_section(str(payload.get("text", "")))
    section = Section(number=number, title=title, text=f"{head}**Tokens:** 0\n\n{text}".rstrip("\n"))
    return replace(
        back,
        context_checkpoint=replace(header, checkpoint_count=max(header.checkpoint_count, number)),
        checkpoint_history=(*back.checkpoint_history, entry),
        body=replace(back.body, sections=(section, *back.body.sections)),
    )


def _content(context: RouteContext) -> Tree:
    return {key: inner for key, inner in to_tree(context).items() if key not in _STAYS}
