"""Checkpoints in the tracking of a run: the `tracking.json` of BlackBox5's session tracker."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf.errors import Damaged
from ralf.storage import durable, locks
from ralf.storage.files import content_of

TRACKING, KEY = "tracking.json", "checkpoints"
_MOST = 64 << 20  # bytes


def record_checkpoint(run: str | Path | None, checkpoint_id: str, *, route: str = "") -> bool:
    """Note a checkpoint in the `tracking.json` of a run's folder: only the key `checkpoints` is added to, and the same
    checkpoint of the same route is noted once. Whether anything was written; without a run, or one that is not tracked,
    nothing is, and nothing is said. Damaged for a file that is not what it should be; OSError; Busy.
    """
    path = Path(run, TRACKING) if run else None
    if path is None or not path.is_file():
        return False
    with locks.locked(path.with_name(f".{path.name}.lock"), str(path)):
        try:
            tree = json.loads(content_of(path, most=_MOST))
        except (ValueError, RecursionError):
            tree = None
        if not isinstance(tree, dict):
            raise Damaged(path, "is no tracking of a run", "mend the file, or move it away")
        if is_new := _added(tree, checkpoint_id, route):
            durable.write(path, json.dumps(tree, indent=2).encode("utf-8", "surrogatepass"), mode=0o644)
        return is_new


class RecordsCheckpoints:
    """What `class SessionTracker(RecordsCheckpoints, …)` gets from us: one method more, for a tracker that holds all it
    knows of a run and saves it: `data` with `_save()`, as BlackBox5's own class does, or `run_data` with
    `_save_tracking()`, as the proposal for it has it.
    """

    def record_checkpoint(self, checkpoint_id: str, route: str = "") -> bool:
        """Note a checkpoint of the run that was started; without one nothing is done. Whether anything was."""
        name, save = ("data", "_save") if hasattr(self, "_save") else ("run_data", "_save_tracking")
        data: dict[str, Any] = getattr(self, name) or {}
        if not data.get("run_id", data) or not _added(data, checkpoint_id, route):
            return False
        getattr(self, save)()
        return True


def _added(tree: dict[str, Any], checkpoint_id: str, route: str) -> bool:
    """Add an entry to the key, unless it is there already; what somebody else has put there stays in front of it."""
    known = tree.get(KEY, [])
    entries = known if isinstance(known, list) else [known]
    same = [(one.get("checkpoint_id"), one.get("route", "")) for one in entries if isinstance(one, dict)]
    if not checkpoint_id or (checkpoint_id, route) in same:
        return False
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"checkpoint_id": checkpoint_id, **({"route": route} if route else {}), "timestamp": now}
    tree[KEY] = [*entries, told]
    return True
