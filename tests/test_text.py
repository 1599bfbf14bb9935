"""Text that is kept holds nothing that a file, a terminal or a parser stumbles over, and is otherwise untouched."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from contexts import quick
from ralf.text.cleaning import clean, one_line


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\0b\x07c\x7fd\u0085e\u009bf", "abcde"),
        ("\ud800 \udfff", "\ufffd \ufffd"),
        ("\x1b\x1b[0m", ""),
        ("a\u2028b\u2029c", "a\nb\nc"),
        ("a\u200bb\u2060c\ufeffd\xade\u3164f", "abcdef"),
        ("\u202eevil\u202c \u2066x\u2069\u200f\u061c", "evil x"),
        ("a\u200cb\u200d\u200dc \u200d", "abc "),
    ],
)
def test_escape_sequences_and_control_characters_go(dirty: str, expected: str) -> None:
    assert clean(dirty) == expected


@pytest.mark.parametrize(
    "kept",
    [
        *["", "\ta\n\n  b \n", "\xa0", "\U0001f980 e\u0301", "[31m", "\\x1b[0m"],
        *["\u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"],
    ],
)
def test_clean_text_comes_back_as_it_is(kept: str) -> None:
    assert clean(kept) == kept


@given(st.text())
@quick
def test_one_line_is_one_line_and_keeps_every_word(text: str) -> None:
    found = one_line(text)
    assert found.splitlines() in ([], [found])
    assert found.split() == text.split()
    assert one_line(found) == found
