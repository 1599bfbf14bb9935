"""`ralf run` and `ralf send`: what they show of runs, what they never show, and bytes as they were written."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import kit.command
import storekit
from ralf.agent import AgentRun, get_run, send_signal
from ralf.maintenance import ownership
from ralf.project import find

CONTENT = "the conversation of yesterday"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with runs of every status, whose contents nobody is shown."""
    ownership.init(find(tmp_path), share=False)
    with AgentRun("done", root=tmp_path, input=CONTENT.encode()) as run:
        run.once("model", lambda key: {"said": CONTENT})
        run.stream(b"out\x1b[2Jput \xff\xfe\n")
        run.complete(CONTENT.encode(), state=CONTENT.encode())
    with AgentRun("asks", "draft", root=tmp_path) as run:
        run.save(CONTENT.encode())
        run.save(CONTENT.encode() * 2)
        run.pause("approval", 600)
    with AgentRun("bad", root=tmp_path) as run:
        run.external("page", CONTENT.encode() * 20_000)
        run.fail_for_good("password=hunter2x!Q9 was refused")
    with AgentRun("late", root=tmp_path) as run:
        run.continue_with(CONTENT.encode(), delay=600)
    send_signal("asks", "wish", CONTENT, root=tmp_path)
    return tmp_path


def ralf(root: Path, *words: str, **more: str) -> storekit.Ran:
    return storekit.process(*words, cwd=root, **more)


@pytest.mark.parametrize(
    ("options", "names"), [("", "asks bad late"), ("--all", "asks bad done late"), ("--status completed", "done")]
)
def test_a_list_leaves_out_what_has_completed_unless_it_is_asked_for(root: Path, options: str, names: str) -> None:
    assert [one["run"] for one in ralf(root, "run", "show", *options.split(), "--json").json()] == names.split()


@pytest.mark.release(seconds=8)
def test_no_command_but_stream_prints_what_a_run_contains(root: Path) -> None:
    for words in (
        *(("run", "show", name) for name in ("done", "asks", "bad", "late")),
        ("run", "show", "--all"),
        ("run", "cancel", "late"),
        ("run", "retry", "bad"),
        ("send", "asks", CONTENT, "--signal", "approval"),
        ("status",),
        ("list",),
        ("search", "conversation"),
        ("task", "show"),
        ("forget", "--run", "done", "--yes"),
    ):
        for more in ((), ("--json",)):
            ran = ralf(root, *words, *(more if "forget" not in words else ()))
            assert CONTENT not in ran.out + ran.err, words
            assert "hunter2" not in ran.out + ran.err, words


@pytest.mark.ci
def test_output_in_a_pipe_is_byte_for_byte_and_harmless_on_a_terminal(root: Path) -> None:
    done = kit.command.start("run", "show", "done", "--output", cwd=root, env=storekit.environment(root))
    assert done.communicate(timeout=storekit.HANGS)[0] == b"out\x1b[2Jput \xff\xfe\n"
    shown = storekit.on_a_terminal(root, "run", "show", "done", "--output")[1]
    assert "\x1b[2J" not in shown
    assert "output" in shown


def test_a_reader_that_follows_waits_for_a_run_to_begin_and_ends_with_it(tmp_path: Path) -> None:
    words = ("run", "show", "one", "--follow")
    reader = kit.command.start(*words, cwd=tmp_path, env=storekit.environment(tmp_path))
    with AgentRun("one", root=tmp_path) as run:
        for number in range(20):
            run.stream(b"token %d\n" % number)
        run.complete()
    out, _ = reader.communicate(timeout=storekit.HANGS)
    assert out == b"".join(b"token %d\n" % number for number in range(20))
    assert reader.returncode == 0


@pytest.mark.ci
def test_a_reader_that_is_interrupted_says_so_by_its_status_alone(tmp_path: Path) -> None:
    with AgentRun("one", root=tmp_path) as run:
        run.stream(b"first\n")
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
        try:
            reader = subprocess.Popen(
                storekit.command("run", "show", "one", "--follow"),
                cwd=tmp_path,
                env=storekit.environment(tmp_path),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        finally:
            signal.signal(signal.SIGINT, before)
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"first\n"
        reader.send_signal(signal.SIGINT)
        _, err = reader.communicate(timeout=storekit.HANGS)
    assert (reader.returncode, err.strip()) == (130, b"")


@pytest.mark.ci
def test_a_signal_arrives_byte_for_byte_in_whatever_way_it_is_given(tmp_path: Path) -> None:
    data = bytes(range(256)) * 2_000
    (tmp_path / "data").write_bytes(data)
    assert ralf(tmp_path, "send", "one", "höhe", "--signal", "word", "--wait").status == 0
    with open(tmp_path / "data", "rb") as file:
        sender = kit.command.start(
            "send",
            "one",
            "-",
            "--signal",
            "word",
            "--wait",
            cwd=tmp_path,
            env=storekit.environment(tmp_path),
            stdin=file,
        )
        sender.communicate(timeout=storekit.HANGS)
    assert sender.returncode == 0
    with AgentRun("one", root=tmp_path) as run:
        found = [run.wait_signal("word", 0) for _ in range(3)]
    assert [one and one.data for one in found] == ["höhe".encode(), data, None]


def test_a_run_that_is_held_is_neither_retried_nor_forgotten(tmp_path: Path) -> None:
    with AgentRun("one", by="worker-1", root=tmp_path) as run:
        run.save(b"x")
        for words in (("run", "retry", "one"), ("forget", "--run", "one", "--yes")):
            ran = ralf(tmp_path, *words)
            assert ran.status == 5, words
            assert "worker-1" in ran.err
        shown = ralf(tmp_path, "run", "show", "one", "--json").json()
        assert (shown["by"], shown["process"]) == ("worker-1", os.getpid())
    assert get_run("one", root=tmp_path).status == "waiting"


def test_a_damaged_run_is_named_and_the_others_are_listed(root: Path) -> None:
    path = find(root).folder / "journal" / "runs" / "bad" / "main.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[:-40] + b"x" + data[-39:])
    ran = ralf(root, "run", "show")
    assert ran.status == 4
    assert "late" in ran.out
    assert "bad" in ran.err
    assert ralf(root, "run", "show", "bad").status == 4
