"""Sums a segment up and proves it: what loses too much is refused or enlarged before it becomes a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ralf import evidence
from ralf.proving import probe
from ralf.proving.items import Item
from ralf.proving.probe import Recall, Words
from ralf.store import Digest, Store
from ralf.summarizers import Segment, Summarizer, Summary
from ralf.text import one_line

CERTAIN = ("requests", "to-dos", "paths", "failed commands")
"""What is promised whole: each one that is missing is added to the section."""

FLOOR = 0.9
"""Recall below which the numbers that are missing are added, too. Reasons: docs/format.md, "Recall"."""

EMBEDDED = "extractive"
"""The summariser whose work stands where another's is refused."""

# Each looks behind itself: of a run of letters only the beginning is a place to begin at.
_NAMES = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:[_./:-][A-Za-z0-9]++)+|(?<![a-z])[a-z]++[A-Z]\w+|\d{3,}")
_LONGEST = 200  # characters of an item that is added
_MOST = 30  # items of one kind that are added
_ADDED = {
    "requests": "Also asked",
    "to-dos": "Also on the list",
    "paths": "Also read or edited",
    "failed commands": "Also failed",
    "numbers": "Came up again and again",
}


@dataclass(frozen=True, slots=True)
class Proved:
    """A summary that was accepted.

    words    all that the checkpoint will say in the route file
    recall   what those give back of the segment
    added    how many items of each kind the probe found missing, so that they were added to the section
    refused  the summariser whose work was refused, and why; "" where none was
    """

    summary: Summary
    words: Words
    recall: Recall
    added: Mapping[str, int]
    refused: str = ""


def summed_up(segment: Segment, summarizer: Summarizer, items: Sequence[Item]) -> Proved:
    """What the summariser makes of the segment; what the embedded one makes of it, where that one's loses too much.

    items  what the segment holds, by `items.seen`
    """
    summary, refused = summarizer.summarize(segment), ""
    if summarizer.name != EMBEDDED:
        own = _embedded(segment)
        reason = refusal(own, summary, items)
        if reason:
            summary, refused = own, f"{summarizer.name}: {reason}"
    missing = [decision for decision in segment.noted if decision not in summary.decisions]
    if missing:
        summary = replace(summary, decisions=(*summary.decisions, *missing))
    words = Words.of(segment.facts, *_parts(summary))
    recall = probe.measure(items, words)
    added = _to_add(recall)
    if added:
        lines = [f"- **{_ADDED[kind]}:** {'; '.join(texts)}" for kind, texts in added.items()]
        summary = replace(summary, text="\n".join([summary.text, *lines]))
        words = Words.of(segment.facts, *_parts(summary))
        recall = probe.measure(items, words)
    return Proved(summary, words, recall, {kind: len(texts) for kind, texts in added.items()}, refused)


def refusal(own: Summary, other: Summary, items: Sequence[Item]) -> str:
    """Why `other` must not take the place of `own`, the embedded summary of the same segment; "" where it may.

    Looked for are the decisions and open to-dos that `own` lists, the numbers and names to which the segment comes back
    (`items`, by `items.seen`), and the names that the section of `own` tells.
    """
    wanted = [item for item in items if item.kind in ("numbers", "names")]
    wanted += [Item("decisions", decision.decision, 0) for decision in own.decisions]
    wanted += [Item("to-dos", todo.content, 0) for todo in own.active_work.todos if todo.status != "completed"]
    wanted += [Item("names told", name, 0) for name in _NAMES.findall(own.text)]
    return probe.refuse(_told(own, wanted), _told(other, wanted))


def with_search(store: Store, digest: Digest, recall: Recall) -> float | None:
    """The share that the checkpoint or, for what it does not give back, its evidence holds, as search will read it."""
    asked = sum(recall.asked.values())
    if not asked:
        return None
    lines: dict[int, list[str]] = {}
    if recall.missing:
        for line in evidence.read(store, digest, {item.line for item in recall.missing}):
            lines.setdefault(line.line, []).append(one_line(line.text))
    lost = sum(not _holds(lines.get(item.line, ()), item) for item in recall.missing)
    return 100 * (asked - lost) // asked / 100


def _holds(texts: Iterable[str], item: Item) -> bool:
    return any(probe.beginning(item.text) in text for text in texts)


def _embedded(segment: Segment) -> Summary:
    from ralf.summarizers.extractive import Extractive

    return Extractive().summarize(segment)


def _parts(summary: Summary) -> tuple[object, ...]:
    return summary.title, summary.text, summary.key_events, summary.decisions, summary.active_work


def _told(summary: Summary, wanted: Sequence[Item]) -> Recall:
    """What a summary by itself gives back; a decision counts where it is listed as one, each for one."""
    decided = probe.measure(wanted, Words.of(summary.decisions), kinds=("decisions",))
    listed = min(decided.found.get("decisions", 0), len(summary.decisions))
    rest = probe.measure(wanted, Words.of(*_parts(summary)), kinds=("to-dos", "numbers", "names", "names told"))
    missing = (*decided.missing, *rest.missing)
    return Recall({**decided.asked, **rest.asked}, {"decisions": listed, **rest.found}, missing)


def _to_add(recall: Recall) -> dict[str, list[str]]:
    """The words of what has to be added to the section, by kind."""
    low = recall.share is not None and recall.share < FLOOR
    found: dict[str, list[str]] = {}
    for item in recall.missing:
        texts = found.setdefault(item.kind, [])
        if (item.kind in CERTAIN or (low and item.kind in _ADDED)) and len(texts) < _MOST:
            text = one_line(item.text)
            texts.append(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
    return {kind: texts for kind, texts in found.items() if texts}
