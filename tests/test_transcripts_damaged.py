"""Damaged and hostile logs of every client: no traceback, linear time, a count of what was not read, and the same in
pieces as at once.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import gemini_records as g
import opencode_records as o
import ralf
import rollouts as r
import test_transcripts_claude_code as c
from clocks import in_line
from examples import examples
from ralf.transcripts.events import START, Event
from ralf.transcripts.reader import Transcript, open_transcript

Record = dict[str, Any]

ODD: list[Any] = [
    *(None, True, -1, 7, 0.5, 1e308, float("inf"), float("nan"), 10**400, "", "x", "\ud800", "\x1b[1m\0", [], {}),
    *([[]], [{}], [None, 7], {"": None}, {"text": 7}, "0001-01-01T00:00:00", "9999-12-31T23:59:59-23:59"),
]
"""What stands where another type should."""


@dataclass(frozen=True)
class Format:
    """A client's format.

    records  of a session with all kinds of them
    said     a message, with a number of its own
    others   records that hold a text in other places
    """

    name: str
    write: Callable[..., Path]
    records: tuple[Record, ...]
    said: Callable[[int, str], Record]
    others: Callable[[str], list[Record]]


_ASKED = {"questions": [{"question": "Which datum?", "options": [{"label": "Chart", "description": "x"}]}]}


def _compacted() -> Record:
    text = {"text": "<state_snapshot>did one</state_snapshot>"}
    snapshot = {"id": "s1", "timestamp": g.WHEN, "type": "user", "content": [text]}
    return {"$set": {"messages": [*g.SET_UP, snapshot], "lastUpdated": g.WHEN}}


GEMINI = Format(
    "gemini",
    g.write,
    (
        g.asked(f"{g.CONTEXT}\n\nplease build it"),
        g.said("Step 1", thoughts=[{"subject": "Look", "description": "at it"}]),
        g.said("Step 1", g.ran("ls", "a.py\nExit Code: 2"), g.called("write_file", {"file_path": "a"}, {}, id_="c2")),
        _compacted(),
        {"id": "e1", "timestamp": g.WHEN, "type": "error", "content": "quota"},
        {"id": "i1", "timestamp": g.WHEN, "type": "info", "content": "Request cancelled."},
        {"$rewindTo": "u1"},
        {"$set": {"summary": "Tides", "lastUpdated": g.WHEN}},
        g.said("", g.called("ask_user", _ASKED, {"output": '{"answers": {"0": "Chart"}}'}, id_="c3"), id_="g3"),
        g.said("Done", id_="g2"),
    ),
    lambda number, text: g.said(text, id_=f"n{number}"),
    lambda text: [g.said("", g.ran("cat", text), id_="p1"), g.asked(text), g.asked(text, displayContent=text)],
)
OPENCODE = Format(
    "opencode",
    o.write,
    (
        o.ASKED,
        {"type": "reasoning", "role": "assistant", "id": "prt_0", "text": "Look", "time": o.WHEN},
        o.CALL,
        o.RESULT,
        o.SAID,
        {**o.SAID, "id": "prt_5", "role": "summary"},
        {**o.RESULT, "id": "call_2", "status": "error", "error": "rejected permission"},
        {**o.DONE, "error": "quota"},
        {**o.ASKED, "id": "prt_8", "text": "The following tool was executed by the user", "synthetic": True},
        {**o.CALL, "id": "call_8"},
        {**o.RESULT, "id": "call_8"},
        {**o.CALL, "id": "call_9", "tool": "question", "input": _ASKED},
        {**o.RESULT, "id": "call_9", "tool": "question", "output": 'answered: "Which datum?"="Chart". Go on.'},
        {"type": "rewound", "id": "msg_1", "time": o.WHEN},
        {**o.DONE, "finish": "stop"},
    ),
    lambda number, text: {**o.SAID, "id": f"n{number}", "text": text},
    lambda text: [{**o.RESULT, "output": text}, o.ASKED | {"text": text}],
)


def _written(path: Path, *records: Record) -> Path:
    path.write_text(c.jsonl({"type": "mode", "mode": "normal", "sessionId": "s1"}, *records))
    return path


CLAUDE_CODE = Format(
    "claude-code",
    _written,
    (
        c.user("a"),
        c.user("x", isMeta=True),
        c.call("Bash", "t1", command="ls"),
        c.result("ok", "t1", toolUseResult={"stdout": "ok", "interrupted": False}),
        c.call("Read", "t2", path="p"),
        c.result(c.DECLINED + c.SAID + "no", "t2", error=True),
        c.assistant({"type": "text", "text": "said"}, usage={"input_tokens": 5}),
        c.queued("a"),
        c.queued("b"),
        c.queued(None, "remove"),
        c.queued(None, "dequeue"),
        c.queued("<task-notification>done</task-notification>"),
        c.user("<bash-input>ls</bash-input>"),
        c.call("AskUserQuestion", "t3", questions=[{"question": "Which?", "options": [{"label": "A"}]}]),
        c.result("", "t3", toolUseResult={"answers": {"Which?": "A"}, "questions": []}),
        {"type": "custom-title", "customTitle": "Pumps", "sessionId": "s1"},
        c.BOUNDARY,
        c.user("summary", isCompactSummary=True),
        {"type": "progress", "data": {"type": "user"}},
    ),
    lambda number, text: c.assistant({"type": "text", "text": text}, uuid=f"n{number}"),
    lambda text: [c.result(text), c.user(text), c.queued(text)],
)
CODEX = Format(
    "codex",
    lambda path, *records: r.write(path, r.meta(), r.turn(), *records),
    (
        *r.typed("go on"),
        *r.typed_before("why?"),
        r.injected("<environment_context>x</environment_context>"),
        r.handed("notes"),
        *r.agent("I will"),
        r.counted(9),
        r.message("assistant", "We did one"),
        r.compacted("We did one"),
        r.event("exec_command_end", command=["sh", "-c", "ls"], source="user_shell", aggregated_output="x"),
        r.custom("exec", "text(await tools.exec_command({cmd: 'make'}))", "call_9"),
        r.output([{"type": "input_text", "text": "Script completed"}], "call_9", of="custom_tool_call_output"),
        r.event("thread_rolled_back", num_turns=1),
        r.call("exec_command", {"cmd": "make"}),
        r.output("Wall time: 1 seconds\nProcess running with session ID 2\nOutput:\nx"),
        r.call("write_stdin", {"session_id": 2}, "call_2"),
        r.ran("done", 1, "call_2"),
        r.completed("CommandExecution", "exec-1", command=["a"], exit_code=1, aggregated_output="x"),
        r.event("turn_aborted", reason="interrupted"),
    ),
    lambda number, text: r.event("user_message", message=text, kind="plain", number=number),
    lambda text: [r.ran(text), r.call("exec_command", {"cmd": text}), r.message("assistant", text)],
)
FORMATS = [CLAUDE_CODE, CODEX, GEMINI, OPENCODE]
each = pytest.mark.parametrize("made", FORMATS, ids=lambda made: str(made.name))
in_folder = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(path: Path) -> tuple[Transcript, list[Event]]:
    source = open_transcript(path)
    events = list(source.events())
    for event in events:
        event.text.encode()
        json.dumps(dict(event.input)).encode()
        assert event.start.byte <= event.end.byte <= source.end.byte
    return source, events


def changed(tree: Any, change: Callable[[Any, Any], None]) -> Iterator[Any]:
    """A record for each of its values, in which that one is changed: `change` is given what holds it, and its key."""

    def places(inner: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        pairs = inner.items() if isinstance(inner, dict) else enumerate(inner) if isinstance(inner, list) else ()
        for key, item in list(pairs):
            yield (*path, key)
            yield from places(item, (*path, key))

    for *above, key in list(places(tree, ())):
        made = copy.deepcopy(tree)
        inner = made
        for step in above:
            inner = inner[step]
        change(inner, key)
        yield made


@pytest.mark.ci
@each
def test_a_value_of_any_other_type_costs_its_own_record_alone(tmp_path: Path, made: Format) -> None:
    path = tmp_path / "s.jsonl"
    for odd in ODD:

        def put(inner: Any, key: Any, odd: Any = odd) -> None:
            inner[key] = odd

        damaged = [one for record in made.records for one in changed(record, put)]
        made.write(path, made.said(1, "before"), *damaged, made.said(2, "after"))
        texts = [event.text for event in read(path)[1]]
        assert (texts[0], texts[-1]) == ("before", "after"), odd


@pytest.mark.ci
@each
def test_a_file_that_is_cut_anywhere_loses_its_last_record_and_no_more(tmp_path: Path, made: Format) -> None:
    path = made.write(tmp_path / "s.jsonl", made.said(1, "before"), made.said(2, "größer … 継続"))
    content = json.dumps(made.said(2, "größer … 継続"), ensure_ascii=False).encode() + b"\n"
    first = b"".join(path.read_bytes().splitlines(keepends=True)[:-1])
    for cut in range(len(content)):
        path.write_bytes(first + content[:cut])
        source, events = read(path)
        is_whole = cut == len(content) - 1
        assert [event.text for event in events if event.text] == ["before", "größer … 継続"][: 1 + is_whole]
        assert source.skipped["unfinished"] == (0 if is_whole or not cut else 1)
        path.write_bytes(first + content[:cut] + b"\n" + content)  # a client that was killed, and another one
        source, events = read(path)
        assert [event.text for event in events if event.text][-1] == "größer … 継続"
        assert len(source.malformed) == (0 if is_whole or not cut else 1)


@pytest.mark.ci
@each
@pytest.mark.parametrize(
    "text",
    [
        "<hook_context>",
        "<hook_context></hook_context>",
        "<untrusted_context>\n",
        "Exit Code: 1\n",
        "<state_snapshot>",
        '"',
        "\ud800",
    ],
)
def test_the_time_grows_with_the_size_and_no_faster(tmp_path: Path, made: Format, text: str) -> None:
    def seconds(times: int) -> float:
        pumped = text * times
        path = made.write(tmp_path / "s.jsonl", made.said(1, pumped), *made.others(pumped))
        began = time.process_time()
        read(path)
        return time.process_time() - began

    seconds(100)
    in_line(lambda: seconds(10_000), lambda: seconds(40_000), 12, 0.2)


@each
def test_a_checkpoint_of_a_damaged_log_says_what_it_could_not_read(tmp_path: Path, made: Format) -> None:
    path = made.write(tmp_path / "s.jsonl", *made.records)
    with path.open("ab") as file:
        file.write(
            b'{"type":"text","id":\n\xff\xfe\n[1]\n' + json.dumps(made.said(9, "We use SQLite.")).encode() + b"\n"
        )
    done = ralf.checkpoint("tides", path, root=tmp_path)
    assert done.checkpoints
    assert open_transcript(path).skipped == {}
    source, _ = read(path)
    assert source.skipped["malformed"] == len(source.malformed) >= 2


@pytest.mark.ci
@each
@in_folder
@given(data=st.data())
def test_reading_in_pieces_tells_what_reading_at_once_tells(tmp_path: Path, made: Format, data: st.DataObject) -> None:
    records = data.draw(st.lists(st.sampled_from(made.records), max_size=10))
    whole = made.write(tmp_path / "whole.jsonl", *records)
    at_once = read(whole)[1]
    content = whole.read_bytes()
    path, place, events = tmp_path / "growing.jsonl", START, []
    ends = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    for end in [*(at for at in ends if content[at : at + 1] != b"\n"), len(content)]:
        path.write_bytes(content[:end])
        source = open_transcript(whole)  # its head tells what it is from the first byte on
        source.path = path
        if end >= place.byte:
            events += list(source.events(place))
            place = source.end
    assert events == at_once
    if at_once:
        event = data.draw(st.sampled_from(at_once))
        rest = [later for later in at_once if later.start.byte >= event.end.byte]
        assert list(open_transcript(whole).events(event.end)) == rest
