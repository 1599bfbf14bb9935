"""The words of a text are found however they are laid out, and nothing else is taken out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from clocks import within
from contexts import mapping, quick
from ralf.maintenance.purge import Wording
from ralf.text.cleaning import MARK

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
