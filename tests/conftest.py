"""What all tests share: examples are the same in every run, so that a failure is one of the change under test; nothing
in the environment chooses a route; folders of quick tests lie in memory; what is compiled is kept for the next process;
the longest tests begin first; each route file that a test writes fits the schema that editors are given; and a module
that makes a project as the fixture `made` gets a copy of it for each test, and the command in it.
"""

from __future__ import annotations

import compileall
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis.internal.conjecture import providers
from hypothesis.strategies import text

import ralf_integrations  # noqa: F401  # what it declares, where no metadata do
from examples import FEW, MANY, SOME
from kit.cost import LATER, Meter
from kit.fork_server import load
from ralf import environment
from ralf.text import tokens
from storekit import CHOOSING, HANGS, MEMORY, SOURCE, Cli, copied, lines_of

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None, max_examples=FEW)
settings.register_profile("some", settings.get_profile("repeatable"), max_examples=SOME)
settings.register_profile("many", settings.get_profile("repeatable"), max_examples=MANY)
settings.load_profile("repeatable")

# Hypothesis also draws constants from the source of whatever modules of ours are loaded by then: other examples where
# another test ran before, and half a second for the test that comes first.
setattr(providers, "_get_local_constants", providers.Constants)  # noqa: B010  # no public name turns it off


if (
    sys.dont_write_bytecode
):  # then each of the hundreds of processes would compile all it imports: beside the tree it may
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(SOURCE / ".pytest_cache" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

QUICK = "not ci and not release"
_ALL_LATER = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.(ci|release)\b", re.M)

_ROOM = 4 << 30  # bytes: several workers write transcripts of 200 MB


def _is_roomy() -> bool:
    """Whether the memory can hold what tests write, and run what they make."""
    if MEMORY is None:
        return False
    found = os.statvfs(MEMORY)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize > _ROOM


def pytest_configure(config: pytest.Config) -> None:
    """Lay the folders of tests into memory: a sync is a system call there as on a disk, and waits for none. Those for a
    release are about disks, or in a namespace that has no such folder.
    """
    os.umask(0o022)  # whoever runs them: modes are what tests look at
    if not hasattr(config, "workerinput"):  # before the first test of a fresh checkout would pay for it
        for name in ("context", "cli", "integrations", "migrations"):
            compileall.compile_dir(SOURCE / name, quiet=2)
    config.pluginmanager.register(Meter(is_limited=config.getoption("markexpr") == QUICK), "ralf-cost")
    if "not release" in config.getoption("markexpr") and "PYTEST_DEBUG_TEMPROOT" not in os.environ and _is_roomy():
        tempfile.tempdir = os.environ["TMPDIR"] = MEMORY


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out of the quick tests each file that has none, before it is imported."""
    if config.getoption("markexpr") != QUICK or not collection_path.name.startswith("test_"):
        return None
    return bool(_ALL_LATER.search(collection_path.read_text(encoding="utf-8"))) or None


@given(text())
@settings(max_examples=1, database=None)
def _one_example(_: str) -> None:
    """What hypothesis loads for the first text."""


def pytest_collection_finish() -> None:
    """Load what any test would be the first to pay for, and keep what there is by then out of each collection of
    garbage, also in forks, which would copy its pages.
    """
    with warnings.catch_warnings(action="ignore"):  # of modules that only an old import still names
        load()
        tokens.count("\u1781\u17d2\u1798\u17c2\u179a")  # a script for which the whole encoding is loaded
        lines_of(3_000)  # counts the tokens of the turns that most sessions of tests begin with
        _one_example()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deal the tests that say how long they take to the workers, longest first, and then the others as they come: each
    worker begins with its part of the list, and takes from the end of another's when it is done.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    marks = ((item, mark) for item in items for name in LATER for mark in item.iter_markers(name))
    seconds = {item: mark.kwargs["seconds"] for item, mark in marks if mark.kwargs}
    longest = sorted(seconds, key=lambda item: -seconds[item])
    others = [item for item in items if item not in seconds]
    left = len(items)
    items.clear()
    for worker in range(workers):
        count = left // (workers - worker)
        first = longest[worker::workers]
        items += first + others[: count - len(first)]
        del others[: count - len(first)]
        left -= count


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHOOSING:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Wait for the processes that a test has left in the background: the next test to look would pay for them."""
    yield
    for child in list(environment.started):
        environment.status_within(child, HANGS)


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path / "project")


@pytest.fixture
def cli(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(project, monkeypatch, capfd)
