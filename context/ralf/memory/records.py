"""Makes and checks the deltas of a memory's records: texts are cleaned and redacted, new items get their labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ralf.document.rows import Rows
from ralf.errors import NotFound, UsageError
from ralf.memory.fold import DELTAS, Book, Delta, apply
from ralf.memory.model import CHOICES, COUNTERS, FIELDS, KINDS, LISTS, LONGEST_QUOTE, LONGEST_TEXT, MOST, item_of
from ralf.text import cleaning

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


def delta(kind: str, id: str = "", **values: Any) -> Delta:  # noqa: A002
    """A delta of a kind of `ralf.memory.fold.DELTAS` about the item of a label, with other values than the usual."""
    return {"kind": kind, **({"id": id} if id else {}), **values}


def new_item(kind: str, **values: object) -> Delta:
    """The delta that adds an item; UsageError for a field that items do not have."""
    unknown = next((name for name in values if name not in FIELDS), "")
    if unknown:
        raise UsageError(unknown, "no field of an item", f"choose one of: {', '.join(sorted(FIELDS))}")
    return delta("add", item={"kind": kind, **values})


def checked(
    book: Book, deltas: Sequence[Delta], redact: Callable[[str], str], *, by_hand: bool = False
) -> Iterator[Delta]:
    """The deltas of one record as they are recorded. UsageError, NotFound.

    book     of the memory that they are for; it stays as it is
    redact   removes secrets from a text
    by_hand  whether a person wrote them into the file: nothing is refused there
    """
    after = Book(book.agent, Rows(book.rows))  # a delta may be about an item that one before it adds
    for one in deltas:
        made = _Checker(after, redact).checked(one, by_hand)
        apply(after, made, after.head.get("last_written", ""))
        yield made


class _Checker:
    def __init__(self, book: Book, redact: Callable[[str], str]) -> None:
        self._book = book
        self._redact = redact

    def checked(self, found: Delta, by_hand: bool) -> Delta:
        kind, usual = found["kind"], DELTAS[found["kind"]]
        made = {"kind": kind}
        for name, value in found.items():
            if name in usual and value != usual[name]:
                is_values = name == "values"
                made[name] = self._values(found["id"], value, by_hand) if is_values else self._value(name, value)
        if kind == "add":
            return {**made, "item": self._item(found["item"], by_hand, again=bool(found.get("again")))}
        if kind == "note":
            text = self._redact(cleaning.shown(found["text"]))[:_LONGEST_NOTE].strip("\n")
            return {**made, "text": text}
        if kind == "snapshot":
            cleaning.check(found["name"])
        if "id" not in usual:
            return made
        item = self._book.get(found["id"])
        if item is None:
            shown = cleaning.one_line(cleaning.clean(found["id"]))[:80]
            raise NotFound(shown or '""', "no such item in the memory", "ralf memory show")
        if kind in ("edit", "drop") and item.origin == "person" and found.get("origin", "agent") in ("agent", "model"):
            raise UsageError(item.id, "a person said so: an agent does not change it", f"ralf memory edit {item.id}")
        if kind == "outcome" and found.get("verdict", "helpful") not in ("helpful", "harmful", "stale", "fresh"):
            raise UsageError(item.id, "an outcome is helpful, harmful, stale or fresh")
        return made

    def _item(self, tree: Mapping[str, Any], by_hand: bool, *, again: bool) -> dict[str, Any]:
        kind = tree["kind"]
        if kind not in KINDS:
            raise UsageError(ascii(kind)[1:-1][:40], f"no kind of item; choose one of: {', '.join(KINDS)}")
        values = {name: value for name, value in tree.items() if name not in ("id", "kind")}
        made = {"kind": kind, **self._values(kind, values, by_hand)}
        share, item = made.pop("confidence", None), item_of({"id": "", **made})
        if share is not None and item.percent != f"{100 * share:.6g}":
            made["base"] = item.base_for(share)
        if again:
            return {"id": tree["id"], **made}
        missing = [name for name in (KINDS[kind].before, KINDS[kind].head) if name and not made.get(name)]
        if missing and not by_hand and not (kind == "trap" and made.get("command")):
            raise UsageError(kind, f"a {kind} needs a {' and a '.join(missing)}", "ralf memory add --help")
        is_proved = made.get("origin") == "mechanical" and kind in _FROM_LOGS
        if made.get("origin") != "person" and not is_proved:
            made["status"] = "offered"  # text out of a tool never becomes a rule by itself
        return {"id": f"{kind}-{self._book.head.get('numbers', {}).get(kind, 0) + 1}", **made}

    def _values(self, where: str, values: Mapping[str, Any], by_hand: bool) -> dict[str, Any]:
        """Fields as they are kept, of text or of what the fields hold; what one cannot hold stays text by hand."""
        made: dict[str, Any] = {}
        for name, value in values.items():
            if name == "extra":
                named = ((_name(one), self._line(str(each))) for one, each in value.items())
                made[name] = {one: each for one, each in named if one}
            elif plain := name if name in FIELDS else _name(name):
                try:
                    made[plain] = self._value(name, value)
                except ValueError as error:
                    if not by_hand:
                        what = f"{name} cannot be {ascii(value)[:40]}{error if name in CHOICES else ''}"
                        raise UsageError(where, what, "ralf memory edit --help") from None
                    made[f"{name} said"] = self._line(value)
        return made

    def _value(self, name: str, value: Any) -> Any:
        """The value of a field. ValueError."""
        if name in LISTS:
            parts = value.split(";") if isinstance(value, str) else value
            lines = (self._line(str(one).replace(";", ","), _LONGEST_REFERENCE) for one in parts)
            return list(dict.fromkeys(filter(None, lines)))
        if name in (*COUNTERS, "times"):
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
        if not isinstance(value, str):
            return value
        line = self._line(value, LONGEST_QUOTE if name == "error" else LONGEST_TEXT)
        # the file tells a key from what follows by a colon
        return cleaning.one_line(_COLON.sub(" -", line)).strip(" -") if name in ("key", "agent") else line

    def _line(self, text: str, most: int = LONGEST_TEXT) -> str:
        """A text on one line, without secrets, and with nothing in it that nobody sees."""
        return cleaning.trimmed(self._redact(cleaning.one_line(cleaning.shown(text))), most)


def _name(text: str) -> str:
    return cleaning.one_line(_NAME.sub(" ", text))[:_LONGEST_NAME].strip(" _-")
