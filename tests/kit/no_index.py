"""A mode in which each opening of `index.db` finds none, as if somebody deleted it before every command and write."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ralf.document import index

if TYPE_CHECKING:
    from pytest import MarkDecorator

IS_ON = bool(os.environ.get("TESTS_WITHOUT_INDEX"))
"""Whether the environment asks for it, of the tests and of the commands that they start."""

KEPT = "it is about what the index keeps"


def with_index_only(reason: str = KEPT) -> MarkDecorator:
    """A mark for tests that this mode leaves out."""
    import pytest  # which the fork server does without

    return pytest.mark.skipif(IS_ON, reason=reason)


def switch() -> None:
    """Switch it on where the environment asks for it."""
    opened = index.opened
    if IS_ON and opened.__module__ == index.__name__:

        def opened_anew(path: Path | None) -> index.Index | None:
            for ending in ("", "-wal", "-shm"):
                with suppress(OSError):
                    os.unlink(f"{path}{ending}")
            return opened(path)

        index.opened = opened_anew
