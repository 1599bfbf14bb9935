"""Text fit to be kept: what no file, terminal or parser can stumble over."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_BREAKS = "\u2028\u2029"
_SURROGATES = "\ud800-\udfff"
# What nobody sees and a model reads all the same: bidirectional marks, characters without width, fillers, tags.
_UNSEEN = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_JOINERS = "\u200c\u200d"  # part of words in some scripts, and of emoji
_STYLES = "\ufe0e\ufe0f"  # an emoji as text, as a picture
_ANY_ASCII = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@cache
def _any() -> re.Pattern[str]:
    """Whether there is anything to clean; compiled for the first text that is not ASCII."""
    return re.compile(f"[{_CONTROL}{_BREAKS}{_SURROGATES}{_UNSEEN}{_JOINERS}{_STYLES}]")


class _Patterns(NamedTuple):
    removed: re.Pattern[str]
    idle_style: re.Pattern[str]
    idle_joiner: re.Pattern[str]
    escape: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    """What cleans; compiled for the first text that needs it."""
    around = rf"[\x00-\x7f\s{_JOINERS}]"
    return _Patterns(
        removed=re.compile(f"[{_CONTROL}{_SURROGATES}{_UNSEEN}]"),
        idle_style=re.compile(rf"(?:\A|(?<=[\s{_JOINERS}{_STYLES}]))[{_STYLES}]+"),
        idle_joiner=re.compile(rf"(?:\A|(?<={around}))[{_JOINERS}]+|[{_JOINERS}]+(?={around}|\Z)"),
        escape=re.compile(
            "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
            "|\x1b[]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\\\)"  # OSC, DCS and the like, where they end
            "|\x1b[ -/]*[0-~]"
        ),
    )


def clean(text: str) -> str:
    """The text without terminal escape sequences, control characters and what nobody sees.

    Newline and tab stay, other line ends become newlines, an unpaired surrogate, which no file can hold, U+FFFD. Of the
    characters without width the joiners within words of other scripts and emoji stay, and an emoji's style.
    """
    if (_ANY_ASCII if text.isascii() else _any()).search(text) is None:
        return text
    patterns = _patterns()
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    if "\x1b" in text or "\x9b" in text:
        text = patterns.escape.sub("", text)
    text = patterns.removed.sub(lambda found: "\ufffd" if "\ud800" <= found[0] <= "\udfff" else "", text)
    return text if text.isascii() else patterns.idle_joiner.sub("", patterns.idle_style.sub("", text))


NAMED = r"`[^`\n]*`|(?<!\w)__(?![A-Z][a-z])\w+?__(?!\w)"
"""What looks like emphasis and is a name: anything in backticks, and `__init__`, with or without them."""

SECTION_STARTS = ("- ", "> ", "**", "  ")
"""How each line of a checkpoint's section begins, so that no text can become a heading, a rule or a fence."""


def as_section(text: str) -> str:
    """`text` as a section's Markdown: each line that does not begin as one of `SECTION_STARTS` is indented."""
    lines = text.split("\n")
    return "\n".join(line if not line.strip() or line.startswith(SECTION_STARTS) else f"  {line}" for line in lines)


def one_line(text: str) -> str:
    """`text` with every run of white space made one space."""
    return " ".join(text.split())


_ITEM = re.compile(r"\s*(?:[-*+•]\s+|(?P<number>\d{1,3}[.)]\s+))(?P<text>\S.*)")
_TITLE = re.compile(r"#{1,6}\s+(?P<text>\S.*)")
_ENDS = (".", "!", "?", "…", ":", ";", ",")


def prose(text: str) -> str:
    """`text` on one line as `one_line`, but the items of its lists stand behind semicolons, headings before colons."""
    parts: list[str] = []
    for line in filter(str.strip, text.split("\n")):
        if found := _ITEM.match(line):
            if parts and not parts[-1].rstrip(" *_`").endswith(_ENDS):
                parts[-1] = f"{parts[-1].rstrip()};"
            parts.append((found["number"] or "") + found["text"])
        elif found := _TITLE.match(line):
            parts.append(found["text"] if found["text"].endswith(_ENDS) else f"{found['text'].rstrip()}:")
        else:
            parts.append(line)
    return one_line(" ".join(parts))
