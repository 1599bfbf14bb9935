"""What no longer stands in the file is found by its words, and `why` leads to them."""

from __future__ import annotations

import pytest

from promises.user import User

pytestmark = pytest.mark.ci

MANY = """
import ralf
words = "harbour level gauge table offset tide north south pier mooring".split()
for number in range(30):
    rest = " ".join(f"{word}{number}x{turn}" for turn in range(20) for word in words)
    ralf.record_decision("harbour", f"Keep station {number} apart. {rest}")
"""


def test_a_decision_that_no_longer_fits_into_the_file_is_found_by_its_words_and_why_has_it(user: User) -> None:
    user.does("decide", "harbour", "Measure in fathoms", "--because", "the old charts do")
    user.does("decide", "harbour", "Measure in metres", "--supersedes", "DEC-001")
    ran = user.python(MANY)
    assert ran.status == 0, ran
    hits = user.does("search", "fathoms charts", "--json").json()
    assert any(hit["id"] == "DEC-001" and "Measure in fathoms" in hit["text"] for hit in hits), hits
    assert "the old charts do" in user.does("show", "harbour", "DEC-001").out
    text = user.route_file("harbour").read_text()
    gone = [number for number in range(30) if f"pier{number}x11" not in text]
    assert gone, "the file has no cap"
    for number in gone[:2]:
        hits = user.does("search", f"pier{number}x11", "--json").json()
        found = [hit["id"] for hit in hits if f"Keep station {number} apart" in hit["text"]]
        assert found, (number, hits)
        assert f"pier{number}x11" in user.does("show", "harbour", found[0]).out


def test_a_search_finds_what_the_person_said_and_what_a_command_printed(user: User) -> None:
    session = user.session()
    session.says("Carry the harbour offsets over; the harbour master of Zeebrugge wants them in decimetres.")
    session.runs("python offsets.py", "KeyError: 'Vlissingen-Oost'", failed=True)
    session.answers("One station is missing.")
    user.does("checkpoint", "harbour", "--transcript", session.log)
    for words, found in (
        ("Zeebrugge decimetres", "wants them in decimetres"),
        ("KeyError Vlissingen-Oost", "Vlissingen-Oost"),
    ):
        hits = user.does("search", words, "--json").json()
        assert any(hit["route"] == "harbour" and found in hit["text"] for hit in hits), (words, hits)
        assert found in user.does("search", words).out


def test_why_shows_the_original_words_and_the_line_where_they_stand_without_the_transcript(user: User) -> None:
    session = user.session()
    session.answers("I look around.")
    session.says("Use SQLite for the tide table, because one file needs no server.")
    session.answers("It is done.")
    user.does("checkpoint", "harbour", "--transcript", session.log)
    session.log.unlink()
    shown = user.does("show", "harbour", "cp-001").out
    assert "Use SQLite for the tide table, because one file needs no server." in shown
    quotes = user.does("show", "harbour", "cp-001", "--json").json()["quotes"]
    assert any(quote["line"] == 2 and "Use SQLite for the tide table" in quote["text"] for quote in quotes), quotes


def test_why_shows_the_turn_of_a_decision_whole_and_what_the_person_said_next(user: User) -> None:
    session = user.session()
    session.says("Which store for the tide table? Decide it and record it.")
    session.answers("SQLite: one file needs no server.")
    made = user.does("decide", "harbour", "Use SQLite", env={"CLAUDECODE": "1"}).out
    session.runs('ralf decide harbour "Use SQLite"', made.strip().splitlines()[-1])
    session.answers("Recorded.")
    session.says("Wait, the pilots read it over the network.")
    session.answers("Then a server it is.")
    session.says("No, leave it: they get a copy.")
    session.says("And now the gauges.")
    user.does("checkpoint", "harbour", "--transcript", session.log)
    why = user.does("show", "harbour", "DEC-001", "--json").json()
    assert [quote["text"] for quote in why["quotes"]] == ['ralf decide harbour "Use SQLite"']
    told = [quote["text"] for quote in why["turn"]]
    assert told[0].startswith("Which store") and "SQLite: one file needs no server." in told and told[-1] == "Recorded."
    after = [quote["text"] for quote in why["after"]]
    assert after == ["Wait, the pilots read it over the network.", "No, leave it: they get a copy."]
    shown = user.does("show", "harbour", "DEC-001").out
    assert shown.index("Use SQLite") < shown.index("Which store") < shown.index("Wait, the pilots")
