"""Checkpoints in the tracking of a run: `tracking.json` and `history/runs.json` of BlackBox5's session tracker."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf.errors import Damaged, UsageError
from ralf.storage import durable, locks
from ralf.storage.files import content_of

TRACKING = "tracking.json"
HISTORY = Path("history", "runs.json")
KEY = "checkpoints"

_TRACKERS = (("data", "_save"), ("run_data", "_save_tracking"))
"""Where the trackers there are hold what they know of a run, and how they save it."""

_MOST = 64 << 20  # bytes
_MODE = 0o644
_MEND = "mend the file, or move it away"


def record_checkpoint(
    run: str | os.PathLike[str] | None,
    checkpoint_id: str,
    *,
    route: str = "",
    autonomous_root: str | os.PathLike[str] | None = None,
) -> bool:
    """Note a checkpoint in a run's `tracking.json`, and in its row of the history where it has one.

    run              the run's folder, its `tracking.json`, or its id below `autonomous_root`/runs
    checkpoint_id    `cp-001`; the same one of the same route is noted once
    autonomous_root  the tracker's own; None: the folder above the run's `runs`

    Only the key `checkpoints` is added to; every other one stays. Whether anything was written; without a run, or one
    that is not tracked, nothing is, and nothing is said. Damaged for a file that is not what it should be; OSError;
    Busy.
    """
    if not run or not checkpoint_id:
        return False
    folder = Path(run).parent if Path(run).name == TRACKING else Path(run)
    if autonomous_root is not None and not folder.is_dir():
        folder = Path(autonomous_root, "runs", folder.name)
    tracking = folder / TRACKING
    if not tracking.is_file():
        return False
    entry = _entry(checkpoint_id, route)
    written = _changed(tracking, lambda tree: _added(_mapping(tracking, tree), entry))
    top = Path(autonomous_root) if autonomous_root is not None else folder.parent.parent
    history = top / HISTORY
    if history.is_file():
        written = _changed(history, lambda tree: _in_row(history, tree, folder.name, entry)) or written
    return written


def record_on(tracker: Any, checkpoint_id: str, *, route: str = "") -> bool:
    """Note a checkpoint on a tracker that holds all it knows of a run and saves it: `data` with `_save()`, as
    BlackBox5's own class does, or `run_data` with `_save_tracking()`, as the proposal for it has it.

    Without a run that was started nothing is done. Whether anything was. UsageError for what is no such tracker.
    """
    held, save = next((one for one in _TRACKERS if all(hasattr(tracker, name) for name in one)), ("", ""))
    if not save:
        shapes = ", or ".join(f"`{data}` and `{method}()`" for data, method in _TRACKERS)
        raise UsageError(
            type(tracker).__name__,
            f"is no session tracker: it has not {shapes}",
            "record_checkpoint(RUN, CHECKPOINT) notes it in the run's tracking.json",
        )
    data = getattr(tracker, held)
    if not isinstance(data, dict) or not (data.get("run_id") or (held == "run_data" and data)) or not checkpoint_id:
        return False
    if not _added(data, _entry(checkpoint_id, route)):
        return False
    getattr(tracker, save)()  # its only way to save
    return True


class RecordsCheckpoints:
    """What `class SessionTracker(RecordsCheckpoints, …)` gets from us: one method more."""

    def record_checkpoint(self, checkpoint_id: str, route: str = "") -> bool:
        """Note a checkpoint of the run that was started; without one nothing is done. Whether anything was."""
        return record_on(self, checkpoint_id, route=route)


def _entry(checkpoint_id: str, route: str) -> dict[str, str]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"checkpoint_id": checkpoint_id, **({"route": route} if route else {}), "timestamp": now}


def _added(tree: dict[str, Any], entry: dict[str, str]) -> bool:
    """Add an entry to the key, unless it is there already; what somebody else has put there stays in front of it."""
    known = tree.get(KEY)
    entries = known if isinstance(known, list) else [] if known is None else [known]
    same = [(one.get("checkpoint_id"), one.get("route", "")) for one in entries if isinstance(one, dict)]
    if (entry["checkpoint_id"], entry.get("route", "")) in same:
        return False
    tree[KEY] = [*entries, entry]
    return True


def _in_row(path: Path, tree: Any, run: str, entry: dict[str, str]) -> bool:
    if not isinstance(tree, list):
        raise Damaged(path, "is no JSON list of runs", _MEND)
    rows = [row for row in tree if isinstance(row, dict) and row.get("run_id") == run]
    changed = [_added(row, entry) for row in rows]
    return any(changed)


def _mapping(path: Path, tree: Any) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise Damaged(path, "is no JSON object", _MEND)
    return tree


def _changed(path: Path, change: Callable[[Any], bool]) -> bool:
    """Change a JSON file, whole or not at all, one at a time; whether it was."""
    with locks.locked(path.with_name(f".{path.name}.lock"), str(path)):
        try:
            tree = json.loads(content_of(path, most=_MOST))
        except (ValueError, RecursionError) as error:
            raise Damaged(path, f"is no JSON: {error}", _MEND) from None
        if not change(tree):
            return False
        durable.write(path, json.dumps(tree, indent=2).encode("utf-8", "surrogatepass"), mode=_MODE)
        return True
