"""A decision registry: the YAML in which a run, or a whole project, keeps its decisions as entries.

Known shapes of an entry: a run's (`context options_considered selected_option rationale reversibility …`: what was
decided is the description of the option that is named, the others are the alternatives) and a project's (`title
rationale alternatives[{option, outcome}] source_file source_run …`: the title is all there is). Of the file: with a
header (`run_id task_id created_at registry{}`), with `run{} decisions metadata{}`, with `decisions` alone. Counts are
never believed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ralf import yamltext
from ralf.runs.options import Option
from ralf.runs.written import WrittenDecision, plain

NO_LIST = "no list of decisions"
"""What is said of YAML that is no registry."""

_PLACEHOLDER = re.compile(r".*PLACEHOLDER$|\{.*\}$|\[.*\]$")
_JUDGED = re.compile(r"(?:considered|rejected|selected|chosen)?\W*$", re.IGNORECASE)
_CHOSEN = re.compile(r"\W*(?:selected|chosen|accepted)\b", re.IGNORECASE)
_TAKEN_UP = ("id", "timestamp", "title", "decision", "rationale", "status", "alternatives", "options_considered")


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry's decisions, in its order.

    header   everything but the decisions, as it stands
    strange  the numbers, from 1, of entries that are no mapping
    """

    header: Mapping[str, Any]
    decisions: tuple[WrittenDecision, ...]
    strange: tuple[int, ...] = ()

    @property
    def run(self) -> str:
        """The run that it says it is of, "" where it does not, or holds a template's mark."""
        return _said(self.header.get("run_id"))

    @property
    def task(self) -> str:
        """The task that it says it is of, "" where it does not, or holds a template's mark."""
        return _said(self.header.get("task_id"))


def read(text: str) -> Registry:
    """The registry that a text holds; `ralf.yamltext.BadYaml` for what is no YAML, or has no list of decisions."""
    tree = yamltext.load(text)
    listed = tree.get("decisions")
    if listed is None:
        listed = []
    if "decisions" not in tree or not isinstance(listed, list):
        raise yamltext.BadYaml(NO_LIST)
    places = _places(text, len(listed))
    made, strange = [], []
    for number, (entry, place) in enumerate(zip(listed, places, strict=True), start=1):
        if isinstance(entry, dict) and (decision := _decision(entry, place)) is not None:
            made.append(decision)
        else:
            strange.append(number)
    return Registry({key: value for key, value in tree.items() if key != "decisions"}, tuple(made), tuple(strange))


def _decision(entry: Mapping[str, Any], place: tuple[int, int]) -> WrittenDecision | None:
    taken, others = _joined(entry)
    title, text = _text(entry.get("title")), _text(entry.get("decision")) or taken
    if not title and not text:
        return None
    rest = {key: value for key, value in entry.items() if key not in _TAKEN_UP and value not in (None, "", [], {})}
    return WrittenDecision(
        first_line=place[0],
        last_line=place[1],
        label=_text(entry.get("id")),
        title=title,
        text=text,
        rationale=_text(entry.get("rationale")),
        alternatives=(*others, *_alternatives(entry.get("alternatives"))),
        status=_text(entry.get("status")),
        timestamp=_text(entry.get("timestamp")),
        fields=rest,
    )


def _joined(entry: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What the selected option says, and the others as alternatives."""
    options = entry.get("options_considered")
    wanted = _text(entry.get("selected_option"))
    taken, others = "", []
    for option in options if isinstance(options, list) else []:
        name, words = (_text(option.get("id")), _words_of(option)) if isinstance(option, dict) else ("", _text(option))
        against = [_text(con) for con in option.get("cons") or []] if isinstance(option, dict) else []
        if wanted and (words == wanted or (name and re.match(rf"{re.escape(name)}(?![\w-])", wanted))):
            taken = words
        elif words:
            others.append(Option(name, plain(words), False, [], [plain(con) for con in against]).as_alternative())
    return taken or wanted, others


def _words_of(option: Mapping[str, Any]) -> str:
    return next((words for key in ("description", "option", "title", "name") if (words := _text(option.get(key)))), "")


def _alternatives(listed: object) -> list[str]:
    made = []
    for item in listed if isinstance(listed, list) else []:
        words, outcome = (_words_of(item), _text(item.get("outcome"))) if isinstance(item, dict) else (_text(item), "")
        words, outcome = plain(words), plain(outcome)
        if words.strip("-_ ") and not _CHOSEN.match(words) and not _CHOSEN.match(outcome):
            made.append(words if _JUDGED.match(outcome) else f"{words}: {outcome}")
    return made


def _text(value: object) -> str:
    return (
        value.strip()
        if isinstance(value, str)
        else ""
        if value is None or isinstance(value, (dict, list))
        else str(value)
    )


def _said(value: object) -> str:
    text = _text(value)
    return "" if _PLACEHOLDER.match(text) else text


def _places(text: str, count: int) -> list[tuple[int, int]]:
    """The first and last line of each entry; all of the file's where an entry cannot be told by its line."""
    lines = text.split("\n")
    starts: list[int] = []
    column, end, within = -1, len(lines), False
    for scalar in yamltext.scalars(text):
        if scalar.top:
            if within:
                end = scalar.line
                break
            within = scalar.text == "decisions"
        elif within:
            column = scalar.column if column < 0 else column
            if scalar.column == column and lines[scalar.line][: scalar.column].strip() == "-":
                starts.append(scalar.line)
    if not count or len(starts) != count:
        return [(1, len(lines))] * count
    ends = [*starts[1:], end]
    return [(start + 1, _last_said(lines, start, stop)) for start, stop in zip(starts, ends, strict=True)]


def _last_said(lines: list[str], start: int, stop: int) -> int:
    while stop > start + 1 and (not lines[stop - 1].strip() or lines[stop - 1].startswith("#")):
        stop -= 1
    return stop
