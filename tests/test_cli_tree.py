"""The tree of commands its help, other names, a wrong name, the options that all commands share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import storekit
from ralf_cli import aliases
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


def test_the_page_of_help_that_is_shipped_is_the_one_that_the_commands_make(tmp_path: Path) -> None:
    shipped = storekit.process("--help", cwd=tmp_path)
    assert shipped == storekit.process("--help", cwd=tmp_path, way=storekit.MAKING)


@pytest.mark.parametrize("words", ["task claim", "memory", "context diff"])
def test_help_before_a_command_is_its_help(cli: storekit.Cli, words: str) -> None:
    asked = cli("help", *words.split())
    assert (asked.status, asked.err) == (0, "")
    assert asked.out == cli(*words.split(), "--help").out
    assert asked.out.startswith("Usage: ralf ")


# ---- names ----

ALIASES = {
    "serialize --every 2": "plan --every 2",
    "refresh --max-tokens 90 --task TASK-1 --json": "task show --fresh TASK-1 --max-tokens 90 --json",
    "claim TASK-1": "task claim TASK-1",
    "done --summary counted": "task done counted",
    "done --summary=counted --task TASK-2": "task done counted --task TASK-2",
    "why tide DEC-001": "show tide DEC-001",
    "message TASK-9 Look --wait": "send TASK-9 Look --wait",
    "nudge Look --session nobody": "send nobody Look",
    "nudge Look --route tide": "send tide Look",
    "config list": "config",
    "config get threshold": "config threshold",
    "config set --local summarizer extractive": "config --local summarizer extractive",
    "route use tide": "route tide",
    "route rename tide tables": "route tide --rename tables",
    "route close tide": "route tide --close",
    "memory why fact-1": "memory show fact-1",
    "context list": "list",
    "context show tide": "show tide",
    "context search tables": "search tables",
    "context log tide": "log tide",
    "context decide tide Round": "decide tide Round",
    "context undo tide": "undo tide",
    "context edit tide": "edit tide",
    "context handover tide -": "handover tide -",
    "context checkpoint tide": "checkpoint tide",
    "context watch tide --once": "checkpoint --watch tide --once",
    "context trust": "trust",
    "context forget tide DEC-001": "forget tide DEC-001",
    "context export tide --md": "export tide --md",
    "context why tide DEC-001": "show tide DEC-001",
    "context diff tide r1 r2": "log tide r1..r2",
    "context diff tide r1": "log tide r1..",
    "context diff tide": "log tide ..",
    "context drop tide DEC-001": "undo tide DEC-001",
    "context revert tide r1 --dry-run": "undo tide --dry-run --to r1",
    "context verify tide": "doctor --store tide",
}


@pytest.mark.parametrize("typed", ALIASES)
def test_another_name_stands_for_a_command(typed: str) -> None:
    words = aliases.resolved(typed.split())
    assert words == ALIASES[typed].split()
    command: click.Command = main
    context = click.Context(main, info_name="ralf")
    while isinstance(command, click.Group) and (found := command.get_command(context, words[0])):
        command, words = found, words[1:]
    command.make_context("ralf", words, parent=context, resilient_parsing=True)


def test_no_other_name_is_left_out_of_these_tests() -> None:
    known = {f"{group} {name}".strip() for group, names in aliases._NAMES.items() for name in names}
    assert known == {name for name in known if any(f"{typed} ".startswith(f"{name} ") for typed in ALIASES)}


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
    for words in (
        ("--root", made, "list", "--json"),
        ("list", "--json", "--root", made),
        ("--json", "list", f"--root={made}"),
    ):
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
