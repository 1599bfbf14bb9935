"""Facts are taken mechanically from calls and results, in exact strings, however the transcript is cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from factskit import Extracted, extract
from ralf.facts import checks, commands
from ralf.facts.facts import facts_of
from ralf.facts.progress import combine
from ralf.model import Facts
from ralf.talk.recording import record
from ralf.talk.turns import thread
from ralf.transcripts.events import Event
from recordkit import BASE, Session


@pytest.fixture
def session() -> Session:
    return Session()


def extracted(session: Session, **fields: Any) -> Extracted:
    """The facts and the work of all events."""
    return extract(session.events, base=BASE, **fields)


def did(result: Extracted) -> dict[str, tuple[str, ...]]:
    return {fact.path: fact.did for fact in result.facts.paths}


# ---- paths ----


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("NotebookEdit", {"notebook_path": f"{BASE}/n.ipynb"}, "edited"),
        ("MultiEdit", {"file_path": f"{BASE}/n.ipynb"}, "edited"),
        ("read_file", {"absolute_path": f"{BASE}/n.ipynb"}, "read"),
        ("mcp__fs__write_file", {"path": f"{BASE}/n.ipynb"}, "edited"),
        ("str_replace_editor", {"command": "str_replace", "path": f"{BASE}/n.ipynb"}, "edited"),
    ],
)
def test_file_tools_of_other_clients_are_known_by_name_and_keys(
    session: Session, tool: str, arguments: dict[str, Any], expected: str
) -> None:
    session.tool(tool, arguments)
    assert did(extracted(session)) == {"n.ipynb": (expected,)}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rm -f old.py", {"old.py": ("deleted",)}),
        ("git mv old.py new.py", {"old.py": ("deleted",), "new.py": ("created",)}),
        ("git rm --cached kept.py", {}),
        ("mv old.py folder/", {"old.py": ("deleted",)}),
        ("sed -i 's/a/b/' one.py two.py", {"one.py": ("edited",), "two.py": ("edited",)}),
        ("sort names.txt > sorted.txt 2>/dev/null", {"sorted.txt": ("edited",)}),
        ("cat > run.sh <<'EOF'\nrm other.py\nit's\nEOF", {"run.sh": ("edited",)}),
        ("rm $FILES *.pyc", {}),
        ("test -f a || rm b.py", {}),
        ('echo "rm a.py > b.py"', {}),
    ],
)
def test_a_shell_command_marks_only_the_files_it_touched_for_certain(
    session: Session, command: str, expected: dict[str, tuple[str, ...]]
) -> None:
    session.bash(command)
    assert did(extracted(session)) == expected


# ---- commands, errors, tests, commits ----


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("===== 3 passed, 1 failed in 0.12s =====", "3 passed, 1 failed in 0.12s"),
        ("ok  \torchard/pear\t0.1s\nok  \torchard/plum\t(cached)", "ok orchard/plum (cached)"),
        (
            "--- FAIL: TestPear (0.0s)\nFAIL\torchard/pear\t0.1s",
            "--- FAIL: TestPear (0.0s); FAIL orchard/pear 0.1s",
        ),
        ("Tests:       1 failed, 3 passed, 4 total", "Tests: 1 failed, 3 passed, 4 total"),
        ("Ran 5 tests in 0.001s\n\nOK", "Ran 5 tests in 0.001s"),
    ],
)
def test_a_test_run_is_told_in_its_own_words(output: str, expected: str) -> None:
    assert checks.test_result(output) == expected


# ---- stretches ----


@pytest.mark.parametrize(
    ("command", "looks"),
    [
        ("ls -la && git -C /home/ada log --oneline | head -5", True),
        ("git branch -vv", True),
        ("git branch -D old", False),
        ("sed -n 1,9p a.py", True),
        ("sed -i s/a/b/ a.py", False),
        ("grep x a.py > found.txt", False),
        ("find . -name '*.o' -delete", False),
    ],
)
def test_a_command_that_only_looks_is_told_from_one_that_does_something(command: str, looks: bool) -> None:
    assert commands.only_looks(command) == looks


@st.composite
def sessions(draw: st.DrawFn) -> list[Event]:
    built = Session()
    names = st.sampled_from(["a.py", "b.py", "c.py"])
    for _ in range(draw(st.integers(0, 14))):
        step = draw(st.sampled_from(["edit", "read", "run", "fail", "ask", "rm", "todo", "commit"]))
        if step in ("edit", "read"):
            built.tool(step.title(), {"file_path": f"{BASE}/{draw(names)}"})
        elif step == "run":
            built.bash(draw(st.sampled_from(["make", "ls"])), "3 passed in 0.1s", 0)
        elif step == "fail":
            built.bash(draw(st.sampled_from(["make", "ls"])), "error: " + draw(st.sampled_from(["x", "y"])), 1)
        elif step == "ask":
            built.add(
                "user",
                draw(st.sampled_from(["yes", "Please ripen all of the pears", "Pack the plums after that, please"])),
            )
        elif step == "rm":
            built.bash("rm " + draw(names))
        elif step == "todo":
            built.tool(
                "TodoWrite", {"todos": [{"content": "Pick", "status": draw(st.sampled_from(["pending", "completed"]))}]}
            )
        else:
            built.bash("git commit -m x", f"[main {draw(st.sampled_from(['1234567', '89abcde']))}] x")
    return built.events


@given(sessions(), st.lists(st.integers(0, 28), max_size=4))
def test_cutting_a_session_anywhere_changes_no_fact(events: list[Event], cuts: list[int]) -> None:
    facts = Facts()
    entries = thread(record(events, BASE)).entries
    places = [0, *sorted(min(cut, len(entries)) for cut in cuts), len(entries)]
    for start, end in pairwise(places):
        facts = combine(facts, facts_of(entries[start:end], facts.errors))
    assert facts == combine(Facts(), facts_of(entries))


# ---- sub-agents and background tasks ----


def test_what_still_runs_in_the_background_is_told_until_it_ends_or_is_stopped(session: Session) -> None:
    for task, command in (("b1", "npm run dev"), ("b2", "make watch"), ("b3", "make slow")):
        session.tool("Bash", {"command": command}, "started", task=task)
    session.add("other", "", task="b2")
    session.tool("KillShell", {"shell_id": "b3"})
    work = extracted(session).work
    assert [(task.id, task.task) for task in work.running] == [("b1", "npm run dev")]
    session.events = []
    session.add("other", "", task="b1")
    assert extracted(session, work=work).work.running == ()
