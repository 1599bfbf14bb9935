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
    CommandFact,
    CommitFact,
    Decision,
    ErrorFact,
    Facts,
    Folded,
    Header,
    OpenFile,
    PathFact,
    RequestFact,
    RouteContext,
    Section,
    Since,
    Todo,
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
    for words, least in [(GOAL, 95), ("step 3 of 7", 110), ("Never water at noon", 200), ("Close the valve", 215)]:
        assert all(words in known.render(budget) for budget in range(least, 1000, 5)), words


def test_what_matters_most_is_left_out_last() -> None:
    """While an active decision is missing, nothing is there of what ranks below it."""
    known = knowing(FULL, 1)
    for budget in range(0, 1000, 10):
        text = known.render(budget)
        decisions = len(re.findall(r"Choose valve number", text))
        assert decisions in (0, 28) or not re.search(r"case\d|solved:|- read:|All requests|No longer valid", text)
        if "Never water at noon" not in text:
            assert decisions == 0
        if GOAL not in text:
            assert "Choose valve" not in text


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
    assert render(FULL, section="goal", fenced=False) == f"## Goal\n> {GOAL}\n"
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
        FULL.active_work, attempts=14, last_progress=9, outcome="PARTIAL", last_output="Bash: make water\n412 drops"
    ),
    facts=replace(FULL.facts, names=tuple(f"pickRow{n}x" for n in range(40))),
    since=Since(files={"src/valve.py": "changed since the checkpoint"}, tokens=12_000, minutes=34),
)


@pytest.mark.parametrize("budget", [None, 2500])
def test_the_brief_leads_in_the_order_in_which_a_successor_asks(budget: int | None) -> None:
    text = knowing(LEAD, 1).render(budget)
    order = [
        "## Goal",
        "## Where things stand",
        "step 3 of 7",
        "attempt 14; last outcome PARTIAL; nothing changed since attempt 9",
        "The valve opens now",
        "412 drops",
        "## Next",
        "## Not again",
        "## Rules",
        "## Decisions",
        "## Files",
        "src/valve.py (changed since the checkpoint)",
        "about 12,000 tokens and 34 minutes",
        "## Names in use",
        "## Checkpoint 3",
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


def test_a_name_that_stands_above_is_not_told_a_second_time() -> None:
    facts = replace(FULL.facts, names=("openGate", "Choose", "Use_a_timer", "valve"))
    context = replace(FULL, goal="Repair openGateway, and openGate too", facts=facts)
    names = context.render(section="brief").split("## Names in use\n")[1].split("\n")[0]
    assert names == "- Use_a_timer"
    assert "openGate, " in replace(context, goal="Repair openGateway").render().replace("\n", ", ")
    assert "Choose, openGate" in context.render(section="facts")  # which says nothing of the goal


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
    assert f"{sum(line.endswith('…') for line in text.splitlines())} requests" in text
    assert context.render(100_000) == context.render()


def test_a_request_that_was_told_above_waits_for_the_others() -> None:
    said = [f"Where does the water of row {n} go in the night?" for n in range(30)]
    context = asked(*said, "Close the valve of the last row, look after the pump of the first one, then go")
    texts = [context.render(budget) for budget in range(300, 900, 20)]
    assert {text.count("> Close the valve") for text in texts} == {1, 2}
    assert all(text.count("Where does the water") == 30 for text in texts if text.count("> Close the valve") == 2)


def test_a_request_that_says_little_by_itself_waits_for_the_others() -> None:
    context = asked("yes please", "Water the first row of pears", "Where does the water of it go?", "go on")
    ranks = {p.text: p.rank for p in pieces(context) if p.group.startswith("All requests")}
    assert ranks["> Water the first row of pears\n"] < ranks["> yes please\n"] == ranks["> go on\n"]


def test_a_section_that_says_next_to_nothing_does_not_stand_for_the_newest() -> None:
    words = "".join(f"- The pipe of row {n} was laid anew after the rain of last week.\n" for n in range(8))
    body = Body(sections=(Section(2, "", "Nothing was said.\n"), Section(1, "", words)))
    context = replace(asked(*(f"Where does the water of row {n} go in the night?" for n in range(40))), body=body)
    text = knowing(context, 1).render(500)
    assert text.count("was laid anew") == 8
    assert "All requests" in text


def test_the_likeliest_names_are_handed_over_before_the_last_output() -> None:
    names = tuple(f"pickRow{n}x" for n in range(100))
    work = ActiveWork(last_output="412 drops fell into the bucket of the north row\n" * 30)
    context = knowing(RouteContext(active_work=work, facts=Facts(names=names)), 1)
    text = context.render(400, section="resume")
    assert "pickRow99x" in text
    assert "pickRow70x" in text
    assert "412 drops" in text
