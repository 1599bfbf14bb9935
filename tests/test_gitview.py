"""What git sees of a store: `git add -A` and `git commit -a` take shared route files of it and nothing else, whatever
stands in the repository.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import ralf
from kit.git import commit, git, repository as begin
from ralf.errors import RalfError, UsageError
from ralf.maintenance import ownership
from ralf.project import Project
from ralf_integrations import inbox
from storekit import context_of, journal_file, process, records_of, write_session

pytestmark = pytest.mark.ci

LEGACY = "*\n!.gitignore\n!routes/\n!routes/*.md\n"
STORE = ".autonomous/context"
WORD = "harbour"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    begin(root)
    (root / "README").write_text("one\n")
    commit(root)
    return root


def staged(root: Path) -> list[str]:
    """What `git add -A` would commit of the store."""
    git(root, "add", "-A")
    names = git(root, "diff", "--cached", "--name-only").splitlines()
    git(root, "reset", "-q")
    return [name.removeprefix(f"{STORE}/") for name in names if name.startswith(STORE)]


def work(root: Path) -> list[str]:
    """Write and read in every way, as far as each is allowed; what was refused."""
    session = root.parent / "session.jsonl"
    if not session.exists():
        write_session(session, 3_000)
    project = Project(root)
    refused = []
    for call in (
        lambda: ralf.record_decision("tide", f"Use the {WORD} columns", root=root),
        lambda: ralf.record_decision("mine", f"Use the {WORD} rows", root=root),
        lambda: ralf.checkpoint("mine", session, root=root),
        lambda: inbox.send(project, "s-1", f"Look at the {WORD}", sender="t"),
        lambda: ralf.get_context("mine", root=root, query=WORD),
        lambda: ralf.search(WORD, root=root),
        lambda: ralf.list_routes(root=root),
    ):
        try:
            call()
        except RalfError as error:
            refused.append(str(error))
    return refused


# ---- before this user shares, and after ----


def test_nothing_is_staged_before_the_person_shares_and_then_what_they_share_alone(repository: Path) -> None:
    assert work(repository) == []
    assert staged(repository) == []
    ownership.init(Project(repository), share=True)
    work(repository)
    shared = staged(repository)
    assert shared and {name.split("/")[0] for name in shared} == {"shared"}
    assert not any(WORD in (context_of(repository) / name).read_text() for name in shared if "session" in name)


@pytest.mark.parametrize(
    "content", ["", "!*\n", "*\n!*\n", "*\n!journal/\n!journal/**\n", "/*\n!/blobs\n", "\0", "*\n!routes/\n", LEGACY]
)
def test_a_gitignore_that_shows_more_is_put_right_at_the_next_write(repository: Path, content: str) -> None:
    work(repository)
    (context_of(repository) / ".gitignore").write_text(content)
    ralf.record_decision("mine", "Go on", root=repository)
    assert staged(repository) == []
    assert (context_of(repository) / ".gitignore").read_text() == "*\n"


# ---- a clone of a project whose owner shares ----


@pytest.mark.parametrize("name", [".gitignore", "routes/.gitignore"])
def test_a_tracked_gitignore_that_shows_more_refuses_writes_and_names_the_way_out(repository: Path, name: str) -> None:
    place = context_of(repository) / name
    place.parent.mkdir(parents=True)
    place.write_text("!*\n")
    if name != ".gitignore":
        (context_of(repository) / ".gitignore").write_text(LEGACY)
    git(repository, "add", "-f", STORE)
    commit(repository)
    work(repository)
    assert staged(repository) == []
    with pytest.raises(UsageError, match="is committed, and does not hide") as caught:
        ralf.record_decision("mine", "Go on", root=repository)
    subprocess.run(caught.value.hint, shell=True, check=True)  # noqa: S602
    assert work(repository) == []
    commit(repository)
    assert work(repository) == []
    assert staged(repository) == []


# ---- files that git tracks ----


@pytest.mark.parametrize("format_", ["sha1", "sha256"])
def test_nothing_is_recorded_in_a_journal_that_git_tracks(tmp_path: Path, format_: str) -> None:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", f"--object-format={format_}")
    ralf.record_decision("tide", "One", root=root)
    commit(root, journal_file(root, "tide"))
    before = journal_file(root, "tide").read_bytes()
    with pytest.raises(UsageError, match="git tracks it") as caught:
        ralf.record_decision("tide", f"Use the {WORD}", root=root)
    assert str(caught.value).startswith(str(journal_file(root, "tide")))
    assert journal_file(root, "tide").read_bytes() == before
    assert ralf.get_context("tide", root=root).decisions
    ralf.record_decision("other", "Go on", root=root)
    assert staged(root) == []
    subprocess.run(caught.value.hint, shell=True, check=True)  # noqa: S602
    ralf.record_decision("tide", "Go on", root=root)
    assert len(records_of(root, "tide")) == 2


def test_a_route_file_that_git_tracks_is_left_as_it_is_and_each_write_says_so(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    begin(root)
    ralf.record_decision("tide", "One", root=root)
    path = context_of(root) / "routes" / "tide.md"
    commit(root, path)
    before = path.read_bytes()
    ran = process("decide", "tide", "Two", cwd=root)
    assert ran.status == 0 and f"{path}: git tracks it, so it is left as it is: git -C {root} rm --cached" in ran.err
    assert path.read_bytes() == before and "Two" in ralf.get_context("tide", root=root).render()
