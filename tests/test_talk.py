"""Entries of a session as turns: one thread, without what was taken back, each message once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from tests.talkkit import Session

from ralf.model.entries import GitFact, Mark, Message, Said, Step
from ralf.talk.recording import Recording, record
from ralf.talk.turns import thread
from ralf.transcripts.events import Event, Position


def messages(session):
    return [turn.message.text for turn in session.talk.turns if turn.message is not None]


# ---- recording ----


def event(kind, text="", line=0, **fields):
    return Event(kind, text, Position(0, line), Position(0, line + 1), f"2026-03-09T08:{line:02}:00Z", **fields)


def call(id_, line, tool="Bash", **arguments):
    return event("call", line=line, tool=tool, call_id=id_, input=arguments)


def test_a_message_has_its_id_its_place_and_what_it_answers():
    asked = event("user", " UTC \n", 4, form="answer", id="u1", parent="u0", input={"about": "Which time zone?"})
    assert record([asked], "/p", "s1") == [
        Message("u1", "2026-03-09T08:04:00Z", "s1", 5, "answer", "UTC", "u0", about="Which time zone?")
    ]


def test_a_message_without_an_id_has_one_of_its_session_and_line():
    assert record([event("user", "hello", 6)], "/p", "s1")[0].id == "s1:7"


def test_a_command_of_the_persons_own_has_what_it_printed():
    found = record([event("mark", "make test", 1, form="ran"), event("mark", "1 failed", 2, form="printed")], "/p", "s")
    assert [(entry.form, entry.text, entry.output) for entry in found] == [("ran", "make test", "1 failed")]


def test_a_call_without_a_result_stands_where_it_was_made():
    found = record(
        [event("user", "run it", 0), call("c1", 1, command="sleep 900"), event("user", "forget that", 2)], "/p", "s"
    )
    assert [type(entry) for entry in found] == [Message, Step, Message]


def test_what_a_subagent_says_is_no_part_of_the_talk():
    recording = Recording("/p")
    recording.take(event("assistant", "from the side", 1, agent="a1"))
    recording.take(event("assistant", "from the agent", 2))
    assert [entry.text for entry in recording.all()] == ["from the agent"]


def test_a_branch_is_recorded_when_it_changes():
    found = record([event("user", "a", 0, branch="main"), event("user", "b", 1, branch="main")], "/p")
    assert [(entry.kind, entry.value) for entry in found if isinstance(entry, Mark)] == [("branch", "main")]


@pytest.mark.parametrize("form", ["ended", "interrupted", "stopped", "handed", "noticed", "titled", "requested"])
def test_a_mark_of_the_clients_is_recorded_with_its_words(form):
    assert record([event("mark", "words", 3, form=form)], "/p") == [Mark(form, "2026-03-09T08:03:00Z", 4, "words")]


def test_a_rewinding_is_recorded_with_its_place():
    marks = [event("mark", form="rewound", input={"to": "u7"}), event("mark", form="rewound", input={"turns": 2})]
    assert [entry.value for entry in record(marks, "/p")] == ["u7", "2"]


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


def test_a_message_with_another_id_and_the_same_time_and_text_is_the_same():
    session = Session().typed("fix it", id="u1", at="2026-03-09T08:00:00Z")
    assert messages(session.typed("fix it", id="u9", at="2026-03-09T08:00:00Z")) == ["fix it"]
    assert messages(session.typed("fix it", id="u9", at="2026-03-09T08:01:00Z")) == ["fix it", "fix it"]


def test_equal_answers_to_two_questions_of_one_record_are_two():
    session = Session().typed("yes", "answer", id="u1", about="Push?").typed("yes", "answer", id="u1", about="Tag?")
    assert messages(session) == ["yes", "yes"]


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


def test_a_missing_parent_takes_nothing_back():
    assert messages(Session().typed("a", parent="").typed("b", parent="").typed("c", parent="x")) == ["a", "b", "c"]


@pytest.mark.parametrize("form", ["refused", "answer", "plan", "queued"])
def test_a_fork_at_results_is_no_rewinding(form):
    session = Session().typed("a", parent="p").typed("no, wait", form, parent="p").mark("handed")
    assert messages(session) == ["a", "no, wait"]


def test_commits_and_the_branch_outlive_a_rewinding():
    session = Session().typed("a", id="u1").typed("b", id="u2")
    session.ran("git commit", git=(GitFact("commit", "abc1234", "Add it"),)).mark("branch", "next")
    session.edited("x.py").mark("rewound", "u2")
    state = session.view.state
    assert (messages(session), state.branch, state.commits[-1].hash, state.edited) == (["a"], "next", "abc1234", {})


@pytest.mark.parametrize(("turns", "left"), [("1", ["a", "b"]), ("2", ["a"]), ("9", []), ("0", ["a", "b", "c"])])
def test_a_number_of_turns_is_taken_back(turns, left):
    assert messages(Session().typed("a").typed("b").typed("c").mark("rewound", turns)) == left


def test_a_queued_message_handed_over_stands_where_it_was_handed_over():
    session = Session().typed("start").typed("mind the gateway", "queued").said("working").mark("handed").said("I will")
    turn = session.talk.last
    assert (turn.message.text, turn.message.form, turn.unread) == ("mind the gateway", "queued", False)
    assert (turn.before, turn.closing.text) == (["working"], "I will")


def test_a_queued_message_that_begins_a_turn_is_an_ordinary_one():
    assert Session().typed("start").typed("next", "queued").mark("sent").talk.last.message.form == ""


def test_notices_stand_in_the_same_queue_and_are_counted():
    session = Session().typed("start").mark("noticed").typed("one", "queued").mark("handed")
    assert messages(session) == ["start", "one"]
    assert session.talk.last.unread
    assert not session.mark("handed").talk.last.unread


def test_what_left_the_queue_is_found_by_its_words_where_the_client_gives_them():
    session = Session().typed("start").typed("one", "queued").typed("two", "queued").mark("handed", "two")
    assert messages(session) == ["start", "two", "one"]
    assert [turn.unread for turn in session.talk.turns[1:]] == [False, False, True]


def test_what_waits_at_the_end_is_the_last_message_and_unread():
    session = Session().typed("start").typed("and then that", "queued").said("still working")
    assert (session.talk.last.message.text, session.talk.last.unread) == ("and then that", True)


def test_what_was_taken_back_into_the_input_field_is_no_message():
    session = Session().typed("start").typed("drop the tables", "queued").mark("unsent").said("ok")
    assert messages(session) == ["start"]
    assert [(aside.form, aside.text) for aside in session.talk.last.asides] == [("unsent", "drop the tables")]


def test_what_was_taken_back_and_then_sent_is_only_the_message():
    session = Session().typed("start").typed("use the other one", "queued").mark("unsent")
    session.typed("use the other one, please")
    assert messages(session) == ["start", "use the other one, please"]
    assert not [aside for turn in session.talk.turns for aside in turn.asides]


def test_an_own_command_is_an_aside_of_the_turn():
    session = Session().typed("start").typed("make", "ran", output="1 failed").said("I see")
    assert (messages(session), session.talk.last.asides[0].output) == (["start"], "1 failed")


def test_a_call_that_got_its_result_later_is_one_step():
    session = Session().typed("start").step("command", "Bash", "make", "", id="c1").said("waiting")
    assert [step.outcome for step in session.step("command", "Bash", "make", "ok", id="c1").talk.last.steps] == ["ok"]


def test_the_newest_title_of_the_client_is_the_talks():
    assert Session().typed("a").mark("titled", "Old").mark("titled", "New").talk.title == "New"


def test_nothing_at_all_is_an_empty_talk():
    talk = Session().talk
    assert (talk.last, talk.entries, [type(entry) for entry in Session().said("x").talk.entries]) == (None, [], [Said])


@pytest.mark.ci
def test_a_session_of_many_tiny_messages_is_read_in_one_pass():
    def spent(count: int) -> float:
        entries = [Message(id=str(number), at="", line=number, text="a", parent="p") for number in range(count)]
        began = time.process_time()
        assert len(thread(entries).turns) == 2
        unlike = [replace(entry, parent="") for entry in entries]
        assert len(thread(unlike).turns) == count + 1
        return time.process_time() - began

    assert spent(6_000) < 24 * spent(1_000)  # each message against all before it: 36 times
