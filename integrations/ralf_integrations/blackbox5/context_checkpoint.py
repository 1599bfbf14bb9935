"""The commands with which the proposal makes checkpoints.

    python3 context_checkpoint.py create --route R [--tokens N] [--thoughts FILE]

The file is what `dropins install` writes, or a link to this one: any Python runs it, and the one that ralf is installed
in goes on. `python -m ralf_integrations.blackbox5.context_checkpoint` is the same.

`init` says where a route's file will be: nothing is written before there is something to say. `check` says whether a
checkpoint is due. `create` makes one, of this project's newest session, else of the run's folder.

Exit status: 0 · 1 failed · 2 wrong usage, a refused name · 3 nothing to make one of.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ != "ralf_integrations.blackbox5":  # run, or linked to: nobody has said where our packages are
    _house = Path(__file__).resolve().parents[2]
    sys.path += [str(_house), str(_house.parent / "context")]
    from ralf_integrations.blackbox5 import anypython

    anypython.enter(__file__, running=__name__ == "__main__")

from ralf import config, routing
from ralf.errors import RalfError, UsageError
from ralf.route.load import load_state
from ralf_integrations.blackbox5 import checkpointing
from ralf_integrations.blackbox5.checkpointing import Checkpointing, complain


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit status. SystemExit (2) where it is called wrongly."""
    parser = argparse.ArgumentParser(prog="context_checkpoint.py", description="Checkpoints of a route.")
    parser.add_argument("command", choices=["init", "check", "create"])
    parser.add_argument("--route", required=True, metavar="R")
    parser.add_argument("--agent-type", metavar="T", help="not used: `agent_type` of the configuration says it")
    parser.add_argument("--tokens", type=int, metavar="N", help="tokens that the session has used so far")
    parser.add_argument("--thoughts", type=Path, metavar="FILE", help="a document of the run: its folder is the run's")
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="the run's folder")
    parser.add_argument("--transcript", type=Path, metavar="FILE", help="the session log")
    text = "take a session that another route has already, from its beginning"
    parser.add_argument("--again", action="store_true", help=text)
    parser.add_argument("--project", metavar="P", help="a folder, or a name; default: the project that is meant")
    given = parser.parse_args(args)
    try:
        return _run(given)
    except (RalfError, OSError) as error:
        return complain(error, given.project)


def _run(given: argparse.Namespace) -> int:
    run_dir = given.run_dir or (given.thoughts.parent if given.thoughts is not None else None)
    root = checkpointing.named_project(given.project).root if given.project else None
    checkpoints = Checkpointing(run_dir, given.route, given.transcript, root, again=given.again)
    project = checkpoints.project()
    route = routing.check_new(project, given.route)
    path = project.route_file(route)
    if given.command == "init":
        print(f"Initialized context for: {given.route}: {path} is made by its first checkpoint")
    elif given.command == "check":
        if given.tokens is None:
            raise UsageError("check", "--tokens required", "check --route R --tokens N")
        found = load_state(project, route)
        counted = found.context.total_tokens_consumed if found is not None else 0
        # A count below what the route has already is another session's: all of it is new.
        new = given.tokens - counted if given.tokens >= counted else given.tokens
        print(f"Should checkpoint: {new >= config.of(project).segment_limit}")
    else:
        report = checkpoints.make()
        made = ", ".join(entry.checkpoint_id for entry in report.checkpoints)
        print(f"Created checkpoint: {made} in {path}" if made else f"Nothing new since the last checkpoint: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
