"""Forgetting a whole route: nothing of it is left, and others keep what they need."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from tests.faults.rig import killed_at

import ralf
import storekit
from ralf import project as projects, routing
from ralf.errors import RouteNotFound
from ralf.maintenance.forget import forget_route
from ralf.maintenance.purge import Wording, remains

ASKED = "Please carry part 0 of the tide table over"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a route that has all that a route may have; `root` is a copy of it."""
    root = tmp_path_factory.mktemp("made")
    storekit.write_session(root / "session.jsonl", 1_500)
    ralf.checkpoint("tide", root / "session.jsonl", root=root)
    ralf.record_decision("other", "Never push to main", root=root)
    ralf.search("tide table", root=root)
    project = projects.find(root)
    routing.use(project, "tide")
    for name in ("tide.displaced-12345678", "../prev/routes/.tide.md.aside"):
        (project.routes / name).write_text(ASKED, encoding="utf-8")
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return storekit.copied(made, tmp_path, dirs_exist_ok=True)


def named(root: Path) -> list[str]:
    """Files and folders that the route gave its name to, locks aside."""
    folder = projects.find(root).folder
    found = [path for path in folder.rglob("*") if path.name.split(".")[0] == "tide"]
    return [path.relative_to(folder).as_posix() for path in found if "locks" not in path.parts]


def test_evidence_that_another_route_needs_stays(root: Path) -> None:
    ralf.checkpoint("other", root / "session.jsonl", root=root)
    assert forget_route("tide", root=root).blobs == 0
    assert ralf.why("other", "cp-001", root=root).evidence == "kept"


def test_what_lies_beside_the_file_of_a_route_whose_name_begins_alike_stays(root: Path) -> None:
    other = projects.find(root).routes / ".ralf-tide.md-old.md-0123456789ab-0123456789ab.old"
    other.write_text("a save that nobody has taken in")
    forget_route("tide", root=root)
    assert other.exists()


@pytest.mark.parametrize("place", range(1, 40, 3))
def test_a_store_killed_at_any_moment_reads_and_is_completed_by_the_same_call(root: Path, place: int) -> None:
    killed_at(2 * place, lambda: forget_route("tide", root=root))
    for route in routing.names_of(projects.find(root)):
        with suppress(RouteNotFound):  # a journal without a record, the last that goes
            assert ralf.get_context(route, root=root).warnings == ()
    with suppress(RouteNotFound):
        forget_route("tide", root=root)
    assert named(root) == []
    assert remains(projects.find(root).folder, Wording([ASKED])) == []
