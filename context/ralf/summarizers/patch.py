"""What a model is asked to answer, as a JSON schema, and such an answer as a value. Nothing of it is believed here:
`ralf.summarizers.support` says what its lines bear out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ralf.text import clean, one_line
from ralf.trim import trimmed

MOST_TEXT = 500  # characters of one text
MOST_ITEMS = 40  # of each list
MOST_SECTION = 4_400  # characters of a section, as many as the embedded summariser takes


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
_LINES = _object(first={"type": "integer"}, last={"type": "integer"})
_ITEM = _object(text=_TEXT, lines=_LINES)
_OPTION = _object(option=_TEXT, why_not=_TEXT)
KINDS = ("decision", "rule", "failed-approach")
CHANGES = ("changed", "superseded", "reversed")

SCHEMA: dict[str, Any] = _object(
    title=_TEXT,
    section=_list(_ITEM),
    decisions=_list(
        _object(
            kind={"type": "string", "enum": list(KINDS)},
            decision=_TEXT,
            reason=_TEXT,
            rejected=_list(_OPTION),
            supersedes=_TEXT,
            lines=_LINES,
        )
    ),
    changes=_list(
        _object(
            id=_TEXT,
            change={"type": "string", "enum": list(CHANGES)},
            replaced_by=_TEXT,
            reason=_TEXT,
            rejected=_list(_OPTION),
            lines=_LINES,
        )
    ),
    active_work=_object(next_steps=_list(_ITEM), blockers=_list(_ITEM), findings=_list(_ITEM)),
)
"""The answer's schema: closed, every property required, "" and [] for nothing, so that providers with a strict mode
(which allows no optional property) take it as it stands.
"""


@dataclass(frozen=True, slots=True)
class Item:
    """One line of text, and the first and last line of the transcript that say so."""

    text: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class NewDecision:
    """A decision that the current list does not have; `supersedes` is the label of the one that it replaces."""

    kind: str
    decision: str
    reason: str
    rejected: tuple[str, ...]
    supersedes: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a decision of the current list: changed (its reason or options), superseded, reversed."""

    id: str
    change: str
    replaced_by: str
    reason: str
    rejected: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Patch:
    """A model's answer."""

    title: str
    section: tuple[Item, ...]
    decisions: tuple[NewDecision, ...]
    changes: tuple[Change, ...]
    work: Mapping[str, tuple[Item, ...]]


class BadAnswer(ValueError):
    """An answer that does not fit the schema; the message says where and why."""


def patch_of(tree: object) -> Patch:
    """The patch that an answer holds; BadAnswer when it does not fit the schema."""
    wrong = misfit(tree, SCHEMA)
    if wrong:
        raise BadAnswer(wrong)
    assert isinstance(tree, dict)  # noqa: S101  # the schema has just said so
    return Patch(
        title=_text(tree["title"]),
        section=_items(tree["section"]),
        decisions=tuple(
            NewDecision(
                item["kind"],
                _text(item["decision"]),
                _text(item["reason"]),
                _options(item["rejected"]),
                _text(item["supersedes"]),
                item["lines"]["first"],
                item["lines"]["last"],
            )
            for item in tree["decisions"][:MOST_ITEMS]
        ),
        changes=tuple(
            Change(
                _text(item["id"]),
                item["change"],
                _text(item["replaced_by"]),
                _text(item["reason"]),
                _options(item["rejected"]),
                item["lines"]["first"],
                item["lines"]["last"],
            )
            for item in tree["changes"][:MOST_ITEMS]
        ),
        work={key: _items(value) for key, value in tree["active_work"].items()},
    )


def misfit(value: object, schema: Mapping[str, Any], at: str = "the answer") -> str:
    """Where and why a value does not fit a schema of objects, arrays, strings and integers; "" when it does."""
    kind = schema["type"]
    if kind == "object":
        if not isinstance(value, dict):
            return f"{at} is no object"
        known = schema["properties"]
        odd = [f"{at} has no {name!r}" for name in known if name not in value]
        odd += [f"{at} has {name!r}, which is not asked for" for name in value if name not in known]
        odd += [wrong for name in known if name in value if (wrong := misfit(value[name], known[name], f"{at}.{name}"))]
        return odd[0][:200] if odd else ""
    if kind == "array":
        if not isinstance(value, list):
            return f"{at} is no list"
        wrongs = (misfit(item, schema["items"], f"{at}[{place}]") for place, item in enumerate(value))
        return next((wrong for wrong in wrongs if wrong), "")
    if kind == "integer":
        return "" if isinstance(value, int) and not isinstance(value, bool) else f"{at} is no whole number"
    if not isinstance(value, str):
        return f"{at} is no text"
    choices = schema.get("enum")
    return f"{at} is none of {', '.join(choices)}" if choices and value not in choices else ""


def _text(value: str) -> str:
    return trimmed(one_line(clean(value)), MOST_TEXT)


def _items(values: list[Any]) -> tuple[Item, ...]:
    made = (Item(_text(item["text"]), item["lines"]["first"], item["lines"]["last"]) for item in values[:MOST_ITEMS])
    return tuple(item for item in made if item.text)


def _options(values: list[Any]) -> tuple[str, ...]:
    found = ((_text(item["option"]), _text(item["why_not"])) for item in values[:MOST_ITEMS])
    return tuple(f"{option}: {why}" if why else option for option, why in found if option)
