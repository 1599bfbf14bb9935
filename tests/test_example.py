"""The example transcript is as README describes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ralf

SESSION = Path(__file__).parents[1] / "examples" / "session.jsonl"


@pytest.mark.ci
def test_the_session_is_132_000_tokens_and_ends_in_step_seven_of_ten(tmp_path: Path) -> None:
    ralf.checkpoint("tide", SESSION, root=tmp_path)
    context = ralf.get_context("tide", root=tmp_path)
    assert context.checkpoint_count == 3
    assert 131_500 < context.context_checkpoint.total_tokens_consumed < 132_500
    assert (context.active_work.plan_step, context.active_work.total_steps) == (7, 10)
    assert context.active_work.work_status == "in_progress"


def test_the_session_names_no_machine_person_or_secret() -> None:
    text = SESSION.read_text(encoding="utf-8")
    assert not re.search(r"[\w.]+@[\w-]+\.(com|org|net|io|de)\b|/(?:w[o]rk|r[o]ot|Users)/", text)
    assert not re.search(r"sk-\w{8}|ghp_|AKIA|PRIVATE KEY", text)
    assert set(re.findall(r"/home/\w+/\w+", text)) == {"/home/dev/tidepool"}
    assert len(text.encode()) < 900_000
