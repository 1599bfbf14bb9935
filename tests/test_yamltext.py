"""The guarded loader takes what a person may have written and refuses, with the line, what could do harm; the writer
writes only what reads back as it was.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings, strategies as st

from clocks import within
from contexts import key, mapping, quick, text, trees
from examples import examples
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
    "an anchor on a key": ("a: 1\n&k b: 2\n", 2, "anchors, aliases and tags are not allowed"),
    "an alias for a key": ("a: 1\n*a : 2\n", 2, "a key that is no text"),
    "a merge key": ("a:\n  b: 1\n<<: {b: 2}\n", 3, "merge keys are not allowed"),
    "a Python tag": ("a: 1\nb: !!python/object/apply:os.system ['true']\n", 2, "tags are not allowed"),
    "an unknown tag": ("a: !thing 1\n", 1, "tags are not allowed"),
    "a standard tag": ("a: 1\nb: 2\nc: !!str 1\n", 3, "tags are not allowed"),
    "a tag on a key": ("!!str a: 1\n", 1, "tags are not allowed"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' twice"),
    "a key twice, further down": ("a:\n  - {b: 1, c: 2,\n     b: 3}\n", 3, "the key 'b' twice"),
    "a list for a key": ("a: 1\n? [b]\n: 1\n", 2, "a key that is no text"),
    "a very long key": (f"a: 1\n{'k' * 129}: 1\n", 2, "a key of more than 128 characters"),
    "many items": ("a: [" + "1," * 5_000 + "1]\n", 1, "a list of more than 5,000 items"),
    "many keys": ("".join(f"k{n}: 1\n" for n in range(5_001)), 5_001, "a mapping of more than 5,000 keys"),
    "a raw NUL": ("a: 1\nb: '\0'\n", 2, "control character U+0000"),
    "an escaped NUL": ('a: 1\nb: "\\0"\n', 2, "control character U+0000"),
    "an escaped escape": ('a: "\\e[31m"\n', 1, "control character U+001B"),
    "a lone surrogate": ("a: 1\nb: '\ud800'\n", 2, "control character U+D800"),
    "NEL": ("a: 'x\u0085b: forged'\n", 1, "control character U+0085"),
    "LS": ("a: 1\nb: x\u2028c: forged\n", 2, "control character U+2028"),
    "PS": ("a: 1\nb: x\u2029c: forged\n", 2, "control character U+2029"),
    "an escaped NEL": ('a: "x\\Ny"\n', 1, "control character U+0085"),
    "a second document": ("a: 1\n--- \nb: 2\n", 2, "a second document"),
    "a document after an end": ("a: 1\n...\nb: 2\n", 3, "<document start>"),
    "a list": ("- a\n- b\n", 1, "not a mapping"),
    "a word": ("hello\n", 1, "not a mapping"),
    "nine levels": ("a: {b: {c: {d: {e: {f: {g: {h: {}}}}}}}}\n", 1, "nested deeper than 8 levels"),
    "nine levels of lists": ("a: 1\nb: [[[[[[[[1]]]]]]]]\n", 2, "nested deeper than 8 levels"),
    "a tab for an indent": ("a:\n\tb: 1\n", 2, "character"),
    "an open bracket": ("a: [1, 2\nb: 3\n", 2, "expected"),
    "an open quote": ('a: 1\nb: "x\n', 3, "unexpected end"),
    "an escaped surrogate": ('a: "\\ud800"\n', 1, "invalid Unicode character escape"),
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


@pytest.mark.parametrize("source", ["[" * 20_000, "a: " + "[" * 20_000, "{a: " * 20_000, "- " * 20_000 + "a"])
def test_nesting_of_thousands_of_levels_is_refused_at_once(source: str) -> None:
    assert "8 levels" in refused(source).what
    within(0.5, lambda: refused(source))


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


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        *[("true", True), ("false", False), ("null", None), ("~", None), ("", None), ("0", 0), ("12", 12), ("-7", -7)],
        *[("0.5", 0.5), ("-1.25", -1.25), ("9" * 18, int("9" * 18))],
    ],
)
def test_canonical_scalars_are_what_they_look_like(plain: str, value: object) -> None:
    found = load(f"a: {plain}\n")["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("value", ["true", "12", "null", "0.5"])
def test_a_quoted_scalar_is_text(value: str) -> None:
    assert load(f"a: \"{value}\"\nb: '{value}'\nc: |-\n  {value}\n") == {"a": value, "b": value, "c": value}


@pytest.mark.parametrize("source", ["", "\n", "# a comment\n", "null\n", "{}\n", "--- \n"])
def test_nothing_is_an_empty_mapping(source: str) -> None:
    assert load(source) == {}


@pytest.mark.parametrize("sign", [": ", " #", "'", "a\n---\n", "&a", "*a", "!x", "<<"])
def test_signs_of_yaml_are_text_within_quotes(sign: str) -> None:
    assert load(dump({"a": sign, sign: "b"})) == {"a": sign, sign: "b"}


@given(st.text(st.sampled_from("ab:-?[]{},&*!|>'\"%@`#~<\\ \t\n\r019.\u0085\u2028\ufeff\0")) | st.text())
@quick
def test_any_text_is_a_mapping_or_a_refusal_and_never_another_error(source: str) -> None:
    try:
        found = load(source)
    except BadYaml as error:
        assert 0 <= error.line <= source.count("\n") + source.count("\r") + 2  # the end has a line, too
    else:
        assert isinstance(found, dict)


@given(st.binary(max_size=60).map(lambda raw: raw.decode("utf-8", "surrogateescape")))
@quick
def test_undecodable_bytes_that_were_smuggled_in_are_refused(source: str) -> None:
    if any("\udc80" <= character <= "\udcff" for character in source):
        refused(source)


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


@given(mapping)
@quick
def test_what_is_written_means_the_same_to_another_reader_of_yaml(tree: dict[str, Any]) -> None:
    def plain(found: Any) -> Any:
        if isinstance(found, dict):
            return {name: plain(inner) for name, inner in found.items()}
        return [plain(inner) for inner in found] if isinstance(found, list) else found

    assert plain(yaml.safe_load(dump(tree)) or {}) == tree


@given(mapping, st.dictionaries(st.sampled_from(["a", "b_c", "D-9"]), text | trees(2), max_size=3))
@quick
def test_only_a_key_of_ours_begins_in_column_0(hostile: dict[str, Any], tree: dict[str, Any]) -> None:
    tree = {**tree, "z": hostile, "decisions": [{"decision": name} for name in hostile]}
    at_margin = [line for line in dump(tree).split("\n") if line[:1] not in ("", " ")]
    assert [line.partition(":")[0] for line in at_margin] == list(tree)


@given(key, text)
@quick
def test_writing_is_a_function_of_the_tree_alone(name: str, value: str) -> None:
    tree = {name: [value, {"x": value}]}
    assert dump(tree) == dump(load(dump(tree)))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", 'a: "plain"\n'),
        ('say "hi"', "a: 'say \"hi\"'\n"),
        ("it's \\d", "a: 'it''s \\d'\n"),
        ("two\nlines", "a: |-\n  two\n  lines\n"),
        ("tab\there", 'a: "tab\\there"\n'),
        ("\u2028", 'a: "\\u2028"\n'),
        ("\ufeff", 'a: "\\ufeff"\n'),
        (None, "a: null\n"),
        ([], "a: []\n"),
        ({}, "a: {}\n"),
    ],
)
def test_text_is_written_in_the_style_that_needs_the_fewest_escapes(value: object, written: str) -> None:
    assert dump({"a": value}) == written


def test_short_facts_stand_on_one_line_each_and_long_ones_do_not() -> None:
    short, long = {"path": "a.py", "did": ["edited"]}, {"path": "b" * 300, "did": ["read"]}
    lines = dump({"facts": {"paths": [short, long]}}).split("\n")
    assert lines[2] == '    - {path: "a.py", did: ["edited"]}'
    assert lines[3].startswith('    - path: "bbb')


@pytest.fixture
def without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_yaml, "_LOADER", yaml.SafeLoader)


@pytest.mark.usefixtures("without_libyaml")
def test_an_installation_without_libyaml_reads_the_same() -> None:
    tree = {"a": clean("x\n y\n"), "b": [{"c": "\u2028'\""}], "d": {"e": [1, 0.5, None, True]}}
    assert exact(load(dump(tree))) == exact(tree)


@pytest.mark.ci
@pytest.mark.usefixtures("without_libyaml")
@pytest.mark.parametrize("source", [source for source, _, _ in HOSTILE.values()], ids=HOSTILE.keys())
def test_an_installation_without_libyaml_refuses_the_same(source: str) -> None:
    assert refused(source).line > 0


# ---- lists ----

_STRANGE = st.sampled_from(
    [
        '"',
        "'",
        "x: |",
        "x: >",
        'x: "',
        "x: {a: 1,",
        "x: [",
        "x: ?",
        "decisions:",
        "decisions: []",
        "  - id: 'a",
        "  -",
        "  - |",
        '  - decision: "ab',
        "    more: 1",
        "    - a",
        "# a note",
        "  # a note",
        "...",
        "--- ",
        "%YAML 1.1",
        "\t",
        "",
        "  ]",
        "  - &a b",
        "  - *a",
        "  - a",
        "    decision: |",
        "\n      f",
        "  - a: |\n      u",
        " x",
        "     plain",
        "}",
        "? decisions",
        ": - a",
        "!!str x: y",
        '"decisions":',
    ]
)
_EDITS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from("idr"), _STRANGE), max_size=3)


def read(source: str) -> Any:
    try:
        return load(source)
    except BadYaml as error:
        return error.what, error.line


@pytest.mark.ci
@given(st.lists(mapping, min_size=1, max_size=8), mapping, _EDITS)
@example([{"id": "DEC-001", "n": 1.5e300}], {}, [])
@example([{"id": "DEC-001", "n": 10**17}], {}, [])
@example([{"a": "b"}, {"c": "d\ne"}], {}, [(2, "i", "  - a: |\n      u"), (8, "i", "\n      f")])
@example([{}], {"body": ""}, [(4, "i", "x: |"), (6, "i", "  - id: 'a")])
@example([{"a": '"'}, {"b": "c"}, {"d": "e"}], {}, [(0, "i", 'x: "')])
@settings(quick, max_examples=examples(300))
def test_a_list_with_strange_lines_in_it_is_read_or_refused(
    decisions: list[dict[str, Any]], further: dict[str, Any], edits: list[tuple[int, str, str]]
) -> None:
    lines = dump({"before": 1, "decisions": decisions, **further}).split("\n")
    for place, how, line in edits:
        at = min(place, len(lines))
        lines[at : at + (how != "i")] = [] if how == "d" else [line]
    found = read("\n".join(lines))
    assert isinstance(found, (dict, tuple))
    assert edits or found == load(dump({"before": 1, "decisions": decisions, **further}))
