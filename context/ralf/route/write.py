"""The writer: one at a time for each route; a record is acknowledged before the file shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ralf import routing
from ralf.document import access
from ralf.document.access import Writer
from ralf.document.judging import DAMAGED, NEW
from ralf.document.record import now
from ralf.document.state import digest_of
from ralf.errors import RalfError
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route import archive, edits, fold, load
from ralf.route.family import context_of, document_of
from ralf.storage import journal
from ralf.storage.journal import Save, Token

utc_now = now
"""The time as records have it."""


class RouteWriter:
    """Writes to a route whose lock is held; made by `open_route`.

    What a person saved into the file is absorbed before, and the file shows the newest revision after the block of
    `open_route`; in between there is any number of `append`.
    """

    def __init__(self, project: Project, route: str, writer: Writer) -> None:
        """Record what a person saved into the file, or a dead writer displaced."""
        self._project = project
        self._route = route
        self._path = project.live_file(route)
        self._writer = writer
        self._failed: list[str] = []
        writer.absorb()
        self._tracked = project.git.would_commit(self._path)
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
    def damage(self) -> str:
        """Why the file cannot be read or may not be written, "" for nothing: it stays as it is."""
        writer = self._writer
        error = load.unreadable(self._path, writer.unread) if writer.unread else writer.file.error
        return str(error) if error is not None else self._tracked

    @property
    def foreign(self) -> bool:
        """Whether somebody else has written the file: it stays as it is, too."""
        return self._writer.file.status == NEW

    @property
    def warnings(self) -> list[str]:
        """What the caller should know of: what failed, fields that an edit and the journal have changed, and an editor
        that shows an older file.
        """
        writer = self._writer
        told = list(self._failed)
        for body, is_again in writer.absorbed:
            if is_again:
                told.append(f"{self._path}: was saved once more from an older version: what it says now counts")
            for one in body["payload"].get("conflicts", ()):
                from ralf.brief.wording import place, value  # few writes meet a conflict

                what = "changed by hand, and meanwhile otherwise: the edit counts, the other value was"
                told.append(f"{self._path}: {place(one['at'])}: {what} {value(one['also'][0])}")
        is_said = self.damage if writer.unread or writer.file.status in (DAMAGED, NEW) else ""
        return told if is_said else [*told, *writer.warnings]

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
        payload = {**payload, "number": fold.next_number(before)} if kind == "checkpoint" else payload
        if self._writer.append({"kind": kind, "payload": payload}, id, is_shown=shown, save=save):
            self._share(kind, before)
        return self.context

    def render_file(self) -> None:
        """Make the route file show the newest revision, absorbing what a person saves meanwhile."""
        if self.token is not None:
            self._writer.put()

    def close(self) -> None:
        """Render the file if it is behind the journal."""
        if self._writer.digest != self._writer.state.render:
            with suppress(OSError):  # the write itself has reported its error
                self.render_file()

    def accept(self, kind: str, payload: Mapping[str, Any], *, id: str, content: bytes) -> RouteContext:  # noqa: A002
        """Append a record of the foreign content that the user has accepted, and render the file.

        content  the file that was looked at: if it has changed since, it is left as it is, with a warning
        """
        is_same = content == self._writer.content
        self.append(kind, payload, id=id, save=Save(digest_of(content), "") if is_same else None)
        if is_same:
            self._writer.accept()
        self.render_file()
        return self.context

    def _share_newest(self) -> None:
        """Share what a writer has recorded that was killed before it did."""
        from ralf.route import shared

        newest = journal.newest(self._project.store, self._route) if self.token is not None else None
        if newest is None or newest.kind not in shared.KINDS or newest.revision != self.context.revision:
            return
        if not shared.is_published(self._project, self._route, newest.revision):
            before = load.context_at(self._project, self._route, newest.revision - 1) or fold.empty(self._route)
            self._share(newest.kind, before)

    def _share(self, kind: str, before: RouteContext) -> None:
        """Share what the newest record has changed; it is durable whatever becomes of that."""
        project = self._project
        if not project.git.shares():
            return
        from ralf.route import shared  # few stores share

        try:
            if kind in shared.KINDS:
                shared.publish(project, self._route, self.context.revision, before, self.context)
        except (OSError, RalfError) as error:
            what = f"{error}: what was recorded is not shared yet; the next write shares it"
            self._failed.append(f"{shared.folder_of(project)}: {what}")


@contextmanager
def open_route(project: Project, route: str) -> Iterator[RouteWriter]:
    """Lock a route for a block of writing, and read its state. Creates the store on first use.

    Whatever becomes of the block, the file shows at its end what was recorded in it, and what was saved into it before.

    Raises Busy when another writer holds it too long, OSError when the folder cannot be written, DamagedJournal when
    the journal cannot be read, UsageError where the store is not to be written (`Project.prepare`): then nothing was
    written.
    """
    project.prepare()
    document = document_of(project, route, is_written=True)
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
