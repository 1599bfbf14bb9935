"""Text that is kept holds nothing that a file, a terminal or a parser stumbles over, and is otherwise untouched."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from contexts import quick
from ralf.text import clean, one_line


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://a\x1b\\link", "link"),
        ("\x1b[2J\x1b[1;1Hhome", "home"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\0b\x07c\x7fd\u0085e\u009bf", "abcde"),
        ("\ud800 \udfff", "\ufffd \ufffd"),
        ("\x1b", ""),
        ("\x1b\x1b[0m", ""),
    ],
)
def test_escape_sequences_and_control_characters_go(dirty: str, expected: str) -> None:
    assert clean(dirty) == expected


@pytest.mark.parametrize(
    "kept", ["", "\ta\n\n  b \n", "\u2028\u2029\xa0\ufeff", "\U0001f980 e\u0301", "[31m", "\\x1b[0m"]
)
def test_clean_text_comes_back_as_it_is(kept: str) -> None:
    assert clean(kept) == kept


@given(st.text() | st.text(st.sampled_from("\x1b[]0m\r\n\x07\\ \x9b\ud800a")))
@quick
def test_cleaning_twice_is_cleaning_once_and_what_is_left_can_be_written(text: str) -> None:
    found = clean(text)
    assert clean(found) == found
    assert found.encode().decode() == found
    assert not any(ord(character) < 32 and character not in "\n\t" for character in found)


@given(st.text())
@quick
def test_one_line_is_one_line_and_keeps_every_word(text: str) -> None:
    found = one_line(text)
    assert found.splitlines() in ([], [found])
    assert found.split() == text.split()
    assert one_line(found) == found
