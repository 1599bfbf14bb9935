"""A session that starts: who gets the brief, who the line, who nothing; and whose work it is."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import handingkit
import ralf
import storekit
from handingkit import DECISIONS, GOAL, ROUTE
from ralf.project import Project
from ralf.text import tokens
from ralf.text.cleaning import OWN_OUTPUT, outside
from ralf_integrations.hooks import session_registry
from ralf_integrations.hooks.messages import LIMIT, length

made, home, on_route = handingkit.made, handingkit.home, handingkit.on_route


def whole(text: str) -> str:
    """A text that was handed over: ours from its first to its last character, and no longer than clients take."""
    assert outside(text) == ""
    assert text.startswith(OWN_OUTPUT)
    assert length(text) <= LIMIT
    return text


@pytest.mark.usefixtures("on_route")
def test_a_session_with_a_named_route_gets_goal_step_decisions_files_and_failures(
    project: Path,
) -> None:
    text = whole(handingkit.start("new", project))
    assert GOAL in text
    for decision in DECISIONS:
        assert " ".join(decision.split()) in text
    for words in (
        "src/reader.py",
        "src/levels.py",
        "pytest -q tests/test_reader.py",
        "TideError",
        "Move part 6 of the",
    ):
        assert words in text


def test_a_route_that_has_nothing_is_not_spoken_of(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BB5_ROUTE", "empty-route")
    assert handingkit.start("new", project) == ""


@pytest.mark.usefixtures("on_route")
@pytest.mark.parametrize(("mode", "words"), [("off", ""), ("line", ROUTE), ("brief", GOAL)])
def test_the_configuration_says_how_much_is_handed_over(project: Path, mode: str, words: str) -> None:
    storekit.configure(project, f"inject: {mode}\n")
    text = handingkit.start("new", project)
    assert words in text
    assert bool(text) == bool(words)


@pytest.mark.usefixtures("on_route")
def test_a_resumed_session_gets_none_of_its_own_work_and_one_line_if_others_went_on(project: Path) -> None:
    assert handingkit.start("old", project, "resume") == ""
    shutil.copy(handingkit.kept(project, "old"), handingkit.kept(project, "s"))
    text = handingkit.start("other", project, "resume")
    assert ROUTE in text
    assert GOAL not in text


@pytest.mark.ci
@pytest.mark.usefixtures("on_route")
@pytest.mark.parametrize("replaced", [False, True])
def test_what_a_killed_session_has_not_checkpointed_reaches_the_one_that_follows(project: Path, replaced: bool) -> None:
    tail = "Use a queue of length 3 instead of a lock in the harbour's writer, since two writers starve each other."
    turns = [
        ("user", f"From now on: {tail}"),
        ("bash", ("make harbour", "harbour.c:7: error: no pier\nmake: failed", True)),
    ]
    if replaced:  # by a shorter one
        handingkit.kept(project, "old").write_bytes(b"")
    handingkit.log(handingkit.kept(project, "old"), "old", *turns, first=100)
    handingkit.remembered(
        project, "old", route=ROUTE, transcript=str(handingkit.kept(project, "old")), pid=2**22 - 1, born=1
    )
    text = handingkit.start("new", project)
    assert "make harbour" in text
    assert "queue of length 3" in text
    assert len(storekit.checkpoints_of(project, ROUTE)) == 2
    handingkit.start("newer", project)
    assert len(storekit.checkpoints_of(project, ROUTE)) == 2


@pytest.mark.ci
@pytest.mark.usefixtures("on_route")
@pytest.mark.parametrize(("machine", "pid"), [("elsewhere", 2**22 - 1), (session_registry.machine(), 0)])
def test_a_session_of_which_nobody_can_tell_whether_it_runs_is_let_be_for_an_hour(
    project: Path, machine: str, pid: int
) -> None:
    said = "SECRET-OF-THE-OTHER must wait for its own checkpoint"
    handingkit.log(handingkit.kept(project, "old"), "old", ("user", said), first=100)
    fields = {
        "route": ROUTE,
        "transcript": str(handingkit.kept(project, "old")),
        "machine": machine,
        "pid": pid,
        "born": 1,
    }
    handingkit.remembered(project, "old", **fields, seen=time.time() - 600)
    text = handingkit.start("new", project)
    assert "interrupted" not in text
    assert len(storekit.checkpoints_of(project, ROUTE)) == 1
    handingkit.remembered(project, "old", seen=time.time() - 4_000)
    assert "interrupted" in handingkit.start("another", project)
    assert len(storekit.checkpoints_of(project, ROUTE)) == 2


@pytest.mark.usefixtures("on_route")
def test_a_remembered_transcript_that_is_another_file_is_not_read(project: Path, tmp_path: Path) -> None:
    outside_ = tmp_path / "credentials"
    outside_.write_text("PASSWORD-OF-SOMEBODY is hunter2\n")
    handingkit.remembered(project, "old-2", route=ROUTE, transcript=str(outside_))
    other = tmp_path / "other.jsonl"
    handingkit.log(other, "somebody-else", ("user", "WORDS-OF-ANOTHER session of another project"))
    handingkit.remembered(project, "old-3", route=ROUTE, transcript=str(other))
    text = handingkit.start("new", project)
    assert GOAL in text
    assert "PASSWORD-OF-SOMEBODY" not in storekit.route_file(project, ROUTE).read_text() + text
    assert "WORDS-OF-ANOTHER" not in storekit.route_file(project, ROUTE).read_text() + text


@pytest.mark.usefixtures("on_route")
@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"null", b'{"session": 3}', b'{"session": "x", "briefed": 7}', b"\xff\xfe", b"[" * 9999),
        *(b'{"session": "x", "pid": "1"}', b'{"session": "x", "handed": [{"size": "y"}]}'),
        b'{"session": "x", "seen": "soon"}',
        b'{"session": "x", "routes": [["left-in-version-3", 512]], "later": {"version": 9}}',
    ],
)
def test_a_damaged_memory_of_sessions_costs_nothing_but_itself(project: Path, content: bytes) -> None:
    folder = session_registry.folder(Project(project))
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("new", "old", "x"):
        (folder / f"{name}.json").write_bytes(content)
    assert GOAL in handingkit.start("new", project)
    assert session_registry.load(Project(project), "new").briefed == (ROUTE,)


@pytest.mark.usefixtures("on_route")
def test_what_hooks_hand_over_of_a_route_is_at_most_a_twentieth_of_what_it_has_consumed(project: Path) -> None:
    """Of all its sessions together; but a brief never has less than 350 tokens beside the words around it."""
    consumed = ralf.get_context(ROUTE, root=project).total_tokens_consumed
    storekit.configure(project, "brief_tokens: 1000\n")
    handed, sizes = 0, []
    for number in range(4):
        text = handingkit.start(f"new-{number}", project)
        handingkit.hook("SessionEnd", f"new-{number}", project)
        sizes.append(tokens.count(text))
        assert sizes[-1] <= min(1_000, max(consumed // 20 - handed, 450)) * 1.05
        handed += sizes[-1]
    assert sizes[0] > 600 > 450 > sizes[-1] > 100
