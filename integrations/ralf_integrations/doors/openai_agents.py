"""Sessions of the OpenAI Agents SDK in a project's store: its `Session`.

    result = await Runner.run(agent, "…", session=RalfSession("user-123"))

The protocol is that of openai-agents 0.24.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

from ralf import project as projects
from ralf.document.state import State
from ralf_integrations.doors.entries import EntryStream, Made, Worker, delete, name_of, stamp

T = TypeVar("T")

_SESSIONS = "sessions/openai-agents/"


class RalfSession:
    """A `Session` of the OpenAI Agents SDK: the items of one conversation, shared by all processes that open it.

    session_id        any text
    root              the project directory; see `ralf.project.find`
    session_settings  the SDK's `SessionSettings`, or a dict of what they say: their `limit` is that of `get_items`

    Items are opaque: given back equal, not redacted, not indexed. Each change is durable when its call returns, and
    none of another process is lost by it.

    Errors: UsageError, Busy, DamagedJournal, DamagedBlob, OSError; for a dict what the SDK raises of it.
    """

    def __init__(
        self, session_id: str, root: str | os.PathLike[str] | None = None, *, session_settings: Any = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = _settings(session_settings)
        self._project = projects.find(root)
        self._stream = EntryStream(self._project, f"{_SESSIONS}{name_of(session_id)}")
        self._worker = Worker("ralf-session")  # one call after the other, in order

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The newest `limit` items, oldest first; None: as the settings say, by default all."""
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
        items = await self._done(self._items)
        return items if limit is None or limit < 0 else items[max(0, len(items) - limit) :]

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end, all or none."""
        if items:
            await self._done(lambda: self._stream.append(lambda _: _made("items", items)))

    async def pop_item(self) -> Any:
        """Remove the newest item and return it; None for an empty session. No two callers get the same one."""
        return await self._done(self._pop)

    async def clear_session(self) -> None:
        """Remove all items; nothing of them is left on the disk."""
        await self._done(lambda: delete(self._project, [self._stream]))

    async def _done(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._worker.submit(work))

    # ---- in the worker's thread ----

    def _items(self) -> list[Any]:
        items: list[Any] = []
        for body in self._stream.records():
            if body["kind"] == "popped":
                items[-1:] = []
            else:
                items += self._stream.entries(body)
        return items

    def _pop(self) -> Any:
        newest: list[Any] = []

        def made(_: State) -> Made | None:
            newest[:] = self._items()[-1:]
            return _made("popped", []) if newest else None

        self._stream.append(made)
        return newest[0] if newest else None


def _settings(given: Any) -> Any:
    """Settings as the SDK's `Runner` takes them; where it is not installed, there is none."""
    try:
        from agents.memory.session_settings import SessionSettings, coerce_session_settings
    except ModuleNotFoundError:
        return SimpleNamespace(**given) if isinstance(given, dict) else given
    return SessionSettings() if given is None else coerce_session_settings(given)


def _made(kind: str, items: list[Any]) -> Made:
    return {"kind": kind, "at": stamp()}, items
