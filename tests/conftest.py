"""What all tests share: examples are the same in every run, so that a failure is one of the change under test; nothing
in the environment chooses a route; folders of quick tests lie in memory; what is compiled is kept for the next process;
the longest tests begin first; each route file that a test writes fits the schema that editors are given; and a module
that makes a project as the fixture `made` gets a copy of it for each test, and the command in it.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

import ralf_integrations  # noqa: F401  # what it declares, where no metadata do
import schemas
from examples import FEW, MANY, SOME
from storekit import CHOOSING, MEMORY, SOURCE, Cli, copied

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None, max_examples=FEW)
settings.register_profile("some", settings.get_profile("repeatable"), max_examples=SOME)
settings.register_profile("many", settings.get_profile("repeatable"), max_examples=MANY)
settings.load_profile("repeatable")

schemas.watch()

if (
    sys.dont_write_bytecode
):  # then each of the hundreds of processes would compile all it imports: beside the tree it may
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(SOURCE / ".pytest_cache" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

_ROOM = 4 << 30  # bytes: several workers write transcripts of 200 MB


def _is_roomy() -> bool:
    """Whether the memory can hold what tests write, and run what they make."""
    if MEMORY is None:
        return False
    found = os.statvfs(MEMORY)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize > _ROOM


def pytest_configure(config: pytest.Config) -> None:
    """Lay the folders of the quick tests into memory: a sync is a system call there as on a disk, and waits for none.
    The slow ones are about disks, or in a namespace that has no such folder.
    """
    is_quick = config.getoption("markexpr") == "not slow"
    if is_quick and "PYTEST_DEBUG_TEMPROOT" not in os.environ and _is_roomy():
        tempfile.tempdir = os.environ["TMPDIR"] = MEMORY


def pytest_collection_finish() -> None:
    """Keep what there is by now out of each collection of garbage, also in forks, which would copy its pages."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deal the tests that say how long they take to the workers, longest first, and then the others as they come: each
    worker begins with its part of the list, and takes from the end of another's when it is done.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    seconds = {item: mark.kwargs["seconds"] for item in items for mark in item.iter_markers("slow") if mark.kwargs}
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


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path / "project")


@pytest.fixture
def cli(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(project, monkeypatch, capfd)
