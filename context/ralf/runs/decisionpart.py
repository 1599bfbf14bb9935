"""One part of a document as the decision that it tells: from its fields, its options, and what stands before them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ralf.runs.fields import Field, fields_of, key_of, text_of
from ralf.runs.markdown import Line
from ralf.runs.options import Option, chosen, options_of, rejected
from ralf.runs.written import WrittenDecision, plain, time_of

BULLET = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.+)$")
_PLACEHOLDER = re.compile(
    r"FILL_ME|TODO|TBD|\.{3}|…|-+|_+|n/?a|none(?: (?:yet|made))?|title|decision title"
    r"|no (?:\w+ ){0,3}decisions?\b.*|nothing (?:was )?decided\b.*"
    r"|\[[^\]]*\]|\{[^}]*\}+|<[^>]*>",
    re.IGNORECASE,
)
_ASKS = re.compile(r"(?:what|why|how|which|who|when|where)\b[^.?\n]*\?\W*$", re.IGNORECASE)
_UNDECIDED = re.compile(r"\W*(?:pending|open|proposed|undecided|tbd|to be decided|needed|under \w+)\b", re.IGNORECASE)
OF_THE_LOOP = re.compile(r"Based on BB5 state analysis|beginning work", re.IGNORECASE)
"""Reasons that the loop itself writes into every run."""


def is_placeholder(text: str) -> bool:
    """Whether a template's mark, or nothing, stands where words should."""
    return _PLACEHOLDER.fullmatch(plain(text).strip(" :*`")) is not None or not plain(text).strip(" :*`#")


def decision_of(title: str, label: str, lines: Sequence[Line], place: tuple[int, int]) -> WrittenDecision | None:
    """The decision that stands at `place` (first and last line) under a title, its `lines` below; None where only a
    template's marks are there, or what the loop wrote.
    """
    lead, fields = fields_of(lines)
    by_key: dict[str, list[Field]] = {}
    for field in fields:
        by_key.setdefault(field.key, []).append(field)
    choices = (*by_key.get("decision", ()), *by_key.get("approach", ()))
    said = next((field for field in choices if not field.is_empty), None)
    selection = said.value if said is not None else ""
    options = [option for field in by_key.get("options", []) for option in options_of(field.lines)]
    taken = chosen(options, selection)
    text, lead_rest = _choice(selection, taken, lead)
    rationale = _joined(by_key.get("rationale", [])) or lead_rest
    alternatives = (
        *rejected(
            options,
            taken,
            all_others=not any(field.key == "options" and "option" in field.name.lower() for field in fields),
        ),
        *_single_alternatives(by_key),
    )
    taken_up = (
        "rationale",
        "alternative",
        "why not",
        "status",
        "timestamp",
        "id",
        "title",
        *(("options",) if alternatives else ()),
    )
    rest = {
        field.name: field.value for field in fields if field is not said and field.key not in taken_up if field.value
    }
    if rationale and OF_THE_LOOP.fullmatch(plain(rationale)):
        return None
    title = title or next((field.value for field in by_key.get("title", []) if not field.is_empty), "")
    status = next((plain(field.value) for field in by_key.get("status", []) if not field.is_empty), "")
    asked = _ASKS.match(plain(text))
    title = "" if is_placeholder(title) else plain(title)
    text, rationale = ("" if is_placeholder(said) or _ASKS.match(plain(said)) else said for said in (text, rationale))
    if not (title or text) or (not text and not rationale and (asked or _says_nothing(lead, fields))):
        return None
    if not text and _UNDECIDED.match(status):
        return None
    return WrittenDecision(
        first_line=place[0],
        last_line=place[1],
        label=label or next((plain(field.value) for field in by_key.get("id", [])), ""),
        title=title,
        text=text,
        rationale=rationale,
        alternatives=alternatives,
        status=status,
        timestamp=next((time for field in by_key.get("timestamp", []) if (time := time_of(field.value))), ""),
        fields=by_known_name(rest),
    )


def _says_nothing(lead: Sequence[Line], fields: Sequence[Field]) -> bool:
    """Whether all that stands below a heading are a template's marks."""
    values = [*(line.text for line in lead), *(field.value for field in fields)]
    filled = [value for value in values if value.strip()]
    return bool(filled) and all(map(is_placeholder, filled))


def _choice(selection: str, taken: Option | None, lead: Sequence[Line]) -> tuple[str, str]:
    """The words of the choice, and what of the lead is left as its reason."""
    if selection:
        if taken is not None and taken.text and _only_names(selection, taken):
            return taken.text, text_of(lead)
        return selection, text_of(lead)
    if taken is not None:
        return taken.text, text_of(lead)
    return _first_said(lead)


def _only_names(selection: str, taken: Option) -> bool:
    """Whether a selection is an option's name, at most with what the option says: `OPT-002`, `Option B (Stubs)`."""
    named = rf"(?:option\s*)?{re.escape(taken.name)}(?P<gloss>\W.*)?"
    found = re.fullmatch(named, plain(selection).strip(" .*`"), re.IGNORECASE)
    if not taken.name or found is None:
        return False
    words, said = (set(re.findall(r"\w{2,}", one.casefold())) for one in (found["gloss"] or "", taken.text))
    return words <= said


def _first_said(lead: Sequence[Line]) -> tuple[str, str]:
    """The first paragraph or bullet of a text, and the rest of it."""
    lines = [line for line in lead if not line.rule]
    while lines and not lines[0].text.strip():
        lines.pop(0)
    if not lines or lines[0].fenced or lines[0].text.lstrip().startswith("|"):
        return "", text_of(lines)
    bullet = BULLET.match(lines[0].text)
    end = 1
    while end < len(lines):
        text = lines[end].text
        if not text.strip() or lines[end].fenced or (BULLET.match(text) and (not bullet or _outer(text, bullet))):
            break
        end += 1
    first = [bullet[2] if bullet else lines[0].text, *(line.text for line in lines[1:end])]
    return "\n".join(line.rstrip() for line in first).strip(), text_of(lines[end:])


def _outer(text: str, bullet: re.Match[str]) -> bool:
    return len(text) - len(text.lstrip()) <= len(bullet[1])


def _joined(fields: Sequence[Field]) -> str:
    return "\n\n".join(field.value for field in fields if not field.is_empty)


def _single_alternatives(by_key: dict[str, list[Field]]) -> Iterator[str]:
    """`**Alternative Considered:** X` with `**Why Alternative Rejected:**`, in the order of both."""
    reasons = [_as_reason(field) for field in by_key.get("why not", [])]
    for number, field in enumerate(by_key.get("alternative", [])):
        for option in options_of(field.lines):
            if number < len(reasons) and reasons[number] and not option.reasons:
                option.reasons.append(reasons[number])
            yield option.as_alternative()


def _as_reason(field: Field) -> str:
    words = [found[2] if (found := BULLET.match(line.text)) else line.text for line in field.lines if line.text.strip()]
    return "; ".join(plain(text) for text in words)


def by_known_name(fields: dict[str, str]) -> dict[str, str]:
    """The fields, one that is known under its key."""
    made: dict[str, str] = {}
    for name, value in fields.items():
        key = key_of(name) if key_of(name) in ("context", "reversibility", "consequences") else name
        made[key if key not in made else name] = value
    return made
