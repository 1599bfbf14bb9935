"""A decision takes another's place where both are about the same thing and choose otherwise, and nowhere else."""

from __future__ import annotations

import pytest
from tests import labelled, pairs
from tests.pairs import Pair

from ralf.summarize.opposing import opposes


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Use Postgres for the ledger.", "Use SQLite for the ledger."),
        ("Retry 3 times.", "Retry 5 times."),
        ("Max line length is 100.", "Line length is 120."),
        ("Log at info level.", "Log level is debug."),
        ("Keep the legacy endpoint.", "Remove the legacy endpoint."),
        ("Set the log level to debug.", "The log level is warning."),
        ("Store avatars in the users table.", "Avatars go to object storage, the table only has the key."),
        ("Name the package `fjord`.", "Rename the package to `inlet`."),
        (
            "I'll use a mutex around the map.",
            "The mutex around the map is contended, so I'm replacing it with a RwLock.",
        ),
        ("Use exceptions in the parser.", "The parser returns a Result type, no exceptions."),
        ("No exceptions in the parser.", "The parser raises exceptions from here on."),
        ("Never amend commits.", "It's fine to amend as long as the commit isn't pushed."),
        ("Ask me before each deploy to staging.", "You can deploy to staging on your own."),
        ("Do the lexer before the printer.", "Do the printer before the lexer."),
        ("Run the preview on port 8080.", "actually use 8081, 8080 is taken"),
        ("Wir nehmen Postgres für die Rechnungen.", "Die Rechnungen kommen doch in SQLite."),
    ],
)
def test_another_choice_on_the_same_subject_opposes(old: str, new: str) -> None:
    assert opposes(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Look at part 22. We use WAL mode.", "Look at part 31. We drop the in-memory cache."),
        ("Carry part 0 over to the new reader.", "Carry part 12 over to the new reader."),
        ("Use Postgres for the ledger.", "Use SQLite for the test fixtures."),
        ("Use Redis for the cart.", "Redis is also the queue of the cart."),
        ("Use Redis for the cart.", "Redis runs with persistence, losing a cart is not ok."),
        ("Sessions expire after 30 minutes.", "Reset links expire after 2 hours."),
        ("Staging gets 2 replicas.", "Production gets 5 replicas."),
        ("Use a pool of 10 for downloads.", "Use a pool of 3 for uploads."),
        ("Rename `Foo` to `Bar`.", "Rename `load` to `read`."),
        ("The thumbnail export runs on RocksDB.", "The thumbnail queue moves from Redis to Kafka."),
        (
            "For the inventory archive we use msgpack.",
            "Dropping Avro; the geocoding archive goes with protobuf from now on.",
        ),
        ("The backend is tested with pytest.", "Frontend tests run with Vitest, so I dropped Jest."),
        ("All secrets come from Vault.", "Pods get their Vault token through a sidecar."),
        ("Never amend commits.", "Never push to the release branch."),
        ("Drop the legacy importer.", "Drop support for Python 3.7 in CI."),
        ("Stop using sleep in `test_sync.py`.", "Use a fake clock in `test_sync.py`."),
        ("Die Tests laufen mit pytest.", "Das MIT-Modul läuft mit Vue."),
        ("Use Postgres for the ledger.", "Should we use SQLite for the ledger?"),
    ],
)
def test_another_subject_an_addition_or_a_question_opposes_nothing(old: str, new: str) -> None:
    assert not opposes(new, old)


def test_a_long_text_speaks_of_more_than_its_choice() -> None:
    assert not opposes(
        f"Use SQLite for the ledger {'and then some more words of the matter ' * 5}.", "Postgres: ledger."
    )


@pytest.mark.parametrize(("name", "found"), [("dev", 26), ("author1", 26), ("author2", 24), ("author3", 14)])
def test_of_the_labelled_pairs_as_many_are_found_as_were_and_at_most_one_is_false(name: str, found: int) -> None:
    read = pairs.read(labelled.LABELS / f"pairs.{name}.jsonl")
    decided = pairs.Figures.of((pair, pair.links()) for pair in read)
    assert decided.found >= found
    assert decided.false <= 1
    assert pairs.Figures.of((pair, pair.links_said()) for pair in read).false <= 1


def test_the_more_decisions_stand_open_the_surer_one_must_be() -> None:
    read = pairs.read(labelled.LABELS / "pairs.author1.jsonl")
    few, many = ({pair for pair in read if opposes(pair.second, pair.first, among)} for among in (1, 100))
    assert many < few


def test_the_measure_tells_a_link_from_none() -> None:
    assert Pair("Use Postgres for the ledger.", "Use SQLite for the ledger.", supersedes=True).links_said()
    assert not Pair("Use Postgres for the ledger.", "The ledger has a total.", supersedes=False).links()
