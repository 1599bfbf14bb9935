"""The route file is for people: its body begins with the brief, and what they write into it counts."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
from contexts import as_read
from ralf.model import (
    ActiveWork,
    Decision,
    Facts,
    PathFact,
    RequestFact,
    RouteContext,
)
from ralf.route import filed, routefile
from ralf.text import tokens
from storekit import route_file
from test_hand_edits import made as made

WORDS = "some words of ordinary prose, which say nothing, but take up room in the file that holds them and more " * 2


def read(content: str | bytes) -> RouteContext:
    """The context that a file holds."""
    return routefile.parse(content if isinstance(content, bytes) else content.encode(), "file")


def text_of(root: Path) -> str:
    """The route file of the test's route."""
    return route_file(root, "tide").read_text(encoding="utf-8")


# ---- facts ----


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_a_file_with_its_facts_in_the_front_matter_is_read_and_written_anew(version: str) -> None:
    front = (
        f'context_checkpoint:\n  version: "{version}"\n  route: "tide"\nfacts:\n  paths:\n'
        '    - {path: "a.py", did: ["edited"]}\n  requests:\n    - {request: "Go on"}\n  names: ["x"]\n'
    )
    found = read(f"---\n{front}---\n\n## Compressed History\n")
    assert found.facts == Facts((PathFact("a.py", ("edited",)),), requests=(RequestFact("Go on"),), names=("x",))
    written = routefile.render(found)
    assert read(written) == as_read(found)


def test_a_file_of_version_1_2_is_read_to_the_same_and_written_in_the_new_layout() -> None:
    found = read((Path(__file__).parent / "data/route-1.2.0.md").read_text(encoding="utf-8"))
    assert found.active_work.now == ""
    assert [item.decision for item in found.decisions] == ["Keep the old endpoint"]
    assert [one.title for one in found.body.sections] == [
        '"Move the tide table from CSV to SQLite. Heights stay in\u2026"'
    ]
    assert found.body.before == "" and not found.body.is_brief_edited
    written = filed.content_of(found).decode()
    assert [line for line in written.splitlines() if line.startswith("## ")] == [
        *("## Decisions", "## Compressed History")
    ]
    assert read(written.replace("1.2.0", "1.3.0")).active_work == found.active_work


# ---- the brief ----


@pytest.mark.ci
def test_the_brief_in_a_file_has_a_bound_whatever_the_route_holds() -> None:
    for words in (WORDS, "x ", "\u65e5\u672c\u8a9e ", "{}[]();,. "):
        statement = words * 3_000
        decisions = tuple(Decision(f"DEC-{n}", kind=kind, decision=statement) for n, kind in enumerate(("rule", "")))
        work = ActiveWork(last_statement=statement, now=f"- {statement}")
        brief = filed.brief_of(RouteContext(goal=statement, active_work=work, decisions=decisions))
        assert tokens.estimate(brief) <= 700 + tokens.estimate(work.now)


def test_words_that_a_person_replaces_everywhere_are_one_edit_and_no_note(project: Path) -> None:
    path = route_file(project, "tide")
    path.write_text(text_of(project).replace("Keep the old columns", "Keep the OLD columns"), encoding="utf-8")
    context = ralf.get_context("tide", root=project)
    assert "Keep the OLD columns" in [item.decision for item in context.decisions]
    assert context.body.before == ""
