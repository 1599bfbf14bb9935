"""The loop: agent after agent, until every task is done; plans that it follows."""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kit import command
from promises.user import User

pytestmark = pytest.mark.ci


class Agent:
    """A stand-in for an agent: a shell script that writes down each of its starts.

    In the script `ralf` is the command, $task the task, and $start says how often an agent has been started on it.
    """

    def __init__(self, user: User, script: str) -> None:
        self.user, self.starts_file = user, user.home / "starts"
        self.path = user.home / "agent.sh"
        starts = shlex.quote(str(self.starts_file))
        self.path.write_text(
            f'ralf() {{ {shlex.quote(sys.executable)} -m ralf_cli "$@"; }}\n'
            f'task=${{RALF_LEASE%:*}}\nprompt=$(cat)\necho "$task $$" >> {starts}\n'
            f'start=$(grep -c "^$task " {starts})\n' + script
        )

    @property
    def typed(self) -> tuple[str, ...]:
        """How a loop is started with it."""
        return ("--agent", f"sh {shlex.quote(str(self.path))}", "--backoff", "0s", "--grace", "1s")

    @property
    def starts(self) -> list[tuple[str, int]]:
        """The task and the process of each start."""
        if not self.starts_file.exists():
            return []
        return [(task, int(process)) for task, process in map(str.split, self.starts_file.read_text().splitlines())]

    @property
    def tasks(self) -> list[str]:
        """The task of each start."""
        return [task for task, _ in self.starts]


def begun(user: User, agent: Agent, *tasks: str) -> command.Child | subprocess.Popen[bytes]:
    """A loop that has begun these tasks."""
    loop = user.start("loop", *agent.typed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: agent.tasks == list(tasks), "the loop has begun the tasks")
    return loop


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + command.HANGS
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def waiting(user: User) -> Agent:
    """An agent that is in the middle of its first task until the file `go` is there."""
    return Agent(user, '[ "$start" -gt 1 ] || while [ ! -e go ]; do sleep 0.05; done\nralf task done "$task is stored"')


def test_a_loop_runs_task_after_task_in_order_until_all_are_done_and_verified(user: User) -> None:
    user.has_typed("init", "--verify-commands", "--yes")
    last = user.adds("Release", "--priority", "10", "--after", user.adds("Store", "--verify", "test -f stored"))
    agent = Agent(user, 'touch stored\nralf task done "$task is stored"')
    ran = user.does("loop", *agent.typed)
    first, then = agent.tasks
    assert (then, user.status_of(first), user.status_of(last)) == (last, "completed", "completed"), ran
    assert user.task(first)["evidence"]["state"] == "verified"


def test_what_an_agent_has_printed_lies_without_its_secrets_once_it_has_ended(user: User) -> None:
    secret = "q7Rt2bVx9MpL" + "4sKd8WzY3nCf"
    user.adds("Store the levels")
    agent = Agent(user, f"echo API_KEY={secret}; echo API_KEY={secret} >&2\nralf task done stored")
    user.does("loop", *agent.typed)
    logs = [path for path in (user.project / ".autonomous").rglob("*") if path.parent.name == "logs"]
    assert any(b"API_KEY" in path.read_bytes() for path in logs)
    assert user.files_holding(secret) == []


def test_a_loop_that_leaves_a_task_undone_fails_and_names_it(user: User) -> None:
    id_ = user.adds("Store the levels")
    agent = Agent(user, 'ralf task fail "the gauge does not answer"')
    ran = user.ralf("loop", *agent.typed)
    assert (ran.status, user.status_of(id_)) == (1, "failed")
    assert id_ in ran.out + ran.err


def test_an_agent_that_ends_without_a_word_is_replaced_by_a_fresh_one_with_its_last_progress(user: User) -> None:
    id_ = user.adds("Store the levels")
    agent = Agent(
        user,
        '[ "$start" = 2 ] || { ralf task progress "indexes are next"; kill -9 $$; }\n'
        'echo "$prompt" > prompt\nralf task done stored',
    )
    user.does("loop", *agent.typed)
    assert agent.tasks == [id_, id_]
    assert "indexes are next" in (user.project / "prompt").read_text()


def test_the_next_agent_is_told_what_refused_the_work_of_the_last_one(user: User) -> None:
    user.has_typed("init", "--verify-commands", "--yes")
    (user.project / "check.sh").write_text("test -f stored || { echo level 17 is missing; exit 1; }\n")
    user.adds("Store the levels", "--verify", "sh check.sh")
    agent = Agent(user, '[ "$start" = 1 ] || { touch stored; echo "$prompt" > prompt; }\nralf task done stored\nexit 0')
    user.does("loop", *agent.typed)
    assert "level 17 is missing" in (user.project / "prompt").read_text()


def test_a_loop_that_was_killed_with_its_agent_is_continued_by_the_next_and_no_task_is_done_twice(user: User) -> None:
    first, second = user.adds("Store the levels", "--priority", "9"), user.adds("Draw the levels")
    agent = Agent(
        user,
        f'[ "$task$start" != {second}1 ] || while :; do sleep 0.05; done\nralf task done "$task is stored"\n',
    )
    loop = begun(user, agent, first, second)
    loop.kill()
    os.kill(agent.starts[-1][1], signal.SIGKILL)
    loop.wait(command.HANGS)
    user.does("loop", *agent.typed)
    assert agent.tasks == [first, second, second]
    assert [user.status_of(id_) for id_ in (first, second)] == ["completed", "completed"]
    assert user.task(second)["attempts"][0]["outcome"] not in ("", "done")


def test_the_claim_of_an_agent_that_was_killed_with_its_loop_is_free_at_once(user: User) -> None:
    id_ = user.adds("Store the levels")
    agent = waiting(user)
    loop = begun(user, agent, id_)
    loop.kill()
    os.kill(agent.starts[0][1], signal.SIGKILL)
    loop.wait(command.HANGS)
    until(lambda: not is_alive(agent.starts[0][1]), "the agent has ended")
    user.does("task", "claim", id_, env={"RALF_AGENT": "another"})


def test_an_agent_that_outlives_its_killed_loop_keeps_its_task_and_the_next_loop_waits_for_it(user: User) -> None:
    id_ = user.adds("Store the levels")
    agent = waiting(user)
    loop = begun(user, agent, id_)
    loop.kill()
    loop.wait(command.HANGS)
    user.ralf("task", "claim", id_, env={"RALF_AGENT": "another"}).complains(5, id_)
    assert [line for line in user.does("status").lines if line.startswith("loop") and "killed" in line]
    following = user.start("loop", *agent.typed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (user.project / "go").touch()
    assert following.wait(command.HANGS) == 0
    assert (agent.tasks, user.status_of(id_)) == ([id_], "completed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_loop_is_the_only_one_and_stopped_it_ends_its_agent_and_leaves_the_task(user: User, number: int) -> None:
    id_ = user.adds("Store the levels")
    agent = waiting(user)
    loop = begun(user, agent, id_)
    assert user.ralf("loop", *agent.typed).status == 5
    loop.send_signal(number)
    assert loop.wait(command.HANGS) not in (0, 2)
    assert len(agent.starts) == 1
    assert not is_alive(agent.starts[0][1])
    user.does("task", "claim", id_, env={"RALF_AGENT": "another"})


def test_no_process_that_an_agent_has_started_outlives_it(user: User) -> None:
    user.adds("Store the levels")
    left = user.home / "left"
    agent = Agent(user, f"setsid sh -c 'echo $$ > {left}; while :; do sleep 0.1; done' &\nralf task done stored")
    user.does("loop", *agent.typed)
    assert not is_alive(int(left.read_text()))


def test_a_plan_has_a_fresh_agent_after_every_n_tasks(user: User) -> None:
    ids = [user.adds(f"Store table {number}") for number in range(3)]
    user.does("plan", "--every", "2")
    agent = {"RALF_AGENT": "first", "CLAUDECODE": "1"}
    for id_ in ids[:2]:
        claimed = user.does("task", "claim", "--json", env=agent).json()
        assert claimed["task"]["id"] == id_
        agent.setdefault("RALF_LEASE", claimed["lease"])
        user.does("task", "done", "stored", "--task", id_, env=agent)
    assert user.ralf("task", "claim", env=agent).status == 3
    fresh = user.does("task", "claim", "--json", env={"RALF_AGENT": "second"}).json()
    assert fresh["task"]["id"] == ids[2]


def test_a_plan_without_a_number_has_a_fresh_agent_for_every_task(user: User) -> None:
    ids = [user.adds(f"Store table {number}") for number in range(3)]
    drawn = user.does("plan").out
    places = [drawn.index(id_) for id_ in ids]
    assert all("checkpoint" in drawn[one:other] for one, other in itertools.pairwise(places))
