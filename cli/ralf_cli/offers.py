"""What `ralf init --client` offers when the hooks are in: the sessions from before, and a model for each checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ralf_cli.output import say
from ralf_integrations.client import CLIENTS

if TYPE_CHECKING:
    from ralf.project import Project

COSTS = "one call a checkpoint: about 8,000 to 19,000 tokens read, some 2,000 written (an estimate)"
"""Measured on the session in `examples`: 8,055, 11,532 and 18,909 tokens in the prompts of its three checkpoints."""


def existing_sessions(project: Project, client: str, *, wanted: bool, asks: bool, quiet: bool) -> None:
    """Checkpoint the client's sessions from before: where that is wanted, or said yes to; else say that it can be."""
    known = CLIENTS.get(client)
    if known is None or known.sessions is None or (quiet and not wanted):
        return
    from ralf_integrations import existing

    found = existing.found(project, client)
    if not found:
        if wanted:
            say("no existing sessions of this project that are not checkpointed")
        return
    count = f"{len(found)} existing session{'s' * (len(found) > 1)} of this project"
    megabytes = sum(one.left for one in found) / 1e6
    if not wanted and asks:
        wanted = click.confirm(f"Checkpoint {count} here ({megabytes:,.1f} MB; offline, free)?", default=True, err=True)
    elif not wanted:
        say(f"{count} can be checkpointed (offline, free): ralf init --client {client} --existing")
    if wanted:
        _take(project, found)


def summarizer(project: Project, client: str, *, wanted: str | None, asks: bool) -> None:
    """Have the person's own login improve each checkpoint: only where it is named, or said yes to."""
    import shutil

    from ralf.refining import local_config

    name = wanted or (CLIENTS[client].summarizer if client in CLIENTS else "")
    if not name or (wanted is None and not asks):
        return
    title = next(known.title for known in CLIENTS.values() if known.summarizer == name)
    if wanted is None:
        if shutil.which(name) is None or local_config.local_config_of(project).summarizer:
            return
        say(f"Checkpoints are free as they are. Your {title} login can improve each in the background; {COSTS}.")
        if not click.confirm("Have it do so?", default=False, err=True):
            return
    changed = local_config.choose_summarizer(project, name)
    say(f"{project.local_config_file}: {title} improves each checkpoint{'' if changed else ', as before'}; {COSTS}")
    say(
        "what it takes: ralf context list --cost; a limit: daily_cap in that file; off again: remove `summarizer` there"
    )


def _take(project: Project, found: Sequence[Any]) -> None:
    from ralf_integrations import existing

    checkpoints, routes, problems = 0, set(), []
    with progress_of(found) as progress:
        for taken in existing.take(project, found, progress=progress):
            if taken.report is None:
                problems.append(taken)
            else:
                checkpoints += len(taken.report.checkpoints)
                routes.add(taken.session.route)
    for taken in problems:
        say(f"warning: {taken.session.path}: left out: {taken.problem}")
    done = f"{checkpoints:,} checkpoint{'s' * (checkpoints != 1)} in {len(routes)} route{'s' * (len(routes) != 1)}"
    count = len(found) - len(problems)
    say(f"{count:,} session{'s are' if count != 1 else ' is'} now {done}: ralf context list")


@contextmanager
def progress_of(found: Sequence[Any]) -> Iterator[Callable[[Any, int, int], None] | None]:
    """A bar over all sessions, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("sessions", total=sum(session.size for session in found))
        done: dict[str, int] = {}

        def told(session: Any, read: int, _: int) -> None:
            done[session.session] = read
            bar.update(task, completed=sum(done.values()), description=session.route)

        yield told
