"""Run folders in which nobody has written anything, as the tools that make them leave them: by kind, their files."""

from __future__ import annotations

_CORE_THOUGHTS = """\
# RALF-CORE Run 20260209_125038 - THOUGHTS

**Started:** 2026-02-09T12:50:40Z
**Action:** commit_changes
**Priority:** medium

## Context from Previous Run
- Previous: run-20260209_193851 (status: )
run-20260209_193851

## Current State
- Active tasks: 0
- Git changes: 1
- Recent runs: 5

## Plan
1. Activate BB5 Core Agent Team
2. Execute: commit_changes
3. Log all decisions and learnings
4. Complete and exit

## Execution Log

## 12:50:40 - Manual Action Required
No AI provider configured (GLM or Claude). Cannot spawn agent teams automatically.

Action required: commit_changes
Priority: medium
"""
_CORE_DECISIONS = """\
# RALF-CORE Run 20260209_125038 - DECISIONS

**Started:** 2026-02-09T12:50:40Z

## Cycle Decision
**Decision:** Execute commit_changes
**Rationale:** Based on BB5 state analysis
**Priority:** medium
"""
_CORE_RESULTS = """\
# RALF-CORE Run 20260209_125038 - RESULTS

**Started:** 2026-02-09T12:50:40Z
**Status:** IN_PROGRESS

## Action Executed
commit_changes

## Outcomes

## Next Steps
"""
_CORE_CONTEXT = """\
run:
  id: 20260209_125038
  action: commit_changes
  active_tasks: 0
started: 2026-02-09T12:50:40Z
"""
_UNFILLED_THOUGHTS = """\
# THOUGHTS
<!-- RALF_TEMPLATE: UNFILLED -->

## Task
FILL_ME

## Reasoning
- FILL_ME
"""
_UNFILLED_RESULTS = """\
<!-- RALF_TEMPLATE: UNFILLED
Describe what was done here,
in your own words -->
# RESULTS

**Status:** FILL_ME

| File | Change | Notes |
|------|--------|-------|
| [path] | added/modified | [notes] |
"""
_PROMPT = "You are the executor. Do the work that is described in the task, and say when it is done.\n"
_HOOK_THOUGHTS = """\
# THOUGHTS - EXECUTOR Run run-20260203-233129

**Project:** harbour
**Agent:** executor
**Started:** 2026-02-03 23:31:29

---

## State Assessment

### Current System Status
- **Active Tasks:**
- **Queue Depth:**

### Context
- **Git Branch:** main
- **Git Commit:** 22a4f8a

---

## Analysis

[Agent reasoning goes here]

## Next Steps

1.
2.

---

*Hook-generated template. Edit as needed.*
"""
_HOOK_RESULTS = """\
# RESULTS - EXECUTOR Run run-20260203-233129

**Status:** in_progress
**Completed:**

## Summary

[What was accomplished in this run]

## Tasks Completed

- [ ]

## Tasks Created

-

## Blockers

- None
"""
_HOOK_DECISIONS = """\
# DECISIONS - EXECUTOR Run run-20260203-233129

## Decisions Made

### D-001: [Decision Title]

**Context:**
**Decision:**
**Rationale:**
**Consequences:**
"""
_HOOK_METADATA = """\
run:
  id: "run-20260203-233129"
  agent: executor
  timestamp_start: "2026-02-03T23:31:29+07:00"
  timestamp_end: null
state:
  queue_depth: 0
  git_branch: main
results:
  status: "in_progress"
  summary: ""
  tasks_completed: []
  blockers: []
decisions: []
learnings: []
"""
_FORM_RESULTS = """\
# Results: {{RUN_ID}}
**Started:** {{START_TIME}}

## Task Summary

**Task ID:** {{TASK_ID}}
**Status:** [completed/partial/blocked]

## Success Criteria

- [ ] Criterion 1
- [ ] Criterion 2

## Outcome

[What was accomplished]

## Metrics

- Lines added: [N]
- Files touched: [N]
"""
_FORM_ASSUMPTIONS = """\
# Assumptions: {{RUN_ID}}

## Verified Assumptions

| Assumption | Confidence | Verified | Notes |
|------------|------------|----------|-------|
| [Assumption] | high/medium/low | yes/no | [Notes] |
"""

SKELETONS = {
    "of the core loop": {
        "THOUGHTS.md": _CORE_THOUGHTS,
        "DECISIONS.md": _CORE_DECISIONS,
        "RESULTS.md": _CORE_RESULTS,
        "context.yaml": _CORE_CONTEXT,
        "status.txt": "PENDING\n",
    },
    "to be filled in": {"THOUGHTS.md": _UNFILLED_THOUGHTS, "RESULTS.md": _UNFILLED_RESULTS, "prompt.md": _PROMPT},
    "of the session's hook": {
        "THOUGHTS.md": _HOOK_THOUGHTS,
        "RESULTS.md": _HOOK_RESULTS,
        "DECISIONS.md": _HOOK_DECISIONS,
        "metadata.yaml": _HOOK_METADATA,
    },
    "with forms": {"RESULTS.md": _FORM_RESULTS, "ASSUMPTIONS.md": _FORM_ASSUMPTIONS},
    "with bare headings": {
        "THOUGHTS.md": "# THOUGHTS - TASK-7\n\n## Reasoning\n",
        "RESULTS.md": "",
        "DECISIONS.md": "# D\n",
    },
}
