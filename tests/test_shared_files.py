"""`ralf doctor` and `ralf status` tell whether git merges shared route files with ralf here, and what to type."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ralf import project as projects
from ralf.maintenance import merge_driver, ownership
from ralf_integrations import shared_files
from ralf_integrations.clients.condition import Check
from storekit import process
from test_sharing import DRIVER, FILE, Clone, pair

pytestmark = pytest.mark.ci  # of what is to go

KEY = "merge.ralf.driver"


def looked(clone: Clone, root: Path | None = None) -> list[Check]:
    """What is said of a clone."""
    with clone.works() as top:
        return list(shared_files.checks(projects.find(root or top)))


def told(clone: Clone, state: str) -> tuple[str, str]:
    """The only thing that is so, and what to type."""
    (check,) = [check for check in looked(clone) if check.state == state]
    return check.what, check.hint


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A clone with the driver, whose files are committed."""
    one, _ = pair(tmp_path, driver=True)
    return one


def test_a_clone_with_the_driver_is_in_order(clone: Clone) -> None:
    assert [check.state for check in looked(clone)] == ["ok"]


def test_a_clone_without_the_driver_is_told_what_to_type(clone: Clone) -> None:
    clone.git("config", "--remove-section", "merge.ralf")
    what, hint = told(clone, "warning")
    assert "no merge driver" in what and hint == "ralf init --share"
    with clone.works() as root:
        assert (
            "sharing          this clone has no merge driver"
            in process("status", cwd=root, XDG_CONFIG_HOME=str(clone.own)).out
        )
        merge_driver.install(projects.find(root), DRIVER)
        assert "merge driver" not in process("status", cwd=root, XDG_CONFIG_HOME=str(clone.own)).out


def test_a_driver_whose_python_is_gone_is_a_problem(clone: Clone) -> None:
    clone.git("config", KEY, merge_driver.driver_line("/opt/gone/bin/python -P -m ralf_cli"))
    what, hint = told(clone, "problem")
    assert "/opt/gone/bin/python, which is no program here" in what and hint == "ralf init --share"


def test_a_driver_of_another_ralf_is_told_and_not_run(clone: Clone, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    clone.git("config", KEY, f"touch {witness}")
    what, hint = told(clone, "warning")
    assert "another ralf than this one: not tried: touch" in what and hint == "ralf init --share"
    assert not witness.exists()


def test_a_driver_of_this_ralf_that_fails_is_a_problem(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = "raise SystemExit('out of order')"
    monkeypatch.setattr(merge_driver, "own_command", lambda: f'{sys.executable} -c "{broken}"')
    clone.git("config", KEY, merge_driver.driver_line(merge_driver.own_command()))
    assert "fails with status 1: out of order" in told(clone, "problem")[0]


def test_an_attribute_that_is_not_committed_is_told(tmp_path: Path) -> None:
    one = Clone(tmp_path, "one")
    one.git("init", "-q", "-b", "main")
    one.share(driver=True)
    one.decide("Use metres", commit=False)
    what, hint = told(one, "warning")
    assert "is not committed: other clones merge as text" in what and hint.startswith("git add ")
    one.commit()
    assert [check.state for check in looked(one)] == ["ok"]


def test_an_attribute_that_is_gone_or_overridden_is_a_problem(clone: Clone) -> None:
    attributes = clone.root / ".git/info/attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text("*.md merge=union\n")
    assert "name the driver union for route files" in told(clone, "problem")[0]
    attributes.unlink()
    clone.git("rm", "-qf", (clone.root / FILE).with_name(".gitattributes"))
    what, hint = told(clone, "problem")
    assert "name no driver" in what and hint == "ralf init --share"


def test_attributes_that_git_would_wait_for_are_a_problem_told_at_once(clone: Clone) -> None:
    attributes = (clone.root / FILE).with_name(".gitattributes")
    attributes.unlink()
    os.mkfifo(attributes)
    what, hint = told(clone, "problem")
    assert what.startswith(f"{attributes}: is no regular file") and hint.endswith("ralf init --share")


def test_conflict_markers_are_named_with_what_resolves_them(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    one.git("config", "--remove-section", "merge.ralf")
    for clone in (one, other):
        (clone.root / FILE).write_bytes(clone.content.replace(b"Use metres", f"Use {clone.root.name}".encode()))
        clone.commit()
    one.fetch(other)
    assert one.run("merge", "-q", "FETCH_HEAD").returncode
    problem = next(check for check in looked(one) if check.state == "problem")
    assert "conflict markers of a merge" in problem.what
    assert problem.hint == f"ralf init --share, then: git checkout --merge {one.root / FILE}"
    with one.works() as root:
        merge_driver.install(projects.find(root), DRIVER)
    one.git("checkout", "--merge", one.root / FILE)
    one.git("add", FILE)
    assert [check.state for check in looked(one) if check.state == "problem"] == []


def test_committed_conflict_markers_are_taken_out_by_hand(clone: Clone) -> None:
    (clone.root / FILE).write_bytes(b"<<<<<<< ours\n" + clone.content + b"=======\n>>>>>>> theirs\n")
    clone.commit()
    assert told(clone, "problem")[1] == f"take the markers out in an editor: {clone.root / FILE}"


def test_a_clone_that_does_not_share_is_told_that_the_repository_does(tmp_path: Path) -> None:
    one = Clone(tmp_path, "one")
    one.git("init", "-q", "-b", "main")
    one.share(driver=True)
    one.decide("Use metres")
    other = Clone(tmp_path, "other")
    other.git("clone", "-q", one.root, ".")
    with other.works() as root:
        ownership.init(projects.find(root), share=False)
    assert told(other, "warning") == ("this repository shares its route files, and you do not", "ralf init --share")


def test_a_linked_worktree_has_the_driver_of_its_repository(clone: Clone, tmp_path: Path) -> None:
    clone.git("worktree", "add", "-q", "-b", "more", tmp_path / "linked")
    assert [check.state for check in looked(clone, tmp_path / "linked")] == ["ok"]


def test_a_submodule_has_a_driver_of_its_own(clone: Clone, tmp_path: Path) -> None:
    above = Clone(tmp_path, "above")
    above.git("init", "-q", "-b", "main")
    above.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", clone.root, "sub")
    below = Clone(above.root, "new")
    below.root, below.own = above.root / "sub", above.own
    below.share(driver=False)
    assert "no merge driver" in told(below, "warning")[0]
    below.share(driver=True)
    assert [check.state for check in looked(below)] == ["ok"]
    assert below.git("config", "--local", KEY).strip() == merge_driver.driver_line(DRIVER)
    assert above.run("config", "--local", KEY).returncode == 1


def test_a_repository_that_lies_elsewhere_has_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As people keep their settings in git: only the environment leads to the repository."""
    one = Clone(tmp_path, "one")
    place = tmp_path / "elsewhere"
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)  # noqa: S607
    subprocess.run(["git", "-C", str(place), "config", "core.bare", "false"], check=True)  # noqa: S607
    subprocess.run(["git", "-C", str(place), "config", "core.worktree", str(one.root)], check=True)  # noqa: S607
    one.share(driver=True)
    assert "git finds no repository" in told(one, "problem")[0]
    monkeypatch.setenv("GIT_DIR", str(place))
    one.share(driver=True)
    assert [check.state for check in looked(one)] == ["ok", "warning"]  # the attribute is not committed
    assert merge_driver.driver_line(DRIVER) in (place / "config").read_text().replace('\\"', '"')
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert "git finds no repository" in told(one, "problem")[0]
