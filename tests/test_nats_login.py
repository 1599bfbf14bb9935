"""Who we are to NATS servers, and who they are to us: TLS with an authority of our own, passwords, `.creds` files and
certificates; and that none of it comes out anywhere.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import natskit
from ralf import environment
from ralf.errors import Damaged, RalfError, UsageError
from ralf.project import Project
from test_nats_store import chosen

pytestmark = pytest.mark.skipif(bool(natskit.absent()), reason=natskit.absent() or "-")

if TYPE_CHECKING or not natskit.absent():
    import certificates
    from ralf_integrations.stores.nats_link import Address, Link
    from ralf_integrations.stores.nats_store import NatsStore

STREAM = "runs/one/main"
PASSWORD = "correct-horse-battery"  # noqa: S105


def told(error: RalfError) -> str:
    return f"{error} {error.hint}"


@contextmanager
def running(folder: Path, *, password: str = PASSWORD, **more: object) -> Iterator[natskit.Servers]:
    """One server, which is stopped afterwards."""
    servers = natskit.Servers(1, folder / "servers", password=password, **more)  # type: ignore[arg-type]
    servers.ready()
    try:
        yield servers
    finally:
        servers.stop()


@contextmanager
def linked(address: Address) -> Iterator[NatsStore]:
    """A store over a connection of its own."""
    link = Link(address)
    try:
        yield NatsStore(address, "p", key=natskit.KEY, replicas=1, link=link, timeout=30)
    finally:
        link.close()


INFO = '{"server_id":"x","version":"2.15.1","headers":true,"auth_required":true}'


@contextmanager
def listening(port: int = 0, info: str = INFO, answer: bytes = b"PONG\r\n") -> Iterator[tuple[int, list[bytes]]]:
    """Somebody who pretends to be a NATS server that does not encrypt: the port, and what they were told."""
    heard: list[bytes] = []
    server = socket.create_server(("127.0.0.1", port))

    def talk(connection: socket.socket) -> None:
        with connection:
            connection.settimeout(20)
            try:
                connection.sendall(f"INFO {info}\r\n".encode())
                while content := connection.recv(1 << 16):
                    heard.append(content)
                    connection.sendall(answer)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server.getsockname()[1], heard
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.fixture
def ours(tmp_path: Path) -> certificates.Authority:
    return certificates.Authority(tmp_path)


def tls(certificate: tuple[Path, Path], *more: str) -> dict[str, object]:
    lines = ", ".join([f'cert_file: "{certificate[0]}"', f'key_file: "{certificate[1]}"', *more])
    return {"more": [f"tls {{ {lines} }}"], "scheme": "tls"}


# ---- who the servers are ----


def test_records_go_to_a_server_that_our_authority_vouches_for(tmp_path: Path, ours: certificates.Authority) -> None:
    with running(tmp_path, **tls(ours.certificate("127.0.0.1"))) as servers:
        address = replace(servers.address, ca=str(ours.path))
        with linked(address) as store:
            token = store.append(STREAM, b"{}", id="x", after=None)
            assert store.head(STREAM) == token


@pytest.mark.ci
@pytest.mark.parametrize(
    ("host", "authority", "reason"),
    [
        ("127.0.0.1", "theirs", "certificate signature failure|self-signed|unable to get local issuer"),
        ("127.0.0.1", "", "self-signed|unable to get local issuer"),
        ("127.0.0.2", "ours", "IP address mismatch"),
        pytest.param("a.example", "ours", "IP address mismatch", marks=pytest.mark.release(seconds=1)),
    ],
    ids=["of another authority", "of one that the system does not know", "another address", "another name"],
)
def test_a_server_with_a_certificate_that_does_not_count_is_refused(
    tmp_path: Path, ours: certificates.Authority, host: str, authority: str, reason: str
) -> None:
    made = {"ours": ours.path, "theirs": certificates.Authority(tmp_path, "theirs").path}
    with running(tmp_path, **tls(ours.certificate(host))) as servers:
        address = replace(servers.address, ca=str(made.get(authority, "")))
        with linked(address) as store, pytest.raises(UsageError, match=f"cannot be trusted: .*({reason})") as refused:
            store.append(STREAM, b"{}", id="x", after=None)
        assert "nats_ca" in refused.value.hint
        assert PASSWORD not in told(refused.value)


def test_a_server_that_is_to_encrypt_and_does_not_is_told_nothing() -> None:
    """The client alone sends it the password."""
    with listening() as (port, heard):
        address = Address((f"tls://127.0.0.1:{port}",), "ralf", PASSWORD)
        with linked(address) as store, pytest.raises(UsageError, match="does not encrypt") as refused:
            store.head(STREAM)
        assert heard == []
        assert PASSWORD not in told(refused.value)


# ---- who we are ----

CREDS = """\
-----BEGIN NATS USER JWT-----
a-token-of-more-than-twenty-letters
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
SU-a-seed-of-more-than-twenty-letters
------END USER NKEY SEED------
"""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda path: path.chmod(0o644), "others may read"),
        (lambda path: path.unlink(), "is not there"),
        (lambda path: path.write_text("SUAHUNTER2"), "is no .creds file"),
        (lambda path: path.write_text(path.read_text().replace("SEED-----\nSU", "SEED-----\nSA")), "no seed of a user"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "not UTF-8"),
    ],
    ids=["readable", "missing", "another file", "another seed", "bytes"],
)
def test_a_creds_file_that_cannot_count_is_refused_without_its_words(
    tmp_path: Path, change: Callable[[Path], object], reason: str
) -> None:
    path = tmp_path / "ralf.creds"
    path.write_text(CREDS)
    path.chmod(0o600)
    words = [word for word in path.read_text().split() if len(word) > 20]
    change(path)
    address = Address(("nats://127.0.0.1:1",), creds=str(path))
    with linked(address) as store, pytest.raises((UsageError, Damaged), match=reason) as refused:
        store.head(STREAM)
    assert not [word for word in [*words, "HUNTER2"] if word in told(refused.value)]


@pytest.mark.parametrize(
    "more",
    [{"user": "ralf"}, {"password": "hunter2"}, {"user": "ralf", "password": "hunter2", "creds": "/x"}, {"key": "/x"}],
)
def test_half_a_login_and_two_are_refused(more: dict[str, str]) -> None:
    with pytest.raises(UsageError) as refused:
        Address(("nats://127.0.0.1:1",), **more)
    assert "hunter2" not in told(refused.value)


@pytest.mark.ci
def test_the_environment_has_the_login_in_place_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as servers:
        chosen(tmp_path, servers, "p", nats_user="somebody", nats_password="'wrong'")  # noqa: S106
        with pytest.raises(UsageError, match="refuses this user"):
            Project(tmp_path).store.head(STREAM)
        monkeypatch.setenv("RALF_NATS_USER", "ralf")
        monkeypatch.setenv("RALF_NATS_PASSWORD", PASSWORD)
        assert Project(tmp_path).store.head(STREAM) is None


# ---- where none of it comes out ----

SAYS_IT = """\
import json, os, sys
def main(arguments):
    names = ("environ", "cmdline")
    seen = [open(f"/proc/self/{name}", "rb").read().decode() for name in names]
    text = json.dumps([os.environ.get("RALF_NATS_PASSWORD"), seen, sys.stdin.read()])
    open(arguments[0] + ".new", "w").write(text)
    os.rename(arguments[0] + ".new", arguments[0])
"""


def test_a_process_that_goes_on_without_us_has_the_login_where_no_list_of_processes_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "says_it.py").write_text(SAYS_IT)
    for password in (PASSWORD, ""):
        monkeypatch.setenv("RALF_NATS_PASSWORD", password)
        if not password:
            monkeypatch.delenv("RALF_NATS_PASSWORD")
        told_in = tmp_path / f"told-{bool(password)}"
        environment.start_detached("says_it", str(tmp_path / "says_it.py"), [str(told_in)])
        while not told_in.exists():
            time.sleep(0.01)
        known, seen, rest = json.loads(told_in.read_text())
        assert (known, rest) == (password or None, "")
        assert not [text for text in seen if PASSWORD in text or "RALF_NATS" in text]


@pytest.mark.parametrize(
    "line",
    [
        "nats_servers: tls://ralf:hunter2@a.example:4222",
        "nats_servers: ['ralf:hunter2@a.example:4222']",
        "nats_servers: ['tls://ralf:hun/ter2@a.example:4222']",
        "nats_servers: ['tls://a.example:4222?password=hunter2']",
        "nats_servers: [['tls://ralf:hunter2@a']]",
        "nats_monitoring: http://ralf:hunter2@a.example:8222",
        "nats_password: {hunter2: 1}",
        "nats_password: 'hunter2",
        "nats_password: hunter2: x",
    ],
)
def test_no_error_about_the_file_repeats_a_password_in_it(tmp_path: Path, line: str) -> None:
    path = chosen(tmp_path, natskit.Servers(1), "p", nats_servers="")
    servers = "" if line.startswith("nats_servers") else "nats_servers: ['nats://127.0.0.1:1']\n"
    path.write_text(f"{path.read_text()}{servers}{line}\n")
    with pytest.raises(RalfError) as refused:
        _ = Project(tmp_path).store
    assert not [word for word in ("hunter2", "ter2") if word in told(refused.value)]
    assert "hunter2" not in repr(refused.value.__context__)
