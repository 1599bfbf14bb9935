"""Older checkpoints take less of a route file, stage by stage, and what was taken back by rewinding leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
from kit.claude_log import ClaudeLog
from ralf.model import Body, RouteContext, Section
from ralf.route import cap
from ralf.route.sections import STAGES, without

HEAD = "**Period:** 2026-03-09T08:12:04Z → 2026-03-09T08:30:23Z\n**Tokens:** 49,090\n"
LONG = " ".join(f"The gauge of quay {n} was {n} cm too high." for n in range(40))
TURN = f'- 2026-03-09 08:12 "Move the tide table.\n  Heights stay in centimetres. {LONG}"\n  · I read it first.\n'
TEXT = f'{HEAD}\n{TURN}  did: edited a.py; `pytest`: ok\n  → {LONG}\n- 2026-03-09 08:20 (queued) "Go on."\n- by hand'


def staged(count: int) -> str:
    text = TEXT
    for stage in STAGES[:count]:
        text = stage(text)
    return text


def test_an_older_section_loses_closing_words_first_and_the_persons_words_last() -> None:
    whole, *stages = (staged(count) for count in range(len(STAGES) + 1))
    assert whole == TEXT
    assert [len(text) for text in stages] == sorted({len(text) for text in stages}, reverse=True)
    assert "  → " in stages[0] and "I read it first." not in stages[0] and len(stages[0]) < len(TEXT) - 1_000
    assert "  did: " in stages[0] and "  did: " not in stages[1] and "  → " in stages[1]
    assert "  → " not in stages[2] and LONG in stages[2]
    assert "Move the tide table." in stages[3] and LONG not in stages[3] and '"Go on."\n- by hand' in stages[3]
    assert stages[4] == f"{HEAD}\n- 2 messages: search finds them"


@pytest.mark.parametrize("stage", range(len(STAGES)))
def test_a_section_of_another_form_stays_as_it_was_written(stage: int) -> None:
    text = "Started implementing JWT authentication middleware...\n\n- read a.py\n  twice"
    assert STAGES[stage](text) == text


@pytest.mark.ci
def test_the_newest_checkpoint_never_folds_and_the_oldest_folds_first() -> None:
    sections = tuple(Section(n, "t", TEXT.replace("tide", f"tide {n}")) for n in range(90, 0, -1))
    found = cap.capped(RouteContext(body=Body(sections=sections))).body.sections
    sizes = [len(section.text) for section in found]
    assert found[0] == sections[0] and len(found) == len(sections)
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[0]


def test_a_message_that_was_taken_back_leaves_its_section_with_what_was_done_for_it() -> None:
    (found,) = without((Section(1, "t", TEXT),), ['- 2026-03-09 08:12 "Move the tide'])
    assert found.text == f'{HEAD}\n- 2026-03-09 08:20 (queued) "Go on."\n- by hand'
    assert without((found,), ["- 2026-03-09 08:12"]) == (found,)


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
