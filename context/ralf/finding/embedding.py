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
from collections.abc import Sequence
from operator import mul

from ralf import environment
from ralf.config.local_config import LocalConfig, local_config_of
from ralf.errors import RalfError
from ralf.finding.index import with_database
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.refining.command import MOST_OUTPUT, Command, NoAnswer
from ralf.text.cleaning import clean, one_line

MOST_TEXTS = 10_000
"""Texts with which a query is compared."""

_LONGEST = 4_000  # characters of a text that count; few models read more

_FIRST_BATCH, _LARGEST_BATCH = 32, 512  # texts that the command is given at once

_PRINTED = 8  # bytes of a number that is printed, at most, for each byte that is kept of it

_NUMBER = 4  # bytes of a number that is kept

_NEAR = 0.5  # of the way from the average text to the nearest one: what is farther away is no better than chance

_ROUNDING = 1e-6

_KNOWN = "select text, numbers from vector where command = ? and text in (select value from json_each(?))"


def nearest(project: Project, query: str, texts: Sequence[str], most: int, warnings: list[str]) -> list[int]:
    """The places of the texts that are nearest to a query in meaning, nearest first; [] without an embedder.

    most      how many at most; of the texts, the first `MOST_TEXTS` count
    warnings  is given what keeps the command from answering

    Texts without a vector are given to the command first, in batches, for `embedder_timeout` seconds in all; those that
    must wait have their turn at the next call. Raises nothing: [] where the query has no vector.
    """
    redact = redactor_for(project).text
    try:
        settings = local_config_of(project)
        if not settings.embedder:
            return []
        asked, cut = redact(query)[:_LONGEST], [text[:_LONGEST] for text in texts[:MOST_TEXTS]]
        vectors = _vectors(project, settings, [asked, *cut], warnings)
        numbers = memoryview(vectors.get(asked, b"")).cast("f").tolist()
        near = {
            place: sum(map(mul, numbers, memoryview(vectors[text]).cast("f")))
            for place, text in enumerate(cut)
            if text in vectors and numbers
        }
    except (RalfError, OSError, TypeError, ValueError) as error:
        warnings.append(f"embedder: {redact(one_line(clean(str(error))))}")
        return []
    average, best = (sum(near.values()) / len(near), max(near.values())) if near else (0.0, 0.0)
    least = max(average + _NEAR * (best - average), 0.0) - _ROUNDING
    return sorted((place for place in near if near[place] >= least), key=lambda place: (-near[place], place))[:most]


def _vectors(project: Project, settings: LocalConfig, texts: Sequence[str], warnings: list[str]) -> dict[str, bytes]:
    """The vectors of texts, of unit length, as far as they are known or the command makes them in time."""
    key, named = _digest(json.dumps(settings.embedder)), {_digest(text): text for text in texts}
    rows = with_database(project, lambda db, _: db.execute(_KNOWN, (key, json.dumps([*named]))).fetchall())
    vectors = {named[digest]: numbers for digest, numbers in rows}
    missing, made = [text for text in named.values() if text not in vectors], dict[str, bytes]()
    redact, deadline = redactor_for(project).text, time.monotonic() + settings.embedder_timeout
    size = _FIRST_BATCH
    try:
        while (left := missing[len(made) :]) and (not made or time.monotonic() < deadline):
            known = next(iter((*vectors.values(), *made.values())), b"")
            found = _asked(settings, [redact(text) for text in left[:size]], known)
            made |= zip(left, found, strict=False)
            size = min(2 * size, _LARGEST_BATCH, MOST_OUTPUT // (_PRINTED * len(found[0])) or 1)
        if left:
            what = f"{len(left):,} of {len(missing):,} new texts have no vector yet: the next search goes on"
            warnings.append(f"embedder: {what}")
    except (NoAnswer, ValueError) as error:
        warnings.append(f"embedder: {redact(one_line(clean(str(error))))}")

    def keep(db: sqlite3.Connection, _: object) -> None:
        with db:
            db.execute("begin immediate")
            db.execute("delete from vector where command <> ?", (key,))
            kept = [(key, _digest(text), numbers) for text, numbers in made.items()]
            db.executemany("insert or replace into vector values (?, ?, ?)", kept)

    if made:
        with_database(project, keep)
    return vectors | made


def _asked(settings: LocalConfig, texts: Sequence[str], known: bytes) -> list[bytes]:
    """Vectors of texts, as long as a known one, if any. NoAnswer, ValueError where the command gives none."""
    command = Command("it", settings.embedder, timeout=settings.embedder_timeout)
    given = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    status, printed = command.run(given, environment.of_a_summarizer(settings.environment))
    if status:
        raise ValueError(f"exit status {status}: {printed.err.strip()[-160:]}")
    found = [_packed(line) for line in printed.out.splitlines() if line.strip()]
    if len(found) != len(texts):
        raise ValueError(f"printed {len(found):,} vectors for {len(texts):,} texts")
    expected = len(known or found[0])
    if wrong := next((len(one) for one in found if len(one) != expected), 0):
        what = f"printed a vector of {wrong // _NUMBER:,} numbers, not {expected // _NUMBER:,} as before"
        raise ValueError(f"{what}; another command line makes all of them anew")
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _packed(line: str) -> bytes:
    """A vector as it was printed, of unit length. ValueError for anything else."""
    try:
        row = json.loads(line)
        length = math.hypot(*row)
        if row and math.isfinite(length):
            return array("f", (number / (length or 1.0) for number in row)).tobytes()
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    raise ValueError(f"printed no array of finite numbers: {one_line(clean(line))[:80]}")
