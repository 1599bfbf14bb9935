"""Renaming and merging routes: every record stays, the old name still finds the route, and a kill loses nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import forks
import ralf
import storekit
from ralf import project as projects, routing
from ralf.errors import Busy, RouteNotFound, UsageError
from ralf.maintenance import renaming
from ralf.maintenance.renaming import merge_routes, rename_route
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.route import history
from ralf.route.write import open_route
from ralf.storage import journal
from ralf.storage.filestore import FileStore
from storekit import journal_file, route_file, write_session


def names(root: Path) -> list[str]:
    return [one.route for one in ralf.list_routes(root=root)]


def said(root: Path, route: str) -> list[str]:
    return [item.decision for item in ralf.get_context(route, root=root).decisions]


def ids_of(root: Path, route: str) -> list[str]:
    return [entry.id for entry in projects.find(root).store.read(journal.stream_of(route))]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    write_session(tmp_path / "session.jsonl", 3_000)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path)
    ralf.record_decision("tide", "Use SQLite", rationale="one file", root=tmp_path)
    ralf.record_decision("gates", "Open the gates", root=tmp_path)
    return tmp_path


# ---- rename ----


def test_a_renamed_route_has_every_record_and_its_name_of_before_still_finds_it(made: Path) -> None:
    before, ids = ralf.get_context("tide", root=made), ids_of(made, "tide")
    done = rename_route("tide", "tables", because="it is more than tides", root=made)
    assert (done.old, done.new, done.records, done.warnings, done.damage) == ("tide", "tables", len(ids), (), "")
    assert sorted(names(made)) == ["gates", "tables"]
    after = ralf.get_context("tide", root=made)
    assert after.route == "tables"
    assert (after.decisions, after.history, after.facts) == (before.decisions, before.history, before.facts)
    assert ids_of(made, "tables")[:-1] == ids
    assert not route_file(made, "tide").exists() and not journal_file(made, "tide").exists()
    assert 'route: "tables"' in route_file(made, "tables").read_text()
    assert history.log("tide", root=made)[0].text == "renamed from tide: it is more than tides"
    assert not verify(root=made).findings
    assert ralf.why("tide", "DEC-001", root=made).evidence == "kept"
    assert [hit.route for hit in ralf.search("SQLite", root=made)][:1] == ["tables"]


def test_what_is_written_under_the_old_name_goes_to_the_route(made: Path) -> None:
    rename_route("tide", "tables", root=made)
    ralf.record_decision("tide", "Use WAL", root=made)
    ralf.api.add_next("TIDE", "Write the parser", root=made)
    assert ralf.checkpoint("tide", made / "session.jsonl", root=made).checkpoints == ()
    assert sorted(names(made)) == ["gates", "tables"]
    assert said(made, "tables")[-1] == "Use WAL"


def test_the_current_route_of_a_session_a_task_or_a_branch_is_the_renamed_one(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = projects.find(made)
    routing.use(project, "tide")
    rename_route("tide", "tables", root=made)
    assert routing.choose(project) == ("tables", "ralf route use")
    monkeypatch.setenv("RALF_TASK_ID", "tide")
    assert routing.choose(project) == ("tables", "$RALF_TASK_ID")
    assert routing.choose(project, "tide") == ("tables", "named")


def test_a_chain_of_names_and_a_name_that_comes_back(made: Path) -> None:
    for old, new in (("tide", "one"), ("one", "two"), ("tide", "three"), ("three", "tide"), ("two", "four")):
        rename_route(old, new, root=made)
    for name in ("tide", "one", "two", "three", "four"):
        assert ralf.get_context(name, root=made).route == "four"
    assert sorted(names(made)) == ["four", "gates"]
    assert not verify(root=made).findings
    assert [event.kind for event in history.log("four", root=made)].count("rename") == 5


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
    assert list((made / ".autonomous" / "context" / "moves").iterdir()) == []


def test_an_edit_that_waits_in_the_file_goes_along(made: Path) -> None:
    path = route_file(made, "tide")
    path.write_text(path.read_text().replace('decision: "Use SQLite"', 'decision: "Use DuckDB"'))
    rename_route("tide", "tables", root=made)
    assert said(made, "tables")[-1] == "Use DuckDB"


def test_default_begins_anew_after_it_was_renamed(made: Path) -> None:
    ralf.record_decision("default", "One", root=made)
    rename_route("default", "first", root=made)
    with pytest.raises(RouteNotFound):
        ralf.get_context("default", root=made)
    ralf.record_decision("default", "Two", root=made)
    assert (said(made, "first"), said(made, "default")) == (["One"], ["Two"])


def test_a_route_that_holds_what_somebody_else_wrote_is_refused(
    made: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Under another name it would get this user's seal."""
    path = route_file(made, "brought")
    path.write_text(
        "---\ncontext_checkpoint: {version: '1.0.0', route: brought}\ndecisions:\n- {id: DEC-001, decision: x}\n---\n"
    )
    with pytest.raises(UsageError, match="did not write"):
        rename_route("brought", "mine", root=made)
    with pytest.raises(UsageError, match="did not write"):
        merge_routes("brought", "tide", root=made)


def test_a_forgotten_route_leaves_no_name(made: Path) -> None:
    rename_route("tide", "secret-project", root=made)
    rename_route("secret-project", "tables", root=made)
    ralf.api.forget_route("tables", root=made)
    assert not [path for path in (made / ".autonomous").rglob("*") if path.name in ("tide", "secret-project")]
    ralf.record_decision("tide", "Anew", root=made)
    assert sorted(names(made)) == ["gates", "tide"]


# ---- merge ----


def test_a_merged_route_follows_the_other_with_labels_of_its_own(made: Path) -> None:
    ralf.record_decision("gates", "Use SQLite", root=made)
    ralf.api.set_goal("gates", "Open the gates in time", origin="user", root=made)
    mine, theirs = ids_of(made, "gates"), ids_of(made, "tide")
    count = len(ralf.get_context("tide", root=made).decisions)
    done = merge_routes("tide", "gates", root=made)
    assert (done.kind, done.old, done.new, done.records) == ("merge", "tide", "gates", len(theirs))
    assert names(made) == ["gates"]
    context = ralf.get_context("tide", root=made)
    assert context.route == "gates"
    assert context.goal == "Open the gates in time"
    assert ids_of(made, "gates")[:-1] == mine + theirs
    labels = [item.id for item in context.decisions]
    assert labels[:2] == ["DEC-001", "DEC-002"] and len(labels) == len(set(labels)) == 2 + count - 1
    assert [entry.checkpoint_id for entry in context.checkpoints] == ["cp-001"]
    assert history.log("gates", root=made)[0].text == "took in tide"
    assert not verify(root=made).findings
    assert ralf.checkpoint("gates", made / "session.jsonl", root=made).checkpoints == ()
    assert ralf.why("gates", "cp-001", root=made).evidence == "kept"


def test_a_route_cannot_be_merged_into_itself_by_any_of_its_names(made: Path) -> None:
    rename_route("tide", "tables", root=made)
    with pytest.raises(UsageError, match="itself"):
        merge_routes("tide", "TABLES", root=made)


def test_a_merge_after_a_rename_and_a_rename_after_a_merge(made: Path) -> None:
    rename_route("tide", "tables", root=made)
    merge_routes("tables", "gates", root=made)
    rename_route("gates", "all", root=made)
    for name in ("tide", "tables", "gates", "all"):
        assert ralf.get_context(name, root=made).route == "all"
    assert not verify(root=made).findings
    ralf.record_decision("tide", "Still here", root=made)
    assert said(made, "all")[-1] == "Still here"


# ---- killed in the middle ----

_CALLS = ("fsync", "replace", "rename", "unlink", "link", "mkdir", "rmdir", "ftruncate")


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Do some work in a process that dies at its nth change of the disk; whether it did."""

    def work_and_die() -> None:
        left = [number]

        def counted(real: Callable[..., object], *arguments: object, **more: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                os._exit(77)
            return real(*arguments, **more)

        for name in _CALLS:
            setattr(os, name, partial(counted, getattr(os, name)))
        work()
        os._exit(0)

    _, status = os.waitpid(forks.fork(work_and_die), 0)
    return os.waitstatus_to_exitcode(status) == 77


@pytest.mark.parametrize("kind", ["rename", "merge"])
def test_killed_at_any_change_of_the_disk_the_routes_are_as_before_or_as_after(
    made: Path, tmp_path: Path, kind: str
) -> None:
    here = tmp_path.parent / f"{tmp_path.name}-{kind}"
    seen = set()
    number = 0
    while True:
        shutil.rmtree(here, ignore_errors=True)
        storekit.copied(made, here)
        work = {
            "rename": lambda: rename_route("tide", "tables", root=here),
            "merge": lambda: merge_routes("tide", "gates", root=here),
        }[kind]
        if not killed_at(number, work):
            break
        number += 1
        new = "tables" if kind == "rename" else "gates"
        found = sorted(names(here))
        assert found in (
            [["gates", "tide"], ["gates", "tables"]] if kind == "rename" else [["gates", "tide"], ["gates"]]
        )
        seen.add(tuple(found))
        assert "Use SQLite" in said(here, "tide")
        assert "Open the gates" in said(here, "gates")
        ralf.record_decision("tide", "Written after the kill", root=here)
        assert not verify(root=here).damaged
        repair(root=here)
        assert sorted(names(here)) == found, number
        assert "Written after the kill" in said(here, "tide")
        assert not verify(root=here).findings
        if "tide" in found:
            assert work().new == new
        assert sorted(names(here)) == sorted({"gates", new})
        assert {"Use SQLite", "Written after the kill"} <= set(said(here, new))
        assert len(set(ids_of(here, new))) == len(ids_of(here, new))
    assert len(seen) == 2, "it was never killed on both sides"
    assert number > 10
    assert renaming.finish(projects.find(here)) == []


def test_records_are_there_once_when_a_rename_is_done_twice(made: Path) -> None:
    rename_route("tide", "tables", root=made)
    with pytest.raises(UsageError, match="its name already"):
        rename_route("tide", "tables", root=made)
    found = ids_of(made, "tables")
    assert len(found) == len(set(found))


def test_what_an_editor_saves_into_the_old_file_while_routes_are_merged_is_set_aside(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, drop = route_file(made, "tide"), FileStore.drop

    def dropped(store: FileStore, stream: str, **more: bool) -> None:
        path.write_text(path.read_text() + "\nsaved at the last moment\n")
        drop(store, stream, **more)

    monkeypatch.setattr(FileStore, "drop", dropped)
    done = merge_routes("tide", "gates", root=made)
    assert [warning.partition(": ")[2] for warning in done.warnings] == ["was saved meanwhile: merge it by hand"]
    (kept,) = path.parent.glob("tide.displaced-*")
    assert "saved at the last moment" in kept.read_text()
    assert names(made) == ["gates"]


def test_what_an_editor_saves_into_the_old_file_while_it_is_renamed_is_in_the_route(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, drop = route_file(made, "tide"), FileStore.drop

    def dropped(store: FileStore, stream: str, **more: bool) -> None:
        path.write_text(path.read_text().replace('decision: "Use SQLite"', 'decision: "Use DuckDB"'))
        drop(store, stream, **more)

    monkeypatch.setattr(FileStore, "drop", dropped)
    rename_route("tide", "tables", root=made)
    assert said(made, "tables")[-1] == "Use DuckDB"


def test_a_writer_that_found_the_old_name_before_the_rename_does_not_begin_it_anew(made: Path) -> None:
    rename_route("tide", "tables", root=made)
    with pytest.raises(Busy, match="renamed to tables"), open_route(projects.find(made), "tide"):
        pass
    assert not journal_file(made, "tide").exists()
