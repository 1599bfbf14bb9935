"""Agents of one's own (docs/library.md): killed anywhere, they go on in the same turn."""

from __future__ import annotations

import subprocess

import pytest

from kit import command
from promises.user import User

AGENT = """
import json, sys
from ralf.agent import run_agent

def log(words):
    with open("calls.log", "a") as file:
        file.write(words + "\\n")

def turn(run):
    said = json.loads(run.load() or b"[]")
    asked = run.input.decode()
    def call(key):
        log(f"asked {asked}")
        return asked + "+"
    answer = run.once("model", call)
    log(f"answered {asked}")
    run.stream(f"turn {run.iteration}\\n".encode())
    state = json.dumps([*said, asked]).encode()
    if run.iteration == 3:
        run.complete(state, state=state)
    else:
        run.continue_with(answer.encode(), state=state)

ended = run_agent(turn, sys.argv[1], input=b"a")
print(ended.status, ended.iteration)
"""


HEARING = """
import json, sys
from ralf.agent import AgentRun, run_agent

def turn(run):
    heard = json.loads(run.load() or b"[]")
    signal = run.wait_signal("wish", timeout=0)
    if signal is None:
        run.complete(json.dumps(heard).encode())
    else:
        run.continue_with(b"", state=json.dumps([*heard, signal.text]).encode())

run_agent(turn, sys.argv[1])
print(json.loads(AgentRun(sys.argv[1]).result()))
"""

SENDING = """
import sys
from ralf.agent import send_signal

for words in sys.argv[2:]:
    send_signal(sys.argv[1], "wish", words)
"""


def calls(user: User) -> list[str]:
    """What the agent has written down since the last look."""
    path = user.project / "calls.log"
    found = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def places(user: User, code: str, run: str, count: int) -> list[int]:
    """So many of the calls that touch files of a program that works at a run, evenly spread."""
    child = command.start(run, code=code, cwd=user.project, env=user.environment(), fault=(0, 0))
    assert isinstance(child, command.Child)
    child.communicate(timeout=command.HANGS)
    assert child.calls > count
    return [1 + number * child.calls // count for number in range(count)]


@pytest.mark.ci
def test_an_agent_killed_anywhere_goes_on_in_its_turn_and_asks_for_no_answer_that_it_had(user: User) -> None:
    turns = ["asked a", "asked a+", "asked a++"]
    at = places(user, AGENT, "whole", 12)
    assert calls(user)[::2] == turns
    for place in at:
        user.python(AGENT, f"killed-{place}", fault=(place, -9))
        before = calls(user)
        ran = user.python(AGENT, f"killed-{place}")
        assert (ran.status, ran.out) == (0, "completed 3\n"), ran
        after = calls(user)
        had = {words.replace("answered", "asked") for words in before if words.startswith("answered")}
        assert not had & set(after), (place, before, after)
        asked = [words for words in [*before, *after] if words.startswith("asked")]
        assert list(dict.fromkeys(asked)) == turns, (place, before, after)
        assert len(asked) <= 4, (place, before, after)


@pytest.mark.ci
def test_signals_are_received_once_and_in_order_by_an_agent_that_is_killed_anywhere(user: User) -> None:
    wishes = ["the winter months", "the spring tides", "the winter months"]

    def send(run: str) -> None:
        assert user.python(SENDING, run, *wishes).status == 0

    send("whole")
    for place in places(user, HEARING, "whole", 8):
        send(f"killed-{place}")
        user.python(HEARING, f"killed-{place}", fault=(place, -9))
        assert user.python(HEARING, f"killed-{place}").out == f"{wishes}\n", place


@pytest.mark.ci
def test_a_signal_that_is_typed_waits_for_its_run_and_the_same_id_counts_once(user: User) -> None:
    for _ in range(2):
        user.does("send", "survey", "the winter months", "--signal", "wish", "--id", "ticket-17", "--wait")
    assert user.python(HEARING, "survey").out == "['the winter months']\n"


@pytest.mark.ci
def test_a_run_is_shown_with_its_turn_and_its_output_from_the_beginning(user: User) -> None:
    assert user.python(AGENT, "survey").status == 0
    shown = user.does("run", "show", "survey", "--json").json()
    assert (shown["status"], shown["iteration"]) == ("completed", 3)
    assert user.does("run", "show", "survey", "--output").out == "turn 1\nturn 2\nturn 3\n"
    user.ralf("run", "show", "surveys").complains(3, "surveys", "survey")


def test_a_run_has_one_process_at_a_time(user: User) -> None:
    holding = """
import sys
from ralf.agent import AgentRun
with AgentRun("survey") as run:
    run.save(b"begun")
    print("begun", flush=True)
    sys.stdin.read()
"""
    holder = command.start(
        code=holding, cwd=user.project, env=user.environment(), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"begun\n"
    other = user.python(
        "import ralf.errors\ntry:\n"
        + "".join(f"    {line}\n" for line in HEARING.replace("sys.argv[1]", "'survey'").splitlines())
        + "except ralf.errors.Claimed:\n    print('claimed')"
    )
    holder.communicate(timeout=command.HANGS)
    assert other.out == "claimed\n", other
