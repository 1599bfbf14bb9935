"""Sessions of the OpenAI Agents SDK in a project's store: its `Session`.

    result = await Runner.run(agent, "…", session=RalfSession("user-123"))

The protocol is that of openai-agents 0.24. Nothing of the framework is imported: it takes any object of this form.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from ralf import project as projects
from ralf.errors import Busy, Conflict, UnknownToken
from ralf.storage.journal import Token
from ralf_integrations.doors.entries import EntryStream, Record, Worker, delete, encoded, name_of, stamp

T = TypeVar("T")

_SESSIONS = "sessions/openai-agents/"
_MOST_TRIES = 1_000  # each means that another writer has appended


class RalfSession:
    """A `Session` of the OpenAI Agents SDK: the items of one conversation, shared by all processes that open it.

    session_id        any text
    root              the project directory; see `ralf.project.find`
    session_settings  the SDK's `SessionSettings`: its `limit` is that of `get_items`

    Items are opaque: given back equal, not redacted, not indexed. Each change is durable when its call returns, and
    none of another process is lost by it.

    Errors: UsageError, Busy, DamagedJournal, DamagedBlob, OSError.
    """

    def __init__(
        self, session_id: str, root: str | os.PathLike[str] | None = None, *, session_settings: Any = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._project = projects.find(root)
        self._stream = EntryStream(self._project, f"{_SESSIONS}{name_of(session_id)}")
        self._place: Token | None = None
        self._items: list[bytes] = []  # of the records up to that place, as JSON: what was given out may be changed
        self._worker = Worker("ralf-session")  # one call after the other, in order

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The newest `limit` items, oldest first; None: as the settings say, by default all."""
        return await self._done(lambda: self._get(limit))

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end, all or none."""
        if items:
            await self._done(lambda: self._stream.append(items, lambda _: _fields("items")))

    async def pop_item(self) -> Any:
        """Remove the newest item and return it; None for an empty session. No two callers get the same one."""
        return await self._done(self._pop)

    async def clear_session(self) -> None:
        """Remove all items; nothing of them is left on the disk."""
        await self._done(self._clear)

    async def _done(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._worker.submit(work))

    # ---- in the worker's thread ----

    def _get(self, limit: int | None) -> list[Any]:
        settings = self.session_settings
        if limit is None and settings is not None:
            limit = settings.get("limit") if isinstance(settings, Mapping) else settings.limit
        self._follow()
        first = 0 if limit is None or limit < 0 else max(0, len(self._items) - limit)
        return [json.loads(item) for item in self._items[first:]]

    def _pop(self) -> Any:
        for _ in range(_MOST_TRIES):
            self._follow()
            if not self._items:
                return None
            try:
                self._stream.append_after(self._place, [], _fields("popped"))
            except Conflict:
                continue
            return json.loads(self._items[-1])
        raise Busy(self.session_id, "other writers change this session faster", "try again")

    def _clear(self) -> None:
        delete(self._project, [self._stream])

    def _follow(self) -> None:
        """Read the records that are new since the last call."""
        for _ in range(_MOST_TRIES):
            with suppress(UnknownToken):
                for record in self._stream.read(after=self._place):
                    self._take(record)
                if self._place is None or self._stream.newest()[0] is not None:
                    return
            self._place, self._items = None, []  # cleared or rewritten since
        raise Busy(self.session_id, "is rewritten again and again", "try again")

    def _take(self, record: Record) -> None:
        kind = record.fields["kind"]
        if kind == "popped":
            self._items[-1:] = []
        elif kind == "cleared":
            self._items = []
        else:
            self._items += map(encoded, record.entries)
        self._place = record.token


def _fields(kind: str) -> Mapping[str, Any]:
    return {"kind": kind, "at": stamp()}
