"""What an answer takes of a client's window: Claude Code and Codex hand the model the structured content as JSON, which
holds the text, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from ralf import tokens

LEAST_TEXT = 70
"""Tokens of a text in its fence, below which it says nothing."""

Answer = TypeVar("Answer")


def fitted(made: Callable[[int], Answer], max_tokens: int) -> Answer:
    """The answer whose whole takes at most `max_tokens` of a window; `made` makes it for so many tokens of text.

    Below about 200 tokens, where the figures and labels alone may take more, the text is within the budget.
    """
    left = max_tokens
    while True:
        found = made(left)
        over = taken(found) - max_tokens
        if over <= 0 or left <= LEAST_TEXT:
            return found
        left = max(LEAST_TEXT, left - over)


def taken(answer: Any) -> int:
    """The o200k_base tokens of an answer as clients show it."""
    return tokens.count(json.dumps(asdict(answer), ensure_ascii=False, separators=(",", ":")))
