"""What is the embedded store's own: hostile first lines, syncs that fail, blobs, and files that it replaces."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ralf.errors import Busy, DamagedBlob, DamagedJournal, UsageError
from ralf.storage import durable, users_files
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Token
from storekit import hidden

STREAM = "routes/r"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "routes" / "r.jsonl"


def record(number: int) -> bytes:
    return json.dumps({"n": number, "text": "word " * number}).encode()


def filled(store: FileStore, count: int, stream: str = STREAM, name: str = "id") -> list[Token]:
    tokens: list[Token] = []
    for number in range(count):
        head = tokens[-1] if tokens else None
        tokens.append(store.append(stream, record(number), id=f"{name}-{number}", after=head))
    return tokens


def numbers(store: FileStore) -> list[int]:
    return [json.loads(entry.record)["n"] for entry in store.read(STREAM)]


# ---- damage ----


@pytest.mark.parametrize(
    "said",
    [
        '{"offset":1e999,"last":"","archived":[]}',
        '{"offset":-5,"last":"","archived":[]}',
        '{"offset":1000000000000000000000000,"last":"","archived":[]}',
        '{"offset":5,"last":"","archived":[{"file":"000001-aaaaaaaaaaaa.jsonl.gz","size":1e999,"sha256":""}]}',
        '{"offset":0,"last":"","archived":%s}' % ("[" * 100_000 + "]" * 100_000),
    ],
)
def test_a_first_line_that_no_writer_has_made_is_damage_to_readers_and_writers(
    store: FileStore, journal: Path, said: str
) -> None:
    tokens = filled(store, 2)
    sum_ = hashlib.sha256(said.encode()).hexdigest()[:32]
    journal.write_bytes(b'{"header":%s,"sha256":"%s"}\n' % (said.encode(), sum_.encode()) + journal.read_bytes())
    with pytest.raises(DamagedJournal, match="its first line"):
        store.head(STREAM)
    with pytest.raises(DamagedJournal, match="its first line"):
        store.append(STREAM, record(2), id="id-2", after=tokens[-1])


# ---- disks that are full or fail ----


def test_a_record_whose_sync_failed_is_not_there(
    store: FileStore, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = None
    for number in range(2):
        head = store.append(STREAM, record(number), id=f"id-{number}", after=head)
    before, kept = journal.read_bytes(), numbers(store)

    def failing(*_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(durable, "sync_content", failing)
        with pytest.raises(OSError, match="Input/output"):
            store.append(STREAM, record(2), id="id-2", after=head)
    assert journal.read_bytes() == before
    assert (store.head(STREAM), numbers(store)) == (head, kept)
    assert store.append(STREAM, record(3), id="id-3", after=head) == store.head(STREAM)
    assert numbers(store) == [*kept, 3]


def test_a_retry_of_a_record_that_its_dead_writer_never_synced_makes_it_durable(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = filled(store, 2)
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(descriptor), sync(descriptor)))
    assert store.append(STREAM, record(1), id="id-1", after=tokens[0]) == tokens[1]
    assert synced


# ---- blobs ----


def blob_of(tmp_path: Path, digest: str) -> Path:
    return tmp_path / "blobs" / digest[:2] / digest


harmed = pytest.mark.parametrize(
    "harm",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: b"rubbish",
        lambda content: zlib.compress(b"x"),
    ],
    ids=["empty", "torn", "rubbish", "another"],
)


"""What can have become of a blob's file."""


@harmed
def test_a_blob_that_is_not_what_was_put_is_damaged(
    store: FileStore, tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    digest = store.put_blob([b"words"])
    path = blob_of(tmp_path, digest)
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(DamagedBlob) as error:
        store.open_blob(digest)
    assert str(error.value).startswith(str(path))


def test_a_blob_that_is_there_is_durable_whoever_put_it(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer may have died between the rename and the fsync of the folder."""
    store.put_blob([b"text"])
    synced: list[str] = []
    monkeypatch.setattr(durable, "sync_folder", lambda folder: synced.append(Path(folder).name))
    digest = store.put_blob([b"text"])
    assert synced[:2] == [digest[:2], "blobs"]


@pytest.mark.parametrize("died", [True, False])
def test_the_name_of_a_journal_is_durable_before_its_first_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, died: bool
) -> None:
    """Also where somebody has made the file and died: who finds it there cannot tell."""
    path = tmp_path / "journal" / "routes" / "r.jsonl"
    if died:
        path.parent.mkdir(parents=True)
        path.touch(0o600)
    synced: list[tuple[str, int]] = []
    fsync = os.fsync

    def seen(descriptor: int) -> None:
        synced.append((os.readlink(f"/proc/self/fd/{descriptor}"), path.stat().st_size))
        fsync(descriptor)

    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, seen)
    FileStore(tmp_path).append("routes/r", b"{}", id="1", after=None)
    assert (str(path.parent), 0) in synced
    assert synced[-1] == (str(path), path.stat().st_size)


def test_nothing_is_put_through_a_link_among_the_blobs(store: FileStore, tmp_path: Path) -> None:
    elsewhere, digest = tmp_path / "elsewhere", hashlib.sha256(b"words").hexdigest()
    elsewhere.mkdir()
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / digest[:2]).symlink_to(elsewhere)
    with pytest.raises(UsageError, match="is a symbolic link"):
        store.put_blob([b"words"])
    assert list(elsewhere.iterdir()) == []


OLD = b"the old columns\n" * 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tide.md"
    path.write_bytes(OLD)
    return path


@pytest.fixture(params=["exchange", "link"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two names are exchanged; or they cannot be, as on macOS and on some file systems."""
    if request.param == "link":
        monkeypatch.setattr(durable, "_renameat2", lambda: None)


# ---- a file of the user ----


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("before", [OLD, None])
def test_what_somebody_saves_at_the_last_moment_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes | None
) -> None:
    swap, saves = durable.swap, [b"saved"]

    def racing(new: Path, target: Path, aside: Path) -> None:
        if saves:
            path.write_bytes(saves.pop())
        swap(new, target, aside)

    if before is None:
        path.unlink()
    monkeypatch.setattr(durable, "swap", racing)
    with pytest.raises(Busy, match=path.name):
        users_files.replace(path, before, b"new", None)
    assert (path.read_bytes(), hidden(path)) == (b"saved", [])


# ---- a file of ralf ----


def test_files_of_killed_writers_go_with_a_later_write_and_those_of_live_ones_stay(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = os.fork()
    if not killed:
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        durable.write(path, b"half")
    os.waitpid(killed, 0)
    assert len(hidden(path)) == 1
    other = path.with_name(".ralf-other.md-0123456789ab.tmp")
    other.touch()
    durable.write(path, b"new")
    assert len(hidden(path)) == 2
    monkeypatch.setattr(durable, "_DEAD", 0.0)
    durable.write(path, b"newer")
    assert (path.read_bytes(), hidden(path)) == (b"newer", [other.name])
