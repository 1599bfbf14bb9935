"""Bent documents of other tools: run folders, DECISIONS.md, registries, memories, budgets, tracking; see `fuzz`."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import ralf
from ralf.errors import RalfError
from ralf_integrations.blackbox5 import context_budget as budget, session_tracker
from ralf_migrations.importing import SOURCES, import_all
from ralf_migrations.reading import Tree, Unreadable

if TYPE_CHECKING:
    from tests.faults.fuzz import World

PLACES = {
    "runs/executor/run-0018/THOUGHTS.md": "run-folders",
    "runs/executor/run-0018/RESULTS.md": "run-folders",
    "runs/executor/run-0018/metadata.yaml": "run-folders",
    "runs/executor/run-0018/decision_registry.yaml": "run-folders",
    "runs/executor/run-0018/output.log": "run-folders",
    "runs/executor/run-0019/DECISIONS.md": "decisions-md",
    ".autonomous/memory/decisions/decision_registry.yaml": "decision-registry",
    ".autonomous/agents/gauge/timeline-memory.md": "timeline-memory",
    ".autonomous/RALF-CONTEXT.md": "ralf-context",
}
"""Where a document is put, and the source that finds it there."""


def document(world: World, rng: random.Random, data: bytes) -> None:
    """A document that another tool keeps is taken over or refused, every field accounted for, and stays as it is."""
    place = rng.choice(list(PLACES))
    source = SOURCES[PLACES[place]]
    base = world.root / "work"
    path = base / place
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    try:
        if rng.random() < 0.05:
            _take_over(world, PLACES[place], base)
        else:
            for found in source.find(Tree(base, world.store), True):
                reading = source.read(world.project, found)
                for part in reading.parts:
                    for event in part.transcript.events():
                        json.dumps([event.text, dict(event.input)], default=str).encode()
                assert all(reading.left)
        assert path.read_bytes() == data
    except Unreadable as error:
        raise RalfError(place, str(error)) from None
    finally:
        shutil.rmtree(base)


def _take_over(world: World, source: str, base: Path) -> None:
    try:
        with_it = import_all(world.project, source, (base,))
        for route in {route for file in with_it.files for route in file.routes}:
            ralf.get_context(route, root=world.root).render(400)
        kept = _kept(world.store / "journal")
        import_all(world.project, source, (base,))
        assert _kept(world.store / "journal") == kept, "a second migration wrote something"
    finally:
        world.reset()


def _kept(folder: Path) -> dict[str, int]:
    return {os.fspath(path): path.stat().st_size for path in folder.rglob("*.jsonl")}


def state_file(world: World, rng: random.Random, data: bytes) -> None:
    """A budget or a run's tracking of any shape is read, added to without losing a key, or refused and put aside."""
    run = world.root / "runs" / "run-1"
    run.mkdir(parents=True)
    path = run / rng.choice((budget.NAME, session_tracker.TRACKING))
    path.write_bytes(data)
    before = _tree(data)
    try:
        if path.name == budget.NAME:
            reading = {"current_tokens": 7, "max_tokens": 9, "percentage": 77.78, "timestamp": "2026-03-01T08:00:00Z"}
            aside = budget.write_state(path, {"max_tokens": 9, "thresholds": {}}, reading)
            assert budget.read_state(path).tokens == 7
            assert not aside or (run / aside).read_bytes() == data
            if before is None and data.strip():
                assert aside
        else:
            session_tracker.record_checkpoint(run, "cp-001", route="x")
        if before is not None:
            assert before.keys() <= json.loads(path.read_bytes()).keys()
    finally:
        shutil.rmtree(run.parent)


def _tree(data: bytes) -> dict[str, object] | None:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None


# ---- valid ones ----

_THOUGHTS = """\
# Thoughts - Run 18

**Task:** TASK-42: Read the gauges
**Status:** in_progress
**Started:** 2026-02-03T10:00:00Z

## Approach

The gauge at Hoek drifts by 2 cm; `src/gauge.py` rounds twice. --- see below

- [x] Look at `src/gauge.py`
- [ ] Measure again

<!-- fill in what you learned -->

## Next

[FILL_ME]
"""

_RESULTS = """\
# Results - TASK-42

**Status:** PARTIAL

| Check | Result |
|-------|--------|
| Tests | 12 passed |

Committed as `a1b2c3d4e5f6`. <promise>PARTIAL</promise>
"""

_DECISIONS = """\
# Decisions - TASK-42

## D-1: Storage

**Context:** the log grows
**Selected:** SQLite --- in WAL mode
**Rationale:** One file
**Alternatives:**
- Redis - Rejected (a service)
**Reversibility:** HIGH

## Decision 2: Poll

| Option | Pros | Cons |
|---|---|---|
| every minute | fresh | load |
| **every ten** | calm | late |

**Decision:** every ten

```yaml
decision: not one
```
"""

_METADATA = """\
run:
  id: run-0018
  agent: executor
  timestamp_start: "2026-02-03T10:00:00Z"
  timestamp_end: null
state:
  task_claimed: TASK-42
  task_status: partial
  files_modified: [src/gauge.py]
results: {status: partial, commit_hash: "a1b2c3d"}
"""

_REGISTRY = """\
registry: {total_decisions: 2}
run_id: run-0018
decisions:
- id: DEC-0001
  source_run: planner/run-0001
  timestamp: '2026-02-01T00:00:00Z'
  title: 'Decision 1: Scope'
  status: approved
  rationale: "all of it\\n\\n---\\n\\n## Technical"
  alternatives:
  - {option: half, outcome: 'rejected: slow'}
- id: DEC-0002
  options_considered:
    - {id: "OPT-001", description: "Write it all", cons: ["late"]}
    - {id: "OPT-002", description: "Write stubs"}
  selected_option: "OPT-002"
  assumptions: [{statement: "stubs do", risk_level: LOW}]
  reversibility: LOW
"""

_MEMORY = """\
# Gauge Worker Timeline Memory

**Injected via:** SessionStart hook

```yaml
timeline_memory:
  version: "1.0.0"
  agent: gauge-worker
reading_history:
  # - run_id: "run-example-1"
  - run_id: run-7
    decision: recommend
current_context: {last_read: null, next_in_queue: "station 12"}
work_queue:
  backlog: []
  in_progress: station 14
```

## Decisions

| Date | Decision | Reason |
|------|----------|--------|
| 2026-02-01 | Count lines | minutes lie |

## Long-Term Goals

1. **Read** every gauge (Status: active)
"""

_CONTEXT = """\
# RALF Context - Last Updated: 2026-02-01T17:20:00Z

## What Was Worked On This Loop (Planner Run 0073 - Loop 24)

**3. Decisions Made (1 total):**
- D-006: Count lines, not minutes

## What Should Be Worked On Next (Loop 25)

1. Calibrate Hoek

## Current Blockers

None
"""

_BUDGETS = (
    {
        "config": {"max_tokens": 200_000, "thresholds": {"subagent": 40, "hard_limit": 95}},
        "current": {"current_tokens": 90_000, "max_tokens": 200_000, "percentage": 45.0},
        "history": [{"current_tokens": 9, "percentage": 0.01, "timestamp": "2026-02-05T10:00:00Z"}],
    },
    {"thresholds": {"subagent": 40}, "current": {"current_tokens": 9}},
    {"max_tokens": 180_000, "subagent": 72_000, "hard_limit": 171_000, "usage": {"current_tokens": 9}},
)

_TRACKING = {
    "run_id": "run-1",
    "checkpoints": [{"checkpoint_id": "cp-000", "route": "x"}],
    "tool_calls": [{"tool": "Bash", "at": "2026-02-05T10:00:00Z"}],
}


@cache
def documents() -> Sequence[bytes]:
    """One of each that is read."""
    texts = (_THOUGHTS, _RESULTS, _DECISIONS, _METADATA, _REGISTRY, _MEMORY, _CONTEXT)
    return tuple(text.encode() for text in texts)


@cache
def state_files() -> Sequence[bytes]:
    """One of each that is written to."""
    return tuple(json.dumps(tree, indent=2).encode() for tree in (*_BUDGETS, _TRACKING))
