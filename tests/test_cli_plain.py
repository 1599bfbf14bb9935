"""`ralf list`, `show` and `decide` in a pipe: answered without click, as click's command line answers them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ralf
import storekit
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
        ["show", "TIDE"],
        ["show", "tide", "--max-tokens", "120"],
        ["show", "tide", "--max-tokens", "3"],
        ["show", "tide", "--max-tokens", "-1"],
        ["show", "tide", "--brief"],
        ["show", "none"],
        ["show", "../x"],
    ],
)
def test_the_two_ways_to_an_answer_print_the_same(made: Path, arguments: list[str]) -> None:
    plain = answered(storekit.PLAIN, made, *arguments)
    assert plain == answered(storekit.CLICK, made, *arguments)
    assert plain.status in (0, 2, 3)


@pytest.mark.ci
def test_a_damaged_file_and_a_stray_are_told_in_both_ways(made: Path) -> None:
    route_file(made, "tide").write_text("---\nnothing\n")
    route_file(made, "tide").with_name("tide (conflicted copy).md").write_text("x")
    for arguments in (["list"], ["show", "tide"], ["show", "gates"]):
        assert answered(storekit.PLAIN, made, *arguments) == answered(storekit.CLICK, made, *arguments)


def test_the_page_of_help_that_is_shipped_is_the_one_that_the_commands_make(tmp_path: Path) -> None:
    for columns in ("79", "80", "200", "wide"):
        plain = storekit.process("--help", cwd=tmp_path, way=storekit.PLAIN, COLUMNS=columns)
        assert plain == storekit.process("--help", cwd=tmp_path, way=storekit.CLICK, COLUMNS=columns)


@pytest.mark.ci
@pytest.mark.parametrize(
    "arguments", [["list"], ["show", "tide", "--max-tokens", "120"], ["decide", "tide", "Mark it"]]
)
def test_a_plain_command_loads_no_click(made: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ralf_cli", *arguments],
        cwd=made,
        env=storekit.environment(made, RALF_AGENT="a-1"),
        capture_output=True,
        timeout=storekit.HANGS,
    )
    assert (done.returncode, done.stdout[:17]) == (0, b"<!-- ralf:context")
    loaded = {line.rpartition(b"|")[2].strip() for line in done.stderr.split(b"\n")}
    assert {b"click", b"tiktoken"}.isdisjoint(loaded)


@pytest.mark.ci
@pytest.mark.parametrize(
    "arguments",
    [
        ["tide", "Round <!-- up -->" * 40],
        ["tide", "Round up", "--because", "it is late"],
        ["tide", "Round up", "--supersedes", "DEC-009"],
        ["tide", "Round up", "more"],
        ["tidr", "Round up"],
        ["fresh", "Round up"],
        ["../x", "Round up"],
        ["tide", "Log the tides <!-- here -->"],
    ],
)
def test_a_decision_is_recorded_once_in_both_ways(made: Path, arguments: list[str]) -> None:
    ways, kept = [], shutil.copytree(made / ".autonomous", made / "kept")
    for way in (storekit.PLAIN, storekit.CLICK):
        ran = answered(way, made, "decide", *arguments)
        shown = answered(storekit.CLICK, made, "show", "tide", "--json")
        ways.append((ran, re.sub(r"20\d\d-[^\"]*Z", "", shown.out)))
        shutil.rmtree(made / ".autonomous")
        shutil.copytree(kept, made / ".autonomous")
    assert ways[0] == ways[1]


@pytest.mark.ci
def test_a_decision_in_a_damaged_file_is_told_and_recorded_once(made: Path) -> None:
    route_file(made, "tide").write_text("---\nnothing\n")
    for way in (storekit.PLAIN, storekit.CLICK):
        ran = answered(way, made, "decide", "tide", "Round up")
        assert (ran.status, "DEC-002" in ran.out, "mend the file" in ran.err) == (4, True, True), ran
