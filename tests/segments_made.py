"""Segments made for tests of what judges checkpoints: answered questions, a to-do list, names and numbers; seeded."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ralf.brief.work import work_of
from ralf.checkpointing.section import Segment
from ralf.facts.facts import facts_of
from ralf.model import ActiveWork
from ralf.talk.recording import record
from ralf.talk.turns import thread
from ralf.transcripts.events import Event, Position

_PARTS = ("parser", "cache", "mailer", "ledger", "scanner", "router", "splitter", "packer", "timer", "loader")
_REASONS = ("it needs no server", "the tests ran faster", "nobody could read the other", "it fits into one file")


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


def talk(seed: int, parts: int = 6) -> list[Event]:
    """A conversation about so many parts of a program."""
    draw = random.Random(seed)  # noqa: S311
    made = Talk()
    chosen = draw.sample(_PARTS, parts)
    todos = [
        {"content": f"Carry the {part} over to version {draw.randint(100, 999)}", "status": "pending"}
        for part in chosen
    ]
    made.say(
        "user", f"Please rework the {chosen[0]} and what hangs on it; the limit of {draw.randint(200, 900)} stays."
    )
    made.use("TodoWrite", {"todos": todos}, "Todos have been modified")
    for part in chosen:
        size, path = draw.randint(1000, 9999), f"/srv/made/src/{part}.py"
        made.use("Read", {"file_path": path}, f"def run_{part}(): ...")
        made.say(
            "user",
            f"A queue of {size} entries for `{part}_queue`, because {draw.choice(_REASONS)}",
            form="answer",
            input={"about": f"What holds the entries of the {part}?", "options": ["A list"]},
        )
        made.use(
            "Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, f"The file {path} has been updated."
        )
        failed = draw.random() < 0.4
        made.use(
            "Bash",
            {"command": f"pytest -q tests/test_{part}.py"},
            "E   AssertionError: no" if failed else "3 passed in 0.1s",
            failed=failed,
        )
        made.say("user", f"And what about the {part} when it is full, does `{part}_queue` wait at {size}?")
        made.say("assistant", f"Fixed: `{part}_queue` now waits at {size} entries, and `run_{part}` is done.")
    return made.events


def segment(events: Sequence[Event]) -> Segment:
    """The events as a summariser gets them."""
    entries = record(events, "/srv/made", "made")
    work = work_of(ActiveWork(), thread(entries))
    return Segment("made", events, facts_of(entries), 2_000, active_work=work, entries=entries)
