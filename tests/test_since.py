"""At a read it is told which open files are not what they were at the checkpoint, and how much work none covers."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

import ralf
from ralf import project
from ralf.finding import since
from ralf.model import Since
from storekit import cache_of, grow, write_session


def edited(root: Path, *names: str) -> Path:
    """A session in which these files were edited."""
    lines = []
    for n, name in enumerate(names):
        call = {"type": "tool_use", "id": f"c{n}", "name": "Edit", "input": {"file_path": f"{root}/{name}"}}
        for who, content in (
            ("user", [{"type": "text", "text": f"Please change {name} in the orchard"}]),
            ("assistant", [call]),
            ("user", [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "ok"}]),
        ):
            time = f"2026-03-01T10:{len(lines):02d}:00.000Z"
            record = {"type": who, "uuid": str(len(lines)), "sessionId": "s-1", "cwd": str(root), "timestamp": time}
            lines.append(record | {"message": {"role": who, "content": content}})
    path = root / "s-1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two files that a session has edited, checkpointed."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "client"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    for name in ("src/valve.py", "src/pump.py"):
        (root / name).write_text(f"# {name}\n")
    ralf.checkpoint("tide", edited(root, "src/valve.py", "src/pump.py", "src/never.py"), root=root)
    return root


def tags(root: Path) -> dict[str, str]:
    return dict(ralf.get_context("tide", root=root).since.files)


def test_an_untouched_tree_has_no_tags_also_where_a_file_was_never_there(root: Path) -> None:
    assert tags(root) == {}


def test_a_file_of_another_time_but_the_same_content_has_not_changed(root: Path) -> None:
    os.utime(root / "src/valve.py", (4_000_000_000, 4_000_000_000))
    assert tags(root) == {}


def test_a_changed_and_a_missing_file_are_told_beside_their_paths(root: Path) -> None:
    (root / "src/valve.py").write_text("# other\n")
    (root / "src/pump.py").unlink()
    context = ralf.get_context("tide", root=root)
    assert context.since.files == {"src/valve.py": since.CHANGED, "src/pump.py": since.GONE}
    for text in (context.render(), context.render(600)):
        assert f"src/valve.py ({since.CHANGED}" in text and f"src/pump.py ({since.GONE}" in text


def test_the_next_checkpoint_starts_anew(root: Path) -> None:
    (root / "src/valve.py").write_text("# other\n")
    path = edited(root, "src/valve.py", "src/pump.py", "src/never.py", "src/valve.py")
    ralf.checkpoint("tide", path, root=root)
    assert tags(root) == {}


def test_a_path_that_leads_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (tmp_path / "outside.md").write_text("outside")
    (root / "link.md").symlink_to(tmp_path / "outside.md")
    os.mkfifo(root / "pipe.md")
    names = ("link.md", "pipe.md", "src/../../outside.md")
    ralf.checkpoint("tide", edited(root, *names), root=root)
    marks = json.loads((cache_of(root) / "open/tide.json").read_text())
    assert set(marks.values()) == {None}


def test_the_file_of_the_route_knows_nothing_of_the_tree(root: Path) -> None:
    before = ralf.get_context("tide", root=root)
    (root / "src/valve.py").write_text("# other\n")
    after = ralf.get_context("tide", root=root)
    assert before == after
    assert before.since != after.since


@pytest.mark.ci
def test_the_work_after_the_last_checkpoint_is_counted(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "client" / "projects" / "".join(c if c.isascii() and c.isalnum() else "-" for c in str(root))
    folder.mkdir(parents=True)
    path = folder / "s-7.jsonl"
    turn = write_session(path, 3_000, "s-7")
    ralf.checkpoint("tide", path, root=root)
    assert ralf.get_context("tide", root=root).since == Since()
    grow(path, 2_000, turn, "s-7")
    write_session(folder / "s-8.jsonl", 500, "s-8")  # the session that reads this: not known to the route
    context = ralf.get_context("tide", root=root)
    assert context.since.tokens == pytest.approx(2_000, rel=0.3)
    assert context.since.minutes is not None
    for text in (context.render(), context.render(500)):
        assert f"{context.since.tokens:,} " in text
    late = replace(context, since=Since(tokens=12_000, minutes=34))
    assert "12,000 " in late.render(500) and "34 " in late.render(500)


def test_looking_never_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/dev/null")
    root = tmp_path
    ralf.checkpoint("tide", edited(root, "a.py"), root=root)
    context = ralf.get_context("tide", root=root)
    assert since.look(project.find(root), context) == Since()
