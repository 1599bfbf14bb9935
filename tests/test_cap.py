"""The cap: a route file never grows beyond it, what folds first matters least, and what went is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contexts import as_read, ruled
from ralf import model
from ralf.model import (
    ActiveWork,
    Body,
    Checkpoint,
    CommandFact,
    CommitFact,
    Decision,
    ErrorFact,
    Facts,
    PathFact,
    RequestFact,
    RouteContext,
    Section,
    Todo,
)
from ralf.route.cap import CAP, KEPT_DECISIONS, capped
from ralf.route.routefile import parse, render
from ralf.text import tokens

WORDS = "some twenty words of ordinary prose that say nothing at all but take up room in the file that holds them "
PINNED = Decision("DEC-9001", kind="rule", pinned=True, decision="Never push to main. " + WORDS, rationale=WORDS)


def size(context: RouteContext) -> int:
    """The estimate for a context's file."""
    return tokens.estimate(render(context))


def full(n: int, words: str = WORDS) -> RouteContext:
    """A context with `n` of everything, oldest first."""
    return RouteContext(
        goal="The goal. " + WORDS,
        active_work=ActiveWork("TASK-001", next_steps=("Next. " + WORDS,), todos=(Todo("A to-do. " + WORDS),)),
        decisions=(
            *(Decision(f"DEC-{k:03d}", decision=f"old {k} {words}", status="superseded") for k in range(n)),
            *(Decision(f"DEC-{n + k:03d}", decision=f"now {k} {words}", rationale=words) for k in range(n)),
            PINNED,
        ),
        facts=Facts(
            paths=tuple(PathFact(f"src/{k}.py {words}", ("read",) if k % 2 else ("edited",)) for k in range(n)),
            commands=tuple(CommandFact(f"run {k} {words}", ("passed", "failed")[k % 2]) for k in range(n)),
            errors=tuple(ErrorFact(f"error {k} {words}") for k in range(n)),
            commits=tuple(CommitFact(f"c{k}", words) for k in range(n)),
            tests=tuple(model.TestFact(f"pytest {k}", words) for k in range(n)),
            requests=tuple(RequestFact(f"request {k} {words}") for k in range(n)),
            names=tuple(f"name_{k}" for k in range(n)),
        ),
        checkpoint_history=tuple(Checkpoint(f"cp-{k:03d}", key_events=(words,)) for k in range(n)),
        body=Body(sections=tuple(Section(n - k, f"title {n - k}", ruled(f"- {words}")) for k in range(n))),
    )


@pytest.mark.ci
@pytest.mark.parametrize("n", [30, 60, 150, 600])
@pytest.mark.parametrize("words", [WORDS, "x", "two\nlines\n", "# \u65e5\u672c\u8a9e \"' \u2028"])
def test_a_file_is_held_to_the_cap_whatever_it_is_full_of(n: int, words: str) -> None:
    context = full(n, words)
    found = capped(context)
    assert size(found) <= CAP
    assert size(context) <= CAP or size(found) > CAP * 3 // 4  # and no more is folded than has to be
    assert parse(render(found).encode(), "file") == as_read(found)


@pytest.mark.ci
def test_goal_pinned_rules_active_work_and_the_newest_section_never_fold() -> None:
    context = full(600)
    found = capped(context)
    assert (found.goal, found.active_work) == (context.goal, context.active_work)
    assert PINNED in found.decisions
    assert found.body.sections[0] == context.body.sections[0]
    huge = replace(full(60), goal="word " * 30_000)
    rest = capped(huge)
    newest = [decision.id for decision in huge.decisions[-KEPT_DECISIONS:] if decision != PINNED]
    assert (rest.goal, rest.active_work) == (huge.goal, huge.active_work)
    assert PINNED in rest.decisions
    assert [decision.id for decision in rest.decisions if decision != PINNED] == newest


def test_an_old_active_decision_keeps_its_text_and_speaker_when_its_details_fold() -> None:
    source = model.Source("a-session", 3, 4, "0123456789abcdef")
    whole = [
        Decision(f"DEC-{k:03d}", timestamp="2026-02-07", decision=f"{k} {WORDS}", rationale=WORDS, source=source)
        for k in range(300)
    ]
    found = capped(RouteContext(decisions=tuple(replace(item, origin="user") for item in whole)))
    first = found.decisions[0]
    assert first == Decision("DEC-000", decision=f"0 {WORDS}", origin="user")
    assert found.decisions[-1].source == source
    assert len(found.decisions) == 300
