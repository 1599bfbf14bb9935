"""Confidence by outcome: how far what came of an item speaks for it.

    confidence = (helpful + base) / (helpful + harmful + 2)        base is 1 unless somebody has said how sure it is

An item that was handed over, and whose command ran or whose path was touched later in that session, was helpful; one
whose command failed again was harmful. Without any outcome it is one half, and each outcome moves it less than the one
before. Where a person states a confidence, `base` becomes what makes the formula say that number at that moment; later
outcomes count from there.
"""

from __future__ import annotations

LEAST_CONFIDENCE = 0.3
"""A tidying keeps what is above."""

LEAST_USES = 3
"""A tidying keeps what was used more often, whatever its confidence."""

_PLACES = 9  # decimal places that a confidence is told apart by: far finer than one outcome moves it


def confidence(helpful: int, harmful: int, base: float = 1.0) -> float:
    """The share of outcomes that speak for an item, from 0 to 1."""
    return round(min(1.0, max(0.0, (helpful + base) / (helpful + harmful + 2))), _PLACES)


def base_of(stated: float, helpful: int, harmful: int) -> float:
    """The base with which `confidence` is what somebody states, from 0 to 1."""
    return round(min(1.0, max(0.0, stated)) * (helpful + harmful + 2) - helpful, _PLACES)


def is_kept(confidence: float, uses: int) -> bool:
    """Whether a tidying keeps an item: confidence above 0.3, or more than three uses."""
    return confidence > LEAST_CONFIDENCE or uses > LEAST_USES
