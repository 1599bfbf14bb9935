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
