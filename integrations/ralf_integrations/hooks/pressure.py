"""At which marks of pressure the agent is told, and what: each once, until its window has been emptied."""

from __future__ import annotations

from ralf.config import Config
from ralf_integrations.hooks.usage import Look

_REARM = 10  # points by which the figure has to fall below a mark before that is told again
_FULL = 100

TAKEN_BACK = "[ralf] This session's context window was emptied: what ralf said before of how full it is holds no more."
"""What the agent is told once the marks that it was told count as not told any more."""


def marks(settings: Config) -> tuple[int, ...]:
    """The marks in percent, rising."""
    found = {settings.pressure, settings.pressure_again}
    step = settings.pressure_step or _FULL
    found.update(range(settings.pressure_from, _FULL + 1, step))
    return tuple(sorted(mark for mark in found if mark <= _FULL))


def reached(settings: Config, look: Look, told: int) -> tuple[int, bool]:
    """The highest mark that counts as told from now on, and whether it has to be.

    told  the highest that was told since the window was last emptied
    """
    if look.percent is None:
        return told, False
    passed = max((mark for mark in marks(settings) if mark <= look.percent), default=0)
    if passed < told and look.percent >= told - _REARM:
        return told, False
    return passed, passed > told


def following(settings: Config, look: Look, told: int) -> int:
    """Tokens in the window at which the next mark is reached, 0 where none follows. One above `look.compacts` does not
    come, unless a person has switched the client's own compaction off.
    """
    mark = next((mark for mark in marks(settings) if mark > told), 0)
    return -(-mark * look.window // _FULL)


def emptied(look: Look, told: int) -> int:
    """Tokens in the window below which the marks count as not told any more."""
    return max(0, told - _REARM) * look.window // _FULL


def word(settings: Config, look: Look, mark: int) -> str:
    """What the agent is told at a mark, without the route: its name is nobody's word of ours (`commands`)."""
    how = (
        f"This session's context window is {look.percent:.0f} % full (about {look.filled:,} of {look.window:,} tokens)."
    )
    if look.compacts < look.window:
        how = f"{how} The client compacts it by itself at about {look.compacts:,}."
    if mark < settings.pressure_again:
        return (
            f"[ralf] {how} A checkpoint of its route is being made, so now is a good moment to compact or to hand over"
            " to a fresh session, at the next step that is complete. Whoever goes on reads the route first."
        )
    if mark < settings.pressure_from:
        return (
            f"[ralf] {how} Finish the step at hand, record what was decided and is not written down yet, then ask the"
            " person to compact (/compact), or end here and hand over: the next session reads the route."
        )
    return (
        f"[ralf] {how} Compact or hand over now: begin no new step, tell the person that the window is nearly full. The"
        " route is kept by ralf; the next session goes on with it."
    )


def commands(route: str) -> str:
    """How the route is read, and a decision recorded in it."""
    return (
        f"Read route {route}: `ralf context show {route} --brief`; record a decision in it:"
        f' `ralf context decide {route} "WHAT" --because "WHY" --origin agent`'
    )
