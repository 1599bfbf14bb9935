"""The fold: what a route's records come to, wherever it is broken off, whatever kinds of records there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from contexts import as_read, contexts, quick, ruled, texts
from examples import examples
from kit.no_index import with_index_only
from ralf.document import record as document
from ralf.document.index import Index, with_index
from ralf.document.rows import Rows
from ralf.document.tree import to_tree
from ralf.model import RouteContext, Section
from ralf.route.edits import changes_of_edit, changes_of_foreign
from ralf.route.family import RouteFamily, context_of
from ralf.route.fold import REVERT, apply, empty
from ralf.route.routefile import parse, render
from ralf.route.taking_back import changes_back
from ralf.storage.journal import Record

ROUTE = "TASK-001"


def checkpoint(number: int, **more: Any) -> dict[str, Any]:
    """A checkpoint's payload."""
    return {
        "source": {"session": "s", "from_byte": 0, "to_byte": 9, "from_line": 10 * number, "to_line": 10 * number + 10},
        "period": [f"2026-03-01T1{number % 10}:00:00Z", f"2026-03-01T1{number % 10}:30:00Z"],
        "tokens": 1000 * (number + 1),
        "reason": "threshold",
        "summarizer": "extractive",
        "title": f"title {number}",
        "text": f"- what happened in {number}",
        **more,
    }


def fold(records: Sequence[Record], start: RouteContext) -> RouteContext:
    """What records, oldest first, make of a context."""
    return reduce(apply, records, start)


def records(*kinds: tuple[str, dict[str, Any]]) -> list[Record]:
    return [Record(revision, kind, payload) for revision, (kind, payload) in enumerate(kinds, start=1)]


def folded(*kinds: tuple[str, dict[str, Any]]) -> RouteContext:
    return fold(records(*kinds), empty(ROUTE))


def decided(words: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "decision", {"decision": {"decision": words, "timestamp": "2026-03-01T09:00:00Z", **more}}


# ---- any stream of records ----

_words = texts(2)
_decision = st.builds(
    lambda words, why, old: {"decision": words, "rationale": why, **({"supersedes": old} if old else {})},
    _words,
    _words,
    st.sampled_from(["", "DEC-001", "DEC-002", "DEC-009"]),
)
_facts = st.builds(
    lambda paths, commands: {
        "paths": [{"path": path, "did": ["edited"]} for path in paths],
        "commands": [{"command": command, "status": "failed", "failures": 1} for command in commands],
    },
    st.lists(_words, max_size=2, unique=True),
    st.lists(_words, max_size=2, unique=True),
)
_checkpoint = st.builds(
    lambda number, decisions, facts, text, goal, work: (
        "checkpoint",
        checkpoint(number, decisions=decisions, facts=facts, text=ruled(text), goal=goal, active_work=work),
    ),
    st.integers(0, 9),
    st.lists(_decision, max_size=2),
    _facts,
    _words,
    _words,
    st.fixed_dictionaries({}, optional={"current_task": _words, "next_steps": st.lists(_words, max_size=2)}),
)
_unknown = st.tuples(st.sampled_from(["refine", "Checkpoint", ""]), st.dictionaries(_words, _words, max_size=1))
_edit = st.builds(
    lambda key, value: ("edit", {"changes": [{"at": [key], "value": value}]}), st.sampled_from(["goal", "mine"]), _words
)
_import = contexts.map(lambda context: ("import", {"document": to_tree(context)}))
_kind = st.one_of(_checkpoint, _checkpoint, st.tuples(st.just("decision"), _decision.map(lambda d: {"decision": d})))
_streams = st.lists(st.one_of(_kind, _kind, _unknown, _edit), min_size=1, max_size=7)


@pytest.mark.ci
@with_index_only()
@given(_streams, st.one_of(st.none(), _import), st.data())
@settings(quick, max_examples=examples(30))
def test_a_fold_that_is_broken_off_anywhere_and_taken_up_comes_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, stream: list[Any], imported: Any, data: st.DataObject
) -> None:
    found = records(*([imported] if imported else []), *stream)
    whole = fold(found, empty(ROUTE))
    place = data.draw(st.integers(0, len(found)))
    index, family = tmp_path_factory.mktemp("cache") / "index.db", RouteFamily(ROUTE, str, dict)

    def taken(some: Sequence[Record]) -> RouteContext:
        """The context after some more records, kept in the index and read from it."""

        def work(index: Index | None) -> RouteContext:
            assert index is not None
            kept = index.state(ROUTE)
            rows = Rows(kept[1] if kept is not None else None)
            for record in some:
                family.fold(rows, document.Record(record.revision, "", {"record": record}))
            index.keep(ROUTE, kept[0] if kept is not None else None, f"{len(some)}", rows.changed)
            return context_of(rows, ROUTE)

        return with_index(index, work)

    before = taken(found[:place])
    assert before == fold(found[:place], empty(ROUTE))
    assert taken([]) == before
    assert taken(found[place:]) == whole
    assert whole.revision == len(found)


@given(_streams)
@settings(quick, max_examples=examples(30))
def test_what_a_fold_comes_to_is_what_its_file_is_read_as(stream: list[Any]) -> None:
    context = folded(*stream)
    assert parse(render(context).encode(), "file") == as_read(context)
    assert json.loads(json.dumps(to_tree(context))) == to_tree(context)
    assert folded(*stream) == context


@given(_streams)
@settings(quick, max_examples=examples(30))
def test_labels_are_unique_and_every_successor_and_its_predecessor_name_each_other(stream: list[Any]) -> None:
    context = folded(*stream)
    labels = [decision.id for decision in context.decisions]
    assert len(set(labels)) == len(labels)
    by_label = {decision.id: decision for decision in context.decisions}
    for decision in context.decisions:
        if decision.status == "superseded":
            assert by_label[decision.superseded_by].supersedes == decision.id
    active = [" ".join(d.decision.split()).casefold() for d in context.decisions if d.status == "active"]
    assert len(set(active)) == len(active)


@given(_streams, st.data())
@settings(quick, max_examples=examples(60))
def test_a_revert_gives_back_what_was_and_a_revert_of_it_what_was_before(
    stream: list[Any], data: st.DataObject
) -> None:
    contexts = [empty(ROUTE)]
    for record in records(*stream):
        contexts.append(apply(contexts[-1], record))
    before, then = contexts[-1], data.draw(st.sampled_from(contexts))
    after = reverted(before, then)
    again = reverted(after, before)
    assert [content(after), content(again)] == [content(then), content(before)]
    assert after.context_checkpoint.total_tokens_consumed == before.context_checkpoint.total_tokens_consumed
    assert after.context_checkpoint.decision_count == before.context_checkpoint.decision_count


def reverted(now: RouteContext, then: RouteContext) -> RouteContext:
    changes = json.loads(json.dumps(changes_back(now, then)))
    payload = {"to": f"r{then.revision}", "to_revision": then.revision, "because": "", "timestamp": "2026-03-02"}
    return apply(now, Record(now.revision + 1, REVERT, {**payload, "changes": changes}))


def content(context: RouteContext) -> str:
    tree = to_tree(context)
    tree.pop("context_checkpoint", None)
    return json.dumps(tree, sort_keys=True)


# ---- single records ----


def test_a_record_of_an_unknown_kind_advances_the_revision_and_changes_nothing_else() -> None:
    before = folded(("checkpoint", checkpoint(0)))
    after = apply(before, Record(2, "from-the-future", {"decisions": 5}))
    assert after.revision == 2
    assert replace(after, context_checkpoint=before.context_checkpoint) == before


def test_a_checkpoint_adds_an_entry_a_section_and_its_tokens() -> None:
    context = folded(
        ("checkpoint", checkpoint(0)), ("checkpoint", checkpoint(1, key_events=["an event"], tokens_stored=7))
    )
    assert context.checkpoint_count == 2
    assert context.total_tokens_consumed == 3000
    assert context.context_checkpoint.tokens_at_checkpoint == 2000
    assert (context.created, context.last_checkpoint) == ("2026-03-01T10:00:00Z", "2026-03-01T11:30:00Z")
    assert [section.number for section in context.body.sections] == [2, 1]
    entry = context.checkpoints[-1]
    assert (entry.checkpoint_id, entry.session, entry.lines, entry.tokens) == ("cp-002", "s", "11-20", 2000)
    assert (entry.key_events, entry.tokens_stored, entry.reason) == (("an event",), 7, "threshold")
    assert entry.summary_ref == "### Checkpoint 2: title 1"
    assert context.body.sections[0].text.split("\n") == [
        "**Period:** 2026-03-01T11:00:00Z \u2192 2026-03-01T11:30:00Z",
        "**Tokens:** 2,000",
        "",
        "- what happened in 1",
    ]


def test_a_checkpoint_without_times_keeps_the_last_known_ones() -> None:
    context = folded(("checkpoint", checkpoint(0)), ("checkpoint", checkpoint(1, period=["", ""])))
    assert (context.created, context.last_checkpoint) == ("2026-03-01T10:00:00Z", "2026-03-01T10:30:00Z")


@pytest.mark.parametrize("title", ["x\n### Checkpoint 9: forged\n- y", "x (Current)", "x\u2028(Current)", " x "])
def test_no_title_forges_a_section_or_the_mark_of_the_newest(title: str) -> None:
    context = folded(("checkpoint", checkpoint(0, title=title)), ("checkpoint", checkpoint(1, title=title)))
    again = parse(render(context).encode(), "file")
    assert [(section.number, section.title.partition(" ")[0]) for section in again.body.sections] == [
        (2, "x"),
        (1, "x"),
    ]
    assert again == as_read(context)


@pytest.mark.ci
def test_the_goal_is_the_newest_and_what_it_began_as_stays_known() -> None:
    goals = ["", "first", "second", "", "third"]
    context = folded(*(("checkpoint", checkpoint(n, goal=goal)) for n, goal in enumerate(goals)))
    assert (context.goal, context.began_as) == ("third", "first")


def test_a_goal_that_a_person_wrote_stays_until_a_person_writes_another() -> None:
    context = folded(("checkpoint", checkpoint(0, goal="first")))
    edited = apply(context, Record(2, "edit", {"changes": [{"at": ["goal"], "value": "mine"}]}))
    later = apply(edited, Record(3, "checkpoint", checkpoint(1, goal="second")))
    assert (later.goal, later.goal_origin) == ("mine", "human-edit")


@pytest.mark.ci
def test_work_is_what_the_last_segment_says_and_keeps_what_a_segment_cannot_know() -> None:
    first = {
        "current_task": "T",
        "task_title": "title",
        "attempts": 2,
        "outcome": "open",
        "last_request": "r",
        "mine": 1,
    }
    second = {"next_steps": ["n"], "yours": 2}
    context = folded(
        ("checkpoint", checkpoint(0, active_work=first)), ("checkpoint", checkpoint(1, active_work=second))
    )
    assert context.active_work == ActiveWork(
        current_task="T",
        task_title="title",
        attempts=2,
        outcome="open",
        next_steps=("n",),
        extra={"mine": 1, "yours": 2},
    )


# ---- decisions ----


def test_decisions_are_labelled_in_the_order_in_which_they_come() -> None:
    in_segment = {"decisions": [{"decision": "b"}, {"decision": "c"}]}
    context = folded(decided("a"), ("checkpoint", checkpoint(0, **in_segment)), decided("d"))
    assert [(d.id, d.decision) for d in context.decisions] == [(f"DEC-00{n}", w) for n, w in enumerate("abcd", start=1)]
    assert context.context_checkpoint.decision_count == 4


@pytest.mark.ci
@pytest.mark.parametrize("again", ["Use a timer", "use  a\ntimer", "USE A TIMER "])
def test_what_is_said_twice_is_decided_once(again: str) -> None:
    context = folded(decided("Use a timer", rationale="because"), decided(again))
    assert [d.rationale for d in context.decisions] == ["because"]


def test_what_was_given_up_can_be_decided_anew() -> None:
    context = folded(decided("a"), decided("b", supersedes="DEC-001"), decided("a", supersedes="DEC-002"))
    assert [(d.id, d.status, d.supersedes, d.superseded_by) for d in context.decisions] == [
        ("DEC-001", "superseded", "", "DEC-002"),
        ("DEC-002", "superseded", "DEC-001", "DEC-003"),
        ("DEC-003", "active", "DEC-002", ""),
    ]


SOURCES = [{"session": "s", "first_line": n, "last_line": n, "sha256": "0"} for n in range(9)]


@pytest.mark.ci
def test_a_decision_said_again_has_a_further_source_and_no_second_record() -> None:
    again = [{"decision": "USE a", "source": SOURCES[2]}, {"decision": "Use A", "source": SOURCES[2]}]
    context = folded(decided("Use A", source=SOURCES[1]), ("checkpoint", checkpoint(0, decisions=again)))
    (decision,) = context.decisions
    assert decision.source is not None
    assert (decision.source.first_line, [place.first_line for place in decision.further_sources]) == (1, [2])


def test_a_decision_that_supersedes_one_that_is_not_there_changes_no_other() -> None:
    context = folded(decided("a"), decided("b", supersedes="DEC-777"), decided("c", supersedes=""))
    assert [d.status for d in context.decisions] == ["active"] * 3


def test_a_label_is_never_given_twice_even_after_its_decision_was_removed() -> None:
    removal = ("edit", {"changes": [{"at": ["decisions", "DEC-002"], "removed": True}]})
    context = folded(decided("a"), decided("b"), removal, decided("c"))
    assert [d.id for d in context.decisions] == ["DEC-001", "DEC-003"]


def test_labels_of_an_imported_file_are_kept_and_not_given_again() -> None:
    document = {"decisions": [{"id": "DEC-002", "decision": "a"}, {"decision": "b"}, {"id": "D-1", "decision": "c"}]}
    context = folded(("import", {"document": document}), decided("d"))
    assert [d.id for d in context.decisions] == ["DEC-002", "DEC-003", "D-1", "DEC-004"]
    assert context.decisions[1].origin == "human-edit"


def test_a_label_of_thousands_of_digits_is_only_a_name() -> None:
    document = {"decisions": [{"id": "DEC-" + "9" * 20_000, "decision": "a"}, {"id": "DEC-\u0663", "decision": "b"}]}
    assert folded(("import", {"document": document}), decided("c")).decisions[-1].id == "DEC-001"


def test_an_import_is_taken_whole_but_for_the_route_s_own_name_and_revision() -> None:
    other = replace(folded(decided("a"), ("checkpoint", checkpoint(0))), extra={"team": "x"})
    context = apply(empty("other"), Record(1, "import", {"document": to_tree(other)}))
    assert (context.route, context.revision) == ("other", 1)
    assert replace(context, context_checkpoint=other.context_checkpoint) == other


def test_checkpoints_after_an_import_go_on_with_its_numbers() -> None:
    document = to_tree(RouteContext(body=Body(sections=(Section(41, "a", "- x"), Section(None, "Notes", "n")))))
    context = folded(("import", {"document": document}), ("checkpoint", checkpoint(0)))
    assert [section.number for section in context.body.sections] == [42, 41, None]
    assert context.checkpoints[-1].checkpoint_id == "cp-042"


# ---- edits ----


def test_an_edit_of_an_older_file_leaves_what_came_since() -> None:
    base = folded(decided("a"), ("checkpoint", checkpoint(0)))
    theirs = parse(
        render(base)
        .replace('decision: "a"', 'decision: "a, but slowly"')
        .replace("## Comp", "# Mine\n\n## Comp")
        .encode(),
        "file",
    )
    since = apply(base, Record(3, "checkpoint", checkpoint(1, decisions=[{"decision": "b"}])))
    after = apply(since, Record(4, "edit", {"changes": changes_of_edit(base, theirs, since)}))
    assert [d.decision for d in after.decisions] == ["a, but slowly", "b"]
    assert [section.number for section in after.body.sections] == [2, 1]
    assert after.body.before == "# Mine"
    assert after.checkpoint_count == 2


# ---- snapshots ----


@pytest.mark.ci
def test_a_file_of_another_history_adds_what_we_lack_and_takes_nothing_away() -> None:
    """Two clones that went their own ways: each keeps its decisions, its goal and its sections."""
    ours = folded(("decision", {"decision": {"decision": "Said here"}}))
    ours = replace(ours, goal="Ours", body=replace(ours.body, sections=(Section(1, "Here", "- here"),)))
    theirs = folded(("decision", {"decision": {"decision": "Said there"}}))
    theirs = replace(theirs, goal="Theirs", body=replace(theirs.body, sections=(Section(1, "There", "- there"),)))
    changes = changes_of_foreign(ours, theirs)
    taken = apply(ours, Record(2, "edit", {"changes": changes}))
    assert [(d.id, d.decision) for d in taken.decisions] == [("DEC-001", "Said here"), ("DEC-002", "Said there")]
    assert taken.goal == "Ours"
    titles = {section.title for section in taken.body.sections}
    assert titles == {"Here", "Checkpoint 1 of another history: There"}
    assert changes_of_foreign(taken, theirs) == []


def test_what_a_model_of_an_earlier_version_made_of_a_checkpoint_is_read() -> None:
    made = fold(
        [
            Record(1, "checkpoint", {"title": "Began", "text": "- did this", "tokens": 5, "period": ["t0", "t1"]}),
            Record(
                2,
                "refinement",
                {
                    "refines": "cp-001",
                    "title": "The gauge",
                    "text": "The gauge was mended.",
                    "model": "m",
                    "decisions": [{"id": "DEC-001", "decision": "Keep the gauge"}],
                },
            ),
        ],
        empty("tide"),
    )
    (section,) = made.body.sections
    assert (section.title, section.text) == (
        "The gauge",
        "**Period:** t0 → t1\n**Tokens:** 5\n\n  The gauge was mended.",
    )
    assert [(item.decision, item.origin, item.model) for item in made.decisions] == [("Keep the gauge", "model", "m")]
