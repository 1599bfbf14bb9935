"""A segment as a model sees it: what was said whole within reason, calls in short, of output what names an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ralf.facts.commands import is_shell, only_looks
from ralf.facts.errors import error_line
from ralf.text import tokens
from ralf.text.cleaning import clean, one_line, trimmed, without_middle
from ralf.text.patterns import regex
from ralf.transcripts.events import EvidenceLine


class _Level(NamedTuple):
    """How much of a segment is shown: characters of the beginning and the end of a message, of a call, lines of output.

    calls   which calls: 3 all, 2 those that may change something, 1 those of tools that run no command, 0 none
    output  2: a command's first line, and what names an error; 1: what names an error; 0: nothing
    """

    user: tuple[int, int]
    agent: tuple[int, int]
    call: int
    calls: int
    output: int


_LEVELS = (
    _Level((5_000, 3_000), (5_000, 3_000), 1_500, calls=3, output=2),
    _Level((5_000, 3_000), (5_000, 3_000), 600, calls=3, output=2),
    _Level((5_000, 3_000), (5_000, 3_000), 180, calls=3, output=2),
    _Level((5_000, 3_000), (5_000, 3_000), 130, calls=3, output=1),
    _Level((4_000, 2_000), (2_400, 1_200), 110, calls=2, output=1),
    _Level((3_000, 1_500), (2_000, 1_200), 80, calls=1, output=0),
    _Level((3_000, 1_500), (1_200, 800), 60, calls=1, output=0),
    _Level((2_000, 1_000), (700, 500), 50, calls=1, output=0),
    _Level((1_400, 700), (450, 300), 0, calls=0, output=0),
    _Level((900, 450), (260, 180), 0, calls=0, output=0),
    _Level((500, 250), (140, 100), 0, calls=0, output=0),
)
"""From all to next to nothing: output goes first, then calls that edit nothing, then the middles of long messages."""

_LINE = 180  # characters of one line of output

_LOOKS = regex(r"(?i)(?:read|grep|glob|ls|search|web|view|list|find|todo|fetch|open|tool_?search)")


def masked(lines: Iterable[EvidenceLine], most: int) -> list[str]:
    """A segment's events, a line each, which begins with the event's line in the transcript; further lines of a text
    are indented, so that none of them can pass for an event. At most about so many tokens.

    Where it is too much, the older half gives way before the newer one, and in the end the oldest go.
    """
    events = [line for line in lines if line.kind != "thinking" and line.text.strip()]
    half = len(events) // 2
    shown: list[str] = []
    for older, newer in _steps():
        shown = [*_told(events[:half], _LEVELS[older]), *_told(events[half:], _LEVELS[newer])]
        if sum(map(_cost, shown)) <= most:
            return shown
    left, kept = most, []
    for text in reversed(shown):
        left -= _cost(text)
        if left < 0:
            break
        kept.append(text)
    return [f"({len(shown) - len(kept)} older events are not shown)", *reversed(kept)]


def _steps() -> Iterator[tuple[int, int]]:
    yield 0, 0
    for level in range(1, len(_LEVELS)):
        yield level, level - 1
        yield level, level


def _cost(text: str) -> int:
    return tokens.estimate(text) + 1


def _told(events: Sequence[EvidenceLine], level: _Level) -> Iterator[str]:
    for event in events:
        who = {"user": "USER", "assistant": "AGENT"}.get(event.kind)
        if who is not None:
            ends = level.user if who == "USER" else level.agent
            yield f"{event.line} {who}: {_indented(without_middle(event.text, *ends)[0])}"
        elif event.kind == "call":
            if _kind_of(event) <= level.calls:
                text = one_line(clean(event.text))
                if _kind_of(event) == _LOOKING:
                    text = trimmed(text, level.call)
                else:  # of an edit: the file, and the end of the new text
                    text = without_middle(text, level.call, level.call // 2)[0]
                yield f"{event.line} call {one_line(event.tool)}: {text}"
        elif event.kind == "result":
            if told := _output(event, level.output):
                yield told
        else:
            yield f"{event.line} {event.kind}: {_indented(without_middle(event.text, *level.agent)[0])}"


def _indented(text: str) -> str:
    return "\n".join(line.rstrip() for line in clean(text).strip().split("\n") if line.strip()).replace("\n", "\n  ")


_LOOKING, _RUNNING, _EDITING = 3, 2, 1


def _kind_of(event: EvidenceLine) -> int:
    """What a call does: it looks at something, runs a command that may change something, or edits."""
    if is_shell(event.tool):
        return _LOOKING if only_looks(event.text) else _RUNNING
    return _LOOKING if _LOOKS.match(event.tool) else _EDITING


_SHORT = 600  # characters up to which what a tool answers that runs no command is a message, not a file's content


def _output(event: EvidenceLine, most: int) -> str:
    """A command's output in short: its size, its first line, and the line that names an error with its last one.

    Of what another tool answers only what it says went wrong.
    """
    is_command = is_shell(event.tool)
    if not most or (not is_command and len(event.text) > _SHORT):
        return ""
    wrong = error_line(event.text)
    if not wrong and (most == 1 or not is_command):
        return ""
    ends = [line for line in event.text.split("\n") if line.strip()]
    lines = [ends[0] if most > 1 else "", wrong, ends[-1] if wrong else ""]
    told = dict.fromkeys(trimmed(one_line(clean(line)), _LINE) for line in lines if line)
    return f"{event.line} output, {len(event.text)} characters: {' / '.join(told)}"
