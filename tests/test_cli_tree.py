"""The tree of commands as somebody meets it: how large it is, its help, other names, and the answer to a wrong one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import storekit
from ralf.agent import AgentRun
from ralf_cli import aliases, verbs
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


def parsed(typed: str) -> list[str]:
    """The words of the command that a line names. Fails where there is none, or its options or arguments are wrong."""
    command: click.Command = main
    _, *words = shlex.split(typed)
    context, names = click.Context(main, info_name="ralf"), []
    while words and isinstance(command, click.Group) and (found := command.get_command(context, words[0])):
        command, names, words = found, [*names, words[0]], words[1:]
    assert names, typed
    command.make_context(names[-1], words, parent=context)
    return names


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> storekit.Cli:
    monkeypatch.chdir(tmp_path)
    return storekit.Cli(tmp_path, monkeypatch, capfd)


# ---- how large it is, and its help ----


def test_there_are_at_most_46_commands_and_160_options_each_counted_where_its_help_stands() -> None:
    tree = list(walked())
    assert len([words for words, command in tree if not isinstance(command, click.Group)]) <= 46
    assert sum(isinstance(param, click.Option) for _, command in tree for param in command.params) <= 160


def test_the_help_names_sixteen_commands_and_how_to_see_all_of_them(cli: storekit.Cli) -> None:
    listed, everything = cli("--help"), cli("help", "all")
    assert (listed.status, everything.status, listed.err + everything.err) == (0, 0, "")
    names = {words[0] for words, _ in walked() if words}
    shown = [name for name in re.findall(r"(?m)^  ([a-z]+) {2,}\S", listed.out) if name in names]
    assert len(shown) == 16
    assert "ralf help all" in listed.out and "ralf help all" not in everything.out
    assert names <= set(re.findall(r"(?m)^  ([a-z]+) {2,}\S", everything.out))


@pytest.mark.parametrize("words", ["show", "task claim", "memory", "context diff", "refresh"])
def test_help_before_a_command_is_its_help(cli: storekit.Cli, words: str) -> None:
    asked = cli("help", *words.split())
    assert (asked.status, asked.err) == (0, "")
    assert asked.out == cli(*words.split(), "--help").out
    assert asked.out.startswith("Usage: ralf ")


def test_help_of_what_is_no_command_names_the_nearest(cli: storekit.Cli) -> None:
    assert cli("help", "serch").err.endswith("hint: ralf search --help\n")


# ---- other names ----

ALIASES = {
    "serialize --every 2": "plan --every 2",
    "refresh": "task show",
    "refresh --task TASK-1": "task show TASK-1 --fresh",
    "refresh --max-tokens 90 --task TASK-1 --json": "task show TASK-1 --fresh --max-tokens 90 --json",
    "claim": "task claim",
    "claim TASK-1": "task claim TASK-1",
    "done --summary counted": "task done counted",
    "done --summary=counted --task TASK-2": "task done counted --task TASK-2",
    "why tide DEC-001": "show tide DEC-001",
    "message": "send",
    "message TASK-9 Look --wait": "send TASK-9 Look --wait",
    "nudge Look --session nobody": "send nobody Look",
    "nudge Look --route tide": "send tide Look",
    "config list": "config",
    "config get threshold": "config threshold",
    "config set threshold 9000": "config threshold 9000",
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
    "context revert tide r1 --dry-run": "undo tide --to r1 --dry-run",
    "context verify tide": "doctor --store tide",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a route, a memory and tasks."""
    root = tmp_path_factory.mktemp("project")
    for typed in (
        "init --yes",
        "decide tide Count",
        "decide tide Keep",
        "memory add fact Metres",
        "task add One --id TASK-1",
        "task add Two --id TASK-2",
        "task claim TASK-2",
    ):
        assert storekit.process(*typed.split(), cwd=root, HOME=str(root / "home"), RALF_AGENT="a-1").status == 0, typed
    return root


@pytest.mark.ci
@pytest.mark.parametrize("typed", ALIASES)
def test_another_name_does_what_it_stands_for(made: Path, tmp_path: Path, typed: str) -> None:
    ways = []
    for words in (typed, ALIASES[typed]):
        storekit.copied(made, tmp_path / "p")
        ran = storekit.process(*words.split(), cwd=tmp_path / "p", HOME=str(made / "home"), RALF_AGENT="a-1")
        same = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b[0-9a-f]{32}\b|(?<=until )\S+")
        ways.append((ran.status, [same.sub("", line) for line in [*ran.lines, *ran.err.splitlines()]]))
        (tmp_path / "p").rename(tmp_path / f"p{len(ways)}")
    assert ways[0] == ways[1]


def test_no_other_name_is_left_out_of_these_tests() -> None:
    typed = {tuple(words.split()) for words in ALIASES}
    known = [(name,) for name in aliases._ALIASES]
    known += [(group, name) for group, names in aliases._BEHIND.items() for name in names]
    known += [("context", name) for name in aliases.CONTEXT]
    assert [name for name in known if not any(words[: len(name)] == name for words in typed)] == []


@pytest.mark.parametrize("stands_for", ALIASES.values())
def test_what_another_name_stands_for_is_a_command(
    stands_for: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parsed(f"ralf {stands_for}")


# ---- wrong names ----

WRONG = {
    **{
        (*path.split()[1:], name): f"{path} {other}"
        for path, names in verbs._OTHER_NAMES.items()
        for name, other in names.items()
    },
    **{(*path.split()[1:], name): other for path, names in verbs._ELSEWHERE.items() for name, other in names.items()},
}


@pytest.mark.parametrize("typed", WRONG, ids=" ".join)
def test_a_wrong_name_is_answered_with_the_right_command_and_does_nothing(
    cli: storekit.Cli, tmp_path: Path, typed: tuple[str, ...]
) -> None:
    if typed[0] in aliases._ALIASES or typed[:1] + typed[1:2] in {
        (g, n) for g, ns in aliases._BEHIND.items() for n in ns
    }:
        return  # it is one
    right = WRONG[typed].partition(" -")[0]
    found = []
    for more in ((), ("x",), ("x", "y")):
        ran = cli(*typed, *more)
        assert (ran.status, ran.out) == (2, "")
        hint = ran.err.splitlines()[-1].removeprefix("hint: ")
        assert hint.startswith(right), ran
        try:
            found.append(parsed(hint))
        except (click.UsageError, AssertionError):
            continue
    assert found, "no hint is a command"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "hint"),
    {
        "drop tide DEC-1": "ralf undo tide DEC-1",
        "revert tide cp-2": "ralf undo tide --to cp-2",
        "diff tide cp-1 cp-2": "ralf log tide cp-1..cp-2",
        "rename tide tables": "ralf route tide --rename tables",
        "split TASK-1 Read Write": "ralf task edit TASK-1 --into Read --into Write",
        "verify": "ralf doctor --store",
        "watch tide": "ralf checkpoint --watch tide",
        "health": "ralf status --all",
        "migrate run-folders": "ralf import run-folders",
        "orchestrator pm": "ralf loop handover pm",
        "on": "ralf init",
        "off": "ralf init --off",
        "run list": "ralf run show",
        "run stream survey": "ralf run show survey --output",
        "run forget survey": "ralf forget --run survey",
        "signal survey go now": "ralf send survey now --signal go",
        "loop attach": "ralf loop status --follow",
        "memory status": "ralf memory show",
        "memory restore r3": "ralf memory edit --to r3",
        "memory tidy": "ralf gc --memory main",
        "memory export CLAUDE.md": "ralf export --memory CLAUDE.md",
        "task import list.json": "ralf import list.json",
        "task retry TASK-1": "ralf task edit TASK-1 --status pending",
        "context shwo tide": "ralf show tide",
        "shwo tide": "ralf show tide",
        "context": "ralf help all",
    }.items(),
)
def test_what_a_command_was_called_before_is_answered_with_what_it_is_called_now(
    cli: storekit.Cli, typed: str, hint: str
) -> None:
    ran = cli(*typed.split())
    assert (ran.status, ran.err.splitlines()[-1]) == (2, f"hint: {hint}")


# ---- the options that every command has ----


@pytest.mark.parametrize("words", ["--json list", "list --json"])
def test_json_is_printed_wherever_it_is_asked_for(cli: storekit.Cli, words: str) -> None:
    assert cli(*words.split()).json() == []


def test_a_root_is_taken_before_and_behind_a_command(made: Path, tmp_path: Path) -> None:
    for words in (
        ("--root", made, "list", "--json"),
        ("list", "--json", "--root", made),
        ("--json", "list", f"--root={made}"),
    ):
        ran = storekit.process(*words, cwd=tmp_path, HOME=str(made / "home"))
        assert [one["route"] for one in ran.json()] == ["tide"], words
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", ["--dry-run decide tide Round", "--yes decide tide Round", "memory --dry-run add fact x"]
)
def test_an_option_that_a_command_does_not_take_is_refused_before_it_too(
    cli: storekit.Cli, tmp_path: Path, words: str
) -> None:
    ran = cli(*words.split())
    assert (ran.status, "No such option" in ran.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_is_asked_for_before_a_command_or_behind_it(cli: storekit.Cli, tmp_path: Path) -> None:
    before, behind = cli("--dry-run", "init"), cli("init", "--dry-run")
    assert (before.status, before.lines) == (0, behind.lines)
    assert list(tmp_path.iterdir()) == []


# ---- send ----


@pytest.mark.parametrize(
    "words",
    [("reviewer", "Look"), ("reviewer", "Look", "--fact", "It is done"), ("survey", "yes", "--signal", "approval")],
    ids=" ".join,
)
def test_a_name_that_nobody_has_is_refused_and_nothing_is_kept_for_it_unless_it_may_wait(
    cli: storekit.Cli, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert cli("init", "--yes").status == 0
    before = {path for path in tmp_path.rglob("*") if "cache" not in path.parts}
    cli("send", *words).complains(3, words[0], "--wait")
    assert {path for path in tmp_path.rglob("*") if "cache" not in path.parts} == before
    assert cli("send", *words, "--wait").status == 0


def test_a_signal_goes_to_a_run_that_there_is(cli: storekit.Cli, tmp_path: Path) -> None:
    with AgentRun("survey", root=tmp_path) as run:
        run.save(b"x")
    assert cli("send", "survey", "yes", "--signal", "approval", "--json").json()["name"] == "approval"
    cli("send", "surveys", "yes", "--signal", "approval").complains(3, "surveys", "survey")
