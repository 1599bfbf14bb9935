"""Records of Gemini CLI's session logs, as version 0.61.0 writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "90f857cc-6bb7-4fe8-abb6-85b343d871e6"
WHEN = "2026-11-27T11:46:01.142Z"
CONTEXT = "<hook_context>kept: a &lt; b</hook_context>"
Record = dict[str, Any]

META = {"sessionId": SESSION, "projectHash": "41a6", "startTime": WHEN, "lastUpdated": WHEN, "kind": "main"}
SET_UP = [{"id": "d0", "timestamp": WHEN, "type": "user", "content": [{"text": "<session_context>\nlinux"}]}]


def asked(*texts: str, id_: str = "u1", **more: Any) -> Record:
    return {"id": id_, "timestamp": WHEN, "type": "user", "content": [{"text": text} for text in texts], **more}


def said(text: str, *calls: Record, id_: str = "g1", total: int = 5030, **more: Any) -> Record:
    tokens = {"input": total - 30, "output": 30, "cached": 0, "thoughts": 0, "tool": 0, "total": total}
    record = {"id": id_, "timestamp": WHEN, "type": "gemini", "content": text, "thoughts": [], "tokens": tokens}
    return {**record, "model": "gemini-2.5-pro", **({"toolCalls": list(calls)} if calls else {}), **more}


def ran(command: str, printed: str, *, status: str = "success", id_: str = "c1") -> Record:
    output = f"<untrusted_context>\nOutput: {printed}\nProcess Group PGID: 24283\n</untrusted_context>\n\n{CONTEXT}"
    return called("run_shell_command", {"command": command}, {"output": output}, status=status, id_=id_)


def called(
    tool: str, args: Record, response: Record, *, status: str = "success", id_: str = "c1", **more: Any
) -> Record:
    result = [{"functionResponse": {"id": id_, "name": tool, "response": response}}]
    return {"id": id_, "name": tool, "args": args, "result": result, "status": status, "timestamp": WHEN, **more}


def write(path: Path, *records: Record) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [META, {"$set": {"messages": SET_UP, "lastUpdated": WHEN}}, *records]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
