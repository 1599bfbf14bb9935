"""Guarded reading of JSON documents that others write: of no more levels than anybody would write."""

from __future__ import annotations

import json
from typing import Any

MAX_DEPTH = 64


def load(text: str) -> Any:
    """The value that a document holds. ValueError for what is no JSON, and for a value deeper than 64 levels."""
    try:
        tree = json.loads(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    level = [tree]
    for _ in range(MAX_DEPTH + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return tree
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
