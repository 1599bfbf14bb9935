"""Counting tokens: exact, offline, fast on anything, and an estimate that loads nothing."""

from __future__ import annotations

import gzip
import hashlib
import inspect
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

from examples import examples
from ralf import tokens
from storekit import AT_ONCE

PACKAGE = Path(tokens.__file__).parent
DATA = Path(__file__).parents[2] / "shared" / "eval" / "data"


def run(code: str, folder: Path = PACKAGE.parent, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that sees the package in `folder`."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ, **environment)
    )


def whole(text: str) -> int:
    """The count by tiktoken in one piece."""
    tokens.count("x")
    return len(tokens._load().encode_ordinary(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello world", 2), ("a" * 64, 8), ("1234567", 3), ("héllo wörld", 5), ("你好世界", 2), ("\n\n\n", 1)],
)
def test_known_counts(text: str, expected: int) -> None:
    assert tokens.count(text) == expected


def test_special_tokens_are_plain_text() -> None:
    assert tokens.count("<|endoftext|>") > 1


def test_unpaired_surrogates_count_like_the_replacement_character() -> None:
    assert tokens.count("a \ud800 b") == tokens.count("a \ufffd b")


def test_many_are_counted_in_their_order() -> None:
    assert tokens.count_many(iter(["one", "", "one two"])) == [1, 0, 2]


def test_the_pattern_is_the_one_that_tiktoken_publishes() -> None:
    from tiktoken_ext import openai_public

    source = inspect.getsource(openai_public.o200k_base)
    parts = tokens.PATTERN.replace(tokens._TAIL, "").split("|")
    assert len(parts) == 7
    assert all(part in source for part in parts)
    assert tokens._TAIL in source


def test_the_rank_file_is_the_published_one_and_its_licence_lies_beside_it() -> None:
    data = (PACKAGE / "data" / "o200k_base.tiktoken").read_bytes()
    assert hashlib.sha256(data).hexdigest() == tokens.RANKS_SHA256
    assert [int(line.split()[1]) for line in data.splitlines()] == list(range(tokens.RANKS_COUNT))
    assert (PACKAGE / "data" / "LICENSE.tiktoken").exists()


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


def test_a_long_real_text_counts_as_in_one_piece() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(PACKAGE.glob("*.py"))) * 4
    assert len(text) > 2 * tokens.PIECE
    assert tokens.count(text) == whole(text)


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["a", "A", " ", "\n", "^", "中", "1", "😀", "\u0301", "aB"])
def test_a_million_of_one_letter_is_counted_within_two_seconds(letter: str) -> None:
    tokens.count("x")
    text = letter * (1_000_000 // len(letter))
    begin = time.process_time()
    assert tokens.count(text) > 1_000
    assert time.process_time() - begin < 2


@pytest.mark.slow
def test_several_threads_load_the_tokenizer_once_and_agree() -> None:
    code = """
import threading
from ralf import tokens
seen = []
def work(): seen.append((tokens.count("one two three"), id(tokens._load())))
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
assert len(seen) == 8 and len(set(seen)) == 1, seen
"""
    assert run(code).stderr == ""


def test_counting_in_several_threads_gives_the_same_counts() -> None:
    text = (PACKAGE / "tokens.py").read_text(encoding="utf-8")
    expected, seen = tokens.count(text), list[int]()
    threads = [threading.Thread(target=lambda: seen.append(tokens.count(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 8


def test_importing_and_estimating_load_no_tokenizer() -> None:
    code = """
from ralf import tokens
tokens.estimate("some words")
assert not tokens.loaded() and "tiktoken" not in sys.modules
tokens.count("some words")
assert tokens.loaded() and "tiktoken" in sys.modules
"""
    assert run(code).stderr == ""


def test_counting_writes_nothing_and_asks_no_network(tmp_path: Path) -> None:
    code = """
import socket
def refuse(*args, **kwargs): raise AssertionError("network")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
import os
before = dict(os.environ)
from ralf import tokens
assert tokens.count("some words") == 2
assert dict(os.environ) == before
"""
    done = run(code, TMPDIR=str(tmp_path), HOME=str(tmp_path), TIKTOKEN_CACHE_DIR=str(tmp_path))
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_loading_leaves_the_garbage_collector_as_it_was() -> None:
    code = "import gc\nfrom ralf import tokens\n{}\ntokens.count('x')\nassert gc.isenabled() is {}"
    assert run(code.format("gc.enable()", True)).stderr == ""
    assert run(code.format("gc.disable()", False)).stderr == ""


@pytest.mark.parametrize("damage", ["missing", "cut", "changed", "empty"])
def test_a_damaged_rank_file_is_a_clear_error(tmp_path: Path, damage: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "ralf", ignore=shutil.ignore_patterns("__pycache__"))
    ranks = tmp_path / "ralf" / "data" / "o200k_base.tiktoken"
    data = ranks.read_bytes()
    ranks.write_bytes({"cut": data[:1000], "changed": data[:-3] + b"8\n", "empty": b""}.get(damage, b""))
    if damage == "missing":
        ranks.unlink()
    code = """
from ralf import tokens
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


def test_the_estimate_of_nothing_is_nothing() -> None:
    assert tokens.estimate("") == 0


def test_a_long_text_s_estimate_is_within_one_per_piece_of_the_sum() -> None:
    text = "def count(text): return 12345  # a line\n" * 60_000
    once = len(tokens._ESTIMATE.findall(text))
    assert abs(tokens.estimate(text) - once) <= len(text) // tokens._ESTIMATE_PIECE


def test_the_estimate_of_source_code_is_within_a_tenth() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(PACKAGE.glob("*.py")))
    assert tokens.estimate(text) == pytest.approx(tokens.count(text), rel=0.10)


@pytest.mark.slow
def test_the_estimate_of_real_transcripts_is_within_a_tenth() -> None:
    if not DATA.is_dir():
        pytest.skip("the development transcripts are not beside this checkout")
    text = "".join(gzip.decompress(path.read_bytes()).decode() for path in sorted(DATA.glob("*.jsonl.gz"))[:3])
    assert tokens.estimate(text) == pytest.approx(tokens.count(text), rel=0.10)


def test_a_process_that_is_forked_while_a_thread_loads_the_tokenizer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_encoding", None)
    counting = threading.Thread(target=tokens.count, args=("a word",))
    counting.start()
    while tokens._encoding is None and tokens._lock.acquire(blocking=False):  # it has not come so far
        tokens._lock.release()
        time.sleep(0)
    child = os.fork()
    if not child:
        signal.alarm(int(AT_ONCE))  # ends it where it hangs
        os._exit(tokens.count("a word") != 2)
    counting.join()
    _, status = os.waitpid(child, 0)
    assert status == 0
