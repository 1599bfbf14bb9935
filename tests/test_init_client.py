"""`ralf init --client` as a person types it: shown, asked, done, offered, taken back."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ralf
import storekit
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.refining import local_config
from ralf.storage import registry
from ralf.summarize.prompting import ANSWER, MOST_PROMPT
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


def test_the_change_is_shown_and_nothing_done_without_a_yes(tmp_path: Path, run: Run) -> None:
    for args in ((), ("--json",)):
        ran = run("--client", "claude-code", *args)
        assert (ran.status, list(tmp_path.iterdir())) == (2, [])
        assert "--yes" in ran.err
    dry = run("--client", "claude-code", "--dry-run")
    assert dry.status == 0
    assert f"+++ {tmp_path / SETTINGS}" in dry.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("client", "events"), [("claude-code", 9), ("codex", 7), ("gemini", 5)])
def test_the_change_shows_one_entry_and_for_how_many_events_it_is_the_same(
    tmp_path: Path, run: Run, client: str, events: int
) -> None:
    dry = run("--client", client, "--dry-run")
    assert dry.out.count("SessionStart") == 2 and dry.out.count("instant.main()") == 1
    assert f"  +    … the same for {events - 1} events: " in dry.out
    whole = run("--client", client, "--dry-run", "--json").out
    assert whole.count("instant.main()") == events
    run("--client", client, "--yes")
    gone = run("--client", client, "--uninstall", "--dry-run")
    assert f"  -    … the same for {events - 1} events: " in gone.out


def test_opencode_gets_a_plugin_and_loses_it_again(tmp_path: Path, run: Run) -> None:
    for shared in ((), ("--shared",)):
        assert run("--client", "opencode", "--yes", *shared).status == 0
        text = (tmp_path / ".opencode/plugin/ralf.js").read_text()
        assert ('["ralf", "hook", "EVENT", "--client", "opencode"]' in text) == bool(shared)
        assert "nothing to do" in run("--client", "opencode", "--yes", *shared).out
    assert run("--client", "opencode", "--uninstall", "--yes").status == 0
    assert not (tmp_path / ".opencode").exists()


@pytest.mark.slow
def test_a_person_says_yes_or_no(tmp_path: Path) -> None:
    assert "Go on? [Y/n]" in typed(tmp_path, "n\n", "--client", "claude-code")
    assert list(tmp_path.iterdir()) == []
    typed(tmp_path, "y\n", "--client", "claude-code", PATH=os.defpath)
    assert (tmp_path / SETTINGS).exists()
    assert context_of(tmp_path).joinpath("config.yaml").exists()


def test_done_twice_it_changes_nothing_and_taken_out_all_is_as_before(tmp_path: Path, run: Run) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / SETTINGS).write_text('{"model":   "m"}')
    assert run("--client", "claude-code", "--yes").status == 0
    installed = (tmp_path / SETTINGS).read_bytes()
    again = run("--client", "claude-code")
    assert (again.status, again.out.splitlines()[1:-1]) == (0, [f"{context_of(tmp_path)}: nothing to do"])
    assert (tmp_path / SETTINGS).read_bytes() == installed
    gone = run("--client", "claude-code", "--uninstall", "--yes")
    assert gone.status == 0
    assert (tmp_path / SETTINGS).read_text() == '{"model":   "m"}'
    assert (context_of(tmp_path) / "config.yaml").exists()  # the project has still opted in


@pytest.mark.parametrize("empty", [b"", b"\n", b" \r\n\t"])
@pytest.mark.parametrize(("client", "name"), [("claude-code", SETTINGS), ("codex", ".codex/hooks.json")])
def test_an_empty_settings_file_is_an_empty_one_and_comes_back_as_it_was(
    tmp_path: Path, run: Run, client: str, name: str, empty: bytes
) -> None:
    path = tmp_path / name
    path.parent.mkdir()
    path.write_bytes(empty)
    assert run("--client", client, "--yes").status == 0
    assert json.loads(path.read_bytes())["hooks"]["SessionStart"]
    assert "nothing to do" in run("--client", client).out
    assert run("--client", client, "--uninstall", "--yes").status == 0
    assert path.read_bytes() == empty


def test_what_git_would_take_of_this_machine_is_said(tmp_path: Path, run: Run) -> None:
    (tmp_path / ".git").mkdir()
    said = "echo .codex/hooks.json >> .git/info/exclude"
    assert said not in run("--client", "codex", "--dry-run").err
    assert said not in run("--client", "claude-code", "--yes").err
    assert said in run("--client", "codex", "--yes").err


@pytest.mark.parametrize("place", [".", "packages/tide", "linked"])
def test_local_settings_are_kept_out_of_git_and_the_exclusion_goes_with_them(
    tmp_path: Path, run: Run, place: str
) -> None:
    def git(*args: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *args]
        return subprocess.run(command, cwd=tmp_path / "main", check=True, capture_output=True, text=True).stdout

    (tmp_path / "main" / "packages" / "tide").mkdir(parents=True)
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    git("worktree", "add", "-q", "../linked")
    root = tmp_path / (place if place == "linked" else f"main/{place}")
    exclude = tmp_path / "main" / ".git" / "info" / "exclude"
    exclude.write_text("*.log")
    assert run("--client", "claude-code", "--yes", root=root).status == 0
    assert (root / SETTINGS).is_file()
    seen = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=root, capture_output=True, text=True).stdout  # noqa: S607
    assert SETTINGS not in seen
    assert "nothing to do" in run("--client", "claude-code", root=root).out
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


def test_opting_out_leaves_settings_alone_that_others_wrote(tmp_path: Path, run: Run) -> None:
    run("--yes")
    (tmp_path / ".claude").mkdir()
    (tmp_path / SETTINGS).write_text("// no JSON of ours\n{}")
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/hooks.json").write_text("[]")
    assert run("--uninstall", "--yes").status == 0
    assert (tmp_path / SETTINGS).read_text() == "// no JSON of ours\n{}"


def test_json_says_what_was_done_to_which_file(tmp_path: Path, run: Run) -> None:
    ran = run("--client", "codex", "--yes", "--json")
    steps = ran.json()
    assert [Path(step["path"]).name for step in steps[1:]] == ["config.yaml", ".gitignore", "hooks.json"]
    assert Path(steps[0]["path"]) == registry.folder()
    assert all(step["done"] for step in steps)
    assert '"PostToolUse"' in steps[-1]["diff"].replace('\\"', '"')
    assert "/hooks" in ran.err  # Codex runs none before they are trusted


def test_an_environment_that_is_swept_away_installs_nothing(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "uv" / "archive-v0" / "x1"))
    ran = run("--client", "claude-code", "--yes")
    ran.complains(2, sys.prefix, "uvx", "uv tool install")
    assert list(tmp_path.iterdir()) == []
    assert run("--client", "claude-code", "--yes", "--shared").status == 0  # the `ralf` of the PATH is another one


@pytest.mark.parametrize(
    "args",
    [
        ("--shared",),
        ("--existing",),
        ("--plugin", "x"),
        ("--client", "codex", "--plugin", "x"),
        ("--client", "agents-md", "--shared"),
        ("--client", "claude-code", "--uninstall", "--summarizer", "claude"),
        ("--client", "claude-code", "--uninstall", "--plugin", "x"),
        ("--client", "emacs"),
    ],
    ids=" ".join,
)
def test_options_that_make_no_sense_together_are_refused(tmp_path: Path, run: Run, args: tuple[str, ...]) -> None:
    ran = run(*args, "--yes")
    assert (ran.status, list(tmp_path.iterdir())) == (2, [])


# ---- what is offered ----


def test_existing_sessions_are_offered_and_taken_when_that_is_wanted(tmp_path: Path, run: Run) -> None:
    a_session(tmp_path)
    a_session(tmp_path, "0c1f8f2e-0000-4000-8000-000000000002")
    ran = run("--client", "claude-code", "--yes")
    assert "2 existing sessions of this project can be checkpointed (offline, free)" in ran.err
    assert not list(context_of(tmp_path).glob("routes/*.md"))
    ran = run("--client", "claude-code", "--yes", "--existing")
    assert ran.status == 0, ran.err
    assert "2 sessions are now 2 checkpoints in" in ran.err
    assert ralf.list_routes(root=tmp_path)
    assert "no existing sessions" in run("--client", "claude-code", "--yes", "--existing").err


@pytest.mark.slow
def test_on_a_terminal_both_are_asked_for_and_a_model_is_off_by_default(tmp_path: Path) -> None:
    a_session(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\n")
    (programs / "claude").chmod(0o755)
    seen = typed(tmp_path, "y\ny\n\n", "--client", "claude-code", PATH=f"{programs}:{os.defpath}")
    assert "Checkpoint 1 existing session of this project here" in seen
    assert "offline, free" in seen
    assert "tokens" in seen and "Have it do so? [y/N]" in seen
    assert ralf.list_routes(root=tmp_path)
    assert not local_config.local_config_of(Project(tmp_path)).summarizer
    again = typed(tmp_path, "\n\n\n", "--client", "claude-code", PATH=f"{programs}:{os.defpath}")
    assert "Have it do so?" not in again  # it is offered once


def test_yes_alone_never_spends_anything(tmp_path: Path, run: Run) -> None:
    run("--client", "claude-code", "--yes")
    assert local_config.local_config_of(Project(tmp_path)).summarizer == ""


def test_a_model_that_is_named_is_written_into_the_local_configuration(tmp_path: Path, run: Run) -> None:
    ran = run("--client", "claude-code", "--yes", "--summarizer", "claude")
    assert ran.status == 0, ran.err
    price = f"about {MOST_PROMPT:,} tokens read, {ANSWER:,} written (an estimate)"
    assert f"one call for each 50,000 tokens of session or less: {price}" in ran.err
    found = local_config.local_config_of(Project(tmp_path))
    assert (found.summarizer, found.project) == ("claude", str(tmp_path))
    assert stat.S_IMODE((context_of(tmp_path) / "config.local.yaml").stat().st_mode) == 0o600


def test_choosing_a_model_keeps_all_else_of_the_local_configuration(tmp_path: Path) -> None:
    project = Project(tmp_path)
    ownership.init(project, share=False)
    path = project.local_config_file
    key = "ab" * 32
    path.write_text(
        "# mine\ntimeout: 60   # seconds\nsummarizer: codex\n"
        f'project: {json.dumps(str(tmp_path))}\nredaction_key: "{key}"'
    )
    path.chmod(0o600)
    assert local_config.choose_summarizer(project, "claude")
    assert not local_config.choose_summarizer(project, "claude")
    text = path.read_text()
    assert text.startswith("# mine\ntimeout: 60   # seconds\n")
    found = local_config.local_config_of(project)
    assert (found.summarizer, found.timeout, found.redaction_key) == ("claude", 60, key)


def test_a_local_configuration_that_others_may_write_is_not_changed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    ownership.init(project, share=False)
    project.local_config_file.write_text("timeout: 60\n")
    project.local_config_file.chmod(0o644)
    with pytest.raises(UsageError):
        local_config.choose_summarizer(project, "claude")
    assert project.local_config_file.read_text() == "timeout: 60\n"


# ---- where it is done ----


def test_a_linked_worktree_has_settings_of_its_own_and_one_store(tmp_path: Path, run: Run) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    git = ["git", "-C", str(main), "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q", str(main)], check=True)  # noqa: S607
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(linked)], check=True)
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
