"""What a person, an agent and a client are told where servers are hostile, silent, absent or know another key: one
error in time, none of the servers' words, and the words that could not be recorded.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hookkit
import hostile_server
import natskit
import storekit
from kit import command
from loopkit import Plan, until
from test_nats_store import chosen

pytestmark = pytest.mark.skipif(bool(natskit.absent()), reason=natskit.absent() or "-")

LIMIT = 20.0
"""Seconds within which a command says that it could not record anything."""

SAID = "We keep the old columns"


@pytest.fixture(scope="module")
def servers() -> Iterator[natskit.Servers]:
    found = natskit.Servers(1)
    found.ready()
    yield found
    found.stop()


def pointed(root: Path, port: int) -> None:
    """A project whose journal is to lie with a server on this port."""
    chosen(root, natskit.Servers(1), "tide", nats_servers=f'["nats://127.0.0.1:{port}"]')


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def decided(root: Path) -> command.Ran:
    """What `ralf decide` came to; it ended in time."""
    begun = time.monotonic()
    ran = command.run("decide", "api", SAID, "--because", "one reader", cwd=root, env=storekit.environment(root.parent))
    assert time.monotonic() - begun < LIMIT
    return ran


@pytest.mark.ci(seconds=20)
@pytest.mark.parametrize("kind", hostile_server.KINDS)
def test_a_hostile_server_comes_to_one_error_in_time_without_a_word_of_its_own(tmp_path: Path, kind: str) -> None:
    heard: list[bytes] = []
    with hostile_server.serving(kind, heard) as port:
        pointed(tmp_path, port)
        ran = decided(tmp_path)
    servers = f"nats://127.0.0.1:{port}"
    status, where = {"words": (1, servers), "five megabytes": (2, "RALF-tide")}.get(kind, (5, servers))
    ran.complains(status, where)
    assert not [word for word in hostile_server.WORDS if word in ran.out + ran.err]
    assert len(ran.err) < 1_000
    assert not any(b"CONNECT" in told for told in heard)


@pytest.mark.ci(seconds=20)
@pytest.mark.parametrize("kind", ["absent", "silence", "words for now"])
def test_a_hook_says_nothing_of_servers_that_are_away_and_is_due_again_when_they_answer(
    servers: natskit.Servers, tmp_path: Path, kind: str
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    rig = hookkit.rig(root)
    name = f"hook-{kind.partition(' ')[0]}"
    if kind == "absent":
        chosen(root, natskit.Servers(1), name, nats_servers=f'["nats://127.0.0.1:{closed_port()}"]')
        _says_nothing(rig)
    else:
        with hostile_server.serving(kind, []) as port:
            chosen(root, natskit.Servers(1), name, nats_servers=f'["nats://127.0.0.1:{port}"]')
            _says_nothing(rig)
    chosen(root, servers, name)
    until(lambda: rig.hook("Stop") is not None and list(rig.project.store.streams("routes/")))


def _says_nothing(rig: hookkit.Rig) -> None:
    rig.grow(60_000)
    begun = time.monotonic()
    said = rig.hook("Stop")
    assert time.monotonic() - begun < LIMIT
    assert said.out == ""


# ---- loops ----


@pytest.fixture
def plan(servers: natskit.Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plan]:
    """A project with its journal on a server, whose loops run as processes."""
    made = Plan(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    chosen(made.root, servers, f"loop-{os.getpid()}-{time.time_ns()}")
    yield made
    made.close()


@pytest.mark.ci(seconds=10)
def test_who_comes_back_within_the_lease_of_a_dead_holder_is_told_until_when_it_lasts(plan: Plan) -> None:
    task = plan.add("work=60")
    loop = plan.start("--workers", "1")
    started = until(lambda: plan.lines("start"))[0]
    loop.send_signal(signal.SIGKILL)
    os.kill(started["pid"], signal.SIGKILL)
    loop.wait()
    for words, status in ((("task", "claim", task), 5), (("task", "claim"), 3)):
        asked: subprocess.CompletedProcess[str] = plan.command(*words)
        assert asked.returncode == status, asked.stderr
        assert "Traceback" not in asked.stderr
        ends = asked.stderr.partition(", until ")[2][:20]
        left = time.mktime(time.strptime(ends, "%Y-%m-%dT%H:%M:%SZ")) - time.mktime(time.gmtime())
        assert -1 <= left <= 16
