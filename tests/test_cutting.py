"""Cutting a text to a length: at the borders of its lines and sentences, in any language, and never less for more."""

# ruff: noqa: RUF001  # words in other scripts

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ralf.talk.cutting import LEFT_OUT, cut, cut_end, cuts, message, units


@pytest.mark.parametrize(
    "question", ["Shall I go on?", "¿Sigo?", "要继续吗？", "Soll ich?", "Продолжать?", "هل أتابع؟"]
)
def test_a_closing_question_that_is_answered_goes_first(question):
    text = "\n".join(["The cause is the lock."] + ["It is taken twice by the hook."] * 9 + [question])
    assert question not in cuts(text, [200], is_answered=True)[0]
    assert question in cuts(text, [200])[0]
    assert question in cuts(text, [900], is_answered=True)[0]


def test_the_end_of_a_text_is_whole_sentences_outside_code():
    text = "The cause was the lock.\n```\nx = 1\n```\nEverything passes now. Shall I commit this to the branch?"
    assert cut_end(text, 30, 240) == "Shall I commit this to the branch?"
    assert cut_end(text, 90, 240) == "Everything passes now. Shall I commit this to the branch?"
    assert cut_end(f"{text} I wait.", 5, 240) == "I wait."
    assert cut_end(f"{text} I wait.", 20, 240, to_question=True) == "Shall I commit this to the branch?"
    assert cut_end(f"{'long ' * 60}way. Ok?", 30, 34) == "\u2026 long long long long long way. Ok?"
    assert cut_end(text + "\n```\ny = 2\n```", 20, 240) == "Shall I commit this to the branch?"


def test_a_pasted_block_goes_before_the_persons_words():
    paste = "\n".join(f"{number} FAIL tests/test_{number}.py" for number in range(60))
    shown = message(f"What happened here?\n```\n{paste}\n```\nThe second one is new.", 400)
    assert shown.startswith("What happened here?\n[pasted, 60 lines, ")
    assert "0 FAIL" in shown and "59 FAIL" in shown and "30 FAIL" not in shown
    assert "The second one is new." in shown
    assert shown.endswith("characters in all]")


@pytest.mark.parametrize("most", [280, 400, 1_000])
def test_the_persons_line_at_the_end_of_a_huge_paste_is_shown_at_every_length(most):
    paste = "\n".join(f"2026-03-09 08:{n % 60:02} request {n} took {n * 7} ms and came back" for n in range(900))
    line = "Everything above is from the second machine: never restart that one while the survey boat is out, " * 2
    shown = message(f"{paste}\n{line}", most)
    assert "while the survey boat is out" in shown
    assert units(shown) <= most + 60


@given(st.text(max_size=400), st.integers(1, 200))
def test_a_cut_text_is_hardly_longer_than_its_limit(text, most):
    assert units(cut(text, most)) <= most + 3 * len(LEFT_OUT) + 6
    assert units(message(text, most)) <= most + 3 * len(LEFT_OUT) + 40 or "[pasted" in message(text, most)
