"""`ralf loop handover`: the state of an orchestrator, kept for a fresh one."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from ralf_cli.command import command
from ralf_cli.options import with_root

_MOST = 4 << 20  # bytes


_STATE = ("assignments", "queue", "decisions", "channels", "goal")


_FIGURES = ("tokens", "window")


@command(short_help="Store an orchestrator's state in a route.")
@click.argument("route")
@click.option("--now", is_flag=True, help="Checkpoint regardless of the pressure.")
@with_root
def handover(route: str, now: bool, root: str | None) -> None:
    """Store an orchestrator's state in ROUTE: JSON on standard input, JSON on standard output.

    Reads {"assignments": {NAME: TASK}, "queue": [TASK], "decisions": [TEXT or {"decision", "rationale"}], "channels":
    {NAME: HEALTH}, "goal": TEXT, "tokens": N, "window": N}, all optional; without tokens and window, --now is
    required. The state is checkpointed when the window is 70 % full and at every further 5 points; a fresh
    orchestrator reads it with `ralf show ROUTE --brief`. Prints {"checkpointed", "percent", "checkpoint_id",
    "tokens_since", "updates_since"}; a checkpoint resets the counters.

    \b
    Examples:
      echo '{"queue": ["TASK-002"], "tokens": 150000, "window": 200000}' | ralf loop handover pm
      ralf loop handover pm --now < state.json

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name, invalid input · 4 damaged data · 5 busy
    """
    from ralf.errors import UsageError
    from ralf_cli.output import emit_json, fields_of
    from ralf_integrations.orchestrator import Orchestrator

    given = _given(sys.stdin.buffer.read(_MOST + 1))
    figures = [given.get(key) for key in _FIGURES]
    told = all(type(figure) is int for figure in figures)
    if not told and (any(figure is not None for figure in figures) or not now):
        what = "needs the whole numbers tokens and window"
        raise UsageError(
            "standard input", what, 'add "tokens": 150000, "window": 200000; or: ralf loop handover ROUTE --now'
        )
    keeper = Orchestrator(route, root)
    keeper.update(**{key: given[key] for key in _STATE if given.get(key) is not None})
    if not now:
        emit_json(fields_of(keeper.check_pressure(*map(int, figures))))  # type: ignore[arg-type]
        return
    written, label = keeper.checkpoint()
    percent = round(100 * given["tokens"] / given["window"], 1) if told and given["window"] > 0 else None
    emit_json({"checkpointed": written, "percent": percent, "checkpoint_id": label})


def _given(data: bytes) -> dict[str, Any]:
    from ralf.errors import UsageError

    try:
        tree = json.loads(data) if len(data) <= _MOST else None
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        raise UsageError("standard input", "is not a JSON object, or larger than 4 MiB", "ralf loop handover --help")
    if unknown := sorted(tree.keys() - {*_STATE, *_FIGURES}):
        raise UsageError(
            "standard input", f"unknown key {unknown[0]!a}", f"known keys: {', '.join((*_STATE, *_FIGURES))}"
        )
    return tree
