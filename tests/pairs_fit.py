"""Fits the weights by which `ralf.summarize.opposing` tells that a decision takes another's place.

`python -m tests.pairs_fit` prints the tables; they are copied into that module by hand. `--authors` fits to all but one
file of pairs at a time and prints what is found in that one, and how many are false, at several likenesses, and, as
`tests.pairs` counts, by all rules together: the forecast for an author whom the weights have not seen. By it `ENOUGH`
is chosen. The words of `ralf/data/choices.txt` have seen them all.

Beside the pairs of the files, decisions of different pairs are put together: almost all of them are unrelated, as are
almost all decisions of a route. They weigh less.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp

from tests import labelled
from tests.pairs import Figures, Pair, read

from ralf.summarize import opposing

FILES = ("dev", "author1", "author2", "author3", "own")
_OFFSETS, _OF_OTHERS = range(1, 80), 0.05  # which decisions are put together, and what such a pair weighs
_ROUNDS, _STEP, _RIDGE = 600, 0.05, 0.5
_LEVELS = (0.8, 0.85, opposing.ENOUGH, opposing.SURE)


@dataclass(frozen=True, slots=True)
class Row:
    """The signs of a pair, as places in the tables, and what it is."""

    subject: tuple[int, ...]
    choice: tuple[int, ...]
    supersedes: bool
    weight: float


@dataclass(slots=True)
class Weights:
    """One weight for each sign, the bias first."""

    subject: list[float]
    choice: list[float]

    def likeness(self, row: Row) -> tuple[float, float]:
        """How sure the subject is, and the choice."""
        return tuple(
            1 / (1 + exp(-weights[0] - sum(weights[place] for place in places)))
            for weights, places in ((self.subject, row.subject), (self.choice, row.choice))
        )  # type: ignore[return-value]


def pairs_of(name: str) -> list[Pair]:
    """The pairs of a file."""
    return read(labelled.LABELS / f"pairs.{name}.jsonl")


def rows_of(pairs: Sequence[Pair]) -> list[Row]:
    """The rows of pairs, and of decisions of different pairs."""
    rows = [_row(pair.second, pair.first, pair.supersedes, 1.0) for pair in pairs]
    for offset in _OFFSETS:
        for place, pair in enumerate(pairs):
            other = pairs[(place + offset) % len(pairs)]
            if other.first != pair.first:
                rows.append(_row(other.second, pair.first, False, _OF_OTHERS))
    return rows


def _row(new: str, old: str, supersedes: bool, weight: float) -> Row:
    tables = (list(opposing.SUBJECT), list(opposing.CHOICE))
    subject, choice = (
        tuple(sorted(table.index(sign) for sign in found))
        for table, found in zip(tables, opposing.signs(new, old), strict=True)
    )
    return Row(subject, choice, supersedes, weight)


def fitted(rows: Sequence[Row]) -> Weights:
    """The weights that make the rows likeliest; a sign never speaks against what it is there for."""
    weights = Weights([0.0] * len(opposing.SUBJECT), [0.0] * len(opposing.CHOICE))
    told = [row for row in rows if row.subject and row.choice]
    means = [[0.0] * len(table) for table in (weights.subject, weights.choice)]
    squares = [[0.0] * len(table) for table in (weights.subject, weights.choice)]
    for turn in range(1, _ROUNDS + 1):
        slopes = _slopes(told, weights)
        for table, slope, mean, square, signs in zip(
            (weights.subject, weights.choice),
            slopes,
            means,
            squares,
            (_speaks(opposing.SUBJECT, opposing.AGAINST), _speaks(opposing.CHOICE, opposing.AGAINST | opposing.KEPT)),
            strict=True,
        ):
            for place, value in enumerate(slope):
                value += _RIDGE * table[place] * (place > 0)
                mean[place] = 0.9 * mean[place] + 0.1 * value
                square[place] = 0.999 * square[place] + 0.001 * value * value
                step = (mean[place] / (1 - 0.9**turn)) / ((square[place] / (1 - 0.999**turn)) ** 0.5 + 1e-8)
                table[place] -= _STEP * step
                if table[place] * signs[place] < 0:
                    table[place] = 0.0
    return weights


def _speaks(table: Iterable[str], against: frozenset[str]) -> list[int]:
    """1 for a sign that speaks for what it is there for, -1 for one against, 0 for the bias."""
    return [0 if sign == "bias" else -1 if sign in against else 1 for sign in table]


def _slopes(rows: Sequence[Row], weights: Weights) -> tuple[list[float], list[float]]:
    subject, choice = [0.0] * len(weights.subject), [0.0] * len(weights.choice)
    for row in rows:
        same, other = weights.likeness(row)
        both = min(max(same * other, 1e-6), 1 - 1e-6)
        error = row.weight * (both - row.supersedes) / (both * (1 - both))
        for slopes, places, slope in (
            (subject, row.subject, error * other * same * (1 - same)),
            (choice, row.choice, error * same * other * (1 - other)),
        ):
            slopes[0] += slope
            for place in places:
                slopes[place] += slope
    return subject, choice


def _forecast(rows: Sequence[Row], weights: Weights) -> list[tuple[float, Row]]:
    scored = []
    for row in rows:
        same, other = weights.likeness(row)
        scored.append((same * other if row.subject and row.choice else 0.0, row))
    return scored


def _print_linked(name: str, weights: Weights) -> None:
    """What is linked in a file by all rules, the weights among them."""
    for table, values in ((opposing.SUBJECT, weights.subject), (opposing.CHOICE, weights.choice)):
        table.update(zip(table, values, strict=True))
    pairs = pairs_of(name)
    print(f"  as decisions: {Figures.of((pair, pair.links()) for pair in pairs)}")
    print(f"  as messages: {Figures.of((pair, pair.links_said()) for pair in pairs)}")


def _print_forecast(name: str, scored: Sequence[tuple[float, Row]]) -> None:
    print(name, end="")
    for level in _LEVELS:
        above = [row for score, row in scored if score >= level]
        found = sum(row.supersedes for row in above)
        false = sum(not row.supersedes and row.weight == 1 for row in above)
        others = sum(row.weight < 1 for row in above)
        print(f" | {level}: {found} found, {false} false, {others} of others", end="")
    print()


def main() -> int:
    """Prints the tables, or the forecast for each author."""
    parser = argparse.ArgumentParser(description="Fit the weights of opposing decisions.")
    parser.add_argument("--authors", action="store_true", help="fit to all files but one, and try that one")
    options = parser.parse_args()
    told = {name: rows_of(pairs_of(name)) for name in FILES}
    if options.authors:
        every = []
        for name in FILES:
            weights = fitted([row for other in FILES if other != name for row in told[other]])
            scored = _forecast(told[name], weights)
            _print_forecast(name, scored)
            _print_linked(name, weights)
            every += scored
        _print_forecast("all", every)
        return 0
    weights = fitted([row for rows in told.values() for row in rows])
    for name, table, values in (
        ("SUBJECT", opposing.SUBJECT, weights.subject),
        ("CHOICE", opposing.CHOICE, weights.choice),
    ):
        print(f"{name} = {{")
        for sign, value in zip(table, values, strict=True):
            print(f'    "{sign}": {value:.2f},')
        print("}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
