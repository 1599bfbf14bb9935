"""What was noted of runs of agents, judged: each judge is a function of the notes, and yields the faults in them.

They know nothing of ralf: `tests/test_run_harness.py` feeds each of them a broken history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

Fault = tuple[str, str]
"""A kind of fault, and an example in words."""


def repeated(notes: Sequence[dict[str, Any]]) -> Iterator[Fault]:
    """Calls made again after their answer, or without a kill; work done twice by a model that honours keys."""
    asked: dict[tuple[str, int, str], int] = defaultdict(int)
    allowed: dict[tuple[str, int, str], int] = defaultdict(int)
    answered: set[tuple[str, int, str]] = set()
    keys: dict[tuple[str, int, str], str] = {}
    for note in notes:
        if note["what"] == "killed":
            for call in asked:
                if call[0] == note["run"] and call not in answered:
                    allowed[call] += 1
            continue
        if note["what"] not in ("call", "answered"):
            continue
        call = (note["run"], note["iteration"], note["call"])
        if note["what"] == "answered":
            answered.add(call)
            continue
        asked[call] += 1
        if call in answered:
            yield "repeated", f"{call} was made again after its answer"
        elif asked[call] > 1 + allowed[call]:
            yield "repeated", f"{call} was made {asked[call]} times with {allowed[call]} kills in between"
        if keys.setdefault(call, note["key"]) != note["key"]:
            yield "keys", f"{call} had two idempotency keys"


def went_back(notes: Sequence[dict[str, Any]]) -> Iterator[Fault]:
    """Iterations that began though a later one had been acknowledged, or without a state that had been."""
    decided: dict[str, int] = defaultdict(int)
    saved: dict[str, int] = defaultdict(int)
    for note in notes:
        name = note.get("run", "")
        if note["what"] == "decided":
            decided[name] = saved[name] = max(decided[name], note["iteration"])
        elif note["what"] == "saved":
            saved[name] = max(saved[name], note["iteration"])
        elif note["what"] == "began":
            if not decided[name] < note["iteration"] <= decided[name] + 2:
                yield "iteration", f"{name}: iteration {note['iteration']} after {decided[name]} was decided"
            decided[name] = max(
                decided[name], note["iteration"] - 1
            )  # whoever decided it may have died before its note
            if note["loaded"] < saved[name]:
                yield "older", f"{name}: loaded the state of {note['loaded']} turns after {saved[name]} were saved"


def disordered(received: Sequence[str], senders: int, each: int) -> Iterator[Fault]:
    """Signals, `SENDER:NUMBER`, that were lost, received twice, or overtook one of the same sender."""
    expected = {f"{sender}:{number}" for sender in range(senders) for number in range(each)}
    lost = expected - set(received)
    if lost:
        yield "lost", f"{len(lost)} signals: {sorted(lost)[:3]}"
    if len(received) != len(set(received)):
        yield "doubled", f"{len(received) - len(set(received))} signals were received twice"
    last: dict[str, int] = defaultdict(lambda: -1)
    for one in received:
        sender, _, number = one.partition(":")
        if int(number) < last[sender]:
            yield "order", f"{one} came after {last[sender]}"
            return
        last[sender] = int(number)
