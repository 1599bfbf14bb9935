"""`ralf init --client ralf`: what it puts into the loop's tree, and the tree as it was after --uninstall."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ralf
import storekit
from ralf.project import Project
from ralf_integrations import doctor
from ralf_integrations.blackbox5 import installing
from ralf_integrations.clients import installation
from storekit import Cli, Ran

Run = Callable[..., Ran]
PROMPT = "# RALF\n\nOne task per run.\n\n## FINAL STEP\n\n<promise>COMPLETE</promise>\n"
LAUNCHER = '#!/bin/bash\nexport RALF_PROJECT_DIR="projects/$1"\nexec engine/ralf-loop.sh\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree as it is: an engine, projects, prompts in several places, and what only looks like them."""
    top = tmp_path / "a tree's place"
    for name in (
        "bin/ralf.md",
        "2-engine/instructions/ralf.md",
        "2-engine/instructions/ralf-executor.md",
        "2-engine/.autonomous/prompts/ralf.md",
        "5-project-memory/blackbox5/bin/ralf.md",
        "2-engine/.autonomous/prompts/versions/v2.5/ralf.md",
        "2-engine/instructions/archived/ralf.md",
        "2-engine/.autonomous.backup.1/ralf.md",
        "5-project-memory/blackbox5/.autonomous/runs/run-1/ralf.md",
        "5-project-memory/blackbox5/knowledge/ralf.md",
    ):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PROMPT)
    (top / "bin" / "ralf").write_text(LAUNCHER)
    (top / "bin" / "ralf").chmod(0o755)
    (top / "ralf.md").symlink_to(top / "bin" / "ralf.md")
    return top


@pytest.fixture
def root(tree: Path) -> Path:
    return tree / "5-project-memory" / "blackbox5"


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(root / "home"))
    monkeypatch.setenv("PATH", os.defpath)
    cli = Cli(root, monkeypatch, capfd)
    return lambda *args: cli(*args)


IN_USE = [
    "2-engine/.autonomous/prompts/ralf.md",
    "2-engine/instructions/ralf-executor.md",
    "2-engine/instructions/ralf.md",
    "5-project-memory/blackbox5/bin/ralf.md",
    "bin/ralf.md",
]


def state(top: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of a tree: mode and bytes."""
    return {
        path.relative_to(top).as_posix(): (stat.S_IMODE(path.lstat().st_mode), path.read_bytes())
        for path in sorted(top.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def test_the_prompts_in_use_are_found_and_no_old_version_copy_or_link(tree: Path, root: Path) -> None:
    assert [path.relative_to(tree).as_posix() for path in installing.prompts(Project(root))] == IN_USE
    assert installing.tree_of(Project(root)) == tree


def test_it_puts_a_section_into_each_prompt_and_a_script_and_nothing_else(tree: Path, root: Path, run: Run) -> None:
    before = state(tree)
    assert run("init", "--client", "ralf", "--yes").status == 0
    after = state(tree)
    mine = "5-project-memory/blackbox5/.autonomous/context/"
    changed = {name for name in after if before.get(name) != after[name]} - set(IN_USE)
    assert changed - {f"{mine}config.yaml", f"{mine}.gitignore", f"{mine}hooks/context-checkpoint.sh"} == {
        name for name in changed if name.startswith(f"{mine}installed/")
    }
    for name in IN_USE:
        text = after[name][1].decode()
        assert text.startswith(PROMPT) and shlex.quote(str(installing.script_path(Project(root)))) in text
    assert run("init", "--client", "ralf").status == 0
    assert state(tree) == after


@pytest.mark.ci
def test_taken_out_the_tree_is_byte_for_byte_as_it_was(tree: Path, root: Path, run: Run) -> None:
    run("init", "--yes")
    (tree / "bin" / "ralf.md").write_bytes(PROMPT.replace("\n", "\r\n").rstrip().encode())
    before = state(tree)
    assert run("init", "--client", "ralf", "--yes").status == 0
    assert b"\r\n<!-- ralf: end -->\r\n" in (tree / "bin" / "ralf.md").read_bytes()
    assert run("init", "--client", "ralf", "--uninstall", "--yes").status == 0
    assert state(tree) == before
    run("init", "--client", "ralf", "--yes")
    run("init", "--uninstall", "--yes")
    assert {name: what for name, what in state(tree).items() if "context/" not in name} == {
        name: what for name, what in before.items() if "context/" not in name
    }
    assert not installing.script_path(Project(root)).parent.exists()


@pytest.mark.ci
def test_uninstalling_one_of_two_projects_of_a_tree_leaves_the_other_its_prompts(
    tree: Path, root: Path, run: Run
) -> None:
    before = state(tree)
    other = tree / "5-project-memory" / "other"
    other.mkdir()
    assert run("init", "--client", "ralf", "--yes").status == 0
    assert run("--root", other, "init", "--client", "ralf", "--yes").status == 0
    prompt = tree / "bin" / "ralf.md"
    assert installing.script_in(prompt.read_text()) == installing.script_path(Project(other))
    both = prompt.read_bytes()
    assert run("init", "--client", "ralf", "--uninstall", "--yes").status == 0
    assert (installing.script_path(Project(root)).exists(), prompt.read_bytes()) == (False, both)
    assert run("--root", other, "init", "--client", "ralf", "--uninstall", "--yes").status == 0
    after = state(tree)
    assert {name: after[name] for name in before} == before


def test_where_no_prompt_is_found_it_says_what_to_name(tmp_path: Path, run: Run, root: Path) -> None:
    for path in installing.prompts(Project(root)):
        path.unlink()
    ran = run("init", "--client", "ralf", "--yes")
    ran.complains(2, installing.tree_of(Project(root)), "ralf.md", "BLACKBOX5_HOME")
    assert not storekit.context_of(root).exists()


# ---- the launcher of the same name ----


def test_init_and_doctor_report_a_launcher_of_another_program_and_never_start_it(
    tree: Path, root: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "bin" / "ralf").write_text(f"{LAUNCHER}\ntouch {tree / 'started'}\n")
    monkeypatch.setenv("PATH", f"{tree / 'bin'}:{os.defpath}")
    said = run("init", "--client", "ralf", "--yes").err
    door = shlex.quote(str(installing.script_path(Project(root))))
    assert f"type: {door} ralf" in said and str(tree / "bin" / "ralf") in said
    checks = list(doctor.examine(Project(root)))
    assert any("launcher" in check.what and check.hint.endswith(f"{door} ralf") for check in checks)
    assert not any(check.name == "command" for check in checks)
    assert not (tree / "started").exists()


def commands(text: str) -> list[str]:
    """The commands that a text of ours names."""
    named = re.findall(r"`([^`]* (?:context|show) [^`]*)`|^hint: (.* (?:context|show) .*)$", text, re.M)
    return [re.sub(r"\b(?:WORDS|QUERY)\b", "table", a or b) for a, b in named]


def keep(root: Path, tokens: int) -> None:
    """A checkpoint of route TASK-7."""
    session = root / "session.jsonl"
    storekit.write_session(session, tokens)
    ralf.checkpoint("TASK-7", session, root=root)


@pytest.mark.ci
@pytest.mark.parametrize("installed", [True, False])
def test_what_is_printed_in_that_tree_names_commands_that_work_there(
    tree: Path, root: Path, run: Run, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    (tree / "bin" / "ralf").write_text(f"{LAUNCHER}\ntouch {shlex.quote(str(tree / 'started'))}\n")
    monkeypatch.setenv("PATH", f"{tree / 'bin'}:{Path(sys.executable).parent}:{os.defpath}")
    monkeypatch.chdir(root)
    keep(root, 4_000)
    if installed:
        assert run("init", "--client", "ralf", "--yes").status == 0
    said = run("show", "TASK-8").err
    if installed:
        said += run("show", "TASK-7", "--max-tokens", "700").out
    named = commands(said)
    assert len(named) >= (2 if installed else 1), said
    for command in named:
        done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
    assert not (tree / "started").exists()


def lose_python(door: Path) -> None:
    """Have the script name a Python that is gone."""
    door.write_text(re.sub(r"(?m)^python=.*", "python=/gone/python", door.read_text()))


def test_doctor_knows_whether_the_installation_is_whole(tree: Path, root: Path, run: Run) -> None:
    def states() -> list[str]:
        return [check.state for check in doctor.examine(Project(root)) if check.name == "ralf loop"][1:]

    assert states() == []
    run("init", "--client", "ralf", "--yes")
    assert states() == ["ok"] * 6
    prompt = tree / "bin" / "ralf.md"
    prompt.write_text(prompt.read_text().replace("on demand", "x"))
    (tree / IN_USE[0]).write_text(PROMPT)
    door = installing.script_path(Project(root))
    lose_python(door)
    assert states() == ["problem", "warning", "ok", "ok", "ok", "warning"]
    door.unlink()
    assert states()[0] == "problem"


# ---- the script ----


def shell(door: Path, *args: str, cwd: Path = Path("/"), **more: str) -> Ran:
    """The script, as a loop calls it."""
    env = storekit.environment(door.parents[3] / "home", **more)
    done = subprocess.run([door, *args], cwd=cwd, env=env, capture_output=True, stdin=subprocess.DEVNULL)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def door(root: Path) -> Path:
    """The installed script."""
    project = Project(root)
    for part in installing.parts(project):
        change = installation.plan(project, part)
        assert change is not None
        installation.apply(project, change)
    return installing.script_path(project)


@pytest.mark.ci
def test_the_script_reaches_this_command_from_any_directory(door: Path, root: Path, tmp_path: Path) -> None:
    assert os.access(door, os.X_OK)
    (tmp_path / "ralf_cli.py").write_text("raise SystemExit('not this one')")  # where one stands brings no code
    for cwd in (Path("/"), tmp_path):
        ran = shell(door, "ralf", "list", "--json", cwd=cwd)
        assert (ran.status, ran.out) == (0, "[]\n"), ran.err
    other = tmp_path / "other"
    (other / ".autonomous").mkdir(parents=True)
    ran = shell(door, "ralf", "decide", "T-1", "Keep it", RALF_PROJECT_DIR=str(other))
    assert (ran.status, storekit.route_file(other, "T-1").exists()) == (0, True)
    assert not storekit.route_file(root, "T-1").exists()


def test_a_python_that_is_gone_stops_no_loop(door: Path) -> None:
    lose_python(door)
    ran = shell(door, "start")
    assert (ran.status, ran.out) == (0, "")
    assert "init --client ralf" in ran.err


def test_the_script_is_plain_bash(door: Path) -> None:
    assert subprocess.run(["bash", "-n", str(door)], check=False).returncode == 0  # noqa: S607
    if shutil.which("shellcheck"):
        assert subprocess.run(["shellcheck", str(door)], check=False).returncode == 0  # noqa: S607


def test_what_is_installed_is_pinned_and_nothing_of_another_hand(root: Path, run: Run) -> None:
    project = Project(root)
    path = installing.script_path(project)
    run("init", "--client", "ralf", "--yes")
    assert Project(root).command == f"{shlex.quote(str(path))} ralf"
    Project(root).owner.update(pinned={})  # installed by a version that pinned nothing
    assert Project(root).command == "ralf"
    assert run("init", "--client", "ralf", "--yes").status == 0
    assert Project(root).command == f"{shlex.quote(str(path))} ralf"
    run("init", "--client", "ralf", "--uninstall", "--yes")
    assert not path.exists() and Project(root).owner.pinned == {}
