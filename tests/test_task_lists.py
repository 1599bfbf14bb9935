"""Task lists of other tools: invented ones in their formats, and files that are none, damaged or hostile."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from examples import examples
from ralf.errors import Damaged, RalfError
from ralf_migrations.task_lists import NoTaskList, read_lists

AQUA_SQL = """
CREATE TABLE agents (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, agent_type TEXT, role TEXT);
INSERT INTO agents VALUES ('a9e1c0de', 'worker-1', 'claude', 'backend');
CREATE TABLE tasks (id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT, status TEXT DEFAULT 'pending',
    priority INTEGER DEFAULT 5, created_by TEXT, claimed_by TEXT, created_at TEXT NOT NULL, result TEXT, error TEXT,
    tags TEXT, context TEXT, version INTEGER DEFAULT 1, depends_on TEXT);
INSERT INTO tasks (id, title, description, status, priority, claimed_by, created_at, result, tags, context)
VALUES ('11aa22bb', 'Lay the keel', 'Of oak.', 'done', 8, 'a9e1c0de', '2026-03-01T08:00:00.5', 'keel stands',
        '["hull"]', 'halfway');
INSERT INTO tasks (id, title, created_at, tags, depends_on)
VALUES ('c1c1c1c1', '[Checkpoint] Clear and continue', '2026-03-01T08:01:00', '["__checkpoint__"]', '["33cc44dd"]');
INSERT INTO tasks (id, title, status, claimed_by, created_at, tags, context, depends_on)
VALUES ('33cc44dd', 'Plank it', 'claimed', 'a9e1c0de', '2026-03-01T08:02:00', '[]', 'two strakes', '["11aa22bb"]');
INSERT INTO tasks (id, title, created_at, context, depends_on)
VALUES ('55ee66ff', 'Rig it', '2026-03-01T08:03:00', 'use hemp', '["c1c1c1c1", "00000000"]');
INSERT INTO tasks (id, title, status, created_at, error)
VALUES ('77aa88bb', 'Paint it', 'failed', '2026-03-01T08:04:00', 'no paint');
INSERT INTO tasks (id, title, status, created_at) VALUES ('99cc00dd', 'Gild it', 'abandoned', '2026-03-01T08:05:00');
"""


def read(path: Path) -> list[SimpleNamespace]:
    """The tasks of a list: their fields, and what is said of them."""
    found = [one for made in read_lists(path)[0] for one in made.found.values()]
    return [
        SimpleNamespace(
            **{name: getattr(part, name) for part in (one, one.task) for name in part.__slots__}, key=one.key
        )
        for one in found
    ]


def told(path: Path, *names: str) -> list[tuple[Any, ...]]:
    """These fields of the tasks of a list."""
    return [tuple(getattr(one, name) for name in names) for one in read(path)]


def aqua_database(folder: Path) -> Path:
    path = folder / ".aqua" / "aqua.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(AQUA_SQL)
    return path


def lines(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def tree(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))
    return path


def test_a_database_of_aqua_gives_its_tasks_with_results_and_what_stands_in_for_checkpoints(tmp_path: Path) -> None:
    path = aqua_database(tmp_path)
    assert told(path, "key", "title", "text", "status", "priority", "checkpoint") == [
        ("aqua:11aa22bb", "Lay the keel", "Of oak.", "completed", 8, False),
        ("aqua:33cc44dd", "Plank it", "", "pending", 5, True),
        ("aqua:55ee66ff", "Rig it", "## Context\n\nuse hemp", "pending", 5, False),
        ("aqua:77aa88bb", "Paint it", "", "failed", 5, False),
        ("aqua:99cc00dd", "Gild it", "", "cancelled", 5, False),
    ]
    keel, plank, rig, paint, _ = read(path)
    assert (keel.tags, keel.summary, keel.created) == (("hull",), "keel stands", "2026-03-01T08:00:00Z")
    assert (keel.progress, plank.progress, paint.reason) == (
        "halfway",
        "begun there by worker-1: two strakes",
        "no paint",
    )
    assert rig.after == ("33cc44dd", "00000000")  # through the checkpoint, and the one that does not exist
    assert len(read_lists(tmp_path)[0][0].notes) == 1


def test_a_folder_of_aqua_is_left_as_it_was(tmp_path: Path) -> None:
    path = aqua_database(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
    before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
    assert len(read(path)) == 5
    assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before


def issue(id_: str, *edges: tuple[str, str], **fields: Any) -> dict[str, Any]:
    head = {"id": id_, "title": f"Do {id_}", "status": "open", "priority": 2, "issue_type": "task"}
    on = [{"issue_id": id_, "depends_on_id": other, "type": kind} for kind, other in edges]
    return {**head, "created_at": "2026-01-02T03:04:05.123456789-08:00", "dependencies": on, **fields}


def test_issues_of_beads_give_tasks_with_all_that_they_say(tmp_path: Path) -> None:
    path = lines(
        tmp_path / ".beads" / "issues.jsonl",
        issue("bd-a1", issue_type="epic", priority=1),
        issue(
            *("bd-a1.1", ("parent-child", "bd-a1"), ("blocks", "bd-b2"), ("related", "bd-z")),
            description="Text.",
            design="Plan.",
            acceptance_criteria="- works",
            notes="Mind it.",
            comments=[{"author": "kim", "text": "go\non"}],
            labels=["ui", "slow"],
            issue_type="bug",
            priority=0,
            created_by="kim",
        ),
        issue("bd-b2", status="closed", close_reason="It works."),
        issue("bd-c3", status="in_progress", assignee="lee", priority=4),
        issue("bd-m4", issue_type="message"),
        issue("bd-t5", status="tombstone"),
    )
    assert told(path, "id", "status", "priority", "tags", "after", "parent", "summary", "progress") == [
        ("bd-a1", "pending", 8, ("epic",), (), "", "", ""),
        ("bd-a1.1", "pending", 10, ("ui", "slow", "bug"), ("bd-b2",), "bd-a1", "", ""),
        ("bd-b2", "completed", 5, (), (), "", "It works.", ""),
        ("bd-c3", "pending", 1, (), (), "", "", "begun there by lee"),
        ("bd-t5", "cancelled", 5, (), (), "", "", ""),
    ]
    assert [one.is_deleted for one in read(path)] == [False] * 4 + [True]
    one = read(path)[1]
    assert one.text == (
        "Text.\n\n## Design\n\nPlan.\n\n## Acceptance criteria\n\n- works\n\n## Notes\n\nMind it.\n\n"
        "## Comments\n\n- kim: go on"
    )
    assert (one.created, one.created_by) == ("2026-01-02T11:04:05Z", "kim")


def test_what_beads_has_put_off_is_failed_and_what_waits_for_another_issue_is_pending(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "x.jsonl",
        issue("bd-1", status="deferred", defer_until="2027-01-01T00:00:00Z"),
        issue("bd-2", status="blocked"),
        issue("bd-3", ("blocks", "bd-2"), status="blocked"),
        issue("bd-4", ("blocks", "bd-5"), status="blocked"),
        issue("bd-5", status="closed"),
        issue("bd-6", issue_type="gate", await_type="gh:run", await_id="7"),
    )
    assert told(path, "status", "reason") == [
        ("failed", "deferred in beads until 2027-01-01T00:00:00Z"),
        ("failed", "blocked in beads"),
        ("pending", ""),
        ("failed", "blocked in beads"),
        ("completed", ""),
        ("failed", "a gate of beads: it waits for something outside the list"),
    ]


def test_a_list_of_claude_code_gives_its_tasks_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    def task(id_: int, subject: str, **fields: Any) -> None:
        head = {"id": str(id_), "subject": subject, "description": "", "status": "pending", "blocks": []}
        tree(folder / f"{id_}.json", {**head, "blockedBy": [], **fields})

    folder = tmp_path / "tasks" / "keel-list"
    task(10, "Paint", blockedBy=["2"])
    task(2, "Plank", status="in_progress", owner="kim", description="With oak.")
    task(1, "Keel", status="completed", blocks=["10"])
    task(3, "Hidden", metadata={"_internal": True})
    (folder / "settings.json").write_text("// of somebody else")
    assert told(folder, "id", "title", "text", "status", "after", "progress") == [
        ("keel-list/1", "Keel", "", "completed", (), ""),
        ("keel-list/2", "Plank", "With oak.", "pending", (), "begun there by kim"),
        ("keel-list/10", "Paint", "", "pending", ("keel-list/2", "keel-list/1"), ""),
    ]


def test_tasks_of_task_master_come_with_their_subtasks_of_all_tags(tmp_path: Path) -> None:
    ribs = {"id": 1, "title": "Ribs", "status": "pending", "dependencies": []}
    planks = {"id": 2, "title": "Planks", "status": "pending", "dependencies": [1, "2.1", 3]}
    hull = {"id": 2, "title": "Hull", "status": "in-progress", "priority": "low", "dependencies": [1]}
    hull |= {"description": "All of it.", "details": "Oak.", "testStrategy": "Float it.", "subtasks": [ribs, planks]}
    keel = {"id": 1, "title": "Keel", "status": "done", "priority": "high", "dependencies": []}
    sails = {"id": "3", "title": "Sails", "status": "deferred"}
    paint = {"id": 1, "title": "Paint", "status": "cancelled", "dependencies": ["2"]}
    lists = {"master": {"tasks": [keel, hull, sails], "metadata": {}}, "paint": {"tasks": [paint]}}
    path = tree(tmp_path / ".taskmaster" / "tasks" / "tasks.json", lists)
    assert told(path, "id", "status", "priority", "after", "parent", "tags") == [
        ("master/1", "completed", 8, (), "", ()),
        ("master/2", "pending", 3, ("master/1",), "", ()),
        ("master/2.1", "pending", 3, (), "master/2", ()),
        ("master/2.2", "pending", 3, ("master/2.1", "master/3"), "master/2", ()),
        ("master/3", "failed", 5, (), "", ()),
        ("paint/1", "cancelled", 5, ("paint/2",), "", ("paint",)),
    ]
    assert read(path)[1].text == "All of it.\n\n## Details\n\nOak.\n\n## How it is tested\n\nFloat it."
    assert (read(path)[1].progress, read(path)[4].reason) == ("begun there", "deferred in Task Master")
    for folder in (tmp_path, tmp_path / ".taskmaster", path.parent):
        assert len(read(folder)) == 6


def test_stories_of_a_prd_are_done_in_the_order_of_their_priorities(tmp_path: Path) -> None:
    def story(id_: str, priority: int, **fields: Any) -> dict[str, Any]:
        return {"id": id_, "title": f"Do {id_}", "priority": priority, "passes": False, "notes": "", **fields}

    stories = [
        story("US-003", 12),
        story("US-001", 1, passes=True, notes="Oak it was.", acceptanceCriteria=["floats", "is dry"]),
        story("US-002", 2, notes="Take care.", description="As a sailor …"),
        story("US-004", 12),
    ]
    head = {
        "project": "Boat",
        "branchName": "ralph/hull",
        "verificationCommands": {"test": "make test", "lint": "ruff"},
    }
    path = tree(tmp_path / "prd.json", {**head, "userStories": stories})
    assert told(path, "id", "status", "priority", "after", "summary", "text") == [
        ("ralph/hull/US-003", "pending", 1, ("ralph/hull/US-002",), "", ""),
        ("ralph/hull/US-001", "completed", 10, (), "Oak it was.", "## Acceptance criteria\n\n- floats\n- is dry"),
        (
            *("ralph/hull/US-002", "pending", 9, ("ralph/hull/US-001",), ""),
            "As a sailor …\n\n## Notes\n\nTake care.",
        ),
        ("ralph/hull/US-004", "pending", 1, ("ralph/hull/US-002",), "", ""),
    ]
    assert read(path)[0].verify == "make test && ruff"


def test_tasks_of_ralph_orchestrator_are_read(tmp_path: Path) -> None:
    def task(id_: str, title: str, status: str, priority: int, **fields: Any) -> dict[str, Any]:
        head = {"id": id_, "title": title, "status": status, "priority": priority}
        return {**head, "blocked_by": [], "created": "2026-02-05T04:48:53.025431327+00:00", **fields}

    lines(
        tmp_path / ".ralph" / "agent" / "tasks.jsonl",
        task("task-1-a", "Keel", "closed", 1),
        task("task-2-b", "Hull", "in_progress", 5, description="Oak.", blocked_by=["task-1-a"]),
        task("task-3-c", "Mast", "failed", 3),
    )
    assert told(tmp_path, "key", "status", "priority", "text", "after", "progress", "reason") == [
        ("ralph:task-1-a", "completed", 10, "", (), "", ""),
        ("ralph:task-2-b", "pending", 1, "Oak.", ("task-1-a",), "begun there", ""),
        ("ralph:task-3-c", "failed", 5, "", (), "", "failed in ralph-orchestrator"),
    ]
    assert read(tmp_path)[0].created == "2026-02-05T04:48:53Z"


def test_a_project_with_lists_of_several_tools_gives_all_of_them(tmp_path: Path) -> None:
    aqua_database(tmp_path)
    lines(tmp_path / ".beads" / "issues.jsonl", issue("bd-1"))
    tree(tmp_path / "prd.json", {"version": "2.0.0", "tasks": [{"label": "build", "type": "shell"}]})
    found, (other,) = read_lists(tmp_path)
    assert [one.origin for one in found] == ["aqua", "beads"]
    assert "prd.json: not a task list" in other
    assert told(tmp_path / ".beads", "id") == [("bd-1",)]


_BEFORE, _BEHIND = (f"{json.dumps(issue(name))}\n".encode() for name in ("bd-1", "bd-2"))


@pytest.mark.parametrize(
    ("content", "error", "what"),
    [
        (b"", NoTaskList, "is empty"),
        (b"# Tasks\n- [ ] one\n", NoTaskList, "not a task list that ralf knows"),
        (b'{"a": 1}', NoTaskList, "not a task list that ralf knows"),
        (b"[1, 2]", NoTaskList, "not a task list that ralf knows"),
        (b'{"userStories": [', Damaged, "line 1: not valid JSON"),
        (b'{\n "userStories": [\n<<<<<<< HEAD\n', Damaged, "line 3: not valid JSON"),
        (b"<<<<<<< HEAD\n" + _BEFORE, Damaged, "line 1: not valid JSON"),
        (b"[" * 100_000, Damaged, "nested too deeply"),
        (b'{"tasks": ' + b"9" * 5_000 + b"}", Damaged, "Exceeds the limit"),
        (b'{"id":"bd-1","title":"\xff","issue_type":"task"}', Damaged, "line 1: not UTF-8"),
        (b"SQLite format 3\0" + b"x" * 100, Damaged, "cannot be read as a database"),
        (_BEFORE + b"{\n" + _BEHIND, Damaged, "line 2: not valid JSON"),
        (_BEFORE + b">>>>>>> theirs\n" + _BEHIND, Damaged, "line 2: not valid JSON"),
        (_BEFORE + b"[]\n" + _BEHIND, Damaged, "line 2: not a JSON object"),
        (_BEFORE + b'{"title": "x"}\n' + _BEHIND, Damaged, "line 2: no `id`"),
    ],
)
def test_a_file_that_is_no_list_or_is_damaged_anywhere_is_refused_and_says_so(
    tmp_path: Path, content: bytes, error: type[RalfError], what: str
) -> None:
    path = tmp_path / "list"
    path.write_bytes(content)
    with pytest.raises(error, match=what) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.hint
    assert path.read_bytes() == content


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)

_KEYS = (
    "id title status priority issue_type dependencies depends_on_id type created_at labels comments subject blocks "
    "blockedBy metadata subtasks tasks userStories passes blocked_by created close_reason acceptanceCriteria notes"
).split()


@pytest.mark.ci
@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(_KEYS), _JSON, max_size=8), max_size=4),
    st.sampled_from(["beads", "ralph", "task-master", "prd", "claude"]),
)
def test_values_of_any_type_in_any_field_give_tasks_or_a_plain_error(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], kind: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    head = {"id": "a", "title": "b", "status": "open"}
    path = folder / "x.json"
    if kind == "claude":
        for number, one in enumerate(records):
            tree(folder / f"{number}.json", {"id": number, "subject": "s", "status": "pending"} | one)
        path = folder
    elif kind == "task-master":
        tree(path, {"x": {"tasks": [{"id": 1, "title": "t", "subtasks": [{"id": 1} | one]} for one in records]}})
    elif kind == "prd":
        tree(path, {"userStories": records})
    else:
        lines(
            path,
            head | ({"issue_type": "task"} if kind == "beads" else {"created": ""}),
            *(head | one for one in records),
        )
    try:
        found = read(path)
    except RalfError as error:
        assert error.hint
        return
    for task in found:
        assert task.status in ("pending", "completed", "failed", "cancelled")
        assert 1 <= task.priority <= 10
        assert task.title
        assert all(isinstance(one, str) and one for one in (*task.after, *task.tags))
