"""The functions with which the proposal keeps contexts: `create_checkpoint`, `load` and `save`.

    import context_manager                                        # installed by dropins, or linked
    from ralf_integrations.blackbox5 import context_manager       # the same

`project` is everywhere a folder, or a name in the tree; None: the project that is meant.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if __package__ != "ralf_integrations.blackbox5":  # linked to: nobody has said where our packages are
    _house = Path(__file__).resolve().parents[2]
    sys.path += [str(_house), str(_house.parent / "context")]
    from ralf_integrations.blackbox5 import anypython

    anypython.enter(__file__, running=False)

from ralf.errors import UsageError
from ralf.model import BODY
from ralf.route import corrections
from ralf_integrations.blackbox5 import checkpointing
from ralf_integrations.blackbox5.checkpointing import Checkpointing
from ralf_integrations.blackbox5.context_reader import ContextReader

__all__ = ["create_checkpoint", "load", "save"]

_ALL = sys.maxsize


def create_checkpoint(
    route: str,
    tokens: int | None = None,
    *,
    transcript: str | os.PathLike[str] | None = None,
    run_dir: str | os.PathLike[str] | None = None,
    project: str | os.PathLike[str] | None = None,
) -> str | None:
    """Make a checkpoint of a route: the id of the newest one made, `cp-003`; None where nothing was new.

    tokens      taken and not used: tokens are counted where the checkpoint is made
    transcript  the session log; None: this project's newest session, else the run's folder
    run_dir     the run's folder; None: the one that the environment names

    Raises TranscriptNotFound, UsageError (a refused name), and what `ralf.checkpoint` raises.
    """
    source = Path(transcript) if transcript is not None else None
    folder = Path(run_dir) if run_dir is not None else None
    report = Checkpointing(folder, route, source, _root(project)).make()
    return report.checkpoints[-1].checkpoint_id if report.checkpoints else None


def load(route: str, *, project: str | os.PathLike[str] | None = None) -> dict[str, Any] | None:
    """All that a route's file holds, as `ContextReader.get_context` gives it; None where there is no such route.

    Raises UsageError for a refused name; Damaged.
    """
    return ContextReader(project).get_context(route, max_history=_ALL)


def save(route: str, context: Mapping[str, Any], *, project: str | os.PathLike[str] | None = None) -> Path:
    """Make what was changed in a loaded context part of the route: its file, which shows it.

    A key that is left out stays as it is. What others have changed since it was loaded stays, too; a decision taken out
    is dropped, an unknown key is kept; what is new is an agent's. The header's counts and revision and
    `checkpoint_history` are ralf's own, and `history` is made by checkpoints: UsageError where that differs, for a tree
    that is no context, for a refused name, for a route of which something is foreign. Without the route it is made.
    Raises Busy, Damaged, OSError.
    """
    before = load(route, project=project)
    if "history" in context and context["history"] != (before or {}).get("history", ""):
        raise UsageError(route, "`history` is made by checkpoints: it is not saved", f"ralf edit {route}")
    fields = {key: value for key, value in context.items() if key not in ("history", "checkpoint_history", BODY)}
    return corrections.change(route, fields, root=_root(project))


def _root(project: str | os.PathLike[str] | None) -> Path:
    return checkpointing.named_project(project).root
