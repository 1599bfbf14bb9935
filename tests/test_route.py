"""The fold: what a route's records come to, wherever it is broken off, whatever kinds of records there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from contexts import contexts, quick, ruled, texts
from examples import examples
from kit.no_index import with_index_only
from ralf.document import record as document
from ralf.document.index import Index, with_index
from ralf.document.rows import Rows
from ralf.document.tree import to_tree
from ralf.model import RouteContext, Section
from ralf.route.edits import changes_of_foreign
from ralf.route.family import RouteFamily, context_of
from ralf.route.fold import apply, empty
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
