"""Settings one by one: where each value comes from, their schema, and a change of one line."""

from __future__ import annotations

import os
import time
from dataclasses import fields
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, strategies as st

import storekit
from contexts import quick
from kit.git import commit, git, repository
from ralf import config
from ralf.config import Config, settings, with_setting
from ralf.config.local_config import LocalConfig, load_local_config, local_config_of
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.storage import locks
from storekit import HANGS, configure, finished, start


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(tmp_path)
    ownership.init(found, share=False)
    return found


def test_every_setting_is_listed_with_its_default_until_somebody_sets_it(project: Project) -> None:
    found = settings.list_settings(project)
    assert [one.key for one in found] == [field.name for cls in (Config, LocalConfig) for field in fields(cls)]
    assert {one.source for one in found} == {"default"}
    project.config_file.write_text("threshold: 30000\n")
    found = settings.get_setting(project, "threshold")
    assert found == settings.Setting("threshold", "30000", "50000", "config.yaml", "config.yaml", does=found.does)


def test_a_setting_of_this_machine_is_written_for_its_user_alone(project: Project) -> None:
    assert settings.change_setting(project, "summarizer", ["claude"], local=True)
    assert settings.change_setting(project, "daily_cap", ["2.50 USD"], local=True)
    assert settings.change_setting(project, "verify_commands", ["yes"], local=True)
    assert not settings.change_setting(project, "verify_commands", ["on"], local=True)
    path = project.local_config_file
    assert path.stat().st_mode & 0o777 == 0o600
    found = load_local_config(path)
    assert (found.summarizer, found.daily_cap, found.verify_commands) == ("claude", "2.50 USD", True)
    assert local_config_of(project) == found  # who sets it has allowed it
    assert settings.get_setting(project, "summarizer").source == "config.local.yaml"
    with pytest.raises(UsageError, match="expected claude"):
        settings.change_setting(project, "summarizer", ["somebody"], local=True)
    with pytest.raises(UsageError, match="may hold a secret"):
        settings.change_setting(project, "nats_password", ["hunter2"], local=True)
    assert load_local_config(path) == found
    assert settings.change_setting(project, "summarizer", None, local=True)
    assert load_local_config(path).summarizer == ""


def test_a_configuration_that_came_with_the_repository_is_told_as_such_and_not_accepted_by_a_change(
    tmp_path: Path,
) -> None:
    """A change would make a file of one's own of it, with all that it says."""
    configure(tmp_path, "inject: off\nroute_by: project\n")
    commit(repository(tmp_path), ".")
    project = Project(tmp_path)
    project.owner.update(hooks=True)
    found = settings.get_setting(Project(tmp_path), "inject")
    assert (found.value, found.source) == ("auto", "default") and "config.yaml" in found.note
    with pytest.raises(UsageError):
        settings.change_setting(Project(tmp_path), "threshold", ["1000"])
    assert (project.config_file).read_text() == "inject: off\nroute_by: project\n"


_SETS = "import sys; from ralf_cli.start import run; sys.argv[1:1] = ['config']; run()"


@pytest.mark.ci
def test_processes_that_change_settings_at_once_all_change_theirs(project: Project) -> None:
    given = {"pressure": "70", "archive_days": "40", "brief_tokens": "300", "health_silent": "7"}
    finished([start(_SETS, key, value, cwd=project.root) for key, value in given.items()])
    assert {key: str(getattr(config.of(project), key)) for key in given} == given


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what another process has open is not told")
def test_a_configuration_that_git_brings_while_a_change_waits_for_its_turn_is_not_accepted_by_it(
    project: Project,
) -> None:
    brought = "inject: off\n"
    lock = project.folder / "locks" / "config.lock"
    with locks.locked(lock, "the settings"):
        waiting = start(_SETS, "threshold", "1000", cwd=project.root)
        open_files = Path(f"/proc/{waiting.pid}/fd")
        until = time.monotonic() + HANGS
        while str(lock) not in {os.path.realpath(file) for file in open_files.iterdir()}:
            assert waiting.poll() is None and time.monotonic() < until
            time.sleep(0.01)
        project.config_file.write_text(brought)
        git(repository(project.root), "add", "-f", project.config_file)
    _, said = waiting.communicate(timeout=HANGS)
    assert (waiting.returncode, b"came with the repository" in said) == (2, True), said
    assert project.config_file.read_text() == brought


keys = st.sampled_from([field.name for field in fields(Config)])
values = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20) | st.integers(0, 10**9)


@pytest.mark.ci
@given(st.dictionaries(keys, values, max_size=4), keys, values)
@quick
def test_a_changed_line_says_the_new_value_and_every_other_line_what_it_said(
    before: dict[str, str | int], key: str, value: str | int
) -> None:
    path = Path("config.yaml")
    text = ""
    for name, one in before.items():
        text = with_setting(path, text, name, one)
    text = f"# top\n{text}"
    changed = with_setting(path, text, key, value)
    assert config.tree_of(path, changed) == {**before, key: value}
    back = with_setting(path, changed, key, None)
    assert config.tree_of(path, back) == {name: one for name, one in before.items() if name != key}
    assert back.startswith("# top\n")


@pytest.mark.parametrize("local", [False, True])
def test_the_schema_accepts_what_is_read_and_refuses_other_keys(local: bool) -> None:
    schema = settings.schema(local=local)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    cls = LocalConfig if local else Config
    assert list(schema["properties"]) == [field.name for field in fields(cls)]
    assert all(one["description"] for one in schema["properties"].values())
    validator.validate({name: one["default"] for name, one in schema["properties"].items()})
    validator.validate(None)
    assert not validator.is_valid({"treshold": 1})
    if not local:
        validator.validate({"threshold": "25%", "hooks": False, "redact_patterns": ["A"]})
        assert not validator.is_valid({"inject": "loud"})


# ---- the configuration ----


def load(folder: Path, text: str | bytes) -> Config:
    path = folder / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return config.load(path)


@pytest.mark.parametrize(
    "text",
    [
        *("treshold: 1", "nonesuch: 1", "summarizer: gpt", "worktrees: maybe"),
        *(f"threshold: {value}" for value in ("many", "0", "-5", "0%", "101%", "nan%", "", "1000000001", "[1, 2]")),
        *("archive_days: 36501", "health_silent: 999999999999", "pressure: 101", "pressure: -1"),
        *(f"window: {value}" for value in ("0", "large", "true", "1.5")),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_files_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=text.partition(":")[0]) as raised:
        load(tmp_path, text + "\n")
    assert str(raised.value).startswith(f"{tmp_path / 'config.yaml'}: ")
    assert raised.value.hint


def test_a_wrong_configuration_stops_writing_commands_with_status_2_and_nothing_else(tmp_path: Path) -> None:
    storekit.write_session(tmp_path / "s.jsonl", 500)
    file = storekit.context_of(tmp_path) / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("treshold: 1\n")
    ran = storekit.process("checkpoint", "x", "--transcript", "s.jsonl", cwd=tmp_path)
    ran.complains(2, file, "threshold")
    assert sorted(storekit.kept_bytes(tmp_path)) == ["config.yaml"]
    file.write_text("- a\n")
    storekit.process("status", cwd=tmp_path).complains(4, file)
    assert storekit.process("list", cwd=tmp_path).status == 0
