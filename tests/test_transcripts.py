"""Transcripts of any format: what a file is told to be, places in it, and input that means harm."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import gemini_records
import rollouts as r
from ralf.errors import DamagedTranscript, UsageError
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.lines import LINE_LIMIT
from ralf.transcripts.reader import Transcript, open_transcript

CLAUDE = '{"type":"user","sessionId":"s1","cwd":"/w","message":{"role":"user","content":"hello there"}}\n'
Record = dict[str, Any]


def read(path: Path, content: str | bytes, after: Position = START) -> tuple[Transcript, list[Event]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    transcript = open_transcript(path)
    return transcript, list(transcript.events(after))


def as_text(path: Path, content: str, after: Position = START) -> tuple[Transcript, list[Event]]:
    path.write_text(content, encoding="utf-8")
    transcript = open_transcript(path, as_text=True)
    return transcript, list(transcript.events(after))


def test_what_is_no_regular_file_is_refused_and_never_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path, "a directory"), (tmp_path / "pipe", "a pipe"), (Path("/dev/zero"), "a device")):
        with pytest.raises(DamagedTranscript, match=what) as caught:
            open_transcript(path)
        assert str(caught.value).startswith(str(path))
    with pytest.raises(UsageError):
        open_transcript(Path("a\0b"))


@pytest.mark.parametrize(
    "content",
    [b"\x7fELF\0\0\0\1" * 9, bytes(100), bytes(range(128, 256)) * 9, "{}".encode("utf-16")],
    ids=["program", "zeros", "latin", "utf-16"],
)
def test_a_binary_file_is_damaged(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DamagedTranscript, match="binary"):
        read(tmp_path / "x.jsonl", content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("talk.md", "# Notes\n\nUser: always push.\n"),
        ("mail.txt", "From: a@example.org\nSubject: x\n\nNever push.\n"),
        ("app.log", "2026-01-01T00:00:00Z INFO started\n"),
        ("app.jsonl", '{"type":"request","message":"GET /"}\n'),
        ("list.json", '[{"name": "x"}]'),
        ("table.csv", "a,b\n1,2\n"),
        ("page.html", "<html><body>User: hi</body></html>\n"),
    ],
)
def test_a_file_that_is_no_session_is_refused_and_the_error_names_what_to_type(
    tmp_path: Path, name: str, content: str
) -> None:
    with pytest.raises(DamagedTranscript) as caught:
        read(tmp_path / name, content)
    assert str(caught.value).startswith(f"{tmp_path / name}: ")
    assert caught.value.hint == f"ralf checkpoint ROUTE --transcript {tmp_path / name} --as text"
    assert as_text(tmp_path / name, content)[0].format == "text"


@pytest.mark.parametrize("content", ['{"type":"us', '[{"role":"user","con', "[", "{"])
def test_a_log_whose_first_record_is_being_written_has_no_events_yet(tmp_path: Path, content: str) -> None:
    assert read(tmp_path / "x.jsonl", content)[1] == []


def test_a_text_is_a_document_that_nobody_said(tmp_path: Path) -> None:
    text = (
        "# Log\nIntro.\n\nUser: use sqlite\nplease\n\n```\nUser: not\n\nme\n```\n\n> quoted\n> twice\n\n"
        "## User\n\nfirst\n\n## Assistant\nfine\n"
    )
    _, events = as_text(tmp_path / "x.md", text)
    assert {event.kind for event in events} == {"note"}
    assert [event.text for event in events] == [
        "# Log\nIntro.",
        "User: use sqlite\nplease",
        "```\nUser: not\n\nme\n```",
        "> quoted\n> twice",
        "## User",
        "first",
        "## Assistant\nfine",
    ]
    assert events[-1].end == Position(len(text), text.count("\n"))


def write_long(path: Path, line: bytes, size: int) -> None:
    with path.open("wb") as file:
        file.write(CLAUDE.encode())
        file.write(b'{"type":"user","isSidechain":false,"sessionId":"s1","message":{"role":"user","content":[{')
        file.write(b'"tool_use_id":"t1","type":"tool_result","is_error":true,"content":"Exit code 3 ')
        for _ in range(size // len(line)):
            file.write(line)
        file.write(b'the end \\u00e9"}]},"uuid":"u","timestamp":"2026-01-01T00:00:00Z"}\n')
        file.write(CLAUDE.encode())


@pytest.mark.ci
def test_a_line_over_the_limit_keeps_both_ends_and_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    write_long(path, b'0123456789\\n\\u001b[1m\\"x' * 1000, 50_000_000)
    tracemalloc.start()
    transcript = open_transcript(path)
    events = list(transcript.events())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000_000
    assert [event.kind for event in events] == ["user", "result", "user"]
    result = events[1]
    assert result.text.startswith('Exit code 3 0123456789\n"x01234')
    assert result.text.endswith('\n"x0123456789\n"xthe end é')
    assert 65_536 < len(result.text) < 2 * 65_536
    assert (result.call_id, result.failed, result.exit_status) == ("t1", True, 3)
    assert result.timestamp == "2026-01-01T00:00:00Z"
    assert result.cut + 2 * 65_536 == result.end.byte - result.start.byte
    assert transcript.skipped["oversized"] == 1
    assert transcript.end == Position(path.stat().st_size, 3)


LONG = "Always push straight to main. " + "x" * LINE_LIMIT

IMAGE = "A" * (LINE_LIMIT // 2 + 1)

IMAGES = [{"type": "image", "source": IMAGE}] * 2


def claude(*content: str | Record, **more: object) -> list[Record]:
    parts = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    message = {"role": "user", "content": parts}
    return [{"type": "system", "sessionId": "s1"}, {**json.loads(CLAUDE), "message": message, **more}]


def gemini(*texts: str, **more: Any) -> list[Record]:
    opening = [gemini_records.META, {"$set": {"messages": gemini_records.SET_UP}}]
    return [*opening, gemini_records.asked(*texts, **more)]


FILES = "\n--- Content from referenced files ---", LONG, "\n--- End of content ---"


@pytest.mark.parametrize(
    "records",
    [
        claude(LONG, isMeta=True),
        claude("read it", LONG, isMeta=True),
        claude("did one", *IMAGES, isCompactSummary=True),
        [*claude(), {"type": "queue-operation", "operation": "enqueue", "sessionId": "s1", "content": LONG}],
        [r.meta(), r.message("user", "so", LONG, kinds=["instructions"] * 2)],
        [r.meta(), r.event("user_message", message=LONG, kind="instructions")],
        gemini(*FILES),
    ],
)
def test_a_record_over_the_limit_is_nobodys_words_where_a_field_of_it_or_the_lost_middle_may_say_so(
    tmp_path: Path, records: list[Record]
) -> None:
    _, events = read(tmp_path / "x", "".join(json.dumps(record) + "\n" for record in records))
    assert [event.text for event in events if event.kind == "user"] == []
