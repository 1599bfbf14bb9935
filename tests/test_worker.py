"""The detached worker: a configured model improves checkpoints in the background, and nobody waits for it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forks
import ralf
import storekit
from ralf import environment
from ralf.checkpointing.progress import status
from ralf.maintenance import ownership
from ralf.maintenance.trust import accept_route
from ralf.model import Checkpoint, Spend
from ralf.project import Project
from ralf.refining import local_config, refine
from ralf.route import fold
from ralf.route.load import load_state
from ralf.storage import files, filestore, journal
from ralf.storage.journal import Record
from storekit import grow, lines_of, records_of, write_session

MODEL = Path(__file__).parent / "clients" / "model.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    write_session(root / "session.jsonl", 3_000)
    return root


def configure(project: Path, mode: str, *arguments: str, more: str = "") -> None:
    path = project / ".autonomous" / "context" / "config.local.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    argv = json.dumps([sys.executable, str(MODEL), mode, *arguments])
    path.write_text(f"project: {project}\nsummarizer: command\ncommand: {argv}\n{more}")
    path.chmod(0o600)


def checkpoint(project: Path, **options: Any) -> ralf.CheckpointReport:
    return ralf.checkpoint("tide", project / "session.jsonl", root=project, **options)


def entry(project: Path) -> Checkpoint:
    return ralf.get_context("tide", root=project).checkpoints[-1]


def wait(condition: Callable[[], object], seconds: float = storekit.HANGS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def workers() -> list[int]:
    """The workers of this process that still run, itself reaping those that do not."""
    running = []
    for child in environment.started:
        try:
            done, _ = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            continue
        if not done:
            running.append(child)
    return running


def children(parent: int) -> list[int]:
    """The processes that a process has started and that still run."""
    return [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def running(process: int) -> bool:
    """Whether a process still runs (one that is only waiting to be reaped does not)."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture(autouse=True)
def _no_worker_is_left() -> Any:
    yield
    for child in workers():
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    environment.started.clear()


def test_a_configured_model_improves_the_checkpoint_in_the_background(project: Path) -> None:
    configure(project, "good")
    report = checkpoint(project)
    assert (report.checkpoints[0].summarizer, report.refinements, report.warnings) == ("extractive", (), ())
    wait(lambda: entry(project).refines)
    assert entry(project).summarizer == "command"
    assert [record["kind"] for record in records_of(project, "tide")] == ["checkpoint", "refinement"]


def test_nobody_waits_for_a_slow_model_and_it_is_detached(project: Path, tmp_path: Path) -> None:
    configure(project, "slow", str(tmp_path / "child"))
    checkpoint(project, summarizer="extractive")  # loads what is loaded once
    grow(project / "session.jsonl", 1_000, lines_of(3_000)[1])
    started = time.monotonic()
    checkpoint(project)
    assert time.monotonic() - started < storekit.AT_ONCE
    wait((tmp_path / "child").exists)
    (child,) = workers()
    assert os.getsid(child) == child != os.getsid(0)
    streams = {os.readlink(f"/proc/{child}/fd/{number}") for number in range(3)}
    assert streams == {os.devnull}


def test_without_a_configuration_nothing_is_started(project: Path) -> None:
    checkpoint(project)
    assert workers() == []
    assert [record["kind"] for record in records_of(project, "tide")] == ["checkpoint"]


def test_the_embedded_one_asked_for_by_name_starts_nothing(project: Path) -> None:
    configure(project, "good")
    checkpoint(project, summarizer="extractive")
    assert workers() == []


@pytest.mark.slow
def test_what_a_killed_worker_left_is_picked_up_by_the_next_command(project: Path, tmp_path: Path) -> None:
    configure(project, "slow", str(tmp_path / "child"))
    checkpoint(project)
    wait((tmp_path / "child").exists)
    (child,) = workers()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert entry(project).unrefined == ""
    configure(project, "good")
    assert checkpoint(project).checkpoints == ()
    wait(lambda: entry(project).refines)


@pytest.mark.skipif(sys.platform != "linux", reason="only there can the kernel end a process with another")
def test_a_model_ends_with_the_worker_that_was_killed(project: Path, tmp_path: Path) -> None:
    configure(project, "slow", str(tmp_path / "child"))
    checkpoint(project)
    wait((tmp_path / "child").exists)
    (worker_process,) = workers()
    (model_process,) = children(worker_process)
    os.kill(worker_process, signal.SIGKILL)
    os.waitpid(worker_process, 0)
    wait(lambda: not running(model_process))


def test_while_one_worker_is_at_it_another_does_nothing(project: Path) -> None:
    configure(project, "good")
    checkpoint(project, summarizer="extractive")
    here = Project(project)
    with files.locked(here.worker_lock("tide"), "tide"):
        assert refine.work(here, "tide") == []
    assert [made.failure for made in refine.work(here, "tide")] == [""]
    assert refine.work(here, "tide") == []


def test_a_worker_improves_the_oldest_first_of_the_newest_three(project: Path) -> None:
    checkpoint(project, segment_tokens=500, summarizer="extractive")
    assert len(ralf.get_context("tide", root=project).checkpoints) > 4
    configure(project, "good")
    done = [made.checkpoint_id for made in refine.work(Project(project), "tide")]
    newest = [entry.checkpoint_id for entry in ralf.get_context("tide", root=project).checkpoints[-3:]]
    assert done == newest


def test_three_failures_disable_the_model_and_the_next_checkpoint_says_so_once(project: Path) -> None:
    here = Project(project)
    checkpoint(project, segment_tokens=500, summarizer="extractive")
    configure(project, "dead")
    assert len(refine.work(here, "tide")) == 3
    said = []
    for _ in range(2):
        grow(project / "session.jsonl", 500, lines_of(3_000)[1])
        said += checkpoint(project).warnings
    assert [text for text in said if "off after 3 failures in a row: command: exit status 1" in text] == said
    assert len(said) == 1
    assert said[0].endswith("ralf context checkpoint tide --summarizer command")
    assert "off after 3 failures in a row" in status(here, "tide").model_problem
    assert workers() == []
    # A call that works switches it on.
    configure(project, "good")
    assert checkpoint(project, summarizer="command").refinements[0].failure == ""
    assert status(here, "tide").model_problem == ""


@pytest.mark.slow
def test_a_call_that_works_on_one_route_switches_the_model_on_for_all(project: Path) -> None:
    here = Project(project)
    checkpoint(project, segment_tokens=500, summarizer="extractive")
    configure(project, "dead")
    refine.work(here, "tide")
    configure(project, "good")
    ralf.checkpoint("other", project / "session.jsonl", root=project, summarizer="command")
    grow(project / "session.jsonl", 500, lines_of(3_000)[1])
    assert checkpoint(project).warnings == ()
    wait(lambda: entry(project).refines)


def test_a_local_configuration_that_cannot_be_used_is_a_warning_and_no_more(project: Path) -> None:
    configure(project, "good")
    path = project / ".autonomous" / "context" / "config.local.yaml"
    path.chmod(0o644)
    report = checkpoint(project)
    assert len(report.checkpoints) == 1
    assert report.warnings == (f"{path}: others may read or write it: not read",)
    assert status(Project(project), "tide").model_problem == report.warnings[0]


def test_a_folder_named_like_ours_in_the_project_is_never_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "ralf").mkdir()
    (project / "ralf" / "__init__.py").write_text(f"open({str(project / 'owned')!r}, 'w')\n")
    (project / "json.py").write_text(f"open({str(project / 'owned')!r}, 'w')\n")
    monkeypatch.chdir(project)
    configure(project, "good")
    checkpoint(project)
    wait(lambda: entry(project).refines)
    assert not (project / "owned").exists()


def test_the_cap_of_a_day_is_kept_over_all_routes(project: Path) -> None:
    configure(project, "good", more="daily_cap: 1000 tokens\n")
    here = Project(project)
    checkpoint(project, summarizer="extractive")
    ralf.checkpoint("other", project / "session.jsonl", root=project, summarizer="extractive")
    assert [made.failure for made in refine.work(here, "tide")] == [""]
    (made,) = refine.work(here, "other")
    assert made.failure.startswith("daily cap spent: ")
    assert made.failure.endswith(" of 1,000 tokens")
    assert status(here, "other").model_problem == made.failure


# ---- what was spent ----


def call(when: str, reason: str = "", **payload: object) -> dict[str, object]:
    return {
        "summarizer": "claude",
        "called": when,
        "reason": reason,
        "input_tokens": 100,
        "output_tokens": 10,
        **payload,
    }


def after(*calls: dict[str, object]) -> Spend:
    found = Spend()
    for payload in calls:
        found = fold.spent(found, payload)
    return found


def test_tokens_estimates_and_money_are_summed_apart_and_by_day() -> None:
    found = after(
        call("2026-03-01T08:00:00Z", cost_usd=0.25),
        call("2026-03-02T08:00:00Z", estimated=True),
        call("2026-03-02T09:00:00Z", cost_usd=0.5),
    )
    assert (found.calls, found.tokens, found.estimated_tokens, found.cost_usd) == (3, 220, 110, 0.75)
    assert (found.day, found.day_tokens, found.day_cost_usd) == ("2026-03-02", 220, 0.5)
    both = local_config.total([found, after(call("2026-03-01T08:00:00Z", cost_usd=1.0))], "2026-03-02")
    assert (both.calls, both.cost_usd, both.day_tokens) == (4, 1.75, 220)


def test_what_a_route_has_cost_is_read_again_only_where_its_journal_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filestore, "_SETTLED", 0)
    project, read = Project(tmp_path), []
    monkeypatch.setattr(
        local_config, "load_state", lambda where, route: (read.append(route), load_state(where, route))[1]
    )

    def asked(route: str, number: int) -> None:
        head, payload = project.store.head(f"routes/{route}"), call(f"2026-03-0{number}T08:00:00Z")
        journal.append(project.store, route, Record(number, "unrefined", payload), id=f"{number}", after=head)

    for route in ("a", "b"):
        ralf.record_decision(route, "Keep the levels", root=tmp_path)
    asked("a", 2)
    for calls, again in ((1, ["a", "b"]), (1, []), (2, ["a"])):
        if calls == 2:
            asked("a", 3)
        read.clear()
        assert [found.calls for found in local_config.spend_of_project(project).values()] == [calls, 0]
        assert read == again
    kept = project.cache / "spend.json"
    for content in (b"", kept.read_bytes().replace(b'"calls":2', b'"calls":1'), b"[]"):
        kept.write_bytes(content)
        assert local_config.spend_of_project(project)["a"].calls == 2


def test_a_clock_that_was_put_back_gives_nothing_of_the_daily_cap_back() -> None:
    late, early = call("2026-03-02T08:00:00Z"), call("2026-03-01T23:00:00Z")
    found = after(late, early, late)
    assert (found.day, found.day_tokens) == ("2026-03-02", 330)
    assert local_config.total([found, after(early)], "2026-03-01").day_tokens == 440


def test_failures_in_a_row_are_counted_over_all_routes_and_by_model() -> None:
    two = after(call("2026-03-01T08:00:00Z", "time-out"), call("2026-03-01T09:00:00Z", "time-out"))
    one = after(call("2026-03-01T10:00:00Z", "time-out"))
    good = after(call("2026-03-01T09:30:00Z"))
    assert local_config.switched_off([two], "claude") == ""
    assert local_config.switched_off([two, one], "claude") == "off after 3 failures in a row: time-out"
    assert local_config.switched_off([two, good, one], "claude") == ""
    assert local_config.switched_off([two, one], "codex") == ""


def test_another_model_begins_without_the_failures_of_the_first() -> None:
    found = after(*[call(f"2026-03-01T08:00:0{n}Z", "dead") for n in range(3)])
    assert len(found.failed) == 3
    assert fold.spent(found, call("2026-03-01T09:00:00Z", "dead", summarizer="codex")).failed == (
        "2026-03-01T09:00:00Z",
    )


def test_an_imported_file_cannot_say_that_a_model_is_off_or_the_cap_is_spent(project: Path) -> None:
    ownership.init(Project(project), share=False)
    path = storekit.route_file(project, "tide")
    path.parent.mkdir(exist_ok=True)
    spent = {"calls": 3, "tokens": 9_000, "day": "9999-12-31", "day_tokens": 9_000, "summarizer": "command"}
    failed = {"failed": ["2099-01-01T00:00:00Z"] * 3, "failure": "theirs"}
    header = {"version": "1.1.0", "route": "tide", "spend": spent | failed}
    path.write_text(f"---\n{json.dumps({'context_checkpoint': header})}\n---\n")
    accept_route(Project(project), "tide")
    ralf.record_decision("tide", "Use SQLite", root=project)
    assert local_config.spend_of_route(Project(project), "tide") == Spend(calls=3, tokens=9_000)


def test_a_person_cannot_edit_away_what_was_spent(project: Path) -> None:
    configure(project, "dead")
    checkpoint(project, summarizer="command")
    path = storekit.route_file(project, "tide")
    text = path.read_text()
    assert "    calls: 1\n" in text
    path.write_text(text.replace("    calls: 1\n", "    calls: 0\n").replace("goal: ", "mine: 1\ngoal: "))
    ralf.record_decision("tide", "Written after the edit", root=project)
    context = ralf.get_context("tide", root=project)
    assert (context.context_checkpoint.spend.calls, context.extra) == (1, {"mine": 1})


@pytest.mark.slow
def test_the_command_line_shows_what_was_spent(project: Path) -> None:
    configure(project, "good")
    command = ("context", "checkpoint", "tide", "--transcript", "session.jsonl", "--summarizer", "command")
    ran = forks.forked(*command, "--keep", "the old columns", cwd=project)
    assert records_of(project, "tide")[0]["payload"]["keep"] == ["the old columns"]
    assert "tide: cp-001 improved by command: " in ran.out
    assert " tokens (estimate)\n" in ran.out
    (listed,) = forks.forked("context", "list", "--cost", "--json", cwd=project).json()
    assert (listed["route"], listed["calls"], listed["tokens"]) == ("tide", 1, 0)
    assert listed["estimated_tokens"] > 500
    shown = forks.forked("status", "--route", "tide", cwd=project).out
    assert "model            command  (nothing to improve)" in shown
    assert "spent here       1 call, about " in shown
    told = forks.forked("status", "--route", "tide", "--json", cwd=project).json()
    assert (told["spend"]["calls"], told["model"], told["owed"]) == (1, "command", 0)
    table = forks.forked("context", "list", "--cost", cwd=project).out
    assert "~" in table
    assert "(all)" in table


@pytest.mark.slow
def test_a_model_that_fails_is_a_warning_on_the_command_line(project: Path) -> None:
    configure(project, "refusing")
    command = ("context", "checkpoint", "tide", "--transcript", "session.jsonl", "--summarizer", "command")
    ran = forks.forked(*command, cwd=project)
    assert ran.status == 0
    assert "warning: tide: cp-001 stays as it is: command answered in words: I cannot help with that." in ran.err
    told = forks.forked(*command, "--json", cwd=project).json()
    assert told["refinements"][0]["failure"].startswith("command answered in words")


def test_a_checkpoint_whose_entry_stands_twice_by_hand_is_asked_about_once(project: Path) -> None:
    checkpoint(project, summarizer="extractive")
    path = storekit.route_file(project, "tide")
    head, gap, rest = path.read_text().partition("checkpoint_history:\n")
    once = rest[: rest.index("---\n")]
    path.write_text(head + gap + once + rest)
    ralf.record_decision("tide", "Written after the edit", root=project)
    assert [entry.checkpoint_id for entry in ralf.get_context("tide", root=project).checkpoints] == ["cp-001"] * 2
    configure(project, "good")
    assert len(refine.work(Project(project), "tide")) == 1


def test_who_removes_by_hand_why_nothing_was_asked_is_told_again_and_once(project: Path) -> None:
    configure(project, "good", more="daily_cap: 0 tokens\n")
    checkpoint(project, summarizer="extractive")
    assert len(refine.work(Project(project), "tide")) == 1
    path = storekit.route_file(project, "tide")
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "unrefined:" not in line))
    ralf.record_decision("tide", "Written after the edit", root=project)
    assert len(refine.work(Project(project), "tide")) == 1
    assert entry(project).unrefined == "daily cap spent: 0 of 0 tokens"
