"""Decision registries, of a run and of a project: invented ones, and the real ones where they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ralf.document.guarded_yaml import BadYaml
from ralf_integrations.blackbox5.runs import registry
from ralf_integrations.blackbox5.runs.decisions import decision_tree, statement_of

REAL = Path(__file__).parents[2] / "shared" / "data" / "blackbox5" / "decision_registry"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="the real files of ../shared are not here")

OF_A_RUN = """\
run_id: "run-7"
task_id: "TASK-9"
registry:
  total_decisions: 5
decisions:
  - id: "DEC-7-001"
    timestamp: "2026-01-31T04:04:00Z"
    phase: "BUILD"
    context: "The import fails"
    options_considered:
      - id: "OPT-001"
        description: "Write it all"
        pros: ["whole"]
        cons: ["large", "late"]
      - id: "OPT-002"
        description: "Write stubs"
    selected_option: "OPT-002"
    rationale: "a --- b

      ---

      c"
    reversibility: "LOW"
    status: "DECIDED"

  - id: "DEC-7-002"
    selected_option: "Go on as it is"
    status: "ROLLED_BACK"
# Example:
#   - id: "x"
metadata: {}
"""


def test_what_was_decided_is_what_the_selected_option_says() -> None:
    found = registry.read(OF_A_RUN)
    first, second = found.decisions
    assert (found.task, len(found.decisions)) == ("TASK-9", 2)
    assert statement_of(first) == "Write stubs"
    assert first.alternatives == ("Write it all: large; late",)
    assert first.rationale == "a --- b\n---\nc"
    assert (first.first_line, first.last_line) == (6, 24)
    assert first.fields["phase"] == "BUILD"
    assert (statement_of(second), second.first_line, second.last_line) == ("Go on as it is", 26, 28)
    tree = decision_tree(second, "runs/executor/run-7", origin="import")
    assert (tree["label"], tree["status"]) == ("runs/executor/run-7#DEC-7-002", "reversed")


@pytest.mark.parametrize(
    "text", ["decisions: []\n", "decisions:\n", "run:\n  loop: 3\ndecisions: []\nmetadata: {total_decisions: 9}\n"]
)
def test_a_registry_without_decisions_has_none_whatever_it_counts(text: str) -> None:
    assert registry.read(text).decisions == ()


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "decision: x\n", "decisions: text\n", "a: &x 1\ndecisions: [*x]\n"])
def test_what_is_no_registry_is_refused(text: str) -> None:
    with pytest.raises(BadYaml):
        registry.read(text)


ENTRY = "id: DEC-1\n  title: Scope\n  rationale: enough of it\n"


OPTIONS = "  options_considered:\n  - {id: OPT-001, description: Write it all}\n  - {id: OPT-002, description: Stubs}\n"


def test_of_options_of_which_none_was_selected_none_is_a_decision() -> None:
    found = registry.read(
        f"decisions:\n- id: DEC-1\n  title: Scope\n{OPTIONS}  selected_option: null\n  status: PROPOSED\n"
    )
    assert found.decisions == ()
    ((first, last, words),) = found.undecided
    assert (first, last) == (2, 8)
    assert "Write it all" in words


def test_of_a_registry_with_an_entry_that_is_no_yaml_the_others_are_read() -> None:
    found = registry.read(f"run_id: r-1\ndecisions:\n- {ENTRY}- id: [DEC-2\n- id: DEC-3\n  title: Gauges\n")
    assert [(one.label, one.first_line, one.last_line) for one in found.decisions] == [("DEC-1", 3, 5), ("DEC-3", 7, 8)]
    ((first, last, _),) = found.broken
    assert (first, last, found.header) == (6, 6, {"run_id": "r-1"})


def test_entries_that_stand_on_one_line_have_words_of_their_own() -> None:
    found = registry.read('{"decisions": [{"id": "A", "title": "Scope"}, {"id": "B", "title": "Gauges"}]}')
    assert found.words == ("id: A\ntitle: Scope", "id: B\ntitle: Gauges")


@pytest.mark.ci
@needs_real
def test_the_real_registries_are_read_whole() -> None:
    counts = {path.stem: len(registry.read(path.read_text()).decisions) for path in REAL.glob("*.yaml")}
    assert counts["project"] == 864
    assert sum(counts.values()) == 864 + 3
    found = registry.read((REAL / "project.yaml").read_text()).decisions
    entries = yaml.load((REAL / "project.yaml").read_text(), yaml.CSafeLoader)["decisions"]
    lines = (REAL / "project.yaml").read_text().splitlines()
    for one, entry in zip(found, entries, strict=True):
        assert (one.label, one.title) == (entry["id"], entry["title"])
        assert one.rationale == (entry["rationale"] or "").strip()
        assert lines[one.first_line - 1] == f"- id: {one.label}"
