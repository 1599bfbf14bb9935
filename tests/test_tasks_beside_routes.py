"""The stream of tasks beside those of routes: what looks at all streams is at peace with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
from ralf import api
from ralf.maintenance import ownership
from ralf.tasks import claims, editing, store

pytestmark = pytest.mark.ci


def made(root: Path) -> Path:
    ownership.init(store.at(root).project, share=False)
    ralf.record_decision("tide", "Use the tide tables of the harbour", root=root)
    editing.add("Read the tide tables of the harbour", text="Quokka words", id="TASK-one", root=root)
    claims.claim(by="me", root=root)
    claims.progress("Quokka progress", by="me", root=root)
    claims.done("Quokka summary", by="me", root=root)
    return root


def test_a_forget_takes_words_out_of_the_stream_and_tasks_go_on(tmp_path: Path) -> None:
    root = made(tmp_path)
    editing.add("Two", root=root)
    claims.claim("Two", by="me", root=root)
    ralf.record_decision("tide", "Quokka summary", root=root)
    done = api.forget("tide", text="Quokka summary", root=root)
    assert done.left == ()
    assert done.records["tasks"] == 1
    after = store.get("TASK-one", root=root)
    assert "Quokka summary" not in after.summary
    assert (after.task.status, after.progress) == ("completed", "Quokka progress")
    assert claims.done("Two", by="me", root=root).task.status == "completed"
    assert api.verify(root=root).findings == ()
