"""What is forgotten is in no file of the store."""

from __future__ import annotations

import unicodedata

import pytest

from promises.user import User, save

pytestmark = pytest.mark.ci

NAME = "Glimmerfen"
KILLS = -9


def spread(user: User) -> None:
    """Write a name wherever words are kept: decisions, checkpoints and their evidence, saves, memory, index."""
    session = user.session()
    session.says(f"Please ask {NAME} about the moorings.")
    session.runs("cat crew.txt", f"{NAME} is on duty", failed=True)
    session.answers(f"{NAME} said that they are free.")
    user.has_decided("harbour", "Use SQLite", f"Let {NAME} check the gauge")
    user.does("checkpoint", "harbour", "--transcript", session.log)
    user.write_note("harbour", f"{NAME} comes on Monday.")
    user.does("decide", "pier", f"Ask {NAME} first", "--because", "it is their pier")
    user.does("memory", "add", "fact", f"{NAME} has the key")
    user.does("search", NAME)


def test_forgotten_words_and_checkpoints_are_in_no_file_of_the_store_and_all_else_stays(user: User) -> None:
    spread(user)
    assert len(user.files_holding(NAME)) > 8
    user.does("forget", "harbour", "--text", NAME, "--yes")
    assert user.files_holding(NAME) == []
    user.does("verify")
    assert "Use SQLite" in user.decisions("harbour")
    user.does("decide", "harbour", "Go on")
    assert user.files_holding(NAME) == []
    assert user.does("search", NAME, "--json").json() == []
    assert user.files_holding("about the moorings") != []
    user.does("forget", "harbour", "cp-001", "--yes")  # with its evidence
    assert user.files_holding("about the moorings") == []
    assert "Use SQLite" in user.decisions("harbour")


def test_a_task_that_has_forgotten_words_loses_them_or_is_named(user: User) -> None:
    user.does("task", "add", "Ask at the pier", "--text", f"{NAME} knows the way.", "--id", "TASK-1")
    user.does("decide", "harbour", f"Let {NAME} check the gauge")
    forgot = user.ralf("forget", "harbour", "--text", NAME, "--yes")
    left = user.files_holding(NAME)
    assert [path for path in left if str(path) not in forgot.out + forgot.err] == []
    assert forgot.status == (1 if left else 0)


def test_each_line_of_a_forgotten_text_is_gone_where_it_stands_alone_too(user: User) -> None:
    lines = [f"the {color} gate opens at {NAME}{number}" for number, color in enumerate(("red", "blue", "green"))]
    session = user.session()
    session.runs("sh gates.sh", "\n".join(["begin", *lines, "Error: " + lines[1]]), failed=True)
    session.answers("They open.")
    user.does("checkpoint", "harbour", "--transcript", session.log)
    assert user.files_holding(lines[2]) != []
    user.does("forget", "harbour", "--text", "\n".join(lines), "--yes")
    assert [path for line in lines for path in user.files_holding(line)] == []


def test_forgotten_words_that_are_a_files_name_are_named(user: User) -> None:
    user.does("decide", "harbour", "Use SQLite")
    user.does("", "send", NAME.lower(), "Hello.", "--wait")
    forgot = user.ralf("forget", "harbour", "--text", NAME, "--yes")
    assert forgot.status == 1
    assert f"inbox/{NAME.lower()}" in forgot.err


def test_a_forget_that_is_killed_is_completed_by_the_next(user: User) -> None:
    user.does("decide", "harbour", "Use SQLite")
    for number, place in enumerate((150, 400)):
        user.does("decide", "harbour", f"Let {NAME} check gauge {number}")
        user.write_note("harbour", f"{NAME} comes on day {number}.")
        user.ralf("forget", "harbour", "--text", NAME, "--yes", fault=(place, KILLS))
        assert "Use SQLite" in user.decisions("harbour")
        user.does("forget", "harbour", "--text", NAME, "--yes")
        assert user.files_holding(NAME) == []
        user.does("verify")


def test_a_forgotten_decision_is_gone_with_its_reason_and_options(user: User) -> None:
    user.does(
        "decide",
        "harbour",
        "Use SQLite",
        "--because",
        "one file needs no server",
        "--instead-of",
        "Postgres: too large",
    )
    user.does("decide", "harbour", "Cache tiles")
    user.does("forget", "harbour", "DEC-001", "--yes")
    for words in ("Use SQLite", "one file needs no server", "Postgres: too large"):
        assert user.files_holding(words) == []
    assert user.decisions("harbour") == ["Cache tiles"]
    user.does("decide", "harbour", "Draw in metres")
    assert [one["id"] for one in user.does("show", "harbour", "--json").json()["decisions"]] == ["DEC-002", "DEC-003"]


def test_a_forgotten_route_leaves_nothing(user: User) -> None:
    user.does("decide", "harbour", f"Let {NAME} check the gauge")
    user.write_note("harbour", "The pilot boat is red.")
    user.does("decide", "harbour", "Go on")
    user.does("decide", "pier", "Ask first")
    user.does("search", NAME)
    user.does("forget", "harbour", "--yes")
    assert user.files_holding(NAME) == user.files_holding("pilot boat") == []
    assert [route["route"] for route in user.does("list", "--json").json()] == ["pier"]
    assert user.ralf("show", "harbour").status == 3


def test_a_forgotten_route_leaves_nothing_in_what_its_clone_shares(user: User) -> None:
    user.git("init", "-q", ".")
    user.has_typed("init", "--share", "--yes")
    user.does("decide", "harbour", f"Let {NAME} check the gauge")
    user.does("decide", "pier", "Ask first")
    assert len(user.files_holding(NAME)) > 0
    user.does("forget", "harbour", "--yes")
    assert user.files_holding(NAME) == []
    assert [route["route"] for route in user.does("list", "--json").json()] == ["pier"]
    user.does("decide", "harbour", "Begin again")
    assert user.ralf("doctor", "--store").status == 0


MARKED = (
    "Vi\u00ea\u0323\u0303t Nam l\u00e0 nha\u0300\u0323",
    "\u0634\u064e\u062f\u0651\u064e\u0629 \u0641\u064e\u0648\u0642 \u0627\u0644\u0633\u0651\u064e\u0637\u062d",
)
"""Vietnamese and Arabic, as keyboards write it: marks in another order than the canonical one."""


@pytest.mark.parametrize("text", MARKED)
def test_a_text_whose_letters_have_several_marks_is_forgotten(user: User, text: str) -> None:
    user.has_decided("harbour", text)
    user.does("forget", "harbour", "--text", unicodedata.normalize("NFC", text), "--yes")
    assert user.files_holding(text) == []


@pytest.mark.parametrize(
    "text", ["The gau\u00adge pro\u200bject is red", "Gauge login of the harbour: password=tHF4vUCsMehG until May"]
)
def test_a_text_that_was_stored_in_another_form_is_forgotten_as_it_was_given(user: User, text: str) -> None:
    user.has_decided("harbour", text)
    user.does("forget", "harbour", "--text", text, "--yes")
    assert user.files_holding("ject is red") == user.files_holding("login of the harbour") == []


def test_a_forget_that_is_not_confirmed_erases_nothing(user: User) -> None:
    user.has_decided("harbour", f"Let {NAME} check the gauge")
    assert user.ralf("forget", "harbour", "DEC-001").status == 2
    user.does("forget", "harbour", "DEC-001", "--dry-run")
    assert user.decisions("harbour") == [f"Let {NAME} check the gauge"]


def test_an_old_buffer_that_is_saved_after_a_forget_is_left_and_named(user: User) -> None:
    user.does("decide", "harbour", f"Let {NAME} check the gauge")
    path = user.route_file("harbour")
    buffer = path.read_text()
    user.does("forget", "harbour", "--text", NAME, "--yes")
    save(path, buffer)
    ran = user.ralf("decide", "harbour", "Go on")
    assert str(path) in ran.err
    assert user.files_holding(NAME) == [path]
    assert NAME not in user.does("search", "check the gauge").out


def test_nobody_is_asked_whether_to_forget_words_that_stand_nowhere(user: User) -> None:
    user.does("decide", "harbour", "Use SQLite")
    status, said = user.types("forget", "harbour", "--text", "zanzibar in guineas")
    assert status == 0 and "nothing to forget" in said and "cannot be undone" not in said
