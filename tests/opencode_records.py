"""Records of the log that ralf's plugin keeps of opencode's sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "ses_de32ae3dbffeMCZ1EdfkxJgaWc"
WHEN = 1795780059036
Record = dict[str, Any]

ASKED = {"type": "text", "role": "user", "id": "prt_1", "text": '"please build it"', "time": WHEN}
SAID = {"type": "text", "role": "assistant", "id": "prt_2", "text": "Step 1", "time": WHEN}
CALL = {"type": "call", "id": "call_1", "tool": "bash", "input": {"command": "ls /nope"}, "time": WHEN}
RESULT = {
    "type": "result",
    "id": "call_1",
    "tool": "bash",
    "status": "completed",
    "output": "gone",
    "exit": 2,
    "time": WHEN,
}
TOKENS = {"total": 5530, "input": 5000, "output": 30, "reasoning": 0, "cache": {"read": 500, "write": 0}}
DONE = {
    "type": "message",
    "role": "assistant",
    "summary": False,
    "cwd": "/srv/tides",
    "window": 200000,
    "tokens": TOKENS,
    "time": WHEN,
}


def write(path: Path, *records: Record, directory: str = "/srv/tides", session: str = SESSION) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    meta = {"type": "session", "client": "opencode", "log": 2, "session": session, "directory": directory, "time": WHEN}
    path.write_text("".join(json.dumps(line) + "\n" for line in (meta, *records)))
    return path
