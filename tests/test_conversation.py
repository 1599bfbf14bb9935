"""A conversation is kept within its budget, what is cut becomes a checkpoint, and large results come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ralf.conversation.messages import groups
from ralf.conversation.results import restore, store_results
from ralf.conversation.summary import summarize
from ralf.errors import NotFound

SYSTEM = {"role": "system", "content": "You mend the server."}


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def turn(number: int, size: int = 50) -> list[dict[str, Any]]:
    """A call of a tool and its result."""
    call = {
        "type": "tool_use",
        "id": f"t{number}",
        "name": "Bash",
        "input": {"command": f"pytest tests/test_{number}.py"},
    }
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} passed " * size}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def long(turns: int = 30) -> list[dict[str, Any]]:
    return [SYSTEM, said("user", "Make the tests pass."), *(one for n in range(turns) for one in turn(n))]


@pytest.mark.ci
def test_a_secret_in_what_is_cut_reaches_no_file(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    summarize([SYSTEM, said("user", f"Use {secret} to log in."), *long()[1:]], 1_000, "auth", root=tmp_path)
    held = [path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert held == []


def test_a_checkpoint_that_fails_cuts_all_the_same_and_says_why(tmp_path: Path) -> None:
    (tmp_path / ".autonomous").write_text("in the way", encoding="utf-8")
    made = summarize(long(), 2_000, "auth", root=tmp_path)
    assert made.report is None
    assert made.warning
    assert made.messages[-1] == long()[-1]


# ---- large results ----


class Kept:
    """Keeps results in memory, as a run does in its store."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def external(self, key: str, blob: bytes) -> str:
        """See `ralf.conversation.results.Results`."""
        self.blobs[key] = blob
        return f"[Result stored at nightly/{key}, {len(blob)} bytes]"

    def fetch(self, key: str) -> bytes:
        """See `ralf.conversation.results.Results`."""
        name = key.removeprefix("[Result stored at nightly/").partition(",")[0]
        if name not in self.blobs:
            raise NotFound(key, "no such result")
        return self.blobs[name]


_LINE = "[Result stored at nightly/result-0123456789abcdef, 9 bytes]"


def test_a_result_that_only_looks_like_a_reference_comes_back_as_it_was() -> None:
    kept = Kept()
    lines = (_LINE, "[Result stored at other/b, 9 bytes]", "[Result stored at nightly/../b, 9 bytes]", f"{_LINE} ")
    messages = [{"role": "tool", "tool_call_id": f"{place}", "content": line} for place, line in enumerate(lines)]
    stored = store_results(messages, kept)
    assert restore(stored, kept) == messages
    assert store_results(stored, kept) == stored
    assert len(kept.blobs) == 1


# ---- what no one should hand over ----


@pytest.mark.ci
def test_a_message_that_json_cannot_hold_is_cut_and_summed_up_as_one_that_was_there(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    messages: list[Any] = [
        {"role": "user", "content": "Mend the pump. " * 900},
        {"role": "user", "content": deep},
        {"role": "assistant", "content": {("a", "b"): 1}},
        {"role": "user", "content": "What is next?"},
    ]
    made = summarize(messages, 600, "r", root=tmp_path)
    assert (made.warning, 1 in made.truncation.cut, 2 in made.truncation.cut) == ("", True, True)
    assert made.report is not None


def test_calls_and_results_of_other_types_and_what_was_thought_before_them_stay_together() -> None:
    pairs = (
        ({"type": "custom_tool_call", "call_id": "a"}, {"type": "custom_tool_call_output", "call_id": "a"}),
        ({"type": "computer_call", "call_id": "b", "id": "cu"}, {"type": "computer_call_output", "call_id": "b"}),
        ({"type": "local_shell_call", "call_id": "c", "id": "l"}, {"type": "local_shell_call_output", "id": "c"}),
        (
            {"role": "assistant", "content": [{"type": "mcp_tool_use", "id": "d"}]},
            {"role": "user", "content": [{"type": "mcp_tool_result", "tool_use_id": "d", "content": "x"}]},
        ),
    )
    for call, result in pairs:
        assert groups([call, {"role": "user", "content": "x"}, result]) == [[0, 2], [1]]
    thought = {"type": "reasoning", "id": "r", "summary": []}
    call, result = pairs[0]
    assert groups([thought, thought, call, result]) == [[0, 1, 2, 3]]
