"""Where the answer to the last message stands: the first of seven rules that applies, told by records alone."""

# ruff: noqa: RUF001  # words in other scripts

from __future__ import annotations

import pytest
from tests.talkkit import Session

from ralf.brief.lines import standing


def of(session):
    return standing(session.talk.last)


def test_a_usage_limit_stops_the_answer_whatever_was_said_before():
    session = Session().typed("old").said("All done.").typed("now the docs").mark("stopped", "You've hit your limit")
    found = of(session)
    assert found.word == "stopped"
    assert found.text == "Stopped by the service: You've hit your limit; nothing was done for it before."


def test_a_message_with_nothing_after_it_is_not_begun():
    assert of(Session().typed("go")).word == "not_begun"
    assert of(Session().typed("go").mark("branch", "main").mark("titled", "T")).word == "not_begun"


def test_an_interruption_with_nothing_after_it():
    found = of(Session().typed("commit this").ran("git add -A").mark("interrupted"))
    assert (found.word, found.text) == ("interrupted", "Interrupted by the person after 1 call.")


def test_a_call_without_a_result_is_being_worked_on():
    found = of(Session().typed("go").ran("ls").step("command", "Bash", "make test", ""))
    assert (found.word, found.text) == (
        "in_progress",
        "Being worked on: 2 calls; the last one has no result yet: Bash `make test`",
    )


@pytest.mark.parametrize(("kind", "tool"), [("question", "AskUserQuestion"), ("plan", "ExitPlanMode")])
@pytest.mark.parametrize("words", ["Which zone?", "¿Qué zona?", "哪个时区？", "Какой пояс?", "أي منطقة؟"])
def test_an_open_question_waits_for_the_person_in_its_own_words(kind, tool, words):
    found = of(Session().typed("go").step(kind, tool, words, ""))
    assert (found.word, found.text) == ("waiting", f"It waits for the person: {words}")


@pytest.mark.parametrize("words", ["All done!", "¡Listo!", "全部完成。", "Fertig.", "Готово.", "تم."])
def test_whatever_the_agent_said_last_is_its_answer_without_a_mark_that_its_turn_had_ended(words):
    found = of(Session().typed("go").ran("make").said(words))
    assert (found.word, "no mark that its turn had ended" in found.text) == ("answered", True)
