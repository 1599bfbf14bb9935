"""One choice takes the place of another by what both are about: the same subject, the old thing named, a new one."""

from __future__ import annotations

import pytest

from ralf.summarize.supersession import phrases, replaces

OLD = "The harvest store runs on Postgres."


@pytest.mark.parametrize(
    "new",
    [
        "We moved the harvest store off Postgres, it is on SQLite today.",
        "Postgres is out of the harvest store; SQLite is in.",
        "Postgres was more than we could run, so SQLite does the job of the harvest store.",
        "The harvest store outgrew Postgres. SQLite from here.",
        "Not Postgres but SQLite is what the harvest store writes to.",
        "SQLite ousted by nobody: it supersedes Postgres for the harvest store.",
        "Let us forget Postgres for the harvest store, and take SQLite instead.",
        "The harvest store had Postgres, it has SQLite.",
    ],
)
def test_the_verb_does_not_matter(new: str) -> None:
    assert replaces(new, OLD)


@pytest.mark.parametrize(
    "new",
    [
        "The harvest store keeps Postgres, not SQLite.",
        "Postgres stays in the harvest store, SQLite did not do.",
        "The harvest store runs on Postgres and SQLite now.",
        "For the harvest store we use Postgres rather than SQLite.",
        "The harvest store now writes to Postgres in batches, as well as SQLite files, and still uses Postgres.",
        "Is Postgres not too slow for the harvest store, and SQLite better?",
        "Now run the Postgres tests of the harvest store without SQLite.",
    ],
)
def test_a_thing_that_is_kept_joined_or_asked_about_is_not_replaced(new: str) -> None:
    assert not replaces(new, OLD)


@pytest.mark.parametrize(
    "new",
    [
        "SQLite instead of Postgres for the harvest index.",
        "The picker queue moved from Postgres to SQLite.",
        "Postgres failed in the picker store, so it is SQLite there.",
    ],
)
def test_another_subject_is_left_alone(new: str) -> None:
    assert not replaces(new, OLD)


def test_what_an_older_decision_turned_away_from_is_turned_away_from_again() -> None:
    old = "The public parser must not throw."
    assert not replaces("I turned on a lint, so that a throw can't slip back into the public parser.", old)
    told = "The test should verify logs {} the file{} instead of asserting no file exists."
    assert not replaces(told.format("are written to", " (without `session_id`)"), told.format("go to", ""))


def test_a_long_message_speaks_of_more_than_one_choice() -> None:
    assert not replaces(f"The harvest store drops Postgres for SQLite, {'and so on with words ' * 10}.", OLD)


def test_a_name_is_two_words_that_stand_together() -> None:
    assert phrases("the harvest store, Postgres: of the picker") == {("harvest", "store")}
