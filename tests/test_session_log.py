"""The log that ralf keeps of a session of opencode: redacted before it is written, whole, and masked in place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import opencode_records as o
import ralf
from ralf.maintenance import ownership
from ralf.maintenance.forget import forget, forget_route
from ralf.project import Project
from ralf.route import offsets
from ralf.transcripts.events import Position
from ralf.transcripts.reader import open_transcript
from ralf_integrations.client import OPENCODE
from ralf_integrations.hooks import error_log, session_log

TOKEN = "ghp_" + "q7Rt2bVx9MpL4sKd8WzY3nCf1aBcDeFgHiJk"
PASSWORD = "Tr0ub4dor&3x"  # noqa: S105
RANDOM = "q7Rt2bVx9MpL4sKd8WzY3nCf"
WORDS = "The harbour master's key lies under the third stone"
HEAD = {"type": "session", "client": "opencode", "session": o.SESSION, "directory": "/srv/tides", "time": o.WHEN}
LEAKING = (
    {**o.ASKED, "text": f"use {TOKEN} for the upload"},
    {**o.CALL, "input": {"command": "./login", "password": PASSWORD}},
    {**o.RESULT, "output": f"\x1b[1m{TOKEN[:20]}\x1b[0m{TOKEN[20:]}\nDB_PASSWORD={PASSWORD}\n"},
    {**o.RESULT, "id": "call_2", "status": "error", "error": f"401 for https://ci:{PASSWORD}@example.org/"},
    {**o.DONE, "id": "msg_1", "error": f"the provider refused {TOKEN}"},
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "tides").mkdir()
    found = Project(tmp_path / "tides")
    ownership.init(found, share=False)
    return found


def log(project: Project) -> Path:
    return project.root.parent / "share/opencode/ralf" / f"{o.SESSION}.jsonl"


def lines(project: Project, *records: o.Record) -> list[bytes]:
    head = {**HEAD, "directory": str(project.root)}
    sent = [{"cwd": str(project.root)}, *({"session": o.SESSION, "record": record} for record in (head, *records))]
    return [json.dumps(line).encode() + b"\n" for line in sent]


def wrote(project: Project, *records: o.Record) -> int:
    return session_log.run(lines(project, *records), print)


def started(project: Project) -> subprocess.Popen[bytes]:
    """The process that the plugin starts."""
    command = OPENCODE.command("session.log", shared=False)
    return subprocess.Popen(command, cwd=project.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.ci
def test_no_secret_of_a_session_reaches_the_disk(project: Project) -> None:
    process = started(project)
    out, _ = process.communicate(b"".join([*lines(project, *LEAKING), b'{"sync":7}\n']), timeout=120)
    assert (process.returncode, out) == (0, b"7\n")
    (path,) = (project.root.parent / "share").rglob("*.jsonl")
    assert path == log(project)
    text = path.read_text()
    for secret in (TOKEN, TOKEN[:20], TOKEN[20:], PASSWORD, PASSWORD.replace("&", "\\u0026")):
        assert secret not in text, secret
    assert text.count("[REDACTED:") == 6
    assert [event.kind for event in open_transcript(path).events()] == [
        *("user", "call", "result", "result", "other", "mark")
    ]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_secret_that_is_known_only_later_is_masked_where_it_was_said(project: Project) -> None:
    asked = {**o.ASKED, "text": f"echo {RANDOM} is what I have"}
    assert wrote(project, asked, {**o.SAID, "text": f"export API_KEY={RANDOM}"}) == 0
    text = log(project).read_text()
    assert RANDOM not in text
    events = list(open_transcript(log(project)).events())
    assert "*" * len(RANDOM) in events[0].text
    assert wrote(project, {**o.SAID, "id": "prt_9", "text": "the end"}) == 0
    assert [event.text for event in open_transcript(log(project)).events()][-1] == "the end"


@pytest.mark.parametrize(
    "bare", ["is {} still right?", "curl -u ci:{}@example.org", 'x="{}".', "\x1b[1m{}\x1b[0m", "a={}&b", "({})"]
)
def test_a_secret_of_an_earlier_process_is_known_by_its_tag_in_the_log(project: Project, bare: str) -> None:
    assert wrote(project, {**o.ASKED, "text": f"export DB_PASSWORD={RANDOM}"}) == 0
    call = {**o.CALL, "input": {"command": f"echo {bare.format(RANDOM)}"}}
    assert wrote(project, {**o.SAID, "text": bare.format(RANDOM)}, call) == 0
    text = log(project).read_text()
    assert RANDOM not in text
    assert text.count("[REDACTED:") == 3
    ralf.checkpoint("tide", log(project), root=project.root)
    for path in project.folder.rglob("*"):
        assert not path.is_file() or RANDOM.encode() not in path.read_bytes(), path


@pytest.mark.ci
def test_a_record_that_is_sent_again_is_written_once_by_any_number_of_processes(project: Project) -> None:
    records = [{**o.SAID, "id": f"prt_{number}", "text": f"Step {number}"} for number in range(200)]
    processes = [started(project) for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"".join(lines(project, *records, *records)))
        process.stdin.close()
        assert process.stdout is not None
        process.stdout.close()
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    texts = [event.text for event in open_transcript(log(project)).events()]
    assert sorted(texts) == sorted(record["text"] for record in records)
    assert log(project).read_text().count('"type":"session"') == 1


def test_a_torn_line_costs_its_own_record_alone(project: Project) -> None:
    wrote(project, o.ASKED)
    with log(project).open("ab") as file:
        file.write('{"type":"text","role":"assistant","id":"prt_2","text":"St…'.encode()[:-1])
    assert wrote(project, o.ASKED, o.SAID) == 0
    source = open_transcript(log(project))
    assert [event.text for event in source.events()] == ["please build it", "Step 1"]
    assert source.malformed == [3]


def test_a_log_that_is_deleted_through_its_process_is_not_written_again(project: Project) -> None:
    first, head, asked, said = lines(project, o.ASKED, o.SAID)
    gone = json.dumps({"session": o.SESSION, "deleted": True}).encode()
    assert session_log.run([first, head, asked, gone, said, head, gone], print) == 0
    assert not log(project).exists()


def test_where_a_pattern_of_the_user_cannot_run_nothing_is_written_and_the_error_is_logged(project: Project) -> None:
    with project.config_file.open("a") as file:
        file.write("redact_patterns: ['(']\n")
    assert wrote(Project(project.root), o.ASKED) == 1
    assert not log(project).exists()
    assert "redact_patterns" in error_log.log(project).read_text()


@pytest.mark.parametrize("session", ["../../x", "a/b", "", "x" * 65, 7, None])
def test_a_session_cannot_name_a_file_elsewhere(project: Project, session: object) -> None:
    before = {path for path in project.root.parent.rglob("*") if path.is_file()}
    line = json.dumps({"session": session, "record": o.ASKED}).encode()
    assert session_log.run([lines(project)[0], line], print) == 0
    assert {path for path in project.root.parent.rglob("*") if path.is_file()} == before


def test_a_link_in_the_place_of_a_log_is_not_written_through(project: Project) -> None:
    log(project).parent.mkdir(parents=True)
    other = project.root / "mine.txt"
    other.write_text("mine\n")
    log(project).symlink_to(other)
    assert wrote(project, o.ASKED) == 1
    assert other.read_text() == "mine\n"


def test_a_log_that_is_full_takes_no_more_and_that_is_told_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_log, "MOST", 1_000)
    records = [{**o.SAID, "id": f"prt_{number}", "text": f"Step {number}"} for number in range(50)]
    assert wrote(project, *records) == 0
    assert log(project).stat().st_size <= 1_000
    assert f"{log(project)}: has 0 MB" in error_log.log(project).read_text()


# ---- what is forgotten ----


@pytest.fixture
def noted(project: Project) -> Project:
    """A project with a checkpoint of a session in which the words were said."""
    wrote(
        project,
        {**o.ASKED, "text": "Where is the key?\nTell me."},
        {**o.SAID, "text": f'By the way: "{WORDS}", so it was found — at last.'},
        {**o.CALL, "input": {"command": "echo", "why": WORDS.upper()}},
        {**o.RESULT, "output": WORDS.replace(" ", "\n")},
        o.DONE,
    )
    ralf.checkpoint("tide", log(project), root=project.root)
    return project


def told(project: Project) -> list[tuple[str, Position, Position]]:
    return [(event.kind, event.start, event.end) for event in open_transcript(log(project)).events()]


@pytest.mark.ci
def test_a_text_that_is_forgotten_is_masked_in_the_log_and_no_place_in_it_moves(noted: Project) -> None:
    before, size = told(noted), log(noted).stat().st_size
    looked = forget("tide", text=WORDS, dry_run=True, root=noted.root)
    assert str(log(noted)) in looked.files
    done = forget("tide", text=WORDS, root=noted.root)
    assert str(log(noted)) in done.files
    assert done.left == ()
    text = log(noted).read_text()
    assert "third" not in text.casefold()
    assert 'By the way: \\"****' in text
    assert (told(noted), log(noted).stat().st_size) == (before, size)
    stand = offsets.ingest_offset(noted, "tide", o.SESSION)
    assert offsets.is_unchanged(stand, open_transcript(log(noted)))
    assert not forget("tide", text=WORDS, root=noted.root).touched


def test_of_a_route_that_is_forgotten_the_log_keeps_no_word(noted: Project) -> None:
    assert str(log(noted)) in forget_route("tide", dry_run=True, root=noted.root).files
    assert WORDS in log(noted).read_text()
    forget_route("tide", root=noted.root)
    assert [event.text for event in open_transcript(log(noted)).events() if event.text] == []


def test_the_process_ends_with_its_input_though_the_client_was_killed(project: Project) -> None:
    sender = (
        "import subprocess, sys, os, signal, json\n"
        "child = subprocess.Popen(json.loads(sys.argv[1]), stdin=subprocess.PIPE, start_new_session=True)\n"
        "child.stdin.write(sys.stdin.buffer.read())\nchild.stdin.flush()\n"
        "print(child.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = json.dumps(OPENCODE.command("session.log", shared=False))
    subprocess.run(
        [sys.executable, "-c", sender, command],
        input=b"".join(lines(project, o.ASKED, o.SAID)),
        cwd=project.root,
        stdout=subprocess.PIPE,
        check=False,
        timeout=120,
    )  # its output ends when the other process does, too
    assert [event.text for event in open_transcript(log(project)).events()] == ["please build it", "Step 1"]
