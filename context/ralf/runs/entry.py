"""One entry of a decision registry as the decision that it tells: the option that was selected, or its title."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ralf.runs.fields import key_of
from ralf.runs.markdown import Line
from ralf.runs.options import Option, options_of
from ralf.runs.written import WrittenDecision, plain

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


def names_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """The keys of an entry by what they stand for; its own names where it has them, else what is known to mean the
    same.
    """
    made = {name: name for name in (*_KNOWN, *_KEPT) if entry.get(name) not in (None, "", [], {})}
    for key, value in entry.items():
        if key in made.values() or value in (None, "", [], {}):
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
    names = names_of(entry)
    value = {name: entry[key] for name, key in names.items()}
    taken, others = _joined(value)
    title, text = _text(value.get("title")), _text(value.get("decision")) or taken
    if not (title or text) or (others and not text):
        return None
    rest = {name: value[name] for name in _KEPT if name in value}
    rest |= {key: item for key, item in entry.items() if key not in names.values() and item not in (None, "", [], {})}
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


def is_open(entry: Mapping[str, Any]) -> bool:
    """Whether an entry that tells no decision tells anything beside its id."""
    return any(
        value not in (None, "", [], {}) for key, value in entry.items() if key not in (names_of(entry).get("id"), "id")
    )


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
    return [
        one if isinstance(one, Mapping) else {"description": one} for one in listed if one not in (None, "", [], {})
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
