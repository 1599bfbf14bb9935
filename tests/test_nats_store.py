"""The store on NATS beyond what every store must do: what a server that dies, stops or lies leaves of its promises, and
what it is told of us.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import natskit
import ralf
import storekit
from natskit import on
from ralf.errors import Busy, DamagedJournal, UnknownToken, UsageError
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.storage import registry
from storekit import context_of

pytestmark = pytest.mark.skipif(bool(natskit.absent()), reason=natskit.absent() or "-")

if not natskit.absent():
    from ralf_integrations.stores import nats_link
    from ralf_integrations.stores.nats_link import Address, Link
    from ralf_integrations.stores.nats_log import Log
    from ralf_integrations.stores.nats_store import NatsStore

STREAM = "routes/TASK-001"


@pytest.fixture(scope="module")
def servers() -> Iterator[natskit.Servers]:
    """One server, which a test may stop and start again."""
    found = natskit.Servers(1)
    found.ready()
    yield found
    found.stop()


@pytest.fixture
def store(servers: natskit.Servers, tmp_path: Path) -> NatsStore:
    servers.ready()
    return servers(tmp_path)


def filled(store: NatsStore, count: int) -> list[str]:
    tokens: list[str] = []
    for number in range(count):
        tokens.append(store.append(STREAM, b'{"n":%d}' % number, id=f"id-{number}", after=(tokens or [None])[-1]))
    return tokens


def records(store: NatsStore) -> list[bytes]:
    return [entry.record for entry in store.read(STREAM)]


def subjects(store: NatsStore) -> list[str]:
    found = on(store, lambda log: log.subjects(f"{log.root}.>"))
    return [subject.split(".", 2)[2] for subject in found]


# ---- where records go ----


@pytest.mark.parametrize("url", ["nats://10.0.0.7:4222", "nats://example.org", "http://127.0.0.1", "nats://", "x"])
def test_an_address_that_would_send_records_in_the_clear_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        Address((url,))


def test_a_server_that_can_lose_records_is_refused(
    servers: natskit.Servers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nats_link, "OLDEST", (99, 0, 0))
    link = Link(servers.address)
    with pytest.raises(UsageError, match=r"can lose acknowledged records.*"):
        NatsStore(servers.address, "p", replicas=1, link=link, key=natskit.KEY).head(STREAM)
    link.close()


@pytest.mark.parametrize("setting", [{"max_age": 1000}, {"max_msgs": 100}, {"storage": "memory"}])
def test_a_stream_that_would_lose_records_is_refused(store: NatsStore, setting: dict[str, object]) -> None:
    def made(log: Log) -> None:
        config = {"name": log.name, "subjects": [f"{log.root}.>"], "storage": "file", "allow_direct": True}
        log._repeated(lambda client: client.jetstream().add_stream(**{**config, **setting}))

    on(store, made)
    with pytest.raises(UsageError, match="would lose records"):
        filled(store, 1)


# ---- servers that die, stop, and lose ----


@pytest.mark.ci
def test_without_a_server_it_is_busy_and_goes_on_when_there_is_one_again(servers: natskit.Servers) -> None:
    link = Link(servers.address)
    store = NatsStore(servers.address, "dies", replicas=1, timeout=3, link=link, key=natskit.KEY)
    head = filled(store, 2)[-1]
    servers.signal(0, signal.SIGKILL)
    for asked in (lambda: store.head(STREAM), lambda: store.append(STREAM, b"{}", id="x", after=head)):
        with pytest.raises(Busy):
            asked()
    servers.ready()
    patient = NatsStore(servers.address, "dies", replicas=1, timeout=60, link=link, key=natskit.KEY)
    token = patient.append(STREAM, b"{}", id="x", after=head)
    assert [entry.id for entry in patient.read(STREAM)] == ["id-0", "id-1", "x"]
    assert patient.head(STREAM) == token
    link.close()


def test_a_record_that_the_server_has_lost_is_noticed_after_those_before_it(store: NatsStore) -> None:
    tokens = filled(store, 5)
    on(store, lambda log: log.delete(int(tokens[2].split(".")[0])))
    found: list[str] = []
    with pytest.raises(DamagedJournal, match="the record 3 is missing"):
        found.extend(entry.token for entry in store.read(STREAM))
    assert found == tokens[:2]


# ---- replacing and dropping, broken off ----


class Died(Exception):
    """A process ended here."""


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Whoever erases what was replaced or dropped dies before the first message."""

    def dies(*_: object, **__: object) -> bool:
        raise Died

    monkeypatch.setattr(NatsStore, "_clear", dies)
    return monkeypatch


@pytest.mark.ci
def test_a_replacement_that_breaks_off_counts_and_sweeping_completes_it(
    store: NatsStore, dying: pytest.MonkeyPatch
) -> None:
    tokens = filled(store, 3)
    with pytest.raises(Died):
        store.replace(STREAM, lambda entry: entry.record.replace(b"1", b"9"))
    assert records(store) == [b'{"n":0}', b'{"n":9}', b'{"n":2}']
    for token in tokens:
        with pytest.raises(UnknownToken):
            store.entry(STREAM, token)
    head = store.append(STREAM, b"{}", id="more", after=store.head(STREAM))
    dying.undo()
    assert store.sweep() == 1
    assert store.sweep() == 0
    assert not on(store, lambda log: log.at(log.subject("s", STREAM), int(tokens[0].split(".")[0]))).seq
    assert store.head(STREAM) == head
    assert len(records(store)) == 4


@pytest.mark.ci
def test_what_was_replaced_or_dropped_is_nowhere_in_the_files_of_the_server(
    servers: natskit.Servers, store: NatsStore
) -> None:
    """Not even encrypted; its words never were."""
    secrets = [b"marmalade-%d" % number for number in range(4)]
    head = store.append(STREAM, b'{"text":"%s"}' % secrets[0], id="0", after=None)
    store.append(STREAM, b'{"text":"%s"}' % (secrets[1] * 100_000), id="1", after=head)
    store.append("routes/other", b'{"text":"%s"}' % secrets[2], id="2", after=None)
    digest = store.put_blob([secrets[3] * 100_000])
    kept, before = contents(store), on_disk(servers)
    assert len(kept) > 6
    assert all(content in before for content in kept)
    assert not [secret for secret in secrets if secret in before]
    store.replace(STREAM, lambda _: b"{}")
    store.drop("routes/other")
    store.drop_blob(digest)
    after = on_disk(servers)
    assert not [content for content in kept if content in after]
    assert subjects(store) == ["s.routes.TASK-001"]


def contents(store: NatsStore) -> list[bytes]:
    """The bytes of all messages, as the server has them."""
    messages = on(store, lambda log: log.span(f"{log.root}.>", 1, log.last(f"{log.root}.>").seq))
    return [message.data for message in messages if message.data]


def on_disk(servers: natskit.Servers) -> bytes:
    return b"".join(path.read_bytes() for path in servers.folder.rglob("*") if path.is_file())


# ---- choosing it ----


def chosen(root: Path, servers: natskit.Servers, name: str, **more: str) -> Path:
    """A project whose user has written a `config.local.yaml` that names the servers."""
    ownership.init(Project(root), share=False)
    path = context_of(root) / "config.local.yaml"
    lines = {
        "store": "nats",
        "nats_servers": f'["{servers.urls()[0]}"]',
        "nats_project": name,
        "nats_replicas": "1",
        **more,
    }
    path.write_text("".join(f"{key}: {value}\n" for key, value in lines.items() if value))
    return storekit.allow(path)


@pytest.mark.ci
def test_a_project_that_names_servers_keeps_its_journal_there(servers: natskit.Servers, tmp_path: Path) -> None:
    servers.ready()
    chosen(tmp_path, servers, "chosen")
    ralf.record_decision("tide", "We keep the old columns", root=tmp_path)
    assert not (context_of(tmp_path) / "journal").exists()
    key = bytes.fromhex(registry.find(tmp_path).key)  # type: ignore[union-attr]
    assert list(NatsStore(servers.address, "chosen", replicas=1, key=key).streams("routes/")) == ["routes/tide"]
    assert "old columns" in ralf.get_context("tide", root=tmp_path).render()


@pytest.mark.ci
@pytest.mark.parametrize("has_key", [True, False])
def test_another_machine_goes_on_with_a_route_only_if_it_has_the_key(
    servers: natskit.Servers, tmp_path: Path, has_key: bool
) -> None:
    """Each has a project of its own, and nothing in common but the server and the key."""
    servers.ready()
    here, there = tmp_path / "here", tmp_path / "there"
    for root in (here, there):
        root.mkdir()
    chosen(here, servers, f"shared-{has_key}")
    ralf.record_decision("tide", "We keep the old columns", root=here)
    key = registry.find(here).key  # type: ignore[union-attr]
    registry.update(there, key=key if has_key else "0f" * 32)
    chosen(there, servers, f"shared-{has_key}")
    if has_key:
        assert [*Project(there).store.read("routes/tide")]
        ralf.record_decision("tide", "And the new ones", root=there)
        assert "new ones" in ralf.get_context("tide", root=here).render()
        assert [one.revision for one in ralf.list_routes(root=here)] == [2]
        return
    for asked in (
        lambda: ralf.get_context("tide", root=there),
        lambda: ralf.record_decision("tide", "Ours", root=there),
        lambda: ralf.record_decision("new", "Ours", root=there),
    ):
        with pytest.raises(UsageError, match="another key") as refused:
            asked()
        assert refused.value.hint
    assert list(Project(here).store.streams("routes/")) == ["routes/tide"]


@pytest.mark.ci
@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"nats_project": ""}, "names no project"),
        ({"nats_servers": ""}, "names no server"),
        ({"nats_servers": '["nats://10.0.0.7:4222"]'}, "not encrypted"),
        ({"store": "redis"}, "expected files or nats"),
    ],
)
def test_servers_that_the_user_has_not_named_for_this_project_get_nothing(
    tmp_path: Path, more: dict[str, str], told: str
) -> None:
    chosen(tmp_path, natskit.Servers(1), "p", **more)
    with pytest.raises(UsageError, match=told):
        _ = Project(tmp_path).store
