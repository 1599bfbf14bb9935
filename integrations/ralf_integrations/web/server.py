"""The server: the pages of one project on this machine's loopback interface, until it is interrupted."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from ralf.errors import Busy, RalfError
from ralf_integrations.web import home
from ralf_integrations.web.access import Access, Gate
from ralf_integrations.web.pages import Pages, hits_of
from ralf_integrations.web.reading import Reader
from ralf_integrations.web.sessions import Sessions

HOST = "127.0.0.1"

THREADS = 3
"""Pages that are made at the same time."""

_CONNECTIONS = 64

_UNFINISHED = 32
"""Connections that may wait for the rest of a request, or for another one."""


class Server:
    """A server that listens, and does not answer yet. `address` lets one browser in, once."""

    def __init__(self, root: str | os.PathLike[str] | None = None, *, port: int = 0, is_persons: bool = True) -> None:
        """Begin to listen; `is_persons`: see `Access`. UsageError, OtherOwner for a project that cannot be read; Busy
        for a port that is taken.
        """
        self._place = Path(tempfile.mkdtemp(prefix="ralf-web-"))
        try:
            self._reader = Reader(root, self._place)
            self._socket = _listening(port)
        except BaseException:
            shutil.rmtree(self._place, ignore_errors=True)
            raise
        self.port: int = self._socket.getsockname()[1]
        self.access = Access(self.port, is_persons=is_persons)
        self._server = uvicorn.Server(
            uvicorn.Config(
                made(self._reader, self.access),
                access_log=False,  # the first address holds the token
                http=_Connection,
                lifespan="on",
                limit_concurrency=_CONNECTIONS,
                log_level="warning",
                server_header=False,
                timeout_graceful_shutdown=1,
                ws="none",
            ),
        )

    @property
    def address(self) -> str:
        """What the person opens."""
        return f"http://{HOST}:{self.port}{self.access.address}"

    def run(self) -> None:
        """Answer until `stop`, or a signal."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, lambda *_: self.stop())  # the terminal is gone; the others are uvicorn's
        try:
            with suppress(KeyboardInterrupt):
                self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            shutil.rmtree(self._place, ignore_errors=True)

    def stop(self) -> None:
        """End, from any thread."""
        self._server.should_exit = True


class _Connection(H11Protocol):
    """A connection that gives way to others while it is owed no answer: half a request keeps nobody out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and end the oldest one that waits where too many do."""
        super().connection_made(transport)
        self._began = self.loop.time()
        waiting = [one for one in self.connections if isinstance(one, _Connection) and one._waits()]
        if len(waiting) > _UNFINISHED:
            min(waiting, key=lambda one: one._began).transport.close()

    def _waits(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return (cycle is None or cycle.response_complete) and not self.transport.is_closing()


def made(reader: Reader, access: Access) -> ASGIApp:
    """The pages behind their gate."""
    pages = Pages(reader, Sessions(reader), access)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        warming = asyncio.create_task(run_in_threadpool(_warm, pages))
        yield
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)
        reader.close()  # uvicorn raises the signal again that ended it, and nothing behind may be reached

    app = Starlette(
        routes=pages.addresses(), lifespan=lifespan, exception_handlers={404: pages.not_found, 405: pages.not_found}
    )
    return Gate(app, access)


def _warm(pages: Pages) -> None:
    """Read once what takes long, so that no page has to wait for it: a server begins with an empty index."""
    with suppress(RalfError, OSError):
        project = pages.reader.project()
        home.shown(project, pages.sessions.newest())
        hits_of(project, "ralf")


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port), backlog=_CONNECTIONS)
    except OSError as error:
        what = os.strerror(error.errno) if error.errno else str(error)
        raise Busy(f"{HOST}:{port}", what, "ralf web --port 0 takes one that is free") from None


def serve(
    root: str | os.PathLike[str] | None, *, port: int, ready: Callable[[str], None], is_persons: bool = True
) -> None:
    """Show the pages of a project until interrupted; `ready` is called with the address. Errors: `Server`."""
    server = Server(root, port=port, is_persons=is_persons)
    ready(server.address)
    server.run()
