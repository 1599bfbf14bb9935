"""After tools were used: every threshold gives one checkpoint, and in a full window the agent is asked to hand over."""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest

import hookkit
import ralf
import storekit
from hookkit import Rig, answered, wait
from ralf.storage import locks
from ralf_integrations.health.look import look, nudge
from ralf_integrations.hooks import error_log, session_registry, usage

pytestmark = pytest.mark.ci


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = hookkit.rig(tmp_path / "project")
    made.configure(threshold=3_000)
    return made


def percents(said: list[str]) -> list[int]:
    return [int(found) for text in said for found in re.findall(r"(\d+) % full", text)]


def test_a_hook_reads_no_more_than_a_client_can_wait_for_and_the_checkpoint_is_made_all_the_same(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.grow(4_000)
    monkeypatch.setattr(usage, "MOST_READ", rig.transcript.stat().st_size - 1)
    look, hook, readers = usage.look, os.getpid(), list[int]()
    monkeypatch.setattr(usage, "look", lambda *args, **more: readers.append(os.getpid()) or look(*args, **more))
    rig.hook("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_response={"stdout": "x"})
    assert hook not in readers
    assert {reason for reason, _ in rig.checkpoints()} == {"threshold"}


def test_after_a_transcript_was_replaced_hooks_go_on_with_the_new_one(rig: Rig) -> None:
    rig.grow(4_000)
    rig.hook()
    assert len(rig.checkpoints()) == 1
    rig.turns = storekit.write_session(rig.transcript, 2_500, rig.session)
    lines = rig.transcript.read_text(encoding="utf-8").splitlines(keepends=True)
    rig.transcript.write_text("".join(lines[1:]), encoding="utf-8")
    rig.grow(3_500)
    rig.hook()
    assert len(rig.checkpoints()) >= 2
    rig.hook("SessionEnd", reason="other")
    assert sum(tokens for _, tokens in rig.checkpoints()[1:]) >= 5_500
    assert error_log.take_unsaid(rig.project) == ""


@pytest.mark.ci
def test_hooks_at_once_make_one_checkpoint(rig: Rig) -> None:
    rig.grow(4_000)
    said = answered([rig.start("PostToolBatch") for _ in range(6)])
    rig.settle()
    assert {one.out for one in said} == {""}
    assert [reason for reason, _ in rig.checkpoints()] == ["threshold"]


@pytest.mark.ci
def test_what_a_killed_worker_has_not_made_the_next_hook_makes(rig: Rig) -> None:
    rig.grow(4_000)
    with locks.locked(rig.project.route_lock("default"), "the test"):  # the worker comes as far as the write
        answered([rig.start("PostToolBatch")])
        wait(rig.workers)
        wait(lambda: _waits_for_a_lock(rig.workers()[0]))
        for worker in rig.workers():
            os.kill(worker, signal.SIGKILL)
        rig.settle()
        assert rig.checkpoints() == []
    rig.grow(2_500)
    rig.hook()
    assert sum(tokens for _, tokens in rig.checkpoints()) > 5_000
    spans = storekit.checkpoints_of(rig.root, "default")
    assert [span[1] for span in spans] == [0, *(span[2] for span in spans[:-1])]


def _waits_for_a_lock(process: int) -> bool:
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(OSError):  # it has ended
            waits_in = (thread / "wchan").read_text()
            if "flock" in waits_in or "locks" in waits_in:
                return True
    return False


LINE = (
    "ralf: the window is 71 % full. Before it is compacted, hand over, in at most 400 words: ralf handover default"
    ' <<\'EOF\' \u2026 EOF, with the parts "## Now", "## Next", "## Open", "## Decided" (a bullet each, then "why:" and'
    ' "not:" on lines of their own), "## Avoid", "## Facts". Files, commands and the person\'s words are recorded'
    " already."
)


def test_an_agent_whose_window_fills_is_asked_once_in_one_line_to_hand_over_and_not_to_stop(rig: Rig) -> None:
    rig.configure(threshold=50_000)
    rig.grow(500)
    said = []
    for used in (100_000, 121_000, 142_000, 143_000, 159_000, 171_000, 181_000, 192_000):
        rig.answers(used)
        said += [rig.hook().context, rig.hook().context]
    assert [text for text in said if text] == [LINE]
    assert [reason for reason, _ in rig.checkpoints()] == ["pressure"]
    assert [handed.what for handed in session_registry.load(rig.project, rig.session).handed] == ["pressure"]


def test_an_agent_that_a_look_at_all_sessions_has_asked_gets_that_notice_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", rig.environment["CLAUDE_CONFIG_DIR"])
    rig.configure(threshold=50_000)
    rig.grow(500)
    rig.hook()
    rig.answers(142_000)
    for sessions in ([rig.session], []):
        assert nudge(rig.project, look(root=rig.root)) == sessions
    assert LINE in rig.hook().context
    rig.answers(150_000)
    assert rig.hook().context == ""


@pytest.mark.parametrize(("tokens", "asked"), [(2_000, False), (12_000, True)])
def test_an_agent_that_has_handed_over_within_10_000_tokens_is_not_asked(rig: Rig, tokens: int, *, asked: bool) -> None:
    rig.configure(threshold=50_000)
    rig.grow(500)
    ralf.hand_over("default", "## Now\n\nThe reader stands.\n", root=rig.root)
    later = {"timestamp": "2099-01-01T00:00:00Z"}
    rig.answers(100_000, text="The tide table is a list of heights. " * (tokens // 8), **later)
    rig.answers(142_000, **later)
    assert rig.hook().context == (LINE if asked else "")


def test_an_agent_that_sets_its_task_to_done_is_asked_once_to_hand_over(rig: Rig) -> None:
    rig.configure(threshold=50_000)
    rig.grow(500)
    assert rig.hook().context == ""  # from here on nothing is looked at before the threshold
    for number in range(2):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ralf task done It works"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "done"}
        rig.add({"type": "assistant", "message": {"role": "assistant", "model": "m", "content": [call]}})
        rig.add({"type": "user", "message": {"role": "user", "content": [result]}})
        said = rig.hook(tool_calls=[{"tool_name": "Bash", "tool_input": call["input"]}]).context
        assert said.startswith("ralf: the task is set to done. Hand over what it leaves behind, in at most 400 words: ")
        assert rig.hook().context == ""


def test_an_agent_of_a_loop_is_told_to_hand_over_and_end_at_the_configured_pressure(rig: Rig) -> None:
    rig.configure(threshold=50_000, hand_over_at=50)
    rig.environment["RALF_LEASE"] = "TASK-7k3q:17"
    rig.grow(500)
    rig.answers(101_000)
    said = rig.hook().context
    assert "hand over and end your turn without `ralf task done`" in said
    assert "ralf handover default" in said


def test_a_checkpoint_at_the_threshold_lowers_no_pressure(rig: Rig) -> None:
    rig.grow(500)
    rig.answers(125_000)
    assert rig.hook().context == ""
    rig.grow(4_000)
    rig.answers(143_000)
    assert percents([rig.hook().context]) == [72]
    assert [reason for reason, _ in rig.checkpoints()] == ["pressure", "threshold"]


def test_the_agent_is_asked_again_once_its_window_was_emptied_and_has_filled_again(rig: Rig) -> None:
    rig.configure(threshold=50_000)
    rig.grow(500)
    said = []
    for used in (145_000, 130_000, 146_000, 30_000, 100_000, 147_000):
        rig.answers(used, text=f"There were {used} tokens in it.")
        said.append(rig.hook().context)
    assert percents(said) == [72, 74]
    assert [reason for reason, _ in rig.checkpoints()] == ["pressure", "pressure"]


@pytest.mark.parametrize(("mark", "said"), [(80, [82]), (101, [])])
def test_the_mark_at_which_the_agent_is_asked_is_configurable(rig: Rig, mark: int, said: list[int]) -> None:
    rig.configure(threshold=50_000, hand_over_at=mark)
    found = []
    for used in (145_000, 155_000, 165_000, 191_000):
        rig.answers(used)
        found.append(rig.hook().context)
    assert percents(found) == said


def test_a_finished_to_do_list_makes_a_checkpoint(rig: Rig) -> None:
    rig.configure(threshold=50_000)
    rig.grow(800)
    todos = [{"content": "one", "status": "completed", "activeForm": "one"}]
    call = {"type": "tool_use", "id": "t1", "name": "TodoWrite", "input": {"todos": todos}}
    rig.hook()
    rig.add({"type": "assistant", "message": {"role": "assistant", "model": "m", "content": [call]}})
    rig.hook(tool_calls=[{"tool_name": "TodoWrite", "tool_input": {"todos": todos}, "tool_response": "ok"}])
    assert [reason for reason, _ in rig.checkpoints()] == ["todos-done"]
    rig.add({"type": "assistant", "message": {"role": "assistant", "model": "m", "content": [call]}})
    rig.hook(tool_calls=[{"tool_name": "TodoWrite"}])
    assert len(rig.checkpoints()) == 1


def test_what_goes_wrong_is_shown_once_and_breaks_nothing(rig: Rig) -> None:
    rig.project.config_file.write_text("treshold: 5\n")
    rig.grow(4_000)
    said = [rig.hook().notice, rig.hook().notice, rig.hook("UserPromptSubmit", prompt="x").notice]
    assert [bool(text) for text in said] == [True, False, False]
    assert "unknown key 'treshold'" in said[0]
    assert error_log.log(rig.project).read_text().count("treshold") >= 1
    rig.configure(threshold=3_000)
    assert rig.hook().out == ""
    assert [reason for reason, _ in rig.checkpoints()] == ["threshold"]


def test_the_log_is_bounded_and_holds_no_secret(rig: Rig) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for number in range(400):
        error_log.add(rig.project, "PostToolBatch", ValueError(f"number {number} {token} " + "x" * 300))
    text = error_log.log(rig.project).read_text()
    assert len(text.encode()) <= error_log.MOST
    assert "number 399" in text
    assert token not in text


def test_who_runs_is_told_by_number_and_time_of_birth(rig: Rig) -> None:
    rig.environment["CLAUDE_PID"] = str(os.getpid())
    rig.grow(500)
    rig.hook("SessionStart", source="startup")
    found = session_registry.load(rig.project, rig.session)
    assert (found.pid, found.born) == (os.getpid(), session_registry.process_start(os.getpid()))
    assert session_registry.is_live(found)
    assert not session_registry.is_live(session_registry.KnownSession("s", pid=os.getpid(), born=1))
    rig.hook("SessionEnd", reason="other")
    assert not session_registry.is_live(session_registry.load(rig.project, rig.session))


@pytest.mark.parametrize(("percent", "asked"), [("60", [56]), ("95", [72]), ("0", [72]), ("x", [72])])
def test_a_person_may_have_claude_code_compact_sooner(rig: Rig, percent: str, asked: list[int]) -> None:
    rig.environment["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"] = percent
    rig.grow(500)
    said = []
    for used in (112_000, 145_000):
        rig.answers(used)
        said.append(rig.hook().context)
    assert percents(said) == asked
