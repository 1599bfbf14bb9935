"""The loop with real processes: which state and which exit status each fault leaves."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import storekit
from kit.git import git
from loopkit import Plan, until
from ralf import project as projects
from ralf.errors import Claimed
from ralf.model import ActiveWork, Facts, PathFact, RouteContext
from ralf.tasks import claims, editing, evidence as proofs
from ralf_integrations.health import limits
from ralf_integrations.loop import launch, state as states
from ralf_integrations.loop.options import Event, Options, Result
from ralf_integrations.loop.run import Loop
from storekit import HANGS

pytestmark = [pytest.mark.ci]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plan]:
    made = Plan(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.chdir(made.root)
    yield made
    made.close()


def log_of(plan: Plan) -> list[str]:
    return Path(plan.state().log).read_text(encoding="utf-8").splitlines()


def prompts(plan: Plan, task: str) -> list[str]:
    """What each agent on a task was handed, in order."""
    found = plan.root.glob(f".autonomous/context/cache/**/logs/{task}.*.prompt.md")
    return [path.read_text() for path in sorted(found, key=_written)]


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns


def allow(plan: Plan) -> None:
    path = projects.find(plan.root).local_config_file
    path.write_text("verify_commands: true\n")
    storekit.allow(path)


FAULTS = {
    "crash": "crashed",
    "kill": "killed",
    "deaf spawn=600 daemon=600 hang": "hung",
    "exit=0": "unfinished",
    "handover=half exit=0": "handed-over",
}


def test_however_an_agent_ends_a_fresh_one_is_told_what_refused_the_task_and_nothing_of_the_first_is_left(
    plan: Plan,
) -> None:
    refuses = "test -e made{0} || exec sh -c 'echo level 17; exit 3'"
    tasks = {
        plan.add(f"tried {how}", f"edit=made{number} done", verify=refuses.format(number)): how
        for number, how in enumerate(FAULTS)
    }
    allow(plan)
    status, out = plan.run("--workers", "5", "--timeout", "4s", "--grace", "0.3s")
    assert status == 0, out
    for task, how in tasks.items():
        assert plan.outcomes(task) == [FAULTS[how], "done"]
        note = plan.get(task).attempts[0].note
        assert "`verify:` did not pass: exit status 3" in note and "level 17" in note, note
        assert "level 17" in prompts(plan, task)[1]
        assert FAULTS[how] in prompts(plan, task)[1]
    assert not plan.alive()


def test_a_task_is_tried_again_only_so_often_and_what_waits_for_it_is_blocked_and_said(plan: Plan) -> None:
    task = plan.add("crash")
    after = plan.add("done", title="later", after=(task,))
    status, out = plan.run("--retries", "2")
    assert (status, plan.get(task).task.status) == (1, "failed"), out
    assert plan.outcomes(task) == ["crashed", "crashed", "failed"]
    assert f"not done: {after} later: blocked: waits for {task}" in out
    assert re.search(rf"not done: {task} a task: failed: exit status 1.*attempt 3 of 3", out)
    claims.retry(task, root=plan.root)
    assert plan.run("--retries", "1")[0] == 1
    assert plan.outcomes(task)[3:] == ["crashed", "failed"]  # a retry begins to count anew


@pytest.mark.parametrize("is_free", [True, False])
def test_a_loop_says_what_it_waits_for(plan: Plan, is_free: bool) -> None:
    """Also where it is a retry, or the end of a usage limit, that it waits for."""
    task = plan.add("limit=3600" if is_free else "done")
    if not is_free:
        claims.claim(task, by="bob", root=plan.root)
    loop = plan.start(agent=plan.client("codex"))
    waits = until(lambda: plan.state().waits)
    assert ("usage limit of codex" if is_free else f"{task}, which bob holds") in waits
    assert f"waiting for {waits}" in plan.command("loop", "status").stdout
    assert is_free or any(f"waiting for {task}" in line for line in log_of(plan))
    loop.send_signal(signal.SIGTERM)
    assert loop.wait(HANGS) == 1


def test_an_agent_whose_window_fills_is_told_by_the_hook_at_the_configured_pressure_and_replaced(plan: Plan) -> None:
    assert plan.command("init", "--yes").returncode == 0
    with projects.find(plan.root).config_file.open("a") as file:
        file.write("pressure: 40\nhand_over_at: 50\n")
    task = plan.add("say=I_begin. filled=70000 filled=105000 crash", "prompt done")
    status, out = plan.run("--retries", "0", agent=plan.client("claude"))
    assert (status, plan.outcomes(task), plan.get(task).failures) == (0, ["handed-over", "done"], 0), out
    logs = sorted(plan.root.glob(f".autonomous/context/cache/**/logs/{task}.*.log"), key=_written)
    assert "52 %" in logs[0].read_text()
    assert "35 %" not in logs[0].read_text()
    assert "half of it stands" in logs[1].read_text()


@pytest.mark.parametrize("changes", [False, True])
def test_a_task_is_given_up_if_nothing_of_it_changes_over_rounds(plan: Plan, changes: bool) -> None:
    does = [f"edit=file{number} " * changes + f"handover=round{number} exit=0" for number in range(3)]
    task = plan.add(*does, "done")
    status, out = plan.run("--stall", "2")
    assert plan.outcomes(task) == [*["handed-over"] * (2 + changes), "done" if changes else "failed"], out
    assert status == (not changes)
    assert changes or "stalled" in plan.get(task).reason


LIMITS = [("codex", "limit"), ("codex", "rollout-limit"), ("claude", "limit")]
"""How clients tell that their usage limit is reached: on standard error, in the rollout, in result and transcript."""


def run_impatiently(plan: Plan, monkeypatch: pytest.MonkeyPatch, **more: Any) -> tuple[Result, list[Event]]:
    """Run a loop in this process that waits for a usage limit no longer than it lasts; what it came to and told."""
    monkeypatch.setattr(limits, "LEAST", 0.5)
    monkeypatch.setenv("AGENT_JOURNAL", str(plan.journal))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(plan.home / ".claude"))
    monkeypatch.setenv("CODEX_HOME", str(plan.home / ".codex"))
    told: list[Event] = []
    return Loop(projects.find(plan.root), Options(retries=0, **more), told.append).run(), told


@pytest.mark.parametrize("client, word", LIMITS)
def test_after_a_usage_limit_the_same_task_goes_on_with_its_context(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, client: str, word: str
) -> None:
    task = plan.add(f"decide=use-rust {word}=0", "prompt done")
    result, told = run_impatiently(plan, monkeypatch, agents=(launch.parse(plan.client(client)),))
    assert (result.status, plan.outcomes(task)) == (0, ["limit", "done"]), told
    assert any(re.search(r"usage limit of .* until 20\d\d-\d\d-\d\d \d\d:\d\d", event.text) for event in told)
    assert "use-rust" in prompts(plan, task)[-1]


def test_caps_on_starts_hold_and_are_named_and_the_last_one_counts(plan: Plan) -> None:
    tasks = [plan.add("done") for _ in range(3)]
    status, out = plan.run("--max-starts", "2")
    assert status == 1
    assert "cap reached: starts: 2 of 2" in out
    assert sorted(plan.get(task).task.status for task in tasks) == ["completed", "completed", "pending"]
    assert plan.run("--max-starts", "1")[0] == 0  # reached, and all is done


def test_the_cap_on_time_ends_agents_and_gives_their_tasks_back(plan: Plan) -> None:
    task = plan.add("hang")
    status, out = plan.run("--max-time", "1.5s", "--grace", "0.5s")
    assert (status, plan.outcomes(task)) == (1, ["released"]), out
    assert "cap reached: time: 1.5s" in out
    assert not plan.alive()


def test_a_program_that_cannot_run_is_no_tasks_fault(plan: Plan) -> None:
    task = plan.add("done")
    program = plan.root / "broken"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o700)
    status, out = plan.run(agent="./broken")
    assert (status, plan.outcomes(task)) == (1, ["released"]), out
    assert "./broken" in out or str(program) in out


def test_an_agent_goes_on_with_a_second_task_and_what_becomes_of_that_is_judged_as_well(plan: Plan) -> None:
    first = plan.add("done next crash", priority=9)
    second = plan.add("crash", "done")
    assert plan.run()[0] == 0
    assert plan.outcomes(first) == ["done"]
    assert plan.outcomes(second) == ["crashed", "done"]


def test_an_agent_that_leaves_the_file_of_its_task_unreadable_ends_no_loop(plan: Plan) -> None:
    tasks = [plan.add("crash"), plan.add("crash")]
    spoils = "echo '<<<<<<< mine' >.autonomous/tasks/active/${RALF_LEASE%:*}.md; exit 3"
    status, out = plan.run(agent=f"sh -c {shlex.quote(spoils)}")
    assert status == 1
    assert all(f"not done: {task} : cannot be read" in out for task in tasks), out


# ---- what a client tells ----


def test_a_promise_in_the_last_message_is_done_with_it_as_the_summary(plan: Plan) -> None:
    task = plan.add("say=Not_yet. say=The_parser_reads_both._<promise>COMPLETE</promise>")
    status, out = plan.run("--max-starts", "1", agent=plan.client("claude"))
    assert (status, plan.outcomes(task)) == (0, ["done"]), out
    assert plan.get(task).summary


def test_a_promise_counts_for_nothing_where_verify_does_not_pass(plan: Plan) -> None:
    task = plan.add("say=<promise>COMPLETE</promise>", verify="test -e made || { echo nothing is made; exit 3; }")
    later = plan.add("done", after=(task,))
    allow(plan)
    status, out = plan.run("--retries", "1", agent=plan.client("claude"))
    assert (status, plan.outcomes(task)) == (1, ["unfinished", "failed"]), out
    assert plan.get(later).attempts == ()
    assert "nothing is made" in plan.get(task).reason


def test_nobody_claims_a_task_whose_promise_is_being_verified(plan: Plan) -> None:
    task = plan.add("say=<promise>COMPLETE</promise>", verify="touch begun; while [ ! -e go ]; do sleep 0.05; done")
    allow(plan)
    loop = plan.start(agent=plan.client("claude"))
    until((plan.root / "begun").exists)
    with pytest.raises(Claimed):
        claims.claim(task, by="another", root=plan.root)
    (plan.root / "go").touch()
    assert loop.wait() == 0
    assert plan.outcomes(task) == ["done"]


def test_a_loop_ends_no_agent_of_another_project_that_has_the_same_lease(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Plan(tmp_path / "other")
    other.home = plan.home
    try:
        task = plan.add("work=4 done", id="TASK-same")
        other.add("work=0.5 done", id="TASK-same")
        loop = plan.start()
        until(lambda: plan.lines("start"))
        assert other.run()[0] == 0
        assert (loop.wait(), plan.outcomes(task)) == (0, ["done"])
    finally:
        other.close()


def test_no_part_of_a_secret_that_an_agent_prints_last_is_in_records_or_in_the_loop_s_own_log(plan: Plan) -> None:
    token = "ghp_" + "a8Zk3Qw9Lm2Xc7Vb5Nn1Rt6Yu4Io0Pq3Sd8F"
    task = plan.add("crash")
    agent = f"sh -c 'printf %0280d 0; echo \" {token}\"; exit 3'"
    status, out = plan.run("--retries", "1", agent=agent)
    assert (status, plan.outcomes(task)) == (1, ["crashed", "failed"])
    project = projects.find(plan.root)
    kept = [project.folder / "journal" / "tasks.jsonl", states.log_file(project)]
    assert not any(token[:12].encode() in path.read_bytes() for path in kept)
    assert token[:12] not in out


def test_tokens_are_counted_and_their_cap_is_named_with_what_is_unknown(plan: Plan) -> None:
    plan.add("say=one say=two done", priority=9)
    plan.add("done")
    status, out = plan.run("--max-tokens", "1500", agent=plan.client("claude"))
    assert status == 1
    assert "cap reached: tokens: 2,000 of 1,500" in out


# ---- evidence at the end ----


def state_of(plan: Plan, task: str) -> str:
    found = plan.get(task).evidence
    return found.state if found is not None else ""


def test_what_an_agent_tested_after_its_last_edit_is_evidence_although_its_session_was_read_later(plan: Plan) -> None:
    good, bad = plan.add("edited=a.py tested done"), plan.add("edited=b.py tested=2 done")
    edited = plan.add("tested edited=c.py done")
    status, out = plan.run(agent=plan.client("claude"))
    assert [state_of(plan, one) for one in (good, bad, edited)] == ["verified", "failed", "claimed"], out
    assert status == 1
    told = [line.split()[2] for line in out.splitlines() if line.startswith("  not ")]
    assert sorted(told) == sorted([bad, edited])


def test_a_task_whose_files_a_later_one_edits_is_stale_unless_the_same_tests_pass_afterwards(plan: Plan) -> None:
    first = plan.add("edited=a.py tested done")
    second = plan.add("edited=a.py done", after=(first,))
    status, out = plan.run(agent=plan.client("claude"))
    assert (status, state_of(plan, first)) == (1, "stale"), out
    assert f" {first} " in out
    third = plan.add("edited=b.py tested done", after=(second,))
    status, out = plan.run(agent=plan.client("claude"))
    assert (status, state_of(plan, first), state_of(plan, third)) == (0, "verified", "verified"), out


def verified(plan: Plan, title: str = "One") -> str:
    """A completed task that was verified with `a.py` as it is now; its id."""
    task = editing.add(title, verify="echo ran >>ran && grep -q good a.py", root=plan.root).task
    (plan.root / "a.py").write_text("good = 1\n")
    edited = RouteContext(facts=Facts(paths=(PathFact("a.py", ("edited",)),)), active_work=ActiveWork())
    found = proofs.verify(projects.find(plan.root), task, edited, runs=False)
    assert found is not None
    told = replace(found, state="verified", command=task.verify, exit_status=0)
    claims.done("Done", task=task.id, evidence=told, root=plan.root)
    return task.id


def ran(plan: Plan) -> int:
    path = plan.root / "ran"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize("content, states_", [("good = 2\n", "verified"), ("bad = 2\n", "failed")])
def test_a_command_that_stale_tasks_share_runs_once_more_at_the_end_and_counts_for_each(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, content: str, states_: str
) -> None:
    plan.command("init", "--yes")
    tasks = [verified(plan, title) for title in ("One", "Two", "Three")]
    result, told = run_impatiently(plan, monkeypatch, agents=(launch.parse("true"),))
    assert (result.status, ran(plan)) == (0, 0), told  # what is verified is not run again
    (plan.root / "a.py").write_text(content)
    assert run_impatiently(plan, monkeypatch, agents=(launch.parse("true"),))[0].status == 1  # none may run
    allow(plan)
    result, told = run_impatiently(plan, monkeypatch, agents=(launch.parse("true"),))
    assert (ran(plan), {state_of(plan, task) for task in tasks}) == (1, {states_}), told
    assert sorted(one.task for one in result.unproven) == (sorted(tasks) if states_ == "failed" else [])
    assert {plan.get(task).task.status for task in tasks} == {"completed"}


def test_of_tasks_that_a_file_says_to_be_completed_the_users_are_verified_and_none_that_is_foreign(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.command("init", "--yes")
    allow(plan)
    own = plan.get(plan.add(verify="echo ran >>ran")).path
    assert own is not None
    own.write_text(own.read_text().replace('status: "pending"', 'status: "completed"'))
    brought = plan.root / ".autonomous" / "tasks" / "completed" / "TASK-brought.md"
    brought.parent.mkdir(parents=True, exist_ok=True)
    brought.write_text('---\nid: "TASK-brought"\nstatus: "completed"\nverify: "touch stolen"\n---\n\n# Brought\n')
    os.utime(brought, (0, 0))  # as an archive brings it
    assert plan.get("TASK-brought").is_foreign
    result, told = run_impatiently(plan, monkeypatch, agents=(launch.parse("true"),))
    assert (ran(plan), (plan.root / "stolen").exists()) == (1, False), told
    assert [one.task for one in result.unproven] == ["TASK-brought"]


# ---- stopping ----


def test_a_closed_terminal_ends_the_loop_and_its_agents(plan: Plan) -> None:
    task = plan.add("hang")
    master, slave = pty.openpty()
    loop = plan.start(stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=_takes_terminal)
    os.close(slave)
    until(lambda: plan.lines("start"))
    os.close(master)
    loop.wait(HANGS)
    assert plan.outcomes(task) == ["released"]
    assert not plan.alive()


def _takes_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_loop_can_be_looked_at_and_stopped_and_a_second_one_is_refused(plan: Plan) -> None:
    task = plan.add("work=1 done")
    other = plan.add("hang", after=(task,))
    first = plan.start()
    until(lambda: plan.lines("start"))
    told = plan.command("loop", "status")
    assert told.returncode == 0
    assert re.search(r"running since \d{4}-\d\d-\d\d \d\d:\d\d: process", told.stdout)
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in log_of(plan))
    second = plan.start()
    assert second.wait(HANGS) == 5
    assert b"another loop (process" in second.stdout.read()
    until(lambda: plan.get(other).claim)
    assert plan.command("loop", "stop").returncode == 0
    assert first.wait(HANGS) == 1
    assert plan.outcomes(other) == ["released"]
    assert plan.command("loop", "stop").returncode == 3
    assert plan.command("loop", "status").returncode == 1
    assert not plan.alive()


def test_a_loop_can_be_stopped_after_the_agents_that_run(plan: Plan) -> None:
    first, second = plan.add("work=1.5 done"), plan.add("done")
    loop = plan.start("--workers", "1")
    until(lambda: plan.lines("start"))
    assert plan.command("loop", "stop", "--after-agents").returncode == 0
    assert loop.wait(HANGS) == 1
    assert sorted(plan.get(one).task.status for one in (first, second)) == ["completed", "pending"]


# ---- a loop that is killed ----


def test_the_agent_of_a_killed_loop_is_not_doubled_though_the_state_is_lost(plan: Plan) -> None:
    task = plan.add("work=3 done")
    loop = plan.start()
    until(lambda: plan.lines("start"))
    loop.kill()
    loop.wait()
    for path in plan.root.glob(".autonomous/context/cache/**/state.json"):
        path.unlink()
    assert plan.run()[0] == 0
    assert plan.outcomes(task) == ["done"]
    assert len(plan.lines("start")) == 1


# ---- the time between, dry run, worktrees ----


def test_a_dry_run_prints_tasks_and_commands_in_order_and_starts_nothing(plan: Plan) -> None:
    plan.add("done", title="fix [/x]", priority=9)
    plan.add("done", title="second")
    status, out = plan.run("--dry-run", "--agent", "reviewer=codex -m x", agent="claude --model opus")
    assert status == 0, out
    assert out.index("fix [/x]") < out.index("second")
    assert "claude -p --session-id SESSION --output-format json --model opus" in out
    assert not plan.lines()
    assert not plan.state().process


def test_workers_may_have_a_worktree_each(plan: Plan, tmp_path: Path) -> None:
    for _ in range(2):
        plan.add("work=0.5 edit=made done")
    status, out = plan.run("--workers", "2", "--worktrees", str(tmp_path / "trees"))
    assert status == 0, out
    assert sorted({line["cwd"] for line in plan.lines("start")}) == [
        str(tmp_path / "trees" / name) for name in ("w1", "w2")
    ]
    assert not (plan.root / "made").exists()
    assert git(tmp_path / "trees" / "w1", "branch", "--show-current").strip() == "ralf/w1"


@pytest.mark.parametrize("key", ["filter.a=b.smudge", "includeIf.gitdir:**/worktrees/**.path"])
def test_no_hook_and_no_filter_of_the_repository_runs_where_a_worktree_is_made(
    plan: Plan, tmp_path: Path, key: str
) -> None:
    """They may have come in an archive, and count in the new worktree alone."""
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    shutil.copy(program, plan.root / ".git" / "hooks" / "post-checkout")
    (plan.root / ".gitattributes").write_text("*.txt filter=a=b\n")
    (plan.root / "tides.txt").write_text("1\n")
    (plan.root / ".git" / "included").write_text(f'[filter "a=b"]\n\tsmudge = {program}\n')
    value = "included" if key.startswith("include") else str(program)
    for words in (("add", "."), ("commit", "--quiet", "-m", "tides"), ("config", key, value)):
        git(plan.root, *words)
    plan.add("done")
    status, out = plan.run("--worktrees", str(tmp_path / "trees"))
    assert (status, (tmp_path / "trees" / "w1" / "tides.txt").read_text()) == (0, "1\n"), out
    assert not ran.exists()
