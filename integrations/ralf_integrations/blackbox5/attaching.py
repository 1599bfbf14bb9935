"""Checkpoints from a budget of the other tool's own class, attached to its actions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ralf_integrations.blackbox5 import budgetfile
from ralf_integrations.blackbox5.budgetfile import MAX_TOKENS, THRESHOLDS
from ralf_integrations.blackbox5.checkpointing import Checkpointing


def attach(budget: Any, checkpoints: Checkpointing | None = None) -> Callable[[], None]:
    """Make checkpoints from a budget of the other tool's own class, by the callbacks of its `actions`.

    budget       has `actions`, by threshold, each with a `callback` (None, or what is called first, as before);
                 `thresholds`, `max_tokens`, `run_dir` and `state_file`, as its class has them
    checkpoints  makes them; None: of this project, and the run's folder

    Only the highest passed threshold is acted on there, so each one is attached to: from the mark on a checkpoint is
    made, once per crossing, and one below the mark tells that it can be crossed again. Returns what detaches it again.
    """
    made = checkpoints or Checkpointing(run_dir=getattr(budget, "run_dir", None))
    before: dict[str, Any] = {}
    size = getattr(budget, "max_tokens", MAX_TOKENS)
    said = dict(getattr(budget, "thresholds", THRESHOLDS))
    percents = {name: value if value <= 100 else 100 * value / size for name, value in said.items()}
    for name, action in budget.actions.items():
        if name in percents:
            before[name] = action.callback
            action.callback = _chained(action.callback, budget, made, percents[name])

    def detach() -> None:
        for name, callback in before.items():
            budget.actions[name].callback = callback

    return detach


def _chained(
    first: Callable[..., object] | None, budget: Any, checkpoints: Checkpointing, least: float
) -> Callable[..., object]:
    def act(*args: object, **more: object) -> object:
        result = first(*args, **more) if first is not None else None
        checkpoints.see(max(_percent(budget), least))
        return result

    return act


def _percent(budget: Any) -> float:
    """How full the window is, as the budget has last kept it; 0 where it does not say."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        tokens = budgetfile.read(Path(budget.run_dir) / budget.state_file).tokens
        return 100 * (tokens or 0) / int(budget.max_tokens)
    return 0.0
