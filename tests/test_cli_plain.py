"""`ralf list` and `show` in a pipe: answered without click, as click's command line answers them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ralf.api
import storekit
from ralf.text.cleaning import outside
from storekit import route_file


@pytest.fixture
def made(tmp_path: Path) -> Path:
    for route, text in (("tide", "Log the tides <!-- here -->"), ("gates", "Open the gates")):
        ralf.record_decision(route, text, rationale="we need both → always", root=tmp_path)
    return tmp_path


def answered(way: str, root: Path, *arguments: str) -> storekit.Ran:
    return storekit.process(*arguments, cwd=root, way=way)


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["list", "--json"],
        ["show", "tide"],
        ["show", "TIDE"],
        ["show", "tide", "--max-tokens", "120"],
        ["show", "tide", "--max-tokens", "3"],
        ["show", "tide", "--max-tokens", "-1"],
        ["show", "tide", "--brief"],
        ["show", "none"],
        ["show", "../x"],
        ["show", "--help"],
        ["shows", "tide"],
    ],
)
def test_the_two_ways_to_an_answer_print_the_same(made: Path, arguments: list[str]) -> None:
    plain = answered(storekit.PLAIN, made, *arguments)
    assert plain == answered(storekit.CLICK, made, *arguments)
    assert plain.status in (0, 2, 3)


@pytest.mark.ci
@pytest.mark.parametrize("arguments", [["list"], ["show", "tide", "--brief"], ["show", "none"], ["--help"]])
def test_a_fork_answers_as_a_process_of_its_own_does(made: Path, arguments: list[str]) -> None:
    """What the tests that fork rely on."""
    own = storekit.process(*arguments, cwd=made, is_new=True, RALF_AGENT="a-1")
    assert own == storekit.process(*arguments, cwd=made, RALF_AGENT="a-1")


@pytest.mark.ci
def test_a_damaged_file_and_a_stray_are_told_in_both_ways(made: Path) -> None:
    route_file(made, "tide").write_text("---\nnothing\n")
    route_file(made, "tide").with_name("tide (conflicted copy).md").write_text("x")
    for arguments in (["list"], ["show", "tide"], ["show", "gates"]):
        assert answered(storekit.PLAIN, made, *arguments) == answered(storekit.CLICK, made, *arguments)


def test_no_route_is_told_in_both_ways(tmp_path: Path) -> None:
    assert answered(storekit.PLAIN, tmp_path, "list") == answered(storekit.CLICK, tmp_path, "list")


def test_the_page_of_help_that_is_shipped_is_the_one_that_the_commands_make(tmp_path: Path) -> None:
    for columns in ("79", "80", "200", "wide"):
        plain = storekit.process("--help", cwd=tmp_path, way=storekit.PLAIN, COLUMNS=columns)
        assert plain == storekit.process("--help", cwd=tmp_path, way=storekit.CLICK, COLUMNS=columns)


@pytest.mark.ci
@pytest.mark.parametrize("arguments", [["list"], ["show", "tide"], ["show", "tide", "--max-tokens", "120"]])
def test_a_plain_list_and_show_load_no_click(made: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ralf_cli", *arguments],
        cwd=made,
        env=storekit.environment(made, RALF_AGENT="a-1"),
        capture_output=True,
        timeout=storekit.HANGS,
    )
    assert (done.returncode, done.stdout[:17]) == (0, b"<!-- ralf:context")
    assert {b"click", b"rich", b"yaml", b"tiktoken"}.isdisjoint(
        line.rpartition(b"|")[2].strip() for line in done.stderr.split(b"\n")
    )


@pytest.mark.ci
@pytest.mark.parametrize(
    "arguments",
    [["--for", "the tides"], ["--for", "tide"], ["--for", "nothing of it"], ["--for", ""], [], ["--for", "x", "--all"]],
)
def test_a_memory_is_handed_over_in_both_ways(made: Path, arguments: list[str]) -> None:
    ralf.api.remember("preference", "indent: tabs", origin="person", root=made)
    ralf.api.remember(
        "trap", "npm test", error="ECONNREFUSED at the tides", resolution="up", origin="person", root=made
    )
    both = (storekit.PLAIN, storekit.CLICK)
    ways = [storekit.process("memory", "show", *arguments, cwd=made, way=way) for way in both]
    assert ways[0] == ways[1]


def test_all_of_a_memory_that_is_handed_over_is_fenced_and_what_a_person_said_is_named_as_theirs(made: Path) -> None:
    ralf.api.remember("preference", "indent: tabs", origin="person", root=made)
    ralf.api.remember(
        "trap", "npm test", error="ECONNREFUSED at the tides", resolution="up", origin="person", root=made
    )
    shown = ("memory", "show", "--for", "the tides")
    assert outside(plain := storekit.process(*shown, cwd=made, way=storekit.PLAIN).out) == plain  # for a script
    said = storekit.process(*shown, cwd=made, way=storekit.PLAIN, CLAUDECODE="1").out
    assert "indent: tabs (the person)" in said
    assert "ECONNREFUSED" in said
    assert "indent" not in outside(said)
    assert "ECONNREFUSED" not in outside(said)


@pytest.mark.ci
@pytest.mark.parametrize(
    "arguments",
    [
        ["tide", "Round up"],
        ["tide", "Round <!-- up -->" * 40],
        ["tide", "Round up", "--because", "it is late", "--instead-of", "cut: too low", "--supersedes", "DEC-001"],
        ["tide", "Round up", "--supersedes", "DEC-009"],
        ["tide", "Round up", "--instead-of", "cut", "--instead-of", "keep"],
        ["tide", "Round up", "--rule"],
        ["tide", "Round up", "more"],
        ["TIDE", "Round up"],
        ["tidr", "Round up"],
        ["fresh", "Round up"],
        ["../x", "Round up"],
        ["tide", "Log the tides <!-- here -->"],
    ],
)
def test_a_decision_is_recorded_in_both_ways(made: Path, arguments: list[str]) -> None:
    ways, kept = [], shutil.copytree(made / ".autonomous", made / "kept")
    for way in (storekit.PLAIN, storekit.CLICK):
        ran = answered(way, made, "decide", *arguments)
        shown = answered(storekit.CLICK, made, "show", "tide", "--json")
        ways.append((ran, re.sub(r"20\d\d-[^\"]*Z", "", shown.out)))
        shutil.rmtree(made / ".autonomous")
        shutil.copytree(kept, made / ".autonomous")
    assert ways[0] == ways[1]


@pytest.mark.ci
def test_a_decision_in_a_damaged_file_is_told_in_both_ways(made: Path) -> None:
    route_file(made, "tide").write_text("---\nnothing\n")
    plain, click = (answered(way, made, "decide", "tide", "Round up") for way in (storekit.PLAIN, storekit.CLICK))
    assert (plain.status, plain.err) == (click.status, click.err) and plain.status == 4
    assert "DEC-002" in plain.out and "DEC-002" in click.out
