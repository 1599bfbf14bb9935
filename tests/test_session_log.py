"""The log that ralf keeps of a session of opencode: redacted before it is written, whole, and masked in place."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import opencode_records as o
import ralf
from ralf.maintenance import ownership
from ralf.maintenance.forget import forget, forget_route
from ralf.project import Project
from ralf.redact.redactor import Redactor
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


def test_the_answers_to_a_question_and_the_marks_of_a_text_are_in_the_log_without_secrets(project: Project) -> None:
    asked = {**o.CALL, "tool": "question", "input": {"questions": [{"question": "Which?"}, {"question": "With what?"}]}}
    answers = {"tool": "question", "output": "the two", "answers": [["Chart", 'or "Mean"'], [f"use {TOKEN}"]]}
    shown = {**o.ASKED, "id": "prt_9", "text": "Push it", "ignored": True}
    assert wrote(project, asked, {**o.RESULT, **answers}, shown) == 0
    assert TOKEN not in log(project).read_text()
    found = [event.text for event in open_transcript(log(project)).events() if event.kind == "user"]
    assert found[0] == 'Chart, or "Mean"' and found[1].startswith("use [REDACTED:") and len(found) == 2


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


def test_ids_and_names_are_not_taken_for_secrets_of_a_log(tmp_path: Path) -> None:
    redactor = Redactor(b"k" * 32)
    words = "deploy src/Tide2Table_v3.py at 3f2a9c81d0e4b6a75c1d; see https://example.org/a?b=c1d2 and réf-7"
    assert redactor.recognized(words, {"00000000": "[REDACTED:password:00000000]"}) == {}
    made = redactor.marker("password", RANDOM)
    assert redactor.recognized(f"{words} x={RANDOM};", {made[-9:-1]: made}) == {RANDOM: made}


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


@pytest.mark.parametrize("torn", [b'{"type":"session","cl', b'{"type":"session","cl\n'])
def test_a_torn_header_costs_no_record(project: Project, torn: bytes) -> None:
    log(project).parent.mkdir(parents=True)
    log(project).write_bytes(torn)
    assert wrote(project, o.ASKED) == 0
    assert wrote(project, o.ASKED, o.SAID) == 0
    assert [event.text for event in open_transcript(log(project)).events()] == ["please build it", "Step 1"]
    assert log(project).read_bytes().startswith(torn)
    assert log(project).read_text().count('"log":2') == 1


def test_a_log_that_is_deleted_through_its_process_is_not_written_again(project: Project) -> None:
    first, head, asked, said = lines(project, o.ASKED, o.SAID)
    gone = json.dumps({"session": o.SESSION, "deleted": True}).encode()
    assert session_log.run([first, head, asked, gone, said, head, gone], print) == 0
    assert not log(project).exists()


def test_a_log_that_is_deleted_meanwhile_begins_anew(project: Project) -> None:
    def sent() -> Iterator[bytes]:
        first, head, asked, said = lines(project, o.ASKED, o.SAID)
        yield from (first, head, asked)
        log(project).unlink()
        yield said

    assert session_log.run(sent(), print) == 0
    assert [event.text for event in open_transcript(log(project)).events()] == ["Step 1"]


def test_a_log_of_a_version_that_did_not_redact_is_replaced(project: Project) -> None:
    o.write(log(project), {**o.ASKED, "text": TOKEN})
    log(project).write_text(log(project).read_text().replace('"log": 2', '"log": 1'))
    assert TOKEN in log(project).read_text()
    assert wrote(project, *LEAKING) == 0
    assert TOKEN not in log(project).read_text()
    assert len(list(open_transcript(log(project)).events())) == 6


def test_where_a_pattern_of_the_user_cannot_run_nothing_is_written_and_the_error_is_logged(project: Project) -> None:
    with project.config_file.open("a") as file:
        file.write("redact_patterns: ['(']\n")
    assert wrote(Project(project.root), o.ASKED) == 1
    assert not log(project).exists()
    assert "redact_patterns" in error_log.log(project).read_text()


def test_where_nobody_has_opted_in_nothing_is_written(project: Project) -> None:
    project.owner.update(hooks=False)
    assert wrote(Project(project.root), o.ASKED) == 1
    assert not log(project).exists()


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


def test_lines_that_are_no_records_are_passed_over(project: Project) -> None:
    deep = b'{"session":"' + o.SESSION.encode() + b'","record":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001 + b"\n"
    sent = lines(project, o.ASKED)
    odd = [b"\n", b"\xff\xfe\n", b"[1]\n", b'{"sync":"x"}\n', b'{"record":[]}\n', deep, deep[:40]]
    assert session_log.run([*sent, *odd], print) == 0
    assert len(log(project).read_text().splitlines()) == 2


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


@pytest.mark.ci
def test_what_was_ingested_before_a_forget_is_not_ingested_again(noted: Project) -> None:
    forget("tide", text=WORDS, root=noted.root)
    wrote(noted, {**o.ASKED, "id": "prt_8", "text": "And the lamp?"})
    ralf.checkpoint("tide", log(noted), root=noted.root)
    assert [one.lines for one in ralf.get_context("tide", root=noted.root).checkpoints] == ["2-6", "7-7"]


def test_of_a_checkpoint_that_is_forgotten_the_log_keeps_no_word(noted: Project) -> None:
    wrote(noted, {**o.ASKED, "id": "prt_8", "text": "And the lamp?"})
    done = forget("tide", "cp-1", root=noted.root)
    assert str(log(noted)) in done.files
    source = open_transcript(log(noted))
    assert [(event.kind, event.text) for event in source.events() if event.text] == [("user", "And the lamp?")]
    assert source.skipped["forgotten"] == 3


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
