"""A command that is killed at any point leaves what it had, or what it was to make: the record first, then the file."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest
from tests.faults.rig import killed_at

from ralf.maintenance import ownership
from ralf.storage import durable
from ralf.tasks import claims, editing, store


@pytest.mark.ci
def test_a_save_into_a_file_that_has_two_names_when_its_writer_dies_leaves_one_file_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ownership.init(store.at(tmp_path).project, share=False)
    task = editing.add("Carry the tide table over", root=tmp_path).task.id
    state = claims.claim(task, by="agent-1", root=tmp_path)
    assert state.claim is not None
    link = os.link

    def linked(*names: Path) -> None:
        link(*names)
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patched:
        patched.setattr(durable, "_renameat2", lambda: None)  # as on systems that move no file in one step
        patched.setattr(os, "link", linked)
        assert killed_at(-1, partial(claims.done, "Done", lease=state.claim.lease(task), root=tmp_path))
    first, second = files_of(tmp_path, task)
    with first.open("a") as file:
        file.write("A line of a person.\n")
    assert second.samefile(first)
    editing.add("Another one", root=tmp_path)
    (path,) = files_of(tmp_path, task)
    assert path.parent.name == "completed"
    assert "A line of a person.\n" in path.read_text()


def files_of(root: Path, task: str) -> list[Path]:
    return sorted((root / ".autonomous" / "tasks").rglob(f"{task}*.md"))
