"""Taking over what other tools have kept, on made trees: what goes where, what is left, and that nothing is harmed."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

import ralf
from ralf import project as projects
from ralf_migrations.importing import SOURCES, Report, import_all
from ralf_migrations.reading import Reading
from storekit import kept_bytes

WORKER = """\
# Gauge Worker Timeline Memory

**Purpose:** Long memory of readings
**Injected via:** SessionStart hook

---

```yaml
timeline_memory:
  version: "1.0.0"
  agent: gauge-worker
  created: "2026-02-04T00:00:00Z"
  total_runs: 0

# What was read
reading_history:
  # Example entry:
  # - run_id: "run-example-1"
  #   decision: "recommend"

current_context:
  last_read: null
  next_in_queue: "station 12"

work_queue:
  priority_sources: ["station 12", "station 14"]
  backlog: []
  in_progress: null
  completed_today: 0
```

---

## How to Use This Memory

1. Read this file. --- it is short.

*This file is automatically injected.*
"""

HISTORY = """\
reading_history:
  - run_id: "run-20260204-001"
    timestamp: "2026-02-04T10:10:00Z"
    pattern_id: "P-001"
    decision: "defer"
    confidence: 0.85
"""

AUDITOR = """\
# Auditor Worker Timeline Memory

**Agent:** Auditor Worker
**Task:** TASK-TIDE-003B Validation
**Phase:** Audit
**Created:** 2026-02-04

---

## Work History

### Run 1
- **Status:** completed
- **Started:** 2026-02-04
- **Findings:** 3 gauges drift

---

## Work Queue

### Priority Items (first)
1. [x] Compare the gauges
2. [ ] Replace the sensors:
   - [ ] of Hoek

### Backlog
- [ ] Write it up

---

## Current Assignment

```yaml
in_progress: null
blocked_by: "TASK-TIDE-002 report"
last_completed: "Compare the gauges"
next_item: "Replace the sensors"
```

## Fix Specifications

```yaml
docs:
  files:
    - "a.md"
      purpose: "wrong indent"  # before
```

```bash
# Results: not a heading
```

## Success Criteria

- [x] Not an item of the queue
"""

DECISIONS = """\
# Decisions - TASK-42

**Date:** 2026-02-03

## Decision 1: Storage

**Decision:** SQLite --- in WAL mode

**Rationale:** One file

**Alternatives:**
- Redis - Rejected (a service)

## Notes

It rained.
"""

REGISTRY = """\
registry:
  total_decisions: 99
decisions:
- id: DEC-0001
  source_file: 5-project-memory/tide/runs/planner/run-0001/DECISIONS.md
  source_run: planner/run-0001
  timestamp: '2026-02-01T00:00:00Z'
  title: Analysis Scope
  status: approved
  rationale: 'all of it

    ---

    ## Technical'
  tags: [scope]
  alternatives: []
  format: variant_2_numbered
- id: DEC-0002
  source_file: 5-project-memory/tide/runs/planner/run-0002/DECISIONS.md
  source_run: planner/run-0002
  timestamp: '2026-02-02T00:00:00Z'
  title: Analysis Scope
  status: approved
  rationale: half of it
  tags: []
  alternatives:
  - {option: all of it, outcome: 'rejected: slow'}
  format: variant_2_numbered
"""

OF_A_RUN = """\
run_id: "run-0007"
task_id: "TASK-7"
decisions:
  - id: "DEC-7-001"
    options_considered:
      - {id: "OPT-001", description: "Write it all", cons: ["late"]}
      - {id: "OPT-002", description: "Write stubs"}
    selected_option: "OPT-002"
    rationale: "Low risk"
    reversibility: "LOW"
    status: "DECIDED"
"""

CONTEXT = """\
# RALF Context - Last Updated: 2026-02-01T17:20:00Z

## What Was Worked On This Loop (Planner Run 0073 - Loop 24)

Measured the gauges.

**3. Decisions Made (1 total):**
- D-006: Count lines, not minutes

## What Should Be Worked On Next (Loop 25)

1. Calibrate Hoek
2. Replace the cable

## Key Insights

**Insight 1: Gauges drift**
- By a centimetre a year
"""


def migrate(source: str, path: Path | None = None, *, root: Path, dry_run: bool = False) -> Report:
    """Take over one source, of the whole project or what is at a path."""
    return import_all(projects.find(root), source, () if path is None else (path,), dry_run=dry_run)


def put(root: Path, path: str, text: str | bytes) -> Path:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return place


def of(report: Report, path: str) -> Reading:
    (found,) = (one for one in report.files if one.path == path)
    return found


def state_of(root: Path) -> dict[str, tuple[str, int]]:
    """Every file of the sources: its sha256 and its mtime."""
    store = root / ".autonomous" / "context"
    return {
        str(path): (sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file() and store not in path.parents
    }


def every_source(root: Path) -> None:
    put(root, ".autonomous/agents/gauge-worker/timeline-memory.md", WORKER)
    put(root, "agents/ssot-fix/auditor-worker/memory/timeline-memory.md", AUDITOR)
    put(root, "runs/executor/run-0042/DECISIONS.md", DECISIONS)
    put(root, ".autonomous/decisions/decision_registry.yaml", REGISTRY)
    put(root, "runs/executor/run-0007/decision_registry.yaml", OF_A_RUN)
    put(root, "RALF-CONTEXT.md", CONTEXT)


# ---- all sources ----


@pytest.mark.parametrize("source", SOURCES)
def test_a_dry_run_tells_the_same_and_writes_nothing(source: str, tmp_path: Path) -> None:
    every_source(tmp_path)
    planned = migrate(source, root=tmp_path, dry_run=True)
    assert not (tmp_path / ".autonomous" / "context").exists()
    done = migrate(source, root=tmp_path)
    assert planned.those("imported")
    told = [(one.path, one.routes, one.decisions, one.left) for one in planned.files]
    assert told == [(one.path, one.routes, one.decisions, one.left) for one in done.files]
    assert done.written >= len(done.those("imported"))


def test_files_that_cannot_be_read_are_listed_and_the_others_taken(tmp_path: Path) -> None:
    every_source(tmp_path)
    put(tmp_path, "runs/executor/run-0043/DECISIONS.md", b"# D\xff\xfe")
    put(tmp_path, "runs/executor/run-0044/decision_registry.yaml", "decisions: [\n")
    os.mkfifo(put(tmp_path, "runs/executor/run-0045/x", "").with_name("DECISIONS.md"))
    decisions, registries = migrate("decisions-md", root=tmp_path), migrate("decision-registry", root=tmp_path)
    assert [one.path for one in decisions.those("unreadable")] == [
        "runs/executor/run-0043/DECISIONS.md",
        "runs/executor/run-0045/DECISIONS.md",
    ]
    assert [one.path for one in registries.those("unreadable")] == ["runs/executor/run-0044/decision_registry.yaml"]
    assert (len(decisions.those("imported")), len(registries.those("imported"))) == (1, 2)


def test_links_and_backups_are_passed_over_and_counted(tmp_path: Path) -> None:
    every_source(tmp_path)
    put(tmp_path, ".autonomous.backup.20260201/runs/run-1/DECISIONS.md", DECISIONS)
    put(tmp_path, "runs/executor/run-0042/DECISIONS.backup.md", DECISIONS)
    put(tmp_path, "elsewhere/run-1/keep", "")
    (tmp_path / "elsewhere" / "run-1" / "DECISIONS.md").symlink_to(tmp_path / "runs/executor/run-0042/DECISIONS.md")
    (tmp_path / "loop").symlink_to(tmp_path)
    report = migrate("decisions-md", root=tmp_path)
    assert len(report.those("imported")) == 1
    assert set(report.backups) == {".autonomous.backup.20260201", "runs/executor/run-0042/DECISIONS.backup.md"}
    assert of(report, "elsewhere/run-1/DECISIONS.md").outcome == "left"


# ---- timeline-memory ----


def test_a_memory_in_yaml_becomes_the_work_of_its_agents_route(tmp_path: Path) -> None:
    put(tmp_path, "agents/gauge-worker/timeline-memory.md", WORKER)
    report = migrate("timeline-memory", root=tmp_path).files[0]
    context = ralf.get_context("gauge-worker", root=tmp_path)
    assert report.routes == ("gauge-worker",)
    assert context.decisions == ()
    assert [todo.content for todo in context.active_work.todos] == ["station 12", "station 14"]
    assert context.active_work.next_steps == ("station 12",)
    memory = context.active_work.extra["memory_of_gauge-worker"]
    assert memory["timeline_memory"]["version"] == "1.0.0"
    assert memory["reading_history"] is None
    assert memory["header"]["purpose"] == "Long memory of readings"
    assert memory["source"]["sha256"] == sha256(WORKER.encode()).hexdigest()
    assert not context.active_work.attempts  # a memory is none
    assert context.agent_type == "gauge-worker"
    assert "How to Use" not in context.history
    assert ralf.search("it is short", root=tmp_path)


def test_an_empty_history_invents_nothing_and_examples_in_comments_are_not_found(tmp_path: Path) -> None:
    put(tmp_path, "timeline-memory.md", WORKER)
    report = migrate("timeline-memory", root=tmp_path)
    assert report.decisions == 0
    assert not any("example" in hit.text for hit in ralf.search("run-example-1 recommend", root=tmp_path))


def test_a_memory_that_nobody_has_filled_in_is_counted_once_as_nothing(tmp_path: Path) -> None:
    empty = WORKER.replace('"station 12", "station 14"', "").replace('"station 12"', "null")
    put(tmp_path, "memories/empty-timeline-memory.md", empty)
    put(tmp_path, "memories/decisions/timeline-memory.md", f"{WORKER}\n## Decisions\n")
    report = import_all(projects.find(tmp_path), paths=[tmp_path / "memories"], dry_run=True)
    assert sorted(one.outcome for one in report.files) == ["imported", "nothing"]
    assert "2 files: 1 would be taken, 1 with nothing written" in report.lines()[-1]


def test_a_filled_history_becomes_checkpoints_and_what_an_analyst_decided_a_decision(tmp_path: Path) -> None:
    head, tail = WORKER.split("reading_history:\n")
    put(tmp_path, "timeline-memory.md", head + HISTORY + tail[tail.index("\ncurrent_context") :])
    migrate("timeline-memory", root=tmp_path)
    context = ralf.get_context("gauge-worker", root=tmp_path)
    assert [entry.summary_ref.partition(": ")[2] for entry in context.checkpoints] == [
        "gauge-worker: run-20260204-001",
        "Memory of gauge-worker",
    ]
    (decision,) = context.decisions
    assert (decision.decision, decision.origin, decision.timestamp) == ("defer P-001", "import", "2026-02-04T10:10:00Z")
    assert "confidence 0.85" in decision.rationale
    assert decision.extra["label"] == "timeline-memory.md#run-20260204-001"


def test_a_markdown_memory_goes_to_its_task_and_only_queue_and_assignment_are_state(tmp_path: Path) -> None:
    put(tmp_path, "agents/ssot-fix/auditor-worker/memory/timeline-memory.md", AUDITOR)
    report = migrate("timeline-memory", root=tmp_path).files[0]
    assert report.routes == ("TASK-TIDE-003B",)
    work = ralf.get_context("TASK-TIDE-003B", root=tmp_path).active_work
    assert [(todo.content, todo.status) for todo in work.todos] == [
        ("Compare the gauges", "completed"),
        ("Replace the sensors:", "pending"),
        ("Replace the sensors: of Hoek", "pending"),
        ("Write it up", "pending"),
    ]
    assert (work.current_task, work.task_title) == ("TASK-TIDE-003B", "TASK-TIDE-003B Validation")
    assert (work.current_phase, work.work_status) == ("Audit", "blocked")
    assert (work.blockers, work.next_steps) == (("TASK-TIDE-002 report",), ("Replace the sensors",))
    memory = work.extra["memory_of_auditor-worker"]
    assert memory["current_assignment"]["in_progress"] is None
    assert memory["header"]["created"] == "2026-02-04"
    assert memory["work_queue"][2] == {
        "item": "of Hoek",
        "done": False,
        "part_of": "Replace the sensors:",
    }
    assert ralf.get_context("TASK-TIDE-003B", root=tmp_path).checkpoint_count == 2  # the run, and what stands now
    assert (work.attempts, work.outcome, work.last_runs[0].said) == (1, "COMPLETE", "3 gauges drift")
    assert ralf.search("wrong indent", root=tmp_path) and ralf.search("Not an item of the queue", root=tmp_path)


def test_a_memory_damaged_in_one_place_is_read_otherwise_and_the_place_reported(tmp_path: Path) -> None:
    broken = HISTORY.replace('decision: "defer"', "completion_status: completed")
    head, tail = WORKER.split("reading_history:\n")
    text = head + broken + tail[tail.index("\ncurrent_context") :].replace("  backlog: []", "  backlog: [")
    put(tmp_path, "timeline-memory.md", text.replace("in_progress: null", "in_progress: station 12"))
    (report,) = migrate("timeline-memory", root=tmp_path).files
    assert report.outcome == "unreadable"
    line = text.split("\n").index("  backlog: [") + 1
    assert report.why.startswith(f"line {line}: ")
    work = ralf.get_context("gauge-worker", root=tmp_path).active_work
    assert [(todo.content, todo.status) for todo in work.todos] == [
        ("station 12", "in_progress"),
        ("station 14", "pending"),
    ]
    assert (work.attempts, work.last_runs[0].outcome) == (1, "COMPLETE")
    assert migrate("timeline-memory", root=tmp_path).written == 0


# ---- decisions ----


def test_entries_of_a_registry_stay_apart_and_are_found_by_title_reason_and_label(tmp_path: Path) -> None:
    put(tmp_path, ".autonomous/decisions/decision_registry.yaml", REGISTRY)
    report = migrate("decision-registry", root=tmp_path)
    assert (report.decisions, report.routes) == (2, ["planner"])
    first, second = ralf.get_context("planner", root=tmp_path).decisions
    assert first.rationale == "all of it\n---\n## Technical"
    assert (first.decision, second.decision) == ("Analysis Scope", "Analysis Scope")
    assert second.alternatives == ("all of it: rejected: slow",)
    assert (first.origin, first.extra["written_status"]) == ("import", "approved")
    assert first.extra["label"] == ".autonomous/decisions/decision_registry.yaml#DEC-0001"
    assert first.source is not None
    assert first.source.extra["line"] == 4
    assert first.source.extra["file_sha256"] == sha256(REGISTRY.encode()).hexdigest()
    assert len(ralf.search("Analysis Scope", root=tmp_path)) == 2
    for label, reason in (("DEC-0001", "Technical"), ("DEC-0002", "half of it")):
        assert reason in ralf.search(label, root=tmp_path)[0].text


TOLD_TWICE = """\
decisions:
- {id: DEC-0007, source_file: runs/planner/run-1/DECISIONS.md, title: Count the buoys, status: approved,
   rationale: "- by boat\\n- twice", timestamp: '2026-02-01T10:00:00.1Z', alternatives: [], tags: [sea]}
- {id: DEC-0008, source_file: runs/planner/run-1/DECISIONS.md, title: Scope, status: approved, rationale: all of it}
- {id: DEC-0015, source_file: runs/planner/run-1/DECISIONS.md, title: 'Decision 1: Count the buoys', status: approved,
   rationale: "- by boat\\n- twice", timestamp: '2026-02-01T10:00:00.2Z', alternatives: [{option: from the air}]}
- {id: DEC-0016, source_file: runs/planner/run-1/DECISIONS.md, title: 'Decision 2: Scope', status: approved,
   rationale: half of it}
- {id: DEC-0017, source_file: runs/planner/run-2/DECISIONS.md, title: 'Decision 1: Count the buoys', status: approved,
   rationale: "- by boat\\n- twice"}
"""


def test_a_registry_decision_with_and_without_its_number_is_one_with_both_labels(tmp_path: Path) -> None:
    put(tmp_path, "decision_registry.yaml", TOLD_TWICE)
    (report,) = migrate("decision-registry", root=tmp_path).files
    assert report.decisions == 4
    made = ralf.get_context("planner", root=tmp_path).decisions
    said = [(one.decision, one.rationale.replace("\n", " ")) for one in made]
    assert said == [
        ("Count the buoys", "- by boat - twice"),
        ("Scope", "all of it"),
        ("Decision 2: Scope", "half of it"),
        ("Decision 1: Count the buoys", "- by boat - twice"),
    ]
    assert made[0].alternatives == ("from the air",)
    assert made[0].extra["further_labels"] == ["decision_registry.yaml#DEC-0015: Decision 1: Count the buoys"]
    for label in ("DEC-0007", "DEC-0015"):
        assert any(f"#{label}" in hit.text for hit in ralf.search(label, root=tmp_path))
    assert "Decision 1: Count the buoys" in ralf.search("Decision 1: Count the buoys", root=tmp_path)[0].text


def test_the_text_of_an_entry_comes_from_its_source_file_while_that_exists(tmp_path: Path) -> None:
    root = tmp_path / "5-project-memory" / "tide"
    put(root, ".autonomous/decisions/decision_registry.yaml", REGISTRY)
    put(root, "runs/planner/run-0002/DECISIONS.md", "## Decision 1: Analysis Scope\n\n**Decision:** Half of it\n")
    migrate("decision-registry", root=root)
    said = [decision.decision for decision in ralf.get_context("planner", root=root).decisions]
    assert said == ["Analysis Scope", "Analysis Scope: Half of it"]


def test_a_decision_that_two_sources_tell_is_one(tmp_path: Path) -> None:
    put(tmp_path, "runs/executor/run-0042/DECISIONS.md", DECISIONS)
    migrate("decisions-md", root=tmp_path)
    migrate("run-folders", root=tmp_path)
    assert len(ralf.get_context("TASK-42", root=tmp_path).decisions) == 1


# ---- RALF-CONTEXT.md ----


def test_the_page_of_a_loop_shows_next_steps_findings_and_decisions(tmp_path: Path) -> None:
    put(tmp_path, "RALF-CONTEXT.md", CONTEXT)
    (report,) = migrate("ralf-context", root=tmp_path).files
    context = ralf.get_context("planner", root=tmp_path)
    assert (report.routes, report.decisions) == (("planner",), 1)
    assert context.active_work.next_steps == ("Calibrate Hoek", "Replace the cable")
    assert context.active_work.findings == ("Insight 1: Gauges drift",)
    (decision,) = context.decisions
    assert (decision.decision, decision.extra["label"]) == ("Count lines, not minutes", "RALF-CONTEXT.md#D-006")
    assert decision.timestamp == "2026-02-01T17:20:00Z"
    assert context.last_checkpoint == "2026-02-01T17:20:00Z"


# ---- run folders ----


def test_runs_go_to_their_tasks_and_those_that_wrote_nothing_only_count(tmp_path: Path) -> None:
    skeleton = "# THOUGHTS - TASK-42\n\n**Started:** 2026-02-09T16:34:19Z\n\n## Reasoning\n"
    for number in range(3):
        put(tmp_path, f".autonomous/runs/run-20260209_1634{number:02d}-TASK-42/THOUGHTS.md", skeleton)
    put(tmp_path, ".autonomous/runs/run-20260209_170000-TASK-42/DECISIONS.md", DECISIONS)
    put(tmp_path, ".autonomous/runs/run-20260209_170000-TASK-42/context_budget.json", "{}")
    report = migrate("run-folders", root=tmp_path)
    context = ralf.get_context("TASK-42", root=tmp_path)
    assert (len(report.those("imported")), len(report.those("nothing")), report.written) == (1, 3, 1)
    assert (context.active_work.attempts, context.checkpoint_count) == (4, 1)
    assert context.decisions[0].origin == "import"
    assert context.decisions[0].source is not None
    assert context.decisions[0].source.extra["file_sha256"] == sha256(DECISIONS.encode()).hexdigest()
    assert "Reasoning" not in context.history
    filled = of(report, ".autonomous/runs/run-20260209_170000-TASK-42")
    assert [one.partition(":")[0] for one in filled.left] == ["context_budget.json"]
    assert context.agent_type == ""


@pytest.mark.ci
def test_runs_are_found_below_documents_and_other_runs_but_not_in_other_folders(tmp_path: Path) -> None:
    (tmp_path / ".autonomous").mkdir()
    for place in ("", "tasks/TASK-7", "tasks/TASK-7/runs.migrated/run-0001", "runs/run-0002", "runs/run-0002/run-0003"):
        put(
            tmp_path,
            f"{place}/RESULTS.md".lstrip("/"),
            "# Results\n\nThe gauges of Hoek drift by a centimetre a year.\n",
        )
    put(tmp_path, "runs/run-0002/docs/RESULTS.md", "# Results\n\nThe same, in more words.\n")
    put(tmp_path, "bin/run-scripts/go.sh", "true\n")
    put(tmp_path, "lib/RESULTS.md", "# Results\n\nA repository of its own is no run.\n")
    (tmp_path / "lib" / ".git").mkdir()
    put(tmp_path, "runs/run-integration-test/THOUGHTS.md", "# Thoughts\n\nThe buoys answer one after the other.\n")
    report = migrate("run-folders", root=tmp_path)
    assert [one.path for one in report.files] == [
        "runs/run-0002",
        "runs/run-0002/run-0003",
        "runs/run-integration-test",
        "tasks/TASK-7",
        "tasks/TASK-7/runs.migrated/run-0001",
    ]
    assert {"TASK-7", "default"} == set(report.routes)


def test_secrets_in_a_source_give_way_in_all_that_is_kept(tmp_path: Path) -> None:
    planted = "ghp_Zx8Qw7Er6Ty5Ui4Op3As2Df1Gh0Jk9Lz8Xc7"
    put(tmp_path, "runs/executor/run-0042/DECISIONS.md", f"{DECISIONS}\n## {planted}\n\nIt is {planted}.\n")
    put(tmp_path, "timeline-memory.md", WORKER.replace('"station 14"', f'"{planted}"'))
    migrate("decisions-md", root=tmp_path)
    migrate("timeline-memory", root=tmp_path)
    assert planted.encode() not in b"".join(kept_bytes(tmp_path).values())


def test_templates_and_pages_that_show_how_a_memory_looks_are_no_memory(tmp_path: Path) -> None:
    put(tmp_path, ".templates/timeline-memory.md", WORKER)
    shown = WORKER.split("```yaml\n")[1].split("\n```")[0]
    put(tmp_path, "docs/timeline-memory.md", f"# Memories\n\n## Structure\n\n```yaml\n{shown}\n```\n")
    (report,) = migrate("timeline-memory", root=tmp_path).files
    assert (report.path, report.outcome) == ("docs/timeline-memory.md", "left")


def test_a_route_whose_journal_is_damaged_is_said_and_the_others_are_taken(tmp_path: Path) -> None:
    ralf.record_decision("TASK-42", "Keep it", root=tmp_path)
    journal = tmp_path / ".autonomous" / "context" / "journal" / "routes" / "TASK-42.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"Keep it", b"Keep at") * 2)
    put(tmp_path, "runs/executor/run-0042/DECISIONS.md", DECISIONS)
    put(tmp_path, "runs/executor/run-0043/DECISIONS.md", DECISIONS.replace("TASK-42", "TASK-43"))
    report = migrate("decisions-md", root=tmp_path)
    assert [(one.outcome, one.routes) for one in report.files] == [
        ("unreadable", ("TASK-42",)),
        ("imported", ("TASK-43",)),
    ]
    assert "TASK-42" in report.files[0].why
