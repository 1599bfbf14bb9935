"""What reaches a terminal: text and our own colours, whatever the files of a project hold."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import ralf
from ralf_cli.terminal import shown
from storekit import HANGS, command, environment, route_file, write_session


def on_a_terminal(*args: str, cwd: Path) -> str:
    """What `ralf …` writes to a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        command(*args), cwd=cwd, env=environment(cwd), stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # how Linux tells that nobody holds the other end any more
            break
        if not part:
            break
        said += part
    os.close(ours)
    assert done.wait(timeout=HANGS) == 0
    return said.decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\n", "plain\n"),
        ("\x1b[1mbold\x1b[0m", "\x1b[1mbold\x1b[0m"),
        ("\x1b[1;33mfound\x1b[0m", "\x1b[1;33mfound\x1b[0m"),
        ("\x1b[8mhidden\x1b[0m", "hidden\x1b[0m"),
        ("\x1b[1;08mhidden", "hidden"),
        ("\x1b[2J\x1b]0;title\x07\u202eevil", "evil"),
        ("\x1b]0;\x1b[1mtitle\x07", "0;\x1b[1mtitle"),
    ],
)
def test_colours_pass_and_nothing_else_that_moves_hides_or_turns_text(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_escape_sequences_in_a_file_of_somebody_else_do_not_reach_the_terminal(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 500)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path)
    path = route_file(tmp_path, "tide")
    path.write_text(path.read_text().replace("**Period", "- A \x1b]0;title\x07note\n**Period"))
    said = on_a_terminal("context", "show", "tide", cwd=tmp_path)
    assert "A note" in said
    assert "\x1b]" not in said


def test_a_command_works_with_its_output_closed(tmp_path: Path) -> None:
    ralf.record_decision("tide", "Use SQLite", root=tmp_path)
    close = "import os, sys; os.close(1); os.execv(sys.argv[1], sys.argv[1:])"
    ran = subprocess.run(
        [sys.executable, "-c", close, *command("context", "list")],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
