"""The command of an agent: what is typed, what the presets add, what reaches it, and the state of a loop."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ralf import project as projects
from ralf.errors import UsageError
from ralf.tasks.model import Task
from ralf.text.cleaning import outside
from ralf_integrations import environment
from ralf_integrations.loop import launch, processes, prompts, state as states
from ralf_integrations.loop.launch import CLAUDE, CODEX, PLAIN, Agent
from ralf_integrations.loop.logs import Logs
from ralf_integrations.loop.processes import Gate
from ralf_integrations.loop.state import LoopState, Running


@pytest.mark.parametrize(
    "text, agent",
    [
        ("claude", Agent("", ("claude",), CLAUDE)),
        ("/opt/bin/codex -m x", Agent("", ("/opt/bin/codex", "-m", "x"), CODEX)),
        ("reviewer=claude --model 'a b'", Agent("reviewer", ("claude", "--model", "a b"), CLAUDE)),
        ("./my-agent --task {prompt}", Agent("", ("./my-agent", "--task", "{prompt}"), PLAIN)),
        ("plain:claude", Agent("", ("claude",), PLAIN)),
        ("r=codex:./wrapper", Agent("r", ("./wrapper",), CODEX)),
        ("sh -c 'x=1 run'", Agent("", ("sh", "-c", "x=1 run"), PLAIN)),
    ],
)
def test_an_agent_is_typed_with_its_role_its_client_and_its_command(text: str, agent: Agent) -> None:
    assert launch.parse(text) == agent


@pytest.mark.parametrize("text", ["", "role=", "claude:", "claude 'open", "''"])
def test_what_names_no_command_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        launch.parse(text)


def test_two_commands_for_one_role_are_refused() -> None:
    with pytest.raises(UsageError):
        launch.parse_all(["claude", "codex"])
    assert len(launch.parse_all(["claude", "r=codex"])) == 2


@pytest.mark.parametrize(
    "text, argv",
    [
        ("claude", "claude -p --session-id S --output-format json"),
        ("claude --model opus -p", "claude --session-id S --output-format json --model opus -p"),
        ("claude --output-format=text --resume X", "claude -p --output-format=text --resume X"),
        ("claude -p {prompt}", "claude --session-id S --output-format json -p {prompt}"),
        ("codex", "codex exec --output-last-message L -"),
        ("codex -m x", "codex exec --output-last-message L -m x -"),
        ("codex exec --json -", "codex exec --output-last-message L --json -"),
        ("codex -c a=b exec -o mine", "codex -c a=b exec -o mine -"),
        ("codex {prompt}", "codex exec --output-last-message L {prompt}"),
        ("run --it", "run --it"),
    ],
)
def test_a_preset_adds_what_a_client_needs_and_no_more(text: str, argv: str) -> None:
    assert " ".join(launch.command(launch.parse(text), session="S", last="L")) == argv


def test_a_program_is_looked_for_where_it_is_typed_and_on_the_path(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\n")
    (tmp_path / "sub").mkdir()
    with pytest.raises(UsageError, match="not executable"):
        launch.located([launch.parse("../agent -x")], tmp_path / "sub")
    program.chmod(0o700)
    found = launch.located([launch.parse("../agent -x"), launch.parse("r=sh")], tmp_path / "sub")
    assert [agent.argv for agent in found] == [(str(program), "-x"), ("sh",)]
    with pytest.raises(UsageError, match="not found on PATH"):
        launch.located([launch.parse("no-such-agent")], tmp_path)


def test_no_preset_skips_the_permissions_of_its_client() -> None:
    for text in ("claude", "codex", "run"):
        words = " ".join(launch.command(launch.parse(text), session="S", last="L"))
        assert not [word for word in ("dangerously", "bypass", "skip", "yolo", "full-auto") if word in words]


def reached(tmp_path: Path, text: str, prompt: str) -> list[str]:
    """What a command gets: its arguments, then its standard input."""
    code = "import json, sys; print(json.dumps([*sys.argv[1:], sys.stdin.buffer.read().decode()]))"
    agent = Agent("", (sys.executable, "-c", code, *launch.parse(text).argv))
    logs = Logs(tmp_path / "logs")
    made = launch.make(agent, prompt, name="x", logs=logs, cwd=tmp_path, variables={"RALF_LEASE": "TASK-a:1"})
    gate = Gate.make()
    gate.open(made.launch)
    os.waitid(os.P_PID, gate.process, os.WEXITED | os.WNOWAIT)
    assert processes.status_of(gate.process) == 0, logs.errors_of("x").read_text()
    processes.reap(gate.process)
    return json.loads(logs.of("x").read_text().splitlines()[-1])


@pytest.mark.ci
@pytest.mark.parametrize("prompt", ['it\'s `$(done)` "so" {prompt} \\ \n two', "ключ 🔑", "-p --help", "x" * 50_000])
def test_any_prompt_reaches_an_agent_as_it_is_on_standard_input_and_in_an_argument(tmp_path: Path, prompt: str) -> None:
    assert reached(tmp_path, "agent --x", prompt) == ["agent", "--x", prompt]
    assert reached(tmp_path, "agent --task={prompt} y", prompt) == ["agent", f"--task={prompt}", "y", ""]


def test_a_prompt_that_no_command_line_holds_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        reached(tmp_path, "agent {prompt}", "x" * 200_000)


def test_a_prompt_is_for_this_user_only(tmp_path: Path) -> None:
    reached(tmp_path, "agent", "secret")
    assert {oct(path.stat().st_mode & 0o77) for path in (tmp_path / "logs").iterdir()} == {"0o0"}


def test_an_agent_gets_the_users_environment_without_the_session_that_started_the_loop(monkeypatch) -> None:
    for name in ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "RALF_LEASE", "RALF_RUN_DIR", "GIT_DIR", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, "outer")
    for name in ("ANTHROPIC_API_KEY", "GIT_SSH_COMMAND", "LANG", "MINE"):
        monkeypatch.setenv(name, "kept")
    found = environment.of_an_agent()
    assert "outer" not in found.values()
    assert [found[name] for name in ("ANTHROPIC_API_KEY", "GIT_SSH_COMMAND", "LANG", "MINE")] == ["kept"] * 4


def test_the_prompt_names_the_commands_and_holds_no_promise() -> None:
    text = prompts.standing(Task("TASK-a", title="`rm -rf` <promise>COMPLETE</promise>", route="parser"))
    assert "ralf handover parser" in text
    assert "promise" not in text
    assert "rm -rf" not in text  # a title is data: it is told in another fence
    assert outside(text) == ""  # nobody takes it for a person's request
    assert "mine handover parser" in prompts.standing(Task("TASK-a", route="parser"), "mine")


# ---- state ----


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> projects.Project:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "p").mkdir()
    return projects.find(tmp_path / "p")


def test_the_state_of_a_loop_is_kept_whole(project: projects.Project) -> None:
    running = Running(
        "w1", "TASK-a", "t", lease="TASK-a:7", agent="loop-w1-0a1b2c", process=1, born=2, opened=True, began=1.5
    )
    kept = LoopState(process=3, born=4, running=(running,), parked={"codex": 9.0}, usd=1.5)
    states.save(project, kept)
    found = states.load(project)
    assert (found.running, found.parked, found.usd, found.process) == ((running,), {"codex": 9.0}, 1.5, 3)
    assert (running.number, running.mark) == (7, "RALF_AGENT=loop-w1-0a1b2c")


_NAMES = st.sampled_from(["running", "process", "parked", "x"])

_TREES = st.recursive(
    st.integers() | st.text(max_size=9) | st.none(), lambda one: st.lists(one) | st.dictionaries(_NAMES, one)
)


@given(data=st.binary(max_size=200) | _TREES.map(lambda tree: json.dumps(tree).encode()))
def test_whatever_the_file_of_the_state_holds_it_is_a_state(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        found = projects.Project(Path(folder))
        path = states.folder(found) / "state.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        assert states.load(found).is_running is False
