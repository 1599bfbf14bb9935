"""The state is what the record shows at its end: nothing in it is said that a later record takes back."""

from __future__ import annotations

import time

import pytest

from ralf.brief import lines
from ralf.facts.state import State
from ralf.model.entries import Item, Mark, Step
from recordkit import Session

COMMITTED = "[rows 64274e0f] Mend the valve"


def runs(session: Session) -> dict[str, str]:
    return {key: run.step.outcome for key, run in session.state.runs.items()}


def upcoming(session: Session) -> list[str]:
    return [part for part in lines.upcoming(session.state).removeprefix("- ").split("; ") if part]


def edited(session: Session) -> str:
    return lines.edited(session.state, 9).removeprefix("- ")


def standing(session: Session) -> str:
    return lines.branch_and_commit(session.state).removeprefix("- ")


def failing(session: Session) -> list[str]:
    state = session.state
    return [lines.check(run, "2026-03-01", lines=2) for run in state.runs.values() if run.has_failed]


# ---- checks ----


def test_a_check_that_failed_and_then_passed_has_not_failed() -> None:
    session = Session()
    session.bash("pytest tests/a.py", "1 failed", 1)
    session.bash("cd . && python -m pytest tests/a.py -q 2>&1", "1 passed in 0.1s")
    assert runs(session) == {"pytest tests/a.py": "ok"}
    assert upcoming(session) == []


def test_a_check_that_failed_and_was_not_run_again_is_shown_with_its_lines_and_what_was_edited_after_it() -> None:
    session = Session()
    session.bash("pytest", "E   NameError: name 'tide'\nFAILED a.py::test_x\n1 failed in 1s", 1)
    session.edit("src/tide.py")
    [text] = failing(session)
    assert text.splitlines()[0] == "- check `pytest` 10:01: FAILED (exit 1); edited after it: src/tide.py"
    assert text.splitlines()[1].strip() == "E NameError: name 'tide'"
    assert upcoming(session)[0] == "a check failed (10:01, edited after it)"


def test_a_run_over_everything_takes_the_place_of_runs_over_parts() -> None:
    session = Session()
    session.bash("pytest tests/a.py", "1 failed", 1)
    session.bash("pytest -k moon", "1 failed", 1)
    session.bash("pytest", "9 passed in 1s")
    assert runs(session) == {"pytest": "ok"}
    session.bash("pytest tests/a.py", "1 passed in 1s")
    session.bash("pytest", "2 failed", 1)
    assert runs(session) == {"pytest": "failed"}


# ---- files ----


@pytest.mark.parametrize(
    "command",
    [
        "git add -A && git commit -qm x",
        "cd src && git add ../a.py . && git commit -qm x",
        "git stash",
        "git reset --hard",
        "git checkout -- .",
        "git checkout -- a.py src/b.py",
        "git restore a.py src",
    ],
)
def test_what_a_command_commits_or_takes_back_is_no_longer_edited(command: str) -> None:
    session = Session()
    session.edit("a.py", "src/b.py")
    session.bash(command)
    assert edited(session) == ""


def test_a_status_says_what_is_not_committed_and_what_was_edited_after_it_is_told_beside_it() -> None:
    session = Session()
    session.edit("a.py", "build/out.py")
    session.bash("git status --short", " M a.py\n?? person.txt")
    assert edited(session) == "git status at 10:05: not committed: a.py; person.txt"  # build/ is ignored
    session.edit("c.py")
    assert edited(session) == "git status at 10:05: not committed: a.py; person.txt; edited after it: c.py"
    assert upcoming(session)[-1] == "2 files not committed by git status, 1 edited after it"
    session.bash("git status", "On branch rows\nnothing to commit, working tree clean")
    assert edited(session) == ""


# ---- commits, pushes, pull requests ----


def test_a_branch_has_its_own_commits_push_and_pull_request() -> None:
    session = Session()
    session.bash("git commit -m x", COMMITTED)
    session.bash("git push", "   1111111..64274e0f  rows -> rows")
    session.bash("gh pr create", "https://github.com/a/b/pull/12")
    assert "PR #12" in standing(session)
    session.bash("git checkout main", "Switched to branch 'main'")
    assert standing(session) == "branch main"


# ---- refused and failed ----


def refused(session: Session, command: str) -> None:
    session.tool("Bash", {"command": command}, "no", failed=True, refused=True)


@pytest.mark.parametrize(
    "later", ["git push", "cd /home/ada/orchard && git push -q", "git -C . push", "ls && git push"]
)
def test_a_refused_command_that_ran_later_in_another_spelling_is_no_longer_refused(later: str) -> None:
    session = Session()
    refused(session, "git push")
    assert len(session.state.refused) == 1
    session.bash(later)
    assert session.state.refused == {}


def test_a_command_that_failed_is_told_until_it_succeeds_and_none_that_only_looks() -> None:
    session = Session()
    session.bash("./deploy.sh --now", "no", 2)
    session.bash("grep tide a.py", "", 1)
    assert [step.object for step, _ in session.state.failed.values()] == ["./deploy.sh --now"]
    session.bash("cd . && ./deploy.sh")
    assert session.state.failed == {}


# ---- calls and their results become steps ----


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


# ---- to-dos ----


def items(session: Session) -> list[tuple[Item, ...]]:
    return [entry.items for entry in session.entries if isinstance(entry, Mark) and entry.kind == "todos"]


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


@pytest.mark.ci
def test_many_commands_that_failed_cost_no_square() -> None:
    def seconds(count: int) -> float:
        steps = [
            Step(f"c{n}", kind="command", object=f"make part{n} {'x ' * 300}", outcome="failed") for n in range(count)
        ]
        begun = time.process_time()
        assert len(State.of(steps).failed) == count
        return time.process_time() - begun

    seconds(50)
    few, many = (min(seconds(count) for _ in range(3)) for count in (100, 400))
    assert many < few * 12, (few, many)
