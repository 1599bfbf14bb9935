"""`ralf init --client` as a person types it: shown, asked, done, offered, taken back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import storekit
from kit.git import commit, git, repository
from ralf.config import local_config
from ralf.maintenance import ownership
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


def a_session(root: Path, name: str = "0c1f8f2e-0000-4000-8000-000000000001") -> Path:
    """A session that Claude Code has kept of a project."""
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(root))
    path = root / "home" / "projects" / slug / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    storekit.write_session(path, 1_500, name)
    return path


@pytest.mark.ci
def test_a_person_says_yes_or_no(tmp_path: Path) -> None:
    assert "Continue? [Y/n]" in typed(tmp_path, "n\n", "--client", "claude-code")
    assert list(tmp_path.iterdir()) == []
    typed(tmp_path, "y\n", "--client", "claude-code", PATH=os.defpath)
    assert (tmp_path / SETTINGS).exists()
    assert context_of(tmp_path).joinpath("config.yaml").exists()


def test_what_git_would_take_of_this_machine_is_said(tmp_path: Path, run: Run) -> None:
    (tmp_path / ".git").mkdir()
    said = "echo .codex/hooks.json >> .git/info/exclude"
    assert said not in run("--client", "codex", "--dry-run").err
    assert said not in run("--client", "claude-code", "--yes").err
    assert said in run("--client", "codex", "--yes").err


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


def test_an_environment_that_is_swept_away_installs_nothing(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "uv" / "archive-v0" / "x1"))
    ran = run("--client", "claude-code", "--yes")
    ran.complains(2, sys.prefix, "uvx", "uv tool install")
    assert list(tmp_path.iterdir()) == []
    assert run("--client", "claude-code", "--yes", "--shared").status == 0  # the `ralf` of the PATH is another one


# ---- what is offered ----


def test_existing_sessions_are_offered(tmp_path: Path, run: Run) -> None:
    a_session(tmp_path)
    assert "import claude-code" in run("--client", "claude-code", "--yes").err


def test_yes_alone_never_spends_anything(tmp_path: Path, run: Run) -> None:
    run("--client", "claude-code", "--yes")
    assert local_config.local_config_of(Project(tmp_path)).summarizer == ""


def test_choosing_a_model_keeps_all_else_of_the_local_configuration(tmp_path: Path) -> None:
    project = Project(tmp_path)
    ownership.init(project, share=False)
    path = project.local_config_file
    path.write_text("# mine\ntimeout: 60   # seconds\nsummarizer: codex\nverify_timeout: 900")
    storekit.allow(path)
    assert local_config.set_local(project, "summarizer", "claude")
    assert not local_config.set_local(project, "summarizer", "claude")
    text = path.read_text()
    assert text.startswith("# mine\ntimeout: 60   # seconds\n")
    found = local_config.local_config_of(project)
    assert (found.summarizer, found.timeout, found.verify_timeout) == ("claude", 60, 900)


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
