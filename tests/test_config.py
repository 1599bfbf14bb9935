"""The configuration: its keys, what each may be, and what is said of anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

import storekit
from ralf import config
from ralf.config import Config
from ralf.errors import UsageError


def load(folder: Path, text: str | bytes) -> Config:
    path = folder / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return config.load(path)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("threshold: 30000", 30_000),
        ('threshold: "30000"', 30_000),
        ("threshold: 30_000", 30_000),
        ('threshold: "8,000"', 8_000),
        ("threshold: 25%", 50_000),
        ("threshold: 25%\nwindow: 1000000", 250_000),
        ("threshold: 30000\r\nwindow: 100000\r\n", 30_000),
    ],
)
def test_a_threshold_is_a_number_or_a_share_of_the_window(tmp_path: Path, text: str, limit: int) -> None:
    assert load(tmp_path, text + "\n").segment_limit == limit


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
