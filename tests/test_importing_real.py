"""Taking over the real files of the RALF loop: all of it accounted for, found again, and none of it changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import ralf
from examples import examples
from ralf_migrations.importing import Report
from test_importing import migrate

REAL = Path(__file__).parents[2] / "shared" / "data" / "blackbox5"
pytestmark = [
    pytest.mark.skipif(not REAL.is_dir(), reason="the real files of ../shared are not here"),
    pytest.mark.release,  # all of it is taken over anew by each process
]

PLACES = {
    "timeline-memory": "timeline-memory",
    "decision-registry": "decision_registry",
    "decisions-md": "runs",
    "ralf-context": "ralf-context",
    "run-folders": "runs",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has taken over all of it."""
    made = tmp_path_factory.mktemp("project")
    for source, place in PLACES.items():
        migrate(source, REAL / place, root=made)
    return made


def taken(source: str, root: Path) -> Report:
    return migrate(source, REAL / PLACES[source], root=root, dry_run=True)


def test_every_file_is_accounted_for_and_none_is_unreadable(root: Path) -> None:
    for source in PLACES:
        report = taken(source, root)
        assert report.files
        assert {one.outcome for one in report.files} <= {"imported", "nothing"}


def test_all_state_of_the_memories_in_yaml_is_carried_and_no_decision_invented(root: Path) -> None:
    report = taken("timeline-memory", root)
    assert report.decisions == 0
    for one in report.files:
        text = Path(one.path).read_text()
        if "timeline_memory:" in text and one.outcome == "imported":
            state: dict[str, Any] = yaml.safe_load(text.split("```yaml\n")[1].split("\n```")[0])
            memory = ralf.get_context(one.routes[0], root=root).active_work.extra[f"memory_of_{one.routes[0]}"]
            assert set(state) <= set(memory)
    assert all(decision.source is not None for decision in _memories(root))


def _memories(root: Path) -> list[Any]:
    routes = [route for one in taken("timeline-memory", root).files for route in one.routes]
    return [decision for route in routes for decision in ralf.get_context(route, root=root).decisions]


def test_the_one_memory_that_was_filled_in_gives_its_run_and_its_finished_queue(root: Path) -> None:
    context = ralf.get_context("TASK-ARCH-003B", root=root)
    assert len(context.active_work.todos) == 7
    assert {todo.status for todo in context.active_work.todos} == {"completed"}
    assert context.active_work.findings == ("14 issues documented",)
    assert context.active_work.extra["memory_of_auditor-worker"]["current_assignment"] == {
        "in_progress": None,
        "blocked_by": None,
        "last_completed": "All priority items",
        "next_item": "EXIT - Audit complete",
    }


def test_run_folders_give_their_decisions_and_skeletons_no_checkpoint(root: Path) -> None:
    report = taken("run-folders", root)
    assert report.decisions == 49
    assert [Path(one.path).name[:8] for one in report.those("nothing")] == ["skeleton", "skeleton"]
    assert ralf.get_context("TASK-001-B-design-interfaces", root=root).checkpoint_count == 0


def _entries() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load((REAL / "decision_registry" / "project.yaml").read_text())[
        "decisions"
    ]
    return entries


def _plain(text: str) -> str:
    return " ".join(text.replace("**", "").split()).casefold()


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("registered")
    migrate("decision-registry", REAL / "decision_registry" / "project.yaml", root=made)
    return made


@pytest.mark.parametrize("part", range(examples(8)))
def test_each_of_864_decisions_is_found_by_its_title_its_reason_and_its_label(part: int, registered: Path) -> None:
    """In the long run; else each of so many eighths of them."""
    entries = _entries()
    assert len(entries) == 864
    for entry in entries[part::8]:
        by_title = ralf.search(entry["title"], root=registered)
        assert any(_plain(entry["title"]) in _plain(hit.text) for hit in by_title), entry["id"]
        assert any(f"#{entry['id']}" in hit.text for hit in ralf.search(entry["id"], root=registered)), entry["id"]
        if reason := (entry["rationale"] or "").strip():
            found = ralf.search(reason, root=registered)
            assert any(_plain(reason)[:60] in _plain(hit.text) for hit in found), entry["id"]


def test_the_files_of_a_real_tree_are_found_at_their_depths(tmp_path: Path) -> None:
    project = tmp_path / "5-project-memory" / "blackbox5"
    places = {
        "scout-worker-2.md": ".autonomous/agents/scout-worker/timeline-memory.md",
        "ssot-auditor-worker-1.md": "agents/ssot-fix/auditor-worker/memory/timeline-memory.md",
        "ssot-fixer-worker-1.md": "agents/ssot-fix/fixer-worker/memory/timeline-memory.md",
    }
    for name, place in places.items():
        (project / place).parent.mkdir(parents=True)
        shutil.copy(REAL / "timeline-memory" / name, project / place)
    shutil.copytree(REAL / "runs" / "executor__run-0018", project / "runs" / "executor" / "run-0018")
    (project / ".autonomous" / "context").mkdir()
    shutil.copy(REAL / "routes" / "routes.yaml", project / ".autonomous" / "context" / "routes.yaml")
    routes = {route for source in ("timeline-memory", "run-folders") for route in migrate(source, root=project).routes}
    assert routes == {"TASK-ARCH-003B", "TASK-ARCH-003C", "TASK-1769903002"}
    assert migrate("timeline-memory", root=tmp_path).routes == ["TASK-ARCH-003B", "TASK-ARCH-003C"]
