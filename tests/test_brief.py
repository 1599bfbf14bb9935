"""The text of a context: never over its budget in tokens or characters, what matters most is left out last, and what
is left out is said.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from contexts import contexts, quick, ruled, texts
from examples import examples
from ralf.brief import rendering
from ralf.brief.pieces import SECTIONS, pieces
from ralf.brief.rendering import counted, key, render
from ralf.model import (
    ActiveWork,
    Body,
    Checkpoint,
    CommandFact,
    CommitFact,
    Decision,
    ErrorFact,
    Facts,
    Folded,
    HandOver,
    Header,
    OpenFile,
    PathFact,
    RequestFact,
    RouteContext,
    Section,
    Since,
    Source,
    TestFact as RunFact,
    Todo,
    WorkingTree,
)
from ralf.text import tokens

GOAL = "Make the orchard water itself when the soil is dry for three days in a row"
FULL = RouteContext(
    context_checkpoint=Header(route="TASK-001", revision=7, checkpoint_count=3, last_checkpoint="2026-03-01T10:00:00Z"),
    goal=GOAL,
    active_work=ActiveWork(
        current_task="TASK-001",
        plan_step=3,
        total_steps=7,
        last_statement="The valve opens now. " * 9,
        next_steps=("Close the valve when the tank is empty",),
        todos=(Todo("Write the test of the pump", "in_progress"), Todo("Done already", "completed")),
        blockers=("The pump has no driver",),
        findings=("The sensor counts downwards",),
        open_files=(OpenFile("src/valve.py"),),
    ),
    decisions=(
        Decision("DEC-001", kind="rule", pinned=True, decision="Never water at noon", rationale="It burns the leaves"),
        *(
            Decision(f"DEC-{n:03d}", decision=f"Choose valve number {n} of the row", rationale="cheap")
            for n in range(2, 30)
        ),
        Decision("DEC-030", decision="Use a timer", status="superseded", superseded_by="DEC-031"),
        Decision("DEC-031", kind="failed-approach", decision="Polling the sensor every second"),
    ),
    facts=Facts(
        paths=tuple(PathFact(f"src/part{n}.py", ("edited",) if n % 2 else ("read",)) for n in range(40)),
        commands=tuple(CommandFact(f"pytest -k case{n}", ("passed", "failed")[n % 2]) for n in range(40)),
        errors=tuple(ErrorFact(f"ValveError: stuck at {n}", fixed_by="" if n % 3 else "oil") for n in range(20)),
        commits=tuple(CommitFact(f"abc{n:04d}", f"Add part {n}") for n in range(9)),
        requests=tuple(RequestFact(f"Please look after tree number {n} of the orchard") for n in range(20)),
    ),
    body=Body(sections=tuple(Section(n, f"Row {n}", ruled("what happened\n" * 9)) for n in (3, 2, 1))),
)
BUDGETS = [0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 75, 100, 130, 170, 220, 300, 400, 550, 700, 900, 1200, 1600, 2500, 8000]


def knowing(context: RouteContext, share: float) -> RouteContext:
    """The context with the counts of a share of its pieces."""
    known = counted(context)
    return replace(context, counts=dict(list(known.items())[: int(len(known) * share)]))


def fits(text: str, most: int) -> bool:
    return tokens.count(text) <= most and len(text) <= 4 * most


@given(contexts, st.sampled_from([0.0, 0.5, 1.0]), st.lists(st.integers(0, 8000) | st.integers(0, 300), max_size=4))
@settings(quick, max_examples=examples(35))
def test_a_text_is_never_over_its_budget_whatever_it_holds(
    context: RouteContext, share: float, most: list[int]
) -> None:
    known = knowing(context, share)
    for budget in [*most, 50]:
        text = known.render(budget)
        assert fits(text, budget)
        assert fits(known.render(budget, query="word 012"), budget)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("section", [None, *SECTIONS])
def test_no_budget_is_exceeded_by_any_part(share: float, section: str | None) -> None:
    known = knowing(FULL, share)
    for budget in BUDGETS:
        assert fits(known.render(budget, section=section), budget)
        assert fits(known.render(budget, section=section, query="valve 7"), budget)


@given(contexts)
@settings(quick, max_examples=examples(25))
def test_the_pieces_together_never_count_less_than_the_whole(context: RouteContext) -> None:
    parts = [piece.text for piece in pieces(context)]
    assert tokens.count("".join(parts)) <= sum(map(tokens.count, parts))
    counts = counted(context)
    assert all(counts[rendering.key(part)] == tokens.count(part) for part in parts)
    headings = {piece.group for piece in pieces(context)}
    assert all(text == "" or text.endswith("\n") for text in parts)
    assert not any("\n" in heading for heading in headings)


def test_headings_of_the_same_name_in_two_places_are_paid_for_twice() -> None:
    sections = (Section(None, "N", "- a"), Section(1, "x", "- b"), Section(None, "N", "- c")) * 30
    context = knowing(RouteContext(body=Body(sections=sections)), 1)
    for budget in range(0, 900, 9):
        assert fits(context.render(budget), budget)


def test_known_counts_render_without_a_tokenizer_the_same_as_with_one() -> None:
    for budget in BUDGETS:
        assert knowing(FULL, 1).render(budget).count("\n") >= FULL.render(budget).count("\n") - 1


def test_without_a_budget_everything_is_there() -> None:
    text = FULL.render()
    for words in [
        GOAL,
        "Never water at noon",
        "It burns the leaves",
        "tree number 0 ",
        "case0 ",
        "part0.py",
        "abc0000",
    ]:
        assert words in text
    for words in ["Use a timer", "DEC-030 [superseded by DEC-031]", "stuck at 0", "solved: oil", "src/valve.py"]:
        assert words in text
    for words in ["The pump has no driver", "[in_progress] Write the test", "step 3 of 7", "counts downwards", "Row 1"]:
        assert words in text
    assert "Done already" not in text
    assert "Left out" not in text
    assert knowing(FULL, 1).render(100_000) == text


@pytest.mark.slow
def test_a_larger_budget_never_shows_less_of_what_matters_most() -> None:
    known = knowing(FULL, 1)
    for words, least in [(GOAL, 110), ("step 3 of 7", 110), ("Never water at noon", 220), ("Close the valve", 215)]:
        assert all(words in known.render(budget) for budget in range(least, 1000, 5)), words


def test_what_matters_most_is_left_out_last() -> None:
    """While an active decision is missing, nothing is there of the parts that live on what the others leave."""
    known = knowing(FULL, 1)
    for budget in range(0, 1000, 10):
        text = known.render(budget)
        decisions = len(re.findall(r"Choose valve number", text))
        assert decisions in (0, 28) or not re.search(r"case\d|solved:|- read:|All requests|No longer valid", text)
        if budget >= 400:
            assert all(words in text for words in (GOAL, "Never water at noon", "Close the valve"))


def test_each_part_of_the_brief_gets_its_share_however_long_the_one_before_it_is() -> None:
    long = "The valve opens, and the pump hums for a while, and then it drips. " * 90
    work = replace(FULL.active_work, last_statement=long, last_output=long)
    context = knowing(replace(FULL, active_work=work, facts=replace(FULL.facts, requests=(RequestFact(long),))), 1)
    for budget in (1000, 2500):
        text = context.render(budget)
        assert text.count("[…]") == 3
        for words in (GOAL, "Close the valve", "Never water at noon", "Polling the sensor", "src/valve.py"):
            assert words in text
        assert text.count("Choose valve number") >= 5


def test_a_message_that_does_not_fit_loses_its_middle_and_keeps_its_question() -> None:
    work = ActiveWork(last_statement=f"I found two ways.\n{'The first one is slow. ' * 200}\nWhich one do you want?")
    text = knowing(RouteContext(active_work=work), 1).render(300)
    assert "> I found two ways.\n" in text
    assert " […]\n" in text
    assert "> Which one do you want?\n" in text


def test_of_the_decisions_the_newest_are_left_out_last() -> None:
    known = knowing(FULL, 1)
    for budget in range(0, 1000, 10):
        found = [int(number) for number in re.findall(r"Choose valve number (\d+)", known.render(budget))]
        assert found == list(range(29, 29 - len(found), -1))


@pytest.mark.parametrize("budget", [150, 300, 600, 900])
def test_a_text_that_is_cut_ends_by_saying_so_and_how_to_get_the_rest(budget: int) -> None:
    last = knowing(FULL, 1).render(budget).split("\n")[-3]  # before the fence's end
    assert "ralf context show TASK-001" in last
    assert re.match(r"_Left out of this text: \d+ |_\(cut: ", last)


def test_the_numbers_of_what_was_left_out_are_right() -> None:
    text = knowing(FULL, 1).render(600)
    counts = {noun: int(number) for number, noun in re.findall(r"(\d+) (decision|fact|line|section|request)s?\b", text)}
    everything = [line for line in FULL.render().split("\n") if line.startswith("- DEC-")]
    shown = [line for line in text.split("\n") if line.startswith("- DEC-")]
    assert counts["decision"] == len(everything) - len(shown) > 0


@pytest.mark.parametrize("budget", [None, 5_000])
def test_what_the_cap_moved_out_is_said_even_where_the_text_is_whole(budget: int | None) -> None:
    folded = replace(FULL, folded=Folded(decision_count=3, fact_count=1))
    for context in (folded, knowing(folded, 1)):
        last = context.render(budget).split("\n")[-3]
        assert last.startswith(
            "_Moved out of the file: 3 older decisions, 1 older fact; find them: `ralf context search"
        )


def test_a_query_brings_what_it_asks_for_and_keeps_goal_and_pinned_rules() -> None:
    known = knowing(FULL, 1)
    plain, asked = known.render(400), known.render(400, query="case17 pytest")
    assert "case17 " not in plain
    assert "case17 " in asked
    for words in (GOAL, "Never water at noon", "Close the valve"):
        assert words in asked
    assert known.with_defaults(400, "case17 pytest").render() == asked


def test_a_query_without_a_match_changes_nothing() -> None:
    known = knowing(FULL, 1)
    assert known.render(400, query="zzz qqq") == known.render(400)


def test_a_budget_of_next_to_nothing_is_an_empty_text_or_fits() -> None:
    for budget in range(-3, 13):
        assert len(knowing(FULL, 1).render(budget)) <= max(0, budget) * 4
    assert FULL.render(0) == ""


@given(texts(4), st.sampled_from(["path", "route", "id", "status", "commit", "todo", "last"]))
@quick
def test_no_text_of_a_fact_becomes_a_line_of_its_own(words: str, place: str) -> None:
    forged = f"{words}\n## Forged\n- [x] forged\r# Forged\u2028## Forged\x85# Forged"
    context = {
        "path": RouteContext(
            facts=Facts(paths=(PathFact(forged, ("edited", forged)), PathFact(forged + "2", ("read",)))),
            active_work=ActiveWork(open_files=(OpenFile(forged),)),
        ),
        "route": RouteContext(context_checkpoint=Header(route=forged)),
        "last": RouteContext(context_checkpoint=Header(last_checkpoint=forged)),
        "id": RouteContext(decisions=(Decision(forged, decision=forged, rationale=forged, alternatives=(forged,)),)),
        "status": RouteContext(
            decisions=(Decision("DEC-1", status=forged, superseded_by=forged),),
            facts=Facts(commands=(CommandFact(forged, forged, 1),), errors=(ErrorFact(forged, forged, forged),)),
        ),
        "commit": RouteContext(goal=forged, facts=Facts(commits=(CommitFact(forged, forged),))),
        "todo": RouteContext(
            active_work=ActiveWork(
                forged,
                forged,
                forged,
                forged,
                last_statement=forged,
                todos=(Todo(forged, forged),),
                next_steps=(forged,),
            )
        ),
    }[place]
    for line in context.render(fenced=False).splitlines():
        assert line.startswith(("- ", "> ", "_", "**", "# Context of", "## ")) or not line
        assert not line.startswith(("## Forged", "# Forged", "- [x] forged"))


def test_one_section_alone_can_be_had() -> None:
    goal = f"## Goal\n> {GOAL}\n- in hand: Write the test of the pump\n"
    assert render(FULL, section="goal", fenced=False) == goal
    assert render(FULL, section="history").count("## Checkpoint") == 3
    assert "Never water" in render(FULL, section="decisions")
    assert "case7" in render(FULL, section="facts")
    assert "step 3 of 7" in render(FULL, section="work")


def test_reasons_and_options_that_are_lists_are_told_on_one_line_and_stay_apart() -> None:
    decision = Decision(
        id="DEC-001",
        decision="Use SQLite",
        rationale="- One file\n- Many readers",
        alternatives=("Redis: one more service; slower", "Files: no locks"),
    )
    (line,) = [
        line for line in render(RouteContext(decisions=(decision,))).splitlines() if line.startswith("- DEC-001")
    ]
    because, _, rejected = line.partition(" Rejected: ")
    assert because == "- DEC-001: Use SQLite. Because: One file; Many readers."
    assert rejected == "(1) Redis: one more service; slower; (2) Files: no locks"


def test_the_same_context_gives_the_same_text() -> None:
    assert knowing(FULL, 1).render(777, query="valve") == knowing(FULL, 1).render(777, query="valve")


LEAD = replace(
    FULL,
    active_work=replace(
        FULL.active_work,
        attempts=14,
        last_progress=9,
        outcome="PARTIAL",
        last_output="Bash: make water\n412 drops",
        git=WorkingTree("orchard/rows", "abc0009 Add the row of pears", ("src/valve.py",)),
    ),
    handover=HandOver(state="the pump is mended", author="agent", timestamp="2026-03-01T09:00:00Z"),
    checkpoint_history=(Checkpoint("cp-003", summary_ref="### Checkpoint 3: Row 3"),),
    facts=replace(FULL.facts, names=tuple(f"pickRow{n}x" for n in range(40))),
    since=Since(files={"src/valve.py": "changed since the checkpoint"}, tokens=12_000, minutes=34),
)


def test_where_a_hand_over_says_what_binds_what_rules_had_found_before_waits_for_room() -> None:
    at = "2026-03-01T09:00:00Z"
    decisions = (
        Decision(
            "DEC-001", decision="Use a ball valve", origin="agent", timestamp=at[:-2] + "0Z", source=Source("s-1", 2, 2)
        ),
        Decision(
            "DEC-002",
            kind="rule",
            pinned=True,
            decision="Never close it by hand",
            origin="user",
            source=Source("s-1", 2, 2),
        ),
        Decision("DEC-003", decision="Oil it weekly", origin="user"),
        Decision("DEC-004", decision="Keep the old pump", origin="agent", timestamp=at),
        Decision("DEC-005", decision="Paint it green", origin="agent", timestamp=at),
    )
    context = RouteContext(decisions=decisions, handover=HandOver(state="dry", author="agent", timestamp=at))
    small = context.render(2_500)
    assert "DEC-001" not in small
    assert [label for label in ("DEC-002", "DEC-003", "DEC-004") if label not in small] == []
    assert "## Decided before the hand-over, as the transcript says\n- DEC-001" in context.render()
    for few in (decisions[:3], decisions[:4]):  # it names none, or one: it adds to what is known
        assert "DEC-001" in replace(context, decisions=few).render(2_500)
    timeless = Decision("DEC-009", decision="Count the drops", origin="agent", source=Source("s-1", 2, 2))
    assert "## Decisions in force\n- DEC-009" in RouteContext(decisions=(timeless,)).render()


@pytest.mark.parametrize("budget", [None, 2500])
def test_the_brief_leads_in_the_order_in_which_a_successor_asks(budget: int | None) -> None:
    text = knowing(LEAD, 1).render(budget)
    order = [
        "## Now",
        "- branch orchard/rows, at commit abc0009 Add the row of pears",
        "- uncommitted: src/valve.py",
        "step 3 of 7",
        "attempt 14; last outcome PARTIAL; nothing changed since attempt 9",
        "The valve opens now",
        "412 drops",
        "about 12,000 tokens and 34 minutes",
        "## Hand-over, by the agent, 2026-03-01T09:00:00Z; about 12,000 tokens of work came after it",
        "- state: the pump is mended",
        "## Goal",
        "## Next and open questions",
        "## Rules",
        "## Decisions in force",
        "## Not again",
        "## Files",
        "src/valve.py (changed since the checkpoint)",
        # a small one has no room for what a new hand-over knows of
        *([] if budget else ["## History", "## Exact ids", "- commit abc0008 Add part 8", "## Checkpoint 3"]),
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_the_brief_alone_has_no_history_and_no_lists_of_facts() -> None:
    text = LEAD.render(section="brief")
    assert "412 drops" in text
    assert not re.search(r"## (?:Checkpoint|Commands|All requests|No longer valid|Errors)", text)


@given(contexts, st.dictionaries(texts(2), st.sampled_from(["changed", "gone"]), max_size=3), st.integers(0, 900))
@settings(quick, max_examples=examples(25))
def test_what_is_known_only_at_a_read_keeps_to_the_budget_too(
    context: RouteContext, stale: dict[str, str], budget: int
) -> None:
    files = tuple(OpenFile(path) for path in stale)
    known = knowing(replace(context, active_work=replace(context.active_work, open_files=files)), 1)
    assert fits(replace(known, since=Since(stale, 12_345, 67)).render(budget), budget)


def test_a_long_decision_gives_way_to_its_statement_before_it_goes() -> None:
    reason = "It was measured in the north field for three days in a row. " * 9
    long = tuple(Decision(f"DEC-{n:03d}", decision=f"Choose valve {n} of the row", rationale=reason) for n in range(20))
    context = knowing(RouteContext(decisions=long), 1)
    text = context.render(600)
    assert text.count("Choose valve") == 20
    assert 0 < text.count("Because: It was") < 20
    assert f"{20 - text.count('Because: It was')} reasons" in text
    assert context.render(100_000) == context.render()


def test_what_a_successor_is_handed_says_nothing_twice() -> None:
    failed = "make pump"
    context = replace(
        FULL,
        decisions=(Decision("DEC-001", decision=GOAL), Decision("DEC-002", decision=GOAL, rationale="the trees die")),
        facts=Facts(
            requests=(RequestFact(GOAL),),
            errors=(ErrorFact("no rule to make pump", command=failed),),
            commands=(CommandFact(failed, "failed", exit=2), CommandFact("make valve", "failed", exit=2)),
        ),
    )
    text = render(context, 2_500, section="resume")
    assert "**Asked" not in text and "DEC-001" not in text
    assert f"DEC-002: {GOAL}. Because: the trees die" in text
    assert text.count(failed) == 2 and f"(from: {failed})" in text and "- make valve (failed, exit 2)" in text
    assert "DEC-001" in render(context)


def test_no_name_stands_bare_in_a_brief() -> None:
    context = replace(FULL, facts=replace(FULL.facts, names=("openGate", "Use_a_timer")))
    for budget in (None, 2500):
        assert "openGate" not in context.render(budget)
    assert "openGate" in context.render(section="facts")


def test_every_piece_of_every_part_is_counted_when_it_is_written() -> None:
    counts = counted(LEAD)
    parts = (None, "brief", "resume", "facts", "history", "decisions", "work", "goal")
    texts = [text for part in parts for piece in pieces(LEAD, part) for text in (piece.text, piece.short) if text]
    assert [text for text in texts if key(text) not in counts] == []


LONG_ASKED = "Please look at the valve in the north row, which drips at night. " * 8


def asked(*requests: str) -> RouteContext:
    return knowing(RouteContext(facts=Facts(requests=tuple(map(RequestFact, requests)))), 1)


def test_every_request_comes_in_brief_before_any_comes_as_a_whole() -> None:
    context = asked(*(f"Row {n}: {LONG_ASKED}" for n in range(12)), "Is that all of it, or is there more?")
    text = context.render(800)
    assert text.count("> Row ") == 12
    assert text.count("…") > 0
    told_above = 1
    assert f"{sum(line.endswith('…') for line in text.splitlines()) + told_above} requests" in text
    assert context.render(100_000) == context.render()


def test_a_request_that_was_told_above_is_not_told_again_in_a_brief() -> None:
    said = [f"Where does the water of row {n} go in the night?" for n in range(30)]
    context = asked(*said, "Close the valve of the last row, look after the pump of the first one, then go")
    texts = [context.render(budget) for budget in range(300, 900, 20)]
    assert {text.count("> Close the valve") for text in texts} == {1}
    assert texts[-1].count("Where does the water") == 30
    assert context.render(4_500).count("> Close the valve") == 2


def test_a_request_that_says_little_by_itself_waits_for_the_others() -> None:
    context = asked("yes please", "Water the first row of pears", "Where does the water of it go?", "go on")
    parts = {p.text: p.part for p in pieces(context) if p.group.startswith("All requests")}
    assert parts["> Water the first row of pears\n"] < parts["> yes please\n"] == parts["> go on\n"]


def test_a_section_that_says_next_to_nothing_does_not_stand_for_the_newest() -> None:
    words = "".join(f"- The pipe of row {n} was laid anew after the rain of last week.\n" for n in range(8))
    body = Body(sections=(Section(2, "", "Nothing was said.\n"), Section(1, "", words)))
    context = replace(asked(*(f"Where does the water of row {n} go in the night?" for n in range(40))), body=body)
    text = knowing(context, 1).render(500)
    assert text.count("was laid anew") == 8
    assert "All requests" in text


def test_a_heading_is_paid_for_once_when_the_text_below_it_grows() -> None:
    said = "".join(f"Line {n} of the plan names valve{n}.py and pump{n}.py\n" for n in range(40))
    handover = HandOver(state=said, next=(said,), author="compaction", timestamp="2026-03-01T09:00:00Z")
    context = knowing(replace(LEAD, handover=handover), 1)
    for budget in range(200, 2_600, 40):
        assert fits(context.render(budget), budget)


def test_an_old_hand_over_says_what_was_next_then_and_stands_behind_the_history() -> None:
    handover = HandOver(state="the pump is mended", next=("oil the valve",), author="compaction")
    text = replace(LEAD, handover=handover, since=Since(tokens=90_000)).render()
    assert "- next, then: oil the valve" in text
    assert text.index("## History") < text.index("## Hand-over, by the client's own summary of its window")


def test_where_nobody_said_what_comes_next_the_record_says_what_is_begun_and_open() -> None:
    git = WorkingTree("rows", uncommitted=("src/valve.py",), untested=("src/valve.py",))
    work = ActiveWork(last_request="Mend the valve of the orchard", git=git)
    context = RouteContext(active_work=work, facts=Facts(tests=(RunFact("make test", "3 passed"),)))
    assert "- still to test and to commit, by the record: src/valve.py\n" in context.render()
    begun = replace(context, active_work=replace(work, last_statement="It leaks. Let me turn it by hand:"))
    assert "- just begun: Let me turn it by hand:\n" in begun.render()
    assert "- uncommitted, and changed after the last test run: src/valve.py\n- that run: `make test`: 3 passed\n" in (
        context.render()
    )
    planned = replace(context, active_work=replace(work, next_steps=("Oil the valve",)))
    assert "by the record" not in planned.render()


def test_an_exchange_stands_on_one_line_the_newest_first_and_thoughts_last() -> None:
    section = "- **Asked:** Is the valve open?\n  It is open.\n  thought: It may leak.\n- **Asked:** Close it\n"
    text = RouteContext(body=Body(sections=(Section(1, "Valves", section),))).render(fenced=False)
    lines = text[text.index("## Checkpoint 1: Valves") :].splitlines()
    assert lines[1:] == ["- asked: Close it", "- asked: Is the valve open? → It is open.", "- thought: It may leak."]


def test_errors_of_commands_that_only_looked_come_behind_those_of_the_work() -> None:
    looked = ErrorFact("cat: rows.csv: No such file or directory", command="cat rows.csv")
    worked = tuple(ErrorFact(f"error: row {n}", command=f"make row{n}") for n in range(3))
    text = RouteContext(facts=Facts(errors=(*worked, looked))).render()
    again = text[text.index("## Not again") : text.index("## Other errors")]
    assert "row 2" in again and "rows.csv" not in again
    assert "rows.csv" in text
    assert "rows.csv" in RouteContext(facts=Facts(errors=(looked,))).render(section="brief")


def test_a_section_that_was_imported_says_so_in_its_heading() -> None:
    entries = (Checkpoint("cp-001", summary_ref="### Checkpoint 1: Valves", origin="import"),)
    body = Body(sections=(Section(1, "Valves", "- **Asked:** Is the valve of the pump open?\n  It is open.\n"),))
    text = RouteContext(checkpoint_history=entries, body=body).render(fenced=False)
    assert "## Checkpoint 1: what was asked, and said of it then (import)\n" in text


def test_what_was_done_for_a_request_stands_behind_what_was_said() -> None:
    section = "- **Asked:** Close the valve\n  It is closed now.\n  did: edited valve.py; committed 64274e0f Close it\n"
    text = RouteContext(body=Body(sections=(Section(1, "V", section),))).render(fenced=False)
    assert "- asked: Close the valve → It is closed now. (did: edited valve.py; committed 64274e0f Close it)\n" in text


def test_what_is_left_to_test_and_to_commit_is_told_apart() -> None:
    git = WorkingTree(branch="rows", uncommitted=("a.py", "b.py"), untested=("b.py",))
    work = ActiveWork(git=git, last_request="Oil it", last_statement="Now fix the pump:\n\nLet me look at the valve.")
    facts = Facts(tests=(RunFact("make test", "2 passed"),))
    text = RouteContext(active_work=work, facts=facts).render(fenced=False)
    assert "- just begun: Let me look at the valve.\n" in text
    assert "- still to test, by the record: b.py\n- still to commit, by the record: b.py, a.py\n" in text


def test_a_short_answer_stands_with_the_question_that_it_answers() -> None:
    section = Section(1, "", "- **Asked:** 1 (to: Which valve first?)\n  The valve of the first row it is.\n")
    context = replace(asked("1"), body=Body(sections=(section,)))
    assert "**Asked last:**\n> 1 (to: Which valve first?)\n" in context.render(fenced=False)


def test_what_is_in_hand_stands_above_an_older_request_that_named_the_subject() -> None:
    work = ActiveWork(todos=(Todo("Oil the pump", "in_progress"),))
    facts = Facts(requests=(RequestFact(GOAL), RequestFact("yes, and look after the second row then, please")))
    text = RouteContext(goal=GOAL, active_work=work, facts=facts).render(fenced=False)
    assert f"## Goal\n- in hand: Oil the pump\n- asked for before that:\n> {GOAL}\n" in text


def test_a_mistyped_command_is_no_lesson() -> None:
    mistyped = ErrorFact("error: unknown option `dry-run'", command="git gc --dry-run")
    context = RouteContext(facts=Facts(errors=(mistyped, ErrorFact("the valve broke", command="make pump"))))
    text = context.render(fenced=False)
    assert "## Not again\n- error: the valve broke (from: make pump)\n## Other errors\n- error: error: unknown" in text


def test_a_brief_is_not_filled_up_with_what_nobody_needs_first() -> None:
    text = knowing(FULL, 1).render(3_000)
    assert "Choose valve number 2 " in text and "tree number 13 " in text and "tree number 0 " not in text
    assert not re.search(r"case\d|solved:|- read:|no longer valid", text)
    assert "Left out of this text: " in text
    assert re.search(r"case\d", knowing(FULL, 1).render(4_500))
    assert re.search(r"case7\b", knowing(FULL, 1).render(3_000, query="case7"))
