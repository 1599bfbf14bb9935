"""A hand-over is read from whatever form it has, leads the brief, makes no rule, and says what is borne out."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from dataclasses import replace
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import ralf
import storekit
from clocks import within
from ralf.brief.wording import tokens_after
from ralf.errors import NotFound, RouteNotFound, UsageError
from ralf.facts import handover
from ralf.facts.handover import of_compaction, read, verified
from ralf.model import HandOver, Header, RouteContext, Since
from ralf.route import fold
from ralf.route.history import diff, log
from ralf.route.steering import record_hand_over
from ralf_integrations.mcp.tools import Tools
from storekit import AT_ONCE, Cli, Ran, records_of, route_file

MARKDOWN = """# Hand-over

## Goal
Carry the tide table over

**State:** the reader is done

## Next steps
1. Ask for station 7
   and station 9
- Pack the archive

## Open questions
- Is 1953 to be kept?

## Decisions
- Read the file once because the disk is slow

## Never
* One process a station

## About the harbour
It opens at six.
"""


def test_markdown_under_headings_goes_where_it_belongs_and_the_rest_is_kept() -> None:
    told = read(MARKDOWN)
    assert told.handover == HandOver(
        goal="Carry the tide table over",
        state="the reader is done",
        next=("Ask for station 7 and station 9", "Pack the archive"),
        questions=("Is 1953 to be kept?",),
        text="# Hand-over\n\n## About the harbour\nIt opens at six.",
    )
    assert told.decided == ("Read the file once because the disk is slow",)
    assert told.never == ("One process a station",)


def test_json_has_the_names_of_the_api_and_anything_else_is_refused() -> None:
    told = read(json.dumps({"state": "half done", "next": ["a", "b"], "never": "c"}))
    assert (told.handover.state, told.handover.next, told.never) == ("half done", ("a", "b"), ("c",))
    for wrong in ('{"stand": "x"}', '{"state": 3}', '{"state": "x"', '{"next": [1]}'):
        with pytest.raises(ValueError, match=r"^(has|is) no|^has '"):
            read(wrong)


def test_a_hand_over_is_bounded_however_long_it_is() -> None:
    told = read(json.dumps({"state": "x " * 9_000, "next": ["step " * 900] * 99, "text": "y " * 90_000}))
    assert len(told.handover.state) <= handover.LONGEST_STATE
    assert len(told.handover.next) == 1
    assert len(told.handover.text) < sum(handover.MOST_TEXT) + 10


def test_a_long_hand_over_loses_what_matters_least_and_drives_nothing_out_of_the_file(tmp_path: Path) -> None:
    path = _log(tmp_path / "session.jsonl", compacted=False)
    ralf.checkpoint("tide", path, root=tmp_path)
    before = ralf.get_context("tide", root=tmp_path)
    items = [f"step {number} {'word ' * 230}" for number in range(30)]
    made = record_hand_over("tide", next=items, done=items, names=items, text="y " * 2_000, root=tmp_path)
    assert made.handover.next and not made.handover.done
    assert made.left_out == 90 - len(made.handover.next) + 1
    after = ralf.get_context("tide", root=tmp_path)
    assert (after.decisions, after.facts, after.folded) == (before.decisions, before.facts, before.folded)


def test_what_came_of_a_hand_over_is_said_and_nothing_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ralf.hand_over("tide", state="The reader is done", next=["Pack it"], root=tmp_path)
    made = ralf.hand_over("tide", decided=["Read it once because the disk is slow"], root=tmp_path)
    assert not made
    ralf_ = Cli(tmp_path, monkeypatch, capfd)
    ran = ralf_("handover", "tide", "--decided", "Keep brass", "--never", "Try tin because it bends")
    assert "tide: handed over: 1 decision, 1 failed approach\n" in ran.out
    told = json.loads(ralf_("handover", "tide", "--decided", "Keep brass", "--json").out)
    assert (told["decisions"], told["failed_approaches"], "state" in told) == (["DEC-002"], [], False)
    assert ralf.get_context("tide", root=tmp_path).handover == replace(
        HandOver(state="The reader is done", next=("Pack it",), author="agent"),
        timestamp=ralf.get_context("tide", root=tmp_path).handover.timestamp,  # type: ignore[union-attr]
    )


def test_a_damaged_file_is_said_and_the_hand_over_is_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ralf.hand_over("tide", state="The reader is done", root=tmp_path)
    path = route_file(tmp_path, "tide")
    path.write_text(f"<<<<<<< ours\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    ran = Cli(tmp_path, monkeypatch, capfd)("handover", "tide", "--state", "All is done")
    assert (ran.status, "tide: handed over: state\n" in ran.out) == (4, True)
    assert f"error: {path}: line 1: conflict markers of a merge" in ran.err
    handover = ralf.get_context("tide", root=tmp_path).handover
    assert handover is not None and handover.state == "All is done"


def test_standard_input_may_hold_any_bytes_and_is_refused_as_a_whole_where_it_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ralf_ = Cli(tmp_path, monkeypatch, capfd)

    def given(content: bytes) -> Ran:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content), encoding="utf-8"))
        return ralf_("handover", "tide")

    ran = given(b"State: a\xff\0b\n")
    assert ran.status == 0 and "handed over: state" in ran.out
    ran = given(b"## State\nx\n## Next\n" + b"- step\n" * 50_000)
    assert ran.status == 2
    assert ran.err.startswith("error: tide: the hand-over has more than 200,000 bytes: nothing was recorded\nhint: ")
    assert len(records_of(tmp_path, "tide")) == 1


def test_it_is_recorded_once_leads_the_brief_and_names_the_agents_decisions(tmp_path: Path) -> None:
    made = ralf.hand_over("tide", MARKDOWN, questions=["Who pays?"], root=tmp_path)
    assert (made.author, made.questions) == ("agent", ("Who pays?",))
    (record,) = records_of(tmp_path, "tide")
    assert record["kind"] == "handover"
    context = ralf.get_context("tide", root=tmp_path)
    assert context.goal == "Carry the tide table over"
    assert [(item.kind, item.decision, item.rationale, item.origin) for item in context.decisions] == [
        ("decision", "Read the file once", "the disk is slow", "agent"),
        ("failed-approach", "One process a station", "", "agent"),
    ]
    text = str(context)
    assert "## Hand-over, by the agent, " in text
    assert "- next: Ask for station 7 and station 9\n" in text
    assert text.count("Carry the tide table over") == 1
    assert ralf.get_context("tide", root=tmp_path) == context


def test_a_hand_over_is_told_by_log_diff_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ralf.hand_over("tide", state="The reader is done", goal="Carry it over", root=tmp_path)
    ralf.hand_over("tide", state="All is done", next=["a", "b", "c " * 90], decided=["Keep tin"], root=tmp_path)
    newest, first = log("tide", root=tmp_path)
    assert (newest.who, newest.text) == ("agent", "handed over: All is done; decided DEC-001")
    assert first.text == "handed over: The reader is done"
    told = [one.text for one in diff("tide", "r1", "r2", root=tmp_path).words if one.subject == "handover"]
    assert "state: The reader is done → All is done" in told
    ralf_ = Cli(tmp_path, monkeypatch, capfd)
    found = json.loads(ralf_("context", "show", "tide", "--json").out)
    assert (found["handover"]["state"], found["goal_origin"]) == ("All is done", "agent")
    found = json.loads(ralf_("context", "show", "tide", "--json", "--brief", "--max-tokens", 130).out)
    assert (found["handover"]["state"], found["handover"]["next"]) == ("All is done", ["a", "b"])


def test_a_secret_is_taken_out_of_a_hand_over_before_it_is_kept(tmp_path: Path) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    ralf.hand_over("tide", state=f"The key is {key}", root=tmp_path)
    assert key not in json.dumps(records_of(tmp_path, "tide"))


def test_a_hand_over_without_words_makes_no_route(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^tide: a hand-over needs words"):
        ralf.hand_over("tide", " \n", root=tmp_path)
    with pytest.raises(UsageError, match=r"^tide: the hand-over has 'stand', which is no field"):
        ralf.hand_over("tide", '{"stand": "x"}', root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_decision_that_a_person_dropped_does_not_come_back_with_a_hand_over(tmp_path: Path) -> None:
    ralf.record_decision("tide", "Read the file once", root=tmp_path)
    ralf.api.drop("tide", "DEC-001", root=tmp_path)
    ralf.hand_over("tide", decided=["Read the file once"], state="x", root=tmp_path)
    assert [item.status for item in ralf.get_context("tide", root=tmp_path).decisions] == ["dropped"]
    made = record_hand_over("tide", decided=["Read the file once", "Read it with a loop"], root=tmp_path)
    assert (made.decisions, made.buried) == (("DEC-002",), 1)


# ---- whose it is ----


def test_a_hand_over_typed_at_a_terminal_is_the_users_and_one_in_a_pipe_or_an_agents_shell_the_agents(
    tmp_path: Path,
) -> None:
    said = ["handover", "tide", "--goal", "Carry it over", "--state", "Half done", "--decided", "Keep brass"]

    def author_after(*more: str, **variables: str) -> tuple[str, str, str]:
        root = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        root.mkdir()
        status, told = storekit.on_a_terminal(root, *said, *more, **variables)
        assert status == 0, told
        context = ralf.get_context("tide", root=root)
        assert context.handover is not None
        return context.handover.author, context.goal_origin, context.decisions[0].origin

    assert author_after() == ("user", "user", "user")
    for variable in (
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDECODE",
        "CODEX_THREAD_ID",
        "GEMINI_CLI",
        "CURSOR_AGENT",
        "AI_AGENT",
        "RALF_AGENT",
    ):
        assert author_after(**{variable: "s-1"}) == ("agent", "agent", "agent"), variable
    piped = tmp_path / "piped"
    piped.mkdir()
    assert storekit.process(*said, cwd=piped).status == 0
    context = ralf.get_context("tide", root=piped)
    assert context.handover is not None and (context.handover.author, context.goal_origin) == ("agent", "agent")


@pytest.mark.parametrize(
    ("reads", "author"),
    [("capture_output=True", "agent"), ("stdout=-1", "agent"), ("stderr=-1", "agent"), ("", "user")],
)
def test_a_hand_over_is_an_agents_if_the_program_at_the_terminal_that_runs_it_reads_what_it_prints(
    tmp_path: Path, reads: str, author: str
) -> None:
    tool = shlex.join(storekit.command("handover", "tide", "--state", "Half done"))
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.run(['sh', '-c', {tool!r}], check=True, {reads})"],
        cwd=tmp_path,
        env=storekit.environment(tmp_path),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    printed = storekit.read_terminal(ours)
    assert child.wait(storekit.HANGS) == 0, printed
    context = ralf.get_context("tide", root=tmp_path)
    assert context.handover is not None and context.handover.author == author


def test_a_users_hand_over_says_so_in_file_brief_log_and_json_and_only_the_user_undoes_it(tmp_path: Path) -> None:
    storekit.on_a_terminal(tmp_path, "handover", "tide", "--state", "Half done", "--next", "Ask the harbour")
    assert 'author: "user"' in route_file(tmp_path, "tide").read_text(encoding="utf-8")
    ran = storekit.process("show", "tide", "--brief", cwd=tmp_path)
    assert "## Hand-over, by the user, " in ran.out
    assert storekit.process("show", "tide", "--json", cwd=tmp_path).json()["handover"]["author"] == "user"
    assert storekit.process("log", "tide", "--json", cwd=tmp_path).json()[0]["who"] == "user"
    refused = storekit.process("undo", "tide", cwd=tmp_path, CLAUDE_CODE_SESSION_ID="s-1")
    assert (refused.status, "has no write of the agent's" in refused.err) == (3, True)
    assert storekit.process("undo", "tide", cwd=tmp_path).status == 0


def test_no_agent_replaces_the_goal_of_a_users_hand_over_and_the_user_decides_again_what_was_dropped(
    tmp_path: Path,
) -> None:
    ralf.record_decision("tide", "Read the file once", root=tmp_path)
    ralf.api.drop("tide", "DEC-001", root=tmp_path)
    made = record_hand_over("tide", goal="Mine", decided=["Read the file once"], author="user", root=tmp_path)
    assert (made.decisions, made.buried) == (("DEC-002",), 0)
    ralf.hand_over("tide", goal="The agent's", state="x", root=tmp_path)
    context = ralf.get_context("tide", root=tmp_path)
    assert (context.goal, context.goal_origin) == ("Mine", "user")
    assert [(item.id, item.origin) for item in context.active_decisions] == [("DEC-002", "user")]
    with pytest.raises(UsageError, match="the author of a hand-over is one of agent, user"):
        ralf.hand_over("tide", state="x", author="boss", root=tmp_path)


# ---- the client's own summary ----

SUMMARY = """This session is being continued from a previous conversation that ran out of context.
<analysis>
7. Pending Tasks:
   - Not this one
</analysis>

Summary:
1. Primary Request and Intent:
   The user wants the tide table.
   - Never push to main

6. All User Messages:
   - "always use tabs"

7. Pending Tasks:
   - Ask for station 7
   - Mend `read_levels()`

8. Current Work:
   Mended the reader in src/tide.py. It had 3 faults.
   ```python
   print("x")
   ```

9. Optional Next Step:
   Run `pytest -q tests/test_tide.py`.

If you need specific details from before compaction, read the full transcript at: /home/ada/log.jsonl
"""


def test_of_a_clients_summary_the_current_work_and_what_is_next_are_taken_and_no_rule() -> None:
    found = of_compaction(SUMMARY)
    assert found is not None
    assert found.state == "Mended the reader in src/tide.py. It had 3 faults."
    assert found.next == ("Ask for station 7", "Mend `read_levels()`", "Run `pytest -q tests/test_tide.py`.")
    assert (found.author, found.goal, found.text) == ("compaction", "", "")
    assert of_compaction("Summary:\nDid one and two.") is None


@pytest.mark.parametrize("line", [" x\n", "- x\n", "## State\n", "```\n", "**a "])
def test_a_summary_of_millions_of_characters_is_read_in_little_time(line: str) -> None:
    within(AT_ONCE, lambda: of_compaction("1. Current Work:\nfirst\n" + line * 600_000))


def test_a_sentence_with_a_name_that_stands_nowhere_is_left_out_and_counted() -> None:
    told = HandOver(
        state="The reader in src/tide.py is mended. The writer in src/ebb.py is not. All is well.",
        next=("Run `pytest -q`", "Ask for commit 64274e0f"),
    )
    kept = verified(told, ["I mended the reader in src/tide.py", "pytest -q", "all is well"])
    assert kept.state == "The reader in src/tide.py is mended. All is well."
    assert (kept.next, kept.dropped) == (("Run `pytest -q`",), 2)


def test_a_checkpoint_takes_the_clients_summary_held_against_what_was_said_before(tmp_path: Path) -> None:
    def line(number: int, **fields: object) -> str:
        time = f"2026-03-01T10:00:{number:02d}.000Z"
        return json.dumps({"sessionId": "s", "timestamp": time, "cwd": "/srv/tide", **fields}) + "\n"

    def said(number: int, kind: str, text: str, **fields: object) -> str:
        content = text if kind == "user" else [{"type": "text", "text": text}]
        return line(number, type=kind, message={"role": kind, "content": content}, **fields)

    path = tmp_path / "session.jsonl"
    path.write_text(
        said(1, "user", "Please mend the reader of the tide table for me now")
        + said(2, "assistant", "I mended the reader in src/tide.py. It had 3 faults. Station 7 is missing.")
    )
    ralf.checkpoint("tide", path, root=tmp_path)
    with path.open("a") as file:
        file.write(
            line(3, type="system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9_000})
            + said(4, "user", SUMMARY, isCompactSummary=True)
            + said(5, "assistant", "Now I ask the harbour for what is missing, which takes a while.")
        )
    ralf.checkpoint("tide", path, root=tmp_path)
    context = ralf.get_context("tide", root=tmp_path)
    assert context.handover is not None
    assert (context.handover.author, context.handover.session) == ("compaction", "s")
    assert context.handover.state == "Mended the reader in src/tide.py. It had 3 faults."
    assert context.handover.next == ("Ask for station 7",)
    assert context.handover.dropped == 2
    assert not [item for item in context.decisions if item.kind == "rule"]
    brief = str(context)
    assert "by the client's own summary of its window" in brief
    assert "left out: 2 sentences with a name or number that stands nowhere in the transcript" in brief


# ---- what steers the work ----


def test_a_goal_a_step_and_what_is_closed_are_recorded(tmp_path: Path) -> None:
    ralf.set_goal("tide", "Carry it over", origin="user", root=tmp_path)
    ralf.set_goal("tide", "An agent's", root=tmp_path)
    assert ralf.get_context("tide", root=tmp_path).goal == "Carry it over"
    ralf.set_goal("tide", "Pack it", origin="user", root=tmp_path)
    context = ralf.get_context("tide", root=tmp_path)
    assert (context.goal, context.began_as) == ("Pack it", "Carry it over")
    ralf.add_next("tide", "Ask for station 7", root=tmp_path)
    ralf.hand_over("tide", next=["Pack the archive"], questions=["Is 1953 kept?"], root=tmp_path)
    assert ralf.close("tide", "ask for", root=tmp_path) == "Ask for station 7"
    assert ralf.close("tide", "is 1953", root=tmp_path) == "Is 1953 kept?"
    with pytest.raises(NotFound, match=r"^tide: nothing open begins with 'ask for'"):
        ralf.close("tide", "ask for", root=tmp_path)
    with pytest.raises(UsageError, match=r"^tide: what is closed needs words"):
        ralf.close("tide", " ", root=tmp_path)
    context = ralf.get_context("tide", root=tmp_path)
    assert context.active_work.next_steps == ()
    assert context.handover is not None and context.handover.next == ("Pack the archive",)


def test_steps_are_bounded_for_the_work_never_folds(tmp_path: Path) -> None:
    ralf.add_next("tide", "step " * 9_000, root=tmp_path)
    for number in range(fold.MAX_OPEN_TODOS - 1):
        ralf.add_next("tide", f"Ask for station {number}", root=tmp_path)
    with pytest.raises(UsageError, match=r"^tide: has 60 next steps"):
        ralf.add_next("tide", "One more", root=tmp_path)
    ralf.add_next("tide", "Ask for station 7", root=tmp_path)
    steps = ralf.get_context("tide", root=tmp_path).active_work.next_steps
    assert (len(steps), len(steps[0]) <= handover.LONGEST) == (60, True)


def test_nothing_is_closed_in_a_route_that_is_none_and_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(RouteNotFound, match=r"^tide: "):
        ralf.close("tide", "Ask", root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_writer_does_not_say_whose_it_is_is_shown_as_unknown(tmp_path: Path) -> None:
    ralf.record_decision("tide", "Use brass", root=tmp_path)
    context = ralf.get_context("tide", root=tmp_path)
    assert [item.origin for item in context.active_decisions] == ["unknown"]
    assert "- DEC-001 (unknown): Use brass\n" in str(context)
    assert 'origin: "unknown"' in route_file(tmp_path, "tide").read_text(encoding="utf-8")


def test_a_decision_is_the_users_by_the_command_line_and_the_agents_by_its_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Cli(tmp_path, monkeypatch, capfd)("context", "decide", "tide", "Use brass")
    assert Tools(tmp_path).record("Use tin", "tide").origin == "agent"
    ralf.record_decision("tide", "Use zinc", root=tmp_path)
    found = ralf.get_context("tide", root=tmp_path).active_decisions
    assert [(item.decision, item.origin) for item in found] == [
        ("Use brass", "user"),
        ("Use tin", "agent"),
        ("Use zinc", "unknown"),
    ]


def test_a_section_that_is_none_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    ralf.record_decision("tide", "Use brass", root=tmp_path)
    with pytest.raises(UsageError, match=r"^bogus: no such section; known: brief, resume, goal"):
        ralf.get_context("tide", root=tmp_path).render(section="bogus")


# ---- what came first ----


def _line(number: int, kind: str, text: str, **fields: object) -> str:
    content = text if kind == "user" else [{"type": "text", "text": text}]
    time = f"2026-03-01T10:00:{number:02d}.000Z"
    told = {"sessionId": "s", "timestamp": time, "cwd": "/srv/tide", "type": kind, "message": {"content": content}}
    return json.dumps({**told, **fields}) + "\n"


def _log(path: Path, *, compacted: bool) -> Path:
    """A session of about 6,000 tokens, in whose middle the client compacts its window where it does."""
    words = "the reader of the tide table in src/tide.py had 3 faults and reads all stations. " * 20
    path.write_text(
        _line(1, "user", "Please mend the reader of the tide table for me now")
        + "".join(_line(number, "assistant", f"Station {number}: {words}") for number in range(2, 10))
        + (_line(11, "user", SUMMARY, isCompactSummary=True) if compacted else "")
        + "".join(_line(number, "assistant", f"Station {number}: {words}") for number in range(20, 30)),
        encoding="utf-8",
    )
    return path


def test_a_summary_that_the_client_wrote_before_the_agent_handed_over_does_not_take_its_place(tmp_path: Path) -> None:
    path = _log(tmp_path / "session.jsonl", compacted=True)
    ralf.hand_over("tide", state="The writer is next", root=tmp_path)
    ralf.checkpoint("tide", path, root=tmp_path)
    handover = ralf.get_context("tide", root=tmp_path).handover
    assert handover is not None and (handover.author, handover.state) == ("agent", "The writer is next")


def test_work_that_no_checkpoint_held_yet_when_the_agent_handed_over_did_not_come_after_it(tmp_path: Path) -> None:
    path = _log(tmp_path / "session.jsonl", compacted=False)
    ralf.hand_over("tide", state="The writer is next", root=tmp_path)  # now, after all of the session
    ralf.checkpoint("tide", path, root=tmp_path)
    context = ralf.get_context("tide", root=tmp_path)
    assert context.handover is not None
    assert context.total_tokens_consumed > 3_000
    assert context.total_tokens_consumed - context.handover.tokens < 100


def test_what_no_checkpoint_covers_came_after_a_hand_over_by_the_clock() -> None:
    header = Header(last_checkpoint="2026-03-01T10:00:00.000Z", total_tokens_consumed=9_000)
    context = RouteContext(header, since=Since(tokens=40_000, minutes=40))

    def after(time: str) -> int:
        return tokens_after(HandOver(state="x", timestamp=time, tokens=9_000), context)

    assert after("2026-03-01T09:59:00Z") == 40_000
    assert after("2026-03-01T10:30:00Z") == 10_000
    assert after("2026-03-01T10:45:00Z") == 0
    assert after("long ago") == 40_000


def test_a_hand_over_that_a_person_writes_into_the_file_or_changes_there_is_theirs(tmp_path: Path) -> None:
    ralf.hand_over("tide", state="The reader is done", root=tmp_path)
    path = route_file(tmp_path, "tide")
    path.write_text(path.read_text(encoding="utf-8").replace("is done", "fails at noon"), encoding="utf-8")
    assert "Hand-over, by the user" in str(ralf.get_context("tide", root=tmp_path))
    ralf.add_next("tide", "Ask the harbour", root=tmp_path)
    handover = ralf.get_context("tide", root=tmp_path).handover
    assert handover is not None and (handover.author, handover.state) == ("user", "The reader fails at noon")
    path.write_text(path.read_text(encoding="utf-8").replace("tokens: ", "tokens: -"), encoding="utf-8")
    assert "came after it" not in str(ralf.get_context("tide", root=tmp_path))
