"""The entries of a route's talk and log, out of the checkpoints in its journal."""

from __future__ import annotations

from ralf.model.entries import Entry, SessionEntries, from_tree
from ralf.project import Project
from ralf.storage import journal

REVERT = "revert"
"""The kind of a record that goes back to an earlier revision: here, as whoever shows a route needs no fold."""


def sessions_of(project: Project, route: str) -> tuple[SessionEntries, ...]:
    """What this user's sessions on a route came to, in the order of their first checkpoints.

    A revert leaves what there was at its revision. A checkpoint of an earlier version has no entries. Raises
    DamagedJournal.
    """
    there: list[tuple[str, list[Entry]]] = []
    inside: set[str] = set()
    past = [(0, there)]  # what there was from each revision on
    for _, record in journal.read(project.store, route, kinds=("checkpoint", REVERT)):
        if record.kind == REVERT:
            to = record.payload.get("to_revision", 0)
            there = next(then for revision, then in reversed(past) if revision <= to or not revision)
        else:
            session = str((record.payload.get("source") or {}).get("session", ""))
            trees = record.payload.get("entries") or ()
            inside = (inside - {session}) | ({session} if record.payload.get("in_project") is True else set())
            entries = (from_tree(tree) for tree in trees if isinstance(tree, dict))
            there = [*there, (session, [entry for entry in entries if entry is not None])]
        past.append((record.revision, there))
    found: dict[str, list[Entry]] = {}
    for session, entries_ in there:
        found.setdefault(session, []).extend(entries_)
    return tuple(
        SessionEntries(session, tuple(entries_), session in inside) for session, entries_ in found.items() if entries_
    )
