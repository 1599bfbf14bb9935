"""The installed command's first look: nothing is loaded and nothing done where nothing is due."""

from __future__ import annotations

import os
import posix
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import hookkit
import ralf
import storekit
from hookkit import Rig
from kit.git import git, repository
from ralf import routing
from ralf.maintenance import ownership
from ralf.tasks import keeping
from ralf_integrations.client import CLAUDE_CODE, CLIENTS
from ralf_integrations.hooks import instant, session_registry


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    for variable in (b"CLAUDE_PROJECT_DIR", b"RALF_PROJECT_DIR"):
        monkeypatch.delitem(posix.environ, variable, raising=False)  # type: ignore[arg-type]
    return hookkit.rig(tmp_path / "project")


@pytest.fixture
def looked(rig: Rig) -> Rig:
    """A session that was just looked at."""
    rig.grow(2_000)
    rig.hook()
    return rig


def is_idle(rig: Rig, event: str = "PostToolBatch", **more: object) -> bool:
    return instant.is_idle(rig.client, event, rig.payload(event, **more))


def test_a_session_is_looked_at_first_and_then_not_before_something_can_fall_due(rig: Rig) -> None:
    rig.grow(2_000)
    assert not is_idle(rig)
    rig.hook()
    assert is_idle(rig)
    rig.grow(2_000)
    assert is_idle(rig)
    rig.grow(30_000)
    assert not is_idle(rig)


@pytest.mark.ci
def test_between_two_checkpoints_with_small_outputs_few_looks_are_made(rig: Rig) -> None:
    rig.configure(threshold=20_000)
    wide = {"parentUuid": "4d7e7cb2-df1a-40c3-a4a2-54c208b008f2", "cwd": str(rig.root), "version": "2.1.36"}
    output, looks, calls = "the tide table of harbour reader column station level " * 14, 0, 0
    while not rig.checkpoints() and calls < 400:
        calls += 1
        call = {"type": "tool_use", "id": f"toolu_{calls:024}", "name": "Bash", "input": {"command": "make part"}}
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": output}
        rig.add(
            {**wide, "type": "assistant", "message": {"role": "assistant", "model": "m", "content": [call]}},
            {**wide, "type": "user", "message": {"role": "user", "content": [result]}, "toolUseResult": output},
        )
        if not is_idle(rig):
            looks += 1
            rig.hook()
    assert rig.checkpoints()[0][0] == "threshold"
    assert looks <= 12
    assert calls > 5 * looks


def test_each_call_is_a_sign_of_life_of_an_agent_that_holds_a_task(
    looked: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = looked.project.cache / "leases" / "TASK-7k3q-17"
    held.parent.mkdir()
    held.touch()
    for more in ({}, {"agent_id": "a-1", "agent_type": "Explore"}):
        os.utime(held, (1, 1))
        assert is_idle(looked, **more)
        assert held.stat().st_mtime == 1
        monkeypatch.setitem(posix.environ, b"RALF_LEASE", b"TASK-7k3q:17")  # type: ignore[arg-type]
        assert is_idle(looked, **more)
        assert held.stat().st_mtime > 1
        monkeypatch.delitem(posix.environ, b"RALF_LEASE")  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [{}, {"agent_id": "a-1", "agent_type": "Explore"}])
def test_a_lease_of_an_engine_is_renewed_when_that_is_due_and_not_before(
    looked: Rig, monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    due = looked.project.cache / "leases" / "TASK-7k3q-17.due"
    due.parent.mkdir()
    due.touch()
    monkeypatch.setitem(posix.environ, b"RALF_LEASE", b"TASK-7k3q:17")  # type: ignore[arg-type]
    os.utime(due, (time.time() + 60, time.time() + 60))
    assert is_idle(looked, **more)
    os.utime(due, (time.time() - 1, time.time() - 1))
    assert not is_idle(looked, **more)
    looked.environment["RALF_LEASE"] = "TASK-7k3q:17"
    told: list[str] = []
    monkeypatch.setattr(keeping, "touch", lambda root: told.append(str(root)))
    looked.hook("PostToolUse", **more)
    assert told == [str(looked.project.root)]


CHANGES: dict[str, Callable[[Rig], object]] = {
    "the transcript shrank": lambda rig: os.truncate(rig.transcript, 100),
    "the transcript is another file": lambda rig: shutil.move(
        shutil.copy(rig.transcript, rig.transcript.with_suffix(".new")), rig.transcript
    ),
    "the transcript is gone": lambda rig: rig.transcript.unlink(),
    "the configuration was changed": lambda rig: rig.configure(threshold=60_000),
    "another route was chosen": lambda rig: routing.use(rig.project, "other", session=rig.session),
    "a notice has come": lambda rig: _notice(rig),
    "the window has filled up": lambda rig: rig.answers(142_000),
    "the hint is torn": lambda rig: os.truncate(session_registry.path_of(rig.project, rig.session), 30),
    "the hint is gone": lambda rig: session_registry.path_of(rig.project, rig.session).unlink(),
}


def _notice(rig: Rig) -> None:
    inbox = rig.project.folder / "journal" / "inbox" / f"{rig.session}.jsonl"
    inbox.parent.mkdir(parents=True, exist_ok=True)
    inbox.write_text("{}\n")


@pytest.mark.parametrize("change", CHANGES)
def test_it_looks_again_where(looked: Rig, change: str) -> None:
    assert is_idle(looked)
    CHANGES[change](looked)
    assert not is_idle(looked)


def test_a_mark_is_seen_behind_however_much_the_tools_of_one_answer_have_printed(looked: Rig) -> None:
    """The figures stand before what the tools printed."""
    looked.answers(126_000)
    printed = {"type": "tool_result", "tool_use_id": "t", "content": "level 7 cm\n" * 1_500}
    looked.add({"type": "user", "message": {"role": "user", "content": [printed]}})
    assert not is_idle(looked)


def test_hooks_that_are_off_are_off_for_every_event_until_they_are_on(looked: Rig) -> None:
    ownership.switch(looked.project, on=False)
    assert looked.hook("UserPromptSubmit", prompt="hello").out == ""
    assert all(is_idle(looked, event) for event in CLIENTS[looked.client].hooks)
    looked.grow(60_000)
    looked.hook()
    looked.hook("SessionEnd", reason="other")
    assert looked.checkpoints() == []
    ownership.switch(looked.project, on=True)
    assert not is_idle(looked)


def test_a_linked_worktree_is_looked_up_in_the_main_one(rig: Rig, tmp_path: Path) -> None:
    repository(rig.root)
    git(rig.root, "commit", "-q", "--allow-empty", "-m", "one")
    git(rig.root, "worktree", "add", "-q", tmp_path / "linked")
    linked = Rig(tmp_path / "linked", rig.transcript, environment=rig.environment)
    rig.grow(2_000)
    assert not is_idle(linked)
    linked.hook()
    assert is_idle(linked)
    assert session_registry.path_of(rig.project, rig.session).exists()


@pytest.mark.ci
def test_an_id_that_is_no_plain_name_stays_in_its_folder(rig: Rig) -> None:
    rig.session = "../../../outside"
    rig.grow(2_000)
    before = set(rig.root.parent.rglob("*"))
    rig.hook()
    rig.hook("SessionEnd", reason="other")
    outside = {path for path in set(rig.root.parent.rglob("*")) - before if rig.root not in path.parents}
    assert outside == set()
    assert rig.checkpoints()


def test_the_common_case_loads_next_to_nothing(looked: Rig) -> None:
    command = CLAUDE_CODE.command("PostToolBatch", shared=False)
    command[1:1] = ["-X", "importtime"]
    done = subprocess.run(command, input=looked.payload("PostToolBatch"), capture_output=True, check=True)
    loaded = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines() if b"import time" in line}
    assert "instant" in loaded
    heavy = "os re json typing pathlib dataclasses collections functools enum site ralf ralf_integrations".split()
    assert loaded.isdisjoint(heavy)


def test_a_command_whose_files_are_gone_does_not_block_the_client(tmp_path: Path) -> None:
    command = CLAUDE_CODE.command("UserPromptSubmit", shared=False)
    command[-3] = str(tmp_path / "gone")
    done = subprocess.run(command, input=b"{}", capture_output=True, check=False)
    assert done.returncode == 1  # 2 would keep every prompt from the agent


def test_a_hook_gives_up_in_time(rig: Rig) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import instant; instant.SECONDS = 0.3; "
    code += "instant.limit_time.__defaults__ = (0.3,); instant.main()"
    command = CLAUDE_CODE.command("PostToolBatch", shared=False)
    command[command.index("-c") + 1] = code
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.wait(timeout=storekit.HANGS) == 0  # its standard input is open still


def test_a_pipe_in_the_transcript_s_place_hangs_nobody(rig: Rig) -> None:
    os.mkfifo(rig.transcript)
    said = rig.hook()
    assert "pipe" in said.notice


@pytest.mark.ci
def test_an_answer_is_written_into_no_file_where_the_streams_are_closed(rig: Rig) -> None:
    ralf.record_decision("TASK-9", "Keep the old columns", root=rig.root)
    rig.environment["RALF_TASK_ID"] = "TASK-9"
    with subprocess.Popen(
        CLIENTS[rig.client].command("SessionStart", shared=False),
        stdin=subprocess.PIPE,
        preexec_fn=lambda: os.closerange(1, 3),
        cwd=rig.root,
        env=storekit.environment(rig.root.parent, **rig.environment),
    ) as child:
        child.communicate(rig.payload("SessionStart", source="startup"), timeout=storekit.HANGS)
    assert child.returncode == 0
    locks = [path for path in rig.project.folder.joinpath("locks").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in locks] == [b""] * len(locks)
    assert locks
    assert "Keep the old columns" in rig.hook("SessionStart", source="startup").out  # there was something to say
