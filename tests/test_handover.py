"""A hand-over is Markdown, leads the brief while it is fresh, is checked against the record, and keeps its entries."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import ralf
import storekit
from ralf.errors import UsageError
from ralf.model import RouteContext
from storekit import Cli, Ran, records_of, write_session

MARKDOWN = """# Hand-over

## Now
The reader is done.

## Next
1. Ask for station 7
   and station 9
- Pack the archive

## Open
- Is 1953 to be kept?

## Decided
- Read the file once
  why: the disk is slow
  not: a loop

## Avoid
* One process a station

## About the harbour
It opens at six.
"""


def context_of(root: Path) -> RouteContext:
    return ralf.get_context("tide", root=root)


def test_fields_say_the_same_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    choice = {"text": "Read the file once", "reason": "the disk is slow", "rejected": ["a loop"]}
    ralf.hand_over("tide", now="The reader is done.", decisions=[choice], avoid=["tin"], open="Who?", root=tmp_path)
    context = context_of(tmp_path)
    assert [(item.decision, item.alternatives) for item in context.decisions] == [
        ("Read the file once", ("a loop",)),
        ("tin", ()),
    ]
    assert [entry.text for entry in context.handover.current("open")] == ["Who?"]
    with pytest.raises(UsageError, match="has no field 'stand'"):
        ralf.hand_over("tide", stand="x", root=tmp_path)
    with pytest.raises(UsageError, match="now is no text"):
        ralf.hand_over("tide", now=["x"], root=tmp_path)


def test_the_command_reads_markdown_or_a_file_and_answers_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ralf_ = Cli(tmp_path, monkeypatch, capfd)

    def given(content: bytes, *more: str) -> Ran:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content), encoding="utf-8"))
        return ralf_("handover", "tide", *more)

    ran = given(b"## Now\na\xff\0b\n")
    assert ran.status == 0 and ran.out == "tide: now\n"
    (tmp_path / "notes.md").write_text(MARKDOWN)
    assert "tide: now, 2 next" in given(b"", str(tmp_path / "notes.md")).out
    assert (given(b"", str(tmp_path / "none.md")).status, given(b" \n").status) == (3, 2)
    ran = given(b"## Now\nx\n## Next\n" + b"- step\n" * 50_000)
    assert ran.status == 2
    assert "has more than 200,000 bytes: nothing was recorded\nhint: " in ran.err
    assert len(records_of(tmp_path, "tide")) == 2
    told = json.loads(given(b"## Now\nAll is done.\n## Decided\n- Keep tin", "--json").out)
    assert (told["handover"]["now"], [entry["id"] for entry in told["added"]]) == ("All is done.", ["DEC-003"])


def test_a_secret_is_taken_out_of_a_hand_over_before_it_is_kept(tmp_path: Path) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    ralf.hand_over("tide", f"The key is {key}", root=tmp_path)
    ralf.hand_over("tide", facts=[f"The key is {key}"], root=tmp_path)
    assert key not in json.dumps(records_of(tmp_path, "tide"))


# ---- names ----


@pytest.fixture
def worked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one checkpoint of a session, and a person at work."""
    for name in ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID"):
        monkeypatch.delenv(name, raising=False)
    write_session(tmp_path / "session.jsonl", 3_000)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path)
    return tmp_path


def test_what_no_checkpoint_has_yet_of_the_session_that_writes_counts_and_its_own_hand_over_does_not(
    worked: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s-1")
    text = "## Now\n`src/part_18.py` is read, `src/forged.py` is not."
    assert "not found" not in str(ralf.hand_over("tide", text, root=worked))  # without a log nobody can tell
    (home / "projects" / "tide").mkdir(parents=True)
    path = home / "projects" / "tide" / "s-1.jsonl"
    storekit.grow(worked / "session.jsonl", 6_000, storekit.lines_of(3_000)[1])
    call = {
        "type": "tool_use",
        "id": "c-9",
        "name": "Bash",
        "input": {"command": f"ralf handover tide <<'EOF'\n{text}"},
    }
    message = {"role": "assistant", "model": "m", "content": [call]}
    line = {"type": "assistant", "sessionId": "s-1", "uuid": "u-9", "cwd": "/srv/tide", "message": message}
    path.write_text(f"{(worked / 'session.jsonl').read_text()}{json.dumps(line)}\n")
    path.chmod(0o600)
    assert str(ralf.hand_over("tide", text, root=worked)).endswith("; not found in the record: `src/forged.py`")


# ---- whose it is ----


@pytest.mark.ci
@pytest.mark.parametrize(
    ("reads", "author"),
    [("capture_output=True", "agent"), ("stdout=-1", "agent"), ("stderr=-1", "agent"), ("", "person")],
)
def test_a_hand_over_is_an_agents_if_the_program_at_the_terminal_that_runs_it_reads_what_it_prints(
    tmp_path: Path, reads: str, author: str
) -> None:
    (tmp_path / "notes.md").write_text("Half done")
    tool = shlex.join(storekit.command("handover", "tide", "notes.md"))
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.run(['sh', '-c', {tool!r}], check=True, {reads})"],
        cwd=tmp_path,
        env=storekit.environment(tmp_path),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=storekit.takes_terminal,
    )
    os.close(theirs)
    printed = storekit.read_terminal(ours)
    assert child.wait(storekit.HANGS) == 0, printed
    last = context_of(tmp_path).handover.last
    assert last is not None and last.author == author
