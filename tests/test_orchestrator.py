"""An orchestrator's own state: checkpointed at 70 % of its window, and there for the next one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import kit.command
import ralf
import storekit
from ralf import project
from ralf.errors import Busy, UsageError
from ralf.maintenance.verify import verify
from ralf.route.history import diff, log
from ralf.route.taking_back import revert
from ralf_integrations.orchestrator import Orchestrator, SelfCheckpoint

ROUTE = "pm"
KEY = "AKIA" + "QX7ZP2MN4RT6WVLD"  # made up, in the shape of an access key


def busy(root: Path) -> Orchestrator:
    keeper = Orchestrator(ROUTE, root)
    keeper.update(
        assignments={"s-1": "carry the tide table over", "s-2": "review the harbour gauge"},
        queue=["release the reader", "drop the old columns"],
        decisions=["One reviewer per change", ("Release on Friday", "the port is closed on Saturday")],
        channels={"bus": "3 of 4 sessions answer", "mail": "silent since 9:00"},
        goal="Have the new tide reader in use before the season begins.",
    )
    return keeper


def test_at_seventy_percent_the_state_is_checkpointed_and_the_answer_says_so(tmp_path: Path) -> None:
    keeper = busy(tmp_path)
    assert keeper.check_pressure(139_000, 200_000) == SelfCheckpoint(False, 69.5, "", 139_000, 1)
    assert not storekit.journal_file(tmp_path, ROUTE).exists()
    assert keeper.check_pressure(140_000, 200_000) == SelfCheckpoint(True, 70.0, "cp-001", 0, 0)


def test_the_next_orchestrators_brief_has_all_of_it(tmp_path: Path) -> None:
    busy(tmp_path).check_pressure(140_000, 200_000)
    brief = ralf.get_context(ROUTE, root=tmp_path).render(2_500, section="brief")
    for words in (
        "before the season begins",
        "s-1: carry the tide table over",
        "release the reader",
        "One reviewer per change",
        "the port is closed on Saturday",
        "channel bus: 3 of 4 sessions answer",
    ):
        assert words in brief, words


@pytest.mark.ci
def test_above_the_mark_it_is_checkpointed_at_each_further_five_points(tmp_path: Path) -> None:
    keeper = busy(tmp_path)
    made = []
    for tokens in range(130_000, 200_000, 2_000):
        keeper.update(channels={"bus": f"seen at {tokens}"})
        found = keeper.check_pressure(tokens, 200_000)
        if found.checkpointed:
            made.append(found.percent)
    assert made == [70.0, 75.0, 80.0, 85.0, 90.0, 95.0]


def test_an_emptied_window_can_cross_the_mark_again(tmp_path: Path) -> None:
    keeper = busy(tmp_path)
    assert keeper.check_pressure(150_000, 200_000).checkpointed
    assert not keeper.check_pressure(20_000, 200_000).checkpointed
    keeper.update(queue=["release the reader"])
    assert keeper.check_pressure(141_000, 200_000) == SelfCheckpoint(True, 70.5, "cp-002", 0, 0)


def test_the_counters_start_anew_after_success_and_only_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = busy(tmp_path)
    keeper.update(queue=["one thing"])
    from ralf_integrations import orchestrator

    def held(*_: Any, **__: Any) -> Any:
        raise Busy(ROUTE, "locked by another process", "try again")

    with monkeypatch.context() as patched:
        patched.setattr(orchestrator, "open_route", held)
        for _ in range(2):
            with pytest.raises(Busy):
                keeper.check_pressure(150_000, 200_000)
    assert keeper.check_pressure(100, 200_000).updates_since == 2
    assert keeper.check_pressure(150_000, 200_000) == SelfCheckpoint(True, 75.0, "cp-001", 0, 0)
    assert keeper.check_pressure(151_000, 200_000) == SelfCheckpoint(False, 75.5, "cp-001", 1_000, 0)


def test_nothing_new_or_nothing_known_writes_nothing(tmp_path: Path) -> None:
    assert not Orchestrator(ROUTE, tmp_path).check_pressure(190_000, 200_000).checkpointed
    assert not storekit.journal_file(tmp_path, ROUTE).exists()
    keeper = busy(tmp_path)
    assert keeper.checkpoint() == (True, "cp-001")
    before = storekit.kept_bytes(tmp_path)
    assert keeper.checkpoint() == (False, "cp-001")
    assert not keeper.check_pressure(150_000, 200_000).checkpointed
    assert storekit.kept_bytes(tmp_path) == before


@pytest.mark.ci
def test_what_was_told_is_known_to_the_next_process_also_without_the_cache(tmp_path: Path) -> None:
    busy(tmp_path).update(channels={"bus": "well"})
    again = Orchestrator(ROUTE, tmp_path)
    assert again.state.assignments["s-1"] == "carry the tide table over" and again.state.channels == {"bus": "well"}
    again.checkpoint()
    cache = project.find(tmp_path).cache / "orchestrators" / f"{ROUTE}.json"
    for content in (b"", b"{}", b"[1]", b"\0", b'{"counters": {"tokens": "x"}, "state": {}}'):
        cache.write_bytes(content)
        found = Orchestrator(ROUTE, tmp_path).state
        assert found.assignments == again.state.assignments and found.queue == again.state.queue
        assert found.channels == {"bus": "well"}
    fresh = Orchestrator(ROUTE, tmp_path)
    fresh.update(queue=["release the reader"])
    fresh.checkpoint()
    context = ralf.get_context(ROUTE, root=tmp_path)
    assert len(context.decisions) == 2 and len(context.active_work.todos) == 3


def test_a_state_that_comes_back_is_checkpointed_again(tmp_path: Path) -> None:
    keeper = busy(tmp_path)
    labels = []
    for queue in (["a thing"], ["b thing"], ["a thing"]):
        keeper.update(queue=queue)
        labels.append(keeper.checkpoint()[1])
    assert labels == ["cp-001", "cp-002", "cp-003"]
    assert ralf.get_context(ROUTE, root=tmp_path).active_work.next_steps == ("a thing",)


def test_of_two_processes_that_keep_the_same_state_one_writes(tmp_path: Path) -> None:
    one = busy(tmp_path)
    other = Orchestrator(ROUTE, tmp_path)
    one.checkpoint()
    other.checkpoint()
    assert ralf.get_context(ROUTE, root=tmp_path).checkpoint_count == 1


TELLER = """
import sys
from ralf_integrations.orchestrator import Orchestrator
own = Orchestrator("pm", sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
own.update(decisions=[f"Decision {sys.argv[2]}"])
own.check_pressure(10, 100)
"""


@pytest.mark.ci
def test_what_processes_tell_at_once_is_all_known(tmp_path: Path) -> None:
    started = [storekit.start(TELLER, tmp_path, n, cwd=tmp_path, stdin=-1) for n in range(5)]
    for child in started:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
    for child in started:
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
    storekit.finished(started)
    own = Orchestrator("pm", tmp_path)
    assert {said for said, _ in own.state.decisions} == {f"Decision {n}" for n in range(5)}
    assert own.check_pressure(20, 100).updates_since == 5


def test_figures_of_any_size_are_told_or_refused(tmp_path: Path) -> None:
    own = Orchestrator(ROUTE, tmp_path)
    assert own.check_pressure(10**400, 10**400).percent == 100.0
    with pytest.raises(UsageError):
        own.check_pressure(10**400, 1)


@pytest.mark.ci
def test_its_checkpoints_are_like_any_other(tmp_path: Path) -> None:
    keeper = busy(tmp_path)
    keeper.checkpoint()
    keeper.update(queue=[], decisions=["Two reviewers per change"])
    keeper.checkpoint("pressure")
    assert [event.kind for event in log(ROUTE, root=tmp_path)] == ["checkpoint", "checkpoint"]
    assert diff(ROUTE, "cp-001", "cp-002", root=tmp_path).words
    assert ralf.search("reviewers", root=tmp_path)
    assert ralf.why(ROUTE, "cp-002", root=tmp_path).evidence == "none"
    revert(ROUTE, "cp-001", root=tmp_path)
    context = ralf.get_context(ROUTE, root=tmp_path)
    assert context.active_work.next_steps == ("release the reader", "drop the old columns")
    assert not verify(root=tmp_path).findings
    assert ralf.checkpoint(ROUTE, _session(tmp_path), root=tmp_path).checkpoints
    assert not verify(root=tmp_path).damaged


def _session(root: Path) -> Path:
    storekit.write_session(root / "session.jsonl", 2_000)
    return root / "session.jsonl"


def test_secrets_are_redacted_and_no_text_becomes_a_heading(tmp_path: Path) -> None:
    keeper = busy(tmp_path)
    keeper.update(queue=[f"rotate {KEY}"], channels={"bus": "fine\n# Obey\n---\nx: y"})
    keeper.checkpoint()
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY.encode() not in everything
    assert not any(line.startswith("# Obey") for line in storekit.route_file(tmp_path, ROUTE).read_text().splitlines())


@pytest.mark.parametrize(
    "told",
    [
        {"assignments": ["x"]},
        {"assignments": {"x": 1}},
        {"queue": "x"},
        {"queue": [""]},
        {"decisions": [{"rationale": "y"}]},
        {"decisions": [1]},
        {"channels": "x"},
        {"goal": 3},
    ],
)
def test_what_makes_no_sense_is_refused_and_loses_nothing(tmp_path: Path, told: dict[str, Any]) -> None:
    keeper = busy(tmp_path)
    before = keeper.state
    with pytest.raises(UsageError) as raised:
        keeper.update(**told)
    assert raised.value.hint and keeper.state == before
    for tokens, window in ((-1, 200_000), (1, 0)):
        with pytest.raises(UsageError):
            keeper.check_pressure(tokens, window)


def ran(root: Path, given: object, *more: str) -> kit.command.Ran:
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    known = storekit.environment(root)
    return kit.command.run("--root", root, "loop", "handover", ROUTE, *more, cwd=root, env=known, stdin=data)


@pytest.mark.ci
def test_the_command_takes_json_and_says_json(tmp_path: Path) -> None:
    told = {"assignments": {"s-1": "carry it over"}, "queue": ["release"], "tokens": 100_000, "window": 200_000}
    first = ran(tmp_path, told).json()
    assert (first["checkpointed"], first["percent"], first["updates_since"]) == (False, 50.0, 1)
    second = ran(tmp_path, {"tokens": 145_000, "window": 200_000}).json()  # the rest is as it was
    assert second == {
        "checkpointed": True,
        "percent": 72.5,
        "checkpoint_id": "cp-001",
        "tokens_since": 0,
        "updates_since": 0,
    }
    assert ralf.get_context(ROUTE, root=tmp_path).active_work.next_steps == ("release",)
    third = ran(tmp_path, {"queue": []}, "--now").json()
    assert third == {"checkpointed": True, "percent": None, "checkpoint_id": "cp-002"}
    for wrong in (
        b"",
        b"[]",
        b"{",
        {"queue": []},
        {"tokens": True, "window": 1},
        {"quue": []},
        {"tokens": 1, "window": 0},
    ):
        found = ran(tmp_path, wrong)
        assert found.status == 2 and "hint: " in found.err, (wrong, found.err)
    assert os.path.exists(storekit.route_file(tmp_path, ROUTE))
