"""Sharing through git (docs/team.md): what one clone decides is in the others after a merge."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from promises.user import User

pytestmark = pytest.mark.ci


def clone(folder: Path, name: str) -> User:
    """Somebody of this name, with a clone of the hub in which they have switched sharing on."""
    hub = folder / "hub.git"
    found = User(folder / name / "home", folder / name / "project")
    if not hub.exists():
        found.git("init", "-q", "--bare", "-b", "main", str(hub))
    found.git("clone", "-q", str(hub), ".")
    found.git("config", "user.name", name)
    found.git("config", "user.email", f"{name}@example.org")
    return found


def shares(user: User, branch: str, *decisions: str) -> None:
    """Decide on a branch of one's own, and push it."""
    user.git("checkout", "-q", "-b", branch)
    user.does("init", "--share")
    for words in decisions:
        user.does("decide", "harbour", words)
    user.git("add", "-A")
    user.git("commit", "-q", "-m", branch)
    user.git("push", "-q", "origin", branch)


def merged(user: User, *branches: str) -> bool:
    """Whether git alone, as a host's button does, merges the branches without a conflict."""
    user.git("fetch", "-q")
    for branch in branches:
        attributes = ["git", "-c", "merge.ralf.driver=", "-c", "user.name=A Host", "-c", "user.email=h@example.org"]
        done = subprocess.run(
            [*attributes, "merge", "-q", "--no-edit", f"origin/{branch}"],
            cwd=user.project,
            env=user.environment(),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            return False
    return True


@pytest.fixture
def team(tmp_path: Path) -> tuple[User, User]:
    """Ann and Bob, who have decided different things for one route on two branches."""
    ann, bob = clone(tmp_path, "Ann"), clone(tmp_path, "Bob")
    for user in (ann, bob):
        user.git("commit", "-q", "--allow-empty", "-m", "begin")
    ann.git("push", "-q", "origin", "HEAD:main")
    bob.git("fetch", "-q")
    bob.git("reset", "-q", "--hard", "origin/main")
    shares(ann, "ann", "Use SQLite for the tide table")
    shares(bob, "bob", "Draw the levels in feet")
    return ann, bob


def test_two_clones_that_decide_on_two_branches_merge_without_ralf_and_both_have_both(team: tuple[User, User]) -> None:
    ann, bob = team
    assert merged(ann, "bob")
    assert merged(bob, "ann")
    for user in team:
        shown = user.does("show", "harbour").out
        assert "Use SQLite for the tide table" in shown
        assert "Draw the levels in feet" in shown


def test_a_third_person_sees_whose_decisions_they_are_and_speaks_for_neither(
    team: tuple[User, User], tmp_path: Path
) -> None:
    eve = clone(tmp_path, "Eve")
    assert merged(eve, "ann", "bob")
    lines = eve.does("show", "harbour").out.splitlines()
    assert any("Use SQLite" in line and "Ann" in line for line in lines), lines
    assert any("levels in feet" in line and "Bob" in line for line in lines), lines
    assert not [one for one in eve.does("show", "harbour", "--json").json()["decisions"] if one["origin"] == "user"]
    session = eve.session()
    handed = session.handed("SessionStart", source="startup")
    handed += session.handed("UserPromptSubmit", prompt="Go on with harbour.")
    assert "Use SQLite" not in handed


def test_who_asks_for_what_a_colleague_shares_hears_that_nothing_is_new(team: tuple[User, User]) -> None:
    ann, _ = team
    assert merged(ann, "bob")
    assert "accepted" in ann.has_typed("trust", "Bob", answer="y\n")
    assert "nothing new" in ann.does("trust", "Bob").out
    ann.ralf("trust", "Zoe").complains(3, "Zoe")


def test_sharing_is_refused_where_there_is_no_git(stranger: User) -> None:
    ran = stranger.ralf("init", "--share", "--yes")
    assert ran.status == 2 and "no git repository" in ran.err
    assert not list(stranger.project.iterdir())


def test_without_sharing_git_sees_nothing_of_the_store(user: User) -> None:
    user.does("decide", "harbour", "Use SQLite for the tide table")
    user.git("add", "-A")
    assert ".autonomous/context" not in user.git("ls-files")


def test_git_sees_the_decisions_of_a_shared_project_and_neither_talk_nor_output(tmp_path: Path) -> None:
    ann = clone(tmp_path, "Ann")
    ann.does("init", "--share")
    session = ann.session()
    session.says("The harbour master dislikes doubloons.")
    session.runs("cat rates.txt", "Zanzibar pays in guineas", failed=True)
    session.answers("Then we take ducats.")
    ann.does("checkpoint", "harbour", "--transcript", session.log)
    ann.does("decide", "harbour", "Take no foreign coins")
    ann.git("add", "-A")
    seen = ann.git("diff", "--cached")
    assert "Take no foreign coins" in seen
    assert not [words for words in ("doubloons", "guineas", "ducats") if words in seen]


def test_a_search_says_what_it_did_not_look_into_and_finds_it_under_the_name_of_its_author_once_it_is_accepted(
    team: tuple[User, User],
) -> None:
    ann, _ = team
    assert merged(ann, "bob")
    before = ann.does("search", "feet")
    assert "levels in feet" not in before.out
    assert "not searched, since nobody here has accepted it: 1 record of other clones: ralf status" in before.err
    status, _ = ann.types("trust", "Bob", answer="y\n")
    assert status == 0
    after = ann.does("search", "feet")
    assert "levels in feet" in after.out and "by Bob" in after.out
    assert "not searched" not in after.err


def test_log_and_why_name_the_person_whose_clone_has_decided(team: tuple[User, User]) -> None:
    ann, _ = team
    assert merged(ann, "bob")
    assert ann.types("trust", "Bob", answer="y\n")[0] == 0
    [line] = [one for one in ann.does("log", "harbour").out.splitlines() if "levels in feet" in one]
    assert "Bob" in line.split("Draw")[0]
    label = next(word for word in line.split() if word.startswith("DEC-"))
    why = ann.does("show", "harbour", label).out
    assert "Draw the levels in feet" in why and "by Bob" in why and "in another clone" in why
    [event] = [one for one in json.loads(ann.does("log", "harbour", "--json").out) if one["kind"] == "shared"]
    assert (event["id"][:4], event["time"][-1]) == ("DEC-", "Z")


def passed_on(giver: User, taker: User) -> str:
    """What holds in the route for one who accepts what another has pushed."""
    name = giver.project.parent.name
    giver.git("add", "-A")
    giver.git("commit", "-q", "--allow-empty", "-m", "whatever is new")
    giver.git("push", "-q", "origin", f"HEAD:{name.lower()}")
    assert merged(taker, name.lower())
    assert taker.types("trust", name, answer="y\n")[0] == 0
    return taker.does("show", "harbour", "--section", "decisions").out.partition("No longer in force")[0]


def test_a_decision_that_its_author_has_undone_is_in_force_for_no_colleague_until_the_undo_is_undone(
    team: tuple[User, User],
) -> None:
    ann, bob = team
    assert "Use SQLite" in passed_on(ann, bob)
    assert ann.types("undo", "harbour")[0] == 0
    assert "Use SQLite" not in passed_on(ann, bob)
    [undone] = [one for one in ann.does("log", "harbour", "--json").json() if one["kind"] == "undo"]
    assert ann.types("undo", "harbour", f"r{undone['revision']}")[0] == 0
    assert "Use SQLite" in passed_on(ann, bob)


def test_whoever_is_asked_to_accept_what_a_colleague_took_back_or_replaced_sees_the_words_and_whose_they_are(
    team: tuple[User, User],
) -> None:
    ann, bob = team
    assert ann.types("decide", "harbour", "Never delete a reading", "--rule")[0] == 0
    shown = passed_on(ann, bob)
    rule, choice = (next(line.split()[1] for line in shown.splitlines() if text in line) for text in ("Never", "SQL"))
    assert bob.types("undo", "harbour", rule)[0] == 0
    bob.does("decide", "harbour", "Use DuckDB", "--supersedes", choice)
    bob.git("add", "-A")
    bob.git("commit", "-q", "-m", "taken back")
    bob.git("push", "-q", "origin", "HEAD:bob")
    assert merged(ann, "bob")
    asked = ann.types("trust", "Bob", answer="y\n")[1]
    assert 'taken back: your rule "Never delete a reading"' in asked
    assert 'Use SQLite for the tide table"' in asked.partition("Use DuckDB")[2]
    assert "dropped by Bob" in ann.does("show", "harbour", rule).out


def test_a_label_without_the_tag_of_its_clone_means_the_only_one_that_has_its_number(team: tuple[User, User]) -> None:
    ann, _ = team
    ann.does("decide", "harbour", "Draw the levels in metres")
    status, said = ann.types("undo", "harbour", "DEC-002")
    assert status == 0 and "Draw the levels in metres" in said
    assert "Draw the levels" not in ann.does("show", "harbour", "--section", "decisions").out.partition("No longer")[0]


def test_a_colleagues_decision_that_somebody_dropped_and_no_longer_drops_is_in_force_again(
    team: tuple[User, User],
) -> None:
    ann, bob = team
    label = next(word for word in passed_on(ann, bob).split() if word.startswith("DEC-"))
    assert bob.types("undo", "harbour", label)[0] == 0
    assert "Use SQLite" not in passed_on(bob, ann)
    assert bob.types("undo", "harbour")[0] == 0
    assert "Use SQLite" in passed_on(bob, ann)
