"""What a person pastes into a message is their request, never their rule or decision; their own words count."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ralf
from ralf.facts import pasted
from ralf.model import RouteContext
from test_closed_tags import FORMS, WORD

Carrier = Callable[[str], str]


def lines(text: str, before: str) -> str:
    return "\n".join(f"{before}{line}" for line in text.split("\n"))


CARRIERS: dict[str, Carrier] = {
    "a quotation": lambda x: f"I found this, what do you think of it?\n\n{lines(x, '> ')}",
    "a quotation of a quotation": lambda x: f"He answered:\n\n> hello\n{lines(x, '> > ')}\n\nIs that so?",
    "a fence": lambda x: f"This is in the README, is it right?\n\n```\n{x}\n```",
    "a fence of tildes": lambda x: f"Is it right?\n\n~~~text\n{x}\n~~~\nPlease look.",
    "a fence without an end": lambda x: f"Is it right?\n\n```\nfirst\n\n{x}",
    "a fence that holds a fence": lambda x: f"Is it right?\n\n````\n```\na\n```\n{x}\n````",
    "a tag": lambda x: f"Summarize this for me:\n<document>\n{x}\n</document>",
    "a tag that is closed from within": lambda x: f"Look at this.\n<page>\na\n</page>\n{x}\n</page>\nThanks!",
    "a tag with attributes": lambda x: f'<file path="AGENTS.md">\n{x}\n</file>\nWhich of those make sense here?',
    "a page in HTML": lambda x: f"What is wrong with this?\n\n<html><body>\n<p>{x}</p>\n</body></html>",
    "three quotation marks": lambda x: f'Translate:\n"""\n{x}\n"""\ninto French.',
    "quotation marks": lambda x: f"The vendor sent us:\n\n“Dear all,\n\n{x}\n\nRegards”\n\nIs that true?",
    "set in": lambda x: f"The readme has this part\n\n{lines(x.strip(), '    ')}\n\nDo we do so?",
    "a mail": lambda x: f"Summarize this:\n\nFrom: a@example.org\nSubject: Hello\n\nHi,\n\n{x}\n\nRegards\nA",
    "a mail without an address": lambda x: f"What do we answer?\n\nFrom: Ann\nTo: Ben\nDate: Monday\n\n{x}",
    "a German mail": lambda x: f"Kannst du das prüfen?\n\nVon: Ann Bauer\nBetreff: Regeln\n\n{x}",
    "a forwarded mail": lambda x: f"See this\n\n---------- Forwarded message ---------\n\n{x}\n\nBest\n",
    "an announced mail": lambda x: f"Summarize this mail that we got:\n\nHello,\n\n{x}\n\nRegards",
    "a page": lambda x: f"What do you make of this page?\n\n# Ten rules\n\n{x}\n\n© 2025",
    "a copied page": lambda x: f"copied from their wiki, is any of it true?\n\nHome | About\n\n{x}",
    "what a document says": lambda x: f"The contributing guide says:\n\n{x}\n\nDo we follow it?",
    "what somebody wrote": lambda x: f"Ann wrote:\n\n{x}\n\nIs she right?",
    "a log": lambda x: f"Why?\n\n[12:00:01] INFO start\n[12:00:02] {x.strip()}\n[12:00:03] INFO end",
    "a log with dates": lambda x: (
        f"Why?\n2026-01-02T10:00:00Z a\n2026-01-02T10:00:01Z {x.strip()}\n2026-01-02T10:00:02Z b"
    ),
    "a syslog": lambda x: (
        f"Why?\n\nFeb  8 21:51:50 h a[1]: x\nFeb  8 21:51:51 h a[1]: {x.strip()}\nFeb  8 21:51:52 h a[1]: y"
    ),
    "a console": lambda x: f"Why?\n$ make\n{x.strip()}",
    "a commit": lambda x: (
        f"Revert it?\n\ncommit 1234567890abcdef\nAuthor: x\nDate: today\n\n{lines(x.strip(), '    ')}"
    ),
    "a difference": lambda x: f"Review:\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n{lines(x.strip(), '+')}",
    "JSON": lambda x: f'Convert it:\n{{"text": {json.dumps(x)}}}',
    "a table": lambda x: "Sort it:\n\n| rule |\n|------|\n| " + x.strip().replace("\n", " ") + " |",
    "a talk with an agent": lambda x: f"Human: hello\n\nAssistant: hi\n\nHuman: {x}\n\nAssistant: I will.",
    "a talk of two": lambda x: f"What did they agree on?\n\nAnn: hello\nBen: hi\nAnn: {x}\nBen: ok",
    "a chat with times": lambda x: (
        f"What did they agree on?\n\nAnn Lee 14:01\nhello\nBen 14:02\n{x}\n\nAnn Lee 14:03\nok"
    ),
    "a channel": lambda x: f"Who is right?\n\n<ann> hello\n<ben> {x.strip()}\n<ann> ok",
    "a frame": lambda x: f"The client sent this brief, pasted below.\n\n=====\n{x}\n=====\n\nExtract the dates.",
    "a review": lambda x: f"**ann** commented 2 hours ago\n{x}\n\n**me** commented 1 hour ago\nok",
}


UNMARKED: dict[str, Carrier] = {
    "a text that is to be turned into another": lambda x: f"MINUTES\nTOP 1: ok\n{x}\n\nTurn those minutes into a CSV.",
    "a text out of which something is to be made": lambda x: f"The guild of old\n\n{x}\n\nMake a poster out of it.",
    "a text that is asked about first": lambda x: f"Does anything here affect us?\n\nNews\n\n{x}\n\nContact support.",
    "a page with its path": lambda x: f"Handbook / Reviews\n\n{x}\n\nDo our branches do so?",
    "what they have": lambda x: f"# .rules\n{x}\n\nthat's what they have over there. Is it usual?",
    "lines cut out": lambda x: (
        f"=8<== cut here =8<==\n=== cut here ===\n{x}\n=== cut here ===\n\nWhich version is ours?"
    ),
    "a letter that is signed": lambda x: f"Dear Ann,\n\n{x}\n\nKind regards,\nBen\n\nWhich template is that one from?",
}
"""Pastes without a mark: what a person asks about them tells them, so that a rule before them is lost with them."""


def session(*requests: str) -> list[dict[str, Any]]:
    """A session in which the agent takes each request up."""
    records: list[dict[str, Any]] = []
    for request in requests:
        said = {"role": "assistant", "content": [{"type": "text", "text": "I'm looking at it now."}]}
        records.append({"type": "user", "sessionId": "s", "message": {"role": "user", "content": request}})
        records.append({"type": "assistant", "sessionId": "s", "message": said})
    return records


def taken(root: Path, *requests: str) -> RouteContext:
    path = root / "s.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in session(*requests)), encoding="utf-8")
    ralf.checkpoint("r", path, root=root)
    return ralf.get_context("r", root=root)


@pytest.mark.parametrize("carrier", [*CARRIERS, *UNMARKED])
def test_a_paste_is_a_request_and_neither_rule_nor_decision(tmp_path: Path, carrier: str) -> None:
    texts = [(CARRIERS | UNMARKED)[carrier](form) for form in FORMS]
    context = taken(tmp_path, "Please build the project.", *texts)
    assert [decision.decision for decision in context.decisions if WORD in decision.decision] == []
    work = context.active_work
    assert WORD not in "".join([context.goal, *work.next_steps, *work.blockers])
    kept = {" ".join(request.request.split()) for request in context.facts.requests}
    assert kept >= {" ".join(text.split()) for text in texts}


OWN = "From now on, never push without my approval."


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_persons_rule_before_a_paste_stays_a_rule(tmp_path: Path, carrier: str) -> None:
    context = taken(tmp_path, f"{OWN}\n\n{CARRIERS[carrier]('The disk is full.')}")
    assert OWN in [decision.decision for decision in context.decisions if decision.kind == "rule"]


@pytest.mark.parametrize(
    "paste",
    [
        "> quoted\n> twice",
        "```\nfenced\n```",
        "<log>\nx\n</log>",
        "[12:00:01] INFO start\n[12:00:02] INFO end",
        "<ann> hello\n<ben> hi",
        "| a | b |\n|---|---|\n| c | d |",
        "The readme has this part\n\n    set in\n    twice",
        "They sent this:\n\n-----\nframed\n-----",
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 'x'",
    ],
)
def test_a_persons_rule_behind_a_paste_that_shows_its_end_is_a_rule(tmp_path: Path, paste: str) -> None:
    context = taken(tmp_path, f"Why does this happen?\n\n{paste}\n\n{OWN}")
    assert OWN in [decision.decision for decision in context.decisions if decision.kind == "rule"]


@pytest.mark.parametrize(
    "paste",
    [
        "Ann Lee 14:01\nhello\nBen 14:02\nok",
        "They wrote:\n\nthe disk is full",
        "From: Ann <a@example.org>\nSubject: disk\n\nThe disk is full.\nCheers, Ann",
        "Human: hello\nAssistant: hi",
    ],
)
def test_a_persons_closing_question_behind_a_paste_without_an_end_is_theirs(tmp_path: Path, paste: str) -> None:
    text = f"{paste}\n\nCan you tell me why this happens? {OWN}"
    assert OWN in [decision.decision for decision in taken(tmp_path, text).decisions if decision.kind == "rule"]


def test_where_a_person_has_asked_already_a_paste_without_an_end_goes_to_the_end(tmp_path: Path) -> None:
    text = f"Can you summarize this mail?\n\nFrom: Ann <a@example.org>\n\nHi,\nCheers, Ann\n\nCan you check it? {OWN}"
    assert [decision for decision in taken(tmp_path, text).decisions if decision.kind == "rule"] == []


@pytest.mark.parametrize(
    "text",
    [
        "I mean the reader, not the writer.\n\nNever retry.\n\nIs that right?",
        "yes. I think we should log it.\n\nis there a way to retry?",
        "# Goal\n\nMove the page.\n\n# How we work\n\n- Never push.\n- Note: tests first.\n\nContext: old.\n\nThanks!",
        "Some rules:\n\n1. Always run the tests.\n   They are quick.\n2. Never push.",
        "I want:\n- one flag\n- no new packages\n\nMy conventions for this repository:\n\nTabs, not spaces.",
        "Fix the bug in `a.py`.\n\n---\n\nNever touch the old columns.",
        "It fails at 12:30 every day; always check the clock first.",
        "    set in as a whole\n    by an editor",
        'The reviewer said "never use floats" and he was right. Use integers.',
    ],
)
def test_a_persons_own_text_is_no_paste(text: str) -> None:
    assert pasted.own(text) == text


def test_a_sentence_in_quotation_marks_is_somebody_elses(tmp_path: Path) -> None:
    context = taken(tmp_path, 'Their guide says "from now on always push to main" somewhere. Find it, please.')
    assert [decision for decision in context.decisions if decision.kind == "rule"] == []


@pytest.mark.parametrize(
    "text",
    [
        "Ann wrote: from now on, never push to main. What do we answer her?",
        "My boss says we must never use floats. Is there any in the code?",
        "Never push on Fridays.\nAlways ask first.\n\nThat's from the handbook of our client. Do we follow it?",
    ],
)
def test_what_a_person_tells_of_somebody_else_is_no_rule(tmp_path: Path, text: str) -> None:
    assert [decision for decision in taken(tmp_path, text).decisions if decision.kind == "rule"] == []


def test_a_long_request_loses_the_middle_of_a_paste_but_no_words_of_the_person(tmp_path: Path) -> None:
    own = [f"Part {number} of what I want is that the reader keeps column {number}." for number in range(30)]
    text = "\n\n".join([*own[:15], "```\n" + "output of a tool\n" * 300 + "```", *own[15:]])
    (request,) = taken(tmp_path, text).facts.requests
    assert all(sentence in request.request for sentence in own)
    assert len(request.request) < len(text) / 2
    assert request.omitted > 3_000


@pytest.mark.parametrize(
    "piece",
    [
        "\n",
        "regards\n\n",
        "that is\n\n",
        '{"\n\n',
        "A1: x\n",
        "---\nthe mail:\n",
        "<a b>\n",
        "From: a@b\n",
        '"x\n',
        "> ",
        "``` \n",
    ],
)
def test_a_hostile_message_is_read_at_once(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    assert len(pasted.own(text)) <= 40_000
    assert len(pasted.shortened(text)) <= 40_100


def test_a_pasted_failure_keeps_the_line_that_says_where_it_failed() -> None:
    lines = "".join(f"    hooks.go:{n}: Hook output: wrote line {n} of the log\n" for n in range(40))
    failed = "merge_test.go:439: failed to merge branch main: exit status 1"
    text = f"--- FAIL: TestMerge (3.72s)\n{lines}    {failed}\n{lines}FAIL"
    kept = pasted.shortened(text)
    assert len(kept) < len(text) // 2 and failed in kept


def test_a_paragraph_in_another_language_than_that_which_asks_is_pasted(tmp_path: Path) -> None:
    text = (
        "Les pages sont pour les clients et ne doivent jamais être dans le cache. Il est interdit de les copier.\n\n"
        "Which of the rules on it do we follow in the proxy, and is there a test of the header that it needs?"
    )
    assert pasted.own(text).startswith("\n\nWhich of the rules")
    assert [decision for decision in taken(tmp_path, text).decisions if decision.kind == "rule"] == []


def test_the_goal_of_a_pasted_failure_says_what_is_to_be_fixed(tmp_path: Path) -> None:
    name, failed = "--- FAIL: TestMerge (3.72s)", "merge_test.go:439: failed to merge branch main: exit status 1"
    goal = taken(tmp_path, "Please review the merge of the harbour rows", f"{name}\n    {failed}\nFAIL").goal
    assert goal == f"fix what was pasted: {name}: {failed}"


def test_a_route_began_as_its_first_request_however_short_with_the_question_that_it_answers(tmp_path: Path) -> None:
    asked = "Which pull request should I review?"
    text = [{"type": "text", "text": asked}]
    opening = {"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": text}}
    told = [opening, *session("181", "please rename the harbours in `tide.py` and move on to their rows")]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in told), encoding="utf-8")
    ralf.checkpoint("tide", path, root=tmp_path)
    assert ralf.get_context("tide", root=tmp_path).began_as == f"181 (to: {asked})"
