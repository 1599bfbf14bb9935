"""Comments of the front matter: found wherever YAML has one and nowhere else, and written as comments."""

from __future__ import annotations

import pytest
from hypothesis import given

from contexts import quick, text
from ralf.document import guarded_yaml
from ralf.document.comments import found, lines_of
from ralf.model import Body, Comment, RouteContext
from ralf.route.routefile import parse, render


@pytest.mark.parametrize(
    ("front", "comments"),
    [
        ("a: x#no\n", {}),
        ("a: 'x # no' # yes\n", {"a": "# yes"}),
        ('a: "x # no\n  # no\n  y" # yes\n', {"a": '# yes ← y"'}),
        ("a: plain\n  more # yes\nb: 1\n", {"a": "# yes ← more"}),
        ("a: |\n  # no\n\n  x # no\n# b\nb: 1\n", {"b": "# b"}),
        ("a: >+\n  # no\n\n\n# b\nb: 1\n", {"b": "# b"}),
        ("a: [x, # one\n  y] # two\n", {"a": "# one\n# two ← y]"}),
        (
            "# top\n\n#second\na: {x: 1} #\tt\nb:\n# c\n  - 1\nc: 1\n# end",
            {"a": "# top\n#second\n#\tt", "c": "# c", "": "# end"},
        ),
        ("# alone\n", {"": "# alone"}),
    ],
)
def test_a_comment_is_found_where_yaml_has_one(front: str, comments: dict[str, str]) -> None:
    guarded_yaml.load(front)
    assert found(front) == comments


@given(text)
@quick
def test_whatever_the_text_of_a_comment_is_it_forges_nothing(words: str) -> None:
    context = RouteContext(
        goal="g", extra={"x": 1}, body=Body(comments=(Comment("goal", words), Comment("gone", words)))
    )
    again = parse(render(context).encode(), "file")
    assert (again.goal, again.extra, again.body.before) == ("g", {"x": 1}, "")
    assert all(line.startswith("#") for line in lines_of({"": words}, ""))
    assert render(parse(render(again).encode(), "file")) == render(again)
