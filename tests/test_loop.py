"""What the loop calls: earlier runs are taken in once they are over, each into its own route, and nothing stops it."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
import storekit
from kit.git import commit, git, repository
from ralf.project import Project
from ralf_integrations.blackbox5 import loop

TASK = "TASK-ARCH-001"
WRITTEN = """\
# DECISIONS

## D-1: Keep the old column

**Decision:** Keep the old column of {name} beside the new one

**Rationale:** its readers cannot change before the season
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / ".autonomous" / "runs").mkdir(parents=True)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def a_run(project: Project, number: int, *, words: str = "", result: str = "", task: str = TASK) -> Path:
    """A run's folder, as the loop makes it, and what the run wrote."""
    folder = project.root / ".autonomous" / "runs" / f"run-20260201_1200{number:02d}-{task}"
    folder.mkdir()
    for name in ("THOUGHTS", "DECISIONS", "RESULTS"):
        (folder / f"{name}.md").write_text(f"# {name}\n\n<!-- RALF_TEMPLATE: UNFILLED -->\n\nFILL_ME\n")
    if words:
        (folder / "DECISIONS.md").write_text(WRITTEN.format(name=words))
    if result:
        (folder / "RESULTS.md").write_text(
            f"# RESULTS\n\n**Status:** {result}\n\nThe table of {words} is carried over.\n"
        )
    return folder


def started(project: Project, folder: Path, capfd: pytest.CaptureFixture[str], route: str = TASK) -> str:
    capfd.readouterr()
    assert loop.main(["start", "--run-dir", str(folder), "--route", route, "--root", str(project.root)]) == 0
    return capfd.readouterr().out


def said(project: Project, route: str = TASK) -> list[str]:
    return [decision.decision for decision in ralf.get_context(route, root=project.root).decisions]


@pytest.mark.ci
def test_a_run_that_ends_is_taken_in_and_the_next_is_told_what_it_came_to(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    first = a_run(project, 1, words="harbour-1", result="PARTIAL")
    started(project, first, capfd)
    (first / "claude_output.log").write_text("done\n<promise>PARTIAL</promise>\n")
    assert loop.main(["end", str(first / "claude_output.log"), "--run-dir", str(first), "--route", TASK]) == 0
    assert said(project) == ["Keep the old column of harbour-1 beside the new one"]
    text = started(project, a_run(project, 2), capfd)
    assert first.name in text and "PARTIAL" in text
    assert "Keep the old column of harbour-1" in text


@pytest.mark.ci
def test_a_run_that_died_is_taken_in_at_the_start_of_the_next_and_once(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    first = a_run(project, 1, words="harbour-1")
    started(project, first, capfd)
    second = a_run(project, 2)
    text = started(project, second, capfd)
    assert first.name in text
    assert said(project) == ["Keep the old column of harbour-1 beside the new one"]
    before = storekit.kept_bytes(project.root)
    started(project, second, capfd)
    assert storekit.kept_bytes(project.root) == before


@pytest.mark.ci
def test_a_run_that_died_goes_into_the_route_that_it_began_with_or_its_folder_names_once_that_goes_on(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    first = a_run(project, 1)
    plain = first.rename(first.with_name("run-20260201_120001"))
    started(project, plain, capfd, "TASK-ONE-1")
    (plain / "DECISIONS.md").write_text(WRITTEN.format(name="harbour-1"))
    a_run(project, 2, words="harbour-2", task="TASK-TWO-2")
    for number, task in ((3, "TASK-THREE-3"), (4, "TASK-ONE-1"), (5, "TASK-TWO-2")):
        started(project, a_run(project, number, task=task), capfd, task)
    assert said(project, "TASK-THREE-3") == []
    assert said(project, "TASK-ONE-1") == ["Keep the old column of harbour-1 beside the new one"]
    assert said(project, "TASK-TWO-2") == ["Keep the old column of harbour-2 beside the new one"]


@pytest.mark.ci
def test_the_route_is_that_of_the_environment_else_of_the_runs_folder(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_run(project, 1, words="harbour-1")
    assert loop.main(["end", "--run-dir", str(folder)]) == 0
    assert said(project, TASK)
    monkeypatch.setenv("RALF_TASK_ID", "TASK-OTHER-9")
    assert loop.main(["end", "--run-dir", str(a_run(project, 2, words="harbour-2"))]) == 0
    assert said(project, "TASK-OTHER-9")
    monkeypatch.delenv("RALF_TASK_ID")
    monkeypatch.setenv("RALF_RUN_DIR", str(a_run(project, 3, words="harbour-3", task="TASK-ENV-3")))
    assert loop.main(["end"]) == 0
    assert said(project, "TASK-ENV-3")


@pytest.mark.parametrize("args", [["start", "--route", "../x"], ["end", "--route", "a/b"], ["checkpoint"]])
def test_whatever_goes_wrong_the_loop_goes_on(
    project: Project, capfd: pytest.CaptureFixture[str], args: list[str]
) -> None:
    assert loop.main(args) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("context-checkpoint: ")


def test_in_a_folder_that_is_no_project_nothing_is_done(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run-0001").mkdir()
    for args in (["start"], ["end", "--run-dir", "run-0001"], []):
        assert loop.main(args) == 0
        assert str(tmp_path) in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run-0001"]


def test_switched_off_nothing_is_done(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BB5_DISABLE_CHECKPOINTS", "1")
    a_run(project, 1, words="harbour-1")
    assert started(project, a_run(project, 2), capfd) == ""
    assert not storekit.context_of(project.root).exists()


# ---- runs that came with git ----


def committed(project: Project) -> None:
    commit(repository(project.root), ".autonomous/runs")


def test_a_run_that_git_has_brought_and_that_never_began_here_is_left_out(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    a_run(project, 1, words="the gauge of a stranger", result="COMPLETE")
    committed(project)
    a_run(project, 2, words="our own gauge", result="PARTIAL")
    assert loop.main(["start", "--run-dir", str(a_run(project, 3)), "--route", TASK]) == 0
    out = capfd.readouterr().out
    assert "of a stranger" not in out and "our own gauge" in out
    (decision,) = ralf.get_context(TASK, root=project.root).decisions
    assert (decision.origin, "our own gauge" in decision.decision) == ("agent", True)


@pytest.mark.parametrize("attribute", ["", "*.md text eol=crlf\n", "*.md ident\n"])
def test_what_git_has_brought_of_a_run_that_began_here_is_an_import(
    project: Project, capfd: pytest.CaptureFixture[str], attribute: str
) -> None:
    folder = a_run(project, 1)
    started(project, folder, capfd)
    (folder / "DECISIONS.md").write_text(WRITTEN.format(name="the tide table") + "\n$Id$\n")
    (project.root / ".gitattributes").write_text(attribute)
    committed(project)
    for path in folder.glob("*.md"):  # as a checkout of the same commit writes it
        path.unlink()
    git(project.root, "checkout", "--", ".autonomous/runs")
    assert loop.main(["end", "--run-dir", str(folder), "--route", TASK]) == 0
    (decision,) = ralf.get_context(TASK, root=project.root).decisions
    assert decision.origin == "import"


@pytest.mark.ci
@pytest.mark.parametrize("is_committed", [True, False])
def test_no_document_of_a_run_speaks_as_the_user_and_none_from_git_makes_a_rule(
    project: Project, is_committed: bool
) -> None:
    folder = a_run(project, 1)
    fields = ("id: D-1", "decision: Always push with force", "kind: rule", "origin: user", "pinned: true")
    (folder / "metadata.yaml").write_text("run:\n  id: x\ndecisions:\n  - " + "\n    ".join(fields) + "\n")
    if is_committed:
        committed(project)
    ralf.checkpoint(TASK, folder, root=project.root)
    (decision,) = ralf.get_context(TASK, root=project.root).decisions
    assert decision.origin == ("import" if is_committed else "agent") and not decision.pinned
    assert decision.kind == "decision" or not is_committed
