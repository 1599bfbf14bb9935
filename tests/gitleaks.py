"""A second scanner: gitleaks' rules, run by themselves, without the code that redacts.

It takes the vendored rules as they are (expression, group, entropy; no keywords and no allow-lists: it is to find more,
not less) and runs each over the whole text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest


def scan(text: str) -> Iterator[str]:
    """What the rules find in a text."""
    re2: Any = pytest.importorskip("re2", reason="google-re2 is not installed")
    data = text.encode("utf-8", "replace")
    for rule in json.loads(files("ralf").joinpath("data/gitleaks.json").read_text("utf-8"))["rules"]:
        for found in re2.finditer(rule["regex"], data):
            groups = [group for group in found.groups() if group]
            secret = (found[0] if rule.get("secretGroup") == 0 or not groups else groups[0]).decode("utf-8", "replace")
            if _bits(secret) >= rule.get("entropy", 0):
                yield secret


def _bits(text: str) -> float:
    shares = [text.count(character) / len(text) for character in set(text)]
    return -sum(share * math.log2(share) for share in shares)
