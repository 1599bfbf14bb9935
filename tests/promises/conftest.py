"""What promises need: a user whose home and project lie in a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from promises.user import User


@pytest.fixture
def user(tmp_path: Path) -> User:
    """Somebody who has typed `ralf init` in a git repository."""
    return User.initialized(tmp_path)


@pytest.fixture
def stranger(tmp_path: Path) -> User:
    """Somebody who has typed nothing yet."""
    return User(tmp_path / "home", tmp_path / "project")
