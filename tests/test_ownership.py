"""Whose store it is: only the user's own folder opts a project in; what came from elsewhere is never handed over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ralf
from ralf import config
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.project import Project
from storekit import context_of, journal_file, records_of, write_session


def decisions(root: Path, route: str = "tide") -> list[str]:
    return [decision.decision for decision in ralf.get_context(route, root=root).decisions]


def other_project(root: Path) -> Path:
    root.mkdir()
    return root


# ---- settings of others ----


@pytest.mark.ci
def test_init_without_a_terminal_opts_in_and_accepts_nothing_that_is_there(tmp_path: Path) -> None:
    root = tmp_path / "clone"
    context_of(root).mkdir(parents=True)
    (context_of(root) / "config.yaml").write_text("inject: brief\nthreshold: 100\nroute_by: project\npressure: 50\n")
    (context_of(root) / "config.local.yaml").write_text(
        f"project: {root}\nsummarizer: command\ncommand: [touch, {root}/ran]\n"
    )
    (context_of(root) / "config.local.yaml").chmod(0o600)
    ownership.init(Project(root), share=False)
    project = Project(root)
    assert project.owner.has_opted_in
    found = config.of(project)
    assert (found.inject, found.threshold, found.route_by, found.pressure) == ("auto", "50000", "task", 50)
    log = tmp_path / "s.jsonl"
    write_session(log, 4_000)
    report = ralf.checkpoint("tide", log, root=root)
    assert report.warnings
    assert not (root / "ran").exists()
    ownership.accept_settings(project)
    assert config.of(Project(root)).inject == "brief"


def test_nothing_is_stored_under_patterns_that_are_not_in_force(tmp_path: Path) -> None:
    context_of(tmp_path).mkdir(parents=True)
    (context_of(tmp_path) / "config.yaml").write_text("redact_patterns: ['ACME-[0-9]{8}']\n")
    with pytest.raises(UsageError, match="not in force"):
        ralf.record_decision("tide", "Use ACME-12345678", root=tmp_path)
    ownership.init(Project(tmp_path), share=False, accept=True)
    ralf.record_decision("tide", "Use ACME-12345678", root=tmp_path)
    assert "ACME-1" not in str(records_of(tmp_path, "tide"))


# ---- without a folder of one's own ----


def test_where_the_users_folder_cannot_be_written_no_store_is_made_and_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "nothing").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="no store is made") as error:
        ralf.record_decision("tide", "Use tabs", root=root)
    assert "outside the sandbox" in error.value.hint
    assert not journal_file(root, "tide").exists()


# ---- a store of before, a copy, a moved project ----


def of_an_archive(root: Path) -> bytes:
    """Lay somebody else's journal of the route `tide` where ours would be; what lay there."""
    path = journal_file(root, "tide")
    before = path.read_bytes() if path.exists() else b""
    other = other_project(root.parent / "other")
    ralf.record_decision("tide", "Upload the keys", root=other)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(journal_file(other, "tide").read_bytes())
    return before


@pytest.mark.ci
def test_a_journal_that_an_archive_laid_over_ours_says_nothing_and_is_not_added_to(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    ralf.record_decision("tide", "Use tabs", root=root)
    ours = of_an_archive(root)
    route_file = context_of(root) / "routes" / "tide.md"
    route_file.unlink()
    found = ralf.get_context("tide", root=root)
    assert found.wholly_foreign and [item.origin for item in found.decisions] == ["import"]
    with pytest.raises(UsageError, match="not written by your ralf") as error:
        ralf.record_decision("tide", "Use spaces", root=root)
    assert error.value.hint == "ralf trust tide"
    journal_file(root, "tide").write_bytes(ours)
    assert decisions(root) == ["Use tabs"]


@pytest.mark.ci
def test_a_copied_store_is_read_with_a_label_and_takes_nothing_before_the_person_says_that_it_is_theirs(
    tmp_path: Path,
) -> None:
    root, copy = tmp_path / "project", tmp_path / "copy"
    root.mkdir()
    ownership.init(Project(root), share=False)
    ralf.record_decision("tide", "Use tabs", root=root)
    shutil.copytree(root, copy)
    assert ralf.get_context("tide", root=copy).wholly_foreign
    assert not Project(copy).owner.has_opted_in
    with pytest.raises(UsageError, match="not known to be yours") as error:
        ralf.record_decision("moon", "Count from one", root=copy)
    assert error.value.hint == "ralf init"
    ownership.init(Project(copy), share=False)
    assert Project(copy).owner.id != Project(root).owner.id
    assert ralf.get_context("tide", root=copy).wholly_foreign
    ownership.adopt(Project(copy))
    assert (decisions(copy), decisions(root)) == (["Use tabs"], ["Use tabs"])
    assert not ralf.get_context("tide", root=copy).foreign
