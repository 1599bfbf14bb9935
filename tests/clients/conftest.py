"""A project for real clients, with this tree's ralf installed for them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import offline
import pytest
from offline import World


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return offline.installed(tmp_path_factory.mktemp("environment") / "venv")


@pytest.fixture
def world(tmp_path: Path, environment: Path) -> Iterator[World]:
    world = World(tmp_path / "run", environment)
    yield world
    shutil.rmtree(world.folder / ".mnt", ignore_errors=True)
