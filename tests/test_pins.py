"""A message that is pinned is in every brief until the pin is taken off."""

from __future__ import annotations

from pathlib import Path

import pytest

from promises.user import Session, User

pytestmark = pytest.mark.ci

RULE = "Never number a gauge from zero: the harbour master counts from one."


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User.initialized(tmp_path)


@pytest.fixture
def session(user: User) -> Session:
    """A session in which the person gave a rule long ago."""
    found = user.session()
    found.says("Carry the gauges over.")
    found.answers("I read them first.")
    found.says(RULE)
    found.answers("Understood.")
    for number in range(40):
        found.says(f"And now gauge {number}, please, with its offset and its two neighbours up the river.")
        found.answers(f"Gauge {number} is carried over.")
    user.does("checkpoint", "harbour", "--transcript", found.log)
    return found


def test_a_message_that_is_pinned_by_its_line_is_in_every_brief_until_undo_takes_it_off(
    user: User, session: Session
) -> None:
    assert RULE not in user.does("show", "harbour", "--max-tokens", "500").out
    user.does("decide", "harbour", "--pin", "3")
    assert RULE in user.does("show", "harbour", "--max-tokens", "500").out
    assert RULE in user.route_file("harbour").read_text(encoding="utf-8")
    (pinned,) = user.does("show", "harbour", "--json").json()["pinned"]
    assert (pinned["line"], pinned["words"]) == (3, RULE)
    user.does("undo", "harbour")
    assert RULE not in user.does("show", "harbour", "--max-tokens", "500").out
    assert user.does("show", "harbour", "--json").json()["pinned"] == []


def test_a_pin_that_is_forgotten_leaves_no_word_behind(user: User, session: Session) -> None:
    user.does("decide", "harbour", "--pin", "3")
    user.does("forget", "harbour", "--text", "harbour master counts from one", "--yes")
    assert user.files_holding("harbour master counts from one") == []
