"""The embedded summariser: a segment's talk, and the decisions that stand in fields of the client's record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ralf.brief.work import work_of
from ralf.checkpointing.section import Extractive, Segment, Summary
from ralf.facts.facts import facts_of
from ralf.model import ActiveWork, Decision
from ralf.talk.recording import record
from ralf.talk.turns import thread
from ralf.transcripts.events import Event, Position

WHEN = "Which time zone do the tides use?"


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


def asked(answer: str, about: str = WHEN, form: str = "answer", options: Sequence[str] = ()) -> Talk:
    """A conversation in which the person answered a question of a tool, or approved a plan."""
    made = Talk()
    made.say("user", "Show the tides, and never use local time.")
    made.say("assistant", "We decided to use UTC, because the buoys do.")
    made.say("user", answer, form=form, input={"about": about, "options": list(options)})
    return made


def summed_up(events: Sequence[Event], *known: Decision) -> Summary:
    """What the events come to, on a route that has these decisions."""
    return Extractive().summarize(replace(segment(events), decisions=known))


def test_an_answer_to_a_tools_question_is_a_decision_with_the_other_options_and_nothing_else_is_one() -> None:
    (found,) = summed_up(asked("UTC", options=["UTC", "Local time"]).events).decisions
    assert found.decision == f"{WHEN} \u2192 UTC"
    assert (found.origin, found.alternatives, found.kind, found.rationale) == (
        "answer",
        ("Local time",),
        "decision",
        "",
    )
    assert found.source is not None and (found.source.first_line, found.source.last_line) == (3, 3)


def test_an_approved_plan_is_a_decision_by_its_first_heading() -> None:
    (found,) = summed_up(asked("(plan approved)", about="\n# Move the tables\n\n1. Read", form="plan").events).decisions
    assert (found.decision, found.origin) == ("plan approved: Move the tables", "answer")


def test_a_section_quotes_what_was_said_and_names_what_was_done() -> None:
    made = Talk()
    made.say("user", "Move the tide table.\n# Not a heading")
    made.use("Edit", {"file_path": "/srv/made/src/tides.py", "old_string": "a", "new_string": "b"}, "updated")
    made.say("assistant", "The table is moved.")
    found = summed_up(made.events)
    assert found.title.strip('"').startswith("Move the tide table.")
    assert all(words in found.text for words in ("Move the tide table.", "tides.py", "The table is moved."))
    assert not [line for line in found.text.split("\n") if line.startswith("#")]
