"""Probes: what a checkpoint loses of its own segment shows, is put back, or is refused."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import ralf
from ralf.model import ActiveWork, Facts
from ralf.proof import loss, recall as recalling
from ralf.proof.recall import Item, Recall, Words
from ralf.summarize import Segment, Summary
from ralf.summarize.extractive import Extractive
from ralf.transcripts.events import EvidenceLine
from segments_made import Talk, segment, talk
from storekit import records_of, route_file, write_session


def kinds_of(found: list[Item]) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for item in found:
        kinds.setdefault(item.kind, []).append(item.text)
    return kinds


# ---- what a segment holds ----


def test_files_commands_errors_tests_and_commits_are_read_from_calls_and_results() -> None:
    made = Talk()
    made.use("Read", {"file_path": "/srv/made/src/a.py"}, "text")
    made.use("Edit", {"file_path": "/etc/hosts", "old_string": "a"}, "no such text", failed=True)
    made.use("Bash", {"command": "pytest -q"}, "E   boom\n2 failed, 3 passed in 1s", failed=True)
    made.use("Bash", {"command": "git commit -m x"}, "[main 1a2b3c4] x")
    made.use("apply_patch", {"input": "*** Begin Patch\n*** Update File: lib/b.rs\n*** End Patch"}, "Done")
    made.use("Grep", {"pattern": "x", "path": "/srv/made/src"}, "none")
    assert kinds_of(recalling.seen(made.events)) == {
        "paths": ["src/a.py", "lib/b.rs"],
        "errors": ["no such text", "E   boom\n2 failed, 3 passed in 1s"],
        "failed commands": ["pytest -q"],
        "commands": ["git commit -m x"],
        "tests": ["2 failed\n3 passed"],
        "commits": ["1a2b3c4"],
    }


def test_of_the_to_do_list_counts_what_stands_in_it_at_the_end() -> None:
    made = Talk()
    made.use("TodoWrite", {"todos": [{"content": "old", "status": "pending"}]}, "ok")
    made.use("update_plan", {"plan": [{"step": "new", "status": "pending"}]}, "ok")
    made.use("TaskCreate", {"subject": "added", "description": "more"}, "Task #2 created")
    assert kinds_of(recalling.seen(made.events))["to-dos"] == ["new", "added"]


def test_numbers_and_names_count_when_two_events_hold_them() -> None:
    made = Talk()
    made.say("assistant", "Port 8443 and `read_once`, build 1a2b345; `only_here` and 777.")
    made.say("user", "Why 8443? And `read_once`? I see 1a2b345.")
    kinds = kinds_of(recalling.seen(made.events))
    assert (kinds["numbers"], kinds["names"]) == (["1a2b345", "8443"], ["read_once"])


def test_a_sentence_that_chooses_or_rules_is_a_decision_and_a_question_is_none() -> None:
    made = Talk()
    made.say("assistant", "I looked. We use sqlite instead of postgres for the queue. Use redis instead of that?")
    made.say("user", "Fine. Never push to the main branch without asking me.")
    assert kinds_of(recalling.seen(made.events))["decisions"] == [
        "We use sqlite instead of postgres for the queue.",
        "Never push to the main branch without asking me.",
    ]


def test_what_a_person_says_in_declining_a_call_is_a_request() -> None:
    made = Talk()
    made.say("call", "rm -rf /", tool="Bash", input={"command": "rm -rf /"}, call_id="1")
    made.say("result", "Declined. The user said:\nnot like that, please", call_id="1", refused=True, failed=True)
    made.say("user", "not like that, please", call_id="1")
    assert kinds_of(recalling.seen(made.events)) == {"requests": ["not like that, please"]}


def test_lines_of_evidence_tell_what_was_said_and_which_files_were_named() -> None:
    lines = [
        EvidenceLine(1, 1, "user", "", "Please look at it."),
        EvidenceLine(2, 2, "call", "Read", "src/a.py"),
        EvidenceLine(3, 3, "call", "Bash", "pytest -q"),
        EvidenceLine(4, 4, "result", "Bash", "1 failed"),
    ]
    assert kinds_of(recalling.seen(lines)) == {"requests": ["Please look at it."], "paths": ["src/a.py"]}


# ---- looking things up ----


@pytest.mark.parametrize(
    ("kind", "text", "words", "given"),
    [
        ("paths", "src/a.py", "edited: src/a.py, then more", True),
        ("paths", "src/a.py", "edited: /srv/made/src/a.py", True),
        ("paths", "a.py", "edited: data.py", False),
        ("numbers", "844", "port 8443", False),
        ("numbers", "8443", "port 8443.", True),
        ("requests", "Please  do\nthis " + "and that " * 20, "Please do this " + "and that " * 9, True),
        ("requests", "Please do this", "Please do that", False),
        ("decisions", "We use sqlite for the waiting jobs", "for waiting jobs, we will use sqlite", True),
        ("decisions", "We use sqlite for the waiting jobs", "We use\nsqlite\nfor waiting\njobs", False),
        ("decisions", "We use sqlite for the waiting jobs", "We use redis for something", False),
        ("statements", "Short. The root cause was a stale lock file.", "The root cause was a stale lock file", True),
        ("statements", "I look at the tests now, one by one.", "The root cause was a stale lock file", False),
        ("errors", "noise\nE   ValueError: bad\nnoise", "E ValueError: bad", True),
        ("errors", "noise\nE   ValueError: bad", "no error", False),
        ("tests", "2 failed\n3 passed", "2 failed, 3 passed in 1s", True),
        ("failed commands", "pytest -q", "pytest -q (failed)", True),
        ("to-dos", "Write it", "Wrote it", False),
    ],
)
def test_an_item_is_given_back_where_its_words_stand(kind: str, text: str, words: str, given: bool) -> None:
    assert Words(words).give_back(Item(kind, text, 1)) is given


def test_recall_counts_distinct_items_and_is_never_rounded_up_to_one() -> None:
    found = [Item("numbers", str(1000 + number), 1) for number in range(300)]
    words = " ".join(item.text for item in found[:-1])
    recall = recalling.measure([*found, found[0]], words)
    assert (recall.asked, recall.found, recall.share) == ({"numbers": 300}, {"numbers": 299}, 0.99)
    assert recall.missing == (found[-1],)
    assert recalling.measure([], "words").share is None


def test_events_and_the_lines_of_their_evidence_can_be_measured_as_they_are() -> None:
    made = Talk()
    made.say("user", "Please look at the reader.")
    lines = [EvidenceLine(1, 1, "user", "", "Please look at the reader.")]
    for of in (made.events, lines):
        assert recalling.measure(of, "Please look at the reader.").share == 1.0
        assert recalling.measure(of, "something else").share == 0.0


# ---- what is missing is put back ----


class _Forgetful:
    """The embedded summariser, on facts from which something was lost."""

    name = "extractive"

    def summarize(self, segment: Segment) -> Summary:
        return replace(Extractive().summarize(segment), text="- nothing", active_work=ActiveWork())


def test_what_the_extractor_loses_shows_and_is_put_into_the_section() -> None:
    events = talk(1)
    lost = replace(segment(events), facts=Facts())
    seen = recalling.seen(events)
    assert (recalling.measure(seen, Words.of(lost.facts, _Forgetful().summarize(lost).text)).share or 0) < 0.5
    proved = loss.summed_up(lost, _Forgetful(), seen)
    wanted = {item.text for item in seen if item.kind == "paths"}
    assert {name for name in wanted if name in proved.summary.text} == wanted
    assert proved.added.keys() >= {"requests", "to-dos", "paths", "failed commands"}
    assert all(proved.recall.found[kind] == proved.recall.asked[kind] for kind in loss.CERTAIN)
    assert all(line.startswith("- **") for line in proved.summary.text.splitlines()[1:])


def test_where_nothing_is_missing_nothing_is_added() -> None:
    made = Talk()
    made.say("user", "Please look at the reader once more.")
    proved = loss.summed_up(segment(made.events), Extractive(), recalling.seen(made.events))
    assert (proved.added, proved.recall.share, proved.refused) == ({}, 1.0, "")


# ---- what loses too much is refused ----


def _halved(summary: Summary, draw: random.Random) -> Summary:
    lines = summary.text.splitlines()
    work = replace(summary.active_work, todos=summary.active_work.todos[::2], next_steps=(), last_statement="")
    kept = "\n".join(sorted(draw.sample(lines, len(lines) // 2), key=lines.index))
    return replace(summary, text=kept, decisions=summary.decisions[::2], active_work=work, key_events=())


def _everywhere(pattern: str, with_: str) -> Callable[[Summary, random.Random], Summary]:
    def change(text: str) -> str:
        return re.sub(pattern, with_, text)

    def lossy(summary: Summary, _: random.Random) -> Summary:
        work = summary.active_work
        return Summary(
            change(summary.title),
            change(summary.text),
            tuple(replace(d, decision=change(d.decision), rationale=change(d.rationale)) for d in summary.decisions),
            replace(work, last_statement="", last_request="", findings=(), next_steps=()),
        )

    return lossy


LOSSY: dict[str, Callable[[Summary, random.Random], Summary]] = {
    "empty": lambda summary, _: Summary("Work", "- Done."),
    "praise": lambda s, _: Summary("Great progress", "- Everything went well.", active_work=s.active_work),
    "no decisions": lambda s, _: replace(s, decisions=()),
    "half of the decisions": lambda s, _: replace(s, decisions=s.decisions[::2]),
    "vague decisions": lambda s, _: replace(
        s, decisions=tuple(replace(d, decision="We chose the better way", rationale="") for d in s.decisions)
    ),
    "no to-dos": lambda s, _: replace(s, active_work=replace(s.active_work, todos=(), next_steps=())),
    "a tenth": lambda s, _: Summary(s.title, s.text[: len(s.text) // 10], s.decisions[:1], ActiveWork()),
    "names paraphrased": _everywhere(r"`[^`]*`", "that thing"),
    "numbers rounded": _everywhere(r"\d", "0"),
    "half of everything": _halved,
}


@cache
def summarized(seed: int) -> tuple[Summary, list[Item]]:
    """What the embedded summariser makes of a made segment, and what the segment holds."""
    given = segment(talk(seed))
    return Extractive().summarize(given), recalling.seen(given.events)


class _Other:
    name = "other"

    def __init__(self, change: Callable[[Summary], Summary]) -> None:
        self._change = change

    def summarize(self, segment: Segment) -> Summary:
        return self._change(Extractive().summarize(segment))


@pytest.mark.parametrize("way", LOSSY)
def test_a_summary_that_loses_is_refused_every_time(way: str) -> None:
    """Ten ways of losing, ten segments each: a hundred of a hundred."""
    for seed in range(10):
        draw = random.Random(seed)  # noqa: S311
        own, seen = summarized(seed)
        assert loss.refusal(own, LOSSY[way](own, draw), seen).startswith("gives back "), (way, seed)
        assert loss.refusal(own, own, seen) == ""


def test_where_a_summary_is_refused_the_embedded_one_stands() -> None:
    given = segment(talk(1))
    other = _Other(lambda summary: replace(summary, decisions=()))
    proved = loss.summed_up(given, other, recalling.seen(given.events))
    assert proved.refused.startswith("other: gives back 0 of the 6 decisions")
    assert proved.summary.decisions == Extractive().summarize(given).decisions != ()


def _retold(summary: Summary) -> Summary:
    """As a good model would: other words around the same decisions, names and numbers, and one decision more."""
    names = sorted(set(re.findall(r"`[^`]*`|\d{3,}", summary.text)))
    more = replace(summary.decisions[0], decision="Keep the old file format")
    text = f"- In this stretch the work went through {', '.join(names)}."
    return replace(summary, text=text, decisions=(*summary.decisions, more))


def test_a_summary_in_other_words_that_loses_nothing_is_accepted() -> None:
    for seed in range(20):
        own, seen = summarized(seed)
        assert loss.refusal(own, _retold(own), seen) == "", seed
    given = segment(talk(1))
    proved = loss.summed_up(given, _Other(_retold), recalling.seen(given.events))
    assert (proved.refused, proved.summary.decisions[-1].decision) == ("", "Keep the old file format")


def test_without_floors_the_lossy_would_get_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalling, "FLOORS", {})
    given = segment(talk(1))
    lossy = _Other(lambda summary: Summary("Work", "- Done."))
    assert loss.summed_up(given, lossy, recalling.seen(given.events)).refused == ""


def test_refuse_names_the_kind_that_suffers() -> None:
    def recall(**found: int) -> Recall:
        return Recall(found, found, ())

    assert recalling.refuse(recall(decisions=4, names=9), recall(decisions=3, names=9)) == ""
    assert recalling.refuse(recall(decisions=4), recall(decisions=2)).startswith("gives back 2 of the 4 decisions")
    assert recalling.refuse(recall(), recall(decisions=2)) == ""


# ---- in a checkpoint ----


class _Empty:
    name = "hasty"

    def summarize(self, segment: Segment) -> Summary:
        return Summary("Work", "- Done.")


def test_a_checkpoint_whose_summary_is_refused_is_the_embedded_one_with_the_reason(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 3_000)
    report = ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path, summarizer=_Empty())
    plain = ralf.checkpoint("plain", tmp_path / "session.jsonl", root=tmp_path)
    assert report.checkpoints[0].summarizer == "extractive"
    assert any("cp-001: refused the work of hasty: gives back 0 of the" in warning for warning in report.warnings)
    (refused,), (kept,) = ([record["payload"] for record in records_of(tmp_path, route)] for route in ("tide", "plain"))
    assert refused["refused"].startswith("hasty: ")
    assert refused | {"refused": ""} == kept
    assert plain.warnings == ()


def test_the_recall_stands_in_the_record_and_in_the_file(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 6_000)
    report = ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path)
    payload = records_of(tmp_path, "tide")[0]["payload"]
    assert report.checkpoints[0].recall == payload["recall"] > 0.9
    assert f"recall: {payload['recall']}" in route_file(tmp_path, "tide").read_text(encoding="utf-8")
    assert payload["recall_with_search"] == 1.0


def test_what_only_search_gives_back_is_looked_up_in_the_evidence_that_was_written(tmp_path: Path) -> None:
    """With an evidence blob that lacks the words the figure falls: it is no foregone conclusion."""
    from ralf.storage.filestore import FileStore
    from ralf.transcripts.events import keep_evidence

    store, events = FileStore(tmp_path), talk(3)
    recall = recalling.measure(recalling.seen(events), "")
    whole = keep_evidence(store, events)
    part = keep_evidence(store, [event for event in events if event.kind != "user"])
    assert loss.with_search(store, whole, recall) == 1.0
    assert (loss.with_search(store, part, recall) or 0) < 1.0


def test_a_segment_without_anything_to_ask_for_has_no_recall(tmp_path: Path) -> None:
    made = Talk()
    made.say("assistant", "Hello.")
    proved = loss.summed_up(segment(made.events), Extractive(), recalling.seen(made.events))
    assert proved.recall.share is None


def test_the_probe_takes_hostile_text_in_its_stride() -> None:
    """Long words, long lines and many sentences cost no more than their length."""
    texts = ["a" * 300_000, "1" * 300_000, ". " * 100_000, "`" * 100_000, "always " * 40_000, "\n" * 100_000]
    made = Talk()
    for text in texts:
        made.say("assistant", text)
        made.say("user", text)
    recalling.measure(made.events, "\n".join(texts))
