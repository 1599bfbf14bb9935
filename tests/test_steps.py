"""Calls and their results become steps: what was edited, run, asked and delegated, and how it ended."""

from __future__ import annotations

from ralf.model.entries import Item, Mark, from_tree, to_tree
from recordkit import BASE, Session


def test_an_edit_names_its_file_relative_to_the_project_and_what_it_added() -> None:
    session = Session()
    added = "x = 1\n# Harbours without a tide table are left out.\ny = 2"
    session.tool("Edit", {"file_path": f"{BASE}/src/tide.py", "old_string": "x = 1", "new_string": added})
    [step] = session.steps
    assert (step.kind, step.files, step.outcome) == ("edit", (("src/tide.py", "edited"),), "ok")
    assert step.added == "# Harbours without a tide table are left out.\ny = 2"
    assert step.comments == ("Harbours without a tide table are left out.",)


def test_the_same_command_means_the_same_in_claude_code_and_codex() -> None:
    claude, codex = Session(), Session()
    for command, output, status in [
        ("git add -A && git commit -m x", "[rows 64274e0f] x", 0),
        ("pytest -q", "1 failed", 1),
        ("ls", "a.py", 0),
    ]:
        claude.bash(command, output, status)
        codex.exec(command, output, status)
    for one, other in zip(claude.steps, codex.steps, strict=True):
        assert (one.object, one.outcome, one.checks, one.git) == (other.object, other.outcome, other.checks, other.git)
    assert [step.looks for step in codex.steps] == [False, False, True]


def test_a_question_is_told_with_its_options_and_a_plan_with_its_text() -> None:
    session = Session()
    asked = {"question": "Which zone?", "options": [{"label": "UTC"}, {"label": "local"}]}
    session.call("AskUserQuestion", {"questions": [asked]})
    session.call("ExitPlanMode", {"plan": "# Plan\n1. tide"})
    assert [(step.kind, step.object) for step in session.steps] == [
        ("question", "Which zone? (UTC / local)"),
        ("plan", "# Plan\n1. tide"),
    ]


# ---- to-dos ----


def items(session: Session) -> list[tuple[Item, ...]]:
    return [entry.items for entry in session.entries if isinstance(entry, Mark) and entry.kind == "todos"]


def test_a_whole_list_and_a_plan_are_items_by_their_position() -> None:
    session = Session()
    session.tool("TodoWrite", {"todos": [{"content": "Read", "status": "completed"}, {"content": "Write"}]})
    session.tool("update_plan", {"plan": [{"step": "Sail", "status": "in_progress"}]})
    assert items(session) == [
        (Item("1", "Read", "completed"), Item("2", "Write")),
        (Item("1", "Sail", "in_progress"),),
    ]


def test_tasks_are_followed_by_their_numbers_and_the_printed_list_holds_over_them() -> None:
    session = Session()
    session.tool("TaskCreate", {"subject": "Read"}, "Task #1 created successfully: Read")
    session.tool("TaskCreate", {"subject": "Write"}, "Task #2 created successfully: Write")
    session.tool("TaskUpdate", {"taskId": "1", "status": "completed"})
    session.tool("TaskUpdate", {"taskId": "2", "status": "deleted"})
    assert items(session)[-1] == (Item("1", "Read", "completed"),)
    session.tool("TaskList", {}, "#1 [completed] Read\n#3 [in_progress] Sail (ada) [blocked by #1]")
    assert items(session)[-1] == (
        Item("1", "Read", "completed"),
        Item("3", "Sail (ada) [blocked by #1]", "in_progress"),
    )


def test_a_step_comes_back_from_a_record_as_it_was() -> None:
    session = Session()
    session.bash("cd src && git add a.py && git commit -m x && pytest -k tide", "[rows 64274e0f] x\n1 passed in 0.1s")
    [step] = session.steps
    assert step.git
    assert step.checks == ("pytest -k tide",)
    assert from_tree(to_tree(step)) == step
