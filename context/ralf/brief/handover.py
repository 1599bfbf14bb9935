"""The hand-over in a brief: entries whole or not at all, those that are needed most first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge

from ralf.brief.filling import Piece, size
from ralf.brief.handover_bullets import Bullet, author, bullets_of, ordered, time_of
from ralf.model.entries import Entry, Item, Message, Step
from ralf.model.handover import Carried, HandOver
from ralf.talk.names import plain
from ralf.text import cleaning
from ralf.text.patterns import regex

FIRST, BETWEEN, LAST = 1.0, 5.5, 9.5
"""Sections of the brief: a fresh hand-over; an old one, behind the log; its `now` and `next`, behind all else."""

_HANDS_OVER = regex(r"\bralf(?:_cli)?\s[^|;&]{0,120}\bhandover\s")

_LATE = 2_500  # tokens of a brief from which an old `now` and `next` are shown

Grant = tuple[str, int]


@dataclass(frozen=True)
class Since:
    """What came after a hand-over: messages, calls, and whether all of that was nothing but reading."""

    messages: int = 0
    calls: int = 0
    is_fresh: bool = True


def since(handover: HandOver, entries: Iterable[Entry]) -> Since:
    """What of some entries came after a hand-over: a message, an edit, a script or a check makes it old. The call that
    handed over ends after it, and is none of them.
    """
    after = [entry for entry in entries if entry.at > handover.at and not _hands_over(entry)]
    messages = [entry for entry in after if isinstance(entry, Message) and entry.form not in ("ran", "unsent")]
    steps = [entry for entry in after if isinstance(entry, Step)]
    is_fresh = not messages and not any(step.files or step.checks or _is_script(step) for step in steps)
    return Since(len(messages), len(steps), is_fresh)


def _hands_over(entry: Entry) -> bool:
    """Whether an entry is a call of the command that hands over, and of nothing that edits or checks."""
    return (
        isinstance(entry, Step)
        and not (entry.files or entry.checks)
        and _HANDS_OVER.search(entry.object.partition("<<")[0]) is not None
    )


def _is_script(step: Step) -> bool:
    """Whether a command holds a script: what that edits is not read."""
    return step.kind == "command" and "<<" in step.object


# ---- in the brief ----


@dataclass
class Shown:
    """The pieces of a hand-over, and the order in which they get the budget; `late`: of those that come last."""

    pieces: dict[str, Piece] = field(default_factory=dict)
    grants: list[Grant] = field(default_factory=list)
    late: list[Grant] = field(default_factory=list)
    is_fresh: bool = True


def shown(carried: Carried, after: Since, items: Sequence[Item] = (), day: str = "") -> Shown:
    """A hand-over as pieces of a brief.

    items  the to-do list: an old next step whose to-do is completed is not shown
    day    the one that goes without saying
    """
    last, found = carried.last or HandOver(), Shown(is_fresh=after.is_fresh)
    when, head = time_of(last.at, day), f"### Hand-over, by {author(last)}"
    heads = {
        FIRST: f"{head} {when}",
        BETWEEN: f"{head}\nWritten {when}, {after.messages} messages and {after.calls} calls ago",
        LAST: f"### Said in the hand-over of {when}, before what came since",
    }

    def is_done(bullet: Bullet) -> bool:
        return not after.is_fresh and bullet.kind == "next" and _is_completed(bullet.levels[0], items)

    needed = ordered(bullet for bullet in bullets_of(carried, day, last) if not is_done(bullet))
    for bullet in needed:
        section = FIRST if after.is_fresh else LAST if bullet.kind in ("now", "next") else BETWEEN
        top = [(f"hand-{section}", heads[section]), (f"hand-{bullet.place[0]}", f"{bullet.heading}:")]
        found.pieces[bullet.key] = Piece(
            (section, *bullet.place),
            [*map(cleaning.shown, bullet.levels)],
            [(key, cleaning.shown(text)) for key, text in top],
        )
        (found.late if section == LAST else found.grants).append((bullet.key, 0))
    found.grants += [(one.key, 1) for one in needed if one.kind == "decision" and len(one.levels) > 1]
    return found


def _is_completed(step: str, items: Iterable[Item]) -> bool:
    """Whether a to-do that a next step names, by its number or its words, is completed."""
    words, numbers = plain(step), {word.strip(".,:;()") for word in step.split()}
    done = [item for item in items if item.status == "completed"]
    return any(f"#{item.id}" in numbers or plain(item.text) in words for item in done)


# ---- beside the record ----


def interleaved(
    pieces: Mapping[str, Piece], record: Iterable[Grant], handed: Shown, first: Sequence[str] = ("last", "status")
) -> Iterator[Grant]:
    """The grants of the record and of the hand-over in one order that does not depend on the budget.

    Each comes at the smallest budget at which it fits in its share: of a fresh hand-over min(85 %, max(850, 60 %)), of
    an old one 60 %, the rest the record's. So a larger budget never shows less, and neither leaves room unused.

    pieces  of both
    first   keys of the record that come before all else
    """
    leading = [(key, 0) for key in first]

    def due(grants: Iterable[Grant], kind: str, least: float = 0) -> Iterator[tuple[float, Grant]]:
        used, levels = 0, dict[str, int]()
        for key, level in grants:
            texts = pieces[key].levels if key in pieces else ()
            level = min(level, len(texts) - 1)
            if level > levels.get(key, -1):
                before = size(texts[levels[key]])[0] if key in levels else 0
                used += max(0, size(texts[level])[0] - before)
                levels[key] = level
                yield (0.0 if (key, level) in leading else max(least, _due(used, kind))), (key, level)

    share = "fresh" if handed.is_fresh else "old"
    streams = [due([*leading, *record], f"beside {share}"), due(handed.grants, share), due(handed.late, share, _LATE)]
    for _, grant in merge(*streams, key=lambda one: one[0]):
        yield grant


def _due(count: int, kind: str) -> float:
    """The smallest budget in whose share so many tokens fit."""
    if kind == "fresh":
        return count / 0.85 if count <= 850 else count / 0.6
    if kind == "beside fresh":
        return count / 0.15 if count <= 150 else max(count + 850, count / 0.4)
    return count / (0.6 if kind == "old" else 0.4)
