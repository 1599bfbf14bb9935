"""A session of the real Claude Agent SDK, which runs the real Claude Code, in `RalfSessionStore`: stored as it goes on,
killed, resumed in another folder, and checkpointed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from offline import World, bash, said, why_not

import ralf
import storekit
from ralf.transcripts.reader import open_transcript
from ralf_integrations.doors.claude_sdk import RalfSessionStore

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")

pytestmark = [pytest.mark.release(seconds=20), pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

EXAMPLE = storekit.SOURCE / "examples" / "claude_sdk_session.py"

ASK = """
import asyncio, sys
from claude_sdk_session import ask
from ralf_integrations.doors.claude_sdk import RalfSessionStore

store, session = RalfSessionStore("/tmp/run/proj", project_key="tide"), sys.argv[1] or None
for prompt in sys.argv[2:]:
    session = asyncio.run(ask(store, prompt, session, cli_path="/tmp/run/bin/claude", model="claude-sonnet-4-5",
                              permission_mode="bypassPermissions"))
    print(session, flush=True)
"""

STORED = "/tmp/run/proj/.autonomous/context/journal/sessions"


@pytest.fixture
def asking(world: World) -> World:
    """A world in which `/tmp/run/ask.py SESSION PROMPT…` asks with the example's function."""
    (world.folder / "claude_sdk_session.py").write_bytes(EXAMPLE.read_bytes())
    (world.folder / "ask.py").write_text(ASK)
    return world


def test_a_session_that_was_killed_in_a_turn_is_resumed_from_the_store_in_another_folder(asking: World) -> None:
    killed = asking.run(
        f"""
        cd /tmp/run/proj
        setsid python /tmp/run/ask.py "" "The gauge at pier 9 reads 412 cm." "Now run it." >/tmp/run/told 2>&1 &
        agent=$!
        until grep -rqs "sleep 41" {STORED}; do sleep 0.1; done
        kill -9 -- -$agent
        rm -r /tmp/run/home/.claude
        """,
        {"main": [said("Noted: pier 9, 412 cm. We use the advisory lock."), bash("echo begun; sleep 41")]},
    )
    assert killed.status == 0, killed.err
    answer, session = (asking.folder / "told").read_text().splitlines()
    assert answer.startswith("Noted")
    before = len(asking.asked())

    resumed = asking.run(
        f'mkdir /tmp/run/other; cd /tmp/run/other; python /tmp/run/ask.py {session} "What did it read?"',
        {"main": [said("412 cm.")]},
    )
    assert resumed.out.splitlines() == ["412 cm.", session], resumed.err
    asked = asking.asked()[before]
    positions = [asked.index(text) for text in ("pier 9 reads 412", "Noted: pier 9", "sleep 41", "What did it read?")]
    assert positions == sorted(positions)

    store = RalfSessionStore(asking.project, project_key="tide")
    report = store.checkpoint("tide", session)
    assert report.checkpoints
    assert "malformed" not in report.skipped
    assert "The gauge at pier 9 reads 412 cm." in ralf.get_context("tide", root=asking.project).render()
    assert not store.checkpoint("tide", session).checkpoints


def test_each_exported_line_is_one_of_the_client_s_log_byte_for_byte_and_in_its_order(
    asking: World, tmp_path: Path
) -> None:
    """The client keeps some lines of its own, such as the shape of a request, to itself: no event is among them."""
    ran = asking.run(
        'python /tmp/run/ask.py "" "Run it, Zoë."',
        {"main": [bash("printf 'a\\u2028\\tb'"), said("Done: ≤ 10⁻³.")]},
    )
    assert ran.status == 0, ran.err
    [log] = asking.transcripts()
    exported = RalfSessionStore(asking.project, project_key="tide").export(ran.out.split()[-1], tmp_path / "out")
    ours, theirs = exported.read_bytes().splitlines(), log.read_bytes().splitlines()
    kept = set(ours)
    assert [line for line in theirs if line in kept] == ours
    assert not {json.loads(line)["type"] for line in theirs if line not in kept} & {"user", "assistant", "system"}
    assert [(event.kind, event.text) for event in open_transcript(exported).events()] == [
        (event.kind, event.text) for event in open_transcript(log).events()
    ]
