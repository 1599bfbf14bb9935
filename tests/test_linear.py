"""Work on hostile text grows in line with it: every expression on pumps of its own, and whole checkpoints."""

from __future__ import annotations

import re

import pytest
from tests.faults import hostile
from tests.faults.expressions import BOUNDED, LEFT_OUT, Expression, expressions, grown
from tests.faults.pumps import cases

from examples import examples

QUADRATIC = (r"(?:\A|\n)[#*\s]*step", r"\w+=", r"<a>(.*)</a>", r"[a-z]+(?:-[a-z]+)*-end", r"a\s*\(?\s*b")
EXPONENTIAL = (r"(?:a|aa)+!", r"(?:\w+\s?)+:", r"(x+x+)+y")
LINEAR = (r"(?<![a-z])[a-z]++=", r"\A\s*+x", r"(?m)^(?:[#*]|[^\S\n])*+step", r"[^\n]{0,40}\bb")


def expression(pattern: str, *, anchored: bool = False) -> Expression:
    return Expression("test", pattern, int(re.compile(pattern).flags), is_bytes=False, anchored=anchored)


@pytest.mark.ci
@pytest.mark.parametrize("pattern", [*QUADRATIC, *EXPONENTIAL])
def test_an_expression_that_backtracks_is_found_out(pattern: str) -> None:
    assert grown(expression(pattern), 128_000, screen=400, limit=0.05) is not None


@pytest.mark.ci
@pytest.mark.parametrize("pattern", LINEAR)
def test_an_expression_that_does_not_backtrack_passes(pattern: str) -> None:
    assert grown(expression(pattern), 128_000) is None


@pytest.mark.ci
def test_an_expression_that_is_only_matched_at_the_beginning_is_tried_there_alone() -> None:
    assert grown(expression(r"\w+="), 32_000, screen=400, limit=0.05) is not None
    assert grown(expression(r"\w+=", anchored=True), 32_000) is None


def test_the_pumps_of_an_expression_are_stable_and_lead_up_to_what_is_repeated() -> None:
    pattern = r"yes|error\s*(?:\[\w+\])?\s*[:(]"
    assert cases(pattern, 0) == cases(pattern, 0)
    assert ("error", " ") in cases(pattern, 0)


@pytest.fixture(scope="module")
def found() -> list[Expression]:
    return expressions()


@pytest.mark.release(seconds=10)
def test_the_lists_of_exceptions_name_expressions_that_there_are(found: list[Expression]) -> None:
    assert set(BOUNDED) <= {one.where for one in found}
    assert all(why for why in LEFT_OUT.values())


@pytest.mark.release(seconds=120)
def test_no_expression_of_the_package_takes_more_than_linear_time(found: list[Expression]) -> None:
    """`python -m tests.faults.expressions` is the same on texts of up to 1 MB."""
    assert len(found) > 450
    assert [str(growth) for one in found if (growth := grown(one, 32_000)) is not None] == []


@pytest.mark.release(seconds=3)
def test_a_checkpoint_of_hostile_text_takes_about_as_long_as_one_of_kind_text() -> None:
    """Without redaction, which has tests of its own."""
    pumps = ("\n#", " ", "<tick></tick>", "a_", "=", "...")
    assert hostile.faults(hostile.EVERYWHERE, pumps, 300_000, redacted=False) == []


@pytest.mark.release(seconds=5)
@pytest.mark.parametrize("place", list(hostile.PLACES))
def test_hostile_text_at_any_place_takes_about_as_long_as_kind_text(place: str) -> None:
    """In the long run with every pump; else with so many of them, others at each place."""
    begin, count = 7 * list(hostile.PLACES).index(place), examples(len(hostile.PUMPS))
    pumps = (hostile.PUMPS * 4)[begin : begin + count]
    assert hostile.faults(place, pumps, 50_000, redacted=False) == []
