"""Rollouts that the real `codex` writes here and now, against a scripted model: read, found and taken."""

from __future__ import annotations

from typing import Any

import offline
import pytest
from offline import CODEX, World, call, why_not

import ralf
from factskit import extract
from ralf.transcripts.events import session_of_log
from ralf.transcripts.reader import open_transcript

pytestmark = [pytest.mark.release, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

REQUEST = "Move the tide table to SQLite, and mind the <b>old</b> columns."
CHOICE = "Use SQLite instead of Postgres, because one file needs no server."
PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: src/tides.py\n+x = 1\n*** End Patch\nEOF"
_HEADERS = "Update File: src/tides.py\n*** Move to: src/sea.py\n@@\n-x = 1\n"
MOVE = PATCH.replace("Add File: src/tides.py\n", _HEADERS).replace("+x = 1", "+x = 2")
PLAN = {"plan": [{"step": "Read it", "status": "completed"}, {"step": "Write it", "status": "in_progress"}]}
TOML = "model_auto_compact_token_limit = 200000\n[tools.update_plan]\nenabled = true"


def steps() -> list[dict[str, Any]]:
    plan = {"text": CHOICE, "call": {"name": "update_plan", "arguments": PLAN}}
    late = {"name": "exec_command", "arguments": {"cmd": "sleep 2; echo late; exit 4", "yield_time_ms": 250}}
    return [
        plan,
        call(PATCH, text="Write it."),
        call(MOVE),
        call("ls src; cat nothing.txt"),
        {"call": late},
        call("sleep 3"),
        call("echo full", filled=240_000),
        call("echo after", text="It goes on.", filled=20_000),
        {"text": "All done.", "usage": {"input_tokens": 21_000, "output_tokens": 15}},
    ]


def test_a_rollout_of_the_real_client_is_read_found_and_taken(world: World) -> None:
    (world.project / "AGENTS.md").write_text("# HOUSE RULES\n")
    ran = world.run(
        f"{CODEX} -m gpt-5.5 '{REQUEST}'", {"main": steps(), "summary_text": "SUMMARY"}, model="openai", toml=TOML
    )
    assert ran.status == 0, ran.err
    (path,) = world.transcripts()
    transcript = open_transcript(path)
    events = list(transcript.events())
    assert (transcript.format, transcript.cwd) == ("codex", str(offline.INSIDE))
    assert transcript.session == session_of_log(path) and transcript.end.byte == path.stat().st_size
    told = [(event.kind, event.text) for event in events]
    assert [text for kind, text in told if kind == "user"] == [REQUEST]
    assert [text for kind, text in told if kind == "assistant"] == [CHOICE, "Write it.", "It goes on.", "All done."]
    (compaction,) = [event for event in events if event.kind == "compaction"]
    assert compaction.text.endswith("SUMMARY")
    assert "HOUSE RULES" not in str(told) and "environment_context" not in str(told)
    windows = [event.window for event in events if event.window is not None]
    assert 240_000 in windows and windows[-1] == 21_015
    after = [event.window for event in events if event.start.byte > compaction.start.byte and event.window is not None]
    assert max(after) < 30_000
    assert {event.capacity for event in events} - {None} == {258_400}

    found = extract(events, base=str(offline.INSIDE))
    assert {fact.path: fact.did for fact in found.facts.paths} == {
        "src/tides.py": ("created", "deleted"),
        "src/sea.py": ("created",),
    }
    ended = {fact.command: (fact.status, fact.exit) for fact in found.facts.commands}
    assert ended["ls src; cat nothing.txt"] == ("failed", 1)
    assert ended["sleep 2; echo late; exit 4"] == ("failed", 4)
    assert ended["echo after"] == ("passed", None)
    assert [(todo.content, todo.status) for todo in found.work.todos] == [
        ("Read it", "completed"),
        ("Write it", "in_progress"),
    ]

    places = [event.end for event in events[:: len(events) // 5]]
    for place in places:
        rest = [event for event in events if event.start.byte >= place.byte]
        assert list(open_transcript(path).events(place)) == rest


TAKE = """
from ralf import project
from ralf_integrations import existing
here = project.find("/tmp/run/proj")
for taken in existing.take(here, existing.found(here, "codex")):
    print(taken.session.route, taken.session.rule, len(taken.report.checkpoints), taken.problem)
print(existing.found(here))
"""


def test_the_sessions_that_codex_keeps_are_offered_and_its_commands_know_theirs(world: World) -> None:
    ran = world.run("ralf init --yes")
    assert ran.status == 0, ran.err
    ran = world.run(
        f"{CODEX} '{REQUEST}'", {"main": [call("/tmp/venv/bin/ralf route tides"), {"text": CHOICE}]}, model="openai"
    )
    assert ran.status == 0, ran.err
    (world.project / "take.py").write_text(TAKE)
    ran = world.run("/tmp/venv/bin/python take.py && ralf checkpoint newest --again")
    assert ran.status == 0 and ran.out.splitlines()[:2] == ["tides ralf route 1 ", "()"], ran.out + ran.err
    for route in ("tides", "newest"):
        assert ralf.get_context(route, root=world.project).began_as == REQUEST
