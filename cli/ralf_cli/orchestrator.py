"""`ralf loop handover`: the state of an orchestrator, kept for a fresh one."""

from __future__ import annotations

import sys

import click

from ralf_cli.command import command
from ralf_cli.options import with_root


@command(short_help="Store an orchestrator's state in a route.")
@click.argument("route")
@with_root
def handover(route: str, root: str | None) -> None:
    """Store an orchestrator's state in ROUTE: JSON on standard input, JSON on standard output.

    Reads {"assignments": {NAME: TASK}, "queue": [TASK], "decisions": [TEXT or {"decision", "rationale"}], "channels":
    {NAME: HEALTH}, "goal": TEXT, "tokens": N, "window": N}, all optional: what is left out stays as it was. What is new
    is stored at once; a fresh orchestrator reads it with `ralf show ROUTE --brief`. Prints {"recorded",
    "checkpoint_id", "tokens", "window", "percent", "ends"}: how full the window of its own session is, and whether a
    fresh orchestrator should go on. Without tokens and window the session's log tells that.

    \b
    Examples:
      echo '{"queue": ["TASK-002"]}' | ralf loop handover pm
      ralf loop handover pm < state.json

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name, invalid input · 4 damaged data · 5 busy
    """
    from ralf_cli.output import emit_json, fields_of
    from ralf_integrations.orchestrator import MOST_BYTES, hand_over

    emit_json(fields_of(hand_over(route, sys.stdin.buffer.read(MOST_BYTES + 1), root=root)))
