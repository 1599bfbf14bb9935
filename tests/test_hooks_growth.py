"""What a transcript has grown by: a hook counts it without a look, never too little, and leaves the rest to a look."""

from __future__ import annotations

import posix
import random
from pathlib import Path
from typing import Any

import pytest

import hookkit
import rollouts
import storekit
from hookkit import Rig
from ralf.transcripts.reader import open_transcript
from ralf_integrations.client import CLIENTS
from ralf_integrations.hooks import growth, instant, session_registry, usage

_WORDS = "the tide table of harbour reader column station level batch window 404 src/app/main.py None returned".split()


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    for variable in (b"CLAUDE_PROJECT_DIR", b"RALF_PROJECT_DIR"):
        monkeypatch.delitem(posix.environ, variable, raising=False)  # type: ignore[arg-type]
    return hookkit.rig(tmp_path / "project")


def _prose(dice: random.Random, size: int) -> str:
    return " ".join(dice.choice(_WORDS) for _ in range(size // 6))


def _step(rig: Rig, dice: random.Random, number: int, **usage_told: Any) -> None:
    """A call with a small output, in records as wide as the client's."""
    wide = {"parentUuid": "4d7e7cb2-df1a-40c3-a4a2-54c208b008f2", "isSidechain": False, "userType": "external"}
    wide |= {"cwd": str(rig.root), "version": "2.1.36", "gitBranch": "main", "timestamp": "2026-03-01T09:00:00.000Z"}
    call = {"type": "tool_use", "id": f"toolu_{number:024}", "name": "Bash", "input": {"command": _prose(dice, 60)}}
    said = {"type": "text", "text": _prose(dice, 120)}
    message = {"model": "m", "id": f"msg_{number:024}", "role": "assistant", "content": [said, call], **usage_told}
    rig.add({**wide, "type": "assistant", "message": message, "uuid": f"4d7e7cb2-df1a-40c3-a4a2-{number:012}"})
    output = _prose(dice, dice.randrange(200, 800))
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": output}
    details = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    rig.add({**wide, "type": "user", "message": {"role": "user", "content": [result]}, "toolUseResult": details})


@pytest.mark.ci
def test_between_two_checkpoints_with_small_outputs_few_looks_are_made(rig: Rig) -> None:
    rig.configure(threshold=20_000)
    dice, looks, calls = random.Random(1), 0, 0  # noqa: S311
    while not rig.checkpoints() and calls < 400:
        calls += 1
        _step(rig, dice, calls)
        if not instant.is_idle(rig.client, "PostToolBatch", rig.payload("PostToolBatch")):
            looks += 1
            rig.hook()
    assert rig.checkpoints()[0][0] == "threshold"
    assert looks <= 12
    assert calls > 5 * looks


def _estimated(path: Path) -> list[tuple[int, int]]:
    """Of each event that a look counts: where its record ends, and what it counts."""
    events = open_transcript(path).events()
    own = (event for event in events if event.kind not in ("compaction", "other") and not event.agent)
    return [(event.end.byte, usage._estimate(event.text)) for event in own]


def _codex(path: Path) -> Path:
    call = rollouts.call("shell", {"command": ["bash", "-lc", "make part && echo done"]})
    patch = rollouts.custom("apply_patch", "*** Begin Patch\n*** Add File: a.py\n+tide = 1\n*** End Patch", "call_2")
    asked, told = rollouts.typed("Please carry the tide table over."), rollouts.agent("I read the old table first.")
    ran, done = rollouts.ran("level 7 cm\n" * 40), rollouts.output("Success. Updated a.py", "call_2")
    within = rollouts.completed(
        "CommandExecution", "exec-1", command=["make"], aggregated_output="all is built\n" * 30, exit_code=0
    )
    background = rollouts.output("Process running with session ID 7\nOutput:\nwaiting", "call_3")
    late = rollouts.completed("CommandExecution", "call_3", command=["serve"], aggregated_output="ready\n", exit_code=0)
    begun = rollouts.call("exec_command", {"cmd": "serve"}, "call_3")
    first = [rollouts.meta(), rollouts.turn(), rollouts.injected("<environment_context>x</environment_context>")]
    steps = [*asked, *told, call, ran, rollouts.counted(20_000), patch, done, within, begun, background, late]
    return rollouts.write(path, *first, *steps, *told)


@pytest.mark.ci
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_what_is_counted_is_never_less_than_what_a_look_counts(tmp_path: Path, client: str) -> None:
    path = storekit.SOURCE / "examples" / "session.jsonl"
    if client == "codex":
        path = _codex(tmp_path / f"rollout-1-{rollouts.SESSION}.jsonl")
    ends = [0]
    for line in path.read_bytes().splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    events, data = _estimated(path), path.read_bytes()
    for begin, end in zip(ends[1:-1:7], [*ends[8:-1:7], ends[-1]], strict=True):
        assert growth.grown(data[begin:end], instant._parsed) >= sum(
            size for place, size in events if begin < place <= end
        )


LEFT_TO_A_LOOK: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a summary of a compaction": {"type": "user", "isCompactSummary": True, "message": {"content": "It went on."}},
    "the boundary of one": {"type": "system", "subtype": "compact_boundary"},
    "a to-do list": {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "id": "t", "name": "TodoWrite", "input": {"todos": []}}]},
    },
    "a promise": {"type": "assistant", "message": {"content": "<promise>COMPLETE</promise>"}},
    "a full window, whatever a gateway calls its total": {
        "type": "assistant",
        "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 170_000, "total_tokens": 25}},
    },
}


@pytest.mark.ci
@pytest.mark.parametrize("what", LEFT_TO_A_LOOK)
def test_where_a_session_has_grown_a_look_is_made_only_for_what_may_be_due(rig: Rig, what: str) -> None:
    _beyond(rig)
    rig.add(LEFT_TO_A_LOOK[what])
    assert instant.is_idle(rig.client, "PostToolBatch", rig.payload("PostToolBatch")) == (what == "nothing")


def _beyond(rig: Rig) -> Path:
    """A session that has grown beyond what its hint foretold, though nothing is due; the hint."""
    rig.grow(2_000)
    rig.hook()
    words = session_registry.load(rig.project, rig.session).hint.split()
    while rig.transcript.stat().st_size < int(words[6]) + int(instant.BYTES * int(words[10])):
        rig.grow(4_000)
    return session_registry.path_of(rig.project, rig.session)


def test_what_the_fast_path_has_a_copy_of_is_the_same_in_both_places() -> None:
    assert (instant.VERSION.decode(), instant.WIDTH) == (usage.VERSION, session_registry.HINT_WIDTH)
    assert {name for client in CLIENTS.values() for name in client.hooks} == instant.DOES
