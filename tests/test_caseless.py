"""Patterns that are blind to case: as `re.IGNORECASE` finds it, to the character, and none of it searched in vain."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import storekit
from ralf import facts, summarize
from ralf.text import matcher
from ralf.text.matcher import AnyOf


def _patterns() -> dict[str, AnyOf]:
    """Every pattern of the summarizers and of what is taken out of events, by its name."""
    packages = (summarize, facts)
    names = [f"{one.__name__}.{each.name}" for one in packages for each in pkgutil.iter_modules(one.__path__)]
    modules = [matcher, *map(importlib.import_module, names)]
    return {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, AnyOf)
    }


def _texts() -> list[str]:
    plain = (storekit.SOURCE / "docs" / "transcripts.md").read_text(encoding="utf-8").split("\n\n")[:20]
    said = [
        "We decided to keep WAL mode; never write to X, and the [^.] DID win.",
        "Don\u2019t touch it \u2014 \u00c9t\u00e9 ou jamais, STETS und f\u00fcr immer.",
        "AL\u0130 \u017fhould never a\u0131ways u\u017fe \u212a8s instead of it.",
    ]
    return [form for text in [*plain, *said] for form in (text, text.upper(), text.title())]


def test_every_pattern_finds_what_it_finds_by_the_engine_s_own_blindness_to_case() -> None:
    patterns, texts = _patterns(), _texts()
    assert len(patterns) > 60
    for name, pattern in patterns.items():
        plain = re.compile(matcher._joined(pattern._branches), re.IGNORECASE)
        for text in texts:
            wanted = plain.search(text)
            found = pattern.search(text)
            assert (found and found.span()) == (wanted and wanted.span()), (name, text)
            assert pattern(text) is (wanted is not None)


def test_branches_that_speak_of_capitals_and_those_that_do_not_are_one_pattern() -> None:
    pattern = AnyOf(r"\btide\b", r"\b[Tt]he (?-i:DID)\b")
    assert [found.span() for found in pattern.finditer("Tide, the DID, TIDE, THE did")] == [(0, 4), (6, 13), (15, 19)]
    assert pattern.findall("TIDE the DID") == ["TIDE", "the DID"]
    assert pattern.sub("x", "no TIDE") == "no x"
    assert pattern.match("a tide") is None
    assert pattern.fullmatch("TIDE") is not None


@pytest.mark.parametrize("text", ["A\u017fk", "a\u0131so I\u0130s", "\u212aeep", "\u1e9e ask"])
def test_letters_whose_lower_case_is_another_one_are_found_as_before(text: str) -> None:
    pattern = AnyOf(r"\b(?:ask|is|keep|also)\b")
    plain = re.compile(r"\b(?:ask|is|keep|also)\b", re.IGNORECASE)
    assert pattern.findall(text) == plain.findall(text)
