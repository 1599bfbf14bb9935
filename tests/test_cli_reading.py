"""Reading at a terminal and in a pipe: times, ages, the pager, colours, completion, the route that is meant."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import ralf
import storekit
from ralf_cli import times
from storekit import on_a_terminal

pytestmark = pytest.mark.ci

NOW = datetime(2026, 11, 27, 12, 0, 0, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2d", "2026-11-25T10:00:00Z"),
        ("12h", "2026-11-26T22:00:00Z"),
        ("30m ago", "2026-11-27T09:30:00Z"),
        ("1w", "2026-11-20T10:00:00Z"),
        ("today", "2026-11-26T22:00:00Z"),
        ("Yesterday", "2026-11-25T22:00:00Z"),
        ("2026-11-20T14:00:00Z", "2026-11-20T14:00:00Z"),
        ("2026-11-20T14:00+05:00", "2026-11-20T09:00:00Z"),
        ("soon", None),
        ("", None),
        ("2 years", None),
    ],
)
def test_an_age_or_a_date_is_a_time_in_utc(text: str, meant: str | None) -> None:
    assert times.parse(text, NOW) == meant


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(5, "just now"), (90, "1 min ago"), (7_300, "2 h ago"), (3 * 86_400, "3 d ago")],
)
def test_a_time_is_told_as_how_long_ago_it_was_on_a_terminal_alone(seconds: int, shown: str) -> None:
    now = time.time()
    moment = datetime.fromtimestamp(now - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert times.shown(moment, now + 1, terminal=True) == shown
    assert times.shown(moment, now, terminal=False) == moment
    assert times.shown("", terminal=True) == "-"
    assert times.shown("2020-01-01T10:00:00Z", now, terminal=True).startswith("2020-01-01 ")
    assert times.shown("no time", now, terminal=True) == "no time"


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose route has forty decisions; `made` is a copy of it."""
    root = tmp_path_factory.mktemp("forty")
    for number in range(40):
        ralf.record_decision("tide", f"Decision number {number}", rationale="it has to be", root=root)
    return root


@pytest.fixture
def made(forty: Path, tmp_path: Path) -> Path:
    return storekit.copied(forty, tmp_path, dirs_exist_ok=True)


def at_a_screen(root: Path, *arguments: str, rows: int = 20, **more: str) -> str:
    """What a command prints at a terminal of so many rows and 100 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
    child = subprocess.Popen(
        storekit.command(*arguments),
        cwd=root,
        env=storekit.environment(root, TERM="xterm", **more),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=storekit.takes_terminal,
    )
    os.close(theirs)
    said = storekit.read_terminal(ours)
    assert child.wait(storekit.HANGS) == 0, said
    return said


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that says that it is one."""
    path = tmp_path / "pager"
    path.write_text("#!/bin/sh\necho PAGED $(wc -l)\n")
    path.chmod(0o755)
    return str(path)


def test_a_long_text_goes_through_the_pager_and_a_short_one_does_not(made: Path, pager: str) -> None:
    assert "PAGED" in at_a_screen(made, "show", "tide", PAGER=pager)
    assert "PAGED" in at_a_screen(made, "log", "tide", PAGER=pager)
    assert "PAGED" not in at_a_screen(made, "log", "tide", "-n", "3", PAGER=pager)
    assert "PAGED" not in at_a_screen(made, "show", "tide", PAGER=pager, rows=500)


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        (("--no-pager",), {}),
        ((), {"PAGER": ""}),
        ((), {"PAGER": "cat"}),
        ((), {"PAGER": "/no/such/pager"}),
        ((), {"CLAUDE_CODE_SESSION_ID": "s-1"}),
        ((), {"TERM": "dumb"}),
    ],
    ids=str,
)
def test_no_pager_waits_where_nobody_wants_one_or_could_leave_it(
    made: Path, pager: str, arguments: tuple[str, ...], more: dict[str, str]
) -> None:
    if "TERM" in more:
        status, said = on_a_terminal(made, "show", "tide", PAGER=pager, **more)
        assert status == 0
    else:
        said = at_a_screen(made, "show", "tide", *arguments, **{"PAGER": pager, **more})
    assert "PAGED" not in said
    assert "Decision number 39" in said


def test_a_pager_that_is_left_before_the_end_is_no_error(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "leaves"
    path.write_text("#!/bin/sh\nexit 3\n")
    path.chmod(0o755)
    assert "Traceback" not in at_a_screen(made, "show", "tide", PAGER=str(path))


def test_headings_and_labels_have_colours_that_no_color_takes_away(made: Path) -> None:
    assert "\x1b[1m" in at_a_screen(made, "show", "tide", "--no-pager")
    assert "\x1b[" not in at_a_screen(made, "show", "tide", "--no-pager", NO_COLOR="1")
    assert "\x1b[" not in at_a_screen(made, "search", "number", "--no-pager", NO_COLOR="1")


def test_times_are_relative_on_a_terminal_and_utc_in_a_pipe(made: Path) -> None:
    assert "just now" in at_a_screen(made, "log", "tide", "-n", "1")
    assert storekit.process("log", "tide", "-n", "1", cwd=made).out.count("Z  decision") == 1


def test_since_keeps_what_is_newer_in_log_list_and_search(made: Path) -> None:
    for command in (("log", "tide"), ("list",), ("search", "number")):
        assert storekit.process(*command, "--since", "1h", "--json", cwd=made).json() != []
        assert storekit.process(*command, "--since", "2099-01-01", "--json", cwd=made).json() == []
        assert storekit.process(*command, "--since", "soon", cwd=made).status == 2


def test_a_search_for_newer_words_looks_behind_older_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest are not the best."""
    with monkeypatch.context() as past:
        past.setattr("ralf.route.corrections.utc_now", lambda: "2020-01-01T00:00:00Z")
        for number in range(30):
            ralf.record_decision("old", f"Log tides {number}", root=tmp_path)
    ralf.record_decision("old", "Also: mark where the tides of the other harbour are", root=tmp_path)
    found = storekit.process("search", "tides", "--since", "1d", "-n", "2", "--json", cwd=tmp_path).json()
    assert [hit["id"] for hit in found] == ["DEC-031"]


# ---- the route that is meant ----


def test_every_reading_command_takes_the_current_route_and_says_which(made: Path) -> None:
    for command in (
        ["show"],
        ["log"],
        ["log", ".."],
        ["show", "DEC-001"],
        ["log", "r1..r2"],
        ["undo", "--dry-run"],
    ):
        ran = storekit.process(*command, cwd=made, RALF_TASK_ID="tide")
        assert (ran.status, "tide" in ran.err) == (0, True), ran


def test_the_only_route_is_the_one_that_a_person_means_and_no_agent(made: Path) -> None:
    ran = storekit.process("log", "-n", "1", cwd=made)
    assert (ran.status, "tide" in ran.err) == (0, True)
    assert storekit.process("log", cwd=made, CLAUDE_CODE_SESSION_ID="s-1").status == 2
    ralf.record_decision("gates", "Open the gates", root=made)
    assert storekit.process("log", cwd=made).status == 2


def test_a_label_that_is_a_routes_name_is_the_route(made: Path) -> None:
    ralf.record_decision("r2", "Odd name", root=made)
    assert "Odd name" in storekit.process("log", "r2", "r0..", cwd=made, RALF_TASK_ID="tide").out


# ---- completion ----


def completed(root: Path, words: str, **more: str) -> list[str]:
    """What bash offers behind these words, the last of which is being typed."""
    typed = words.split(" ")
    ran = storekit.process(
        cwd=root,
        _RALF_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(typed) - 1),
        **more,
    )
    assert (ran.status, ran.err) == (0, ""), ran
    return [line.partition(",")[2] for line in ran.out.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ralf sho", ["show"]),
        ("ralf show ti", ["tide"]),
        ("ralf show TI", ["tide"]),
        ("ralf search x --route t", ["tide"]),
        ("ralf show tide DEC-00", [f"DEC-00{number}" for number in range(9, 0, -1)]),
        ("ralf undo tide DEC-04", ["DEC-040"]),
        ("ralf config thr", ["threshold"]),
        ("ralf schema c", ["config", "config.local"]),
        ("ralf show none-of-that-name", []),
    ],
)
def test_a_shell_completes_commands_routes_labels_and_keys(made: Path, words: str, offered: list[str]) -> None:
    assert completed(made, words) == offered


def test_completing_a_route_loads_neither_yaml_nor_a_tokenizer(made: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ralf_cli"],
        cwd=made,
        env=storekit.environment(made, _RALF_COMPLETE="bash_complete", COMP_WORDS="ralf show t", COMP_CWORD="2"),
        capture_output=True,
        timeout=storekit.HANGS,
    )
    assert done.stdout == b"plain,tide\n"
    loaded = {line.rpartition(b"|")[2].strip() for line in done.stderr.split(b"\n")}
    assert {b"rich", b"yaml", b"tiktoken", b"ralf.checkpointing.section", b"ralf.checkpointing.flow"}.isdisjoint(loaded)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_one_that_it_reads(tmp_path: Path, shell: str) -> None:
    ran = storekit.process("completion", shell, cwd=tmp_path)
    assert ran.status == 0
    assert "_RALF_COMPLETE" in ran.out
    assert not ran.out.startswith("<!--")  # it is to be run
