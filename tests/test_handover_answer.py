"""A model's answer is read in any wrapping, held against the record, and never rewords what is kept."""

from dataclasses import replace

import pytest

from ralf.model.entries import Message, Said
from ralf.model.handover import Carried, HandOver, Kept
from ralf.talk.answer import (
    FORM,
    Ending,
    answer_of,
    carry,
    checked,
    last_object,
)
from ralf.talk.names import Quotes, Shown

ENTRIES = [
    Message("m1", "2026-03-09T08:10:00Z", "s1", 10, text="Fine, own code then. Keep it in one module."),
    Said("2026-03-09T08:11:00Z", 20, "I cap the pause at 30 s."),
    Message("m2", "2026-03-09T08:30:00Z", "s1", 30, text="Нет, потоки, не asyncio. 不要用asyncio。"),
]


def empty(**given):
    return {**{key: type(form)() for key, form in FORM.items()}, **given}


# ---- reading ----


@pytest.mark.parametrize(
    "text",
    [
        '{"now": "half done"}',
        'Here it is:\n```json\n{"now": "half done"}\n```\nAnything else?',
        'First {"now": "no"} then {"now": "half done"}, and {"no": "key"} {"cut": ',
        '说明如下:{"now": "half done"}完毕',
        '{"now": "half\ndone"}',
    ],
)
def test_the_last_complete_object_is_the_answer(text):
    assert answer_of(last_object(text)).moment.now == "half done"


# ---- what the record says of it ----


def check(tree, text="merge.py and asyncio"):
    return checked(answer_of(tree), Shown([text]), Quotes(ENTRIES), model="haiku", at="2026-03-09T08:45:00Z")


def test_the_message_in_which_the_words_stand_tells_who_decided():
    tree = empty(
        now="half done",
        decisions=[
            {"text": "Own code", "words": "own code then", "line": 9},
            {"text": "Pause of 30 s", "words": "cap the pause", "line": 20},
            {"text": "Threads", "words": "потоки, не asyncio", "line": 30},
            {"text": "One module", "words": "never said", "line": 10},
            {"text": "Nothing", "words": "never said", "line": 999},
        ],
    )
    _, kept = check(tree)
    assert [(one.by, one.words, one.line) for one in kept] == [
        ("person", "own code then", 10),
        ("agent", "cap the pause", 20),
        ("person", "потоки, не asyncio", 30),
        ("", "Fine, own code then. Keep it in one module.", 10),
        ("", "", 999),
    ]
    assert {(one.author, one.model) for one in kept} == {("model", "haiku")}


# ---- carrying on ----


def handover(author="model", at="2026-03-09T09:00:00Z", now="later"):
    return HandOver(now, author=author, at=at, session="s1")


def kept(kind, text, id_="", **given):
    return Kept(kind, text, id_, **given)


def test_a_model_ends_what_a_model_wrote_and_a_new_decision_takes_its_place():
    before = Carried(kept=(kept("decision", "asyncio", "DEC-001"), kept("open", "who?", "OPEN-001")))
    new = [kept("decision", "one module"), kept("decision", "threads")]
    after = carry(before, handover(), new, [Ending("DEC-001", "#2"), Ending("OPEN-001", "the office")])
    assert {one.id: one.ended and one.ended.why for one in after.kept} == {
        "DEC-002": None,
        "DEC-003": None,
        "DEC-001": "DEC-003",
        "OPEN-001": "the office",
    }


AGENTS = kept("decision", "asyncio", "DEC-001", author="agent", at="2026-03-09T08:20:00Z", session="s1")


@pytest.mark.parametrize(
    ("entry", "words", "line", "ends"),
    [
        (AGENTS, "не asyncio", 30, True),
        (AGENTS, "own code then", 10, False),  # said before it
        (replace(AGENTS, line=35), "не asyncio", 30, False),
        (AGENTS, "cap the pause at 30 s", 20, False),  # the agent's
        (AGENTS, "", 30, False),
        (kept("decision", "asyncio", "DEC-001", author="person"), "не asyncio", 30, False),
    ],
)
def test_a_model_ends_an_agents_entry_by_later_words_of_the_person_alone(entry, words, line, ends):
    after = carry(
        Carried(kept=(entry,)), handover(), [], [Ending("DEC-001", "given up", words, line)], quotes=Quotes(ENTRIES)
    )
    assert (after.kept[-1].ended is not None) is ends
    questions = [one.text for one in after.current("open")]
    assert questions == ([] if ends else ["the model holds DEC-001 for ended: given up"])
