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


@pytest.mark.parametrize(
    "text",
    [
        f"- {ENTRY}",
        f"# of run 7\n- {ENTRY}",
        f"---\n# of run 7\n---\ndecisions:\n- {ENTRY}---\n",
        "decisions:\n  DEC-1:\n    title: Scope\n    rationale: enough of it\n",
        "registry:\n  count: 1\n  decisions:\n  - id: DEC-1\n    title: Scope\n    rationale: enough of it\n",
        f"run: {{loop: 1}}\nentries:\n- {ENTRY}",
        '{"decisions": [{"id": "DEC-1", "title": "Scope", "rationale": "enough of it"}]}',
        "decisions:\n- decision_id: DEC-1\n  title: Scope\n  reason: enough\x85of it\n",
        f"decisions:\n- {ENTRY}notes: this is: no YAML\n",
    ],
)
def test_a_registry_may_be_shaped_otherwise(text: str) -> None:
    (found,) = registry.read(text).decisions
    assert (found.label, found.title, found.rationale) == ("DEC-1", "Scope", "enough of it")


OPTIONS = "  options_considered:\n  - {id: OPT-001, description: Write it all}\n  - {id: OPT-002, description: Stubs}\n"


@pytest.mark.parametrize(
    "entry",
    [
        f"{OPTIONS}  selected_option: OPT-002\n",
        f"{OPTIONS}  chosen_option: opt-002 (the smaller one)\n",
        f"{OPTIONS}  selected_option: {{id: OPT-002, reason: small}}\n",
        f"{OPTIONS}  selected: [OPT-002]\n",
        "  options: {OPT-001: Write it all, OPT-002: {description: Stubs}}\n  selected_option: OPT-002\n",
        "  options_considered: [Write it all, Stubs]\n  selected_option: Stubs\n",
        "  options_considered:\n  - {option: OPT-001, title: Write it all}\n  - {option: OPT-002, title: Stubs}\n"
        "  selected_option: OPT-002\n",
    ],
)
def test_the_selected_option_is_joined_whatever_names_it(entry: str) -> None:
    (found,) = registry.read(f"decisions:\n- id: DEC-1\n{entry}").decisions
    assert (statement_of(found), found.alternatives) == ("Stubs", ("Write it all",))


def test_of_options_of_which_none_was_selected_none_is_a_decision() -> None:
    found = registry.read(
        f"decisions:\n- id: DEC-1\n  title: Scope\n{OPTIONS}  selected_option: null\n  status: PROPOSED\n"
    )
    assert found.decisions == ()
    ((first, last, words),) = found.undecided
    assert (first, last) == (2, 8)
    assert "Write it all" in words


@pytest.mark.parametrize(
    ("alternatives", "told"),
    [
        ("[Redis, Files]", ("Redis", "Files")),
        ("Redis", ("Redis",)),
        ("{Redis: one more service}", ("Redis: one more service",)),
        ("[{name: Redis, rejected_because: one more service}]", ("Redis: one more service",)),
        (
            "['B) Redis → Rejected (one more service)', 'Files: Rejected (no locks)']",
            ("Redis: one more service", "Files: no locks"),
        ),
        ("['Rejected: one more service', 'Use SQLite ✅ Selected', 'Redis ❌ Rejected']", ("Redis",)),
        ("[{option: 'Pros: fast', outcome: considered}, {option: 'Cons: one more service', outcome: considered}]", ()),
    ],
)
def test_alternatives_may_be_texts_or_mappings_and_what_is_said_of_one_is_none(
    alternatives: str, told: tuple[str, ...]
) -> None:
    (found,) = registry.read(f"decisions:\n- {{id: DEC-1, title: Storage, alternatives: {alternatives}}}\n").decisions
    assert found.alternatives == told


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
