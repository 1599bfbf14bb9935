"""What of a shared route is accepted: nothing that is the user's own already, and all that the preview has told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ralf
from ralf import project as projects
from ralf.errors import UsageError
from ralf.format import spread
from ralf.format.codec import to_tree
from ralf.maintenance import trust
from ralf.maintenance.renaming import rename_route
from ralf.model import Decision
from storekit import on_a_terminal, process, write_session
from test_sharing import Clone, pair

pytestmark = pytest.mark.ci


def in_step(folder: Path, *, driver: bool = True) -> tuple[Clone, Clone]:
    """Two clones that share a route, in which the other has committed what it accepted; each has a line of its own."""
    for number in range(9):
        place = folder / str(number)
        place.mkdir()
        one, other = pair(place, driver=driver)
        if driver or abs(_slot(one) - _slot(other)) > 1:  # git alone cannot merge changes of neighbouring lines
            break
    other.commit()
    return one, other


def _slot(clone: Clone) -> int:
    with clone.works() as root:
        return spread.slot_of(Decision(id="DEC-001", clone=projects.find(root).git.clone))


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
        rename_route("api", "tables", root=root)
        trust.accept_route(project, "tables")


def test_trust_of_a_renamed_route_asks_nothing_and_says_what_to_type_first(renamed: Clone) -> None:
    status, said = trusted(renamed, "tables")
    assert status == 2
    assert "error: tables: " in said and "hint: ralf route rename api tables" in said and "?" not in said


def test_of_several_routes_all_but_the_renamed_one_are_accepted(renamed: Clone) -> None:
    path = renamed.root / ".autonomous/context/routes/gates.md"
    renamed.git("rm", "-q", "--cached", "--ignore-unmatch", str(path))
    path.write_text('---\ncontext_checkpoint:\n  version: "1.0.0"\n  route: "gates"\ngoal: "Open them"\n---\n')
    renamed.commit()
    status, said = trusted(renamed)
    assert status == 0, said
    assert "ralf route rename" in said and "gates: " in said
    assert trusted(renamed, answer="")[0] == 0  # there is nothing left to ask


@pytest.mark.parametrize("driver", [False, True], ids=["by git alone", "by the driver"])
def test_all_that_a_clone_has_recorded_stays_its_own_however_often_it_comes_back(
    tmp_path: Path, *, driver: bool
) -> None:
    one, other = in_step(tmp_path, driver=driver)
    session = tmp_path / "session.jsonl"
    write_session(session, 3_000)
    with one.works() as root:
        ralf.checkpoint("api", session, root=root)
    one.decide("Never push", kind="rule", origin="user")
    before = whose(one)
    assert "import" not in before.values()
    for number in range(3):
        take(other, one)
        other.accept()
        other.decide(f"Of other, {number}", origin="user")
        take(one, other)
        one.accept()
        one.decide(f"Of one, {number}", origin="user")
        assert before.items() <= whose(one).items()
        assert whose(one)[f"Of other, {number}"] == "import"
        assert whose(one)[f"Of one, {number}"] == "user"
        assert whose(other)["Never push"] == "import"


def test_a_field_that_a_colleague_changed_makes_its_item_an_import(tmp_path: Path) -> None:
    one, other = in_step(tmp_path)
    one.decide("Never push", kind="rule", origin="user")
    take(other, one)
    other.accept()
    path = other.root / ".autonomous/context/routes/api.md"
    path.write_text(path.read_text().replace('decision: "Never push"', 'decision: "Always push"'))
    other.decide("More")
    take(one, other)
    one.accept()
    assert whose(one)["Always push"] == "import"
    assert "Never push" not in whose(one)


def whose(clone: Clone) -> dict[str, str]:
    """The origin of each thing that a route holds."""
    context = clone.context
    facts = [*context.facts.paths, *context.facts.commands, *context.facts.errors, *context.facts.requests]
    told = {f"{item.__class__.__name__} {number}": _origin(item) for number, item in enumerate(facts)}
    told |= {entry.session: entry.origin for entry in context.checkpoint_history}
    told |= {"work": context.active_work.origin, "goal": context.goal_origin}
    return told | {item.decision: item.origin for item in context.decisions}


def _origin(fact: Any) -> str:
    return str(to_tree(fact).get("origin", ""))


def shown(clone: Clone) -> tuple[str, ...]:
    """What `trust` lists of the route."""
    with clone.works() as root:
        part = trust.look_at_foreign(projects.find(root), "api")
    assert part is not None
    return part.lines


def test_the_preview_lists_no_decision_of_ones_own_that_a_colleague_calls_otherwise(tmp_path: Path) -> None:
    one, other = in_step(tmp_path)
    one.decide("Of one", origin="user")
    other.decide("Of other", origin="user")  # under the same label
    take(other, one)
    other.accept()
    other.decide("Of other, later", origin="user")
    take(one, other)
    assert b"aliases" in one.content
    lines = shown(one)
    assert not any(": Of one" in line for line in lines)
    assert len(lines) == 2 and all(": Of other" in line for line in lines)


def test_the_preview_says_in_one_line_that_accepting_changes_nothing_but_labels(tmp_path: Path) -> None:
    one, other = in_step(tmp_path)
    one.decide("Of one", origin="user")
    take(other, one)
    other.accept()
    other.commit()
    take(one, other)
    assert shown(one) == ()
    status, said = trusted(one, "api")
    assert status == 0, said
    assert one.said["Of one"].origin == "user"


def give_reasons(one: Clone, other: Clone) -> None:
    """Each gives a decision another reason, and one pulls that of the other."""
    for clone, reason in ((one, "because of one"), (other, "because of other")):
        path = clone.root / ".autonomous/context/routes/api.md"
        path.write_text(path.read_text().replace('rationale: "so"', f'rationale: "{reason}"'))
        clone.decide(f"Of {clone.root.name}")
    take(one, other)


def test_the_preview_lists_a_field_that_both_have_changed(tmp_path: Path) -> None:
    one, other = in_step(tmp_path)
    give_reasons(one, other)
    (line,) = [line for line in shown(one) if line.startswith("unresolved: ")]
    assert line.startswith("unresolved: DEC-001 rationale: because of ")
    assert "because of one" in line and "because of other" in line
    one.accept()
    assert len(one.context.unresolved) == 1


# ---- what `ralf status` says of it ----


def told(clone: Clone, *words: str) -> tuple[int, list[str]]:
    """The exit status of `ralf status`, and what it prints, for this user."""
    ran = process("status", *words, cwd=clone.root, HOME=str(clone.root), XDG_CONFIG_HOME=str(clone.own))
    return ran.status, [*ran.out.splitlines(), *ran.err.splitlines()]


def test_status_tells_of_another_route_that_waits_to_be_accepted(tmp_path: Path) -> None:
    one, other = in_step(tmp_path)
    other.decide("Of other")
    take(one, other)
    status, lines = told(one, "--route", "mine")
    assert status == 0
    (line,) = [line for line in lines if line.startswith("foreign ")]
    assert line.endswith("ralf context trust api")
    one.accept()
    assert not [line for line in told(one, "--route", "mine")[1] if line.startswith("foreign ")]


def test_status_tells_of_a_field_with_two_values_and_how_to_settle_it(tmp_path: Path) -> None:
    one, other = in_step(tmp_path)
    give_reasons(one, other)
    one.accept()
    status, lines = told(one, "--route", "api")
    assert status == 0
    assert any(line.startswith("unresolved ") and line.endswith("ralf context edit api") for line in lines)


def test_status_tells_of_a_damaged_file_of_another_route_and_ends_with_4(tmp_path: Path) -> None:
    one, _ = in_step(tmp_path)
    assert told(one, "--route", "mine")[0] == 0
    (one.root / ".autonomous/context/routes/api.md").write_text("---\n<<<<<<< ours\n")
    status, lines = told(one, "--route", "mine")
    assert status == 4
    assert any("api.md" in line for line in lines)
    assert "hint: ralf show api" in lines


def test_status_in_a_new_clone_of_a_shared_project_says_how_to_take_part(tmp_path: Path) -> None:
    one, _ = in_step(tmp_path)
    (tmp_path / "new").mkdir()
    new = Clone(tmp_path / "new", "clone")
    new.git("clone", "-q", one.root, ".")
    status, lines = told(new)
    assert status == 0
    assert any(line.startswith("sharing ") and line.endswith("ralf init --share") for line in lines)
    new.share(driver=True)
    assert not [line for line in told(new)[1] if line.startswith("sharing ")]
