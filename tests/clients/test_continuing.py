"""A few of the scenarios of `continuing`; all of them are one command."""

from __future__ import annotations

import continuing
import pytest
from offline import World, why_not

pytestmark = [pytest.mark.release(seconds=12), pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("claude-code", "greetings around it"),
        ("claude-code", "its name, in German"),
        ("codex", "killed in a folder below"),
        ("codex", "in a language that nobody here reads"),
        *(
            pytest.param(name, "killed", marks=pytest.mark.skipif(bool(why_not(name)), reason=why_not(name) or "-"))
            for name in ("gemini", "opencode")
        ),
    ],
)
def test_the_next_session_goes_on_with_the_right_work(world: World, client: str, name: str) -> None:
    assert continuing.wrong(world, client, name) == []
