"""The pages in a real browser: no error in its console, no request to anybody else, no finding of axe, painted soon,
and all that a person does with keys and the slider.

Needs Chromium and Playwright's Python package; for the findings RALF_TEST_AXE names `axe.min.js` of the package
axe-core (`npm pack axe-core`).
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

import ralf
import webkit
from examples import each_second
from ralf.project import Project
from ralf_integrations.web.server import Server
from webkit import PATHS, ROUTE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = os.environ.get("RALF_TEST_AXE", "")
FIRST_PAINT = 600.0  # milliseconds

PAGES = [path for path in PATHS if not path.startswith("/static/")]

pytestmark = [
    pytest.mark.release(seconds=60),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.filterwarnings("ignore"),
]


class Browser:
    """Chromium that was let in to a server; notes what goes wrong in it."""

    def __init__(self, playwright: Any, server: Server) -> None:
        self._browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        self.origin = f"http://127.0.0.1:{server.port}{server.access.home}"
        self.problems: list[str] = []
        first = self.page()
        first.goto(server.address)
        self.entered_at = first.url
        self._cookies = first.context.cookies()
        first.context.close()

    def page(self, **options: Any) -> Any:
        """A new page."""
        context = self._browser.new_context(**options)
        if hasattr(self, "_cookies"):
            context.add_cookies(self._cookies)
        page = context.new_page()
        page.on("console", lambda said: self.problems.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda asked: self._note(asked.url))
        return page

    def _note(self, url: str) -> None:
        if not url.startswith((f"{self.origin}/", "data:")):
            self.problems.append(f"asked {url}")

    def close(self) -> None:
        """End it."""
        self._browser.close()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with webkit.made(tmp_path_factory.mktemp("web")) as found:
        yield found


@pytest.fixture(scope="module")
def browser(project: Project) -> Iterator[Browser]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    server = Server(project.root)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        with sync_api.sync_playwright() as playwright:
            found = Browser(playwright, server)
            yield found
            found.close()
    finally:
        server.stop()
        thread.join()


@pytest.fixture
def page(browser: Browser) -> Iterator[Any]:
    found = browser.page()
    browser.problems.clear()
    yield found
    found.context.close()
    assert browser.problems == []


def wait_for(page: Any, expression: str) -> None:
    """Wait until JavaScript says yes; Playwright's own way would need what the policy of the pages forbids."""
    for _ in range(100):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(expression)


def first_paint(page: Any) -> float:
    """Milliseconds from the start of a page's loading until something of it is painted, the least of three times."""
    least = float("inf")
    for _ in range(3):
        page.wait_for_timeout(200)
        page.reload()
        wait_for(page, "performance.getEntriesByName('first-contentful-paint').length")
        least = min(least, page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        if least < FIRST_PAINT:
            break
    return least


def test_the_address_with_the_token_is_left_at_once(browser: Browser) -> None:
    assert browser.entered_at == f"{browser.origin}/"


@pytest.mark.parametrize("path", PAGES)
def test_each_page_is_painted_soon_without_an_error_or_a_request_to_anybody_else(
    browser: Browser, page: Any, path: str
) -> None:
    page.goto(browser.origin + path)
    assert page.locator("h1").count() == 1
    painted = first_paint(page)
    if painted >= FIRST_PAINT:  # a busy machine is late with a bare file, too, of which ours take up to three times
        page.goto(f"{browser.origin}/static/style.css")
        assert painted < 5 * first_paint(page)


BROKEN = """() => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (node.parentElement.closest(".unseen, .skip, script, svg, details:not([open])")) continue;
    for (const word of node.data.matchAll(/[\\p{L}\\p{N}]{2,24}/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size > 1) found.push(word[0]);
    }
  }
  return found;
}"""
"""The words of a page that stand on more than one line."""


@pytest.mark.parametrize(
    ("scheme", "width"), each_second([("light", 1280), ("dark", 1280), ("dark", 390), ("light", 390)])
)
def test_no_page_has_a_finding_of_axe_is_wider_than_its_window_or_breaks_a_word(
    browser: Browser, scheme: str, width: int
) -> None:
    page = browser.page(color_scheme=scheme, viewport={"width": width, "height": 900})
    found = {}
    for path in PAGES:
        page.goto(browser.origin + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate(BROKEN) == [], path
        if AXE:
            page.evaluate(Path(AXE).read_text(encoding="utf-8"))
            violations = page.evaluate("axe.run()")["violations"]
            found[path] = [(one["id"], one["nodes"][0]["html"][:200]) for one in violations]
    page.context.close()
    assert {path: one for path, one in found.items() if one} == {}
    if not AXE:
        pytest.skip("RALF_TEST_AXE does not name axe.min.js: only the width and the words were looked at")


def test_without_a_script_the_slider_is_a_form_and_every_page_can_be_read(browser: Browser) -> None:
    page = browser.page(java_script_enabled=False)
    page.goto(f"{browser.origin}/routes/{ROUTE}")
    page.get_by_role("link", name="1,000", exact=True).click()
    assert "The brief at 1,000 tokens" in page.locator("#brief h2").inner_text()
    page.locator("summary", has_text="arrived").first.click()
    assert "Context of" in page.locator("details[open] pre").inner_text()
    page.context.close()


def test_the_keyboard_reaches_the_content_first_and_goes_from_page_to_page(browser: Browser, page: Any) -> None:
    page.goto(f"{browser.origin}/routes")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url(f"{browser.origin}/tasks")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"


def test_an_open_page_shows_a_new_decision_by_itself_but_not_while_somebody_writes(
    browser: Browser, page: Any, project: Project
) -> None:
    page.goto(f"{browser.origin}/routes/storage")
    page.wait_for_timeout(2_500)
    ralf.record_decision("storage", "Vacuum the database on Sundays", origin="user", root=project.root)
    wait_for(page, "document.querySelector('#decisions').textContent.includes('Vacuum')")
    page.locator("summary", has_text="Record a decision").click()
    page.locator("#decision").fill("Half a thou")
    ralf.record_decision("storage", "Vacuum it on Mondays, too", origin="user", root=project.root)
    wait_for(page, "document.querySelector('#live').classList.contains('new')")
    assert page.locator("#decision").input_value() == "Half a thou"


def test_a_decision_is_recorded_in_the_browser(browser: Browser, page: Any, project: Project) -> None:
    page.goto(f"{browser.origin}/routes/archive")
    page.locator("summary", has_text="Record a decision").click()
    page.locator("#decision").fill("Keep the index in memory")
    page.get_by_role("button", name="Record it").click()
    page.wait_for_url("**/routes/archive?done=recorded-DEC-*")
    assert "Recorded DEC-" in page.locator("[role=status]").inner_text()
    assert ralf.get_context("archive", root=project.root).decisions[-1].origin == "user"


def test_a_script_of_another_site_gets_nothing_and_sends_nothing(browser: Browser, project: Project) -> None:
    """A page of another origin with the cookie's browser: it can neither read, nor frame, nor send."""
    page = browser.page()
    page.goto("data:text/html,<h1>elsewhere</h1>")
    browser.problems.clear()
    read = page.evaluate(
        "url => fetch(url, {credentials: 'include', mode: 'no-cors'}).then(a => a.type, e => 'refused')",
        f"{browser.origin}/routes/{ROUTE}",
    )
    assert read in ("refused", "opaque")
    sent = f"{browser.origin}/routes/archive/drop"
    page.set_content(f'<form method="post" action="{sent}"><input name="id" value="DEC-001"><button>x</button></form>')
    page.get_by_role("button").click()
    page.wait_for_load_state()
    assert "ralf web" in page.content()
    page.context.close()
    browser.problems.clear()
