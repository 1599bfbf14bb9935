"""The guarded loader takes what a person may have written and refuses, with the line, what could do harm; the writer
writes only what reads back as it was.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given

from clocks import within
from contexts import mapping, quick
from ralf.document import guarded_yaml
from ralf.document.guarded_yaml import BadYaml, load
from ralf.document.yaml_text import dump
from ralf.text.cleaning import clean

LAUGHS = 'a: &a ["lol"]\n' + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{f'*{chr(97 + n)},' * 9}]\n" for n in range(8))


def refused(source: str) -> BadYaml:
    """The error that `load` gives."""
    with pytest.raises(BadYaml) as caught:
        load(source)
    return caught.value


# ---- hostile front matter, row by row ----

HOSTILE = {
    "billion laughs": (LAUGHS, 1, "anchors and aliases are not allowed"),
    "an alias": ("a: 1\nb: *a\n", 2, "anchors and aliases are not allowed"),
    "a merge key": ("a:\n  b: 1\n<<: {b: 2}\n", 3, "merge keys are not allowed"),
    "a Python tag": ("a: 1\nb: !!python/object/apply:os.system ['true']\n", 2, "tags are not allowed"),
    "a standard tag": ("a: 1\nb: 2\nc: !!str 1\n", 3, "tags are not allowed"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' twice"),
    "a list for a key": ("a: 1\n? [b]\n: 1\n", 2, "a key that is no text"),
    "a very long key": (f"a: 1\n{'k' * 129}: 1\n", 2, "a key of more than 128 characters"),
    "many items": ("a: [" + "1," * 5_000 + "1]\n", 1, "a list of more than 5,000 items"),
    "a raw NUL": ("a: 1\nb: '\0'\n", 2, "control character U+0000"),
    "an escaped escape": ('a: "\\e[31m"\n', 1, "control character U+001B"),
    "a lone surrogate": ("a: 1\nb: '\ud800'\n", 2, "control character U+D800"),
    "NEL": ("a: 'x\u0085b: forged'\n", 1, "control character U+0085"),
    "a second document": ("a: 1\n--- \nb: 2\n", 2, "a second document"),
    "a list": ("- a\n- b\n", 1, "not a mapping"),
    "nine levels": ("a: {b: {c: {d: {e: {f: {g: {h: {}}}}}}}}\n", 1, "nested deeper than 8 levels"),
    "a tab for an indent": ("a:\n\tb: 1\n", 2, "character"),
    "an open quote": ('a: 1\nb: "x\n', 3, "unexpected end"),
}


@pytest.mark.parametrize(("source", "line", "what"), HOSTILE.values(), ids=HOSTILE.keys())
def test_what_could_do_harm_is_refused_with_its_line(source: str, line: int, what: str) -> None:
    error = refused(source)
    assert what in error.what
    assert error.line == line
    assert "\n" not in error.what


def test_front_matter_of_more_than_a_mebibyte_is_refused_before_it_is_parsed() -> None:
    assert "1,048,576" in refused("a: " + "x" * (10 << 20)).what
    within(0.5, lambda: refused("a: " + "x" * (10 << 20)))


@pytest.mark.parametrize(
    "plain",
    [
        *["no", "yes", "on", "off", "y", "n", "True", "FALSE", "Null", "1.10", "012", "0x1f", "1_000", "12:30:45"],
        *[
            "1e5",
            ".5",
            "5.",
            "+1",
            "-0",
            ".inf",
            ".nan",
            "2026-02-07",
            "2026-02-07T10:00:00Z",
            "1" * 20_000,
            "1." + "1" * 400,
        ],
    ],
)
def test_a_scalar_that_is_not_canonical_stays_the_text_that_was_written(plain: str) -> None:
    assert load(f"a: {plain}\n") == {"a": plain}


# ---- writing ----


def exact(found: Any) -> Any:
    """With types, because True == 1 == 1.0."""
    if isinstance(found, dict):
        return {name: exact(inner) for name, inner in found.items()}
    return [exact(inner) for inner in found] if isinstance(found, list) else (type(found), found)


@given(mapping)
@example({"a": "b\n"})
@example({"a": "\n"})
@example({"a": "  \n b\n\n\n"})
@example({"a": "\tb\n c"})
@example({"a": ["b\nc\n\n", {"d": "\n e"}], "f": [[["\n"], []], {}]})
@example({"k" * 128: "\u2028" * 600, "\u2028" * 128: 1})
@quick
def test_what_is_written_reads_back_as_it_was(tree: dict[str, Any]) -> None:
    assert exact(load(dump(tree))) == exact(tree)


@pytest.fixture
def without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_yaml, "_LOADER", yaml.SafeLoader)


@pytest.mark.usefixtures("without_libyaml")
def test_an_installation_without_libyaml_reads_the_same() -> None:
    tree = {"a": clean("x\n y\n"), "b": [{"c": "\u2028'\""}], "d": {"e": [1, 0.5, None, True]}}
    assert exact(load(dump(tree))) == exact(tree)
