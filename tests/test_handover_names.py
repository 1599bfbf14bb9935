"""What a hand-over names and quotes is held against the record: it marks, and never deletes."""

import pytest

from ralf.model.entries import Message, Said
from ralf.talk.names import Quotes, Shown

RECORD = """\
edited src/tidepool/merge.py; ran `python -m pytest -q tests/test_merge.py`: FAILED
src/tidepool/delta.py:52: NameError: name '_rebase' is not defined
committed 8a668bf "Keep offline changes" for TASK-014, 128,000 rows; readTimeout = 12000
"""


@pytest.mark.parametrize(
    "text",
    [
        "The merge is in src/tidepool/merge.py and `_rebase` is missing.",
        "`pytest tests/test_merge.py` fails at src/tidepool/delta.py:52.",
        "Commit 8a668bf is part of TASK-014.",
        "128.000 Zeilen, readTimeout in `delta.py`",
        "错误在src/tidepool/delta.py里,提交8a668bf。",
        "Read and/or write, 4 of 7 steps, e.g. at 10:15 on 2026-03-09.",
        "`python -m pytest  -q`, `tests/test_merge.py, delta.py`",
        "It is UTF-8 by SHA-256; merged:A..B in MS/FP form.",
    ],
)
def test_a_name_that_the_record_has_is_not_marked(text):
    assert Shown([RECORD]).missing(text) == ()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("The merge is in src/tidepool/merger.py.", "src/tidepool/merger.py"),
        ("It calls rebaseAll() now.", "rebaseAll()"),
        ("Commit 8a669bf holds it.", "8a669bf"),
        ("TASK-015 is next.", "TASK-015"),
        ("128,001 rows.", "128,001"),
        ("见`rebase_all`函数", "rebase_all"),
        ("Run `pytest tests/test_delta.py`.", "pytest tests/test_delta.py"),
        ("Use --no-verify.", "--no-verify"),
    ],
)
def test_a_name_that_the_record_lacks_is_marked(text, missing):
    assert Shown([RECORD]).missing(text) == (missing,)


ENTRIES = [
    Message("m1", line=10, text="Fine, own code then. Don't use tenacity."),
    Said(line=20, text="I cap the pause at 30 s, own code then."),
    Message("m2", line=30, text="No: own code, then tests. 用线程,不要用asyncio。"),
    Message("m3", line=40, text="Обрежь паузу до 30 секунд; el hilo, no asyncio."),
]


def test_words_are_found_by_letters_and_digits_in_the_message_nearest_to_the_line():
    quotes = Quotes(ENTRIES)
    first = quotes.find("fine own code, THEN", 12)
    assert first is not None
    assert (first[1].line, first[0]) == (10, "Fine, own code then")
    nearest = quotes.find("own code then", 28)
    assert nearest is not None
    assert (nearest[1].line, nearest[0]) == (30, "own code, then")
    agents = quotes.find("cap the pause at 30 s", 30)
    assert agents is not None
    assert isinstance(agents[1], Said)
