"""Conversations of an agent that completes tasks one after the other, with items planted in what it does and says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

Messages = list[dict[str, Any]]

SYSTEM = {"role": "system", "content": "You maintain the tide server."}

_WORDS = "gauge station reading level buffer parser header offset column index retry socket cache token batch".split()


class Task:
    """One task of a conversation: its messages, grown call by call.

    raw  strings that stand in its tool output, its thoughts and its failed attempts alone
    """

    def __init__(self, number: int, seed: int = 0) -> None:
        self.number = number
        self.raw: list[str] = []
        self.messages: Messages = [said("user", f"Carry part {number} of the tide table over to the new reader.")]
        self._dice = random.Random(f"{seed} {number}")  # noqa: S311  the same each time
        self._calls = 0

    def says(self, text: str) -> None:
        """The agent says something."""
        self.messages.append(said("assistant", text))

    def runs(self, command: str, output: str, *, failed: bool = False) -> None:
        """The agent runs a command."""
        self.calls("Bash", {"command": command}, output, failed=failed)

    def calls(self, tool: str, given: dict[str, Any], output: str, *, failed: bool = False) -> None:
        """The agent calls a tool."""
        self._calls += 1
        id_ = f"t{self.number}-{self._calls}"
        call = {"type": "tool_use", "id": id_, "name": tool, "input": given}
        result = {"type": "tool_result", "tool_use_id": id_, "content": output, "is_error": failed}
        self.messages += [said("assistant", [call]), said("user", [result])]

    def noise(self, words: int) -> None:
        """The agent looks at something long, and thinks about it."""
        mark = f"raw-{self.number}-{self._calls}-{self._dice.randrange(10**9)}"
        self.raw.append(mark)
        lines = [" ".join(self._dice.choices(_WORDS, k=9)) for _ in range(words // 9)]
        lines.insert(len(lines) // 2, f"reading {mark} of the gauge")
        self.runs(f"cat log/tide-{self._dice.randrange(10**6)}.txt", "\n".join(lines))

    def done(self) -> Messages:
        """The task is complete."""
        self.says("Part done.\n\n<promise>COMPLETE</promise>")
        return self.messages


SENTENCES = (
    "The import is blocked by the missing credentials of station Husum.",
    "I moved TASK-7 from pending to in review.",
    "I raised the setting `retry_limit` from 3 to 5.",
    "I promised Ana to send the new table by 2026-12-01.",
)
"""What the agent says between its calls."""


def planted(number: int, words: int, seed: int = 0) -> Task:
    """A task in which one item of each kind is planted, among so many words of noise."""
    task = Task(number, seed)
    for sentence in SENTENCES:
        task.noise(words // (len(SENTENCES) + 2))
        task.says(sentence)
    task.runs('ralf decide "SQLite instead of Postgres" --because "nobody has to run a server for it"', "DEC-001")
    tried = {
        "decision": "a lock per row",
        "rationale": "SQLite locks the whole file",
        "kind": "failed-approach",
    }
    task.calls("mcp__ralf__record_decision", tried, "DEC-002")
    task.runs("pytest -q", "E   ModuleNotFoundError: No module named 'tides'\n1 failed", failed=True)
    edit = {"file_path": f"src/reader_{number}.py", "old_string": "import tide", "new_string": "import tides"}
    task.calls("Edit", edit, "ok")
    task.runs("pytest -q", "12 passed in 0.31s")
    config = {"file_path": "tide.toml", "old_string": "timeout = 30", "new_string": "timeout = 60"}
    task.calls("Edit", config, "ok")
    task.calls(
        "Task",
        {"subagent_type": "writer", "description": "Write the docs of the reader", "prompt": "…"},
        "The docs say it all.",
    )
    task.runs('git commit -am "Read both forms"', "[main 4f05e28] Read both forms\n 1 file changed")
    task.noise(words // (len(SENTENCES) + 2))
    return task


def conversation(sizes: Sequence[int], current: int, seed: int = 0) -> Messages:
    """A conversation with a completed task for each size, in words of noise, and a current one."""
    found: Messages = [SYSTEM]
    for number, words in enumerate(sizes, start=7):
        found += planted(number, words, seed).done()
    last = Task(99, seed)
    while sum(len(str(message)) for message in last.messages) < 5 * current:
        last.noise(min(current, 500))
    return found + last.messages


def said(role: str, content: Any) -> dict[str, Any]:
    """A message."""
    return {"role": role, "content": content}
