"""The plan file: what it looks like, what a person may do to it, writing it once, and hostile ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ralf.errors import Damaged, DamagedPlan, NothingReady
from ralf.project import Project, find
from ralf.tasks import claims, editing, planfile as plans, serializing, store
from ralf.tasks.model import Task, TaskState
from ralf.tasks.planfile import path_of, render
from ralf.tasks.sequence import Plan, make_plan
from ralf.tasks.serializing import serialize


def task(name: str, *after: str, **fields: object) -> Task:
    made: Task = replace(Task(id=name, title=f"Do {name}", after=after), **fields)
    return made


def states(names: str, **fields: object) -> list[TaskState]:
    return [TaskState(task=task(name, **fields)) for name in names.split()]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    (root / ".autonomous").mkdir(parents=True)
    return find(root)


def ids(plan: Plan) -> str:
    return " / ".join(" | ".join(map(" ".join, chain.segments)) for chain in plan.chains)


def text_of(project: Project) -> str:
    return path_of(project).read_text()


def edit(project: Project, *changes: tuple[str, str]) -> None:
    text = text_of(project)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path_of(project).write_text(text)


def moved(project: Project, name: str, before: str) -> None:
    """Move the line of a task before that of another, as a person does."""
    lines = text_of(project).splitlines(keepends=True)
    (line,) = (each for each in lines if f'- "{name}"  #' in each)
    lines.remove(line)
    place = next(number for number, each in enumerate(lines) if f'- "{before}"  #' in each)
    lines.insert(place, line)
    path_of(project).write_text("".join(lines))


# ---- what it looks like ----


def test_a_foreign_task_is_left_out_and_that_is_said(project: Project) -> None:
    theirs = replace(states("t")[0], is_foreign=True)
    plan = serialize(root=project.root, states=[theirs, *states("a b", after=("t",))], every=9)
    assert ids(plan) == "a b"
    assert "ralf trust" in plan.notes[0]


# ---- what a person may do to it ----


def test_lines_that_a_person_has_moved_stay_where_they_are(project: Project) -> None:
    known = states("a b c d")
    serialize(root=project.root, states=known, every=2)
    moved(project, "d", before="a")
    loaded = plans.load(project)
    assert loaded is not None
    assert [*loaded][:2] == ["d", "a"]
    plan = serialize(root=project.root, states=known)
    assert ids(plan) == "d a | b c"
    before = path_of(project).read_bytes()
    serialize(root=project.root, states=known)
    assert path_of(project).read_bytes() == before
    assert ids(serialize(root=project.root, states=[*known, *states("e", priority=9)])) == "e d | a b | c"
    assert ids(serialize(root=project.root, states=known, every=2, anew=True)) == "a b | c d"


def test_a_checkpoint_that_a_person_has_added_stays(project: Project) -> None:
    known = states("a b c d e")
    for line in ("checkpoint:", "checkpoint: by hand"):
        serialize(root=project.root, states=known, every=4, anew=True)
        edit(project, ('      - "b"  #', f'      - {line}\n      - "b"  #'))
        plan = serialize(root=project.root, states=known)
        assert ids(plan) == "a | b c d e"
        assert plan.chains[0].placed[0] == "by hand"


# ---- hostile files ----

HOSTILE = {
    "chains: [a]\n": "chains.1: expected a mapping, got 'a'",
    "[]\n": "not a mapping",
    "every: many\n": "every: expected a whole number, got 'many'",
    "version: 2\n": "a plan of version 2, which another ralf reads",
    "chains:\n  - role: x\n    jobs: [a]\n": "chains.1.jobs: expected no such key",
    "chains:\n  - tasks: [[a]]\n": "chains.tasks: expected a task's id, or `checkpoint: by hand`, got a list",
    "chains:\n  - tasks:\n    - a\n    - b\n    - a\n": "chains.tasks: expected each task once, got 'a'",
    "chains: &x []\n": "anchors and aliases are not allowed",
    "<<<<<<< ours\nevery: 1\n=======\nevery: 2\n>>>>>>> theirs\n": "line ",
    "a: \x07\n": "line 1: control character U+0007",
    "'": "line",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:30].encode("unicode_escape").decode())
def test_a_hostile_plan_gives_a_clear_error_and_stays_as_it_is(project: Project, text: str) -> None:
    path_of(project).parent.mkdir()
    path_of(project).write_text(text)
    with pytest.raises(DamagedPlan) as caught:
        serialize(root=project.root, states=states("a b"))
    assert HOSTILE[text] in str(caught.value)
    assert str(caught.value).startswith(f"{path_of(project)}: ")
    assert caught.value.hint
    assert caught.value.exit_status == Damaged.exit_status
    assert text_of(project) == text


def test_the_guide_shows_what_is_written() -> None:
    guide = (Path(__file__).parents[1] / "docs" / "tasks.md").read_text()
    names = "7k3q Write the schema/8m2p Serve it/8q4d Limit requests/9b2b Measure it"
    known = [
        task(f"TASK-{name[:4]}", title=name[5:], role="backend", created=str(number))
        for number, name in enumerate(names.split("/"))
    ]
    known += [
        task("TASK-9x1z", title="Draw the form", role="frontend"),
        task("TASK-b4t8", "TASK-8m2p", title="Send the form", role="frontend"),
    ]
    assert render(make_plan(known, every=3), known).decode() in guide


# ---- a plan in force ----


def made(root: Path, *titles: str, **more: object) -> list[str]:
    return [editing.add(title, id=f"TASK-{title}", root=root, **more).task.id for title in titles]  # type: ignore[arg-type]


def ready(root: Path) -> list[str]:
    return [state.task.title for state in store.list_tasks(ready=True, root=root).tasks]


@pytest.mark.ci
def test_one_task_of_a_chain_after_the_other_is_ready(tmp_path: Path) -> None:
    made(tmp_path, "a", "b", "c")
    made(tmp_path, "x", "y", role="tester")
    assert ready(tmp_path) == ["a", "b", "c", "x", "y"]
    tasks = tmp_path / ".autonomous" / "tasks"
    files = {path: path.read_bytes() for path in tasks.rglob("*.md")}
    serializing.serialize(every=1, root=tmp_path)
    assert {path: path.read_bytes() for path in tasks.rglob("*.md")} == files
    assert ready(tmp_path) == ["a", "x"]
    assert store.get("c", root=tmp_path).waits_for == ("TASK-b",)
    claims.claim("a", by="me", root=tmp_path)
    with pytest.raises(NothingReady, match=r"TASK-b waits for TASK-a \(pending\)"):
        claims.claim("b", by="you", root=tmp_path)
    claims.done("Done", task="a", by="me", root=tmp_path)
    assert ready(tmp_path) == ["b", "x"]
    claims.done("Out of order", task="c", by="me", root=tmp_path)
    assert ready(tmp_path) == ["b", "x"]
    claims.retry("a", root=tmp_path)
    assert ready(tmp_path) == ["a", "x"]
    assert store.get("b", root=tmp_path).waits_for == ("TASK-a",)
    (tasks / "plan.yaml").unlink()
    assert ready(tmp_path) == ["a", "b", "x", "y"]


def test_a_plan_that_cannot_be_read_is_told_and_nothing_passes_it(tmp_path: Path) -> None:
    made(tmp_path, "a", "b")
    serializing.serialize(root=tmp_path)
    (tmp_path / ".autonomous" / "tasks" / "plan.yaml").write_text("chains: [")
    with pytest.raises(DamagedPlan, match=r"plan\.yaml"):
        claims.claim(root=tmp_path)
    assert "plan.yaml" in store.list_tasks(root=tmp_path).warnings[0]


@pytest.mark.ci
def test_a_task_that_is_split_has_its_parts_planned_in_its_place(tmp_path: Path) -> None:
    first, second = made(tmp_path, "a", "b")
    (third,) = made(tmp_path, "c", after=[first])
    serializing.serialize(root=tmp_path)
    parts = [state.task.id for state in editing.split(first, ["One half", "The other half"], root=tmp_path)]
    order = [*serializing.serialize(root=tmp_path)]
    assert [each for each in order if each != second] == [*parts, third]
