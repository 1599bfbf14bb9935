"""What an engine's servers keep: encrypted values that open only where they were put, by whoever has the key, and what
a reader says of those that somebody has changed, swapped or added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

import natskit
from natskit import on
from ralf.errors import Damaged, DamagedJournal, UsageError

pytestmark = pytest.mark.skipif(bool(natskit.absent()), reason=natskit.absent() or "-")

if TYPE_CHECKING or not natskit.absent():
    from ralf_integrations.stores.encryption import Cipher
    from ralf_integrations.stores.nats_link import Link
    from ralf_integrations.stores.nats_log import Log, Message
    from ralf_integrations.stores.nats_store import NatsStore

KEY, OTHER = natskit.KEY, bytes(32)
ONE, TWO = "runs/one/main", "runs/two/main"

# ---- values ----


@pytest.mark.ci
@given(st.binary(), st.text(), st.lists(st.text(), max_size=3))
def test_a_value_opens_at_its_place_and_nowhere_else(content: bytes, subject: str, place: list[str]) -> None:
    cipher = Cipher(KEY)
    value = cipher.encrypt(content, subject, *place)
    assert cipher.decrypt(value, subject, *place) == content
    for elsewhere in ([f"{subject}.", *place], [subject, *place, ""], [subject, *place[:-1], "other"]):
        with pytest.raises(Damaged):
            cipher.decrypt(value, *elsewhere)


def test_another_key_is_told_from_damage_and_neither_key_is_shown() -> None:
    ours, theirs = Cipher(KEY), Cipher(OTHER)
    with pytest.raises(UsageError) as refused:
        theirs.decrypt(ours.encrypt(b"words", "s"), "s")
    told = f"{refused.value} {refused.value.hint}"
    assert ours.id in told
    assert KEY.hex()[:8] not in told


# ---- what somebody does on the server ----


@pytest.fixture(scope="module")
def servers() -> Iterator[natskit.Servers]:
    found = natskit.Servers(1)
    found.ready()
    yield found
    found.stop()


@pytest.fixture
def store(servers: natskit.Servers, tmp_path: Path) -> NatsStore:
    """A store with three records in two streams each."""
    made: NatsStore = servers(tmp_path)
    for stream in (ONE, TWO):
        head = None
        for number in range(3):
            head = made.append(stream, b'{"n":%d}' % number, id=f"id-{number}", after=head)
    return made


def put_last(store: NatsStore, stream: str, change: Callable[[Message, Message], Message]) -> None:
    """Have somebody with the server's password write the newest message of a stream anew; `change` is told it and the
    one of the other stream.
    """

    def work(log: Log) -> None:
        subjects = [f"{log.root}.s.{each.replace('/', '.')}" for each in (stream, TWO)]
        newest, other = log.last(subjects[0]), log.last(subjects[1])
        made = change(newest, other)
        kept = {name: value for name, value in made.headers.items() if name.startswith("Ralf-") and name != "Ralf-Id"}
        log.delete(newest.seq)
        before = log.last(subjects[0])
        id_ = made.headers["Ralf-Id"]
        log.append(subjects[0], made.data, kept, id=id_, expected=before.seq)

    on(store, work)


def with_number(message: Message, number: str) -> Message:
    return message._replace(headers={**message.headers, "Ralf-Number": number})


@pytest.mark.parametrize(
    "change",
    [
        lambda ours, other: ours._replace(data=other.data),
        lambda ours, other: other,
        lambda ours, _: ours._replace(headers={**ours.headers, "Ralf-Id": "0" * 32}),
        lambda ours, _: ours._replace(data=ours.data[:-1] + bytes([ours.data[-1] ^ 1])),
        lambda ours, _: with_number(ours, "4"),
    ],
    ids=["bytes", "message", "id", "bit", "number"],
)
def test_a_record_that_somebody_changed_swapped_or_added_is_damage_after_those_before_it(
    store: NatsStore, change: Callable[[Message, Message], Message]
) -> None:
    put_last(store, ONE, change)
    found: list[bytes] = []
    with pytest.raises(DamagedJournal):
        found.extend(entry.record for entry in store.read(ONE))
    assert found in ([b'{"n":0}', b'{"n":1}'], [])
    assert len(list(store.read(TWO))) == 3


def test_a_record_that_was_replaced_and_is_put_there_again_is_damage(store: NatsStore) -> None:
    def second(log: Log) -> Message:
        newest = log.last(f"{log.root}.s.runs.one.main")
        return log.span(newest.subject, 1, newest.seq)[1]

    old = on(store, second)
    assert store._restarted(ONE, store._head(ONE).seq, ())  # a drop that broke off before it erased anything
    head = store.append(ONE, b'{"n":7}', id="id-7", after=None)
    store.append(ONE, b'{"n":8}', id="id-8", after=head)
    put_last(store, ONE, lambda *_: old)
    with pytest.raises(DamagedJournal):
        list(store.read(ONE))


# ---- keys ----


@pytest.mark.ci
def test_a_store_with_another_key_neither_reads_nor_adds_anything(servers: natskit.Servers, store: NatsStore) -> None:
    head, digest = store.head(ONE), store.put_blob([b"words"])
    link = Link(servers.address)
    wrong = NatsStore(servers.address, store._project, key=OTHER, replicas=1, link=link)
    for asked in (
        lambda: list(wrong.read(ONE)),
        lambda: wrong.entry(ONE, str(head)),
        lambda: wrong.append(ONE, b"{}", id="x", after=head),
        lambda: wrong.append("runs/new/main", b"{}", id="x", after=None),
        lambda: wrong.replace(ONE, lambda _: b"{}"),
        lambda: wrong.put_blob([b"words"]),
        lambda: list(wrong.blobs()),
    ):
        with pytest.raises(UsageError):
            asked()
    assert not wrong.has_blob(digest)
    link.close()
    assert len(list(store.read(ONE))) == 3


@pytest.mark.ci
def test_a_stream_of_the_server_that_is_not_encrypted_is_refused(servers: natskit.Servers, tmp_path: Path) -> None:
    store = servers(tmp_path)

    def without_key(log: Log) -> None:
        config = {"name": log.name, "subjects": [f"{log.root}.>"], "storage": "file", "allow_direct": True}
        log._repeated(lambda client: client.jetstream().add_stream(**config))

    on(store, without_key)
    with pytest.raises(UsageError) as refused:
        store.append(ONE, b"{}", id="x", after=None)
    assert "nats_project" in refused.value.hint
