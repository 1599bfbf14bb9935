"""The records of tasks: what is written is read, what is not known is passed over, and lines of before are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ralf.document.record import Record, decoded
from ralf.document.rows import Rows
from ralf.errors import DamagedJournal
from ralf.storage.journal import Entry
from ralf.tasks.records import Known, fold, known, said, task_of


def read(line: bytes) -> Record:
    found = decoded("tasks", Entry("token", "id", line))
    assert found is not None
    return found


def test_a_record_of_a_later_kind_or_version_is_passed_over_and_one_that_is_none_is_damage() -> None:
    rows = Rows()
    for tree in (
        {"v": 1, "n": 1, "at": "", "w": "a", "kind": "new kind", "task": "TASK-a"},
        {"v": 2, "n": 2, "at": "", "w": "b", "kind": "claim", "task": "TASK-a", "by": "later"},
    ):
        fold(rows, read(json.dumps(tree).encode()))
    assert known(rows, "TASK-a") == Known()
    for broken in (b"{}", b"[]", b"no json", b'{"v":1,"kind":"claim","n":"x","at":"","w":""}'):
        with pytest.raises(DamagedJournal, match="tasks"):
            read(broken)


def test_the_lines_of_before_are_read() -> None:
    lines: list[dict[str, Any]] = [
        {"kind": "seen", "changes": [{"task": "TASK-a", "place": "a.md", "digest": "d1", "tree": {"id": "TASK-a"}}]},
        {"kind": "seen", "digests": [["TASK-b", "d2"]], "owes": ["TASK-b"]},
        {"kind": "claim", "task": "TASK-a", "by": "me", "digest": "d1"},
        {
            "kind": "done",
            "task": "TASK-a",
            "lease": 3,
            "by": "me",
            "summary": "Done",
            "changes": [
                {"task": "TASK-a", "place": "a.md", "origin": "a.md", "base": "d1", "digest": "d4"}
                | {"values": {"status": "completed"}, "before": {"status": "x"}}
            ],
        },
    ]
    rows = Rows()
    for number, line in enumerate(lines, 1):
        fold(rows, read(json.dumps({"v": 1, "n": number, "at": "", "w": f"w{number}", **line}).encode()))
    found, told = known(rows, "TASK-a"), said(rows, "TASK-a")
    assert found is not None and found.tree is not None
    assert (task_of(found.tree).status, told["summary"], "claim" in told) == ("completed", "Done", False)
    assert [(one.by, one.number, one.outcome) for one in told["attempts"]] == [("me", 3, "done")]
    assert [rows.one(f"own/d{number}") for number in (1, 2, 4)] == [1, 1, 1]
    assert (found.base, found.digest) == ("d1", "d4")
