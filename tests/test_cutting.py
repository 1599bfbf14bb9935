"""Cutting a text to a length: at the borders of its lines and sentences, in any language, and never less for more."""

# ruff: noqa: RUF001  # words in other scripts

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ralf.talk.cutting import LEFT_OUT, cut, cut_end, cuts, message, units

SENTENCES = {
    "English": "The lock is taken twice, e.g. by the worker and by the hook. ",
    "Spanish": "¿Por qué falla la prueba? Porque el bloqueo se toma dos veces. ",
    "Chinese": "锁被获取了两次。测试因此失败！要不要先提交？",
    "German": "Die Sperre wird z. B. vom Hook genommen. Deshalb schlägt der Test fehl. ",
    "Russian": "Блокировка берётся дважды, т. е. и хуком. Поэтому тест падает. ",
    "Arabic": "هل نحتفظ بالقفل؟ نعم، لكن مرة واحدة فقط. ",
}


def test_a_character_of_a_wide_script_counts_three():
    assert units("abc") == 3
    assert units("锁定") == 6
    assert units("замок") == 5


@pytest.mark.parametrize("language", SENTENCES)
def test_a_long_line_gives_way_in_whole_sentences(language):
    text = " ".join(f"{number}: {SENTENCES[language].strip()}" for number in range(40))
    shown = cut(text, 400)
    assert units(shown) <= 400 + len(LEFT_OUT) + 2
    head, _, tail = shown.partition(LEFT_OUT)
    assert text.startswith(head.strip()) and text.endswith(tail.strip())
    assert head.strip()[-1] in ".!?。！？؟" and tail.strip()[-1] in ".!?。！？؟"


def test_an_abbreviation_before_a_small_letter_ends_no_sentence():
    shown = cut(("Wir nehmen z. B. den Hook und halten ihn. " * 20).strip(), 100)
    assert shown.split(LEFT_OUT)[0].strip().endswith("halten ihn.")


def test_a_first_sentence_longer_than_the_limit_is_cut_at_a_space():
    shown = cut("word " * 200, 100)
    assert shown.endswith("word …") and len(shown) <= 102


def test_two_thirds_come_from_the_head_and_a_third_from_the_end():
    shown = cut("\n".join(f"line {number:03} of the report" for number in range(100)), 600)
    head, _, tail = shown.partition(LEFT_OUT)
    assert head.startswith("line 000") and tail.endswith("line 099 of the report")
    assert 1.5 < len(head) / len(tail) < 2.6


def test_a_long_code_block_is_counted_and_a_short_one_is_kept():
    assert "[code, 40 lines]" in cut("See:\n```go\n" + "x := 1 // a line\n" * 40 + "```\n" + "It works. " * 30, 400)
    assert "```\nx = 1\n```" in cut("See this.\n```\nx = 1\n```", 400)


def test_marks_of_markdown_go_and_code_stays_as_it_is():
    table = "| File | Lines |\n|---|---|\n| a.py | 3 |"
    text = f"## Result\n\n{table}\n\n---\n**All** passes\n```\n# no heading\n| a | b |\n\n```"
    assert cut(text, 1000) == "Result\nFile; Lines\na.py; 3\nAll passes\n```\n# no heading\n| a | b |\n```"


def test_a_line_that_leads_up_to_what_is_left_out_is_left_out_as_well():
    text = "Fixed.\n**Summary of changes:**\n" + "\n".join(f"{n}. {'changed ' * 25}" for n in range(9))
    assert cut(text, 160) == f"Fixed. {LEFT_OUT}"
    assert "Summary" in cut(text, 700)


def test_a_text_that_begins_by_leading_up_to_something_shows_the_head_of_it():
    text = "It does three things:\n" + "word " * 40 + "\n" + "and " * 60
    assert cut(text, 160).startswith("It does three things:\nword word") and units(cut(text, 160)) < 170


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


@pytest.mark.parametrize("word", ["word ", "锁"])
def test_the_end_of_one_endless_sentence_keeps_to_the_length(word):
    end = cut_end(word * 400, 90, 240)
    assert end.startswith("… ") and units(end) <= 243


def test_a_message_up_to_280_characters_is_whole_without_its_blank_lines():
    assert message("Do this.\n\n\nThen that.\n", 280) == "Do this.\nThen that."


def test_a_pasted_block_goes_before_the_persons_words():
    paste = "\n".join(f"{number} FAIL tests/test_{number}.py" for number in range(60))
    shown = message(f"What happened here?\n```\n{paste}\n```\nThe second one is new.", 400)
    assert shown.startswith("What happened here?\n[pasted, 60 lines, ")
    assert "0 FAIL" in shown and "59 FAIL" in shown and "30 FAIL" not in shown
    assert "The second one is new." in shown
    assert shown.endswith("characters in all]")


def test_a_block_without_its_closing_fence_is_pasted_to_its_last_line():
    shown = message("Look:\n```\n" + "\n".join(f"line {n}" for n in range(60)), 280)
    assert "[pasted, 60 lines" in shown and "line 59" in shown


@pytest.mark.parametrize("most", [280, 400, 1_000])
def test_the_persons_line_at_the_end_of_a_huge_paste_is_shown_at_every_length(most):
    paste = "\n".join(f"2026-03-09 08:{n % 60:02} request {n} took {n * 7} ms and came back" for n in range(900))
    line = "Everything above is from the second machine: never restart that one while the survey boat is out, " * 2
    shown = message(f"{paste}\n{line}", most)
    assert "while the survey boat is out" in shown
    assert units(shown) <= most + 60


@given(st.text("ab .?!:。？\n`|#-", max_size=600), st.integers(20, 300), st.integers(1, 300))
def test_a_larger_length_shows_every_piece_of_a_smaller_one(text, length, more):
    small, large = cut(text, length), cut(text, length + more)
    if not small.endswith("…") and LEFT_OUT in small:
        kept = {line for line in small.replace(LEFT_OUT, "\n").split("\n") if line.strip() and len(line) < 240}
        whole = large.replace(LEFT_OUT, "\n")
        assert all(line.strip() in whole for line in kept if not line.rstrip("*_ ").endswith((":", "：")))
    assert cut(text, length) == small


@given(st.text(max_size=400), st.integers(1, 200))
def test_a_cut_text_is_hardly_longer_than_its_limit(text, most):
    assert units(cut(text, most)) <= most + 3 * len(LEFT_OUT) + 6
    assert units(message(text, most)) <= most + 3 * len(LEFT_OUT) + 40 or "[pasted" in message(text, most)


def test_an_item_of_a_list_is_never_shown_without_the_line_that_says_what_it_is():
    text = (
        f"Read it all.\n{'A sentence of no use. ' * 30}\nDo NOT:\n- remove the fallback\n- add payments\n- rewrite it"
    )
    shown = message(text, 90)
    assert "rewrite it" in shown and shown.index("Do NOT:") < shown.index("rewrite it")


def test_what_belongs_to_a_numbered_item_never_stands_below_another_one():
    text = "Here is my review:\n## Issues\n### 1. The error is lost\n" + "It must be mended before the merge. " * 30
    text += "\n### 2. It stops at once\n" + "Skipping would do as well. " * 4 + "\nNot blocking."
    for most in (120, 300, 600):
        shown = cut(text, most)
        assert shown.index("2. It stops at once") < shown.index("Not blocking.")
        assert "review:" not in shown, "a line that leads up to what is not there"
    assert "1. The error is lost\nIt must be mended" in cut(text, 600)


def test_a_text_of_nothing_but_a_long_code_block_says_how_long_it_is():
    block = "```\n" + "x = 1\n" * 60 + "```"
    assert cuts(block, [160], is_answered=True) == ["[code, 60 lines]"]


def test_a_persons_message_never_opens_in_its_middle_without_a_mark():
    text = "Is this count right for both harbours?:\n" + "\n".join(f"print(level[{n}])" for n in range(40))
    for most in (60, 160, 280):
        assert message(text, most).startswith(("Is this count right", LEFT_OUT))


def test_of_a_long_message_the_lines_that_only_draw_go_before_its_words():
    text = "\n".join(f"Rule {n}: keep harbour {n}.\n{'-' * 40}" for n in range(8))
    assert message(text, 300).count("Rule ") == 8 and "---" not in message(text, 300)
