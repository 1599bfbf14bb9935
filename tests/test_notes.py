"""Documents as transcripts: what they hold is taken once, and their fields are believed only in what is theirs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ralf
from ralf.maintenance.forget import forget
from ralf.project import Project
from ralf.route import history
from ralf.route.corrections import drop
from ralf.transcripts.events import Event, read_evidence
from ralf.transcripts.notes import Notes, note, session_of
from storekit import kept_bytes

ROUTE = "TASK-7"
SESSION = "runs/executor/run-0018"
WAL = {"decision": "Keep WAL mode", "rationale": "one file --- many readers", "label": f"{SESSION}#D-9"}


def _notes(*events: Event, origin: str = "import") -> Notes:
    return Notes(Path(SESSION), SESSION, events, origin=origin)


def _take(root: Path, *events: Event, **options: str) -> ralf.CheckpointReport:
    return ralf.checkpoint(ROUTE, _notes(*events, **options), root=root)


def _decided(text: str = "## D-9: Keep WAL mode", **fields: object) -> Event:
    return note(text, path=f"{SESSION}/DECISIONS.md", line=12, decision={**WAL, **fields})


def test_a_decision_in_the_fields_of_a_note_keeps_its_place_and_its_label(tmp_path: Path) -> None:
    _take(tmp_path, _decided(reversibility="HIGH"))
    (decision,) = ralf.get_context(ROUTE, root=tmp_path).decisions
    assert (decision.id, decision.decision, decision.origin) == ("DEC-001", "Keep WAL mode", "import")
    assert decision.rationale == "one file --- many readers"
    assert decision.extra == {"label": f"{SESSION}#D-9", "reversibility": "HIGH"}
    assert decision.source is not None
    assert decision.source.session == SESSION
    assert decision.source.extra == {"path": f"{SESSION}/DECISIONS.md", "line": 12}


def test_why_shows_the_words_of_the_note_behind_a_decision(tmp_path: Path) -> None:
    _take(tmp_path, note("Something else stands first."), _decided())
    reason = ralf.why(ROUTE, "DEC-001", root=tmp_path)
    assert reason.matches is True
    assert [(quote.who, quote.text) for quote in reason.quotes] == [("noted", "## D-9: Keep WAL mode")]


def test_the_prose_of_a_note_is_never_mined_for_decisions(tmp_path: Path) -> None:
    text = "We decided to use SQLite instead of Postgres because it is one file. From now on always run the tests."
    _take(tmp_path, note(text))
    assert ralf.get_context(ROUTE, root=tmp_path).decisions == ()
    assert ralf.search("SQLite instead of Postgres", root=tmp_path)


def test_reading_the_same_notes_again_writes_nothing(tmp_path: Path) -> None:
    _take(tmp_path, _decided(), note("It took an hour."))
    before = kept_bytes(tmp_path)
    assert _take(tmp_path, _decided(), note("It took an hour.")).checkpoints == ()
    assert kept_bytes(tmp_path) == before


def test_of_a_document_that_was_rewritten_only_what_is_new_is_taken(tmp_path: Path) -> None:
    _take(tmp_path, _decided(), note("It took an hour."))
    report = _take(tmp_path, note("It was in a hurry."), _decided(), note("It took two hours."))
    (made,) = report.checkpoints
    assert made.lines == "3-4"  # behind those of the first reading
    digest = _evidence(tmp_path, -1)
    store = Project(tmp_path).store
    assert [line.text for line in read_evidence(store, digest)] == ["It was in a hurry.", "It took two hours."]
    assert len(ralf.get_context(ROUTE, root=tmp_path).decisions) == 1


@pytest.mark.ci
def test_what_was_forgotten_does_not_come_back_with_the_next_reading(tmp_path: Path) -> None:
    private = note("The customer is called Wilhelmina Quist.")
    _take(tmp_path, private)
    forget(ROUTE, text="Wilhelmina Quist", root=tmp_path)
    assert _take(tmp_path, private).checkpoints == ()


def test_without_the_cache_the_journal_tells_which_notes_were_taken(tmp_path: Path) -> None:
    _take(tmp_path, _decided())
    for path in Project(tmp_path).cache.rglob("*"):
        if path.is_file():
            path.unlink()
    assert _take(tmp_path, _decided()).checkpoints == ()


def test_secrets_give_way_in_the_text_of_a_note_and_in_its_fields(tmp_path: Path) -> None:
    planted = "ghp_Zx8Qw7Er6Ty5Ui4Op3As2Df1Gh0Jk9Lz8Xc7"
    fields = {"rationale": f"the token {planted} works", "password": "correct-horse-9-battery"}
    _take(tmp_path, _decided(f"## D-9: Keep WAL mode\nthe token {planted} works", **fields))
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert planted.encode() not in kept
    assert b"correct-horse-9-battery" not in kept
    decision = ralf.get_context(ROUTE, root=tmp_path).decisions[0]
    assert "[REDACTED:" in decision.rationale


def test_a_note_says_where_the_work_stands_and_what_was_done(tmp_path: Path) -> None:
    work = {"task_title": "Move to WAL", "outcome": "PARTIAL", "next_steps": ["measure it"], "queue": "fast"}
    paths = [{"path": "src/db.py", "did": ["edited"]}]
    commits = [{"commit": "abc1234", "message": "Use WAL"}]
    _take(tmp_path, note("Results", work=work, facts={"paths": paths, "commits": commits}, title="Run 18"))
    context = ralf.get_context(ROUTE, root=tmp_path)
    assert context.goal == "Move to WAL"
    assert (context.active_work.outcome, context.active_work.next_steps) == ("PARTIAL", ("measure it",))
    assert context.active_work.extra == {"queue": "fast"}
    assert [(path.path, path.did) for path in context.facts.paths] == [("src/db.py", ("edited",))]
    assert [commit.commit for commit in context.facts.commits] == ["abc1234"]
    assert context.body.sections[0].title == "Run 18"


def test_a_document_sets_no_labels_links_or_pins_and_wrong_types_are_left_out(tmp_path: Path) -> None:
    ours = {"id": "DEC-900", "pinned": True, "supersedes": "DEC-001", "source": {"session": "x"}, "status": "APPROVED"}
    odd = {"rationale": {"a": 1}, "alternatives": ["one", {"two": 2}], "origin": "root", "kind": "law"}
    _take(tmp_path, _decided(**ours, **odd), note("odd", work={"plan_step": "x", "attempts": 99}, facts=["no"]))
    context = ralf.get_context(ROUTE, root=tmp_path)
    (decision,) = context.decisions
    assert (decision.id, decision.pinned, decision.supersedes, decision.status) == ("DEC-001", False, "", "active")
    assert (decision.rationale, decision.alternatives) == ("", ())
    assert (decision.origin, decision.kind) == ("import", "decision")
    assert context.active_work.plan_step is None


def test_decisions_with_the_same_words_and_other_reasons_are_two_where_numbered(
    tmp_path: Path,
) -> None:
    scope = {"decision": "Analysis Scope"}
    _take(
        tmp_path,
        note("DEC-0001 a", decision={**scope, "rationale": "the whole tree is small", "label": "DEC-0001"}),
        note("DEC-0002 b", decision={**scope, "rationale": "only the loader is slow", "label": "DEC-0002"}),
        note("DEC-0003 c", decision={**scope, "rationale": "only the loader is slow", "label": "DEC-0003"}),
    )
    context = ralf.get_context(ROUTE, root=tmp_path)
    assert [decision.extra["label"] for decision in context.decisions] == ["DEC-0001", "DEC-0002"]
    assert len(context.decisions[1].further_sources) == 1


def test_a_decision_is_found_by_the_name_that_its_document_gives_it(tmp_path: Path) -> None:
    _take(tmp_path, _decided("Keep WAL mode"))
    hits = ralf.search(f"{SESSION}#D-9", root=tmp_path)
    assert [hit.id for hit in hits if hit.kind == "decision"] == ["DEC-001"]


def test_a_dropped_decision_stays_dropped_when_its_document_is_rewritten(tmp_path: Path) -> None:
    _take(tmp_path, _decided())
    drop(ROUTE, "DEC-001", root=tmp_path)
    _take(tmp_path, _decided("## D-9: Keep WAL mode, all the same"))
    assert [one.status for one in ralf.get_context(ROUTE, root=tmp_path).decisions] == ["dropped"]


@pytest.mark.ci
def test_two_who_take_the_same_notes_at_once_take_each_of_them_once(tmp_path: Path) -> None:
    events = [note(f"The gauge number {number} was read and is right.") for number in range(20)]
    _take(tmp_path, events[0])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: _take(tmp_path, *events), range(4)))
    store = Project(tmp_path).store
    records = [record.payload for _, record in history.checkpoints(Project(tmp_path), ROUTE)]
    texts = [line.text for payload in records for line in read_evidence(store, str(payload["evidence"]))]
    assert sorted(texts) == sorted(event.text for event in events)


def test_a_summariser_of_ones_own_does_not_lose_the_decisions_of_notes(tmp_path: Path) -> None:
    from ralf.checkpointing.section import Segment, Summary

    class Terse:
        name = "terse"

        def summarize(self, segment: Segment) -> Summary:
            return Summary(title="Terse", text="- nothing to say", active_work=segment.active_work)

    ralf.checkpoint(ROUTE, _notes(_decided()), root=tmp_path, summarizer=Terse())
    assert [decision.decision for decision in ralf.get_context(ROUTE, root=tmp_path).decisions] == ["Keep WAL mode"]


@pytest.mark.parametrize("name", ["runs/executor/run-0018", "runs/planner/run-0018", "DECISIONS.md"])
def test_a_session_of_a_document_is_its_path_in_the_project(tmp_path: Path, name: str) -> None:
    assert session_of(tmp_path / name, tmp_path) == name


def test_documents_outside_the_project_have_names_of_their_own(tmp_path: Path) -> None:
    project = tmp_path / "project"
    one, two = (session_of(tmp_path / place / "runs" / "run-0018", project) for place in ("a", "b"))
    assert one != two
    assert one.startswith("runs/run-0018/")


def _evidence(root: Path, number: int) -> str:
    payloads = [record.payload for _, record in history.checkpoints(Project(root), ROUTE)]
    return str(payloads[number]["evidence"])
