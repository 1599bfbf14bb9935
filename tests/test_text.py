"""Text that is kept holds nothing that a file, a terminal or a parser stumbles over, and is otherwise untouched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from clocks import within
from contexts import mapping, quick
from ralf.errors import UsageError
from ralf.maintenance.purge import Wording
from ralf.text import cleaning
from ralf.text.cleaning import MARK, clean, one_line


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


# ---- route names ----


REFUSED = [
    *["", ".", "..", "a..b", ".a", "a.", "-a", "a-", "_a", "a_", "x" * 65],
    *["a/b", "/a", "a\\b", "../a", "a b", "a\n", "\na", "a\0", "a\u00e9", "\u0430", "a:b", "a*", "~", "$HOME", "%2e"],
    *["a.md", "a.MD", "a.tmp", "a.lock", "a.Lock"],
    *["con", "CON", "nul", "nul.txt", "aux.a.b", "com1", "LPT9", "prn"],
]


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_some_file_system_would_not_take_is_refused(name: str) -> None:
    assert not cleaning.is_valid(name)
    with pytest.raises(UsageError) as refused:
        cleaning.check(name)
    assert refused.value.exit_status == 2


# ---- wording ----


TEXT = 'Use "SQLite" in WAL mode for the session store, see a/b.md: \u00e9\U0001f980 wins'


@pytest.mark.parametrize(
    "laid_out",
    [
        TEXT,
        TEXT.upper(),
        TEXT.replace(" ", "\n> "),
        TEXT.replace("WAL mode", "**WAL** `mode`"),
        json.dumps(TEXT),
        json.dumps(json.dumps(TEXT)),
    ],
)
def test_words_are_found_however_they_are_laid_out(laid_out: str) -> None:
    wording = Wording([TEXT])
    assert wording.stands_in(f"before {laid_out} after")
    left = wording.without(f"before {laid_out} after")
    assert left.startswith("before ")
    assert left.endswith(" after")
    assert MARK in left
    assert "session" not in left.lower()
    assert not wording.stands_in(left)


@given(tree=mapping, path=st.lists(st.sampled_from("abc"), max_size=3))
@quick
def test_a_tree_without_the_words_stays_as_it_is_and_one_with_them_is_free_of_them(
    tree: dict[str, object], path: list[str]
) -> None:
    wording = Wording([TEXT])
    assert wording.taken_out(tree) == tree
    planted: object = [tree, {f"key {TEXT}": 1}, TEXT]
    for key in path:
        planted = {key: planted, "other": tree}
    left = wording.taken_out(planted)
    assert not wording.stands_in(json.dumps(left))
    assert MARK in json.dumps(left)


@pytest.mark.ci
@pytest.mark.parametrize("sign", ["\\", "\u2026", "\\u00e9\\", "x\u2026\\"])
def test_a_text_of_nothing_but_backslashes_and_cuts_is_looked_through_at_once(sign: str) -> None:

    def looked_through() -> None:
        wording = Wording([f"{TEXT} {number}" * 20 for number in range(20)])
        assert not wording.stands_in(sign * 100_000)

    within(2, looked_through)
