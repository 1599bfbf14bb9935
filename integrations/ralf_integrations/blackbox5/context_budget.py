"""`context_budget.py` of BlackBox5: same class, arguments, JSON, state file and exit status, and a checkpoint.

    python -m ralf_integrations.blackbox5.context_budget check --run-dir DIR --tokens N|auto

`check` prints its six fields; at 70 % (`--checkpoint-threshold`) a checkpoint is made, once per crossing.

Exit status: 0 · 1 `--tokens` or `--task` is missing, or nothing says how many tokens there are · 2 hard limit · 3
critical. argparse ends with 2, too, when it is called wrongly; with `--strict-exit` 2 means that alone: 3 critical,
4 hard limit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf.errors import RalfError, UsageError
from ralf.storage import durable, files
from ralf.storage.files import content_of, touch
from ralf_integrations.blackbox5.checkpointing import Checkpointing, complain, put, say, usage

__all__ = ["BudgetState", "ContextBudget", "ThresholdAction", "main"]

NAME, SPAWNED = "context_budget.json", ".subagent_spawned"
"""The state file in a run's folder, and the file there that says that a sub-agent was started."""

MAX_TOKENS, LARGE_WINDOW, MARK = 200_000, 1_000_000, 70.0
THRESHOLDS: Mapping[str, int] = {"subagent": 40, "warning": 70, "critical": 85, "hard_limit": 95}
"""By name, the percentage of the window at which each is passed; the last one is the highest."""

_ACTIONS = {
    "subagent": ("spawn_subagent", "Hand the work that is left to a sub-agent"),
    "warning": ("summarize_thoughts", "Cut THOUGHTS.md down to what matters"),
    "critical": ("spawn_subagent_critical", "Hand everything to a sub-agent now"),
    "hard_limit": ("force_checkpoint", "Save state and exit with PARTIAL status"),
}
_CROSSED = "checkpoint_made_at"  # our own key of the state file: the percentage since the mark was crossed
_MOST = 4 << 20  # bytes
_ROWS = 20  # of the history, as the tool keeps them

# ---- the state file ----


def _tree_of(path: Path) -> dict[str, Any]:
    """What a state file holds; ValueError where that is no JSON object."""
    try:
        tree = json.loads(content_of(path, most=_MOST))
    except FileNotFoundError:
        return {}
    except RecursionError:
        tree = None
    if not isinstance(tree, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004  # what it holds, not what we were given
    return tree


def _write_state(path: Path, config: Mapping[str, Any], current: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Put the newest reading into a state file, whole or not at all; every key that is not the tool's, nor one
    of `own`, stays as it is.

    What cannot be read as a JSON object is kept beside the file. OSError as it comes.
    """
    files.make(path.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
    try:
        tree = _tree_of(path)
    except ValueError:
        tree, content = {}, content_of(path, most=_MOST)
        aside = path.with_name(f"{path.name}.damaged-{hashlib.sha256(content).hexdigest()[:8]}")
        durable.write(aside, content, mode=0o644)
        say(f"{path}: held no JSON object; what it held is in {aside.name}")
    history = tree.get("history", [])
    whole = {
        "config": {**_mapping(tree.get("config")), **config},
        "current": {**_mapping(tree.get("current")), **current},
        "history": [*(history if isinstance(history, list) else [history]), dict(current)][-_ROWS:],
    }
    rest = {key: value for key, value in {**tree, **own}.items() if key not in whole and value is not None}
    durable.write(path, json.dumps(whole | rest, indent=2).encode("utf-8", "surrogatepass"), mode=0o644)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# ---- the class ----


@dataclass
class ThresholdAction:
    """What is to be done at a threshold: `callback` does it, where there is one."""

    name: str
    description: str
    callback: Callable[[], object] | None = None


@dataclass
class BudgetState:
    """One reading. `percentage` has two decimals; `action_taken` is what was really done, None for nothing."""

    current_tokens: int
    max_tokens: int
    percentage: float
    threshold_triggered: str | None = None
    action_taken: str | None = None
    timestamp: str = ""


class ContextBudget:
    """The budget of one run. Each reading is kept in the run's folder, where there is one.

    max_tokens   tokens of the window
    thresholds   by name, in percent of it; those that are not named are the usual ones
    run_dir      the run's folder
    state_file   the name of the state file in it
    checkpoints  makes a checkpoint when `mark`, in percent, is crossed; None: nothing does
    """

    def __init__(
        self,
        max_tokens: int = MAX_TOKENS,
        thresholds: Mapping[str, float] | None = None,
        run_dir: str | Path | None = None,
        state_file: str | None = None,
        *,
        checkpoints: Checkpointing | None = None,
        mark: float = MARK,
    ) -> None:
        if max_tokens < 1:
            raise ValueError(f"max_tokens: {max_tokens} tokens are no window")
        self.max_tokens = max_tokens
        self.thresholds: dict[str, float] = {**THRESHOLDS, **(thresholds or {})}
        self.run_dir = Path(run_dir) if run_dir else None
        self.state_file = state_file or NAME
        self.triggered_thresholds: set[str] = set()
        self.actions = {name: ThresholdAction(*action) for name, action in _ACTIONS.items()}
        self.subagent_spawned = False
        self._checkpoints, self._mark = checkpoints, mark
        self._crossed: float | None = None

    def check_usage(self, current_tokens: int) -> BudgetState:
        """The state at so many tokens: which threshold is passed, the highest one alone. Kept in the state file.

        A checkpoint is made where its mark is crossed. Neither a state file that cannot be written nor a checkpoint
        that fails stops the caller: it is told on stderr.
        """
        percent = 100 * current_tokens / self.max_tokens
        passed = [name for name in THRESHOLDS if percent >= self.thresholds[name]]
        state = BudgetState(current_tokens, self.max_tokens, round(percent, 2), passed[-1] if passed else None)
        state.timestamp = datetime.now(UTC).isoformat()
        self.triggered_thresholds.update(passed[-1:])
        path = self.run_dir / self.state_file if self.run_dir is not None else None
        own = {}
        if self._checkpoints is not None:
            if path is not None:
                with suppress(OSError, ValueError):
                    self._crossed = _tree_of(path).get(_CROSSED)
            if percent < self._mark:
                self._crossed = None
            elif not self._crossed and self._checkpoints.attempt():
                self._crossed, state.action_taken = percent, "checkpoint"
            own = {_CROSSED: self._crossed}
        if path is not None:
            config = {"max_tokens": self.max_tokens, "thresholds": self.thresholds}
            try:
                _write_state(path, config, asdict(state), own)
            except OSError as error:
                say(f"{path}: the reading is not kept: {error.strerror or error}")
        return state

    def execute_action(self, threshold_name: str) -> str:
        """Call what is attached to a threshold, and say what came of it; an error of it is said, not raised."""
        action = self.actions.get(threshold_name)
        if action is None:
            return f"no action for {threshold_name}; known: {', '.join(self.actions)}"
        if action.callback is None:
            return f"{action.name}: {action.description}"
        try:
            action.callback()
        except Exception as error:  # noqa: BLE001  # as callers know it: what is attached never stops the loop
            return f"{action.name}: failed: {error}"
        return f"{action.name}: done"

    def should_spawn_subagent(self, current_tokens: int) -> bool:
        """Whether the threshold of a sub-agent is passed, and none was started yet."""
        percent = 100 * current_tokens / self.max_tokens
        return percent >= self.thresholds["subagent"] and not self.is_subagent_spawned()

    def is_subagent_spawned(self) -> bool:
        """Whether a sub-agent was started in this run."""
        return self.subagent_spawned or (self.run_dir is not None and (self.run_dir / SPAWNED).exists())

    def mark_subagent_spawned(self) -> None:
        """Remember that a sub-agent was started. OSError where the run's folder cannot be written."""
        self.subagent_spawned = True
        if self.run_dir is not None:
            files.make(self.run_dir, mode=files.NOT_WRITABLE_BY_OTHERS)
            touch(self.run_dir / SPAWNED)

    def get_recommendation(self, state: BudgetState) -> str:
        """What to do at a state, in a sentence."""
        what = self.actions[state.threshold_triggered].description if state.threshold_triggered else "go on"
        counted = f"({state.current_tokens:,} of {state.max_tokens:,} tokens)"
        return f"{state.percentage:.1f} % of the window is full {counted}: {what}."

    def create_subagent_context(
        self, task_description: str, current_progress: str, files_context: Sequence[str] = ()
    ) -> str:
        """What a sub-agent is handed, as Markdown."""
        named = "\n".join(f"* {name}" for name in files_context)
        parts = {"Task": task_description, "Progress": current_progress, "Files": named}
        told = "".join(f"\n## {name}\n\n{text}\n" for name, text in parts.items() if text)
        return f"# Work for a sub-agent\n{told}\nReport what you did, what you found, and what is left.\n"

    @staticmethod
    def estimate_tokens(text: str) -> int:
        """The tokens of a text, as callers know the estimate: a quarter of its characters."""
        return len(text) // 4


# ---- the command ----

_STATUS = {"critical": (3, 3), "hard_limit": (2, 4)}  # as the tool has it, and strictly
_NEEDED = {"check": "tokens", "recommend": "tokens", "subagent-context": "task"}


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit status. SystemExit (2) where it is called wrongly."""
    given = _parser().parse_args(args)
    needed = _NEEDED.get(given.command)
    try:
        if needed is not None and getattr(given, needed) is None:
            raise UsageError(given.command, f"--{needed} required", f"{given.command} --{needed} …")
        return _run(given)
    except (RalfError, OSError, ValueError) as error:
        complain(error if isinstance(error, RalfError | OSError) else UsageError(given.run_dir, str(error)), given.root)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="context_budget.py",
        description="How full a run's context window is, and a checkpoint before it is too full.",
        epilog="Exit status: 0; 1 --tokens or --task missing; 2 hard limit, or wrong usage; 3 critical. "
        "With --strict-exit: 3 critical, 4 hard limit, and 2 wrong usage alone.",
    )
    add = parser.add_argument
    add("command", choices=("init", *_NEEDED))
    add("--run-dir", type=Path, help="the run's folder, which holds the state file")
    add("--tokens", type=lambda text: text if text == "auto" else int(text), metavar="N", help="tokens in the window")
    add("--max-tokens", type=int, metavar="N", help=f"tokens of the window (default {MAX_TOKENS})")
    for name, percent in THRESHOLDS.items():
        option = "--hard-limit" if name == "hard_limit" else f"--{name}-threshold"
        add(option, dest=name, type=int, default=percent, metavar="N", help=f"percent of it (default {percent})")
    add("--task", metavar="T", help="what a sub-agent is to do")
    progress = "The work was begun; the rest is handed over."
    add("--progress", default=progress, metavar="P", help="how far it is")
    text = "percent at which a checkpoint is made, once per crossing (default 70); 0: never"
    add("--checkpoint-threshold", type=float, default=MARK, metavar="N", help=text)
    add("--route", metavar="R", help="the route; default: the one that is meant")
    text = "the session log; default: this project's newest session, else the run's folder"
    add("--transcript", type=Path, metavar="FILE", help=text)
    add("--root", type=Path, metavar="DIR", help="the project")
    add("--strict-exit", action="store_true", help="3 critical, 4 hard limit; 2 is wrong usage alone")
    return parser


def _run(given: argparse.Namespace) -> int:
    checkpoints = Checkpointing(given.run_dir, given.route or "", given.transcript, given.root)
    tokens, window = given.tokens or 0, None
    if tokens == "auto":
        tokens, window = usage(checkpoints.project())
        window = window or (LARGE_WINDOW if tokens > MAX_TOKENS else None)
    size = given.max_tokens if given.max_tokens is not None else window or MAX_TOKENS
    thresholds = {name: getattr(given, name) for name in THRESHOLDS}
    makes = checkpoints if given.command == "check" and given.checkpoint_threshold > 0 else None
    kept = ContextBudget(size, thresholds, given.run_dir, checkpoints=makes, mark=given.checkpoint_threshold)
    if given.command == "subagent-context":
        put(kept.create_subagent_context(given.task, given.progress))
        return 0
    state = kept.check_usage(tokens if given.command != "init" else 0)
    if given.command == "init":
        where = f"; state file: {kept.run_dir / kept.state_file}" if kept.run_dir is not None else ""
        put(f"Context budget initialized: {size:,} tokens{where}")
        for name, percent in thresholds.items():
            put(f"  {name.replace('_', ' ').capitalize()}: {percent:g}% ({size * percent // 100:,} tokens)")
    elif given.command == "recommend":
        put(kept.get_recommendation(state))
    else:
        names = ("current_tokens", "max_tokens", "percentage", "threshold_triggered")
        shown = {key: getattr(state, key) for key in names}
        shown["subagent_recommended"] = kept.should_spawn_subagent(tokens)
        shown["subagent_already_spawned"] = kept.is_subagent_spawned()
        put(json.dumps(shown, indent=2))
        return _STATUS.get(state.threshold_triggered or "", (0, 0))[given.strict_exit]
    return 0


if __name__ == "__main__":
    sys.exit(main())
