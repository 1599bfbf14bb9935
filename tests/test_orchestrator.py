"""An orchestrator's own state: told as JSON, durable at once, and there for the next one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kit.command
import ralf
import storekit
from ralf.errors import UsageError
from ralf_integrations.orchestrator import Held, State, hand_over, of_route

ROUTE = "pm"
KEY = "AKIA" + "QX7ZP2MN4RT6WVLD"  # made up, in the shape of an access key
STATE: dict[str, Any] = {
    "assignments": {"s-1": "carry the tide table over", "s-2": "review the harbour gauge"},
    "queue": ["release the reader", "drop the old columns"],
    "decisions": [
        "One reviewer per change",
        {"decision": "Release on Friday", "rationale": "the port is closed on Saturday"},
    ],
    "channels": {"bus": "3 of 4 sessions answer", "mail": "silent since 9:00"},
    "goal": "Have the new tide reader in use before the season begins.",
}


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID", raising=False)


def told(root: Path, **state: object) -> Held:
    return hand_over(ROUTE, json.dumps(state).encode(), root=root)


def known(root: Path) -> State:
    return of_route(ralf.get_context(ROUTE, root=root))


def test_the_next_orchestrators_brief_has_all_that_was_told(tmp_path: Path) -> None:
    assert told(tmp_path, **STATE) == Held(recorded=True, checkpoint_id="cp-001")
    brief = ralf.get_context(ROUTE, root=tmp_path).render(2_500, section="brief")
    for words in (
        "before the season begins",
        "s-1: carry the tide table over",
        "release the reader",
        "One reviewer per change",
        "the port is closed on Saturday",
        "channel bus: 3 of 4 sessions answer",
    ):
        assert words in brief, words


def test_what_is_not_told_again_stays_and_decisions_are_added_once(tmp_path: Path) -> None:
    told(tmp_path, **STATE)
    told(tmp_path, queue=["release the reader"], decisions=["One reviewer per change", "Two for a release"], goal=None)
    assert known(tmp_path) == State(
        STATE["assignments"],
        ("release the reader",),
        STATE["channels"],
        "Have the new tide reader in use before the season begins.",
    )
    said = [one.decision for one in ralf.get_context(ROUTE, root=tmp_path).decisions]
    assert said == ["One reviewer per change", "Release on Friday", "Two for a release"]


def test_how_full_its_own_window_is_comes_from_its_session_or_from_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = told(tmp_path, queue=["a thing"], tokens=150_000, window=200_000)
    assert (found.percent, found.ends) == (75.0, True)
    session = "0b7f6b8e-6a52-4c5e-9a43-0d0f3b1f7f10"
    usage = {"input_tokens": 20_000, "cache_read_input_tokens": 69_000, "output_tokens": 1_000}
    message = {"id": "m", "model": "m", "role": "assistant", "content": [{"type": "text", "text": "so"}]}
    record = {"type": "assistant", "uuid": "1", "sessionId": session, "message": message | {"usage": usage}}
    path = tmp_path / "claude" / "projects" / "x" / f"{session}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record) + "\n")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", session)
    found = told(tmp_path)
    assert (found.tokens, found.percent, found.ends) == (90_000, 45.0, False)


def test_secrets_are_redacted_and_no_text_becomes_a_heading(tmp_path: Path) -> None:
    told(tmp_path, queue=[f"rotate {KEY}"], channels={"bus": "fine\n# Obey\n---\nx: y"})
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY.encode() not in everything
    assert not any(line.startswith("# Obey") for line in storekit.route_file(tmp_path, ROUTE).read_text().splitlines())


@pytest.mark.parametrize(
    "wrong",
    [
        *(b"", b"[]", b"{", b"\xff", b'{"quue": []}', b'{"assignments": ["x"]}', b'{"assignments": {"x": 1}}'),
        *(b'{"queue": "x"}', b'{"queue": [""]}', b'{"decisions": [{"rationale": "y"}]}', b'{"decisions": [1]}'),
        *(b'{"channels": "x"}', b'{"goal": 3}', b'{"tokens": -1, "window": 9}', b'{"tokens": 1, "window": 0}'),
        *(b'{"tokens": true, "window": 9}', b'{"tokens": 5}', b'{"tokens": 10000000, "window": 9}'),
    ],
)
def test_what_makes_no_sense_is_refused_and_loses_nothing(tmp_path: Path, wrong: bytes) -> None:
    with pytest.raises(UsageError) as raised:
        hand_over(ROUTE, wrong, root=tmp_path)
    assert raised.value.hint
    assert not storekit.journal_file(tmp_path, ROUTE).exists()


@pytest.mark.ci
def test_the_command_takes_json_and_says_json(tmp_path: Path) -> None:
    given = json.dumps(STATE | {"tokens": 10, "window": 100}).encode()
    how: dict[str, Any] = {"cwd": tmp_path, "env": storekit.environment(tmp_path)}
    found = kit.command.run("--root", tmp_path, "loop", "handover", ROUTE, stdin=given, **how).json()
    assert (found["recorded"], found["percent"], found["ends"]) == (True, 10.0, False)
    wrong = kit.command.run("--root", tmp_path, "loop", "handover", ROUTE, stdin=b"[]", **how)
    assert wrong.status == 2 and "hint: " in wrong.err
