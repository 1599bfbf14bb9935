"""What a transcript has grown by: a hook counts it without a look, never too little, and leaves the rest to a look."""

from __future__ import annotations

import json
import os
import posix
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

import hookkit
import rollouts
import storekit
from hookkit import Rig
from ralf.config import Config
from ralf.route.offsets import IngestOffset
from ralf.transcripts.reader import open_transcript
from ralf_integrations.client import CLAUDE_CODE, CLIENTS, CODEX
from ralf_integrations.hooks import growth, instant, usage

_WORDS = "the tide table of harbour reader column station level batch window 404 src/app/main.py None returned".split()


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    for variable in (b"CLAUDE_PROJECT_DIR", b"RALF_PROJECT_DIR"):
        monkeypatch.delitem(posix.environ, variable, raising=False)  # type: ignore[arg-type]
    return hookkit.rig(tmp_path / "project")


def _grown(path: Path, begin: int, end: int, what: str = "claude-code") -> growth.Grown:
    return growth.grown(str(path), begin, end, what=what, window=rollouts.WINDOW, parse=instant._parsed)


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


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_what_is_counted_is_never_less_than_what_a_look_counts(tmp_path: Path, client: str) -> None:
    path = storekit.SOURCE / "examples" / "session.jsonl"
    if client == "codex":
        path = _codex(tmp_path / f"rollout-1-{rollouts.SESSION}.jsonl")
    ends = [0]
    for line in path.read_bytes().splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    events, told = _estimated(path), 0
    for begin, end in zip(ends[1:-1:7], [*ends[8:-1:7], ends[-1]], strict=True):
        try:
            found = _grown(path, begin, end, client)
        except growth.Unsure:
            continue
        told += 1
        assert found.place == end
        assert found.tokens >= sum(size for place, size in events if begin < place <= end)
    assert told > len(ends) // 14


def test_the_estimate_counts_every_word_sign_and_unbroken_run() -> None:
    texts = {"": 0, "tide": 1, "Tide table": 2, "level = 7": 3, "表格": 2, "HTTPServer": 2, "1234567": 3, "a\n\n\nb": 3}
    assert {text: growth.estimate(text) for text in texts} == texts
    assert growth.estimate("A1b2/" * 200) >= 1_000 / 1.4
    assert growth.estimate("\ud800 half") == 2


LEFT_TO_A_LOOK: dict[str, dict[str, Any]] = {
    "a summary of a compaction": {"type": "user", "isCompactSummary": True, "message": {"content": "It went on."}},
    "the boundary of one": {"type": "system", "subtype": "compact_boundary"},
    "a to-do list": {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "id": "t", "name": "TodoWrite", "input": {"todos": []}}]},
    },
    "a promise": {"type": "assistant", "message": {"content": "<promise>COMPLETE</promise>"}},
    "a record without a type": {"message": {"role": "user", "content": "hi"}},
}


@pytest.mark.parametrize("what", LEFT_TO_A_LOOK)
def test_a_look_is_made_for(tmp_path: Path, what: str) -> None:
    path = tmp_path / "s.jsonl"
    said = {"type": "user", "message": {"role": "user", "content": "Please carry it over."}}
    lines = [json.dumps(record).encode() + b"\n" for record in (said, said, LEFT_TO_A_LOOK[what])]
    path.write_bytes(b"".join(lines))
    begin = len(lines[0])
    assert _grown(path, begin, 2 * begin).texts == 1
    with pytest.raises(growth.Unsure):
        _grown(path, begin, path.stat().st_size)


@pytest.mark.parametrize("cut", ["begin", "end"])
def test_half_a_line_is_left_to_a_look(tmp_path: Path, cut: str) -> None:
    line = json.dumps({"type": "user", "message": {"role": "user", "content": "Please."}}).encode() + b"\n"
    path = tmp_path / "s.jsonl"
    path.write_bytes(2 * line)
    with pytest.raises(growth.Unsure):
        _grown(path, len(line) - (cut == "begin"), 2 * len(line) - (cut == "end"))


def _beyond(rig: Rig) -> Path:
    """A session that has grown beyond what its hint foretold, though nothing is due; the hint."""
    rig.grow(2_000)
    rig.hook()
    hint = usage._hint_path(rig.project, rig.session)
    while rig.transcript.stat().st_size < int(hint.read_bytes().split()[7]):
        rig.grow(4_000)
    return hint


def test_a_hint_is_written_forward_and_foretells_from_there(rig: Rig) -> None:
    hint = _beyond(rig)
    before = hint.read_bytes().split()
    assert instant.is_idle(rig.client, "PostToolBatch", rig.payload("PostToolBatch"))
    after = hint.read_bytes().split()
    size = rig.transcript.stat().st_size
    assert int(before[6]) < int(after[6]) == size < int(after[7])
    assert 0 < int(after[12]) < int(before[12])
    assert [*before[:6], *before[8:12], *before[13:]] == [*after[:6], *after[8:12], *after[13:]]
    rig.grow(60_000)
    assert not instant.is_idle(rig.client, "PostToolBatch", rig.payload("PostToolBatch"))


def test_a_hint_holds_up_to_a_record_that_waits_for_the_next_one(tmp_path: Path) -> None:
    """Codex's reader cannot tell before whether an event tells of the message, too."""
    log = tmp_path / f"rollout-1-{rollouts.SESSION}.jsonl"
    first = [rollouts.meta(), rollouts.turn(), *rollouts.typed("Please do it")]
    rollouts.write(log, *first, rollouts.message("assistant", "the tide table of the harbour " * 200))
    source = open_transcript(log)
    looked = usage.look(source, IngestOffset(rollouts.SESSION), Config(), CODEX, scale=1.0)
    with log.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in (rollouts.call("shell", {"command": ["ls"]}),))
    later = usage.look(open_transcript(log), IngestOffset(rollouts.SESSION), Config(), CODEX, scale=1.0)
    grown = _grown(log, looked.size, log.stat().st_size, "codex")
    assert looked.tokens + grown.tokens >= later.tokens > looked.tokens + 1_000


def test_nothing_is_written_forward_where_edits_bring_a_checkpoint_nearer(rig: Rig) -> None:
    rig.configure(threshold="adaptive")
    dice = random.Random(1)  # noqa: S311
    for number in range(40):
        _step(rig, dice, number)
    rig.hook()
    hint = next((rig.project.cache / "hooks").glob("*.next"))
    assert hint.read_bytes().split(b" ")[12] == b"0"


def test_claude_s_figures_are_added_up_whatever_a_gateway_calls_their_total(tmp_path: Path) -> None:
    told = {"input_tokens": 5, "cache_read_input_tokens": 170_000, "output_tokens": 20, "total_tokens": 25}
    record = {"type": "assistant", "message": {"role": "assistant", "content": [], "usage": told}}
    log = tmp_path / "log.jsonl"
    log.write_text("\n" + json.dumps(record) + "\n", encoding="utf-8")
    assert _grown(log, 1, log.stat().st_size).fills == [170_025]


def test_a_hint_with_a_second_name_is_not_written(rig: Rig) -> None:
    hint = _beyond(rig)
    before = hint.read_bytes()
    os.link(hint, rig.root.parent / "outside")
    assert instant.is_idle(rig.client, "PostToolBatch", rig.payload("PostToolBatch"))
    assert hint.read_bytes() == before


def test_a_mark_is_seen_behind_a_later_figure_of_a_sub_agent_s(rig: Rig) -> None:
    _beyond(rig)
    rig.answers(126_000)
    rig.answers(20_000, isSidechain=True)
    assert not instant.is_idle(rig.client, "PostToolBatch", rig.payload("PostToolBatch"))


def test_counting_loads_next_to_nothing_either(rig: Rig) -> None:
    hint = _beyond(rig)
    before = hint.read_bytes()
    command = CLAUDE_CODE.command("PostToolBatch", shared=False)
    command[1:1] = ["-X", "importtime"]
    environment = storekit.environment(rig.root.parent)
    payload = rig.payload("PostToolBatch")
    done = subprocess.run(command, input=payload, capture_output=True, check=True, env=environment)
    loaded = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines() if b"import time" in line}
    assert hint.read_bytes() != before
    assert {"instant", "growth"} <= loaded
    heavy = "os re json typing pathlib dataclasses collections functools enum site ralf ralf_integrations".split()
    assert loaded.isdisjoint(heavy)


def test_what_the_fast_path_has_a_copy_of_is_the_same_in_both_places() -> None:
    assert instant._COMPLETING == growth.COMPLETING
    assert (instant.HINTS, instant.HINT, instant.VERSION) == (usage.HINTS, usage.HINT, usage.VERSION)
    assert {name for client in CLIENTS.values() for name in client.hooks} == instant.DOES


def test_a_look_loads_no_more_than_it_needs(rig: Rig) -> None:
    rig.grow(2_000)
    command = CLAUDE_CODE.command("PostToolBatch", shared=False)
    command[1:1] = ["-X", "importtime"]
    environment = storekit.environment(rig.root.parent)
    done = subprocess.run(command, input=rig.payload("PostToolBatch"), capture_output=True, check=True, env=environment)
    loaded = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines() if b"import time" in line}
    assert "ralf_integrations.hooks.checkpoints" in loaded
    assert usage._hint_path(rig.project, rig.session).exists()
    needless = (
        "yaml tiktoken secrets shutil ctypes difflib subprocess ralf.model ralf.text.tokens ralf.transcripts.codex"
    )
    assert loaded.isdisjoint([*needless.split(), "ralf_integrations.hooks.prompt_intent", "ralf.maintenance.ownership"])
