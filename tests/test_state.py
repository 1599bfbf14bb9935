"""The state is what the record shows at its end: nothing in it is said that a later record takes back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ralf.brief import lines
from recordkit import BASE, Session

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


def test_a_run_with_another_filter_does_not_take_back_a_failure_and_is_told_beside_it() -> None:
    session = Session()
    session.bash("go test ./tide -run TestA", "--- FAIL: TestA (0.1s)", 1)
    session.bash("go test ./tide -run TestB", "ok  \ttide\t0.1s")
    [text] = failing(session)
    assert "FAILED (exit 1); a later run over other paths or with another filter was ok (10:03)" in text
    assert not any("failed" in line for line in upcoming(session))  # the newest run of it has not
    session.bash("go test ./tide -run=TestA -v", "ok  \ttide\t0.1s")
    assert failing(session) == []


def test_a_run_of_a_part_does_not_take_back_the_failure_of_the_whole() -> None:
    session = Session()
    session.bash("pytest", "2 failed", 1)
    session.bash("pytest tests/a.py", "1 passed in 1s")
    [text] = failing(session)
    assert "was ok (10:03)" in text


def test_a_check_with_a_filter_is_named_with_it() -> None:
    session = Session()
    session.bash("pytest -k tide", "1 passed, 99 deselected in 1s")
    [run] = session.state.runs.values()
    assert lines.check(run, "2026-03-01", lines=0).startswith("- check `pytest -k tide` 10:01: ok: 1 passed")


def test_a_chain_that_passed_counts_for_each_of_its_checks_and_one_that_failed_for_itself() -> None:
    session = Session()
    session.bash("ruff check && pytest", "3 passed in 1s")
    assert runs(session) == {"ruff check": "ok", "pytest": "ok"}
    session.bash("ruff check && pytest", "E501", 1)
    assert runs(session) == {"ruff check && pytest": "failed"}
    session.bash("ruff check")
    assert list(runs(session)) == ["ruff check && pytest", "ruff check"]
    session.bash("pytest", "3 passed in 1s")
    assert runs(session) == {"ruff check": "ok", "pytest": "ok"}


def test_a_run_whose_status_is_hidden_does_not_take_back_a_failure() -> None:
    session = Session()
    session.bash("go build ./...", "a.go:1:2: undefined: x", 1)
    session.bash("go build ./... | head -3", "a.go:1")
    assert runs(session) == {"go build": "failed"}
    other = Session()
    other.bash("go build ./...")
    other.bash("go build ./... | head -3", "a.go:1")
    assert runs(other) == {"go build": "not shown"}


def test_a_check_that_a_signal_ended_has_neither_passed_nor_failed() -> None:
    session = Session()
    session.bash("pytest", "3 passed in 1s")
    session.bash("pytest", "…", 137)
    assert runs(session) == {"pytest": "ok"}
    assert lines.outcome(session.steps[1]) == "stopped by a signal (exit 137)"


def test_what_one_command_edits_and_then_checks_was_not_edited_after_the_check() -> None:
    session = Session()
    session.bash("sed -i s/a/b/ a.py && pytest", "3 passed in 1s")
    assert not any("edited after" in line for line in upcoming(session))


def test_only_what_was_edited_after_the_last_check_is_told_as_next() -> None:
    session = Session()
    session.bash("mypy src")
    session.edit("a.py")
    session.bash("pytest", "3 passed in 1s")
    assert not any("edited after" in line for line in upcoming(session))
    session.edit("b.py")
    assert upcoming(session)[0] == "edited after the last check: b.py"


# ---- files ----


def test_files_are_edited_by_the_agent_until_it_commits_them() -> None:
    session = Session()
    session.edit("a.py", "b.py")
    assert (edited(session), upcoming(session)) == ("edited by the agent: b.py; a.py", [])  # no repository is known
    session.bash("git switch main", "Switched to branch 'main'")
    assert edited(session) == "edited by the agent, not committed by it: b.py; a.py"
    assert upcoming(session)[-1] == "2 files not committed by the agent"
    session.bash("git add a.py && git commit -m x", COMMITTED)
    assert edited(session) == ""
    session.edit("c.py")
    assert edited(session) == "edited by the agent since its last commit: c.py"


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


def test_a_commit_of_a_chain_that_then_failed_to_push_is_a_commit() -> None:
    session = Session()
    session.edit("a.py")
    output = f"{COMMITTED}\n ! [rejected] rows -> rows\nerror: failed to push some refs to 'x'"
    session.bash("git add a.py && git commit -m x && git push", output, 1)
    assert standing(session) == 'branch rows; newest commit seen 64274e0f "Mend the valve" (10:03)'
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


def test_what_lies_outside_the_project_is_not_to_be_committed() -> None:
    session = Session()
    session.tool("Write", {"file_path": "/home/ada/.claude/plans/x.md", "content": "x"})
    session.tool("Write", {"file_path": f"{BASE}/.git/hooks/post-commit", "content": "x"})
    session.bash("echo x > /tmp/log.txt && rm -rf build")
    assert edited(session) == ""


def test_a_file_that_was_created_and_deleted_again_is_not_to_be_committed() -> None:
    session = Session()
    session.tool("Write", {"file_path": f"{BASE}/scratch.py", "content": "x"}, created=True)
    session.bash("rm scratch.py")
    assert edited(session) == ""


def test_an_edit_of_a_sub_agent_counts_and_so_does_its_commit() -> None:
    session = Session()
    session.edit("a.py", agent="a1")
    assert edited(session) == "edited by the agent: a.py"
    session.bash("git commit -am x", COMMITTED, agent="a1")
    assert standing(session).endswith('64274e0f "Mend the valve" (10:03) (subagent)')


# ---- commits, pushes, pull requests ----


def test_the_newest_commit_is_the_agents_until_the_list_shows_another_one() -> None:
    session = Session()
    session.bash("git commit -m x", COMMITTED)
    session.bash("git log --oneline -2", "64274e0f Mend the valve\n1111111 x")
    assert standing(session) == 'branch rows; newest commit seen 64274e0f "Mend the valve" (10:01)'
    session.bash("git log --oneline -2", "2222222 Oil the pump\n64274e0f Mend the valve")
    assert standing(session).endswith('2222222 "Oil the pump" (10:05)')


def test_a_commit_that_was_rebased_is_still_the_agents() -> None:
    session = Session()
    session.bash("git commit -m x", COMMITTED)
    session.bash("git pull --rebase", "Successfully rebased and updated refs/heads/rows.")
    session.bash("git log --oneline -1", "7777777 Mend the valve")
    assert standing(session) == 'branch rows; newest commit seen 7777777 "Mend the valve" (10:01)'


def test_a_commit_without_a_printed_hash_gets_it_from_the_list() -> None:
    session = Session()
    session.bash("git commit -qm 'Mend the valve'")
    assert standing(session) == "newest commit seen by the agent (10:01)"
    session.bash("git log --oneline -1", "64274e0f Mend the valve")
    assert standing(session) == 'newest commit seen 64274e0f "Mend the valve" (10:01)'


def test_an_amended_commit_takes_the_place_of_the_one_before() -> None:
    session = Session()
    session.bash("git commit -m x", COMMITTED)
    session.bash("git commit --amend --no-edit", "[rows 9999999] Mend the valve")
    assert [commit.hash for commit in session.state.commits] == ["9999999"]


def test_commits_that_were_reset_are_gone() -> None:
    session = Session()
    for number in range(3):
        session.bash("git commit -m x", f"[rows {number}{number}{number}4e0f] x{number}")
    session.bash("git reset --soft HEAD~1")
    assert session.state.commits == []
    session.bash("git reset --hard 0004e0f", "HEAD is now at 0004e0f x0")
    assert standing(session) == 'branch rows; newest commit seen 0004e0f "x0" (10:09)'


def test_a_push_is_told_and_whether_the_newest_commit_came_after_it() -> None:
    session = Session()
    session.bash("git commit -m x && git push", f"{COMMITTED}\n   1..2")
    assert standing(session).endswith("; last push 10:01")
    assert upcoming(session) == []
    session.bash("git commit -m y", "[rows 9999999] y")
    assert standing(session).endswith("; last push 10:01, before that commit")
    assert upcoming(session) == ["the newest commit not pushed"]


def test_a_push_that_failed_is_no_push() -> None:
    session = Session()
    session.bash("git commit -m x", COMMITTED)
    session.bash("git push 2>&1 | tail -1", "error: failed to push some refs to 'x'")
    assert "push" not in standing(session)


def test_a_branch_has_its_own_commits_push_and_pull_request() -> None:
    session = Session()
    session.bash("git commit -m x", COMMITTED)
    session.bash("git push", "   1111111..64274e0f  rows -> rows")
    session.bash("gh pr create", "https://github.com/a/b/pull/12")
    assert "PR #12" in standing(session)
    session.bash("git checkout main", "Switched to branch 'main'")
    assert standing(session) == "branch main"


def test_a_pull_request_that_the_agent_did_not_open_is_not_the_branchs() -> None:
    session = Session()
    session.bash("git checkout -b rows", "Switched to a new branch 'rows'")
    session.bash("gh pr merge 7 --squash")
    session.bash("gh pr view 8", "https://github.com/a/b/pull/8")
    assert standing(session) == "branch rows"


def test_a_detached_head_is_told_with_the_branch_before() -> None:
    session = Session()
    session.add("user", "go", branch="rows")
    session.add("user", "on", branch="HEAD")
    assert standing(session) == "detached HEAD (before: rows)"
    other = Session()
    other.add("user", "go", branch="HEAD")
    assert other.state.branch == ""


def test_a_merge_is_in_progress_until_it_is_committed_or_aborted() -> None:
    conflict = "CONFLICT (content): Merge conflict in a.py\nAutomatic merge failed"
    ends: list[Callable[[Session], None]] = [
        lambda session: session.bash("git commit --no-edit", "[rows 9999999] Merge"),
        lambda session: session.bash("git merge --abort"),
        lambda session: session.bash("git status", "On branch rows\nnothing to commit, working tree clean"),
    ]
    for end in ends:
        session = Session()
        session.bash("git merge main", conflict, 1)
        assert session.state.failed == {}
        end(session)
        assert session.state.merging == ""


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


def test_a_refused_commit_or_edit_is_in_no_list() -> None:
    session = Session()
    refused(session, "git commit -am x")
    session.tool("Edit", {"file_path": f"{BASE}/a.py"}, "no", failed=True, refused=True)
    assert (session.state.commits, session.state.edited) == ([], {})
    assert len(session.state.refused) == 2
    session.edit("a.py")
    assert [step.kind for step, _ in session.state.refused.values()] == ["command"]


def test_a_call_that_was_refused_twice_is_told_once_and_one_that_only_looks_never() -> None:
    session = Session()
    refused(session, "git push")
    refused(session, "git push")
    refused(session, "cat a.py")
    assert [step.object for step, _ in session.state.refused.values()] == ["git push"]


def test_a_plan_that_was_refused_is_no_longer_so_when_another_one_is_approved() -> None:
    session = Session()
    session.tool("ExitPlanMode", {"plan": "# A"}, "no", failed=True, refused=True)
    session.tool("ExitPlanMode", {"plan": "# B"})
    assert session.state.refused == {}


def test_a_command_that_failed_is_told_until_it_succeeds_and_none_that_only_looks() -> None:
    session = Session()
    session.bash("./deploy.sh --now", "no", 2)
    session.bash("grep tide a.py", "", 1)
    assert [step.object for step, _ in session.state.failed.values()] == ["./deploy.sh --now"]
    session.bash("cd . && ./deploy.sh")
    assert session.state.failed == {}


def test_a_chain_that_failed_is_no_longer_told_when_its_last_command_succeeds() -> None:
    session = Session()
    session.bash("git add a.py && git commit -m x && git push", "! [rejected]", 1)
    session.bash("git push")
    assert session.state.failed == {}


# ---- to-dos ----


def test_a_list_whose_items_are_all_done_has_no_step() -> None:
    session = Session()
    todos = [{"content": "Read", "status": "completed"}, {"content": "Write", "status": "completed"}]
    session.tool("TodoWrite", {"todos": todos})
    session.says("And which licence has this?")
    brief, *_ = lines.todos(session.state)
    assert brief == "- to-do list: all 2 done (10:01)"
    assert upcoming(session) == []


def test_the_step_is_the_first_item_in_progress_else_the_first_open_one() -> None:
    session = Session()
    todos = [{"content": name} for name in ("Read", "Write", "Sail")]
    session.tool("TodoWrite", {"todos": todos})
    assert upcoming(session) == ["to-do #1 Read and 2 more open"]
    session.tool("TodoWrite", {"todos": [todos[0], {**todos[1], "status": "in_progress"}, todos[2]]})
    assert upcoming(session) == ["to-do #2 Write and 2 more open"]
    brief, *_ = lines.todos(session.state)
    assert brief.splitlines()[0] == "- to-do list (10:03): 0 of 3 done"
