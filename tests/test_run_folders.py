"""Run folders of the loop: what a run wrote is taken once, part by part; a skeleton gives nothing but an attempt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ralf
from ralf.project import Project
from ralf.route import history
from ralf.text.sentences import promised
from ralf.transcripts.events import EvidenceLine, read_evidence
from ralf_integrations.blackbox5.runs.folder import RunFolder
from ralf_integrations.blackbox5.runs.records import outcome_of, read as read_recorded
from ralf_integrations.blackbox5.runs.runfolder import reader
from skeletons import SKELETONS
from storekit import kept_bytes, records_of

ROUTE = "TASK-7"
REAL = Path(__file__).parents[2] / "shared" / "data" / "blackbox5" / "runs"

THOUGHTS = """\
# Thoughts - TASK-7

**Task:** TASK-7 - Move the sessions to SQLite
**Started:** 2026-02-01T10:00:00Z

## Approach

The loader opens the file twice, which is why the lock is never free.

## Execution Log

- Step 1: read `src/store.py`
"""
RESULTS = """\
# Results - TASK-7

**Status:** partial

## Summary

Sessions are stored in SQLite; the migration of old sessions is missing.

## Files Modified

**Created:**
- `src/sqlite_store.py` (120 lines)

**Modified:**
- `src/store.py`

## Next Steps

1. **Migrate** the old sessions
2. [x] Say so in the changelog

## Blockers

- The backup of the old file is not readable
"""
DECISIONS = """\
# Decisions - TASK-7

## D-9: Storage of Sessions

**Decision:** Use SQLite in WAL mode

**Rationale:**
- One file --- many readers
- A copy of it is a backup

**Alternatives Considered:**
- Redis: one more service

**Reversibility:** HIGH

## How to read this

The numbers begin anew in every run of the loop.
"""
METADATA = """\
loop:
  number: 47
  agent: executor
  timestamp_start: "2026-02-01T10:00:00Z"
  timestamp_end: "2026-02-01T10:20:00Z"
state:
  task_claimed: "TASK-7"
  task_status: "partial"
  current_phase: validate
  files_modified:
    - "src/store.py"
    - "runs/executor/run-0018/THOUGHTS.md"
  commit_hash: "9a4894a7"
actions_taken:
  - type: implement
    description: "Wrote the SQLite store"
discoveries:
  - "The lock is never free while the loader runs"
next_steps:
  - "Migrate the old sessions"
blockers: []
notes: |
  The store works for new sessions.
"""


def write(folder: Path, **files: str) -> Path:
    """A run folder with these files; `_` in a name stands for its dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_md", ".md").replace("_yaml", ".yaml").replace("_txt", ".txt")).write_text(text)
    return folder


def run(root: Path, name: str = "run-0018", **files: str) -> Path:
    return write(root / "runs" / "executor" / name, **files)


def filled(root: Path, name: str = "run-0018") -> Path:
    return run(root, name, THOUGHTS_md=THOUGHTS, RESULTS_md=RESULTS, DECISIONS_md=DECISIONS, metadata_yaml=METADATA)


def lines(root: Path) -> list[EvidenceLine]:
    """What the route's evidence holds, all of it."""
    project = Project(root)
    payloads = [record.payload for _, record in history.checkpoints(project, ROUTE)]
    return [line for payload in payloads for line in read_evidence(project.store, str(payload["evidence"]))]


# ---- what a run wrote ----


def test_a_run_folder_becomes_one_checkpoint_with_decisions_files_and_state_of_work(
    tmp_path: Path,
) -> None:
    report = ralf.checkpoint(ROUTE, filled(tmp_path), root=tmp_path)
    assert len(report.checkpoints) == 1
    context = ralf.get_context(ROUTE, root=tmp_path)
    (decision,) = context.decisions
    assert decision.decision == "Storage of Sessions: Use SQLite in WAL mode"
    assert decision.rationale == "- One file --- many readers\n- A copy of it is a backup"
    assert decision.alternatives == ("Redis: one more service",)
    assert decision.extra["label"] == "runs/executor/run-0018#D-9"
    assert decision.source is not None
    assert decision.source.extra == {"path": "runs/executor/run-0018/DECISIONS.md", "line": 3}
    work = context.active_work
    assert (work.current_task, work.task_title) == ("TASK-7", "Move the sessions to SQLite")
    assert (context.agent_type, work.current_phase) == ("executor", "validate")
    assert (work.next_steps, work.blockers) == (
        ("Migrate the old sessions",),
        ("The backup of the old file is not readable",),
    )
    assert work.findings == ("The lock is never free while the loader runs",)
    done = {path.path: path.did for path in context.facts.paths}
    assert done == {"src/store.py": ("edited",), "src/sqlite_store.py": ("created",)}
    assert [commit.commit for commit in context.facts.commits] == ["9a4894a7"]
    assert context.last_checkpoint == "2026-02-01T10:20:00Z"


def test_a_run_read_again_writes_nothing_and_a_growing_one_adds_only_new_content(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    ralf.checkpoint(ROUTE, folder, root=tmp_path)
    before = kept_bytes(tmp_path)
    assert ralf.checkpoint(ROUTE, folder, root=tmp_path).checkpoints == ()
    assert kept_bytes(tmp_path) == before
    with (folder / "THOUGHTS.md").open("a") as file:
        file.write("\n## Second Look\n\nThe index on `started` made it three times as fast.\n")
    assert len(ralf.checkpoint(ROUTE, folder, root=tmp_path).checkpoints) == 1
    again = [line.text for line in lines(tmp_path)]
    assert len(again) == len(set(again))
    assert again[-1] == "## Second Look\n\nThe index on `started` made it three times as fast."


def test_a_clients_output_is_a_note_without_our_text_and_its_promise_is_the_outcome(
    tmp_path: Path,
) -> None:
    from ralf.text.cleaning import fenced

    said = f"{fenced('<promise>FAILED</promise> was the last outcome')}\nThe parser reads both headers now.\n"
    folder = run(tmp_path, claude_output="")
    (folder / "claude_output").unlink()
    (folder / "claude_output.log").write_text(f"{said}<promise>PARTIAL</promise>\n")
    report = ralf.checkpoint(ROUTE, folder, root=tmp_path)
    assert report.run is not None
    assert (report.run.outcome, report.run.said) == ("PARTIAL", "The parser reads both headers now.")
    assert "was the last outcome" not in "".join(line.text for line in lines(tmp_path))


# ---- skeletons ----


@pytest.mark.parametrize("kind", SKELETONS)
def test_a_skeleton_gives_no_checkpoint_but_counts_as_an_attempt(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "runs" / "run-20260209_125038"
    folder.mkdir(parents=True)
    for name, text in SKELETONS[kind].items():
        (folder / name).write_text(text)
    assert list(reader(folder, tmp_path).events()) == []
    report = ralf.checkpoint(ROUTE, folder, root=tmp_path)
    assert report.checkpoints == ()
    documents = [name for name in SKELETONS[kind] if name.endswith(".md") and name != "prompt.md"]
    assert list(report.skipped.values()) == [len(documents)]
    assert [record["kind"] for record in records_of(tmp_path, ROUTE)] == ["attempt"]
    assert ralf.get_context(ROUTE, root=tmp_path).active_work.attempts == 1


# ---- how it ended ----


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("completed", "COMPLETE"),
        ("✅ COMPLETE", "COMPLETE"),
        ("SUCCESS", "COMPLETE"),
        ("PARTIAL", "PARTIAL"),
        ("Partially completed", "PARTIAL"),
        ("blocked by TASK-3", "BLOCKED"),
        ("FAILED", "FAILED"),
        ("in_progress", ""),
        ("IN PROGRESS - 80% complete", ""),
        ("PENDING", ""),
        ("not completed", ""),
        ("", ""),
    ],
)
def test_statuses_as_documents_have_them_are_one_of_five_outcomes_or_none(status: str, outcome: str) -> None:
    assert outcome_of(status) == outcome


@pytest.mark.parametrize(
    "text",
    [
        "- When done, output: <promise>COMPLETE</promise>",
        "Output `<promise>COMPLETE</promise>` then.",
        '"<promise>COMPLETE</promise>"',
        "> <promise>COMPLETE</promise>",
        "```\n<promise>COMPLETE</promise>\n```",
        "| done | <promise>COMPLETE</promise> |",
        "- <promise>COMPLETE</promise>\n- <promise>PARTIAL</promise>",
        "1. <promise>COMPLETE</promise>",
        "<promise>COMPLETE</promise> or <promise>BLOCKED</promise>",
        "<promise>COMPLETE</promise> means that all is well",
        "I will not say <promise>COMPLETE</promise>.",
    ],
)
def test_a_promise_that_is_quoted_or_explained_is_none(text: str) -> None:
    assert promised(text) == ""


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({"status_txt": "FAILED\n", "metadata_yaml": METADATA}, "FAILED"),
        ({"status_txt": "PENDING\n", "metadata_yaml": METADATA}, "PARTIAL"),
        ({"RESULTS_md": RESULTS.replace("partial", "✅ COMPLETE")}, "COMPLETE"),
        ({"RESULTS_md": RESULTS.replace("**Status:** partial", "")}, ""),
        ({"RESULTS_md": RESULTS + "\n<promise>BLOCKED</promise>\n", "metadata_yaml": METADATA}, "BLOCKED"),
        ({"metadata_yaml": "results:\n  status: completed\n  summary: The reader takes both headers.\n"}, "COMPLETE"),
    ],
)
def test_a_promise_counts_most_then_what_the_loop_noted_then_what_the_documents_say(
    tmp_path: Path, files: dict[str, str], outcome: str
) -> None:
    attempt = reader(run(tmp_path, **files), tmp_path).attempt
    assert attempt is not None
    assert attempt.outcome == outcome


# ---- names and metadata ----


@pytest.mark.parametrize(
    ("name", "task", "started"),
    [
        ("run-20260209_163419-TASK-001-B-design", "TASK-001-B-design", "2026-02-09T16:34:19"),
        ("run-20260209-163419", "", "2026-02-09T16:34:19"),
        ("run-1769861725", "", "2026-01-31T12:15:25Z"),
        ("run-0018", "", ""),
        ("run-99999999_999999", "", ""),
        ("TASK-ARCH-028", "TASK-ARCH-028", ""),
        ("run-integration-test", "", ""),
    ],
)
def test_a_folder_s_name_tells_the_task_and_when_the_run_began(name: str, task: str, started: str) -> None:
    folder = RunFolder(Path("/p/.autonomous/agents/planner/runs") / name)
    assert (folder.task, folder.started, folder.agent) == (task, started, "planner")


def test_tracking_run_yaml_and_metadata_of_the_hook_are_read_in_their_own_shapes(tmp_path: Path) -> None:
    tracked = {
        "run_id": "r1",
        "agent_id": "legacy",
        "task_id": "TASK-7",
        "task_title": "Move it",
        "status": "completed",
        "start_time": "2026-02-01T10:00:00Z",
        "files_created": ["/p/a.py"],
        "git_commits": [{"hash": "abc1234", "message": "Add it"}],
        "progress_log": [
            {"timestamp": "2026-02-01T10:01:00Z", "category": "decision", "message": "Take the short way round"},
            {"timestamp": "2026-02-01T10:02:00Z", "category": "error", "message": "the file is locked by the loader"},
        ],
    }
    folder = run(
        tmp_path,
        RUN_yaml="# of the loop\n---\nrun_id: r1\nstatus: partial\nthoughts: The lock is the loader's.\ndecisions:\n"
        "- {id: D-1, title: Locking, decision: Use flock, rationale: the kernel takes it back}\n",
    )
    (folder / "tracking.json").write_text(json.dumps(tracked))
    found = read_recorded(RunFolder(folder))
    assert (found.task, found.title, found.outcome) == ("TASK-7", "Move it", "PARTIAL")
    assert found.paths == [("/p/a.py", "created")]
    assert found.commits == [("abc1234", "Add it")]
    assert [decision["decision"] for decision in found.decisions] == ["Use flock"]
    assert found.told["progress_log"][1].startswith("the file is locked by the loader (")
    ralf.checkpoint(ROUTE, folder, root=tmp_path)
    (decided,) = ralf.get_context(ROUTE, root=tmp_path).decisions
    assert decided.extra["label"] == "runs/executor/run-0018#D-1"


# ---- what is wrong with a folder ----


def test_what_cannot_be_read_is_named_and_the_rest_is_taken(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    (folder / "metadata.yaml").write_text("state: &a {x: *a}\n")
    (folder / "decision_registry.yaml").write_text("decisions: 5\n")
    (folder / "tracking.json").write_text('{"run_id": ')
    (folder / "SUMMARY.md").write_bytes(b"x" * (2 << 20))
    report = ralf.checkpoint(ROUTE, folder, root=tmp_path)
    assert len(report.checkpoints) == 1
    for name in ("metadata.yaml", "decision_registry.yaml", "tracking.json", "SUMMARY.md"):
        assert any(f"runs/executor/run-0018/{name}: " in warning for warning in report.warnings), name
    assert len(ralf.get_context(ROUTE, root=tmp_path).decisions) == 1
