"""Reading: what a route's file holds, at a cost that does not grow, and the list of routes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ralf
import storekit
from ralf.route.history import context_at
from storekit import context_of, kept_bytes, route_file, write_session


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 9_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root, segment_tokens=3_000)
    ralf.record_decision("tide", "Keep the old columns", rationale="readers depend on them", root=root)
    return root


@pytest.mark.ci
def test_reading_writes_nothing_but_the_cache(made: Path, tmp_path: Path) -> None:
    storekit.copied(made, tmp_path / "p")
    for cache in (True, False):
        if not cache:
            shutil.rmtree(context_of(tmp_path / "p") / "cache")
        before = kept_bytes(tmp_path / "p")
        ralf.get_context("tide", root=tmp_path / "p").render(2_000)
        ralf.list_routes(root=tmp_path / "p")
        context_at("tide", "1", root=tmp_path / "p")
        assert kept_bytes(tmp_path / "p") == before


# ---- the list ----


def test_a_line_of_the_list_says_what_the_context_says(made: Path, tmp_path: Path) -> None:
    """From the head of the file, from the journal alone, and from a file that a person edited."""
    context = ralf.get_context("tide", root=made)
    work = context.active_work
    wanted = (context.route, context.revision, context.last_checkpoint, context.checkpoint_count, work.current_task,
              work.work_status, context.total_tokens_consumed, "")  # fmt: skip

    def listed(root: Path) -> tuple[object, ...]:
        (one,) = ralf.list_routes(root=root)
        return (one.route, one.revision, one.last_checkpoint, one.checkpoint_count, one.current_task, one.work_status,
                one.total_tokens_consumed, one.damage)  # fmt: skip

    assert listed(made) == wanted
    storekit.copied(made, tmp_path / "p")
    route_file(tmp_path / "p", "tide").unlink()
    assert listed(tmp_path / "p") == wanted
    route_file(tmp_path / "p", "tide").write_bytes(route_file(made, "tide").read_bytes().replace(b"\n", b"\r\n"))
    assert listed(tmp_path / "p") == wanted
