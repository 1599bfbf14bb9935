"""Renaming and merging routes: every record stays, the old name still finds the route, and a kill loses nothing."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import forks
import ralf
import storekit
from examples import step
from ralf import project as projects, routing
from ralf.checkpointing.record import RecordBuilder
from ralf.errors import Busy, Damaged, RouteNotFound, UsageError
from ralf.maintenance import renaming, trust
from ralf.maintenance.renaming import merge_routes, rename_route
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.route import history
from ralf.route.write import open_route
from ralf.routing import Move
from ralf.storage import files, journal
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Record
from storekit import Listing, journal_file, route_file, write_session
from test_sharing import pair

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
    assert [one.arrived for one in routing.moves_of(projects.find(made))] == [True]


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
    ralf.record_decision("gates", "Use SQLite", rationale="one file", root=made)
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


def test_a_decision_of_both_keeps_the_reason_and_the_options_that_each_gave(made: Path) -> None:
    ralf.record_decision("gates", "use  SQLite", rationale="the audit in March", root=made)
    ralf.record_decision("tide", "Use ropes", alternatives=["chains: loud"], root=made)
    ralf.record_decision("gates", "Use ropes", root=made)
    merge_routes("tide", "gates", root=made)
    told = {
        (item.decision.casefold(), item.rationale, item.alternatives)
        for item in ralf.get_context("gates", root=made).decisions
    }
    assert {("use sqlite", "one file", ()), ("use ropes", "", ("chains: loud",)), ("use ropes", "", ())} <= told
    assert "the audit in March" in {item.rationale for item in ralf.get_context("gates", root=made).decisions}


def test_what_one_route_dropped_stays_in_the_other_that_decided_it(made: Path) -> None:
    label = ralf.record_decision("tide", "Use ropes", root=made).id
    ralf.api.drop("tide", label, because="too weak", root=made)
    ralf.record_decision("gates", "Use ropes", rationale="the new ones hold", root=made)
    ralf.record_decision("tide", "Use nails", root=made)
    ralf.record_decision(
        "tide", "Use screws", supersedes=ralf.get_context("tide", root=made).decisions[-1].id, root=made
    )
    ralf.record_decision("gates", "Use nails", root=made)
    merge_routes("tide", "gates", root=made)
    found = [(item.decision, item.status) for item in ralf.get_context("gates", root=made).decisions]
    assert ("Use ropes", "active") in found
    assert ("Use nails", "active") in found
    assert ("Use nails", "superseded") in found


def test_a_segment_that_both_have_taken_is_there_once(made: Path) -> None:
    ralf.checkpoint("gates", made / "session.jsonl", root=made)
    tokens = ralf.get_context("gates", root=made).context_checkpoint.total_tokens_consumed
    merge_routes("tide", "gates", root=made)
    context = ralf.get_context("gates", root=made)
    assert len(context.checkpoint_history) == 1
    assert context.context_checkpoint.total_tokens_consumed == tokens
    assert not verify(root=made).findings


def test_a_label_of_before_a_merge_means_what_it_meant(made: Path) -> None:
    label = ralf.record_decision("tide", "Use ropes", root=made).id
    merge_routes("tide", "gates", root=made)
    project = projects.find(made)
    now = routing.label_now(project, "tide", label)
    assert (
        next(item.decision for item in ralf.get_context("gates", root=made).decisions if item.id == now) == "Use ropes"
    )
    rename_route("gates", "doors", root=made)
    assert routing.label_now(project, "tide", label) == now
    assert routing.label_now(project, "gates", "DEC-001") == "DEC-001"
    with pytest.raises(UsageError, match="revisions of its own"):
        routing.label_now(project, "tide", "r3")


def test_a_route_cannot_be_merged_into_itself_by_any_of_its_names(made: Path) -> None:
    rename_route("tide", "tables", root=made)
    with pytest.raises(UsageError, match="itself"):
        merge_routes("tide", "TABLES", root=made)


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


def move(kind: str, root: Path) -> renaming.Moved:
    return rename_route("tide", "tables", root=root) if kind == "rename" else merge_routes("tide", "gates", root=root)


@pytest.mark.release(seconds=12)
@pytest.mark.parametrize("kind", ["rename", "merge"])
@pytest.mark.parametrize("completes", ["repair", "again"])
def test_killed_at_any_change_of_the_disk_nothing_is_lost_and_the_move_can_be_completed(
    made: Path, tmp_path: Path, kind: str, completes: str
) -> None:
    """What is written to either name after the kill and before the completion is in the route, too."""
    here, new = tmp_path.parent / f"{tmp_path.name}-{kind}", "tables" if kind == "rename" else "gates"
    count, seen, number = len(ids_of(made, "tide")), set(), 0
    while True:
        shutil.rmtree(here, ignore_errors=True)
        storekit.copied(made, here)
        if not killed_at(number, partial(move, kind, here)):
            break
        number += step()
        found = sorted(names(here))
        seen.add(tuple(found))
        assert {"gates"} <= set(found) <= {"gates", "tide", new}
        assert "Use SQLite" in said(here, "tide")
        assert "Open the gates" in said(here, "gates")
        ralf.record_decision("tide", "Written to the old name", root=here)
        ralf.record_decision("gates", "Written to another", root=here)
        if "tables" in found:
            ralf.record_decision("tables", "Written to the new name", root=here)
        assert not [found for found in verify(root=here).findings if found.damage]
        if completes == "repair":
            repair(root=here)
        if "tide" in names(here) or renaming.pending_moves(projects.find(here)):
            assert move(kind, here).new == new
        assert sorted(names(here)) == sorted({"gates", new}), number
        told = said(here, new)
        assert {"Use SQLite", "Written to the old name"} <= set(told), number
        assert ("Written to the new name" in told) == ("tables" in found)
        assert "Written to another" in said(here, "gates")
        assert len(told) == len(set(told))
        ids = ids_of(here, new)
        assert len(set(ids)) == len(ids) and len(ids) > count
        assert [event.kind for event in history.log(new, root=here)].count(kind) == 1
        repair(root=here)  # what the dead process left
        assert not verify(root=here).findings
    assert len(seen) >= 2, "it was never killed on both sides"
    assert number > 10
    assert renaming.complete_moves(projects.find(here)) == []


def test_what_an_editor_saves_into_the_old_file_while_routes_are_merged_is_set_aside(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write_anew = route_file(made, "tide"), FileStore.write_anew

    def written(store: FileStore, stream: str, *arguments: Any, **more: Any) -> None:
        path.write_text(path.read_text() + "\nsaved at the last moment\n")
        write_anew(store, stream, *arguments, **more)

    monkeypatch.setattr(FileStore, "write_anew", written)
    done = merge_routes("tide", "gates", root=made)
    assert len(done.warnings) == 1
    (kept,) = path.parent.glob("tide.displaced-*")
    assert "saved at the last moment" in kept.read_text()
    assert names(made) == ["gates"]


def test_what_an_editor_saves_into_the_old_file_while_it_is_renamed_is_in_the_route(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write_anew = route_file(made, "tide"), FileStore.write_anew

    def written(store: FileStore, stream: str, *arguments: Any, **more: Any) -> None:
        path.write_text(path.read_text().replace('decision: "Use SQLite"', 'decision: "Use DuckDB"'))
        write_anew(store, stream, *arguments, **more)

    monkeypatch.setattr(FileStore, "write_anew", written)
    rename_route("tide", "tables", root=made)
    assert said(made, "tables")[-1] == "Use DuckDB"


def test_a_writer_that_found_the_old_name_before_the_rename_does_not_begin_it_anew(made: Path) -> None:
    rename_route("tide", "tables", root=made)
    with pytest.raises(Busy), open_route(projects.find(made), "tide"):
        pass
    assert not journal_file(made, "tide").exists()


# ---- beside others, and against what a repository brings ----

_WRITER = """
import sys
import ralf
from ralf.errors import Busy
root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for number in range(count):
    words = f"{name} decided number {number} by {sys.argv[4]}"
    while True:
        try:
            ralf.record_decision(name, words, root=root)
        except Busy:
            continue
        print(words, flush=True)
        break
"""

_MOVER = """
import sys
from ralf.errors import Busy, RalfError
from ralf.maintenance.renaming import merge_routes, rename_route
root, kind = sys.argv[1:]
while True:
    try:
        rename_route("tide", "tables", root=root) if kind == "rename" else merge_routes("tide", "gates", root=root)
        break
    except Busy:
        continue
"""


@pytest.mark.release(seconds=15)
@pytest.mark.parametrize("kind", ["rename", "merge"])
def test_what_others_write_while_a_route_moves_and_its_process_is_killed_is_there_once(
    tmp_path: Path, kind: str
) -> None:
    """Writers of the old and of the new name do not know of it; what was acknowledged to them is in the route."""
    dice, new, killed = random.Random(7), "tables" if kind == "rename" else "gates", 0  # noqa: S311  # which moment
    for number in range(12):
        root = tmp_path / str(number)
        root.mkdir()
        ralf.record_decision("tide", "The first", root=root)
        ralf.record_decision("gates", "Open the gates", root=root)
        told = [("tide", "a"), ("tide", "b"), ("gates", "c")]
        writers = [storekit.start(_WRITER, root, name, 6, who, cwd=root) for name, who in told]
        time.sleep(dice.uniform(0.3, 1.2))  # where in the work of the others it comes is left to chance
        mover = storekit.start(_MOVER, root, kind, cwd=root)
        with suppress(subprocess.TimeoutExpired):
            mover.wait(dice.uniform(0.2, 0.9))
        killed += mover.poll() is None
        mover.kill()
        mover.communicate()
        acknowledged = [line for text in storekit.finished(writers) for line in text.splitlines()]
        assert len(acknowledged) == 18
        renaming.complete_moves(projects.find(root))
        found = [item.decision for name in names(root) for item in ralf.get_context(name, root=root).decisions]
        assert sorted(found) == sorted([*acknowledged, "The first", "Open the gates"])
        assert not verify(root=root).damaged
        if len(names(root)) == 2 and "tide" in names(root):
            move(kind, root)
        assert sorted(names(root)) == sorted({new, "gates"})
    assert killed, "it was never killed in the middle"


def test_records_that_no_seal_of_this_user_covers_move_no_route(made: Path) -> None:
    """As a repository may bring them: they hide, redirect and delete nothing."""
    whole = kept(made)
    for name, new in (("tide", "gates"), ("gates", "tide"), ("other", "tide")):
        payload = Move("rename", name, new, "rename-1", "", "2026-01-01T00:00:00Z", "user")._asdict()
        for number, arrived in enumerate((False, True)):
            record = Record(1, "move", {**payload, "labels": {}, "arrived": arrived})
            stream = f"moved/{name}"
            store = projects.find(made).store.inner
            store.append(stream, journal.line_of(journal.sealed(record)), id=str(number), after=store.head(stream))
    assert sorted(names(made)) == ["gates", "tide"]
    assert routing.moves_of(projects.find(made)) == []
    assert renaming.complete_moves(projects.find(made)) == []
    with pytest.raises(RouteNotFound):
        ralf.get_context("other", root=made)
    ralf.record_decision("other", "Its own", root=made)
    ralf.api.forget_route("other", root=made)
    assert {path: content for path, content in kept(made).items() if "moved" not in path} == whole
    assert rename_route("tide", "tables", root=made).new == "tables"
    assert ralf.get_context("tide", root=made).route == "tables"


def begin(root: Path, kind: str, old: str, new: str) -> None:
    """Leave the first record of a move, as a process that was killed behind it."""
    project = projects.find(root)
    first = renaming._first(project, old)
    renaming._tell(project, Move(kind, old, new, f"{kind}-1", first, "2026-01-01T00:00:00Z", "user"))


def kept(root: Path) -> dict[str, bytes]:
    """Journals and route files."""
    return {name: content for name, content in storekit.kept_bytes(root).items() if name.endswith(("jsonl", ".md"))}


def test_a_move_of_another_name_that_is_copied_to_a_name_moves_nothing(made: Path) -> None:
    """A seal covers the name of its stream."""
    rename_route("gates", "doors", root=made)
    folder = made / ".autonomous" / "context" / "journal" / "moved"
    shutil.copy(folder / "gates.jsonl", folder / "tide.jsonl")
    assert ralf.get_context("tide", root=made).route == "tide"
    assert sorted(names(made)) == ["doors", "tide"]


def test_the_sessions_of_default_go_on_in_the_route_that_it_was_renamed_to(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 3_000)
    ralf.checkpoint("default", tmp_path / "session.jsonl", root=tmp_path)
    rename_route("default", "tides", root=tmp_path)
    project = projects.find(tmp_path)
    assert routing.choose(project, session="s-1").route == "tides"
    assert routing.choose(project, session="s-2").route == "default"


def test_a_route_that_is_being_moved_is_not_forgotten_by_half(made: Path) -> None:
    begin(made, "rename", "tide", "tables")
    with pytest.raises(Busy):
        ralf.api.forget_route("tide", root=made)
    repair(root=made)
    ralf.api.forget_route("tide", root=made)
    assert names(made) == ["gates"]


def test_an_edit_that_was_saved_after_a_kill_is_in_the_route_that_it_was_completed_to(made: Path) -> None:
    begin(made, "merge", "tide", "gates")
    path = route_file(made, "tide")
    path.write_text(path.read_text().replace('decision: "Use SQLite"', 'decision: "Use DuckDB"'))
    repair(root=made)
    assert names(made) == ["gates"]
    assert "Use DuckDB" in said(made, "gates")
    assert not list(path.parent.glob("*.displaced-*"))


def test_a_move_that_was_given_up_or_failed_is_not_done_later(made: Path) -> None:
    """The model works on the route: the caller is told that nothing was done."""
    project = projects.find(made)
    with (
        files.locked(project.worker_lock("tide"), "the model's work"),
        patch.object(files.locked.__wrapped__, "__defaults__", (0.1,)),
        pytest.raises(Busy),
    ):
        rename_route("tide", "tables", root=made)
    assert routing.moves_of(project) == []
    rename_route("gates", "doors", root=made)
    assert sorted(names(made)) == ["doors", "tide"]


def test_a_record_of_a_move_that_comes_back_moves_no_other_route_of_that_name(made: Path) -> None:
    """Out of a backup, or since the newest line was damaged."""
    begin(made, "merge", "tide", "gates")
    path = made / ".autonomous" / "context" / "journal" / "moved" / "tide.jsonl"
    before = path.read_bytes()
    repair(root=made)
    ralf.api.forget_route("gates", root=made)
    for name in ("tide", "gates"):
        ralf.record_decision(name, f"Of a new {name}", root=made)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(before)
    repair(root=made)
    assert sorted(names(made)) == ["gates", "tide"]
    assert (said(made, "tide"), said(made, "gates")) == (["Of a new tide"], ["Of a new gates"])
    assert rename_route("tide", "tables", root=made).new == "tables"


def test_a_name_of_before_that_cannot_be_read_begins_no_route(made: Path) -> None:
    rename_route("tide", "tables", root=made)
    path = made / ".autonomous" / "context" / "journal" / "moved" / "tide.jsonl"
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)
    with pytest.raises(Damaged):
        ralf.record_decision("tide", "Lost", root=made)
    repair(root=made)
    assert ralf.get_context("tide", root=made).route == "tables"


def test_a_file_that_comes_back_under_the_old_name_is_merged_into_the_route(made: Path) -> None:
    path = route_file(made, "tide")
    before = path.read_text()
    rename_route("tide", "tables", root=made)
    ralf.record_decision("tables", "Since", root=made)
    path.write_text(before.replace('decision: "Use SQLite"', 'decision: "Use DuckDB"'))
    assert sorted(names(made)) == ["gates", "tables"]
    (finding,) = verify(root=made).findings
    assert finding.what.endswith("ralf route merge tide tables")
    merge_routes("tide", "tables", root=made)
    assert not path.exists()
    assert "Since" in said(made, "tables")
    assert "Use DuckDB" in route_file(made, "tables").read_text()
    repair(root=made)
    assert sorted(names(made)) == ["gates", "tables"]


def test_a_route_that_another_began_under_the_new_name_is_not_merged_unasked(made: Path) -> None:
    project = projects.find(made)
    begin(made, "rename", "tide", "tables")
    with open_route(project, "tables") as writer:  # as a process that was killed left it, and somebody wrote since
        writer.absorb_edits()
        writer.append("decision", {"decision": {"decision": "Another route", "origin": "user"}}, id="other")
        writer.render_file()
    assert len(list(renaming.complete_moves(project))) == 1
    assert sorted(names(made)) == ["gates", "tables", "tide"]
    assert said(made, "tables") == ["Another route"]
    assert not verify(root=made).findings


# ---- shared by git ----


@pytest.mark.parametrize("driver", [False, True], ids=["by git alone", "by the driver"])
def test_a_clone_takes_over_the_name_that_another_has_given_and_loses_nothing(tmp_path: Path, *, driver: bool) -> None:
    """Both have written to the route meanwhile, and git merges the renamed file."""
    one, other = pair(tmp_path, driver=driver)
    one.decide("Use SQLite for the store")
    other.decide("Read other")
    with one.works() as root:
        rename_route("api", "tables", root=root)
    one.commit()
    other.decide("Written meanwhile")
    other.fetch(one)
    other.git("merge", "--no-edit", "FETCH_HEAD")
    with other.works() as root:
        assert renaming.renamed_elsewhere(projects.find(root), "tables") == "api"
        assert said(root, "api") == ["Use metres", "Read other", "Written meanwhile"]
        rename_route("api", "tables", root=root)
        assert said(root, "api") == ["Use metres", "Read other", "Written meanwhile"]
        trust.accept_route(projects.find(root), "tables")
        ralf.record_decision("tables", "Under the new name", root=root)
    other.commit()
    one.fetch(other)
    one.git("merge", "--no-edit", "FETCH_HEAD")
    with one.works() as root:
        trust.accept_route(projects.find(root), "tables")
    whole = {"Use metres", "Use SQLite for the store", "Read other", "Written meanwhile", "Under the new name"}
    for clone in (one, other):
        with clone.works() as root:
            assert names(root) == ["tables"]
            assert sorted(said(root, "api")) == sorted(whole)
            assert not verify(root=root).damaged


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
