"""Renaming routes: every record stays, the old name still finds the route, and a kill loses nothing."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.faults.rig import killed_at

import ralf
import storekit
from examples import step
from ralf import project as projects, routing
from ralf.checkpointing.record import RecordBuilder
from ralf.errors import Busy, RouteNotFound, UsageError
from ralf.maintenance import renaming
from ralf.maintenance.renaming import rename_route
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.route import history
from ralf.storage import journal
from ralf.storage.filestore import FileStore
from storekit import Listing, journal_file, route_file, write_session

pytestmark = pytest.mark.ci


def names(root: Path) -> list[str]:
    return [one.route for one in ralf.list_routes(root=root)]


def said(root: Path, route: str) -> list[str]:
    return [item.decision for item in ralf.get_context(route, root=root).decisions]


def ids_of(root: Path, route: str) -> list[str]:
    return [entry.id for entry in projects.find(root).store.read(journal.stream_of(route))]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    write_session(tmp_path / "session.jsonl", 3_000)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path, summarizer=Listing())
    ralf.record_decision("tide", "Use SQLite", rationale="one file", root=tmp_path)
    ralf.record_decision("gates", "Open the gates", root=tmp_path)
    return tmp_path


# ---- rename ----


def test_a_renamed_route_has_every_record_and_its_name_of_before_still_finds_it(made: Path) -> None:
    before, ids = ralf.get_context("tide", root=made), ids_of(made, "tide")
    done = rename_route("tide", "tables", because="it is more than tides", root=made)
    assert (done.old, done.new, done.warnings, done.damage) == ("tide", "tables", (), "")
    assert sorted(names(made)) == ["gates", "tables"]
    after = ralf.get_context("tide", root=made)
    assert after.route == "tables"
    assert (after.decisions, after.history, after.facts) == (before.decisions, before.history, before.facts)
    assert ids_of(made, "tables")[:-1] == ids
    assert not route_file(made, "tide").exists() and not journal_file(made, "tide").exists()
    assert 'route: "tables"' in route_file(made, "tables").read_text()
    assert history.log("tide", root=made)[0].text == "from tide; it is more than tides"
    assert not verify(root=made).findings
    assert ralf.why("tide", "DEC-001", root=made).evidence == "kept"
    assert [hit.route for hit in ralf.search("SQLite", root=made)][:1] == ["tables"]


def test_a_name_that_is_taken_refused_or_the_same_changes_nothing(made: Path) -> None:
    rename_route("gates", "doors", root=made)
    kept = {path: path.read_bytes() for path in (made / ".autonomous" / "context" / "journal").rglob("*.jsonl")}
    for name, words in (
        ("doors", "is a route already"),
        ("DOORS", "is a route already"),
        ("gates", "is an earlier name of doors"),
        ("tide", "is its name already"),
        ("Tide", "nothing but case"),
        ("../x", "refused as a route name"),
    ):
        with pytest.raises(UsageError, match=words):
            rename_route("tide", name, root=made)
    with pytest.raises(RouteNotFound):
        rename_route("none", "some", root=made)
    assert all(path.read_bytes() == content for path, content in kept.items())
    assert [one.new for one in routing.moves_of(projects.find(made))] == ["doors"]


# ---- killed in the middle ----


def move(root: Path) -> renaming.Moved:
    return rename_route("tide", "tables", root=root)


@pytest.mark.release(seconds=12)
@pytest.mark.parametrize("completes", ["repair", "again"])
def test_killed_at_any_change_of_the_disk_nothing_is_lost_and_the_move_can_be_completed(
    made: Path, tmp_path: Path, completes: str
) -> None:
    """What is written to either name after the kill and before the completion is in the route, too."""
    here, new = tmp_path.parent / f"{tmp_path.name}-rename", "tables"
    count, seen, number = len(ids_of(made, "tide")), set(), 0
    while True:
        shutil.rmtree(here, ignore_errors=True)
        storekit.copied(made, here)
        if not killed_at(number, partial(move, here)):
            break
        number += step()
        found = sorted(names(here))
        seen.add(tuple(found))
        assert found in (["gates", "tide"], ["gates", new])
        assert "Use SQLite" in said(here, "tide")
        assert "Open the gates" in said(here, "gates")
        ralf.record_decision("tide", "Written to the old name", root=here)
        ralf.record_decision("gates", "Written to another", root=here)
        assert not [found for found in verify(root=here).findings if found.damage]
        if completes == "repair":
            repair(root=here)
        assert move(here).new == new
        assert sorted(names(here)) == sorted({"gates", new}), number
        told = said(here, new)
        assert {"Use SQLite", "Written to the old name"} <= set(told), number
        assert "Written to another" in said(here, "gates")
        assert len(told) == len(set(told))
        ids = ids_of(here, new)
        assert len(set(ids)) == len(ids) and len(ids) > count
        assert [event.kind for event in history.log(new, root=here)].count("rename") == 1
        repair(root=here)  # what the dead process left
        assert not verify(root=here).findings
        assert not route_file(here, "tide").exists()
    assert len(seen) >= 2, "it was never killed on both sides"
    assert number > 10


def test_what_an_editor_saves_into_the_old_file_while_it_is_renamed_is_in_the_route(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rename = route_file(made, "tide"), FileStore.rename

    def renamed(store: FileStore, stream: str, name: str) -> None:
        path.write_text(path.read_text().replace('decision: "Use SQLite"', 'decision: "Use DuckDB"'))
        rename(store, stream, name)

    monkeypatch.setattr(FileStore, "rename", renamed)
    rename_route("tide", "tables", root=made)
    assert said(made, "tables")[-1] == "Use DuckDB"


# ---- beside others, and against what a repository brings ----


def kept(root: Path) -> dict[str, bytes]:
    """Journals and route files."""
    return {name: content for name, content in storekit.kept_bytes(root).items() if name.endswith(("jsonl", ".md"))}


def test_a_checkpoint_that_is_under_way_when_default_is_renamed_takes_nothing_twice(tmp_path: Path) -> None:
    """It would begin `default` anew with all of the session."""
    write_session(tmp_path / "session.jsonl", 3_000)
    ralf.checkpoint("default", tmp_path / "session.jsonl", root=tmp_path)
    storekit.grow(tmp_path / "session.jsonl", 6_000, 3_000)
    build = RecordBuilder.build_record

    def built(*arguments: Any, **more: Any) -> Any:
        if "default" in names(tmp_path):
            rename_route("default", "first", root=tmp_path)
        return build(*arguments, **more)

    with patch.object(RecordBuilder, "build_record", built), pytest.raises(Busy):
        ralf.checkpoint("default", tmp_path / "session.jsonl", root=tmp_path)
    assert names(tmp_path) == ["first"]
    assert routing.choose(projects.find(tmp_path), session="s-1").route == "first"
    assert len(ralf.checkpoint("first", tmp_path / "session.jsonl", root=tmp_path).checkpoints) == 1
