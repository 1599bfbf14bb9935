"""What git sees of a store: `git add -A` and `git commit -a` take shared route files of it and nothing else, whatever
stands in the repository.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import ralf
from ralf import project
from ralf.errors import RalfError, UsageError
from ralf.maintenance import ownership, trust
from ralf.project import Project
from ralf.storage import git_files
from ralf_integrations import inbox
from storekit import context_of, journal_file, records_of, route_file, write_session

LEGACY = "*\n!.gitignore\n!routes/\n!routes/*.md\n"
STORE = ".autonomous/context"
WORD = "harbour"


def git(*args: object, cwd: Path) -> list[str]:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *map(str, args)], cwd=cwd, capture_output=True, text=True)  # noqa: S607
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    root = tmp_path / "project"
    root.mkdir()
    git("init", "-q", "-b", "main", cwd=root)
    (root / "README").write_text("one\n")
    commit(root)
    return root


def commit(root: Path) -> None:
    git("add", "-A", cwd=root)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=root)


def staged(root: Path) -> list[str]:
    """What `git add -A` would commit of the store."""
    git("add", "-A", cwd=root)
    names = git("diff", "--cached", "--name-only", cwd=root)
    git("reset", "-q", cwd=root)
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


def test_nothing_is_staged_before_the_person_shares_and_then_route_files_alone(repository: Path) -> None:
    assert work(repository) == []
    assert staged(repository) == []
    ownership.init(Project(repository), share=True)
    work(repository)
    assert staged(repository) == ["routes/mine.md", "routes/tide.md"]
    commit(repository)
    work(repository)
    assert {name.rpartition("/")[0] for name in staged(repository)} <= {"routes"}


@pytest.mark.parametrize(
    "content", ["", "!*\n", "*\n!*\n", "*\n!journal/\n!journal/**\n", "/*\n!/blobs\n", "\0", "*\n!routes/\n", LEGACY]
)
def test_a_gitignore_that_shows_more_is_put_right_at_the_next_write(repository: Path, content: str) -> None:
    work(repository)
    (context_of(repository) / ".gitignore").write_text(content)
    ralf.record_decision("mine", "Go on", root=repository)
    assert staged(repository) == []
    assert (context_of(repository) / ".gitignore").read_text() == "*\n"


def test_a_gitignore_that_was_changed_is_put_right_by_a_process_that_has_relied_on_it(repository: Path) -> None:
    work(repository)
    store, head = project.find(repository).store, None
    for number, content in enumerate(["*\n", "!\n", "*\n", "!\n", "\n\n"]):
        (context_of(repository) / ".gitignore").write_text(content)
        time.sleep(0.06)  # then its times tell of every change
        for again in range(2):
            head = store.append("routes/kept", b"{}", id=f"{number}-{again}", after=head)
            assert (context_of(repository) / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("lay", ["link", "hard", "pipe"])
def test_whatever_lies_in_the_place_of_gitignore_gives_way_and_what_it_names_stays(
    repository: Path, tmp_path: Path, lay: str
) -> None:
    work(repository)
    place, elsewhere = context_of(repository) / ".gitignore", tmp_path / "elsewhere"
    place.unlink()
    elsewhere.write_text("!*\n")
    {"link": lambda: place.symlink_to(elsewhere), "hard": lambda: place.hardlink_to(elsewhere)}.get(
        lay, lambda: os.mkfifo(place)
    )()
    ralf.record_decision("mine", "Go on", root=repository)
    assert staged(repository) == []
    assert elsewhere.read_text() == "!*\n"


def test_a_reader_keeps_nothing_where_git_would_see_it(repository: Path) -> None:
    work(repository)
    (context_of(repository) / ".gitignore").unlink()
    shutil.rmtree(context_of(repository) / "cache")
    assert ralf.search(WORD, root=repository)
    ralf.get_context("mine", root=repository, query=WORD)
    assert not (context_of(repository) / "cache").exists()
    ralf.record_decision("mine", "Go on", root=repository)
    assert ralf.search(WORD, root=repository)
    assert (context_of(repository) / "cache").exists()


def test_a_gitignore_in_routes_shows_only_route_files_and_a_persons_own_is_kept(repository: Path) -> None:
    ownership.init(Project(repository), share=True)
    work(repository)
    nested = context_of(repository) / "routes" / ".gitignore"
    nested.write_text("!*\n")
    (nested.parent / "left.tmp").write_text("x")
    work(repository)
    assert staged(repository) == ["routes/mine.md", "routes/tide.md"]
    nested.write_text("tide.md\n")
    work(repository)
    assert staged(repository) == ["routes/mine.md"]


# ---- a clone of a project whose owner shares ----


@pytest.fixture(params=["now", "earlier"])
def clone(repository: Path, request: pytest.FixtureRequest) -> Path:
    """A clone whose route `tide` is tracked, with the `.gitignore` of an earlier version or without one."""
    ownership.init(Project(repository), share=True)
    ralf.record_decision("tide", "Said at the origin", root=repository)
    if request.param == "earlier":
        (context_of(repository) / ".gitignore").write_text(LEGACY)
        git("add", "-f", f"{STORE}/.gitignore", cwd=repository)
    commit(repository)
    target = repository.parent / "clone"
    git("clone", "-q", repository, target, cwd=repository)
    return target


def test_in_a_clone_nothing_of_this_users_is_staged_before_they_share(clone: Path) -> None:
    assert work(clone) == []
    assert staged(clone) == []
    assert WORD not in route_file(clone, "tide").read_text()
    assert records_of(clone, "mine")


def test_in_a_clone_their_route_files_are_staged_once_they_share(clone: Path) -> None:
    work(clone)
    ownership.init(Project(clone), share=True)
    assert ownership.init(Project(clone), share=True) == []
    trust.accept_route(Project(clone), "tide")
    assert work(clone) == []
    assert staged(clone) == ["routes/mine.md", "routes/tide.md"]


def test_a_tracked_gitignore_that_was_removed_comes_back_unchanged(clone: Path) -> None:
    (context_of(clone) / ".gitignore").unlink(missing_ok=True)
    work(clone)
    assert staged(clone) == []


@pytest.mark.parametrize("name", [".gitignore", "routes/.gitignore"])
def test_a_tracked_gitignore_that_shows_more_refuses_writes_and_names_the_way_out(repository: Path, name: str) -> None:
    place = context_of(repository) / name
    place.parent.mkdir(parents=True)
    place.write_text("!*\n")
    if name != ".gitignore":
        (context_of(repository) / ".gitignore").write_text(LEGACY)
    git("add", "-f", STORE, cwd=repository)
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


def track(root: Path, *paths: Path) -> None:
    for path in paths:
        git("add", "-f", path, cwd=root)
    git("commit", "-qm", "x", cwd=root)


VERSIONS: dict[str, Callable[[Path], object]] = {
    "2": lambda root: git("update-index", "--index-version", "2", cwd=root),
    "3": lambda root: ((root / "new").write_text("x"), git("add", "-N", "new", cwd=root)),
    "4": lambda root: git("update-index", "--index-version", "4", cwd=root),
    "split": lambda root: git("update-index", "--split-index", cwd=root),
    "sha256": lambda root: None,
}


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_is_recorded_in_a_journal_that_git_tracks(tmp_path: Path, version: str) -> None:
    root = tmp_path / "project"
    root.mkdir()
    git("init", "-q", *(["--object-format=sha256"] if version == "sha256" else []), cwd=root)
    ralf.record_decision("tide", "One", root=root)
    track(root, journal_file(root, "tide"))
    VERSIONS[version](root)
    head = {"2": 2, "3": 3, "4": 4}.get(version)
    assert head is None or (root / ".git" / "index").read_bytes()[4:8] == head.to_bytes(4, "big")
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


@pytest.mark.parametrize("name", ["journal/inbox/s-1.jsonl", "archive/blobs/000001.zip", "journal/routes/mine.jsonl"])
def test_a_store_of_which_git_tracks_a_part_goes_on_where_it_does_not(repository: Path, name: str) -> None:
    place = context_of(repository) / name
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    track(repository, place)
    work(repository)
    assert ralf.get_context("tide", root=repository).decisions
    assert place.read_bytes() == b""
    assert staged(repository) == []


def test_the_index_is_read_once_and_again_when_it_changed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    real = git_files.tracked_below
    monkeypatch.setattr(git_files, "tracked_below", lambda *args: reads.append(1) or real(*args))
    ralf.record_decision("tide", "One", root=repository)
    assert reads == [1]
    project._known.clear()  # as in another process
    ralf.record_decision("tide", "Two", root=repository)
    reads.clear()
    project._known.clear()
    ralf.record_decision("tide", "Three", root=repository)
    assert reads == []
    track(repository, journal_file(repository, "tide"))
    with pytest.raises(UsageError, match="git tracks it"):
        ralf.record_decision("tide", "Four", root=repository)


def test_a_path_that_only_contains_the_stores_is_not_taken_for_it(repository: Path) -> None:
    beside = repository / "sub" / STORE / "journal" / "routes" / "tide.jsonl"
    beside.parent.mkdir(parents=True)
    beside.write_text("x")
    track(repository, beside)
    assert Project(repository).git.tracked() == frozenset()
    assert Project(repository / "sub").git.tracked() == {"journal/routes/tide.jsonl"}


def test_names_longer_than_an_entrys_flags_can_tell_are_found(repository: Path) -> None:
    name = f"{STORE}/{'a/' * 2_100}b".encode()
    entry = bytes(60) + (0xFFF).to_bytes(2, "big") + name
    index = b"DIRC\0\0\0\2\0\0\0\1" + entry + bytes(8 - len(entry) % 8)
    index += hashlib.sha1(index, usedforsecurity=False).digest()
    assert [path for path, _ in git_files._entries_below(index, f"{STORE}/".encode())] == [name]


def test_a_repository_within_the_store_and_a_linked_worktree_are_looked_at(repository: Path, tmp_path: Path) -> None:
    work(repository)
    git("init", "-q", cwd=context_of(repository))
    git("add", "-f", "journal/routes/mine.jsonl", cwd=context_of(repository))
    with pytest.raises(UsageError, match="git tracks it"):
        ralf.record_decision("mine", "Go on", root=repository)
    linked = tmp_path / "linked"
    git("worktree", "add", "-q", linked, cwd=repository)
    store = context_of(linked)
    (store / "journal" / "routes").mkdir(parents=True)
    (store / "config.yaml").write_text("worktrees: isolated\n")
    (store / "journal" / "routes" / "mine.jsonl").write_text("")
    git("add", "-f", store, cwd=linked)
    with pytest.raises(UsageError, match="git tracks it"):
        ralf.record_decision("mine", "Go on", root=linked)
