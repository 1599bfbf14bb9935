"""Lead-ins say nothing of their own: what follows them is judged, and what they announce."""

from __future__ import annotations

import pytest

from ralf.summarize import messages
from ralf.text.sentences import sentences


@pytest.mark.parametrize(
    "lead",
    ["That settles it.", "My pick:", "Time to commit to something.", "Here is the design we go with.", "So, decided:"],
)
def test_a_lead_in_that_speaks_of_deciding_announces_what_follows(lead: str) -> None:
    announced, rest = messages.without_lead_in(sentences(f"{lead} Harvest records stay in one file."))
    assert (announced, [s.text for s in rest]) == (True, ["Harvest records stay in one file."])


@pytest.mark.parametrize("lead", ["For the books.", "In the end:"])
def test_a_lead_in_without_content_is_left_out(lead: str) -> None:
    announced, rest = messages.without_lead_in(sentences(f"{lead} Harvest records stay in one file."))
    assert (announced, [s.text for s in rest]) == (False, ["Harvest records stay in one file."])


@pytest.mark.parametrize(
    "first",
    [
        "The picker reads `trees.csv` twice.",
        "Root cause:",
        "Three findings.",
        "Post-commit hook changed the index.",
        "Should we?",
    ],
)
def test_what_says_or_reports_something_is_no_lead_in(first: str) -> None:
    said = sentences(f"{first} Harvest records stay in one file.")
    assert messages.without_lead_in(said) == (False, list(said))


@pytest.mark.parametrize(
    ("text", "opens"),
    [
        ("We looked at a second way too: one file a tree.", "rejected"),
        ("The one that lost: a database server.", "rejected"),
        ("What convinced me: a crash loses a line.", "reason"),
        ("Why not more?", "reason"),
        ("In short: it is small.", "more"),
        ("Each orchard writes its own lines, one a picker.", ""),
    ],
)
def test_a_sentence_may_open_the_reason_or_what_was_turned_down(text: str, opens: str) -> None:
    assert messages.lead_in_section(text) == opens
