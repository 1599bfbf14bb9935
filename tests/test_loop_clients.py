"""The client of an agent: what is typed, what its preset adds and what reaches it; its usage limits, and all else that
its own records tell.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ralf.errors import UsageError
from ralf.project import Project
from ralf_integrations import environment
from ralf_integrations.health import limits
from ralf_integrations.loop import launch, told as tolds
from ralf_integrations.loop.launch import CLAUDE, CODEX, PLAIN, Agent
from ralf_integrations.loop.processes import Gate
from ralf_integrations.loop.state import Running
from ralf_integrations.loop.told import Told

AT = datetime(2026, 8, 19, 13, 40, tzinfo=UTC)
SESSION = "0b7f6b8e-6a52-4c5e-9a43-0d0f3b1f7f10"


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


def reached(tmp_path: Path, text: str, prompt: str) -> list[str]:
    """What a command gets: its arguments, then its standard input."""
    code = "import json, sys; print(json.dumps([*sys.argv[1:], sys.stdin.buffer.read().decode()]))"
    agent = Agent("", (sys.executable, "-c", code, *launch.parse(text).argv))
    logs = tmp_path / "logs"
    made = launch.make(agent, prompt, name="x", logs=logs, cwd=tmp_path, variables={"RALF_LEASE": "TASK-a:1"})
    gate = Gate()
    gate.open(made)
    assert os.waitpid(gate.process, 0)[1] == 0, (logs / "x.err").read_text()
    return json.loads((logs / "x.log").read_text().splitlines()[-1])


@pytest.mark.ci
@pytest.mark.parametrize("prompt", ['it\'s `$(done)` "so" {prompt} \\ \n two', "ключ 🔑", "-p --help", "x" * 50_000])
def test_any_prompt_reaches_an_agent_as_it_is_on_standard_input_and_in_an_argument(tmp_path: Path, prompt: str) -> None:
    assert reached(tmp_path, "agent --x", prompt) == ["agent", "--x", prompt]
    assert reached(tmp_path, "agent --task={prompt} y", prompt) == ["agent", f"--task={prompt}", "y", ""]


def test_a_prompt_that_no_command_line_holds_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        reached(tmp_path, "agent {prompt}", "x" * 200_000)


def test_an_agent_gets_the_users_environment_without_the_session_that_started_the_loop(monkeypatch) -> None:
    for name in ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "RALF_LEASE", "RALF_RUN_DIR", "GIT_DIR", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, "outer")
    for name in ("ANTHROPIC_API_KEY", "GIT_SSH_COMMAND", "LANG", "MINE"):
        monkeypatch.setenv(name, "kept")
    found = environment.of_an_agent()
    assert "outer" not in found.values()
    assert [found[name] for name in ("ANTHROPIC_API_KEY", "GIT_SSH_COMMAND", "LANG", "MINE")] == ["kept"] * 4


# ---- usage limits ----


@pytest.mark.parametrize(
    "said, time",
    [
        ("Claude AI usage limit reached|1787147400", "2026-08-19T13:50:00+00:00"),
        ("You've hit your session limit · resets 9:50pm (Asia/Saigon)", "2026-08-19T14:50:00+00:00"),
        ("You've hit your weekly limit · resets Aug 23 at 4pm (America/Recife)", "2026-08-23T19:00:00+00:00"),
        ("Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).", "2026-08-19T18:00:00+00:00"),
        ("5-hour limit reached ∙ resets 12:30am (UTC)", "2026-08-20T00:30:00+00:00"),
        ("try again in 3 days 4 hours 5 minutes.", "2026-08-22T17:45:00+00:00"),
        ("resets in 3h 20m", "2026-08-19T17:00:00+00:00"),
        ("resets Jan 2 at 3am (UTC)", None),  # further than a month: misread
        ("resets Monday", None),
        ("resets 25pm (UTC)", None),
        ("resets 9:50pm (Nowhere/Else)", "local"),
        ("no time at all", None),
    ],
)
def test_the_time_that_a_limit_names_is_read_in_every_form(said: str, time: str | None) -> None:
    found = limits.named_time(said, AT)
    if time == "local":
        assert found is not None
    else:
        assert found == (datetime.fromisoformat(time) if time else None)


@pytest.mark.parametrize(
    "said, is_limit",
    [
        ("You've hit your session limit · resets 9:50pm (UTC)", True),
        ("Claude AI usage limit reached|1787147400", True),
        ("You\u2019ve hit your usage limit. Try again later.", True),
        ("API Error: 529 Overloaded", False),
        ("Server is temporarily limiting requests (not your usage limit)", False),
        ("You've hit your monthly spend limit", False),
    ],
)
def test_a_usage_limit_is_told_from_any_other_failure_of_a_client(said: str, is_limit: bool) -> None:
    assert (limits.of_words(said) is not None) is is_limit


@pytest.mark.parametrize("when", [AT.timestamp(), -62135596800.0, 253402300799.0, 0.0, None])
def test_a_limit_that_is_told_at_any_time_ends_some_time(when: float | None) -> None:
    found = limits.of_words("You've hit your session limit · resets in 3 days", when)
    assert found is not None and found.until > 0


def test_a_limit_of_codex_is_told_by_its_last_line_and_timed_by_its_rates() -> None:
    rates = {"primary": {"used_percent": 100.0, "resets_at": 1787150000}, "secondary": {"used_percent": 3.0}}
    assert limits.resets(rates, AT) == 1787150000.0
    assert limits.of_codex_errors("a\nERROR: You've hit your usage limit. Try again in 2 hours.\n") is not None
    assert limits.of_codex_errors("ERROR: You've hit your usage limit.\nand more of an agent's words\n") is None


# ---- what clients tell ----


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return tmp_path


def lines(path: Path, *records: dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def said_by_claude(text: str, number: int = 1) -> dict:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 90, "cache_read_input_tokens": 999, "output_tokens": 5}
    message = {"id": f"m{number}", "model": "m", "content": [{"type": "text", "text": text}], "usage": usage}
    return {
        "type": "assistant",
        "requestId": f"r{number}",
        "sessionId": SESSION,
        "message": message,
        "uuid": str(number),
    }


def told_of(clients: Path, client: str, *, output: bytes = b"", errors: bytes = b"", status: int | None = 0) -> Told:
    (clients / "out").write_bytes(output)
    (clients / "err").write_bytes(errors)
    known = Running(client=client, session=SESSION if client == CLAUDE else "", last=str(clients / "last"))
    found = Told(Project(clients), known, clients / "out", clients / "err")
    found.finish(status)
    return found


def test_claude_code_is_read_by_its_transcript_and_its_result(clients: Path) -> None:
    path = lines(
        clients / "claude" / "projects" / "x" / f"{SESSION}.jsonl",
        {"type": "user", "sessionId": SESSION, "message": {"role": "user", "content": "go"}, "uuid": "0"},
        said_by_claude("half"),
        said_by_claude("half of it"),
        said_by_claude("Done.\n<promise>COMPLETE</promise>", 2),
    )
    found = told_of(clients, "claude-code")
    assert (found.transcript, found.tokens, found.usd, found.limit) == (path, 210, None, None)
    assert found.message.endswith("<promise>COMPLETE</promise>")
    result = {"type": "result", "is_error": False, "result": "All done", "total_cost_usd": 0.25, "session_id": SESSION}
    result["modelUsage"] = {"a": {"inputTokens": 500, "outputTokens": 7, "cacheReadInputTokens": 10**6}}
    found = told_of(clients, "claude-code", output=json.dumps(result).encode() + b"\n")
    assert (found.message, found.tokens, found.usd) == ("All done", 507, 0.25)  # sub-agents use tokens, too


def test_codex_is_read_by_its_rollout_and_its_last_message(clients: Path) -> None:
    head = (
        f"OpenAI Codex\n--------\nworkdir: /x\nsession id: {SESSION}\n--------\nuser\nsession id: {'0' * 36}\n".encode()
    )
    usage = {"input_tokens": 100, "cached_input_tokens": 80, "output_tokens": 7, "total_tokens": 107}
    error = {
        "message": "You've hit your usage limit, try again in 2 hours.",
        "codex_error_info": "usage_limit_exceeded",
    }
    rollout = clients / "codex" / "sessions" / "2026" / "08" / "19" / f"rollout-2026-08-19T13-00-00-{SESSION}.jsonl"
    meta = {"timestamp": AT.isoformat(), "type": "session_meta", "payload": {"id": SESSION, "cwd": "/x"}}
    count = {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": usage}}}
    over = {"timestamp": AT.isoformat(), "type": "event_msg", "payload": {"type": "task_complete", "error": error}}
    lines(rollout, meta, count, over)
    (clients / "last").write_text("It is done\n")
    found = told_of(clients, "codex", errors=head, status=1)
    assert (found.session, found.transcript, found.tokens) == (SESSION, rollout, 27)
    assert found.message == "It is done\n"
    assert found.limit is not None
    assert found.limit.until == AT.timestamp() + 7200
    lines(rollout, meta, count, over | {"payload": {"type": "task_complete", "error": None}})
    ends_so = head + b"ERROR: You've hit your usage limit.\n"  # an agent may print that: the rollout knows better
    assert told_of(clients, "codex", errors=ends_so, status=1).limit is None


def test_a_growing_transcript_is_counted_once_however_its_lines_arrive(
    clients: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tolds, "EVERY", 0.0)
    path = clients / "claude" / "projects" / "x" / f"{SESSION}.jsonl"
    found = Told(Project(clients), Running(client=CLAUDE, session=SESSION), clients / "out", clients / "err")
    found.look()
    assert found.tokens is None
    records = [said_by_claude("a"), said_by_claude("b"), said_by_claude("c", 2), {"type": "user", "usage": "odd"}]
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.parent.mkdir(parents=True)
    path.touch()
    seen = set()
    for place in range(0, len(data) + 99, 99):
        with path.open("ab") as file:
            file.write(data[place : place + 99])
        found.look()
        seen.add(found.tokens)
    assert seen == {None, 105, 210}  # an answer of two lines is one answer


@pytest.mark.ci
@given(st.binary(max_size=400))
def test_whatever_bytes_a_client_leaves_nothing_breaks(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as variables:
        here = Path(folder)
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
            variables.setenv(name, folder)
        path = here / "projects" / "x" / f"{SESSION}.jsonl"
        path.parent.mkdir(parents=True)
        record = json.dumps(said_by_claude("a")).encode()
        path.write_bytes(b'{"usage": ' + data + b"\n" + data + b'"assistant" "event_msg"\n' + record + b"\n")
        (here / "last").write_bytes(data)
        for client in (CLAUDE, CODEX, PLAIN):
            found = told_of(here, client, output=data, errors=data, status=1)
            assert found.tokens == (105 if client == CLAUDE else None)
