"""Text fit to be kept: what no file, terminal or parser can stumble over."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` without terminal escape sequences and control characters (line feeds and tabs stay); an unpaired
    surrogate, which no file can hold, becomes U+FFFD. Clean text comes back as it is.
    """
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return _CONTROLS.sub(lambda match: "\ufffd" if match[0] >= "\ud800" else "", text)


def one_line(text: str) -> str:
    """`text` with every run of white space made one space."""
    return " ".join(text.split())
