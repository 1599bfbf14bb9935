"""Every regular expression of the package on pumps of its own parse tree: its time must grow in line with the text.

    python -m tests.faults.expressions --size 1000000

An expression is tried as the code calls it: from the beginning of the text where it is only ever matched there, else
from each place. One that sees texts of a bounded length alone (`BOUNDED`) is tried at that length, against a time.
Time is processor time, the least of several tries, of one text against another four times as long: linear work takes
four times as long, quadratic sixteen times.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from tests.faults import rig
from tests.faults.pumps import cases

FACTOR = 8.0
"""By which time may grow when a text becomes four times as long."""

_SOURCE = Path(__file__).parents[2]
_SCREEN = 2_000  # characters of the texts on which the worst pumps of an expression are found
_WORST = 3  # pumps that are measured at full size
_LIKELY = 12  # pumps that are tried a second time on the short text
_ENOUGH = 0.016  # seconds; below it growth is noise: some kernels count processor time in ticks of 4 ms
_LIMIT = 3.0  # seconds that one search may take before it is given up
_TRIES = 3
_RATE = 2e-6  # seconds a character that an expression may take on texts of its bounded length, for there may be many

_NAME = 255  # characters of the name of a file
BOUNDED: dict[str, tuple[int, str]] = {
    "ralf_integrations.blackbox5.runs.outline._AROUND": (200, "the names of fields"),
    "ralf_integrations.blackbox5.runs.folder._OUTPUT": (_NAME, "names of files"),
    "ralf_integrations.blackbox5.runs.folder._TASK": (_NAME, "names of files"),
    "ralf.redact.borders._GOES_ON": (300, "the end of what came before"),
    "ralf_migrations.pages": (300, "the beginnings of headings"),
}
"""Expressions that see short texts alone, by module and name: the longest, and what it is."""

LEFT_OUT = {
    "ralf.config.local_config": "reads `daily_cap` of the person's own file",
}
"""Expressions that see nothing that came with a transcript, a page or a clone."""


@dataclass(frozen=True)
class Expression:
    """One compiled expression of the package: where it stands, and whether it is only tried at a text's beginning."""

    where: str
    pattern: str
    flags: int
    is_bytes: bool
    anchored: bool

    def compiled(self) -> re.Pattern[Any]:
        """It, compiled."""
        return (
            re.compile(self.pattern.encode("latin-1"), self.flags)
            if self.is_bytes
            else re.compile(self.pattern, self.flags)
        )


@dataclass(frozen=True)
class Growth:
    """The worst of an expression: its pump, and seconds by size of the text."""

    expression: Expression
    beginning: str
    pump: str
    seconds: dict[int, float]
    fault: str

    def __str__(self) -> str:
        told = ", ".join(f"{size:,}: {seconds:.4f} s" for size, seconds in self.seconds.items())
        return f"{self.expression.where} {self.fault}: {self.beginning!r} + {self.pump!r} over and over: {told}"


class _Late(BaseException):
    pass


def expressions() -> list[Expression]:
    """The expressions that the installed packages compile, of module globals, tables, caches and calls alike."""
    folders = [_SOURCE, *(_SOURCE / name for name in ("tests", "context", "cli", "integrations", "migrations"))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.compiled"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        cwd=_SOURCE,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = [Expression(**one) for one in json.loads(done.stdout)]
    return [one for one in found if not one.where.startswith(tuple(LEFT_OUT))]


def grown(
    expression: Expression, size: int, *, screen: int = _SCREEN, most: int = _WORST, limit: float = _LIMIT
) -> Growth | None:
    """How an expression fails the check, with texts of up to `size` characters; None where it passes.

    screen  characters of the texts on which its worst pumps are found; `most` of them are measured
    """
    bound, _ = BOUNDED.get(expression.where, (0, ""))
    pattern = expression.compiled()
    for _, beginning, pump in _screened(expression, screen, limit)[:most]:
        measured: dict[int, float] = {}
        if bound:
            measured[bound] = _least(expression, pattern, _given(expression, beginning, pump, bound), _TRIES, limit)
            if measured[bound] > _RATE * max(bound, _SCREEN):
                return Growth(expression, beginning, pump, measured, "is slow at its bound")
            continue
        fault = _fault(expression, pattern, beginning, pump, size, measured, limit)
        if fault:
            return Growth(expression, beginning, pump, measured, fault)
    return None


def _screened(expression: Expression, screen: int, limit: float) -> list[tuple[float, str, str]]:
    """The pumps of an expression with their beginnings and seconds on a short text, worst first."""
    size = min(BOUNDED.get(expression.where, (screen, ""))[0], screen)
    pattern, found = expression.compiled(), []
    for beginning, pump in cases(expression.pattern, expression.flags):
        found.append((_elapsed(expression, pattern, _given(expression, beginning, pump, size), limit), beginning, pump))
        if found[-1][0] >= limit:
            break  # none is worse
    again = sorted(found, reverse=True)[:_LIKELY]  # on a loud machine some of them only had to wait
    for number, (seconds, beginning, pump) in enumerate(again):
        given = _given(expression, beginning, pump, size)
        if seconds < limit:
            again[number] = min(_elapsed(expression, pattern, given, limit) for _ in range(_TRIES)), beginning, pump
    return sorted(again, reverse=True)


def _elapsed(expression: Expression, pattern: re.Pattern[Any], given: str | bytes, limit: float) -> float:
    """Seconds that pass meanwhile: finer than processor time, and good enough to choose by."""
    begin = time.perf_counter()
    _once(expression, pattern, given, limit)
    return time.perf_counter() - begin


def _fault(
    expression: Expression,
    pattern: re.Pattern[Any],
    beginning: str,
    pump: str,
    size: int,
    measured: dict[int, float],
    limit: float,
) -> str:
    """What is wrong with an expression on one pump: "" for nothing; `measured` is filled."""
    before, now = 0.0, _SCREEN
    while now <= size:
        seconds = _least(expression, pattern, _given(expression, beginning, pump, now), 1, limit)
        if seconds >= limit or (before >= _ENOUGH and seconds > FACTOR * before):  # look again before it counts
            seconds = _least(expression, pattern, _given(expression, beginning, pump, now), _TRIES, limit)
            quarter = _given(expression, beginning, pump, now // 4)
            before = max(before, _least(expression, pattern, quarter, _TRIES, limit))
        measured[now] = seconds
        if seconds >= limit:
            return "takes too long"
        if before >= _ENOUGH and seconds > FACTOR * before:
            return f"grows by {seconds / before:.1f}"
        before, now = seconds, 4 * now
    return ""


def _given(expression: Expression, beginning: str, pump: str, size: int) -> str | bytes:
    text = beginning + (pump * (size // len(pump) + 1))[:size] + "\0x"  # neither a word nor none goes on to the end
    return text.encode("utf-8", "surrogatepass") if expression.is_bytes else text


def _least(expression: Expression, pattern: re.Pattern[Any], given: str | bytes, tries: int, limit: float) -> float:
    """Seconds of processor time that the expression takes on a text, the least of some tries."""
    return min(_once(expression, pattern, given, limit) for _ in range(tries))


def _once(expression: Expression, pattern: re.Pattern[Any], given: str | bytes, limit: float) -> float:
    """The same of one try; `limit` where it was given up."""
    trial = _trial()
    begin = time.process_time()
    try:
        trial.runs = True
        signal.setitimer(signal.ITIMER_VIRTUAL, limit)
        if expression.anchored:
            pattern.match(given)
            pattern.fullmatch(given)
        else:
            for _ in pattern.finditer(given):
                pass
        trial.runs = False  # from here on it counts no more
        return time.process_time() - begin
    except _Late:
        return limit
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


class _Trial:
    """What gives up a search that takes too long, once."""

    runs = False

    def late(self, _: int, __: FrameType | None) -> None:
        if self.runs:
            self.runs = False
            raise _Late


@cache
def _trial() -> _Trial:
    """The one of this process: setting its signal for each of a hundred thousand searches took longer than they did."""
    made = _Trial()
    signal.signal(signal.SIGVTALRM, made.late)
    return made


@dataclass(frozen=True)
class Size:
    """Characters of the longest text."""

    size: int = 512_000


def run(size: Size, _: int, __: Sequence[str]) -> rig.Found:
    """Try them all."""

    def share(some: Sequence[Expression]) -> rig.Found:
        found = rig.Found(rounds=len(some))
        for expression in some:
            if (growth := grown(expression, size.size)) is not None:
                found.note(expression.where, f"{growth} {expression.pattern[:300]!r}")
        return found

    return rig.shared_out(share, expressions(), jobs=2)


if __name__ == "__main__":
    sys.exit(rig.command("expressions", Size(), run))
