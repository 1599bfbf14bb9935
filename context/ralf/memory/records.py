"""Makes and checks the deltas of a memory's records: texts are cleaned and redacted, new items get their labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ralf.errors import NotFound, UsageError
from ralf.memory.fold import Delta, apply, may_change
from ralf.memory.model import (
    CHOICES,
    COUNTERS,
    FIELDS,
    KINDS,
    LISTS,
    LONGEST_QUOTE,
    LONGEST_TEXT,
    MOST,
    OWN,
    Memory,
    item_of,
)
from ralf.text import cleaning
from ralf.text.frozen import dataclass

STREAMS = "agents/"
"""Begins the names of the streams."""

_FROM_LOGS = ("trap", "command")
"""Kinds that a client's log proves; any other kind that no person stated is offered first."""

_LONGEST_NOTE, _LONGEST_REFERENCE, _LONGEST_NAME = 64 << 10, 200, 40

_FIRST = {"origin": "person", "status": "active"}  # what it is where a person takes the line out of the file

_NAME = re.compile(r"[^A-Za-z0-9 _-]+")

_COLON = re.compile(r"(?<!:):+(?=\s|$)")


def stream_of(agent: str) -> str:
    """The name of the stream of an agent's memory."""
    return f"{STREAMS}{agent}"


# ---- deltas ----


def delta(kind: str, id: str = "", **values: Any) -> Delta:  # noqa: A002
    """A delta of a kind of `ralf.memory.fold.Delta` about the item of a label."""
    return {"kind": kind, **({"id": id} if id else {}), **values}


def new_item(kind: str, **values: object) -> Delta:
    """The delta that adds an item; UsageError for a field that items do not have."""
    unknown = next((name for name in values if name not in FIELDS), "")
    if unknown:
        raise UsageError(unknown, "no field of an item", f"choose one of: {', '.join(sorted(OWN))}")
    return delta("add", item={"kind": kind, **values})


def stated(kind: str, text: str, **values: Any) -> Delta:
    """The delta that adds what somebody says in one text: a trap's or a command's command line, a preference or a
    relationship as "NAME: what", else the text itself. UsageError.

    values  further fields
    """
    schema = KINDS[kind]
    own: dict[str, Any] = {"command": text, "uses": 1} if kind == "trap" else {schema.head: text}
    if schema.before:
        name, colon, what = text.partition(": " if ": " in text else ":")
        if not (colon and name.strip() and what.strip()):
            raise UsageError(kind, 'say "NAME: what"', f'ralf memory add {kind} "NAME: what"')
        own = {schema.before: name.strip(), schema.head: what.strip()}
    return new_item(kind, **own, **values)


def edit_of(label: str, values: Sequence[str], origin: str = "person") -> Delta:
    """The delta of `FIELD=VALUE` that somebody types about an item; confidence is from 0 to 1 or in percent."""
    typed: dict[str, Any] = {}
    for value in values:
        name, sign, what = value.partition("=")
        if not sign or not name.strip():
            raise UsageError(value[:80], "is not FIELD=VALUE", "ralf memory edit --help")
        typed[name.strip()] = what
    share = typed.get("confidence", "")
    if share.replace(".", "", 1).isdigit():  # of 1, not in percent
        typed["confidence"] = float(share)
    return delta("edit", label, values=typed, origin=origin)


# ---- as they are recorded ----


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Makes values as they are kept.

    redact   removes secrets from a text
    by_hand  whether a person wrote them into the file: what a field cannot hold stays a text there
    """

    redact: Callable[[str], str]
    by_hand: bool = False

    def line(self, text: str, most: int = LONGEST_TEXT) -> str:
        """A text on one line, without secrets, and with nothing in it that nobody sees."""
        return cleaning.trimmed(self.redact(cleaning.one_line(cleaning.shown(text))), most)

    def fields(self, where: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of an item. UsageError."""
        made: dict[str, Any] = {}
        for name, value in values.items():
            plain = name if name in FIELDS else _name_of(name)
            try:
                if plain:
                    made[plain] = self.value(name, value)
            except ValueError as error:
                if not self.by_hand:
                    what = f"{name} cannot be {ascii(value)[:40]}{error if name in CHOICES else ''}"
                    raise UsageError(where, what, "ralf memory edit --help") from None
                made[f"{name} said"] = self.line(value)
        return made

    def value(self, name: str, value: Any) -> Any:
        """The value of a field. ValueError."""
        if name in LISTS:
            parts = value.split(";") if isinstance(value, str) else value
            lines = (self.line(str(one).replace(";", ","), _LONGEST_REFERENCE) for one in parts)
            return list(dict.fromkeys(filter(None, lines)))
        if name in COUNTERS:
            if not 0 <= (number := int(value or 0)) <= MOST:
                raise ValueError
            return number
        if name == "confidence":
            share = float(value.rstrip("%")) / 100 if isinstance(value, str) else float(value)
            if not 0 <= share <= 1:
                raise ValueError
            return share
        if name in CHOICES:
            if value not in ("", *CHOICES[name]):
                raise ValueError(f"; choose one of: {', '.join(CHOICES[name])}")
            return value or _FIRST.get(name, "")
        if name == "extra":
            named = ((_name_of(one), self.line(str(each))) for one, each in value.items())
            return {one: each for one, each in named if one}
        if not isinstance(value, str):
            return value
        line = self.line(value, LONGEST_QUOTE if name == "error" else LONGEST_TEXT)
        # the file tells a key from what follows by a colon
        return cleaning.one_line(_COLON.sub(" -", line)).strip(" -") if name in ("key", "agent") else line


def checked(
    memory: Memory, deltas: Sequence[Delta], redact: Callable[[str], str], *, by_hand: bool = False
) -> Iterator[Delta]:
    """The deltas of one record as they are recorded. UsageError, NotFound.

    memory   that they are for
    redact   removes secrets from a text
    by_hand  whether a person wrote them into the file: nothing is refused there
    """
    cleaner = Cleaner(redact, by_hand)
    for one in deltas:
        made = _checked(memory, one, cleaner)
        memory = apply(memory, made, memory.last_written)  # a delta may be about an item that one before it adds
        yield made


def _checked(memory: Memory, found: Delta, cleaner: Cleaner) -> Delta:
    kind = found["kind"]
    if kind == "add":
        return {**found, "item": _item(memory, found["item"], cleaner)}
    if kind == "note":
        text = cleaner.redact(cleaning.shown(found["text"]))[:_LONGEST_NOTE].strip("\n")
        return {**found, "heading": cleaner.line(found["heading"]), "text": text}
    if kind == "snapshot":
        cleaning.check(found["name"])
    if "id" not in found:
        return found
    item = memory.get(found["id"])
    if item is None:
        shown = cleaning.one_line(cleaning.clean(found["id"]))[:80]
        raise NotFound(shown or '""', "no such item in the memory", "ralf memory show")
    if not may_change(item, found):
        raise UsageError(item.id, "a person says so, and an agent does not", f"ralf memory edit {item.id}")
    values = {"values": cleaner.fields(item.id, found["values"])} if kind == "edit" else {}
    return {**{name: cleaner.value(name, value) for name, value in found.items() if name != "values"}, **values}


def _item(memory: Memory, tree: Mapping[str, Any], cleaner: Cleaner) -> dict[str, Any]:
    kind = tree["kind"]
    if kind not in KINDS:
        raise UsageError(ascii(kind)[1:-1][:40], f"no kind of item; choose one of: {', '.join(KINDS)}")
    made = {"kind": kind, **cleaner.fields(kind, {name: value for name, value in tree.items() if name != "kind"})}
    share, item = made.pop("confidence", None), item_of({"id": "", **made})
    if share is not None and item.percent != f"{100 * share:.6g}":
        made["base"] = item.base_for(share)
    missing = [name for name in (KINDS[kind].before, KINDS[kind].head) if name and not made.get(name)]
    if missing and not cleaner.by_hand and not (kind == "trap" and made.get("command")):
        raise UsageError(kind, f"a {kind} needs a {' and a '.join(missing)}", "ralf memory add --help")
    is_proved = made.get("origin") == "mechanical" and kind in _FROM_LOGS
    if made.get("origin") != "person" and not is_proved:
        made["status"] = "offered"  # text out of a tool never becomes a rule by itself
    return {"id": f"{kind}-{memory.numbers.get(kind, 0) + 1}", **made}


def _name_of(text: str) -> str:
    return cleaning.one_line(_NAME.sub(" ", text))[:_LONGEST_NAME].strip(" _-")
