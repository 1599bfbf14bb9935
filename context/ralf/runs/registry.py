"""A decision registry: the YAML in which a run, or a whole project, keeps its decisions as entries.

Known shapes of an entry: a run's (`context options_considered selected_option rationale reversibility …`: what was
decided is the description of the option that is named, the others are the alternatives) and a project's (`title
rationale alternatives[{option, outcome}] source_file source_run …`: the title is all there is); the names may be any
that stand for the same in a Markdown document (`reason`, `chosen_option`). Of the file: with a header (`run_id task_id
created_at registry{}`), with `run{} decisions metadata{}`, with `decisions` alone, entries by their ids, a list and
nothing else. Counts are never believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from ralf import yamltext
from ralf.runs import handwritten
from ralf.runs.entry import decision_of, is_open, names_of
from ralf.runs.written import WrittenDecision
from ralf.text import one_line
from ralf.transcripts.content import leaves

NO_LIST = "no list of decisions"
"""What is said of YAML that is no registry."""

_LIST = "decisions"
_TASK = re.compile(r"\bTASK-[\w-]{0,80}?\d[\w-]*+")
_Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry's decisions, in its order.

    header   everything but the decisions, as it stands
    strange  the numbers, from 1, of entries that tell no decision
    entries  what stands in each decision's entry, by key
    words    each decision's entry in its own words: its lines, or, where others stand on these too, its values
    undecided  entries that tell no decision, but something: first line, last line, words
    broken   lines that are no YAML: first, last, and why
    remark   the comments at its head, which may name the task
    """

    header: Mapping[str, Any]
    decisions: tuple[WrittenDecision, ...]
    strange: tuple[int, ...] = ()
    entries: tuple[Mapping[str, Any], ...] = ()
    words: tuple[str, ...] = ()
    undecided: tuple[tuple[int, int, str], ...] = ()
    broken: tuple[tuple[int, int, str], ...] = ()
    remark: str = ""

    @property
    def run(self) -> str:
        """The run that it says it is of, "" where it does not, or holds a template's mark."""
        return _said(self.header, "run_id")

    @property
    def task(self) -> str:
        """The task that it says it is of, "" where it does not, or holds a template's mark."""
        named = _TASK.search(self.remark)
        return _said(self.header, "task_id") or (named[0].rstrip("-") if named is not None else "")

    @property
    def names(self) -> dict[str, str]:
        """What the keys of its entries stand for, where that is known."""
        return {key: name for entry in self.entries for name, key in names_of(entry).items()}


def read(text: str) -> Registry:
    """The registry that a text holds; `ralf.yamltext.BadYaml` for what is no YAML, or has no list of decisions. Of one
    in which some lines are no YAML the others are read.
    """
    try:
        record = handwritten.salvage(text)
    except yamltext.BadYaml:
        made = _as_list(text)
        if made is None or not made.decisions:
            raise
        return made
    name, listed, header = _listed(record.tree)
    lines = text.split("\n")
    places = record.places.get(name, [])
    if len(places) != len(listed):
        whole = record.parts > 0  # the text is no YAML
        places = [(1, len(lines))] * len(listed) if whole else _places(handwritten.tidied(text), name, len(listed))
    alone = len(set(places)) == len(places)
    decisions: list[WrittenDecision] = []
    entries: list[Mapping[str, Any]] = []
    words: list[str] = []
    strange: list[int] = []
    undecided: list[tuple[int, int, str]] = []
    for number, (entry, place) in enumerate(zip(listed, places, strict=True), start=1):
        said = "\n".join(lines[place[0] - 1 : place[1]]) if alone else _dumped(entry)
        tree = entry if isinstance(entry, Mapping) else {"title": entry} if _is_sentence(entry) else {}
        if (decision := decision_of(tree, place)) is not None:
            decisions.append(decision)
            entries.append(tree)
            words.append(said)
            continue
        strange.append(number)
        if is_open(tree):
            undecided.append((*place, said))
    return Registry(
        header,
        tuple(decisions),
        tuple(strange),
        tuple(entries),
        tuple(words),
        tuple(undecided),
        tuple(record.broken),
        "\n".join(takewhile(lambda line: line.startswith("#"), lines)),
    )


def _as_list(text: str) -> Registry | None:
    """A registry that is a list and nothing else."""
    begins = handwritten.tidied(text).lstrip()
    if not begins.startswith(("- ", "[", "#")):
        return None
    try:
        made = read(f"{_LIST}: {text.lstrip()}" if begins.startswith("[") else f"{_LIST}:\n{handwritten.tidied(text)}")
    except yamltext.BadYaml:
        return None
    if begins.startswith("["):
        return made
    moved = tuple(replace(one, first_line=one.first_line - 1, last_line=one.last_line - 1) for one in made.decisions)
    return replace(made, decisions=moved)


def _listed(tree: Mapping[str, Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """The list of decisions, by its key, and everything else: at the top, or in a part of it; by its name, else by what
    its entries tell.
    """
    parts = [tree, *(part for part in tree.values() if isinstance(part, Mapping))]
    for part in parts:
        if _LIST in part and (listed := _as_entries(part[_LIST])) is not None:
            return _LIST, listed, _without(tree, part, _LIST)
    if _LIST not in tree:
        for part in parts:
            for key, value in part.items():
                listed = value if isinstance(value, list) else []
                if listed and all(isinstance(one, Mapping) and "id" in names_of(one) for one in listed):
                    decided = (one for one in listed if decision_of(one, (1, 1)) is not None)
                    if any("rationale" in names_of(one) for one in decided):
                        return key, listed, _without(tree, part, key)
    raise yamltext.BadYaml(NO_LIST)


def _as_entries(value: object) -> list[Any] | None:
    if value is None:
        return []
    if isinstance(value, Mapping) and all(isinstance(one, Mapping) for one in value.values()):
        return [{"id": key, **one} for key, one in value.items()]
    return value if isinstance(value, list) else None


def _without(tree: Mapping[str, Any], part: Mapping[str, Any], name: str) -> dict[str, Any]:
    if part is tree:
        return {key: value for key, value in tree.items() if key != name}
    left = {key: value for key, value in part.items() if key != name}
    return {key: left if value is part else value for key, value in tree.items()}


def _is_sentence(entry: object) -> bool:
    return isinstance(entry, str) and len(entry.split()) > 1


def _dumped(entry: object) -> str:
    if not isinstance(entry, Mapping):
        return str(entry)
    return "\n".join(f"{key}: {said}" for key, value in entry.items() if (said := one_line(leaves(value))))


def _said(header: Mapping[str, Any], name: str) -> str:
    parts = (header, *(part for part in header.values() if isinstance(part, Mapping)))
    for part in parts:
        text = str(part.get(name) or "").strip()
        if text and not text.endswith("PLACEHOLDER") and not (text[0] in "{[" and text[-1] in "}]"):
            return text
    return ""


# ---- lines ----


def _places(text: str, name: str, count: int) -> list[_Place]:
    """The first and last line of each entry; all of the file's where an entry cannot be told by its line."""
    lines = text.split("\n")
    starts = list(_starts(text, name, lines))
    if not count or len(starts) != count + 1:
        return [(1, len(lines))] * count
    ends = starts[1:]
    return [(start + 1, _last_said(lines, start, stop)) for start, stop in zip(starts, ends, strict=False)]


def _starts(text: str, name: str, lines: Sequence[str]) -> Iterator[int]:
    """The lines, from 0, at which the entries begin, and the one behind the last of them."""
    column, within = -1, False
    for scalar in yamltext.scalars(text):
        if scalar.top and within:
            yield scalar.line
            return
        if scalar.top:
            within = scalar.text == name
        elif within:
            column = scalar.column if column < 0 else column
            if scalar.column == column and lines[scalar.line][: scalar.column].strip() == "-":
                yield scalar.line
    yield len(lines)


def _last_said(lines: Sequence[str], start: int, stop: int) -> int:
    while stop > start + 1 and (not lines[stop - 1].strip() or lines[stop - 1].startswith("#")):
        stop -= 1
    return stop
