"""What an agent is handed over beside its client's own summary of the window."""

from __future__ import annotations

from ralf.brief.views import after_compaction
from ralf.model import Decision, Header, RouteContext
from ralf.model.entries import Entry, Message, Said, SessionEntries, Step

FIRST = "Make the orchard water itself when the soil is dry, but never between ten in the morning and four."
SECOND = "No timers in the valve's own code: the pump's firmware has one, and two of them drift apart."
LAST = "Now the pump."


def failed(number: int, command: str) -> Step:
    at = f"2026-03-01T08:0{number}:30Z"
    return Step(f"t{number}", at, number, "command", "Bash", command, outcome="failed", status=1, lines=("E no water",))


ENTRIES: tuple[Entry, ...] = (
    Message("m1", "2026-03-01T08:01:00Z", text=FIRST),
    failed(1, "make valve && ./valve --dry-run --for 30m --against soil.csv"),
    Said("2026-03-01T08:01:40Z", text="I begin with the valve, which opens by a relay."),
    Message("m2", "2026-03-01T08:02:00Z", text=SECOND),
    failed(2, "make pump"),
    Step(
        "e1",
        "2026-03-01T08:02:40Z",
        2,
        "edit",
        "Edit",
        "src/valve.py",
        outcome="ok",
        files=(("src/valve.py", "edited"),),
    ),
    Message("m3", "2026-03-01T08:03:00Z", text=LAST),
    Said("2026-03-01T08:03:40Z", text="I look at the driver of the pump."),
)
CONTEXT = RouteContext(
    context_checkpoint=Header(route="orchard"),
    decisions=(
        Decision("DEC-001", decision="Water at night instead of at noon"),
        Decision("DEC-002", kind="rule", decision="Never open two valves at once"),
    ),
    sessions=(SessionEntries("s", ENTRIES),),
)


def test_messages_and_decisions_that_the_summary_lacks_are_told_and_no_others() -> None:
    summary = f"The user asked: {FIRST[:70].upper()}..."
    said = after_compaction(CONTEXT, summary, 2_500)
    assert SECOND in said and "make pump" in said and "Water at night" in said
    assert FIRST[:40] not in said
    assert FIRST in after_compaction(CONTEXT, "", 2_500)
