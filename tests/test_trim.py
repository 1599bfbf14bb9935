"""Texts are shortened without breaking what stands in backticks."""

from __future__ import annotations

from ralf.text.cleaning import trimmed, without_middle


def test_no_half_of_a_name_in_backticks_is_left() -> None:
    assert trimmed("look at the file `src/one.py` and on", 24) == "look at the file…"
    assert "`" not in trimmed("`" + "x" * 60, 30)


def test_a_fence_at_the_beginning_is_left_whole() -> None:
    text = "```\nthe output of a command\n" + "a line of it\n" * 40 + "```\nwhat is this?"
    assert trimmed(text, 60).startswith("```\nthe output of a command")
    short, left_out = without_middle(text, 60, 30)
    assert short.startswith("```\nthe output")
    assert short.endswith("what is this?")
    assert left_out > 0
