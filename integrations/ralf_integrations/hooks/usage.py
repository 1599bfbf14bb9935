"""A session's usage since its last checkpoint, how full its window is, when its agent is asked to hand over and its
tokens are counted; and the hint up to which transcript size the fast path may skip a session.

Usage is read off the transcript anew at each look, never accumulated. What it does not hold yet, the next look finds. A
hook's look counts no tokens: that takes time. Where there may be enough of them, a process of its own counts.

A hint holds while everything that it was made of stands as it did: the configuration, the chosen route, the inbox, the
transcript's identity. It is a cache: losing it costs a look.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

from ralf.checkpointing.due import BudgetWatcher
from ralf.config import Config
from ralf.errors import RalfError
from ralf.project import Project
from ralf.route import offsets
from ralf.route.offsets import IngestOffset
from ralf.text import cleaning, tokens
from ralf.text.frozen import NamedTuple
from ralf.transcripts.events import Position
from ralf.transcripts.reader import Transcript, counted
from ralf_integrations.client import Client

LARGE_WINDOW = 1_000_000
"""Tokens of a window in which more than the configured ones are in use."""

_LOOK_BACK = 1 << 20
"""Bytes before the last checkpoint in which the state at that place is looked for."""

IN_LINES = ("claude-code", "codex", "gemini", "opencode")
"""Formats of transcripts whose records are lines."""

MOST_READ = 2 << 20
"""Bytes behind the last checkpoint that a hook reads while the client waits: some tenths of a second."""

FEWEST = 4096
"""Bytes by which a transcript grows at least between two looks."""

BYTES = 1.4
"""Bytes that a token takes in a transcript at least, on average: so few where it is all Base64."""


_TELLING = 100  # tokens of a record that tells how dense the session's are


class Look(NamedTuple):
    """One look at a session."""

    due: str  # why a checkpoint has fallen due, "" while none has
    tokens: int  # seen since the last checkpoint, where they were counted
    threshold: int  # at which the next one falls due
    width: float  # bytes that a token takes at least in the records since the last checkpoint, 0 where unknown
    begin: int  # bytes of the transcript before the last checkpoint
    size: int  # that were looked at, up to a record that waits for the next one
    filled: int | None  # tokens in the client's window, None where unknown
    window: int  # its size
    compacts: int  # tokens in it at which the client compacts it by itself: its size where nobody knows
    armed: bool  # the mark at which a checkpoint is due has not been reached yet, or the window was emptied since

    @property
    def percent(self) -> float | None:
        """How full the window is, 100 for full; None where unknown."""
        return None if self.filled is None else 100 * self.filled / self.window


def look(
    source: Transcript, stand: IngestOffset, settings: Config, client: Client, *, known: int, counts: bool
) -> Look:
    """Look at what a transcript holds after the place up to which it was taken.

    known   the size of the client's window that an earlier look has found, 0 for none
    counts  whether tokens are counted, so that a checkpoint can fall due by their number

    TranscriptChanged where the transcript is another than the one that was taken; else as `Transcript.events`.
    """
    size = source.size()  # before the reading: what is written meanwhile is for the next look
    offsets.check_unchanged(stand, source, "ROUTE")
    before, fixed = _before(source, stand.position, BudgetWatcher(settings.limits)), client.window()
    watcher = BudgetWatcher(
        settings.limits,
        stand.position,
        session=source.session,
        filled=before.filled,
        capacity=before.capacity or fixed or max(known, settings.window),
        open_tasks=before.open_tasks,
        finished=before.finished,
    )
    record, in_record, width = -1, 0, math.inf
    for event in source.events(stand.position):
        if event.window is not None and event.window > watcher.window and not fixed:
            watcher.capacity = LARGE_WINDOW
        text = counted(event)
        found = tokens.count(text) if counts else min(1, len(text))
        watcher.see(event, found)
        record, in_record = event.start.byte, found + (in_record if event.start.byte == record else 0)
        if in_record >= _TELLING:
            width = min(width, (event.end.byte - record) / in_record)
    filled = watcher.filled or 0
    point = min(watcher.window - client.reserve, client.compacts_at() * watcher.window // _FULL)
    return Look(
        due=watcher.due,
        tokens=watcher.tokens if counts else 0,
        threshold=watcher.threshold,
        width=width if width < math.inf else 0.0,
        begin=stand.position.byte,
        size=min(size, source.end.byte) if source.format in IN_LINES else size,
        filled=watcher.filled,
        window=watcher.window,
        compacts=point if filled <= point else watcher.window,
        armed=watcher.armed,
    )


def _before(source: Transcript, at: Position, watcher: BudgetWatcher) -> BudgetWatcher:
    """A watcher that has seen the end of what was taken: the window's figure there, which tasks were open."""
    if at.byte and source.format in IN_LINES:
        for event in source.events(_line_start(source, max(0, at.byte - _LOOK_BACK))):
            if event.start.byte >= at.byte:
                break
            watcher.see(event, 0)
    return watcher


def tokens_after(source: Transcript, time: str, most: int) -> int:
    """Estimated tokens of what a transcript holds after a time, as far as its last `most` bytes tell."""
    found, now = 0, ""
    for event in source.events(_line_start(source, max(0, source.size() - most))):
        now = event.timestamp or now
        if now > time:
            found += tokens.estimate(counted(event))
    return found


def _line_start(source: Transcript, byte: int) -> Position:
    """The first place from `byte` on at which a line begins."""
    if not byte:
        return Position()
    with source.path.open("rb") as file:
        file.seek(byte - 1)
        file.readline(8 << 20)
        return Position(file.tell(), 0)


# ---- when the agent is asked to hand over ----


_FULL = 100

REARM = 10
"""Percent of the window by which it has to be emptied below a mark before that counts again."""

_BEFORE_COMPACTION = 0.9  # of the tokens at which the client compacts the window by itself


def hand_over_mark(settings: Config, look: Look) -> int:
    """Returns the tokens in the window at which its agent is asked to hand over, 0 for never: what is configured, or
    less where the client has compacted the window by then.
    """
    if settings.hand_over_at > _FULL:
        return 0
    mark = -(-settings.hand_over_at * look.window // _FULL)
    return mark if mark < look.compacts else int(_BEFORE_COMPACTION * look.compacts)


def told_since(settings: Config, look: Look, told: int) -> int:
    """Returns what counts as told of the window: 0 once it was emptied since."""
    is_low = look.filled is not None and look.filled < _rearmed(hand_over_mark(settings, look), look)
    return 0 if is_low else told


def is_full(settings: Config, look: Look) -> bool:
    """Returns whether the window holds so much that its agent is to be asked."""
    return look.filled is not None and 0 < hand_over_mark(settings, look) <= look.filled


def _rearmed(mark: int, look: Look) -> int:
    """Returns the tokens in the window below which a mark counts again."""
    return max(0, mark - REARM * look.window // _FULL)


# ---- the hint for the fast path ----

_SOON = 5_000  # tokens until a look sees whether the checkpoint that was started has been made


class Foretold(NamedTuple):
    """What foretells that a session needs no look."""

    size: int = 0  # bytes of the transcript at this look
    limit: int = 0  # at which the next one is due, and tokens are counted
    low: int = 0  # tokens in the client's window below which it has been emptied: marks count again
    mark: int = 0  # tokens in it at which the next mark is reached, 0 for none


def foretold(look: Look, settings: Config, limit: int, *, told: int) -> Foretold | None:
    """What follows from a look at a session, None where the next hook has to look.

    told  percent of the window at which its agent was asked to hand over, 0 where it was not
    """
    if not told and is_full(settings, look):  # seen first where nobody can ask the agent: the next hook does
        return None
    checkpoint, hand_over = -(-settings.pressure * look.window // _FULL), hand_over_mark(settings, look)
    marks = [(mark, armed) for mark, armed in ((checkpoint, look.armed), (hand_over, not told)) if mark]
    low = max((_rearmed(mark, look) for mark, armed in marks if not armed), default=0)
    return Foretold(look.size, limit, low, min((mark for mark, armed in marks if armed), default=0))


def limit(size: int, left: int = _SOON) -> int:
    """Bytes of a transcript before which so many tokens cannot follow, however few bytes a token takes."""
    return size + max(FEWEST, int(BYTES * left))


def next_count(look: Look) -> int:
    """Bytes of a transcript at which the tokens are to be counted next: until then a tenth more than the threshold
    cannot be passed, or two thirds of what is left follow if no record is denser than those before.
    """
    left = max(0, look.threshold - look.tokens)
    begin = look.size if look.tokens else look.begin
    return max(limit(begin, left + look.threshold // 9), begin + int(left * look.width * 2 / 3))


def limit_of(hint: str, project: Project, transcript: Path, size: int) -> int:
    """The limit that a hint names, where it is of this transcript and this configuration; else 0."""
    words = hint.split()
    if len(words) != 9 or not all(map(str.isdecimal, words[1:])) or int(words[5]) > size:
        return 0
    stands = [str(_stat(project.config_file).st_mtime_ns), str(_stat(transcript).st_ino)]
    return int(words[6]) if [words[1], words[4]] == stands else 0


def hint(project: Project, session: str, transcript: Path | None, told: Foretold, *, is_off: bool = False) -> str:
    """The words for `instant`; `is_off`: hooks do nothing in this project."""
    figures = (
        _stat(project.config_file).st_mtime_ns,
        _stat(project.cache / "chosen" / cleaning.slug(session)).st_mtime_ns,
        inbox_size(project, session),
        _stat(transcript).st_ino,
        *told,
    )
    return " ".join(("off" if is_off else "on", *map(str, figures)))


def inbox_size(project: Project, session: str) -> int:
    """Returns the bytes of the file that notices to a session wait in, 0 where there is none."""
    with suppress(RalfError):  # a store that cannot be opened: whoever needs it says so
        files = project.store.files
        return _stat(files.path(f"inbox/{cleaning.slug(session)}") if files is not None else None).st_size
    return 0


def _stat(path: Path | None) -> os.stat_result:
    """What the system says of a file; zeros where there is none."""
    with suppress(OSError):
        if path is not None:
            return path.stat()
    return os.stat_result((0,) * 19)
