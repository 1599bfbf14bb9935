"""What was made of texts before."""

from __future__ import annotations

from ralf.remembered import Remembered


def test_what_is_known_is_not_made_again() -> None:
    made: list[str] = []
    remembered = Remembered(lambda text: made.append(text) or text.upper())  # type: ignore[func-returns-value]
    assert [remembered[text] for text in ("a", "b", "a")] == ["A", "B", "A"]
    assert made == ["a", "b"]


def test_however_many_texts_are_made_a_few_megabytes_are_remembered() -> None:
    remembered = Remembered(str.upper)
    for number in range(4_000):
        text = f"{number:02000}"
        assert remembered[text] == text
    assert sum(map(len, remembered)) < 3_000_000
    for number in range(50_000):
        assert remembered[str(number)] == str(number)
    assert len(remembered) < 5_000
    assert remembered["a" * 3_000] == "A" * 3_000
    assert "a" * 3_000 not in remembered
