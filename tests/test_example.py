"""The example transcript is what its script makes, and is large enough for three checkpoints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ralf.text import tokens

EXAMPLES = Path(__file__).parents[1] / "examples"
SESSION = EXAMPLES / "session.jsonl"


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SESSION.read_text(encoding="utf-8").splitlines()]


def texts(record: dict[str, Any]) -> list[str]:
    """The event texts of a record, as DESIGN counts them: messages, tool input, tool output."""
    content = record.get("message", {}).get("content", [])
    if record["isSidechain"]:
        return []
    if isinstance(content, str):
        return [content]
    found = []
    for block in content:
        if block["type"] == "tool_use":
            found.append("\n".join(str(value) for value in block["input"].values()))
        elif block["type"] == "tool_result":
            found.append(block["content"] if isinstance(block["content"], str) else block["content"][0]["text"])
        else:
            found.append(block.get("text") or block["thinking"])
    return found


@pytest.mark.ci
def test_the_committed_session_equals_what_the_script_makes() -> None:
    made = subprocess.run([sys.executable, EXAMPLES / "make_session.py", "--check"], capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")


@pytest.mark.ci
def test_the_session_holds_more_than_120_000_tokens_and_less_than_150_000(records: list[dict[str, Any]]) -> None:
    said = [text for record in records if record["type"] in ("user", "assistant") for text in texts(record)]
    assert 120_000 < sum(map(tokens.count, said)) < 150_000


def test_the_session_ends_in_the_middle_of_step_seven_of_ten(records: list[dict[str, Any]]) -> None:
    blocks = [b for r in records if r["type"] == "assistant" for b in r["message"]["content"]]
    states = [todo["status"] for todo in [b for b in blocks if b.get("name") == "TodoWrite"][-1]["input"]["todos"]]
    assert states == ["completed"] * 6 + ["in_progress"] + ["pending"] * 3


def test_the_session_never_fills_60_percent_of_its_window(records: list[dict[str, Any]]) -> None:
    usages = [r["message"]["usage"] for r in records if r["type"] == "assistant" and not r["isSidechain"]]
    assert max(sum(usage.values()) for usage in usages) < 120_000


def test_each_result_follows_its_call_and_times_never_run_back(records: list[dict[str, Any]]) -> None:
    called: set[str] = set()
    for record in records:
        for block in record.get("message", {}).get("content", []):
            if isinstance(block, dict) and block["type"] == "tool_use":
                called.add(block["id"])
            elif isinstance(block, dict) and block["type"] == "tool_result":
                assert block["tool_use_id"] in called
    times = [record["timestamp"] for record in records if "timestamp" in record]
    assert times == sorted(times)
    uuids = [record["uuid"] for record in records if "uuid" in record]
    assert len(set(uuids)) == len(uuids)


@pytest.mark.ci
def test_the_session_names_no_machine_person_or_secret() -> None:
    text = SESSION.read_text(encoding="utf-8")
    assert not re.search(r"[\w.]+@[\w-]+\.(com|org|net|io|de)\b|/(?:w[o]rk|r[o]ot|Users)/", text)
    assert not re.search(r"sk-\w{8}|ghp_|AKIA|PRIVATE KEY", text)
    assert set(re.findall(r"/home/\w+/\w+", text)) == {"/home/dev/tidepool"}
    assert len(text.encode()) < 900_000
