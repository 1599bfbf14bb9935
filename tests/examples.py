"""How much a property and a harness try: a tenth in the quick tests, a quarter in `.ci/run`, which has the profile
`some`, and all of it with `--hypothesis-profile many`, the long run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hypothesis import settings

Case = TypeVar("Case")

FEW, SOME, MANY = 10, 25, 100


def examples(count: int) -> int:
    """The part of `count` that the profile has, and one at least: see above."""
    return max(1, count * settings.default.max_examples // MANY)


def step() -> int:
    """Of how many moments of a whole run one is tried: of each in the long run."""
    return MANY // settings.default.max_examples


def each_second(cases: Iterable[Case]) -> list[Case]:
    """All the cases in the long run; else every other one, where each takes seconds."""
    return list(cases)[:: min(2, step())]
