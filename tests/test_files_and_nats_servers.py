"""`store: files+nats` with real servers: two machines with nothing in common but these and the key."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.machines import KEY
from tests.storekit import context_of

import natskit
import ralf
from ralf.errors import Fenced
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.storage import registry
from ralf_integrations.stores import exchange
from ralf_integrations.stores.files_and_nats import FilesAndNats

pytestmark = pytest.mark.skipif(bool(natskit.absent()), reason=natskit.absent() or "-")


@pytest.fixture(scope="module")
def servers() -> Iterator[natskit.Servers]:
    """One server, which a test may stop and start again."""
    found = natskit.Servers(1)
    found.ready()
    yield found
    found.stop()


def machine(root: Path, servers: natskit.Servers, name: str, store: str = "files+nats") -> Path:
    """A project of a user who has followed `docs/engines.md`."""
    root.mkdir(parents=True, exist_ok=True)
    ownership.init(Project(root), share=False)
    registry.update(root, seal_key=KEY)
    path = context_of(root) / "config.local.yaml"
    path.write_text(
        f'project: "{os.path.realpath(root)}"\nstore: {store}\nnats_servers: ["{servers.urls()[0]}"]\n'
        f"nats_project: {name}\nnats_replicas: 1\n"
    )
    path.chmod(0o600)
    return root


def decide(root: Path, text: str) -> None:
    """Type a decision."""
    done = typed(root, "context", "decide", "tide", text, "--because", "it was measured")
    assert done.returncode == 0, done.stderr


def typed(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Type a command in a project."""
    command = [sys.executable, "-m", "ralf_cli", "--root", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_command_on_another_machine_shows_what_was_recorded_here(servers: natskit.Servers, tmp_path: Path) -> None:
    servers.ready()
    here, there = (machine(tmp_path / name, servers, "commands") for name in ("here", "there"))
    decide(here, "We keep the old columns")
    shown = typed(there, "context", "show", "tide")
    assert "We keep the old columns" in shown.stdout, shown.stderr
    decide(there, "And the new ones")
    listed = typed(here, "context", "show", "tide")
    assert "And the new ones" in listed.stdout
    told = json.loads(typed(here, "status", "--json").stdout)
    assert told["waiting_records"] == 0


def test_without_servers_routes_go_on_and_runs_are_fenced(servers: natskit.Servers, tmp_path: Path) -> None:
    servers.ready()
    here, there = (machine(tmp_path / name, servers, "away") for name in ("here", "there"))
    ralf.record_decision("tide", "We keep the old columns", root=here)
    assert exchange.exchange(Project(here)).waiting == 0  # type: ignore[union-attr]
    servers.signal(0, signal.SIGKILL)
    began = time.monotonic()
    decide(here, "Gauges are read twice")
    assert time.monotonic() - began < 15
    assert "1 record waits" in typed(here, "status").stdout
    store = exchange.store_of(Project(here))
    assert store is not None
    patient = FilesAndNats(store.local, store.engine.within(1))  # type: ignore[attr-defined]
    with pytest.raises(Fenced):
        patient.head("runs/r/main")
    servers.ready()
    found = exchange.exchange(Project(here), insist=True)
    assert found is not None
    assert (found.waiting, found.delivered, found.problem) == (0, 1, "")
    assert "Gauges are read twice" in typed(there, "context", "show", "tide").stdout
