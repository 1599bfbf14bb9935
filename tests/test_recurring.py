"""Names that are needed again are found as they stand, ranked by who said them and when, and bounded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from clocks import within
from ralf.facts.commands import MOST_NAMES, join_names, names_in, rank_names
from ralf.transcripts.events import Event, Position


def events(*said: tuple[str, str]) -> list[Event]:
    kinds: dict[str, Any] = {"user": "user", "agent": "assistant", "tool": "result", "call": "call"}
    return [Event(kinds[who], text, Position(n, n), Position(n + 1, n + 1)) for n, (who, text) in enumerate(said)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("it is open_field that fails", "open_field"),
        ("see `pickRipePears()` for it", "pickRipePears()"),
        ("orchard.PickRow is the caller", "orchard.PickRow"),
        ("pushed as 9a4894a7.", "9a4894a7"),
        ("stops at field/picker.py:120 again", "field/picker.py:120"),
        ("look at docs/fruit/pears.md, please", "docs/fruit/pears.md"),
        ("(see #172)", "#172"),
        ("closed ENT-241 today", "ENT-241"),
        ("it took 412 ms", "412 ms"),
        ("session 28c304f6-3c5f-4539-af1d-07ae450e639d is old", "28c304f6-3c5f-4539-af1d-07ae450e639d"),
        ("TestPickRow_Ripe is red", "TestPickRow_Ripe"),
        ("then call reset()", "reset()"),
        ("it is in writeAll.", "writeAll"),
        ("see fruit/pears.md.", "fruit/pears.md"),
        ("~/.config/pears.toml has it", "~/.config/pears.toml"),
    ],
)
def test_a_name_is_taken_exactly_as_it_stands(text: str, name: str) -> None:
    assert name in list(names_in(text))


def test_plain_words_are_no_names() -> None:
    assert list(names_in("The pears are ripe. However, 12 of them fell, e.g. on Monday: deadbeef 1234567")) == []
    assert list(names_in("so pick(them), then pick them.and eat; or/and run-time, Ask.")) == []


def test_what_stands_for_a_secret_has_no_name() -> None:
    """It is another one for each person, so that the same transcript would give two files."""
    assert list(names_in("export TOKEN=[REDACTED:token:a104b96c] in run_all")) == ["run_all"]


def test_what_people_say_ranks_above_what_a_tool_printed_earlier() -> None:
    names = rank_names(
        events(
            ("user", "why does ripeRow fail?"),
            ("tool", "noisyPrinted " * 5 + "x " * 4000),
            ("agent", "x unripeRow " * 9),
        )
    )
    assert names == ("noisyPrinted", "unripeRow", "ripeRow")


def test_what_the_agent_had_just_seen_ranks_above_what_was_printed_long_ago() -> None:
    names = rank_names(events(("tool", "oldPrinted " * 3 + "x " * 9000), ("tool", "newPrinted")))
    assert names[-1] == "newPrinted"


def test_the_forms_of_a_name_are_one_shown_with_its_parentheses_where_it_had_them() -> None:
    names = rank_names(
        events(("user", "pickRipePears is slow"), ("agent", "`store.pickRipePears()` and `pickRipePears()` " * 400))
    )
    assert [name for name in names if "pickRipePears" in name] in (["pickRipePears()"], ["store.pickRipePears()"])


def test_a_file_that_is_kept_as_a_path_is_no_name() -> None:
    said = events(("user", "look at field/picker.py and at field/planter.py"))
    assert rank_names(said, ["field/picker.py"]) == ("field/planter.py",)


def test_a_short_stretch_has_few_names() -> None:
    assert len(rank_names(events(("user", " ".join(f"ripeRow{n}x" for n in range(100)))))) <= 2


def test_a_name_of_both_stretches_ranks_above_those_of_one() -> None:
    assert join_names(("oldName", "bothName"), ("bothName", "newName", "lastName"))[-1] in ("bothName", "lastName")
    assert join_names(("bothName", "oldName"), ("newName", "bothName"))[-1] == "bothName"


NAMES = st.lists(st.from_regex(r"[a-z]{2,4}_[a-z]{2,4}(\(\))?", fullmatch=True), max_size=200, unique=True)


@pytest.mark.ci
@given(NAMES, NAMES)
def test_a_route_keeps_so_many_names_at_most_each_once_and_none_that_was_not_there(
    old: list[str], new: list[str]
) -> None:
    names = join_names(old, new)
    assert len(names) <= MOST_NAMES
    assert len(set(names)) == len(names)
    assert set(names) <= {*old, *new}


@pytest.mark.parametrize(
    "part",
    [
        "@",
        "+",
        "a/",
        "a.",
        "0a",
        "1,",
        "a+",
        "a@b/",
        "aA",
        "~/",
        "../",
        "a-",
        "+/",
        "AB-1",
        "x.y:",
        "aB",
        "_",
        "#",
        "a:1",
    ],
)
def test_a_hostile_text_is_read_in_linear_time(part: str) -> None:
    within(0.5, lambda: list(names_in(part * (20_000 // len(part)))))


@pytest.mark.ci
@given(st.lists(st.tuples(st.sampled_from(["user", "agent", "tool", "call"]), st.text(max_size=200)), max_size=6))
def test_every_name_stands_in_the_source(said: list[tuple[str, str]]) -> None:
    source = "\n".join(text for _, text in said)
    assert all(name in source for name in rank_names(events(*said)))
