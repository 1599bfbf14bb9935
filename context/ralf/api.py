"""Every verb of the command line as a function, with what it returns; a name loads its module when it is first used.

    read      get_context render list_routes status search why log diff context_at
    write     checkpoint watch record_decision hand_over drop undo revert
              take_in change use rename_route close_route
    tasks     add_task edit_task split_task get_task list_tasks
              claim renew progress done fail release retry
    agents    AgentRun run_agent AsyncAgentRun run_agent_async send_signal tail
              list_runs get_run retry_run cancel_run forget_run
              truncate summarize (of a conversation)
    memory    get_memory remember accept_item drop_item
    maintain  verify repair drop_evidence forget forget_route init uninstall switch accept_route
              list_settings get_setting change_setting

Most take `root`, the project directory. `status`, `use`, `init`, `uninstall`, `switch`, `accept_route`
and those of settings take the project instead, which `find` returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ralf.agent import (
        AgentRun as AgentRun,
        AsyncAgentRun as AsyncAgentRun,
        cancel_run as cancel_run,
        forget_run as forget_run,
        get_run as get_run,
        list_runs as list_runs,
        retry_run as retry_run,
        run_agent as run_agent,
        run_agent_async as run_agent_async,
        send_signal as send_signal,
        tail as tail,
    )
    from ralf.brief.views import render as render
    from ralf.checkpointing.flow import CheckpointReport as CheckpointReport, checkpoint as checkpoint
    from ralf.checkpointing.progress import status as status, watch as watch
    from ralf.config.settings import (
        change_setting as change_setting,
        get_setting as get_setting,
        list_settings as list_settings,
    )
    from ralf.conversation.summary import summarize as summarize
    from ralf.conversation.truncation import truncate as truncate
    from ralf.finding.reader import (
        RouteSummary as RouteSummary,
        get_context as get_context,
        list_routes as list_routes,
    )
    from ralf.finding.search import SearchHit as SearchHit, search as search
    from ralf.maintenance.evidence import drop_evidence as drop_evidence
    from ralf.maintenance.forget import forget as forget, forget_route as forget_route
    from ralf.maintenance.ownership import init as init, switch as switch, uninstall as uninstall
    from ralf.maintenance.renaming import rename_route as rename_route
    from ralf.maintenance.repair import repair as repair
    from ralf.maintenance.trust import accept_route as accept_route
    from ralf.maintenance.verify import verify as verify
    from ralf.memory.selection import get_memory as get_memory
    from ralf.memory.writing import accept_item as accept_item, drop_item as drop_item, remember as remember
    from ralf.model import Decision as Decision, RouteContext as RouteContext
    from ralf.project import find as find
    from ralf.route.corrections import (
        change as change,
        close_route as close_route,
        drop as drop,
        record_decision as record_decision,
        take_in as take_in,
    )
    from ralf.route.handing_over import hand_over as hand_over
    from ralf.route.history import context_at as context_at, diff as diff, log as log
    from ralf.route.taking_back import revert as revert, undo as undo
    from ralf.route.why import Reason as Reason, why as why
    from ralf.routing import use as use
    from ralf.tasks.claims import (
        claim as claim,
        done as done,
        fail as fail,
        progress as progress,
        release as release,
        renew as renew,
        retry as retry,
    )
    from ralf.tasks.editing import add as add_task, edit as edit_task, split as split_task  # noqa: F401
    from ralf.tasks.store import TaskList as TaskList, get as get_task, list_tasks as list_tasks  # noqa: F401


_TASK_VERBS = frozenset(("add_task", "edit_task", "split_task", "get_task"))
"""What a verb is called here whose name in its module says too little."""


_OF_AGENTS = frozenset(
    (
        *("AgentRun", "run_agent", "AsyncAgentRun", "run_agent_async", "send_signal", "tail"),
        *("list_runs", "get_run", "retry_run", "cancel_run", "forget_run"),
    )
)


def __getattr__(name: str) -> Any:
    home: Any
    if name in ("get_context", "list_routes", "RouteSummary"):
        from ralf.finding import reader as home
    elif name in ("Decision", "RouteContext"):
        from ralf import model as home
    elif name == "find":
        from ralf import project as home
    elif name == "use":
        from ralf import routing as home
    elif name == "render":
        from ralf.brief import views as home
    elif name in ("checkpoint", "CheckpointReport"):
        from ralf.checkpointing import flow as home
    elif name in ("status", "watch"):
        from ralf.checkpointing import progress as home
    elif name in ("search", "SearchHit"):
        from ralf.finding import search as home
    elif name in ("why", "Reason"):
        from ralf.route import why as home
    elif name == "summarize":
        from ralf.conversation import summary as home
    elif name == "truncate":
        from ralf.conversation import truncation as home
    elif name in ("context_at", "diff", "log"):
        from ralf.route import history as home
    elif name in ("record_decision", "drop", "take_in", "change", "close_route"):
        from ralf.route import corrections as home
    elif name in ("undo", "revert"):
        from ralf.route import taking_back as home
    elif name == "rename_route":
        from ralf.maintenance import renaming as home
    elif name in ("list_settings", "get_setting", "change_setting"):
        from ralf.config import settings as home
    elif name == "hand_over":
        from ralf.route import handing_over as home
    elif name == "drop_evidence":
        from ralf.maintenance import evidence as home
    elif name in ("forget", "forget_route"):
        from ralf.maintenance import forget as home
    elif name in ("claim", "renew", "progress", "done", "fail", "release", "retry"):
        from ralf.tasks import claims as home
    elif name in ("list_tasks", "TaskList"):
        from ralf.tasks import store as home
    elif name in ("add_task", "edit_task", "split_task"):
        from ralf.tasks import editing as home
    elif name == "get_task":
        from ralf.tasks import store as home
    elif name == "get_memory":
        from ralf.memory import selection as home
    elif name in ("remember", "accept_item", "drop_item"):
        from ralf.memory import writing as home
    elif name in _OF_AGENTS:
        from ralf import agent as home
    elif name == "verify":
        from ralf.maintenance import verify as home
    elif name == "repair":
        from ralf.maintenance import repair as home
    elif name in ("init", "uninstall", "switch"):
        from ralf.maintenance import ownership as home
    elif name == "accept_route":
        from ralf.maintenance import trust as home
    else:
        raise AttributeError(f"module 'ralf.api' has no attribute {name!r}")
    return getattr(home, name.removesuffix("_task").removesuffix("_tasks") if name in _TASK_VERBS else name)
