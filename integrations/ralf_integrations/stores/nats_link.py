"""Connects to NATS servers: one event loop in a thread of its own for each address and process, which all stores of
that address share.

Every call of a store (`call`) has a time limit, and ends as Fenced when it passes, when a server answers nonsense, or
at once when no server accepts a connection, unless its caller waits (`waits_for_engine`). No error repeats a word that
a server said: it may be anybody's.
"""

from __future__ import annotations

import asyncio
import atexit
import ipaddress
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from nats.aio.client import Client
from nats.errors import Error, NoRespondersError
from nats.js.errors import APIError, NoStreamResponseError

from ralf.errors import Fenced, RalfError, UsageError
from ralf.storage.engine_calls import waits_for_engine
from ralf.storage.journal import MALFORMED
from ralf_integrations.stores import nats_login

P = ParamSpec("P")
T = TypeVar("T")

OLDEST = (2, 12, 1)
"""The oldest server that is used: earlier ones lost acknowledged messages when the leader of a stream was killed."""

_CONNECTING = 2  # seconds that each step of a connection may take
_PAUSE = 0.1  # seconds between attempts to connect
_MOST_AWAY = 5.0  # seconds for which servers that were away are not asked again by a call that does not wait
_PING = 2  # seconds between pings; two without an answer end the connection: a stopped server closes none
_LARGEST = 900_000  # bytes of a message beside its headers, where the servers take as many
_HEADERS = 64 << 10  # bytes for the headers
_NONSENSE = (Error, OSError, EOFError, AssertionError, *MALFORMED)  # what the client raises over what a server sends
_TLS = "look at nats_ca, the name in nats_servers, and tls in the server's configuration: docs/team.md"
_LOGIN = "set nats_user and nats_password, or nats_creds, in config.local.yaml"


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


# ---- calls ----

_end: ContextVar[float] = ContextVar("end")
"""When the call that is under way ends as Fenced, by the monotonic clock."""


def call(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Have a method of who has an `address` and a `timeout` end as Fenced when it has taken so many seconds, and when
    what a server sends makes no sense.
    """

    @wraps(method)
    def limited(self: Any, *given: P.args, **named: P.kwargs) -> T:
        before = _end.set(time.monotonic() + self.timeout)
        try:
            return method(self, *given, **named)
        except APIError as error:
            what = f"the server refuses: error {int(error.err_code or 0)} of JetStream"
            raise RalfError(self.address, what, "look at the server's log") from None
        except (Error, EOFError, AssertionError, *MALFORMED) as error:
            raise _no_server(self.address, f"answers as no NATS server does ({type(error).__name__})") from None
        finally:
            _end.reset(before)

    return limited  # type: ignore[return-value]  # it is one, but for the name of its first parameter


def extend(seconds: float) -> None:
    """Give the call that is under way so many seconds from now on, if that is more than it has."""
    _end.set(max(_end.get(), time.monotonic() + seconds))


def _no_server(address: Address, what: str) -> Fenced:
    return Fenced(address, what, "try again; if it lasts: ralf doctor")


# ---- the connection ----


class _Plain(Error):
    """A server whose address says `tls` does not encrypt."""


class _Guarded(Client):
    """The client, but for one thing: it encrypts only where the server says so, which anybody in the middle may deny,
    and be told the password. This one tells a server that is to encrypt nothing before it does.
    """

    def _connect_command(self) -> bytes:
        writer = getattr(self._transport, "_io_writer", None)
        is_encrypted = writer is not None and writer.get_extra_info("ssl_object") is not None
        if self._current_server is not None and self._current_server.uri.scheme == "tls" and not is_encrypted:
            raise _Plain("the server does not encrypt: it was told nothing")
        return super()._connect_command()

    def give_up(self) -> None:
        """Close a connection that was not made; the client itself would wait for its end, for ever."""
        if self._transport is not None:
            self._transport.close()  # type: ignore[no-untyped-call]


class _Loop(asyncio.SelectorEventLoop):
    """Looks names up in its own thread, for which nobody waits when the process ends: a resolver that does not answer
    takes half a minute, and the executor's threads are waited for.
    """

    async def getaddrinfo(self, host: Any, port: Any, **named: Any) -> Any:
        """See `socket.getaddrinfo`."""
        return socket.getaddrinfo(host, port, **named)


class Link:
    """A connection to one of the servers of an address, for any thread of the process that made it. It is made anew
    with each call that finds it lost, and only to a server that the address names.

    kept     what its users keep as long as the process
    largest  bytes that a message may have beside its headers
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.kept: dict[object, Any] = {}
        self.largest = _LARGEST
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._away_until = 0.0  # by the monotonic clock
        self._process = os.getpid()
        self._loop = _Loop()
        # what a server makes of a task of the client is found out by who waits for it; asyncio would print it
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._thread = threading.Thread(target=self._loop.run_forever, name="ralf-nats", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[Client], Awaitable[T]], limit: float) -> T | None:
        """What a coroutine returns that is told the client, None where no answer came within so many seconds, or the
        connection was lost. Fenced when the call that is under way ends.
        """
        left = _end.get() - time.monotonic()
        future = asyncio.run_coroutine_threadsafe(self._answered(work, limit, waits=waits_for_engine()), self._loop)
        try:
            return future.result(max(left, 0))
        except TimeoutError:
            raise _no_server(self.address, "no answer in time") from None
        finally:
            future.cancel()

    async def _answered(self, work: Callable[[Client], Awaitable[T]], limit: float, *, waits: bool) -> T | None:
        client = await self._connected(waits=waits)
        try:
            async with asyncio.timeout(limit):
                return await work(client)
        except (TimeoutError, NoRespondersError, NoStreamResponseError):
            return None
        except APIError:
            raise
        except Error:
            if client.is_connected:
                raise
            return None

    async def _connected(self, *, waits: bool) -> Client:
        """The connection. UsageError for servers that are too old, refuse the user or cannot be trusted."""
        while True:
            try:
                async with self._connecting:
                    if self._client is None or not self._client.is_connected:
                        self._client = await self._connect(waits=waits)
                    return self._client
            except Fenced:
                if not waits:
                    raise
            await asyncio.sleep(_PAUSE)

    async def _connect(self, *, waits: bool) -> Client:
        begun, errors = time.monotonic(), list[BaseException]()
        if begun < self._away_until and not waits:
            raise _no_server(self.address, "no server answered a moment ago")
        for server in random.sample(self.address.servers, len(self.address.servers)):
            client = _Guarded()
            try:
                async with asyncio.timeout(2 * _CONNECTING):
                    await client.connect(servers=[server], **self._options())
                version = client.connected_server_version
                found = (version.major, version.minor, version.patch)
                self.largest = max(1, min(_LARGEST, client.max_payload - _HEADERS))
            except _NONSENSE as error:
                client.give_up()
                errors.append(error)
                continue
            if found >= OLDEST:
                return client
            await client.close()
            what = f"is NATS {'.'.join(map(str, found))}, which can lose acknowledged records when a server dies"
            raise UsageError(self.address, what[:200], f"install {'.'.join(map(str, OLDEST))} or later")
        took = time.monotonic() - begun
        if took > _CONNECTING / 2:  # what took long to find out holds as long; a refused connection takes no time
            self._away_until = begun + took + min(took, _MOST_AWAY)
        raise self._why(errors)

    def _options(self) -> dict[str, Any]:
        address = self.address
        token, sign = nats_login.creds(address.creds) if address.creds else (b"", None)
        is_encrypted = address.ca or address.certificate or any(url.startswith("tls:") for url in address.servers)
        return {
            "name": "ralf",
            "user": address.user or None,
            "password": address.password or None,
            "user_jwt_cb": (lambda: token) if token else None,
            "signature_cb": sign,
            "tls": nats_login.tls_context(address.ca, address.certificate, address.key) if is_encrypted else None,
            "connect_timeout": _CONNECTING,
            "allow_reconnect": False,  # the client would go to servers that others announce, and tell them our login
            "max_reconnect_attempts": 1,
            "reconnect_time_wait": _PAUSE,
            "ping_interval": _PING,
            "max_outstanding_pings": 2,
            "error_cb": _nobody_hears,
        }

    def _why(self, errors: list[BaseException]) -> RalfError:
        """What to tell of servers none of which could be used."""
        for error in errors:
            if any(word in str(error).lower() for word in ("authorization", "authentication")):
                return UsageError(self.address, "refuses this user or password", _LOGIN)
            if isinstance(error, ssl.SSLError | _Plain):
                reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or error
                return UsageError(self.address, f"cannot be trusted: {reason}", _TLS)
        kind = type(errors[0]).__name__
        return _no_server(self.address, f"no connection ({kind})")

    def close(self) -> None:
        """End the connection and its thread; nothing in a forked process, which has no such thread."""
        if os.getpid() != self._process:
            return
        if self._client is not None:
            closing = asyncio.run_coroutine_threadsafe(self._client.close(), self._loop)
            with suppress(*_NONSENSE):
                closing.result(1)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1)
        if not self._thread.is_alive():
            self._loop.close()


async def _nobody_hears(_: Exception) -> None:
    """The client would log what a server says."""


@cache
def _link_of(process: int, address: Address) -> Link:
    link = Link(address)
    atexit.register(link.close)
    return link


def link_to(address: Address) -> Link:
    """This process's link to an address; a forked process makes its own."""
    return _link_of(os.getpid(), address)
