"""What reaches a terminal: text and our own colours, whatever the files of a project hold."""

from __future__ import annotations

import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import kit.command
import ralf
from ralf_cli.terminal import shown
from storekit import command, environment, records_of, write_session

pytestmark = pytest.mark.ci


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


def test_no_file_of_a_command_takes_the_place_of_a_stream_that_is_closed(tmp_path: Path) -> None:
    """What others write their messages into would be a journal."""
    code = (
        "import os, sys; from ralf_cli import main; os.closerange(0, 3); main.instant.open_streams();"
        "file = os.open('number', os.O_CREAT | os.O_WRONLY); os.write(file, str(file).encode())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(tmp_path), check=False)
    assert (done.returncode, int((tmp_path / "number").read_text()) > 2) == (0, True)


def test_what_a_stream_cannot_encode_is_escaped(tmp_path: Path) -> None:
    ralf.record_decision("tide", "Use → ☃", root=tmp_path)
    done = subprocess.run(
        command("show", "tide"),
        cwd=tmp_path,
        env={**environment(tmp_path), "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Use \\u2192 \\u2603" in done.stdout


def test_output_that_is_full_is_an_error_of_ours_and_no_reason_to_do_it_again(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        words = ("decide", "tide", "Use SQLite")
        done = kit.command.run(*words, cwd=tmp_path, env=environment(tmp_path), stdout=full)
    done.complains(1, "standard output")
    assert len(records_of(tmp_path, "tide")) == 1


@pytest.mark.parametrize(
    ("command_line", "word", "status"),
    [
        ("decide tide สวัสดี", "the", 0),  # tiktoken's own code would end the process, where it got no more memory
        ("checkpoint tide --transcript session.jsonl", "the", 0),
        ("checkpoint tide --transcript session.jsonl", "สวัสดี", 1),  # only tiktoken counts it
    ],
)
def test_too_little_memory_for_tiktoken_is_an_error_of_ours(
    tmp_path: Path, command_line: str, word: str, status: int
) -> None:
    ralf.record_decision("tide", "Use SQLite", root=tmp_path)
    session = tmp_path / "session.jsonl"
    write_session(session, 500)
    session.write_text(session.read_text("utf-8").replace("the", word), encoding="utf-8")
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (90 << 20, 90 << 20))
    done = subprocess.run(
        command(*command_line.split()),
        cwd=tmp_path,
        env=environment(tmp_path),
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.startswith("error: ralf: ")) == (status, bool(status))
