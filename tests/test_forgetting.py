"""No word of what was forgotten is left; and the harness sees a forget that leaves out a part."""

from __future__ import annotations

import pytest
from tests.faults import forget

from examples import examples


@pytest.mark.slow(seconds=10)
def test_no_word_of_any_item_is_left_and_a_killed_forget_is_completed() -> None:
    came_to = forget.run(examples(60))
    assert came_to["failed"] == []
    assert int(str(came_to["killed"])) > examples(60) / 10


@pytest.mark.slow
@pytest.mark.parametrize("part", forget.BROKEN)
def test_a_forget_that_leaves_out_a_part_is_caught(part: str) -> None:
    with forget.broken(part), pytest.raises(forget.Failed):
        forget.run(60)
