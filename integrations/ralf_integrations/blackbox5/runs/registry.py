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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import Any

from ralf.document import guarded_yaml
from ralf.text.cleaning import one_line
from ralf.transcripts.events import leaves
from ralf_integrations.blackbox5.runs import handwritten
from ralf_integrations.blackbox5.runs.markdown import Line, key_of, plain
from ralf_integrations.blackbox5.runs.written import Option, WrittenDecision, options_of

NO_LIST = "no list of decisions"
"""What is said of YAML that is no registry."""

_LIST = "decisions"
_NOTHING: tuple[object, ...] = (None, "", [], {})
_TASK = re.compile(r"\bTASK-[\w-]{0,80}?\d[\w-]*+")
_JUDGED = re.compile(r"(?:considered|rejected|selected|chosen)?\W*$", re.IGNORECASE)
_CHOSEN = re.compile(r"\W*(?:selected|chosen|accepted)\b", re.IGNORECASE)
_OF_AN_OPTION = re.compile(
    r"\W*(?:pros?|cons?|advantages?|disadvantages?|benefits?|drawbacks?|risks?|evidence (?:for|against)"
    r"|rejected|reasons?|why(?: not)?|because)\W*:",
    re.IGNORECASE,
)
_AGAINST = re.compile(r"cons?|disadvantages?|drawbacks?|against", re.IGNORECASE)
_WHY_NOT = re.compile(r"outcome|verdict|why.*|(?:.*_)?reason(?:_.*)?|rejected.*|because", re.IGNORECASE)
_KNOWN = (
    *("id", "timestamp", "title", "decision", "rationale", "status"),
    *("alternatives", "options_considered", "selected_option"),
)
_KINDS = {"options": "options_considered", "alternative": "alternatives", "approach": "decision"}
_KEPT = ("context", "reversibility", "consequences")
_TITLES = ("summary", "name", "statement", "description", "text")
_TEXTS = ("description", "option", "title", "name", "text", "summary")
_NAMES = ("id", "option", "option_id", "name", "title", "label", "key")


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
        return {key: name for entry in self.entries for name, key in _names_of(entry).items()}


def read(text: str) -> Registry:
    """The registry that a text holds; `guarded_yaml.BadYaml` for what is no YAML, or has no list of decisions. Of one
    in which some lines are no YAML the others are read.
    """
    try:
        record = handwritten.salvage(text)
    except guarded_yaml.BadYaml:
        made = _as_list(text)
        if made is None or not made.decisions:
            raise
        return made
    name, listed, header = _listed(record.tree)
    lines = text.split("\n")
    places = record.places.get(name, [])
    if len(places) != len(listed):
        starts = [] if record.parts else list(_starts(handwritten.tidied(text), name))  # parts: the text is no YAML
        places = [(start + 1, _last_said(lines, start, stop)) for start, stop in pairwise(starts)]
    if len(places) != len(listed):
        places = [(1, len(lines))] * len(listed)  # no entry can be told by its lines
    alone = len(set(places)) == len(places)
    told: list[tuple[WrittenDecision, Mapping[str, Any], str]] = []
    strange: list[int] = []
    undecided: list[tuple[int, int, str]] = []
    for number, (entry, place) in enumerate(zip(listed, places, strict=True), start=1):
        said = "\n".join(lines[place[0] - 1 : place[1]]) if alone else _dumped(entry)
        tree = entry if isinstance(entry, Mapping) else {"title": entry} if _is_sentence(entry) else {}
        if (decision := decision_of(tree, place)) is not None:
            told.append((decision, tree, said))
            continue
        strange.append(number)
        if _is_open(tree):
            undecided.append((*place, said))
    decisions, entries, words = zip(*told, strict=True) if told else ((), (), ())
    return Registry(
        header,
        decisions,
        tuple(strange),
        entries,
        words,
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
    except guarded_yaml.BadYaml:
        return None
    if begins.startswith("["):
        return made
    moved = tuple(replace(one, first_line=one.first_line - 1, last_line=one.last_line - 1) for one in made.decisions)
    return replace(made, decisions=moved)


def _listed(tree: Mapping[str, Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """The list of decisions, by its key, and everything else: at the top, or in a part of it; by its name, else by what
    its entries tell.
    """
    parts = _parts(tree)
    for part in parts:
        if _LIST in part and (listed := _as_entries(part[_LIST])) is not None:
            return _LIST, listed, _without(tree, part, _LIST)
    if _LIST not in tree:
        for part in parts:
            for key, value in part.items():
                listed = value if isinstance(value, list) else []
                if listed and all(isinstance(one, Mapping) and "id" in _names_of(one) for one in listed):
                    decided = (one for one in listed if decision_of(one, (1, 1)) is not None)
                    if any("rationale" in _names_of(one) for one in decided):
                        return key, listed, _without(tree, part, key)
    raise guarded_yaml.BadYaml(NO_LIST)


def _parts(tree: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [tree, *(part for part in tree.values() if isinstance(part, Mapping))]


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
    for part in _parts(header):
        text = str(part.get(name) or "").strip()
        if text and not text.endswith("PLACEHOLDER") and not (text[0] in "{[" and text[-1] in "}]"):
            return text
    return ""


# ---- lines ----


def _starts(text: str, name: str) -> Iterator[int]:
    """The lines, from 0, at which the entries begin, and the one behind the last of them."""
    lines = text.split("\n")
    column, within = -1, False
    for scalar in guarded_yaml.scalars(text):
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


# ---- an entry as the decision that it tells ----


def _names_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """The keys of an entry by what they stand for; its own names where it has them, else what is known to mean the
    same.
    """
    made = {name: name for name in (*_KNOWN, *_KEPT) if entry.get(name) not in _NOTHING}
    for key, value in entry.items():
        if key in made.values() or value in _NOTHING:
            continue
        if (kind := _kind_of(key)) in (*_KNOWN, *_KEPT):
            made.setdefault(kind, key)
    title = next((key for key in _TITLES if isinstance(entry.get(key), str) and entry[key].strip()), "")
    return made if not title or "title" in made or "decision" in made else {**made, "title": title}


@lru_cache(1024)  # keys come again and again
def _kind_of(key: str) -> str:
    words = key.replace("_", " ")
    kind = key_of(words)
    if kind == "options" and re.search(r"alternativ|reject", words, re.IGNORECASE):
        return "alternatives"
    if kind == "decision" and re.search(r"select|cho(?:sen|ice)", words, re.IGNORECASE):
        return "selected_option"
    return _KINDS.get(kind, kind)


def decision_of(entry: Mapping[str, Any], place: tuple[int, int]) -> WrittenDecision | None:
    """The decision that an entry tells, which stands at `place`, first and last line; None where it tells none: it is
    empty, or has options of which none was selected.
    """
    names = _names_of(entry)
    value = {name: entry[key] for name, key in names.items()}
    taken, others = _joined(value)
    title, text = _text(value.get("title")), _text(value.get("decision")) or taken
    if not (title or text) or (others and not text):
        return None
    rest = {name: value[name] for name in _KEPT if name in value}
    rest |= {key: item for key, item in entry.items() if key not in names.values() and item not in _NOTHING}
    return WrittenDecision(
        first_line=place[0],
        last_line=place[1],
        label=_text(value.get("id")),
        title=title,
        text=text,
        rationale=_prose(value.get("rationale")),
        alternatives=tuple(dict.fromkeys((*others, *_alternatives(value.get("alternatives"))))),
        status=_text(value.get("status")),
        timestamp=_text(value.get("timestamp")),
        fields=rest,
    )


def _is_open(entry: Mapping[str, Any]) -> bool:
    """Whether an entry that tells no decision tells anything beside its id."""
    return any(value not in _NOTHING for key, value in entry.items() if key not in (_names_of(entry).get("id"), "id"))


def _joined(value: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What the selected option says, and the others as alternatives."""
    wanted = _selection(value.get("selected_option"))
    taken, others = "", []
    for option in _items(value.get("options_considered")):
        words = _words_of(option)
        if wanted and not taken and _is_selected(option, words, wanted):
            taken = words
        elif words:
            against = [plain(con) for key, cons in option.items() if _AGAINST.fullmatch(key) for con in _texts(cons)]
            others.append(Option("", plain(words), False, [], against).as_alternative())
    return taken or wanted, others


def _selection(value: object) -> str:
    """What names the selected option: its id, or its words."""
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    if isinstance(value, Mapping):
        return next((said for key in (*_NAMES, *_TEXTS) if (said := _text(value.get(key)))), "")
    return _text(value)


def _is_selected(option: Mapping[str, Any], words: str, wanted: str) -> bool:
    texts = [words, *(_text(option.get(key)) for key in _TEXTS)]
    if wanted.casefold() in (text.casefold() for text in texts if text):
        return True
    names = [_text(option.get(key)) for key in _NAMES]
    return any(name and re.match(rf"{re.escape(name)}(?![\w-])", wanted, re.IGNORECASE) for name in names)


def _items(value: object) -> list[Mapping[str, Any]]:
    """Options, each by its fields: of a list of texts or mappings, or of a mapping of ids to them."""
    if isinstance(value, Mapping):
        return [
            {"id": key, **(one if isinstance(one, Mapping) else {"description": one})} for key, one in value.items()
        ]
    listed = value if isinstance(value, list) else [value]
    return [one if isinstance(one, Mapping) else {"description": one} for one in listed if one not in _NOTHING]


def _words_of(option: Mapping[str, Any]) -> str:
    """An option in words: what it is called, where that is no mere id, and what it is described as."""
    said = list(dict.fromkeys(words for key in _TEXTS if (words := _text(option.get(key)))))
    told = [words for words in said if " " in words or not any(map(str.isdigit, words))] or said
    if len(told) < 2:
        return told[0] if told else ""
    text, name = told[0], told[1]
    return text if name.casefold() in text.casefold() else f"{name}: {text}"


def _alternatives(value: object) -> Iterable[str]:
    """Rejected alternatives, each "option: why not"; what is said for or against an option is none."""
    if isinstance(value, Mapping) and not any(key in value for key in _TEXTS):
        value = [{"option": key, "outcome": why} for key, why in value.items()]
    for item in value if isinstance(value, list) else [value]:
        option = item if isinstance(item, Mapping) else {"option": item}
        words = plain(_words_of(option))
        outcome = plain(
            "; ".join(
                text
                for key, why in option.items()
                if _WHY_NOT.fullmatch(key) or _AGAINST.fullmatch(key)
                for text in _texts(why)
            )
        )
        if not words.strip("-_ ") or _CHOSEN.match(words) or _CHOSEN.match(outcome) or _OF_AN_OPTION.match(words):
            continue
        if not _JUDGED.match(outcome):
            yield f"{words}: {outcome}"
        else:
            yield from (one.as_alternative() for one in options_of([Line(1, words)]) if not one.verdict)


def _prose(value: object) -> str:
    """A reason as text: a list as bullets, a mapping as named lines."""
    if isinstance(value, Mapping):
        return "\n".join(f"- {key}: {'; '.join(_texts(one))}" for key, one in value.items() if _texts(one))
    if isinstance(value, list):
        return "\n".join(f"- {text}" for text in _texts(value))
    return _text(value)


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    if isinstance(value, Mapping):
        return [f"{key}: {text}" for key, one in value.items() for text in _texts(one)]
    return [text] if (text := _text(value)) else []


def _text(value: object) -> str:
    if value is None or isinstance(value, (Mapping, list)):
        return ""
    return value.strip() if isinstance(value, str) else str(value)
