"""The order in which a brief shows its pieces, and at which lengths: it never depends on the budget."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ralf.brief.recorded import Recorded
from ralf.text.patterns import regex

MESSAGE = (280, 280, 500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 5_000)
PASTED = (280, 280, 400, 400, 500, 500, 700, 700, 1_000, 1_000, 1_000, 2_000, 3_000, 4_000)  # 1,000 beside a whole one
LAST = (200, 400, 900, 1_800, 2_800, 4_000)
LAST_PASTED = (200, 400, 700, 1_000, 2_000, 3_000, 4_000)
CLOSING = (160, 300, 600, 1_200, 1_800, 2_500, 3_500, 5_000, 7_000, 10_000)
OTHER = (240, 600, 1_100, 1_600)
LAST_TEXT = (250, 500, 1_000, 1_800, 2_400, 3_000, 4_000, 5_000, 7_000, 10_000)
BEFORE = (250, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_000)
LOG = (200, 400, 800, 1_600)
"""Lengths at which a text is shown, in characters, one of a wide script counting three.

No step is so long that a quarter of a brief would stay empty for it. A message that can only be read with what came
before it has the end of that from its second length on.
"""

Grant = tuple[str, int]
"""The key of a piece, and the number of a length."""

_STEP_1 = (
    "pinned.0 unread last status work[:8] last@1 about status own.0 next messages[-1:] commit todos running- fails-0 "
    "fails-1 edited wrote aside- closing before"
)
"""Where the answer to the last message stands, the first message, which holds the rules of the job, and the state; pins
come before it.
"""

_STEPS = (
    "gap-talk",
    _STEP_1,
    "own.1 todos@1 decided.0 fails-0@1 messages[:3]@1 refused-",  # step 2
    "pinned.1 messages[3:9] messages[-1:]@1 messages[9:12] closing@1 before@1 log[:3] last@2 before@2",  # step 3
    "closings[:2] closing@2 closings[:2]@1",
    "decided.1 messages[12:18] messages[:18]@1 closings[:4]@1 todos@2 edited@1 log[3:8]",  # step 4
    "messages[18:30]@1 did[:18] messages[:9]@2 messages[-1:]@4 messages[:12]@3 messages[:3]@5",  # step 5
    "pinned.2 work messages[30:60]@1 messages[:30]@2 messages[-1:]@10 last@5 messages@10",
    "closings[:4]@2 agreed[:4]@2 back- passes-0",
    "closing@3 fails-@2 closings[:20]@1 log[8:] log[:6]@1 looks passes-1 commits",  # step 6
    "decided.2 closings[:8]@2 agreed[:8]@3 failed-",
    "log@1 messages@1 closings@1 messages@2 todos@3",  # step 7
    "pinned.3 closings[:20]@2 messages@3 closings[:20]@3 others[:20]@1 ran-,other- closings@2",  # step 8
    "early@99 all@99",  # step 9
)
"""`what[which]@length`, most needed first; without a length the shortest.

what   the key of a piece; how keys begin, with the dash; a list (log, work, pinned.0, own.0, decided.0, all; early: all
       but the late ones); or of each turn, the newest first, its messages, did, others,
       closings (with the message and did), or agreed: the closing text that a short message answers
which  of these
"""

_OF_TURN = {
    "messages": "turn-{0}@",
    "did": "did-{0}@",
    "closings": "turn-{0}@0 did-{0}@0 closing-{0}@ agreed-{0}@",
    "agreed": "turn-{0}@0 turn-{1}@1 agreed-{0}@",
    "others": "other-{0}-,ran-{0}-@",
}
"""What is shown of a turn; without a length the one that is asked for."""

_GRANT = regex(r"([^\s\[@]+)(?:\[(-?\d*):(-?\d*)\])?(?:@(\d*))?")


def grants(
    keys: Collection[str], turns: int, log: Sequence[str], late: Collection[str], recorded: Recorded
) -> Iterator[Grant]:
    """Pieces and lengths, most needed first.

    keys   all pieces there are; `turns`: how many turns of the talk stand before the last message
    log    keys of what was done since, newest first; `late`: keys of what comes last of all
    recorded  what people, agents and models have on record
    """
    lists = {
        "log": log,
        "work": recorded.work,
        "early": [key for key in keys if key not in late and not key.startswith("hint")],
        "all": keys,
    }
    for name, stages in (("pinned", recorded.pinned), ("own", recorded.own), ("decided", recorded.decided)):
        lists |= {f"{name}.{number}": stages[number] if number < len(stages) else () for number in range(4)}
    yield from _grants(" ".join(_STEPS), keys, turns, lists)


def first(keys: Collection[str], recorded: Recorded) -> Iterator[Grant]:
    """Step 1."""
    lists = {"work": recorded.work, "pinned.0": [*recorded.pinned, ()][0], "own.0": [*recorded.own, ()][0]}
    yield from _grants(_STEP_1, keys, 0, lists)


def _grants(wanted: str, keys: Collection[str], turns: int, lists: Mapping[str, Collection[str]]) -> Iterator[Grant]:
    for what, which, level in _parsed(wanted):
        if what in _OF_TURN:
            numbers = [n for n in range(turns - 1, -1, -1) if what != "agreed" or f"agreed-{n}" in keys]
            parts = [part.format(n, n + 1) for n in numbers[which] for part in _OF_TURN[what].split()]
            yield from _grants(
                " ".join(f"{part}{level}" if part[-1] == "@" else part for part in parts), keys, turns, lists
            )
        elif what.endswith("-"):
            yield from ((key, level) for key in keys if key.startswith(tuple(what.split(","))))
        else:
            yield from ((key, level) for key in [*lists.get(what, (what,))][which])


@lru_cache(8_192)  # those of a turn are asked for many times
def _parsed(wanted: str) -> list[tuple[str, slice, int]]:
    return [
        (what, slice(int(start) if start else None, int(end) if end else None), int(length or 0))
        for what, start, end, length in _GRANT.findall(wanted)
    ]


def behind(granted: Iterable[Grant], turns: Container[int], *, is_brief: bool) -> Iterator[Grant]:
    """The same grants beside a fresh hand-over: those of some turns of the talk come behind all others, but for their
    messages in brief. First the rest of what the person said, then the log, then what the agent did and said. The
    hand-over says the latter better: where the text is to be brief, it is left out.
    """
    later: dict[str, list[Grant]] = {"turn": [], "since": [], "": []}
    for grant in granted:
        head, _, place = grant[0].partition("-")
        number = place.partition("-")[0]
        if head in _OF_TURNS and number.isdecimal() and int(number) in turns and (head, grant[1]) != ("turn", 0):
            later[head if head == "turn" else ""].append(grant)
        elif head in _OF_LOG or grant[1] == _ALL:
            later["since"].append(grant)
        else:
            yield grant
    yield from [*later["turn"], *later["since"], *(later[""] if not is_brief else ())]


_ALL = 99  # a length beyond every one: the longest

_OF_LOG = ("since", "looks", "passes", "comment")

_OF_TURNS = ("turn", "did", "closing", "agreed", "other", "hint", "ran")
