"""A checkpoint's section says what adds most, in the words of the source, within its room; hints come first."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ralf.facts.facts import extract
from ralf.model import Facts
from ralf.summarize import Segment
from ralf.summarize.extractive import Extractive
from ralf.summarize.messages import exchanges
from ralf.summarize.section import lines_of
from ralf.transcripts.events import Event, Position


def events(*said: tuple[str, Any]) -> list[Event]:
    """Events of (who, text), or of (tool, input) for a call."""
    kinds: dict[str, Any] = {"user": "user", "agent": "assistant", "thinks": "thinking", "tool": "result"}
    out = []
    for n, (who, text) in enumerate(said):
        place = (Position(n, n), Position(n + 1, n + 1))
        if who in kinds:
            out.append(Event(kinds[who], text, *place, tool="Task" if who == "tool" else ""))
        else:
            out.append(Event("call", "\n".join(map(str, text.values())), *place, tool=who, input=text))
    return out


def section(*said: tuple[str, Any], room: int = 4_000, keep: tuple[str, ...] = (), told: str = "") -> list[str]:
    return lines_of(exchanges(events(*said)), room, keep=keep, told=told)


CAUSE = "The valve stuck because `open_valve` was called twice by the timer."


def test_every_message_of_an_exchange_can_be_kept_in_its_order() -> None:
    assert section(
        ("user", "Why does it leak?"),
        ("agent", "Let me look at the pump. The pump holds its pressure of 412 units."),
        ("agent", CAUSE),
    ) == [
        "- **Asked:** Why does it leak?",
        "  The pump holds its pressure of 412 units.",
        f"  {CAUSE}",
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "kept"),
    [
        ("Write", {"file_path": "/o/plan.md", "content": f"# Plan\n\n{CAUSE}"}, True),
        ("Write", {"file_path": "/o/valve.py", "content": f'"""{CAUSE}"""'}, False),
        ("ExitPlanMode", {"plan": CAUSE}, True),
        ("create_comment", {"issueId": "ENT-7", "body": CAUSE}, True),
        ("Bash", {"command": f"git commit -m '{CAUSE}'"}, True),
        ("Bash", {"command": f"git commit -m \"$(cat <<'EOF'\nMend the valve\n\n{CAUSE}\nEOF\n)\""}, True),
        ("Bash", {"command": f"cat > x.py <<'EOF'\n{CAUSE}\nEOF"}, False),
        ("Grep", {"pattern": CAUSE}, False),
    ],
)
def test_what_an_agent_writes_for_people_is_said_too(tool: str, arguments: dict[str, str], kept: bool) -> None:
    lines = section(("user", "Mend it"), (tool, arguments))
    assert any("stuck because" in line for line in lines) == kept


def test_a_thought_is_marked_and_a_guess_is_left_out() -> None:
    assert section(("thinks", f"{CAUSE} Maybe the `pump` is broken as well, because it hums.")) == [
        f"- thought: {CAUSE}"
    ]


def test_a_report_of_a_sub_agent_is_kept() -> None:
    assert section(("user", "Look around"), ("tool", CAUSE))[1:] == [f"  {CAUSE}"]


def test_where_room_is_short_the_same_is_not_said_twice() -> None:
    again = [("agent", f"{CAUSE} Once more: the valve stuck because `open_valve` was called twice.") for _ in range(9)]
    other = "The tank of row 7 is cracked, so it was emptied into the pond."
    lines = section(
        ("user", "Go on"), *again, ("agent", other), ("agent", "It is quiet in the north field now."), room=260
    )
    assert any("tank of row 7" in line for line in lines)
    assert sum(line.count("stuck because") for line in lines) <= 2


def test_what_a_decision_says_already_comes_last() -> None:
    said = [("agent", f"{CAUSE} The tank of row 7 is cracked, so it was emptied.")]
    assert section(*said, room=120, told=CAUSE) == ["- The tank of row 7 is cracked, so it was emptied."]
    assert CAUSE in section(*said, told=CAUSE)[0]


def test_a_request_that_a_client_recorded_twice_is_asked_once() -> None:
    asked = ("user", "Please mend the valve of the north field")
    assert section(asked, asked, ("agent", CAUSE)) == [
        "- **Asked:** Please mend the valve of the north field",
        f"  {CAUSE}",
    ]


# ---- what a person wants kept ----

PLAN = "The migration plan has two steps: copy the rows, then switch the readers."
NOISE = [("agent", f"Field {n} was mended since its pump_{n} leaked, and `pipe_{n}` holds again.") for n in range(99)]


def test_what_touches_a_hint_comes_first_and_is_marked() -> None:
    lines = section(("agent", PLAN), *NOISE, room=600, keep=("the migration plan",))
    assert lines[0] == f"- kept on request: {PLAN}"
    assert sum(PLAN in line for line in lines) == 1
    assert not section(("agent", PLAN), *NOISE, room=600)[0].startswith("- kept")


def test_also_what_a_person_said_can_be_kept_on_request() -> None:
    lines = section(("user", "Hm. For migrations the plan is two steps."), ("agent", CAUSE), keep=("migration plan",))
    assert lines[0] == "- kept on request: For migrations the plan is two steps."


@pytest.mark.parametrize("hint", ["the migration plan", "", "the", "?!"])
def test_where_nothing_speaks_of_a_hint_nothing_is_invented(hint: str) -> None:
    assert section(*NOISE[:3], keep=(hint,)) == section(*NOISE[:3])


def test_a_segment_carries_the_hints() -> None:
    said = events(("user", "Go on"), ("agent", PLAN), *NOISE)
    segment = Segment("s1", said, Facts(), 100, keep=("migration plan",))
    assert Extractive().summarize(segment).text.startswith(f"- kept on request: {PLAN}\n")


WORDS = st.text(alphabet=st.sampled_from("ab.`#*->| \n:1?!~…"), max_size=120)


@given(
    st.lists(st.tuples(st.sampled_from(["user", "agent", "thinks", "tool"]), WORDS), max_size=8),
    st.lists(WORDS, max_size=2),
    st.integers(0, 900),
)
def test_a_section_keeps_to_its_room_and_its_lines_begin_as_they_must(
    said: list[tuple[str, str]], keep: list[str], room: int
) -> None:
    lines = section(*said, room=room, keep=tuple(keep))
    assert sum(len(line) + 1 for line in lines) <= room
    assert all(re.match(r"- |> |\*\*|  ", line) and "\n" not in line for line in lines)


def seen_last(tool: str, arguments: dict[str, str], output: str) -> str:
    """What the facts say that was seen last, after one call."""
    call = Event("call", "", Position(1, 1), Position(2, 2), tool=tool, input=arguments, call_id="c")
    result = Event("result", output, Position(2, 2), Position(3, 3), tool=tool, call_id="c")
    return extract([call, result]).work.last_output


def test_the_facts_of_a_segment_say_what_the_agent_had_just_seen() -> None:
    said = events(("user", "Go on"), ("Bash", {"command": "make water"}), ("tool", "412 drops"))
    said[1:] = [
        Event(
            "call",
            "make water",
            Position(1, 1),
            Position(2, 2),
            tool="Bash",
            input={"command": "make water"},
            call_id="c",
        ),
        Event("result", "412 drops", Position(2, 2), Position(3, 3), tool="Bash", call_id="c"),
    ]
    assert extract(said).work.last_output == "Bash: make water\n412 drops"
    edit = {"file_path": "src/valve.py", "old_string": "def open():\n    pass", "new_string": "def open():\n    turn()"}
    assert seen_last("Edit", edit, "The file was updated") == "Edit: src/valve.py\ndef open(): … + turn()"
    assert seen_last("Read", {"file_path": "src/valve.py"}, "1 def open():") == "Read: src/valve.py"
    answered = [*said, Event("assistant", "It drips.", Position(3, 3), Position(4, 4))]
    assert extract(answered).work.last_output == ""


def test_a_section_says_what_was_edited_and_committed_for_each_request() -> None:
    def answered(number: int, tool: str, arguments: dict[str, str], output: str) -> list[Event]:
        at, end = Position(number, number), Position(number + 1, number + 1)
        call = Event("call", "", at, end, tool=tool, input=arguments, call_id=str(number))
        return [call, Event("result", output, at, end, tool=tool, call_id=str(number))]

    said = [
        Event("user", "Mend the valve of the pump, please", Position(0, 0), Position(1, 1)),
        *answered(1, "Edit", {"file_path": "/orchard/src/valve.py"}, "updated"),
        *answered(2, "Bash", {"command": "git commit -am 'Mend it'"}, "[rows 64274e0f] Mend it\n 1 file changed"),
    ]
    assert lines_of(exchanges(said), 1_000) == [
        "- **Asked:** Mend the valve of the pump, please",
        "  did: edited valve.py; committed 64274e0f Mend it",
    ]
