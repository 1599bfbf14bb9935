"""Every verb of the command line as a function, with what it returns; a name loads its module when it is first used.

    read      get_context render list_routes status search why log diff context_at loss_reports
    write     checkpoint watch record_decision revert drop open_file take_in change use
    maintain  verify repair archive prune forget forget_route init uninstall switch accept_route

Most take `root`, the project directory. `status`, `use`, `init`, `uninstall`, `switch` and `accept_route` take the
project instead, which `find` returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ralf.brief.rendering import render as render
    from ralf.checkpointing.flow import CheckpointReport as CheckpointReport, checkpoint as checkpoint
    from ralf.checkpointing.progress import status as status, watch as watch
    from ralf.finding.reader import (
        RouteSummary as RouteSummary,
        get_context as get_context,
        list_routes as list_routes,
    )
    from ralf.finding.search import SearchHit as SearchHit, search as search
    from ralf.maintenance.forget import forget as forget, forget_route as forget_route
    from ralf.maintenance.ownership import (
        accept_route as accept_route,
        init as init,
        switch as switch,
        uninstall as uninstall,
    )
    from ralf.maintenance.repair import repair as repair
    from ralf.maintenance.verify import verify as verify
    from ralf.model import Decision as Decision, RouteContext as RouteContext
    from ralf.project import find as find
    from ralf.proof.loss import loss_reports as loss_reports
    from ralf.proof.provenance import Reason as Reason, why as why
    from ralf.route.archive import archive as archive, prune as prune
    from ralf.route.corrections import (
        change as change,
        drop as drop,
        open_file as open_file,
        record_decision as record_decision,
        revert as revert,
        take_in as take_in,
    )
    from ralf.route.history import context_at as context_at, diff as diff, log as log
    from ralf.routing import use as use


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
        from ralf.brief import rendering as home
    elif name in ("checkpoint", "CheckpointReport"):
        from ralf.checkpointing import flow as home
    elif name in ("status", "watch"):
        from ralf.checkpointing import progress as home
    elif name in ("search", "SearchHit"):
        from ralf.finding import search as home
    elif name in ("why", "Reason"):
        from ralf.proof import provenance as home
    elif name in ("context_at", "diff", "log"):
        from ralf.route import history as home
    elif name == "loss_reports":
        from ralf.proof import loss as home
    elif name in ("record_decision", "drop", "open_file", "take_in", "change", "revert"):
        from ralf.route import corrections as home
    elif name in ("archive", "prune"):
        from ralf.route import archive as home
    elif name in ("forget", "forget_route"):
        from ralf.maintenance import forget as home
    elif name == "verify":
        from ralf.maintenance import verify as home
    elif name == "repair":
        from ralf.maintenance import repair as home
    elif name in ("init", "uninstall", "switch", "accept_route"):
        from ralf.maintenance import ownership as home
    else:
        raise AttributeError(f"module 'ralf.api' has no attribute {name!r}")
    return getattr(home, name)
