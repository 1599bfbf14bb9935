"""Which decisions of two clones are one, whose they are, and what their links and conflicts name, after any merge."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from ralf.format.routefile import parse
from ralf.model import Decision
from ralf.route import edits
from ralf.route.sharing import merge_files
from test_sharing import FILE, Clone, _history, _version, pair

pytestmark = pytest.mark.ci  # of what is to go


def sync(clone: Clone, other: Clone) -> None:
    """Merge what the other has committed, and accept it."""
    clone.fetch(other)
    clone.git("merge", "--no-edit", "FETCH_HEAD")
    clone.accept()
    clone.commit()


def edit(clone: Clone, old: str, new: str) -> None:
    """Change the file in an editor."""
    text = (clone.root / FILE).read_text()
    assert text.count(old) == 1
    (clone.root / FILE).write_text(text.replace(old, new))


def later() -> None:
    """Wait for another second: records tell no shorter times."""
    time.sleep(1.01)


def told(decision: Decision) -> tuple[str, str, str]:
    return decision.decision, decision.rationale, decision.status


def test_a_decision_written_by_hand_is_one_however_often_it_is_accepted(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    for clone, text in ((one, "Use tabs"), (other, "Name tests after what they prove")):
        edit(clone, "  #: 63\n", f'  #: 63\n  - decision: "{text}"\n    rationale: "why"\n')
        clone.decide(f"Log in {clone.root.name}")
    for _ in range(3):
        sync(one, other)
        sync(other, one)
    wanted = sorted(["Use metres", "Use tabs", "Name tests after what they prove", "Log in one", "Log in other"])
    assert [sorted(item.decision for item in clone.context.decisions) for clone in (one, other)] == [wanted] * 2


def test_a_decision_written_by_hand_is_one_when_another_clone_rewords_it(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    edit(one, "  #: 63\n", '  #: 63\n  - decision: "Use tabs"\n    rationale: "why"\n')
    one.decide("Log in one")
    other.commit()
    sync(other, one)
    edit(other, "Use tabs", "Indent with tabs, never with spaces")
    other.decide("Log in other")
    for _ in range(2):
        sync(one, other)
        sync(other, one)
    wanted = sorted(["Use metres", "Indent with tabs, never with spaces", "Log in one", "Log in other"])
    assert [sorted(item.decision for item in clone.context.decisions) for clone in (one, other)] == [wanted] * 2


def test_a_decision_written_by_hand_is_taken_in_once_where_the_writer_died_before_the_file(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    edit(one, "  #: 63\n", '  #: 63\n  - decision: "Use tabs"\n    rationale: "why"\n')
    edited = one.content
    one.decide("Zip logs")
    (one.root / FILE).write_bytes(edited)
    one.decide("Rotate logs")
    assert sorted(item.decision for item in one.context.decisions) == [
        "Rotate logs",
        "Use metres",
        "Use tabs",
        "Zip logs",
    ]
    assert one.said["Use tabs"].clone and one.said["Use tabs"].timestamp


def test_links_and_labels_are_their_authors_after_a_clean_merge_by_git(tmp_path: Path) -> None:
    """The colleague has relabelled a decision, which its author replaces meanwhile, under the old label."""
    one, other = pair(tmp_path)
    other.decide("Other")
    later()
    one.decide("One")
    sync(other, one)
    one.decide("Instead of One", supersedes="DEC-002")
    one.decide("Zip logs")
    sync(one, other)
    found = one.said
    assert found["Instead of One"].supersedes == found["One"].id
    assert found["One"].superseded_by == found["Instead of One"].id
    assert found["Other"].status == "active" and not found["Other"].superseded_by
    assert not found["Zip logs"].aliases


def test_a_decision_that_both_made_stays_one_when_one_of_them_rewords_it(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    one.decide("Use tabs")
    later()
    other.decide("Use tabs")
    sync(one, other)
    sync(other, one)
    assert not one.context.unresolved
    edit(other, "Use tabs", "Indent with tabs, never with spaces")
    other.decide("Zip logs")
    for _ in range(2):
        sync(one, other)
        sync(other, one)
    for clone in (one, other):
        assert set(clone.said) == {"Use metres", "Indent with tabs, never with spaces", "Zip logs"}


@pytest.mark.parametrize("label", ["DEC-002", "DEC-009"], ids=["the other's label", "a label that only it bears"])
def test_decisions_of_one_second_whose_labels_were_exchanged_are_told_apart_by_their_words(label: str) -> None:
    """Of two that one clone recorded in one second one was reworded, and the other bears all of its labels."""
    (was,) = _history("Use metres for depths")
    was = replace(was, rationale="the charts have them", aliases=("DEC-005",))
    other = replace(was, id=label, aliases=("DEC-002", "DEC-005"), decision="Keep the harbour's log", rationale="")
    now = replace(was, id="DEC-023", decision="Use metres for depths and heights")
    for theirs in ([other, now], [now, other]):
        merged = merge_files(_version(1, was), _version(2, was), _version(3, *theirs), "a file").content
        found = {item.decision: item.rationale for item in parse(merged, "a file").decisions}
        assert found == {now.decision: now.rationale, other.decision: ""}
        ours, colleagues = (parse(_version(number, *them), "a file") for number, them in ((2, [was]), (3, theirs)))
        changed = {tuple(change["at"]): change.get("value") for change in edits.changes_since(ours, colleagues, ours)}
        assert changed["decisions", "DEC-002", "decision"] == now.decision


def test_a_reworded_decision_keeps_its_label_beside_a_copy_that_looks_more_like_it() -> None:
    (was,) = _history("Use port 8080 for the admin")
    was = replace(was, rationale="w")
    reworded = replace(was, decision="Serve the console from a socket")
    copy = replace(was, id="DEC-003", aliases=("DEC-002",), decision="Use port 8081 for the admin", rationale="y")
    theirs = replace(was, rationale="because of the firewall")
    merged = merge_files(_version(1, was), _version(2, reworded, copy), _version(3, theirs), "a file")
    assert not merged.conflicts
    found = {item.id: told(item)[:2] for item in parse(merged.content, "a file").decisions}
    assert found == {
        "DEC-002": ("Serve the console from a socket", "because of the firewall"),
        "DEC-003": ("Use port 8081 for the admin", "y"),
    }


def test_a_copy_below_a_decision_leaves_it_its_label_and_what_replaced_it(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    one.decide("Use feet", supersedes="DEC-001")
    text = (one.root / FILE).read_text()
    begin = text.index('  - id: "DEC-001"')
    block = text[begin : text.index('  - id: "DEC-002"')]
    (one.root / FILE).write_text(text.replace(block, block + block.replace("Use metres", "Use knots")))
    one.decide("Zip logs")
    found = one.said
    assert (found["Use metres"].id, found["Use metres"].superseded_by) == ("DEC-001", "DEC-002")
    assert found["Use feet"].supersedes == "DEC-001"
    assert found["Use knots"].id not in ("DEC-001", "DEC-002")


def test_copies_that_both_clones_made_of_one_decision_are_two(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    for clone in (one, other):
        text = (clone.root / FILE).read_text()
        begin = text.index('  - id: "DEC-001"')
        block = text[begin : text.index("  #: ", begin)]
        copy = block.replace("Use metres", f"Use {clone.root.name}")
        (clone.root / FILE).write_text(text.replace(block, block + copy))
        clone.decide(f"Zip logs of {clone.root.name}")
    for _ in range(2):
        sync(one, other)
        sync(other, one)
    for clone in (one, other):
        assert not clone.context.unresolved
        wanted = ["Use metres", "Use one", "Use other", "Zip logs of one", "Zip logs of other"]
        assert sorted(item.decision for item in clone.context.decisions) == wanted


def test_a_conflict_names_its_decision_by_the_label_that_it_has_in_each_clone(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    one.decide("Read one")
    later()
    other.decide("Read other")
    sync(one, other)
    sync(other, one)
    for clone, reason in ((one, "one says A"), (other, "other says B")):
        item = clone.said["Read one"]
        text = (clone.root / FILE).read_text()
        begin = text.index(f'  - id: "{item.id}"')
        (clone.root / FILE).write_text(
            text[:begin] + text[begin:].replace('rationale: "so"', f'rationale: "{reason}"', 1)
        )
        clone.decide(f"Zip logs of {clone.root.name}")
    sync(one, other)
    sync(other, one)
    assert one.said["Read one"].id != other.said["Read one"].id
    for clone in (one, other):
        (entry,) = clone.context.unresolved
        assert entry.at == ("decisions", clone.said["Read one"].id, "rationale")


def test_what_comes_back_from_a_colleague_is_still_ones_own(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    for clone in (one, other):
        clone.checkpoint()
        if clone is one:
            before = one.context
            other.commit()
            sync(other, one)
    sync(one, other)
    after = one.context
    assert {entry.session: entry.origin for entry in after.checkpoint_history} == {"one": "", "other": "import"}
    assert after.goal_origin == before.goal_origin or after.goal != before.goal
    mine = {request.request for request in before.facts.requests}
    assert {request.origin for request in after.facts.requests if request.request in mine} <= {""}
