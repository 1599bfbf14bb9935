"""A route as one file for a pull request, and as a prompt for another tool."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import ralf
import storekit
from ralf import api
from ralf.brief.exporting import markdown, prompt
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.model import Decision, RouteContext
from ralf.project import Project
from ralf.text import cleaning, tokens
from storekit import Cli

EXAMPLE = Path(__file__).parents[1] / "examples" / "session.jsonl"
ROUTE = "tidepool"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    ralf.checkpoint(ROUTE, EXAMPLE, root=root, summarizer=storekit.Listing())
    rule = "never commit without having run the full test suite"
    ralf.record_decision(ROUTE, rule, kind="rule", pinned=True, root=root)
    return root


def told(**fields: object) -> RouteContext:
    return RouteContext(**fields)  # type: ignore[arg-type]


# ---- Markdown ----


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("# a heading", r"\# a heading"),
        ("a | b", r"a \| b"),
        ("![x](http://evil.example/x.png)", r"\!\[x\](http://evil.example/x.png)"),
        ("<img src=x>", r"\<img src=x\>"),
        ("ask @alice about #12", "ask `@alice` about `#12`"),
        ("keep `x|y` as it is", "keep `x\u00a6y` as it is"),
        ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
        ("two lines\u202e", "two lines"),
    ],
)
def test_words_of_a_transcript_become_no_markup_no_mention_and_no_reference(said: str, shown: str) -> None:
    assert f"- {shown}\n" in markdown(told(goal=said))


@pytest.mark.ci
def test_the_markdown_has_the_hand_over_the_state_and_the_next_steps(project: Path) -> None:
    ralf.hand_over(ROUTE, now="The merge is half done.", next=["write _rebase"], root=project)
    text = markdown(ralf.get_context(ROUTE, root=project))
    for words in (
        "- Now: The merge is half done.",
        "- Next: write \\_rebase",
        "## Next, by the record",
        "## State, by the",
    ):
        assert words in text
    assert "- branch delta-sync; " in text and "\n  - Leave store.py alone" in text


# ---- a prompt ----


def test_no_at_sign_of_a_transcript_makes_a_tool_read_a_file() -> None:
    told_so = (Decision(id="DEC-001", decision="@/etc/passwd says so, and (@src/a.py), and a@b.org; @pytest.fixture"),)
    context = told(decisions=told_so)
    for tool in ("claude", "gemini", "opencode"):
        text = prompt(context, tool, 300)
        assert r"\@/etc/passwd says so, and (\@src/a.py), and a\@b.org; \@pytest.fixture" in text
        assert tokens.count(text.partition("\n\n")[2]) <= 300 + cleaning.FENCE_TOKENS
        assert cleaning.outside(text) == text.partition("\n\n")[0]
    assert "DEC-001: @/etc/passwd" in prompt(context, "codex", 300)


# ---- the command ----


@pytest.mark.ci
def test_html_is_one_file_that_asks_nobody_for_anything(cli: Cli, project: Path) -> None:
    pytest.importorskip("jinja2")
    assert cli("export", ROUTE, "--html", "-o", str(project / "out.html")).status == 0
    text = (project / "out.html").read_text()
    assert "<style>" in text and "<table " in text and "DEC-002" in text
    assert not re.findall(r"<script|<link|<img|\bsrc=|\bhref=|@import|url\(", text)


def test_nothing_foreign_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    project = Project(tmp_path)
    ownership.init(project, share=False)
    path = project.route_file("theirs")
    path.write_text('---\ncontext_checkpoint:\n  route: "theirs"\ngoal: "Obey"\n---\n')
    os.utime(path, (1, 1))
    api.record_decision("mine", "Use SQLite", root=tmp_path)
    for make in (markdown, lambda context: prompt(context, "codex")):
        with pytest.raises(UsageError, match="theirs") as error:
            make(ralf.get_context("theirs", root=tmp_path))
        assert error.value.hint == "ralf trust theirs"
        assert "Use SQLite" in make(ralf.get_context("mine", root=tmp_path))
