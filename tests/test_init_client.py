"""`ralf init --client` as a person types it: shown, asked, done, offered, taken back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import storekit
from kit.git import commit, git, repository
from ralf.project import Project
from storekit import Cli, Ran, context_of

SETTINGS = ".claude/settings.local.json"
Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """`ralf init` on a project, the one of the test where no other is given."""
    cli = Cli(tmp_path, monkeypatch, capfd)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    return lambda *args, root=None: cli("init", *args, root=root)


def typed(root: Path, answers: str, *args: str, **more: str) -> str:
    """What a person sees who types `ralf init` on a terminal, and these answers, a line each."""
    home = str(root / "home")
    variables = storekit.environment(root / "home", CLAUDE_CONFIG_DIR=home, CODEX_HOME=home, TERM="dumb") | more
    return storekit.on_a_terminal(root, "init", *args, answer=answers, **variables)[1]


@pytest.mark.ci
def test_a_person_says_yes_or_no(tmp_path: Path) -> None:
    assert "Continue? [Y/n]" in typed(tmp_path, "n\n", "--client", "claude-code")
    assert list(tmp_path.iterdir()) == []
    typed(tmp_path, "y\n", "--client", "claude-code", PATH=os.defpath)
    assert (tmp_path / SETTINGS).exists()
    assert context_of(tmp_path).joinpath("config.yaml").exists()


@pytest.mark.ci
@pytest.mark.parametrize("place", [".", "packages/tide", "linked"])
def test_local_settings_are_kept_out_of_git_and_the_exclusion_goes_with_them(
    tmp_path: Path, run: Run, place: str
) -> None:
    (tmp_path / "main" / "packages" / "tide").mkdir(parents=True)
    commit(repository(tmp_path / "main"))
    git(tmp_path / "main", "worktree", "add", "-q", "../linked")
    root = tmp_path / (place if place == "linked" else f"main/{place}")
    exclude = tmp_path / "main" / ".git" / "info" / "exclude"
    exclude.write_text("*.log")
    assert run("--client", "claude-code", "--yes", root=root).status == 0
    assert (root / SETTINGS).is_file()
    assert SETTINGS not in git(root, "status", "--porcelain", "-uall")
    assert run("--client", "claude-code", "--uninstall", "--yes", root=root).status == 0
    assert exclude.read_text() == "*.log"
    run("--client", "claude-code", "--yes", root=root)
    exclude.write_text(f"{exclude.read_text()}*.tmp\n")
    run("--uninstall", "--yes", root=root)
    assert exclude.read_text() == "*.log\n*.tmp\n"


def test_opting_out_takes_out_everything_that_was_put_somewhere(tmp_path: Path, run: Run) -> None:
    (tmp_path / "AGENTS.md").write_text("# Mine\n")
    for args in (("claude-code",), ("claude-code", "--shared"), ("codex",), ("gemini",), ("opencode",), ("agents-md",)):
        assert run("--client", *args, "--yes").status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(".autonomous", ".claude", ".codex", ".gemini", ".opencode", "AGENTS.md"),
    ]
    assert run("--uninstall", "--yes").status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [".autonomous", "AGENTS.md"]
    assert (tmp_path / "AGENTS.md").read_text() == "# Mine\n"
    assert not (context_of(tmp_path) / "config.yaml").exists()
    assert not (context_of(tmp_path) / "installed").exists()


# ---- where it is done ----


def test_a_linked_worktree_has_settings_of_its_own_and_one_store(tmp_path: Path, run: Run) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    commit(repository(main))
    git(main, "worktree", "add", "-q", linked)
    for root in (main, linked):
        assert run("--client", "claude-code", "--yes", root=root).status == 0
        assert (root / SETTINGS).exists()
    assert len(list((context_of(main) / "installed").iterdir())) == 3  # one for git's exclusion of both
    assert not context_of(linked).exists()
    assert run("--client", "claude-code", "--uninstall", "--yes", root=linked).status == 0
    assert not (linked / ".claude").exists()
    assert (main / SETTINGS).exists()
    exclude = main / ".git" / "info" / "exclude"
    assert f"/{SETTINGS}\n" in exclude.read_text()  # the main worktree's need it
    assert run("--client", "claude-code", "--uninstall", "--yes", root=main).status == 0
    assert SETTINGS not in exclude.read_text()


def test_a_repository_cannot_have_brought_what_opting_out_removes(tmp_path: Path, run: Run) -> None:
    """A record names no path, and counts only for the file as it says."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / SETTINGS).write_text('{"model": "m"}')
    (context_of(tmp_path) / "installed").mkdir(parents=True)
    forged = {"path": "/etc/hostname", "sha256": "0" * 64, "ranges": [[0, 5]], "file": True, "folder": True}
    from ralf_integrations.clients import installation

    place = installation._place(Project(tmp_path), tmp_path / SETTINGS)
    place.write_text(json.dumps(forged))
    assert run("--uninstall", "--yes").status == 0
    assert (tmp_path / SETTINGS).read_text() == '{"model": "m"}'
