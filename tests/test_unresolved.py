"""Where a person and the journal changed the same field at the same time both values are kept, until it is settled."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import ralf
from contexts import as_read
from ralf.brief.wording import told_unresolved
from ralf.format import routefile
from ralf.model import BODY, RouteContext, Unresolved
from ralf.route import corrections
from ralf.route.edits import changes_of_edit
from ralf.route.fold import apply, empty
from ralf.storage.journal import Record
from storekit import context_of, records_of, route_file


def edited(base: RouteContext, change: Any) -> RouteContext:
    """What a person makes of the file that shows `base`."""
    return routefile.parse(change(routefile.render(base)).encode(), "file")


def then(context: RouteContext, kind: str, payload: dict[str, Any]) -> RouteContext:
    return apply(context, Record(context.revision + 1, kind, payload))


def by_hand(base: RouteContext, newest: RouteContext, old: str, new: str) -> RouteContext:
    """The route after a person's edit of the older file was taken in."""
    assert old in routefile.render(base)
    theirs = edited(base, lambda text: text.replace(old, new, 1))
    return then(newest, "edit", {"changes": changes_of_edit(base, theirs, newest)})


def start() -> RouteContext:
    decision = {"id": "DEC-001", "decision": "Use tabs", "rationale": "we always did", "timestamp": "t"}
    context = then(empty("tide"), "decision", {"decision": decision})
    work = {"next_steps": ["mend the pump"], "work_status": "in_progress"}
    return then(context, "checkpoint", {"title": "one", "text": "- the pump leaks", "active_work": work, "tokens": 5})


def reasoned(context: RouteContext, rationale: str) -> RouteContext:
    """A program's record that says the reason otherwise."""
    changes = [{"at": ["decisions", "DEC-001", "rationale"], "value": rationale}]
    return then(context, "edit", {"changes": changes, "origin": "agent"})


@pytest.mark.ci
def test_the_person_s_value_stands_and_the_other_is_kept_in_the_file() -> None:
    base = start()
    after = by_hand(base, reasoned(base, "the linter wants it"), "we always did", "Ann said so")
    assert after.decisions[0].rationale == "Ann said so"
    assert after.unresolved == (Unresolved(("decisions", "DEC-001", "rationale"), ("the linter wants it",)),)
    text = routefile.render(after)
    assert '- at: ["decisions", "DEC-001", "rationale"]\n    also: ["the linter wants it"]\n' in text
    assert routefile.parse(text.encode(), "file") == as_read(after)
    line = "DEC-001 rationale: Ann said so; also said: the linter wants it"
    assert list(told_unresolved(after)) == [line]
    assert f"\n- {line}\n" in after.render(400)


def test_where_both_said_the_same_or_only_one_spoke_nothing_is_unresolved() -> None:
    base = start()
    for newest in (base, reasoned(base, "Ann said so"), then(base, "decision", {"decision": {"decision": "More"}})):
        assert by_hand(base, newest, "we always did", "Ann said so").unresolved == ()


@pytest.mark.ci
@pytest.mark.parametrize("way", ["the entry is taken out", "the other value is taken", "a third value is found"])
def test_it_is_settled_by_editing_the_file(way: str) -> None:
    base = start()
    after = by_hand(base, reasoned(base, "the linter wants it"), "we always did", "Ann said so")
    entry = 'unresolved:\n  - at: ["decisions", "DEC-001", "rationale"]\n    also: ["the linter wants it"]\n'
    old, new = {
        "the entry is taken out": (entry, ""),
        "the other value is taken": ('rationale: "Ann said so"', 'rationale: "the linter wants it"'),
        "a third value is found": ('rationale: "Ann said so"', 'rationale: "both"'),
    }[way]
    settled = by_hand(after, after, old, new)
    assert settled.unresolved == ()
    assert settled.decisions[0].rationale == (new.split('"')[1] if new else "Ann said so")
    assert by_hand(after, after, '"mend the pump"', '"mend the tank"').unresolved == after.unresolved


def test_two_texts_of_a_section_are_both_kept() -> None:
    base = start()
    newest = then(base, "refinement", {"refines": "cp-001", "text": "- the pump leaks at the valve"})
    after = by_hand(base, newest, "- the pump leaks", "- the pump leaks, says Ann")
    assert "says Ann" in after.body.sections[0].text
    (entry,) = after.unresolved
    assert entry.at == (BODY, "sections", "1", "text")
    assert "at the valve" in entry.also[0]
    assert routefile.parse(routefile.render(after).encode(), "file") == as_read(after)


def test_what_one_side_removed_and_the_other_changed_is_kept_as_the_other_value() -> None:
    base = start()
    removed = by_hand(
        base, base, routefile.render(base).partition("decisions:\n")[2].partition("checkpoint_history")[0], ""
    )
    assert removed.decisions == ()
    late = by_hand(base, removed, "we always did", "Ann said so")
    assert late.decisions == ()
    assert late.unresolved == (Unresolved(("decisions", "DEC-001", "rationale"), ("Ann said so",)),)
    other = by_hand(base, reasoned(base, "the linter wants it"), '    rationale: "we always did"\n', "")
    assert other.decisions[0].rationale == ""
    assert other.unresolved == (Unresolved(("decisions", "DEC-001", "rationale"), ("the linter wants it",)),)


@pytest.mark.ci
def test_the_command_that_takes_the_edit_in_says_so_and_so_does_every_show(tmp_path: Path) -> None:
    ralf.record_decision("tide", "Use tabs", rationale="we always did", root=tmp_path)
    path = route_file(tmp_path, "tide")
    opened = path.read_text(encoding="utf-8")
    decisions = [{"id": "DEC-001", "decision": "Use tabs", "rationale": "Bob said so", "status": "active"}]
    corrections.change("tide", {"decisions": decisions}, root=tmp_path)
    path.write_text(opened.replace("we always did", "Ann said so"), encoding="utf-8")  # an editor had it open
    line = "- DEC-001 rationale: Ann said so; also said: Bob said so\n"
    assert line in ralf.get_context("tide", root=tmp_path).render()
    from ralf.project import Project
    from ralf.route.write import open_route

    with open_route(Project(tmp_path), "tide") as writer:
        writer.absorb_edits()
        (warning,) = writer.warnings
    assert warning.startswith(f"{path}: DEC-001 rationale: ")
    assert records_of(tmp_path, "tide")[-1]["kind"] == "edit"
    shutil.rmtree(context_of(tmp_path) / "cache")
    assert line in ralf.get_context("tide", root=tmp_path).render()
    path.write_text(path.read_text(encoding="utf-8").replace("Ann said so", "Bob said so", 1), encoding="utf-8")
    ralf.record_decision("tide", "One more", root=tmp_path)
    context = ralf.get_context("tide", root=tmp_path)
    assert (context.unresolved, context.decisions[0].rationale) == ((), "Bob said so")
    assert "Unresolved" not in context.render()
