"""What an earlier version kept goes on: it is read, verified and written, its evidence found, nothing else touched."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hookkit import Rig
from ralf.maintenance import ownership
from ralf.project import Project
from storekit import SOURCE, Cli, context_of, kept_bytes, moved

pytestmark = pytest.mark.ci

HARBOUR = SOURCE / "tests" / "stores" / "harbour-4f05e28"
"""As an earlier version left it."""

SESSION = "5f0c1d2e-0000-4000-8000-0000000000a1"
PARKED = "5f0c1d2e-0000-4000-8000-0000000000b2"


def laid(folder: Path) -> Path:
    """The project as the earlier version has left it, with the logs of its sessions in the user's own folder."""
    root = folder / "harbour"
    shutil.copytree(HARBOUR / "project", root)
    shutil.copytree(HARBOUR / "store", context_of(root))
    (context_of(root) / ".gitignore").write_text("*\n")
    shutil.copytree(HARBOUR / "logs", folder / "claude" / "projects" / "-tmp-harbour-project")
    return root


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return laid(tmp_path)


@pytest.fixture(scope="module")
def after_a_hook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adopted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(folder / "claude"))
        root = laid(folder)
        ownership.adopt(Project(root))
        ownership.init(Project(root), share=False, accept=True)
        rig(root, "0b1c2d3e-0000-4000-8000-000000000009").hook("SessionStart", source="startup")
    return root


@pytest.fixture
def adopted(project: Path, after_a_hook: Path) -> Path:
    """The same, after the person has said that it is theirs, and a hook."""
    shutil.rmtree(context_of(project))
    shutil.copytree(context_of(after_a_hook), context_of(project))
    return moved(after_a_hook, project)


@pytest.fixture
def told(adopted: Path, cli: Cli) -> Cli:
    """The command, on that."""
    return cli


def rig(root: Path, session: str) -> Rig:
    """A session of the user's, in whose folder the logs lie."""
    found = Rig(root, log_of(root, session), session=session)
    found.environment["CLAUDE_CONFIG_DIR"] = str(root.parent / "claude")
    return found


def log_of(root: Path, session: str) -> Path:
    return root.parent / "claude" / "projects" / "-tmp-harbour-project" / f"{session}.jsonl"


def by_label(cli: Cli, route: str) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in cli("show", route, "--json").json()["decisions"]}


def records(store: Mapping[str, bytes], route: str) -> list[dict[str, Any]]:
    """The records of a route in the files of a store, archived ones first, without what this version adds to them."""
    parts = [text for name, text in sorted(store.items()) if name.startswith(f"archive/journal/routes/{route}/")]
    whole = b"".join([*map(gzip.decompress, parts), store[f"journal/routes/{route}.jsonl"]])
    found = [json.loads(line).get("record") for line in whole.splitlines()]
    return [{key: value for key, value in each.items() if key not in ("seal", "store")} for each in found if each]


def changed(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> set[str]:
    """The files that are new, gone or other than they were; locks have no content."""
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return {name for name in names if not name.startswith("locks/")}


# ---- before this version has written anything ----


def test_reading_what_an_earlier_version_kept_changes_no_byte_of_it(project: Path, cli: Cli) -> None:
    before = kept_bytes(project)
    listed = cli("list", "--json").json()
    assert sorted(each["route"] for each in listed) == ["almanac", "moon", "pm", "tide"]
    assert "Store the levels in millimetres" in cli("show", "tide").out
    assert cli("doctor", "--store").status == 0
    for args in (("log", "tide"), ("show", "tide", "DEC-002"), ("log", "tide", ".."), ("search", "postgres")):
        assert cli(*args).status in (0, 3)
    assert changed(before, kept_bytes(project)) == set()


# ---- accepted ----


@pytest.mark.parametrize(
    ("route", "label", "words"),
    [
        ("tide", "DEC-002", "line 2, agent:\n  I use SQLite instead of Postgres, because one file needs no server."),
        ("tide", "DEC-003", "line 9, agent:\n  The harbours come from `stations.json`"),
        ("moon", "DEC-002", "line 2, agent:\n  I use the tables of Meeus instead of an ephemeris service"),
        ("almanac", "DEC-001", "It fits the pocket of an oilskin"),
    ],
)
def test_old_evidence_is_found_without_the_logs(told: Cli, route: str, label: str, words: str) -> None:
    shutil.rmtree(log_of(told.root, SESSION).parent)
    shutil.rmtree(told.root / "runs")
    before = kept_bytes(told.root)
    said = told("show", route, label)
    assert said.status == 0 and words in said.out
    assert kept_bytes(told.root) == before


# ---- what is written now ----


def test_a_decision_is_appended_and_no_other_file_is_touched(told: Cli) -> None:
    before = kept_bytes(told.root)
    assert told("decide", "tide", "Print the table in winter", "--supersedes", "DEC-007").status == 0
    after = kept_bytes(told.root)
    assert changed(before, after) - {name for name in after if name.startswith("blobs/") and name not in before} == {
        "journal/routes/tide.jsonl",
        "routes/tide.md",
        "prev/routes/tide.md",
    }
    journal = "journal/routes/tide.jsonl"
    assert (
        after[journal].startswith(before[journal]) and after[journal].count(b"\n") == before[journal].count(b"\n") + 1
    )
    tide = by_label(told, "tide")
    assert tide["DEC-007"]["superseded_by"] == "DEC-032"  # DEC-031 was given, no label is given twice
    assert tide["DEC-032"]["decision"] == "Print the table in winter"
    assert told("doctor", "--store").status == 0


def test_a_parked_session_goes_on_where_its_last_checkpoint_ended(told: Cli) -> None:
    log = log_of(told.root, PARKED)
    made = told("checkpoint", "moon", "--transcript", log, "--json").json()
    assert [each["checkpoint_id"] for each in made["checkpoints"]] == ["cp-003"]
    source = records(kept_bytes(told.root), "moon")[-1]["payload"]["source"]
    assert (source["session"], source["from_line"], source["to_byte"]) == (PARKED, 7, log.stat().st_size)
    assert "src/almanac.py" in told("show", "moon").out
    before = kept_bytes(told.root)
    assert told("checkpoint", "moon", "--transcript", log, "--json").json()["checkpoints"] == []
    assert kept_bytes(told.root) == before
