"""The write path, step by step: what a dead writer or an editor leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ralf
from storekit import hidden, records_of, route_file

pytestmark = pytest.mark.ci

ROUTE = "tide"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    ralf.record_decision(ROUTE, "Keep the old columns", root=tmp_path)
    return tmp_path


@pytest.fixture
def path(root: Path) -> Path:
    return route_file(root, ROUTE)


def noted(path: Path, note: str = "by_hand") -> str:
    """The route file's text, with a note that a person made."""
    return path.read_text(encoding="utf-8").replace("\ndecisions:", f"\n{note}: true\ndecisions:", 1)


def set_aside(path: Path, content: bytes) -> Path:
    """What a writer leaves that dies between the exchange and the merge."""
    aside = path.parents[1] / "prev" / "routes" / path.name
    aside.parent.mkdir(parents=True, exist_ok=True)
    aside.write_bytes(content)
    os.utime(aside, (1e9, 1e9)) if content else None  # nobody is saving it any more
    return aside


def test_a_save_into_a_file_found_before_and_opened_after_its_displacement_is_merged(root: Path, path: Path) -> None:
    """The kernel finds a file and opens it in two steps, between which a program may have to wait for its turn."""
    text, found = noted(path), os.open(path, os.O_PATH)
    ralf.record_decision(ROUTE, "Go on", root=root)
    with open(f"/proc/self/fd/{found}", "w", encoding="utf-8") as file:
        file.write(text)
    os.close(found)
    ralf.record_decision(ROUTE, "Go on again", root=root)
    assert ralf.get_context(ROUTE, root=root).extra == {"by_hand": True}
    assert "\nby_hand: true" in path.read_text(encoding="utf-8")


# ---- what a dead writer leaves ----


def test_a_save_that_a_dead_writer_had_displaced_is_taken_in(root: Path, path: Path) -> None:
    set_aside(path, noted(path).encode())
    ralf.record_decision(ROUTE, "Go on", root=root)
    assert ralf.get_context(ROUTE, root=root).extra == {"by_hand": True}
    assert "\nby_hand: true" in path.read_text(encoding="utf-8")
    assert hidden(path) == []


def test_a_displaced_save_that_cannot_be_read_is_put_where_it_is_seen_and_said(root: Path, path: Path) -> None:
    set_aside(path, b"rubbish")
    said: list[str] = []
    ralf.record_decision(ROUTE, "Go on", root=root, warn=said.append)
    (kept,) = path.parent.glob("tide.displaced-*")
    assert kept.read_bytes() == b"rubbish"
    assert said[0].startswith(f"{kept}: ")


def test_a_displaced_file_that_somebody_still_saves_into_is_left_until_they_are_done(root: Path, path: Path) -> None:
    content = noted(path).encode()
    for begin in (0, len(content) // 2):
        aside = set_aside(path, content[:begin])
        os.utime(aside)
        ralf.record_decision(ROUTE, f"Go on after {begin}", root=root)
        assert aside.read_bytes() == content[:begin]
    aside.write_bytes(content)
    ralf.record_decision(ROUTE, "Go on again", root=root)
    assert ralf.get_context(ROUTE, root=root).extra == {"by_hand": True}


# ---- an editor in the middle of a save ----


def test_half_a_save_deletes_nothing_and_the_whole_of_it_is_taken_in(
    root: Path, path: Path, request: pytest.FixtureRequest
) -> None:
    text = noted(path)
    with path.open("w", encoding="utf-8") as file:
        file.write(text[: text.index("\n## ")])  # a whole front matter: half a save that could be taken for an edit
        file.flush()
        ralf.record_decision(ROUTE, "Go on", root=root)
        file.write(text[text.index("\n## ") :])
    ralf.record_decision(ROUTE, "Go on again", root=root)
    context = ralf.get_context(ROUTE, root=root)
    assert [item.decision for item in context.decisions] == ["Keep the old columns", "Go on", "Go on again"]
    assert context.extra == {"by_hand": True}
    assert [record["kind"] for record in records_of(root, ROUTE)].count("edit") == 1
