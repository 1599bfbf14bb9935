"""How far a session has come since its last checkpoint, and how full its window is.

Both are read off its transcript anew at each look, never accumulated. What it does not hold yet, the next look finds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ralf import sessions
from ralf.budget import BudgetWatcher
from ralf.config import Config
from ralf.errors import TranscriptChanged
from ralf.sessions import Standing
from ralf.transcripts import Transcript
from ralf.transcripts.events import Position
from ralf_integrations import environment
from ralf_integrations.hooks import growth

UNKNOWN = 1.3
"""Tokens for each estimated one where nobody has counted any of the session's: rarely are there more."""

_MARGIN = 1.15  # texts that were not counted may hold more tokens than those that were

_ENOUGH = 5_000  # estimated tokens that tell how good the estimate is for such texts

LARGE_WINDOW = 1_000_000
"""Tokens of a window in which more than the configured ones are in use."""

_LOOK_BACK = (64 << 10, 1 << 20, 8 << 20)
"""Bytes before the last checkpoint in which the state at that place is looked for, one after the other."""

_RESERVES = {"claude-code": 33_000}
"""By client, the end of a window that it keeps free, whatever its size: before, it compacts by itself. Of Codex nobody
knows before it has done so once, since its settings move that place; Gemini CLI tells ralf no figure of its window.
"""

_LINES = ("claude-code", "codex")
"""Formats of transcripts whose records are lines."""

_ONE_AT_A_TIME = 1 << 20  # characters, so that the list of pieces of a long text is never held whole


class Look(NamedTuple):
    """One look at a session.

    due        why a checkpoint has fallen due, "" while none has
    tokens     seen since the last checkpoint
    left       that may follow before the next one falls due
    filled     tokens in the client's window, None where unknown
    window     its size
    size       bytes of the transcript that were looked at, up to a record that waits for the next one
    scale      tokens for each estimated one, None where they were not counted, or are too few
    compacted  tokens in the window at which the client compacted it by itself last, 0 where nobody has told
    client     which one
    format     of the transcript
    wished     percent of the window at which a person has the client compact, 100 for as it does by itself
    """

    due: str
    tokens: int
    left: int
    filled: int | None
    window: int
    size: int
    scale: float | None = None
    compacted: int = 0
    client: str = ""
    format: str = ""
    wished: int = 100

    @property
    def compacts(self) -> int:
        """Tokens in the window at which the client will compact it by itself, as far as that is known: its size where
        nobody knows, or where more are in it than that.
        """
        by_itself = min(self.window - _RESERVES.get(self.client, 0), self.wished * self.window // 100)
        point = self.compacted or by_itself
        least = min(self.window // 2, by_itself)
        return point if least <= point <= self.window and (self.filled or 0) <= point else self.window

    @property
    def percent(self) -> float | None:
        """How full the window is, 100 for full; None where unknown."""
        return None if self.filled is None else 100 * self.filled / self.window


def look(
    source: Transcript,
    stand: Standing,
    settings: Config,
    client: str,
    *,
    known: int = 0,
    compacted: int = 0,
    scale: float | None = UNKNOWN,
) -> Look:
    """Look at what a transcript holds after the place up to which it was taken.

    known  the size of the client's window that an earlier look has found, 0 for none
    compacted  where it compacted its window by itself, as an earlier look has found, 0 for nowhere
    scale  tokens for each estimated one; what has then fallen due by their number may be due. None: tokens are counted,
           which takes the time to load the tokenizer

    TranscriptChanged where the transcript is another than the one that was taken; else as `Transcript.events`.
    """
    size = source.size()  # before the reading: what is written meanwhile is for the next look
    if not sessions.unchanged(stand, source):
        raise TranscriptChanged(
            source.path,
            "shrank or was replaced since the last checkpoint of its session",
            f"ralf context checkpoint ROUTE --transcript {source.path} --restart",
        )
    limits = settings.limits
    before, told = _before(source, stand.position, BudgetWatcher(limits))
    compacted = told or compacted
    state = before.state
    is_claude = client == "claude-code"
    fixed = environment.claude_window() if is_claude else 0
    wished = environment.claude_compacts_at() if is_claude else 100
    window = state.window or fixed or max(known, settings.window)
    watcher = BudgetWatcher.resume(
        limits,
        stand.position,
        session=source.session,
        filled=state.filled,
        window=window,
        open_tasks=state.open_tasks,
        finished=state.finished,
    )
    guessed = 0
    for event in source.events(stand.position):
        if event.window is not None and event.window > watcher.window and not fixed:
            watcher.session(source.session, window=LARGE_WINDOW)
        compacted = event.before or compacted
        guess = 0 if event.kind in ("compaction", "other") else _estimate(event.text)
        guessed += guess
        if scale is None:
            watcher.see(event, _count(event.text) if guess else 0)
        else:
            watcher.see(event, math.ceil(guess * scale))
    state = watcher.state
    if source.format in _LINES:
        size = min(size, source.end.byte)
    left = watcher.threshold - state.tokens
    if limits.adaptive:  # each edit to come brings it nearer, down to half
        left = max(left // 2, limits.tokens // 2 - state.tokens)
    found = round(state.tokens / guessed, 3) if scale is None and guessed > _ENOUGH else None
    return Look(
        state.due,
        state.tokens,
        max(0, left),
        state.filled,
        watcher.window,
        size,
        found,
        compacted,
        client,
        source.format,
        wished,
    )


def factor(scale: float) -> float:
    """Tokens for each estimated one of texts that nobody has counted yet.

    scale  for each of those before them, 0.0 where nobody has counted any
    """
    return scale * _MARGIN if scale else UNKNOWN


def _estimate(text: str) -> int:
    """The tokens of a text, by the estimate that `instant` has, too."""
    starts = range(0, len(text), _ONE_AT_A_TIME)
    return sum(growth.estimate(text[start : start + _ONE_AT_A_TIME]) for start in starts)


def _count(text: str) -> int:
    from ralf import tokens  # a hook's look estimates

    return tokens.count(text)


def _before(source: Transcript, at: Position, watcher: BudgetWatcher) -> tuple[BudgetWatcher, int]:
    """A watcher that has seen the end of what was taken: the window's figure there, which tasks were open. And where a
    compaction there began by itself, 0 for none.
    """
    compacted = 0
    if not at.byte or source.format not in _LINES:
        return watcher, compacted
    for size in _LOOK_BACK:
        start = _line_start(source, max(0, at.byte - size))
        found = BudgetWatcher(watcher.limits)
        for event in source.events(start):
            if event.start.byte >= at.byte:
                break
            found.see(event, 0)
            compacted = event.before or compacted
        if found.state.filled is not None or not start.byte:
            break
    return found, compacted


def _line_start(source: Transcript, byte: int) -> Position:
    """The first place from `byte` on at which a line begins."""
    if not byte:
        return Position()
    with source.path.open("rb") as file:
        file.seek(byte - 1)
        file.readline(8 << 20)
        return Position(file.tell(), 0)
