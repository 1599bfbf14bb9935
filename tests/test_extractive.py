"""The embedded summariser keeps requests, conclusions and the state of the work in the words of the source."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ralf.facts.facts import extract
from ralf.model import ActiveWork, CommitFact, Facts, Todo
from ralf.summarize import Segment, Summarizer, Summary
from ralf.summarize.extractive import Extractive
from ralf.transcripts.events import Event, Position


def events(*lines: tuple[str, str]) -> list[Event]:
    kinds: dict[str, Any] = {"user": "user", "agent": "assistant", "tool": "result"}
    return [
        Event(kinds[who], text, Position(n, n), Position(n + 1, n + 1), f"2026-03-01T10:{n % 60:02d}:00Z")
        for n, (who, text) in enumerate(lines)
    ]


def summed(*lines: tuple[str, str], work: ActiveWork | None = None, tokens: int = 5000) -> Summary:
    said = events(*lines)
    work = work or ActiveWork()
    part = extract(said, work=work)
    return Extractive().summarize(Segment("s1", said, part.facts, tokens, (), part.work))


def test_it_is_a_summariser_with_a_name() -> None:
    summariser: Summarizer = Extractive()
    assert summariser.name == "extractive"


def test_the_section_holds_each_request_and_what_the_agent_concluded() -> None:
    summary = summed(
        ("user", "Please make the picker faster"),
        ("agent", "Let me look at the picker."),
        ("agent", "The index was read twice because `open_field` ignored its cache. I fixed it in `picker.py`."),
        ("user", "And the reports?"),
        ("agent", "The nightly report takes 412 seconds, since every field is read again."),
    )
    assert summary.text == (
        "- **Asked:** Please make the picker faster\n"
        "  The index was read twice because `open_field` ignored its cache. I fixed it in `picker.py`.\n"
        "- **Asked:** And the reports?\n"
        "  The nightly report takes 412 seconds, since every field is read again."
    )


def test_the_items_of_a_list_keep_the_no_that_stands_above_them() -> None:
    said = "The charts are covered.\n\nThere is no test that checks:\n- `draw()` is called at noon\n- the buoys stay"
    text = summed(("user", "do we have tests of the charts?"), ("agent", said)).text
    assert "There is no test that checks: `draw()` is called at noon / the buoys stay" in text


def test_what_was_proposed_last_and_neither_accepted_nor_made_is_a_next_step() -> None:
    offer = "The cache is stale. Want me to replace the cache in `tide.py` with a plain call?"
    summary = summed(("user", "why are the tides late?"), ("agent", offer), ("user", "which commit brought that?"))
    steps = summary.active_work.next_steps
    assert steps == ("proposed, and neither accepted nor made: replace the cache in `tide.py` with a plain call",)
    taken = summed(("user", "why are the tides late?"), ("agent", offer), ("user", "yes"), ("agent", "Done."))
    assert not any(step.startswith("proposed") for step in taken.active_work.next_steps)


def test_tool_output_is_not_in_the_section() -> None:
    summary = summed(("user", "Please make the picker faster"), ("tool", "SECRET OUTPUT of the tool, fixed now."))
    assert "SECRET" not in summary.text


def test_a_segment_with_nothing_in_it_says_so() -> None:
    assert summed(("tool", "output")).text == "- Nothing worth keeping was said in this segment."


def test_the_title_is_taken_from_the_main_request_and_is_short() -> None:
    summary = summed(
        ("user", "ok"),
        ("agent", "Fine."),
        ("user", "Please make the `picker` faster, and do it without any change of the file format or of the index"),
        ("agent", "Reading."),
        ("agent", "The index was read twice."),
    )
    assert summary.title.startswith("Please make the picker faster")
    assert len(summary.title) <= 72
    assert summary.title.endswith("…")


def test_the_section_is_at_most_a_tenth_of_a_large_segment() -> None:
    lines = []
    for number in range(300):
        lines.append(("user", f"Please look at field {number} and tell me about its trees and their fruit"))
        lines.append(("agent", f"Field {number} has pears because of its soil. " * 10))
    text = "\n".join(text for _, text in lines)
    summary = summed(*lines, tokens=len(text) // 4)
    assert len(summary.text) <= len(text) / 10


def test_the_state_of_the_work_holds_statement_next_steps_findings_and_blockers() -> None:
    work = summed(
        ("user", "Please make the picker faster"),
        ("agent", "The root cause is that `open_field` ignores its cache."),
        (
            "agent",
            "The cache is in place and both callers use it.\n\nI am blocked by missing credentials of the server."
            "\n\n## Next steps\n- measure the nightly report\n- remove the old index",
        ),
        work=ActiveWork(todos=(Todo("Write the notes", "pending"), Todo("Pick", "completed"))),
    ).active_work
    assert work.last_request == "Please make the picker faster"
    assert work.last_statement.startswith("The cache is in place and both callers use it.")
    assert work.next_steps == ("measure the nightly report", "remove the old index", "Write the notes")
    assert work.findings == ("The root cause is that `open_field` ignores its cache.",)
    assert work.blockers == ("I am blocked by missing credentials of the server.",)
    assert work.work_status == "in_progress"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("Done.", "completed"),
        ("The pump is mended. All the work is done, and the tests pass.", "completed"),
        ("I ticked the list and look at the failing test of the well now.", "in_progress"),
        ("The migration is not done: the well still leaks.", "in_progress"),
    ],
)
def test_work_whose_to_dos_are_all_ticked_is_completed_where_the_agent_says_so(said: str, status: str) -> None:
    work = ActiveWork(todos=(Todo("Pick", "completed"),), work_status="in_progress")
    assert summed(("user", "go on please"), ("agent", said), work=work).active_work.work_status == status


def test_a_segment_without_a_statement_keeps_the_one_before() -> None:
    work = ActiveWork(last_statement="The cache is in place.")
    assert summed(("user", "thanks"), work=work).active_work.last_statement == "The cache is in place."


def test_key_events_are_at_most_five_short_lines() -> None:
    said = events(("user", "Please ship it"), ("agent", "We decided to keep the harvest records in one file. " * 3))
    facts = replace(Facts(), commits=tuple(CommitFact(f"abc123{n}", "Ripen " * 40) for n in range(9)))
    lines = Extractive().summarize(Segment("s1", said, facts, 100)).key_events
    assert 0 < len(lines) <= 5
    assert all(len(line) <= 120 and "\n" not in line for line in lines)


def test_the_same_segment_gives_the_same_summary() -> None:
    lines = (("user", "Please make the picker faster"), ("agent", "Decision: we cache the index because it is small."))
    assert summed(*lines) == summed(*lines)


def taken(*said: tuple[str, str]) -> float:
    """Seconds of processor time that a segment takes."""
    segment = Segment("s1", events(*said), Facts(), 50_000)
    start = time.process_time()
    Extractive().summarize(segment)
    return time.process_time() - start


def known() -> float:
    """Seconds of processor time that something takes which every machine does: half of a segment's of 50,000 tokens."""
    start = time.process_time()
    assert sum(number & 7 for number in range(4_000_000))
    return time.process_time() - start


@pytest.mark.parametrize("sentence", ["Field {0} uses `tree_{0}`", "Field {1} of {0} uses `tree_{0}`"])
def test_a_segment_of_fifty_thousand_tokens_takes_a_moment(sentence: str) -> None:
    def said(first: int) -> Iterator[tuple[str, str]]:
        for number in range(first, first + 120):
            yield "user", f"Please look at field {number}"
            told = (f"{sentence.format(number, n)} instead of a row because it is simpler. " for n in range(18))
            yield "agent", "".join(told)

    assert any(taken(*said(first)) < 3.5 * known() for first in range(0, 6_000, 1_000))  # 2.3 and 2.6 alone


def test_a_paragraph_of_many_choices_takes_time_by_its_length() -> None:
    """Of those that follow each other the best is kept: each is compared with all that come after it."""

    def choosing(count: int, what: str) -> float:
        choices = (f"We decided to use the {what} {number} for the tides." for number in range(count))
        best = "We decided to use the list instead of the tree because it is simpler."
        return taken(("user", "Please go on"), ("agent", " ".join([*choices, best])))

    assert any(choosing(800, what) < 8 * choosing(200, what) for what in ("table", "column", "reader"))


MARKUP = st.text(alphabet=st.sampled_from("ab.`#*->| \n:1?!~…"), max_size=120)


@given(st.lists(st.tuples(st.sampled_from(["user", "agent", "tool"]), MARKUP), max_size=8))
def test_no_text_of_a_transcript_can_become_a_heading_a_rule_or_a_fence(lines: list[tuple[str, str]]) -> None:
    summary = summed(*lines)
    assert all(re.match(r"- |> |\*\*|  ", line) for line in summary.text.split("\n"))
    assert "\n" not in summary.title
    assert len(summary.title) <= 72
    assert all("\n" not in line for line in summary.key_events)
