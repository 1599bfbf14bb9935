"""Agent state that survives: runs with saved states, calls made once, signals, output streams and stored results."""

from __future__ import annotations

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
    home: Any
    if name == "AgentRun":
        from ralf.agent import run as home
    elif name in ("Retry", "RunList", "RunState", "SavedState", "Signal"):
        from ralf.agent import model as home
    elif name == "run_agent":
        from ralf.agent import runner as home
    elif name in ("AsyncAgentRun", "run_agent_async"):
        from ralf.agent import async_run as home
    elif name == "send_signal":
        from ralf.agent import signals as home
    elif name == "tail":
        from ralf.agent import output as home
    elif name in ("list_runs", "get_run", "retry_run", "cancel_run", "forget_run"):
        from ralf.agent import listing as home
    else:
        raise AttributeError(f"module 'ralf.agent' has no attribute {name!r}")
    return getattr(home, name)
