"""Values and trees: nothing is lost on the way there and back, and what does not fit is said with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from contexts import contexts, quick
from examples import examples
from ralf.document.tree import BadTree, from_tree, to_tree
from ralf.model import ActiveWork, Decision, Facts, RouteContext, Source


@pytest.mark.ci
@given(contexts)
@settings(quick, max_examples=examples(40))
def test_a_value_comes_back_from_its_tree_also_through_json(context: RouteContext) -> None:
    tree = to_tree(context)
    assert from_tree(RouteContext, tree) == context
    assert from_tree(RouteContext, json.loads(json.dumps(tree))) == context


def test_a_tree_holds_what_is_not_empty_in_the_order_of_the_fields() -> None:
    decision = Decision(decision="d", id="DEC-001", source=Source(session="s"), extra={"votes": 3})
    assert list(to_tree(decision).items()) == [
        ("id", "DEC-001"),
        ("decision", "d"),
        ("status", "active"),
        ("source", {"session": "s"}),
        ("votes", 3),
    ]


@pytest.mark.parametrize(
    ("cls", "tree", "at", "message"),
    [
        (RouteContext, [], (), "the whole: expected a mapping, got a list"),
        (RouteContext, {"decisions": [{}, 5]}, ("decisions", "2"), "decisions.2: expected a mapping, got 5"),
        (Decision, {"pinned": "yes"}, ("pinned",), "pinned: expected true or false, got 'yes'"),
        (Decision, {"decision": []}, ("decision",), "decision: expected text, got a list"),
        (ActiveWork, {"plan_step": True}, ("plan_step",), "plan_step: expected a whole number, got True"),
        (Facts, {"paths": [{"did": [[]]}]}, ("paths", "1", "did", "1"), "paths.1.did.1: expected text, got a list"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(
    cls: type[Any], tree: object, at: tuple[str, ...], message: str
) -> None:
    with pytest.raises(BadTree) as caught:
        from_tree(cls, tree)
    assert caught.value.at == at
    assert str(caught.value) == message
