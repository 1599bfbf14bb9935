"""The state of a route as rows: its context by fields, where each session's transcript stands, and known runs.

context/KEY        a field of the context; `sizes`: about how many tokens each decision takes
dropped/N          tombstones, a few a row
offset/SESSION     how far a session's transcript was ingested
note/SESSION/SUM   a note of a session whose transcript is rewritten in place
run/RUN            what was recorded last of a run of a loop
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

from ralf.document.rows import Rows
from ralf.format.codec import Items, from_tree, outlined
from ralf.format.places import sizes
from ralf.model import RouteContext, Tombstone
from ralf.storage.journal import Record, digest_of, runs_of, understood
from ralf.text.patterns import regex

_CONTEXT, _EXTRA, _DROPPED, _SIZES = "context/", "extra", "dropped/", "sizes"

_STONES = 64  # tombstones of one row

_ITEMS = "#items"

_ALIKE = regex("#+items")

_NONE = RouteContext()

_KEYS = {
    field.name: str(field.metadata.get("key", field.name))
    for field in fields(RouteContext)
    if field.name != "extra" and field.metadata.get("stored", True)
}
"""By the names of the context's fields, what they are called in rows."""

_OF_A_CALL = ("tool", "call_id", "text", "timestamp", "cwd")

# ---- the context ----


def context_of(rows: Rows, empty: Callable[[], RouteContext]) -> RouteContext:
    """The context in rows, `empty` for none."""
    if rows.held is None:
        tree = {key.removeprefix(_CONTEXT): _unmarked(value) for key, value in rows.under(_CONTEXT)}
        tree |= _unmarked(rows.one(_EXTRA) or {})
        made = from_tree(RouteContext, tree) if tree else empty()
        if tree:
            stones = tuple(_stone(*row) for _, part in rows.under(_DROPPED) for row in part)
            made = replace(made, dropped=stones) if stones else made
            known = rows.one(_SIZES)
            if known is not None and len(known) == len(made.decisions):
                sizes.know_all(made.decisions, known)
        rows.held = made
    found: RouteContext = rows.held
    return found


def put_context(rows: Rows, before: RouteContext, after: RouteContext) -> None:
    """Have rows hold another context."""
    is_new = not before.revision
    for name, key in _KEYS.items():
        was, now = getattr(before, name), getattr(after, name)
        if name == "dropped":
            _put_stones(rows, () if is_new else was, now)
        elif is_new or was is not now:
            rows.put(f"{_CONTEXT}{key}", partial(_field_of, now) if now != getattr(_NONE, name) else None)
    if is_new or before.extra is not after.extra:
        rows.put(_EXTRA, partial(_field_of, after.extra))
    if is_new or before.decisions is not after.decisions:
        rows.put(_SIZES, partial(sizes.of, after.decisions))
    rows.held = after


def _put_stones(rows: Rows, before: tuple[Tombstone, ...], after: tuple[Tombstone, ...]) -> None:
    if before is after:
        return
    for start in range(0, max(len(before), len(after)), _STONES):
        was, now = before[start : start + _STONES], after[start : start + _STONES]
        if was != now:
            rows.put(f"{_DROPPED}{start:08d}", [_of_stone(stone) for stone in now] or None)


def _of_stone(stone: Tombstone) -> list[Any]:
    return [stone.id, stone.kind, stone.said, stone.words, stone.extra, stone.record]


def _stone(label: str, kind: str, said: str, words: str, extra: Mapping[str, Any], record: str) -> Tombstone:
    return Tombstone(label, kind, said, words, record, dict(extra))


def _field_of(value: Any) -> Any:
    """The value of a field as JSON can hold it."""
    return _marked(outlined(value))


def _marked(tree: Any) -> Any:
    """An outline as JSON can hold it: the texts of items under a key that nothing else has."""
    if isinstance(tree, dict):
        return {f"#{key}" if _ALIKE.fullmatch(key) else key: _marked(inner) for key, inner in tree.items()}
    if tree.__class__ is Items:
        return {_ITEMS: list(tree)}
    return [_marked(inner) for inner in tree] if isinstance(tree, list) else tree


def _unmarked(tree: Any) -> Any:
    if isinstance(tree, dict):
        if _ITEMS in tree:
            return Items(tree[_ITEMS])
        return {key[1:] if _ALIKE.fullmatch(key) else key: _unmarked(inner) for key, inner in tree.items()}
    return [_unmarked(inner) for inner in tree] if isinstance(tree, list) else tree


# ---- what was taken of transcripts, and known runs ----


def take(rows: Rows, record: Record) -> None:
    """Have rows hold what a record says of a transcript, and of runs. Of what a foreign one says nothing was taken."""
    if record.foreign or record.kind not in ("checkpoint", "attempt"):
        return
    source = record.payload.get("source") if record.kind == "checkpoint" else None
    with understood(record.kind, record):
        if source:
            session, byte, line = str(source.get("session", "")), source.get("to_byte", 0), source.get("to_line", 0)
            if min(int(byte), int(line)) < 0:
                raise ValueError("a place before the beginning")
            offset = {
                "byte": int(byte),
                "line": int(line),
                "head": str(source.get("head", "")),
                "tail": str(source.get("tail", "")),
            }
            rows.put(f"offset/{session}", offset | _carried(record.payload))
            for digest in _digests(source.get("notes")):
                rows.put(f"note/{session}/{digest}", True)
        for run in runs_of(record.payload):
            rows.put(f"run/{run.get('run', '')}", _told(run))


def notes_of(rows: Rows, session: str) -> Iterator[str]:
    """The digests of a session's notes."""
    begin = f"note/{session}/"
    return (key.removeprefix(begin) for key, _ in rows.under(begin))


def is_run_known(rows: Rows, run: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether there is a record of a run, and whether the newest one says what a tree says."""
    known = rows.one(f"run/{run.get('run', '')}")
    return known is not None, known == _told(run)


def _digests(tree: object) -> list[str]:
    return [digest for digest in tree if isinstance(digest, str)] if isinstance(tree, list) else []


def _told(run: Mapping[str, Any]) -> str:
    return str(run.get("digest") or "") or digest_of({key: value for key, value in run.items() if key != "again"})


def _carried(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint hands on to the next one. What no writer of ours has made of it counts for nothing: it helps
    the next one to understand its segment, no more.
    """
    pending, tails = payload.get("pending"), payload.get("tails")
    return {
        "pending": [tree for tree in pending if _is_call(tree)] if isinstance(pending, list) else [],
        "tails": tails if isinstance(tails, dict) and all(isinstance(text, str) for text in tails.values()) else {},
    }


def _is_call(tree: object) -> bool:
    return (
        isinstance(tree, dict)
        and all(isinstance(tree.get(key), str) for key in _OF_A_CALL)
        and isinstance(tree.get("input"), dict)
        and all(_is_position(tree.get(key)) for key in ("start", "end"))
    )


def _is_position(tree: object) -> bool:
    return isinstance(tree, dict) and tree.keys() == {"byte", "line"} and all(type(n) is int for n in tree.values())
