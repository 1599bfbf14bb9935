"""Finds what is near a text in meaning: a command of the user's makes vectors of texts, and the cache keeps them.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from operator import mul
from typing import TYPE_CHECKING, Any, TypeVar

from ralf import environment
from ralf.errors import RalfError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage.database import Database
from ralf.storage.files import content_of
from ralf.text.cleaning import clean, one_line

if TYPE_CHECKING:  # imported where a command is configured
    from ralf.config.local_config import LocalConfig

T = TypeVar("T")

MOST_TEXTS = 10_000
"""Texts with which a query is compared."""

_LONGEST = 4_000  # characters of a text that count; few models read more

_FIRST_BATCH, _LEAST_BATCH, _LARGEST_BATCH = 32, 4, 512  # texts that the command is given at once

_DIGITS = 32  # bytes of a number that is printed, at most

_NEAR = 0.5  # of the way from the average text to the nearest one: what is farther away is no better than chance

_ROUNDING = 1e-6

_FILE = "search-vectors.sqlite"  # `ralf context forget` and `prune` remove all that begins with `search`


class _Vectors(Database):
    """The vectors of one command, by the sha256 of their text: unit length, native floats."""

    version = 1
    schema = """
create table meta(key text primary key, value text) without rowid;
create table vector(text text primary key, numbers blob);
"""


class _Refused(Exception):
    """Why there are no vectors, in one line; `late`: the time was over."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.late = late


class Embedder:
    """The embedder of a project. `warnings` is given what keeps it from answering, each time but for one that is
    switched off: that is said once.
    """

    def __init__(self, project: Project, settings: LocalConfig, warnings: list[str]) -> None:
        from ralf.refining.command import Command

        self._project, self._warnings = project, warnings
        self._command = Command("it", settings.embedder, timeout=settings.embedder_timeout)
        self._environment = environment.of_a_summarizer(settings.environment)
        self._model = _digest(json.dumps(settings.embedder))
        saved = project.local_config_file.stat().st_mtime_ns
        self._is_hurried = False
        self._slow = f"slow {saved}"
        self._failing = f"failures {saved}"  # who saves the file again has it tried again

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
        self._is_hurried = seconds is not None and seconds < self._command.timeout
        if seconds is not None and self._is_hurried:
            self._command = replace(self._command, timeout=seconds)
        try:
            return self._nearest(query, texts[:MOST_TEXTS], most)
        except (RalfError, OSError, sqlite3.Error, TypeError, ValueError) as error:  # the cache may hold anything
            self._warnings.append(f"embedder: {error}")
            return []

    def off(self) -> str:
        """Why it is switched off: it failed too often in a row; "" while it is on."""
        from ralf.route.fold import IN_A_ROW

        if not (self._project.cache / _FILE).exists():
            return ""
        state = self._with(lambda kept: dict(kept.meta(self._failing, {})))
        count = int(state.get("count", 0))
        return f"off after {count} failures in a row: {state['reason']}" if count >= IN_A_ROW else ""

    def _nearest(self, query: str, texts: Sequence[str], most: int) -> list[int]:
        if reason := self.off():
            self._say_once(reason)
            return []
        if self._is_hurried and self._with(lambda kept: kept.meta(self._slow, False)):
            return []  # it was waited for once, in vain
        asked = redactor_for(self._project).text(query)[:_LONGEST]
        cut = [text[:_LONGEST] for text in texts]
        keys = [_digest(text) for text in cut]
        named = {_digest(asked): asked} | dict(zip(keys, cut, strict=True))  # the query comes first
        vectors = self._with(lambda kept: _known(kept, self._model, named))
        missing = {key: text for key, text in named.items() if key not in vectors}
        if missing:
            vectors |= self._embedded(missing)
        one = vectors.get(_digest(asked))
        if one is None:
            return []
        numbers = memoryview(one).cast("f").tolist()
        near = {
            place: sum(map(mul, numbers, memoryview(vectors[key]).cast("f")))
            for place, key in enumerate(keys)
            if len(vectors.get(key, b"")) == len(one)
        }
        if not near:
            return []
        average, best = sum(near.values()) / len(near), max(near.values())
        least = average + _NEAR * (best - average) - _ROUNDING
        ranked = sorted(near, key=lambda place: (-near[place], place))
        return [place for place in ranked[:most] if near[place] >= least and near[place] > 0]

    # ---- the command ----

    def _embedded(self, missing: Mapping[str, str]) -> dict[str, bytes]:
        """Vectors of as many texts as the time allows; the failure, if there was one, is said and counted."""
        deadline = time.monotonic() + self._command.timeout
        size, dimension = self._with(lambda kept: _shape(kept, self._model))
        left, made, reason = list(missing.items()), dict[str, bytes](), ""
        while left and (not made or time.monotonic() < deadline):
            batch, start = left[:size], time.monotonic()
            try:
                rows = self._asked([text for _, text in batch], deadline - start, dimension)
            except _Refused as error:
                if error.late and self._is_hurried:  # no fault of the command's
                    self._with(self._note_slow)
                    break
                if error.late:
                    size = max(_LEAST_BATCH, size // 2)
                if not (error.late and made):
                    reason = redactor_for(self._project).text(one_line(clean(str(error))))
                break
            dimension = len(rows[0])
            made |= zip((key for key, _ in batch), map(_packed, rows), strict=True)
            left = left[size:]
            if time.monotonic() - start < self._command.timeout / 4:
                size = min(2 * size, _LARGEST_BATCH, max(_LEAST_BATCH, _most_output() // (_DIGITS * dimension)))
        if made or reason:
            self._with(lambda kept: self._keep(kept, made, size, dimension, reason))
        if reason:
            self._warnings.append(f"embedder: {reason}")
        elif left:
            what = f"{len(left):,} of {len(missing):,} new texts have no vector yet"
            self._warnings.append(f"embedder: {what}: the next search goes on")
        return made

    def _asked(self, texts: Sequence[str], seconds: float, dimension: int) -> list[list[float]]:
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
        expected = dimension or len(rows[0])
        for row in rows:
            if len(row) != expected:
                what = f"printed a vector of {len(row):,} numbers, not {expected:,} as before"
                raise _Refused(f"{what}; another command line makes all of them anew")
        return rows

    # ---- the cache ----

    def _with(self, work: Callable[[_Vectors], T]) -> T:
        from ralf.finding.index import rebuilt_when_damaged  # for the start of hooks, which look into a memory

        path = self._project.cache / _FILE
        self._project.make_room(path)

        def opened(path: Any) -> T:
            with closing(_Vectors(path, "")) as kept:
                return work(kept)

        return rebuilt_when_damaged(path, opened)

    def _keep(self, kept: _Vectors, made: Mapping[str, bytes], size: int, dimension: int, reason: str) -> None:
        with kept.writing():
            if made and kept.meta("model") != self._model:
                kept.db.execute("delete from vector")
                kept.set_meta("model", self._model)
            kept.db.executemany("insert or replace into vector values(?, ?)", made.items())
            kept.set_meta("shape", [self._model, size, dimension])
            count = int(kept.meta(self._failing, {}).get("count", 0)) + 1
            kept.set_meta(self._failing, {"count": count, "reason": reason} if reason else {})

    def _note_slow(self, kept: _Vectors) -> None:
        with kept.writing():
            kept.set_meta(self._slow, True)

    def _say_once(self, reason: str) -> None:
        def said(kept: _Vectors) -> bool:
            with kept.writing():
                state = kept.meta(self._failing, {})
                kept.set_meta(self._failing, {**state, "said": True})
                return bool(state.get("said"))

        if not self._with(said):
            self._warnings.append(f"embedder: {reason}; to have it tried again, save config.local.yaml")


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


def _known(kept: _Vectors, model: str, keys: Iterable[str]) -> dict[str, bytes]:
    if kept.meta("model") != model:
        return {}
    statement = "select text, numbers from vector where text in (select value from json_each(?))"
    return dict(kept.db.execute(statement, (json.dumps(list(keys)),)).fetchall())


def _shape(kept: _Vectors, model: str) -> tuple[int, int]:
    """How many texts the command is given first, and how long its vectors are; 0 where that is not known."""
    of, size, dimension = kept.meta("shape", ["", 0, 0])
    return (int(size), int(dimension)) if of == model else (_FIRST_BATCH, 0)


def _most_output() -> int:
    from ralf.refining.command import MOST_OUTPUT

    return MOST_OUTPUT


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
