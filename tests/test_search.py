"""Search finds decisions, sections, facts and evidence by their words, and nothing where nothing is relevant."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import ralf
from ralf.errors import RouteNotFound, UsageError

SESSION = Path(__file__).parents[1] / "examples" / "session.jsonl"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    ralf.checkpoint("tidepool", SESSION, root=root)
    ralf.record_decision("other", "Use a queue of goroutines", rationale="back pressure comes for free", root=root)
    return root


def test_a_decision_is_found_by_its_reason(project: Path) -> None:
    hits = ralf.search("why no tenacity for the retries?", root=project)
    assert hits[0].kind == "decision"
    assert "tenacity" in hits[0].text


def test_what_a_tool_printed_is_found(project: Path) -> None:
    hits = ralf.search("NameError name '_rebase' is not defined", route="tidepool", root=project)
    assert any(hit.kind in ("evidence", "fact") and "_rebase" in hit.text for hit in hits)


@pytest.mark.parametrize("query", ["Rust borrow checker lifetimes", "", "the of and", "?!", '" OR NEAR(', "décor 日本"])
def test_nothing_relevant_gives_nothing(project: Path, query: str) -> None:
    assert ralf.search(query, route="other", root=project) == []


def test_a_route_that_is_named_is_searched_alone(project: Path) -> None:
    assert {hit.route for hit in ralf.search("queue", root=project, limit=50)} >= {"other"}
    assert {hit.route for hit in ralf.search("queue", route="other", root=project)} == {"other"}


def test_an_identifier_is_found_whole_and_by_its_parts(tmp_path: Path) -> None:
    ralf.record_decision("r", "Cache what getUserById returns", rationale="it is called per row", root=tmp_path)
    ralf.record_decision("r", "Keep src/api/routes.py as it is", rationale="the client pins it", root=tmp_path)
    for query in ("getUserById", "user by id", "get_user_by_id"):
        assert ralf.search(query, root=tmp_path)[0].id == "DEC-001", query
    assert ralf.search("src/api/routes.py", root=tmp_path)[0].id == "DEC-002"


def test_a_superseded_decision_stands_below_the_one_that_replaced_it(tmp_path: Path) -> None:
    old = ralf.record_decision("r", "Store sessions in Redis, Redis and again Redis", root=tmp_path)
    ralf.record_decision("r", "Store sessions in Postgres", supersedes=old.id, root=tmp_path)
    hits = ralf.search("where to store sessions: Redis?", root=tmp_path)
    assert [(hit.id, hit.status) for hit in hits] == [("DEC-002", "active"), ("DEC-001", "superseded")]


def test_what_is_recorded_after_a_search_is_found_by_the_next(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    assert ralf.search("spaces", root=tmp_path) == []
    ralf.record_decision("r", "Use spaces after all", root=tmp_path)
    assert [hit.id for hit in ralf.search("spaces", root=tmp_path)] == ["DEC-002"]


def test_an_edit_by_hand_is_found_once_it_is_taken_in(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    ralf.search("tabs", root=tmp_path)
    file = tmp_path / ".autonomous" / "context" / "routes" / "r.md"
    file.write_text(file.read_text(encoding="utf-8").replace("Use tabs", "Use elastic tabstops"), encoding="utf-8")
    ralf.record_decision("r", "Wrap at 100", root=tmp_path)
    assert [hit.id for hit in ralf.search("elastic", root=tmp_path)] == ["DEC-001"]


@pytest.mark.parametrize("damage", ["gone", "garbage", "empty"])
def test_an_index_that_is_damaged_is_made_anew(tmp_path: Path, damage: str) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    before = ralf.search("tabs", root=tmp_path)
    cache = tmp_path / ".autonomous" / "context" / "cache"
    if damage == "gone":
        shutil.rmtree(cache)
    else:
        (cache / "search.sqlite").write_bytes(b"" if damage == "empty" else b"not a database" * 100)
    assert ralf.search("tabs", root=tmp_path) == before


def test_the_index_built_at_once_is_the_one_built_step_by_step(project: Path) -> None:
    queries = ("merge", "cursor", "outbox transaction", "retry jitter", "test_merge")
    before = [ralf.search(query, root=project) for query in queries]
    (project / ".autonomous" / "context" / "cache" / "search.sqlite").unlink()
    assert [ralf.search(query, root=project) for query in queries] == before


def test_a_project_without_routes_has_nothing_to_find(tmp_path: Path) -> None:
    assert ralf.search("anything", root=tmp_path) == []
    assert not (tmp_path / ".autonomous").exists()


def test_an_unknown_or_refused_route_is_named(project: Path) -> None:
    with pytest.raises(RouteNotFound, match="tidepol: no such route; closest: tidepool"):
        ralf.search("x", route="tidepol", root=project)
    with pytest.raises(UsageError):
        ralf.search("x", route="../x", root=project)


def test_the_limit_is_kept(project: Path) -> None:
    assert len(ralf.search("sync", root=project, limit=3)) == 3
    assert json.dumps([hit.score for hit in ralf.search("sync", root=project, limit=3)])
