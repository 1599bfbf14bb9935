"""Task files: read as they stand, rewritten with the smallest change, and merged by git."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from clocks import within
from contexts import line, mapping, quick, text
from examples import examples
from ralf.errors import DamagedTask
from ralf.tasks.model import STATUSES, Task
from ralf.tasks.taskfile import MAX_BYTES, as_filed, parse, render

HERE = Path("project/.autonomous/tasks/active/TASK-7k3q.md")

TASK = Task(
    id="TASK-7k3q",
    title="Fix the login form",
    text="It loses the session.\n\n- a\n- b",
    priority=8,
    tags=("web", "urgent"),
    role="dev",
    after=("TASK-2b4d", "TASK-9x8z"),
    checkpoint=True,
    verify="pytest -q tests/test_login.py",
    route="login",
    created="2026-11-26T09:00:00Z",
    created_by="ann@host",
    extra={"estimate": "2 hours"},
)

FILE = """\
---
id: "TASK-7k3q"
status: "pending"

priority: 8
tags:
  - "web"
  - "urgent"
role: "dev"

after:
  - "TASK-2b4d"
  - "TASK-9x8z"
checkpoint: true
verify: "pytest -q tests/test_login.py"
route: "login"

created: "2026-11-26T09:00:00Z"
created_by: "ann@host"

estimate: "2 hours"
---

# Fix the login form

It loses the session.

- a
- b
"""

NAME = st.from_regex(r"TASK-[0-9a-z]{1,8}", fullmatch=True)

tasks = st.builds(
    Task,
    id=NAME,
    title=line.map(lambda said: said[:300].strip()),
    text=text,
    status=st.sampled_from(STATUSES),
    priority=st.integers(1, 10),
    tags=st.lists(line, max_size=3).map(tuple),
    role=line,
    after=st.lists(NAME, max_size=3).map(tuple),
    checkpoint=st.booleans(),
    verify=text,
    route=st.sampled_from(["", "login", "TASK-1"]),
    created=line,
    created_by=line,
    extra=mapping,
).map(as_filed)


def damage(content: str | bytes, where: Path = HERE) -> DamagedTask:
    content = content.encode() if isinstance(content, str) else content
    with pytest.raises(DamagedTask) as caught:
        parse(content, where)
    assert str(caught.value).startswith(str(where))
    assert caught.value.hint
    assert caught.value.exit_status == 4
    with pytest.raises(DamagedTask):
        render(TASK, content)
    return caught.value


# ---- our form ----


@pytest.mark.ci
@given(tasks, tasks)
@settings(quick, max_examples=examples(200))
def test_a_file_that_is_changed_says_what_a_new_one_says(before: Task, after: Task) -> None:
    made = render(after, render(before))
    assert parse(made, HERE) == after
    assert render(after, made) == made


PAGE = (Path(__file__).parents[1] / "docs/tasks.md").read_text(encoding="utf-8")


def test_the_guide_shows_a_file_as_it_is_written_and_names_every_key() -> None:
    example = re.findall(r"```markdown\n(---\n.*?)```", PAGE, re.DOTALL)[0].encode()
    assert render(parse(example, HERE)) == example
    named = set(re.findall(r"(?m)^\| (`.*?) \|", PAGE)) | {"`text`", "`extra`"}
    keys = {key for row in named for key in re.findall(r"`(\w+)`", row)}
    assert keys >= {field.name for field in fields(Task)}


HANDMADE = """\
---
# Ours to edit.
title:   'Fix it'   # short
id: TASK-7k3q

status: pending # since Monday
owner: {name: ann, team: [a, b]}   # unknown
priority: high
# What comes first:
after: [TASK-1,   # the schema
        TASK-2]
notes: |
  # no comment

  kept as it is
tags: web
---
# Fix it

Some   text  \x20
\twith its own spaces

"""


def handmade(*, crlf: bool = False, bom: bool = False) -> bytes:
    text = HANDMADE.replace("\n", "\r\n") if crlf else HANDMADE
    return (b"\xef\xbb\xbf" if bom else b"") + text.encode()


def test_a_file_that_a_person_wrote_is_read_as_it_is() -> None:
    task = parse(handmade(), HERE)
    assert task == Task(
        id="TASK-7k3q",
        title="Fix it",
        text="Some   text   \n\twith its own spaces",
        priority=8,
        after=("TASK-1", "TASK-2"),
        tags=("web",),
        extra={"owner": {"name": "ann", "team": ["a", "b"]}, "notes": "# no comment\n\nkept as it is\n"},
    )


@pytest.mark.parametrize("crlf", [False, True])
@pytest.mark.parametrize("bom", [False, True])
def test_a_change_leaves_every_other_byte(crlf: bool, bom: bool) -> None:
    before = handmade(crlf=crlf, bom=bom)
    task = parse(before, HERE)
    assert render(task, before) == before
    assert render(replace(task, status="completed"), before) == before.replace(b"pending #", b"completed #")
    assert render(replace(task, priority=3), before) == before.replace(b"priority: high", b"priority: low")
    assert render(replace(task, priority=7), before) == before.replace(b"priority: high", b"priority: 7")
    titled = render(replace(task, title="It's done"), before)
    assert titled == before.replace(b"'Fix it'", b'"It\'s done"').replace(b"# Fix it", b"# It's done")


@pytest.mark.ci
@given(st.lists(st.integers(1, 20), min_size=1, max_size=4, unique=True), tasks)
@settings(quick, max_examples=examples(200))
def test_no_change_loses_a_comment_or_a_key_that_is_unknown(numbers: list[int], other: Task) -> None:
    rows = FILE.split("\n")
    for number in sorted(numbers, reverse=True):
        rows.insert(number, f"# said {number}")
        rows[number - 1] += f"  # behind {number}" if rows[number - 1][-1:] == '"' else ""
    before = "\n".join(rows).encode()
    assert parse(before, HERE) == TASK
    task = replace(other, id=TASK.id, extra=TASK.extra)
    after = render(task, before).decode()
    assert parse(after.encode(), HERE) == task
    for number in numbers:
        assert f"# said {number}\n" in after or f"# said {number} " in after
        assert (f"# behind {number}" in after) == (f"# behind {number}" in before.decode())
    assert 'estimate: "2 hours"' in after


@pytest.mark.parametrize(
    "front", ["{id: TASK-7k3q, status: pending}  # braces", "  id: TASK-7k3q\n  status: pending", "? id\n: TASK-7k3q"]
)
def test_front_matter_in_a_form_that_cannot_be_changed_line_by_line_is_written_anew(front: str) -> None:
    before = f"---\n{front}\n---\n# A\n\n   body as it is\n".encode()
    task = replace(parse(before, HERE), status="cancelled", role="dev")
    after = render(task, before)
    assert parse(after, HERE) == task
    assert after.endswith(b"# A\n\n   body as it is\n")
    assert (b"# braces" in after) == (b"# braces" in before)


# ---- what is refused, and what is read safely ----


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ("---\nid: TASK-1\n<<<<<<< HEAD\nstatus: completed\n=======\nstatus: failed\n>>>>>>> b\n---\n", 3, "conflict"),
        ("---\nid: TASK-1\n---\n# A\n\n>>>>>>> theirs\n", 6, "conflict"),
        ("---\nid: TASK-1\n# A\n", 1, "no closing ---"),
        ("---\nid: TASK-1\nstatus: sometime\n---\n", 3, "status: expected one of pending, completed"),
        ("---\nid: TASK-1\npriority: 11\n---\n", 3, "priority: expected a number from 1 to 10"),
        ("---\nid: TASK-1\ncheckpoint: perhaps\n---\n", 3, "checkpoint: expected true or false"),
        ("---\nid: TASK-1\ntags: {a: 1}\n---\n", 3, "tags: expected a list"),
        ("---\nid: TASK-1\nid: TASK-2\n---\n", 3, "twice"),
        ("---\nid: &a TASK-1\nrole: *a\n---\n", 2, "anchors"),
        ("---\nid: TASK-1\nx: !!python/object:os.system {}\n---\n", 3, "tags are not allowed"),
        ('---\nid: TASK-1\nverify: "a\\u001b[31m"\n---\n', 3, "control character"),
        ("---\nx: " + "[" * 50 + "]" * 50 + "\n---\n", 2, "nested deeper"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported_with_its_line_and_left(content: str, line: int, what: str) -> None:
    error = damage(content)
    assert what in error.what
    assert error.line == line or not line


HOSTILE: list[Callable[[int], str]] = [
    lambda n: "# A\n" + "\n" * n,
    lambda n: "# " + "TASK-" * n,
    lambda n: "# A\n" + "**a:** b\n" * n,
    lambda n: "# A\n**Status:** " + "in_" * n,
    lambda n: "# A\n**Depends On:** " + "TASK-1, " * n,
    lambda n: "---\nid: T-1\ntags: [" + "a, " * 4_000 + "a]\n# " + "x" * n + "\n---\n",
    lambda n: "---\nid: T-1\n" + "# c\n" * n + "---\n# A\n",
    lambda n: "\r" * n,
]


@pytest.mark.ci
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_the_time_for_a_hostile_file_grows_in_line_with_it(number: int) -> None:
    content = HOSTILE[number](200_000 if number > 1 else 240_000).encode()[: MAX_BYTES - 500]

    def read_and_written() -> None:
        with suppress(DamagedTask):
            render(replace(parse(content, HERE), status="failed", role="x", text="new"), content)

    within(5, read_and_written)


# ---- RALF's own forms ----

ARCH = b"""\
# TASK-ARCH-028: Routes Contain Placeholders

**Status:** completed
**Priority:** MEDIUM
**Category:** architecture
**Created:** 2026-02-05T01:57:10.950014
**Depends On:** TASK-ARCH-003 (the schema), TASK-ARCH-004

---

## Objective

Fill them.

**Status:** not this one
"""

BOTH = b"""\
---
task_id: TASK-GOALS-001
title: "Complete the goals"
linked_goal: IG-006
status: pending
priority: high
created: "2026-02-02"
---

# TASK-GOALS-001: Complete the goals

**Type:** implement
**Priority:** high
**Status:** pending

---

## Objective
"""

RALF_TASKS = Path("project/tasks")
ARCH_FILE = RALF_TASKS / "completed/TASK-ARCH-028/task.md"
BOTH_FILE = RALF_TASKS / "active/TASK-GOALS-001/task.md"


def test_a_file_of_the_loop_is_read_as_it_is() -> None:
    assert parse(ARCH, ARCH_FILE) == Task(
        id="TASK-ARCH-028",
        title="Routes Contain Placeholders",
        text="## Objective\n\nFill them.\n\n**Status:** not this one",
        status="completed",
        after=("TASK-ARCH-003", "TASK-ARCH-004"),
        created="2026-02-05T01:57:10.950014",
        extra={"Category": "architecture"},
    )
    assert parse(BOTH, BOTH_FILE) == Task(
        id="TASK-GOALS-001",
        title="Complete the goals",
        text="## Objective",
        priority=8,
        created="2026-02-02",
        extra={"Type": "implement", "linked_goal": "IG-006"},
    )


@pytest.mark.parametrize(
    ("said", "status", "completed"),
    [
        ("completed", "completed", "completed"),
        ("✅ COMPLETED (2026-02-04)", "completed", "✅ COMPLETED (2026-02-04)"),
        ("in_progress (All P0 complete!)", "pending", "completed (All P0 complete!)"),
        ("🔄 IN PROGRESS", "pending", "🔄 COMPLETED"),
        ("partial", "pending", "completed"),
        ("blocked", "failed", "completed"),
        ("abandoned", "cancelled", "completed"),
        ("something else", "pending", "completed"),
    ],
)
def test_each_word_for_a_status_is_known_and_rewritten_alone(said: str, status: str, completed: str) -> None:
    before = f"# TASK-1: A\n\n**Status:** {said}\n".encode()
    where = RALF_TASKS / "active/TASK-1.md"
    task = parse(before, where)
    assert task.status == status
    after = render(replace(task, status="completed"), before).decode()
    assert after == f"# TASK-1: A\n\n**Status:** {completed}\n"


# ---- merging ----

CHANGES: dict[str, Any] = {
    "title": "Another title",
    "status": "completed",
    "priority": 2,
    "role": "ops",
    "checkpoint": False,
    "extra": {"estimate": "3 hours"},
}


def by_git(folder: Path, base: bytes, ours: bytes, theirs: bytes) -> tuple[int, bytes]:
    for name, content in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(content)
    command = ["git", "merge-file", "-p", "ours", "base", "theirs"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("other", sorted(set(CHANGES) - {"status"}))
def test_git_merges_a_task_that_is_done_in_one_clone_and_edited_in_another(tmp_path: Path, other: str) -> None:
    bare = Task(id="TASK-7k3q", title="A", text="text", created="2026-11-26T09:00:00Z")
    for task in (TASK, bare):
        before = render(task)
        theirs = replace(task, **{other: CHANGES[other]})
        done = render(replace(task, status="completed"), before)
        conflicts, made = by_git(tmp_path, before, done, render(theirs, before))
        assert conflicts == 0
        assert parse(made, HERE) == replace(theirs, status="completed")
