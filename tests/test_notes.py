"""Documents as transcripts: what they hold is taken once, and their fields are believed only in what is theirs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ralf
from ralf.project import Project
from ralf.route import history
from ralf.transcripts.events import Event, read_evidence
from ralf.transcripts.notes import Notes, note
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


def test_secrets_give_way_in_the_text_of_a_note_and_in_its_fields(tmp_path: Path) -> None:
    planted = "ghp_Zx8Qw7Er6Ty5Ui4Op3As2Df1Gh0Jk9Lz8Xc7"
    fields = {"rationale": f"the token {planted} works", "password": "correct-horse-9-battery"}
    _take(tmp_path, _decided(f"## D-9: Keep WAL mode\nthe token {planted} works", **fields))
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert planted.encode() not in kept
    assert b"correct-horse-9-battery" not in kept
    decision = ralf.get_context(ROUTE, root=tmp_path).decisions[0]
    assert "[REDACTED:" in decision.rationale


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


def _evidence(root: Path, number: int) -> str:
    payloads = [record.payload for _, record in history.checkpoints(Project(root), ROUTE)]
    return str(payloads[number]["evidence"])
