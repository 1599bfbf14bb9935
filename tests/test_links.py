"""Whatever lies in the place of a file or folder of the store: nothing outside is read as ours, written or removed, and
nobody waits.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults import samples

import hookkit
import ralf
from ralf import project, routing
from ralf.document import index
from ralf.errors import RalfError, UsageError
from ralf.maintenance.evidence import drop_evidence
from ralf.project import Project
from ralf.storage import files, git_files
from ralf_integrations.blackbox5.context_budget import SPAWNED, ContextBudget
from ralf_integrations.hooks import error_log
from storekit import HANGS, context_of, copied

MARK = "Words from elsewhere"
ROUTE = samples.ROUTE


def _outside(path: Path, elsewhere: Path) -> Path:
    """What lay at `path`, elsewhere, and saying something that the store does not say."""
    target = elsewhere / path.name
    if path.is_dir():
        shutil.move(path, target)
        for file in target.rglob("*"):
            if file.suffix in (".md", ".json"):
                file.write_bytes(_saying_another(file.read_bytes()))
    else:
        target.write_bytes(_saying_another(path.read_bytes()))
        path.unlink()
    return target


def _saying_another(content: bytes) -> bytes:
    return content.replace(b"Use SQLite", MARK.encode())


def _gone(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def link(path: Path, elsewhere: Path) -> None:
    path.symlink_to(_outside(path, elsewhere))


def dangling(path: Path, elsewhere: Path) -> None:
    _gone(path)
    path.symlink_to(elsewhere / "nowhere")


def loop(path: Path, _: Path) -> None:
    _gone(path)
    path.symlink_to(path.name)


def fifo(path: Path, _: Path) -> None:
    _gone(path)
    os.mkfifo(path)


def bound(path: Path, elsewhere: Path) -> None:
    _gone(path)
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path has few characters
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def other(path: Path, _: Path) -> None:
    """A folder in the place of a file, a file in the place of a folder."""
    folder = path.is_dir()
    _gone(path)
    path.write_text("a file\n") if folder else path.mkdir()


def hard(path: Path, elsewhere: Path) -> None:
    """The same file by two names, one of them outside."""
    os.link(path, elsewhere / path.name)


def empty(path: Path, elsewhere: Path) -> None:
    """A file of somebody else's that holds nothing yet."""
    path.unlink()
    (elsewhere / path.name).touch()
    os.link(elsewhere / path.name, path)


SWAPS = [link, dangling, loop, fifo, bound, other, hard, empty]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "project"
    root.mkdir()
    samples.fill(root)
    index.close_idle()  # what an open one has beside it comes and goes
    return root


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder, with its mode and its bytes."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


@contextmanager
def not_hanging() -> Iterator[None]:
    """Fails where somebody in the block waits for a pipe."""

    def late(*_: object) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def everything(root: Path) -> str:
    """What can be done with a store, one after the other; what it said."""
    session = root / "src" / "session.jsonl"
    calls: list[Callable[[], object]] = [
        lambda: ralf.get_context(ROUTE, root=root).render(),
        lambda: ralf.list_routes(root=root),
        lambda: ralf.search("SQLite elsewhere", root=root),
        lambda: ralf.why(ROUTE, "cp-001", root=root),
        lambda: ralf.record_decision(ROUTE, "Go on", root=root),
        lambda: ralf.checkpoint(ROUTE, session, root=root, restart=True),
        lambda: ralf.record_decision("other", "Go on", root=root),
        lambda: routing.use(Project(root), ROUTE),
        lambda: routing.choose(project.find(root)),
        lambda: drop_evidence("1d", remove=True, now=2e9, root=root),
        lambda: ralf.get_context(ROUTE, root=root).render(),
        lambda: ralf.list_routes(root=root),
    ]
    said = []
    for call in calls:
        with not_hanging():
            try:
                said.append(str(call()))
            except (RalfError, OSError) as error:
                assert str(error)
    return "\n".join(said)


def _paths(root: Path) -> list[str]:
    """The folders and files of the store; of the blobs two."""
    store = context_of(root)
    found = [path.relative_to(store).as_posix() for path in sorted(store.rglob("*"))]
    blobs = [name for name in found if name.startswith("blobs/")]
    return [name for name in found if name not in blobs[2:]]


def check(made: Path, work: Path, name: str, swap: Callable[[Path, Path], None]) -> None:
    """Fails unless all that can be done with a store leaves alone, and unread, what lies outside of it."""
    root, elsewhere = work / "project", work / "elsewhere"
    elsewhere.mkdir(parents=True)
    copied(made, root)
    (elsewhere / "mine.txt").write_text("mine")
    path = context_of(root) / name
    if swap not in (hard, empty) or not path.is_dir():  # a folder has no second name
        swap(path, elsewhere)
        before = tree(elsewhere)
        said = everything(root)
        assert MARK not in said, name
        assert tree(elsewhere) == before, name
    shutil.rmtree(work)


@pytest.mark.ci
@pytest.mark.parametrize("swap", SWAPS, ids=lambda swap: swap.__name__)
def test_nothing_outside_is_read_written_or_removed_whatever_lies_in_any_place(
    made: Path, tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    for name in _paths(made):
        check(made, tmp_path / "work", name, swap)


@pytest.mark.ci
def test_a_store_linked_out_of_the_project_is_refused_unless_the_project_was_named(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in (".autonomous", ".autonomous/context"):
        project = tmp_path / str(len(part))
        (project / part).parent.mkdir(parents=True)
        (project / part).symlink_to(made / part)
        monkeypatch.chdir(project)
        with pytest.raises(UsageError, match="link out of the project") as caught:
            ralf.get_context(ROUTE)
        assert "ralf --root " in caught.value.hint
        assert ralf.get_context(ROUTE, root=project).checkpoint_count == 2
        monkeypatch.setenv("RALF_PROJECT_DIR", str(project))
        assert ralf.get_context(ROUTE).checkpoint_count == 2
        monkeypatch.delenv("RALF_PROJECT_DIR")


# ---- the way to the store ----


@pytest.mark.parametrize(
    "back",
    [None, "gitdir: elsewhere", "/nowhere/.git\n", "\0", "x" * 200_000],
    ids=["none", "words", "other", "NUL", "long"],
)
def test_a_git_file_that_points_at_a_repository_unaware_of_it_leads_nowhere(
    made: Path, tmp_path: Path, back: str | None
) -> None:
    administrative = tmp_path / "theirs" / ".git" / "worktrees" / "x"
    administrative.mkdir(parents=True)
    shutil.copytree(made / ".autonomous", tmp_path / "theirs" / ".autonomous")
    if back is not None:
        (administrative / "gitdir").write_text(back)
    sent = tmp_path / "sent"
    sent.mkdir()
    (sent / ".git").write_text(f"gitdir: {administrative}\n")
    assert project.find(sent).folder == sent / ".autonomous" / "context"
    assert ralf.list_routes(root=sent) == []


@pytest.mark.ci
@pytest.mark.parametrize("place", [".git", ".git/HEAD"])
@pytest.mark.parametrize("lay", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["a pipe", "a device"])
def test_a_pipe_or_a_device_among_gits_files_hangs_nobody(
    tmp_path: Path, place: str, lay: Callable[[Path], object]
) -> None:
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    lay(tmp_path / place)
    with not_hanging():
        assert routing.choose(project.find(tmp_path)).route == "default"


@pytest.mark.ci
@pytest.mark.parametrize("lay", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["a pipe", "a device"])
def test_a_pipe_or_a_device_in_place_of_gits_index_hangs_no_writer(
    tmp_path: Path, lay: Callable[[Path], object]
) -> None:
    (tmp_path / ".git").mkdir()
    lay(tmp_path / ".git" / "index")
    with not_hanging():
        assert git_files.tracks(tmp_path, Path("x"))  # nobody can tell
        assert git_files.tracks(tmp_path, Path("config.local.yaml"))


# ---- second names ----


def second_names(paths: list[Path], elsewhere: Path) -> dict[Path, tuple[bytes, int, int]]:
    """Give files a name outside of the store; what each is now."""
    found = {}
    for number, path in enumerate(paths):
        name = elsewhere / path.parent.name / f"{number}{path.suffix}"
        name.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, name)
        os.utime(name, ns=(10**18, 10**18))
        found[name] = _state(name)
    return found


def _state(path: Path) -> tuple[bytes, int, int]:
    status = path.lstat()
    return path.read_bytes(), status.st_mode, 0 if path.parent.name == "hooks" else status.st_mtime_ns


def test_a_file_that_is_to_be_emptied_is_looked_at_first(tmp_path: Path) -> None:
    outside, place = tmp_path / "outside", tmp_path / "place"
    outside.write_text("words")
    os.link(outside, place)
    for mode in ("w", "a", "r+"):
        with pytest.raises(OSError, match="second name"), open(place, mode, opener=files.open_single_link):
            pass
    assert outside.read_text() == "words"
    outside.unlink()
    with open(place, "w", opener=files.open_single_link) as file:
        file.write("new")
    assert place.read_text() == "new"


def test_the_rights_and_times_of_a_file_with_a_second_name_are_left(tmp_path: Path) -> None:
    outside, place = tmp_path / "outside", tmp_path / "place"
    outside.write_text("words")
    outside.chmod(0o644)
    os.link(outside, place)
    os.utime(outside, ns=(10**18, 10**18))
    before = _state(outside)
    with pytest.raises(OSError, match="second name"):
        files.touch(place)
    with pytest.raises(OSError, match="second name"):
        ContextBudget(run_dir=_linked(tmp_path, outside)).mark_subagent_spawned()
    assert _state(outside) == before


def _linked(folder: Path, outside: Path) -> Path:
    (folder / "run").mkdir()
    os.link(outside, folder / "run" / SPAWNED)
    return folder / "run"


@pytest.mark.ci
def test_what_hooks_complain_of_goes_into_no_file_of_somebody(tmp_path: Path) -> None:
    rig = hookkit.rig(tmp_path / "project")
    project = rig.project
    error_log.add(project, "here", ValueError("something"))
    before = second_names([error_log.log(project)], tmp_path / "elsewhere")
    for number in range(3):
        error_log.add(project, "here", ValueError(f"{number}" * 30_000))
    assert {path: _state(path) for path in before} == before
