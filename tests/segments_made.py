"""Segments made for tests of what judges checkpoints: answered questions, a to-do list, names and numbers; seeded."""

from __future__ import annotations

from collections.abc import Sequence

from ralf.brief.work import work_of
from ralf.checkpointing.section import Segment
from ralf.facts.facts import facts_of
from ralf.model import ActiveWork
from ralf.talk.recording import record
from ralf.talk.turns import thread
from ralf.transcripts.events import Event, Position


class Talk:
    """Collects the events of a conversation, one record a line."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def say(self, kind: str, text: str, **more: object) -> None:
        """One event."""
        line = len(self.events)
        place = Position(line * 100, line), Position(line * 100 + 100, line + 1)
        time = f"2026-03-01T08:{line // 60 % 60:02d}:{line % 60:02d}Z"
        self.events.append(Event(kind, text, *place, timestamp=time, cwd="/srv/made", **more))  # type: ignore[arg-type]

    def use(self, tool: str, given: dict[str, object], answer: str, *, failed: bool = False) -> None:
        """A call and its result."""
        call_id = f"call-{len(self.events)}"
        text = "\n".join(map(str, given.values()))
        self.say("call", text, tool=tool, input=given, call_id=call_id)
        self.say("result", answer, tool=tool, call_id=call_id, failed=failed, exit_status=1 if failed else None)


def segment(events: Sequence[Event]) -> Segment:
    """The events as a summariser gets them."""
    entries = record(events, "/srv/made", "made")
    work = work_of(ActiveWork(), thread(entries))
    return Segment("made", events, facts_of(entries), 2_000, active_work=work, entries=entries)
