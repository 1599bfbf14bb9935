"""The route file is for people: it begins with the brief, its front matter is at most half of it, and facts stand in
its body, where they can be read and edited.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

import ralf
import schemas
from contexts import as_read
from ralf.errors import DamagedRouteFile
from ralf.format import routefile, schema
from ralf.model import (
    ActiveWork,
    Body,
    Decision,
    Facts,
    PathFact,
    RequestFact,
    RouteContext,
    Section,
    Source,
)
from ralf.route import filed
from ralf.route.corrections import record_decision
from ralf.text import tokens
from storekit import V100, records_of, route_file
from test_hand_edits import edit, made as made, project as project, write

WORDS = "some words of ordinary prose, which say nothing, but take up room in the file that holds them and more " * 2


def read(content: str | bytes) -> RouteContext:
    """The context that a file holds."""
    return routefile.parse(content if isinstance(content, bytes) else content.encode(), "file")


def text_of(root: Path) -> str:
    """The route file of the test's route."""
    return route_file(root, "tide").read_text(encoding="utf-8")


# ---- facts ----


def test_where_decisions_were_said_stands_once_a_session() -> None:
    decisions = tuple(
        Decision(f"DEC-{n}", decision=f"d {n}", source=Source("s1", n, n + 2, "ab12"), further_sources=again)
        for n, again in ((1, ()), (2, (Source("s1", 9, 9, "cd"),)), (3, (Source("s2", 4, 4, ""),)))
    )
    content = routefile.render(RouteContext(decisions=decisions))
    assert "- lines in session: s1: DEC-1 1-3 ab12, DEC-2 2-4 ab12, DEC-2 9 cd, DEC-3 3-5 ab12\n" in content
    assert "- lines in session: s2: DEC-3 4\n" in content
    assert "source" not in content.partition("\n---\n")[0]
    assert read(content) == as_read(RouteContext(decisions=decisions))


@pytest.mark.parametrize(
    "decisions",
    [
        (Decision("DEC-1", decision="a", source=Source("two words", 1, 1, "ab")),),
        (Decision("DEC-1", decision="a", source=Source("s", 1, 1, "ab", {"path": "DECISIONS.md"})),),
        (
            Decision("DEC-1", decision="a", source=Source("s", 1)),
            Decision("DEC-1", decision="b", source=Source("s", 2)),
        ),
        (
            Decision("DEC-1", decision="a", source=Source("s1", 1)),
            Decision("DEC-2", decision="b", source=Source("s2", 2), further_sources=(Source("s1", 3),)),
            Decision("DEC-3", decision="c", source=Source("a, b", 2), further_sources=(Source("s1", 3),)),
        ),
        (Decision(decision="a", source=Source("s", 1)),),
        (Decision("DEC-1", decision="a", further_sources=(Source("s", 1),)),),
    ],
)
def test_a_source_that_a_line_cannot_tell_stays_with_its_decision(decisions: tuple[Decision, ...]) -> None:
    context = RouteContext(decisions=decisions)
    assert read(routefile.render(context)).decisions == as_read(context).decisions


@pytest.mark.parametrize(
    ("mark", "line"), [("<!-- ralf:facts ends -->", 4), ("<!-- ralf:brief x1: y -->", 4), ("<!-- ralf:facts: z -->", 4)]
)
def test_half_a_part_is_damage_and_says_where(mark: str, line: int) -> None:
    with pytest.raises(DamagedRouteFile, match=f"line {line}: .*ralf:") as caught:
        read(f"---\n---\ntext\n{mark}\nmore\n")
    assert caught.value.line == line


def test_a_file_that_was_cut_off_is_no_edit_that_takes_all_facts_out(project: Path) -> None:
    before = ralf.get_context("tide", root=project)
    assert before.facts != Facts()
    path, whole = route_file(project, "tide"), text_of(project)
    path.write_text(whole[: whole.index("\n## Compressed History") + 60], encoding="utf-8")
    after = ralf.get_context("tide", root=project)
    assert (after.facts, after.decisions) == (before.facts, before.decisions)
    begins, ends = whole.index("<!-- ralf:facts: "), whole.index("<!-- ralf:facts ends -->")
    path.write_text(whole[:begins] + whole[ends + len("<!-- ralf:facts ends -->") :], encoding="utf-8")
    assert ralf.get_context("tide", root=project).facts == before.facts  # what is derived comes back


def test_a_line_that_a_person_writes_among_the_facts_becomes_a_note_and_what_they_delete_there_comes_back(
    project: Path,
) -> None:
    whole = text_of(project)
    path = next(line for line in whole.splitlines() if line.startswith("- edited: "))
    edit(project, f"{path}\n", "Ask Ann.\n")
    record_decision("tide", "Round to a centimetre", root=project)
    above, _, part = text_of(project).partition("<!-- ralf:brief ")
    assert "Ask Ann." in above and "Ask Ann." not in part and path in part


def test_older_decisions_below_the_history_are_edited_like_others() -> None:
    context = RouteContext(decisions=tuple(Decision(f"DEC-{n:03d}", decision=f"{n} {WORDS}") for n in range(60)))
    content = routefile.render(context)
    line = next(one for one in content.splitlines() if one.startswith("- DEC-003: "))
    other = f"{line[:40]} and so on. Because: it is.\n- Sail at dawn\n  Because: the tide turns"
    found = read(content.replace(line, other))
    assert [(item.id, item.decision, item.rationale) for item in found.decisions[3:5]] == [
        ("DEC-003", f"{line[11:40]} and so on", "it is."),
        ("", "Sail at dawn", "the tide turns"),
    ]
    before = as_read(context).decisions
    assert found.decisions[:3] == before[:3] and found.decisions[5:] == before[4:]


_PART = "<!-- ralf:facts: x -->\n**Commits**\n\n- 64274e0 {}\n<!-- ralf:facts ends -->\n"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (_PART.format("Old") + "\n" + _PART.format("New"), 9),
        ("<!-- ralf:brief x1: y -->\n" + _PART.format("New") + "<!-- ralf:brief ends -->\n", 4),
        ("<!-- ralf:facts: a person quotes it -->\n\n" + _PART.format("New"), 5),
        ("<!-- ralf:brief x1: y -->\nNow\n<!-- ralf:brief ends -->\n\n<!-- ralf:facts: z -->\n", 7),
    ],
    ids=["twice", "within", "quoted", "half, below a whole one"],
)
def test_of_two_parts_none_is_taken_for_the_truth(body: str, line: int) -> None:
    with pytest.raises(DamagedRouteFile, match=f"line {line}: ") as caught:
        read(f"---\n---\n{body}")
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
    assert "facts:\n" not in written.partition("\n---\n")[0]
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


# ---- at most half in front ----


@pytest.mark.parametrize("seed", range(12))
def test_the_front_matter_has_at_most_half_of_a_file_that_is_not_short(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    count = rng.choice((20, 60, 150))
    decisions = tuple(
        Decision(
            f"DEC-{n:03d}",
            timestamp="2026-03-01T08:00:00Z",
            decision=WORDS[: rng.randrange(20, 180)],
            rationale=WORDS[: rng.choice((0, 150))],
            source=Source("0cf3db51-1c73-43bb-8d05-dc02739514a5", n, n + 3, "ab12cd34ef56ab12"),
            origin="agent",
        )
        for n in range(count)
    )
    context = RouteContext(
        goal="Carry the tables over",
        active_work=ActiveWork(last_statement=WORDS * rng.choice((1, 4))),
        decisions=decisions,
        body=Body(sections=(Section(1, "One", f"- {WORDS * rng.choice((1, 30))}"),)),
    )
    content = filed.content_of(context).decode()
    front, _, body = content.partition("\n---\n")
    sizes = tokens.count(front), tokens.count(body)
    assert sum(sizes) < 4_000 or sizes[0] <= sizes[1]
    assert read(content) == as_read(context, content)
    assert tokens.estimate(content) <= routefile.estimate(context)


# ---- the brief ----


def test_the_body_is_notes_rules_now_decisions_history_in_this_order(project: Path) -> None:
    edit(project, "\n---\n\n", "\n---\n\n## Notes\n\nAsk Ann first.\n\n")
    record_decision("tide", "Never guess a height", kind="rule", root=project)
    body = text_of(project).partition("\n---\n")[2]
    headings = [line for line in body.splitlines() if line.startswith("## ")]
    assert headings == ["## Notes", "## Rules", "## Now", "## Decisions", "## Compressed History", "## Facts"]
    write(project)
    again = text_of(project).partition("\n---\n")[2]
    assert [line for line in again.splitlines() if line.startswith("## ")] == headings


def test_what_the_record_says_of_now_stands_in_the_body_alone_and_is_read_back(project: Path) -> None:
    content = text_of(project)
    now = ralf.get_context("tide", root=project).active_work.now
    assert now and content.count(now) == 1 and "now:" not in content.partition("\n---\n")[0]
    assert read(content).active_work.now == now


@pytest.mark.ci
def test_the_brief_in_a_file_has_a_bound_whatever_the_route_holds() -> None:
    for words in (WORDS, "x ", "\u65e5\u672c\u8a9e ", "{}[]();,. "):
        statement = words * 3_000
        decisions = tuple(Decision(f"DEC-{n}", kind=kind, decision=statement) for n, kind in enumerate(("rule", "")))
        work = ActiveWork(last_statement=statement, now=f"- {statement}")
        brief = filed.brief_of(RouteContext(goal=statement, active_work=work, decisions=decisions))
        assert tokens.estimate(brief) <= routefile.BRIEF_TOKENS + tokens.estimate(work.now)


def test_a_brief_does_not_depend_on_what_only_a_reader_knows_or_counted(project: Path) -> None:
    context = ralf.get_context("tide", root=project)
    reader = replace(context, warnings=("w",), stuck="s", in_run="r", command="python -m ralf")
    assert filed.content_of(reader) == filed.content_of(context) == route_file(project, "tide").read_bytes()


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


# ---- the schema ----


def test_the_schema_that_is_shipped_is_that_of_the_model() -> None:
    assert filed.SCHEMA_FILE.read_text(encoding="utf-8") == schema.text()


def test_a_file_names_the_schema_that_lies_beside_it(project: Path) -> None:
    path = route_file(project, "tide")
    named = re.search(r"(?m)^# yaml-language-server: \$schema=(.*)$", text_of(project))
    assert named is not None
    beside = path.parent / named[1]
    assert beside.read_bytes() == filed.SCHEMA_FILE.read_bytes()
    beside.write_text("{}", encoding="utf-8")
    write(project)
    assert beside.read_bytes() == filed.SCHEMA_FILE.read_bytes()


def test_a_schema_that_a_person_names_takes_the_place_of_ours(project: Path) -> None:
    edit(project, "$schema=route-file.schema.json", "$schema=https://example.org/mine.json")
    write(project)
    assert re.findall(r"\$schema=(.*)", text_of(project)) == ["https://example.org/mine.json"]


def test_the_schema_takes_files_of_every_version_and_tells_what_no_file_may_say(project: Path) -> None:
    front = text_of(project).partition("\n---\n")[0]
    assert schemas.problems(text_of(project)) == schemas.problems(V100) == []
    wrong = front.replace("\ndecisions:\n", "\ndecisions:\n  - {id: {a: b}}\n").replace("revision: 4", "revision: x")
    assert [line.partition(":")[0] for line in schemas.problems(f"{wrong}\n---\n")] == [
        "$.context_checkpoint.revision",
        "$.decisions[0].id",
    ]
