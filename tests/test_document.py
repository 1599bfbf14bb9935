"""The route file: whatever text a context holds, its file is read back as that context, and nothing in it is forged."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from clocks import within
from contexts import LINES, contexts, quick, ruled, text, texts, title
from examples import examples
from ralf.errors import DamagedRouteFile
from ralf.format.routefile import FOOTER, HISTORY, parse, render
from ralf.model import Body, Decision, Header, OpenFile, RouteContext, Section
from storekit import V100

WHERE = Path("routes/TASK-001.md")
EXAMPLE = V100
REMARK = "---\n\n# A heading\n## Compressed History\n### Checkpoint 7: forged (Current)\n---\n*a footer*\n```\n---\n"


def read(content: str | bytes) -> RouteContext:
    """The context that a file holds."""
    return parse(content if isinstance(content, bytes) else content.encode(), WHERE)


def again(context: RouteContext) -> RouteContext:
    """What a context is after it was written and read."""
    return read(render(context))


def damage(content: str | bytes) -> DamagedRouteFile:
    """The error that a file gives."""
    with pytest.raises(DamagedRouteFile) as caught:
        read(content)
    return caught.value


# ---- the example of version 1.0.0 ----


def test_a_file_of_version_1_0_0_is_read_with_every_field() -> None:
    context = read(EXAMPLE)
    assert context.context_checkpoint == Header(
        version="1.0.0",
        route="api-refactoring",
        agent_type="executor",
        created="2026-02-07T10:00:00Z",
        last_checkpoint="2026-02-07T14:30:00Z",
        checkpoint_count=3,
        tokens_at_checkpoint=52_000,
        total_tokens_consumed=156_000,
    )
    (decision,) = context.decisions
    assert decision == Decision(
        "DEC-001", timestamp="2026-02-07T10:15:00Z", decision="Use FastAPI over Flask", rationale="Better async support"
    )
    assert context.active_work.current_task == "TASK-001"
    assert context.active_work.open_files == (OpenFile("src/api/routes.py", "2026-02-07T14:25:00Z"),)
    (entry,) = context.checkpoints
    assert (entry.checkpoint_id, entry.tokens, entry.summary_ref) == (
        "cp-001",
        50_000,
        "## Checkpoint 1: Initial Setup",
    )
    assert entry.key_events == ("Project initialized",)
    (section,) = context.body.sections
    assert (section.number, section.title) == (3, "Auth Middleware")
    assert section.text.startswith("**Period:** 2026-02-07T12:00:00Z \u2192 ")
    assert section.text.endswith("\n\nStarted implementing JWT authentication middleware...")
    assert (context.body.before, context.body.after, context.extra) == ("", "", {})


def test_a_rewrite_of_the_example_keeps_every_field_and_a_second_one_changes_nothing() -> None:
    context = read(EXAMPLE)
    assert again(context) == context
    assert render(again(context)) == render(context)


def test_unknown_keys_with_fences_and_headings_in_their_text_survive_a_rewrite() -> None:
    indented = "".join(f"      {line}\n" if line else "\n" for line in REMARK.rstrip("\n").split("\n"))
    content = EXAMPLE.replace(
        "decisions:\n", f"team:\n  lead: Ada\n  remarks:\n    - |\n{indented}decisions:\n", 1
    ).replace('    status: "active"\n', '    status: "active"\n    votes: 3\n    weight: 0.5\n    reviewed: no\n')
    context = read(content)
    assert context.extra == {"team": {"lead": "Ada", "remarks": [REMARK]}}
    assert context.decisions[0].extra == {"votes": 3, "weight": 0.5, "reviewed": "no"}
    assert again(context) == context
    assert [section.number for section in again(context).body.sections] == [3]


# ---- any context ----


@pytest.mark.ci
@given(contexts)
@quick
def test_a_context_is_what_its_file_is_read_as(context: RouteContext) -> None:
    assert again(context) == context


@pytest.mark.ci
@given(contexts)
@settings(quick, max_examples=examples(25))
def test_no_line_of_a_value_begins_in_column_0(context: RouteContext) -> None:
    lines = render(replace(context, extra={})).split("\n")
    front = lines[1 : lines.index("---", 1)]
    known = {
        "context_checkpoint",
        "goal",
        "goal_origin",
        "began_as",
        "handover",
        "active_work",
        "unresolved",
        "decisions",
        "pinned",
        "checkpoint_history",
        "folded",
        "dropped",
        "forgotten",
    }
    at_margin = [line.partition(":")[0] for line in front if line[:1] not in ("", " ", "#")]
    assert len(at_margin) == len(set(at_margin))
    assert set(at_margin) <= known


@given(st.lists(st.tuples(title, texts(8)), min_size=1, max_size=4))
@example([("a", "  ---\n\n  " + FOOTER), ("c", "  ## Compressed History\n  ~~~~")])
@quick
def test_text_that_keeps_to_the_rule_for_sections_forges_no_section(found: list[tuple[str, str]]) -> None:
    count = len(found)
    sections = tuple(Section(count - n, name, ruled(words)) for n, (name, words) in enumerate(found))
    context = RouteContext(body=Body(sections=sections))
    assert again(context).body == context.body
    body = render(context).partition(f"\n{HISTORY}\n")[2].split("\n")
    headings = [line for line in body if line.startswith("#")]
    assert len(headings) == count
    assert sum(line.endswith(" (Current)") for line in headings) == bool(found[0][0])
    assert body.count("---") == 1


@given(text, st.sampled_from(["goal", "decision", "next", "unknown"]))
@quick
def test_no_text_forges_a_key_a_fence_or_a_heading(words: str, place: str) -> None:
    base = RouteContext(goal="g", decisions=(Decision(id="DEC-001", decision="d"),), extra={"unknown": "x"})
    context = {
        "goal": lambda: replace(base, goal=words),
        "decision": lambda: replace(base, decisions=(Decision(id="DEC-001", decision=words),)),
        "next": lambda: replace(base, active_work=replace(base.active_work, next_steps=(words,))),
        "unknown": lambda: replace(base, extra={"unknown": words}),
    }[place]()
    assert _shape(render(context)) - {"goal", "active_work"} == _shape(render(base)) - {"goal"}


def _shape(content: str) -> set[str]:
    return {re.split(":", line)[0] for line in content.split("\n") if line[:1] not in ("", " ")}


def test_a_very_long_line_and_a_very_long_text_come_back() -> None:
    context = RouteContext(goal="x" * 300_000 + "\n" + "word " * 40_000)
    assert again(context) == context


def test_each_checkpoint_keeps_its_place_in_the_sections_and_the_highest_is_current() -> None:
    sections = (Section(2, "b", "- b"), Section(3, "c", "- c"), Section(None, "Notes", "mine"), Section(1, "", ""))
    content = render(RouteContext(body=Body(sections=sections)))
    assert read(content).body.sections == sections
    assert re.findall(r"(?m)^### .*", content) == [
        "### Checkpoint 2: b",
        "### Checkpoint 3: c (Current)",
        "### Notes",
        "### Checkpoint 1",
    ]


# ---- bodies that a person wrote ----

_lines = st.lists(
    st.sampled_from([*LINES, HISTORY, FOOTER, "*This file is automatically managed. Do not edit manually.*"])
    | st.sampled_from(["text", "### Checkpoint 1: a", "### Checkpoint 2", "### Notes", "#### deep", "## More", "    "])
    | st.sampled_from(["~~~~", "````", "```python", "--- ", "###x", "\u2028", "\xa0"]),
    max_size=14,
).map(lambda lines: [line for line in lines if not line.startswith(("<<<<<<< ", ">>>>>>> "))])


@pytest.mark.ci
@given(_lines)
@example(["```", HISTORY, "### A"])
@example([HISTORY, "```", "### A", "```", "### B", "x"])
@example([HISTORY, "### A", "```", "### B", "text"])
@example([HISTORY, "## More", "---", "", FOOTER, "", FOOTER])
@settings(quick, max_examples=examples(250))
def test_a_body_by_hand_is_taken_up_once_and_then_stays_as_it_is(lines: list[str]) -> None:
    first = read("---\n---\n" + "\n".join(lines))
    assert again(first) == first
    assert render(again(first)) == render(first)


@given(_lines)
@settings(quick, max_examples=examples(100))
def test_no_word_of_a_body_by_hand_is_lost(lines: list[str]) -> None:
    numbered = [f"{line}{number}" if line == "text" else line for number, line in enumerate(lines)]
    rendered = render(read("---\n---\n" + "\n".join(numbered))).split("\n")
    assert [line for line in numbered if line.startswith("text") and line not in rendered] == []


@pytest.mark.parametrize("heading", ["## Compressed History", "## Checkpoint History", "## Compressed History  "])
def test_both_headings_of_the_history_are_read(heading: str) -> None:
    assert read(f"---\n---\n{heading}\n### Checkpoint 1: a\nx\n").body.sections == (Section(1, "a", "x"),)


def test_headings_within_a_fence_that_is_closed_belong_to_the_section() -> None:
    code = "```\n### Checkpoint 9: b\n## c\n---\n```"
    context = read(f"---\n---\n{HISTORY}\n### Checkpoint 1: a\n{code}\n### Checkpoint 0: z\n")
    assert context.body.sections == (Section(1, "a", code), Section(0, "z", ""))
    assert again(context) == context


def test_a_fence_that_nobody_closes_swallows_nothing() -> None:
    context = read(
        f"---\n---\n{HISTORY}\n### Checkpoint 2: b\n```\ncode\n### Checkpoint 1: a\n- x\n\n---\n\n{FOOTER}\n"
    )
    assert [section.number for section in context.body.sections] == [2, 1]


@pytest.mark.ci
def test_a_body_of_a_hundred_thousand_lines_is_read_or_refused_at_once() -> None:
    for line in ("", "text", "---", "```", "### a", "- `x`"):

        def read_it(line: str = line) -> None:
            with pytest.raises(DamagedRouteFile, match="headings") if line == "### a" else nullcontext():
                read(f"---\n---\n{HISTORY}\n" + f"{line}\n" * 100_000)

        within(2, read_it)


# ---- what a person's editor makes of a file ----


def test_a_byte_order_mark_and_crlf_change_nothing_else_and_are_written_again() -> None:
    context = read(b"\xef\xbb\xbf" + EXAMPLE.encode().replace(b"\n", b"\r\n"))
    assert (context.body.crlf, context.body.bom) == (True, True)
    plain = replace(context, body=replace(context.body, crlf=False, bom=False))
    assert plain == read(EXAMPLE)
    assert render(context) == "\ufeff" + render(plain).replace("\n", "\r\n")
    assert again(context) == context
    mixed = read(EXAMPLE.replace("\n", "\r\n", 3))
    assert mixed == plain


@pytest.mark.parametrize(
    ("content", "line"),
    [
        *(
            (content, 1)
            for content in (b"", b"# Notes\n", b"\n---\n---\n", b"---\ngoal: x\n--- \n", b"\xff\xfe-\0-\0-\0")
        ),
        (b"---\ngoal: \xff\n---\n", 2),
        (b"---\ngoal: x\n---\n\nbody\n\xc3", 6),
        (b"---\ngoal: x\ngoal: y\n---\n", 3),
        (b"---\r\ngoal: x\r\ngoal: y\r\n---\r\n", 3),
        (b"---\na: 1\nb: &x 2\n---\n", 3),
        (b"---\na: 1\n\0b: 2\n---\n", 3),
        ("---\na: x\u0085b: y\n---\n".encode(), 2),
        (b"---\ngoal: x\n<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> b\n---\n", 3),
        (EXAMPLE.encode() + b"<<<<<<< HEAD\n", EXAMPLE.count("\n") + 1),
        (b"---\ngoal: [x\n---\n", 0),
    ],
)
def test_what_cannot_be_read_is_said_with_the_file_and_the_line(content: bytes, line: int) -> None:
    error = damage(content)
    assert line in (0, error.line)
    assert str(error).startswith(f"{WHERE}: line {error.line}: ")
    assert (str(WHERE) in error.hint, error.exit_status) == (True, 4)


@pytest.mark.parametrize(
    ("front", "place"),
    [
        ("context_checkpoint: x", "context_checkpoint: "),
        (f"context_checkpoint:\n  checkpoint_count: {'1' * 20_000}", "context_checkpoint.checkpoint_count: "),
        ("decisions: x", "decisions: "),
        ("decisions:\n  - x", "decisions.1: "),
        ("decisions:\n  - id: DEC-1\n    pinned: maybe", "decisions.1.pinned: "),
        ("goal: [a]", "goal: "),
        ("facts:\n  paths:\n    - did: {a: b}", "facts.paths.1.did: "),
    ],
)
def test_a_value_of_the_wrong_kind_is_said_with_its_place(front: str, place: str) -> None:
    error = str(damage(f"---\n{front}\n---\n"))
    assert place in error and len(error) < 300


def test_quotes_that_a_person_left_off_change_nothing() -> None:
    context = read(
        "---\ngoal: 12\ncontext_checkpoint:\n  checkpoint_count: '3'\ndecisions:\n- {id: DEC-1, pinned: true}\n---"
    )
    assert (context.goal, context.checkpoint_count, context.decisions[0].pinned) == ("12", 3, True)


def test_a_fence_in_a_value_or_in_the_body_is_no_end_of_the_front_matter() -> None:
    context = read("---\ngoal: |\n  a\n  ---\n  b\nx: 'y ---'\n---\n---\nz: 1\n---\n")
    assert (context.goal, context.extra) == ("a\n---\nb\n", {"x": "y ---"})
    assert context.body.before == "---\nz: 1\n---"


@given(st.binary(max_size=80) | st.sampled_from(LINES).map(str.encode))
@quick
def test_any_bytes_are_a_context_or_damage_and_never_another_error(content: bytes) -> None:
    for found in (content, b"---\n" + content, b"---\n" + content + b"\n---\n", b"---\n---\n" + content):
        try:
            read(found)
        except DamagedRouteFile as error:
            assert str(error).isprintable()
