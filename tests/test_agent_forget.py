"""What agents' runs keep is in no other place, goes with its words when they are forgotten, and with its run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import ralf
from ralf import api, project as projects
from ralf.agent.listing import forget_run, list_runs
from ralf.agent.run import AgentRun
from ralf.agent.signals import send_signal
from ralf.errors import Claimed, RunNotFound, UsageError
from runskit import elsewhere

WORDS = "the badger sleeps behind the mill"


def holding(root: Path, words: str) -> list[str]:
    """The files below the project in which words stand, compressed ones aside."""
    return [
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and words.encode() in path.read_bytes()
    ]


@pytest.mark.ci(seconds=3)
def test_a_run_that_holds_forgotten_words_is_dropped_and_no_other_one(tmp_path: Path) -> None:
    ralf.record_decision("route-1", "Use the mill", root=tmp_path)
    binary, large = b"\xff\x00" + WORDS.encode() + b"\x80tail", os.urandom(300_000) + WORDS.encode()

    def streamed(run: AgentRun) -> None:
        for piece in (WORDS[:9], WORDS[9:20], WORDS[20:] + "!"):
            run.stream(piece.encode())
            time.sleep(0.06)

    for name, hold in {
        "bytes": lambda run: run.save(binary),
        "large": lambda run: run.external("tool", large),
        "answer": lambda run: run.once("k", lambda _: WORDS),
        "output": streamed,
        "other": lambda run: run.save(b"the badger"),
    }.items():
        with AgentRun(name, root=tmp_path) as run:
            hold(run)
    send_signal("other", "n", b"wake", root=tmp_path)
    looked = api.forget("route-1", text=WORDS, dry_run=True, root=tmp_path)
    assert {"runs/bytes/main", "runs/large/main", "runs/answer/main", "output/output/main"} <= set(looked.records)
    report = api.forget("route-1", text=WORDS, root=tmp_path)
    assert report.left == ()
    assert [one.run for one in list_runs(root=tmp_path).runs] == ["other"]
    assert holding(tmp_path, "badger sleeps") == []
    assert api.verify(root=tmp_path).findings == ()


@pytest.mark.ci
def test_nothing_is_forgotten_while_a_process_holds_a_run_that_has_the_words(tmp_path: Path) -> None:
    ralf.record_decision("route-1", f"Say that {WORDS}", root=tmp_path)
    with AgentRun("r", root=tmp_path) as run:
        run.save(WORDS.encode())
        with pytest.raises(Claimed):
            api.forget("route-1", text=WORDS, root=tmp_path)
        assert run.load() == WORDS.encode()
    assert api.forget("route-1", text=WORDS, root=tmp_path).left == ()


def test_contents_stand_in_no_brief_search_listing_message_or_cache(tmp_path: Path) -> None:
    ralf.record_decision("route-1", "Use the mill", root=tmp_path)
    with AgentRun("r", root=tmp_path, input=WORDS.encode()) as run:
        run.save(WORDS.encode())
        run.stream(WORDS.encode())
        run.external("tool", WORDS.encode())
        send_signal("r", "n", WORDS, root=tmp_path)
        for act in (lambda: run.load(9), lambda: run.fetch("no"), lambda: run.once("k", lambda _: {WORDS})):
            with pytest.raises(Exception, match="r") as raised:
                act()
            assert WORDS not in str(raised.value)
        assert WORDS not in repr(run.wait_signal("n", 0))
        run.complete(WORDS.encode())
    assert not any("badger" in hit.text for hit in ralf.search(WORDS, root=tmp_path))
    assert WORDS not in ralf.get_context("route-1", root=tmp_path).render()
    assert WORDS not in repr(list_runs(root=tmp_path))
    found = holding(tmp_path, WORDS)
    assert all(".autonomous/context/journal/" in path for path in found)
    assert api.verify(root=tmp_path).findings == ()


# ---- a whole run ----


def test_a_forgotten_run_leaves_nothing_but_blobs_that_others_name(tmp_path: Path) -> None:
    shared, own = os.urandom(300_000), os.urandom(300_000)
    for name in ("r", "s"):
        with AgentRun(name, root=tmp_path) as run:
            run.save(shared)
            run.stream(WORDS.encode())
            send_signal(name, "n", WORDS, root=tmp_path)
    with AgentRun("r", "second", root=tmp_path) as run:
        run.external("tool", own)
    store = projects.find(tmp_path).store
    assert len(list(store.blobs())) == 2
    assert forget_run("r", root=tmp_path) > 5
    assert len(list(store.blobs())) == 1
    assert list(projects.find(tmp_path).store.streams("")) != []
    assert not any("/r" in stream for stream in projects.find(tmp_path).store.streams(""))
    with AgentRun("s", root=tmp_path) as run:
        assert run.load() == shared
    with pytest.raises(RunNotFound, match="closest: s"):
        forget_run("ss", root=tmp_path)
    with AgentRun("r", root=tmp_path) as run:
        assert run.load() is None
        assert run.wait_signal("n", 0) is None
    assert api.verify(root=tmp_path).findings == ()


# ---- old contents ----


@pytest.mark.ci
def test_records_that_a_clone_brought_are_not_believed(tmp_path: Path) -> None:
    """Another user's store, copied here: its run does not exist, and its state is never loaded."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder in (theirs, ours):
        folder.mkdir()
    with AgentRun("mine", root=ours) as run:
        run.save(b"ours")
    code = (
        "run = AgentRun('r', root=root); run.save(b'pickle'); send_signal('r', 'n', 'x', root=root); run.stream(b'y')"
    )
    home = os.environ["XDG_CONFIG_HOME"]
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path / "home")
    try:
        elsewhere(theirs, code)
    finally:
        os.environ["XDG_CONFIG_HOME"] = home
    for stream in ("runs/r/main", "signals/r", "output/r/main"):
        target = ours / ".autonomous" / "context" / "journal" / f"{stream}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((theirs / ".autonomous" / "context" / "journal" / f"{stream}.jsonl").read_bytes())
    assert [one.run for one in list_runs(root=ours).runs] == ["mine"]
    with pytest.raises(UsageError, match="not written by your ralf"), AgentRun("r", root=ours) as run:
        run.save(b"own")
