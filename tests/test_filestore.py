"""What is the embedded store's own: torn and damaged lines, the id index, processes side by side, full disks, links."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ralf.errors import BlobNotFound, Conflict, DamagedBlob, DamagedJournal
from ralf.project import Project
from ralf.storage import durable, files, journal_file
from ralf.storage.filestore import FileStore, Stream
from ralf.storage.id_index import IdIndex, with_header
from ralf.storage.journal import Token
from storekit import AT_ONCE, HANGS, as_modes_say

STREAM = "routes/r"
SOURCE = Path(__file__).parents[1] / "context"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "routes" / "r.jsonl"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "ids" / "routes" / "r.idx"


def record(number: int) -> bytes:
    return json.dumps({"n": number, "text": "word " * number}).encode()


def filled(store: FileStore, count: int, stream: str = STREAM, name: str = "id") -> list[Token]:
    tokens: list[Token] = []
    for number in range(count):
        head = tokens[-1] if tokens else None
        tokens.append(store.append(stream, record(number), id=f"{name}-{number}", after=head))
    return tokens


def next_process(store: FileStore) -> FileStore:
    """The store as another process opens it, which has read nothing yet."""
    return FileStore(store._folder)


def numbers(store: FileStore) -> list[int]:
    return [json.loads(entry.record)["n"] for entry in store.read(STREAM)]


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A process of its own that runs `code`, with `store`, `STREAM` and `record` at hand."""
    head = (
        "import json, os, resource, signal, sys\n"
        f"sys.path.insert(0, {os.fspath(SOURCE)!r})\n"
        "from pathlib import Path\n"
        "from ralf.errors import Conflict\n"
        "from ralf.storage.filestore import FileStore\n"
        "store, STREAM = FileStore(Path(sys.argv[1])), 'routes/r'\n"
        "def record(number): return json.dumps({'n': number}).encode()\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", head + code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# ---- the line ----


def test_an_id_without_end_takes_no_memory() -> None:
    line = b'{"id":"' + b"x" * 4_000_000 + b"\n"
    tracemalloc.start()
    try:
        assert not journal_file.is_sound(line)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20  # where each character may be given back, 600 MB
    finally:
        tracemalloc.stop()


def test_a_line_is_framed_as_the_format_says(store: FileStore, journal: Path) -> None:
    store.append(STREAM, b'{"a":"\xc3\xa9"}', id="one", after=None)
    checksum = hashlib.sha256(b'{"a":"\xc3\xa9"}').hexdigest()[:32]
    begin = b'{"id":"one","length":10,"sha256":"%s"' % checksum.encode()
    frame = hashlib.sha256(begin).hexdigest()[:16]
    line = b'%s,"frame":"%s","record":{"a":"\xc3\xa9"}}\n' % (begin, frame.encode())
    assert journal.read_bytes() == line
    assert json.loads(line)["record"] == {"a": "\u00e9"}


def test_no_bit_of_a_line_flips_unseen(store: FileStore, journal: Path) -> None:
    filled(store, 2)
    whole = journal.read_bytes()
    for place in range(whole.index(b"\n") + 1):
        for bit in range(8):
            journal.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            with pytest.raises(DamagedJournal):
                list(store.read(STREAM))


def test_lines_of_earlier_versions_without_a_sum_of_their_frame_are_read_and_kept(
    store: FileStore, journal: Path
) -> None:
    filled(store, 3)
    earlier = re.sub(rb',"frame":"[0-9a-f]{16}"', b"", journal.read_bytes()).splitlines(keepends=True)
    journal.write_bytes(b"".join(earlier))
    tokens = [entry.token for entry in store.read(STREAM)]
    head = store.append(STREAM, record(3), id="id-3", after=tokens[-1])
    assert store.append(STREAM, record(1), id="id-1", after=head) == tokens[1]
    store.replace(STREAM, lambda entry: entry.record.replace(b'"n": 2', b'"n": 9'))
    _, *lines = journal.read_bytes().splitlines(keepends=True)
    assert lines[:2] == earlier[:2]
    assert [b'"frame"' in line for line in lines] == [False, False, True, True]
    store.archive(STREAM, next(iter(store.read(STREAM))).token)
    assert numbers(store) == [0, 1, 9, 3]


def test_journals_and_locks_are_for_their_owner_only(store: FileStore, journal: Path, tmp_path: Path) -> None:
    filled(store, 1)
    for path in (journal, tmp_path / "locks" / "streams" / "routes" / "r.journal.lock"):
        assert path.stat().st_mode & 0o077 == 0


def test_no_lock_of_a_route_is_that_of_another_ones_journal(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with (
        files.locked(project.route_lock("r.journal"), "r.journal"),
        Stream(project.folder, "routes/r").writing(timeout=0),
    ):
        pass


# ---- a torn tail ----


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_a_last_line_without_its_end_is_not_there_and_the_next_writer_removes_it(
    store: FileStore, journal: Path, cut: int
) -> None:
    tokens = filled(store, 3)
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-cut])
    assert store.head(STREAM) == tokens[1]
    assert numbers(store) == [0, 1]
    assert journal.read_bytes() == whole[:-cut]  # reading changes nothing
    with pytest.raises(Conflict):
        store.append(STREAM, record(2), id="id-2", after=tokens[2])
    assert store.append(STREAM, record(2), id="id-2", after=tokens[1]) == tokens[2]
    assert journal.read_bytes() == whole


def test_a_journal_torn_at_every_byte_loses_only_its_last_record(store: FileStore, journal: Path) -> None:
    filled(store, 2)
    whole = journal.read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(len(whole)):
        journal.write_bytes(whole[:size])
        assert numbers(store) == ([0] if size >= first else [])


def test_a_torn_tail_longer_than_what_is_read_at_once_is_removed(store: FileStore, journal: Path) -> None:
    tokens = filled(store, 2)
    with journal.open("ab") as file:
        file.write(b'{"id":"x","length":300000,"sha256":"' + b"x" * 300_000)
    assert store.head(STREAM) == tokens[1]
    store.append(STREAM, record(2), id="id-2", after=tokens[1])
    assert numbers(store) == [0, 1, 2]


def test_an_empty_journal_is_an_empty_stream(store: FileStore, journal: Path) -> None:
    journal.parent.mkdir(parents=True)
    journal.write_bytes(b"")
    assert store.head(STREAM) is None
    assert filled(store, 1) == [store.head(STREAM)]


# ---- damage in the middle ----


def damaged(journal: Path, line: int, change: Callable[[bytes], bytes]) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[line] = change(lines[line])
    journal.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"n": 2', b'"n": 3'),
        lambda line: b"{}\n",
        lambda line: b"\n",
        lambda line: b"\xff" * 20 + b"\n",
        lambda line: line[5:],
        lambda line: line.replace(b'"length":', b'"length":9'),
        lambda line: line[:-2] + b" }\n",
        lambda line: line[: len(line) // 2] + b"\n" + line[len(line) // 2 :],
    ],
)
def test_a_record_that_is_not_what_was_written_is_said_after_all_records_before_it(
    store: FileStore, journal: Path, change: Callable[[bytes], bytes]
) -> None:
    tokens = filled(store, 5)
    start = sum(len(line) for line in journal.read_bytes().splitlines(keepends=True)[:2])
    damaged(journal, 2, change)
    seen = []
    with pytest.raises(DamagedJournal) as error:
        seen.extend(entry.token for entry in store.read(STREAM))
    assert seen == tokens[:2]
    assert f"byte {start} " in str(error.value)
    assert str(error.value).startswith(str(journal))
    assert store.head(STREAM) is not None


@pytest.mark.parametrize(
    "said",
    [
        '{"offset":1e999,"last":"","archived":[]}',
        '{"offset":-5,"last":"","archived":[]}',
        '{"offset":1000000000000000000000000,"last":"","archived":[]}',
        '{"offset":5,"last":"0-aa","archived":[]}',
        '{"offset":5,"last":"","archived":[{"file":"000001-aaaaaaaaaaaa.jsonl.gz","size":1e999,"sha256":""}]}',
        '{"offset":5,"last":"","archived":[{"file":"000001-aaaaaaaaaaaa.jsonl.gz","size":6,"sha256":""}]}',
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


def test_reading_after_the_damage_goes_on_and_so_does_writing(store: FileStore, journal: Path) -> None:
    tokens = filled(store, 5)
    damaged(journal, 2, lambda line: line.replace(b'"n": 2', b'"n": 3'))
    assert [entry.token for entry in store.read(STREAM, after=tokens[2])] == tokens[3:]
    assert store.append(STREAM, record(5), id="id-5", after=tokens[-1])


def test_a_damaged_last_record_has_a_place_that_a_writer_can_go_on_from(store: FileStore, journal: Path) -> None:
    tokens = filled(store, 3)
    damaged(journal, 2, lambda line: b"x" * 5000 + b"\n")
    head = store.head(STREAM)
    assert head not in (None, *tokens)
    token = store.append(STREAM, record(3), id="id-3", after=head)
    assert [entry.token for entry in store.read(STREAM, after=head)] == [token]


def test_an_index_whose_writer_died_inside_an_entry_equals_that_of_the_journal_again(
    store: FileStore, journal: Path, index: Path
) -> None:
    tokens = filled(store, 3)
    header = index.read_bytes()[:16]
    tokens.append(next_process(store).append(STREAM, record(3), id="id-3", after=tokens[-1]))
    index.write_bytes(header + index.read_bytes()[16:])  # the entry is there, and the header does not say so
    next_process(store).append(STREAM, record(4), id="id-4", after=tokens[-1])
    places = [(entry.id, int(entry.token.partition("-")[0])) for entry in store.read(STREAM)]
    assert IdIndex(index).agrees(places)
    assert index.stat().st_size == 16 * 6


# ---- the id index ----


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:7]),
        lambda path: path.write_bytes(path.read_bytes()[:16]),
        lambda path: path.write_bytes(path.read_bytes()[:-16]),
        lambda path: path.write_bytes(b"rubbish " * 8),
        lambda path: path.write_bytes(path.read_bytes()[:8] + b"\xff" * 8 + path.read_bytes()[16:]),
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=[
        "lost",
        "empty",
        "torn",
        "torn head",
        "the head alone",
        "torn between entries",
        "rubbish",
        "ahead of the journal",
        "a folder",
    ],
)
def test_an_index_that_cannot_be_used_costs_no_id(
    store: FileStore, index: Path, harm: Callable[[Path], object]
) -> None:
    tokens = filled(store, 6)
    harm(index)
    store = next_process(store)
    for number, token in enumerate(tokens):
        assert store.append(STREAM, record(number), id=f"id-{number}", after="other") == token
    assert store.append(STREAM, record(6), id="new", after=tokens[-1]) == store.head(STREAM)


def test_no_byte_of_an_index_is_believed_that_is_another_than_was_written(store: FileStore, index: Path) -> None:
    tokens = filled(store, 3)
    next_process(store).append(STREAM, record(0), id="id-0", after=None)  # indexes what this one has not yet
    whole = index.read_bytes()
    for place, byte in enumerate(whole):
        index.write_bytes(whole[:place] + bytes([byte ^ 1]) + whole[place + 1 :])
        store = next_process(store)
        assert [store.append(STREAM, record(n), id=f"id-{n}", after=tokens[-1]) for n in range(3)] == tokens
    assert index.read_bytes() == whole


def test_a_record_is_not_noted_where_those_before_it_could_not_be(
    store: FileStore, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = filled(store, 3)
    index.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(IdIndex, "_save", lambda *_: None)  # a disk that was full at that moment
        tokens.append(store.append(STREAM, record(3), id="id-3", after=tokens[-1]))
    assert [store.append(STREAM, record(n), id=f"id-{n}", after=None) for n in range(4)] == tokens


# ---- a writer that finds the journal as it has left it ----


def test_writers_that_take_turns_see_each_other_s_records(store: FileStore) -> None:
    other, head = next_process(store), None
    for number in range(12):
        for writer in (store, other):
            before, head = head, writer.append(STREAM, record(number), id=f"{id(writer)}-{number}", after=head)
            assert store.head(STREAM) == other.head(STREAM) == head
            with pytest.raises(Conflict) as error:
                writer.append(STREAM, record(number), id="late", after=before)
            assert error.value.head == head
    for number in range(12):
        for writer in (store, other):
            assert store.append(STREAM, b"{}", id=f"{id(writer)}-{number}", after="any") is not None
    assert numbers(store) == [number for number in range(12) for _ in range(2)]


def test_ids_that_wait_for_the_index_are_known_to_the_next_process(store: FileStore, index: Path) -> None:
    tokens = filled(store, 150)
    assert index.stat().st_size < 16 * 151
    assert [store.append(STREAM, b"{}", id=f"id-{n}", after=None) for n in range(150)] == tokens
    other = next_process(store)
    assert [other.append(STREAM, b"{}", id=f"id-{n}", after=None) for n in range(150)] == tokens
    assert index.stat().st_size == 16 * 151


def test_a_journal_that_was_rewritten_meanwhile_is_not_taken_for_the_one_that_was_left(store: FileStore) -> None:
    tokens = filled(store, 3)
    other = next_process(store)
    for _ in range(4):  # so often that the file may have the number, the size and the time of before
        other.replace(STREAM, lambda entry: entry.record[::-1])
        with pytest.raises(Conflict) as error:
            store.append(STREAM, record(3), id="new", after=tokens[-1])
        assert error.value.head == other.head(STREAM)
        tokens.append(store.append(STREAM, record(len(tokens)), id=f"id-{len(tokens)}", after=error.value.head))
    assert [entry.token for entry in next_process(store).read(STREAM)][-1] == tokens[-1]


def test_what_a_writer_of_before_has_left_is_swept_by_one_that_goes_on_for_long(
    store: FileStore, journal: Path, index: Path
) -> None:
    tokens = filled(store, 3)
    index.unlink()  # as who begins to replace the journal
    left = Path(durable.temporary_beside(journal))
    left.write_bytes(b"half")
    for number in range(3, 80):
        tokens.append(store.append(STREAM, record(number), id=f"id-{number}", after=tokens[-1]))
    assert not left.exists()
    assert numbers(store) == [*range(80)]


def test_a_line_that_was_torn_meanwhile_is_cut_off(store: FileStore, journal: Path) -> None:
    tokens = filled(store, 3)
    with journal.open("ab") as file:
        file.write(b'{"id":"half')
    store.append(STREAM, record(3), id="id-3", after=tokens[-1])
    assert numbers(store) == [0, 1, 2, 3]


def test_an_append_that_fails_leaves_nothing_to_rely_on(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = filled(store, 3)

    def fail(*_: object) -> None:
        raise OSError(5, "no")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="no"):
            store.append(STREAM, record(3), id="id-3", after=tokens[-1])
    store.append(STREAM, record(3), id="id-3", after=tokens[-1])
    assert numbers(store) == [0, 1, 2, 3]


def test_appending_again_opens_the_journal_and_its_lock_alone(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = filled(store, 3)
    opened = []
    real = os.open

    def opening(path: str | Path, flags: int, mode: int = 0o777) -> int:
        opened.append(Path(path).name)
        return real(path, flags, mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opening)
        store.append(STREAM, record(3), id="id-3", after=tokens[-1])
    assert opened == ["r.journal.lock", "r.jsonl"]


def test_an_index_that_lags_behind_is_brought_up_to_date(store: FileStore, index: Path) -> None:
    tokens = filled(store, 3)
    old = index.read_bytes()
    more = [store.append(STREAM, record(3), id="id-3", after=tokens[-1])]
    index.write_bytes(old)
    assert store.append(STREAM, record(3), id="id-3", after=None) == more[0]
    assert numbers(store) == [0, 1, 2, 3]


def test_an_index_of_a_journal_that_was_taken_away_is_not_believed(store: FileStore, journal: Path) -> None:
    filled(store, 5)
    journal.unlink()
    tokens = filled(store, 5)
    assert [store.append(STREAM, record(n), id=f"id-{n}", after=None) for n in range(5)] == tokens
    assert numbers(store) == [0, 1, 2, 3, 4]


def test_an_index_of_a_journal_that_was_restored_from_elsewhere_is_not_believed(
    store: FileStore, journal: Path, tmp_path: Path
) -> None:
    filled(store, 3)
    other = FileStore(tmp_path / "backup")
    filled(other, 9, name="another")
    journal.write_bytes((tmp_path / "backup" / "journal" / "routes" / "r.jsonl").read_bytes())
    head = store.head(STREAM)
    first = next(store.read(STREAM)).token
    assert store.append(STREAM, record(0), id="another-0", after=head) == first
    assert len(numbers(store)) == 9


def test_a_wrong_entry_of_the_index_is_checked_against_the_journal(store: FileStore, index: Path) -> None:
    tokens = filled(store, 3)
    content = bytearray(index.read_bytes())
    content[16 + 16 : 16 + 24] = hashlib.sha256(b"new").digest()[:8]  # says that the second record is "new"
    index.write_bytes(with_header(bytes(content[16:]), int.from_bytes(content[8:16])))
    token = store.append(STREAM, record(3), id="new", after=tokens[-1])
    assert token not in tokens
    assert numbers(store) == [0, 1, 2, 3]


def test_a_folder_for_the_cache_that_cannot_be_made_is_no_error(store: FileStore, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    tokens = filled(store, 3)
    assert store.append(STREAM, record(1), id="id-1", after=None) == tokens[1]


# ---- processes side by side ----

APPENDER = """
for number in range(int(sys.argv[3])):
    while True:
        try:
            store.append(STREAM, record(number), id=f"{sys.argv[2]}-{number}", after=store.head(STREAM))
            break
        except Conflict as conflict:
            pass
    print(number, flush=True)
"""


def test_processes_side_by_side_lose_nothing_and_write_nothing_twice(store: FileStore, tmp_path: Path) -> None:
    writers, count = 4, 15
    processes = [child(APPENDER, tmp_path, writer, count) for writer in range(writers)]
    for process in processes:
        _, errors = process.communicate(timeout=HANGS)
        assert (process.returncode, errors) == (0, "")
    ids = [entry.id for entry in store.read(STREAM)]
    assert sorted(ids) == sorted(f"{writer}-{number}" for writer in range(writers) for number in range(count))
    for writer in range(writers):
        assert [id_ for id_ in ids if id_.startswith(f"{writer}-")] == [f"{writer}-{n}" for n in range(count)]


SWAPPER = """
for number in range(int(sys.argv[2])):
    while True:
        head, seen = None, 0
        for entry in store.read(STREAM):
            head, seen = entry.token, json.loads(entry.record)["n"]
        try:
            store.append(STREAM, record(seen + 1), id=f"{os.getpid()}-{number}", after=head)
            break
        except Conflict:
            pass
"""


def test_processes_that_read_change_and_write_lose_no_update(store: FileStore, tmp_path: Path) -> None:
    processes = [child(SWAPPER, tmp_path, 10) for _ in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=HANGS)
        assert (process.returncode, errors) == (0, "")
    assert numbers(store) == list(range(1, 41))


def test_processes_that_retry_the_same_record_land_it_once(store: FileStore, tmp_path: Path) -> None:
    processes = [child(APPENDER, tmp_path, "same", 10) for _ in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=HANGS)
        assert (process.returncode, errors) == (0, "")
    assert numbers(store) == list(range(10))


def test_a_writer_killed_at_any_moment_loses_nothing_acknowledged_and_blocks_nobody(
    store: FileStore, tmp_path: Path
) -> None:
    for round_ in range(6):
        process = child(APPENDER, tmp_path, f"round{round_}", 100_000)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * round_)
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()  # not `communicate`, which passes over what readline has buffered
        process.communicate(timeout=HANGS)
        acknowledged = 1 + rest.count("\n")
        found = [entry.id for entry in store.read(STREAM) if entry.id.startswith(f"round{round_}-")]
        assert len(found) in (acknowledged, acknowledged + 1)
        assert found == [f"round{round_}-{number}" for number in range(len(found))]
        start = time.monotonic()
        store.append(STREAM, record(0), id=f"after-{round_}", after=store.head(STREAM))
        assert time.monotonic() - start < AT_ONCE


# ---- disks that are full or fail ----

FILLING = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = os.path.getsize(Path(sys.argv[1], "journal", "routes", "r.jsonl"))
resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    store.append(STREAM, json.dumps({"n": 9, "text": "x" * 5000}).encode(), id="too much", after=store.head(STREAM))
except OSError as error:
    print(error.errno)
"""


@pytest.mark.parametrize("room", [0, 1, 40, 2500, 5000])
def test_a_write_that_falls_short_leaves_no_part_of_the_record(
    store: FileStore, journal: Path, tmp_path: Path, room: int
) -> None:
    tokens = filled(store, 3)
    before = journal.read_bytes()
    process = child(FILLING, tmp_path, room)
    output, errors = process.communicate(timeout=HANGS)
    assert (output, errors) == (f"{errno.EFBIG}\n", "")
    assert journal.read_bytes() == before
    assert store.append(STREAM, record(3), id="too much", after=tokens[-1])
    assert numbers(store) == [0, 1, 2, 3]


def test_a_record_whose_fsync_failed_is_not_there(
    store: FileStore, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = filled(store, 2)
    before = journal.read_bytes()
    calls = []

    def failing(descriptor: int) -> None:
        calls.append(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="Input/output"):
            store.append(STREAM, record(2), id="id-2", after=tokens[-1])
    assert len(calls) == 1
    assert journal.read_bytes() == before
    assert store.append(STREAM, record(2), id="id-2", after=tokens[-1]) == store.head(STREAM)


def test_a_record_whose_sync_failed_is_not_there_in_a_large_journal_either(
    store: FileStore, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is synced without its times, and room is reserved behind its end: its size stays what it holds."""
    head = store.append(STREAM, b'{"x":"%s"}' % (b"x" * 300_000), id="large", after=None)
    for number in range(3):
        head = store.append(STREAM, record(number), id=f"id-{number}", after=head)
    before = journal.read_bytes()

    def failing(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        with pytest.raises(OSError, match="Input/output"):
            store.append(STREAM, record(3), id="id-3", after=head)
    assert journal.read_bytes() == before
    assert journal.stat().st_size == len(before)
    assert store.append(STREAM, record(3), id="id-3", after=head) == store.head(STREAM)
    assert [entry.id for entry in store.read(STREAM)] == ["large", "id-0", "id-1", "id-2", "id-3"]


def test_a_record_whose_fsync_failed_and_that_cannot_be_cut_off_is_not_there_either(
    store: FileStore, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = filled(store, 2)

    def failing(*_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        patch.setattr(os, "ftruncate", failing)
        with pytest.raises(OSError, match="Input/output"):
            store.append(STREAM, record(2), id="id-2", after=tokens[-1])
    assert store.head(STREAM) == tokens[-1]
    assert numbers(store) == [0, 1]
    assert store.append(STREAM, record(3), id="id-3", after=tokens[-1]) == store.head(STREAM)
    assert numbers(store) == [0, 1, 3]


def test_a_retry_of_a_record_that_its_dead_writer_never_synced_makes_it_durable(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = filled(store, 2)
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(descriptor), sync(descriptor)))
    assert store.append(STREAM, record(1), id="id-1", after=tokens[0]) == tokens[1]
    assert synced


def test_a_folder_that_cannot_be_written_is_still_read(store: FileStore, tmp_path: Path) -> None:
    tokens = filled(store, 2)
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    try:
        for folder in folders:
            folder.chmod(0o500)
        with as_modes_say():
            assert [entry.token for entry in store.read(STREAM)] == tokens
            with pytest.raises(PermissionError):
                store.append("routes/new", record(0), id="x", after=None)
    finally:
        for folder in folders:
            folder.chmod(0o700)


# ---- links and strangers ----


def test_a_journal_that_is_a_symbolic_link_is_neither_read_nor_written(
    store: FileStore, journal: Path, tmp_path: Path
) -> None:
    filled(store, 2)
    target = tmp_path / "elsewhere"
    journal.rename(target)
    journal.symlink_to(target)
    before = target.read_bytes()
    for ask in (
        lambda: store.head(STREAM),
        lambda: list(store.read(STREAM)),
        lambda: store.append(STREAM, record(2), id="x", after=None),
    ):
        with pytest.raises(DamagedJournal, match="no regular file"):
            ask()
    assert target.read_bytes() == before


def test_a_lock_that_is_a_symbolic_link_is_not_followed(store: FileStore, tmp_path: Path) -> None:
    target = tmp_path / "target"
    lock = tmp_path / "locks" / "streams" / "routes" / "r.journal.lock"
    lock.parent.mkdir(parents=True)
    lock.symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        filled(store, 1)
    assert not target.exists()


def test_a_stranger_s_file_among_the_journals_is_no_stream(store: FileStore, journal: Path) -> None:
    filled(store, 1)
    (journal.parent / "my notes.jsonl").write_text("{}\n")
    (journal.parent / "r.jsonl.bak").write_text("{}\n")
    assert list(store.streams("")) == [STREAM]


@pytest.mark.parametrize("harm", [b"\xff", b"\\"], ids=["no UTF-8", "no JSON"])
def test_a_damaged_id_is_damage_to_read_and_no_id_to_write(store: FileStore, journal: Path, harm: bytes) -> None:
    filled(store, 2)
    head = store.head(STREAM)
    content = journal.read_bytes()
    journal.write_bytes(content[:8] + harm + content[9:])
    with pytest.raises(DamagedJournal):
        list(store.read(STREAM))
    shutil.rmtree(journal.parents[2] / "cache", ignore_errors=True)
    assert store.append(STREAM, b"{}", id="new", after=head) == store.head(STREAM)


@pytest.mark.parametrize("id_", [b"nowhere else", b"\xff"])
def test_a_part_that_no_journal_names_stays_where_a_record_in_it_may_be_the_only_one(
    store: FileStore, tmp_path: Path, id_: bytes
) -> None:
    head = filled(store, 2)[-1]
    part = tmp_path / "archive" / "journal" / "routes" / "r" / "000001-aaaaaaaaaaaa.jsonl.gz"
    part.parent.mkdir(parents=True)
    part.write_bytes(gzip.compress(journal_file.framed("another", record(9)).replace(b"another", id_)))
    store.append(STREAM, record(2), id="id-2", after=head)
    assert part.exists()


# ---- blobs ----


def blob_of(tmp_path: Path, digest: str) -> Path:
    return tmp_path / "blobs" / digest[:2] / digest


def test_a_blob_is_stored_compressed_under_its_digest(store: FileStore, tmp_path: Path) -> None:
    digest = store.put_blob([b"words " * 1000])
    stored = blob_of(tmp_path, digest).read_bytes()
    assert zlib.decompress(stored) == b"words " * 1000
    assert len(stored) < 200
    assert [path.name for path in blob_of(tmp_path, digest).parent.iterdir()] == [digest]


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
def test_putting_a_damaged_blob_again_mends_it(
    store: FileStore, tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    digest = store.put_blob([b"words"])
    path = blob_of(tmp_path, digest)
    path.write_bytes(harm(path.read_bytes()))
    store.put_blob([b"words"])
    assert store.open_blob(digest).read() == b"words"


@pytest.mark.parametrize(
    "lay",
    [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir],
    ids=["a pipe", "a link to a device", "a folder"],
)
def test_what_is_no_file_in_place_of_a_blob_hangs_nobody(
    store: FileStore, tmp_path: Path, lay: Callable[[Path], object]
) -> None:
    digest = hashlib.sha256(b"words").hexdigest()
    path = blob_of(tmp_path, digest)
    path.parent.mkdir(parents=True)
    lay(path)
    with pytest.raises(DamagedBlob):
        store.open_blob(digest)


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


def test_putting_a_blob_again_leaves_the_file_and_makes_it_new_for_whoever_prunes(
    store: FileStore, tmp_path: Path
) -> None:
    path = blob_of(tmp_path, store.put_blob([b"words"]))
    os.utime(path, (1, 1))
    before = path.stat()
    store.put_blob([b"words"])
    after = path.stat()
    assert (after.st_ino, after.st_mode, after.st_nlink) == (before.st_ino, before.st_mode, before.st_nlink)
    assert after.st_mtime > time.time() - 60


def test_a_blob_that_is_there_is_durable_whoever_put_it(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer may have died between the rename and the fsync of the folder."""
    store.put_blob([b"text"])
    synced: list[str] = []
    monkeypatch.setattr(durable, "sync_folder", lambda folder: synced.append(Path(folder).name))
    digest = store.put_blob([b"text"])
    assert synced[:2] == [digest[:2], "blobs"]


def test_a_blob_half_written_by_a_dead_process_is_not_there(store: FileStore, tmp_path: Path) -> None:
    digest = hashlib.sha256(b"words").hexdigest()
    folder = blob_of(tmp_path, digest).parent
    folder.mkdir(parents=True)
    (folder / ".ralf-dead.tmp").write_bytes(b"wor")
    assert not store.has_blob(digest)
    with pytest.raises(BlobNotFound):
        store.open_blob(digest)
    assert store.put_blob([b"words"]) == digest


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

    monkeypatch.setattr(os, "fsync", seen)
    FileStore(tmp_path).append("routes/r", b"{}", id="1", after=None)
    assert (str(path.parent), 0) in synced
    assert synced[-1] == (str(path), path.stat().st_size)
