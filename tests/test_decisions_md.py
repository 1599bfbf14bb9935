"""DECISIONS.md in the forms in which agents write it: invented texts, and the real files where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralf_integrations.blackbox5.runs.decisions import WrittenDecision, decision_tree, decisions_in, statement_of

REAL = Path(__file__).parents[2] / "shared" / "data" / "blackbox5"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="the real files of ../shared are not here")


def only(text: str) -> WrittenDecision:
    (found,) = decisions_in(text)
    return found


NUMBERED = """\
# Decisions - TASK-7

## Decision 1: Storage of Sessions

**Context:** Sessions have to survive a restart.

**Options Considered:**
1. Redis - fast, one more service
2. SQLite - one file
3. Memory only

**Selected:** SQLite in WAL mode

**Rationale:**
- No service to run
- A copy of the file is a backup

**Reversibility:** HIGH - the port stays

---

## Decision 2: Nothing but the Title
"""


def test_a_numbered_decision_is_told_with_its_reason_its_options_and_its_lines() -> None:
    first, second = decisions_in(NUMBERED)
    assert (first.first_line, first.last_line, first.label) == (3, 18, "1")
    assert first.title == "Storage of Sessions"
    assert first.text == "SQLite in WAL mode"
    assert first.rationale == "- No service to run\n- A copy of the file is a backup"
    assert first.alternatives == ("Redis - fast, one more service", "Memory only")
    assert first.fields == {"context": "Sessions have to survive a restart.", "reversibility": "HIGH - the port stays"}
    assert (second.title, second.text, second.first_line, second.last_line) == ("Nothing but the Title", "", 22, 22)


@pytest.mark.parametrize(
    ("heading", "label", "title"),
    [
        ("## Decision 3: Use tabs", "3", "Use tabs"),
        ("### Decision 3 - Use tabs", "3", "Use tabs"),
        ("## Decision #3 — Use tabs", "3", "Use tabs"),
        ("## DEC-003: Use tabs", "DEC-003", "Use tabs"),
        ("## D-9: Use tabs", "D-9", "Use tabs"),
        ("# ADR-0004: Use tabs", "ADR-0004", "Use tabs"),
        ("## Decision: Use tabs", "", "Use tabs"),
        ("## **Decision 3: Use tabs**", "3", "Use tabs"),
        ("## 3. Use tabs", "3", "Use tabs"),
        ("## Use tabs", "", "Use tabs"),
    ],
)
def test_a_heading_may_name_a_decision_in_many_ways(heading: str, label: str | None, title: str | None) -> None:
    found = only(f"# Log\n\n{heading}\n\n**Rationale:** Everybody does.\n")
    if label is not None:
        assert (found.label, found.title, found.rationale) == (label, title, "Everybody does.")


@pytest.mark.parametrize(
    "choice",
    [
        "**Decision:** Use tabs",
        "**Decision**: Use tabs",
        "**Selected:**\nUse tabs",
        "**Selected Option:**\n\nUse tabs",
        "### Decision\n\n**Use tabs**",
        "- **Decision:** Use tabs",
        "Use tabs",
        "- Use tabs",
    ],
)
def test_the_choice_stands_in_a_field_below_a_heading_or_is_the_next_line_or_bullet(choice: str) -> None:
    found = only(f"## Decision 1: Indentation\n\n{choice}\n\n**Rationale:** Shorter.\n")
    assert statement_of(found) == "Indentation: Use tabs"
    assert found.rationale == "Shorter."


def test_options_with_ids_are_joined_with_the_one_that_is_named() -> None:
    text = (
        "## DEC-001: Tests\n\n**Options Considered:**\n- **OPT-001:** By hand\n  - Pros: cheap\n"
        "  - Cons: slow, boring\n"
        "- **OPT-002:** By machine\n  - Pros: again and again\n\n**Selected Option:** OPT-002\n"
    )
    found = only(text)
    assert found.text == "By machine"
    assert found.alternatives == ("By hand: Pros: cheap; Cons: slow, boring",)


@pytest.mark.parametrize(
    ("options", "alternatives"),
    [
        ("**Alternatives considered:**\n- **Wait** - Rejected due to time\n"
        "- **Ask** - Not needed (clear)", ["Wait - Rejected due to time", "Ask - Not needed (clear)"]),
        ("**Alternatives:**\n- A) Wait → Rejected (too long)", ["A) Wait → Rejected (too long)"]),
        ("**Alternatives Considered:**\n1. **Wait**\n   - **Rejected:** No time\n"
        "   - **Reason:** Release", ["Wait: Rejected: No time; Reason: Release"]),
        ("**Alternative Considered:** Wait\n\n**Why Alternative Rejected:**\n- No time\n"
        "- Release", ["Wait: No time; Release"]),
        ("**Alternatives:** None", []),
        ("**Options:**\n- Wait: needs time\n- Go on: at once", ["Wait: needs time"]),
        ("### Alternatives Considered\n**Option A: Wait**\n- Cons: No time\n- **Decision:** REJECT\n\n"
        "**Option B: Go on**\n"
         "- **Decision:** SELECTED", ["Wait: Cons: No time; Decision: REJECT"]),
    ],
)  # fmt: skip
def test_alternatives_are_told_with_why_they_were_rejected(options: str, alternatives: list[str]) -> None:
    found = only(f"## Decision 1: Pace\n\n**Decision:** Go on\n\n**Rationale:** Because.\n\n{options}\n")
    assert list(found.alternatives) == alternatives
    assert found.text == "Go on"


def test_three_hyphens_within_a_text_stay_and_the_rule_behind_it_goes() -> None:
    text = (
        "## Decision 1: Front matter\n\n**Decision:** Split at the first `---` only\n\n**Rationale:**\n\n"
        "```yaml\n---\na: 1\n---\n```\n\n"
        "- a --- b\n\n---\n\n## Decision 2: Next\n\n**Decision:** Done\n\n---\n\n*End of document.*\n"
    )
    first, second = decisions_in(text)
    assert first.text == "Split at the first `---` only"
    assert first.rationale == "```yaml\n---\na: 1\n---\n```\n\n- a --- b"
    assert second.text == "Done"


def test_headings_and_fields_in_a_fence_or_a_comment_are_no_decisions() -> None:
    text = (
        "# Decisions\n\n```markdown\n## Decision 1: Example\n**Decision:** Not me\n```\n\n"
        "<!--\n## Decision 2: Hidden\n**Decision:** Nor me\n-->\n"
    )
    assert decisions_in(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# DECISIONS - TASK-1\n\n**Started:** 2026-01-01T00:00:00Z\n\n## Decisions Made\n",
        "# Decisions\n<!-- RALF_TEMPLATE: UNFILLED -->\n\n## Decision 1: FILL_ME\n\n**Context:** FILL_ME\n"
        "**Decision:** FILL_ME\n",
        "# Decisions\n\n## Decision 1: [Title]\n\n**Decision:** [What was decided]\n**Rationale:** [Why]\n",
        "# Decisions\n\n## Cycle Decision\n**Decision:** Execute tidy\n"
        "**Rationale:** Based on BB5 state analysis\n**Priority:** low\n",
        "# Decisions\n\n| Decision | Rationale |\n|---|---|\n| | |\n| TBD | - |\n",
        "# Decisions\n\n## Decisions Made\n\n- None\n",
        "# Decisions\n\nNo decisions were necessary.\n",
    ],
)
def test_what_a_template_or_the_loop_wrote_is_no_decision(text: str) -> None:
    assert decisions_in(text) == []


def test_the_rows_of_a_table_are_decisions_where_nothing_else_is() -> None:
    text = (
        "# Decisions\n\n| ID | Decision | Choice | Rationale | Status |\n|----|---|---|---|---|\n"
        "| D-1 | Format | YAML | Read by people | Applied |\n| D-2 | Place | | Near the code | Rejected |\n"
    )
    first, second = decisions_in(text)
    assert (statement_of(first), first.label, first.rationale, first.first_line) == (
        "Format: YAML",
        "D-1",
        "Read by people",
        5,
    )
    assert (statement_of(second), decision_tree(second)["status"]) == ("Place", "dropped")


def test_items_with_labels_and_items_below_a_heading_of_decisions_count() -> None:
    labelled = (
        "# Context\n\n**D-009: Keep the queue short**\n- Rationale: Stale tasks\n- Impact: Less waste\n\nNo more.\n"
    )
    found = only(labelled)
    assert (found.label, found.title, found.rationale) == ("D-009", "Keep the queue short", "Stale tasks")
    assert found.fields == {"Impact": "Less waste"}
    listed = "## Decisions Made\n\n1. **Use tabs** - shorter\n2. Keep the log\n   - Rationale: It is read\n"
    assert [(one.title, one.rationale) for one in decisions_in(listed)] == [
        ("Use tabs", "shorter"),
        ("Keep the log", "It is read"),
    ]


@needs_real
@pytest.mark.parametrize(
    ("run", "count"),
    [
        ("architect__run-0003", 4),
        ("architect__run-integration-test", 4),
        ("executor__run-0006", 7),
        ("executor__run-0018", 6),
        ("executor__run-0046", 5),
        ("executor__run-0049", 5),
        ("other__run-20260207_230634", 3),
        ("planner__run-0026", 5),
        ("planner__run-0042", 7),
        ("planner__run-0071", 3),
        ("skeleton__run-20260209_125038", 0),
        ("skeleton__run-20260209_163419-TASK-001-B-design-interfaces", 0),
    ],
)
def test_decisions_of_real_runs_are_counted_right_and_have_their_choice_and_reason(run: str, count: int) -> None:
    found = decisions_in((REAL / "runs" / run / "DECISIONS.md").read_text())
    assert len(found) == count
    assert all(one.text and one.rationale and one.label for one in found if one.title != "Analysis Over Planning")
