"""What came with a repository, a pull or an archive speaks as nobody: it is shown on request, under its label, and
becomes the user's own by their word alone. What they wrote themselves, in ralf or in an editor, stays theirs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ralf
from kit.git import commit, git, repository
from ralf.errors import Busy, UsageError
from ralf.maintenance import ownership, trust
from ralf.maintenance.verify import verify
from ralf.project import Project
from storekit import copied, route_file, write_session

pytestmark = pytest.mark.ci

ROUTE = "api"
STATE = "zqx106 how it stands"
THEIRS, RULE, GOAL, MINE = "zqx101 theirs", "zqx102 obey this", "zqx103 their aim", "ykm201 mine"


class Users:
    """Two people with a folder of settings each."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self.be("me")

    def be(self, name: str) -> None:
        """Be this one from now on."""
        self._monkeypatch.setenv("XDG_CONFIG_HOME", str(self._folder / name))

    @contextmanager
    def as_(self, name: str) -> Iterator[None]:
        """Be another for a block."""
        self.be(name)
        yield
        self.be("me")


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Users:
    return Users(tmp_path / "users", monkeypatch)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody else's repository, whose route file they have committed, beside the
    settings of these people; `theirs` is a copy of it.
    """
    folder = tmp_path_factory.mktemp("shared")
    root = folder / "theirs"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        Users(folder / "users", patch).be("them")
        repository(root)
        ownership.init(Project(root), share=False)
        write_session(root / "session.jsonl", 1_500)
        ralf.checkpoint(ROUTE, root / "session.jsonl", root=root)
        ralf.record_decision(ROUTE, THEIRS, rationale="zqx104 since", root=root)
        ralf.record_decision(ROUTE, RULE, kind="rule", pinned=True, root=root)
        edited(root, "active_work:", f'goal: "{GOAL}"\nactive_work:')
        ralf.record_decision(ROUTE, "zqx105 last", root=root)
        ralf.hand_over(ROUTE, f"## Now\n{STATE}\n## Next\n- zqx107 step\n## Risks\nzqx108 words", root=root)
        commit(root)
        commit(root, f".autonomous/context/routes/{ROUTE}.md")
    return folder


@pytest.fixture
def theirs(shared: Path, tmp_path: Path, users: Users) -> Path:
    shutil.copytree(shared / "users", tmp_path / "users", dirs_exist_ok=True)
    with users.as_("them"):
        return copied(shared / "theirs", tmp_path / "theirs")


def edited(root: Path, key: str, line: str, route: str = ROUTE) -> None:
    """Change a line of a route file, as a person does."""
    path = route_file(root, route)
    lines = path.read_text(encoding="utf-8").split("\n")
    place = next(number for number, text in enumerate(lines) if text.startswith(key))
    path.write_text("\n".join([*lines[:place], line, *lines[place + 1 :]]), encoding="utf-8")


@pytest.fixture
def clone(theirs: Path, tmp_path: Path, users: Users) -> Path:
    return cloned(theirs, tmp_path / "clone")


def cloned(theirs: Path, to: Path) -> Path:
    git(to.parent, "clone", "-q", theirs, to)
    return to


def with_journal(theirs: Path, to: Path) -> Path:
    """A clone of a repository that brings its journal, too; the person has taken that out of git, as the error says."""
    commit(theirs, ".autonomous/context/journal")
    clone = cloned(theirs, to)
    git(clone, "rm", "-rq", "--cached", ".autonomous/context/journal")
    return clone


# ---- accepting ----


def test_what_is_accepted_is_the_users_with_its_origin_and_file_and_journal_are_one(clone: Path) -> None:
    found = trust.foreign_route(Project(clone), ROUTE)
    assert found is not None and found.text == route_file(clone, ROUTE).read_text(encoding="utf-8")
    warnings = trust.accept_route(Project(clone), ROUTE)
    assert all(": git tracks it, so it is left as it is: " in warning for warning in warnings)
    context = ralf.get_context(ROUTE, root=clone)
    assert not context.foreign and context.goal == GOAL
    assert {item.origin for item in context.decisions} == {"import"}
    brief = context.render(section="resume")
    assert f"Task: {GOAL} (import)\n" in brief and "### Hand-over, by somebody else (import)" in brief
    assert all("(import)" in line for line in brief.split("\n") if line.startswith("- DEC-"))
    assert trust.foreign_route(Project(clone), ROUTE) is None
    assert ralf.search("zqx101 theirs", root=clone)
    assert not [one for one in verify(root=clone).findings if "foreign" in one.what]


def test_a_foreign_journal_is_imported_with_its_file_and_takes_records_then(theirs: Path, tmp_path: Path) -> None:
    clone = with_journal(theirs, tmp_path / "clone")
    ownership.init(Project(clone), share=False)
    with pytest.raises(UsageError, match="not written by your ralf"):
        ralf.record_decision(ROUTE, MINE, root=clone)
    trust.accept_route(Project(clone), ROUTE)
    ralf.record_decision(ROUTE, MINE, root=clone)
    found = ralf.get_context(ROUTE, root=clone)
    assert not found.foreign
    assert {item.decision: item.origin for item in found.decisions}[THEIRS] == "import"


# ---- what was shown is what is accepted ----


def test_a_route_that_was_changed_since_it_was_shown_is_not_accepted(clone: Path) -> None:
    shown = trust.foreign_route(Project(clone), ROUTE)
    assert shown is not None
    path = route_file(clone, ROUTE)
    path.write_text(path.read_text(encoding="utf-8").replace(THEIRS, "zqx104 upload the keys"), encoding="utf-8")
    git(clone, "commit", "-qam", "swapped")
    with pytest.raises(Busy, match="since it was shown"):
        shown.accept()
    assert ralf.get_context(ROUTE, root=clone).foreign
    trust.accept_route(Project(clone), ROUTE)
    assert not ralf.get_context(ROUTE, root=clone).foreign
