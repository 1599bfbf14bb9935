"""The pages hold up nobody: they take no lock of the store, write nothing into it, and need no more memory and no more
files after a thousand views than after the first ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("starlette")

import kit.command
import ralf
import storekit
import webkit
from examples import examples
from ralf.project import Project
from ralf_integrations.web import sessions
from webkit import PATHS, Client, served

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with webkit.made(tmp_path_factory.mktemp("web")) as found:
        yield found


class Watch:
    """Notes what this process does to the files of a folder, by Python's audit events; a hook cannot be taken out."""

    folder = ""
    found: tuple[tuple[str, str], ...] = ()
    _is_set = False

    @classmethod
    @contextmanager
    def on(cls, folder: Path) -> Iterator[None]:
        """Watch a folder for a block."""
        if not cls._is_set:
            sys.addaudithook(cls._hook)
            cls._is_set = True
        cls.folder, cls.found = os.path.realpath(folder), ()
        try:
            yield
        finally:
            cls.folder = ""

    @classmethod
    def _hook(cls, event: str, arguments: tuple[object, ...]) -> None:
        if not cls.folder:
            return
        if event in ("fcntl.flock", "fcntl.lockf", "fcntl.fcntl"):
            cls._note(event, os.readlink(f"/proc/self/fd/{arguments[0]}"))
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES:
            cls._note("open to write", arguments[0])
        elif event in ("sqlite3.connect", "os.rename", "os.remove", "os.mkdir", "os.link", "os.truncate", "os.utime"):
            cls._note(event, arguments[0])

    @classmethod
    def _note(cls, event: str, path: object) -> None:
        name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        if os.path.realpath(name).startswith(cls.folder):
            cls.found = (*cls.found, (event, name))


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file of a folder, with its size and when it was changed."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


@pytest.mark.ci(seconds=2)
def test_no_page_takes_a_lock_opens_a_shared_index_or_writes_anything_in_the_project(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "FRESH", 0.0)
    with served(project) as (_, client):
        assert client.get("/search?q=warm").status == 200
        before = tree(project.root)
        with Watch.on(project.root):
            for path in (*PATHS, "/changes") * 2:
                assert client.get(path).status == 200, path
            assert Watch.found == ()
        assert tree(project.root) == before
        with Watch.on(project.root):
            ralf.record_decision("watched", "Found", root=project.root)
            assert {"fcntl.flock", "open to write"} <= {event for event, _ in Watch.found}  # the watch sees a writer


@pytest.mark.release(seconds=25)
def test_memory_and_files_are_flat_over_many_views(project: Project, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": storekit.PACKAGES, "TMPDIR": str(tmp_path)}
    words = ("--root", project.root, "web")
    with kit.command.start(*words, cwd=project.root, env=environment, is_new=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().decode().strip()
            client = Client(int(address.partition("127.0.0.1:")[2].partition("/")[0]))
            assert client.enter(address).status == 303
            for number in range(2_000):  # until what is remembered, so many items of each kind at most, is full
                client.get(PATHS[number % len(PATHS)])
            before, files, store = _resident(server.pid), _open_files(server.pid), tree(project.root)
            place = tree(tmp_path)
            for number in range(examples(1_000)):
                assert client.get(PATHS[number % len(PATHS)]).status == 200
            assert _resident(server.pid) - before < 5 << 20
            assert _open_files(server.pid) <= files + 2
            assert tree(project.root) == store
            assert place.keys() == tree(tmp_path).keys()
        finally:
            server.terminate()


def _resident(process: int) -> int:
    """Bytes of memory that a process holds."""
    (line,) = [one for one in Path(f"/proc/{process}/status").read_text().splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1]) << 10


def _open_files(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))
