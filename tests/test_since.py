"""At a read it is told how much work no checkpoint covers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import ralf
from storekit import grow, write_session


@pytest.mark.ci
def test_the_work_after_the_last_checkpoint_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "client"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    root = tmp_path / "project"
    root.mkdir()
    folder = tmp_path / "client" / "projects" / "".join(c if c.isascii() and c.isalnum() else "-" for c in str(root))
    folder.mkdir(parents=True)
    path = folder / "s-7.jsonl"
    turn = write_session(path, 3_000, "s-7")
    ralf.checkpoint("tide", path, root=root)
    assert ralf.get_context("tide", root=root).since == 0
    grow(path, 2_000, turn, "s-7")
    write_session(folder / "s-8.jsonl", 500, "s-8")  # the session that reads this: not known to the route
    context = ralf.get_context("tide", root=root)
    assert context.since == pytest.approx(2_000, rel=0.3)
    for text in (context.render(), context.render(500)):
        assert f"{context.since:,} " in text
    assert "12,000 " in replace(context, since=12_000).render(500)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/dev/null")
    assert ralf.get_context("tide", root=root).since == 0
