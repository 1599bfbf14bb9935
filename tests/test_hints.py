"""What a hint says to type next: it helps when it is typed, and it destroys nothing that nobody spoke of."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import kit.command
import storekit


def hint_of(ran: storekit.Ran) -> str:
    """The hint of an error; "" for none."""
    found = re.search(r"(?m)^hint: (.*)$", ran.err)
    return found[1] if found else ""


def test_what_an_empty_memory_says_to_type_adds_an_item(tmp_path: Path) -> None:
    storekit.process("init", cwd=tmp_path)
    told = storekit.process("memory", cwd=tmp_path).err.strip()
    _, *command = shlex.split(told[told.rindex(": ") + 2 :])
    ran = storekit.process(*command, cwd=tmp_path)
    assert (ran.status, ran.err) == (0, ""), ran


STORE = Path(".autonomous", "context")

ALL = (
    *("init", "status", "list", "show", "doctor", "route", "memory", "status --all", "task show", "config", "search x"),
    *("decide tide x", "log tide", "task list", "task add x", "run show", "doctor --store", "send", "trust"),
    *(
        "send x y --signal go --wait",
        "memory add fact x",
        "route tide --rename tables",
        "route tide --close",
        "undo tide",
        "init --off",
    ),
)


@pytest.mark.ci
@pytest.mark.parametrize("place", [STORE.parent, STORE, STORE / "routes", STORE / "journal"], ids=str)
def test_a_file_in_the_place_of_a_folder_is_named_and_nothing_is_done(tmp_path: Path, place: Path) -> None:
    root, home = tmp_path / "p", tmp_path / "home"
    (root / place).parent.mkdir(parents=True)
    (root / place).write_text("mine\n")
    for typed in ALL:
        ran = storekit.process(*typed.split(), cwd=root, HOME=str(home), XDG_CONFIG_HOME=str(home / ".config"))
        assert (ran.status, ran.out) == (4, ""), typed
        told = f"error: {root / place}: is a file, where ralf keeps a folder\n"
        assert ran.err == f"{told}hint: mv {root / place} {root / place}.old\n", typed
    assert not home.exists()
    assert [path for path in root.rglob("*") if path.is_file()] == [root / place]


@pytest.mark.ci
def test_an_export_that_cannot_be_written_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    storekit.process("decide", "tide", "Use WAL", cwd=tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for output in ("none/x.md", "file/x.md", "folder"):
        storekit.process("export", "tide", "--md", "-o", output, cwd=tmp_path).complains(1, output, "-o FILE")


def test_a_folder_that_may_not_be_read_is_to_be_made_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    storekit.process("decide", "tide", "Use WAL", cwd=tmp_path)
    journal = tmp_path / STORE / "journal"
    journal.chmod(0)
    try:
        known = storekit.environment(tmp_path)
        ran = kit.command.run("list", cwd=tmp_path, env=known, as_modes_say=True)
    finally:
        journal.chmod(0o700)
    assert (ran.status, "--root DIR" in hint_of(ran)) == (1, True)


@pytest.mark.ci
def test_a_hint_names_a_command_by_its_short_name_however_it_was_typed(tmp_path: Path) -> None:
    storekit.process("decide", "tide", "Use WAL", cwd=tmp_path)
    for typed, hint in (
        ("context show none", "ralf list"),
        ("show tid", "ralf show tide"),
        ("context undo tide DEC-9", "ralf show tide --section decisions"),
    ):
        assert hint_of(storekit.process(*typed.split(), cwd=tmp_path)) == hint, typed
