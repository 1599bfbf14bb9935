"""Text fit to be kept: what no file, terminal or parser can stumble over."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|\x1b[]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\\\)"  # OSC, DCS and the like, where they end
    "|\x1b[ -/]*[0-~]"
)


def clean(text: str) -> str:
    """The text without terminal escape sequences, control characters and bidirectional overrides.

    Newline and tab stay, a carriage return becomes a newline, an unpaired surrogate, which no file can hold, U+FFFD.
    """
    if _CONTROL.search(text) is None:
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPE.sub("", text)
    return _CONTROL.sub(lambda found: "\ufffd" if found[0] >= "\ud800" else "", text)


SECTION_STARTS = ("- ", "> ", "**", "  ")
"""How each line of a checkpoint's section begins, so that no text can become a heading, a rule or a fence."""


def as_section(text: str) -> str:
    """`text` as a section's Markdown: each line that does not begin as one of `SECTION_STARTS` is indented."""
    lines = text.split("\n")
    return "\n".join(line if not line.strip() or line.startswith(SECTION_STARTS) else f"  {line}" for line in lines)


def one_line(text: str) -> str:
    """`text` with every run of white space made one space."""
    return " ".join(text.split())
