"""Whether a model's part of a checkpoint may stand: the refined one has to keep what the embedded one had."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralf.context import RouteContext
from ralf.proving import probe
from ralf.proving.items import Item
from ralf.proving.probe import Recall
from ralf.refining.refinement import body_of, entry_of, section_of
from ralf.summarizers.patch import MOST_SECTION
from ralf.summarizers.support import Support, claims
from ralf.tree import to_tree

MOST_LOST = 0.2
"""Share of the names, paths and numbers of the embedded section that the refined checkpoint may lose."""

_JUDGED = tuple(probe.FLOORS)
_OURS = re.compile(r"(?m)^(?:[->*\s]+)?(?:\w+:\*\*)?\s*")


def accept(before: RouteContext, after: RouteContext, checkpoint_id: str, items: Sequence[Item] = ()) -> str:
    """Why a refined checkpoint is refused, "" when it may stand.

    before, after  the route without and with the record that refines the checkpoint
    items          what the checkpoint's segment holds, by `items.seen`

    What the embedded section named has to stand in the refined one, or elsewhere in the file; and of the segment's
    decisions, to-dos, numbers and names as much has to come back as `probe.refuse` asks.
    """
    entry = entry_of(before, checkpoint_id)
    section = section_of(before, entry) if entry is not None else None
    if section is None:
        return ""
    had = claims(_unmarked(body_of(section)[1]))
    refined = section_of(after, entry) if entry is not None else None
    lost = Support([refined.text if refined is not None else "", *_elsewhere(after)]).missing_of(had)
    if len(lost) > MOST_LOST * len(had):
        return f"loses {len(lost)} of {len(had)} names, paths and numbers of the embedded section"
    return probe.refuse(*(recalled(context, checkpoint_id, items, kinds=_JUDGED) for context in (before, after)))


def recalled(
    context: RouteContext, checkpoint_id: str, items: Sequence[Item], *, kinds: Sequence[str] = probe.PROBED
) -> Recall:
    """What a route's file gives back of a checkpoint's segment: by its section, and by all that is no history."""
    entry = entry_of(context, checkpoint_id)
    section = section_of(context, entry) if entry is not None else None
    words = probe.Words.of(section.text if section is not None else "", *_elsewhere(context))
    return probe.measure(items, words, kinds=kinds)


def enlarged(text: str, embedded: str, context: RouteContext, added: Mapping[str, Any]) -> str:
    """A model's section, with those lines of the embedded one that hold names, paths or numbers which would be lost.

    context  the route before; `added`: what else the record brings
    """
    kept = Support([text, *_texts(added), *_elsewhere(context)])
    missing = set(kept.missing_of(claims(_unmarked(embedded))))
    wanted = [(line, missing & set(claims(_unmarked(line)))) for line in embedded.split("\n")]
    room = MOST_SECTION - len(text)
    chosen: set[str] = set()
    for line, held in sorted(wanted, key=lambda found: -len(found[1])):
        if held & missing and len(line) + 3 <= room:
            chosen.add(line)
            room -= len(line) + 3
            missing -= held
    return "\n".join([text, *(f"- {line.strip().removeprefix('- ')}" for line, _ in wanted if line in chosen)])


def _unmarked(text: str) -> str:
    """A section's words, without the marks and labels that are ours."""
    return _OURS.sub("", text)


def _elsewhere(context: RouteContext) -> Sequence[str]:
    """The texts of a route's file but its history."""
    return [context.goal, *_texts([to_tree(part) for part in (context.active_work, context.facts, *context.decisions)])]


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            yield from _texts(item)
    elif tree is not None:
        yield str(tree)
