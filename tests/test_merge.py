"""Three-way merges: what a person changed is made to whatever the route has become, and nothing else is touched."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from contexts import quick, scalar, texts
from examples import examples
from ralf.document.merge import IDENTITY, Conflict, apply, conflicts, diff
from ralf.document.tree import Tree
from ralf.model import BODY


class Merged(NamedTuple):
    """A merged tree, and the places where both sides had changed the same thing (theirs was taken)."""

    tree: Tree
    conflicts: tuple[Conflict, ...]


def merge(base: Tree, ours: Tree, theirs: Tree) -> Merged:
    """`ours` with what `theirs` changed from `base`."""
    changes = diff(base, theirs)
    return Merged(apply(ours, changes), tuple(conflicts(base, ours, changes)))


_name = st.sampled_from(["a", "b", "c", "DEC-001", "paths"])
_values = st.one_of(scalar, st.dictionaries(_name, scalar, max_size=2), st.lists(scalar, max_size=2))
_plain = st.dictionaries(st.sampled_from(["x", "y", "goal", "alternatives"]), _values, max_size=3)


def _items(identity: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    one = st.builds(lambda fields, name: {**fields, identity: name}, _plain, _name)
    return st.lists(one, max_size=4)


_identified = st.fixed_dictionaries(
    {}, optional={key: _items(identity) for key, identity in IDENTITY.items() if key != "sections"}
)
_sections = st.lists(
    st.builds(lambda number, text: {"number": number, "text": text}, st.integers(0, 5), texts(2)),
    max_size=4,
)
_trees = st.builds(lambda a, b, sections: {**a, **b, BODY: {"sections": sections}}, _plain, _identified, _sections)


def strict(tree: Any) -> str:
    """A tree with its types and the order of its lists; the order of keys is none."""
    return json.dumps(tree, sort_keys=True)


@pytest.mark.ci
@given(_trees, _trees)
@settings(quick, max_examples=examples(120))
def test_the_changes_between_two_trees_make_the_second_of_the_first(
    base: dict[str, Any], theirs: dict[str, Any]
) -> None:
    before = copy.deepcopy((base, theirs))
    assert strict(apply(base, diff(base, theirs))) == strict(theirs)
    assert (base, theirs) == before
    assert diff(base, base) == []


@pytest.mark.ci
@given(_trees, _trees, _trees)
@quick
def test_a_merge_takes_all_of_theirs_and_what_theirs_left_alone_stays_ours(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    merged = merge(base, ours, theirs)
    assert merge(base, ours, base).tree == ours
    assert strict(merge(base, base, theirs).tree) == strict(theirs)
    for key in theirs.keys() - IDENTITY.keys() - {BODY}:
        untouched = key in base and base[key] == theirs[key]
        if not untouched and not isinstance(theirs[key], dict):
            assert merged.tree[key] == theirs[key]
        elif untouched and key in ours:
            assert merged.tree[key] == ours[key]


@pytest.mark.ci
def test_where_both_sides_changed_the_same_the_person_wins_and_the_place_is_reported() -> None:
    base = {"goal": "a", "decisions": [{"id": "DEC-001", "status": "active", "decision": "d"}], "x": 1}
    ours = {"goal": "b", "decisions": [{"id": "DEC-001", "status": "superseded", "decision": "d"}], "x": 2}
    theirs = {"goal": "c", "decisions": [{"id": "DEC-001", "status": "dropped", "decision": "d"}], "x": 2}
    merged = merge(base, ours, theirs)
    assert merged.tree == theirs
    assert merged.conflicts == (Conflict(("goal",), "b"), Conflict(("decisions", "DEC-001", "status"), "superseded"))


def test_what_only_one_side_added_or_removed_takes_nothing_from_what_the_other_has() -> None:
    one, other = (
        {"decisions": [{"id": "DEC-001"}]},
        {"decisions": [{"id": "DEC-002"}], "facts": {"paths": [{"path": "a"}]}},
    )
    assert merge({}, one, other).tree["decisions"] == [{"id": "DEC-001"}, {"id": "DEC-002"}]
    both = {"decisions": [{"id": "DEC-001"}, {"id": "DEC-002"}], "work": {"a": 1, "b": 2}}
    assert merge(one, both, {}).tree == {"decisions": [{"id": "DEC-002"}], "work": {"a": 1, "b": 2}}
    assert merge({"work": {"a": 1}}, both, {}).tree["work"] == {"b": 2}
    assert merge(one, one, {}).tree == {}


def test_a_section_that_a_person_wrote_costs_no_section_that_came_meanwhile() -> None:
    base = {BODY: {"sections": [{"number": 1, "text": "a"}]}}
    ours = {BODY: {"sections": [{"number": 2, "text": "new"}, {"number": 1, "text": "a"}]}}
    theirs = {BODY: {"sections": [{"title": "Notes", "text": "mine"}, {"number": 1, "text": "a"}]}}
    merged = merge(base, ours, theirs)
    assert [section["text"] for section in merged.tree[BODY]["sections"]] == ["new", "mine", "a"]
    assert merged.conflicts == ()
    later = merge(
        theirs, merged.tree, {BODY: {"sections": [{"title": "Notes", "text": "edited"}, base[BODY]["sections"][0]]}}
    )
    assert [section["text"] for section in later.tree[BODY]["sections"]] == ["new", "edited", "a"]
