"""How often all of a session is looked at between two checkpoints."""

from __future__ import annotations

import posix
import random
from pathlib import Path
from typing import Any

import pytest

import hookkit
from hookkit import Rig
from ralf_integrations.hooks import instant

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
    assert looks <= 14
    assert calls > 5 * looks
