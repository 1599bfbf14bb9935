"""Three-way merges: what a person changed is made to whatever the route has become, and nothing else is touched."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from contexts import contexts, quick, scalar, texts
from examples import examples
from ralf.document.merge import IDENTITY, Conflict, apply, conflicts, diff, open_changes
from ralf.document.tree import Tree, to_tree
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


@given(contexts, contexts)
@settings(quick, max_examples=examples(15))
def test_the_changes_between_two_contexts_make_the_second_of_the_first(base: Any, theirs: Any) -> None:
    one, other = to_tree(base), to_tree(theirs)
    assert strict(apply(one, diff(one, other))) == strict(other)


@pytest.mark.ci
@given(_trees, _trees)
@quick
def test_changes_that_a_tree_shows_already_are_not_open(base: dict[str, Any], theirs: dict[str, Any]) -> None:
    changes = diff(base, theirs)
    assert open_changes(changes, theirs) == []
    assert strict(apply(base, open_changes(changes, base))) == strict(theirs)
    for change in changes:
        assert bool(open_changes([change], base)) == (strict(apply(base, [change])) != strict(base))


@pytest.mark.ci
@given(_trees)
@quick
def test_another_order_of_the_items_is_one_change_a_list(tree: dict[str, Any]) -> None:
    turned = {}
    for key, inner in tree.items():
        names = [item[IDENTITY[key]] for item in inner] if key in IDENTITY and isinstance(inner, list) else []
        turned[key] = inner[::-1] if len(set(names)) == len(names) and names else inner
    changes = diff(tree, turned)
    assert [sorted(change) for change in changes] == [["at", "order"]] * len(changes)
    assert strict(apply(tree, changes)) == strict(turned)


def test_one_and_true_are_two_things() -> None:
    assert diff({"x": 1}, {"x": True}) == [{"at": ["x"], "value": True}]
    assert diff({"x": [1.0]}, {"x": [1]}) == [{"at": ["x"], "value": [1]}]


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


@pytest.mark.parametrize(("key", "identity"), IDENTITY.items())
def test_changes_of_different_items_of_a_list_are_both_kept(key: str, identity: str) -> None:
    one, two, three, four = ({identity: n, "x": 0} for n in (1, 2, 3, 4))
    base = {key: [one, two, three]}
    ours = {key: [one, {**two, "y": "ours"}, {**three, "x": "ours"}, {identity: 5}]}
    theirs = {key: [{**one, "x": "theirs"}, {**two, "x": "theirs"}, three, four]}
    merged = merge(base, ours, theirs)
    expected = [{**one, "x": "theirs"}, {**two, "x": "theirs", "y": "ours"}, {**three, "x": "ours"}]
    added = [four, {identity: 5}] if key == "sections" else [{identity: 5}, four]
    assert sorted(merged.tree[key], key=str) == sorted([*expected, *added], key=str)
    assert merged.conflicts == ()


@pytest.mark.ci
def test_where_both_sides_changed_the_same_the_person_wins_and_the_place_is_reported() -> None:
    base = {"goal": "a", "decisions": [{"id": "DEC-001", "status": "active", "decision": "d"}], "x": 1}
    ours = {"goal": "b", "decisions": [{"id": "DEC-001", "status": "superseded", "decision": "d"}], "x": 2}
    theirs = {"goal": "c", "decisions": [{"id": "DEC-001", "status": "dropped", "decision": "d"}], "x": 2}
    merged = merge(base, ours, theirs)
    assert merged.tree == theirs
    assert merged.conflicts == (Conflict(("goal",), "b"), Conflict(("decisions", "DEC-001", "status"), "superseded"))


def test_what_one_side_removed_stays_removed() -> None:
    base = {"decisions": [{"id": "DEC-001"}, {"id": "DEC-002"}], "goal": "g", "x": 1}
    assert merge(base, base, {"decisions": [{"id": "DEC-002"}], "goal": "g"}).tree == {
        "decisions": [{"id": "DEC-002"}],
        "goal": "g",
    }
    assert merge(base, {"decisions": [{"id": "DEC-002"}]}, base).tree == {"decisions": [{"id": "DEC-002"}]}


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


def test_an_item_that_came_meanwhile_stays_behind_the_one_that_it_stood_behind() -> None:
    base, ours = ({"todos": [{"content": name} for name in names]} for names in ("abc", "abxc"))
    turned = {"todos": [{"content": name} for name in "cnab"]}
    assert "".join(item["content"] for item in merge(base, ours, turned).tree["todos"]) == "cnabx"


def test_a_field_of_a_removed_item_cannot_be_set_and_is_reported_with_its_new_value() -> None:
    base = {"decisions": [{"id": "DEC-001", "decision": "d"}, {"id": "DEC-002"}]}
    ours = {"decisions": [{"id": "DEC-002"}]}
    merged = merge(base, ours, {"decisions": [{"id": "DEC-001", "decision": "e"}, {"id": "DEC-002"}]})
    assert merged == (ours, (Conflict(("decisions", "DEC-001", "decision"), "e"),))


def test_a_change_within_what_is_gone_is_let_go() -> None:
    changes = [{"at": ["decisions", "DEC-001", "status"], "value": "dropped"}, {"at": ["x", "y"], "removed": True}]
    assert apply({"decisions": [{"id": "DEC-002"}]}, changes) == {"decisions": [{"id": "DEC-002"}]}


def test_a_change_makes_the_places_that_it_needs() -> None:
    changes = [{"at": ["facts", "paths", "a.py"], "value": {"path": "a.py"}}, {"at": ["x", "y", "z"], "value": 1}]
    assert apply({}, changes) == {"facts": {"paths": [{"path": "a.py"}]}, "x": {"y": {"z": 1}}}


def test_a_list_whose_items_cannot_be_told_apart_changes_as_a_whole() -> None:
    base = {"todos": [{"content": "a"}, {"status": "pending"}]}
    theirs = {"todos": [{"content": "a"}]}
    assert diff(base, theirs) == [{"at": ["todos"], "value": [{"content": "a"}]}]


def test_items_of_one_name_are_told_apart_by_their_number() -> None:
    base = {"todos": [{"content": "a"}, {"content": "b"}, {"content": "a", "x": 1}, {"content": "a"}]}
    theirs = {"todos": [{"content": "a"}, {"content": "b"}, {"content": "a", "x": 2}]}
    changes = [{"at": ["todos", "a (3)"], "removed": True}, {"at": ["todos", "a (2)", "x"], "value": 2}]
    assert diff(base, theirs) == changes
    assert apply(base, diff(base, {"todos": [{"content": "b"}]})) == {"todos": [{"content": "b"}]}
    assert apply({}, diff({}, base)) == base


def test_a_section_that_came_meanwhile_stands_where_its_number_says() -> None:
    changes = [{"at": [BODY, "sections", "2"], "value": {"number": 2}}]
    tree = apply({BODY: {"sections": [{"number": 3}, {"number": 1}]}}, changes)
    assert [section["number"] for section in tree[BODY]["sections"]] == [3, 2, 1]


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
