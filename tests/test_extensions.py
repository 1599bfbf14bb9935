"""Extensions: what another distribution registers is used where ralf's own answers end, and can break nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import handingkit
import ralf
import storekit
from ralf import environment, extensions, routing
from ralf.errors import DamagedTranscript, UsageError
from ralf.project import Project
from ralf.transcripts.reader import open_transcript

HARBOUR = """
import os
from pathlib import Path

from ralf.errors import DamagedTranscript
from ralf.transcripts.notes import Notes, note, session_of


def read(path, head, *, root, logged):
    if head is not None:
        if not head.data.startswith(b"HARBOUR\\0"):
            return None
        return Notes(path, session_of(path, root), [note("The binary log names the lighthouse.")], format="harbour")
    if not (path / "pilot.txt").exists():
        raise DamagedTranscript(path, "holds no pilot.txt")
    words = (path / "pilot.txt").read_text()
    fields = {"decision": {"decision": "Moor at the east quay", "rationale": "the west one silts up"}}
    return Notes(path, session_of(path, root), [note(words, path="pilot.txt", line=1, **fields)], format="harbour")


def route(root):
    named = os.environ.get("HARBOUR_BERTH", "")
    return (named, "$HARBOUR_BERTH") if named else None


class Runs:
    variable_prefixes = ("HARBOUR_",)

    def current_run(self, root):
        return os.environ.get("HARBOUR_WATCH", "")

    def current_folder(self, root):
        return None

    def earlier_folders(self, project, route):
        return [Path(project.root, "watches", route)]


runs = Runs()
"""
ENTRY_POINTS = """
[console_scripts]
harbour = harbour:main

# what follows is for ralf
[ralf.transcripts]
harbour = harbour:read

[ralf.route_rules]
harbour=harbour : route
[ralf.runs]
harbour = harbour:runs [quay]
[ralf_integrations.blackbox5.runs.others]
none = harbour:nothing
"""
PATHS = {
    "harbour.py": HARBOUR,
    "harbour_pilot-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: harbour-pilot\nVersion: 1.0\n",
    "harbour_pilot-1.0.dist-info/entry_points.txt": ENTRY_POINTS,
}


def forget() -> None:
    extensions._installed.cache_clear()
    extensions._loaded.cache_clear()
    extensions.problems.clear()
    sys.modules.pop("harbour", None)


@pytest.fixture
def fresh() -> Iterator[None]:
    forget()
    yield
    forget()


def installed(site: Path, **others: str) -> Path:
    """A folder as pip leaves it that has put a distribution there; `others`: the contents of files, instead."""
    for name, text in (PATHS | {f"{name}.py": text for name, text in others.items()}).items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return site


def project_in(folder: Path) -> Project:
    folder.mkdir()
    return handingkit.project(folder)


@pytest.fixture
def harbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path / "site")))
    forget()


def test_a_folder_that_only_an_extension_reads_becomes_a_checkpoint(harbour: None, tmp_path: Path) -> None:
    project = project_in(tmp_path / "p")
    watch = project.root / "watches" / "first"
    watch.mkdir(parents=True)
    (watch / "pilot.txt").write_text("The pilot has brought the tanker in.")
    report = ralf.checkpoint("quay", watch, root=project.root)
    assert report.checkpoints and extensions.problems == []
    found = ralf.get_context("quay", root=project.root)
    assert [one.decision for one in found.decisions] == ["Moor at the east quay"]
    assert found.checkpoint_history[0].session == "watches/first"


def test_an_extensions_rule_chooses_the_route_after_a_named_one_before_the_sessions(
    harbour: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = project_in(tmp_path / "p")
    routing.use(project, "chosen", session="")
    assert routing.choose(project, session="") == ("chosen", routing.CHOSEN)
    monkeypatch.setenv("HARBOUR_BERTH", "berth-9")
    assert routing.choose(project, session="") == ("berth-9", "$HARBOUR_BERTH")
    assert routing.choose(project, session="").is_chosen
    assert routing.choose(project, "named").route == "named"
    monkeypatch.setenv("BB5_TASK_ID", "TASK-5")  # blackbox5 comes before harbour
    assert routing.choose(project, session="") == ("TASK-5", "$BB5_TASK_ID")
    monkeypatch.delenv("BB5_TASK_ID")
    monkeypatch.setenv("HARBOUR_BERTH", "../x")
    with pytest.raises(UsageError):
        routing.choose(project, session="")


BROKEN = "def read(*_, **__): raise ValueError('silted up')\ndef route(root): return 5 / 0\nruns = object()\n"


def test_an_extension_that_fails_is_told_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path / "site", harbour=BROKEN)))
    forget()
    project = project_in(tmp_path / "p")
    folder = tmp_path / "p" / "runs" / "run-0001"
    folder.mkdir(parents=True)
    monkeypatch.setenv("RALF_RUN_DIR", str(folder))
    assert open_transcript(folder).format == "run folder"  # blackbox5 is asked first
    assert routing.choose(project).rule == routing.DEFAULT
    assert project.run == "runs/run-0001"
    assert routing.choose(project).rule == routing.DEFAULT
    with pytest.raises(DamagedTranscript):
        open_transcript(tmp_path / "site")
    assert not [name for name in environment.of_a_model() if name.startswith("BB5_")]
    problems = "\n".join(sorted(map(str, extensions.problems)))
    assert all(part in problems for part in ("ralf.route_rules", "ralf.runs", "ralf.transcripts", "silted up"))


@pytest.mark.ci
def test_an_extension_that_cannot_load_is_a_warning_of_the_command_that_needs_it(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", harbour="import tugboat_that_is_nowhere\n")
    project = project_in(tmp_path / "p")
    path = {"PYTHONPATH": f"{site}:{storekit.environment(tmp_path).get('PYTHONPATH', '')}"}
    ran = storekit.process("route", cwd=project.root, **path)
    assert (ran.status, "harbour" in ran.err, "tugboat_that_is_nowhere" in ran.err) == (0, True, True)
    assert "warning" not in storekit.process("list", cwd=project.root, **path).err
