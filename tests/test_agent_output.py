"""The output of a step: in batches, whole for whoever comes late, followed to the end of the run."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import pytest

from ralf import project as projects
from ralf.agent import steplog
from ralf.agent.output import tail
from ralf.agent.run import AgentRun
from ralf.errors import StaleLease
from runskit import started
from storekit import HANGS


def records(root: Path) -> int:
    """How many records the output has."""
    return sum(1 for _ in projects.find(root).store.read("output/r/main"))


def test_the_first_bytes_are_there_at_once_and_many_tokens_cost_few_records(tmp_path: Path) -> None:
    words = [f"wörd{number} " for number in range(500)]
    with AgentRun("r", root=tmp_path) as run:
        run.stream(words[0].encode())
        assert records(tmp_path) == 1
        for word in words[1:]:
            run.stream(word.encode())
        deadline = time.monotonic() + HANGS
        while b"".join(tail("r", root=tmp_path)) != "".join(words).encode() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert b"".join(tail("r", root=tmp_path)) == "".join(words).encode()
        assert records(tmp_path) < 100


def test_what_was_streamed_is_durable_before_the_next_record(tmp_path: Path) -> None:
    count = 0
    with AgentRun("r", root=tmp_path) as run:
        for act in (
            lambda: run.save(b""),
            lambda: run.once("k", lambda _: 1),
            lambda: run.external("x", b"y"),
            lambda: run.continue_with(b""),
            lambda: run.complete(b""),
        ):
            run.stream(b"a")
            run.stream(b"b")
            act()
            count += 1
            assert b"".join(tail("r", root=tmp_path)) == b"ab" * count


@pytest.mark.ci
def test_a_late_reader_in_another_process_gets_all_and_ends_with_the_run(tmp_path: Path) -> None:
    code = """
import time
run = AgentRun('r', root=root)
for number in range(40):
    run.stream(b'%d,' % number)
    time.sleep(0.01)
run.complete()
"""
    found: list[bytes] = []

    def follow() -> None:
        found.append(b"".join(tail("r", root=tmp_path, follow=True)))

    early = threading.Thread(target=follow)
    early.start()  # before the run exists
    with started(tmp_path, code) as process:
        time.sleep(0.1)
        late = threading.Thread(target=follow)
        late.start()
        process.wait()
    early.join(HANGS)
    late.join(HANGS)
    assert found == 2 * [b"".join(b"%d," % number for number in range(40))]


def test_a_holder_that_lost_its_claim_adds_nothing_after_the_next_one(tmp_path: Path) -> None:
    first, second = AgentRun("r", root=tmp_path), AgentRun("r", root=tmp_path)
    first.stream(b"1")
    steplog.held_here.pop(first._writer)
    second.stream(b"2")
    time.sleep(0.06)
    with pytest.raises(StaleLease):
        first.stream(b"zombie")
    second.close()
    assert b"".join(tail("r", root=tmp_path)) == b"12"


def test_reading_goes_on_behind_what_was_read_of_a_stream_that_was_rewritten(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        for piece in (b"one ", b"two ", b"three"):
            run.stream(piece)
            run.save(b"")
        reader = tail("r", root=tmp_path, follow=True)
        assert [next(reader), next(reader)] == [b"one ", b"two "]
        projects.find(tmp_path).store.replace("output/r/main", lambda entry: entry.record.replace(b"one ", b"*** "))
        run.stream(b" four")
        run.complete()
        assert list(itertools.islice(reader, 2)) == [b"three", b" four"]
