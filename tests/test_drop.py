"""Dropping a decision: it leaves what is in force, and nothing but a person's word brings it back."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest

import ralf
from ralf import project as projects
from ralf.errors import NotFound, RouteNotFound, UsageError
from ralf.finding.documents import statuses
from ralf.format import merge
from ralf.format.codec import to_tree
from ralf.format.routefile import parse
from ralf.maintenance import ownership, trust
from ralf.maintenance.verify import verify
from ralf.model import Decision
from ralf.project import Project
from ralf.route import cap, corrections, edits, fold, history
from ralf.route.history import log
from ralf.storage import journal
from ralf.storage.journal import Record
from ralf.summarize.extractive import find_decisions
from ralf.summarize.supersession import linked
from segments_made import Talk

ROUTE = "tide"
SQLITE = "Use SQLite in WAL mode for the session store"


def decided(root: Path, text: str = SQLITE, **more: str) -> str:
    return ralf.record_decision(ROUTE, text, root=root, **more).id  # type: ignore[arg-type]


def statuses_of(root: Path) -> dict[str, str]:
    return {item.id: item.status for item in ralf.get_context(ROUTE, root=root).decisions}


def brought(text: str, **more: object) -> dict[str, object]:
    """The payload of a checkpoint that brings one decision."""
    return {"decisions": [to_tree(Decision(decision=text, timestamp="t", origin="agent", **more))], "text": "x"}  # type: ignore[arg-type]


def append(root: Path, kind: str, payload: dict[str, object], id: str) -> None:  # noqa: A002
    from ralf.route.write import open_route

    with open_route(projects.find(root), ROUTE) as writer:
        writer.absorb_edits()
        writer.append(kind, payload, id=id)
        writer.render_file()


# ---- what it does ----


def test_a_dropped_decision_is_not_in_force_any_more_and_not_in_the_brief(tmp_path: Path) -> None:
    label = decided(tmp_path)
    dropped = corrections.drop(ROUTE, label, because="too slow", root=tmp_path)
    assert (dropped.decision.status, dropped.changed) == ("dropped", True)
    context = ralf.get_context(ROUTE, root=tmp_path)
    assert statuses_of(tmp_path) == {"DEC-001": "dropped"}
    assert SQLITE not in context.render(2_000, section="brief")
    (hit,) = ralf.search("SQLite WAL session store", root=tmp_path)
    assert hit.status == "dropped"
    assert ralf.why(ROUTE, label, root=tmp_path).status == "dropped"


def test_the_record_tells_why_and_not_the_words(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), because="too slow", root=tmp_path)
    *_, (_, record) = journal.read(projects.find(tmp_path).store, ROUTE)
    assert (record.kind, record.payload["because"], record.payload["tombstone"]["id"]) == (
        "drop",
        "too slow",
        "DEC-001",
    )
    assert "SQLite" not in str(record.payload)


@pytest.mark.parametrize("typed", ["DEC-001", "dec-001", "Dec-1", "1"])
def test_a_label_may_be_typed_as_why_takes_it(tmp_path: Path, typed: str) -> None:
    decided(tmp_path)
    assert corrections.drop(ROUTE, typed, root=tmp_path).decision.id == "DEC-001"


def test_the_log_names_what_was_dropped_and_why(tmp_path: Path) -> None:
    first, second = decided(tmp_path), decided(tmp_path, "Keep the old columns")
    corrections.drop(ROUTE, second, root=tmp_path)
    corrections.drop(ROUTE, first, because="only a guess", root=tmp_path)
    found = [(event.id, event.text) for event in log(ROUTE, limit=2, root=tmp_path)]
    assert found == [(first, f"{SQLITE}: only a guess"), (second, "Keep the old columns")]


def test_dropping_twice_changes_nothing(tmp_path: Path) -> None:
    label = decided(tmp_path)
    corrections.drop(ROUTE, label, root=tmp_path)
    file = projects.find(tmp_path).route_file(ROUTE)
    before = file.read_bytes()
    again = corrections.drop(ROUTE, label, root=tmp_path)
    assert (again.changed, again.decision.status) == (False, "dropped")
    assert file.read_bytes() == before


def test_what_is_not_there_cannot_be_dropped(tmp_path: Path) -> None:
    with pytest.raises(RouteNotFound):
        corrections.drop(ROUTE, "DEC-001", root=tmp_path)
    decided(tmp_path)
    with pytest.raises(NotFound, match="no decision DEC-002"):
        corrections.drop(ROUTE, "2", root=tmp_path)
    with pytest.raises(UsageError):
        corrections.drop("../x", "DEC-001", root=tmp_path)


def test_one_that_the_file_has_folded_away_can_be_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "capped", lambda context: replace(context, decisions=context.decisions[-1:]))
    label = decided(tmp_path)
    decided(tmp_path, "Never push to main")
    assert label not in statuses_of(tmp_path)
    dropped = corrections.drop(ROUTE, label, root=tmp_path)
    assert (dropped.decision.decision, dropped.changed) == (SQLITE, True)
    assert [stone.id for stone in ralf.get_context(ROUTE, root=tmp_path).dropped] == [label]


# ---- it does not come back ----

PARAPHRASES = [
    SQLITE,
    "use  sqlite in wal MODE\nfor the session store",
    "We use SQLite in WAL mode for our session store.",
    "For the session store: SQLite, in WAL mode, since it is one file and has many readers",
    "Session store: SQLite in WAL mode",
]
OTHERS = [
    "Use Postgres for the session store",
    "Use SQLite for the search index",
    "Write the tide table in WAL mode to one file",
    "Name the stations by their codes",
]


@pytest.mark.parametrize("text", PARAPHRASES)
def test_a_tombstone_knows_its_decision_again_in_other_words(text: str) -> None:
    stone = cap.tombstone(Decision("DEC-001", decision=SQLITE))
    assert cap.cover([stone], Decision(decision=text))


@pytest.mark.parametrize("text", OTHERS)
def test_a_tombstone_does_not_cover_another_decision(text: str) -> None:
    stone = cap.tombstone(Decision("DEC-001", decision=SQLITE))
    assert not cap.cover([stone], Decision(decision=text))


def test_that_an_approach_failed_is_not_the_decision_for_it() -> None:
    stone = cap.tombstone(Decision("DEC-001", decision=SQLITE))
    assert not cap.cover([stone], Decision(decision=f"{SQLITE} again", kind="failed-approach"))


@pytest.mark.parametrize("text", [*PARAPHRASES, "Use SQLite", "Never push to main"])
def test_where_two_are_told_to_be_the_same_the_tombstone_of_one_covers_the_other(text: str) -> None:
    """What `linked` takes for the same as an active decision, it does not bring back once that is dropped."""
    old = Decision("DEC-001", decision=SQLITE, origin="agent")
    new = Decision(decision=text, origin="agent")
    same = [item.id for item in linked([new], [old])] == ["DEC-001"]
    assert same == (linked([new], [], dropped=[cap.tombstone(old)]) == [])


def test_a_tombstone_is_small_and_holds_no_word() -> None:
    stone = cap.tombstone(Decision("DEC-001", decision=SQLITE))
    assert len(str(to_tree(stone))) < 90
    assert not any(word.lower() in str(stone).lower() for word in SQLITE.split() if len(word) > 3)


def test_the_extractor_does_not_find_a_dropped_decision_again() -> None:
    talk = Talk()
    talk.say("user", "Which store do we take for the sessions?")
    talk.say("assistant", "We use SQLite in WAL mode for the session store instead of Redis, because it is one file.")
    (found,) = find_decisions(talk.events)
    stone = cap.tombstone(replace(found, id="DEC-001"))
    assert find_decisions(talk.events, dropped=[stone]) == ()


@pytest.mark.parametrize("text", PARAPHRASES)
@pytest.mark.parametrize("kind", ["checkpoint", "refinement"])
def test_no_summariser_and_no_model_brings_it_back(tmp_path: Path, kind: str, text: str) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    append(tmp_path, kind, brought(text), "later")
    assert statuses_of(tmp_path) == {"DEC-001": "dropped"}


def test_one_that_was_said_again_while_it_was_dropped_stays_dropped(tmp_path: Path) -> None:
    """The segment was read before, its record is written after the drop."""
    label = decided(tmp_path)
    corrections.drop(ROUTE, label, root=tmp_path)
    append(tmp_path, "checkpoint", brought(SQLITE, id=label, status="active"), "later")
    assert statuses_of(tmp_path) == {"DEC-001": "dropped"}


def test_it_stays_away_when_the_cap_has_folded_it_out_of_the_file() -> None:
    stone = cap.tombstone(Decision("DEC-001", decision=SQLITE))
    context = fold.apply(fold.empty(ROUTE), Record(1, "drop", {"tombstone": to_tree(stone)}))
    assert context.decisions == ()
    payload = edits.labelled(context, "checkpoint", brought(SQLITE))
    assert payload["decisions"] == []


def test_what_a_buried_decision_replaces_in_a_later_segment_stays_in_force() -> None:
    stone = cap.tombstone(Decision("DEC-009", decision=SQLITE))
    context = fold.apply(fold.empty(ROUTE), Record(1, "drop", {"tombstone": to_tree(stone)}))
    items = [
        to_tree(Decision(decision="Use Postgres", status="superseded", superseded_by="#2", origin="agent")),
        to_tree(Decision(decision=SQLITE, supersedes="#1", origin="agent")),
    ]
    (left,) = edits.labelled(context, "checkpoint", {"decisions": items})["decisions"]
    assert (left["decision"], left["status"], left["superseded_by"]) == ("Use Postgres", "active", "")


def test_the_file_keeps_the_tombstone_so_that_it_counts_without_cache_and_journal(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    project = projects.find(tmp_path)
    other = tmp_path / "clone"
    other.mkdir()
    ownership.init(Project(other), share=False)
    (other / f".autonomous/context/routes/{ROUTE}.md").write_bytes(project.route_file(ROUTE).read_bytes())
    trust.accept_route(Project(other), ROUTE)  # nothing else knows it there
    append(other, "checkpoint", brought(SQLITE), "later")
    assert statuses_of(other) == {"DEC-001": "dropped"}


# ---- it comes back by a person's word ----


def test_deciding_the_same_text_again_brings_it_back_under_a_new_label(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    assert decided(tmp_path) == "DEC-002"
    assert statuses_of(tmp_path) == {"DEC-001": "dropped", "DEC-002": "active"}
    assert ralf.get_context(ROUTE, root=tmp_path).dropped == ()
    append(tmp_path, "checkpoint", brought(SQLITE), "later")
    assert statuses_of(tmp_path)["DEC-002"] == "active"


def test_an_agent_cannot_decide_again_what_a_person_dropped(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    with pytest.raises(UsageError, match="DEC-001 says the same and was dropped"):
        decided(tmp_path, PARAPHRASES[2], origin="agent")


# ---- by hand ----


def edit(root: Path, old: str, new: str) -> None:
    file = projects.find(root).route_file(ROUTE)
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def without(root: Path, label: str) -> None:
    """Take a decision out of the file, as a person does."""
    lines = projects.find(root).route_file(ROUTE).read_text(encoding="utf-8").split("\n")
    start = next(n for n, line in enumerate(lines) if f'id: "{label}"' in line)
    end = next(n for n in range(start + 1, len(lines)) if not lines[n].startswith("    "))
    projects.find(root).route_file(ROUTE).write_text("\n".join(lines[:start] + lines[end:]), encoding="utf-8")


def test_a_decision_that_a_person_takes_out_of_the_file_is_dropped_too(tmp_path: Path) -> None:
    decided(tmp_path)
    decided(tmp_path, "Never push to main")
    without(tmp_path, "DEC-001")
    append(tmp_path, "checkpoint", brought(PARAPHRASES[2]), "later")
    assert statuses_of(tmp_path) == {"DEC-002": "active"}
    assert [stone.id for stone in ralf.get_context(ROUTE, root=tmp_path).dropped] == ["DEC-001"]
    assert ralf.why(ROUTE, "DEC-001", root=tmp_path).status == "dropped"


def test_a_decision_whose_status_a_person_sets_to_dropped_is_dropped_too(tmp_path: Path) -> None:
    decided(tmp_path)
    edit(tmp_path, 'status: "active"', 'status: "dropped"')
    append(tmp_path, "checkpoint", brought(SQLITE), "later")
    assert statuses_of(tmp_path) == {"DEC-001": "dropped"}


def test_a_person_who_sets_it_to_active_again_brings_it_back(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    edit(tmp_path, 'status: "dropped"', 'status: "active"')
    append(tmp_path, "checkpoint", brought("Never push to main"), "later")
    context = ralf.get_context(ROUTE, root=tmp_path)
    assert ([item.status for item in context.decisions], context.dropped) == (["active", "active"], ())


def test_a_person_may_take_the_tombstone_itself_out_of_the_file(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    file = projects.find(tmp_path).route_file(ROUTE)
    text = file.read_text(encoding="utf-8")
    start = text.index("dropped:\n")
    file.write_text(text[:start] + text[text.index("\n---", start) + 1 :], encoding="utf-8")
    append(tmp_path, "checkpoint", brought(SQLITE), "later")
    assert statuses_of(tmp_path) == {"DEC-001": "dropped", "DEC-002": "active"}


def test_what_another_history_says_of_a_dropped_decision_does_not_bring_it_back() -> None:
    stone = cap.tombstone(Decision("DEC-001", decision=SQLITE))
    ours = fold.apply(fold.empty(ROUTE), Record(1, "drop", {"tombstone": to_tree(stone)}))
    theirs = replace(fold.empty(ROUTE), decisions=(Decision("DEC-004", decision=SQLITE),))
    assert edits.changes_of_foreign(ours, theirs) == []


# ---- what reads the record ----


def test_search_and_history_know_what_a_drop_does() -> None:
    stone = to_tree(cap.tombstone(Decision("DEC-001", decision=SQLITE)))
    record = Record(2, "drop", {"tombstone": stone})
    assert list(statuses(record)) == [("DEC-001", "dropped", "")]
    assert history.decision_after({"id": "DEC-001"}, "DEC-001", record)["status"] == "dropped"
    assert history.decision_after({"id": "DEC-002"}, "DEC-002", record) == {"id": "DEC-002"}


def test_tombstones_are_merged_one_by_one() -> None:
    base = {"dropped": [{"id": "DEC-001"}]}
    changes = merge.diff(base, {"dropped": [{"id": "DEC-001"}, {"id": "DEC-002"}]})
    assert merge.apply({"dropped": [{"id": "DEC-003"}]}, changes)["dropped"] == [{"id": "DEC-003"}, {"id": "DEC-002"}]


# ---- many ----


def test_a_file_shows_the_newest_tombstones_and_none_of_the_others_is_forgotten(tmp_path: Path) -> None:
    decided(tmp_path, "Keep the levels")
    project = Project(tmp_path)
    head = project.store.head(f"routes/{ROUTE}")
    for number in range(2, 70):
        stone = cap.tombstone(
            Decision(f"DEC-9{number:02}", decision=f"Pump basin{number} beside quay{number} and lock{number}")
        )
        record = Record(number, "drop", {"tombstone": to_tree(stone)})
        head = journal.append(project.store, ROUTE, record, id=f"{number}", after=head)
    path = project.route_file(ROUTE)
    for wanted in ("with the cache", "without it", "after an edit"):
        if wanted == "without it":
            shutil.rmtree(project.cache)
        elif wanted == "after an edit":
            path.write_text(path.read_text().replace("Keep the levels", "Keep the tide levels"))
        decided(tmp_path, f"Log the tides {wanted}")
        with pytest.raises(UsageError, match="DEC-902 says the same and was dropped"):
            decided(tmp_path, "Pump basin2 beside quay2 and lock2", origin="agent")
        shown = parse(path.read_bytes(), path)
        assert (len(shown.dropped), shown.folded.tombstone_count) == (64, 4)
    assert verify(root=tmp_path).findings == ()
    assert statuses_of(tmp_path)["DEC-001"] == "active"
    assert [record.kind for _, record in journal.read(project.store, ROUTE)].count("edit") == 1
    decided(tmp_path, "Pump basin2 beside quay2 and lock2")
    assert parse(path.read_bytes(), path).folded.tombstone_count == 3


def with_drops(root: Path, count: int) -> None:
    """A store whose route has so many tombstones, by one record."""
    stones = [
        cap.tombstone(Decision(f"DEC-{9000 + n}", decision=f"Pump basin{n} beside quay{n} and lock{n}"))
        for n in range(count)
    ]
    root.mkdir()
    decided(root, "Keep the levels")
    append(root, "import", {"document": {"dropped": [to_tree(stone) for stone in stones]}}, id="many")


def calls_of(work: Callable[[], object]) -> int:
    """How many functions a block of work calls: what it costs, whatever else the machine does."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_a_decision_and_a_read_cost_as_much_beside_ten_times_as_many_drops(tmp_path: Path) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    for root, count in ((few, 150), (many, 1_500)):
        with_drops(root, count)
        decided(root, "Log the tides")
    for work in (lambda root: decided(root, "Open the gates"), lambda root: ralf.get_context(ROUTE, root=root)):
        small, large = calls_of(partial(work, few)), calls_of(partial(work, many))
        assert large < 1.1 * small, (small, large)


def test_many_tombstones_cover_what_each_of_them_does_alone() -> None:
    said = ("Use SQLite", "use sqlite in WAL mode", "Keep the tide levels in centimetres", "Never touch the old tables")
    stones = tuple(
        cap.tombstone(Decision(f"DEC-{n}", kind, decision=f"{text}{' again' * (n % 2)} for basin{n % 7}"))
        for n, (text, kind) in enumerate([*product(said, ("decision", "failed-approach"))] * 20)
    )
    for text, kind in product([*said, "Open the gates"], ("decision", "failed-approach")):
        asked = Decision("", kind, decision=f"{text} for basin5")
        alone = [stone for stone in stones if cap.cover([stone], asked)]
        for count in (len(stones), len(stones) - 1, len(stones)):  # also of fewer than it was asked before
            assert cap.covering(stones[:count], asked) == [stone for stone in alone if stone in stones[:count]]
        assert bool(alone) == (text != "Open the gates")
