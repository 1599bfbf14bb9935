"""What of a shared route is accepted: nothing that is the user's own already, and all that the preview has told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralf import project as projects
from ralf.errors import UsageError
from ralf.maintenance import trust
from ralf.maintenance.renaming import rename_route
from storekit import on_a_terminal
from test_sharing import Clone, pair


def in_step(folder: Path, *, driver: bool = True) -> tuple[Clone, Clone]:
    """Two clones that share a route, in which the other has committed what it accepted."""
    one, other = pair(folder, driver=driver)
    other.commit()
    return one, other


def take(clone: Clone, other: Clone) -> None:
    """Merge what the other has committed."""
    clone.fetch(other)
    clone.git("merge", "--no-edit", "FETCH_HEAD")


def trusted(clone: Clone, *words: str, answer: str = "y\ny\n") -> tuple[int, str]:
    """`ralf context trust` as this user types it at a terminal."""
    return on_a_terminal(clone.root, "context", "trust", *words, answer=answer, XDG_CONFIG_HOME=str(clone.own))


@pytest.fixture
def renamed(tmp_path: Path) -> Clone:
    """A clone that has pulled its route `api` under the name `tables`, which a colleague has given it."""
    one, other = in_step(tmp_path)
    other.decide("Read other")
    with one.works() as root:
        rename_route("api", "tables", root=root)
    one.commit()
    take(other, one)
    return other


def test_a_route_that_a_colleague_renamed_is_not_imported_beside_itself(renamed: Clone) -> None:
    with renamed.works() as root:
        project = projects.find(root)
        with pytest.raises(UsageError) as raised:
            trust.accept_route(project, "tables")
        assert raised.value.hint == "ralf route rename api tables"
        assert "is your route api under another name" in str(raised.value)
        rename_route("api", "tables", root=root)
        trust.accept_route(project, "tables")


def test_trust_of_a_renamed_route_asks_nothing_and_says_what_to_type_first(renamed: Clone) -> None:
    status, said = trusted(renamed, "tables")
    assert status == 2
    assert "Import" not in said and "imported\n" not in said.replace("not imported", "")
    assert "error: tables: is your route api under another name: not imported" in said
    assert "hint: ralf route rename api tables" in said


def test_of_several_routes_all_but_the_renamed_one_are_accepted(renamed: Clone) -> None:
    path = renamed.root / ".autonomous/context/routes/gates.md"
    renamed.git("rm", "-q", "--cached", "--ignore-unmatch", str(path))
    path.write_text('---\ncontext_checkpoint:\n  version: "1.0.0"\n  route: "gates"\ngoal: "Open them"\n---\n')
    renamed.commit()
    status, said = trusted(renamed)
    assert status == 0, said
    assert "tables: is your route api under another name, and is not imported; first: ralf route rename" in said
    assert "gates: imported" in said
    assert "Import what is foreign in tables" not in said
    assert trusted(renamed, answer="")[0] == 0  # there is nothing left to ask
