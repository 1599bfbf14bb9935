"""How full a window is, which threshold that passes, and what is then to be done: the class that callers know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ralf.files import folders
from ralf.files.opening import touch
from ralf_integrations.blackbox5 import budgetfile
from ralf_integrations.blackbox5.budgetfile import MAX_TOKENS, NAME, THRESHOLDS
from ralf_integrations.blackbox5.messages import say

if TYPE_CHECKING:
    from ralf_integrations.blackbox5.checkpointing import Checkpointing

SPAWNED = ".subagent_spawned"
"""The file in the run's folder that says that a sub-agent was started."""

_CHARACTERS = 4  # of a token, by the estimate that callers know


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
    checkpoints  makes a checkpoint when its own threshold is crossed; None: nothing does
    """

    def __init__(
        self,
        max_tokens: int = MAX_TOKENS,
        thresholds: Mapping[str, float] | None = None,
        run_dir: str | Path | None = None,
        state_file: str | None = None,
        *,
        checkpoints: Checkpointing | None = None,
    ) -> None:
        if max_tokens < 1:
            raise ValueError(f"max_tokens: {max_tokens} tokens are no window")
        self.max_tokens = max_tokens
        self.thresholds: dict[str, float] = {**THRESHOLDS, **(thresholds or {})}
        self.run_dir = Path(run_dir) if run_dir else None
        self.state_file = state_file or NAME
        self.triggered_thresholds: set[str] = set()
        self.actions: dict[str, ThresholdAction] = {
            "subagent": ThresholdAction("spawn_subagent", "Hand the work that is left to a sub-agent"),
            "warning": ThresholdAction("summarize_thoughts", "Cut THOUGHTS.md down to what matters"),
            "critical": ThresholdAction("spawn_subagent_critical", "Hand everything to a sub-agent now"),
            "hard_limit": ThresholdAction("force_checkpoint", "Save state and exit with PARTIAL status"),
        }
        self.subagent_spawned = False
        self._checkpoints = checkpoints

    def check_usage(self, current_tokens: int) -> BudgetState:
        """The state at so many tokens: which threshold is passed, the highest one alone. Kept in the state file.

        A checkpoint is made where its threshold is crossed. Neither a state file that cannot be written nor a
        checkpoint that fails stops the caller: it is told on stderr.
        """
        percent = 100 * current_tokens / self.max_tokens
        passed = [name for name in THRESHOLDS if percent >= self.thresholds[name]]
        state = BudgetState(
            current_tokens=current_tokens,
            max_tokens=self.max_tokens,
            percentage=round(percent, 2),
            threshold_triggered=passed[-1] if passed else None,
            timestamp=datetime.now(UTC).isoformat(),
        )
        self.triggered_thresholds.update(passed[-1:])
        if self._checkpoints is not None and self._checkpoints.see(percent):
            state.action_taken = "checkpoint"
        self._keep(state)
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
            folders.make(self.run_dir, mode=folders.NOT_WRITABLE_BY_OTHERS)
            touch(self.run_dir / SPAWNED)

    def get_recommendation(self, state: BudgetState) -> str:
        """What to do at a state, in a sentence."""
        how = (
            f"{state.percentage:.1f} % of the window is full ({state.current_tokens:,} of {state.max_tokens:,} tokens)"
        )
        if state.threshold_triggered is None:
            return f"{how}: go on."
        return f"{how}: {self.actions[state.threshold_triggered].description}."

    def create_subagent_context(
        self, task_description: str, current_progress: str, files_context: Sequence[str] = ()
    ) -> str:
        """What a sub-agent is handed, as Markdown."""
        files = "".join(f"\n* {name}" for name in files_context)
        return (
            f"# Work for a sub-agent\n\n## Task\n\n{task_description}\n\n## Progress\n\n{current_progress}\n"
            + (f"\n## Files\n{files}\n" if files else "")
            + "\nReport what you did, what you found, and what is left.\n"
        )

    @staticmethod
    def estimate_tokens(text: str) -> int:
        """The tokens of a text, as callers know the estimate: a quarter of its characters."""
        return len(text) // _CHARACTERS

    def _keep(self, state: BudgetState) -> None:
        if self.run_dir is None:
            return
        path = self.run_dir / self.state_file
        try:
            config = {"max_tokens": self.max_tokens, "thresholds": self.thresholds}
            aside = budgetfile.write(path, config, asdict(state))
        except OSError as error:
            say(f"{path}: the reading is not kept: {error.strerror or error}")
        else:
            if aside:
                say(f"{path}: held no JSON object; what it held is in {aside}")
