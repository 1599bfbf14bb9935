"""The command `context_budget.py` of BlackBox5: same arguments, JSON, state file and exit status, and a checkpoint.

    python -m ralf_integrations.blackbox5.context_budget check --run-dir DIR --tokens N|auto

`check` prints its six fields; at 70 % (`--checkpoint-threshold`) a checkpoint is made, once per crossing. `create`
makes one now. `status` says what a state file of any shape holds.

Exit status: 0 · 1 `--tokens` or `--task` is missing, or nothing says how many tokens there are · 2 hard limit · 3
critical. argparse ends with 2, too, when it is called wrongly; with `--strict-exit` 2 means that alone: 3 critical,
4 hard limit.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ralf.errors import RalfError
from ralf_integrations.blackbox5 import budget
from ralf_integrations.blackbox5.budget import (
    MAX_TOKENS,
    NAME,
    THRESHOLDS,
    BudgetState,
    ContextBudget,
    ThresholdAction,
    attach,
)
from ralf_integrations.blackbox5.checkpointing import LARGE_WINDOW, Checkpointing, complain, usage

__all__ = ["BudgetState", "ContextBudget", "ThresholdAction", "attach", "main"]

MISSING = 1
_STATUS = {"critical": (3, 3), "hard_limit": (2, 4)}  # as the tool has it, and strictly
_NEEDED = {"check": "tokens", "recommend": "tokens", "subagent-context": "task", "create": "route"}
_TITLES = {name: f"{name.replace('_', ' ').capitalize()} threshold" for name in THRESHOLDS} | {
    "subagent": "Sub-agent threshold",
    "hard_limit": "Hard limit",
}


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit status. SystemExit (2) where it is called wrongly."""
    given = _parser().parse_args(args)
    needed = _NEEDED.get(given.command)
    if needed is not None and getattr(given, needed) is None:
        return _fail(f"--{needed} required for {given.command} command")
    try:
        return _run(given)
    except RalfError as error:
        complain(error, given.root)
        return MISSING
    except BrokenPipeError:  # whoever reads has enough
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # closed by the end
        return 0
    except OSError as error:
        return _fail(f"{error.filename or given.run_dir}: {error.strerror or error}")


def _fail(what: str) -> int:
    print(f"Error: {what}", file=sys.stderr)
    return MISSING


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="context_budget.py",
        description="How full a run's context window is, and a checkpoint before it is too full.",
        epilog="Exit status: 0; 1 --tokens or --task missing; 2 hard limit, or wrong usage; 3 critical. "
        "With --strict-exit: 3 critical, 4 hard limit, and 2 wrong usage alone.",
    )
    add = parser.add_argument
    add("command", choices=("init", "check", "recommend", "subagent-context", "create", "status"))
    add("--run-dir", type=Path, help="the run's folder, which holds the state file")
    add("--tokens", type=_count, metavar="N", help="tokens in the window; auto: as the client tells")
    add("--max-tokens", type=_window, metavar="N", help=f"tokens of the window (default {MAX_TOKENS})")
    for name, percent in THRESHOLDS.items():
        option = "--hard-limit" if name == "hard_limit" else f"--{name}-threshold"
        add(option, dest=name, type=int, default=percent, metavar="N", help=f"percent of it (default {percent})")
    add("--task", metavar="T", help="what a sub-agent is to do")
    progress = "The work was begun; the rest is handed over."
    add("--progress", default=progress, metavar="P", help="how far it is")
    add = parser.add_argument_group("checkpoints").add_argument
    text = "percent at which a checkpoint is made, once per crossing (default 70); 0: never"
    add("--checkpoint-threshold", type=float, default=70, metavar="N", help=text)
    add("--route", metavar="R", help="the route; default: the one that is meant")
    text = "the session log; default: this project's newest session, else the run's folder"
    add("--transcript", type=Path, metavar="FILE", help=text)
    add("--root", type=Path, metavar="DIR", help="the project")
    add("--strict-exit", action="store_true", help="3 critical, 4 hard limit; 2 is wrong usage alone")
    return parser


def _count(text: str) -> int | str:
    return text if text == "auto" else int(text)


def _window(text: str) -> int:
    if (found := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} tokens are no window")
    return found


def _run(given: argparse.Namespace) -> int:
    checkpoints = Checkpointing(
        given.run_dir, given.route or "", given.transcript, given.root, given.checkpoint_threshold
    )
    if given.command == "create":
        report = checkpoints.make()
        made = [entry.checkpoint_id for entry in report.checkpoints]
        _print(
            {
                "route": report.route,
                "checkpoint_id": made[-1] if made else None,
                "checkpoints": made,
                "path": str(report.path),
            }
        )
        return 0
    if given.command == "status":
        return _status((given.run_dir or Path()) / NAME)
    tokens, window = given.tokens or 0, None
    if tokens == "auto":
        found = usage(checkpoints.project())
        tokens, window = found.tokens, found.window or (LARGE_WINDOW if found.tokens > MAX_TOKENS else None)
    kept = ContextBudget(
        given.max_tokens or window or MAX_TOKENS,
        {name: getattr(given, name) for name in THRESHOLDS},
        given.run_dir,
        checkpoints=checkpoints if given.command == "check" else None,
    )
    if given.command == "subagent-context":
        print(kept.create_subagent_context(given.task, given.progress))
        return 0
    state = kept.check_usage(tokens if given.command != "init" else 0)
    if given.command == "init":
        where = f"; state file: {kept.run_dir / kept.state_file}" if kept.run_dir is not None else ""
        print(f"Context budget initialized: {kept.max_tokens:,} tokens{where}")
        for name, percent in kept.thresholds.items():
            print(f"  {_TITLES[name]}: {percent:g}% ({int(kept.max_tokens * percent / 100):,} tokens)")
    elif given.command == "recommend":
        print(kept.get_recommendation(state))
    else:
        shown = {
            key: getattr(state, key) for key in ("current_tokens", "max_tokens", "percentage", "threshold_triggered")
        }
        shown["subagent_recommended"] = kept.should_spawn_subagent(tokens)
        _print(shown | {"subagent_already_spawned": kept.is_subagent_spawned()})
        return _STATUS.get(state.threshold_triggered or "", (0, 0))[given.strict_exit]
    return 0


def _status(path: Path) -> int:
    try:
        found = budget.read_state(path)
    except ValueError as error:
        return _fail(f"{path}: holds no budget: {error}")
    shown = {name: getattr(found, name) for name in ("max_tokens", "thresholds", "doubt")}
    history = found.tree.get("history")
    shown["history"] = len(history) if isinstance(history, list) else 0
    _print(shown | {"tokens": "unknown" if found.trusted is None else found.trusted, "keys": list(found.tree)})
    return 0


def _print(shown: dict[str, object]) -> None:
    print(json.dumps(shown, indent=2))


if __name__ == "__main__":
    sys.exit(main())
