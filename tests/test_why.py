"""Why: the words behind a claim, with their lines, when nothing but the evidence is left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ralf
from storekit import Listing, context_of, route_file, write_session

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


# ---- checkpoints ----
