"""What a person's message answers: told by the form of two texts, in any language."""

# ruff: noqa: RUF001  # words in other scripts

from __future__ import annotations

import pytest

from ralf.model.entries import Message
from ralf.talk.answers import about, labels

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


@pytest.mark.parametrize("form", ["queued", "command", "ran", "unsent"])
def test_words_that_answer_no_text_show_none(form):
    assert answer("yes", "Shall I?", form=form) == ""


def test_a_refusal_shows_the_call_that_it_refused():
    message = Message("m", form="refused", text="leave it alone")
    assert about(message, ["Next I stash."], "Bash `git stash`") == "refusing Bash `git stash`"
