"""Follows a growing transcript and makes a checkpoint each time that one falls due."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from ralf import config, holding, project as projects, routing, sessions, tokens
from ralf.budget import BudgetWatcher
from ralf.checkpoint import checkpoint
from ralf.errors import TranscriptNotFound, UsageError
from ralf.report import CheckpointReport
from ralf.transcripts import open_transcript
from ralf.transcripts.events import Position

POLL_SECONDS = 1.0


def watch(
    route: str,
    transcript: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    every: int | None = None,
    once: bool = False,
    as_text: bool = False,
    again: bool = False,
    wait: Callable[[float], None] = time.sleep,
    idle: Callable[[str], None] = lambda _: None,
) -> Iterator[CheckpointReport]:
    """Yield a report for each checkpoint that falls due as the transcript grows, for ever or `once` over what is there.

    every    tokens between checkpoints; None: as configured
    as_text  see `checkpoint`
    again    take a session that another route has already from its beginning (`holding.begin_of`)
    wait     how to pass the seconds between two looks
    idle     told, with `once`, why none fell due

    A transcript that does not exist yet is waited for (with `once`: TranscriptNotFound). Errors: `checkpoint`.
    """
    if every is not None and every < 1:
        raise UsageError("--every", f"{every} is no number of tokens", "--every 50000")
    project = projects.find(root)
    routing.check_new(project, route)
    path = Path(transcript)
    limits = config.of(project).limits
    if every is not None:
        limits = replace(limits, tokens=every, percent=None, adaptive=False)
    watcher: BudgetWatcher | None = None
    begin: Position | None = None
    seen = Position()
    size = -1
    while True:
        grown = _size(path)
        if grown is None and once:
            raise TranscriptNotFound(path, "no such transcript", f"ralf context watch {route} --transcript FILE")
        if grown is not None and grown != size:
            size = grown
            source = open_transcript(path, root=project.root, as_text=as_text)
            if source.rewritten:
                hint = f"ralf context checkpoint {route} --transcript {path}"
                raise UsageError(path, "is a run folder: it does not grow as a log does", hint)
            if watcher is None or watcher.state.session != source.session:
                begin = holding.begin_of(project, route, source, again=again)
                position = begin or sessions.standing(project, route, source.session).position
                watcher = BudgetWatcher.resume(limits, position, session=source.session)
                seen = position
            for event in source.events(seen):
                watcher.see(event, tokens.count(event.text) if event.kind != "compaction" else 0)
            seen = source.end
            if watcher.state.due:
                report = checkpoint(
                    route, path, root=root, reason=watcher.state.due, segment_tokens=every, begin=begin, as_text=as_text
                )
                if report.checkpoints:
                    holding.keep(project, report.route, source)
                left = max(0, watcher.state.tokens - report.tokens_read)
                watcher.taken(sessions.standing(project, route, source.session).position, left=left)
                yield report
            elif once:
                idle(_why_not(route, watcher))
        if once:
            return
        wait(POLL_SECONDS)


def _why_not(route: str, watcher: BudgetWatcher) -> str:
    """Why no checkpoint is due."""
    found, most = watcher.state.tokens, watcher.threshold
    return (
        f"{route}: no checkpoint is due: {found:,} of {most:,} tokens since the last one; to make one all the same: "
        f"ralf context checkpoint {route}"
    )


def _size(path: Path) -> int | None:
    """The transcript's bytes, None before there is one; what else is wrong with it is said when it is opened."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
    except OSError:
        return 0
