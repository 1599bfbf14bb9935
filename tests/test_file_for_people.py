"""The route file is for people: its body begins with the brief, and what they write into it counts."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
from contexts import as_read
from ralf.errors import DamagedRouteFile
from ralf.model import (
    ActiveWork,
    Decision,
    Facts,
    PathFact,
    RequestFact,
    RouteContext,
)
from ralf.route import filed, routefile
from ralf.route.corrections import record_decision
from ralf.text import tokens
from storekit import records_of, route_file
from test_hand_edits import edit, made as made, project as project, write

WORDS = "some words of ordinary prose, which say nothing, but take up room in the file that holds them and more " * 2


def read(content: str | bytes) -> RouteContext:
    """The context that a file holds."""
    return routefile.parse(content if isinstance(content, bytes) else content.encode(), "file")


def text_of(root: Path) -> str:
    """The route file of the test's route."""
    return route_file(root, "tide").read_text(encoding="utf-8")


# ---- facts ----


@pytest.mark.parametrize(
    ("mark", "line"), [("<!-- ralf:facts ends -->", 4), ("<!-- ralf:brief x1: y -->", 4), ("<!-- ralf:facts: z -->", 4)]
)
def test_half_a_part_is_damage_and_says_where(mark: str, line: int) -> None:
    with pytest.raises(DamagedRouteFile, match=f"line {line}: .*ralf:") as caught:
        read(f"---\n---\ntext\n{mark}\nmore\n")
    assert caught.value.line == line


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


@pytest.mark.ci
def test_lines_that_a_person_writes_into_our_part_become_notes(project: Path) -> None:
    edit(project, "\n## Now\n", "\n## Now\n\nAsk Ann first.\n- DEC-001: no, ask Bob\n")
    assert "Ask Ann first." in ralf.get_context("tide", root=project).body.before
    record_decision("tide", "Round to a centimetre", root=project)
    above, _, part = text_of(project).partition("\n---\n")[2].partition("<!-- ralf:brief ")
    assert above == "\n(written under Now)\nAsk Ann first.\n- DEC-001: no, ask Bob\n\n"
    assert "Ask Ann first." not in part
    assert [record["kind"] for record in records_of(project, "tide")].count("edit") == 1
    write(project)
    assert text_of(project).count("Ask Ann first.") == 1


def test_lines_of_our_part_that_a_person_deletes_come_back(project: Path) -> None:
    now = ralf.get_context("tide", root=project).active_work.now
    edit(project, now, now.partition("\n")[2])
    record_decision("tide", "Round to a centimetre", root=project)
    assert now in text_of(project)
    assert "edit" not in [record["kind"] for record in records_of(project, "tide")]


def test_words_that_a_person_replaces_everywhere_are_one_edit_and_no_note(project: Path) -> None:
    path = route_file(project, "tide")
    path.write_text(text_of(project).replace("Keep the old columns", "Keep the OLD columns"), encoding="utf-8")
    context = ralf.get_context("tide", root=project)
    assert "Keep the OLD columns" in [item.decision for item in context.decisions]
    assert context.body.before == ""
