"""What a fresh agent reads first: all that it needs, nothing that is not asked for, within its budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import ralf
import storekit
from contexts import contexts, line, quick, text as texts
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.model import Carried, Decision, HandOver, RouteContext
from ralf.project import Project
from ralf.tasks.model import Attempt, Claim, Evidence, Task, TaskState
from ralf.tasks.refresh import Neighbour, Refresh, gather
from ralf.text import tokens
from ralf.text.cleaning import OWN_OUTPUT, outside
from taskskit import Kept

IDS = ("TASK-a", "TASK-b", "TASK-c", "TASK-d", "TASK-e", "TASK-f")
SUMMARIES = {
    "TASK-a": "The reader yields levels in UTC",
    "TASK-b": "The store ignores a level that it has",
    "TASK-c": "An unknown station is 404",
}
SEGMENTS = (IDS[:3], IDS[3:5], IDS[5:])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in whose first three routes something was decided, and the third handed over."""
    root = tmp_path_factory.mktemp("made") / "tide"
    root.mkdir()
    ownership.init(Project(root), share=False)
    decided = {"TASK-a": "Keep times in UTC", "TASK-b": "One SQLite file", "TASK-c": "Answers are JSON lists"}
    for id_, decision in decided.items():
        ralf.record_decision(id_, decision, rationale=f"reason of {id_}", root=root, origin="agent")
    ralf.hand_over("TASK-c", now="The server runs on port 8460", next=("Draw from Store.day",), root=root)
    return root


@pytest.fixture
def kept() -> Kept:
    """Six tasks of which three are done; an agent has claimed the fourth."""
    found = Kept()
    for number, id_ in enumerate(IDS):
        task = Task(id_, f"Title of {id_}", f"Text of {id_}", after=IDS[max(0, number - 1) : number])
        found.all[id_] = TaskState(task)
    for id_, summary in SUMMARIES.items():
        done(found, id_, summary)
    claimed(found, "TASK-d", "tide-4", 41)
    return found


def done(kept: Kept, id_: str, summary: str, by: str = "tide-1", number: int = 9) -> None:
    state = kept.all[id_]
    attempt = Attempt(number, by, "2026-11-26T09:00:00.000Z", "2026-11-26T09:10:00.000Z", "done")
    task = replace(state.task, status="completed")
    kept.all[id_] = replace(
        state, task=task, summary=summary, claim=None, attempts=(attempt,), evidence=Evidence("verified")
    )


def claimed(kept: Kept, id_: str, by: str, number: int) -> None:
    state = kept.all[id_]
    now = Attempt(number, by, "2026-11-26T09:40:00.000Z")
    kept.all[id_] = replace(state, claim=Claim(number, by), attempts=(*state.attempts, now))


def told(
    project: Path, kept: Kept, by: str = "tide-4", segments: tuple[tuple[str, ...], ...] = SEGMENTS, **more: object
) -> Refresh:
    kept.segments = segments
    return gather(Project(project), kept, by=by, **more)  # type: ignore[arg-type]


# ---- what is told ----


def test_the_fourth_agent_reads_its_task_all_summaries_and_decisions_before_it_and_what_comes_next(
    project: Path, kept: Kept
) -> None:
    found = told(project, kept)
    text = found.render()
    assert found.agent == "tide-4" and "TASK-d" in text.split("\n> Text of TASK-d\n")[0]
    positions = [text.index(summary) for summary in reversed(SUMMARIES.values())]
    assert positions == sorted(positions)  # the nearest first
    for words in ("Keep times in UTC", "One SQLite file", "Answers are JSON lists"):
        assert f"{words}. Because: reason of TASK-" in text
    for words in ("The server runs on port 8460", "Draw from Store.day", "Title of TASK-e", "Title of TASK-f"):
        assert words in text
    assert [one.id for one in found.before] == ["TASK-c", "TASK-b", "TASK-a"]


def test_whoever_reads_a_report_on_a_task_is_not_told_that_nothing_was_done(kept: Kept, tmp_path: Path) -> None:
    ownership.init(Project(tmp_path), share=False)
    kept.all = {"TASK-d": replace(kept.all["TASK-d"], task=Task("TASK-d", "Title", "Text"))}
    assert "Nothing was done before" in told(tmp_path, kept).render()
    kept.all["TASK-d"] = replace(kept.all["TASK-d"], progress="half")
    text = told(tmp_path, kept).render()
    assert "half" in text and "Nothing was done before" not in text


def test_after_a_crash_the_next_agent_is_told_of_each_attempt_and_reads_the_brief(project: Path, kept: Kept) -> None:
    ralf.record_decision("TASK-d", "One path element for the curve", rationale="90 KB else", root=project)
    before = (
        Attempt(31, "tide-2", "2026-11-26T09:10:00.000Z", "2026-11-26T09:12:00.000Z", "failed", "no font"),
        Attempt(35, "tide-3", "2026-11-26T09:20:00.000Z", "2026-11-26T09:35:00.000Z", "killed", "ended by signal 9"),
    )
    kept.all["TASK-d"] = replace(kept.all["TASK-d"], attempts=(*before, *kept.all["TASK-d"].attempts))
    found = told(project, kept)
    text = found.render()
    assert text.index("tide-3") < text.index("ended by signal 9") < text.index("tide-2") < text.index("no font")
    brief = found.to_json()["brief"]
    assert brief in text and "One path element for the curve. Because: 90 KB else" in brief


def test_a_damaged_route_is_a_warning_and_all_else_is_told(project: Path, kept: Kept) -> None:
    storekit.journal_file(project, "TASK-b").write_bytes(b"no journal\n")
    storekit.route_file(project, "TASK-b").write_text("no route file\n")
    found = told(project, kept)
    text = found.render()
    assert found.warnings and SUMMARIES["TASK-b"] in text and "Keep times in UTC" in text


def test_what_came_with_the_repository_is_named_and_not_told(project: Path, kept: Kept) -> None:
    for id_ in ("TASK-b", "TASK-e"):
        kept.all[id_] = replace(kept.all[id_], is_foreign=True)
    text = told(project, kept).render()
    assert "TASK-b" in text
    assert SUMMARIES["TASK-b"] not in text and "Title of TASK-b" not in text and "Title of TASK-e" not in text
    text = told(project, kept, task="TASK-e").render()
    assert "`ralf trust`" in text
    assert "Text of TASK-e" not in text and "Title of TASK-e" not in text


# ---- what to do ----


def test_a_lost_lease_is_told_to_stop(project: Path, kept: Kept) -> None:
    lost = Attempt(31, "tide-3", "2026-11-26T09:10:00.000Z", "2026-11-26T09:12:00.000Z", "lost")
    kept.all["TASK-d"] = replace(kept.all["TASK-d"], attempts=(lost, *kept.all["TASK-d"].attempts))
    for lease in ("TASK-d:31", "TASK-d:7"):
        found = told(project, kept, by="tide-3", lease=lease)
        assert found.action == "stop" and found.lease == ""
        assert "tide-4" in found.render() and "task done" not in found.render()
    with pytest.raises(UsageError):
        told(project, kept, lease="x")


# ---- the budget ----

decisions = st.builds(
    Decision, id=st.just("DEC-001"), decision=texts, rationale=texts, kind=st.sampled_from(["decision", "rule"])
)


def named(context: RouteContext) -> RouteContext:
    """The context of a route with a name: none is without one."""
    header = context.context_checkpoint
    return replace(context, context_checkpoint=replace(header, route=f"r{header.route}"))


befores = st.builds(
    Neighbour,
    id=st.one_of(st.just("TASK-a"), line),
    title=texts,
    status=st.sampled_from(["completed", "foreign"]),
    summary=texts,
    files=st.lists(line, max_size=2).map(tuple),
)
attempts = st.builds(Attempt, number=st.integers(1, 9), by=texts, began=line, ended=line, outcome=line, note=texts)
tasks = st.builds(
    Task,
    id=st.one_of(st.just("TASK-d"), line),
    title=texts,
    text=texts,
    role=line,
    tags=st.lists(line, max_size=2).map(tuple),
    verify=texts,
    created_by=line,
)
refusals = st.builds(Evidence, state=st.just("failed"), command=texts, output=texts, at=line)
states = st.builds(
    TaskState,
    task=tasks,
    attempts=st.lists(attempts, max_size=3).map(tuple),
    progress=texts,
    evidence=st.none() | refusals,
)
following = st.builds(Neighbour, id=line, title=texts, status=st.just("pending"))
refreshes = st.builds(
    Refresh,
    agent=texts,
    action=st.sampled_from(["work", "look", "stop", "hand-over"]),
    task=states,
    before=st.lists(befores, max_size=4).map(tuple),
    decisions=st.lists(decisions, max_size=3).map(tuple),
    handover=st.one_of(st.none(), st.builds(Carried, last=st.builds(HandOver, now=texts, next=st.tuples(texts)))),
    handed_from=line,
    next=st.lists(following, max_size=3).map(tuple),
    checkpoint=st.booleans(),
    warnings=st.lists(texts, max_size=2).map(tuple),
    context=st.one_of(st.none(), contexts.map(named)),
)


@pytest.mark.ci
@given(refreshes, st.one_of(st.integers(0, 400), st.integers(400, 4_000)))
@quick
def test_no_text_ever_has_more_tokens_or_characters_than_it_may(found: Refresh, most: int) -> None:
    text = found.render(most)
    assert tokens.count(text) <= most and len(text) <= 4 * most


@pytest.mark.ci
@given(refreshes)
@quick
def test_nothing_that_others_wrote_stands_outside_of_the_fence_or_closes_it(found: Refresh) -> None:
    text = found.render(20_000)
    assert outside(text).strip() == ""
    assert text.count("<!--") == text.count(OWN_OUTPUT) == 4
    first, _, notes = text.partition(" ends -->\n")
    assert all(line_.startswith(("# ", "- ", OWN_OUTPUT)) for line_ in first.splitlines())
    known = "## Your task", "## Tasks before", "## Hand-over", "## Decisions in", "## After it"
    own = notes.partition("# Context of ")[0]
    assert all(line_.startswith(known) for line_ in own.splitlines() if line_.startswith("#"))


@pytest.mark.ci
def test_what_gives_way_goes_in_the_order_that_is_promised(project: Path, kept: Kept) -> None:
    """The smallest budget at which each thing is there, of many."""
    for number in range(12):
        ralf.record_decision("TASK-d", f"Own decision number {number} of the curve", rationale="its " * 9, root=project)
    marks = {
        "command": "`ralf task done ",
        "title": "- TASK-d: Title of TASK-d",
        "text": "> Text of TASK-d",
        "verify": "- verify: `make`",
        "progress": "- progress: axes",
        "attempt": "- earlier attempt, by tide-3",
        "nearest": SUMMARIES["TASK-c"],
        "decision": "Answers are JSON lists",
        "brief": "# Context of TASK-d",
        "far": SUMMARIES["TASK-a"],
        "next": "- TASK-e: ",
        "reason": "Because: reason of TASK-a",
    }
    state = kept.all["TASK-d"]
    attempt = Attempt(31, "tide-3", "", "", "killed", "ended by signal 9")
    task = replace(state.task, verify="make")
    kept.all["TASK-d"] = replace(state, task=task, progress="axes", attempts=(attempt, *state.attempts))
    found = told(project, kept)
    least: dict[str, int] = {}
    for most in range(0, 2_500, 25):
        text = found.render(most)
        for name, mark in marks.items():
            if mark in text:
                least.setdefault(name, most)
    order = [least[name] for name in ("command", "title", "text", "verify", "progress", "attempt")]
    assert order == sorted(order)
    beside = [least[name] for name in ("nearest", "decision", "brief", "next", "far")]
    assert least["attempt"] <= min(beside) and max(beside) <= 1_100
    assert least["reason"] >= least["decision"] and least["reason"] <= 1_500
