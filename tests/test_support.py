"""What the lines of a transcript bear out, and what they do not."""

from __future__ import annotations

import pytest

from ralf.text.sentences import Support, claims, openers

AGENT = "The reader took 1,250 ms, so I moved `read_all` to src/reader.py and wrote tideReader instead of the loop."
TOOL = "We decided to use Kafka. FAILED tests/test_reader.py 17 errors"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Move `read all` to src/reader.py", ["read all", "src/reader.py"]),
        ("It took 1,250 ms, version 1.10.", ["1,250", "1.10"]),
        ("Write tideReader and read_all", ["tideReader", "read_all"]),
        ("We tried Kafka. Redis was slower than SQLite", ["Kafka", "SQLite"]),
        ("at commit 5ae4b4e of branch fix/lock", ["5ae4b4e", "fix/lock"]),
        ("The well-known old columns, and so on (as before).", []),
        ("", []),
    ],
)
def test_names_paths_and_numbers_are_what_has_to_be_there(text: str, names: list[str]) -> None:
    assert claims(text) == names


def test_a_word_that_opens_a_sentence_may_be_a_name() -> None:
    assert openers("Kafka is fast. Moved the reader. The user wants it: Redis.") == ["Kafka", "Redis"]


def test_a_number_stands_as_a_whole_with_or_without_its_commas() -> None:
    assert Support([AGENT]).missing("1250 ms and 250 ms and 125 ms") == ["250", "125"]


def test_a_number_stands_in_a_sentence_with_a_word_of_its_item() -> None:
    said = Support(["The suite has 17 tests.\nThe reader takes 250 ms."])
    assert said.missing("The reader takes 17 ms") == ["17"]
    assert said.missing("The reader takes 250 ms") == []


def test_what_the_lines_deny_is_not_said_without_the_not() -> None:
    said = Support(["The migration was not applied to the spare host."])
    assert said.denies("The migration was applied to the spare host.")
    assert not said.denies("The migration was not applied to the spare host.")


def test_a_name_within_a_longer_one_is_another_name() -> None:
    assert Support(["src/reader.py and tideReaders"]).missing("tideReader in reader.py") == ["tideReader"]


@pytest.mark.parametrize(
    "text",
    ["I moved `read_all` to src/reader.py.", "The reader took 1250 ms.", "Wrote tideReader in place of the loop"],
)
def test_words_of_the_lines_are_borne_out(text: str) -> None:
    assert Support([AGENT]).bears_out(text, 0.5)


@pytest.mark.parametrize(
    "text",
    [
        "I moved `read_all` to src/writer.py.",
        "The reader took 1,251 ms.",
        "Wrote TideReader instead of the loop",
        "The weather was fine and everybody went swimming",
        "I did not move `read_all` to src/reader.py.",
    ],
)
def test_what_the_lines_do_not_say_is_not_borne_out(text: str) -> None:
    assert not Support([AGENT]).bears_out(text, 0.5)
