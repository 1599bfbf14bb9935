"""What an import comes to: new tasks, changes there and here, dependencies, circles; and a list imported twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import storekit
from examples import examples
from ralf.errors import Damaged, UsageError
from ralf.tasks import store
from ralf.tasks.claims import claim
from ralf.tasks.editing import edit
from ralf.tasks.model import Claim, Task, TaskState
from ralf_migrations.task_import import FROM, ImportReport, import_tasks, plan_import
from ralf_migrations.task_lists import ImportedTask


def there(id_: str, **fields: Any) -> ImportedTask:
    said = {name: fields.pop(name) for name in ("parent", "summary", "reason", "is_deleted") if name in fields}
    return ImportedTask("beads", Task(id_, fields.pop("title", f"Do {id_}"), **fields), **said)


def applied(plan: ImportReport, states: Iterable[TaskState] = ()) -> list[TaskState]:
    """The tasks after an import."""
    tasks = {state.task.id: state for state in states}
    for step in plan.steps:
        id_, changes = step.id, step.changes
        state = tasks.get(id_, TaskState(Task(id=id_)))
        said = {name: changes[name] for name in ("summary", "reason", "progress") if name in changes}
        fields = {name: value for name, value in changes.items() if name not in ("extra", *said)}
        extra = {**state.task.extra, **changes.get("extra", {})}
        tasks[id_] = replace(
            state, task=replace(state.task, **fields, extra={k: v for k, v in extra.items() if v}), **said
        )
    return list(tasks.values())


def keys(states: Sequence[TaskState]) -> dict[str, Task]:
    return {str(state.task.extra[FROM]).removeprefix("beads:"): state.task for state in states}


def edited(states: Sequence[TaskState], id_: str, **fields: Any) -> list[TaskState]:
    """The tasks after somebody has changed one of them here."""
    return [
        replace(state, task=replace(state.task, **fields)) if state.task.extra.get(FROM) == f"beads:{id_}" else state
        for state in states
    ]


def test_a_new_list_gives_new_tasks_with_ids_of_their_own_and_translated_dependencies() -> None:
    plan = plan_import([there("2", after=("1",), priority=8), there("1", status="completed", summary="done")], [])
    states = applied(plan)
    made = keys(states)
    assert [step.listed.task.id for step in plan.steps] == ["1", "2"]  # what is waited for comes first
    assert made["2"].after == (made["1"].id,)
    assert (made["2"].priority, made["1"].status) == (8, "completed")
    assert made["1"].created_by == "import"
    assert all(task.id.startswith("TASK-") and 10 < len(task.id) < 14 for task in made.values())
    assert {state.task.status: state.summary for state in states}["completed"] == "done"
    assert [step.what for step in plan.steps] == ["added", "added"]


def test_what_changed_there_is_taken_what_changed_here_stays_and_what_changed_on_both_sides_is_reported() -> None:
    states = applied(plan_import([there("1"), there("2"), there("3")], []))
    states = edited(edited(states, "2", title="Mine"), "3", title="Mine", priority=9)
    plan = plan_import([there("1", title="Theirs"), there("2"), there("3", title="Theirs", text="new")], states)
    changes = {one.listed.task.id: {k: v for k, v in one.changes.items() if k != "extra"} for one in plan.steps}
    assert changes == {"1": {"title": "Theirs"}, "2": {}, "3": {"text": "new"}}
    assert [step.kept for step in plan.steps] == [(), (), ("title",)]
    after = applied(plan, states)
    assert keys(after)["3"].title == "Mine"
    again = plan_import([there("1", title="Theirs"), there("2"), there("3", title="Theirs", text="new")], after)
    assert not any(step.changes for step in again.steps)
    assert not any(step.kept for step in again.steps)


def test_a_status_goes_forward_only() -> None:
    def status(before: str, here: str, now: str) -> str:
        states = edited(applied(plan_import([there("1", status=before)], [])), "1", status=here)
        return applied(plan_import([there("1", status=now)], states), states)[0].task.status

    assert status("pending", "pending", "completed") == "completed"
    assert status("pending", "pending", "failed") == "failed"
    assert status("failed", "failed", "pending") == "pending"  # only the list had said that it failed
    assert status("pending", "failed", "pending") == "failed"
    assert status("pending", "failed", "completed") == "completed"
    assert status("pending", "completed", "pending") == "completed"
    assert status("completed", "completed", "pending") == "completed"
    assert status("pending", "cancelled", "completed") == "cancelled"
    assert status("completed", "pending", "completed") == "pending"  # somebody opened it again here
    states = edited(applied(plan_import([there("1")], [])), "1", status="failed", extra={FROM: "beads:1"})
    assert "status" not in plan_import([there("1")], states).steps[0].changes  # how it stood there is not known


def test_a_number_that_ended_here_and_was_given_to_another_task_there_is_a_new_task() -> None:
    ended = edited(applied(plan_import([there("1", text="Of oak.")], [])), "1", status="completed")
    reworded = plan_import([there("1", title="Do it all", text="Of oak.")], ended)
    assert [step.what for step in reworded.steps] == ["updated"]
    plan = plan_import([there("1", title="Paint it", text="Blue."), there("2", after=("1",))], ended)
    assert [(step.what, step.listed.task.title) for step in plan.steps] == [("added", "Paint it"), ("added", "Do 2")]
    assert plan.steps[1].changes["after"] == (plan.steps[0].id,)
    after = applied(plan, ended)
    assert [state.task.status for state in after] == ["completed", "pending", "pending"]
    again = plan_import([there("1", title="Paint it", text="Blue."), there("2", after=("1",))], after)
    assert not any(step.changes for step in again.steps)


def test_a_task_that_was_deleted_there_is_not_added_and_one_that_is_here_is_cancelled() -> None:
    gone = there("1", status="cancelled", is_deleted=True)
    plan = plan_import([gone, there("2", after=("1",))], [])
    assert [step.listed.task.id for step in plan.steps] == ["2"]
    assert list(plan.problems) == ["beads:2: waits for beads:1, which was deleted there: left out"]
    states = applied(plan_import([there("1"), there("2", after=("1",))], []))
    made = keys(applied(plan_import([gone, there("2", after=("1",))], states), states))
    assert (made["1"].status, made["2"].after) == ("cancelled", ())


def test_a_dependency_that_is_not_in_the_list_is_reported_until_it_is_there() -> None:
    plan = plan_import([there("2", after=("1",))], [])
    assert list(plan.problems) == ["beads:2: waits for beads:1, which is not in the list: left out"]
    states = applied(plan)
    after = keys(applied(plan_import([there("2", after=("1",)), there("1")], states), states))
    assert after["2"].after == (after["1"].id,)
    first = applied(plan_import([there("1")], []))  # imported before, from another list
    assert not plan_import([there("2", after=("1",))], first).problems


def test_a_circle_is_reported_with_its_path_and_only_what_closes_it_is_left_out() -> None:
    tasks = [there("1", after=("3",)), there("2", after=("1",)), there("3", after=("2",)), there("4", after=("1", "4"))]
    plan = plan_import(tasks, [])
    assert list(plan.problems) == [
        "beads:2: waits for beads:1: left out, it closes a circle: beads:1 → beads:3 → beads:2 → beads:1",
        "beads:4: waits for beads:4: left out, it closes a circle: beads:4 → beads:4",
    ]
    made = keys(applied(plan))
    assert [len(made[one].after) for one in "1234"] == [1, 0, 1, 1]


def test_a_list_with_more_circles_than_anybody_makes_by_mistake_is_refused() -> None:
    pairs = [(f"{number}a", f"{number}b") for number in range(101)]
    with pytest.raises(UsageError, match="more than 100 circles"):
        plan_import([there(one, after=(other,)) for a, b in pairs for one, other in ((a, b), (b, a))], [])


def test_a_whole_waits_for_its_parts_and_its_parts_for_what_the_whole_waits_for() -> None:
    tasks = [
        there("0"),
        there("1", after=("0", "1.2")),
        there("1.1", parent="1"),
        there("1.2", parent="1"),
        there("1.2.1", parent="1.2"),
    ]
    made = keys(applied(plan_import(tasks, [])))
    names = {task.id: name for name, task in made.items()}
    waits = {name: sorted(names[one] for one in task.after) for name, task in made.items()}
    assert waits == {"0": [], "1": ["0", "1.1", "1.2"], "1.1": ["0"], "1.2": ["0", "1.2.1"], "1.2.1": ["0"]}


_TASKS = st.lists(
    st.builds(
        there,
        st.sampled_from("abcdefgh"),
        title=st.sampled_from(["x", "y"]),
        status=st.sampled_from(["pending", "completed", "failed", "cancelled"]),
        after=st.lists(st.sampled_from("abcdefghz"), max_size=3, unique=True).map(tuple),
        parent=st.sampled_from(["", "a", "b", "c"]),
        is_deleted=st.integers(0, 9).map(lambda n: n == 0),
    ),
    max_size=9,
    unique_by=lambda one: one.task.id,
)


@pytest.mark.ci
@settings(max_examples=examples(400), deadline=None)
@given(_TASKS, _TASKS)
def test_any_list_can_be_imported_has_no_circle_and_the_second_import_changes_nothing(
    first: list[ImportedTask], second: list[ImportedTask]
) -> None:
    states: list[TaskState] = []
    for tasks in (first, second):
        plan = plan_import(tasks, states)
        seen = {state.task.id for state in states}
        for step in plan.steps:  # each dependency is there before who waits for it
            assert set(step.changes.get("after", ())) <= seen
            seen.add(step.id)
        final = {state.task.id for state in states if state.task.status in ("completed", "cancelled")}
        states = applied(plan, states)
        assert final <= {state.task.id for state in states if state.task.status in ("completed", "cancelled")}
        assert len({state.task.extra[FROM] for state in states}) == len(states)
        again = plan_import(tasks, states)
        assert not again.those("added")
        assert not any(step.changes for step in again.steps)


# ---- the import itself: real files and records ----


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".autonomous" / "context").mkdir(parents=True)
    return tmp_path / "project"


def beads(project: Path, *issues: dict[str, Any]) -> Path:
    path = project / ".beads" / "issues.jsonl"
    path.parent.mkdir(exist_ok=True)
    head = {"status": "open", "priority": 2, "issue_type": "task", "created_at": "2026-01-02T03:04:05Z"}
    path.write_text("".join(json.dumps(head | {"title": f"Do {one['id']}"} | one) + "\n" for one in issues))
    return path


def waits(id_: str, on: str) -> list[dict[str, str]]:
    return [{"issue_id": id_, "depends_on_id": on, "type": "blocks"}]


def files(project: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted((project / ".autonomous" / "tasks").rglob("*.md"))}


def test_an_imported_list_stands_in_files_with_its_results_and_can_be_claimed(project: Path) -> None:
    path = beads(
        project,
        {
            "id": "bd-2",
            "title": "Plank",
            "dependencies": waits("bd-2", "bd-1"),
            "assignee": "kim",
            "status": "in_progress",
        },
        {"id": "bd-1", "title": "Keel", "status": "closed", "close_reason": "It stands."},
        {"id": "bd-3", "title": "Sails", "status": "deferred", "description": "<<<<<<< HEAD\n# of hemp"},
    )
    dry = import_tasks(path, dry_run=True, root=project)
    assert (len(dry.those("added")), dry.dry_run) == (3, True)
    assert not (project / ".autonomous" / "tasks").exists()
    report = import_tasks(path, root=project)
    steps = sorted(report.steps, key=lambda one: one.listed.key)
    assert [(one.listed.key, one.what, one.listed.task.status) for one in steps] == [
        ("beads:bd-1", "added", "completed"),
        ("beads:bd-2", "added", "pending"),
        ("beads:bd-3", "added", "failed"),
    ]
    assert [one.id for one in report.steps] == [one.id for one in dry.steps]
    keel, plank, sails = (store.get(one.id, root=project) for one in steps)
    assert (keel.task.status, keel.summary, keel.task.extra[FROM]) == ("completed", "It stands.", "beads:bd-1")
    assert (plank.task.after, plank.progress) == ((keel.task.id,), "begun there by kim")
    assert (sails.task.status, sails.reason) == ("failed", "deferred in beads")
    assert "of hemp" in sails.task.text
    assert claim(by="me", root=project).task.id == plank.task.id
    assert json.loads(json.dumps(report.tree()))["added"] == 3


@pytest.mark.ci
def test_the_second_import_writes_nothing_and_a_later_one_only_what_changed_there(project: Path) -> None:
    one = {"id": "bd-1", "title": "Keel", "description": "Of oak.\n\n\n    cut well  \n"}
    path = beads(project, one, {"id": "bd-2", "dependencies": waits("bd-2", "bd-1")})
    import_tasks(path, root=project)
    before = files(project)
    records = (project / ".autonomous" / "context" / "journal").rglob("*")
    sizes = {each: each.stat().st_size for each in records if each.is_file()}
    report = import_tasks(path, root=project)
    assert [each.what for each in report.steps] == ["unchanged", "unchanged"]
    assert files(project) == before
    assert {each: each.stat().st_size for each in sizes} == sizes
    edit(report.steps[1].id, title="Mine", root=project)
    path = beads(project, {**one, "title": "Keelson", "priority": 0}, {"id": "bd-2", "title": "Theirs"})
    report = import_tasks(path, root=project)
    assert [(each.what, each.fields, each.kept) for each in report.steps] == [
        ("updated", ("title", "priority"), ()),
        ("updated", ("after",), ("title",)),
    ]
    assert store.get(report.steps[0].id, root=project).task.priority == 10
    assert store.get(report.steps[1].id, root=project).task.title == "Mine"
    path = beads(project, {**one, "status": "closed", "close_reason": "done there"}, {"id": "bd-2", "title": "Theirs"})
    import_tasks(path, root=project)
    state = store.get(report.steps[0].id, root=project)
    assert (state.task.status, state.summary, state.task.title) == ("completed", "done there", "Keel")


@pytest.mark.ci
def test_two_imports_at_once_add_each_task_once(project: Path) -> None:
    path = beads(project, *({"id": f"bd-{n}"} for n in range(30)))
    code = (
        "import sys; from ralf_migrations.task_import import import_tasks; import_tasks(sys.argv[1], root=sys.argv[2])"
    )
    storekit.finished([storekit.start(code, path, project, cwd=project) for _ in range(3)])
    assert len(files(project)) == 30
    assert len(store.list_tasks(root=project).tasks) == 30


@pytest.mark.ci
@pytest.mark.parametrize("place", [1, 2, 17])
def test_an_import_that_is_killed_is_completed_by_the_next_one(project: Path, place: int) -> None:
    path = beads(project, *({"id": f"bd-{n}", "status": "closed", "close_reason": "so"} for n in range(40)))
    code = (
        "import os, sys; from ralf.tasks.writing import Writer; from ralf_migrations.task_import import import_tasks\n"
        "real, seen = Writer.append, []\n"
        "def append(self, *said, **more):\n"
        "    seen.append(1)\n"
        f"    if len(seen) == {place}: os._exit(9)\n"
        "    return real(self, *said, **more)\n"
        "Writer.append = append\n"
        "import_tasks(sys.argv[1], root=sys.argv[2])"
    )
    with storekit.start(code, path, project, cwd=project) as child:
        assert child.wait() == 9
    report = import_tasks(path, root=project)
    assert len(report.those("added")) == (40 if place == 1 else 0)
    assert len(files(project)) == 40
    assert {state.summary for state in store.list_tasks(root=project).tasks} == {"so"}


def test_a_damaged_list_changes_nothing(project: Path) -> None:
    path = beads(project, {"id": "bd-1"})
    path.write_text(path.read_text() + "{")
    with pytest.raises(Damaged, match="line 2"):
        import_tasks(path, root=project)
    assert not (project / ".autonomous" / "tasks").exists()


def test_the_status_of_a_task_that_somebody_has_here_waits_for_the_next_import() -> None:
    states = applied(plan_import([there("1")], []))
    held = [replace(states[0], claim=Claim(7, "kim"))]
    plan = plan_import([there("1", status="completed")], held)
    after = applied(plan, held)
    assert after[0].task.status == "pending"
    assert "kim has" in plan.problems[0]
    free = [replace(after[0], claim=None)]
    assert applied(plan_import([there("1", status="completed")], free), free)[0].task.status == "completed"


def test_of_a_secret_that_a_bound_cuts_nothing_comes_in_and_none_in_a_tag_or_a_name(project: Path) -> None:
    token = "ghp_" + "a8Zk3Qw9Lm2Xc7Vb5Nn1Rt6Yu4Io0Pq3Sd8F"
    whole = {"issue_type": "task", "created_at": "2026-01-01T00:00:00Z", "status": "open"}
    records = [
        {**whole, "id": "a", "title": "word " * 55 + token, "labels": [token], "created_by": token},
        {**whole, "id": "b", "title": "b", "description": "word " * 19_995 + token},
        {**whole, "id": "c", "title": "c", "status": "closed", "close_reason": "word " * 796 + token},
    ]
    listed = project / "issues.jsonl"
    listed.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    assert len(import_tasks(listed, root=project).those("added")) == 3
    kept = [path.read_bytes() for path in (project / ".autonomous").rglob("*") if path.is_file()]
    assert len(kept) > 3
    assert not any(token[:12].encode() in content for content in kept)
