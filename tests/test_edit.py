"""A route file in an editor: what it changed is taken in at once, and nothing is lost whatever the editor does."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
import storekit
from ralf import project

ROUTE = "tide"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    ralf.record_decision(ROUTE, "Use SQLite", rationale="one file", root=tmp_path)
    ralf.record_decision(ROUTE, "Never push to main", root=tmp_path)
    return tmp_path


def edited(root: Path, editor: str, answer: str = "") -> str:
    """What `ralf edit` prints on a terminal."""
    _, printed = storekit.on_a_terminal(root, "edit", ROUTE, answer=answer, TERM="xterm", VISUAL="", EDITOR=editor)
    return printed


@pytest.mark.ci
def test_a_file_that_cannot_be_read_after_an_edit_is_left_and_may_be_edited_again(root: Path) -> None:
    mend = root / "editor.sh"
    mend.write_text(
        '#!/bin/sh\nif grep -q "<<<<<<<" "$1"; then sed -i "2s/.*/context_checkpoint:/; s/one file/no server/" "$1"\n'
        'else sed -i "2s/.*/<<<<<<< HEAD/" "$1"; fi\n'
    )
    mend.chmod(0o755)
    assert f"ralf edit {ROUTE}" in edited(root, str(mend), "")
    assert "no server" in edited(root, str(mend), "")
    assert ralf.get_context(ROUTE, root=root).decisions[0].rationale == "no server"


@pytest.mark.parametrize("editor", ["", "vim -u NONE", "sh -c 'sed -i s/one.file/no.server/ $0'"])
def test_where_no_person_is_at_a_terminal_no_editor_is_started_and_the_file_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], editor: str
) -> None:
    monkeypatch.setenv("VISUAL", "")
    monkeypatch.setenv("EDITOR", editor)
    cli = storekit.Cli(root, monkeypatch, capfd)
    cli.is_at_terminal = False
    cli("edit", ROUTE).complains(2, ROUTE, str(project.find(root).route_file(ROUTE)))
    assert ralf.get_context(ROUTE, root=root).decisions[0].rationale == "one file"
