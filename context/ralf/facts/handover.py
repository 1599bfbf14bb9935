"""Hand-overs: read from Markdown, JSON or a client's compaction summary, and held against the evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from ralf.facts.grounding import Evidence
from ralf.model import HandOver
from ralf.text import tokens
from ralf.text.cleaning import clean, one_line, trimmed, without_middle
from ralf.text.patterns import regex

MOST_ITEMS, MOST_TEXT = 20, (2_800, 1_200)
"""Items of a field; characters of the beginning and the end of free text."""

MOST_TOKENS = 2_000
"""Of a hand-over, by estimate, beside its goal and its state: it never folds, so a longer one would drive all else out
of the file.
"""

LONGEST, LONGEST_STATE = 1_200, 2_000
"""Characters of one item or the goal, and of the state."""

LISTS = ("done", "next", "questions", "names", "inferred")
"""The fields of a hand-over that are lists."""

FIELDS = ("goal", "state", "text", *LISTS, "decided", "never")
"""What a hand-over may be told; `decided` and `never` become decisions of the agent."""


@dataclass(frozen=True, slots=True)
class Told:
    """What somebody wrote to hand over: the hand-over, what it decided, and what is not to be tried again; `left_out`:
    items for which there was no room.
    """

    handover: HandOver
    decided: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    left_out: int = 0


# ---- reading ----

_LABELS = {
    "goal": "goal|objective|task|the task|intent|primary request|primary request and intent",
    "state": "state|status|current state|current status|current work|where things stand|where it stands|situation",
    "done": "done|completed|finished|what was done|completed work|progress",
    "next": "next|next step|next steps|optional next step|optional next steps|pending|pending tasks|remaining"
    "|remaining tasks|remaining work|todo|to-do|to do|todos|what is next|what's next",
    "questions": "open questions|open question|open|questions|unanswered|waiting for",
    "decided": "decided|decisions|decision|choices|key decisions|decisions made",
    "never": "never|not again|do not|don't|failed approaches|failed approach|dead ends|dead end|avoid|tried and failed",
    "names": "exact|exact ids|ids|identifiers|names|needed|references",
    "inferred": "inferred|inferences|concluded|assumptions|not verified",
}

_FIELD_OF = {label: field for field, labels in _LABELS.items() for label in labels.split("|")}

_HEADING = regex(
    r"^(?:#{1,6}[ \t]{1,3}|\*\*|\d{1,2}[.)][ \t]{1,3}(?:\*\*)?)?([A-Za-z][A-Za-z' -]{1,40})(?:[ \t]?\([^)\n]{1,40}\))?"
    r"(?:\*\*)?[ \t]?(?:(:)(?:\*\*)?[ \t]*(.*))?$"
)

_ITEM = regex(r"^[ \t]*(?:[-*+]|\d{1,2}[.)])[ \t]{1,4}(.*)$")


def read(text: str) -> Told:
    """What a text hands over: JSON with the names of `FIELDS` as keys, or Markdown under such headings; Markdown of
    any other form is kept as it stands. ValueError for JSON that is none of that.
    """
    text = clean(text).strip()
    if not text.startswith("{"):
        return of_fields(_sections(text))
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no JSON: {error}") from None
    unknown = [key for key in tree if key not in FIELDS]
    if unknown:
        raise ValueError(f"has {unknown[0]!r}, which is no field; known: {', '.join(FIELDS)}")
    for key, value in tree.items():
        listed = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if not isinstance(value, str) and not listed:
            raise ValueError(f"has no text, and no list of texts, as {key!r}")
    return of_fields(tree)


def of_fields(fields: Mapping[str, Any], left_out: int = 0) -> Told:
    """A hand-over of these fields, each a text or several, in bounds; `left_out`: items that were left out before."""

    more = left_out

    def listed(name: str) -> tuple[str, ...]:
        nonlocal more
        value = fields.get(name) or ()
        items = [value] if isinstance(value, str) else value
        made = (trimmed(one_line(clean(item)), LONGEST) for item in items)
        found = tuple(dict.fromkeys(item for item in made if item))
        more += len(found[MOST_ITEMS:])
        return found[:MOST_ITEMS]

    def text(name: str, most: int = LONGEST) -> str:
        value = fields.get(name) or ""
        return trimmed(one_line(clean(value if isinstance(value, str) else _as_one(value))), most)

    free = fields.get("text") or ""
    handover = HandOver(
        goal=text("goal"),
        state=text("state", LONGEST_STATE),
        done=listed("done"),
        next=listed("next"),
        questions=listed("questions"),
        names=listed("names"),
        inferred=listed("inferred"),
        text=without_middle(clean(free if isinstance(free, str) else "\n".join(free)).strip(), *MOST_TEXT)[0],
    )
    handover, left_out = _within(handover)
    return Told(handover, listed("decided"), listed("never"), more + left_out)


def _within(handover: HandOver) -> tuple[HandOver, int]:
    """The hand-over in bounds, and how many items it lost: of what matters least the last ones."""
    left, lost = MOST_TOKENS, 0
    for name in ("next", "questions", "names", "done", "text", "inferred"):
        said = getattr(handover, name)
        items = tuple(said.split("\n")) if isinstance(said, str) else said
        sizes = accumulate(tokens.estimate(item) + _AN_ITEM for item in items)
        count = sum(size <= left for size in sizes)
        left -= sum(tokens.estimate(item) + _AN_ITEM for item in items[:count])
        if count < len(items):
            kept = items[:count] if said is items else "\n".join([*items[:count], "…"])
            changed: dict[str, Any] = {name: kept}
            handover, lost = replace(handover, **changed), lost + (len(items) - count if said is items else 1)
    return handover, lost


_AN_ITEM = 4  # tokens that an item takes beside its words


def _as_one(items: Sequence[str]) -> str:
    """Items as one text: a sentence ends for itself, what is none ends with a semicolon."""
    ended = [item if item.endswith((".", "!", "?", ":", ";")) else f"{item};" for item in map(str.strip, items)]
    return " ".join(filter(None, ended)).removesuffix(";")


def _sections(text: str) -> dict[str, Any]:
    """The fields that Markdown tells under headings or labels; the rest as `text`."""
    found: dict[str, list[list[str]]] = {}  # of each field the items, heading by heading
    rest: list[str] = []
    into: list[str] | None = None
    for line in text.split("\n"):
        heading = _HEADING.match(line)
        field = _FIELD_OF.get(heading[1].strip().lower()) if heading and (heading[2] or _marked(line)) else None
        if field is not None and heading is not None:
            into = []
            found.setdefault(field, []).append(into)
            if heading[3] and heading[3].strip():
                into.append(heading[3].strip())
        elif line.startswith("#") or _ends_field(line, heading) or (into is None and line.strip()):
            into = None
            rest.append(line)
        elif into is None:
            rest.append(line)
        elif line.strip():
            _put(into, line)
    items = {field: [item for part in parts for item in part] for field, parts in found.items()}
    return {**items, "text": "\n".join(rest).strip("\n")}


def _ends_field(line: str, heading: re.Match[str] | None) -> bool:
    """Whether a line is the heading of a part that is no field."""
    return heading is not None and heading[2] == ":" and not heading[3] and _marked(line)


def _marked(line: str) -> bool:
    return line.startswith(("#", "**")) or line[:1].isdigit()


def _put(items: list[str], line: str) -> None:
    """A line of a field: an item of its own, or the rest of the one before it."""
    item = _ITEM.match(line)
    if item is not None:
        items.append(item[1])
    elif items and line[:1] in (" ", "\t"):
        if len(items[-1]) <= LONGEST:  # what goes beyond is cut anyway
            items[-1] += " " + line.strip()
    else:
        items.append(line.strip())


# ---- a client's own summary of its window ----

_BEFORE_SUMMARY = ("\nSummary:\n", "</analysis>")

_AFTER_SUMMARY = (
    "\nIf you need specific details from before compaction",
    "\nPlease continue the conversation",
    "\nContinue the conversation from where",
)

_STATE, _ITEM_OF_SUMMARY, _ITEMS_OF_SUMMARY = 700, 260, 6  # characters, characters, items: a summary rambles

_OF_COMPACTION = ("state", "next", "questions")
"""What of a summary is handed over: what it says of requests and files the route has in the words of the source."""


def of_compaction(text: str) -> HandOver | None:
    """What a client's summary of its window hands over: its current work, pending tasks and next step; None for a
    summary without such parts. Nothing of it is a rule or a decision.
    """
    text = clean(text)
    for mark in _BEFORE_SUMMARY:
        text = text.rpartition(mark)[2]
    for mark in _AFTER_SUMMARY:
        text = text.partition(mark)[0]
    fields = _sections(_without_code(text))
    made = of_fields({name: fields.get(name, ()) for name in _OF_COMPACTION}).handover
    brief = replace(
        made,
        author="compaction",
        state=trimmed(made.state, _STATE),
        next=tuple(trimmed(item, _ITEM_OF_SUMMARY) for item in made.next[:_ITEMS_OF_SUMMARY]),
        questions=tuple(trimmed(item, _ITEM_OF_SUMMARY) for item in made.questions[:_ITEMS_OF_SUMMARY]),
    )
    return brief if brief else None


def _without_code(text: str) -> str:
    """The text without what stands between fences."""
    kept, inside = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


# ---- what the evidence bears out ----


def verified(handover: HandOver, evidence: Iterable[str]) -> HandOver:
    """The hand-over without the sentences in which a path, id, number, command or code word stands that is nowhere in
    the evidence; they are counted in `dropped`.
    """
    return held_against(Evidence(evidence), handover)[0]


def held_against(evidence: Evidence, handover: HandOver) -> tuple[HandOver, list[tuple[str, list[str]]]]:
    """The same, and the sentences that were left out, each with what of it stands nowhere."""
    unborne: list[tuple[str, list[str]]] = []

    def borne(text: str) -> str:
        return evidence.borne(text, unborne)

    def all_of(items: Sequence[str]) -> tuple[str, ...]:
        return tuple(kept for item in items if (kept := borne(item)))

    made = replace(
        handover,
        goal=borne(handover.goal),
        state=borne(handover.state),
        done=all_of(handover.done),
        next=all_of(handover.next),
        questions=all_of(handover.questions),
        names=all_of(handover.names),
        inferred=all_of(handover.inferred),
        text="\n".join(borne(line) if line.strip() else line for line in handover.text.split("\n")),
    )
    return replace(made, dropped=handover.dropped + len(unborne)), unborne
