"""The real Gemini CLI and opencode in what happens to sessions: resumed, crashed, beside another, in any folder."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import scenario
from offline import World, bash, said, waited, why_not
from scenario import CHOICE, ON_ROUTE, REQUEST, ROUTE, install, script, work

import ralf
from ralf import project as projects
from ralf.storage import journal
from ralf.transcripts.reader import open_transcript

pytestmark = [pytest.mark.release(seconds=40), pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

each = pytest.mark.parametrize(
    "client",
    [
        pytest.param(name, marks=pytest.mark.skipif(bool(why_not(name)), reason=why_not(name) or "-"))
        for name in ("gemini", "opencode")
    ],
)
of_opencode = pytest.mark.skipif(bool(why_not("opencode")), reason=why_not("opencode") or "-")

FOLDER = "größe 1/проект 継続"
TOKEN = "ghp_" + "q7Rt2bVx9MpL4sKd8WzY3nCf1aBcDeFgHiJk"
LOUD = f"printf '\\377\\376 raw\\n'; echo token {TOKEN}; seq 1 60000; echo the-very-end"
CONTINUE = {"gemini": ("gemini ", "gemini --resume latest "), "opencode": ("opencode run ", "opencode run --continue ")}


def go_on(world: World, client: str, prompt: str, steps: list[dict[str, Any]], before: str = "") -> None:
    """Have the client's last session go on under its own id."""
    again = scenario.command(client, prompt).replace(*CONTINUE[client], 1)
    ran = world.run(before + again, script(client, steps), env=ON_ROUTE, **scenario.model(client))
    assert ran.status == 0, ran.err


def checkpoints(world: World, folder: str = "") -> list[dict[str, Any]]:
    project = projects.find(world.project / folder)
    records = [record for _, record in journal.read(project.store, ROUTE)]
    return [record.payload for record in records if record.kind == "checkpoint"]


@of_opencode
def test_a_loud_session_in_a_folder_of_any_name_is_checkpointed_and_goes_on_under_its_id(
    world: World, client: str = "opencode"
) -> None:
    there = f"cd '/tmp/run/proj/{FOLDER}'\n"
    (world.project / FOLDER).mkdir(parents=True)
    done = world.run(f"{there}ralf init --client {client} --yes")
    assert done.status == 0, done.err
    steps = [bash(LOUD, text=CHOICE), said("One is done.")]
    ran = world.run(
        there + scenario.command(client, REQUEST), script(client, steps), env=ON_ROUTE, **scenario.model(client)
    )
    assert ran.status == 0, ran.err
    assert waited(lambda: checkpoints(world, FOLDER))
    go_on(world, client, "Go on with two.", [bash("echo two-is-here"), said("Two is done.")], there)
    assert waited(lambda: len(checkpoints(world, FOLDER)) > 1)
    (log,) = world.transcripts()
    source = open_transcript(log)
    events = list(source.events())
    assert [event.text for event in events if event.kind == "user"] == [REQUEST, "Go on with two."]
    assert [event.text for event in events if event.text in ("One is done.", "Two is done.")] == [
        "One is done.",
        "Two is done.",
    ]
    assert source.malformed == []
    sources = [payload["source"] for payload in checkpoints(world, FOLDER)]
    assert {one["session"] for one in sources} == {source.session}
    assert all(before["to_byte"] <= after["from_byte"] for before, after in itertools.pairwise(sources))
    context = ralf.get_context(ROUTE, root=world.project / FOLDER)
    assert "SQLite" in context.history
    kept = [log] if client == "opencode" else []
    for path in (*kept, *(path for path in (world.project / FOLDER).rglob("*") if path.is_file())):
        assert TOKEN.encode() not in path.read_bytes(), path


@each
def test_a_client_that_is_killed_before_the_answer_leaves_the_request_to_the_next_session(
    world: World, client: str
) -> None:
    install(world, client)
    commands = f"""
{scenario.command(client, REQUEST)} &
i=0; while ! grep -q '"kind": "main"' /tmp/run/requests.jsonl 2>/dev/null && [ $i -lt 900 ]; do
    sleep 0.1; i=$((i+1))
done
sleep 1
kill -9 $!
sleep 1
"""
    waiting = script(client, [])
    waiting["main"] = [{"text": "Never.", "seconds": 60}]
    world.run(commands, waiting, env=ON_ROUTE, **scenario.model(client))
    before = len(world.asked())
    ran = work(world, client, "Go on.", [said("I go on.")], env=ON_ROUTE)
    assert ran.status == 0, ran.err
    assert REQUEST in world.asked()[before]


@of_opencode
def test_of_a_subagent_the_log_has_the_call_and_its_answer_alone(world: World) -> None:
    install(world, "opencode")
    given = {"description": "look", "prompt": "SUBAGENT-PROMPT look around", "subagent_type": "general"}
    steps = script("opencode", [said("")] * 4)
    steps["main"] = [
        {"text": "Ask another.", "call": {"name": "task", "arguments": given}},
        {"text": "", "call": {"name": "bash", "arguments": {"command": "echo SUBAGENT-PRINTED", "description": "x"}}},
        {"text": "SUBAGENT-ANSWER"},
        {"text": "Done with it."},
    ]
    ran = world.run(scenario.command("opencode", REQUEST), steps, env=ON_ROUTE, **scenario.model("opencode"))
    assert ran.status == 0, ran.err
    (log,) = world.transcripts()
    events = list(open_transcript(log).events())
    assert [event.text for event in events if event.kind == "user"] == [REQUEST]
    assert [event.text for event in events if event.kind == "assistant"] == ["Ask another.", "Done with it."]
    assert [event.tool for event in events if event.kind == "call"] == ["task"]
    (result,) = [event for event in events if event.kind == "result"]
    assert "SUBAGENT-ANSWER" in result.text
    assert "SUBAGENT-PRINTED" not in log.read_text()
