"""Checkpoints: a transcript becomes segments, each of them once, whatever happens in between."""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

import ralf
import storekit
from kit.claude_log import ClaudeLog
from ralf.errors import TranscriptChanged
from ralf.model.entries import Step
from storekit import checkpoints_of, kept_bytes, records_of, route_file, write_session

TOKENS = 170_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a session of 170,000 tokens in it, checkpointed once; tests take a copy."""
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", TOKENS)
    ralf.checkpoint("tide", root / "session.jsonl", root=root)
    return root


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session of 3,000 tokens."""
    write_session(tmp_path / "session.jsonl", 3_000)
    return tmp_path / "session.jsonl"


def unmarked(root: Path) -> bytes:
    """The route file without its mark, which is another in each store."""
    return re.sub(rb'  mark: "[^"]*"\n', b"", route_file(root, "tide").read_bytes())


@pytest.mark.ci
def test_the_route_file_names_no_path_of_the_machine_and_no_time_of_day(made: Path) -> None:
    text = route_file(made, "tide").read_text(encoding="utf-8")
    assert str(made) not in text
    assert "/srv/tide" not in text  # paths are relative to the session's folder
    assert time.strftime("%Y-%m-%dT") not in text


def test_an_object_that_summarizes_takes_the_place_of_the_embedded_one_and_unknown_names_are_marked(
    session: Path, tmp_path: Path
) -> None:
    from ralf.checkpointing.section import Extractive, Segment, Summary

    class Mine:
        name = "mine"

        def summarize(self, segment: Segment) -> Summary:
            summary = Extractive().summarize(segment)
            return replace(summary, text=f"{summary.text}\n- said by mine\n- and `no_such_thing` of it")

    report = ralf.checkpoint("mine", session, root=tmp_path, summarizer=Mine())
    context = ralf.get_context("mine", root=tmp_path)
    assert (report.summarizer, context.checkpoints[0].summarizer) == ("mine", "mine")
    assert "- said by mine\n- and `no_such_thing` of it (not found in the record: no_such_thing)" in context.history


def test_a_summarizer_that_fails_leaves_the_store_as_it_was(session: Path, tmp_path: Path) -> None:
    from ralf.checkpointing.section import Segment, Summary

    class Broken:
        name = "broken"

        def summarize(self, segment: Segment) -> Summary:
            raise RuntimeError("no answer")

    ralf.record_decision("tide", "Use batches", root=tmp_path)
    before = kept_bytes(tmp_path)
    with pytest.raises(RuntimeError, match="no answer"):
        ralf.checkpoint("tide", session, root=tmp_path, summarizer=Broken())
    assert kept_bytes(tmp_path) == before


def test_the_route_is_not_locked_while_a_summarizer_runs(session: Path, tmp_path: Path) -> None:
    """A decision that is recorded meanwhile is neither blocked nor lost: the work is put on top of it."""
    from ralf.checkpointing.section import Extractive, Segment, Summary

    class Slow:
        name = "slow"

        def summarize(self, segment: Segment) -> Summary:
            ralf.record_decision("tide", "Decided meanwhile", root=tmp_path)
            return Extractive().summarize(segment)

    ralf.checkpoint("tide", session, root=tmp_path, summarizer=Slow())
    context = ralf.get_context("tide", root=tmp_path)
    assert next(decision.decision for decision in context.decisions) == "Decided meanwhile"
    assert (context.revision, context.checkpoint_count) == (2, 1)


# ---- transcripts that changed ----


def test_a_torn_last_line_waits_and_is_taken_when_it_is_whole(session: Path, tmp_path: Path) -> None:
    whole = session.read_bytes()
    session.write_bytes(whole[:-40])
    ralf.checkpoint("tide", session, root=tmp_path)
    end = checkpoints_of(tmp_path, "tide")[-1][2]
    assert end == whole[:-40].rindex(b"\n") + 1
    session.write_bytes(whole)
    ralf.checkpoint("tide", session, root=tmp_path)
    assert [span[1:] for span in checkpoints_of(tmp_path, "tide")] == [(0, end), (end, len(whole))]


@pytest.mark.ci
def test_restart_of_a_transcript_whose_end_was_rewritten_doubles_no_segment(tmp_path: Path) -> None:
    """The first segments are what they were: only those that differ are taken."""
    path = tmp_path / "session.jsonl"
    number = write_session(path, 6_000)
    ralf.checkpoint("tide", path, root=tmp_path, segment_tokens=2_500)
    spans = checkpoints_of(tmp_path, "tide")
    kept = path.read_bytes()[: spans[1][2]]
    path.write_bytes(kept + storekit.lines_of(2_000, first=number + 50)[0].encode())
    with pytest.raises(TranscriptChanged):
        ralf.checkpoint("tide", path, root=tmp_path, segment_tokens=2_500)
    report = ralf.checkpoint("tide", path, root=tmp_path, segment_tokens=2_500, restart=True)
    assert len(report.checkpoints) == 1
    assert checkpoints_of(tmp_path, "tide") == [*spans, ("s-1", len(kept), path.stat().st_size)]
    assert ralf.checkpoint("tide", path, root=tmp_path, segment_tokens=2_500).checkpoints == ()


# ---- several processes, and processes that die ----

CHECKPOINT = """
import sys, ralf
print("ready", flush=True)
report = ralf.checkpoint(sys.argv[1], sys.argv[2], root=".", segment_tokens=int(sys.argv[3]))
print(len(report.checkpoints))
"""


@pytest.mark.ci
def test_two_processes_at_the_same_transcript_take_each_segment_once(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    write_session(path, 24_000)
    started = [storekit.start(CHECKPOINT, "tide", path, 3_000, cwd=tmp_path) for _ in range(3)]
    written = [int(printed.split()[-1]) for printed in storekit.finished(started)]
    spans = checkpoints_of(tmp_path, "tide")
    assert sum(written) == len(spans) == len(set(spans)) >= 8
    assert spans[0][1] == 0
    assert spans[-1][2] == path.stat().st_size
    assert all(one[2] == other[1] for one, other in itertools.pairwise(spans))
    records = records_of(tmp_path, "tide")
    assert [record["revision"] for record in records] == list(range(1, len(records) + 1))
    assert [record["parent"] for record in records] == list(range(len(records)))
    alone = tmp_path / "alone"
    alone.mkdir()
    ralf.checkpoint("tide", path, root=alone, segment_tokens=3_000)
    assert unmarked(alone) == unmarked(tmp_path)


def test_a_call_that_the_log_has_behind_its_result_is_answered_and_comes_back_in_no_later_checkpoint(
    tmp_path: Path,
) -> None:
    log = ClaudeLog(tmp_path / "session.jsonl", "s-1", tmp_path)
    log.says("Carry the gauges over.")
    log.edits("gauge.py")
    *before, call, result = log.log.read_text().splitlines()
    log.log.write_text("\n".join([*before, result, call, ""]))
    ralf.checkpoint("tide", log.log, root=tmp_path)
    log.says("And now the levels.")
    ralf.checkpoint("tide", log.log, root=tmp_path)
    [found] = ralf.get_context("tide", root=tmp_path).sessions
    assert [entry.outcome for entry in found.entries if isinstance(entry, Step)] == ["ok"]


# ---- sections ----


@pytest.mark.ci
def test_a_rewinding_reaches_behind_a_checkpoint(tmp_path: Path) -> None:
    log = ClaudeLog(tmp_path / "session.jsonl", "5e1f0c52-7d0b", tmp_path)
    log.says("Move the tide table.")
    log.answers("It is moved.")
    log.says("Keep the levels in Redis.")
    log.calls("Write", {"file_path": f"{tmp_path}/redis_store.py", "content": "x"}, "File created successfully")
    ralf.checkpoint("harbour", log.log, root=tmp_path)
    assert "redis_store.py" in (text := (tmp_path / ".autonomous/context/routes/harbour.md").read_text()), text
    log.says("Serve the levels as JSON.", parentUuid=f"{log.id[:8]}-1")
    log.answers("Served.")
    ralf.checkpoint("harbour", log.log, root=tmp_path)
    content = (tmp_path / ".autonomous/context/routes/harbour.md").read_text()
    assert "redis_store.py" not in content
    assert [
        line for line in content.splitlines() if "Keep the levels in Redis" in line and "taken back" not in line
    ] == []
