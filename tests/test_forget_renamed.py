"""Forgetting where routes were renamed or merged: nothing is left under a name that a route had before."""

from __future__ import annotations

from pathlib import Path

import pytest

import moveskit
import ralf
import storekit
from ralf import project as projects, routing
from ralf.maintenance.forget import forget, forget_route
from ralf.maintenance.purge import Wording, remains

WORDS = "Carry the tide table over to Klondike"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A route `tables` that was called `Tide` and then `levels`, with what may lie under each name, and another."""
    ralf.record_decision("tables", "Use SQLite", root=tmp_path)
    ralf.record_decision("other", "Never push to main", root=tmp_path)
    moveskit.told(tmp_path, "Tide", "levels")
    moveskit.told(tmp_path, "levels", "tables")
    return tmp_path


def put(root: Path, names: tuple[str, ...] = ("Tide", "levels", "tables"), words: str = WORDS) -> list[Path]:
    """Put what writers, a person, a pull and a repair leave under these names; the files."""
    project = projects.find(root)
    made = []
    for name in names:
        for path in (
            project.folder / "prev" / "routes" / f"{name}.md",
            project.folder / "prev" / "routes" / f".{name}.md.aside",
            project.routes / f"{name}.displaced-12345678",
            project.folder / "routes" / f"{name}.md.damaged",
            project.folder / "journal" / "routes" / f"{name}.damaged",
            project.folder / "journal" / "moved" / f"{name.lower()}.jsonl.damaged",
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(words, encoding="utf-8")
            made.append(path)
        if name != "tables":
            path = project.route_file(name)
            path.write_text(f"---\nroute: {name}\ngoal: {words}\n---\n", encoding="utf-8")
            made.append(path)
    return made


def still(root: Path, words: str = WORDS) -> list[Path]:
    return remains(storekit.context_of(root), Wording([words], within_words=True))


# ---- a text ----


@pytest.mark.ci
def test_a_text_goes_from_all_that_lies_under_a_name_of_before(root: Path) -> None:
    made = put(root)
    looked = forget("tables", text=WORDS, dry_run=True, root=root)
    told = {
        path
        for path in map(projects.find(root).name_of, made)
        if not path.endswith(("prev/routes/tables.md", ".tables.md.aside"))
    }
    assert told <= set(looked.files)
    assert len(still(root)) == len(made)
    done = forget("tables", text=WORDS, root=root)
    assert done.left == ()
    assert still(root) == []
    assert [item.decision for item in ralf.get_context("Tide", root=root).decisions] == ["Use SQLite"]
    assert forget("tables", text=WORDS, root=root).touched is False


# ---- a whole route ----


@pytest.mark.ci
def test_a_whole_route_goes_under_each_of_its_names(root: Path) -> None:
    made, project = put(root), projects.find(root)
    chosen, named = project.cache / "chosen", project.cache / "named"
    for name in ("Tide", "levels", "tables"):
        routing.use(project, name, session=f"s-{name}")
        path = named / "routes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n", encoding="utf-8")
    other = project.folder / "cache" / "another-user" / "chosen" / "s-9"
    other.parent.mkdir(parents=True)
    other.write_text("levels\n", encoding="utf-8")
    routing.use(project, "other", session="s-other")
    looked = forget_route("levels", dry_run=True, root=root)
    assert set(map(project.name_of, made)) <= set(looked.files)
    done = forget_route("levels", root=root)
    assert (done.route, done.left) == ("tables", ())
    assert set(map(project.name_of, made)) <= set(done.files)
    assert still(root) == []
    assert not other.exists()
    assert [path.name for path in chosen.iterdir()] == ["s-other"]
    assert not [path for path in named.rglob("*") if path.is_file()]
    assert list(project.store.streams("moved/")) == []
    names = ("Tide", "tide", "levels", "tables")
    assert not [path for path in project.folder.rglob("*") if path.stem in names and "locks" not in path.parts]
    ralf.record_decision("Tide", "Anew", root=root)
    assert sorted(one.route for one in ralf.list_routes(root=root)) == ["Tide", "other"]
