"""Labels under the name of a route that was merged into another: they mean the items that had them there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import moveskit
import ralf
from ralf import project as projects
from ralf.errors import Busy, NotFound, UsageError
from ralf.format import merge
from ralf.format.codec import to_tree
from ralf.maintenance.forget import forget
from ralf.memory import provenance as memory
from ralf.route import corrections, history, undoing
from ralf.route.write import open_route
from ralf_cli import completion
from storekit import process, write_session

pytestmark = pytest.mark.ci

DECISIONS = ("Open the gates at noon", "Close the gates at night", "Use SQLite for the tide tables")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A route `doors`, earlier `gates`, into which `tide` was merged: its DEC-001 and cp-001 have other labels there,
    its DEC-002 was left out.
    """
    for decision in DECISIONS:
        ralf.record_decision("doors", decision, root=tmp_path)
    for name, tokens in (("one", 1_000), ("two", 3_000)):
        write_session(tmp_path / f"{name}.jsonl", tokens, name)
        ralf.checkpoint("doors", tmp_path / f"{name}.jsonl", root=tmp_path)
    assert [entry.checkpoint_id for entry in ralf.get_context("doors", root=tmp_path).checkpoints] == [
        "cp-001",
        "cp-002",
    ]
    moveskit.told(tmp_path, "tide", "gates", labels={"DEC-001": "DEC-003", "DEC-002": "", "cp-001": "cp-002"})
    moveskit.told(tmp_path, "gates", "doors")
    return tmp_path


def decision(root: Path, label: str) -> str:
    found = history.decision_of(projects.find(root), "doors", label)
    return found.status if found is not None else ""


def test_why_shows_what_had_the_label_there(made: Path) -> None:
    assert ralf.why("tide", "dec-1", root=made).claim == DECISIONS[2]
    assert ralf.why("gates", "DEC-001", root=made).claim == DECISIONS[0]
    assert ralf.why("doors", "DEC-001", root=made).claim == DECISIONS[0]
    assert ralf.why("tide", "cp-1", root=made).id == "cp-002"
    assert ralf.why("tide", "DEC-003", root=made).id == "DEC-003"


def test_a_moment_is_the_checkpoint_that_had_the_label(made: Path) -> None:
    assert history.context_at("tide", "cp-001", root=made) == history.context_at("doors", "cp-002", root=made)
    found = history.diff("tide", "cp-001", "now", root=made)
    assert (found.route, found.before, found.after) == ("doors", "cp-002", "now")
    unnamed = history.diff("tide", root=made)
    assert (unnamed.before, unnamed.after) == ("cp-001", "now")


def test_a_drop_takes_the_decision_that_had_the_label(made: Path) -> None:
    dropped = corrections.drop("tide", "DEC-001", root=made)
    assert (dropped.route, dropped.decision.id) == ("doors", "DEC-003")
    assert (decision(made, "DEC-001"), decision(made, "DEC-003")) == ("active", "dropped")


@pytest.mark.ci
def test_a_revert_goes_back_to_the_checkpoint_that_had_the_label(made: Path) -> None:
    done = corrections.revert("tide", "cp-001", dry_run=True, root=made)
    assert (done.to, done.difference.after) == ("cp-002", "cp-002")


def test_a_decision_supersedes_the_one_that_had_the_label(made: Path) -> None:
    new = ralf.record_decision("tide", "Use DuckDB", supersedes="DEC-001", root=made)
    assert new.supersedes == "DEC-003"
    assert (decision(made, "DEC-001"), decision(made, "DEC-003")) == ("active", "superseded")


@pytest.mark.ci
def test_a_field_is_resolved_of_the_decision_that_had_the_label(made: Path) -> None:
    with open_route(projects.find(made), "doors") as writer:
        writer.absorb_edits()
        before = to_tree(writer.context)
        entry = {"at": ["decisions", "DEC-003", "rationale"], "also": ["one file"]}
        changes = merge.diff(before, {**before, "unresolved": [entry]})
        writer.append("edit", {"timestamp": "2026-01-01T00:00:00Z", "changes": changes}, id="two-sides")
        writer.render_file()
    assert not corrections.resolve("doors", ("decisions", "DEC-001", "rationale"), root=made)
    assert corrections.resolve("tide", ("decisions", "DEC-001", "rationale"), take=0, root=made)
    assert ralf.why("doors", "DEC-003", root=made).rationale == "one file"


@pytest.mark.ci
def test_a_forget_takes_the_words_of_the_item_that_had_the_label(made: Path) -> None:
    assert forget("tide", "DEC-001", dry_run=True, root=made).ids == ("DEC-003",)
    done = forget("tide", "DEC-001", root=made)
    assert (done.route, done.ids, done.left) == ("doors", ("DEC-003",), ())
    said = [item.decision for item in ralf.get_context("doors", root=made).decisions]
    assert DECISIONS[0] in said and DECISIONS[2] not in said


@pytest.mark.parametrize(
    "work",
    [
        lambda root: history.context_at("tide", "r2", root=root),
        lambda root: history.diff("tide", "r1", "r2", root=root),
        lambda root: corrections.revert("tide", "r2", root=root),
        lambda root: corrections.take_in("tide", since=2, root=root),
        lambda root: undoing.undo("tide", 2, root=root),
    ],
    ids=["context_at", "diff", "revert", "take_in", "undo"],
)
def test_a_revision_under_such_a_name_is_refused(made: Path, work: Callable[[Path], object]) -> None:
    """The other route has counted its own."""
    kept = len(history.log("doors", root=made))
    with pytest.raises(UsageError, match="gates"):
        work(made)
    assert len(history.log("doors", root=made)) == kept


def test_an_item_that_the_merge_left_out_is_none(made: Path) -> None:
    for work in (ralf.why, corrections.drop, forget):
        with pytest.raises(NotFound, match=r"^tide: .*DEC-002"):
            work("tide", "DEC-002", root=made)


def test_what_was_loaded_before_the_merge_replaces_nothing_of_the_other_route(made: Path) -> None:
    """Its decisions have labels that are another's there."""
    ralf.record_decision("other", "Its own", root=made)
    loaded = to_tree(ralf.get_context("other", root=made))
    fields = {"context_checkpoint": loaded["context_checkpoint"], "decisions": loaded["decisions"]}
    with pytest.raises(Busy, match=r"^doors: "):
        corrections.change("tide", fields, root=made)
    now = to_tree(ralf.get_context("tide", root=made))
    corrections.change("tide", {"context_checkpoint": now["context_checkpoint"], "goal": "A goal"}, root=made)
    assert ralf.get_context("doors", root=made).goal == "A goal"


def test_a_refused_name_is_refused_before_it_is_looked_up(made: Path) -> None:
    with pytest.raises(UsageError):
        ralf.record_decision("../tide", "Use DuckDB", supersedes="DEC-001", root=made)


def test_the_evidence_of_a_memory_leads_to_the_item_that_had_the_label(made: Path) -> None:
    item = ralf.api.remember("pattern", "Keep tides in one file", evidence=("tide cp-1", "tide DEC-002"), root=made)
    kept, gone = memory.why(projects.find(made), "main", item.id).sources
    behind = {
        name: [quote.text for quote in ralf.why("doors", name, root=made).quotes] for name in ("cp-001", "cp-002")
    }
    assert [quote.text for quote in kept.quotes] == behind["cp-002"][: len(kept.quotes)] != behind["cp-001"]
    assert gone.problem


# ---- at the doors ----


@pytest.mark.ci
def test_the_command_line_means_what_the_name_that_was_typed_meant(made: Path) -> None:
    def ran(*words: str) -> str:
        done = process(*words, cwd=made)
        assert done.status == 0, done
        return done.out

    assert DECISIONS[2] in ran("why", "tide", "DEC-001")
    assert DECISIONS[0] in ran("why", "gates", "DEC-001")
    assert "cp-002" in ran("diff", "tide", "cp-001", "now")
    assert "doors: DEC-" in ran("decide", "tide", "Use DuckDB", "--supersedes", "DEC-001")
    assert decision(made, "DEC-003") == "superseded"
    (made / "half.md").write_text("half")
    assert "doors: now" in ran("handover", "tide", "half.md")
    assert "DEC-003" in ran("context", "drop", "tide", "DEC-001")
    assert process("undo", "tide", "r2", cwd=made).status == 2


def test_a_shell_offers_no_label_that_means_another_item_under_the_name(made: Path) -> None:
    offered = [item.value for item in completion.labels(str(made), "tide", "DEC-00")]
    assert "DEC-003" in offered and not {"DEC-001", "DEC-002"} & set(offered)
    assert {"DEC-001", "DEC-002"} <= {item.value for item in completion.labels(str(made), "doors", "DEC-00")}


def test_a_tool_of_an_agent_means_what_the_name_that_it_gave_meant(made: Path) -> None:
    pytest.importorskip("ralf_integrations.mcp.server", reason="the extra mcp is not installed")
    from ralf_integrations.mcp.tools import Tools

    made_by_tool = Tools(made).record("Use DuckDB", "tide", supersedes="DEC-001")
    assert made_by_tool.supersedes == "DEC-003"
    assert "doors" in made_by_tool.text


@pytest.mark.ci
def test_a_page_means_what_the_name_in_its_address_means(made: Path) -> None:
    pytest.importorskip("starlette", reason="the extra web is not installed")
    import webkit
    from ralf.project import Project

    with webkit.served(Project(made)) as (_, client):
        assert DECISIONS[2] in client.get("/routes/tide/why/DEC-001").text
        page = client.get("/routes/tide/diff?a=cp-001&b=now").text
        assert "/routes/doors/" in page and "/routes/tide/" not in page
        assert '<option value="cp-002" selected>' in page
