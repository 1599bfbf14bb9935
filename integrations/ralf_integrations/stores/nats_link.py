"""Connects to NATS servers: one event loop in a thread of its own for each address and process, which all stores of
that address share.

Every call has a time limit, and ends as Fenced when it passes, or at once when no server accepts a connection, unless
its caller waits (`waits_for_engine`).
"""

from __future__ import annotations

import asyncio
import atexit
import ipaddress
import os
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import nats
from nats.aio.client import Client, Server
from nats.errors import Error

from ralf.errors import Fenced, RalfError, UsageError
from ralf.storage.engine_calls import waits_for_engine

T = TypeVar("T")

_waits: ContextVar[bool] = ContextVar("waits", default=False)
"""Whether a call waits for servers none of which accepts a connection."""

OLDEST = (2, 12, 1)
"""The oldest server that is used: earlier ones lost acknowledged messages when the leader of a stream was killed."""

_CONNECTING = 2  # seconds that a server may take to accept a connection
_TRIES = 3  # attempts per server before a connection counts as lost
_PAUSE = 0.1  # seconds between attempts to connect
_PING = 2  # seconds between pings; two without an answer end the connection: a stopped server closes none


@dataclass(frozen=True)
class Address:
    """Where NATS servers are, and who we are there.

    servers   URLs such as `nats://127.0.0.1:4222`; off this machine only `tls://`
    user      "" for none
    password  never in a message, a log or a process list
    ca        path of the certificates that vouch for the servers; "" for those of the system
    """

    servers: tuple[str, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    ca: str = ""

    def __post_init__(self) -> None:
        """UsageError for an address that would send anything in the clear, or that holds a password."""
        if not self.servers:
            raise UsageError("nats_servers", "names no server", 'nats_servers: ["nats://127.0.0.1:4222"]')
        for server in self.servers:
            parts = urlsplit(server)
            shown = f"{parts.scheme}://{parts.hostname}"
            if parts.username is not None or parts.password is not None:
                what = "holds a user or a password"
                raise UsageError(shown, what, "set nats_user and nats_password in config.local.yaml")
            if parts.scheme not in ("nats", "tls") or not parts.hostname:
                raise UsageError(shown, "is not an address of a NATS server", "nats_servers: ['tls://HOST:4222']")
            if parts.scheme != "tls" and not _is_loopback(parts.hostname):
                raise UsageError(shown, "is not on this machine and not encrypted", f"write tls://{parts.hostname}")

    def __str__(self) -> str:
        return ", ".join(self.servers)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Link:
    """A connection to the servers of an address, for any thread of the process that made it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.kept: dict[object, Any] = {}
        """What its users keep as long as the connection: only code that runs in the loop may touch it."""
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._last_error = ""
        self._is_refused = False
        self._is_new = True
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ralf-nats", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], Coroutine[Any, Any, T]], timeout: float) -> T:
        """Run a coroutine in the loop, and return what it returns. Fenced when it takes longer than `timeout`
        seconds.
        """
        limited = self._limited(work, timeout, waits=waits_for_engine())
        future = asyncio.run_coroutine_threadsafe(limited, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def _limited(self, work: Callable[[], Awaitable[T]], timeout: float, *, waits: bool) -> T:
        _waits.set(waits)  # of this call alone
        try:
            async with asyncio.timeout(timeout):
                return await work()
        except (TimeoutError, Error) as error:
            why = f" ({self._last_error})" if self._last_error else ""
            what = f"no answer within {timeout:g} s" if isinstance(error, TimeoutError) else "no connection"
            raise Fenced(self.address, f"{what}{why}", "try again; if it lasts: ralf doctor") from None

    async def client(self) -> Client:
        """The connection, made anew where it is lost. UsageError for a server that is too old or refuses the user."""
        while True:
            try:
                async with self._connecting:
                    return await self._usable()
            except Error:
                if not _waits.get():
                    raise
            await asyncio.sleep(_PAUSE)

    async def _usable(self) -> Client:
        if self._client is None or self._client.is_closed:
            self._client = await self._connected()
        while not self._client.is_connected:  # what is sent meanwhile would only wait in a buffer
            await asyncio.sleep(_PAUSE / 5)
            if self._client.is_closed:
                self._client = await self._connected()
        if self._is_new:
            await self._check_version(self._client)
        return self._client

    async def _check_version(self, client: Client) -> None:
        """UsageError for a server that is too old: the connection may have moved to another one."""
        version = client.connected_server_version
        found = (version.major, version.minor, version.patch)
        if found < OLDEST:
            await client.close()
            what = f"is NATS {'.'.join(map(str, found))}, which can lose acknowledged records when a server dies"
            raise UsageError(self.address, what, f"install {'.'.join(map(str, OLDEST))} or later")
        self._is_new = False

    async def _connected(self) -> Client:
        address, self._is_refused = self.address, False
        is_safe = all(server.startswith("tls") for server in address.servers)
        try:
            client = await nats.connect(
                servers=list(address.servers),
                name="ralf",
                user=address.user or None,
                password=address.password or None,
                tls=ssl.create_default_context(cafile=address.ca or None) if is_safe else None,
                connect_timeout=_CONNECTING,
                max_reconnect_attempts=_TRIES,
                reconnect_time_wait=_PAUSE,
                reconnect_to_server_handler=self._next_server,
                ping_interval=_PING,
                max_outstanding_pings=2,
                error_cb=self._note,
                reconnected_cb=self._note_new,
            )
        except Error:
            if self._is_refused:
                hint = "set nats_user and nats_password in config.local.yaml"
                raise UsageError(address, "refuses this user or password", hint) from None
            raise
        self._last_error, self._is_new = "", True
        return client

    def _next_server(self, servers: list[Server], _: dict[str, Any]) -> tuple[Server | None, float]:
        """The named server to try next: servers also announce others, which nobody has vouched for."""
        named = {urlsplit(server).netloc for server in self.address.servers}
        ours = [server for server in servers if server.uri.netloc in named]
        return min(ours, key=lambda server: server.reconnects, default=None), _PAUSE

    async def _note_new(self) -> None:
        self._is_new = True

    async def _note(self, error: Exception) -> None:
        self._last_error = str(error).removeprefix("nats: ")[:100]
        self._is_refused |= "authorization" in self._last_error.lower()

    def close(self) -> None:
        """End the connection and its thread; nothing in a forked process, which has no such thread."""
        if os.getpid() != self._process:
            return

        async def end() -> None:
            if self._client is not None and not self._client.is_closed:
                await self._client.close()

        with suppress(RalfError, RuntimeError):
            self.run(end, 1)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1)
        if not self._thread.is_alive():
            self._loop.close()


_links: dict[tuple[int, Address], Link] = {}
_making = threading.Lock()
os.register_at_fork(after_in_child=lambda: globals().update(_making=threading.Lock()))  # its holder is not in the child


def link_to(address: Address) -> Link:
    """This process's link to an address; a forked process makes its own."""
    key = (os.getpid(), address)
    with _making:
        if key not in _links:
            _links[key] = Link(address)
        return _links[key]


@atexit.register
def close_all() -> None:
    """End this process's links."""
    for key in [key for key in _links if key[0] == os.getpid()]:
        _links.pop(key).close()
