"""What this machine may run: read from a file that is the user's own, never from one that came with a clone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import storekit
from kit.git import commit, git, repository
from ralf.config import local_config
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.project import Project
from storekit import context_of


def write(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "config.local.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def store_of(root: Path) -> Path:
    folder = root / ".autonomous" / "context"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "mode",
    [
        0o644,
        0o620,
        0o666,
    ],
)
def test_a_file_that_others_may_touch_is_refused_with_what_to_type(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path, "summarizer: claude\n", mode)
    with pytest.raises(UsageError, match="others may read or write it") as caught:
        local_config.load_local_config(path)
    assert caught.value.hint == f"chmod 600 {path}"


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target = write(tmp_path / "there", "summarizer: claude\n")
    (tmp_path / "config.local.yaml").symlink_to(target)
    with pytest.raises(UsageError, match="symbolic link"):
        local_config.load_local_config(tmp_path / "config.local.yaml")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "summarizer: claude\n")
    os.chown(path, 12_345, -1)
    with pytest.raises(UsageError, match="belongs to somebody else"):
        local_config.load_local_config(path)


@pytest.mark.parametrize(
    "text",
    [
        *("summariser: claude", "summarizer: gpt", "summarizer: command", "summarizer: command\ncommand: []"),
        "command: rm -rf",
        *("timeout: 0", "timeout: soon", "verify_commands: perhaps", "verify_timeout: 0", "daily_cap: much"),
        *("daily_cap: 2,50 USD", "summarizer: codex\ndaily_cap: 5 USD", "daily_cap: $5 tokens"),
    ],
)
def test_a_value_that_makes_no_sense_names_file_and_key(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text + "\n")
    with pytest.raises(UsageError) as caught:
        local_config.load_local_config(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert any(word in str(caught.value) for word in text.splitlines()[-1].split(": "))


RUNS = "summarizer: command\ncommand: [touch, /tmp/owned]\n"


def refused(root: Path) -> UsageError:
    """The error with which a project's file is refused."""
    with pytest.raises(UsageError, match=r"[Nn]othing in it is run") as caught:
        local_config.local_config_of(Project(root))
    assert str(caught.value).startswith(f"{root}/.autonomous/context/config.local.yaml: ")
    return caught.value


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_clone_can_never_make_us_run_something(tmp_path: Path, umask: int) -> None:
    """Also under a umask that makes each file of a clone private."""
    origin = tmp_path / "origin"
    write(store_of(origin), RUNS)
    commit(repository(origin), ".")
    old = os.umask(umask)
    try:
        git(tmp_path, "clone", "-q", origin, "clone")
    finally:
        os.umask(old)
    with pytest.raises(UsageError, match=r"you have not allowed it|others may read"):
        local_config.local_config_of(Project(tmp_path / "clone"))


@pytest.mark.parametrize("named", ["", ".", "/proc/self/cwd", "ROOT"])
@pytest.mark.parametrize("opted_in", ["", "before", "after"])
def test_a_file_that_an_archive_brings_runs_nothing_and_no_hint_makes_it_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, opted_in: str
) -> None:
    """It has the user's own name and mode 0600, and may guess the folder."""
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    if opted_in == "before":
        ownership.init(project, share=False)
    line = f"project: {named.replace('ROOT', str(tmp_path))}\n" if named else ""
    path = write(context_of(tmp_path), line + RUNS)
    if opted_in == "after":
        ownership.init(project, share=False)
    assert refused(tmp_path).hint == f"if you did not write it: rm {path}"


def test_a_file_runs_what_its_user_has_allowed_byte_by_byte(tmp_path: Path) -> None:
    path = storekit.allow(write(store_of(tmp_path), RUNS))
    assert local_config.local_config_of(Project(tmp_path)).summarizer == "command"
    path.write_text(RUNS.replace("owned", "other"))
    assert refused(tmp_path).hint == "if you changed it: ralf trust config.local.yaml"
    path.write_text(RUNS)
    assert local_config.local_config_of(Project(tmp_path)).summarizer == "command"


def test_what_is_allowed_for_one_project_is_allowed_for_no_copy_of_it(tmp_path: Path) -> None:
    ownership.init(Project(tmp_path / "one"), share=False)
    storekit.allow(write(context_of(tmp_path / "one"), RUNS))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    refused(tmp_path / "two")
    (tmp_path / "one").rename(tmp_path / "three")
    ownership.init(Project(tmp_path / "three"), share=False)  # which takes the registration along
    refused(tmp_path / "three")


@pytest.mark.ci
def test_a_person_at_a_terminal_allows_a_file_that_they_are_shown(tmp_path: Path) -> None:
    ownership.init(Project(tmp_path), share=False)
    write(context_of(tmp_path), RUNS)
    assert trust(tmp_path).status == 2
    refused(tmp_path)
    status, out = storekit.on_a_terminal(tmp_path, "trust", answer="y\n", CLAUDECODE="1")
    assert status == 2, out
    refused(tmp_path)
    status, out = storekit.on_a_terminal(tmp_path, "trust", answer="y\n")
    assert status == 0 and "command: [touch, /tmp/owned]" in out
    assert local_config.local_config_of(Project(tmp_path)).summarizer == "command"
    assert "no content from elsewhere" in trust(tmp_path).out


def trust(root: Path) -> storekit.Ran:
    """`ralf trust` without a terminal."""
    return storekit.process("trust", cwd=root)
