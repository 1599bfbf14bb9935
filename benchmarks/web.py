"""The pages of `ralf web` with 200 routes, 20,000 decisions and 50 sessions: bytes, time to the last byte, and time
to the first paint in Chromium, beside an empty page of the same server in the same run.

    python benchmarks/web.py [--rounds 40] [--example]

Exit status 0 where every page is within 150 ms, 600 ms and 200 KB. Without Playwright's Python package or Chromium the
paint is left out.
"""

from __future__ import annotations

import argparse
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import web_project

PACKAGES = [str(Path(__file__).parents[1] / name) for name in ("context", "cli", "integrations", "migrations")]

LAST_BYTE, PAINT, BYTES = 150.0, 600.0, 200 << 10
"""Milliseconds, milliseconds and bytes that a page may take."""

LARGE = (
    *(
        "/",
        "/sessions",
        "/sessions?page=2",
        "/session?id=00000000-5e55-4000-8000-000000000000",
        "/routes",
        "/routes?page=4",
        "/routes?q=cursor",
        "/routes/route-000",
    ),
    *("/routes/route-000?budget=1000", "/routes/route-000?budget=8000", "/routes/route-007"),
    *("/routes/route-007/decisions?page=2", "/routes/route-000/files", "/routes/route-000/why/DEC-100"),
    *(
        "/routes/route-000/why/cp-001",
        "/routes/route-000/diff?a=cp-001&b=cp-003",
        "/tasks",
        "/memory",
        "/runs",
        "/changes",
    ),
    *("/search?q=cursor+entries", "/static/style.css", "/static/page.js"),
)

_EMPTY = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
app = Starlette(routes=[Route("/", lambda request: HTMLResponse("<!doctype html><title>x</title><p>x"))])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning", http="h11")
"""


class Asker:
    """A browser of plain HTTP with a cookie."""

    def __init__(self, port: int) -> None:
        self.port, self.cookie, self.home = port, "", ""

    def enter(self, path: str) -> None:
        """Open the printed address: keep the cookie, and the path below which the pages lie."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        headers = connection.getresponse().headers
        self.cookie = headers["set-cookie"].partition(";")[0]
        self.home = headers["location"].rstrip("/")
        connection.close()

    def ask(self, path: str) -> tuple[int, int, float]:
        """Status, bytes, and milliseconds until the last byte."""
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", self.home + path, headers={"Cookie": self.cookie} if self.cookie else {})
        answer = connection.getresponse()
        size = len(answer.read())
        taken = 1000 * (time.perf_counter() - began)
        connection.close()
        return answer.status, size, taken


@contextmanager
def served(root: Path) -> Any:
    """A server of a project, and who was let in to it."""
    command = [sys.executable, "-m", "ralf_cli", "--root", str(root), "web"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PACKAGES)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            split = urlsplit(server.stdout.readline().strip())
            asker = Asker(int(split.port or 0))
            asker.enter(f"{split.path}?{split.query}")
            yield asker, server.pid
        finally:
            server.terminate()


@contextmanager
def empty() -> Any:
    """A server of an empty page."""
    from socket import create_server

    with create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    with subprocess.Popen([sys.executable, "-c", _EMPTY, str(port)]) as server:
        try:
            asker = Asker(port)
            for _ in range(100):
                try:
                    asker.ask("/")
                    break
                except OSError:
                    time.sleep(0.1)
            yield asker
        finally:
            server.terminate()


@contextmanager
def chromium(asker: Asker) -> Any:
    """What tells how many milliseconds a page takes until its first paint; None where there is no browser."""
    program = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        context = browser.new_context()
        name, _, value = asker.cookie.partition("=")
        if value:
            context.add_cookies([{"name": name, "value": value, "url": f"http://127.0.0.1:{asker.port}{asker.home}/"}])
        page = context.new_page()

        def paint(path: str) -> float:
            page.goto(f"http://127.0.0.1:{asker.port}{asker.home}{path}")
            for _ in range(100):
                found = page.evaluate(
                    "performance.getEntriesByName('first-contentful-paint').map(one => one.startTime)"
                )
                if found:
                    return float(found[0])
                page.wait_for_timeout(20)
            return float("inf")

        yield paint
        browser.close()


def measured(
    asker: Asker, paint: Callable[[str], float] | None, path: str, rounds: int
) -> tuple[int, float, float, float]:
    """Bytes, median and 95th percentile of the last byte, median of the first paint (0: not a page, or no browser)."""
    found = [asker.ask(path) for _ in range(rounds)]
    assert {status for status, *_ in found} == {200}, path
    times = [taken for _, _, taken in found]
    painted = (
        [paint(path) for _ in range(max(3, rounds // 8))]
        if paint and path != "/changes" and "/static/" not in path
        else [0.0]
    )
    return found[0][1], median(times), sorted(times)[max(0, -(-95 * len(times) // 100) - 1)], median(painted)


def main() -> int:
    """Make the project, ask for every page, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--example", action="store_true", help="the example project of the tests instead")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.example:
            sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
            import webkit

            os.environ.update(webkit.environment(Path(folder)))
            root, paths = webkit.example(Path(folder)).root, tuple(webkit.PATHS)
        else:
            root, paths = web_project.make(Path(folder)), LARGE
        with empty() as asker, chromium(asker) as paint:
            size, middle, late, painted = measured(asker, paint, "/", asked.rounds)
            print(f"{'page':48} {'KB':>6} {'last byte, p95':>16} {'first paint':>12}   times the empty page")
            print(f"{'an empty page':48} {size / 1024:6.1f} {middle:7.1f} {late:7.1f} ms {painted:9.0f} ms")
        base, worst = middle, [0.0, 0.0, 0.0]
        with served(root) as (asker, process):
            began = time.perf_counter()
            asker.ask("/")
            asker.ask("/search?q=warm")
            print(f"the first look at all sessions, and the search index: {time.perf_counter() - began:.1f} s")
            time.sleep(2.0)  # the server reads other things once, too
            with chromium(asker) as paint:
                for path in paths:
                    size, middle, late, painted = measured(asker, paint, path, asked.rounds)
                    worst = [max(pair) for pair in zip(worst, (late, painted, float(size)), strict=True)]
                    told = f"{middle:7.1f} {late:7.1f} ms {painted:9.0f} ms {middle / base:9.1f}"
                    print(f"{path:48} {size / 1024:6.1f} {told}")
            resident = Path(f"/proc/{process}/status").read_text().partition("VmRSS:")[2].split()[0]
            print(f"memory of the server: {int(resident) / 1024:.0f} MB")
    print(f"worst: {worst[0]:.0f} ms, {worst[1]:.0f} ms, {worst[2] / 1024:.0f} KB; load {os.getloadavg()[0]:.1f}")
    return 0 if worst[0] <= LAST_BYTE and worst[1] <= PAINT and worst[2] <= BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
