"""A decision registry: the YAML in which a run, or a whole project, keeps its decisions as entries.

A run's entry has `options_considered` and `selected_option`: what was decided is the description of the option that is
named, the others are the alternatives. A project's has `title`, `rationale` and `alternatives[{option, outcome}]`: the
title is all there is. Counts are never believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

from ralf.document import guarded_yaml
from ralf.text.cleaning import one_line
from ralf.transcripts.events import leaves
from ralf_integrations.blackbox5.runs import handwritten
from ralf_integrations.blackbox5.runs.decisions import NOTHING, WrittenDecision
from ralf_integrations.blackbox5.runs.markdown import plain
from ralf_integrations.blackbox5.runs.options import Option, is_note

NO_LIST = "no list of decisions"
"""What is said of YAML that is no registry."""

_LIST = "decisions"
_TASK = re.compile(r"\bTASK-[\w-]{0,80}?\d[\w-]*+")
_TAKEN_UP = (
    *("id", "timestamp", "title", "decision", "rationale", "status"),
    *("alternatives", "options_considered", "selected_option"),
)


class Registry(NamedTuple):
    """A registry's decisions, in its order.

    task       the task that it says it is of, in a field or a comment at its head; "" where it does not
    header     everything but the decisions, as it stands
    words      each decision's entry in its own words: its lines, or, where others stand on these too, its values
    undecided  entries that tell no decision, but something: first line, last line, words
    broken     lines that are no YAML: first, last, and why
    """

    task: str
    header: Mapping[str, Any]
    decisions: tuple[WrittenDecision, ...]
    words: tuple[str, ...]
    undecided: tuple[tuple[int, int, str], ...]
    broken: tuple[tuple[int, int, str], ...]


def read(text: str) -> Registry:
    """The registry that a text holds; `guarded_yaml.BadYaml` for what is no YAML, or has no list of decisions. Of one
    in which some lines are no YAML the others are read.
    """
    record = handwritten.load(text)
    listed = record.tree.get(_LIST, "") or ([] if _LIST in record.tree else None)
    if not isinstance(listed, list):
        raise guarded_yaml.BadYaml(NO_LIST)
    lines = text.split("\n")
    lost = {(first, last) for first, last, _ in record.broken}
    places = [place for place in handwritten.items_at(text, _LIST) if place not in lost]
    alone = len(places) == len(listed)  # else no entry can be told by its lines
    told: list[tuple[WrittenDecision, str]] = []
    undecided: list[tuple[int, int, str]] = []
    for entry, place in zip(listed, places if alone else [(1, len(lines))] * len(listed), strict=True):
        tree = entry if isinstance(entry, Mapping) else {"title": entry} if " " in str(entry).strip() else {}
        said = "\n".join(lines[place[0] - 1 : place[1]]) if alone else words_of(tree)
        if (decision := decision_of(tree, place)) is not None:
            told.append((decision, said))
        elif any(value not in NOTHING for key, value in tree.items() if key != "id"):
            undecided.append((*place, said))
    header = {key: value for key, value in record.tree.items() if key != _LIST}
    task, named = (
        _text(header.get("task_id")),
        _TASK.search("\n".join(takewhile(lambda one: one.startswith("#"), lines))),
    )
    if not task or task.endswith("PLACEHOLDER") or task[0] in "{[":
        task = named[0].rstrip("-") if named is not None else ""
    decisions, words = tuple(one for one, _ in told), tuple(said for _, said in told)
    return Registry(task, header, decisions, words, tuple(undecided), tuple(record.broken))


def words_of(entry: Mapping[str, Any]) -> str:
    """An entry in words: each of its keys with its values on a line."""
    told = ((key, one_line(leaves(value))) for key, value in entry.items())
    return "\n".join(f"{key}: {said}" for key, said in told if said)


def decision_of(entry: Mapping[str, Any], place: tuple[int, int]) -> WrittenDecision | None:
    """The decision that an entry tells, which stands at `place`, first and last line; None where it tells none: it is
    empty, or has options of which none was selected.
    """
    wanted = _text(entry.get("selected_option"))
    taken, others = "", []
    for option in _trees(entry.get("options_considered"), "description"):
        words = _text(option.get("description")) or _text(option.get("title")) or _text(option.get("id"))
        if wanted and not taken and wanted.casefold() in (words.casefold(), _text(option.get("id")).casefold()):
            taken = words
        elif words:
            against = [plain(said) for one in _listed(option.get("cons")) if (said := _text(one))]
            others.append(Option("", plain(words), against).as_alternative())
    title, text = _text(entry.get("title")), _text(entry.get("decision")) or taken or wanted
    if not (title or text) or (others and not text):
        return None
    reasons = [f"- {plain(said)}" for one in _listed(entry.get("rationale")) if (said := _text(one))]
    return WrittenDecision(
        *place,
        label=_text(entry.get("id")),
        title=title,
        text=text,
        rationale=_text(entry.get("rationale")) or "\n".join(reasons),
        alternatives=tuple(dict.fromkeys((*others, *_alternatives(entry.get("alternatives"))))),
        status=_text(entry.get("status")),
        timestamp=_text(entry.get("timestamp")),
        fields={key: value for key, value in entry.items() if key not in _TAKEN_UP and value not in NOTHING},
    )


def _alternatives(value: object) -> Iterator[str]:
    """Rejected alternatives, each "option: why not"; what is said for or against an option is none."""
    for tree in _trees(value, "option"):
        words, outcome = plain(_text(tree.get("option"))), plain(_text(tree.get("outcome")))
        option = Option("", words, [outcome] * (" " in outcome))
        if words.strip("-_ ") and not option.verdict and not is_note(words):
            yield option.as_alternative()


def _trees(value: object, key: str) -> list[Mapping[str, Any]]:
    return [one if isinstance(one, Mapping) else {key: one} for one in _listed(value)]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value in NOTHING else [value]


def _text(value: object) -> str:
    if value is None or isinstance(value, (Mapping, list)):
        return ""
    return str(value).strip()
