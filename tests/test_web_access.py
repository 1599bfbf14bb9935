"""Who gets to see the pages: one browser, by an address that works once; nothing of another site's does."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.cookiejar import CookieJar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import pytest

pytest.importorskip("starlette")

import kit.command
import ralf
import storekit
from ralf.maintenance import ownership
from ralf.project import Project
from ralf_integrations.web.server import Server
from webkit import Client, served

ALL = ["/", "/sessions", "/routes/tide", "/tasks", "/memory", "/runs", "/search", "/changes", "/nope"]
STATIC = ["/static/style.css", "/static/page.js"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    found = Project(tmp_path_factory.mktemp("web"))
    ownership.init(found, share=False)
    ralf.record_decision("tide", "Use SQLite", rationale="one file", origin="user", root=found.root)
    return found


@pytest.fixture(scope="module")
def server(project: Project) -> Iterator[tuple[Server, Client]]:
    with served(project) as found:
        yield found


@pytest.fixture
def client(server: tuple[Server, Client]) -> Client:
    return Client(server[1].port, server[1].cookie, server[1].home)


# ---- the token ----


def test_the_address_is_exchanged_at_once_for_a_cookie_that_no_script_no_other_site_and_no_other_port_gets(
    project: Project,
) -> None:
    with browsed(project) as (browser, jar, port, elsewhere):
        answer = browser.open(f"http://127.0.0.1:{port[1]}")
        assert re.fullmatch(rf"http://127\.0\.0\.1:{port[0]}/[\w-]{{24}}/", answer.url)
        (cookie,) = jar
        assert cookie.has_nonstandard_attr("HttpOnly") and cookie.get_nonstandard_attr("SameSite") == "strict"
        assert cookie.discard and cookie.expires is None
        assert browser.open(f"http://127.0.0.1:{port[0]}{cookie.path}/routes").status == 200
        for path in ("/", "/routes", "/enter", "/static/page.js"):
            browser.open(f"http://127.0.0.1:{elsewhere.server_port}{path}")
    assert elsewhere.cookies == [None] * 4


class Elsewhere(ThreadingHTTPServer):
    """Another server of this machine, which notes the cookies that it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Noting)
        self.cookies: list[str | None] = []


class Noting(BaseHTTPRequestHandler):
    """A request of it."""

    def do_GET(self) -> None:
        """Answer, and note the cookie."""
        cast("Elsewhere", self.server).cookies.append(self.headers.get("Cookie"))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def browsed(project: Project) -> Iterator[tuple[OpenerDirector, CookieJar, tuple[int, str], Elsewhere]]:
    """A browser that keeps cookies by RFC 6265, our server's port and address, and another server."""
    server, elsewhere, jar = Server(project.root), Elsewhere(), CookieJar()
    threads = [threading.Thread(target=one) for one in (server.run, elsewhere.serve_forever)]
    for thread in threads:
        thread.start()
    try:
        address = server.address.partition(f":{server.port}")[2]
        yield build_opener(HTTPCookieProcessor(jar)), jar, (server.port, f"{server.port}{address}"), elsewhere
    finally:
        server.stop()
        elsewhere.shutdown()
        elsewhere.server_close()
        for thread in threads:
            thread.join()


@pytest.mark.ci
def test_an_address_that_was_used_lets_nobody_in_not_even_the_browser_that_has_the_cookie(
    server: tuple[Server, Client],
) -> None:
    entered = server[1]
    assert re.fullmatch(r"/enter\?token=[\w-]{43}", entered.entry)
    for cookie in ("", entered.cookie):
        answer = Client(entered.port, cookie, entered.home).get(entered.entry)
        assert (answer.status, "set-cookie" in answer.headers) == (403, False)
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert entered.get("/").status == 200


@pytest.mark.ci
def test_no_page_is_shown_without_the_cookie_nor_with_another_or_two(server: tuple[Server, Client]) -> None:
    port, cookie, home = server[1].port, server[1].cookie, server[1].home
    name = cookie.partition("=")[0]
    for wrong in ("", f"{name}=x", f"{name}=", f"{cookie}; {name}=x", cookie.replace(name, "other")):
        for path in (*ALL, *STATIC):
            answer = Client(port, wrong, home).get(path)
            assert answer.status == 403, path
            assert answer.text.startswith("error: ralf web: this browser was not let in") and "hint: " in answer.text


# ---- names, sites, forms ----


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}"]
)
def test_a_request_by_another_name_is_refused_though_it_has_the_cookie(client: Client, host: str) -> None:
    for path in (*ALL, *STATIC, "/enter?token=x"):
        answer = client.get(path, Host=host.format(port=client.port))
        assert answer.status == 421, path
        assert "decision" not in answer.text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_that_another_site_asks_for_is_refused_though_it_has_the_cookie(client: Client, site: str) -> None:
    assert client.get("/routes/tide", Sec_Fetch_Site=site).status == 403
    assert client.get("/routes/tide", Origin="http://127.0.0.1:1").status == 403
    assert client.get("/routes/tide", Sec_Fetch_Site="none").status == 200


def form(client: Client, **fields: str) -> dict[str, str]:
    made = client.get("/routes/tide").forms()["/routes/tide/decide"]
    return {**made, "decision": "Use Postgres", **fields}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "multipart/form-data; boundary=x"},
        {"Cookie": "none"},
    ],
)
def test_a_form_of_another_site_records_nothing(client: Client, project: Project, headers: dict[str, str]) -> None:
    sent = form(client)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    assert client.post("/routes/tide/decide", sent, **named).status in (403, 415)
    assert len(ralf.get_context("tide", root=project.root).decisions) == 1


def test_a_browser_that_names_the_site_of_each_request_sends_forms_of_our_pages_alone(project: Project) -> None:
    with served(project, Sec_Fetch_Site="none") as (_, client):
        sent = form(client) | {"decision": " "}
        for site in ({}, {"Sec_Fetch_Site": "none"}):
            client.headers = site
            assert client.post("/routes/tide/decide", sent).status == 403
        client.headers = {"Sec_Fetch_Site": "same-origin"}
        assert client.post("/routes/tide/decide", sent).status == 400


@pytest.mark.parametrize("token", ["", "x", "\u00e9"])
def test_a_form_without_the_token_of_our_pages_records_nothing(client: Client, project: Project, token: str) -> None:
    for path in ("decide", "drop"):
        answer = client.post(f"/routes/tide/{path}", form(client, form_token=token, id="DEC-001"))
        assert answer.status == 403
    assert client.post("/nudge", form(client, form_token=token, session="s", text="stop")).status == 403
    assert [one.status for one in ralf.get_context("tide", root=project.root).decisions] == ["active"]


# ---- what a browser is told ----


@pytest.mark.parametrize("path", [*ALL[:-2], "/nope", *STATIC])
def test_every_answer_forbids_scripts_and_frames_of_others_and_is_kept_nowhere(client: Client, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'" and policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'" and policy["form-action"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"] and "http" not in headers["content-security-policy"]
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert (headers["x-frame-options"], headers["referrer-policy"]) == ("DENY", "same-origin")
    assert "server" not in headers and "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path", ["/static/../pages.py", "/static/%2e%2e/pages.py", "/static/..%2faccess.py", "/static/"]
)
def test_nothing_but_the_static_files_lies_under_their_address(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status == 404
    assert "import" not in answer.text


@pytest.mark.parametrize("name", ["..", "a%2fb", "x.md", "%00", "a" * 80, "%2e%2e%2f%2e%2e"])
def test_a_name_that_no_route_can_have_is_refused_before_a_path_is_made_of_it(client: Client, name: str) -> None:
    assert client.get(f"/routes/{name}/files").status in (400, 404)


# ---- the server ----


def test_the_server_listens_on_the_loopback_interface_alone(server: tuple[Server, Client]) -> None:
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    port = f":{server[0].port:04X}"
    own = {line.split()[1] for line in listening if line.split()[1].endswith(port) and line.split()[3] == "0A"}
    assert own == {f"0100007F{port}"}


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET / HTTP/1.1\r\nHost: 127", b"POST /nudge HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\nse"],
)
def test_requests_that_were_never_finished_keep_nobody_out(client: Client, begun: bytes) -> None:
    begun = begun.replace(b"{host}", b"127.0.0.1:%d" % client.port)
    with ExitStack() as open_:
        for _ in range(100):
            half = open_.enter_context(socket.create_connection(("127.0.0.1", client.port)))
            half.sendall(begun)
        assert client.get("/").status == 200


@pytest.mark.ci
@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 0), (signal.SIGHUP, 0), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_the_command_prints_an_address_and_ends_without_a_trace(
    project: Project, tmp_path: Path, sent: signal.Signals, status: int
) -> None:
    environment = {**os.environ, "PYTHONPATH": storekit.PACKAGES, "TMPDIR": str(tmp_path)}
    with kit.command.start("--root", project.root, "web", cwd=project.root, env=environment) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().decode().strip()
            port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/enter\?token=[\w-]{43}", address)[1])  # type: ignore[index]
            client = Client(port)
            assert client.enter(address).status == 303
            assert "Waits for you" in client.get("/").text
        finally:
            process.send_signal(sent)
            out, said = process.communicate(timeout=storekit.HANGS)
    errors = said.decode()
    assert (process.returncode, out) == (status, b"")
    assert "token" not in errors and "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
