"""Entries of a session as turns: one thread, without what was taken back, each message once."""

from __future__ import annotations

import pytest
from tests.talkkit import Session

from ralf.model.entries import Message
from ralf.talk.recording import record
from ralf.transcripts.events import Event, Position


def messages(session):
    return [turn.message.text for turn in session.talk.turns if turn.message is not None]


# ---- recording ----


def event(kind, text="", line=0, **fields):
    return Event(kind, text, Position(0, line), Position(0, line + 1), f"2026-03-09T08:{line:02}:00Z", **fields)


def test_a_message_has_its_id_its_place_and_what_it_answers():
    asked = event("user", " UTC \n", 4, form="answer", id="u1", parent="u0", input={"about": "Which time zone?"})
    assert record([asked], "/p", "s1") == [
        Message("u1", "2026-03-09T08:04:00Z", "s1", 5, "answer", "UTC", "u0", about="Which time zone?")
    ]


# ---- turns ----


def test_a_turn_is_a_message_and_what_follows_it():
    session = Session().said("before").typed("first").said("one").ran("ls").typed("second").said("two")
    turns = session.talk.turns
    assert [turn.message and turn.message.text for turn in turns] == [None, "first", "second"]
    assert [[said.text for said in turn.texts] for turn in turns] == [["before"], ["one"], ["two"]]
    assert (turns[1].before, turns[2].before, turns[1].closing.text) == (["before"], ["one"], "one")


def test_a_resumed_copy_is_one_message():
    session = Session().typed("fix it", id="u1").typed("go on", id="u2").typed("fix it", id="u1")
    assert messages(session) == ["fix it", "go on"]


def test_a_prompt_sent_by_a_loop_is_shown_once_at_its_newest_place():
    prompt = "Read PLAN.md, do the next open step of it, run all tests, and commit what you have done."
    session = Session().typed("start")
    for _ in range(14):
        session.typed(prompt).said("done")
    assert messages(session) == ["start", prompt]
    assert session.talk.last.sent == 14


@pytest.mark.parametrize("text", ["yes", "continue", "继续", "weiter", "дальше"])
def test_a_short_message_sent_again_is_another_one(text):
    assert messages(Session().typed(text).said("a").typed(text)) == [text, text]


def test_of_two_messages_that_follow_the_same_one_the_later_holds():
    session = Session().typed("first", id="u1", parent="").said("one").typed("never use sqlite", id="u2", parent="a1")
    session.edited("db.py").said("two").typed("use sqlite after all", id="u3", parent="a1")
    assert messages(session) == ["first", "use sqlite after all"]
    assert [(message.text, files) for message, files in session.talk.taken_back] == [("never use sqlite", ["db.py"])]
    assert [said.text for turn in session.talk.turns for said in turn.texts] == ["one"]


def test_all_that_followed_a_message_is_taken_back_with_it():
    session = Session().typed("a", id="u1", parent="p").typed("b", id="u2", parent="q").typed("c", id="u3", parent="p")
    assert messages(session) == ["c"]
    assert [message.text for message, _ in session.talk.taken_back] == ["a", "b"]


@pytest.mark.parametrize(("turns", "left"), [("1", ["a", "b"]), ("2", ["a"]), ("9", []), ("0", ["a", "b", "c"])])
def test_a_number_of_turns_is_taken_back(turns, left):
    assert messages(Session().typed("a").typed("b").typed("c").mark("rewound", turns)) == left


def test_a_queued_message_handed_over_stands_where_it_was_handed_over():
    session = Session().typed("start").typed("mind the gateway", "queued").said("working").mark("handed").said("I will")
    turn = session.talk.last
    assert (turn.message.text, turn.message.form, turn.unread) == ("mind the gateway", "queued", False)
    assert (turn.before, turn.closing.text) == (["working"], "I will")


def test_what_was_taken_back_into_the_input_field_is_no_message():
    session = Session().typed("start").typed("drop the tables", "queued").mark("unsent").said("ok")
    assert messages(session) == ["start"]
    assert [(aside.form, aside.text) for aside in session.talk.last.asides] == [("unsent", "drop the tables")]
