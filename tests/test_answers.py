"""What a person's message answers: told by the form of two texts, in any language."""

# ruff: noqa: RUF001  # words in other scripts

from __future__ import annotations

import pytest

from ralf.model.entries import Item, Message
from ralf.talk.answers import about, is_short, labels

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


def test_numbers_are_resolved_and_marks_of_markdown_are_not_shown():
    assert answer("1 and 2", NUMBERED) == "1 = Swap the parts; 2 = Keep `them`"


@pytest.mark.parametrize("text", ["I think we can swap 1 and 2", "181", "D", "1x", "PR 12"])
def test_what_is_no_label_of_a_list_is_not_resolved(text):
    assert " = " not in answer(text, LETTERED, NUMBERED)


def test_a_long_order_with_its_own_list_is_not_resolved():
    order = "Please do all of this today.\n" + "\n".join(f"{n}. {'something long ' * 8}" for n in range(1, 4))
    assert answer(order, NUMBERED) == ""


def test_a_message_that_begins_with_labels_names_those_of_its_lines():
    text = "1. yes, because the other one takes far too long\n3) no, he is away until Monday"
    assert answer(text, NUMBERED) == "1 = Swap the parts; 3 = Ask Soph"


def test_a_capital_among_the_first_words_is_a_label_where_a_mark_follows():
    assert answer("Let's take B, because folders are easier to look at by hand", LETTERED) == "B = Nested folders"
    assert " = " not in answer("Let's take B because folders are easier to look at by hand", LETTERED)


def test_the_newest_list_with_all_the_labels_gives_their_texts():
    older, newer = "1. old one\n2. old two\n3. old three", "1. new one\n2. new two"
    assert labels("2", [older, newer]) == {"2": "new two"}
    assert labels("1 and 3", [older, newer]) == {"1": "old one", "3": "old three"}


def test_a_list_begins_at_its_first_label_and_has_two_items():
    assert labels("3", ["3. three\n4. four"]) == {}
    assert labels("1", ["1. alone"]) == {}


def test_a_list_within_a_list_does_not_end_it():
    text = "1. first\n   1. inner first\n   2. inner second\n2. second\n3. third"
    assert labels("3", [text]) == {"3": "third"}


def test_labels_in_code_are_none():
    assert labels("2", ["Like this:\n```\n1. one\n2. two\n```"]) == {}


def test_a_row_of_a_table_is_an_option():
    table = "| # | Way | Cost |\n|---|---|---|\n| 1 | Rewrite | high |\n| 2 | Patch | low |"
    assert labels("2", [table]) == {"2": "Patch; low"}


def test_a_list_with_wide_marks_is_one():
    assert labels("B", ["A：单一文件\nB：嵌套文件夹"]) == {"B": "嵌套文件夹"}
    assert labels("2", ["（1）重写\n（2）修补"]) == {"2": "修补"}


def test_an_option_is_shown_with_at_most_130_characters():
    assert len(labels("1", ["1. " + "long " * 80 + "\n2. short"])["1"]) <= 131


def test_the_number_of_a_to_do_is_resolved_to_its_text():
    items = (Item("9", "Write the docs"), Item("10", "Release 0.4.0"))
    assert about(Message("m", text="and #10? the rest of that list can wait"), [], "", items) == "#10 = Release 0.4.0"
    assert about(Message("m", text="see https://x.example/y/#10, or PR #162 of the other project"), [], "", items) == ""


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


def test_a_message_that_is_not_short_answers_nothing():
    assert answer("Please go on with the parser, and mind the escapes in quoted names this time.", "Ready?") == ""


def test_eight_words_of_ninety_characters_are_short():
    assert is_short(Message("m", text="internationalisation configuration reinitialisation yes"))
    assert not is_short(Message("m", text="a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5"))


def test_twenty_one_wide_characters_are_not_short():
    assert is_short(Message("m", text="好" * 20))
    assert is_short(Message("m", text="好" * 30))  # one word of at most 90
    assert not is_short(Message("m", text="好" * 31))


@pytest.mark.parametrize("text", ["why is that one so slow?", "为什么这个这么慢？", "لماذا هو بطيء جدا؟"])
def test_a_question_speaks_for_itself(text):
    assert answer(text, "The build is done. Everything passes.") == ""
    assert answer(text[-4:], "The build is done. Everything passes.") != ""


@pytest.mark.parametrize("form", ["queued", "command", "ran", "unsent"])
def test_words_that_answer_no_text_show_none(form):
    assert answer("yes", "Shall I?", form=form) == ""


def test_an_answer_shows_its_question():
    assert answer("UTC", form="answer", about="Which time zone\nshould the log use?") == (
        "asked: Which time zone should the log use?"
    )


def test_a_refusal_shows_the_call_that_it_refused():
    message = Message("m", form="refused", text="leave it alone")
    assert about(message, ["Next I stash."], "Bash `git stash`") == "refusing Bash `git stash`"
