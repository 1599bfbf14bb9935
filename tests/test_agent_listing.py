"""Runs as those see them who do not hold them: listed, looked at, reopened, cancelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralf.agent.listing import cancel_run, get_run, list_runs, retry_run
from ralf.agent.run import AgentRun
from ralf.errors import Claimed, RunEnded, UsageError
from runskit import elsewhere


@pytest.mark.ci
def test_a_list_has_each_status_and_no_content(tmp_path: Path) -> None:
    AgentRun("completed", root=tmp_path).complete(b"secret result")
    AgentRun("failed", root=tmp_path).fail_for_good("why")
    AgentRun("dead", root=tmp_path).give_up("used up")
    AgentRun("paused", root=tmp_path).pause("go", 60)
    AgentRun("waiting", root=tmp_path).continue_with(b"", delay=60)
    AgentRun("cancelled", root=tmp_path).fail("x")
    cancel_run("cancelled", reason="enough", root=tmp_path)
    elsewhere(tmp_path, "AgentRun('lost', root=root).save(b'secret state'); die()")
    with AgentRun("running", root=tmp_path, by="me") as run:
        run.save(b"secret state")
        found = list_runs(root=tmp_path)
        assert {one.run for one in found.runs} == {one.status for one in found.runs}
        assert len(found.runs) == 8
        assert [one.run for one in list_runs(status="paused", root=tmp_path).runs] == ["paused"]
        assert found.counts == list_runs(status="paused", root=tmp_path).counts
        state = get_run("running", root=tmp_path)
        assert (state.by, state.states, state.size, state.ended) == ("me", 1, 12, False)
        assert (get_run("cancelled", root=tmp_path).reason, get_run("dead", root=tmp_path).ended) == ("enough", True)
    assert "secret" not in repr(found)
    with pytest.raises(UsageError):
        list_runs(status="x", root=tmp_path)


def test_a_retry_reopens_what_ended_badly_and_lets_go_on_what_waits(tmp_path: Path) -> None:
    for name, act in {
        "failed": lambda run: run.fail_for_good("x"),
        "dead": lambda run: run.give_up("x"),
        "paused": lambda run: run.pause("go", 60),
        "waiting": lambda run: run.fail("x", retry_after=60),
    }.items():
        run = AgentRun(name, root=tmp_path)
        run.save(b"state")
        act(run)  # type: ignore[no-untyped-call]
        assert not run.is_open
        state = retry_run(name, root=tmp_path)
        assert (state.status, state.attempt, state.not_before, state.reason) == ("waiting", 1, "", "")
        assert run.is_open
        assert run.load() == b"state"
        assert run.resumed == ("retried" if name == "paused" else "")
        with pytest.raises(Claimed):
            retry_run(name, root=tmp_path)
        run.complete()
        with pytest.raises(RunEnded):
            retry_run(name, root=tmp_path)
        with pytest.raises(RunEnded):
            cancel_run(name, root=tmp_path)


# ---- what a repository may bring, and what is many ----
