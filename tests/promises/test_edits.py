"""What a person writes into a file counts, whatever editor saves it, and costs nothing that others wrote meanwhile."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from promises.user import NOTES, User, save

pytestmark = pytest.mark.ci
MADE = """
import functools, ralf, sys
decide = functools.partial(ralf.record_decision, sys.argv[1], origin="user")
decide("Never rebase the branch", kind="rule")
decide("Keep levels for 15 seconds", rationale="the gauge is slow")
decide("Draw the charts in metres")
"""
NUMBERS = itertools.count(1)
RULE, LEVELS, CHARTS = "Never rebase the branch", "Keep levels for 15 seconds", "Draw the charts in metres"
OURS, PIER, LONGER = [RULE, LEVELS, CHARTS], "Moor at the pier", "Keep levels for 20 seconds"


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    """Somebody who has typed `ralf init`, and gives each test a route of its own."""
    folder = tmp_path_factory.mktemp("edits")
    found = User(folder / "home", folder / "project")
    found.does("init")
    return found


@pytest.fixture
def route(user: User) -> str:
    """A route of three decisions, of which the first is a rule."""
    name = f"harbour-{next(NUMBERS)}"
    made = user.python(MADE, name)
    assert made.status == 0, made
    return name


@pytest.fixture
def path(user: User, route: str) -> Path:
    """Its file."""
    return user.route_file(route)


def body(text: str) -> int:
    """Where the body begins."""
    return text.index("\n---\n", 4) + 5


def bullet(path: Path, number: int) -> re.Match[str]:
    """The bullet of a decision in the body."""
    text = path.read_text()
    found = re.compile(rf"^- DEC-00{number}\b.*\n", re.MULTILINE).search(text, body(text))
    assert found is not None, text
    return found


def write_below(path: Path, number: int, line: str) -> None:
    """Write a bullet below that of a decision."""
    end, text = bullet(path, number).end(), path.read_text()
    save(path, text[:end] + line + "\n" + text[end:])


def reword(path: Path, number: int, old: str, new: str) -> None:
    """Change the bullet of a decision."""
    found, text = bullet(path, number), path.read_text()
    assert old in found[0]
    save(path, text[: found.start()] + found[0].replace(old, new) + text[found.end() :])


def strike(path: Path, number: int) -> None:
    """Delete the bullet of a decision."""
    found, text = bullet(path, number), path.read_text()
    save(path, text[: found.start()] + text[found.end() :])


def type_yaml(path: Path) -> None:
    """Type a decision into the front matter."""
    text = path.read_text()
    start = text.index("decisions:\n") + len("decisions:\n")
    save(path, text[:start] + '  - decision: "Moor at the pier"\n    status: "active"\n' + text[start:])


def reword_yaml(path: Path, old: str, new: str) -> None:
    """Change words of a decision in the front matter."""
    text = path.read_text()
    save(path, text[: body(text)].replace(old, new, 1) + text[body(text) :])


ROWS: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "a bullet below a rule": (lambda path: write_below(path, 1, f"- {PIER}"), [*OURS, PIER]),
    "a bullet below a decision": (lambda path: write_below(path, 2, f"- {PIER}"), [*OURS, PIER]),
    "a changed bullet": (lambda path: reword(path, 2, "15", "20"), [RULE, LONGER, CHARTS]),
    "a deleted bullet": (lambda path: strike(path, 3), [RULE, LEVELS]),
    "a decision in YAML": (type_yaml, [PIER, *OURS]),
    "changed words in YAML": (lambda path: reword_yaml(path, LEVELS, LONGER), [RULE, LONGER, CHARTS]),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_decision_edited_in_the_file_is_one_at_once_and_stays(user: User, route: str, path: Path, name: str) -> None:
    edit, expected = ROWS[name]
    edit(path)
    assert sorted(user.decisions(route)) == sorted(expected)
    user.does("decide", route, "Go on")
    assert sorted(user.decisions(route)) == sorted([*expected, "Go on"])
    kept = user.does("show", route, "--json").json()["decisions"]
    rules = [one["decision"] for one in kept if one.get("kind") == "rule"]
    assert rules == [RULE, PIER][: 2 if name == "a bullet below a rule" else 1]


@pytest.mark.parametrize("name", ["a note", "a changed bullet", "changed words in YAML"])
def test_the_log_has_an_edit_and_undo_takes_it_back(user: User, route: str, path: Path, name: str) -> None:
    before = len(user.does("log", route, "--json").json())
    if name == "a note":
        user.write_note(route, "The pilot boat is red.")
    else:
        ROWS[name][0](path)
    user.does("decide", route, "Go on")
    newest, edit = user.does("log", route, "--json").json()[:2]
    assert name == "a note" or sorted(user.decisions(route)) == sorted([*ROWS[name][1], "Go on"])
    assert newest["text"] == "Go on" and edit["revision"] == newest["revision"] - 1 == before + 1
    user.has_typed("undo", route, f"r{edit['revision']}")
    assert user.decisions(route) == [*OURS, "Go on"]
    assert "pilot boat" not in path.read_text()


def test_an_edit_is_seen_by_the_command_the_api_and_a_hook_before_anything_is_written(
    user: User, route: str, path: Path
) -> None:
    user.does("route", route)
    reword_yaml(path, "15 seconds", "20 seconds")
    before = path.read_bytes()
    assert "20 seconds" in user.does("show", route, "--brief").out
    read = user.python(f"import ralf; print(ralf.get_context('{route}').render(max_tokens=2500))")
    assert "20 seconds" in read.out and "15 seconds" not in read.out
    handed = user.session().handed("UserPromptSubmit", prompt=f"Go on with {route}.")
    assert "20 seconds" in handed and "15 seconds" not in handed
    assert path.read_bytes() == before


HANDED = """\
## Now
The parser is done
## Next
- Mend the gauge
- Draw the charts
## Open
- Who pays for the gauge?
- Who asks the harbour?
## Decided
- Moor at the pier
  why: it is deep there
"""


def handed(user: User, route: str) -> tuple[list[str], dict[str, str], str]:
    """What is next, by id what is open and who wrote it, and who wrote the moment."""
    found = user.does("show", route, "--json").json()["handover"]
    kept = {one["id"]: f"{one['text']} ({one['author']})" for one in found["kept"]}
    return found["last"]["next"], kept, found["last"]["author"]


HANDED_ROWS: dict[str, tuple[str, str, object]] = {
    "a changed bullet": ("pays for the gauge?", "pays for both?", "Who pays for both? (file)"),
    "a removed bullet": ("- OPEN-001 Who pays for the gauge?\n", "", None),
    "a bullet without its id": ("- OPEN-001 Who pays", "- Who pays", "Who pays for the gauge? (agent)"),
}


@pytest.mark.parametrize("name", HANDED_ROWS)
def test_a_bullet_of_the_hand_over_that_is_changed_or_removed_in_the_file_is_so_at_once_and_stays(
    user: User, route: str, path: Path, name: str
) -> None:
    user.does("handover", route, stdin=HANDED)
    old, new, expected = HANDED_ROWS[name]
    user.edit(path, old, new)
    for _ in range(2):
        steps, kept, author = handed(user, route)
        assert (kept.get("OPEN-001"), kept["OPEN-002"]) == (expected, "Who asks the harbour? (agent)")
        assert (steps, author) == (["Mend the gauge", "Draw the charts"], "agent")
        user.does("decide", route, "Go on")
    assert user.decisions(route) == [*OURS, "Moor at the pier", "Go on"]


def test_a_bullet_added_to_the_hand_over_in_the_file_is_an_entry_of_its_own(user: User, route: str, path: Path) -> None:
    user.does("handover", route, stdin=HANDED)
    user.edit(path, "**Open:**\n", "**Open:**\n- Who tows the barge?\n")
    user.edit(path, "**Decided:**\n", "**Decided:**\n- Sail at dawn Because: the tide turns\n")
    for _ in range(2):
        assert handed(user, route)[1]["OPEN-003"] == "Who tows the barge? (file)"
        user.does("decide", route, "Go on")
    made = user.does("show", route, "--json").json()["decisions"]
    assert [(one["decision"], one.get("rationale", "")) for one in made[3:]] == [
        ("Moor at the pier", "it is deep there"),
        ("Sail at dawn", "the tide turns"),
        ("Go on", ""),
    ]
    assert "- OPEN-003 (the file, " in path.read_text() and "(written under" not in path.read_text()


def test_a_next_step_changed_in_the_file_is_the_files_and_the_rest_of_the_text_stays(
    user: User, route: str, path: Path
) -> None:
    user.does("handover", route, stdin=f"{HANDED}## Weather\nFog until noon\n")
    text = path.read_text()
    save(path, text[: body(text)] + text[body(text) :].replace("- Mend the gauge\n", "- Buy a gauge\n", 1))
    for _ in range(2):
        steps, kept, author = handed(user, route)
        assert (steps, author) == (["Buy a gauge", "Draw the charts"], "file")
        assert sorted(kept) == ["OPEN-001", "OPEN-002"]
        user.does("decide", route, "Go on")
    assert "Fog until noon" in path.read_text() and "Mend the gauge" not in path.read_text()


def test_a_section_of_a_persons_own_is_in_every_brief_and_found_by_search(user: User, route: str, path: Path) -> None:
    user.write_note(route, "The pilot boat is red.")
    user.does("decide", route, "Go on")
    for words in (["show", route], ["show", route, "--brief"], ["search", "pilot boat"]):
        assert "The pilot boat is red." in user.does(*words).out


def test_an_open_code_fence_in_a_note_swallows_nothing_below_it(user: User, route: str, path: Path) -> None:
    user.write_note(route, "The pilot boat is red.")
    user.edit(path, NOTES, "## Open\n\n```\nramp = 4\n\n" + NOTES)
    user.does("decide", route, "Go on")
    user.write_note(route, "The ferry is white.")
    user.does("decide", route, "And on")
    text = path.read_text()
    assert f"\n{NOTES}\n" in text
    assert [text.count(words) for words in ("ramp = 4", "The pilot boat is red.", "The ferry is white.")] == [1, 1, 1]
    assert user.decisions(route) == [*OURS, "Go on", "And on"]


def test_a_note_that_an_older_buffer_displaced_stays_until_a_person_removes_it(
    user: User, route: str, path: Path
) -> None:
    buffer = path.read_text()
    user.write_note(route, "Note A")
    user.does("decide", route, "Go on")
    save(path, buffer)
    user.write_note(route, "Note B")
    user.does("decide", route, "And on")
    user.write_note(route, "Note C")
    user.does("decide", route, "To the end")
    text = path.read_text()
    assert [words for words in ("Note A", "Note B", "Note C") if words not in text] == []


def test_two_saves_from_one_buffer_count_once_and_cost_no_decision(user: User, route: str, path: Path) -> None:
    user.write_note(route, "The pilot")
    buffer = path.read_text()
    user.does("decide", route, "Go on")
    save(path, buffer.replace("The pilot", "The pilot boat is red."))
    user.does("decide", route, "And on")
    save(path, buffer.replace("The pilot", "The pilot boat is red."))
    user.does("decide", route, "To the end")
    assert re.findall("The pilot.*", path.read_text()) == ["The pilot boat is red."]
    assert user.decisions(route) == [*OURS, "Go on", "And on", "To the end"]


@pytest.mark.parametrize("is_whole", [True, False], ids=["the file", "its body"])
def test_an_older_text_that_is_pasted_over_the_file_costs_nothing_that_others_added_since(
    user: User, route: str, path: Path, is_whole: bool
) -> None:
    older = path.read_text()
    user.does("decide", route, "Go on")
    newer = path.read_text()
    save(path, older if is_whole else newer[: body(newer)] + older[body(older) :])
    user.write_note(route, "The pilot boat is red.")
    user.does("decide", route, "And on")
    assert user.decisions(route) == [*OURS, "Go on", "And on"]
    assert "The pilot boat is red." in path.read_text()


def test_of_two_values_for_one_field_neither_is_lost_and_the_command_says_so(
    user: User, route: str, path: Path
) -> None:
    buffer = path.read_text()
    reword_yaml(path, "15 seconds", "20 seconds")
    user.does("decide", route, "Go on")
    save(path, buffer)
    reword_yaml(path, "15 seconds", "30 seconds")
    ran = user.does("decide", route, "And on")
    assert str(path) in ran.err or route in ran.err
    stands = [text for text in user.decisions(route) if "seconds" in text]
    assert stands in (["Keep levels for 20 seconds"], ["Keep levels for 30 seconds"])
    assert user.files_holding("20 seconds") and user.files_holding("30 seconds")
    assert "20 seconds" in user.does("log", route, "--json").out or "20 seconds" in path.read_text()


# ---- what is no edit ----

SAME: dict[str, Callable[[bytes], bytes]] = {
    "the same bytes": lambda text: text,
    "CRLF": lambda text: text.replace(b"\n", b"\r\n"),
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "no line end at the end": lambda text: text.rstrip(b"\n"),
}


@pytest.mark.parametrize("name", SAME)
def test_a_file_that_an_editor_only_saved_is_no_edit(user: User, route: str, path: Path, name: str) -> None:
    path.write_bytes(SAME[name](path.read_bytes()))
    user.does("decide", route, "Go on")
    assert [event["text"] for event in user.does("log", route, "--json").json()] == ["Go on", *reversed(OURS)]
    assert user.decisions(route) == [*OURS, "Go on"]


@pytest.mark.parametrize("place", [0, 0.5, "the last note"])
def test_a_file_that_is_cut_off_deletes_nothing(user: User, route: str, path: Path, place: float | str) -> None:
    user.write_note(route, "The pilot boat is red.")
    user.does("decide", route, "Go on")
    text = path.read_text()
    save(path, text[: text.index("The pilot boat") if isinstance(place, str) else int(place * len(text))])
    os.utime(path, (1_700_000_000, 1_700_000_000))  # nobody is saving it any more
    user.ralf("decide", route, "And on")
    assert user.decisions_of(user.ralf("show", route, "--json")) == [*OURS, "Go on", "And on"]
    path.unlink(missing_ok=True)
    user.does("decide", route, "To the end")
    assert user.decisions(route) == [*OURS, "Go on", "And on", "To the end"]
    assert "The pilot boat is red." in path.read_text()


def test_a_file_with_conflict_markers_is_left_as_it_is_and_every_command_names_it(
    user: User, route: str, path: Path
) -> None:
    user.write_note(route, "<<<<<<< ours\nred\n=======\nwhite\n>>>>>>> theirs")
    before = path.read_bytes()
    decided = user.ralf("decide", route, "Go on")
    decided.complains(4, path)
    assert "is recorded" in decided.err and "again" not in decided.err
    shown = user.ralf("show", route)
    shown.complains(4, path)
    assert "Go on" in shown.out
    user.ralf("verify", route).complains(4, path)
    assert path.read_bytes() == before
