"""Work on hostile text grows in line with it: every expression on pumps of its own, and whole checkpoints."""

from __future__ import annotations

import pytest
from tests.faults import hostile
from tests.faults.expressions import Expression, expressions, grown

from examples import examples
from ralf.redact.redactor import Redactor


@pytest.fixture(scope="module")
def found() -> list[Expression]:
    return expressions()


@pytest.mark.release(seconds=120)
def test_no_expression_of_the_package_takes_more_than_linear_time(found: list[Expression]) -> None:
    """`python -m tests.faults.expressions` is the same on texts of up to 1 MB."""
    assert len(found) > 450
    assert [str(growth) for one in found if (growth := grown(one, 32_000)) is not None] == []


@pytest.fixture
def unredacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without redaction, which has tests of its own."""
    monkeypatch.setattr(Redactor, "text", lambda self, text: text)
    monkeypatch.setattr(Redactor, "tree", lambda self, value: value)
    monkeypatch.setattr(Redactor, "events", lambda self, events, **_: (list(events), {}))


@pytest.mark.release(seconds=3)
@pytest.mark.usefixtures("unredacted")
def test_a_checkpoint_of_hostile_text_takes_about_as_long_as_one_of_kind_text() -> None:
    hostile.check(hostile.EVERYWHERE, ("\n#", " ", "<tick></tick>", "a_", "=", "..."), 300_000)


@pytest.mark.release(seconds=5)
@pytest.mark.usefixtures("unredacted")
@pytest.mark.parametrize("place", list(hostile.PLACES))
def test_hostile_text_at_any_place_takes_about_as_long_as_kind_text(place: str) -> None:
    """With some of the pumps, others at each place; with every example, with all of them."""
    begin, count = 7 * list(hostile.PLACES).index(place), examples(len(hostile.PUMPS))
    hostile.check(place, (hostile.PUMPS * 4)[begin : begin + count], 50_000)
