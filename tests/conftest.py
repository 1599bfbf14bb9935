"""What all tests share: examples are the same in every run, so that a failure is one of the change under test; nothing
in the environment chooses a route; and a module that makes a project as the fixture `made` gets a copy of it for each
test, and the command in it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import settings

from storekit import CHOOSING, Cli

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHOOSING:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "project")


@pytest.fixture
def cli(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(project, monkeypatch, capfd)
