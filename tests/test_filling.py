"""Filling a budget: one order whatever the budget, nothing over it, and nothing less for more."""

from __future__ import annotations

from hypothesis import given, strategies as st

from ralf.brief.filling import Budget, Piece, fill, joined
from ralf.text import tokens

HEADS = ["one", "two", "three"]

WORDS = st.lists(st.sampled_from(["word", "锁", "замок", "a/b.py", "  - x", "> y"]), min_size=1, max_size=40).map(
    " ".join
)


@st.composite
def pieces(draw):
    found = {}
    for number in range(draw(st.integers(1, 8))):
        text = draw(WORDS)
        levels = sorted({text[:length].strip() or "x" for length in (9, 40, 400)}, key=len)
        head = draw(st.sampled_from(HEADS))
        found[f"p{number}"] = (HEADS.index(head), number), levels, [(head, f"## {head}")]
    return found


GRANTS = st.lists(st.tuples(st.sampled_from([f"p{n}" for n in range(8)]), st.integers(0, 3)), max_size=20)


def filled(made, grants, most):
    found = {key: Piece(*parts) for key, parts in made.items()}
    return found, fill(Budget(most), found, grants)


@given(pieces(), GRANTS, st.integers(0, 120))
def test_what_is_shown_is_never_over_the_budget(made, grants, most):
    found, _ = filled(made, grants, most)
    text = joined(found.values())
    assert tokens.count(text) <= most
    assert len(text) <= 4 * most


@given(pieces(), GRANTS, st.integers(0, 120), st.integers(1, 60))
def test_a_larger_budget_shows_everything_no_shorter(made, grants, most, more):
    small, large = filled(made, grants, most)[0], filled(made, grants, most + more)[0]
    for key, piece in small.items():
        assert large[key].level >= piece.level
        assert len(large[key].text) >= len(piece.text)


def test_what_does_not_fit_is_shown_at_the_longest_length_that_does_and_ends_it():
    made = {"p0": ((0, 0), ["a", "a b c", "a b c d e f g h"], []), "p1": ((0, 1), ["z"], [])}
    found, is_whole = filled(made, [("p0", 2), ("p1", 0)], 5)
    assert (found["p0"].text, found["p1"].text, is_whole) == ("a b c", "", False)


def test_each_heading_stands_once_above_the_first_of_its_pieces():
    made = {f"p{n}": ((n, 0), [f"text {n}"], [("head", "## Head")]) for n in range(2)}
    found, _ = filled(made, [("p1", 0), ("p0", 0)], 50)
    assert joined(found.values()) == "## Head\ntext 0\ntext 1"
