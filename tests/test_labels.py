"""The labelled sentences are where they are said to be, and the measure over them counts what it says."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import labelled
from labelled import Agreement, Labelled, Own, Verdict, is_beside, is_listed
from ralf.model import Decision, Source

beside = pytest.mark.skipif(not labelled.available(), reason="the evaluation data is not beside the checkout")


def test_three_hundred_sentences_are_labelled_once_each_and_by_reference_alone() -> None:
    rows = labelled.rows()
    assert len(rows) == 300
    assert len({(row.session, row.line, row.block, row.start, row.end) for row in rows}) == 300
    for row in rows:
        assert row.label in labelled.KINDS
        assert row.who in ("user", "agent")
        assert row.line > 0
        assert row.block >= 0
        assert 0 <= row.start < row.end
        assert re.fullmatch(r"[0-9a-f]{16}", row.sha256)
        assert not row.text


@beside
def test_every_label_still_finds_the_words_that_were_labelled() -> None:
    said = list(labelled.sentences())
    assert len(said) == 300
    assert all(sentence.text.strip() for sentence in said)


def test_a_label_whose_words_have_changed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Labelled("s1", 1, 0, 0, 5, "0" * 16, "user", "none")
    monkeypatch.setattr(labelled, "rows", lambda: [row])
    monkeypatch.setattr(labelled, "_unpacked", lambda session: b'{"message": {"content": "other words"}}\n')
    with pytest.raises(ValueError, match=r"s1:1#0\[0:5\] does not hold the words"):
        list(labelled.sentences())


def test_own_words_hold_the_sentence_that_is_labelled() -> None:
    owns = labelled.own_words()
    assert len(owns) >= 60
    for own in owns:
        assert own.label in labelled.KINDS
        assert {who for who, _ in own.said} <= {"user", "agent"}
        assert own.text in own.said[own.turn][1]
    assert len({(own.said, own.turn, own.text) for own in owns}) == len(owns)


def test_own_words_have_every_label_from_users_and_agents() -> None:
    counts = Counter((own.label, own.who) for own in labelled.own_words())
    assert all(counts[label, who] for label in ("decision", "none") for who in ("user", "agent"))
    assert counts["rule", "user"] >= 5
    assert counts["failed-approach", "agent"] >= 3


@beside
def test_own_words_take_nothing_from_the_sessions() -> None:
    theirs = {" ".join(said.text.lower().split()) for said in labelled.sentences()}
    for own in labelled.own_words():
        for _, text in own.said:
            if len(text) >= 20:
                assert not any(" ".join(text.lower().split()) in said for said in theirs)


def listed(text: str, *, said: str, who: str = "agent", turn: int = 1, lines: tuple[int, int] = (1, 2)) -> bool:
    turns = ((who, said),) * (turn + 1)
    decision = Decision(decision=text, origin=who, source=Source("s1", *lines))
    return is_listed(Own(turns, turn, said, "none"), [decision])


def test_a_sentence_is_listed_when_its_words_stand_in_a_listed_text() -> None:
    assert listed("We use LMDB; it is fast.", said="We use **LMDB**;")
    assert listed("We use LMDB for the long…", said="We use LMDB for the long way home.")
    assert not listed("We use LMDB.", said="We use SQLite.")
    assert not listed("We used it", said="use")


def test_a_sentence_is_not_listed_by_a_decision_from_elsewhere() -> None:
    assert not listed("We use LMDB.", said="We use LMDB.", lines=(7, 9))


def test_a_short_answer_is_listed_through_what_it_answers() -> None:
    assert listed("Number the tickets at random", said="yes, the second", who="user", lines=(1, 2))
    assert not listed("Number the tickets at random", said="yes, the second", who="user", lines=(2, 2))
    assert not listed("Number the tickets at random", said="yes, the second", who="agent", lines=(1, 2))


def test_a_question_is_not_listed_by_what_the_answer_made_of_it() -> None:
    assert not listed("redo the plan test first throughout", said="Shall I redo the plan test first throughout?")
    assert listed("Shall I redo the plan test first throughout?", said="Shall I redo the plan test first throughout?")
    assert not listed("Number the tickets at random", said="which of them?", who="user", lines=(1, 2))


def test_a_sentence_stands_beside_when_most_of_what_is_listed_is_another() -> None:
    text = "I'll do the merge myself and tell the office afterwards. what's next?"
    found = [Decision(decision=text, origin="user", source=Source("s1", 1, 1))]
    assert is_beside(Own((("user", text),), 0, "what's next?", "none"), found)
    assert not is_beside(Own((("user", text),), 0, text.removesuffix(" what's next?"), "decision"), found)


def test_precision_and_recall_are_counted_from_the_verdicts() -> None:
    def verdict(label: str, hit: bool) -> Verdict:
        return Verdict(Own((("user", "x"),), 0, "x", label), hit)

    seen = [verdict("decision", True), verdict("rule", False), verdict("none", True), verdict("none", False)]
    agreement = Agreement.of(seen)
    assert (agreement.real, agreement.listed, agreement.both) == (2, 2, 1)
    assert (agreement.precision, agreement.recall) == (0.5, 0.5)
    assert Agreement.of([]).precision == Agreement.of([]).recall == 0.0


def test_every_sentence_in_own_words_gets_a_verdict() -> None:
    assert len(labelled.own_precision_and_recall()) == len(labelled.own_words())


@pytest.mark.slow
@beside
def test_every_labelled_sentence_gets_a_verdict_in_its_place() -> None:
    assert [str(v.sentence) for v in labelled.precision_and_recall()] == [str(row) for row in labelled.rows()]


def test_sentences_listed_as_own_words_are_real_and_most_real_ones_are_listed() -> None:
    agreement = Agreement.of(labelled.own_precision_and_recall())
    assert agreement.precision >= 0.9
    assert agreement.recall >= 0.75


@beside
def test_of_the_listed_sentences_of_the_sessions_nine_of_ten_are_real() -> None:
    agreement = Agreement.of(labelled.precision_and_recall())
    assert agreement.precision >= 0.9
    assert agreement.recall >= 0.5
