"""What this machine may run: read from a file that is the user's own, never from one that came with a clone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import storekit
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
