"""Older checkpoints fold out of a route file, and what was taken back by rewinding leaves its section."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
from kit.claude_log import ClaudeLog
from ralf.model import Body, RouteContext, Section
from ralf.route import cap

HEAD = "**Period:** 2026-03-09T08:12:04Z → 2026-03-09T08:30:23Z\n**Tokens:** 49,090\n"
LONG = " ".join(f"The gauge of quay {n} was {n} cm too high." for n in range(40))
TURN = f'- 2026-03-09 08:12 "Move the tide table.\n  Heights stay in centimetres. {LONG}"\n  · I read it first.\n'
TEXT = f'{HEAD}\n{TURN}  did: edited a.py; `pytest`: ok\n  → {LONG}\n- 2026-03-09 08:20 (queued) "Go on."\n- by hand'


@pytest.mark.ci
def test_the_newest_checkpoint_never_folds_and_the_oldest_folds_first() -> None:
    sections = tuple(Section(n, "t", TEXT.replace("tide", f"tide {n}")) for n in range(90, 0, -1))
    found = cap.capped(RouteContext(body=Body(sections=sections)))
    assert 1 < len(found.body.sections) < len(sections)
    assert found.body.sections == sections[: len(found.body.sections)]
    assert found.folded.section_count == len(sections) - len(found.body.sections)


@pytest.mark.ci
def test_a_rewinding_reaches_behind_a_checkpoint(tmp_path: Path) -> None:
    log = ClaudeLog(tmp_path / "session.jsonl", "5e1f0c52-7d0b", tmp_path)
    log.says("Move the tide table.")
    log.answers("It is moved.")
    log.says("Keep the levels in Redis.")
    log.calls("Write", {"file_path": f"{tmp_path}/redis_store.py", "content": "x"}, "File created successfully")
    ralf.checkpoint("harbour", log.log, root=tmp_path)
    assert "redis_store.py" in (text := (tmp_path / ".autonomous/context/routes/harbour.md").read_text()), text
    log.says("Serve the levels as JSON.", parentUuid=f"{log.id[:8]}-1")
    log.answers("Served.")
    ralf.checkpoint("harbour", log.log, root=tmp_path)
    content = (tmp_path / ".autonomous/context/routes/harbour.md").read_text()
    assert "redis_store.py" not in content
    assert [
        line for line in content.splitlines() if "Keep the levels in Redis" in line and "taken back" not in line
    ] == []
