"""A route that comes back says which attempt this is, how the last one ended, and since when nothing has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ralf
from ralf import model
from ralf.facts.progress import has_progressed
from ralf.model import CommitFact, Facts, PathFact


def attempt(root: Path, number: int, *, edits: bool, promise: str) -> None:
    """One session on the route: it edits a file, or reads it, and says how it ended."""
    call = {"type": "tool_use", "id": "c1", "name": "Edit" if edits else "Read", "input": {"file_path": f"{root}/a.py"}}
    messages = [
        ("user", [{"type": "text", "text": "Work on the orchard until it says <promise>COMPLETE</promise>"}]),
        ("assistant", [{"type": "text", "text": "Let me look at it."}, call]),
        ("user", [{"type": "tool_result", "tool_use_id": "c1", "content": f"done {number}"}]),
        ("assistant", [{"type": "text", "text": f"That is as far as I got. <promise>{promise}</promise>"}]),
    ]
    lines = [
        {
            "type": who,
            "uuid": f"{number}-{n}",
            "sessionId": f"s-{number}",
            "cwd": str(root),
            "timestamp": f"2026-03-{number:02d}T10:0{n}:00.000Z",
            "message": {"role": who, "content": content},
        }
        for n, (who, content) in enumerate(messages)
    ]
    path = root / f"s-{number}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ralf.checkpoint("orchard", path, root=root)


@pytest.mark.ci
def test_a_route_that_comes_back_without_progress_says_so(tmp_path: Path) -> None:
    attempt(tmp_path, 1, edits=True, promise="PARTIAL")
    assert "attempt" not in ralf.get_context("orchard", root=tmp_path).render()
    attempt(tmp_path, 2, edits=True, promise="PARTIAL")
    for number in range(3, 13):
        attempt(tmp_path, number, edits=False, promise="BLOCKED")
    context = ralf.get_context("orchard", root=tmp_path)
    assert context.active_work.attempts == 12
    for text in (context.render(), context.render(400)):
        assert "- attempt 12; last outcome BLOCKED; nothing changed since attempt 2\n" in text


@pytest.mark.ci
def test_an_attempt_that_got_somewhere_is_not_blamed(tmp_path: Path) -> None:
    attempt(tmp_path, 1, edits=False, promise="PARTIAL")
    attempt(tmp_path, 2, edits=True, promise="COMPLETE")
    assert "- attempt 2; last outcome COMPLETE\n" in ralf.get_context("orchard", root=tmp_path).render()


def test_progress_is_a_changed_file_a_commit_or_a_new_result_of_a_test() -> None:
    known = Facts(tests=(model.TestFact("make test", "3 passed"),))
    assert not has_progressed(known, Facts(paths=(PathFact("a.py", ("read",)),), tests=known.tests))
    assert has_progressed(known, Facts(paths=(PathFact("a.py", ("edited", "read")),)))
    assert has_progressed(known, Facts(commands=(model.CommandFact("python - <<EOF"),)))
    assert has_progressed(known, Facts(commits=(CommitFact("9a4894a7", "Prune"),)))
    assert has_progressed(known, Facts(tests=(model.TestFact("make test", "4 passed"),)))
