"""What every store must do. Another store is one more line in `STORES`; the words are those of `ralf.storage.journal`.

A test of files runs for the stores that have some.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from memory_store import MemoryStore

import natskit
from examples import examples
from ralf.errors import BlobNotFound, Conflict, UnknownToken, UsageError
from ralf.storage import filestore
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Entry, Store, Token
from ralf.storage.own import OwnStore

STORES: dict[str, Callable[[Path], Store]] = {
    "FileStore": FileStore,
    "MemoryStore": MemoryStore,
    "OwnStore": lambda folder: OwnStore(FileStore(folder), lambda: "1f"),
    **natskit.SERVERS,
}
STREAM = "routes/TASK-001"
quick = settings(
    max_examples=examples(30),
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def of_files(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a test of the files in which a store keeps its streams."""
    test.__dict__["of_files"] = True
    return test


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "opened" in metafunc.fixturenames:
        of_files = metafunc.function.__dict__.get("of_files", False)
        able = [name for name, store in STORES.items() if not of_files or store(Path("none")).files is not None]
        metafunc.parametrize("opened", [STORES[name] for name in able], ids=able, indirect=True)


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Opens the store, again and again, as other processes would."""
    natskit.ready(request.param)
    return lambda: request.param(tmp_path / "store")


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    return opened()


def record(number: int = 0, text: str = "") -> bytes:
    return json.dumps({"n": number, "text": text}, ensure_ascii=False).encode()


def filled(store: Store, count: int, stream: str = STREAM) -> list[Token]:
    """Append `count` records; their places."""
    tokens: list[Token] = []
    for number in range(count):
        head = tokens[-1] if tokens else None
        tokens.append(store.append(stream, record(number), id=f"id-{number}", after=head))
    return tokens


# ---- append and read ----


def test_a_stream_that_does_not_exist_is_empty(store: Store) -> None:
    assert list(store.read(STREAM)) == []
    assert store.head(STREAM) is None
    assert list(store.streams("")) == []


def test_records_come_back_oldest_first_with_place_id_and_bytes(opened: Callable[[], Store]) -> None:
    tokens = filled(opened(), 5)
    filled(opened(), 2, "routes/other")
    for _ in range(2):
        assert list(opened().read(STREAM)) == [Entry(token, f"id-{n}", record(n)) for n, token in enumerate(tokens)]
    assert opened().head(STREAM) == tokens[-1]
    assert len(set(tokens)) == 5


def test_reading_goes_on_after_any_place(store: Store) -> None:
    tokens = filled(store, 5)
    for number, token in enumerate(tokens):
        assert [entry.token for entry in store.read(STREAM, after=token)] == tokens[number + 1 :]


def test_the_newest_record_is_found_in_one_look(opened: Callable[[], Store]) -> None:
    assert opened().newest(STREAM) is None
    tokens = filled(opened(), 3)
    assert opened().append(STREAM, record(3, "x" * 100_000), id="id-3", after=tokens[-1])
    assert opened().newest(STREAM) == [*opened().read(STREAM)][-1]


@pytest.mark.parametrize("token", ["", "0", "nonsense", "0-" + "0" * 32, "99999-" + "0" * 32, "-1-x", "\u0663-x"])
def test_a_place_that_the_stream_does_not_have_is_unknown(store: Store, token: Token) -> None:
    with pytest.raises(UnknownToken):
        list(store.read(STREAM, after=token))
    filled(store, 2)
    with pytest.raises(UnknownToken):
        list(store.read(STREAM, after=token))


def test_a_place_of_another_stream_is_unknown(store: Store) -> None:
    store.append("routes/other", record(77, "longer than the other ones"), id="x", after=None)
    token = store.append("routes/other", record(78), id="y", after=store.head("routes/other"))
    filled(store, 3)
    with pytest.raises(UnknownToken):
        list(store.read(STREAM, after=token))


def test_streams_are_found_by_the_beginning_of_their_names(store: Store) -> None:
    for stream in ("routes/a", "routes/ab", "routes/b", "agents/a", "inbox/x/y"):
        filled(store, 1, stream)
    assert sorted(store.streams("")) == ["agents/a", "inbox/x/y", "routes/a", "routes/ab", "routes/b"]
    assert sorted(store.streams("routes/")) == ["routes/a", "routes/ab", "routes/b"]
    assert sorted(store.streams("routes/a")) == ["routes/a", "routes/ab"]
    assert list(store.streams("runs/")) == []


@pytest.mark.ci
@of_files
def test_a_mark_is_the_same_only_while_its_stream_is(
    opened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filestore, "_SETTLED", 0)
    store = opened()
    head = filled(store, 2)[-1]
    seen = [store.files.marks("routes").get("TASK-001", "")]
    assert opened().files.marks("routes").get("TASK-001") == seen[0] != ""
    store.append("routes/b", record(), id="b", after=None)
    assert store.files.marks("routes")["TASK-001"] == seen[0]
    for change in (
        lambda: store.append(STREAM, record(2), id="c", after=head),
        lambda: store.replace(STREAM, lambda entry: entry.record.replace(b'"n": 0', b'"n": 9')),
        lambda: store.files.archive(STREAM, str(store.head(STREAM))),
    ):
        change()
        seen.append(store.files.marks("routes")["TASK-001"])
    store.drop(STREAM)
    assert "TASK-001" not in store.files.marks("routes")
    assert len(set(seen)) == 4


@pytest.mark.parametrize(
    "stream", ["", "/", "../x", "routes/../x", "/etc/x", "routes/", "routes//a", "routes/a b", "a\0"]
)
def test_a_name_that_is_no_stream_s_is_refused(store: Store, stream: str) -> None:
    with pytest.raises(UsageError):
        store.append(stream, record(), id="x", after=None)
    with pytest.raises(UsageError):
        store.head(stream)
    with pytest.raises(UsageError):
        list(store.read(stream))


def test_a_record_with_a_line_break_is_refused(store: Store) -> None:
    with pytest.raises(UsageError):
        store.append(STREAM, b'{\n"a":1}', id="x", after=None)
    assert store.head(STREAM) is None


@pytest.mark.ci
@given(
    found=st.lists(
        st.tuples(st.text(min_size=1, max_size=200), st.text(max_size=50)), max_size=5, unique_by=lambda item: item[0]
    )
)
@quick
def test_any_id_and_any_json_come_back_byte_by_byte(store: Store, found: list[tuple[str, str]]) -> None:
    stream = f"routes/r{hashlib.sha256(repr(found).encode()).hexdigest()[:20]}"
    made = [
        (id_, json.dumps({"text": text, "\u2028": '"}\\'}, ensure_ascii=n % 2 == 0))
        for n, (id_, text) in enumerate(found)
    ]
    made = [(id_, text.encode("utf-8", "replace").decode()) for id_, text in made]
    for id_, text in made:
        head = store.head(stream)
        token = store.append(stream, text.encode(), id=id_, after=head)
        assert store.head(stream) == token
        assert store.append(stream, text.encode(), id=id_, after=head) == token
    assert [(entry.id, entry.record.decode()) for entry in store.read(stream)] == made


@pytest.mark.parametrize("id_", ["x" * 200, "\u00e9" * 200, "\U0001f980" * 200, '"' * 200, "\0" * 200, "\n}", "\u2028"])
def test_an_id_of_any_200_characters_is_an_id(store: Store, id_: str) -> None:
    token = store.append(STREAM, record(0), id=id_, after=None)
    assert store.head(STREAM) == token
    assert store.append(STREAM, record(0), id=id_, after=None) == token
    assert store.append(STREAM, record(1), id="next", after=token) == store.head(STREAM)
    assert [entry.id for entry in store.read(STREAM)] == [id_, "next"]


def test_a_record_of_megabytes_comes_back_and_the_next_one_too(store: Store) -> None:
    big = record(1, "x" * 3_000_000)
    token = store.append(STREAM, big, id="big", after=None)
    store.append(STREAM, record(2), id="small", after=token)
    assert [len(entry.record) for entry in store.read(STREAM)] == [len(big), len(record(2))]


def at_once(*works: Callable[[], None]) -> None:
    """Do works in threads of their own; fails with what any of them raises."""
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


def read_while(opened: Callable[[], Store], count: int, work: Callable[[], None]) -> None:
    """Read a stream over and over while some work is done: all of its records are of one number, and none older."""
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not done.is_set():
            found = [json.loads(entry.record)["n"] for entry in opened().read(STREAM)]
            assert found == found[:1] * count
            seen.append(found[0])

    def write() -> None:
        try:
            work()
        finally:
            done.set()

    at_once(read, write)
    assert seen == sorted(seen)


@pytest.mark.ci
def test_a_reader_never_sees_a_part_of_a_record(opened: Callable[[], Store]) -> None:
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            entries = list(opened().read(STREAM))
            assert [json.loads(entry.record)["n"] for entry in entries] == list(range(len(entries)))

    def write() -> None:
        store, head = opened(), None
        try:
            for number in range(60):
                head = store.append(STREAM, record(number, "x" * 20_000), id=f"{number}", after=head)
        finally:
            done.set()

    at_once(read, write)


# ---- once per id, and compare and swap ----


def test_a_record_lands_once_per_id_whatever_the_caller_saw(opened: Callable[[], Store]) -> None:
    first, second = filled(opened(), 2)
    for head in (None, first, second, "nonsense"):
        assert opened().append(STREAM, record(0), id="id-0", after=head) == first
        assert opened().append(STREAM, b'{"other":1}', id="id-1", after=head) == second
    assert [entry.record for entry in opened().read(STREAM)] == [record(0), record(1)]


def test_a_new_id_lands_behind_the_head_and_behind_another_place_it_is_looked_for(opened: Callable[[], Store]) -> None:
    first, second = filled(opened(), 2)
    assert opened().append(STREAM, record(2), id="id-1", after=first, is_new=True) == second
    third = opened().append(STREAM, record(2), id="id-2", after=second, is_new=True)
    with pytest.raises(Conflict):
        opened().append(STREAM, record(3), id="id-3", after=second, is_new=True)
    assert [entry.token for entry in opened().read(STREAM)] == [first, second, third]


def test_the_same_id_lands_in_each_stream(store: Store) -> None:
    filled(store, 1, "routes/one")
    filled(store, 1, "routes/other")
    assert len(list(store.read("routes/other"))) == 1


def test_a_writer_that_saw_another_head_is_told_the_new_one_and_writes_nothing(store: Store) -> None:
    first, second = filled(store, 2)
    for head in (None, first, "nonsense"):
        with pytest.raises(Conflict) as conflict:
            store.append(STREAM, record(9), id="new", after=head)
        assert conflict.value.head == second
    assert len(list(store.read(STREAM))) == 2
    assert store.append(STREAM, record(9), id="new", after=second) == store.head(STREAM)


@pytest.mark.ci
def test_asking_for_the_head_takes_no_longer_in_a_long_stream(store: Store) -> None:
    def asked(stream: str) -> float:
        best = 1.0
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(20):
                store.head(stream)
            best = min(best, time.perf_counter() - start)
        return best

    filled(store, 1, "routes/short")
    head = None
    for number in range(300):
        head = store.append("routes/long", record(number, "x" * 10_000), id=f"{number}", after=head)
    assert asked("routes/long") < 20 * asked("routes/short")


@pytest.mark.ci
def test_of_writers_with_the_same_place_one_wins_each_time(opened: Callable[[], Store]) -> None:
    rounds, writers = 10, 4
    barrier = threading.Barrier(writers, timeout=20)
    won: list[tuple[int, Token]] = []

    def write(writer: int) -> None:
        store = opened()
        for number in range(rounds):
            barrier.wait()
            head = store.head(STREAM)
            barrier.wait()
            try:
                token = store.append(STREAM, record(number), id=f"{writer}-{number}", after=head)
            except Conflict as conflict:
                assert conflict.head != head
            else:
                won.append((number, token))

    at_once(*(partial(write, number) for number in range(writers)))
    assert [token for _, token in sorted(won)] == [entry.token for entry in opened().read(STREAM)]
    assert len(won) == rounds


# ---- rewriting ----


@pytest.mark.parametrize("wipe", [True, False])
def test_records_that_are_rewritten_keep_their_ids_and_their_order(opened: Callable[[], Store], wipe: bool) -> None:
    filled(opened(), 5)
    changed = opened().replace(
        STREAM, lambda entry: record(9, "other") if entry.id == "id-2" else entry.record, wipe=wipe
    )
    assert changed == 1
    assert [(entry.id, entry.record) for entry in opened().read(STREAM)] == [
        (f"id-{n}", record(9, "other") if n == 2 else record(n)) for n in range(5)
    ]


@pytest.mark.parametrize(("text", "wipe"), [("", True), ("a longer text than before", True), ("", False)])
def test_every_place_of_before_is_unknown_after_a_rewrite(store: Store, text: str, wipe: bool) -> None:
    tokens = filled(store, 4)
    store.replace(STREAM, lambda entry: record(7, text) if entry.id == "id-3" else entry.record, wipe=wipe)
    for token in tokens:
        with pytest.raises(UnknownToken):
            list(store.read(STREAM, after=token))
        with pytest.raises(UnknownToken):
            store.entry(STREAM, token)
    assert store.head(STREAM) not in tokens


def test_a_stream_goes_on_after_a_rewrite_and_after_the_next_one(store: Store) -> None:
    old = filled(store, 3)[-1]
    for number in range(3):
        store.replace(
            STREAM,
            lambda entry, number=number: record(number, "x" * number * 100),  # type: ignore[misc]
            wipe=number != 1,
        )
        with pytest.raises(Conflict):
            store.append(STREAM, record(5), id="new", after=old)
        head = store.head(STREAM)
        token = store.append(STREAM, record(5), id=f"new-{number}", after=head)
        assert [entry.token for entry in store.read(STREAM, after=head)] == [token]
        assert store.append(STREAM, record(6), id="id-1", after=token) == list(store.read(STREAM))[1].token
        assert store.entry(STREAM, token).record == record(5)
    assert [entry.id for entry in store.read(STREAM)] == ["id-0", "id-1", "id-2", "new-0", "new-1", "new-2"]


def test_a_rewrite_that_changes_nothing_does_nothing(store: Store) -> None:
    tokens = filled(store, 3)
    assert store.replace(STREAM, lambda entry: entry.record) == 0
    assert [entry.token for entry in store.read(STREAM)] == tokens
    assert store.replace("routes/none", lambda entry: entry.record) == 0
    assert list(store.streams("")) == [STREAM]


def test_a_rewrite_that_breaks_off_changes_nothing(store: Store) -> None:
    tokens = filled(store, 3)

    def change(entry: Entry) -> bytes:
        if entry.id == "id-2":
            raise ZeroDivisionError
        return record(9)

    with pytest.raises(ZeroDivisionError):
        store.replace(STREAM, change)
    with pytest.raises(UsageError):
        store.replace(STREAM, lambda entry: entry.record + b"\n")
    assert [(entry.token, entry.record) for entry in store.read(STREAM)] == [
        (token, record(n)) for n, token in enumerate(tokens)
    ]


@pytest.mark.ci
def test_who_reads_during_a_rewrite_sees_all_as_it_was_or_all_as_it_is(opened: Callable[[], Store]) -> None:
    head = None
    for number in range(20):
        head = opened().append(STREAM, record(0, "x" * 5_000), id=f"{number}", after=head)
    reading = opened().read(STREAM)
    first = next(reading)

    def rewrite() -> None:
        for number in range(1, 30):
            assert opened().replace(STREAM, lambda _: record(number, "x" * (number % 3) * 1_000)) == 20  # noqa: B023

    read_while(opened, 20, rewrite)
    assert {json.loads(entry.record)["n"] for entry in [first, *reading]} == {0}


# ---- archiving ----


@pytest.mark.parametrize("archived", [False, True])
def test_a_stream_that_is_dropped_is_gone_and_may_be_begun_anew(opened: Callable[[], Store], archived: bool) -> None:
    store = opened()
    tokens = filled(store, 4)
    filled(store, 2, "routes/other")
    archive = store.files
    if archived and archive is not None:
        assert archive.archive(STREAM, tokens[-1])
    store.drop(STREAM)
    store.drop(STREAM)
    store.drop("routes/never-there")
    assert list(opened().read(STREAM)) == []
    assert store.head(STREAM) is None
    assert archive is None or archive.archived("routes") == frozenset()
    assert STREAM not in store.streams("")
    with pytest.raises(UnknownToken):
        store.entry(STREAM, tokens[0])
    assert len(filled(store, 3)) == len(list(store.read(STREAM))) == 3
    assert len(list(store.read("routes/other"))) == 2


@of_files
def test_an_archived_stream_reads_as_before_under_the_tokens_of_before(opened: Callable[[], Store]) -> None:
    tokens = filled(opened(), 8)
    assert opened().files.archived("routes") == frozenset()
    for _ in range(2):
        assert opened().files.archive(STREAM, tokens[-1])
        assert opened().files.archived("routes") == {STREAM.removeprefix("routes/")}
    assert list(opened().read(STREAM)) == [Entry(token, f"id-{n}", record(n)) for n, token in enumerate(tokens)]
    for n, token in enumerate(tokens):
        assert opened().entry(STREAM, token).record == record(n)
        assert [entry.token for entry in opened().read(STREAM, after=token)] == tokens[n + 1 :]
    assert opened().head(STREAM) == tokens[-1]
    assert list(opened().streams("")) == [STREAM]


@of_files
def test_the_next_record_brings_an_archived_stream_back_and_an_archived_id_lands_once(
    opened: Callable[[], Store],
) -> None:
    tokens = filled(opened(), 4)
    assert opened().files.archive(STREAM, tokens[3])
    with pytest.raises(Conflict):
        opened().append(STREAM, record(9), id="new", after=tokens[2])
    assert opened().append(STREAM, record(9), id="id-1", after=None) == tokens[1]
    token = opened().append(STREAM, record(9), id="new", after=tokens[3])
    assert [entry.token for entry in opened().read(STREAM, after=tokens[2])] == [tokens[3], token]
    assert opened().files.archived("routes") == frozenset()


@of_files
def test_a_stream_that_somebody_has_written_to_is_not_archived(store: Store) -> None:
    tokens = filled(store, 3)
    with pytest.raises(Conflict):
        store.files.archive(STREAM, tokens[1])
    assert store.files.archived("routes") == frozenset()
    assert not store.files.archive("routes/never-there", tokens[1])


@of_files
def test_archived_records_are_rewritten_like_others(store: Store) -> None:
    tokens = filled(store, 6)
    assert store.files.archive(STREAM, tokens[-1])
    changed = store.replace(STREAM, lambda entry: record(9, "x") if entry.id in ("id-0", "id-5") else entry.record)
    assert changed == 2
    assert [entry.record for entry in store.read(STREAM)] == [record(9, "x"), *map(record, range(1, 5)), record(9, "x")]
    for token in tokens:
        with pytest.raises(UnknownToken):
            store.entry(STREAM, token)
    now = [entry.token for entry in store.read(STREAM)]
    assert store.files.archive(STREAM, now[-1])
    assert [entry.token for entry in store.read(STREAM)] == now


@pytest.mark.ci
@of_files
def test_who_reads_while_records_are_archived_and_rewritten_sees_all_of_them(opened: Callable[[], Store]) -> None:
    head = None
    for number in range(40):
        head = opened().append(STREAM, record(0, "x" * 2_000), id=f"{number}", after=head)

    def archive() -> None:
        for number in range(1, 20):
            opened().files.archive(STREAM, str(opened().head(STREAM)))
            opened().replace(STREAM, lambda _: record(number, "x" * 2_000))  # noqa: B023

    read_while(opened, 40, archive)


# ---- blobs ----


@given(chunks=st.lists(st.binary(max_size=2000), max_size=4))
@quick
def test_a_blob_comes_back_and_its_digest_is_that_of_its_bytes(store: Store, chunks: list[bytes]) -> None:
    digest = store.put_blob(iter(chunks))
    assert digest == hashlib.sha256(b"".join(chunks)).hexdigest()
    assert store.put_blob([b"".join(chunks)]) == digest
    with store.open_blob(digest) as file:
        assert file.read() == b"".join(chunks)


def test_a_blob_is_there_until_it_is_dropped(opened: Callable[[], Store]) -> None:
    digest = opened().put_blob([b"words"])
    assert opened().has_blob(digest)
    opened().drop_blob(digest)
    assert not opened().has_blob(digest)
    with pytest.raises(BlobNotFound):
        opened().open_blob(digest)
    opened().drop_blob(digest)
    assert opened().put_blob([b"words"]) == digest
    assert opened().has_blob(digest)


def test_every_blob_is_listed_with_its_size_and_when_it_was_last_put(opened: Callable[[], Store]) -> None:
    assert list(opened().blobs()) == []
    begin = time.time() - 2  # clocks of file systems are coarse
    digests = {opened().put_blob([b"words" * 100]), opened().put_blob([b"others"])}
    listed = list(opened().blobs())
    assert {blob.digest for blob in listed} == digests
    assert all(blob.size > 0 and begin <= blob.put <= time.time() + 2 for blob in listed)
    opened().drop_blob(digests.pop())
    assert {blob.digest for blob in opened().blobs()} == digests


@pytest.mark.parametrize("digest", ["", "../../x", "0" * 63, "A" * 64, "0" * 64 + "\n", "\u0660" * 64])
def test_what_is_no_digest_is_refused(store: Store, digest: str) -> None:
    with pytest.raises(UsageError):
        store.open_blob(digest)
    with pytest.raises(UsageError):
        store.has_blob(digest)
    with pytest.raises(UsageError):
        store.drop_blob(digest)


def test_chunks_that_break_off_leave_nothing(store: Store) -> None:
    def chunks() -> object:
        yield b"half"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.put_blob(chunks())  # type: ignore[arg-type]
    assert not store.has_blob(hashlib.sha256(b"half").hexdigest())


def test_sweeping_takes_nothing_that_is_kept(opened: Callable[[], Store]) -> None:
    assert opened().sweep() == 0
    digest = opened().put_blob([b"kept"])
    assert opened().sweep() == 0
    assert opened().has_blob(digest)
