"""A session that was killed is continued by the next one, in any client."""

from __future__ import annotations

import pytest

import rollouts
from promises.user import Session, User

pytestmark = pytest.mark.ci

ASKED = "Move the tide table from CSV to SQLite in ten steps. Never write to deploy/prod.env."
SAID = "Step 7 of 10: carry the harbour offsets over."
FAILED = "cat: src/harbours.csv: No such file or directory"
PROMISED = (ASKED, SAID, FAILED, "src/tides.py")


def works_and_is_killed(session: Session) -> None:
    """A session gets to step 7, and its client is killed: of what the agent says last no hook is called."""
    session.begins(ASKED)
    if session.client == "codex":
        patch = "*** Begin Patch\n*** Update File: src/tides.py\n@@\n-a\n+b\n*** End Patch"
        session.add(
            rollouts.custom("apply_patch", patch, "call_1"),
            rollouts.output("Success. Updated the following files:\nM src/tides.py", of="custom_tool_call_output"),
            rollouts.call("shell", {"command": ["bash", "-lc", "cat src/harbours.csv"]}, "call_2"),
            rollouts.ran(FAILED, 1, "call_2"),
        )
        session.hook("PostToolUse", killed=True)
        session.add(*rollouts.agent(SAID))
        return
    session.edits("src/tides.py", said="Step 6 of 10: the reader.")
    session.runs("cat src/harbours.csv", FAILED, failed=True)
    session.hook("PostToolBatch", killed=True)
    session.answers(SAID)


@pytest.mark.parametrize(
    ("first", "second"),
    [("claude-code", "claude-code"), ("claude-code", "codex"), ("codex", "gemini")],
)
def test_go_on_hands_the_next_client_what_was_said_and_done_by_the_one_that_was_killed(
    user: User, first: str, second: str
) -> None:
    works_and_is_killed(user.session(first))
    handed = user.session(second).begins("Go on.")
    assert [words for words in PROMISED if words not in handed] == []


def test_a_session_that_still_runs_is_not_continued_by_another(user: User) -> None:
    running = user.session()
    running.begins(ASKED)
    running.answers(SAID)
    running.hook("PostToolBatch")
    other = user.session()
    handed = other.begins("Go on.")
    assert ASKED not in handed and SAID not in handed
    assert other.route != running.route


def test_a_route_that_is_named_in_the_prompt_is_handed_over_once_in_a_window(user: User) -> None:
    user.does("decide", "harbour", "Use SQLite for the tide table", "--because", "one file needs no server")
    user.does("decide", "lighthouse", "Paint it white")
    session = user.session()
    handed = session.starts("Please build the reader. --load-context harbour")
    assert "Use SQLite for the tide table" in handed
    assert "Paint it white" not in handed
    assert "Use SQLite" not in session.handed("UserPromptSubmit", prompt="And go on. --load-context harbour")
