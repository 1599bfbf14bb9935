"""Commits, pushes and pull requests are told by what git printed in the project's own repository, never elsewhere."""

from __future__ import annotations

import pytest

from recordkit import BASE, Session, facts

REJECTED = """To github.com:a/b.git
 ! [rejected]        rows -> rows (fetch first)
error: failed to push some refs to 'github.com:a/b.git'
"""


def ran(command: str, output: str = "", status: int = 0, cwd: str = BASE) -> list[tuple[str, ...]]:
    """The facts of one command, each without its empty fields."""
    session = Session(cwd)
    session.bash(command, output, status)
    return [tuple(filter(None, (fact.kind, fact.value, fact.subject))) for fact in facts(session)]


# ---- commits ----


def test_a_commit_is_the_line_that_git_prints() -> None:
    assert ran("git commit -m x", "[rows 64274e0f] Mend the valve\n 1 file changed") == [
        ("branch", "rows"),
        ("commit", "64274e0f", "Mend the valve"),
    ]
    assert ran("git commit -m x", "[detached HEAD 64274e0f] x") == [("commit", "64274e0f", "x")]
    assert ran("git commit -m x", "[main (root-commit) 64274e0f] x")[0] == ("branch", "main")
    assert ran("git commit --amend", "[rows 64274e0f] x")[1] == ("amended", "64274e0f", "x")
    assert ran("git cherry-pick abc1234", "[rows 64274e0f] x")[1] == ("applied", "64274e0f", "x")


@pytest.mark.parametrize(
    ("command", "output", "status"),
    [
        ("git commit -m x", "nothing to commit, working tree clean", 1),
        ("git commit -m x | tail -1", "lint failed", 0),
        ("git commit -m x || true", "lint failed", 0),
        ("git commit --dry-run", "On branch rows", 0),
        ("echo '[rows 64274e0f] x'", "[rows 64274e0f] x", 0),
        ("git log", "[rows 64274e0f] x", 0),
    ],
)
def test_what_did_not_commit_is_no_commit(command: str, output: str, status: int) -> None:
    assert not [fact for fact in ran(command, output, status) if fact[0] in ("commit", "amended", "applied")]


@pytest.mark.parametrize(
    "command",
    [
        "cd /elsewhere && git commit -m x",
        "git -C ../other commit -m x",
        "cd ~/dotfiles && git commit -m x",
        "cd $(mktemp -d) && git init && git commit -m x",
        "cd .. && git commit -m x",
        "git clone https://x.org/a/demo.git && cd demo && git commit -m x",
    ],
)
def test_a_commit_of_another_repository_does_not_count(command: str) -> None:
    assert ran(command, "[rows 64274e0f] x") == []


# ---- pushes and pull requests ----


@pytest.mark.parametrize(
    ("command", "output", "status"),
    [
        ("git push", REJECTED, 1),
        ("git push 2>&1 | tail -2", REJECTED, 0),
        ("git push || true", "fatal: no upstream", 0),
        ("git push --dry-run", "To x\n   1111111..64274e0f  rows -> rows", 0),
        ("git push --tags", " * [new tag]  v1 -> v1", 0),
    ],
)
def test_a_push_that_failed_or_pushed_no_branch_is_no_push(command: str, output: str, status: int) -> None:
    assert ran(command, output, status) == []


@pytest.mark.parametrize(
    ("command", "output", "found"),
    [
        ("gh pr create --fill", "https://github.com/a/b/pull/12", [("request", "12", "created")]),
        ("gh pr comment 9 -b x", "https://github.com/a/b/pull/9#issuecomment-1", [("request", "9", "commented")]),
        ("gh pr merge 9 --squash", "", [("request", "9", "merged")]),
        ("gh pr merge --squash", "", [("request", "merged")]),
        ("gh pr view 9", "https://github.com/a/b/pull/9", []),
        ("gh pr create | tail -1", "pull request create failed", []),
        ("gh pr create -R a/c --fill", "https://github.com/a/c/pull/12", []),
    ],
)
def test_a_pull_request_is_what_was_done_to_it_and_none_that_was_looked_at(
    command: str, output: str, found: list[tuple[str, ...]]
) -> None:
    assert ran(command, output) == found


# ---- branch, status, merges ----


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("git stash", [("undone",)]),
        ("git stash pop", []),
        ("git reset --hard", [("undone",)]),
        ("git reset HEAD~2", [("dropped",)]),
        ("git checkout -- a.py", [("undone", "a.py")]),
        ("git restore a.py", [("undone", "a.py")]),
        ("git restore --staged a.py", []),
    ],
)
def test_what_takes_changes_back_says_which(command: str, found: list[tuple[str, ...]]) -> None:
    assert ran(command) == found


def test_a_name_that_git_quotes_byte_by_byte_is_told_as_it_is() -> None:
    shown = ' M "src/\\320\\274\\320\\276\\321\\200\\320\\265 1.py"'
    assert ("changed", "src/море 1.py") in ran("git status --short", shown)
