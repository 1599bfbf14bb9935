"""The documents of a store that have a file each: how their journals, files and edits are reached alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ralf.document import place as places
from ralf.document.access import Document
from ralf.memory import writing as memories
from ralf.memory.family import STREAMS as MEMORIES
from ralf.project import Project
from ralf.route import family as routes
from ralf.route.write import open_route
from ralf.storage.journal import stream_of

ROUTES = stream_of("")


class Kept(NamedTuple):
    """A document.

    files   where its file lies, or may lie, with what writers displace
    settle  absorbs what somebody saved, and has the file show the records; errors: `access.write`
    """

    document: Document
    files: tuple[Path, ...]
    settle: Callable[[], object]


def kept(project: Project, stream: str) -> Kept | None:
    """The document that a stream is the journal of; None for a stream of another kind."""
    if stream.count("/") != 1:
        return None
    if stream.startswith(ROUTES):
        route = stream.removeprefix(ROUTES)
        document = routes.document_of(project, route)
        files = (project.live_file(route), project.archived_file(route), *places.all_displaced(document.place))
        return Kept(document, files, partial(_settle_route, project, route))
    if stream.startswith(MEMORIES):
        agent = stream.removeprefix(MEMORIES)
        document = memories.document_of(project, agent)
        files = (document.place.file, *places.all_displaced(document.place))
        return Kept(document, files, partial(memories.record, project, agent, []))
    return None


def all_kept(project: Project) -> Iterator[Kept]:
    """Every document that has a journal."""
    found = (kept(project, stream) for stream in sorted(project.store.streams("")))
    return (one for one in found if one is not None)


def _settle_route(project: Project, route: str) -> None:
    with open_route(project, route):
        pass  # absorbs before, and renders after
