"""Checks are told by their programs, and their ends by an exit status that is theirs, or by what they printed."""

from __future__ import annotations

import pytest

from ralf.facts.checks import checks_in, covers, ending
from ralf.facts.commands import simple_commands

GO_PASSES = "ok  \tport/tide\t0.5s"


def keys(command: str, *more: str) -> list[str]:
    return list(checks_in(simple_commands(command), frozenset(more)).values())


def end(command: str, output: str = "", status: int = 0) -> tuple[str, tuple[str, ...]]:
    checks = checks_in(simple_commands(command))
    found = ending(command, output, failed=bool(status), status=status, checks=checks)
    return found.outcome, found.checks


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("pytest -q tests/test_a.py", "pytest tests/test_a.py"),
        (".venv/bin/python -m pytest -n 4 2>&1 | tail -5", "pytest"),
        ("cd api && PYTHONPATH=. uv run --with x pytest tests", "pytest tests"),
        ("timeout 60 npx tsc --noEmit", "tsc"),
        ("go test -v -race -run 'A|B' ./tide/", "go test -run A|B tide"),
        ("mise run test:ci 2>&1", "mise run test:ci"),
        ("make -j4 lint", "make lint"),
        ("ruff check src", "ruff check src"),
        ("bundle exec rspec spec/a_spec.rb", "rspec spec/a_spec.rb"),
    ],
)
def test_two_runs_of_the_same_program_over_the_same_paths_are_the_same_check(command: str, key: str) -> None:
    assert keys(command) == [key]


@pytest.mark.parametrize(
    "command",
    ["pytest --version", "make -n deploy", "go run .", "ls tests", "echo pytest", "pip install x", "jest --listTests"],
)
def test_a_command_that_checks_nothing_is_no_check(command: str) -> None:
    assert keys(command) == []


@pytest.mark.parametrize(
    ("key", "other", "does"),
    [
        ("pytest", "pytest tests/a.py", True),
        ("pytest", "pytest -k tide", True),
        ("pytest tests/a.py", "pytest", False),
        ("pytest -k tide", "pytest -k moon", False),
        ("make test", "make test lint", False),
        ("mypy src", "ruff src", False),
    ],
)
def test_a_run_stands_for_those_of_the_same_program_over_fewer_paths(key: str, other: str, does: bool) -> None:
    assert covers(key, other) is does


# ---- how a command ended ----


@pytest.mark.parametrize(
    ("command", "output", "status", "outcome"),
    [
        ("pytest", "3 passed in 0.1s", 0, "ok"),
        ("pytest", "1 failed in 0.1s", 1, "failed"),
        ("set -o pipefail; pytest | tail -3", "", 0, "ok"),
        ("pytest > log.txt", "", 0, "ok"),
        ("pytest | tail -3", "3 passed in 0.1s", 0, "passed by output"),
        ("pytest | tail -3", "1 failed, 2 passed in 0.1s", 0, "failed by output"),
        ("pytest; echo done", "done", 0, "not shown"),
        ("pytest || true", "1 failed in 0.1s", 0, "failed by output"),
        ("pytest &", "", 0, "not shown"),
        ("go build ./... | head -30", "# tides\n./tide.go:9:2: undefined: moon", 0, "failed by output"),
        ("pytest | grep moon", "", 1, "not shown"),
        ("pytest; git push", "error: failed to push", 1, "not shown"),
        ("pytest -q; git push", "3 passed in 0.1s\nerror: failed to push", 1, "passed by output"),
        ("tsc | tail", "src/a.ts(3,1): error TS2304: Cannot find name 'x'.\nFound 1 error.", 0, "failed by output"),
        ("bats t | tail", "ok 1 - moon\nnot ok 2 - tide", 0, "failed by output"),
        ("git push", "", 0, "ok"),
    ],
)
def test_no_status_that_is_hidden_is_called_ok(command: str, output: str, status: int, outcome: str) -> None:
    assert end(command, output, status)[0] == outcome


def test_the_name_of_a_test_that_passed_is_no_mark_of_failure() -> None:
    shown = (
        "=== RUN   TestParseError\n--- PASS: TestParseError (0.0s)\ntests/a.py::TestParseError::test_x PASSED\nPASS\n"
    )
    assert end("go test -v ./... | tail -20", shown + GO_PASSES)[0] == "passed by output"


def test_a_check_is_not_called_failed_for_another_command_of_its_chain() -> None:
    assert end("pytest -q && git push", "3 passed in 0.1s\nerror: failed to push some refs", 1) == ("failed", ())
    assert end("make lint && git commit -m x", "nothing to commit, working tree clean", 1) == ("failed", ())
    assert end("npm ci && ./setup.sh && npm test", "sh: 1: ./setup.sh: not found", 127) == ("failed", ())
    assert end("pytest -q && git push", "FAILED test_a.py::test_b", 1) == ("failed", ("pytest",))
    assert end("cd api && pytest", "boom", 1) == ("failed", ("pytest",))
