"""Which route a session belongs to is told by exact names and ids, never by likeness."""

from __future__ import annotations

import shlex

import pytest

from promises.user import Session, User

pytestmark = pytest.mark.ci


def killed(user: User, prompt: str) -> Session:
    """A session that was asked for something, worked on it, was recorded, and whose client was killed."""
    session = user.session()
    session.begins(prompt)
    session.answers(words_of(prompt))
    session.edits("src/tides.py")
    session.hook("PostToolBatch", killed=True)
    user.does("checkpoint", session.route, "--transcript", session.log)
    return session


def words_of(prompt: str) -> str:
    """What the agent said when it was asked for something."""
    return f"I have begun with it: {prompt[::-1]}"


def test_a_session_whose_environment_names_a_route_is_handed_nothing_of_a_similar_one(user: User) -> None:
    killed(user, "Add tests for the login page")
    session = user.session()
    handed = session.begins("Add tests for the logout page", env={"RALF_TASK_ID": "TASK-007"})
    assert words_of("Add tests for the login page") not in handed


@pytest.mark.parametrize(
    ("first", "second", "wishes"),
    [
        (
            "TASK-041: Store the levels in SQLite.",
            "TASK-042: Serve the levels as JSON.",
            [
                "Continue with TASK-041",
                "Weiter mit TASK-041",
                "TASK-041",
                "Pick up TASK-041 where we left off",
                "继续 TASK-041",
            ],
        ),
        ("PROJ-7 Store the levels in SQLite.", "PROJ-8 Serve the levels as JSON.", ["Keep going with PROJ-7"]),
        ("Issue #41: the reader hangs", "Issue #42: the writer hangs", ["Continue with issue #41"]),
    ],
    ids=["TASK", "PROJ", "issue"],
)
def test_a_request_that_names_the_id_of_killed_work_continues_it_in_any_wording(
    user: User, first: str, second: str, wishes: list[str]
) -> None:
    wanted, _ = killed(user, first), killed(user, second)
    wrong = {}
    for wish in wishes:
        session = user.session()
        handed = session.starts(wish, killed=True)
        if session.route != wanted.route or words_of(first) not in handed:
            wrong[wish] = session.route
    assert wrong == {}


@pytest.mark.parametrize("prompt", ["Task TASK-042: Move the tide table to SQLite", "TASK-042: Move the tide table"])
def test_a_first_request_that_names_a_task_gets_the_route_and_the_current_task_of_that_id(
    user: User, prompt: str
) -> None:
    session = killed(user, prompt)
    assert session.route == "TASK-042"
    assert user.does("list", "--json").json()[0]["current_task"] == "TASK-042"


def test_a_route_that_begins_with_what_was_typed_is_named_where_there_is_no_such_route(user: User) -> None:
    user.does("decide", "proj-7-build-the-parser-for-tide-files", "Use argparse")
    user.ralf("show", "PROJ-7").complains(3, "PROJ-7", "proj-7-build-the-parser-for-tide-files")


def test_a_mistyped_route_is_refused_with_the_name_that_was_meant_and_makes_no_route(user: User) -> None:
    user.does("decide", "tidepool", "Use SQLite for the tide table")
    for words in (("decide", "tidepol", "Use WAL"), ("handover", "tidepol"), ("route", "tidepol")):
        ran = user.ralf(*words, stdin="The parser is done." if words[0] == "handover" else "")
        assert ran.status != 0, words
        assert "tidepool" in ran.err
    assert [row["route"] for row in user.does("list", "--json").json()] == ["tidepool"]


def test_no_route_is_called_close_that_shares_only_a_prefix_and_some_digits(user: User) -> None:
    user.does("decide", "TASK-1769903002", "Use argparse")
    assert "TASK-1769903002" not in user.ralf("show", "TASK-001").err


def test_a_text_typed_before_its_route_is_refused_with_the_command_that_was_meant(user: User) -> None:
    user.does("decide", "api-refactoring", "Use WAL")
    for text in ("Sqlite", "Use SQLite"):
        ran = user.ralf("decide", text, "api-refactoring", "--because", "one file")
        assert (ran.status, ran.out) == (2, "")
        assert f"ralf decide api-refactoring {shlex.quote(text)}" in ran.err
    assert [row["route"] for row in user.does("list", "--json").json()] == ["api-refactoring"]


def test_a_task_with_a_route_that_is_nearly_an_existing_one_is_told(user: User) -> None:
    user.does("decide", "api-refactoring", "Use WAL")
    added = user.does("task", "add", "Write the parser", "--route", "api-refactoing")
    assert f"ralf task edit {added.out.strip()} --route api-refactoring" in added.err


def test_the_environment_wins_over_route_use_that_over_the_branch_and_that_over_the_first_request(user: User) -> None:
    session = user.session()
    session.begins("Please fix the login form")
    assert "login" in session.route
    user.git("checkout", "-q", "-b", "tide-table")
    session = user.session()
    session.begins("Please fix the login form")
    assert session.route == "tide-table"
    agent = {"CLAUDE_CODE_SESSION_ID": session.id, "CLAUDECODE": "1"}
    user.does("route", "harbour", env=agent)
    assert session.route == "harbour"
    assert user.does("route", "--json", env=agent | {"RALF_TASK_ID": "TASK-007"}).json()["route"] == "TASK-007"
    user.does("decide", "lighthouse", "Paint it white", env={"RALF_TASK_ID": "TASK-007"})
    assert "Paint it white" in user.does("show", "lighthouse", env={"RALF_TASK_ID": "TASK-007"}).out


def test_a_session_never_changes_the_route_of_the_terminal(user: User) -> None:
    user.does("decide", "mine", "Paint it white")
    user.does("route", "mine")
    session = user.session()
    session.begins("Please fix the login form")
    user.does("route", "theirs", env={"CLAUDE_CODE_SESSION_ID": session.id, "CLAUDECODE": "1"})
    session.hook("PostToolBatch")
    assert session.route == "theirs"
    assert user.does("route", "--json").json()["route"] == "mine"


def test_a_route_that_the_agent_reads_before_any_work_becomes_its_sessions(user: User) -> None:
    login = killed(user, "Add tests for the login page")
    session = user.session()
    line = session.begins("Bitte mach mit den Tests für das Login weiter")
    assert login.route in line and "Add tests for the login page" in line
    agent = {"CLAUDE_CODE_SESSION_ID": session.id, "CLAUDECODE": "1"}
    assert words_of("Add tests for the login page") in user.does("show", login.route, "--brief", env=agent).out
    assert session.route == login.route


def test_a_name_that_is_meant_can_be_made_however_near_it_is_and_other_numbers_are_other_tasks(user: User) -> None:
    user.does("decide", "tidepool", "Use SQLite")
    user.does("decide", "TASK-041", "Use SQLite")
    user.does("decide", "tidepol", "Use WAL", "--new")
    user.does("decide", "tidepol", "Use one file")
    user.does("decide", "TASK-042", "Use WAL")
    user.does("decide", "lighthouse", "Paint it white")
    assert len(user.does("list", "--json").json()) == 5


def test_an_agent_whose_client_names_no_session_cannot_change_the_route_of_the_terminal(user: User) -> None:
    user.does("route", "mine")
    assert user.ralf("route", "theirs", env={"GEMINI_CLI": "1"}).status == 2
    assert user.does("route", "--json").json()["route"] == "mine"


def test_a_closed_route_is_offered_to_nobody_until_something_is_recorded_in_it(user: User) -> None:
    login = killed(user, "Add tests for the login page")
    user.does("route", login.route, "--close")
    assert user.does("list", "--json").json()[0]["closed"] == "closed"
    assert login.route not in user.session().starts("continue", killed=True)
    user.does("decide", login.route, "Use pytest")
    assert user.does("list", "--json").json()[0]["closed"] == ""
    assert login.route in user.session().starts("go on", killed=True)
    user.does("route", "nothing-yet")
    assert [row["route"] for row in user.does("list", "--json").json()] == [login.route]
