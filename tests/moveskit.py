"""Moves of routes for tests: what a rename leaves in the store."""

from __future__ import annotations

import uuid
from pathlib import Path

from ralf import project as projects, routing
from ralf.routing import Move
from ralf.storage import journal
from ralf.storage.journal import Record


def told(root: Path, old: str, new: str) -> Move:
    """Append what tells that a route goes by another name."""
    id_, stream, store = f"rename-{uuid.uuid4().hex}", routing.stream_of_move(old), projects.find(root).store
    move = Move(old, new, id_)
    record = journal.line_of(Record(1, "move", move._asdict()))
    store.append(stream, record, id=id_, after=store.head(stream))
    return move
