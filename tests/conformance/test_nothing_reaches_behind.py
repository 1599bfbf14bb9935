"""Nothing reaches behind the port: a project runs on a store without files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from memory_store import MemoryStore

import natskit
import ralf
from ralf import project as projects
from ralf.checkpointing import progress
from ralf.maintenance.forget import forget, forget_route
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.project import Project
from ralf.route import corrections, history
from ralf.storage.journal import Store
from storekit import context_of, grow, route_file, write_session

pytestmark = pytest.mark.ci

KEPT = ("journal", "blobs")
"""Folders of the embedded store, which only `ralf.storage` opens."""


# ---- a project without a file of the store ----


@pytest.fixture(params=[MemoryStore, *natskit.SERVERS.values()])
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose store keeps nothing in files."""
    natskit.ready(request.param)
    monkeypatch.setattr(projects, "open_store", request.param)
    return tmp_path


def used(root: Path) -> str:
    """Use a project for all that any store can do; the label of a decision in it."""
    session = root / "s-1.jsonl"
    following = write_session(session, 3_000)
    assert ralf.checkpoint("tide", session, root=root).checkpoints
    grow(session, 3_000, following)
    assert ralf.checkpoint("tide", session, root=root).checkpoints
    label = ralf.record_decision("tide", "We keep the old columns of the table", root=root).id
    ralf.record_decision("other", "The gauge importer stays in Python", root=root)
    file = route_file(root, "tide")
    file.write_text(file.read_text().replace("old columns", "oldest columns"))
    context = ralf.get_context("tide", root=root)
    assert "oldest columns" in context.render()
    assert {one.route for one in ralf.list_routes(root=root)} == {"tide", "other"}
    assert ralf.search("tests/test_part_4.py", root=root)[0].kind == "evidence"
    assert ralf.why("tide", "DEC-001", root=root).evidence
    assert corrections.drop("tide", label, because="not needed", root=root).decision.id == label
    assert history.log("tide", root=root)[0].revision > context.revision
    file.unlink()
    assert "batch size" in ralf.get_context("tide", root=root).render()
    assert progress.status(Project(root)).routes == 2
    assert not verify(root=root).damaged
    assert not repair(root=root).after.damaged
    return label


def test_a_project_runs_on_a_store_without_files(project: Path) -> None:
    used(project)
    assert not any(os.path.lexists(context_of(project) / name) for name in KEPT)


@pytest.mark.parametrize("open_store", [MemoryStore, *natskit.SERVERS.values()])
def test_a_store_that_is_not_on_the_disk_forgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_store: Callable[..., Store]
) -> None:
    natskit.ready(open_store)
    monkeypatch.setattr(projects, "open_store", open_store)
    label, store = used(tmp_path), open_store(context_of(tmp_path))
    for done in (forget("tide", label, root=tmp_path), forget("tide", text="We use batch size", root=tmp_path)):
        assert done.touched
        assert done.left == ()
    records = [entry.record for stream in store.streams("") for entry in store.read(stream)]
    gone = (b"columns of the table", b"We use batch")
    assert not any(words in record for record in records for words in gone)
    assert not any(b"We use batch" in store.open_blob(blob.digest).read() for blob in store.blobs())
    assert not verify(root=tmp_path).damaged
    for route in ("tide", "other"):
        assert forget_route(route, root=tmp_path).left == ()
    assert list(store.streams("")) == list(store.blobs()) == []
