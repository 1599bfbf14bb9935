"""Chat messages: the shapes they come in, and a list that is read piece by piece."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ralf
from ralf.errors import DamagedTranscript
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.reader import Transcript, open_transcript

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You are good."},
    {"role": "user", "content": [{"type": "text", "text": 'list the {files} \\ "here"'}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "function": {"name": "shell", "arguments": '{"command": "ls -F"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a\r\nb]"},
    {"role": "assistant", "content": [{"type": "text", "text": "Two: [a, b]."}]},
]
EVENTS = [
    ("user", 'list the {files} \\ "here"', ""),
    ("call", "ls -F", "shell"),
    ("result", "a\nb]", "shell"),
    ("assistant", "Two: [a, b].", ""),
]


def read(path: Path, content: str, after: Position = START) -> tuple[Transcript, list[Event]]:
    path.write_text(content)
    transcript = open_transcript(path)
    return transcript, list(transcript.events(after))


def brief(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(event.kind, event.text, event.tool) for event in events]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(TALK),
        json.dumps(TALK, indent=2) + "\n",
        json.dumps({"environment": "x", "info": {"messages": [1]}, "messages": TALK}, indent=1),
        json.dumps({"trajectory": [{"action": "x"}], "messages": [], "history": TALK, "later": 1}) + "\n",
        "".join(json.dumps(message) + "\n" for message in TALK),
    ],
    ids=["array", "indented", "object", "trajectory", "lines"],
)
def test_a_talk_gives_the_same_events_in_every_shape(tmp_path: Path, content: str) -> None:
    transcript, events = read(tmp_path / "talk", content)
    assert transcript.format == "chat"
    assert brief(events) == EVENTS
    assert transcript.skipped == {"system": 1}
    assert [event.start.line for event in events] == [1, 2, 3, 4]
    assert events[1].input == {"command": "ls -F"}


def test_an_array_goes_on_where_it_ended_when_it_is_written_anew_with_more(tmp_path: Path) -> None:
    transcript, events = read(tmp_path / "talk", json.dumps(TALK[:2], indent=2))
    transcript, later = read(tmp_path / "talk", json.dumps(TALK, indent=2), transcript.end)
    assert brief(events + later) == EVENTS
    assert later[0].start.line == 2
    assert read(tmp_path / "talk", json.dumps(TALK, indent=2), transcript.end)[1] == []


def test_an_agents_observation_written_as_a_users_message_is_a_result(tmp_path: Path) -> None:
    talk = [
        {"agent": "primary", "role": "user", "is_demo": True, "content": "a demonstration"},
        {"agent": "primary", "role": "user", "message_type": "observation", "content": "Solve this.\nbash-$"},
        {
            "agent": "primary",
            "role": "assistant",
            "content": "Look.\n```\nls\n```",
            "thought": "Look.",
            "action": "ls\n",
        },
        {"agent": "primary", "role": "user", "content": "a b\nbash-$"},
    ]
    transcript, events = read(tmp_path / "x.traj", json.dumps({"trajectory": [], "history": talk}))
    assert brief(events) == [
        ("user", "Solve this.\nbash-$", ""),
        ("assistant", "Look.", ""),
        ("call", "ls", "bash"),
        ("result", "a b\nbash-$", "bash"),
    ]
    again = list(transcript.events(events[2].end))
    assert [event.kind for event in again] == ["result"]


def test_an_element_of_an_unknown_name_is_kept_and_counted_and_is_no_message(tmp_path: Path) -> None:
    frame = "<later_frame>words <b>x</b></later_frame>"
    transcript, events = read(tmp_path / "x", json.dumps([{"role": "user", "content": frame}]))
    assert brief(events) == [("other", frame, "")]
    assert transcript.skipped == {"unknown frame": 1}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('[{"role": "alien", "content": "x"}, 7, {"content": "y"}]', "1 malformed, 1 no role, 1 unknown role"),
        (json.dumps({"messages": [{"id": number, "text": "x" * 3_000} for number in range(100)]}), "no list"),
        (json.dumps({"pad": "x" * 300_000, "messages": [{"id": 1}]}), "no client"),
        (json.dumps({"messages": [], "items": [{"text": "x" * 300_000}]}), "no list"),
    ],
    ids=["roles", "long", "late", "empty"],
)
def test_a_file_of_which_no_record_is_understood_is_refused_at_any_size(
    tmp_path: Path, content: str, what: str
) -> None:
    with pytest.raises(DamagedTranscript, match=what):
        read(tmp_path / "x.json", content)
    with pytest.raises(DamagedTranscript):
        ralf.checkpoint("tides", tmp_path / "x.json", root=tmp_path)


BLOCKS: list[dict[str, Any]] = [
    {"role": "system", "content": "You can run bash."},
    {"role": "user", "content": "Please solve this: the parser drops commas."},
    {"role": "assistant", "content": "I look.\n\n```bash\ncat src/p.py\n```"},
    {"role": "user", "content": "<returncode>0</returncode>\n<output>\nx = 1\n</output>"},
    {"role": "assistant", "content": "Two.\n```bash\na\n```\n```bash\nb\n```"},
    {"role": "user", "content": "Please always provide EXACTLY ONE action in triple backticks, found 2 actions."},
    {"role": "assistant", "content": "I test.\n\n```mswea_bash_command\npytest -q\n```"},
    {"role": "user", "content": "<exception>late</exception>\n<returncode>-1</returncode>\n<output>\nno\n</output>"},
    {"role": "assistant", "content": "Done, see above."},
    {"role": "user", "content": "<returncode>9</returncode> is what I see"},
]


@pytest.mark.parametrize("dump", [json.dumps, lambda talk: json.dumps({"info": {}, "messages": talk}, indent=2)])
def test_the_answer_to_a_command_in_a_block_is_no_request(tmp_path: Path, dump: Callable[[Any], str]) -> None:
    _, events = read(tmp_path / "mini.traj.json", dump(BLOCKS))
    assert [event.text for event in events if event.kind == "user"] == [
        "Please solve this: the parser drops commas.",
        "<returncode>9</returncode> is what I see",
    ]
    assert [event.text for event in events if event.kind == "call"] == ["cat src/p.py", "pytest -q"]
    results = [event for event in events if event.kind == "result"]
    assert [(event.exit_status, event.failed) for event in results] == [(0, False), (-1, True)]
    assert next(event.text for event in events if event.kind == "assistant") == "I look."
