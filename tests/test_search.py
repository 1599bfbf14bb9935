"""Search finds decisions, sections, facts and evidence by their words, and says which hits may be no answer."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import ralf
from ralf.errors import Busy, RouteNotFound, UsageError
from ralf.finding import ranking, search_index
from ralf.finding.search_index import SearchIndex
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.route import write
from ralf.route.corrections import drop, revert
from ralf.storage import filestore, journal
from ralf.storage.journal import Record
from ralf.storage.seals import SealedStore
from storekit import cache_of, copied, journal_file, known, small_disk, write_session

SESSION = Path(__file__).parents[1] / "examples" / "session.jsonl"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    ralf.checkpoint("tidepool", SESSION, root=root)
    ralf.record_decision("other", "Use a queue of goroutines", rationale="back pressure comes for free", root=root)
    return root


def test_a_decision_is_found_by_its_reason(project: Path) -> None:
    hits = ralf.search("why no tenacity for the retries?", root=project)
    assert hits[0].kind == "decision"
    assert "tenacity" in hits[0].text


def test_what_a_tool_printed_is_found(project: Path) -> None:
    hits = ralf.search("NameError name '_rebase' is not defined", route="tidepool", root=project)
    assert any(hit.kind in ("evidence", "fact") and "_rebase" in hit.text for hit in hits)


@pytest.mark.parametrize("query", ["Rust borrow checker lifetimes", "", "the of and", "?!", '" OR NEAR(', "décor 日本"])
def test_nothing_relevant_gives_nothing(project: Path, query: str) -> None:
    assert ralf.search(query, route="other", root=project) == []


def test_a_route_that_is_named_is_searched_alone(project: Path) -> None:
    assert {hit.route for hit in ralf.search("queue", root=project, limit=50)} >= {"other"}
    assert {hit.route for hit in ralf.search("queue", route="other", root=project)} == {"other"}


def test_an_identifier_is_found_whole_and_by_its_parts(tmp_path: Path) -> None:
    ralf.record_decision("r", "Cache what getUserById returns", rationale="it is called per row", root=tmp_path)
    ralf.record_decision("r", "Keep src/api/routes.py as it is", rationale="the client pins it", root=tmp_path)
    for query in ("getUserById", "user by id", "get_user_by_id"):
        assert ralf.search(query, root=tmp_path)[0].id == "DEC-001", query
    assert ralf.search("src/api/routes.py", root=tmp_path)[0].id == "DEC-002"


def test_a_superseded_decision_stands_below_the_one_that_replaced_it(tmp_path: Path) -> None:
    old = ralf.record_decision("r", "Store sessions in Redis, Redis and again Redis", root=tmp_path)
    ralf.record_decision("r", "Store sessions in Postgres", supersedes=old.id, root=tmp_path)
    hits = ralf.search("where to store sessions: Redis?", root=tmp_path)
    assert [(hit.id, hit.status) for hit in hits] == [("DEC-002", "active"), ("DEC-001", "superseded")]


def test_what_is_recorded_after_a_search_is_found_by_the_next(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    assert ralf.search("spaces", root=tmp_path) == []
    ralf.record_decision("r", "Use spaces after all", root=tmp_path)
    assert [hit.id for hit in ralf.search("spaces", root=tmp_path)] == ["DEC-002"]


def test_an_edit_by_hand_is_found_once_it_is_taken_in(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    ralf.search("tabs", root=tmp_path)
    file = tmp_path / ".autonomous" / "context" / "routes" / "r.md"
    file.write_text(file.read_text(encoding="utf-8").replace("Use tabs", "Use elastic tabstops"), encoding="utf-8")
    ralf.record_decision("r", "Wrap at 100", root=tmp_path)
    assert [hit.id for hit in ralf.search("elastic", root=tmp_path)] == ["DEC-001"]


@pytest.mark.parametrize("damage", ["gone", "garbage", "empty"])
def test_an_index_that_is_damaged_is_made_anew(tmp_path: Path, damage: str) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    before = ralf.search("tabs", root=tmp_path)
    cache = cache_of(tmp_path)
    if damage == "gone":
        shutil.rmtree(cache)
    else:
        (cache / "search.sqlite").write_bytes(b"" if damage == "empty" else b"not a database" * 100)
    assert ralf.search("tabs", root=tmp_path) == before


def test_the_index_built_at_once_is_the_one_built_step_by_step(project: Path) -> None:
    queries = ("merge", "cursor", "outbox transaction", "retry jitter", "test_merge")
    before = [ralf.search(query, root=project) for query in queries]
    (cache_of(project) / "search.sqlite").unlink()
    assert [ralf.search(query, root=project) for query in queries] == before


def test_a_project_without_routes_has_nothing_to_find(tmp_path: Path) -> None:
    assert ralf.search("anything", root=tmp_path) == []
    assert not (tmp_path / ".autonomous").exists()


def test_an_unknown_or_refused_route_is_named(project: Path) -> None:
    with pytest.raises(RouteNotFound, match="tidepol: no such route; closest: tidepool"):
        ralf.search("x", route="tidepol", root=project)
    with pytest.raises(UsageError):
        ralf.search("x", route="../x", root=project)


def test_the_limit_is_kept(project: Path) -> None:
    assert len(ralf.search("sync", root=project, limit=3)) == 3
    assert json.dumps([hit.score for hit in ralf.search("sync", root=project, limit=3)])


# ---- sessions of a few messages ----


def told(root: Path, *messages: tuple[str, str], route: str = "r", name: str = "") -> Path:
    """A project whose route has one session of these messages, each of a kind: user, assistant or printed."""
    records: list[dict[str, object]] = []
    for number, (kind, text) in enumerate(messages):
        more = {
            "sessionId": f"s-{name or route}",
            "timestamp": f"2026-03-01T10:00:{number:02d}Z",
            "uuid": f"{route}{number}",
        }
        if kind == "printed":
            call = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": "make it"}}
            records.append({"type": "assistant", "message": {"role": "assistant", "content": [call]}, **more})
            result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": text}
            records.append({"type": "user", "message": {"role": "user", "content": [result]}, **more})
        else:
            content = text if kind == "user" else [{"type": "text", "text": text}]
            records.append({"type": kind, "message": {"role": kind, "content": content}, **more})
    path = root / f"{name or route}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    ralf.checkpoint(route, path, root=root)
    return root


def sure(query: str, root: Path) -> list[ralf.SearchHit]:
    """The hits that say of themselves that they answer."""
    return [hit for hit in ralf.search(query, root=root) if hit.sure]


REQUEST = ("user", "Please move the harbour's tide tables to the new service this week.")
CHOICE = "We decided to use Postgres for the ledger instead of Redis, because two clerks write to it at once."


def test_a_decision_and_the_message_in_which_it_was_said_are_one_hit(tmp_path: Path) -> None:
    told(tmp_path, ("user", "How far are we?"), ("assistant", f"I looked at the quay's pumps first.\n\n{CHOICE}"))
    (hit,) = ralf.search("Postgres ledger clerks", root=tmp_path)
    assert (hit.kind, hit.status) == ("decision", "active")
    assert "the quay's pumps" in hit.text


def test_a_decision_is_found_by_what_was_said_around_it(tmp_path: Path) -> None:
    told(tmp_path, ("user", "The mooring invoices come out doubled, what now?"), ("assistant", CHOICE))
    hits = ralf.search("doubled mooring invoices", root=tmp_path)
    assert any("Postgres" in hit.text for hit in hits)


def test_a_short_message_is_shown_with_the_answer_that_followed_it(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("user", "Why is the tug late?"), ("assistant", "Its radar waits for a lease of the lock."))
    hit = ralf.search("tug late", root=tmp_path)[0]
    assert "waits for a lease" in hit.text
    assert hit.source.endswith("lines 2-3")


def test_no_hit_is_longer_than_2_000_characters(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", CHOICE + "\n" + "The crane lifts its load. " * 400))
    assert max(len(hit.text) for hit in ralf.search("Postgres crane", root=tmp_path)) <= 2_000


def test_of_two_answers_that_are_alike_the_later_one_comes_first(tmp_path: Path) -> None:
    told(
        tmp_path,
        REQUEST,
        ("assistant", "The upload cache of the ferries runs on Memcached, it is simple."),
        ("assistant", "I am reading the lock's manual now."),
        ("assistant", "The upload cache of the ferries runs on Redis, it is faster."),
    )
    assert "Redis" in ralf.search("what does the upload cache run on?", root=tmp_path)[0].text


def test_five_hits_are_five_different_things(tmp_path: Path) -> None:
    again = [("assistant", "The crane's gearbox needs oil before every storm.")] * 4
    told(tmp_path, REQUEST, *again, ("assistant", "The gearbox of the tug is new."))
    texts = [hit.text.split("\n")[0] for hit in ralf.search("gearbox", root=tmp_path)]
    assert len(texts) == len(set(texts))


def test_what_a_tool_printed_does_not_crowd_out_what_was_said(tmp_path: Path) -> None:
    printed = [("printed", f"ledger {number}: the ledger module of the ledger") for number in range(8)]
    told(tmp_path, REQUEST, *printed, ("assistant", CHOICE))
    assert ralf.search("who writes to the ledger?", root=tmp_path)[0].kind == "decision"


def test_what_only_a_tool_printed_is_found(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", CHOICE), ("printed", "E4711 berth_table.go:88: cannot assign mooring"))
    assert "E4711" in ralf.search("berth_table.go:88", root=tmp_path)[0].text


@pytest.mark.parametrize(
    "query",
    [
        "What did we decide about borrow checker lifetimes, and why?",
        "kubernetes ingress controller annotations",
        "ledger quaternion spherical interpolation harmonics",  # one word is known
    ],
)
def test_a_question_about_something_else_has_no_sure_hit(tmp_path: Path, query: str) -> None:
    told(tmp_path, REQUEST, ("assistant", CHOICE), ("assistant", "The crane's gearbox needs oil."))
    assert sure(query, tmp_path) == []


def test_a_message_that_only_shares_a_stem_with_a_question_is_no_sure_answer(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", "Let me see whether the tables reflect the new moon."))
    assert ralf.search("what about reflection?", root=tmp_path)
    assert sure("what about reflection?", tmp_path) == []
    assert sure("new moons", tmp_path)


GANGWAY = "The gangway of the third pier creaks. I have looked at the pumps, too, and they are fine."


def test_a_message_is_no_better_an_answer_for_the_decision_that_was_said_in_it(tmp_path: Path) -> None:
    berths = [("assistant", f"Berth {number} is free.") for number in range(30)]
    told(tmp_path, REQUEST, *berths, ("assistant", f"{GANGWAY}\n\n{CHOICE}"))
    assert sure("gangway turnstile", tmp_path) == []
    assert sure("clerks turnstile", tmp_path)


def test_another_form_of_a_word_is_found(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", "The authentication of the pilots goes through the gate. It is stable."))
    assert ralf.search("auth pilot", root=tmp_path)


@pytest.mark.parametrize("query", ["ledger", "why is the crane late in the harbour?", "mooring pier berth quay tide"])
def test_the_first_hits_are_the_same_however_many_are_asked_for(tmp_path: Path, query: str) -> None:
    things = ("ledger", "crane", "mooring", "harbour", "quay", "pier", "tide table", "berth")
    said = [
        (
            "assistant" if n % 3 else "user",
            f"The {things[n % 8]} of {things[n * 5 % 7]} {n} is late, says the {things[n % 5]}.",
        )
        for n in range(120)
    ]
    told(tmp_path, REQUEST, *said, ("assistant", CHOICE), ("printed", "crane: the ledger of the quay"))
    most = ralf.search(query, root=tmp_path, limit=100)
    assert len(most) > 20
    for limit in (1, 5, 10, 40):
        assert ralf.search(query, root=tmp_path, limit=limit) == most[:limit]


def test_hits_that_may_be_no_answer_come_behind_those_that_are(tmp_path: Path) -> None:
    told(
        tmp_path, REQUEST, ("assistant", CHOICE), *[("assistant", f"Clerk {n} is at lunch, I think.") for n in range(9)]
    )
    hits = ralf.search("why do two clerks write to the ledger?", root=tmp_path)
    assert hits[0].kind == "decision"
    assert [hit.sure for hit in hits] == sorted((hit.sure for hit in hits), reverse=True)
    assert {hit.sure for hit in hits} == {True, False}


def test_a_decision_that_replaced_a_sure_answer_is_one(tmp_path: Path) -> None:
    first = ralf.record_decision("r", "Keep the lunar almanac in Redis", root=tmp_path)
    ralf.record_decision("r", "Postgres has all of it now", supersedes=first.id, root=tmp_path)
    for number in range(20):
        ralf.record_decision("r", f"Pier {number} has its own gauge now", root=tmp_path)
    hits = ralf.search("lunar almanac Redis now", root=tmp_path)
    assert [(hit.id, hit.sure) for hit in hits[:2]] == [("DEC-002", True), ("DEC-001", True)]


def test_a_message_that_answers_more_than_the_decision_in_it_stands_for_itself(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", f"{GANGWAY}\n\n{CHOICE}"))
    assert ralf.search("gangway pier clerks", root=tmp_path)[0].kind == "evidence"
    assert ralf.search("ledger clerks", root=tmp_path)[0].kind == "decision"


def test_what_the_user_decided_is_shown_with_the_reply_and_no_more(tmp_path: Path) -> None:
    told(
        tmp_path,
        REQUEST,
        ("user", "Use Postgres for the ledger, not Redis, because two clerks write to it."),
        ("assistant", "Understood: I have moved its three tables."),
        ("user", "Is the crane oiled?"),
        ("assistant", "Yes, this morning."),
    )
    hit = ralf.search("Postgres ledger clerks", root=tmp_path)[0]
    assert hit.kind == "decision"
    assert "three tables" in hit.text
    assert "crane" not in hit.text


def test_a_form_of_a_word_that_no_stemmer_knows_counts(tmp_path: Path) -> None:
    berths = [("assistant", f"Berth {number} is free.") for number in range(30)]
    for route, rows in (("alike", "unchecksummed rows"), ("other", "fine rows")):
        told(tmp_path, REQUEST, *berths, ("assistant", f"I see that the ledger of the quay has {rows}."), route=route)
    hits = ralf.search("ledger quay rows checksumming", root=tmp_path)
    assert [hit.route for hit in hits if hit.kind == "evidence"] == ["alike", "other"]


def test_a_single_digit_counts(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use batch size 5 instead of 6", root=tmp_path)
    ralf.record_decision("r", "Use batch size 7 instead of 8", root=tmp_path)
    assert "5" in ralf.search("batch size 5", root=tmp_path)[0].text


def test_words_side_by_side_count_more_than_the_same_words_apart(tmp_path: Path) -> None:
    ralf.record_decision("r", "Keep the read lock in the cache of the gate", root=tmp_path)
    ralf.record_decision("r", "Keep the lock of the cache and read the gate", root=tmp_path)
    assert "read lock" in ralf.search("read lock", root=tmp_path)[0].text


def test_words_side_by_side_are_whole_words(tmp_path: Path) -> None:
    ralf.record_decision("r", "Keep the read lock of the gates in the files", root=tmp_path)
    ralf.record_decision("r", "Read all spread lock files of the gates daily", root=tmp_path)
    assert "Keep" in ralf.search("read lock gates", root=tmp_path)[0].text


def test_a_text_without_blanks_is_as_long_as_it_is(tmp_path: Path) -> None:
    packed = ",".join(f'"gauge{number}":{{"bollard":{number}}}' for number in range(40))
    line = (
        "The bollard of the third pier is loose, says the foreman of the night watch, and nobody has tied a ship to it."
    )
    told(tmp_path, REQUEST, ("printed", f"{{{packed}}}"), ("printed", line))
    assert "foreman" in ralf.search("bollard", root=tmp_path)[0].text


def test_a_short_remark_is_no_better_an_answer_for_being_short(tmp_path: Path) -> None:
    longer = "The radar of the tug sees the buoys, and the radar of the ferry does not, since its mast is lower."
    told(tmp_path, REQUEST, ("assistant", longer), ("assistant", "Now the radar:"))
    assert "buoys" in ralf.search("radar", root=tmp_path)[0].text


def test_each_route_weighs_words_by_what_it_holds_itself(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", CHOICE), route="one")
    before = ralf.search("ledger clerks", route="one", root=tmp_path)
    told(tmp_path, REQUEST, *[("assistant", f"The ledger of pier {n} is full.") for n in range(20)], route="two")
    assert ralf.search("ledger clerks", route="one", root=tmp_path) == before


def test_a_decision_that_replaced_another_stands_above_it_whatever_the_question_says(tmp_path: Path) -> None:
    first = ralf.record_decision("r", "Run the search cache on Redis", rationale="Redis is there", root=tmp_path)
    second = ralf.record_decision("r", "Run the search cache on SQLite", supersedes=first.id, root=tmp_path)
    ralf.record_decision("r", "Run the search cache in memory", supersedes=second.id, root=tmp_path)
    hits = ralf.search("search cache Redis", root=tmp_path)
    assert [hit.status for hit in hits] == ["active", "superseded", "superseded"]


def test_a_decision_keeps_its_place_when_what_replaced_it_says_little_of_what_is_asked(tmp_path: Path) -> None:
    first = ralf.record_decision("r", "Spawn the pilots' processes with fork and exec", root=tmp_path)
    ralf.record_decision("r", "All of it runs in one thread", supersedes=first.id, root=tmp_path)
    for number in range(8):
        ralf.record_decision("r", f"The processes of pier {number} write a log", root=tmp_path)
    hits = ralf.search("fork exec processes", root=tmp_path)
    assert [(hit.id, hit.status) for hit in hits[:2]] == [("DEC-002", "active"), ("DEC-001", "superseded")]


def test_a_message_stands_for_itself_when_the_decision_in_it_was_dropped_and_is_not_asked_for(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", f"{GANGWAY}\n\n{CHOICE}"))
    (decision,) = ralf.get_context("r", root=tmp_path).decisions
    drop("r", decision.id, root=tmp_path)
    assert ralf.search("gangway pier pumps", root=tmp_path)[0].kind == "evidence"
    assert ralf.search("ledger clerks", root=tmp_path)[0].status == "dropped"


# ---- routes without a journal, and damage ----


BROUGHT = """---
context_checkpoint:
  version: "1.0.0"
  route: "api"
decisions:
  - {id: "DEC-001", decision: "Use FastAPI over Flask", rationale: "Better async support", status: "active"}
facts:
  commands:
    - {command: "pytest tests/berth_table.py", status: "failed", exit: 1}
---

## Compressed History

### Checkpoint 1: Pumps
The bilge pumps got their own thread.
"""


@pytest.fixture
def brought(tmp_path: Path) -> Path:
    """A route file without a journal that the store knows as the person's: what is foreign is not found."""
    ownership.init(Project(tmp_path), share=False)
    file = tmp_path / ".autonomous" / "context" / "routes" / "api.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(BROUGHT, encoding="utf-8")
    return known(tmp_path, "api")


def test_a_route_that_has_only_a_file_is_searched(tmp_path: Path, brought: Path) -> None:
    found = {query: ralf.search(query, root=tmp_path)[0] for query in ("flask async", "bilge pumps", "berth_table.py")}
    assert [(hit.kind, hit.id) for hit in found.values()] == [
        ("decision", "DEC-001"),
        ("checkpoint", "cp-001"),
        ("fact", ""),
    ]
    assert ralf.search("flask", route="api", root=tmp_path)


def test_a_change_of_a_file_without_a_journal_is_found(tmp_path: Path, brought: Path) -> None:
    assert ralf.search("elastic tabstops", root=tmp_path) == []
    brought.write_text(BROUGHT.replace("bilge pumps", "elastic tabstops"), encoding="utf-8")
    known(tmp_path, "api")
    assert ralf.search("elastic tabstops", root=tmp_path)
    assert ralf.search("bilge", root=tmp_path) == []


def test_a_route_that_gains_a_journal_is_indexed_once(tmp_path: Path, brought: Path) -> None:
    ralf.search("flask", root=tmp_path)
    ralf.record_decision("api", "Serve on port 8080", root=tmp_path)
    assert [hit.id for hit in ralf.search("flask", root=tmp_path)] == ["DEC-001"]
    assert [hit.id for hit in ralf.search("port 8080", root=tmp_path)] == ["DEC-002"]


def test_a_damaged_page_of_the_index_costs_no_answer(project: Path, tmp_path: Path) -> None:
    copied(project, tmp_path / "copy")
    index = cache_of(tmp_path / "copy") / "search.sqlite"
    before = ralf.search("outbox transaction", root=tmp_path / "copy")
    content = bytearray(index.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    index.write_bytes(content)
    assert ralf.search("outbox transaction", root=tmp_path / "copy") == before


def test_an_index_of_another_version_is_made_anew(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    before = ralf.search("tabs", root=tmp_path)
    with closing(sqlite3.connect(cache_of(tmp_path) / "search.sqlite")) as database:
        database.execute("drop table said")
        database.execute("pragma user_version = 4")
        database.commit()
    assert ralf.search("tabs", root=tmp_path) == before


def test_an_index_that_is_locked_is_reported_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    before = ralf.search("tabs", root=tmp_path)
    index = cache_of(tmp_path) / "search.sqlite"
    monkeypatch.setattr(search_index, "WAIT", 0.05)
    with closing(sqlite3.connect(index)) as other:
        other.execute("begin exclusive")
        with pytest.raises(Busy, match="locked by another process"):
            ralf.search("tabs", root=tmp_path)
        assert "Use tabs" in ralf.get_context("r", root=tmp_path, query="tabs").render(400)
        other.execute("insert into route(name) values ('kept')")
        other.commit()
    assert ralf.search("tabs", root=tmp_path) == before
    with closing(sqlite3.connect(index)) as other:
        assert other.execute("select count(*) from route where name = 'kept'").fetchone() == (1,)


# ---- what later records do to earlier ones ----


def refined(root: Path, payload: dict[str, object]) -> None:
    with write.open_route(Project(root), "r") as route:
        route.absorb_edits()
        route.append("refinement", {"refines": "cp-001", "summarizer": "command", **payload}, id="refined")


@pytest.mark.parametrize("at_once", [False, True])
def test_a_section_that_a_model_improved_takes_the_place_of_the_embedded_one(tmp_path: Path, at_once: bool) -> None:
    told(tmp_path, REQUEST, ("assistant", "The pumps are fine."))
    if not at_once:
        ralf.search("anything", root=tmp_path)
    new = {"id": "", "decision": "Anchor in the lagoon", "rationale": "the swell is lower there"}
    refined(tmp_path, {"title": "Moorings", "text": "- The bollards were repainted.", "decisions": [new]})
    (hit,) = (hit for hit in ralf.search("bollards repainted", root=tmp_path) if hit.kind == "checkpoint")
    assert (hit.id, hit.text) == ("cp-001", "Moorings\n- The bollards were repainted.")
    assert [hit.kind for hit in ralf.search("moorings bollards", root=tmp_path, limit=20)].count("checkpoint") == 1
    assert ralf.search("lagoon swell", root=tmp_path)[0].id == "DEC-001"


def test_a_decision_that_a_model_found_replaced_is_shown_as_replaced(tmp_path: Path) -> None:
    for text in ("Store sessions in Redis", "Store sessions in Postgres"):
        ralf.record_decision("r", text, root=tmp_path)
    ralf.search("sessions", root=tmp_path)
    refined(tmp_path, {"amended": [{"id": "DEC-001", "status": "superseded", "superseded_by": "DEC-002"}]})
    hits = ralf.search("where to store sessions: Redis?", root=tmp_path)
    assert [(hit.id, hit.status) for hit in hits] == [("DEC-002", "active"), ("DEC-001", "superseded")]


def test_a_model_that_was_asked_in_vain_changes_nothing(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", CHOICE))
    before = ralf.search("ledger clerks", root=tmp_path)
    with write.open_route(Project(tmp_path), "r") as route:
        route.absorb_edits()
        route.append("unrefined", {"refines": "cp-001", "reason": "no answer in 180 s"}, id="unrefined")
    assert ralf.search("ledger clerks", root=tmp_path) == before


@pytest.mark.parametrize("at_once", [False, True])
def test_what_the_cap_took_from_a_decision_is_still_found(tmp_path: Path, at_once: bool) -> None:
    why = "the barnacles grow slower there"
    ralf.record_decision("r", "Moor at the north pier", rationale=why, root=tmp_path)
    if not at_once:
        ralf.search("anything", root=tmp_path)
    for number in range(24):
        ralf.record_decision("r", f"Paint buoy {number}", rationale=f"Wave {number} is high. " * 200, root=tmp_path)
    bare = ralf.get_context("r", root=tmp_path).decisions[0]
    assert (bare.decision, bare.rationale) == ("Moor at the north pier", "")
    (hit,) = ralf.search("barnacles", root=tmp_path)
    assert (hit.id, hit.text) == ("DEC-001", f"Moor at the north pier\n{why}")


def test_sections_have_the_numbers_that_the_file_gives_them(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", "The pumps are fine."))
    file = tmp_path / ".autonomous" / "context" / "routes" / "r.md"
    section = "\n### Checkpoint 7: By hand\n\n- Noted.\n\n### Checkpoint 1"
    file.write_text(file.read_text(encoding="utf-8").replace("\n### Checkpoint 1", section, 1), encoding="utf-8")
    ralf.record_decision("r", "Wrap at 100", root=tmp_path)
    told(tmp_path, ("user", "Now have the bollards of the old harbour repainted in red."), name="later")
    found = [hit.id for hit in ralf.search("bollards repainted red", root=tmp_path, limit=20) if hit.kind != "decision"]
    assert set(found) == {ralf.get_context("r", root=tmp_path).checkpoints[-1].checkpoint_id} == {"cp-008"}


# ---- odd questions ----


@pytest.mark.parametrize(
    "query",
    [
        "tabs \ud800",
        "tabs\0",
        'tabs" OR NEAR(',
        "^tabs*",
        "{text}: tabs",
        "-tabs AND NOT",
        "tabs'; drop table doc",
        "tabs\x1b[31m",
    ],
)
def test_what_means_something_to_sqlite_means_nothing_in_a_question(tmp_path: Path, query: str) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    assert ralf.search(query, root=tmp_path)[0].id == "DEC-001"


def test_a_question_of_any_length_is_answered(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    assert ralf.search("tabs " * 100_000, root=tmp_path)
    assert ralf.search(" ".join(f"w{number}" for number in range(100_000)), root=tmp_path) == []
    assert ralf.search("x" * 1_000_000, root=tmp_path) == []


# ---- what a context is ordered by ----


def test_a_context_is_ordered_by_how_rare_the_words_of_a_query_are_in_its_route(tmp_path: Path) -> None:
    for number in range(30):
        ralf.record_decision("r", f"Move pier {number} to the common service of the common harbour", root=tmp_path)
    ralf.record_decision("r", "Let the gearbox of the crane rest", root=tmp_path)
    for number in range(30, 60):
        ralf.record_decision("r", f"Move pier {number} to the common service of the common harbour", root=tmp_path)
    asked = ralf.get_context("r", root=tmp_path, query="common harbour service gearbox")
    assert "gearbox" in asked.render(150)
    assert "gearbox" not in ralf.get_context("r", root=tmp_path).render(150)


def test_a_context_is_served_where_the_search_index_cannot_be_made(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    (cache_of(tmp_path) / "search.sqlite").mkdir(parents=True)
    assert "Use tabs" in ralf.get_context("r", root=tmp_path, query="tabs").render(400)


@pytest.mark.parametrize("times", [1, 2, 10])
def test_an_index_that_is_removed_while_it_is_written_is_made_anew_or_else_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """As words are forgotten again and again."""
    ralf.record_decision("tide", "Keep the levels in centimetres", root=tmp_path)
    renew, left = SearchIndex.renew, [times]

    def removed(self: SearchIndex, *args: Any) -> None:
        if left[0]:
            left[0] -= 1
            (cache_of(tmp_path) / "search.sqlite").unlink(missing_ok=True)
        renew(self, *args)

    monkeypatch.setattr(SearchIndex, "renew", removed)
    assert [hit.id for hit in ralf.search("levels in centimetres", root=tmp_path)] == ["DEC-001"]


def test_a_full_disk_costs_neither_an_answer_nor_the_index(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "512k") as disk:
        ralf.record_decision("tide", "Keep the levels in centimetres", root=disk)
        ralf.search("levels", root=disk)
        ralf.record_decision("tide", "Number the stations from zero", rationale="x y z " * 8_000, root=disk)
        with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 1024)
        index = cache_of(disk) / "search.sqlite"
        before = index.stat().st_ino
        assert [hit.id for hit in ralf.search("stations from zero", root=disk)] == ["DEC-002"]
        assert index.stat().st_ino == before


def test_what_a_revert_took_back_says_so_until_it_is_brought_back(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 4_000)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path, segment_tokens=1_500)

    def told() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for number in range(9):
            for hit in ralf.search(f"level part_{number} station pytest", root=tmp_path, limit=20):
                found.setdefault(hit.id, set()).add(hit.status)
        return {label: found[label] for label in ("cp-001", "cp-002", "cp-003")}

    assert told() == {"cp-001": {""}, "cp-002": {""}, "cp-003": {""}}
    revert("tide", "cp-001", root=tmp_path)
    undone = {"cp-001": {""}, "cp-002": {"reverted"}, "cp-003": {"reverted"}}
    assert told() == undone
    (cache_of(tmp_path) / "search.sqlite").unlink()
    assert told() == undone
    revert("tide", "cp-003", root=tmp_path)
    assert told() == {"cp-001": {""}, "cp-002": {""}, "cp-003": {""}}


def test_an_unchanged_journal_is_not_opened_again_and_a_changed_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filestore, "_SETTLED", 0)
    opened: list[str] = []
    head = SealedStore.head
    monkeypatch.setattr(SealedStore, "head", lambda self, stream: (opened.append(stream), head(self, stream))[1])
    for route in ("a", "b", "c"):
        ralf.record_decision(route, f"Keep the levels of {route}", root=tmp_path)
    for _ in range(2):
        ralf.search("levels", root=tmp_path)
    before = journal_file(tmp_path, "b").read_bytes()
    ralf.record_decision("b", "Round the levels of Holyhead", root=tmp_path)
    opened.clear()
    assert ralf.search("levels of Holyhead", root=tmp_path)[0].route == "b"
    assert set(opened) == {"routes/b"}
    journal_file(tmp_path, "b").write_bytes(before)
    assert [hit.text for hit in ralf.search("Holyhead", root=tmp_path)] == []


def test_common_words_find_the_newest_documents_and_older_ones_with_rarer_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "_NEWEST", 4)
    monkeypatch.setattr(ranking, "_NEWEST_OF_ALL", 4)
    ralf.record_decision("tide", "Dredge the Holyhead channel", root=tmp_path)
    project = Project(tmp_path)
    head = project.store.head("routes/tide")
    texts = ["Pump the channel by tides", *["Dredge the channel", "Follow tides"] * 10]
    for number, text in enumerate(texts, start=2):
        record = Record(number, "decision", {"decision": {"id": f"DEC-{number:03}", "decision": f"{text} {number}"}})
        head = journal.append(project.store, "tide", record, id=f"{number}", after=head)
    assert ralf.search("channel Holyhead", root=tmp_path)[0].id == "DEC-001"
    assert ralf.search("channel by tides", root=tmp_path)[0].id == "DEC-002"
    assert ralf.search("dredge", root=tmp_path)[0].id == "DEC-021"
    with closing(SearchIndex(project.cache / "search.sqlite")) as index:
        question = ranking.Question(index, "channel", index.within("tide"))
    assert 10 <= question._count["said"]["channel"] <= 14  # about as many as hold it: 12


def test_among_many_messages_that_hold_its_words_an_old_decision_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_NEWEST", "_NEWEST_OF_A_FORM", "_NEWEST_OF_ALL"):
        monkeypatch.setattr(ranking, name, 4)
    ralf.record_decision("tide", "The manifest lock is a file beside the store", root=tmp_path)
    said = ["Where is the manifest again?", "Somebody holds a lock on it.", "The lock: look into the manifest."] * 6
    log = tmp_path / "log.jsonl"
    messages = [{"role": "user" if n % 2 else "assistant", "content": f"{n} {text}"} for n, text in enumerate(said)]
    log.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    ralf.checkpoint("tide", log, root=tmp_path)
    for question in ("manifest lock", "manifest", "why is there a lock"):
        assert "DEC-001" in [hit.id for hit in ralf.search(question, route="tide", root=tmp_path)], question
