"""The form of a model's answer, and the reading of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ralf.facts import handover as handovers
from ralf.model import HandOver
from ralf.text import tokens
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.patterns import regex

MOST_TEXT = 500  # characters of one text

MOST_ITEMS = 60  # of each list

MOST_HANDED_OVER = 900
"""Tokens of a hand-over: what is over goes, the least needed first."""


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT = {"type": "string"}

_TEXTS = _list(_TEXT)

KINDS = ("decision", "rule", "failed-approach")

STATUSES = ("active", "done")
"""Of a new decision: whether it binds the successor, or was carried out or given up by the end of the segment."""

VERDICTS = ("keep", "drop", "done", "taken_back")
"""Verdicts on listed items that need no more than the item."""

SCHEMA: dict[str, Any] = _object(
    title=_TEXT,
    handover=_object(goal=_TEXT, state=_TEXT, **dict.fromkeys(handovers.LISTS, _TEXTS)),
    decisions=_list(
        _object(
            kind={"type": "string", "enum": list(KINDS)},
            status={"type": "string", "enum": list(STATUSES)},
            text=_TEXT,
            reason=_TEXT,
            rejected=_TEXTS,
            line={"type": "integer"},
        )
    ),
    curation=_object(
        **dict.fromkeys(VERDICTS, _TEXTS),
        duplicate=_list(_object(id=_TEXT, of=_TEXT)),
        superseded=_list(_object(id=_TEXT, by=_TEXT)),
        reworded=_list(_object(id=_TEXT, text=_TEXT, reason=_TEXT, rejected=_TEXTS)),
    ),
)
"""The answer's schema: closed, every property required, "" and [] for nothing, so that providers with a strict mode
(which allows no optional property) take it as it stands.
"""


@dataclass(frozen=True, slots=True)
class NewDecision:
    """A decision that the current list does not have; `line`: where the user or the agent says so; `status`: one of
    `STATUSES`.
    """

    kind: str
    status: str
    text: str
    reason: str
    rejected: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Rewording:
    """A listed decision in words that can be read alone."""

    id: str
    text: str
    reason: str
    rejected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Curation:
    """What is to become of the listed items, by their ids.

    simple    of each of `VERDICTS` the items
    replaced  item → the one that it repeats, or that took its place: an id, or `#n` for the nth new decision
    repeated  those of them that say the same as the other
    reworded  new words
    """

    simple: Mapping[str, tuple[str, ...]]
    replaced: Mapping[str, str]
    repeated: frozenset[str]
    reworded: tuple[Rewording, ...]

    @property
    def named(self) -> frozenset[str]:
        """The items of which it says anything."""
        simple = (item for items in self.simple.values() for item in items)
        return frozenset((*simple, *self.replaced, *(item.id for item in self.reworded)))


@dataclass(frozen=True, slots=True)
class Patch:
    """A model's answer; `cut`: items of its hand-over for which there is no room."""

    title: str
    handover: HandOver
    decisions: tuple[NewDecision, ...]
    curation: Curation
    cut: tuple[str, ...]


class BadAnswer(ValueError):
    """An answer that does not fit the schema; the message says where and why."""


def patch_of(tree: object) -> Patch:
    """The patch that an answer holds; BadAnswer when it does not fit the schema."""
    wrong = misfit(tree, SCHEMA) or _too_long(tree)
    if wrong:
        raise BadAnswer(wrong)
    assert isinstance(tree, dict)  # noqa: S101  # the schema has just said so
    curation = tree["curation"]
    repeated = {_id(item["id"]): _id(item["of"]) for item in curation["duplicate"][:MOST_ITEMS]}
    replaced = {_id(item["id"]): _id(item["by"]) for item in curation["superseded"][:MOST_ITEMS]}
    whole = _marked_off(handovers.of_fields(tree["handover"]).handover)
    handover = _within(whole)
    return Patch(
        title=bare(_text(tree["title"]))[:100].rstrip(),
        handover=handover,
        decisions=tuple(
            NewDecision(
                item["kind"],
                item["status"],
                bare(_text(item["text"])),
                bare(_text(item["reason"])),
                _options(item["rejected"]),
                item["line"],
            )
            for item in tree["decisions"][:MOST_ITEMS]
        ),
        curation=Curation(
            simple={verdict: tuple(map(_id, curation[verdict][:MOST_ITEMS])) for verdict in VERDICTS},
            replaced={**repeated, **replaced},
            repeated=frozenset(repeated.keys() - replaced.keys()),
            reworded=tuple(
                Rewording(
                    _id(item["id"]), bare(_text(item["text"])), bare(_text(item["reason"])), _options(item["rejected"])
                )
                for item in curation["reworded"][:MOST_ITEMS]
            ),
        ),
        cut=tuple(item for name in handovers.LISTS for item in getattr(whole, name)[len(getattr(handover, name)) :]),
    )


_TYPES = {
    "object": (dict, "object"),
    "array": (list, "list"),
    "integer": (int, "whole number"),
    "string": (str, "text"),
}


def misfit(value: object, schema: Mapping[str, Any], at: str = "the answer") -> str:
    """Where and why a value does not fit a schema of objects, arrays, strings and integers; "" when it does."""
    kind, name = _TYPES[schema["type"]]
    if not isinstance(value, kind) or isinstance(value, bool):
        return f"{at} is no {name}"
    if isinstance(value, dict):
        known = schema["properties"]
        odd = [f"{at} has no {name!r}" for name in known if name not in value]
        odd += [f"{at} has {name!r}, which is not asked for" for name in value if name not in known]
        odd += [wrong for name in known if name in value if (wrong := misfit(value[name], known[name], f"{at}.{name}"))]
        return odd[0][:200] if odd else ""
    if isinstance(value, list):
        wrongs = (misfit(item, schema["items"], f"{at}[{place}]") for place, item in enumerate(value))
        return next((wrong for wrong in wrongs if wrong), "")
    choices = schema.get("enum", [value])
    return "" if value in choices else f"{at} is none of {', '.join(choices)}"


MOST_SAID = 40_000
"""Characters of all texts of an answer: each name in them is looked for in all that the route has seen."""


def _too_long(tree: object) -> str:
    """Why an answer that fits the schema is not read all the same: "" where it is."""
    said, left = 0, [tree]
    while left:
        value = left.pop()
        said += len(value) if isinstance(value, str) else 0
        left += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return f"its texts have {said:,} characters, more than {MOST_SAID:,}" if said > MOST_SAID else ""


def example(schema: Mapping[str, Any] = SCHEMA) -> Any:
    """The form of an answer as an example of one: a tenth of what the schema takes in a prompt."""
    if schema["type"] == "object":
        return {name: example(inner) for name, inner in schema["properties"].items()}
    if schema["type"] == "array":
        return [example(schema["items"])]
    return 0 if schema["type"] == "integer" else "|".join(schema.get("enum", ()))


def _text(value: str) -> str:
    return trimmed(one_line(clean(value)), MOST_TEXT)


def _id(value: str) -> str:
    return _text(value).strip("[]() ")


def _options(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (bare(_text(value)) for value in values[:MOST_ITEMS]))))


_MARKS = regex(r"^(?:[>=~+|\-\s]|[#*](?=[#*\s])|`{3,}+)+(?=\S)")


def bare(text: str) -> str:
    """A line without marks at its beginning that Markdown would take for a heading, a quote, a rule or a fence."""
    return _MARKS.sub("", text).strip() if text.strip(" #>=~+|*-`") else ""


def _marked_off(handover: HandOver) -> HandOver:
    lists: dict[str, Any] = {name: tuple(filter(None, map(bare, getattr(handover, name)))) for name in handovers.LISTS}
    return replace(handover, goal=bare(handover.goal), state=bare(handover.state), **lists)


_LEAST_NEEDED = ("done", "names", "inferred", "questions", "next")
"""Lists of a hand-over in the order in which they give way."""


def _within(handover: HandOver) -> HandOver:
    """The hand-over in so many tokens as one may have."""
    left = MOST_HANDED_OVER - sum(map(_cost, (handover.goal, handover.state)))
    for name in reversed(_LEAST_NEEDED):
        items = getattr(handover, name)
        kept = tuple(_first(items, left))
        left -= sum(map(_cost, kept))
        shorter: dict[str, Any] = {name: kept}
        handover = replace(handover, **shorter) if len(kept) < len(items) else handover
    return handover


def _first(items: Sequence[str], left: int) -> Iterator[str]:
    for item in items:
        left -= _cost(item)
        if left < 0:
            return
        yield item


def _cost(text: str) -> int:
    return tokens.estimate(text) + 4 if text else 0
