"""Markdown at a terminal: rendered, with every word of it kept, whatever a transcript has put into it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import ralf
import storekit
from clocks import within
from ralf_cli.markdown import rendered
from test_cli_reading import at_a_screen


def plainly(text: str, width: int = 80) -> str:
    return rendered(text, width=width, coloured=False)


def coloured(text: str, width: int = 80) -> str:
    return rendered(text, width=width, coloured=True)


@pytest.mark.ci
def test_headings_items_code_and_bold_words_lose_their_marks_and_get_a_style() -> None:
    text = "# Tide\n_Revision 3, 1 checkpoint._\n## Now\n- DEC-007: read `src/a.py` **once**\n1. first\n---\n"
    assert plainly(text).splitlines() == [
        "Tide",
        "Revision 3, 1 checkpoint.",
        "",
        "Now",
        "  • DEC-007: read `src/a.py` once",
        "  1. first",
        "─" * 80,
    ]
    shown = coloured(text)
    assert "\x1b[1;4mTide\x1b[0m" in shown and "\x1b[1mNow\x1b[0m" in shown and "\x1b[2mRevision 3" in shown
    assert "\x1b[1;35mDEC-007\x1b[0m: read \x1b[35msrc/a.py\x1b[0m \x1b[1monce\x1b[0m" in shown


@pytest.mark.parametrize(
    "words",
    [
        "__init__ and __main__ of self._name_",
        "f(*args, **kwargs) and g(*a, **b)",
        "2 * 3 * 4, 2*3*4, 2**3**4, a ** b ** c",
        "src/**/a.py and lib/**/b.py, *.py and *.md, rm *cache tmp*",
        "char **argv, **envp; {**a, **b}; (**a)**b",
        "**kwargs in f(x**, y), **args in a[b**, c]. {**d and {e**. f",
        "f(**a, b**(c)) and f(**a, b**) and **a to b**-1",
        "_Foo calls bar._",
        "<promise>COMPLETE</promise> <b>x</b> <!-- a note --> <div>",
        "&lt;b&gt; &amp; &#42;",
        r"C:\*\_\# and \[a\]",
        "a[i](x), [the page](https://example.org/a_b), ![picture](a.png), <https://example.org>",
        "[bold red]not markup[/] [link=x]y[/link] :smile:",
        "[label]: https://example.org 'a title'",
        "| a | b |",
        "~~gone~~ ==marked== ^up^ $x_1$",
        "a ` lone backtick, and ``two of them",
        "#hashtag, #!/bin/sh, and 1986. A year",
        "a.  b   c",
    ],
)
@pytest.mark.parametrize("before", ["", "- ", "> ", "- DEC-001: ", "## "])
def test_what_only_looks_like_markup_stays_as_it_is(before: str, words: str) -> None:
    assert words in plainly(before + words, 200)
    assert words in re.sub(r"\x1b\[[0-9;]*m", "", coloured(before + words, 200))


def test_lines_are_never_joined_and_what_is_quoted_keeps_its_marks() -> None:
    quoted = "> # comment\n> - old\n> + new\n> * item\n> 3. third\n> a\n> b\n> ===\n> \n>   indented\n"
    assert plainly(quoted).splitlines() == [
        "│ # comment",
        "│ - old",
        "│ + new",
        "│ * item",
        "│ 3. third",
        "│ a",
        "│ b",
        "│ ===",
        "│",
        "│   indented",
    ]
    assert plainly("one\ntwo\nthree\n").splitlines() == ["one", "two", "three"]


def test_the_output_of_a_tool_is_shown_without_a_look_for_markup() -> None:
    text = "**It had just seen, and not yet answered:**\n> ```\n> **x** and `y`\n> | a | b |\n> | - | - |\n> ```\n"
    shown = re.sub(r"\x1b\[[0-9;]*m", "", coloured(text))
    assert shown.splitlines()[1:] == ["│ ```", "│ **x** and `y`", "│ | a | b |", "│ | - | - |", "│ ```"]


def test_code_is_set_apart_and_not_wrapped_and_a_fence_without_an_end_stays() -> None:
    code = "x = 1  # " + "long " * 40 + "end"
    assert plainly(f"```py\n{code}\n  # two\n```\nafter\n", 40).splitlines() == [
        "    py",
        f"    {code}",
        "      # two",
        "after",
    ]
    assert "│     **x**" in plainly("> ```\n> **x**\n> ```\n")
    for source in ("```\n## Goal\n- one\n**x**", "> ~~~ sh\n> # one\n> **x**", "```"):
        assert plainly(f"{source}\n") == f"{source.replace('>', '│')}\n"


def test_a_block_of_code_of_any_length_keeps_its_comments_and_is_shown_as_its_source_if_it_is_too_large() -> None:
    comments = [f"# comment {number}" for number in range(300)]
    shown = plainly("\n".join(["```py", *comments, "```", "# Heading", "- item"])).splitlines()
    assert shown == ["    py", *(f"    {line}" for line in comments), "", "Heading", "  • item"]
    large = ["```", *comments * 20, "```"]
    assert plainly("\n".join([*large, "# Heading"])).splitlines() == [*large, "", "Heading"]


def test_a_table_stays_as_it_was_written() -> None:
    text = "| Name | What it does |\n| --- | :---: |\n| a | reads |\nend\n"
    assert plainly(text) == text


def test_lines_are_wrapped_between_words_by_the_columns_that_they_take_and_a_path_stays_whole() -> None:
    path = "/srv/" + "deep/" * 20 + "file.py"
    assert plainly(f"- edited {path} again\n", 40).splitlines() == ["  • edited", f"    {path}", "    again"]
    assert plainly("- " + "潮汐 " * 12, 24).splitlines() == [
        "  • 潮汐 潮汐 潮汐 潮汐",
        *["    潮汐 潮汐 潮汐 潮汐"] * 2,
    ]


def test_escape_sequences_and_hyperlinks_in_a_text_are_taken_out() -> None:
    evil = "- \x1b[8mhid\x1b[2J \x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\ \u202eabc \x9b31m \x07\n"
    shown = coloured(evil)
    assert "\x1b" not in shown.replace("\x1b[0m", "") and "evil" not in shown and "click" in shown
    assert "\u202e" not in shown and "\x9b" not in shown


@pytest.mark.ci
@settings(max_examples=300, deadline=None)
@given(st.text("ab_*`#->|[]()<&\\~.1: \n", max_size=60))
def test_nothing_but_marks_goes_and_words_keep_their_order(text: str) -> None:
    def words(shown: str) -> str:
        return re.sub(r"[^ab1.<&\\\[\]()_:]", "", shown)

    for made in (plainly(text), re.sub(r"\x1b\[[0-9;]*m", "", coloured(text))):
        assert words(made).replace("_", "") == words(text).replace("_", "")


@pytest.mark.ci
@pytest.mark.parametrize(
    "text",
    [
        "- " + "` `` " * 100_000,
        "- " + "**a b** x" * 100_000,
        "- " + "ab " * 100_000,
        "|" * 200_000,
        "a|b\n" + " " * 200_000 + "x",
        "- " + "\xa0" * 200_000 + "x",
        "```\n~~~~\n" * 5_000 + "````x\n" * 5_000,
        "|a|b|\n|-|-|\n|c|d|\n\n" * 300,
        "> ```\n" * 5_001,
        "_A " + "b " * 200_000,
        ("|a" * 10 + "|\n" + "|-" * 10 + "|\n" + ("|" + "word " * 120 + "|") * 1_000),
    ],
    ids=lambda text: text[:6],
)
def test_no_text_takes_long_to_render(text: str) -> None:
    within(10, lambda: rendered(text, width=80, coloured=True))


# ---- at a real terminal ----


@pytest.fixture
def made(tmp_path: Path) -> Path:
    ralf.record_decision(
        "tide", "Call __init__ with *args, see <promise>x</promise>", rationale="`a`", origin="user", root=tmp_path
    )
    ralf.record_decision("tide", "Wide " + "words " * 40, origin="user", root=tmp_path)
    return tmp_path


@pytest.mark.ci
def test_show_is_rendered_at_a_terminal_as_wide_as_it_is_and_its_source_printed_with_plain(made: Path) -> None:
    shown = at_a_screen(made, "show", "tide", "--no-pager")
    assert "\x1b[1;35mDEC-001\x1b[0m (user): Call __init__ with *args, see <promise>x</promise>" in shown
    assert "\x1b[1mDecisions in force\x1b[0m" in shown and "## " not in shown and "\x1b[35ma\x1b[0m" in shown
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert 90 < max(map(len, lines)) <= 100
    source = ralf.get_context("tide", root=made).render(fenced=False)
    assert at_a_screen(made, "show", "tide", "--no-pager", "--plain") == source
    assert storekit.process("show", "tide", "--plain", cwd=made).out == storekit.process("show", "tide", cwd=made).out


@pytest.mark.ci
def test_no_color_and_a_dumb_terminal_get_the_same_words_without_escape_sequences(made: Path) -> None:
    shown = at_a_screen(made, "show", "tide", "--no-pager", NO_COLOR="1")
    assert (
        "\x1b" not in shown and "## " not in shown and "  • DEC-001 (user): Call __init__" in shown and "`a`" in shown
    )
    status, dumb = storekit.on_a_terminal(made, "show", "tide", "--no-pager", TERM="dumb")
    assert status == 0 and "\x1b" not in dumb and "  • DEC-001 (user): Call __init__" in dumb


@pytest.mark.ci
def test_refresh_is_rendered_too(made: Path) -> None:
    shown = at_a_screen(made, "task", "show")
    assert "# " not in shown and "\x1b[1" in shown
    assert "# " in at_a_screen(made, "task", "show", "--plain")
