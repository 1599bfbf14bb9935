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
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from nats.aio.client import Client, Server
from nats.errors import Error

from ralf.errors import Fenced, RalfError, UsageError
from ralf.storage.engine_calls import waits_for_engine
from ralf_integrations.stores import nats_login

T = TypeVar("T")

_waits: ContextVar[bool] = ContextVar("waits", default=False)
"""Whether a call waits for servers none of which accepts a connection."""

OLDEST = (2, 12, 1)
"""The oldest server that is used: earlier ones lost acknowledged messages when the leader of a stream was killed."""

_CONNECTING = 2  # seconds that a server may take to accept a connection
_TRIES = 3  # attempts per server before a connection counts as lost
_PAUSE = 0.1  # seconds between attempts to connect
_LONGEST = 100  # characters of what the client or a server says
_TLS = "look at nats_ca, the name in nats_servers, and tls in the server's configuration: docs/engines.md"
_MOST_AWAY = 5.0  # seconds for which servers that were away are not asked again by a call that does not wait
_PING = 2  # seconds between pings; two without an answer end the connection: a stopped server closes none


@dataclass(frozen=True)
class Address:
    """Where NATS servers are, and who we are there.

    servers   URLs such as `nats://127.0.0.1:4222`; off this machine only `tls://`
    user      "" for none
    password  never in a message, a log or a process list
    creds     path of a `.creds` file, instead of a user and a password
    ca        path of the certificates that vouch for the servers; "" for those of the system
    certificate, key  paths of our own certificate and its key, for servers that ask for one
    """

    servers: tuple[str, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    creds: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        """UsageError for an address that would send anything in the clear, or that holds a password, and for half a
        login.
        """
        if not self.servers:
            raise UsageError("nats_servers", "names no server", 'nats_servers: ["nats://127.0.0.1:4222"]')
        for server in self.servers:
            parts = urlsplit(server)
            if "@" in server:  # whatever stands before it may be a password
                what = "one of them holds a user or a password"
                raise UsageError("nats_servers", what, "set nats_user and nats_password in config.local.yaml")
            shown = f"{parts.scheme}://{parts.hostname}"
            if parts.scheme not in ("nats", "tls") or not parts.hostname or parts.path or parts.query or parts.fragment:
                raise UsageError(shown, "is not an address of a NATS server", "nats_servers: ['tls://HOST:4222']")
            if parts.scheme != "tls" and not _is_loopback(parts.hostname):
                raise UsageError(shown, "is not on this machine and not encrypted", f"write tls://{parts.hostname}")
        if self.creds and (self.user or self.password):
            raise UsageError("nats_creds", "and a user or password: only one can count", "remove one of them")
        if bool(self.user) != bool(self.password):
            raise UsageError("nats_user", "needs a password, and a password a user", "nats_user, nats_password")
        if bool(self.certificate) != bool(self.key):
            raise UsageError("nats_certificate", "needs a key, and a key a certificate", "nats_certificate, nats_key")

    def __str__(self) -> str:
        return ", ".join(self.servers)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Plain(Error):
    """A server whose address says `tls` does not encrypt."""


class _Unnamed(Error):
    """A server that another one has announced, and nobody has named."""


class _Guarded(Client):
    """The client, but for three things. It encrypts only where the server says so, which anybody in the middle may
    deny, and be told the password: this one tells a server that is to encrypt nothing before it does. It goes to
    servers that others announce when those that we named are gone: this one tells them nothing. And it would wait for
    ever for the end of a connection that was not trusted, where another server may be.

    named  the servers that may be told anything, each as host and port
    """

    def __init__(self, named: frozenset[str]) -> None:
        super().__init__()
        self._named = named

    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        except (ssl.SSLError, _Plain, _Unnamed):
            if self._transport is not None:
                self._transport.close()  # type: ignore[no-untyped-call]
                self._transport = None
            raise

    def _connect_command(self) -> bytes:
        writer = getattr(self._transport, "_io_writer", None)
        is_encrypted = writer is not None and writer.get_extra_info("ssl_object") is not None
        current = self._current_server
        if current is None or current.uri.netloc not in self._named:
            raise _Unnamed("nobody has named this server")
        if not is_encrypted and current.uri.scheme == "tls":
            raise _Plain("the server does not encrypt: it was told nothing")
        return super()._connect_command()


class _DaemonThreads(ThreadPoolExecutor):
    """Looks names up, each in a thread of its own that nobody waits for when the process ends: a resolver that does
    not answer takes half a minute.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        """See `Executor.submit`."""
        future = Future[T]()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **named))
            except BaseException as error:  # noqa: BLE001  # it is the caller's
                future.set_exception(error)

        threading.Thread(target=run, name="ralf-lookup", daemon=True).start()
        return future


class Link:
    """A connection to the servers of an address, for any thread of the process that made it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._named = frozenset(urlsplit(server).netloc for server in address.servers)
        self.kept: dict[object, Any] = {}
        """What its users keep as long as the connection: only code that runs in the loop may touch it."""
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._last_error = ""
        self._is_refused = False
        self._distrust = ""
        self._is_new = True
        self._away_until = 0.0  # by the monotonic clock
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_DaemonThreads())
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
        begun = time.monotonic()
        if begun < self._away_until and not _waits.get():
            raise Error("no server answered a moment ago")
        address, self._is_refused, self._distrust = self.address, False, ""
        token, sign = nats_login.creds(address.creds) if address.creds else (b"", None)
        is_encrypted = address.ca or address.certificate or any(url.startswith("tls:") for url in address.servers)
        context = nats_login.tls_context(address.ca, address.certificate, address.key) if is_encrypted else None
        client = _Guarded(self._named)
        try:
            await client.connect(
                servers=list(address.servers),
                name="ralf",
                user=address.user or None,
                password=address.password or None,
                user_jwt_cb=(lambda: token) if token else None,
                signature_cb=sign,
                tls=context,
                connect_timeout=_CONNECTING,
                max_reconnect_attempts=_TRIES,
                reconnect_time_wait=_PAUSE,  # type: ignore[arg-type]  # seconds, of which a part is enough
                reconnect_to_server_handler=self._next_server,
                ping_interval=_PING,
                max_outstanding_pings=2,
                error_cb=self._note,
                reconnected_cb=self._note_new,
            )
        except Error:
            if self._is_refused:
                hint = "set nats_user and nats_password, or nats_creds, in config.local.yaml"
                raise UsageError(address, "refuses this user or password", hint) from None
            if self._distrust:
                raise UsageError(address, f"cannot be trusted: {self._distrust}", _TLS) from None
            raise
        finally:  # what took long to find out holds as long: a command asks many times
            took = time.monotonic() - begun
            is_silent = not client.is_connected and took > _CONNECTING / 2  # a refused connection takes no time
            self._away_until = begun + took + min(took, _MOST_AWAY) if is_silent else 0.0
        self._last_error, self._is_new = "", True
        return client

    def _next_server(self, servers: list[Server], _: dict[str, Any]) -> tuple[Server | None, float]:
        """The named server to try next: servers also announce others, which nobody has vouched for."""
        ours = [server for server in servers if server.uri.netloc in self._named]
        return min(ours, key=lambda server: server.reconnects, default=None), _PAUSE

    async def _note_new(self) -> None:
        self._is_new = True

    async def _note(self, error: Exception) -> None:
        told = str(error).removeprefix("nats: ")
        if self.address.password:  # a server may say it back
            told = told.replace(self.address.password, "***")
        self._last_error = told[:_LONGEST]
        self._is_refused |= any(word in told.lower() for word in ("authorization", "authentication"))
        if isinstance(error, ssl.SSLError | _Plain):
            self._distrust = getattr(error, "verify_message", "") or told[:_LONGEST]

    def close(self) -> None:
        """End the connection and its thread; nothing in a forked process, which has no such thread."""
        if os.getpid() != self._process:
            return

        async def end() -> None:
            if self._client is not None and not self._client.is_closed:
                await self._client.close()

        # a task of the client that still tries to reconnect ends with the loop, and asyncio would print that
        self._loop.set_exception_handler(lambda _loop, _context: None)
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
