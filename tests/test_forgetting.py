"""No word of what was forgotten is left."""

from __future__ import annotations

import pytest
from tests.faults import forget

from examples import examples


@pytest.mark.release(seconds=10)
def test_no_word_of_any_item_is_left_and_a_killed_forget_is_completed() -> None:
    came_to = forget.run(examples(60))
    assert came_to["failed"] == []
    assert int(str(came_to["killed"])) > examples(60) / 10
