"""The output of a step: in batches, whole for whoever comes late, followed to the end of the run."""

from __future__ import annotations

import itertools
from pathlib import Path

from ralf import project as projects
from ralf.agent.output import tail
from ralf.agent.run import AgentRun


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
