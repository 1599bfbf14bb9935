"""What a test costs: processor time of set-up, call and teardown, of the children that were waited for and of what the
fork server ran for it, in *loops* of about 10 ms, timed on the same machine once a process.

A quick test of more than ten loops is printed, and one of more than thirty fails: it is to be cheaper, or marked `ci`.
A fixture that several tests share may take twice as much. Before a test fails, the loop is timed again: what slows the
machine at that moment (a neighbour on the same core) slows both. A test that waits for more than half a second without
using the processor is printed, too.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from kit import command

PRINTED, MOST = 10.0, 30.0  # loops
WAITED = 0.5  # seconds
LATER = ("ci", "release")
"""The marks of tests that are not quick."""

_COST = "cost"


@dataclass(frozen=True)
class Cost:
    """Loops of processor time, and seconds of waiting."""

    loops: float
    waited: float


def timed() -> float:
    """Seconds of processor time of one loop now: the least of twenty."""
    took = []
    for _ in range(20):
        began, total = time.process_time(), 0
        for number in range(220_000):
            total += number & 7
        took.append(time.process_time() - began)
    return min(took)


@cache
def loop() -> float:
    """Seconds of processor time of one loop, timed once a process."""
    return timed()


def spent() -> float:
    """Seconds of processor time so far: of this process, its children that were waited for, and its fork server's."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime + command.spent()


class Meter:
    """Measures the tests of this process; the process that prints the summary collects what all of them cost. Where
    it `is_limited`, a test that costs too much fails.

    A fixture that several tests share is measured by itself: whichever test comes first would pay for all.
    """

    def __init__(self, *, is_limited: bool) -> None:
        self._is_limited = is_limited
        self._began = (0.0, 0.0)
        self._shared: dict[str, Cost] = {}
        self._is_sharing = False
        self._costs: dict[str, Cost] = {}
        self._started = time.monotonic()
        self._others = 0.0  # seconds of processor time of the worker processes

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Begin with a test."""
        loop()
        self._shared = {}
        self._began = (spent(), time.monotonic())

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Measure a fixture that is set up once for several tests, with those that it asks for itself."""
        if fixturedef.scope == "function" or self._is_sharing:
            return (yield)
        self._is_sharing = True
        began = (spent(), time.monotonic())
        try:
            return (yield)
        finally:
            self._is_sharing = False
            self._shared[f"{request.node.nodeid}: fixture {fixturedef.argname}"] = _since(began)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the costs into the report of the teardown, which fails where a quick test is none."""
        report = yield
        if call.when == "teardown":
            whole, shared = _since(self._began), self._shared.values()
            own = Cost(
                whole.loops - sum(each.loops for each in shared), whole.waited - sum(each.waited for each in shared)
            )
            costs = {item.nodeid: own, **self._shared}
            report.user_properties += [(_COST, (name, cost.loops, cost.waited)) for name, cost in costs.items()]
            allowed = {name: MOST if name == item.nodeid else 2 * MOST for name in costs}
            over = [name for name in costs if costs[name].loops > allowed[name]]
            if self._is_limited and over and report.passed:
                slower = max(1.0, timed() / loop())
                over = [name for name in over if costs[name].loops > allowed[name] * slower]
            if self._is_limited and over and report.passed:
                hint = "hint: make it cheaper, or mark it @pytest.mark.ci"
                report.outcome = "failed"
                lines = [f"{name}: {costs[name].loops:.0f} loops" for name in over]
                report.longrepr = "\n".join(
                    [*lines, f"a quick test may take {MOST:.0f} of {loop() * 1e3:.0f} ms", hint]
                )
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the costs of a quick test, wherever it ran."""
        if report.when == "teardown" and not any(mark in report.keywords for mark in LATER):
            for key, value in report.user_properties:
                if key == _COST:
                    name, loops, waited = value  # type: ignore[misc]  # as it was put in
                    self._costs[name] = Cost(loops, waited)

    @pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which `-p no:xdist` leaves out
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker took."""
        self._others += getattr(node, "workeroutput", {}).get(_COST, 0.0)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the process that prints the summary what this one took."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_COST] = spent()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the costs."""
        line = terminalreporter.write_line
        for name, cost in sorted(self._costs.items(), key=lambda item: -item[1].loops):
            if cost.loops > PRINTED:
                line(f"{cost.loops:5.0f} loops  {name}")
        for name, cost in sorted(self._costs.items(), key=lambda item: -item[1].waited):
            if cost.waited > WAITED:
                line(f"{cost.waited:5.1f} s waiting  {name}")
        elapsed = time.monotonic() - self._started
        used = spent() if not self._others else time.process_time() + self._others  # workers are children, too
        line(f"{used:.0f} s of processor time in {elapsed:.0f} s; a loop is {loop() * 1e3:.1f} ms")


def _since(began: tuple[float, float]) -> Cost:
    used = spent() - began[0]
    return Cost(used / loop(), time.monotonic() - began[1] - used)
