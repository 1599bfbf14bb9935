"""Agent state that survives: runs with saved states, calls made once, signals, output streams and stored results."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ralf.agent.async_run import AsyncAgentRun as AsyncAgentRun, run_agent_async as run_agent_async
    from ralf.agent.listing import (
        cancel_run as cancel_run,
        forget_run as forget_run,
        get_run as get_run,
        list_runs as list_runs,
        retry_run as retry_run,
    )
    from ralf.agent.model import (
        Retry as Retry,
        RunList as RunList,
        RunState as RunState,
        SavedState as SavedState,
        Signal as Signal,
    )
    from ralf.agent.output import tail as tail
    from ralf.agent.run import AgentRun as AgentRun
    from ralf.agent.runner import run_agent as run_agent
    from ralf.agent.signals import send_signal as send_signal

__all__ = [
    "AgentRun",
    "AsyncAgentRun",
    "Retry",
    "RunList",
    "RunState",
    "SavedState",
    "Signal",
    "cancel_run",
    "forget_run",
    "get_run",
    "list_runs",
    "retry_run",
    "run_agent",
    "run_agent_async",
    "send_signal",
    "tail",
]


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"ralf.agent.{module}"), name)
    raise AttributeError(f"module 'ralf.agent' has no attribute {name!r}")


_HOMES = {
    "run": ("AgentRun",),
    "async_run": ("AsyncAgentRun", "run_agent_async"),
    "runner": ("run_agent",),
    "signals": ("send_signal",),
    "output": ("tail",),
    "model": ("Retry", "RunList", "RunState", "SavedState", "Signal"),
    "listing": ("list_runs", "get_run", "retry_run", "cancel_run", "forget_run"),
}
"""The modules that have what is asked for here: none is loaded before."""
