"""Edits of a route file by hand: each is there at once, in every reader, survives ten writes, and changes nothing
else.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import ralf
from examples import examples
from ralf.model import ActiveWork, RouteContext
from ralf.route import handing_over, history
from storekit import SOURCE, copied, route_file

pytestmark = pytest.mark.ci

RULE, LEVELS, CHARTS = "Never rebase the branch", "Keep levels for 15 seconds", "Draw the charts in metres"
OURS = (RULE, LEVELS, CHARTS)
PIER, NOTE = "Moor at the pier", "The pilot boat is red."
HANDED = (
    "## Now\nThe parser is done\n## Next\n- Mend the gauge\n- Draw the charts\n"
    "## Open\n- Who pays for the gauge?\n- Who asks the harbour?\n"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    ralf.checkpoint("tide", SOURCE / "examples" / "session.jsonl", root=root)
    ralf.record_decision("tide", RULE, kind="rule", origin="user", root=root)
    ralf.record_decision("tide", LEVELS, rationale="the gauge is slow", origin="user", root=root)
    ralf.record_decision("tide", CHARTS, origin="user", root=root)
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    copied(made, tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture(scope="module")
def both(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A project without a hand-over, and one with it."""
    other = copied(made, tmp_path_factory.mktemp("handed") / "project")
    handing_over.hand_over("tide", HANDED, author="agent", root=other)
    return made, other


@dataclass(frozen=True)
class Row:
    """An edit and what it comes to.

    edit       from the text of the file to another
    decisions  in force; rules: those that are rules
    reason     of the decision about levels
    found      words that every reader finds, kept: words that the file has; gone: words that it has no more
    is_edit    whether `log` has it
    """

    edit: Callable[[str], str]
    decisions: Sequence[str] = OURS
    rules: Sequence[str] = (RULE,)
    reason: str = "the gauge is slow"
    found: str = ""
    kept: str = ""
    gone: str = ""
    is_edit: bool = True


def change(old: str, new: str, *, in_front: bool = False) -> Callable[[str], str]:
    """Words of the body, or of the front matter, become others."""

    def edit(text: str) -> str:
        body = text.index("\n---\n", 4) + 5
        front, rest = text[:body], text[body:]
        assert old in (front if in_front else rest), old
        return front.replace(old, new, 1) + rest if in_front else front + rest.replace(old, new, 1)

    return edit


def line(words: str) -> str:
    """The bullet of a decision in the body."""
    number = OURS.index(words) + 1
    tail = " Because: the gauge is slow" if words == LEVELS else ""
    return f"- DEC-{number:03d}: {words}{'.' if tail else ''}{tail}\n"


def below(words: str, new: str) -> Callable[[str], str]:
    return change(line(words), line(words) + new)


def at_end(new: str) -> Callable[[str], str]:
    """A section of one's own at the end, above the last line."""
    return lambda text: text.replace("\n---\n\n*Kept by ralf", f"\n{new}\n\n---\n\n*Kept by ralf")


def on_top(new: str) -> Callable[[str], str]:
    """A section of one's own above our part."""
    return change("<!-- ralf:brief", f"{new}\n\n<!-- ralf:brief")


def formatted(text: str) -> str:
    """As a formatter of Markdown leaves it: other bullets, no spaces at ends of lines, one line at the end."""
    body = text.index("\n---\n", 4) + 5
    lines = [re.sub(r"^- ", "* ", one).rstrip() for one in text[body:].split("\n")]
    return text[:body] + "\n".join(lines).rstrip("\n") + "\n"


MORE = (*OURS, PIER)

ROWS = {
    # bullets of decisions
    "a bullet with another sign": Row(below(LEVELS, f"* {PIER}\n"), MORE),
    "a bullet on two lines": Row(below(LEVELS, "- Moor at\n  the pier\n"), MORE),
    "a bullet with a reason": Row(below(LEVELS, f"- {PIER}. Because: it is deep there\n"), MORE, found="deep there"),
    "a rule changed": Row(
        change(RULE, "Never force a push"), ("Never force a push", LEVELS, CHARTS), ("Never force a push",)
    ),
    "a reason changed": Row(change("the gauge is slow", "the pump is slow"), reason="the pump is slow"),
    "a bullet wrapped": Row(change("Because: the", "Because:\n  the"), is_edit=False),
    "a bullet copied as it is": Row(below(CHARTS, line(CHARTS)), is_edit=False),
    "a bullet copied with its label and changed": Row(
        below(CHARTS, line(CHARTS).replace("metres", "feet")), (*OURS, "Draw the charts in feet")
    ),
    "a label taken out": Row(change("- DEC-003: ", "- "), is_edit=False),
    "a decision moved to the rules": Row(
        lambda text: below(RULE, line(CHARTS))(change(line(CHARTS), "")(text)), OURS, (RULE, CHARTS)
    ),
    "bullets in another order": Row(
        lambda text: below(LEVELS, line(CHARTS))(change(line(CHARTS), "")(text)), is_edit=False
    ),
    "a paragraph below the rules": Row(below(RULE, f"\n{NOTE}\n"), found=NOTE),
    "a heading deleted with its bullets": Row(
        lambda text: re.sub(r"\n## Decisions\n\n(- .*\n)+", "\n", text), is_edit=False
    ),
    "a section on top": Row(on_top(f"## My notes\n\n{NOTE}"), found=NOTE),
    "text below the last line": Row(lambda text: f"{text}\n{NOTE}\n", found=NOTE),
    "text between two of our parts": Row(
        change("\n## Compressed History", f"\n{NOTE}\n\n## Compressed History"), found=NOTE
    ),
    "code with empty and equal lines": Row(at_end(f"## Code\n\n```\nx = 1\n\n\nx = 1\n# {NOTE}\n```"), found=NOTE),
    "a title above a checkpoint": Row(
        change("### Checkpoint 3: ", "### Checkpoint 3: The red boat, "), found="The red boat"
    ),
    # the front matter
    "a decision deleted in the front matter": Row(
        lambda text: re.sub(r'  - id: "DEC-003"\n(    .*\n)+', "", text), (RULE, LEVELS)
    ),
    "a key of one's own": Row(
        change("\ndecisions:", '\nboat: "red pilot boat"\ndecisions:', in_front=True), kept="red pilot boat"
    ),
    "a comment": Row(change("\ndecisions:", f"\n# {NOTE}\ndecisions:", in_front=True), kept=NOTE),
    # the file
    "a formatter": Row(formatted, is_edit=False),
    "a formatter, and a bullet": Row(lambda text: formatted(below(LEVELS, f"- {PIER}\n")(text)), MORE),
    "the last line in other words": Row(
        lambda text: at_end(f"## My notes\n\n{NOTE}")(text).replace("*Kept by ralf. Edit", "_Kept by ralf. Edit"),
        found=NOTE,
    ),
}

TO_DO = {
    "a formatter": "sections of checkpoints with other bullets are others",
}
"""Edits that are not right yet, and why."""


def save(path: Path, text: str) -> None:
    """Save as an editor does that replaces the file, and has done so a while ago."""
    beside = path.with_suffix(".tmp")
    beside.write_bytes(text.encode())
    os.utime(beside, (1_700_000_000, 1_700_000_000))
    beside.replace(path)


def check(context: RouteContext, row: Row, more: Sequence[str] = ()) -> None:
    """A context is what a row comes to."""
    held = context.active_decisions
    assert sorted(item.decision for item in held) == sorted([*row.decisions, *more])
    assert sorted(item.decision for item in held if item.kind == "rule") == sorted(row.rules)
    assert [item.rationale for item in held if item.decision.startswith("Keep")] == [row.reason] * bool(row.reason)
    assert context.checkpoint_count == 3 and len(context.body.sections) == 3
    text = context.render(max_tokens=6_000) + context.render(section="history")
    assert row.found in text
    assert not row.gone or row.gone not in text


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=TO_DO[name]) if name in TO_DO else ())
        for name in ROWS
    ],
)
def test_an_edit_is_there_at_once_survives_ten_writes_and_changes_nothing_else(root: Path, name: str) -> None:
    row, path = ROWS[name], route_file(root, "tide")
    before = len(history.log("tide", root=root))
    text = path.read_text()
    edited = row.edit(text)
    assert edited != text
    save(path, edited)
    check(ralf.get_context("tide", root=root), row)
    more = [f"Step {number} of ten" for number in range(10)]
    for number, words in enumerate(more):
        ralf.record_decision("tide", words, origin="user", root=root)
        check(ralf.get_context("tide", root=root), row, more[: number + 1])
    assert len(history.log("tide", root=root)) == before + 10 + row.is_edit
    text = path.read_text()
    assert row.found in text and row.kept in text and text.count(NOTE) == (NOTE in (row.found, row.kept))
    assert not row.found or any(row.found in hit.text for hit in ralf.search(row.found, root=root))
    path.unlink()
    check(ralf.get_context("tide", root=root), row, more)


FORMS: dict[str, str] = {
    "a paragraph": "\n{}\n",
    "a line": "{}",
    "a bullet": "- {}",
    "a section": "\n## Of mine {}\n\nWith {} text.\n",
    "code": "\n```\n{}\n\n\n{}\n```\n",
    "an indented line": "    {}",
}


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([*FORMS])), min_size=1, max_size=4), st.booleans())
@settings(max_examples=examples(500), derandomize=True, deadline=None, database=None)
def test_words_that_are_written_anywhere_below_the_front_matter_are_kept_and_cost_nothing(
    both: tuple[Path, Path], edits: list[tuple[float, str]], is_handed: bool
) -> None:
    """Wherever they stand in the file: as an item, or among the notes."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        copied(both[is_handed], root)
        path = route_file(root, "tide")
        before = ralf.get_context("tide", root=root)
        front, _, body = path.read_text().partition("\n---\n")
        lines = body.split("\n")
        words = [f"word{number}of{len(edits)}" for number in range(len(edits))]
        for word, (place, form) in zip(words, edits, strict=True):
            at = int(place * (len(lines) - 1))
            lines[at:at] = FORMS[form].replace("{}", f"the {word} one").split("\n")
        save(path, "\n".join([front, "---", *lines]))
        for number in range(2):
            context = ralf.get_context("tide", root=root)
            kept = repr(replace(context, active_work=ActiveWork()))
            assert [word for word in words if word not in kept] == []
            assert {item.id for item in before.active_decisions} <= {item.id for item in context.active_decisions}
            ralf.record_decision("tide", f"Step {number}", root=root)
        text = path.read_text()
        assert [word for word in words if word not in text] == []
