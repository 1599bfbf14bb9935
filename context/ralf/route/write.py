"""The writer: one at a time for each route; a record is acknowledged before the file shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from ralf import routing
from ralf.brief.wording import place, value
from ralf.document import access
from ralf.document.access import Body, Writer
from ralf.document.judging import DAMAGED, NEW
from ralf.document.state import digest_of
from ralf.errors import RalfError
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route import archive, edits, fold, load, shared
from ralf.route.family import context_of, document_of
from ralf.storage import files, journal
from ralf.storage.journal import Save, Token
from ralf.text import tokens


def utc_now() -> str:
    """The time as records have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class RouteWriter:
    """Writes to a route whose lock is held; made by `open_route`.

    What a person saved into the file is absorbed before, and the file shows the newest revision after the block of
    `open_route`; in between there is any number of `append`.

    warnings  what the caller should know of
    damage    why the file cannot be read or may not be written, "" for nothing: it stays as it is
    foreign   whether somebody else has written the file: it stays as it is, too
    """

    def __init__(self, project: Project, route: str, writer: Writer) -> None:
        """Record what a person saved into the file, or a dead writer displaced."""
        self._project = project
        self._route = route
        self._path = project.route_file(route)
        self._writer = writer
        self.damage = ""
        self.foreign = False
        self._told: list[str] = []
        writer.absorb()
        self._look_at_file()
        self._tell(writer.absorbed)
        self._owes = digest_of(writer.content) != writer.state.render  # the journal has more than the file shows
        if project.git.shares():
            self._share_newest()

    @property
    def context(self) -> RouteContext:
        """What the route comes to by its journal."""
        return context_of(self._writer.state.rows, self._route)

    @property
    def token(self) -> Token | None:
        """The place of the newest record, None for none."""
        return self._writer.state.token

    @property
    def warnings(self) -> list[str]:
        """What the caller should know of."""
        writer = self._writer
        is_said = self.damage if writer.unread or writer.file.status in (DAMAGED, NEW) else ""
        return [*self._told, *(() if is_said else writer.warnings)]

    def append(
        self,
        kind: str,
        payload: Mapping[str, Any],
        *,
        id: str = "",  # noqa: A002
        shown: bool = True,
        save: Save | None = None,
    ) -> RouteContext:
        """Append one record and return the new context. The record is durable and read back when this returns.

        A record whose id the journal already has changes nothing; "": one that no other has is made.

        shown  whether the route file is to show this revision: after `render_file`
        save   the file that the record absorbs
        """
        before, id = self.context, id or f"{kind}-{os.urandom(16).hex()}"  # noqa: A001
        payload = edits.labelled(before, kind, payload, self._project.git.clone)
        if self._writer.append({"kind": kind, "payload": payload}, id, is_shown=shown, save=save):
            self._owes = True
            self._share(kind, before)
        return self.context

    def render_file(self) -> None:
        """Make the route file show the newest revision, absorbing what a person saves meanwhile."""
        if self.token is not None:
            known = len(self._writer.absorbed)
            self._writer.put()
            self._tell(self._writer.absorbed[known:])
            self._look_at_file()
        self._owes = False

    def close(self) -> None:
        """Render the file if it is behind the journal."""
        if self._owes:
            with suppress(OSError):  # the write itself has reported its error
                self.render_file()

    def accept(self, kind: str, payload: Mapping[str, Any], *, id: str, content: bytes) -> RouteContext:  # noqa: A002
        """Append a record of the foreign content that the user has accepted, and render the file.

        content  the file that was looked at: if it has changed since, it is left as it is, with a warning
        """
        is_same = content == self._writer.content
        self.append(kind, payload, id=id, save=Save(digest_of(content), "") if is_same else None)
        if is_same:
            self.foreign = False
            self._writer.accept()
        self.render_file()
        return self.context

    def _look_at_file(self) -> None:
        """Know what the file is, and why it is left as it is."""
        writer = self._writer
        self.foreign = writer.file.status == NEW
        error = load.unreadable(self._path, writer.unread) if writer.unread else writer.file.error
        self.damage = str(error) if error is not None else self._project.git.would_commit(self._path) or self.damage

    def _tell(self, absorbed: list[tuple[Body, bool]]) -> None:
        """Warn of fields that an edit and the journal have changed, and of an editor that shows an older file."""
        for body, is_again in absorbed:
            if is_again:
                self._told.append(f"{self._path}: was saved once more from an older version: what it says now counts")
            for one in body["payload"].get("conflicts", ()):
                what = "changed by hand, and meanwhile otherwise: the edit counts, the other value was"
                self._told.append(f"{self._path}: {place(one['at'])}: {what} {value(one['also'][0])}")

    def _share_newest(self) -> None:
        """Share what a writer has recorded that was killed before it did."""
        newest = journal.newest(self._project.store, self._route) if self.token is not None else None
        if newest is None or newest.kind not in shared.KINDS or newest.revision != self.context.revision:
            return
        if not shared.is_published(self._project, self._route, newest.revision):
            before = load.context_at(self._project, self._route, newest.revision - 1) or fold.empty(self._route)
            self._share(newest.kind, before)

    def _share(self, kind: str, before: RouteContext) -> None:
        """Share what the newest record has changed; it is durable whatever becomes of that."""
        project = self._project
        try:
            if kind in shared.KINDS and project.git.shares():
                shared.publish(project, self._route, self.context.revision, before, self.context)
        except (OSError, RalfError) as error:
            what = f"{error}: what was recorded is not shared yet; the next write shares it"
            self._told.append(f"{shared.folder_of(project)}: {what}")


@contextmanager
def open_route(project: Project, route: str) -> Iterator[RouteWriter]:
    """Lock a route for a block of writing, and read its state. Creates the store on first use.

    Whatever becomes of the block, the file shows at its end what was recorded in it, and what was saved into it before.

    Raises Busy when another writer holds it too long, OSError when the folder cannot be written, DamagedJournal when
    the journal cannot be read, UsageError where the store is not to be written (`Project.prepare`): then nothing was
    written.
    """
    project.prepare()
    tokens.count("a")  # opens the table of ranks before other writers have to wait for it
    document = document_of(project, route, is_written=True)
    files.make(document.place.file.parent)
    with access.writing(document) as inner:
        archive.bring_back(project, route)
        if inner.state.token is None:
            routing.check_begun_anew(project, route)
        writer = RouteWriter(project, route, inner)
        try:
            yield writer
        finally:
            writer.close()
    archive.when_due(project, but=route)
