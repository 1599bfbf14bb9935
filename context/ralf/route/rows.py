"""The state of a route as rows: its context by fields, where each session's transcript ends, and known runs.

context/KEY        a field of the context; `size`: the tokens of its file, at most
decision/NUMBER    a decision, in their order
offset/SESSION     how far a session's transcript was ingested
note/SESSION/SUM   a note of a session whose transcript is rewritten in place
run/RUN            what was recorded last of a run of a loop
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from ralf.document.rows import Rows
from ralf.document.tree import Tree, from_tree, to_tree
from ralf.model import Decision, RouteContext
from ralf.storage.journal import Record, digest_of, runs_of, understood
from ralf.text.frozen import by_identity, fields, replace

_CONTEXT, _DECISION, _SIZE = "context/", "decision/", "size"

_STORED = [field.name for field in fields(RouteContext) if field.metadata.get("stored", True)]

# ---- the context ----


def context_of(rows: Rows, route: str) -> RouteContext:
    """The context of a route that rows hold."""
    if rows.held is None:
        tree: dict[str, Any] = {}
        for _, part in rows.under(_CONTEXT):
            tree |= part
        decisions = [item for _, item in rows.under(_DECISION)]
        if not tree and not decisions:
            from ralf.route import fold  # a read of a route that has records needs none

            return fold.empty(route)
        found = from_tree(RouteContext, tree)
        rows.held = replace(found, decisions=tuple(map(_decision, decisions)), size=rows.one(_SIZE) or 0)
    held: RouteContext = rows.held
    return held


@by_identity
def _decision(tree: Tree) -> Decision:
    return from_tree(Decision, tree)


def put_context(rows: Rows, before: RouteContext, after: RouteContext) -> None:
    """Have rows hold another context."""
    for name in _STORED:
        now = getattr(after, name)
        if name == "decisions":
            _put_decisions(rows, before.decisions if before.revision else (), after.decisions)
        elif not before.revision or getattr(before, name) is not now:
            rows.put(f"{_CONTEXT}{name}", partial(to_tree, RouteContext(**{name: now})))
    rows.put(_SIZE, after.size)
    rows.held = after


def _put_decisions(rows: Rows, before: Sequence[Decision], after: Sequence[Decision]) -> None:
    """Have rows hold other decisions: a write of one more costs as much as that one."""
    for number, (was, now) in enumerate(zip_longest(before, after)):
        if now is not was:
            rows.put(f"{_DECISION}{number:06}", None if now is None else partial(to_tree, now))


# ---- what was ingested of transcripts, and known runs ----
def take(rows: Rows, record: Record) -> None:
    """Have rows hold what a record says of a transcript, and of runs."""
    payload = record.payload
    with understood(record.kind, record):
        if record.kind == "checkpoint" and payload.get("source"):
            source = payload["source"]
            session, notes = str(source.get("session", "")), source.get("notes")
            offset: dict[str, Any] = {key: int(source.get(f"to_{key}", 0)) for key in ("byte", "line")}
            if min(offset.values()) < 0:
                raise ValueError("a place before the beginning")
            offset |= {key: str(source.get(key, "")) for key in ("head", "tail")}
            offset |= {key: payload.get(key) or empty for key, empty in (("pending", []), ("tails", {}))}
            rows.put(f"offset/{session}", offset)
            for digest in notes if isinstance(notes, list) else ():  # earlier versions counted them
                rows.put(f"note/{session}/{digest}", True)
        for run in runs_of(payload) if record.kind in ("checkpoint", "attempt") else ():
            rows.put(f"run/{run.get('run', '')}", _told(run))


def notes_of(rows: Rows, session: str) -> Iterator[str]:
    """The digests of a session's notes."""
    begin = f"note/{session}/"
    return (key.removeprefix(begin) for key, _ in rows.under(begin))


def is_run_known(rows: Rows, run: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether there is a record of a run, and whether the newest one says what a tree says."""
    known = rows.one(f"run/{run.get('run', '')}")
    return known is not None, known == _told(run)


def _told(run: Mapping[str, Any]) -> str:
    return str(run.get("digest") or "") or digest_of({key: value for key, value in run.items() if key != "again"})
