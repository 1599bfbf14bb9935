"""Finds what is near a text in meaning: a command of the user's makes vectors of texts, and `index.db` keeps them.

Nothing runs unless `config.local.yaml` names an `embedder`. It reads JSON lines, `{"text": "…"}`, on its standard
input, and prints one JSON array of numbers a line, in the same order. A query is compared with every vector (cosine):
pure Python needs 0.1 s for 10,000 vectors of 384 numbers, less than any such command needs to start.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ralf import environment
from ralf.errors import RalfError
from ralf.finding.index import with_database
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage.files import content_of
from ralf.text.cleaning import clean, one_line

if TYPE_CHECKING:  # imported where a command is configured
    from ralf.config.local_config import LocalConfig

T = TypeVar("T")

MOST_TEXTS = 10_000
"""Texts with which a query is compared."""

_LONGEST = 4_000  # characters of a text that count; few models read more

_FIRST_BATCH, _LARGEST_BATCH = 32, 512  # texts that the command is given at once

_DIGITS = 32  # bytes of a number that is printed, at most

_IN_A_ROW = 3  # failures that switch it off

_NEAR = 0.5  # of the way from the average text to the nearest one: what is farther away is no better than chance

_ROUNDING = 1e-6


class _Past(NamedTuple):
    """What is known of a command: its failures in a row, why it failed last, and whether it was waited for in vain."""

    failures: int = 0
    reason: str = ""
    is_slow: bool = False


class _Refused(Exception):
    """Why there are no vectors, in one line; `late`: the time was over."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.late = late


class Embedder:
    """The embedder of a project. `warnings` is given what keeps it from answering, but for one that is switched off."""

    def __init__(self, project: Project, settings: LocalConfig, warnings: list[str]) -> None:
        from ralf.refining.command import Command

        self._project, self._warnings = project, warnings
        self._command = Command("it", settings.embedder, timeout=settings.embedder_timeout)
        self._environment = environment.of_a_summarizer(settings.environment)
        self._key = _digest(json.dumps(settings.embedder))
        self._saved = f"{self._key} {project.local_config_file.stat().st_mtime_ns}"  # saved again: tried again

    @property
    def program(self) -> str:
        """The program that is run."""
        return self._command.argv[0]

    def nearest(self, query: str, texts: Sequence[str], most: int, *, seconds: float | None = None) -> list[int]:
        """The places of the texts that are nearest to a query in meaning, nearest first.

        most     how many at most; of the texts, the first `MOST_TEXTS` count
        seconds  that the command may take, where that is less than `embedder_timeout`

        Texts without a vector are given to the command first, in batches, for `embedder_timeout` seconds in all; those
        that must wait have their turn at the next call. Raises nothing: [] where the query has no vector.
        """
        try:
            asked = redactor_for(self._project).text(query)[:_LONGEST]
            cut = [text[:_LONGEST] for text in texts[:MOST_TEXTS]]
            vectors = self._vectors([asked, *cut], seconds)
            numbers = memoryview(vectors.get(asked, b"")).cast("f").tolist()
            near = {
                place: sum(map(mul, numbers, memoryview(vectors[text]).cast("f")))
                for place, text in enumerate(cut)
                if text in vectors and numbers
            }
        except (RalfError, OSError, TypeError, ValueError) as error:
            self._warnings.append(f"embedder: {error}")
            return []
        average, best = (sum(near.values()) / len(near), max(near.values())) if near else (0.0, 0.0)
        least = average + _NEAR * (best - average) - _ROUNDING
        ranked = sorted(near, key=lambda place: (-near[place], place))
        return [place for place in ranked[:most] if near[place] >= least and near[place] > 0]

    def off(self) -> str:
        """Why it is switched off: it failed too often in a row; "" while it is on."""
        past = self._past()
        return f"off after {past.failures} failures in a row: {past.reason}" if past.failures >= _IN_A_ROW else ""

    def _vectors(self, texts: Sequence[str], seconds: float | None) -> dict[str, bytes]:
        """The vectors of texts, of unit length, as far as they are known or the command makes them in time."""
        past, whole = self._past(), self._command.timeout
        is_hurried = seconds is not None and seconds < whole
        if past.failures >= _IN_A_ROW or (is_hurried and past.is_slow):
            return {}
        named = {_digest(text): text for text in texts}
        statement = "select text, numbers from vector where command = ? and text in (select value from json_each(?))"
        kept = self._with(lambda db: db.execute(statement, (self._key, json.dumps([*named]))).fetchall())
        known = {named[digest]: numbers for digest, numbers in kept}
        missing = [text for text in named.values() if text not in known]
        if not missing:
            return known
        made, error = self._made(missing, seconds if seconds is not None and is_hurried else whole, kept)
        late = error is not None and error.late
        reason = "" if error is None or (late and (made or is_hurried)) else str(error)
        if reason:
            reason = redactor_for(self._project).text(one_line(clean(reason)))
            off = ": off until config.local.yaml is saved again" if past.failures + 1 == _IN_A_ROW else ""
            self._warnings.append(f"embedder: {reason}{off}")
        elif len(made) < len(missing) and not is_hurried:
            what = f"{len(missing) - len(made):,} of {len(missing):,} new texts have no vector yet"
            self._warnings.append(f"embedder: {what}: the next search goes on")
        self._keep(made, _Past(past.failures + 1 if reason else 0, reason, late and is_hurried))
        return known | made

    # ---- the command ----

    def _made(
        self, texts: Sequence[str], seconds: float, kept: Sequence[tuple[str, bytes]]
    ) -> tuple[dict[str, bytes], _Refused | None]:
        """Vectors of as many texts as the time allows, and what went wrong."""
        from ralf.refining.command import MOST_OUTPUT

        deadline, size, made = time.monotonic() + seconds, _FIRST_BATCH, dict[str, bytes]()
        length = len(kept[0][1]) // array("f").itemsize if kept else 0
        while (left := texts[len(made) :]) and (not made or time.monotonic() < deadline):
            try:
                rows = self._asked(left[:size], deadline - time.monotonic(), length)
            except _Refused as error:
                return made, error
            length = len(rows[0])
            made |= zip(left, map(_packed, rows), strict=False)
            size = min(2 * size, _LARGEST_BATCH, MOST_OUTPUT // (_DIGITS * length) or 1)
        return made, None

    def _asked(self, texts: Sequence[str], seconds: float, length: int) -> list[list[float]]:
        from ralf.refining.command import NoAnswer

        redactor = redactor_for(self._project)  # redacted already, but for what was kept before there was redaction
        given = "".join(json.dumps({"text": redactor.text(text)}) + "\n" for text in texts)
        start = time.monotonic()
        try:
            status, printed = replace(self._command, timeout=seconds).run(given, self._environment)
        except NoAnswer as error:
            if time.monotonic() - start > seconds:
                raise _Refused(f"took longer than {self._command.timeout:g} s", late=True) from None
            raise _Refused(str(error)) from None
        if status:
            raise _Refused(f"exit status {status}: {printed.err.strip()[-160:]}")
        lines = [line for line in printed.out.splitlines() if line.strip()]
        if len(lines) != len(texts):
            raise _Refused(f"printed {len(lines):,} vectors for {len(texts):,} texts")
        rows = [_numbers(line) for line in lines]
        expected = length or len(rows[0])
        for row in rows:
            if len(row) != expected:
                what = f"printed a vector of {len(row):,} numbers, not {expected:,} as before"
                raise _Refused(f"{what}; another command line makes all of them anew")
        return rows

    # ---- what is kept ----

    def _with(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return with_database(self._project, lambda db, _: work(db))

    def _past(self) -> _Past:
        statement = "select failures, reason, is_slow from embedder where command = ?"
        return self._with(lambda db: _Past(*db.execute(statement, (self._saved,)).fetchone() or ()))

    def _keep(self, made: Mapping[str, bytes], past: _Past) -> None:
        def kept(db: sqlite3.Connection) -> None:
            with db:
                db.execute("begin immediate")
                db.execute("delete from vector where command <> ?", (self._key,))
                rows = [(self._key, _digest(text), numbers) for text, numbers in made.items()]
                db.executemany("insert or replace into vector values (?, ?, ?)", rows)
                db.execute("insert or replace into embedder values (?, ?, ?, ?)", (self._saved, *past))

        self._with(kept)


def embedder_of(project: Project, warnings: list[str]) -> Embedder | None:
    """The embedder that `config.local.yaml` names, None for none. What is wrong with that file is added to `warnings`,
    if it may name one.
    """
    try:
        if b"embedder" not in content_of(project.local_config_file):
            return None
    except OSError:
        return None
    from ralf.config.local_config import local_config_of  # few have a command

    try:
        settings = local_config_of(project)
        return Embedder(project, settings, warnings) if settings.embedder else None
    except (RalfError, OSError) as error:
        warnings.append(f"embedder: {error}")
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _numbers(line: str) -> list[float]:
    """A vector as it was printed. `_Refused` for anything else."""
    try:
        row = json.loads(line)
        if isinstance(row, list) and row and all(type(number) in (int, float) for number in row):
            numbers = list(map(float, row))
            if math.isfinite(math.hypot(*numbers)):
                return numbers
    except (ValueError, OverflowError, RecursionError):
        pass
    raise _Refused(f"printed no array of finite numbers: {one_line(line)[:80]}")


def _packed(row: Sequence[float]) -> bytes:
    length = math.hypot(*row) or 1.0
    return array("f", (number / length for number in row)).tobytes()
