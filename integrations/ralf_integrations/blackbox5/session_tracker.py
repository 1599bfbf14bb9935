"""Checkpoints in the tracking of a run: the `tracking.json` of BlackBox5's session tracker."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf.errors import Damaged
from ralf.storage import durable, locks
from ralf.storage.files import content_of

TRACKING, KEY = "tracking.json", "checkpoints"
_MOST = 64 << 20  # bytes


def record_checkpoint(
    run: str | os.PathLike[str] | None,
    checkpoint_id: str,
    *,
    route: str = "",
    autonomous_root: str | os.PathLike[str] | None = None,
) -> bool:
    """Note a checkpoint in a run's `tracking.json`: only the key `checkpoints` is added to.

    run              the run's folder, its `tracking.json`, or its id below `autonomous_root`/runs
    checkpoint_id    `cp-001`; the same one of the same route is noted once

    Whether anything was written; without a run, or one that is not tracked, nothing is, and nothing is said. Damaged
    for a file that is not what it should be; OSError; Busy.
    """
    if not run or not checkpoint_id:
        return False
    folder = Path(run).parent if Path(run).name == TRACKING else Path(run)
    if autonomous_root is not None and not folder.is_dir():
        folder = Path(autonomous_root, "runs", folder.name)
    path = folder / TRACKING
    if not path.is_file():
        return False
    with locks.locked(path.with_name(f".{path.name}.lock"), str(path)):
        try:
            tree = json.loads(content_of(path, most=_MOST))
        except (ValueError, RecursionError) as error:
            raise Damaged(path, f"is no JSON: {error}", "mend the file, or move it away") from None
        if not isinstance(tree, dict):
            raise Damaged(path, "is no tracking of a run", "mend the file, or move it away")
        if not _added(tree, checkpoint_id, route):
            return False
        durable.write(path, json.dumps(tree, indent=2).encode("utf-8", "surrogatepass"), mode=0o644)
        return True


class RecordsCheckpoints:
    """What `class SessionTracker(RecordsCheckpoints, …)` gets from us: one method more, for a tracker that holds all it
    knows of a run and saves it: `data` with `_save()`, as BlackBox5's own class does, or `run_data` with
    `_save_tracking()`, as the proposal for it has it.
    """

    def record_checkpoint(self, checkpoint_id: str, route: str = "") -> bool:
        """Note a checkpoint of the run that was started; without one nothing is done. Whether anything was."""
        name, save = ("data", "_save") if hasattr(self, "_save") else ("run_data", "_save_tracking")
        data = getattr(self, name)
        is_begun = isinstance(data, dict) and bool(data.get("run_id") or (name == "run_data" and data))
        if not is_begun or not checkpoint_id or not _added(data, checkpoint_id, route):
            return False
        getattr(self, save)()
        return True


def _added(tree: dict[str, Any], checkpoint_id: str, route: str) -> bool:
    """Add an entry to the key, unless it is there already; what somebody else has put there stays in front of it."""
    known = tree.get(KEY, [])
    entries = known if isinstance(known, list) else [known]
    same = [(one.get("checkpoint_id"), one.get("route", "")) for one in entries if isinstance(one, dict)]
    if (checkpoint_id, route) in same:
        return False
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"checkpoint_id": checkpoint_id, **({"route": route} if route else {}), "timestamp": now}
    tree[KEY] = [*entries, told]
    return True
