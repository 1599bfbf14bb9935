"""Counting tokens: exact on any text, and a damaged rank file is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from examples import examples
from ralf.text import tokens

PACKAGE = Path(tokens.__file__).parents[1]


def run(code: str, folder: Path = PACKAGE.parent, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that sees the package in `folder`."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ, **environment)
    )


def whole(text: str) -> int:
    """The count by tiktoken in one piece."""
    return len(tokens._load().encode_ordinary(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello world", 2), ("a" * 64, 8), ("1234567", 3), ("héllo wörld", 5), ("你好世界", 2), ("\n\n\n", 1)],
)
def test_known_counts(text: str, expected: int) -> None:
    assert tokens.count(text) == expected


def counted_here(text: str) -> int | None:
    """The count without tiktoken; None where the text is not for that."""
    table = tokens._table()
    table._merged = 0
    words = tokens._words(text)
    try:
        return None if words is None else sum(map(table.__getitem__, words))
    except tokens._TooMuch:
        return None


MIXED = "aB1 \n\r\t/.'slLvVéÀ½ª中ど→…\u00a0\x85\x1c{\ufe0f😀яЯſ<|endoftext|>"


@pytest.mark.ci
@given(st.one_of(st.text(), st.text(st.sampled_from(MIXED))))
@settings(max_examples=examples(600), deadline=None)
def test_any_text_is_counted_as_tiktoken_does_or_left_to_it(text: str) -> None:
    assert counted_here(text) in (None, whole(text))


@pytest.mark.ci
@pytest.mark.parametrize("damage", ["missing", "cut", "changed", "empty"])
def test_a_damaged_rank_file_is_a_clear_error(tmp_path: Path, damage: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "ralf", ignore=shutil.ignore_patterns("__pycache__"))
    ranks = tmp_path / "ralf" / "data" / "o200k_base.ranks"
    data = ranks.read_bytes()
    ranks.write_bytes({"cut": data[:1000], "changed": data[:-1] + b"8", "empty": b""}.get(damage, b""))
    if damage == "missing":
        ranks.unlink()
    code = """
from ralf.text import tokens
from ralf.errors import Damaged
try:
    tokens.count("x")
except Damaged as error:
    print(error, "|", error.hint)
"""
    done = run(code, tmp_path)
    assert done.stderr == ""
    assert done.stdout.startswith(f"{ranks}: ")
    assert "reinstall" in done.stdout
