"""`store: files+nats` with real servers: two machines with nothing in common but these and the key."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.machines import KEY
from tests.storekit import MEMORY, Ran, context_of, process

import natskit
import ralf
from ralf.errors import Fenced
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.storage import registry
from ralf_integrations import monitoring
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
    assert done.status == 0, done.err


def typed(root: Path, *words: str) -> Ran:
    """Type a command in a project."""
    return process("--root", root, *words, cwd=root)


@pytest.mark.release(seconds=5)
def test_a_command_on_another_machine_shows_what_was_recorded_here(servers: natskit.Servers, tmp_path: Path) -> None:
    servers.ready()
    here, there = (machine(tmp_path / name, servers, "commands") for name in ("here", "there"))
    decide(here, "We keep the old columns")
    shown = typed(there, "context", "show", "tide")
    assert "We keep the old columns" in shown.out, shown.err
    decide(there, "And the new ones")
    listed = typed(here, "context", "show", "tide")
    assert "And the new ones" in listed.out
    told = typed(here, "status", "--json").json()
    assert told["waiting_records"] == 0


@pytest.mark.release(seconds=6)
def test_without_servers_routes_go_on_and_runs_are_fenced(servers: natskit.Servers, tmp_path: Path) -> None:
    servers.ready()
    here, there = (machine(tmp_path / name, servers, "away") for name in ("here", "there"))
    ralf.record_decision("tide", "We keep the old columns", root=here)
    assert exchange.exchange(Project(here)).waiting == 0  # type: ignore[union-attr]
    servers.signal(0, signal.SIGKILL)
    began = time.monotonic()
    decide(here, "Gauges are read twice")
    assert time.monotonic() - began < 15
    assert typed(here, "status", "--json").json()["waiting_records"] == 1
    store = exchange.store_of(Project(here))
    assert store is not None
    patient = FilesAndNats(store.local, store.engine.within(1))  # type: ignore[attr-defined]
    with pytest.raises(Fenced):
        patient.head("runs/r/main")
    servers.ready()
    found = exchange.exchange(Project(here), insist=True)
    assert found is not None
    assert (found.waiting, found.delivered, found.problem) == (0, 1, "")
    assert "Gauges are read twice" in typed(there, "context", "show", "tide").out


@pytest.mark.release(seconds=5)
def test_a_machine_without_a_disk_makes_the_route_file_of_another_one_anew(
    servers: natskit.Servers, tmp_path: Path
) -> None:
    """Its folder lies in memory and begins empty: `store: nats`."""
    servers.ready()
    here = machine(tmp_path / "here", servers, "diskless", "nats")
    ralf.record_decision("tide", "We keep the old columns", rationale="they are read", root=here)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        there = machine(Path(folder), servers, "diskless", "nats")
        assert "We keep the old columns" in typed(there, "context", "show", "tide").out
        path = Project(there).route_file("tide")
        assert path.read_bytes() == Project(here).route_file("tide").read_bytes()
        path.write_text(path.read_text().replace("they are read", "the harbour reads them"))
        decide(there, "Gauges are read twice")
        assert "the harbour reads them" in ralf.get_context("tide", root=here).render()
    assert "Gauges are read twice" in typed(here, "context", "show", "tide").out
    assert "Gauges are read twice" in Project(here).route_file("tide").read_text()


@pytest.mark.ci
def test_servers_whose_disks_are_lost_are_filled_again(tmp_path: Path) -> None:
    found = natskit.Servers(1, tmp_path / "servers")
    found.ready()
    try:
        here, there = (machine(tmp_path / name, found, "lost") for name in ("here", "there"))
        for number in range(3):
            ralf.record_decision("tide", f"Column {number} is kept", root=here)
        for root in (here, there):
            exchange.exchange(Project(root))
        found.signal(0, signal.SIGKILL)
        shutil.rmtree(found.folder / "n0" / "jetstream")
        found.ready()
        ralf.record_decision("tide", "Gauges are read twice", root=there)
        filled = exchange.exchange(Project(there), insist=True)
        assert filled is not None
        assert (filled.delivered, filled.waiting, filled.problem) == (4, 0, "")
        assert "Gauges are read twice" in typed(here, "context", "show", "tide").out
    finally:
        found.stop()


@pytest.mark.ci
def test_doctor_tells_what_waits_for_servers_that_are_away(servers: natskit.Servers, tmp_path: Path) -> None:
    servers.ready()
    here = machine(tmp_path / "here", servers, "doctor")
    ralf.record_decision("tide", "We keep the old columns", root=here)
    exchange.exchange(Project(here))
    assert [check.state for check in monitoring.checks(Project(here))][:2] == ["ok", "ok"]
    servers.signal(0, signal.SIGKILL)
    ralf.record_decision("tide", "Gauges are read twice", root=here)
    exchange.exchange(Project(here))
    assert [check.state for check in monitoring.checks(Project(here))][:2] == ["warning", "warning"]
