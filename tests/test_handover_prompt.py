"""What a model is shown of a segment fits its budget, and the talk is never left out."""

import re

import pytest

from ralf.facts.state import State
from ralf.model.entries import GitFact, Mark, Message, Said, Step
from ralf.model.handover import Carried, HandOver, Kept
from ralf.refining.prompting import MOST_PROMPT, prompt
from ralf.talk.turns import thread
from ralf.text import tokens

AT = "2026-03-09T08:45:00Z"


def asked(entries, before=None, details=None):
    talk = thread(entries)
    return prompt(talk, State.of(talk.entries), before or Carried(), details)


def command(number, text, outcome="ok", **given):
    return Step(f"c{number}", AT, number, "command", "Bash", text, outcome=outcome, **given)


TALK = [
    Message("m1", AT, "s", 1, text="Слей поля по одному, ничего не выбрасывай."),
    Said(AT, 2, "Looking."),
    command(3, "ls src", looks=True),
    Step("r4", AT, 4, "look", "Read", "src/merge.py", outcome="ok", looks=True),
    Step(
        "e5", AT, 5, "edit", "Edit", "src/merge.py", outcome="ok", files=(("src/merge.py", "edited"),), added="def x():"
    ),
    command(6, "pytest -q", "failed", status=1, checks=("pytest",), lines=("E NameError: _rebase",)),
    Said(AT, 7, "Falta `_rebase`; lo escribo mañana."),
    Message("m8", AT, "s", 8, "refused", "不要用 stash", about="Bash git stash"),
    command(
        9, "git commit -m 'Merge by field'", git=(GitFact("commit", "8a668bf", "Merge by field"),), output="[main 8a6"
    ),
    Mark("interrupted", AT, 10),
]


def test_state_last_hand_over_and_segment_stand_in_order_between_two_lines_with_a_hash_of_them():
    entry = Kept("decision", "threads", "DEC-004", rejected=("asyncio",), by="person", words="threads, not asyncio")
    text = asked(TALK, Carried(HandOver("half done", next=("run it",), left_out=("3 facts",)), (entry,))).text
    fences = re.findall(r"(?m)^==DATA-[0-9a-f]{24}==$", text)
    assert len(fences) == 2
    assert len(set(fences)) == 1
    data = text.split(f"{fences[0]}\n")[1]
    places = [
        data.index(part) for part in ("State by the record", "8a668bf", "now: half done", "DEC-004", "The segment")
    ]
    assert places == sorted(places)
    assert 'decided: DEC-004 (the person) threads — "threads, not asyncio". Not: asyncio\n' in data
    assert "left out: 3 facts" in data
    assert asked(TALK).text != text


@pytest.mark.ci
@pytest.mark.parametrize("words", ["tide tables of the harbour ", "таблицы приливов ", "潮汐表和港口的数据"])
def test_a_full_segment_fits_and_its_messages_and_closing_texts_are_all_there(words):
    entries = []
    for n in range(0, 220, 10):
        entries += [
            Message(f"m{n}", AT, "s", n, text=f"order {n}: {words * 4}"),
            Said(AT, n + 1, f"between {n}: {words * 30}"),
        ]
        entries += [command(n + m, f"make target{n}{m} {words}", output=words) for m in range(2, 8)]
        entries.append(Said(AT, n + 8, f"closing {n}: {words * 60}"))
    text = asked(entries).text
    assert MOST_PROMPT * 0.6 < tokens.count(text) <= MOST_PROMPT
    assert all(f"order {n}:" in text and f"closing {n}:" in text for n in range(0, 220, 10))


@pytest.mark.ci
def test_of_too_many_calls_the_oldest_are_left_out_and_the_talk_stays_whole():
    calls = [command(n, f"make target{n} of the{' tide tables' * 6}") for n in range(1, 360)]
    text = asked([Message("m", AT, text="прилив " * 40), *calls, Said(AT, 900, "潮汐 " * 30)]).text
    assert "прилив " * 39 in text
    assert "潮汐 " * 29 in text
    assert "make target1 " not in text
    assert "make target359 " in text
    assert tokens.count(text) > MOST_PROMPT * 0.95
