"""The command `context_budget.py` of BlackBox5: same arguments, JSON, state file and exit status, and a checkpoint.

    python -m ralf_integrations.blackbox5.context_budget check --run-dir DIR --tokens N|auto

`check` prints its six fields; at 70 % (`--checkpoint-threshold`) a checkpoint is made, once per crossing. `create`
makes one now. `status` says what a state file of any shape holds. Can also be run, linked to or imported as a file.

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
from dataclasses import asdict
from pathlib import Path

if __package__ != "ralf_integrations.blackbox5":  # run or imported as a file: nobody has said where our packages are
    _house = Path(__file__).resolve().parents[2]
    sys.path += [str(_house), str(_house.parent / "context")]

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

HARD_LIMIT, CRITICAL, MISSING = 2, 3, 1
STRICT_HARD_LIMIT = 4
_NEEDED = {"check": "tokens", "recommend": "tokens", "subagent-context": "task", "create": "route"}


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


def _run(given: argparse.Namespace) -> int:
    if given.command == "create":
        return _create(given)
    if given.command == "status":
        return _status(given)
    tokens, window = _tokens(given)
    budget = _budget(given, window)
    if given.command == "init":
        budget.check_usage(0)
        _print_init(budget)
    elif given.command == "check":
        state = budget.check_usage(tokens)
        _print_check(budget, state)
        return _status_of(state, strict=given.strict_exit)
    elif given.command == "recommend":
        print(budget.get_recommendation(budget.check_usage(tokens)))
    else:
        progress = given.progress or "The work was begun; the rest is handed over."
        print(budget.create_subagent_context(given.task, progress))
    return 0


# ---- arguments ----


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="context_budget.py",
        description="How full a run's context window is, and a checkpoint before it is too full.",
        epilog="Exit status: 0; 1 --tokens or --task missing; 2 hard limit, or wrong usage; 3 critical. "
        "With --strict-exit: 3 critical, 4 hard limit, and 2 wrong usage alone.",
    )
    commands = ("init", "check", "recommend", "subagent-context", "create", "status")
    parser.add_argument("command", choices=commands)
    parser.add_argument("--run-dir", type=Path, help="the run's folder, which holds the state file")
    parser.add_argument("--tokens", type=_count, metavar="N", help="tokens in the window; auto: as the client tells")
    parser.add_argument("--max-tokens", type=_window, metavar="N", help=f"tokens of the window (default {MAX_TOKENS})")
    for option, name in (
        ("--subagent-threshold", "subagent"),
        ("--warning-threshold", "warning"),
        ("--critical-threshold", "critical"),
        ("--hard-limit", "hard_limit"),
    ):
        text = f"percent of it (default {THRESHOLDS[name]})"
        parser.add_argument(option, type=int, default=THRESHOLDS[name], metavar="N", help=text)
    parser.add_argument("--task", metavar="T", help="what a sub-agent is to do")
    parser.add_argument("--progress", metavar="P", help="how far it is")
    ours = parser.add_argument_group("checkpoints")
    text = "percent at which a checkpoint is made, once per crossing (default 70); 0: never"
    ours.add_argument("--checkpoint-threshold", type=float, default=70, metavar="N", help=text)
    ours.add_argument("--route", metavar="R", help="the route; default: the one that is meant")
    text = "the session log; default: this project's newest session, else the run's folder"
    ours.add_argument("--transcript", type=Path, metavar="FILE", help=text)
    ours.add_argument("--root", type=Path, metavar="DIR", help="the project")
    ours.add_argument("--strict-exit", action="store_true", help="3 critical, 4 hard limit; 2 is wrong usage alone")
    return parser


def _count(text: str) -> int | str:
    return text if text == "auto" else int(text)


def _window(text: str) -> int:
    if (found := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} tokens are no window")
    return found


def _tokens(given: argparse.Namespace) -> tuple[int, int | None]:
    """The tokens in the window, and its size as its client tells it, None where it does not."""
    if given.tokens != "auto":
        return given.tokens or 0, None
    found = usage(_checkpoints(given).project())
    large = LARGE_WINDOW if found.tokens > MAX_TOKENS else None
    return found.tokens, found.window or large


def _budget(given: argparse.Namespace, window: int | None) -> ContextBudget:
    return ContextBudget(
        max_tokens=given.max_tokens or window or MAX_TOKENS,
        thresholds={
            "subagent": given.subagent_threshold,
            "warning": given.warning_threshold,
            "critical": given.critical_threshold,
            "hard_limit": given.hard_limit,
        },
        run_dir=given.run_dir,
        checkpoints=_checkpoints(given) if given.command == "check" else None,
    )


def _checkpoints(given: argparse.Namespace) -> Checkpointing:
    return Checkpointing(
        run_dir=given.run_dir,
        route=given.route or "",
        transcript=given.transcript,
        root=given.root,
        threshold=given.checkpoint_threshold,
    )


# ---- answers ----


def _print_init(budget: ContextBudget) -> None:
    kept = f"; state file: {budget.run_dir / budget.state_file}" if budget.run_dir is not None else ""
    print(f"Context budget initialized: {budget.max_tokens:,} tokens{kept}")
    names = {
        "subagent": "Sub-agent threshold",
        "warning": "Warning threshold",
        "critical": "Critical threshold",
        "hard_limit": "Hard limit",
    }
    for name, title in names.items():
        percent = budget.thresholds[name]
        print(f"  {title}: {percent:g}% ({int(budget.max_tokens * percent / 100):,} tokens)")


def _print_check(budget: ContextBudget, state: BudgetState) -> None:
    shown = {key: getattr(state, key) for key in ("current_tokens", "max_tokens", "percentage", "threshold_triggered")}
    shown["subagent_recommended"] = budget.should_spawn_subagent(state.current_tokens)
    shown["subagent_already_spawned"] = budget.is_subagent_spawned()
    print(json.dumps(shown, indent=2))


def _status_of(state: BudgetState, *, strict: bool) -> int:
    if state.threshold_triggered == "hard_limit":
        return STRICT_HARD_LIMIT if strict else HARD_LIMIT
    return CRITICAL if state.threshold_triggered == "critical" else 0


def _create(given: argparse.Namespace) -> int:
    report = _checkpoints(given).make()
    made = [entry.checkpoint_id for entry in report.checkpoints]
    shown = {"route": report.route, "checkpoint_id": made[-1] if made else None, "checkpoints": made}
    print(json.dumps(shown | {"path": str(report.path)}, indent=2))
    return 0


def _status(given: argparse.Namespace) -> int:
    path = (given.run_dir or Path()) / NAME
    try:
        found = budget.read_state(path)
    except ValueError as error:
        return _fail(f"{path}: holds no budget: {error}")
    shown = asdict(found)
    del shown["tree"]
    shown["history"] = len(found.history)
    shown["tokens"] = found.trusted if found.trusted is not None else "unknown"
    print(json.dumps(shown | {"keys": list(found.tree)}, indent=2))
    return 0


def _fail(what: str) -> int:
    print(f"Error: {what}", file=sys.stderr)
    return MISSING


if __name__ == "__main__":
    sys.exit(main())
