"""The plain scalars of our YAML: which are more than text, and what they mean."""

from __future__ import annotations

import re
from typing import Any

_WHOLE = re.compile(r"(?:0|-?[1-9][0-9]{0,17})\Z")
FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,15})\.[0-9]{1,15}\Z")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def meaning(plain: str) -> Any:
    """What a scalar without quotes means: text, unless it is canonical."""
    if plain in _WORDS:
        return _WORDS[plain]
    if _WHOLE.match(plain):
        return int(plain)
    if FLOAT.match(plain) and repr(float(plain)) == plain:
        return float(plain)
    return plain
