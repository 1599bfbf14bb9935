"""The order in which a brief shows its pieces, and at which lengths: it never depends on the budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence

from ralf.brief.recorded import Recorded

MESSAGE = (280, 500, 1_000, 1_500, 2_000, 3_000, 4_000)
PASTED = (280, 500, 700, 1_000, 2_000, 3_000, 4_000)
LAST = (200, 400, 900, 1_800, 2_800, 4_000)
LAST_PASTED = (200, 400, 700, 1_000, 2_000, 3_000, 4_000)
CLOSING = (160, 300, 600, 1_200, 1_800, 2_500, 3_500, 5_000, 7_000, 10_000)
OTHER = (240, 600, 1_100, 1_600)
LAST_TEXT = (250, 500, 1_000, 1_800, 2_400, 3_000, 4_000, 5_000, 7_000, 10_000)
BEFORE = (250, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_000)
LOG = (200, 400, 800, 1_600)
"""Lengths at which a text is shown, in characters, one of a wide script counting three.

No step is so long that a quarter of a brief would stay empty for it.
"""

Grant = tuple[str, int]
"""The key of a piece, and the number of a length."""

Order = Callable[[Collection[str], int, Sequence[str], Collection[str], Recorded], Iterator[Grant]]
"""Says in which order pieces are shown, see `grants`."""

_FEW, _ALL = 8, 99


def grants(
    keys: Collection[str], turns: int, log: Sequence[str], late: Collection[str], recorded: Recorded
) -> Iterator[Grant]:
    """Pieces and lengths, most needed first.

    keys   all pieces there are; `turns`: how many turns of the talk stand before the last message
    log    keys of what was done since, newest first; `late`: keys of what comes last of all
    recorded  what people, agents and models have on record
    """
    numbers = range(turns - 1, -1, -1)  # newest first

    def these(*heads: str, level: int = 0) -> Iterator[Grant]:
        return _these(keys, *heads, level=level)

    def messages(which: Iterable[int], level: int = 0, *, alone: bool = False) -> Iterator[Grant]:
        for number in which:
            yield f"turn-{number}", level
            if not alone:
                yield f"after-{number}", 0

    def closings(count: int, level: int) -> Iterator[Grant]:
        for number in numbers[:count]:
            yield from messages([number])
            yield f"did-{number}", 0
            yield f"closing-{number}", level

    def others(count: int, level: int) -> Iterator[Grant]:
        for number in numbers[:count]:
            yield from these(f"other-{number}", f"ran-{number}", level=level)

    def on_record(stages: Sequence[Sequence[str]], number: int) -> Iterator[Grant]:
        return _stage(stages, number)

    def agreed(count: int, level: int) -> Iterator[Grant]:
        """The agent's closing texts that a short message answers: what was agreed to stands there alone."""
        for number in [number for number in numbers if f"after-{number + 1}" in keys][:count]:
            yield from messages([number, number + 1])
            yield f"closing-{number}", level

    pinned, decided = recorded.pinned, recorded.decided
    yield from [("gap-talk", 0), ("gap-log", 0)]
    yield from first(keys, recorded)  # step 1
    yield from on_record(decided, 0)
    yield from [("fails-0", 1), *messages(numbers[:3]), *these("refused")]  # step 2
    yield from on_record(pinned, 1)
    yield from [*messages(numbers[3:9], alone=True), *messages(numbers[-1:])]  # step 3
    yield from [("closing", 1), ("before", 1), *((key, 0) for key in log[:3])]
    yield from messages(numbers[9:12], alone=True)
    yield from [("last", 2), ("before", 2), *closings(2, 0), ("closing", 2), *closings(2, 1)]
    yield from on_record(decided, 1)
    yield from [*messages(numbers[12:18], alone=True), *messages(numbers[:18]), *closings(4, 1)]  # step 4
    yield from [("todos", 1), ("edited", 1)]
    yield from ((key, 0) for key in log[3:8])
    yield from messages(numbers[18:30])  # step 5
    yield from [*((f"did-{number}", 0) for number in numbers[:18]), *messages(numbers[:9], 1), *closings(4, 2)]
    yield from [*messages(numbers[-1:], 3), *messages(numbers[:12], 2), *messages(numbers[:3], 4)]
    yield from [*on_record(pinned, 2), *((key, 0) for key in recorded.work)]
    yield from [*messages(numbers[30:60]), *agreed(4, 2), *messages(numbers[:30], 1), *these("back"), ("passes-0", 0)]
    yield from [("last", 3), ("closing", 3), *these("fails", level=2), *closings(20, 1)]  # step 6
    yield from [*((key, 0) for key in log[8:]), *((key, 1) for key in log[:6])]
    yield from [("looks", 0), ("passes-1", 0), ("commits", 0), *these("comment")]
    yield from on_record(decided, 2)
    yield from [*closings(8, 2), *agreed(8, 3), *these("failed")]
    yield from ((key, 1) for key in log)  # step 7
    yield from [*messages(numbers), *closings(turns, 1), *messages(numbers, 1), ("todos", 2)]
    yield from on_record(pinned, 3)
    yield from [*closings(20, 2), *messages(numbers, 2), *closings(20, 3), *others(20, 1), *these("ran", "other")]
    yield from closings(turns, 2)  # step 8
    yield from ((key, _ALL) for key in keys if key not in late)  # step 9
    yield from ((key, _ALL) for key in keys)


def after_compaction(
    keys: Collection[str], turns: int, log: Sequence[str], late: Collection[str], recorded: Recorded
) -> Iterator[Grant]:
    """Pieces and lengths for who has the client's summary, most needed first; see `grants`.

    Not what the agent said and did in earlier turns: the summary has what it took of that.
    """
    del log
    numbers = range(turns - 1, -1, -1)
    groups = "next commit todos running fails edited wrote aside before closing refused".split()
    pinned = [key for stages in (recorded.pinned, recorded.decided) for stage in stages for key in stage]
    failures = [key for key in keys if key.startswith("failure-")]
    state = [key for group in groups for key in keys if key == group or key.startswith(f"{group}-")]
    yield from [
        ("gap-talk", 0),
        ("last", 0),
        ("status", 0),
        ("last", 1),
        ("about", 0),
        *((key, 0) for key in [*state, *pinned]),
    ]
    for number in numbers:
        yield from [(f"turn-{number}", 0), (f"after-{number}", 0)]
    yield from ((key, 0) for key in failures)
    messages = [f"turn-{number}" for number in numbers]
    shown = [key for key in ("last", *state, *messages) if key not in late]
    for level in (1, 2, 3, _ALL):
        yield from ((key, level) for key in shown)
    yield from ((key, _ALL) for key in ("last", *messages))


def first(keys: Collection[str], recorded: Recorded) -> Iterator[Grant]:
    """Step 1: where the answer to the last message stands, and the state; pins come before it."""
    yield from [*_stage(recorded.pinned, 0), ("last", 0), ("status", 0)]
    yield from ((key, 0) for key in recorded.work[:_FEW])
    yield from [("last", 1), ("about", 0), ("status", 0), ("next", 0), ("commit", 0), ("todos", 0)]
    yield from [*_these(keys, "running"), ("fails-0", 0), ("fails-1", 0), ("edited", 0), ("wrote", 0)]
    yield from [*_these(keys, "aside"), ("closing", 0), ("before", 0)]


def with_seen(granted: Iterable[Grant]) -> Iterator[Grant]:
    """The same grants, with all that was seen last behind step 1: it may correct what was handed over."""
    for grant in granted:
        yield grant
        if grant == ("before", 0):
            yield "wrote", 1


def behind(
    granted: Iterable[Grant], turns: Container[int], keys: Collection[str], *, is_brief: bool
) -> Iterator[Grant]:
    """The same grants, those of some turns of the talk behind all others, but for their messages in brief.

    First what the person said, then the answers that a short message agreed to, then the rest. The rest says what a
    fresh hand-over says better: where the text is to be brief, it is left out.
    """
    said: list[Grant] = []
    agreed: list[Grant] = []
    rest: list[Grant] = []
    for grant in granted:
        head, _, place = grant[0].partition("-")
        number = place.partition("-")[0]
        if head in _LISTS:
            rest.append(grant)
        elif head not in _OF_TURNS or not number.isdecimal() or int(number) not in turns:
            yield grant
        elif head in ("turn", "after"):
            if grant[1] == 0:
                yield grant
            else:
                said.append(grant)
        elif head == "closing" and grant[1] <= _AGREED and f"after-{int(number) + 1}" in keys:
            agreed.append(grant)
        else:
            rest.append(grant)
    yield from [*said, *agreed]
    if not is_brief:
        yield from rest


_AGREED = 2  # the length of an answer

_LISTS = ("comment", "file", "failure")

_OF_TURNS = ("turn", "after", "did", "closing", "other", "hint", "ran")


def _these(keys: Collection[str], *heads: str, level: int = 0) -> Iterator[Grant]:
    """Pieces whose keys are these, or begin with one of these and a dash."""
    starts = tuple(f"{head}-" for head in heads)
    yield from ((key, level) for key in keys if key in heads or key.startswith(starts))


def _stage(stages: Sequence[Sequence[str]], number: int) -> Iterator[Grant]:
    yield from ((key, 0) for key in (stages[number] if number < len(stages) else ()))
