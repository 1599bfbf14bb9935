"""How starts of agents are judged, which usage limits are recognised, and what a loop may use up."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ralf.errors import UsageError
from ralf.project import Project
from ralf.tasks.model import Attempt, Claim, Evidence, Task, TaskState
from ralf_integrations.loop import caps, limits, meter, told, work
from ralf_integrations.loop.caps import Caps, Spent
from ralf_integrations.loop.exits import Ended, judge
from ralf_integrations.loop.limits import Limit

AT = datetime(2026, 8, 19, 13, 40, tzinfo=UTC)


# ---- exits ----


@pytest.mark.parametrize(
    "ended, outcome",
    [
        (Ended(0, "done"), "done"),
        (Ended(1, "done"), "done"),  # what it recorded counts, whatever its exit status
        (Ended(-9, "done", hung=True), "done"),
        (Ended(0, "failed"), "failed"),
        (Ended(0, "released"), "released"),
        (Ended(1, "held"), "crashed"),
        (Ended(-9, "held"), "killed"),
        (Ended(-15, "held", hung=True), "hung"),
        (Ended(-15, "held", stopped=True), "released"),
        (Ended(0, "held"), "unfinished"),
        (Ended(None, "held"), "unfinished"),
        (Ended(0, "held", handed_over=True), "handed-over"),
        (Ended(None, "held", handed_over=True), "handed-over"),
        (Ended(1, "held", handed_over=True), "crashed"),
        (Ended(0, "held", message="All of it works.\n\n<promise>COMPLETE</promise>"), "done"),
        (Ended(0, "held", message="<promise>BLOCKED</promise>"), "failed"),
        (Ended(1, "held", message="<promise>COMPLETE</promise>"), "crashed"),
        (Ended(0, "held", message="say `<promise>COMPLETE</promise>` when you are done"), "unfinished"),
        (Ended(0, "held", message="> <promise>COMPLETE</promise>"), "unfinished"),
        (Ended(1, "held", limit=Limit(5.0, "full")), "limit"),
    ],
)
def test_a_start_is_judged_by_its_exit_status_and_the_state_of_its_task(ended: Ended, outcome: str) -> None:
    assert judge(ended).outcome == outcome


@pytest.mark.ci
@given(said=st.text(), status=st.integers(0, 255))
def test_no_words_in_an_output_change_what_a_start_came_to(said: str, status: int) -> None:
    assert judge(Ended(status, "held", said=said)).outcome == ("crashed" if status else "unfinished")


def test_a_promise_makes_the_message_the_summary() -> None:
    found = judge(Ended(0, "held", message="Wrote the parser.\n<promise>COMPLETE</promise>\n"))
    assert (found.promise, found.summary) == ("COMPLETE", "Wrote the parser.")


def state(outcome: str = "", *, number: int = 7, status: str = "pending", claimed: int = 7) -> TaskState:
    attempts = (Attempt(number=number, outcome=outcome),)
    return TaskState(Task("TASK-a", status=status), claim=Claim(claimed) if claimed else None, attempts=attempts)


@pytest.mark.parametrize(
    "found, stands",
    [
        (state(), "held"),
        (state(claimed=0), "held"),  # its process has ended: the claim is not told any more
        (state(claimed=8), "released"),  # another one has it
        (state("lost", claimed=0), "released"),
        (state("released", claimed=0), "released"),
        (state("done", claimed=0, status="completed"), "done"),
        (state("failed", claimed=0, status="failed"), "failed"),
        (state("failed", claimed=0), "failed"),  # and retried since
        (state(status="completed"), "done"),  # a person wrote it into the file
        (state(status="cancelled"), "released"),
        (None, "released"),
    ],
)
def test_what_became_of_a_claim_is_read_off_the_task(found: TaskState | None, stands: str) -> None:
    assert work.how_it_stands(found, 7) == stands


def test_failures_count_since_the_task_was_given_up_or_done_last() -> None:
    outcomes = ["crashed", "crashed", "failed", "hung", "limit", "handed-over", "released", "unfinished", ""]
    found = TaskState(Task("TASK-a"), attempts=tuple(Attempt(outcome=one) for one in outcomes))
    assert work.failures(found) == 2


@pytest.mark.parametrize(
    "verify, evidence, proven",
    [
        ("", None, True),
        ("", Evidence("claimed"), True),
        ("", Evidence("claimed", files={"a.py": "x"}), True),  # no test run is known: nothing to verify it with
        ("", Evidence("claimed", command="pytest -q", files={"a.py": "x"}), False),  # edited after the last one
        ("pytest", None, False),
        ("pytest", Evidence("claimed"), False),
        ("pytest", Evidence("verified"), True),
        ("", Evidence("stale"), False),
        ("", Evidence("failed"), False),
    ],
)
def test_a_completed_task_is_proven_if_it_is_verified_or_has_nothing_to_verify(verify, evidence, proven) -> None:
    found = TaskState(Task("TASK-a", status="completed", verify=verify), evidence=evidence)
    assert work.is_proven(found) is proven


# ---- usage limits ----


@pytest.mark.parametrize(
    "said, time",
    [
        ("Claude AI usage limit reached|1787147400", "2026-08-19T13:50:00+00:00"),
        ("You've hit your session limit · resets 9:50pm (Asia/Saigon)", "2026-08-19T14:50:00+00:00"),
        ("You've hit your weekly limit · resets Aug 23 at 4pm (America/Recife)", "2026-08-23T19:00:00+00:00"),
        ("Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).", "2026-08-19T18:00:00+00:00"),
        ("5-hour limit reached ∙ resets 12:30am (UTC)", "2026-08-20T00:30:00+00:00"),
        ("try again in 3 days 4 hours 5 minutes.", "2026-08-22T17:45:00+00:00"),
        ("resets in 3h 20m", "2026-08-19T17:00:00+00:00"),
        ("resets Jan 2 at 3am (UTC)", None),  # further than a month: misread
        ("resets Monday", None),
        ("resets 25pm (UTC)", None),
        ("resets 9:50pm (Nowhere/Else)", "local"),
        ("no time at all", None),
    ],
)
def test_the_time_that_a_limit_names_is_read_in_every_form(said: str, time: str | None) -> None:
    found = limits.named_time(said, AT)
    if time == "local":
        assert found is not None
    else:
        assert found == (datetime.fromisoformat(time) if time else None)


def test_a_time_of_day_that_has_just_gone_by_is_now_and_not_tomorrow() -> None:
    found = limits.named_time("resets 1:38pm (UTC)", AT)
    assert found == datetime(2026, 8, 19, 13, 38, tzinfo=UTC)
    assert Limit(found.timestamp()).ends(AT.timestamp()) == AT.timestamp() + limits.LEAST


@given(st.text(max_size=300))
def test_any_text_names_a_time_or_none(said: str) -> None:
    for text in (said, f"resets {said}", f"try again at {said}", f"try again in {said}"):
        limits.named_time(text, AT)


def api_error(text: str, **fields) -> dict:
    message = {"model": "<synthetic>", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "isApiErrorMessage": True, "timestamp": AT.isoformat(), "message": message} | fields


@pytest.mark.parametrize(
    "record, is_limit",
    [
        (api_error("You've hit your session limit · resets 9:50pm (UTC)", error="rate_limit"), True),
        (api_error("You've hit your limit · resets 9:50pm (UTC)", apiErrorStatus=429), True),
        (api_error("Claude AI usage limit reached|1787147400"), True),
        (api_error("API Error: 529 Overloaded", error="server_error", apiErrorStatus=529), False),
        (api_error("Server is temporarily limiting requests (not your usage limit)", error="rate_limit"), False),
        (api_error("You've hit your monthly spend limit", error="rate_limit"), False),
        ({"type": "assistant", "message": {"content": "You've hit your session limit · resets 9pm"}}, False),
    ],
)
def test_only_a_record_that_claude_code_calls_an_error_of_its_own_tells_a_limit(record: dict, is_limit: bool) -> None:
    assert (limits.of_claude_record(record) is not None) is is_limit


def test_a_limit_of_codex_is_told_by_its_error_and_timed_by_its_message_or_its_rates() -> None:
    error = {
        "message": "You\u2019ve hit your usage limit. Try again later.",
        "codex_error_info": "usage_limit_exceeded",
    }
    rates = {"primary": {"used_percent": 100.0, "resets_at": 1787150000}, "secondary": {"used_percent": 3.0}}
    assert limits.of_codex_error(error, AT, rates) == Limit(1787150000.0, error["message"])
    assert limits.of_codex_error({"message": "usage limit", "codex_error_info": "other"}, AT) is None
    assert limits.of_codex_error(None, AT) is None
    assert limits.of_codex_errors("a\nERROR: You've hit your usage limit. Try again in 2 hours.\n", AT) is not None
    assert limits.of_codex_errors("ERROR: You've hit your usage limit.\nand more of an agent's words\n", AT) is None


@pytest.mark.parametrize("resets", [1787150000000, 1e300, float("inf"), float("nan"), -1, 4_000_000_000, "soon"])
def test_a_time_that_can_be_no_limit_s_end_is_none(resets: object) -> None:
    error = {"message": "Try again later.", "codex_error_info": "usage_limit_exceeded"}
    rates = {"primary": {"used_percent": 100, "resets_at": resets}}
    assert limits.of_codex_error(error, AT, rates) == Limit(0.0, error["message"])


@pytest.mark.parametrize("at", ["2026-08-19T12:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "", None, 5])
def test_a_record_of_any_time_tells_its_limit(at: object) -> None:
    record = api_error("You've hit your session limit · resets 9:50pm (UTC)", error="rate_limit") | {"timestamp": at}
    found = limits.of_claude_record(record)
    assert found is not None and found.until > 0


# ---- what clients tell ----


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return tmp_path


SESSION = "0b7f6b8e-6a52-4c5e-9a43-0d0f3b1f7f10"


def lines(path: Path, *records: dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def said_by_claude(text: str, number: int = 1) -> dict:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 90, "cache_read_input_tokens": 999, "output_tokens": 5}
    message = {"id": f"m{number}", "model": "m", "content": [{"type": "text", "text": text}], "usage": usage}
    return {
        "type": "assistant",
        "requestId": f"r{number}",
        "sessionId": SESSION,
        "message": message,
        "uuid": str(number),
    }


def told_of(clients: Path, client: str, *, output: bytes = b"", errors: bytes = b"", status: int | None = 0, last=None):
    (clients / "out").write_bytes(output)
    (clients / "err").write_bytes(errors)
    session = SESSION if client == "claude-code" else ""
    return told.of(
        Project(clients),
        client,
        session=session,
        output=clients / "out",
        errors=clients / "err",
        last=last,
        status=status,
    )


def test_claude_code_is_read_by_its_transcript_and_its_result(clients: Path) -> None:
    path = lines(
        clients / "claude" / "projects" / "x" / f"{SESSION}.jsonl",
        {"type": "user", "sessionId": SESSION, "message": {"role": "user", "content": "go"}, "uuid": "0"},
        said_by_claude("half"),
        said_by_claude("half of it"),
        said_by_claude("Done.\n<promise>COMPLETE</promise>", 2),
    )
    found = told_of(clients, "claude-code")
    assert (found.transcript, found.tokens, found.usd, found.limit) == (path, 210, None, None)
    assert found.message.endswith("<promise>COMPLETE</promise>")
    result = {"type": "result", "is_error": False, "result": "All done", "total_cost_usd": 0.25, "session_id": SESSION}
    result["modelUsage"] = {"a": {"inputTokens": 5, "outputTokens": 7, "cacheReadInputTokens": 10**6}}
    found = told_of(clients, "claude-code", output=json.dumps(result).encode() + b"\n")
    assert (found.message, found.tokens, found.usd) == ("All done", 12, 0.25)


def test_a_limit_that_claude_code_has_got_over_counts_no_more(clients: Path) -> None:
    path = clients / "claude" / "projects" / "x" / f"{SESSION}.jsonl"
    limit = api_error("You've hit your session limit · resets 9:50pm (UTC)", error="rate_limit", sessionId=SESSION)
    lines(path, said_by_claude("a"), limit)
    assert told_of(clients, "claude-code", status=1).limit is not None
    lines(path, said_by_claude("a"), limit, said_by_claude("b", 2))
    assert told_of(clients, "claude-code", status=1).limit is None


def test_codex_is_read_by_its_rollout_and_its_last_message(clients: Path) -> None:
    head = (
        f"OpenAI Codex\n--------\nworkdir: /x\nsession id: {SESSION}\n--------\nuser\nsession id: {'0' * 36}\n".encode()
    )
    usage = {"input_tokens": 100, "cached_input_tokens": 80, "output_tokens": 7, "total_tokens": 107}
    error = {
        "message": "You've hit your usage limit, try again in 2 hours.",
        "codex_error_info": "usage_limit_exceeded",
    }
    rollout = clients / "codex" / "sessions" / "2026" / "08" / "19" / f"rollout-2026-08-19T13-00-00-{SESSION}.jsonl"
    meta = {"timestamp": AT.isoformat(), "type": "session_meta", "payload": {"id": SESSION, "cwd": "/x"}}
    count = {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": usage}}}
    over = {"timestamp": AT.isoformat(), "type": "event_msg", "payload": {"type": "task_complete", "error": error}}
    lines(rollout, meta, count, over)
    (clients / "last").write_text("It is done\n")
    found = told_of(clients, "codex", errors=head, status=1, last=clients / "last")
    assert (found.session, found.transcript, found.tokens) == (SESSION, rollout, 27)
    assert found.message == "It is done\n"
    assert found.limit is not None
    assert found.limit.until == AT.timestamp() + 7200
    lines(rollout, meta, count, over | {"payload": {"type": "task_complete", "error": None}})
    ends_so = head + b"ERROR: You've hit your usage limit.\n"  # an agent may print that: the rollout knows better
    assert told_of(clients, "codex", errors=ends_so, status=1).limit is None


def test_a_plain_command_tells_no_promise_and_no_limit(clients: Path) -> None:
    text = b"ERROR: You've hit your usage limit. Try again in 2 hours.\n"
    found = told_of(clients, "", output=b"<promise>COMPLETE</promise>\n", errors=text, status=1)
    assert (found.message, found.limit, found.tokens) == ("", None, None)


@pytest.mark.ci
@given(st.binary(max_size=400))
def test_whatever_bytes_a_client_leaves_nothing_breaks(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for client in ("claude-code", "codex", ""):
            for suffix in (b"", b"\n"):
                told_of(Path(folder), client, output=data + suffix, errors=data, status=1, last=Path(folder) / "out")


def test_a_growing_transcript_is_counted_once_however_its_lines_arrive(
    clients: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "EVERY", 0.0)
    path = clients / "claude" / "projects" / "x" / f"{SESSION}.jsonl"
    found = meter.Meter("claude-code")
    found.look(lambda: None)
    assert found.tokens is None
    records = [said_by_claude("a"), said_by_claude("b"), said_by_claude("c", 2), {"type": "user", "usage": "odd"}]
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.parent.mkdir(parents=True)
    path.touch()
    seen = set()
    for place in range(0, len(data) + 99, 99):
        with path.open("ab") as file:
            file.write(data[place : place + 99])
        found.look(lambda: path)
        seen.add(found.tokens)
    assert seen == {None, 105, 210}  # an answer of two lines is one answer


@pytest.mark.ci
@given(st.binary(max_size=400))
def test_no_bytes_break_the_count_of_a_running_agent(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as environment:
        environment.setenv("CLAUDE_CONFIG_DIR", folder)
        environment.setenv("CODEX_HOME", folder)
        path = Path(folder) / "projects" / "x" / f"{SESSION}.jsonl"
        path.parent.mkdir(parents=True)
        record = json.dumps(said_by_claude("a")).encode()
        path.write_bytes(b'{"usage": ' + data + b"\n" + data + b'"usage" "token_count"\n' + record + b"\n")
        found = meter.Meter("claude-code")
        found.look(lambda: path)
        assert found.tokens == 105
        meter.Meter("codex").look(lambda: path)


# ---- caps ----


@pytest.mark.parametrize(
    "spent, seconds, named",
    [
        (Spent(starts=3), 0, "starts: 3 of 3"),
        (Spent(tokens=1_000), 0, "tokens: 1,000 of 1,000"),
        (Spent(tokens=1_000, unknown=2), 0, "tokens: 1,000 of 1,000 and what 2 starts used, which is unknown"),
        (Spent(usd=2.0), 0, "money: $2.00 of $2.00"),
        (Spent(), 60, "time: 1m"),
        (Spent(starts=2, tokens=999, usd=1.99), 59, ""),
    ],
)
def test_a_cap_that_is_reached_is_named(spent: Spent, seconds: float, named: str) -> None:
    assert Caps(3, 1_000, 2.0, 60.0).reached(spent, seconds) == named
    assert Caps(None, None, None, None).reached(spent, 10**9) == ""


def test_all_caps_are_on_by_default() -> None:
    assert None not in (Caps().starts, Caps().tokens, Caps().usd, Caps().seconds)


def test_what_is_unknown_of_the_price_is_said() -> None:
    spent = Spent(starts=3).plus(100, 0.5).plus(None, None).plus(50, None)
    assert (spent.tokens, spent.usd, spent.unknown, spent.unpriced) == (150, 0.5, 1, 2)
    assert caps.spent_text(spent) == "3 starts, 150 tokens, $0.50, tokens or money of 2 starts unknown"
    assert caps.spent_text(Spent(1).plus(5, 0.1)) == "1 start, 5 tokens, $0.10"


@pytest.mark.parametrize(
    "text, seconds", [("90", 90), ("45s", 45), ("2h30m", 9000), ("1d", 86400), ("0.5s", 0.5), ("none", None)]
)
def test_a_duration_is_typed_in_units(text: str, seconds: float | None) -> None:
    assert caps.seconds_of(text, "--timeout") == seconds


def test_no_wait_is_a_duration_where_one_is_allowed() -> None:
    assert caps.seconds_of("0", "--grace", least=0.0) == caps.seconds_of("0s", "--grace", least=0.0) == 0
    for text in ("", "s", "-1"):
        with pytest.raises(UsageError):
            caps.seconds_of(text, "--grace", least=0.0)


@pytest.mark.parametrize("text", ["", "0", "0s", "-5", "5x", "h", "1e9", "soon"])
def test_what_is_no_duration_or_no_amount_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        caps.seconds_of(text, "--timeout")
    if text != "5x":
        with pytest.raises(UsageError):
            caps.amount_of(text, "--max-starts")


def test_an_amount_may_be_short() -> None:
    assert [caps.amount_of(one, "x") for one in ("200", "50M", "$20", "1,000", "2.5k")] == [200, 5e7, 20, 1000, 2500]
    assert os.environ.get("RALF_LEASE", "") == ""  # no test here runs an agent
