"""Counting tokens: exact, offline, fast on anything, and an estimate that loads nothing."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from clocks import within
from examples import examples
from ralf.text import tokens
from rankfile import made, published
from storekit import HANGS

PACKAGE = Path(tokens.__file__).parents[1]
DATA = Path(__file__).parents[2] / "shared" / "eval" / "data"
PUBLISHED_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
NOT_ORDINARY = "สวัสดี"  # none of the scripts that are split without tiktoken


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


@pytest.mark.ci
def test_the_rank_file_is_made_of_the_published_one_and_its_licence_lies_beside_it() -> None:
    data = (PACKAGE / "data" / "o200k_base.ranks").read_bytes()
    ranks = tokens._table().all()
    assert hashlib.sha256(data).hexdigest() == tokens.RANKS_SHA256
    assert hashlib.sha256(published(ranks)).hexdigest() == PUBLISHED_SHA256
    assert made(ranks) == data
    assert sorted(ranks.values()) == list(range(tokens.RANKS_COUNT))
    assert (PACKAGE / "data" / "LICENSE.tiktoken").exists()


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


@given(st.text(st.sampled_from("aB1 \n\r\t/.'s中é\u00a0\u0301\u2028\x1c{"), min_size=1, max_size=300))
@settings(max_examples=examples(400), deadline=None)
def test_cutting_a_long_text_does_not_change_its_count(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "PIECE", 48)
        patch.setattr(tokens, "_CUT_WITHIN", 16)
        pieces = list(tokens._pieces(text))
    assert "".join(pieces) == text
    if all(len(piece) < 48 for piece in pieces[:-1]):
        assert sum(map(whole, pieces)) == whole(text)


@pytest.mark.ci
@pytest.mark.parametrize("letter", ["a", "A", " ", "\n", "^", "中", "1", "😀", "\u0301", "aB"])
def test_a_million_of_one_letter_is_counted_within_two_seconds(letter: str) -> None:
    tokens.count("x")
    text = letter * (1_000_000 // len(letter))
    assert tokens.count(text) > 1_000
    within(2, lambda: tokens.count(text))


@pytest.mark.ci
def test_estimating_reads_no_ranks_and_only_text_that_is_not_ordinary_loads_tiktoken() -> None:
    code = f"""
from ralf.text import tokens
tokens.estimate("some words")
assert tokens._counts is None
tokens.count("some words, 12 naïve ones … → 中文 Привет")
assert tokens._counts is not None and "tiktoken" not in sys.modules
tokens.count({NOT_ORDINARY!r})
assert "tiktoken" in sys.modules
"""
    assert run(code).stderr == ""


@pytest.mark.ci
def test_counting_writes_nothing_and_asks_no_network(tmp_path: Path) -> None:
    code = """
import socket
def refuse(*args, **kwargs): raise AssertionError("network")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
import os
before = dict(os.environ)
from ralf.text import tokens
assert tokens.count("some words") == 2
assert len(tokens._load().encode_ordinary("some words")) == 2
assert dict(os.environ) == before
"""
    done = run(code, TMPDIR=str(tmp_path), HOME=str(tmp_path), TIKTOKEN_CACHE_DIR=str(tmp_path))
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


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


@pytest.mark.ci
def test_the_estimate_of_real_transcripts_is_within_a_tenth() -> None:
    if not DATA.is_dir():
        pytest.skip("the development transcripts are not beside this checkout")
    text = "".join(gzip.decompress(path.read_bytes()).decode() for path in sorted(DATA.glob("*.jsonl.gz"))[:3])
    assert tokens.estimate(text) == pytest.approx(tokens.count(text), rel=0.10)


@pytest.mark.ci
def test_a_process_that_is_forked_while_a_thread_loads_the_tokenizer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    import concurrent.futures.thread  # noqa: F401  # loaded within a fork's hooks, its own hook would be half done

    monkeypatch.setattr(tokens, "_encoding", None)
    monkeypatch.setattr(tokens, "_counts", None)
    counting = threading.Thread(target=tokens._load)
    counting.start()
    while tokens._encoding is None and tokens._lock.acquire(blocking=False):  # it has not come so far
        tokens._lock.release()
        time.sleep(0)
    child = os.fork()
    if not child:
        signal.alarm(int(HANGS))  # ends it where it hangs
        os._exit(tokens.count("a word") != 2 or whole("a word") != 2)
    counting.join()
    _, status = os.waitpid(child, 0)
    assert status == 0
