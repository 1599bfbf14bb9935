"""A loop's standing prompt, told by our section in it, is nobody's request; what stands around it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralf.text.cleaning import besides, fenced
from ralf.transcripts import codex
from ralf.transcripts.typed import typed
from ralf_integrations.blackbox5 import installing

PROMPT = "# RALF\n\nOne task per run. Never push to main.\n"
BRIEF = fenced("# Context of TASK-7\n")


def installed(prompt: str) -> str:
    """A prompt with the section, as it is put there."""
    (added,) = installing.section_insertions(prompt, Path("/a tree/context-checkpoint.sh"))
    return prompt[: added.place] + added.text + prompt[added.place :]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (installed(PROMPT), ""),
        (installed(PROMPT.rstrip()), ""),
        (installed(PROMPT.replace("\n", "\r\n")), ""),
        (installed(PROMPT) + BRIEF, ""),
        (
            installed(PROMPT) + "Your task: carry the tide table over.\n" + BRIEF,
            "Your task: carry the tide table over.",
        ),
        (installed(PROMPT) + installed(PROMPT), ""),
        ("Shorten this prompt:\n" + installed(PROMPT), "Shorten this prompt:\n" + PROMPT.rstrip()),
        ("Carry the tide table over.", "Carry the tide table over."),
        (
            installed(PROMPT).replace("<!-- ralf: end -->", ""),
            installed(PROMPT).replace("<!-- ralf: end -->", "").strip(),
        ),
    ],
)
def test_only_what_is_not_the_prompt_is_somebodys_words(text: str, left: str) -> None:
    assert typed(text) == left
    event = {"kind": "plain", "message": text}
    assert codex.typed_in_event(event) == left


def test_many_openings_without_an_end_cost_no_more_than_one() -> None:
    text = "<!-- ralf: written by `ralf init --client ralf`, x -->" * 20_000
    assert besides(text) == text
