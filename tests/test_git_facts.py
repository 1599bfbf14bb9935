"""Branch, commits and uncommitted files are told from what git printed in the session, however it is cut."""

from __future__ import annotations

from clocks import within
from ralf.brief import wording
from ralf.facts.facts import extract
from ralf.facts.git import Git, commits
from ralf.model import ActiveWork, WorkingTree
from storekit import AT_ONCE
from test_facts import BASE, Session

STATUS = """On branch orchard/rows
Changes to be committed:
  (use "git restore --staged <file>..." to unstage)
\tmodified:   src/valve.py
\trenamed:    old.md -> docs/new.md

Changes not staged for commit:
  (use "git add <file>..." to update what will be committed)
\tmodified:   src/pump.py

Untracked files:
  (use "git add <file>..." to include in what will be committed)
\tnotes/
\ttodo.txt

"""


def edited(session: Session, *paths: str) -> None:
    for path in paths:
        session.tool("Edit", {"file_path": f"{BASE}/{path}"})


def tree(session: Session, work: ActiveWork | None = None) -> WorkingTree:
    return extract(session.events, base=BASE, work=work or ActiveWork()).work.git


def test_files_that_were_changed_are_uncommitted_until_they_are_committed() -> None:
    session = Session()
    edited(session, "src/valve.py", "src/pump.py")
    assert tree(session).uncommitted == ("src/valve.py", "src/pump.py")
    session.bash("git add src/valve.py && git commit -m 'Mend the valve'", "[rows 64274e0f] Mend the valve\n 1 file")
    found = tree(session)
    assert (found.branch, found.commit) == ("rows", "64274e0f Mend the valve")
    assert (found.uncommitted, found.commits) == (("src/pump.py",), ("64274e0f Mend the valve",))
    session.bash("git commit -am 'Oil the pump'", "[rows 1111111] Oil the pump")
    assert tree(session).uncommitted == ()
    assert tree(session).commits == ("64274e0f Mend the valve", "1111111 Oil the pump")


def test_a_session_that_is_cut_between_add_and_commit_comes_to_the_same() -> None:
    first, second = Session(), Session()
    edited(first, "src/valve.py", "src/pump.py")
    first.bash("git add src/valve.py")
    second.bash("git commit -m x", "[rows 64274e0f] x")
    work = ActiveWork(git=tree(first))
    assert tree(second, work).uncommitted == ("src/pump.py",)


def test_the_status_says_what_is_uncommitted_whole() -> None:
    session = Session()
    edited(session, "src/gone.py", "notes/a.md")
    session.bash("git status", STATUS)
    found = tree(session)
    assert found.branch == "orchard/rows"
    assert set(found.uncommitted) == {"src/valve.py", "docs/new.md", "src/pump.py", "todo.txt", "notes/a.md"}
    session.bash("git commit -m x", "[orchard/rows 64274e0f] x")
    assert set(tree(session).uncommitted) == {"src/pump.py", "todo.txt", "notes/a.md"}


def test_a_short_status_and_one_that_is_cut_are_understood() -> None:
    session = Session()
    edited(session, "src/gone.py")
    session.bash("git status --short | head -2", " M src/valve.py\n?? todo.txt")
    assert set(tree(session).uncommitted) == {"src/gone.py", "src/valve.py", "todo.txt"}
    session.bash("git status -sb", "## rows...origin/rows [ahead 1]\nR  a.py -> b.py")
    assert (tree(session).branch, tree(session).uncommitted) == ("rows", ("b.py",))
    session.bash("git status", "On branch rows\nnothing to commit, working tree clean")
    assert tree(session).uncommitted == ()


def test_what_is_put_back_or_stashed_is_uncommitted_no_more() -> None:
    session = Session()
    edited(session, "a.py", "b.py", "c.py")
    session.bash("git checkout -- a.py")
    session.bash("git restore b.py")
    assert tree(session).uncommitted == ("c.py",)
    session.bash("git stash", "Saved working directory and index state WIP on rows: 1111111 x")
    assert tree(session).uncommitted == ()


def test_the_branch_follows_a_switch_and_the_client() -> None:
    session = Session()
    session.bash("git checkout -b pears", "Switched to a new branch 'pears'")
    assert tree(session).branch == "pears"
    session.add("assistant", "On we go.", branch="main")
    assert tree(session).branch == "main"
    session.add("assistant", "On we go.", branch="HEAD")
    assert tree(session).branch == "main"
    session.bash("git reset --hard 2222222", "HEAD is now at 2222222 Prune")
    assert tree(session).commit == "2222222 Prune"


def test_a_commit_that_is_amended_counts_once() -> None:
    session = Session()
    session.bash("git commit -m x", "[rows 1111111] x")
    session.bash("git commit --amend -m y", "[rows 2222222] y")
    assert tree(session).commits == ("2222222 y",)


def test_files_outside_the_project_and_failed_commands_change_nothing() -> None:
    session = Session()
    session.tool("Edit", {"file_path": "/etc/hosts"})
    session.bash("git commit -m x", "[rows 1111111] x", 1)
    assert tree(session) == WorkingTree()


def test_what_was_changed_after_the_last_test_run_is_not_tested() -> None:
    session = Session()
    edited(session, "src/valve.py", "docs/valve.md")
    assert tree(session).untested == ("src/valve.py",)
    session.bash("pytest -q", "3 passed in 0.2s")
    assert tree(session).untested == ()
    edited(session, "src/pump.py")
    assert tree(session).untested == ("src/pump.py",)


def test_where_head_moved_and_git_does_not_say_where_to_the_commit_is_unknown() -> None:
    session = Session()
    session.bash("git commit -m 'Mend the valve'", "[rows 64274e0f] Mend the valve\n 1 file")
    session.bash("git merge main", "Already up to date.")
    assert tree(session).commit == "64274e0f Mend the valve"
    session.bash("git merge main", "Merge made by the 'ort' strategy.")
    assert tree(session).commit == ""


def test_a_rebase_leaves_of_earlier_commits_their_subjects() -> None:
    session = Session()
    session.bash("git commit -m 'Mend the valve'", "[rows 64274e0f] Mend the valve\n 1 file")
    session.bash("git rebase main", "Successfully rebased and updated refs/heads/rows.")
    assert tree(session).commits == ("Mend the valve",)


def test_a_merge_of_which_git_tells_no_hash_is_told_by_what_was_merged() -> None:
    session = Session()
    session.bash("git commit -am 'Oil the pump'", "[rows 1111111] Oil the pump")
    session.bash("git merge origin/orchard --no-edit", "Merge made by the 'ort' strategy.\n a.py | 2 +-")
    assert tree(session).commits == ("1111111 Oil the pump", "merge of origin/orchard")
    assert wording.committed(tree(session)) == (
        "- committed in this session, newest first: merge of origin/orchard; 1111111 Oil the pump\n"
    )


def test_a_list_of_commits_and_a_push_say_where_the_branch_stands() -> None:
    session = Session()
    session.bash("git status", "On branch rows\n")
    session.bash("git rebase origin/main", "Successfully rebased")
    assert tree(session).commit == ""
    session.bash("git log --oneline -3", "12e7e04 Name the rows\n4961c53 Oil the pump\n")
    assert tree(session).commit == "12e7e04 Name the rows"
    session.bash("git log --oneline --all", "7777777 Of another branch\n")
    session.bash("git log --oneline origin/main", "8888888 Of the parent\n")
    assert tree(session).commit == "12e7e04 Name the rows"
    session.bash("git push --force-with-lease", "To host:a.git\n + 123a9dc...9999999 rows -> rows (forced update)\n")
    assert tree(session).commit == "9999999"


def test_a_push_counts_until_the_next_commit() -> None:
    session = Session()
    session.bash("git commit -m 'Mend it' && git push", "[rows 64274e0f] Mend it\n 1 file")
    assert tree(session).pushed
    session.bash("git commit -m 'Oil it'", "[rows 74274e0f] Oil it\n 1 file")
    assert not tree(session).pushed


def test_the_pull_request_is_the_one_that_was_made_or_checked_out_on_this_branch() -> None:
    session = Session()
    session.bash("gh pr view 181 --json title", "{}")
    assert tree(session).pull_request == "", "one that was only looked at may be any"
    session.bash("gh pr create --fill", "https://github.com/orchard/rows/pull/212")
    assert tree(session).pull_request == "212"
    session.bash("git checkout lanes", "Switched to branch 'lanes'")
    assert tree(session).pull_request == ""


def test_commits_of_another_branch_are_not_told_of_this_one() -> None:
    session = Session()
    session.bash("git commit -m 'Mend the valve'", "[rows 64274e0f] Mend the valve\n 1 file")
    session.bash("git checkout lanes", "Switched to branch 'lanes'")
    assert tree(session).commits == ()


def test_no_branch_path_or_subject_is_longer_than_those_that_there_are() -> None:
    git, long = Git(WorkingTree()), "x" * 300_000
    git.stands_on(long)
    git.changed(f"src/{long}")
    git.ran("git status", f"On branch {long}\nChanges not staged for commit:\n\tmodified:   {long}\n", str)
    git.ran(f"git add {long}", "", str)
    git.ran(f"git merge {long}", "Merge made by the 'ort' strategy.", str)
    assert len(repr(git.tree)) < 1_500
    ((_, message),) = commits("git commit", f"[main 64274e0f] {long}")
    assert len(message) <= 1_000


def test_thousands_of_uncommitted_files_take_little_time() -> None:
    def status(folder: str) -> str:
        names = "".join(f"\tmodified:   {folder}/{number}.py\n" for number in range(30_000))
        return f"On branch main\nChanges not staged for commit:\n{names}"

    def all_of_it() -> None:
        git = Git(WorkingTree())
        git.ran("git status", status("a"), str)
        git.ran("git status", status("b"), str)
        git.ran("git add " + " ".join(f"c/{number}" for number in range(30_000)), "", str)
        git.ran("git commit -m x", "[main 64274e0f] x", str)
        assert git.tree.uncommitted[-1] == "b/29999.py"

    within(AT_ONCE, all_of_it)
