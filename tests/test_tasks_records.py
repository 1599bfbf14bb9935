"""The records of tasks: what is written is read, what is not known is kept, and what they come to is pure."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from ralf.errors import DamagedJournal
from ralf.storage.journal import Entry
from ralf.tasks.model import Task
from ralf.tasks.records import (
    Body,
    Change,
    Done,
    Failed,
    Known,
    Lost,
    Progress,
    Record,
    Released,
    Retried,
    Seen,
    Taken,
    encoded,
    fold,
    parsed,
    value_digest,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
IDS = st.sampled_from(["TASK-a", "TASK-b"])
CHANGES = st.lists(
    st.builds(
        Change,
        task=IDS,
        place=TEXT,
        origin=TEXT,
        base=TEXT,
        digest=TEXT,
        values=st.dictionaries(st.sampled_from(["text", "title"]), TEXT),
        before=st.dictionaries(st.sampled_from(["text", "title"]), TEXT),
        foreign=st.booleans(),
    ),
    max_size=2,
).map(tuple)
BODIES: st.SearchStrategy[Body] = st.one_of(
    st.builds(Seen, changes=CHANGES, digests=st.lists(st.tuples(IDS, TEXT), max_size=2).map(tuple)),
    st.builds(Taken, task=IDS, by=TEXT, seconds=st.integers(1, 900), process=st.integers(0, 9), digest=TEXT),
    st.builds(Released, task=IDS, lease=st.integers(0, 20), outcome=st.sampled_from(["released", "limit"]), note=TEXT),
    st.builds(Lost, task=IDS, lease=st.integers(0, 20), note=TEXT),
    st.builds(Progress, task=IDS, lease=st.integers(0, 20), text=TEXT),
    st.builds(Done, task=IDS, lease=st.integers(0, 20), by=TEXT, summary=TEXT, changes=CHANGES),
    st.builds(Failed, task=IDS, lease=st.integers(0, 20), by=TEXT, reason=TEXT, changes=CHANGES),
    st.builds(Retried, task=IDS, changes=CHANGES),
)


class Book:
    """What records come to, in memory."""

    def __init__(self) -> None:
        self.number, self.write = 0, ""
        self.owed: dict[str, None] = {}
        self.known: dict[str, Known] = {}
        self.digests: list[str] = []

    def own(self, digest: str) -> None:  # noqa: D102  # as the port says
        self.digests.append(digest)


def entry(content: bytes, *, foreign: bool = False) -> Entry:
    return Entry("token", "id", content, foreign)


def folded(*bodies: Body) -> Book:
    book = Book()
    fold(
        [
            Record(number, f"2026-11-26T09:00:{number:02}.000Z", f"w{number}", (), one)
            for number, one in enumerate(bodies, 1)
        ],
        book,
    )
    return book


@given(BODIES, st.lists(TEXT, max_size=2), st.lists(TEXT, max_size=2))
def test_a_record_that_is_written_is_read(body: Body, owes: list[str], seen: list[str]) -> None:
    record = Record(7, "2026-11-26T09:00:00.000Z", "w", tuple(owes), body, tuple(seen))
    line = encoded(record)
    assert b"\n" not in line
    assert parsed(entry(line)) == record


@pytest.mark.ci
@given(st.lists(BODIES, max_size=10))
def test_a_claim_has_the_highest_number_of_its_attempts_that_last(bodies: list[Body]) -> None:
    for known in folded(*bodies).known.values():
        open_ = [one.number for one in known.attempts if not one.ended]
        if known.claim is not None:
            assert known.claim.number in open_
            assert known.claim.number == max(open_)


def test_a_record_of_a_later_kind_or_version_is_passed_over_and_counts() -> None:
    book = Book()
    lines = [
        {"v": 1, "n": 1, "at": "", "w": "a", "kind": "new kind", "task": "TASK-a"},
        {"v": 2, "n": 2, "at": "", "w": "b", "kind": "claim", "task": "TASK-a", "by": "later"},
    ]
    found = [parsed(entry(json.dumps(line).encode())) for line in lines]
    fold([record for record in found if record is not None], book)
    assert (book.number, book.known) == (2, {})


@pytest.mark.ci
def test_a_record_that_is_not_this_users_counts_for_nothing_and_one_that_is_none_is_damage() -> None:
    line = encoded(Record(1, "", "a", (), Taken("TASK-a", "them")))
    assert parsed(entry(line, foreign=True)) is None
    for broken in (b"{}", b"[]", b"no json", b'{"v":1,"kind":"claim","n":"x","at":"","w":""}'):
        with pytest.raises(DamagedJournal, match="tasks"):
            parsed(entry(broken))


def test_a_change_is_made_only_to_fields_that_nobody_else_has_changed() -> None:
    before = Task("TASK-a", "A", "text")
    change = Change(
        "TASK-a",
        values={"title": "B", "text": "other", "tags": ["x"]},
        before={name: value_digest(getattr(before, name)) for name in ("title", "text", "tags")},
    )
    assert change.made_to(before) == Task("TASK-a", "B", "other", tags=("x",))
    theirs = Task("TASK-a", "A", "by hand")
    assert change.made_to(theirs) == Task("TASK-a", "B", "by hand", tags=("x",))
