"""Opting in and out: one folder, hidden from git, and done twice it changes nothing."""

from __future__ import annotations

from pathlib import Path

from ralf import config
from ralf.maintenance import ownership
from ralf.project import Project
from storekit import context_of


def test_hooks_are_switched_by_one_line_and_all_else_stays_as_it_is(tmp_path: Path) -> None:
    ownership.init(Project(tmp_path), share=False)
    path = context_of(tmp_path) / "config.yaml"
    before = "# mine\nthreshold: 9000   # so\nhooks:  on  # keep this\nwindow: 100000\n"
    path.write_text(before)
    assert ownership.switch(Project(tmp_path), on=False)
    assert path.read_text() == before.replace("hooks:  on", "hooks: off")
    assert config.load(path).hooks == "off"
    assert not ownership.switch(Project(tmp_path), on=False)
    assert ownership.switch(Project(tmp_path), on=True)
    assert path.read_text() == before.replace("hooks:  on", "hooks: on")
    path.write_text("threshold: 9000")
    assert ownership.switch(Project(tmp_path), on=False)
    assert path.read_text() == "threshold: 9000\nhooks: off\n"
