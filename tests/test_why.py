"""Why: the words behind a claim, with their lines, when nothing but the evidence is left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import ralf
from ralf import project as projects
from ralf.errors import DamagedBlob, NotFound, RouteNotFound
from ralf.route import history
from ralf.route.why import Quote
from storekit import Cli, Listing, context_of, copied, records_of, route_file, write_session

CHOICE = "We use batch size 0 instead of 1."


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a session in two checkpoints, whose transcript is gone."""
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 9_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root, segment_tokens=5_000, summarizer=Listing())
    (root / "session.jsonl").unlink()
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    copied(made, tmp_path / "project")
    return tmp_path / "project"


def write_talk(path: Path, *said: tuple[str, str]) -> None:
    """A session of messages, one a line."""
    lines = [
        {
            "type": who,
            "sessionId": "talk",
            "uuid": str(number),
            "timestamp": f"2026-03-01T08:00:{number:02d}Z",
            "cwd": "/srv/made",
            "message": {"role": who, "content": text},
        }
        for number, (who, text) in enumerate(said)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def label_of(root: Path, said: str = CHOICE) -> str:
    """The label of the decision that says this."""
    return next(item.id for item in ralf.get_context("tide", root=root).decisions if item.decision == said)


def prune_all(root: Path) -> None:
    shutil.rmtree(context_of(root) / "blobs")


# ---- decisions ----


@pytest.mark.ci
def test_a_decision_is_explained_with_words_lines_and_speaker_without_the_transcript(made: Path) -> None:
    label = label_of(made)
    reason = ralf.why("tide", label, root=made)
    assert (reason.kind, reason.claim, reason.status, reason.origin) == ("decision", CHOICE, "active", "agent")
    assert reason.recorded.endswith("cp-001") and reason.revision == 1
    assert (reason.evidence, reason.matches) == ("kept", True)
    assert reason.quotes == (Quote(2, 2, "agent", CHOICE),)
    assert reason.source is not None
    assert (reason.source.session, reason.source.first_line, reason.source.last_line) == ("s-1", 2, 2)


@pytest.mark.parametrize("label", ["DEC-001", "dec-001", "dec-1", "DEC-1", " Dec-0001 ", "1"])
def test_a_label_may_be_typed_as_it_comes_to_hand(made: Path, label: str) -> None:
    assert ralf.why("tide", label, root=made).id == "DEC-001"


@pytest.mark.ci
def test_every_decision_of_every_checkpoint_finds_its_words(made: Path) -> None:
    items = [item for record in records_of(made, "tide") for item in record["payload"]["decisions"]]
    assert len(items) >= 3
    for item in items:
        reason = ralf.why("tide", item["id"], root=made)
        assert reason.matches, item
        assert item["decision"] in "\n".join(quote.text for quote in reason.quotes)


@pytest.mark.ci
def test_a_decision_that_the_file_has_folded_away_is_still_explained(project: Path) -> None:
    label = label_of(project)
    for number in range(30):
        ralf.record_decision("tide", f"Choice {number}: {'many words ' * 600}", root=project)
    assert label not in {item.id for item in ralf.get_context("tide", root=project).decisions}
    reason = ralf.why("tide", label, root=project)
    assert (reason.claim, reason.matches) == (CHOICE, True) and reason.recorded.endswith("cp-001")


def test_a_superseded_decision_says_so(project: Path) -> None:
    label = label_of(project)
    ralf.record_decision("tide", "Use batch size 7", supersedes=label, root=project)
    reason = ralf.why("tide", label, root=project)
    assert (reason.status, reason.matches) == ("superseded", True)


def test_a_decision_recorded_by_hand_says_who_and_when(project: Path) -> None:
    made = ralf.record_decision("tide", "Use sqlite", rationale="one file", alternatives=["a server"], root=project)
    reason = ralf.why("tide", made.id, root=project)
    assert (reason.recorded, reason.origin, reason.timestamp) == ("by hand", "unknown", made.timestamp)
    assert (reason.rationale, reason.alternatives) == ("one file", ("a server",))
    assert (reason.source, reason.evidence, reason.matches, reason.quotes) == (None, "none", None, ())
    assert reason.revision == 3


def test_a_decision_written_into_the_file_is_explained_before_and_after_the_merge(project: Path) -> None:
    path = route_file(project, "tide")
    text = path.read_text(encoding="utf-8")
    added = '  - id: "mine"\n    decision: "Ask Ada first"\n    status: "active"\n'
    path.write_text(text.replace("\ndecisions:\n", f"\ndecisions:\n{added}"), encoding="utf-8")
    assert ralf.why("tide", "mine", root=project).revision == 0
    ralf.record_decision("tide", "Use sqlite", root=project)
    reason = ralf.why("tide", "Mine", root=project)
    assert (reason.claim, reason.revision) == ("Ask Ada first", 3)


def test_a_decision_whose_words_were_edited_still_finds_the_lines_that_it_came_from(project: Path) -> None:
    label = label_of(project)
    path = route_file(project, "tide")
    path.write_text(path.read_text(encoding="utf-8").replace(CHOICE, "We use batch size nought."), encoding="utf-8")
    ralf.record_decision("tide", "Use sqlite", root=project)
    reason = ralf.why("tide", label, root=project)
    assert (reason.claim, reason.matches, reason.quotes[0].text) == ("We use batch size nought.", True, CHOICE)


def test_a_decision_that_was_taken_out_of_the_file_is_dropped_but_known(project: Path) -> None:
    label = label_of(project)
    path = route_file(project, "tide")
    text = path.read_text(encoding="utf-8")
    start = text.index(f'  - id: "{label}"')
    end = text.index("  - id:", start + 1)
    path.write_text(text[:start] + text[end:], encoding="utf-8")
    ralf.record_decision("tide", "Use sqlite", root=project)
    reason = ralf.why("tide", label, root=project)
    assert (reason.claim, reason.status, reason.matches) == (CHOICE, "dropped", True)


@pytest.mark.ci
def test_words_that_are_not_those_of_the_claim_are_shown_and_called_so(project: Path) -> None:
    label = label_of(project)
    path, source = route_file(project, "tide"), ralf.why("tide", label, root=project).source
    assert source is not None
    where = f'session: "{source.session}", first_line: {source.first_line}, last_line: {source.last_line}'
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace(f'- id: "{label}"\n', f'- id: "{label}"\n    source: {{{where}, sha256: "{"0" * 16}"}}\n')
    )
    reason = ralf.why("tide", label, root=project)
    assert (reason.evidence, reason.matches) == ("kept", False)
    assert CHOICE in {quote.text for quote in reason.quotes}


def test_when_the_evidence_is_pruned_the_place_and_the_hash_are_left(project: Path) -> None:
    label = label_of(project)
    before = ralf.why("tide", label, root=project)
    prune_all(project)
    after = ralf.why("tide", label, root=project)
    assert (after.evidence, after.matches, after.quotes) == ("pruned", None, ())
    assert (after.source, after.claim) == (before.source, before.claim)


def test_damaged_evidence_is_said(project: Path) -> None:
    for path in (context_of(project) / "blobs").rglob("*"):
        if path.is_file():
            path.write_bytes(b"x")
    with pytest.raises(DamagedBlob):
        ralf.why("tide", "DEC-001", root=project)


@pytest.mark.parametrize("label", ["DEC-999", "cp-009", "nonsense"])
def test_an_unknown_claim_is_not_found(made: Path, label: str) -> None:
    with pytest.raises(NotFound):
        ralf.why("tide", label, root=made)
    with pytest.raises(RouteNotFound):
        ralf.why("nonesuch", label, root=made)


# ---- checkpoints ----


@pytest.mark.ci
def test_a_checkpoint_shows_the_messages_that_its_section_uses(made: Path) -> None:
    reason = ralf.why("tide", "cp-1", root=made)
    context = ralf.get_context("tide", root=made)
    entry = context.checkpoints[0]
    assert (reason.id, reason.kind, reason.timestamp) == ("cp-001", "checkpoint", entry.timestamp)
    assert reason.claim.split("\n", 1)[1] in context.history
    assert reason.source is not None
    assert f"{reason.source.first_line}-{reason.source.last_line}" == entry.lines
    assert reason.quotes[0] == Quote(
        1, 1, "user", "Please carry part 0 of the tide table over to the new reader, and keep the old columns."
    )
    assert reason.recorded == "summarizer listing"


@pytest.mark.ci
def test_checkpoints_are_numbered_as_in_the_file_also_after_an_import(tmp_path: Path) -> None:
    from ralf.maintenance import ownership
    from ralf.maintenance.trust import accept_route
    from storekit import V100

    ownership.init(projects.find(tmp_path), share=False)
    path = route_file(tmp_path, "api-refactoring")
    path.parent.mkdir(exist_ok=True)
    path.write_text(V100, encoding="utf-8")
    accept_route(projects.find(tmp_path), "api-refactoring")
    write_session(tmp_path / "session.jsonl", 3_000)
    ralf.checkpoint("api-refactoring", tmp_path / "session.jsonl", root=tmp_path)
    labels = [label for label, _ in history.checkpoints(projects.find(tmp_path), "api-refactoring")]
    assert labels == [ralf.get_context("api-refactoring", root=tmp_path).checkpoints[-1].checkpoint_id] == ["cp-004"]
    assert ralf.why("api-refactoring", "DEC-001", root=tmp_path).recorded == "import"


@pytest.mark.ci
def test_checkpoints_are_numbered_as_in_the_file_even_after_a_section_by_hand(project: Path) -> None:
    path = route_file(project, "tide")
    text = path.read_text(encoding="utf-8")
    head = "## Compressed History\n\n"
    path.write_text(text.replace(head, f"{head}### Checkpoint 8: By hand\n- mine\n\n"), encoding="utf-8")
    write_session(project / "more.jsonl", 500, "s-2")
    ralf.checkpoint("tide", project / "more.jsonl", root=project)
    entry = ralf.get_context("tide", root=project).checkpoints[-1]
    labels = [label for label, _ in history.checkpoints(projects.find(project), "tide")]
    assert labels == ["cp-001", "cp-002", entry.checkpoint_id] == ["cp-001", "cp-002", "cp-009"]


# ---- the command ----


def test_a_long_message_is_cut_for_people_and_whole_for_programs(tmp_path: Path, cli: Cli) -> None:
    words = "We use sqlite instead of a server for the queue. " + "More about it. " * 400
    write_talk(tmp_path / "t.jsonl", ("assistant", words))
    ralf.checkpoint("long", tmp_path / "t.jsonl", root=cli.root, summarizer=Listing())
    assert words not in cli("show", "long", "DEC-001").out
    assert cli("show", "long", "DEC-001", "--json").json()["quotes"][0]["text"] == words


def test_a_claim_that_a_person_has_reworded_is_said_to_be_theirs(project: Path, cli: Cli) -> None:
    before = ralf.why("tide", "DEC-001", root=project)
    path = route_file(project, "tide")
    path.write_text(path.read_text().replace(f'decision: "{before.claim}"', 'decision: "Use batches of ten"'))
    for recorded in (False, True):
        reason = ralf.why("tide", "DEC-001", root=project)
        assert (before.edited, reason.edited, reason.claim) == (False, True, "Use batches of ten")
        assert reason.quotes == before.quotes
        if not recorded:
            ralf.record_decision("tide", "Written after the edit", root=project)
