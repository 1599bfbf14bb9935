"""Chat messages: the shapes they come in, and a list that is read piece by piece."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import ralf
from examples import examples
from ralf.errors import DamagedTranscript
from ralf.text.cleaning import OWN_OUTPUT
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.reader import Transcript, open_transcript

SHARED = Path(__file__).parents[2] / "shared"

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


@pytest.mark.ci
def test_a_cut_array_gives_its_complete_messages_and_the_rest_later(tmp_path: Path) -> None:
    whole = json.dumps({"messages": TALK}) + "\n"
    for cut in range(20, len(whole)):
        transcript, events = read(tmp_path / "talk", whole[:cut])
        _, later = read(tmp_path / "talk", whole, transcript.end)
        assert [(event.kind, event.text) for event in events + later] == [event[:2] for event in EVENTS]


def test_a_message_that_opens_twice_and_closes_once_waits_at_each_reading(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text('[{"role": "user", "content": "Begin."}\n{{"role": "user", "content": "Never whole."}\n', "utf-8")
    source = open_transcript(path)
    assert [event.text for event in source.events()] == ["Begin."]
    assert list(source.events(source.end)) == []


def test_blocks_of_tools_inside_messages_are_calls_and_results(tmp_path: Path) -> None:
    talk = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "u", "name": "Read", "input": {"path": "p", "n": 2}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u", "content": "no", "is_error": True}]},
    ]
    _, events = read(tmp_path / "x", json.dumps(talk))
    assert brief(events) == [("call", "p\n2", "Read"), ("result", "no", "Read")]
    assert events[1].failed


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


def test_what_is_no_message_is_counted_and_named(tmp_path: Path) -> None:
    good, odd = '{"role": "user", "content": "x"}', '{"role": "alien"}, {"content": "y"}'
    talk = f'[{good}, 7, "s", {odd}, {{bad}}, {good}]'
    transcript, events = read(tmp_path / "x", talk)
    assert [event.text for event in events] == ["x", "x"]
    assert transcript.skipped == {"malformed": 3, "unknown role": 1, "no role": 1}
    assert transcript.malformed == [2, 3, 6]


def test_a_message_of_several_texts_is_one_and_has_its_records_id(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "one"}, {"type": "image"}, "two", {"type": "text", "text": f"{OWN_OUTPUT} -->"}]
    _, events = read(tmp_path / "x", json.dumps([{"role": "user", "id": "m7", "content": content}]))
    assert [(event.text, event.id) for event in events] == [("one\ntwo", "m7")]


def test_words_beside_the_answer_of_a_tool_are_the_persons(tmp_path: Path) -> None:
    content = [{"type": "tool_result", "tool_use_id": "u", "content": "ok"}, {"type": "text", "text": "and the tests"}]
    _, events = read(tmp_path / "x", json.dumps([{"role": "user", "content": content}]))
    assert brief(events) == [("result", "ok", ""), ("user", "and the tests", "")]


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


def test_a_checkpoint_counts_the_records_that_were_not_understood(tmp_path: Path) -> None:
    talk = [*TALK, {"role": "alien", "content": "x"}, {"type": "tool_use"}]
    (tmp_path / "talk.jsonl").write_text("".join(json.dumps(one) + "\n" for one in talk))
    report = ralf.checkpoint("tides", tmp_path / "talk.jsonl", root=tmp_path)
    assert report.skipped == {"system": 1, "unknown role": 1, "no role": 1}
    assert any("1 no role, 1 unknown role" in warning for warning in report.warnings)


def test_a_first_reading_without_a_message_is_not_told_as_nothing_new(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(json.dumps(TALK[0]) + "\n")
    assert ralf.checkpoint("tides", path, root=tmp_path).blank
    path.write_text("".join(json.dumps(one) + "\n" for one in TALK))
    assert not ralf.checkpoint("tides", path, root=tmp_path).blank
    assert not ralf.checkpoint("tides", path, root=tmp_path).blank
    for content in ("", "[]", '[{"role": "us'):
        path.write_text(content)
        with pytest.raises(DamagedTranscript, match="no finished record"):
            ralf.checkpoint("bays", path, root=tmp_path)
        assert not ralf.checkpoint("bays", path, root=tmp_path, reason="session-end").checkpoints


def test_what_ralf_printed_is_not_a_message(tmp_path: Path) -> None:
    text = f"{OWN_OUTPUT} -->\nx"
    talk = [{"role": role, "content": text} for role in ("user", "assistant", "tool")]
    _, events = read(tmp_path / "x", json.dumps(talk))
    assert brief(events) == [("result", "", "")]


@pytest.mark.ci
def test_a_message_over_the_limit_is_reported_with_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("w") as file:
        file.write('[{"role": "user", "content": "first"}, {"role": "user", "content": "')
        for _ in range(40):
            file.write('{"a\\" [' * 125_000)
        file.write('"}, {"role": "user", "content": "last"}]')
    tracemalloc.start()
    transcript = open_transcript(path)
    events = list(transcript.events())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000
    assert brief(events) == [("user", "first", ""), ("other", "", ""), ("user", "last", "")]
    assert events[1].cut == events[1].end.byte - events[1].start.byte > 30_000_000
    assert transcript.skipped == {"oversized": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.ci
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200), deadline=None)
@given(
    messages=st.lists(
        st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=30), JSON), max_size=6
    ),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
)
def test_every_message_of_a_list_is_found_whatever_else_stands_in_it(
    tmp_path: Path, messages: list[tuple[str, str, object]], indent: int | None, ascii_only: bool
) -> None:
    talk = [{"role": role, "extra": extra, "content": f"({text})"} for role, text, extra in messages]
    text = json.dumps(
        {"first": [extra for *_, extra in messages], "messages": talk}, indent=indent, ensure_ascii=ascii_only
    )
    path = tmp_path / "x"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    if not talk:
        return
    transcript = open_transcript(path)
    events = list(transcript.events())
    assert len(events) == len(talk)
    for number, event in enumerate(events, 1):
        assert [later.text for later in transcript.events(event.end)] == [later.text for later in events[number:]]


def test_real_runs_of_an_agent_hold_one_request_each() -> None:
    paths = sorted((SHARED / "data" / "transcripts").glob("*.traj"))
    if not paths:
        pytest.skip("the shared transcripts are not beside this checkout")
    for path in paths:
        events = list(open_transcript(path).events())
        assert [event.kind for event in events].count("user") == 1
        calls = [event for event in events if event.kind == "call"]
        assert len(calls) > 5
        assert all(event.input["command"] for event in calls if event.tool == "bash")


# ---- commands in blocks, and what tells that one failed ----

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


def test_a_block_in_a_chat_without_such_answers_is_advice(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "How do I list?"}, {"role": "assistant", "content": "Run:\n```bash\nls\n```"}]
    _, events = read(tmp_path / "talk.json", json.dumps(talk))
    assert [event.kind for event in events] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("<returncode>1</returncode>\n<output>\nx\n</output>", 1),
        ("exit code 1", 1),
        ("Exit code: 2\nno such file", 2),
        ("x\n[Command finished with exit code 3]", 3),
        ("x\nProcess exited with code 4", 4),
        ("Error: Command failed with exit code 127", 127),
        ("x\n(exit code 0)", 0),
        ("The exit code 1 means that it failed", None),
        ("x\nexit code 5\ny", None),
        ("status: 404", None),
    ],
)
def test_a_status_in_the_first_or_last_line_of_a_commands_answer_counts(
    tmp_path: Path, content: str, status: int | None
) -> None:
    talk = [*TALK[:3], {"role": "tool", "tool_call_id": "c1", "content": content}]
    _, events = read(tmp_path / "talk.json", json.dumps(talk))
    assert (events[-1].exit_status, events[-1].failed) == (status, bool(status))


def test_a_status_is_believed_of_commands_and_fields_and_not_of_a_shown_file(tmp_path: Path) -> None:
    shown = {"id": "c1", "function": {"name": "view", "arguments": '{"command": "view", "path": "a"}'}}
    talk: list[dict[str, Any]] = [
        *TALK[:2],
        {"role": "assistant", "content": None, "tool_calls": [shown]},
        {"role": "tool", "tool_call_id": "c1", "content": "exit code 1"},
        TALK[2],
        {"role": "tool", "tool_call_id": "c1", "content": "no", "extra": {"returncode": 6}},
    ]
    _, events = read(tmp_path / "talk.json", json.dumps(talk))
    assert [event.exit_status for event in events if event.kind == "result"] == [None, 6]
