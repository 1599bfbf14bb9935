"""Asking a command line: real programs that are good, slow, broken, refusing, dead and endless."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from ralf.refining.command import Command, Printed, Reply, Usage, read
from ralf.talk.answer import schema
from storekit import HANGS

MODEL = Path(__file__).parent / "clients" / "model.py"
ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def program(code: str, *arguments: str, timeout: float = 20) -> Command:
    return Command("command", (sys.executable, "-c", code, *arguments), timeout=timeout)


def failure(command: Command, prompt: str = "p") -> Reply:
    reply = command.ask(prompt, schema(), ENVIRONMENT)
    assert reply.tree is None and reply.problem
    return reply


@pytest.mark.parametrize("text", ['{"a": 1}', 'Here it is:\n```json\n{"a": 1}\n```\n', 'thinking …\n{"a": 1}\n'])
def test_an_answer_may_stand_alone_in_a_fence_or_on_the_last_line(text: str) -> None:
    assert program("import sys; print(sys.argv[1])", text).ask("", {}, ENVIRONMENT).tree == {"a": 1}


@pytest.mark.ci
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("broken", ""),
        ("refusing", "I cannot help with that."),
        ("dead", "1: 401: your key is not known"),
        ("endless", "4 MiB"),
    ],
)
def test_why_there_is_no_answer_is_said(mode: str, words: str) -> None:
    error = failure(Command("command", (sys.executable, str(MODEL), mode), timeout=20), "prompt " * 100)
    assert words in error.problem
    assert error.usage.estimated
    assert error.usage.input_tokens >= 100  # it may have read it all


@pytest.mark.ci
def test_one_that_takes_too_long_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    started = time.monotonic()
    failure(Command("command", (sys.executable, str(MODEL), "slow", str(tmp_path / "child")), timeout=3.0))
    assert time.monotonic() - started < 30  # it would take a minute
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + HANGS
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(child)


def test_one_that_has_answered_leaves_nothing_running_behind(tmp_path: Path) -> None:
    code = "import os, sys, time\nchild = os.fork() or time.sleep(60)\nopen(sys.argv[1], 'w').write(str(child))"
    assert program(f"{code}\nprint('{{}}')", str(tmp_path / "child")).ask("", {}, ENVIRONMENT).tree == {}
    deadline = time.monotonic() + HANGS
    while _runs(int((tmp_path / "child").read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# ---- presets ----


def claude(**changes: object) -> str:
    told = {
        "type": "result",
        "is_error": False,
        "result": "{}",
        "structured_output": {"a": 1},
        "total_cost_usd": 0.0125,
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 30,
            "output_tokens": 4,
        },
        "modelUsage": {"m-1": {}},
    }
    return json.dumps(told | changes)


def test_claude_tells_its_answer_tokens_and_price() -> None:
    reply = read(Printed(claude(), "", ""))
    assert (reply.tree, reply.usage, reply.problem) == ({"a": 1}, Usage(60, 4, cost_usd=0.0125, model="m-1"), "")


def test_codex_tells_its_tokens_in_events_and_its_answer_in_the_file() -> None:
    events = (
        '{"type":"turn.started"}\nnoise\n{"type":"turn.completed","usage":{"input_tokens":1000,"output_tokens":50}}\n'
    )
    reply = read(Printed(events, "", '{"a": 1}'))
    assert (reply.tree, reply.usage) == ({"a": 1}, Usage(1000, 50))
    failed = '{"type":"turn.failed","error":{"message":"401 Unauthorized"}}'
    assert read(Printed(failed, "", "")).problem.endswith("401 Unauthorized")


@pytest.mark.parametrize(
    "out",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"type": 3, "usage": 4}',
        '{"type":"turn.completed","usage":[1]}',
    ],
)
def test_whatever_a_client_prints_is_read_without_a_fault(out: str) -> None:
    reply = read(Printed(out, out, out))
    assert reply.tree is None or reply.tree
