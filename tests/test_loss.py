"""The loss report: what a checkpoint kept, merged and dropped adds up to all that there was."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import ralf
from contexts import quick
from labelled import DATA
from ralf.errors import NotFound, RouteNotFound
from ralf.model import Decision
from ralf.proof import loss, recall
from ralf.proof.loss import Loss, loss_reports
from ralf.proof.recall import KINDS, Item, Words
from ralf.transcripts.events import Event
from ralf.transcripts.reader import open_transcript
from storekit import Cli, context_of, records_of, write_session

_WORDS = st.sampled_from(["src/a.py", "src/b.py", "pytest -q", "12345", "Use one file.", "Never push.", "x" * 80])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A route with two checkpoints."""
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 9_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root, segment_tokens=5_000)
    return root


@given(
    found=st.lists(st.builds(Item, st.sampled_from(KINDS), _WORDS, st.integers(1, 99)), max_size=30),
    said=st.lists(_WORDS, max_size=4),
    listed=st.lists(st.builds(Decision, decision=_WORDS), max_size=4),
    known=st.lists(st.builds(Decision, decision=_WORDS), max_size=2),
)
@quick
def test_every_item_is_counted_once(
    found: list[Item], said: list[str], listed: list[Decision], known: list[Decision]
) -> None:
    losses = loss.account(found, Words("\n".join(said)), listed, known)
    there = Counter(item.kind for item in found)
    there["decisions"] += len(listed)
    assert {one.kind: one.total for one in losses} == {kind: count for kind, count in there.items() if count}
    assert loss.from_record(json.loads(json.dumps(loss.to_record(losses)))) == losses


def test_repeated_items_are_merged_and_items_not_restored_are_dropped_with_lines() -> None:
    lines = [Item("paths", "a.py", 1), Item("paths", "a.py", 2), *(Item("paths", "b.py", n) for n in (9, 5, 4, 3))]
    assert loss.account(lines, Words("read: a.py"), (), ()) == (Loss("paths", 1, 1, 4, "3-5, 9"),)


def test_a_known_decision_is_merged_and_so_are_the_sentences_of_a_listed_one() -> None:
    sentences = [Item("decisions", "We use sqlite instead of files.", 3), Item("decisions", "Never ever do that.", 4)]
    listed = [Decision(decision="We use sqlite instead of files."), Decision(decision="Ask first")]
    words = Words.of(listed)
    assert loss.account(sentences, words, listed, [Decision(decision="ask  First")]) == (
        Loss("decisions", 1, 2, 1, "4"),
    )


def counted(events: list[Event]) -> dict[str, int]:
    """By this test's own eyes: what people and the agent said."""
    return {
        "requests": sum(e.kind == "user" and bool(e.text.strip()) for e in events),  # reasons of a refusal among them
        "statements": sum(e.kind == "assistant" and bool(e.text.strip()) for e in events),
    }


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the sessions lie beside the checkout of those who have them")
@pytest.mark.parametrize("packed", sorted(DATA.glob("*.jsonl.gz")), ids=lambda path: path.name[:5])
def test_the_counts_of_a_real_session_add_up_to_what_is_in_it(packed: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    report = ralf.checkpoint("real", path, root=tmp_path)
    events = list(open_transcript(path).events())
    total: Counter[str] = Counter()
    for one in report.losses:
        for part in one.losses:
            total[part.kind] += part.total
    for kind, count in counted(events).items():
        assert total[kind] == count, kind
    assert (report.kept, report.merged, report.dropped) == tuple(
        sum(getattr(part, name) for one in report.losses for part in one.losses)
        for name in ("kept", "merged", "dropped")
    )


def test_each_checkpoint_has_a_report_and_its_figures_are_those_of_the_file(project: Path) -> None:
    reports = loss_reports("tide", root=project)
    entries = ralf.get_context("tide", root=project).checkpoints
    assert [(one.checkpoint_id, one.kept, one.dropped, one.recall) for one in reports] == [
        (entry.checkpoint_id, entry.kept, entry.dropped, entry.recall) for entry in entries
    ]
    assert all(one.evidence and one.tokens > one.tokens_stored > 0 for one in reports)
    assert [one.lines for one in reports] == [entry.lines for entry in entries]
    assert loss_reports("tide", at="2", root=project) == reports[1:]


def test_what_was_dropped_is_found_by_search_at_the_lines_that_are_named(tmp_path: Path) -> None:
    session = Path(__file__).parents[1] / "examples" / "session.jsonl"
    said = {
        event.start.line + 1: event.text for event in open_transcript(session).events() if event.kind == "assistant"
    }
    report = ralf.checkpoint("long", session, root=tmp_path)
    lines = [part.lines for one in report.losses for part in one.losses if part.kind == "statements" and part.dropped]
    first = int(lines[0].split(", ")[0].split("-")[0])
    hits = ralf.search(said[first], route="long", root=tmp_path)
    assert any(f" lines {first}-" in hit.source and said[first] in hit.text for hit in hits)


def test_the_call_that_wrote_the_checkpoints_reports_the_same(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 6_000)
    report = ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path)
    assert list(report.losses) == loss_reports("tide", root=tmp_path)


def test_a_record_of_an_earlier_version_has_an_empty_report(project: Path) -> None:
    from ralf import project as projects

    payload = records_of(project, "tide")[0]["payload"]
    for key in ("loss", "recall", "recall_with_search", "added", "refused"):
        del payload[key]
    report = loss.report(projects.find(project), "tide", "cp-001", payload)
    assert (report.losses, report.recall, report.kept) == ((), None, 0)


def test_the_command_prints_a_table_whose_last_row_is_the_sum(cli: Cli) -> None:
    ran = cli("context", "show", "tide", "--loss", "--at", "cp-001")
    rows = [line.split() for line in ran.lines]
    start = next(n for n, row in enumerate(rows) if row[:2] == ["KIND", "SEEN"])
    end = next(n for n, row in enumerate(rows) if row[:1] == ["all"])
    figures = [[int(cell) for cell in row if cell.isdecimal()][:4] for row in rows[start + 1 : end + 1]]
    assert [sum(column) for column in zip(*figures[:-1], strict=True)] == figures[-1]
    assert all(seen == kept + merged + dropped for seen, kept, merged, dropped in figures)
    assert all(len(line) <= 120 for line in ran.lines)
    assert "recall 1.00 in the file, 1.00 with search" in ran.out
    assert "cp-002" not in ran.out


def test_the_command_gives_the_same_as_json(cli: Cli) -> None:
    first, second = cli("context", "show", "tide", "--loss", "--json").json()
    assert (first["checkpoint_id"], second["checkpoint_id"]) == ("cp-001", "cp-002")
    for part in first["losses"]:
        assert part["total"] == part["kept"] + part["merged"] + part["dropped"]
    assert first["kept"] == sum(part["kept"] for part in first["losses"])


def test_the_report_of_the_checkpoint_command_holds_the_losses(cli: Cli, project: Path) -> None:
    session = project / "session.jsonl"
    made = cli("context", "checkpoint", "again", "--again", "--transcript", session, "--json").json()
    assert [one["checkpoint_id"] for one in made["losses"]] == ["cp-001"]
    assert (made["kept"], made["merged"], made["dropped"]) == tuple(
        sum(one[name] for one in made["losses"]) for name in ("kept", "merged", "dropped")
    )


def test_after_pruning_the_report_says_that_the_words_are_gone(cli: Cli, project: Path) -> None:
    shutil.rmtree(context_of(project) / "blobs")
    assert "its evidence was pruned" in cli("context", "show", "tide", "--loss").out


def test_a_route_or_checkpoint_that_is_not_there_is_said(cli: Cli, project: Path) -> None:
    cli("context", "show", "tide", "--loss", "--at", "cp-9").complains(3, "tide", "no checkpoint cp-9")
    cli("context", "show", "tid", "--loss").complains(3, "tid", "tide")
    with pytest.raises(NotFound):
        loss_reports("tide", at="cp-9", root=project)
    with pytest.raises(RouteNotFound):
        loss_reports("nonesuch", root=project)


def test_every_kind_that_is_read_is_one_that_is_reported() -> None:
    from segments_made import talk

    assert {item.kind for item in recall.seen(talk(1))} <= set(KINDS)
