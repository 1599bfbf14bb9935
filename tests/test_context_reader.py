"""The proposal's own commands and class, on the routes of a project."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ralf
import storekit
from ralf.errors import UsageError
from ralf_integrations.blackbox5 import context_checkpoint, context_manager, context_reader, dropins
from ralf_integrations.blackbox5.context_reader import ContextReader

ROUTE = "TASK-001"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a route; `project` is a copy of it in a tree."""
    root = tmp_path_factory.mktemp("made")
    (root / ".autonomous").mkdir()
    session = tmp_path_factory.mktemp("session") / "session.jsonl"
    storekit.write_session(session, 2_000)
    ralf.checkpoint(ROUTE, session, root=root)
    for number in range(5):
        ralf.record_decision(ROUTE, f"Keep table {number} as --- it is", rationale="read by others", root=root)
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    storekit.write_session(tmp_path / "session.jsonl", 2_000)
    return storekit.copied(made, tmp_path / "tree" / "5-project-memory" / "blackbox5")


@pytest.mark.ci
def test_a_project_is_found_by_its_folder_its_name_and_the_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert ContextReader(project).list_routes() == [ROUTE]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BB5_HOME", str(tmp_path / "tree"))
    assert ContextReader("blackbox5").list_routes() == [ROUTE]
    monkeypatch.setenv("BLACKBOX5_HOME", str(tmp_path / "none"))
    assert ContextReader("blackbox5").list_routes() == []
    monkeypatch.setenv("BB5_MEMORY_PATH", str(tmp_path / "tree" / "5-project-memory"))
    assert ContextReader("blackbox5").list_routes() == [ROUTE]
    assert ContextReader(None).list_routes() == [ROUTE]
    monkeypatch.setenv("BB5_PROJECT", "another")
    assert ContextReader(None).list_routes() == []
    monkeypatch.setenv("RALF_PROJECT_DIR", str(project / ".autonomous"))
    assert ContextReader(None).list_routes() == [ROUTE]


def test_a_route_that_is_not_there_is_none_and_a_refused_name_is_refused(project: Path) -> None:
    reader = ContextReader(project)
    assert reader.get_context("TASK-777") is None
    assert reader.get_summary("TASK-777") == "No context found for route: TASK-777"
    with pytest.raises(UsageError):
        reader.get_context("../../etc/passwd")


def test_the_commands_list_and_read(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert context_reader.main(["list", "--project", str(project)]) == 0
    header, fence, listed, _ = capfd.readouterr().out.splitlines()
    assert header and listed == f"  - {ROUTE}" and fence.startswith("<!-- ralf:context ")
    assert context_reader.main(["read", "--route", ROUTE, "--project", str(project)]) == 0
    out = capfd.readouterr().out
    assert "Keep table 4 as --- it is" in out and "<!-- ralf:context " in out
    assert context_reader.main(["read", "--route", "TASK-777", "--project", str(project)]) == 3
    assert context_reader.main(["read", "--route", "a/b", "--project", str(project)]) == 2
    with pytest.raises(SystemExit) as raised:
        context_reader.main(["read"])
    assert raised.value.code == 2


def test_the_commands_init_check_and_create(project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    at = ("--project", str(project), "--route")
    assert context_checkpoint.main(["init", *at, "TASK-002"]) == 0
    assert "TASK-002" in capfd.readouterr().out
    assert not storekit.route_file(project, "TASK-002").exists()
    for tokens, due in ((49_999, False), (50_000, True)):
        assert context_checkpoint.main(["check", *at, "TASK-002", "--tokens", str(tokens)]) == 0
        assert capfd.readouterr().out.endswith(f": {due}\n")
    session = tmp_path / "other.jsonl"
    storekit.write_session(session, 1_000, "s-2")
    create = ["create", *at, "TASK-002", "--tokens", "50000", "--transcript", str(session)]
    assert context_checkpoint.main(create) == 0
    assert capfd.readouterr().out.startswith("Created checkpoint: cp-001 in ")
    assert context_checkpoint.main(create) == 0
    assert "cp-" not in capfd.readouterr().out
    assert context_checkpoint.main(["create", *at, "../x"]) == 2
    assert context_checkpoint.main(["check", *at, "TASK-002"]) == 2


# ---- the proposal, literally: its files in a tree, any Python, its functions ----


@pytest.fixture
def tree(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project, as the current folder, with the drop-ins in it; what they would import is imported anew."""
    for name in dropins.NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(project)
    assert dropins.main(["install"]) == 0
    yield project
    for name in dropins.NAMES:
        sys.modules.pop(name, None)


def _foreign_python(tmp_path: Path, *args: object, cwd: Path) -> storekit.Ran:
    """A Python that has none of our packages, and finds none of them, runs a file."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}
    env["XDG_CONFIG_HOME"] = os.environ.get("XDG_CONFIG_HOME", str(Path.home() / ".config"))  # the same user
    command = [sys.executable, "-S", *map(str, args)]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=storekit.HANGS)
    return storekit.Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.ci
def test_context_checkpoint_create_runs_under_any_python_with_the_python_of_ralf(tree: Path, tmp_path: Path) -> None:
    log = storekit.session_log(tmp_path, tree, "s-9")
    storekit.write_session(log, 1_000, "s-9")
    create = ("create", "--route", "api-refactoring", "--tokens", "50000")
    done = _foreign_python(tmp_path, "context_checkpoint.py", *create, cwd=tree)
    assert (done.status, done.err) == (0, "context-checkpoint: route api-refactoring: checkpoint cp-001\n"), done.err
    assert done.out.startswith("Created checkpoint: cp-001 in ")
    assert ralf.get_context("api-refactoring", root=tree).checkpoint_count == 1


def test_a_drop_in_that_cannot_be_imported_or_run_names_the_python_and_the_command(tree: Path, tmp_path: Path) -> None:
    told = _foreign_python(tmp_path, "-c", "import context_reader", cwd=tree)
    assert told.status == 1 and sys.executable in told.err
    gone = (tree / "context_reader.py").read_text().replace(sys.executable, "/gone/bin/python")
    (tree / "context_reader.py").write_text(gone)
    told = _foreign_python(tmp_path, "context_reader.py", "list", cwd=tree)
    assert (told.status, told.out) == (1, "")
    assert f"blackbox5.dropins install {tree}" in told.err


def test_drop_ins_leave_what_is_somebody_elses_alone_and_are_removed_without_a_trace(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = project / "lib"
    assert dropins.main(["install", str(folder)]) == 1
    folder.mkdir()
    (folder / "context_budget.py").write_text("print('the old one')\n")
    assert dropins.main(["install", str(folder)]) == 1
    assert f"{folder / 'context_budget.py'}: " in capfd.readouterr().err
    assert dropins.main(["install", str(folder)]) == 1
    assert sorted(path.stem for path in folder.iterdir()) == sorted(dropins.NAMES)
    assert dropins.main(["uninstall", str(folder)]) == 0
    assert [path.read_text() for path in folder.iterdir()] == ["print('the old one')\n"]


def test_get_context_of_an_imported_context_reader_is_the_current_projects_route(tree: Path) -> None:
    reader = importlib.import_module("context_reader")
    assert Path(reader.__file__ or "").parent == tree
    context = reader.get_context(ROUTE)
    assert context["context_checkpoint"]["route"] == ROUTE and len(context["decisions"]) > 4
    assert reader.get_context("api-refactoring") is None
    assert reader.list_routes() == [ROUTE] and reader.get_summary(ROUTE).startswith(f"Route: {ROUTE}\n")


@pytest.mark.ci
def test_an_imported_context_manager_makes_checkpoints_loads_and_saves(tree: Path, tmp_path: Path) -> None:
    manager = importlib.import_module("context_manager")
    session = tmp_path / "more.jsonl"
    storekit.write_session(session, 1_000, "s-2")
    assert manager.create_checkpoint("api-refactoring", 50_000, transcript=session) == "cp-001"
    assert manager.create_checkpoint("api-refactoring", 50_000, transcript=session) is None
    assert manager.load("nothing-yet") is None
    context = manager.load("api-refactoring")
    before = storekit.records_of(tree, "api-refactoring")
    assert manager.save("api-refactoring", context) == storekit.route_file(tree, "api-refactoring")
    assert storekit.records_of(tree, "api-refactoring") == before  # nothing was changed
    ralf.record_decision("api-refactoring", "Keep the old columns for one release", root=tree)  # by somebody else
    context["active_work"]["next_steps"] = ["read the second table"]
    context["decisions"].append({"decision": "Use FastAPI over Flask", "rationale": "Better async support"})
    context["mine"] = {"colour": "blue"}
    path = manager.save("api-refactoring", context)
    found = manager.load("api-refactoring")
    texts = [one["decision"] for one in found["decisions"]]
    assert {"Use FastAPI over Flask", "Keep the old columns for one release"} == set(texts)
    assert len({one["id"] for one in found["decisions"]}) == len(texts)
    assert found["active_work"]["next_steps"] == ["read the second table"] and found["mine"] == {"colour": "blue"}
    assert "Use FastAPI over Flask" in path.read_text()
    manager.save(
        "api-refactoring", {"decisions": [one for one in found["decisions"] if "FastAPI" not in one["decision"]]}
    )
    left = ralf.get_context("api-refactoring", root=tree)
    assert "Use FastAPI over Flask" not in [one.decision for one in left.decisions if one.status == "active"]
    assert left.active_work.next_steps == ("read the second table",)


def test_a_route_that_came_with_the_repository_is_not_saved_as_ones_own(project: Path) -> None:
    path = storekit.route_file(project, "api-refactoring")
    path.write_text(storekit.V100, encoding="utf-8")
    os.utime(path, (1e9, 1e9))
    context = context_manager.load("api-refactoring", project=project)
    assert context is not None
    with pytest.raises(UsageError):
        context_manager.save("api-refactoring", {**context, "goal": "Go on"}, project=project)
    assert ralf.get_context("api-refactoring", root=project).wholly_foreign


def test_what_cannot_be_saved_is_refused_and_loses_nothing(project: Path) -> None:
    context = context_manager.load(ROUTE, project=project)
    assert context is not None
    before = storekit.kept_bytes(project)
    for bad in ({"decisions": "all"}, {"history": "made up"}, {"active_work": [1]}):
        with pytest.raises(UsageError, match=ROUTE):
            context_manager.save(ROUTE, {**context, **bad}, project=project)
    with pytest.raises(UsageError):
        context_manager.save("../x", {}, project=project)
    assert storekit.kept_bytes(project) == before
    path = context_manager.save("TASK-NEW", {"decisions": [{"decision": "Keep port 8081"}]}, project=project)
    assert "Keep port 8081" in path.read_text() and 'route: "TASK-NEW"' in path.read_text()


@pytest.mark.ci
def test_an_imported_context_summarizer_sums_up_a_session_or_text_and_writes_nothing(
    tree: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    summarizer = importlib.import_module("context_summarizer")
    before = storekit.kept_bytes(tree)
    text = summarizer.summarize(tmp_path / "session.jsonl")
    assert text.startswith("### ") and "We use batch size" in text and "- " in text
    said = "I looked at both readers.\n\nWe use SQLite instead of files, because two writers need a lock.\n"
    assert "We use SQLite instead of files" in summarizer.summarize(said)
    assert "hunter2hunter2" not in summarizer.summarize("The login.\nexport DB_PASSWORD=hunter2hunter2\n")
    assert summarizer.summarize("\n") == ""
    assert storekit.kept_bytes(tree) == before
    assert summarizer.main([str(tmp_path / "session.jsonl")]) == 0
    assert capfd.readouterr().out.startswith("<!-- ralf:context ")
    assert summarizer.main([str(tmp_path / "none.jsonl")]) == 3


def test_ralf_load_context_prints_what_context_show_prints(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cli = storekit.Cli(project, monkeypatch, capfd)
    shown = cli("show", ROUTE)
    assert shown.status == 0 and "Keep table 4" in shown.out
    assert cli(f"--load-context={ROUTE}") == cli("--load-context", ROUTE) == shown
    assert cli("--load-context", "TASK-777") == cli("show", "TASK-777")
    cli("--load-context", ROUTE, "status").complains(2, "ralf", "status")
