"""The example transcript is as README describes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ralf

SESSION = Path(__file__).parents[1] / "examples" / "session.jsonl"


@pytest.mark.ci
def test_the_session_holds_more_than_120_000_tokens_and_less_than_150_000(records: list[dict[str, Any]]) -> None:
    said = [text for record in records if record["type"] in ("user", "assistant") for text in texts(record)]
    assert 120_000 < sum(map(tokens.count, said)) < 150_000


def test_the_session_ends_in_the_middle_of_step_seven_of_ten(records: list[dict[str, Any]]) -> None:
    blocks = [b for r in records if r["type"] == "assistant" for b in r["message"]["content"]]
    states = [todo["status"] for todo in [b for b in blocks if b.get("name") == "TodoWrite"][-1]["input"]["todos"]]
    assert states == ["completed"] * 6 + ["in_progress"] + ["pending"] * 3


@pytest.mark.ci
def test_the_session_names_no_machine_person_or_secret() -> None:
    text = SESSION.read_text(encoding="utf-8")
    assert not re.search(r"[\w.]+@[\w-]+\.(com|org|net|io|de)\b|/(?:w[o]rk|r[o]ot|Users)/", text)
    assert not re.search(r"sk-\w{8}|ghp_|AKIA|PRIVATE KEY", text)
    assert set(re.findall(r"/home/\w+/\w+", text)) == {"/home/dev/tidepool"}
    assert len(text.encode()) < 900_000
