"""The harness of forgetting: a few rounds each time, 60 in CI; and it sees a forget that leaves out a part."""

from __future__ import annotations

import pytest
from tests.faults import forget


@pytest.mark.slow(seconds=40)
def test_no_word_of_sixty_items_is_left_and_a_killed_forget_is_completed() -> None:
    came_to = forget.run(60)
    assert came_to["failed"] == []
    assert int(str(came_to["killed"])) > 6


@pytest.mark.slow
@pytest.mark.parametrize("part", forget.BROKEN)
def test_a_forget_that_leaves_out_a_part_is_caught(part: str) -> None:
    with forget.broken(part), pytest.raises(forget.Failed):
        forget.run(60)
