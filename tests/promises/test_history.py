"""What happened to a route is listed, compared and taken back."""

from __future__ import annotations

from typing import Any

import pytest

from promises.user import Session, User

pytestmark = pytest.mark.ci


def log(user: User) -> list[dict[str, Any]]:
    """The history of the route, newest first."""
    events = user.does("log", "harbour", "--json").json()
    assert isinstance(events, list)
    return events


def says_and_checkpoints(user: User, session: Session, request: str) -> None:
    """One more turn, and a checkpoint of it."""
    session.says(request)
    session.answers("Done.")
    user.does("checkpoint", "harbour", "--transcript", session.log)


def test_the_log_lists_every_write_newest_first_with_revision_and_id(user: User) -> None:
    user.does("decide", "harbour", "Use SQLite")
    says_and_checkpoints(user, user.session(), "Please look after the moorings.")
    user.does("handover", "harbour", stdin="## Now\nThe parser is done\n## Next\n- Mend the gauge\n")
    user.write_note("harbour", "The pilot boat is red.")
    user.does("undo", "harbour", "DEC-001")
    events = log(user)
    assert [event["revision"] for event in events] == [5, 4, 3, 2, 1]
    assert [event["id"] for event in reversed(events)] == ["DEC-001", "cp-001", "", "", "DEC-001"]
    assert events[-1]["text"] == "Use SQLite"
    shown = user.does("log", "harbour").out
    assert shown.index("r5 ") < shown.index("cp-001") < shown.index("r1 ")


def test_the_log_has_the_word_of_the_brief_for_an_edit_of_the_file(user: User) -> None:
    user.does("decide", "harbour", "Use SQLite")
    user.edit(user.route_file("harbour"), "Use SQLite", "Use SQLite in WAL mode")
    user.does("decide", "harbour", "Cache tiles")
    assert "by hand" in user.does("log", "harbour").out
    assert "(by hand)" in user.does("show", "harbour").out


def test_a_decision_that_was_dropped_or_replaced_says_why_or_by_what(user: User) -> None:
    user.has_decided("harbour", "Use redis", "Use tabs")
    user.has_typed("undo", "harbour", "DEC-001", "--because", "measured: too slow")
    user.has_typed("decide", "harbour", "Use spaces", "--supersedes", "DEC-002")
    assert "measured: too slow" in user.does("show", "harbour", "DEC-001").out
    assert "superseded by DEC-003" in user.does("show", "harbour", "DEC-002").out


def test_a_diff_tells_what_came_and_went_between_two_moments(user: User) -> None:
    user.has_decided("harbour", "Use SQLite", "Cache tiles", "Draw in metres")
    user.does("undo", "harbour", "DEC-001")
    told = user.does("log", "harbour", "r1..r3", "--json").json()
    assert (told["from_revision"], told["to_revision"]) == (1, 3)
    assert [word["id"] for word in told["words"]] == ["DEC-002", "DEC-003"]
    shown = user.does("log", "harbour", "r2..now").out
    assert "Draw in metres" in shown and "Use SQLite" in shown and "Cache tiles" not in shown
    assert user.ralf("log", "harbour", "r9..").status == 3


def test_undo_takes_back_the_last_write_then_the_one_before_and_keeps_what_came_since(user: User) -> None:
    user.has_decided("harbour", "Use SQLite", "Cache tiles", "Draw in metres")
    user.has_typed("undo", "harbour", "r1", "--dry-run")
    assert user.decisions("harbour") == ["Use SQLite", "Cache tiles", "Draw in metres"]
    user.has_typed("undo", "harbour")
    user.has_typed("undo", "harbour")
    assert user.decisions("harbour") == ["Use SQLite"]
    user.does("decide", "harbour", "Moor at the pier")
    user.has_typed("undo", "harbour", "r4")  # the first undo
    assert sorted(user.decisions("harbour")) == ["Draw in metres", "Moor at the pier", "Use SQLite"]


def test_a_bare_undo_after_a_revert_takes_the_revert_back_and_the_next_one_goes_further(user: User) -> None:
    session = user.session()
    user.does("decide", "harbour", "Use SQLite")
    says_and_checkpoints(user, session, "Please look after the moorings.")
    user.does("decide", "harbour", "Cache tiles")
    says_and_checkpoints(user, session, "Now paint the pilot boat.")
    user.has_typed("undo", "harbour", "--to", "cp-001")
    user.has_typed("undo", "harbour")
    assert user.decisions("harbour") == ["Use SQLite", "Cache tiles"]
    assert "paint the pilot boat" in user.does("show", "harbour").out
    user.has_typed("undo", "harbour")
    assert user.decisions("harbour") == ["Use SQLite"]
    status, said = user.types("undo", "harbour", "r99")
    assert status == 3 and "no revision r99" in said
    status, said = user.types("undo", "harbour", "r5")  # the revert, after which more came
    assert status == 3 and "r5" in said


def test_an_agent_takes_back_its_own_writes_only(user: User) -> None:
    user.has_typed("decide", "harbour", "Use SQLite", "--new")
    agent = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": user.session().id}
    user.does("decide", "harbour", "Cache tiles", env=agent)
    user.does("undo", "harbour", env=agent)
    assert user.ralf("undo", "harbour", env=agent).status == 3
    assert user.decisions("harbour") == ["Use SQLite"]


def test_a_revert_restores_a_checkpoint_and_is_itself_reverted(user: User) -> None:
    session = user.session()
    user.does("decide", "harbour", "Use SQLite")
    says_and_checkpoints(user, session, "Please look after the moorings.")
    user.does("decide", "harbour", "Cache tiles")
    says_and_checkpoints(user, session, "Now paint the pilot boat.")
    before = user.does("show", "harbour").out
    assert "paint the pilot boat" in before
    user.has_typed("undo", "harbour", "--to", "cp-001")
    shown = user.does("show", "harbour").out
    assert "look after the moorings" in shown and "paint the pilot boat" not in shown
    assert user.decisions("harbour") == ["Use SQLite"]
    user.has_typed("undo", "harbour", "--to", "r4")
    assert user.decisions("harbour") == ["Use SQLite", "Cache tiles"]
    assert "paint the pilot boat" in user.does("show", "harbour").out
    user.does("checkpoint", "harbour", "--transcript", session.log)
    assert [event["revision"] for event in log(user)] == [6, 5, 4, 3, 2, 1]
