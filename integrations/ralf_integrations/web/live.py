"""Tells open pages that what they show has changed, by server-sent events: one look for all of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from starlette.concurrency import run_in_threadpool

from ralf.errors import RalfError
from ralf.tasks.records import STREAM
from ralf_integrations.web.reading import Reader, ViewedProject
from ralf_integrations.web.sessions import FRESH, Sessions

PAUSE = 1.0
"""Seconds between two looks while a page is open."""

MOST = 12
"""Pages that are told at the same time."""

_BEAT = 20.0  # seconds after which a page is told that all is as it was

_INTEREST = 60.0  # seconds after a page was asked for in which sessions are looked at again


class Live:
    """What has changed, by topic: `routes`, `sessions`, `tasks`, `runs`, each with a number that only grows."""

    def __init__(self, reader: Reader, sessions: Sessions) -> None:
        self._reader = reader
        self._sessions = sessions
        self._stamps: dict[str, str] = {}
        self._versions = dict.fromkeys(("routes", "sessions", "tasks", "runs", "memory"), 0)
        self._changed = asyncio.Condition()
        self._open = 0
        self._asked = 0.0
        self._ended = False

    @property
    def is_full(self) -> bool:
        """Whether no more pages can be told."""
        return self._open >= MOST

    def ask(self) -> None:
        """Note that somebody looks at the pages."""
        self._asked = time.monotonic()

    async def watch(self) -> None:
        """Look again and again, while somebody else does."""
        while not self._ended:
            if self._open or time.monotonic() - self._asked < _INTEREST:
                changed = await run_in_threadpool(self._look)
                if changed:
                    async with self._changed:
                        for topic in changed:
                            self._versions[topic] += 1
                        self._changed.notify_all()
            await asyncio.sleep(PAUSE)

    async def end(self) -> None:
        """Let every page go."""
        self._ended = True
        async with self._changed:
            self._changed.notify_all()

    async def events(self) -> AsyncIterator[str]:
        """The numbers of all topics, now and whenever one of them has grown."""
        self._open += 1
        try:
            told: dict[str, int] = {}
            while not self._ended:
                if told != self._versions:
                    told = dict(self._versions)
                    yield f"data: {json.dumps(told)}\n\n"
                async with self._changed:
                    if told == self._versions and not self._ended:
                        with suppress(TimeoutError):
                            async with asyncio.timeout(_BEAT):
                                await self._changed.wait()
                if told == self._versions:
                    yield ": still here\n\n"
        finally:
            self._open -= 1

    def _look(self) -> list[str]:
        """The topics that changed."""
        try:
            look = self._sessions.renew(age=FRESH)
            project = self._reader.project()
            now = {
                "routes": _stamp(project, "routes"),
                "sessions": _sum([look.stamp]),
                "tasks": str(project.store.head(STREAM)),
                "runs": _sum(f"{name} {when}" for name, when in project.store.written("signals").items())
                + _runs(project),
                "memory": _stamp(project, "memory"),
            }
        except (RalfError, OSError):  # the page says so
            return []
        before, self._stamps = self._stamps, now
        return [topic for topic, stamp in now.items() if before and before.get(topic) != stamp]


def _stamp(project: ViewedProject, folder: str) -> str:
    return _sum(f"{name} {when.changed}" for name, when in project.store.written(folder).items())


def _runs(project: ViewedProject) -> str:
    found = (stream for stream in project.store.streams("runs/"))
    return _sum(f"{stream} {project.store.head(stream)}" for stream in found)


def _sum(lines: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(sorted(lines)).encode("utf-8", "replace"), digest_size=8).hexdigest()
