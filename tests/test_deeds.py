"""What an agent posted, created and renamed is told from the call and its answer."""

from __future__ import annotations

from typing import Any

import pytest

from ralf.summarize.deeds import deeds
from ralf.transcripts.events import Event, Position

START, END = Position(0, 0), Position(1, 1)


def told(tool: str, given: dict[str, Any], answer: str = "") -> list[str]:
    call = Event("call", "", START, END, tool=tool, input=given, call_id="c")
    return deeds(call, Event("result", answer, START, END, tool=tool, call_id="c"))


@pytest.mark.parametrize(
    ("command", "answer", "deed"),
    [
        (
            'gh pr comment 91 --body "**TODO:** add \\`kind()\\` to the harbour"',
            "https://github.com/a/b/pull/91#issuecomment-1",
            "commented on pull request #91: TODO: add `kind()` to the harbour",
        ),
        (
            "gh issue create --title 'Tides are late' --body x",
            "https://github.com/a/b/issues/7",
            "created issue #7: Tides are late",
        ),
        (
            "gh pr comment 5 --body \"$(cat <<'EOF'\n## Bug: the tide is lost\nmore\nEOF\n)\"",
            "",
            "commented on pull request #5: Bug: the tide is lost",
        ),
        ("git branch -m tide/old tide/new", "", "renamed branch tide/old to tide/new"),
        ("gh pr merge 12 --squash", "", "merged pull request #12"),
    ],
)
def test_a_command_that_does_something_for_people_is_a_deed(command: str, answer: str, deed: str) -> None:
    assert told("Bash", {"command": command}, answer) == [deed]


def test_a_tool_that_creates_or_comments_is_a_deed_with_the_name_that_it_was_given() -> None:
    made = told("mcp__tickets__create_issue", {"title": "Count the buoys"}, '{"identifier":"TIDE-110"}')
    assert made == ["created issue TIDE-110: Count the buoys"]
    said = told("mcp__tickets__create_comment", {"issueId": "TIDE-110", "body": "## Plan v2\n\nSteps"})
    assert said == ["commented on TIDE-110: Plan v2"]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Bash", {"command": "gh pr view 91"}),
        ("Bash", {"command": "git branch -d tide/old"}),
        ("mcp__tickets__get_issue", {"id": "TIDE-1"}),
        ("TaskCreate", {"subject": "Count the buoys"}),
    ],
)
def test_what_only_looks_is_none(tool: str, given: dict[str, Any]) -> None:
    assert told(tool, given, "TIDE-1") == []
