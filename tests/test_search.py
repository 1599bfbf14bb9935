"""Search finds turns, texts, failed commands, decisions and evidence by their words, what holds and is newer first."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import ralf
from kit.no_index import IS_ON, KEPT
from storekit import Listing, cache_of, context_of, grow, route_file, small_disk, write_session


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


def test_a_context_is_served_where_the_search_index_cannot_be_made(tmp_path: Path) -> None:
    ralf.record_decision("r", "Use tabs", root=tmp_path)
    index = cache_of(tmp_path) / "index.db"
    index.unlink()
    index.mkdir()
    assert "Use tabs" in ralf.get_context("r", root=tmp_path, query="tabs").render(400)


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


# ---- why ----


CHOICE = "We use batch size 0 instead of 1."


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a session in two checkpoints, whose transcript is gone."""
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 9_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root, segment_tokens=5_000, summarizer=Listing())
    (root / "session.jsonl").unlink()
    return root


def label_of(root: Path, said: str = CHOICE) -> str:
    """The label of the decision that says this."""
    return next(item.id for item in ralf.get_context("tide", root=root).decisions if item.decision == said)


def prune_all(root: Path) -> None:
    shutil.rmtree(context_of(root) / "blobs")


# ---- decisions ----


def test_a_decision_written_into_the_file_is_explained_before_and_after_the_merge(project: Path) -> None:
    path = route_file(project, "tide")
    text = path.read_text(encoding="utf-8")
    added = '  - id: "mine"\n    decision: "Ask Ada first"\n    status: "active"\n'
    path.write_text(text.replace("\ndecisions:\n", f"\ndecisions:\n{added}"), encoding="utf-8")
    assert ralf.why("tide", "mine", root=project).revision == 0
    ralf.record_decision("tide", "Use sqlite", root=project)
    reason = ralf.why("tide", "Mine", root=project)
    assert (reason.claim, reason.revision) == ("Ask Ada first", 3)


def test_when_the_evidence_is_pruned_the_place_and_the_hash_are_left(project: Path) -> None:
    label = label_of(project)
    before = ralf.why("tide", label, root=project)
    prune_all(project)
    after = ralf.why("tide", label, root=project)
    assert (after.evidence, after.matches, after.quotes) == ("pruned", None, ())
    assert (after.source, after.claim) == (before.source, before.claim)


# ---- at a read it is told how much work no checkpoint covers ----


@pytest.mark.ci
def test_the_work_after_the_last_checkpoint_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "client"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    root = tmp_path / "project"
    root.mkdir()
    folder = tmp_path / "client" / "projects" / "".join(c if c.isascii() and c.isalnum() else "-" for c in str(root))
    folder.mkdir(parents=True)
    path = folder / "s-7.jsonl"
    turn = write_session(path, 3_000, "s-7")
    ralf.checkpoint("tide", path, root=root)
    assert ralf.get_context("tide", root=root).since == 0
    grow(path, 2_000, turn, "s-7")
    write_session(folder / "s-8.jsonl", 500, "s-8")  # the session that reads this: not known to the route
    context = ralf.get_context("tide", root=root)
    assert context.since == pytest.approx(2_000, rel=0.3)
    for text in (context.render(), context.render(500)):
        assert f"{context.since:,} " in text
    assert "12,000 " in replace(context, since=12_000).render(500)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/dev/null")
    assert ralf.get_context("tide", root=root).since == 0
