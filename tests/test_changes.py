"""What changed and what happened, in words: by subject, by decision, and never what only the cap has moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import ralf
import ralf.errors
from contexts import contexts, quick
from examples import examples
from ralf.brief.changes import SUBJECTS, Told, in_words, place, value
from ralf.format import merge
from ralf.format.codec import to_tree
from ralf.model import (
    BODY,
    ActiveWork,
    Body,
    Checkpoint,
    CommandFact,
    Decision,
    Facts,
    Folded,
    PathFact,
    RouteContext,
    Section,
    Todo,
)
from ralf.route.history import context_at, diff, log
from storekit import V100, copied, grow, route_file, write_session


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    number = write_session(root / "session.jsonl", 1_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root)
    ralf.record_decision("tide", "Keep the old columns", rationale="readers depend on them", root=root)
    grow(root / "session.jsonl", 1_000, number)
    ralf.checkpoint("tide", root / "session.jsonl", root=root)
    ralf.record_decision("tide", "Use WAL", alternatives=["a server: too much"], root=root)
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    copied(made, tmp_path / "project")
    return tmp_path / "project"


def words(before: RouteContext, after: RouteContext) -> list[tuple[str, str, str, str]]:
    return [(told.subject, told.what, told.id, told.text) for told in in_words(before, after)]


# ---- in words ----


@given(contexts, contexts)
@settings(quick, max_examples=examples(25))
def test_any_two_contexts_differ_by_single_lines_in_the_order_of_subjects(one: Any, other: Any) -> None:
    told = in_words(one, other)
    assert [SUBJECTS.index(t.subject) for t in told] == sorted(SUBJECTS.index(t.subject) for t in told)
    assert all("\n" not in t.text and len(t.text) < 2_000 for t in told)
    assert in_words(one, one) == ()


def test_decisions_that_share_an_id_are_told_apart() -> None:
    one, two = Decision("DEC-001", decision="Use Flask"), Decision("DEC-001", decision="Use tabs")
    assert words(RouteContext(decisions=(one, two)), RouteContext(decisions=(one, two))) == []
    assert words(RouteContext(decisions=(one,)), RouteContext(decisions=(one, two))) == [
        ("decisions", "added", "DEC-001", "Use tabs.")
    ]


def test_whatever_improved_a_checkpoint_is_named_in_few_words() -> None:
    before = RouteContext(checkpoint_history=(Checkpoint("cp-001"),))
    after = RouteContext(checkpoint_history=(Checkpoint("cp-001", summarizer="x" * 5_000),))
    (told,) = words(before, after)
    assert len(told[3]) < 2_000


def test_decisions_are_told_one_by_one() -> None:
    one, two = Decision("DEC-001", decision="Use Flask"), Decision("DEC-002", decision="Use tabs")
    before = RouteContext(decisions=(one, two, Decision("DEC-003", decision="Gone by hand")))
    replaced = replace(one, status="superseded", superseded_by="DEC-004")
    new = Decision(
        "DEC-004", decision="Use FastAPI", rationale="async", alternatives=("Flask: no async",), supersedes="DEC-001"
    )
    after = RouteContext(decisions=(replaced, replace(two, rationale="it is the rule"), new))
    assert words(before, after) == [
        ("decisions", "superseded", "DEC-001", "Use Flask (superseded by DEC-004)"),
        ("decisions", "changed", "DEC-002", "rationale: it is the rule"),
        ("decisions", "added", "DEC-004", "Use FastAPI. Because: async. Rejected: Flask: no async. Replaces DEC-001."),
        ("decisions", "gone", "DEC-003", "Gone by hand"),
    ]
    assert ("decisions", "active again", "DEC-001", "Use Flask") in words(after, before)


def test_work_is_told_field_by_field_and_lists_item_by_item() -> None:
    before = RouteContext(
        goal="a", active_work=ActiveWork(work_status="in_progress", next_steps=("x", "y"), todos=(Todo("t"),))
    )
    after = RouteContext(
        goal="b", active_work=ActiveWork(work_status="done", next_steps=("y", "z"), todos=(Todo("t", "completed"),))
    )
    assert words(before, after) == [
        ("goal", "changed", "goal", "a → b"),
        ("work", "changed", "work_status", "work status: in_progress → done"),
        ("work", "added", "todos", "todos: t [completed]"),
        ("work", "gone", "todos", "todos: t"),
        ("work", "added", "next_steps", "next steps: z"),
        ("work", "gone", "next_steps", "next steps: x"),
    ]


def test_facts_are_counted_and_the_newest_named_and_what_is_only_folded_is_not_told() -> None:
    paths = tuple(PathFact(f"src/{n}.py", ("edited",)) for n in range(9))
    before = RouteContext(facts=Facts(commands=(CommandFact("make"),)))
    after = RouteContext(facts=Facts(paths=paths, commands=(CommandFact("make", "failed"),)))
    shown = ", ".join(f"src/{n}.py" for n in range(3, 9))
    assert words(before, after) == [
        ("facts", "added", "paths", f"9 paths: {shown} and 3 more"),
        ("facts", "changed", "commands", "1 command: make"),
    ]
    assert words(after, replace(RouteContext(), folded=Folded(fact_count=10))) == []


def test_checkpoints_that_the_cap_moved_out_are_not_told() -> None:
    def history(*numbers: int) -> RouteContext:
        entries = tuple(Checkpoint(f"cp-{n:03d}", summary_ref=f"### Checkpoint {n}: t{n}") for n in numbers)
        return RouteContext(
            checkpoint_history=entries, body=Body(sections=tuple(Section(n, f"t{n}", "") for n in numbers))
        )

    assert words(history(1, 2, 3), history(2, 3, 4)) == [("checkpoints", "added", "cp-004", "t4")]
    assert words(history(2, 3, 4), history(1, 2, 3)) == [("checkpoints", "gone", "cp-004", "t4")]
    assert words(history(998, 999, 1000), history(999, 1000)) == []


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (["decisions", "DEC-001", "superseded_by"], "DEC-001 superseded by"),
        (["active_work", "next_steps"], "next steps"),
        ([BODY, "sections", "3", "text"], "checkpoint 3 text"),
        ([BODY, "sections", "### Mine"], "section Mine"),
        ([BODY, "before"], "text above the history"),
        (["reviewer", "name"], "reviewer name"),
        ([], ""),
    ],
)
def test_a_place_is_named_as_a_person_would(at: list[str], said: str) -> None:
    assert place(at) == said


def test_long_values_are_cut_and_empty_ones_are_nothing() -> None:
    assert value([]) == value(None) == value("") == "nothing"
    assert value(["a", "b\nc"]) == "a; b c"
    assert len(value("word " * 1000)) <= 300


# ---- between two moments of a route ----


def test_without_moments_it_is_from_the_checkpoint_before_the_newest_to_now(project: Path) -> None:
    found = diff("tide", root=project)
    assert (found.before, found.after, found.from_revision, found.to_revision) == ("cp-001", "now", 1, 4)
    added = {told.id: told.text for told in found.words if told.subject == "decisions" and told.what == "added"}
    assert "Use WAL. Rejected: a server: too much." in added.values()
    assert (
        Told("checkpoints", "added", "cp-002", added and context_at("tide", "2", root=project).body.sections[0].title)
        in found.words
    )


@pytest.mark.parametrize(
    ("one", "other"), [("cp-001", "cp-002"), ("r4", "r0"), ("2", "r2"), ("cp-2", "now"), ("r3", "r3")]
)
def test_the_changes_applied_to_the_one_moment_are_the_other(project: Path, one: str, other: str) -> None:
    path = route_file(project, "tide")
    path.write_text(path.read_text(encoding="utf-8").replace('goal: "', 'goal: "By hand: ', 1), encoding="utf-8")
    found = diff("tide", one, other, root=project)
    before, after = (
        ralf.get_context("tide", root=project) if moment == "now" else context_at("tide", moment, root=project)
        for moment in (one, other)
    )
    assert merge.apply(to_tree(before), found.changes) == to_tree(after)
    assert (not found.words) == (one == other)


def test_a_moment_may_be_named_in_two_ways_and_a_route_s_beginning_is_r0(project: Path) -> None:
    assert diff("tide", "2", "cp-002", root=project).words == ()
    (first, *_) = diff("tide", "r0", "r1", root=project).words
    assert (first.subject, first.what) == ("goal", "added")


def test_a_decision_that_the_cap_moved_out_has_not_gone(tmp_path: Path) -> None:
    for number in range(16):
        ralf.record_decision("tide", f"Choice {number}", rationale=f"because {number} " * 700, root=tmp_path)
    assert ralf.get_context("tide", root=tmp_path).folded.rationale_count
    found = diff("tide", "r4", "now", root=tmp_path)
    assert [told.what for told in found.words] == ["added"] * 12
    back = diff("tide", "now", "r4", root=tmp_path)
    assert [told.what for told in back.words] == ["gone"] * 12


def test_a_moment_that_is_none_is_not_found(project: Path) -> None:
    with pytest.raises(ralf.errors.NotFound, match="has no revision r17"):
        diff("tide", "r17", root=project)
    with pytest.raises(ralf.errors.RouteNotFound):
        diff("tides", root=project)


# ---- the log ----


def test_the_log_tells_every_record_newest_first_with_who_and_what(project: Path) -> None:
    path = route_file(project, "tide")
    text = path.read_text(encoding="utf-8").replace("readers depend on them", "the archive needs them", 1)
    path.write_text(text.replace('goal: "', 'goal: "By hand: ', 1), encoding="utf-8")
    ralf.record_decision("tide", "Use tabs", origin="agent", root=project)
    events = log("tide", root=project)
    assert [event.revision for event in events] == [6, 5, 4, 3, 2, 1]
    assert [event.kind for event in events] == ["decision", "edit", "decision", "checkpoint", "decision", "checkpoint"]
    assert [event.who for event in events] == ["agent", "human-edit", "unknown", "agent", "unknown", "agent"]
    old = next(d.id for d in ralf.get_context("tide", root=project).decisions if d.decision == "Keep the old columns")
    assert sorted(events[1].text.split("; ")) == sorted([f"{old} rationale", "goal"])
    assert events[0].text == "Use tabs"
    assert events[3].id == "cp-002"
    assert all(event.time for event in events)
    assert log("tide", limit=2, root=project) == events[:2]


def test_an_import_and_a_kind_of_record_that_nobody_knows_are_told_too(tmp_path: Path) -> None:
    from ralf.maintenance import ownership
    from ralf.maintenance.trust import accept_route
    from ralf.project import Project
    from ralf.storage import journal
    from ralf.storage.journal import Record

    ownership.init(Project(tmp_path), share=False)
    path = route_file(tmp_path, "api")
    path.parent.mkdir(exist_ok=True)
    path.write_text(V100.replace("api-refactoring", "api"), encoding="utf-8")
    assert log("api", root=tmp_path) == []  # it has no journal yet
    accept_route(Project(tmp_path), "api")
    ralf.record_decision("api", "Use tabs", root=tmp_path)
    project = Project(tmp_path)
    head = project.store.head("routes/api")
    record = Record(3, "annotation", {"id": "DEC-001", "timestamp": "2026-01-01T00:00:00Z", "because": "why not"})
    journal.append(project.store, "api", record, id="x", after=head)
    newest, _, first = log("api", root=tmp_path)
    assert (newest.kind, newest.id, newest.text) == ("annotation", "DEC-001", "why not")
    assert (first.who, first.text) == ("import", "1 decisions, 3 checkpoints")
