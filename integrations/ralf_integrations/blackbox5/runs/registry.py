"""A decision registry: the YAML in which a run, or a whole project, keeps its decisions as entries.

Known shapes of an entry: a run's (`context options_considered selected_option rationale reversibility …`: what was
decided is the description of the option that is named, the others are the alternatives) and a project's (`title
rationale alternatives[{option, outcome}] source_file source_run …`: the title is all there is); the names may be any
that stand for the same in a Markdown document (`reason`, `chosen_option`). Counts are never believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from ralf.document import guarded_yaml
from ralf.text.cleaning import one_line
from ralf.transcripts.events import leaves
from ralf_integrations.blackbox5.runs import handwritten
from ralf_integrations.blackbox5.runs.decisions import KEPT, NOTHING, WrittenDecision
from ralf_integrations.blackbox5.runs.markdown import Line, plain
from ralf_integrations.blackbox5.runs.options import Option, options_of

NO_LIST = "no list of decisions"
"""What is said of YAML that is no registry."""

_LIST = "decisions"
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
_KEYS = {
    "id": ("id", "decision_id"),
    "timestamp": ("timestamp", "date", "decided_at"),
    "title": ("title", "topic", "summary", "name", "statement", "description", "text"),
    "decision": ("decision", "choice", "resolution", "what", "approach"),
    "rationale": ("rationale", "reason", "reasoning", "why", "because", "justification"),
    "status": ("status", "state"),
    "alternatives": ("alternatives", "rejected_alternatives", "alternatives_considered", "alternative"),
    "options_considered": ("options_considered", "options", "considered"),
    "selected_option": ("selected_option", "chosen_option", "selected", "chosen", "selection"),
    **{name: (name,) for name in KEPT},
}
"""What a decision is told by, and the keys that stand for it, the usual one first."""

_TEXTS = ("description", "option", "title", "name", "text", "summary")
_NAMES = ("id", "option", "option_id", "name", "title", "label", "key")


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry's decisions, in its order.

    header     everything but the decisions, as it stands
    words      each decision's entry in its own words: its lines, or, where others stand on these too, its values
    undecided  entries that tell no decision, but something: first line, last line, words
    broken     lines that are no YAML: first, last, and why
    remark     the comments at its head, which may name the task
    """

    header: Mapping[str, Any]
    decisions: tuple[WrittenDecision, ...] = ()
    words: tuple[str, ...] = ()
    undecided: tuple[tuple[int, int, str], ...] = ()
    broken: tuple[tuple[int, int, str], ...] = ()
    remark: str = ""

    @property
    def task(self) -> str:
        """The task that it says it is of, "" where it does not, or holds a template's mark."""
        named = _TASK.search(self.remark)
        return _said(self.header, "task_id") or (named[0].rstrip("-") if named is not None else "")


def read(text: str) -> Registry:
    """The registry that a text holds; `guarded_yaml.BadYaml` for what is no YAML, or has no list of decisions. Of one
    in which some lines are no YAML the others are read.
    """
    begins = handwritten.tidied(text).lstrip()
    try:
        return _read(text)
    except guarded_yaml.BadYaml:
        if not begins.startswith(("- ", "[", "#")):
            raise
        moved = 0 if begins.startswith("[") else 1  # a list and nothing else
        made = _read(f"{_LIST}:{' ' if not moved else chr(10)}{handwritten.tidied(text)}")
        if not made.decisions:
            raise
        lines = ((one, one.first_line - moved, one.last_line - moved) for one in made.decisions)
        return replace(
            made, decisions=tuple(replace(one, first_line=first, last_line=last) for one, first, last in lines)
        )


def _read(text: str) -> Registry:
    record = handwritten.load(text)
    name, listed, header = _listed(record.tree)
    lines = text.split("\n")
    places = handwritten.items_at(text, name)
    if len(places) != len(listed):  # those of which nothing could be read are not listed
        lost = {first for first, last, _ in record.broken if (first, last) in places}
        places = [place for place in places if place[0] not in lost]
    if not (alone := len(places) == len(listed)):
        places = [(1, len(lines))] * len(listed)  # no entry can be told by its lines
    told: list[WrittenDecision] = []
    words: list[str] = []
    undecided: list[tuple[int, int, str]] = []
    for entry, place in zip(listed, places, strict=True):
        said = "\n".join(lines[place[0] - 1 : place[1]]) if alone else _dumped(entry)
        is_sentence = isinstance(entry, str) and len(entry.split()) > 1
        tree = entry if isinstance(entry, Mapping) else {"title": entry} if is_sentence else {}
        if (decision := decision_of(tree, place)) is not None:
            told.append(decision)
            words.append(said)
        elif any(value not in NOTHING for key, value in tree.items() if key not in (_names_of(tree).get("id"), "id")):
            undecided.append((*place, said))
    remark = "\n".join(takewhile(lambda line: line.startswith("#"), lines))
    return Registry(header, tuple(told), tuple(words), tuple(undecided), tuple(record.broken), remark)


def _listed(tree: Mapping[str, Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """The list of decisions, by its key, and everything else: at the top, or in a part of it; by its name, else by what
    its entries tell.
    """
    parts = [tree, *(part for part in tree.values() if isinstance(part, Mapping))]
    for part in parts:
        for key, value in part.items():
            listed = _as_entries(value)
            if listed is not None and (key == _LIST or (_LIST not in tree and _are_decisions(listed))):
                left = {name: one for name, one in part.items() if name != key}
                whole = left if part is tree else {name: left if one is part else one for name, one in tree.items()}
                return key, listed, whole
    raise guarded_yaml.BadYaml(NO_LIST)


def _as_entries(value: object) -> list[Any] | None:
    if value is None:
        return []
    if isinstance(value, Mapping) and all(isinstance(one, Mapping) for one in value.values()):
        return [{"id": key, **one} for key, one in value.items()]
    return value if isinstance(value, list) else None


def _are_decisions(listed: list[Any]) -> bool:
    if not listed or not all(isinstance(one, Mapping) and "id" in _names_of(one) for one in listed):
        return False
    return any("rationale" in _names_of(one) and decision_of(one, (1, 1)) is not None for one in listed)


def _dumped(entry: object) -> str:
    if not isinstance(entry, Mapping):
        return str(entry)
    return "\n".join(f"{key}: {said}" for key, value in entry.items() if (said := one_line(leaves(value))))


def _said(header: Mapping[str, Any], name: str) -> str:
    for part in (header, *(part for part in header.values() if isinstance(part, Mapping))):
        text = str(part.get(name) or "").strip()
        if text and not text.endswith("PLACEHOLDER") and not (text[0] in "{[" and text[-1] in "}]"):
            return text
    return ""


# ---- an entry as the decision that it tells ----


def _names_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """The keys of an entry by what they stand for, of several the first one of `_KEYS` that says something."""
    filled = {key: value for key, value in entry.items() if value not in NOTHING}
    made = {name: next((key for key in keys if key in filled), "") for name, keys in _KEYS.items()}
    is_told = made["title"] in ("", "title") or isinstance(filled[made["title"]], str)
    drop = {"title"} if made["title"] != "title" and (made["decision"] or not is_told) else set()
    return {name: key for name, key in made.items() if key and name not in drop}


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
    rest = {name: value[name] for name in KEPT if name in value}
    rest |= {key: item for key, item in entry.items() if key not in names.values() and item not in NOTHING}
    return WrittenDecision(
        *place,
        label=_text(value.get("id")),
        title=title,
        text=text,
        rationale=_prose(value.get("rationale")),
        alternatives=tuple(dict.fromkeys((*others, *_alternatives(value.get("alternatives"))))),
        status=_text(value.get("status")),
        timestamp=_text(value.get("timestamp")),
        fields=rest,
    )


def _joined(value: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What the selected option says, and the others as alternatives."""
    selected = value.get("selected_option")
    selected = selected[0] if isinstance(selected, list) and len(selected) == 1 else selected
    parts = [selected.get(key) for key in (*_NAMES, *_TEXTS)] if isinstance(selected, Mapping) else [selected]
    wanted = next(filter(None, map(_text, parts)), "")
    taken, others = "", []
    for option in _items(value.get("options_considered")):
        words = _words_of(option)
        if wanted and not taken and _is_selected(option, words, wanted):
            taken = words
        elif words:
            against = [plain(con) for key, cons in option.items() if _AGAINST.fullmatch(key) for con in _texts(cons)]
            others.append(Option("", plain(words), False, [], against).as_alternative())
    return taken or wanted, others


def _is_selected(option: Mapping[str, Any], words: str, wanted: str) -> bool:
    texts = [words, *(_text(option.get(key)) for key in _TEXTS)]
    names = filter(None, (_text(option.get(key)) for key in _NAMES))
    return wanted.casefold() in (text.casefold() for text in texts if text) or any(
        re.match(rf"{re.escape(name)}(?![\w-])", wanted, re.IGNORECASE) for name in names
    )


def _items(value: object) -> list[Mapping[str, Any]]:
    """Options, each by its fields: of a list of texts or mappings, or of a mapping of ids to them."""
    named = list(value.items()) if isinstance(value, Mapping) else []
    listed = value if isinstance(value, list) else [value] if not named else []
    pairs = [*named, *((None, one) for one in listed if one not in NOTHING)]
    return [
        {**({"id": key} if key is not None else {}), **(one if isinstance(one, Mapping) else {"description": one})}
        for key, one in pairs
    ]


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
        whys = (why for key, why in option.items() if _WHY_NOT.fullmatch(key) or _AGAINST.fullmatch(key))
        outcome = plain("; ".join(text for why in whys for text in _texts(why)))
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
    return "\n".join(f"- {text}" for text in _texts(value)) if isinstance(value, list) else _text(value)


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
