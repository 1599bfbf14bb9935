"""Shortens the sections of older checkpoints, stage by stage, and takes out of them what was taken back by rewinding.

A section is read by the form that `ralf.checkpointing.section` gives it: a message, and below it other texts of the
agent's, what was done, and its closing text. Lines of any other form stay until only a count is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ralf.model import Section
from ralf.talk import cutting
from ralf.text.patterns import regex

_MESSAGE = regex(r"- (?:\d{4}-\d\d-\d\d(?: \d\d:\d\d)? )?(?:\([a-z]+\) )?\"")

_OTHER, _DID, _CLOSING = "  \u00b7 ", "  did: ", "  \u2192 "

_SHORT_CLOSING, _SHORT_MESSAGE = 160, 280  # characters

KNOWN_BY = 30
"""Characters of its first line by which a message is found again."""


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Each line with those that continue it."""
    block: list[str] = []
    for line in lines:
        if block and line.startswith("  ") and not line.startswith((_OTHER, _DID, _CLOSING)):
            block.append(line)
        else:
            if block:
                yield block
            block = [line]
    if block:
        yield block


def _halves(text: str) -> tuple[str, list[list[str]]]:
    """The first lines of a section, which say its period and size, and the blocks below them."""
    head, gap, body = text.partition("\n\n")
    if not (gap and head.startswith("**")):
        head, body = "", text
    return head, [*_blocks(body.split("\n"))]


def _joined(head: str, blocks: Iterable[Sequence[str]]) -> str:
    body = "\n".join(line for block in blocks for line in block)
    return f"{head}\n\n{body}" if head else body


def _closing_short(block: list[str]) -> list[str]:
    if not block[0].startswith(_CLOSING):
        return _gone(_OTHER, block)
    text = "\n".join([block[0].removeprefix(_CLOSING), *(line.strip() for line in block[1:])])
    return f"{_CLOSING}{cutting.cut(text, _SHORT_CLOSING)}".replace("\n", "\n    ").split("\n")


def _gone(mark: str, block: list[str]) -> list[str]:
    return [] if block[0].startswith(mark) else block


def _message_short(block: list[str]) -> list[str]:
    found = _MESSAGE.match(block[0])
    text = "\n".join([block[0][found.end() :], *(line.strip() for line in block[1:])]) if found else ""
    words, quote, behind = text.rpartition('"')
    if found is None or not quote or cutting.units(words) <= _SHORT_MESSAGE:
        return block
    short = cutting.message(words, _SHORT_MESSAGE).replace("\n", "\n  ")
    return f'{found[0]}{short}"{behind}'.split("\n")


def _by_block(change: Callable[[list[str]], list[str]], text: str) -> str:
    head, blocks = _halves(text)
    return _joined(head, map(change, blocks))


def _counted(text: str) -> str:
    head, blocks = _halves(text)
    count = sum(_MESSAGE.match(block[0]) is not None for block in blocks)
    return _joined(head, [[f"- {count} message{'s' * (count != 1)}: search finds them"]]) if count else text


STAGES: tuple[Callable[[str], str], ...] = (
    partial(_by_block, _closing_short),
    partial(_by_block, partial(_gone, _DID)),
    partial(_by_block, partial(_gone, _CLOSING)),
    partial(_by_block, _message_short),
    _counted,
)
"""What becomes of the text of an older section, one stage after the other."""


def without(sections: tuple[Section, ...], taken_back: Collection[str]) -> tuple[Section, ...]:
    """The sections without messages that begin so, and without what was said and done for these."""
    return tuple(_without(section, tuple(taken_back)) for section in sections) if taken_back else sections


def _without(section: Section, taken_back: tuple[str, ...]) -> Section:
    head, blocks = _halves(section.text)
    kept: list[list[str]] = []
    is_gone = False
    for block in blocks:
        if block[0].startswith("- "):
            is_gone = block[0].startswith(taken_back)
        if not is_gone:
            kept.append(block)
    return section if len(kept) == len(blocks) else replace(section, text=_joined(head, kept).rstrip("\n"))
