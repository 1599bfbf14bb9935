"""The log of a session of Claude Code, record by record, as version 2.1 writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class ClaudeLog:
    """A log that grows: what the person and the agent say, and what the agent runs."""

    def __init__(self, log: Path, session: str, cwd: Path) -> None:
        self.log, self.id, self.cwd = log, session, cwd
        self._records = 0

    def add(self, *records: Mapping[str, Any]) -> None:
        """Append records to the log as they are."""
        with self.log.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)

    def says(self, text: str, **more: Any) -> None:
        """The person says something."""
        self._record("user", text, **more)

    def answers(self, *content: str | Mapping[str, Any], used: int = 5_000, **more: Any) -> None:
        """The agent says and calls something, with so many tokens in its window."""
        blocks = [{"type": "text", "text": block} if isinstance(block, str) else dict(block) for block in content]
        usage = {"input_tokens": 10, "cache_read_input_tokens": used - 20, "output_tokens": 10}
        self._record("assistant", blocks, usage=usage, **more)

    def calls(
        self,
        tool: str,
        given: Mapping[str, Any],
        printed: str,
        *,
        failed: bool = False,
        said: str = "",
        used: int = 5_000,
        **more: Any,
    ) -> None:
        """The agent calls a tool, and gets its result; `more`: fields of the result's record."""
        call = f"toolu_{self._records:04d}"
        use = {"type": "tool_use", "id": call, "name": tool, "input": dict(given)}
        self.answers(*([said] if said else []), use, used=used)
        self.gets({"type": "tool_result", "tool_use_id": call, "content": printed, "is_error": failed}, **more)

    def gets(self, result: Mapping[str, Any], **more: Any) -> None:
        """A call gets its result."""
        self._record("user", [dict(result)], **more)

    def runs(self, command_: str, printed: str = "", *, failed: bool = False, **more: Any) -> None:
        """The agent runs a command."""
        self.calls(
            "Bash", {"command": command_}, (f"Exit code 1\n{printed}" if failed else printed), failed=failed, **more
        )

    def edits(self, path: str, **more: Any) -> None:
        """The agent edits a file of the project."""
        given = {"file_path": str(self.cwd / path), "old_string": "a", "new_string": "b"}
        self.calls("Edit", given, f"The file {path} has been updated.", **more)

    def grows(self, tokens: int) -> None:
        """The agent reads files of about so many tokens."""
        for number in range(max(1, tokens // 1_000)):
            rows = "\n".join(f"{row:03d} level of part {number} is {row * 7 % 97} cm" for row in range(70))
            self.runs(f"cat src/part_{number}.py", rows)

    def _record(self, role: str, content: object, *, usage: Mapping[str, int] | None = None, **more: Any) -> None:
        number = self._records
        self._records += 1
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"model": "claude-opus-4", "id": f"msg_{number}", "usage": usage}
        record = {
            "type": role,
            "uuid": f"{self.id[:8]}-{number}",
            "parentUuid": f"{self.id[:8]}-{number - 1}" if number else None,
            "sessionId": self.id,
            "cwd": str(self.cwd),
            "isSidechain": False,
            "version": "2.1.329",
            "timestamp": f"2026-03-01T{8 + number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
            "message": message,
        }
        self.add(record | more)
