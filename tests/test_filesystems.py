"""A store is not written to where locks and renames are not to be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ralf
from ralf.errors import UsageError
from ralf.storage import files
from ralf.storage.filestore import FileStore
from storekit import Cli, context_of, small_disk


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    files.check.cache_clear()
    yield
    files.check.cache_clear()


def test_local_file_systems_are_written_to(tmp_path: Path) -> None:
    ralf.record_decision("tide", "Use centimetres", root=tmp_path)
    with small_disk(tmp_path / "disk", "4m") as disk:
        ralf.record_decision("tide", "Use centimetres", root=disk)
        assert files.kind_of(disk / "not" / "yet") == 0x01021994


def test_what_lies_on_a_network_is_read_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ralf.record_decision("tide", "Use centimetres", root=tmp_path)
    files.check.cache_clear()
    monkeypatch.setattr(files, "kind_of", lambda _: 0x6969)
    before = {path: path.read_bytes() for path in context_of(tmp_path).rglob("*") if path.is_file()}
    assert [item.decision for item in ralf.get_context("tide", root=tmp_path).decisions] == ["Use centimetres"]
    refused = Cli(tmp_path, monkeypatch, capfd)("decide", "tide", "Use inches")
    assert refused.status == 2
    assert "lies on NFS" in refused.err
    assert "RALF_PROJECT_DIR" in refused.err
    with pytest.raises(UsageError):
        FileStore(context_of(tmp_path)).put_blob([b"words"])
    assert {path: path.read_bytes() for path in context_of(tmp_path).rglob("*") if path.is_file()} == before


def test_a_project_that_is_new_there_gets_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "kind_of", lambda _: 0x65735546)
    with pytest.raises(UsageError, match="FUSE"):
        ralf.record_decision("tide", "Use centimetres", root=tmp_path)
    assert list(tmp_path.iterdir()) == []
