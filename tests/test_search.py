"""Search finds turns, texts, failed commands, decisions and evidence by their words, what holds and is newer first."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

import ralf
from kit.no_index import IS_ON, KEPT
from ralf.document.index import close_idle
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.route.taking_back import revert
from storekit import Listing, cache_of, known, small_disk, write_session

SESSION = Path(__file__).parents[1] / "examples" / "session.jsonl"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    ralf.checkpoint("tidepool", SESSION, root=root)
    ralf.record_decision("other", "Use a queue of goroutines", rationale="back pressure comes for free", root=root)
    return root


@pytest.mark.ci
def test_a_decision_is_found_by_its_reason(project: Path) -> None:
    hits = ralf.search("what gives us back pressure for free?", root=project)
    assert hits[0].kind == "decision"
    assert "goroutines" in hits[0].text


@pytest.mark.ci
def test_what_a_tool_printed_is_found(project: Path) -> None:
    hits = ralf.search("NameError name '_rebase' is not defined", route="tidepool", root=project)
    assert any(hit.kind in ("evidence", "failure") and "_rebase" in hit.text for hit in hits)


@pytest.mark.ci
@pytest.mark.parametrize("query", ["Rust borrow checker lifetimes", "", "the of and", "?!", '" OR NEAR(', "décor 日本"])
def test_nothing_relevant_gives_nothing(project: Path, query: str) -> None:
    assert ralf.search(query, route="other", root=project) == []


@pytest.mark.ci
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


def test_an_index_that_is_damaged_is_made_anew(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    before = ralf.search("tabs", root=tmp_path)
    index = cache_of(tmp_path) / "index.db"
    index.write_bytes(b"not a database" * 100)
    close_idle()  # as in a process that comes later
    assert ralf.search("tabs", root=tmp_path) == before
    with closing(sqlite3.connect(index)) as database:
        assert database.execute("select count(*) from unit").fetchone() == (1,)


def test_a_project_without_routes_has_nothing_to_find(tmp_path: Path) -> None:
    assert ralf.search("anything", root=tmp_path) == []
    assert not (tmp_path / ".autonomous").exists()


@pytest.mark.ci
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
            more["uuid"] += "-result"
            records.append({"type": "user", "message": {"role": "user", "content": [result]}, **more})
        else:
            content = text if kind == "user" else [{"type": "text", "text": text}]
            records.append({"type": kind, "message": {"role": kind, "content": content}, **more})
    path = root / f"{name or route}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    ralf.checkpoint(route, path, root=root, summarizer=Listing())
    return root


REQUEST = ("user", "Please move the harbour's tide tables to the new service this week.")
CHOICE = "We decided to use Postgres for the ledger instead of Redis, because two clerks write to it at once."


def test_a_decision_and_the_message_in_which_it_was_said_are_one_hit(tmp_path: Path) -> None:
    told(tmp_path, ("user", "How far are we?"), ("assistant", f"I looked at the quay's pumps first.\n\n{CHOICE}"))
    (hit,) = ralf.search("Postgres ledger clerks", root=tmp_path)
    assert (hit.kind, hit.status) == ("decision", "active")
    assert "the quay's pumps" in hit.text and "How far are we?" in hit.text


def test_a_decision_is_found_by_what_was_said_around_it(tmp_path: Path) -> None:
    told(tmp_path, ("user", "The mooring invoices come out doubled, what now?"), ("assistant", CHOICE))
    hits = ralf.search("doubled mooring invoices", root=tmp_path)
    assert any("Postgres" in hit.text for hit in hits)


def test_a_short_message_is_shown_with_the_answer_that_followed_it(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("user", "Why is the tug late?"), ("assistant", "Its radar waits for a lease of the lock."))
    hit = ralf.search("tug late", root=tmp_path)[0]
    assert "waits for a lease" in hit.text
    assert hit.source.endswith("lines 2-3")


@pytest.mark.ci
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


GANGWAY = "The gangway of the third pier creaks. I have looked at the pumps, too, and they are fine."


def test_another_form_of_a_word_is_found(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", "The authentication of the pilots goes through the gate. It is stable."))
    assert ralf.search("auth pilot", root=tmp_path)


@pytest.mark.ci
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


def test_a_message_that_answers_more_than_the_decision_in_it_stands_for_itself(tmp_path: Path) -> None:
    told(tmp_path, REQUEST, ("assistant", f"{GANGWAY}\n\n{CHOICE}"))
    assert ralf.search("gangway pier creaks", root=tmp_path)[0].kind == "turn"
    assert ralf.search("ledger clerks", root=tmp_path)[0].kind == "decision"


def test_what_the_user_decided_is_shown_with_the_reply_and_no_more(tmp_path: Path) -> None:
    told(
        tmp_path,
        REQUEST,
        ("user", "Use Postgres for the ledger instead of Redis, because two clerks write to it."),
        ("assistant", "Understood: I have moved its three tables."),
        ("user", "Is the crane oiled?"),
        ("assistant", "Yes, this morning."),
    )
    hit = ralf.search("Postgres ledger clerks", root=tmp_path)[0]
    assert hit.kind == "decision"
    assert "three tables" in hit.text
    assert "crane" not in hit.text


def test_a_single_digit_counts(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use batch size 5 instead of 6", root=tmp_path)
    ralf.record_decision("r", "Use batch size 7 instead of 8", root=tmp_path)
    assert "5" in ralf.search("batch size 5", root=tmp_path)[0].text


def test_words_side_by_side_count_more_than_the_same_words_apart(tmp_path: Path) -> None:
    ralf.record_decision("r", "Keep the read lock in the cache of the gate", root=tmp_path)
    ralf.record_decision("r", "Keep the lock of the cache and read the gate", root=tmp_path)
    assert "read lock" in ralf.search("read lock", root=tmp_path)[0].text


def test_a_decision_that_replaced_another_stands_above_it_whatever_the_question_says(tmp_path: Path) -> None:
    first = ralf.record_decision("r", "Run the search cache on Redis", rationale="Redis is there", root=tmp_path)
    second = ralf.record_decision("r", "Run the search cache on SQLite", supersedes=first.id, root=tmp_path)
    ralf.record_decision("r", "Run the search cache in memory", supersedes=second.id, root=tmp_path)
    hits = ralf.search("search cache Redis", root=tmp_path)
    assert [hit.status for hit in hits] == ["active", "superseded", "superseded"]


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
    found = {query: ralf.search(query, root=tmp_path)[0] for query in ("flask async", "bilge pumps")}
    assert [(hit.kind, hit.id) for hit in found.values()] == [
        ("decision", "DEC-001"),
        ("checkpoint", "cp-001"),
    ]
    assert ralf.search("flask", route="api", root=tmp_path)


# ---- what later records do to earlier ones ----


def test_a_decision_in_whose_place_a_hand_over_puts_another_is_shown_as_replaced(tmp_path: Path) -> None:
    for text in ("Store sessions in Redis", "Store sessions in Postgres"):
        ralf.record_decision("r", text, root=tmp_path)
    ralf.search("sessions", root=tmp_path)
    over = [{"id": "DEC-001", "why": "DEC-002"}]
    ralf.hand_over("r", ended=over, author="user", root=tmp_path)
    hits = ralf.search("where to store sessions: Redis?", root=tmp_path)
    assert [(hit.id, hit.status) for hit in hits] == [("DEC-002", "active"), ("DEC-001", "superseded")]


@pytest.mark.ci
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


def test_a_context_is_served_where_the_search_index_cannot_be_made(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    index = cache_of(tmp_path) / "index.db"
    index.unlink()
    index.mkdir()
    assert "Use tabs" in ralf.get_context("r", root=tmp_path, query="tabs").render(400)


def test_a_full_disk_costs_neither_an_answer_nor_the_index(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        ralf.record_decision("tide", "Keep the levels in centimetres", root=disk)
        ralf.search("levels", root=disk)
        ralf.record_decision("tide", "Number the stations from zero", rationale="x y z " * 8_000, root=disk)
        with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 1024)
        index = cache_of(disk) / "index.db"
        before = index.stat().st_ino
        assert [hit.id for hit in ralf.search("stations from zero", root=disk)] == ["DEC-002"]
        if IS_ON:
            pytest.skip(KEPT)
        assert index.stat().st_ino == before


@pytest.mark.ci
def test_among_many_messages_that_hold_its_words_an_old_decision_is_found(tmp_path: Path) -> None:
    ralf.record_decision("tide", "The manifest lock is a file beside the store", root=tmp_path)
    said = ["Where is the manifest again?", "Somebody holds a lock on it.", "The lock: look into the manifest."] * 60
    log = tmp_path / "log.jsonl"
    messages = [{"role": "user" if n % 2 else "assistant", "content": f"{n} {text}"} for n, text in enumerate(said)]
    log.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    ralf.checkpoint("tide", log, root=tmp_path)
    for question in ("manifest lock", "manifest", "why is there a lock"):
        hits = ralf.search(question, route="tide", root=tmp_path, limit=400)
        assert "DEC-001" in [hit.id for hit in hits], question
    assert ralf.search("manifest lock", route="tide", root=tmp_path)[0].id == "DEC-001"


@pytest.mark.parametrize("words", ["\u6570\u636e\u5e93", "\u8fde\u63a5\u6570\u636e\u5e93"])
def test_words_of_a_script_without_blanks_are_found_within_a_sentence(tmp_path: Path, words: str) -> None:
    ralf.record_decision(
        "r", "\u6211\u4eec\u628a\u6570\u636e\u5e93\u7684\u8fde\u63a5\u653e\u5728\u6c60\u91cc", root=tmp_path
    )
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    assert [hit.id for hit in ralf.search(words, root=tmp_path)] == ["DEC-001"]
