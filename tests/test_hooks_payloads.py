"""What clients really send, and what nobody should: a hook ends with status 0, and says JSON that the client takes."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

import hookkit
import ralf
import storekit
from clocks import within
from hookkit import CAPTURED, Rig
from ralf import routing
from ralf.storage import locks
from ralf_integrations.hooks import entry
from ralf_integrations.hooks.messages import parse


# What the plugin makes of the calls of opencode 1.18.33, and what no captured payload has: see `tests/promises`.
@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = hookkit.rig(tmp_path / "project")
    made.grow(1_000)
    return made


def test_what_gemini_has_put_into_a_prompt_is_not_what_was_typed() -> None:
    sent = json.dumps({"session_id": "s", "prompt": "<hook_context>a &lt; b</hook_context>\n\ngo on"}).encode()
    found = parse("BeforeAgent", sent, "gemini")
    assert found is not None and found.prompt == "go on"


def _captured() -> list[Path]:
    return sorted(path for path in CAPTURED.glob("*/*/*.json") if path.name[3:-5] not in _UNASKED)


_UNASKED = ("PreCompress", "BeforeTool")  # of Gemini CLI: no hook is installed for them


WANTED = {"claude": "claude-code", "codex": "codex", "gemini": "gemini"}


@pytest.mark.skipif(not _captured(), reason=f"the kit's payloads are not at {CAPTURED}")
def test_the_client_is_told_by_what_it_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CLAUDECODE", "CODEX_HOME", "GEMINI_PROJECT_DIR", "OPENCODE_PID"):
        monkeypatch.delenv(variable, raising=False)
    for path in _captured():
        sent = json.loads(path.read_text())["stdin"]
        found = entry.client_of("", sent["hook_event_name"], json.dumps(sent).encode())
        assert found.name == WANTED[path.parts[-3]], path


def test_where_nothing_can_be_written_what_is_kept_is_handed_over(rig: Rig) -> None:
    ralf.record_decision("tide", "Use the tide table of the harbour", root=rig.root)
    folder = rig.project.folder / "locks"
    shutil.rmtree(folder)
    folder.touch()  # as in a project that is mounted for reading only, also for root
    rig.environment["BB5_ROUTE"] = "tide"
    assert "Use the tide table of the harbour" in rig.hook("SessionStart", source="startup").context


@pytest.mark.ci
@pytest.mark.parametrize("event", ["SessionStart", "PreCompact"])
def test_no_hook_waits_a_second_longer_beside_one_of_its_session_that_stands_still(rig: Rig, event: str) -> None:
    began = time.monotonic()
    rig.hook(event)
    alone = time.monotonic() - began
    (lock,) = (rig.project.folder / "locks" / "sessions").glob("*.lock")
    with locks.locked(lock, "the test"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig, "settle", lambda: None)  # it would wait for the test
        within(alone + 2, lambda: rig.hook(event), time.monotonic)  # and the machine's own time


@pytest.mark.ci
def test_a_payload_of_many_megabytes_is_read_to_its_end(rig: Rig) -> None:
    said = rig.run("PostToolBatch", tool_calls=[{"tool_name": "Bash", "tool_response": "x" * 30_000_000}])
    assert said.out == ""


@pytest.mark.ci
@pytest.mark.parametrize("elsewhere", ["notes.txt", "../private.jsonl", "linked"])
def test_a_transcript_outside_the_clients_folders_is_left_alone_and_reported_once(rig: Rig, elsewhere: str) -> None:
    private = rig.root / elsewhere
    if elsewhere == "linked":
        target = rig.root / "private.txt"
        target.write_text("User: the words of somebody else\n" * 200)
        private = rig.transcript
        private.unlink(missing_ok=True)
        private.symlink_to(target)
    else:
        storekit.write_session(private, 3_000, rig.session)
    rig.transcript = private
    said = [rig.run(event, source="startup", prompt="Go on", reason="other") for event in ("SessionStart", "Stop")]
    said += [rig.run(event, reason="other") for event in ("PreCompact", "PostToolBatch", "SessionEnd")]
    notices = [one.notice for one in said if one.notice]
    assert len(notices) == 1 and "not read" in notices[0]
    assert not any(one.context for one in said) and rig.checkpoints() == []
    assert routing.names_of(rig.project) == []


def test_the_notice_for_the_person_is_one_short_line(rig: Rig) -> None:
    from ralf_integrations.hooks import messages

    payload = rig.look("SessionStart").payload
    said = json.loads(messages.written(messages.Answer(notice="a\n\x1b[31mb\u202e" + " word" * 900), payload))
    assert "\n" not in said["systemMessage"] and "\x1b" not in said["systemMessage"]
    assert len(said["systemMessage"]) <= 600
