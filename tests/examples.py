"""How many examples a property is tried with: some in the quick tests, all with `--hypothesis-profile many`."""

from __future__ import annotations

from hypothesis import settings

FEW, MANY = 10, 100


def examples(count: int) -> int:
    """`count` with the profile `many`, as `.ci/run` has it beside the slow tests; else a tenth of it."""
    return count * settings.default.max_examples // MANY
