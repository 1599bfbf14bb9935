"""Entries of a session as turns: one thread, without what was taken back, each message once."""

# ruff: noqa: RUF001  # words in other scripts

from __future__ import annotations

from pathlib import Path

import pytest
from tests.talkkit import Session

from ralf.model.entries import Message
from ralf.talk.answers import about, labels
from ralf.text.cleaning import besides, fenced
from ralf.transcripts import codex
from ralf.transcripts.typed import typed
from ralf_integrations.blackbox5 import installing


def messages(session):
    return [turn.message.text for turn in session.talk.turns if turn.message is not None]


# ---- turns ----


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


# ---- what a person's message answers ----


LETTERED = "Two ways:\n\nA) One flat file\nB. Nested folders\n**C:** A database\n\nWhich one?"

NUMBERED = "I found this:\n1. **Swap** the parts\n   - with a note\n2. Keep `them`\n3. Ask Soph\n"


def answer(text, *texts, form="", **fields):
    return about(Message("m", form=form, text=text, **fields), texts)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A", "A = One flat file"),
        ("B, nested", "B = Nested folders"),
        ("选A吧", "A = One flat file"),
        ("la B por favor", "B = Nested folders"),
        ("Bitte A und C", "A = One flat file; C = A database"),
        ("вариант B", "B = Nested folders"),
        ("الخيار A", "A = One flat file"),
    ],
)
def test_a_label_in_a_short_message_is_resolved_in_any_language(text, shown):
    assert answer(text, LETTERED) == shown


@pytest.mark.parametrize("text", ["I think we can swap 1 and 2", "181", "D", "1x", "PR 12"])
def test_what_is_no_label_of_a_list_is_not_resolved(text):
    assert " = " not in answer(text, LETTERED, NUMBERED)


def test_the_newest_list_with_all_the_labels_gives_their_texts():
    older, newer = "1. old one\n2. old two\n3. old three", "1. new one\n2. new two"
    assert labels("2", [older, newer]) == {"2": "new two"}
    assert labels("1 and 3", [older, newer]) == {"1": "old one", "3": "old three"}


YES = {
    "English": ("yes", "The tests pass now. Shall I commit it to the branch, or wait for you?"),
    "Spanish": ("sí, adelante", "Las pruebas pasan. ¿Confirmo los cambios en la rama o espero a que los mires?"),
    "Chinese": ("好的", "测试已经通过了。要现在提交到分支上吗？"),
    "German": ("ja, bitte", "Die Tests laufen durch. Soll ich es auf dem Zweig committen, oder wartest du?"),
    "Russian": ("да, давай", "Тесты проходят. Закоммитить это в ветку или подождать тебя?"),
    "Arabic": ("نعم", "الاختبارات ناجحة. هل أحفظ التغييرات في الفرع الآن؟"),
}


@pytest.mark.parametrize("language", YES)
def test_a_short_message_shows_the_end_of_the_text_before_it(language):
    text, said = YES[language]
    shown = answer(text, "Something older. " * 30, "Something much longer before it. " * 30 + said)
    assert shown.startswith("before: ") and shown.endswith(said.split("? ")[-1][-20:])
    assert len(shown) <= 7 + 240


# ---- standing ----


PROMPT = "# RALF\n\nOne task per run. Never push to main.\n"
BRIEF = fenced("# Context of TASK-7\n")


def installed(prompt: str) -> str:
    """A prompt with the section, as it is put there."""
    (added,) = installing.section_insertions(prompt, Path("/a tree/context-checkpoint.sh"))
    return prompt[: added.place] + added.text + prompt[added.place :]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (installed(PROMPT), ""),
        (installed(PROMPT.rstrip()), ""),
        (installed(PROMPT.replace("\n", "\r\n")), ""),
        (installed(PROMPT) + BRIEF, ""),
        (
            installed(PROMPT) + "Your task: carry the tide table over.\n" + BRIEF,
            "Your task: carry the tide table over.",
        ),
        (installed(PROMPT) + installed(PROMPT), ""),
        ("Shorten this prompt:\n" + installed(PROMPT), "Shorten this prompt:\n" + PROMPT.rstrip()),
        ("Carry the tide table over.", "Carry the tide table over."),
        (
            installed(PROMPT).replace("<!-- ralf: end -->", ""),
            installed(PROMPT).replace("<!-- ralf: end -->", "").strip(),
        ),
    ],
)
def test_only_what_is_not_the_prompt_is_somebodys_words(text: str, left: str) -> None:
    assert typed(text) == left
    event = {"kind": "plain", "message": text}
    assert codex.typed_in_event(event) == left


def test_many_openings_without_an_end_cost_no_more_than_one() -> None:
    text = "<!-- ralf: written by `ralf init --client ralf`, x -->" * 20_000
    assert besides(text) == text
