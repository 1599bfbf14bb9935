"""The tree of commands its help, other names, a wrong name, the options that all commands share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import storekit
from ralf_cli import names
from ralf_cli.main import main


def walked(
    command: click.Command = main, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command, groups too, with the words that are typed for it."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from walked(found, (*words, name))


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> storekit.Cli:
    monkeypatch.chdir(tmp_path)
    return storekit.Cli(tmp_path, monkeypatch, capfd)


# ---- help ----


def test_the_help_names_sixteen_commands_and_how_to_see_all_of_them(cli: storekit.Cli) -> None:
    listed, everything = cli("--help"), cli("help", "all")
    assert (listed.status, everything.status, listed.err + everything.err) == (0, 0, "")
    names = {words[0] for words, _ in walked() if words}
    shown = [name for name in re.findall(r"(?m)^  ([a-z]+) {2,}\S", listed.out) if name in names]
    assert len(shown) == 16
    assert "ralf help all" in listed.out and "ralf help all" not in everything.out
    assert names <= set(re.findall(r"(?m)^  ([a-z]+) {2,}\S", everything.out))


@pytest.mark.parametrize("words", [words for words, _ in walked()], ids=" ".join)
def test_every_command_has_help_in_lines_of_a_terminal(
    cli: storekit.Cli, tmp_path: Path, words: tuple[str, ...]
) -> None:
    ran = cli(*words, "--help")
    assert (ran.status, ran.err, "Usage: ralf" in ran.out) == (0, "", True)
    assert max(map(len, ran.out.splitlines())) <= 120
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_help_that_is_shipped_is_the_one_that_the_commands_make(tmp_path: Path) -> None:
    shipped = storekit.process("--help", cwd=tmp_path)
    assert shipped == storekit.process("--help", cwd=tmp_path, way=storekit.MAKING)


@pytest.mark.parametrize("words", ["task claim", "memory", "context log"])
def test_help_before_a_command_is_its_help(cli: storekit.Cli, words: str) -> None:
    asked = cli("help", *words.split())
    assert (asked.status, asked.err) == (0, "")
    assert asked.out == cli(*words.split(), "--help").out
    assert asked.out.startswith("Usage: ralf ")


# ---- names ----

ALIASES = {
    "serialize --every 2": "plan --every 2",
    "refresh --max-tokens 90 --task TASK-1 --json": "task show --fresh --max-tokens 90 TASK-1 --json",
    "claim TASK-1": "task claim TASK-1",
    "done --summary counted": "task done counted",
    "done --summary=counted --task TASK-2": "task done counted --task TASK-2",
    "context": "help",
    "context list": "list",
    "context show tide": "show tide",
}


@pytest.mark.parametrize("typed", ALIASES)
def test_another_name_stands_for_a_command(typed: str) -> None:
    assert names.resolved(typed.split()) == ALIASES[typed].split()


@pytest.mark.parametrize(("typed", "meant"), [("serch x", "search"), ("task clam", "claim"), ("help serch", "search")])
def test_a_wrong_name_is_answered_with_the_nearest_command_and_does_nothing(
    cli: storekit.Cli, tmp_path: Path, typed: str, meant: str
) -> None:
    ran = cli(*shlex.split(typed))
    assert (ran.status, ran.out, f"'{meant}'" in ran.err) == (2, "", True), ran
    assert list(tmp_path.iterdir()) == []


# ---- the options that commands share ----


def test_shared_options_are_taken_before_and_behind_a_command(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    assert storekit.process("decide", "tide", "Count", cwd=made).status == 0
    for words in (("--root", made, "list", "--json"), ("--json", "list", f"--root={made}")):
        ran = storekit.process(*words, cwd=tmp_path)
        assert [one["route"] for one in ran.json()] == ["tide"], words
    assert list(tmp_path.iterdir()) == [made]


@pytest.mark.parametrize(
    "words", ["--dry-run decide tide Round", "--yes decide tide Round", "memory --dry-run add fact x"]
)
def test_an_option_that_a_command_does_not_take_is_refused_before_it_too(
    cli: storekit.Cli, tmp_path: Path, words: str
) -> None:
    ran = cli(*words.split())
    assert (ran.status, "No such option" in ran.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


# ---- send ----


@pytest.mark.parametrize(
    "words", [("reviewer", "Look", "--fact", "It is done"), ("survey", "yes", "--signal", "approval")], ids=" ".join
)
def test_a_name_that_nobody_has_is_refused_and_nothing_is_kept_for_it_unless_it_may_wait(
    cli: storekit.Cli, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert cli("init", "--yes").status == 0
    before = {path for path in tmp_path.rglob("*") if "cache" not in path.parts}
    cli("send", *words).complains(3, words[0], "--wait")
    assert {path for path in tmp_path.rglob("*") if "cache" not in path.parts} == before
    assert cli("send", *words, "--wait").status == 0
