"""The detached worker: has the configured model improve the checkpoints that are owed it, and ends.

Nothing is queued. What is owed is read off the journal, so whatever starts the next worker picks up what died.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from ralf import detached, localconfig, project as projects, state as states
from ralf.errors import Busy, RalfError
from ralf.files import locks
from ralf.localconfig import LocalConfig
from ralf.project import Project
from ralf.refining import refine, spend
from ralf.refining.refinement import owed
from ralf.store import Token
from ralf.summarizers.command import Command


def start(project: Project, route: str, *, after: Token | None = None, written: int = 0) -> str:
    """Start a worker for a route if a model is configured and something is owed it; returns at once.

    after    a place in the journal before the newest checkpoints, to save the worker a look at what lies before it
    written  how many checkpoints the caller has just written

    Returns why no worker was started although one is configured, "" for nothing to say: that the model is switched off
    is said by the first checkpoint after that.
    """
    try:
        settings = localconfig.load(project.local_config_file)
        if not settings.summarizer:
            return ""
        localconfig.check_meant(project, settings)
        state = states.load(project, route)
        if state is None or not owed(state.recorded):
            return ""
        here = spend.switched_off([state.recorded.context_checkpoint.spend], settings.summarizer)
        reason = off(project, settings) if here else ""  # where it failed elsewhere, the worker itself stops
        if reason:
            entries = state.recorded.checkpoint_history[:-written] if written else ()
            first = bool(entries) and bool(entries[-1].unrefined)
            return f"{route}: {switched_off(settings.summarizer, route, reason)}" if first else ""
        detached.start(__name__, __file__, [str(project.root), route, after or ""])
    except (RalfError, OSError, NotImplementedError) as error:  # the last: a system without `setsid` in `posix_spawn`
        return str(error)
    return ""


def off(project: Project, settings: LocalConfig) -> str:
    """Why the configured model is switched off, "" while it is on."""
    return spend.switched_off(spend.of_project(project).values(), settings.summarizer)


def switched_off(summarizer: str, route: str, reason: str) -> str:
    """What to say of a model that is switched off, and how it is switched on again."""
    return f"{summarizer} is {reason}; a call that works switches it on: {again(summarizer, route)}"


def again(summarizer: str, route: str) -> str:
    """The command that asks a model now; when it answers, it is asked in the background again."""
    return f"ralf context checkpoint {route} --summarizer {summarizer}"


def main(arguments: Sequence[str]) -> None:
    """Improve what is owed: `ROOT ROUTE AFTER`."""
    root, route, after = arguments
    os.chdir("/")
    with suppress(RalfError, OSError):  # nobody looks on; what is owed stays owed
        work(projects.find(root), route, after=after or None)


def work(project: Project, route: str, *, after: Token | None = None) -> list[refine.Refinement]:
    """Improve what is owed, newest first, until nothing is, the model fails too often, or another worker is at it."""
    done: list[refine.Refinement] = []
    settings = localconfig.of(project)
    if not settings.summarizer:
        return done
    command = settings.command_of(settings.summarizer)
    while _owed(project, route) and not off(project, settings):
        # What falls due while the lock is given back is seen by this loop, or by the worker that then gets the lock.
        try:
            with locks.held(project.worker_lock(route), route, timeout=0):
                while (names := _owed(project, route)) and not off(project, settings):
                    done.append(refine.refine(project, route, names[0], command, cap=settings.cap, after=after))
        except Busy:
            break
    return done


def ask_now(
    project: Project, route: str, command: Command, checkpoints: Sequence[str], *, cap: spend.Cap
) -> list[refine.Refinement]:
    """Have a model improve these checkpoints, or the newest one that none has improved, while the caller waits.

    Busy when a worker is at the route for longer than a call may take.
    """
    with locks.held(project.worker_lock(route), f"{route}: the model's work", timeout=command.timeout):
        state = states.load(project, route)
        entries = state.recorded.checkpoint_history if state is not None else ()
        open_ = [entry.checkpoint_id for entry in entries if not entry.refines]
        wanted = [name for name in checkpoints if name in open_] if checkpoints else open_[-1:]
        return [refine.refine(project, route, name, command, cap=cap) for name in reversed(wanted)]


def _owed(project: Project, route: str) -> tuple[str, ...]:
    state = states.load(project, route)
    return owed(state.recorded) if state is not None else ()
