"""The brief by the record: what it says of the last message, the state, what was done since, and the talk before."""

# ruff: noqa: RUF001  # words in other scripts

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.talkkit import Session

from ralf.brief.record import composed
from ralf.model.handover import Carried
from ralf.talk.answer import carry
from ralf.talk.handover_text import parse


def brief(session, most=None):
    return composed(session.view, most)[0]


def section(text, head):
    """The lines below a heading that begins with some words."""
    found = re.search(rf"(?ms)^### {head}[^\n]*\n(.*?)(?=^### |^Not here|^To record|\Z)", text)
    return found[1] if found else ""


# ---- the last message ----


def test_a_record_without_times_is_told_without_holes():
    session = Session().typed("first").said("one").ran("pytest", "failed", checks=("pytest",)).typed("Now the docs.")
    session.entries = [replace(entry, at="") for entry in session.entries]
    text = brief(session)
    assert text.startswith("# Context of r\nBy the record of one session. A quotation")
    assert section(text, "The last message").startswith("> Now the docs.\n")
    assert "- check `pytest` time unknown: FAILED" in text
    assert '\n- "first"\n' in text


@pytest.mark.parametrize("form", ["", "queued"])
def test_what_was_taken_back_into_the_input_field_is_never_the_last_message(form):
    session = Session().typed("keep this", form).mark("handed") if form else Session().typed("keep this")
    text = section(brief(session.typed("drop it all", "queued").mark("unsent")), "The last message")
    assert "> keep this" in text
    assert 'typed and taken back, not sent in this record: "drop it all"' in text


def test_an_order_that_somebody_wrote_is_no_paste_however_long_it_is():
    rules = "\n".join(
        f"- keep the harbour {number} open, whatever the tide table says about it" for number in range(64)
    )
    session = (
        Session().typed(f"# What to do\n{rules}\nBegin with the first.").said("I see.").typed("and be quick please")
    )
    assert len(rules) > 4_000
    assert brief(session, 2_500).count("keep the harbour") > 40


# ---- the talk ----


def test_the_talk_has_every_message_with_what_it_did_and_the_closing_words():
    session = Session().typed("add a parser").edited("src/a.py").said("The parser is in place.")
    session.typed("Thanks. Please go on with the docs of all of it, in English, and mind the escapes.").ran("ls")
    text = section(brief(session), "The talk")
    assert text.splitlines() == [
        "2026-03-09:",
        '- 08:01 "add a parser"',
        "  did: edited src/a.py",
        "  → The parser is in place.",
    ]


LANGUAGES = {
    "English": ("Do not push, I do that after the review.", "The parser is done and passes."),
    "Spanish": ("No hagas push, lo hago yo tras la revisión.", "El analizador está listo y pasa."),
    "Chinese": ("不要推送，审查之后我自己来。", "解析器已完成并通过测试。"),
    "German": ("Nicht pushen, das mache ich nach der Durchsicht.", "Der Parser ist fertig und läuft durch."),
    "Russian": ("Не пушить, я сделаю это после проверки.", "Парсер готов, тесты проходят."),
    "Arabic": ("لا تدفع التغييرات، سأفعل ذلك بعد المراجعة.", "المحلل جاهز والاختبارات ناجحة."),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_session_in_another_language_has_the_same_facts(language):
    def told(words, reply):
        session = Session().typed("start the work on the parser now").said(reply).typed(words).edited("src/a.py")
        session.ran("pytest", "failed", status=1, checks=("pytest",), lines=("E assert 1 == 2",)).said(reply)
        text = brief(session.typed(words + " " + words + " " + words).ran("git push", "refused"))
        assert text.count(words) == 4 and text.count(reply) == 3
        return text.replace(words, "W").replace(reply, "R")

    assert told(*LANGUAGES[language]) == told(*LANGUAGES["English"])


# ---- the budget ----


def handed(at):
    """What somebody handed over at a time: a full hand-over."""
    text = "## Now\n" + "The merge of both sides is half done, and nothing of it is tested. " * 4
    text += "\n## Next\n" + "\n".join(f"- Step {n}: write what the {n}. case of the merge needs" for n in range(6))
    text += "\n## Decided\n" + "\n".join(
        f"- Choice {n} about the fields\n  why: reason {n}\n  not: {n}" for n in range(14)
    )
    text += "\n## Open\n" + "\n".join(f"- Does the {n}. harbour run 1.4?" for n in range(6))
    text += "\n## Facts\n" + "\n".join(f"- The pause of case {n} is {n} s" for n in range(9))
    return carry(Carried(), *parse(text, author="agent", at=at))
