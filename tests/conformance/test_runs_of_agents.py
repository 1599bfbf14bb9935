"""Runs of agents keep their promises whatever store is behind them: what the port offers beyond six methods is not
needed.
"""

# ruff: noqa: D102  # what a rule does is its name

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from memory_store import MemoryStore

from examples import examples
from ralf import project as projects
from ralf.agent import states, steplog
from ralf.agent.listing import cancel_run, list_runs, retry_run
from ralf.agent.run import AgentRun
from ralf.agent.signals import send_signal
from ralf.errors import Claimed, RunCancelled, StaleLease
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Store, Token
from runskit import dropped

TESTS = Path(__file__).parents[1]

STORES: dict[str, Callable[..., Store]] = {
    "FileStore": FileStore,
    "MemoryStore": MemoryStore,
}


@pytest.fixture(params=STORES)
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(projects, "open_store", STORES[request.param])
    return tmp_path


def test_a_run_goes_on_after_each_crash_where_it_was(root: Path) -> None:
    run = AgentRun("r", root=root, input=b"in")
    assert run.input == b"in"
    for number in range(1, 4):
        dropped(run)
        run = AgentRun("r", root=root)
        assert (run.iteration, run.term) == (number, 2 * number)
        assert run.load() == (b"state %d" % (number - 1) if number > 1 else None)
        assert run.once("k", lambda _, n=number: n) == number  # type: ignore[misc]
        dropped(run)
        run = AgentRun("r", root=root)
        assert run.once("k", lambda _: 1 / 0) == number
        run.continue_with(b"in %d" % number, state=b"state %d" % number)
        assert run.input == b"in %d" % number
    run.complete(b"x" * 300_000)
    assert run.result() == b"x" * 300_000
    assert [one.number for one in run.states()] == [1, 2, 3]
    assert run.state().losses == 0


def test_a_second_holder_is_refused_and_a_lost_one_fenced(root: Path) -> None:
    first, second = AgentRun("r", root=root), AgentRun("r", root=root)
    first.save(b"1")
    with pytest.raises(Claimed):
        second.load()
    first._output.drop()
    steplog.held_here.pop(first._writer)
    assert second.save(b"2") == 2
    with pytest.raises(StaleLease):
        first.save(b"3")
    assert second.load() == b"2"
    cancel_run("r", root=root)
    with pytest.raises(RunCancelled):
        second.continue_with(b"")
    assert retry_run("r", root=root).status == "waiting"


def test_the_records_of_version_1_are_read_and_gone_on_with(root: Path) -> None:
    project = projects.find(root)
    project.prepare()
    heads: dict[str, Token | None] = {}
    for line in (TESTS / "data" / "runs-version-1.jsonl").read_text(encoding="utf-8").splitlines():
        stream, id_, record = json.loads(line).values()
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
        heads[stream] = project.store.append(stream, text, id=id_, after=heads.get(stream))
    found = {one.run: one for one in list_runs(root=root).runs}
    assert {one.run: one.status for one in found.values()} == {
        "old": "waiting",
        "done": "completed",
        "paused": "paused",
    }
    old = found["old"]
    assert (old.iteration, old.attempt, old.calls, old.states, old.signals, old.heard) == (2, 2, 1, 2, 4, 2)
    assert AgentRun("done", root=root).result() == b"result"
    with AgentRun("old", root=root) as run:
        assert (run.load(), run.load(1)) == (b"state 2", b"state 1")
        assert (run.input, run.fetch("page")) == (b"next", b"\xffresult")
        assert run.once("a", lambda _: 1 / 0) == b"raw"
        assert run.wait_signal("none", 0) is None
        heard = [run.wait_signal(name, 0) for name in ("other", "wish", "wish", "wish")]
        assert [one and one.text for one in heard] == ["x", "two", "three", None]
        run.continue_with(b"", state=b"state 3")
        assert [one.number for one in run.states()] == [1, 2, 3]


@pytest.mark.ci
def test_old_states_go_where_the_store_can_replace_records_and_new_ones_stay(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "ROOM", 1_000)
    monkeypatch.setattr(states, "LEAST", 2_000)
    monkeypatch.setattr(states, "_WEIGHT", 0)
    with AgentRun("r", root=root, keep=3) as run:
        send_signal("r", "n", "1", root=root)
        for number in range(1, 60):
            run.once("k", lambda _, n=number: b"%0100d" % n)  # type: ignore[misc]
            assert run.save(b"%0100d" % number) == number
            if number == 30:
                assert run.wait_signal("n", 0) is not None
            run.continue_with(b"%0100d" % number)
        found = run.states()
        assert all(one.kept for one in found[-3:])
        assert run.load() == run.load(59) == b"%0100d" % 59
        assert run.wait_signal("n", 0) is None
        assert not all(one.kept for one in found)
    assert AgentRun("r", root=root).input == b"%0100d" % 59


NUMBERS = count()


class Signals(RuleBasedStateMachine):
    """A run whose state is the list of signals that it has heard, with crashes at any point: in the end it has heard
    each once and in order.
    """

    names = st.sampled_from(["a", "b"])

    def __init__(self) -> None:
        super().__init__()
        self.root, self.name = Path(self.folder), f"r{next(NUMBERS)}"
        self.sent: dict[str, list[str]] = {"a": [], "b": []}
        self.run = AgentRun(self.name, root=self.root)

    folder = ""

    @initialize()
    def begin(self) -> None:
        self._restart()

    def _restart(self) -> None:
        dropped(self.run)
        self.run = AgentRun(self.name, root=self.root)
        self.heard = (self.run.load() or b"").decode().split()
        self.calls = 0

    @rule(name=names)
    def send(self, name: str) -> None:
        self.sent[name].append(f"{name}{len(self.sent[name])}")
        send_signal(self.name, name, self.sent[name][-1], root=self.root)

    @rule(name=names)
    def wait(self, name: str) -> None:
        signal = self.run.wait_signal(name, 0)
        if signal is not None:
            self.heard.append(signal.text)

    @rule()
    def save(self) -> None:
        self.run.save(" ".join(self.heard).encode())

    @rule()
    def call(self) -> None:
        self.calls += 1
        self.run.once(f"{self.calls}", lambda _: self.calls)

    @rule()
    def go_on(self) -> None:
        self.run.continue_with(b"", state=" ".join(self.heard).encode())
        self.calls = 0

    @rule()
    def crash(self) -> None:
        self._restart()

    @rule()
    def fail(self) -> None:
        self.run.fail("no")
        self._restart()

    @rule(name=names)
    def pause(self, name: str) -> None:
        self.run.save(" ".join(self.heard).encode())
        self.run.pause(name, 0)
        signal = self.run.resumed_by
        if signal is not None:
            self.heard.append(signal.text)
            self.run.save(" ".join(self.heard).encode())

    def teardown(self) -> None:
        for name in ("a", "b"):
            for _ in range(60):  # time-outs come again, too
                self.wait(name)
            assert [one for one in self.heard if one[0] == name] == self.sent[name]
        dropped(self.run)


@pytest.mark.ci
@pytest.mark.parametrize("kind", STORES)
def test_each_signal_is_heard_once_and_in_order_whatever_crashes_when(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "open_store", STORES[kind])
    monkeypatch.setattr(Signals, "folder", str(tmp_path))
    most = examples(20 if kind == "FileStore" else 100)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Signals, settings=settings(max_examples=most, stateful_step_count=30, deadline=None)
    )
