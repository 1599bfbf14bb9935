"""Hand edits: served as they stand, taken in by the next write, and never lost, whatever else is written."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import ralf
import ralf.errors
import storekit
from ralf.maintenance import ownership
from ralf.maintenance.trust import accept_route
from ralf.project import Project
from ralf.route import filed
from ralf.route.write import open_route
from storekit import V100, context_of, grow, records_of, route_file, write_session


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 4_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root, segment_tokens=2_500)
    ralf.record_decision("tide", "Keep the old columns", rationale="readers depend on them", root=root)
    ralf.record_decision("tide", "Parse with a table", alternatives=["regex: too slow"], root=root)
    return root


def edit(root: Path, old: str, new: str) -> None:
    path = route_file(root, "tide")
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1, old
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def write(root: Path) -> None:
    """A checkpoint with something new in it."""
    size = (root / "session.jsonl").stat().st_size
    grow(root / "session.jsonl", 500, 100 + size // 1000)
    assert len(ralf.checkpoint("tide", root / "session.jsonl", root=root).checkpoints) == 1


def rebuilt(root: Path) -> ralf.RouteContext:
    """What the journal alone comes to."""
    route_file(root, "tide").unlink()
    shutil.rmtree(context_of(root) / "cache")
    return ralf.get_context("tide", root=root)


LAYOUT: dict[str, tuple[str, str]] = {
    "blank lines, a comment and a heading above our part": (
        "\n<!-- ralf:brief ", "\n\n<!-- mine -->\n\n\n# Mine\n\n<!-- ralf:brief "),
    "a nested list and a fence in a section": (
        "\n### Checkpoint 1", "\n- a\n    - b\n\n\n  - c\n\n```\n## none\n\n\nx = 1\n```\n\n### Checkpoint 1"),
    "a heading of one's own between two checkpoints": (
        "\n### Checkpoint 1", "\n## What Ann says\n\nIt leaks.\n\n### Checkpoint 1"),
    "text below the footer": ("at the next write.*\n", "at the next write.*\n\nMine:\n\n- below\n"),
}  # fmt: skip


@pytest.mark.ci
@pytest.mark.parametrize("kind", LAYOUT)
def test_comments_and_layout_survive_a_write_byte_for_byte(project: Path, kind: str) -> None:
    path = route_file(project, "tide")
    edit(project, *LAYOUT[kind])
    edited = path.read_bytes()
    with open_route(Project(project), "tide"):
        pass
    assert [record["kind"] for record in records_of(project, "tide")][-1] == "edit"
    written = path.read_bytes()
    assert _unnumbered(written) == _unnumbered(edited)
    assert _unnumbered(filed.content_of(replace(rebuilt(project), sessions=()))) == _unnumbered(written)
    write(project)
    lines = path.read_bytes().splitlines(keepends=True)
    added = [line for line in LAYOUT[kind][1].encode().splitlines() if line.strip()]
    assert all(any(line.strip() in one for one in lines) for line in added)


def _unnumbered(text: bytes | str) -> bytes:
    """A file without the lines that name its revision, and the mark with the checksum of those."""
    content = text if isinstance(text, bytes) else text.encode()
    return re.sub(rb"(?mi)^.*(?:revision|mark|ralf:brief x).*\n", b"", content)


# ---- files that came without a journal ----


def _accepted(root: Path, route: str) -> None:
    accept_route(Project(root), route)


OWN = pytest.mark.parametrize("own", [storekit.known, _accepted], ids=["known", "accepted"])
"""How such a file becomes the person's: the store knows it, so that the next write imports it, or they accept it."""


def brought(root: Path, own: Callable[[Path, str], object], text: str = V100, route: str = "api-refactoring") -> Path:
    """A route file without a journal, made the person's: else it is somebody else's."""
    ownership.init(Project(root), share=False)
    path = route_file(root, route)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    own(root, route)
    return path


@OWN
def test_a_checkpoint_on_a_brought_file_that_is_imported_goes_on_counting(
    tmp_path: Path, own: Callable[[Path, str], object]
) -> None:
    brought(tmp_path, own)
    write_session(tmp_path / "session.jsonl", 1_000)
    ralf.checkpoint("api-refactoring", tmp_path / "session.jsonl", root=tmp_path)
    assert [record["kind"] for record in records_of(tmp_path, "api-refactoring")] == ["import", "checkpoint"]
    context = ralf.get_context("api-refactoring", root=tmp_path)
    assert (context.checkpoint_count, context.checkpoints[-1].checkpoint_id) == (4, "cp-004")
    assert context.decisions[0].decision == "Use FastAPI over Flask"
    assert context.created == "2026-02-07T10:00:00Z"
    assert context.history.index("### Checkpoint 4") < context.history.index("### Checkpoint 3")
    assert "JWT authentication middleware" in route_file(tmp_path, "api-refactoring").read_text(encoding="utf-8")
    assert "Do not edit manually" not in route_file(tmp_path, "api-refactoring").read_text(encoding="utf-8")
