"""A session's usage since its last checkpoint, how full its window is, and when its agent is asked to hand over; and
the hint up to which transcript size the fast path may skip a session.

Usage is read off the transcript anew at each look, never accumulated. What it does not hold yet, the next look finds.

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
from ralf.text.patterns import regex
from ralf.transcripts.events import Position
from ralf.transcripts.reader import Transcript, counted
from ralf_integrations.client import Client

UNKNOWN = 1.3
"""Tokens for each estimated one where nobody has counted any of the session's: rarely are there more."""

_MARGIN = 1.15  # texts that were not counted may hold more tokens than those that were

_ENOUGH = 1_000  # tokens that tell how good the estimate is for such texts, and how many bytes they take

LARGE_WINDOW = 1_000_000
"""Tokens of a window in which more than the configured ones are in use."""

_LOOK_BACK = 1 << 20
"""Bytes before the last checkpoint in which the state at that place is looked for."""

IN_LINES = ("claude-code", "codex", "gemini", "opencode")
"""Formats of transcripts whose records are lines."""

MOST_READ = 2 << 20
"""Bytes behind the last checkpoint that a hook reads while the client waits: some tenths of a second."""

_UNBROKEN = regex(r"[A-Za-z0-9+/=_-]{48,}")
"""What may be no words: Base64 and the like, which has a token for each 1.4 characters."""

FEWEST = 4096
"""Bytes by which a transcript grows at least between two looks."""

BYTES = 1.4
"""Bytes that a token takes in a transcript at least, on average: so few where it is all Base64."""


class Look(NamedTuple):
    """One look at a session."""

    due: str  # why a checkpoint has fallen due, "" while none has
    left: int  # tokens that may follow before the next one falls due
    slack: int  # and those that may follow after that, before its threshold is passed
    filled: int | None  # tokens in the client's window, None where unknown
    window: int  # its size
    size: int  # bytes of the transcript that were looked at, up to a record that waits for the next one
    scale: float | None  # tokens for each estimated one, None where they were not counted, or are too few
    width: float  # two thirds of the bytes that a token has taken in the transcript since the last checkpoint
    compacts: int  # tokens in the window at which the client compacts it by itself: its size where nobody knows
    armed: bool  # the mark at which a checkpoint is due has not been reached yet, or the window was emptied since

    @property
    def percent(self) -> float | None:
        """How full the window is, 100 for full; None where unknown."""
        return None if self.filled is None else 100 * self.filled / self.window


def look(
    source: Transcript,
    stand: IngestOffset,
    settings: Config,
    client: Client,
    *,
    known: int = 0,
    scale: float | None = UNKNOWN,
) -> Look:
    """Look at what a transcript holds after the place up to which it was taken.

    known  the size of the client's window that an earlier look has found, 0 for none
    scale  tokens for each estimated one; what has then fallen due by their number may be due. None: tokens are counted,
           which takes the time to load the tokenizer

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
    guessed = 0
    for event in source.events(stand.position):
        if event.window is not None and event.window > watcher.window and not fixed:
            watcher.capacity = LARGE_WINDOW
        guess = _estimate(counted(event))
        guessed += guess
        watcher.see(event, math.ceil(guess * scale) if scale is not None else tokens.count(event.text) if guess else 0)
    filled = watcher.filled or 0
    point = min(watcher.window - client.reserve, client.compacts_at() * watcher.window // _FULL)
    return Look(
        due=watcher.due,
        left=max(0, watcher.threshold - watcher.tokens),
        slack=watcher.threshold // 9,
        filled=watcher.filled,
        window=watcher.window,
        size=min(size, source.end.byte) if source.format in IN_LINES else size,
        scale=round(watcher.tokens / guessed, 3) if scale is None and guessed > _ENOUGH else None,
        width=(size - stand.position.byte) / watcher.tokens * 2 / 3 if watcher.tokens > _ENOUGH else 0.0,
        compacts=point if filled <= point else watcher.window,
        armed=watcher.armed,
    )


def factor(scale: float) -> float:
    """Tokens for each estimated one of texts that nobody has counted yet.

    scale  for each of those before them, 0.0 where nobody has counted any
    """
    return scale * _MARGIN if scale else UNKNOWN


def _estimate(text: str) -> int:
    """The tokens of a text, by an estimate that is rarely too low, also where it has no words."""
    return tokens.estimate(text) + sum(5 * len(run) // 7 for run in _UNBROKEN.findall(text))


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
            found += _estimate(counted(event))
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

VERSION = "5"
"""Of hints: `instant`, which imports nothing of ours, has the same."""

_SOON = 5_000  # tokens until a look sees whether the checkpoint that was started has been made


class Foretold(NamedTuple):
    """What foretells that a session needs no look: until its transcript has so many bytes, the threshold is not passed
    however few bytes a token takes, or two thirds of what is left follow if the session goes on as before.
    """

    size: int = 0  # bytes of the transcript at this look
    limit: int = 0  # and at the next one
    low: int = 0  # tokens in the client's window below which it has been emptied: marks count again
    mark: int = 0  # tokens in it at which the next mark is reached, 0 for none
    off: bool = False  # hooks do nothing in this project


def foretold(look: Look, settings: Config, *, told: int) -> Foretold | None:
    """What follows from a look at a session, None where the next hook has to look.

    told  percent of the window at which its agent was asked to hand over, 0 where it was not
    """
    if not told and is_full(settings, look):  # seen first where nobody can ask the agent: the next hook does
        return None
    checkpoint, hand_over = -(-settings.pressure * look.window // _FULL), hand_over_mark(settings, look)
    room = look.left + look.slack
    marks = [(mark, armed) for mark, armed in ((checkpoint, look.armed), (hand_over, not told)) if mark]
    return Foretold(
        size=look.size,
        limit=limit(look.size) if look.due else max(look.size + int(look.width * look.left), limit(look.size, room)),
        low=max((_rearmed(mark, look) for mark, armed in marks if not armed), default=0),
        mark=min((mark for mark, armed in marks if armed), default=0),
    )


def limit(size: int, left: int = _SOON) -> int:
    """Bytes of a transcript before which so many tokens cannot follow."""
    return size + max(FEWEST, int(BYTES * left))


def hint(project: Project, session: str, transcript: Path | None, told: Foretold) -> str:
    """The words for `instant`."""
    figures = (
        _stat(project.config_file).st_mtime_ns,
        _stat(project.cache / "chosen" / cleaning.slug(session)).st_mtime_ns,
        inbox_size(project, session),
        *(_stat(transcript).st_ino, *told[:4]),
    )
    return " ".join(("off" if told.off else "on", VERSION, *map(str, figures)))


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
