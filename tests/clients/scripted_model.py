"""A scripted stand-in for two interfaces of models, on loopback: Gemini's `generateContent`, and chat completions.

usage: scripted_model.py --port-file F --log requests.jsonl --script script.json

A step is {"text": …, "call": {"name": …, "arguments": {…}}, "usage": {"input_tokens": …, "output_tokens": …}}, with
the "seconds" that the answer takes. Each request that carries tools takes the next one; where they are used up,
`default_text` is said. A request without tools is answered with `summary_text` where it asks for a summary of the
conversation, else with `aux_text`.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_SUMMARY = ("state_snapshot", "summarize the conversation", "summary of the conversation", "anchored summary")


class Script:
    """What the model says, in order, and the log of what it was asked."""

    def __init__(self, script: Path, log: Path) -> None:
        self._tree = json.loads(script.read_text())
        self._steps = list(self._tree["main"])
        self._log = log
        self._lock = threading.Lock()
        self._asked = 0

    def next(self, request: BaseHTTPRequestHandler, body: dict[str, Any]) -> dict[str, Any]:
        """The step that answers a request."""
        said = json.dumps(body).lower()
        kind = "main" if body.get("tools") else "compact" if any(word in said for word in _SUMMARY) else "aux"
        with self._lock:
            if kind == "main":
                step = self._steps.pop(0) if self._steps else {"text": self._tree.get("default_text", "Done.")}
            else:
                step = {"text": self._tree.get("summary_text" if kind == "compact" else "aux_text", "Nothing.")}
            self.note(request, kind, body, step)
        time.sleep(step.get("seconds", 0))
        return step

    def note(self, request: BaseHTTPRequestHandler, kind: str, body: object, step: object = None) -> None:
        """Log a request."""
        self._asked += 1
        line = {"seq": self._asked, "t": time.time(), "method": request.command, "path": request.path, "kind": kind}
        with self._log.open("a") as file:
            file.write(json.dumps({**line, "body": body, "step": step}) + "\n")


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    script: Script

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Nothing is there to be fetched."""
        self.script.note(self, "get", None)
        self._json({"error": {"message": "scripted"}}, 404)

    def do_POST(self) -> None:
        """Answer by the script."""
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        if "countTokens" in self.path:
            self.script.note(self, "count", body)
            self._json({"totalTokens": 1000})
        elif "enerateContent" in self.path:
            self._gemini(self.script.next(self, body))
        elif self.path.endswith("/chat/completions"):
            self._chat(self.script.next(self, body), streams=bool(body.get("stream")))
        else:
            self.script.note(self, "other", body)
            self._json({"error": {"message": "scripted"}}, 404)

    def _gemini(self, step: dict[str, Any]) -> None:
        parts: list[dict[str, Any]] = [{"text": step["text"]}] if step.get("text") else []
        if call := step.get("call"):
            parts.append({"functionCall": {"name": call["name"], "args": call["arguments"]}})
        given, said = _usage(step)
        answer = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": given,
                "candidatesTokenCount": said,
                "totalTokenCount": given + said,
            },
            "modelVersion": "scripted",
        }
        if "stream" in self.path:
            self._events([answer])
        else:
            self._json(answer)

    def _chat(self, step: dict[str, Any], *, streams: bool) -> None:
        given, said = _usage(step)
        usage = {"prompt_tokens": given, "completion_tokens": said, "total_tokens": given + said}
        head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": "scripted"}
        calls = []
        if call := step.get("call"):
            function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
            calls.append({"index": 0, "id": f"call_{uuid.uuid4().hex[:12]}", "type": "function", "function": function})
        why = "tool_calls" if calls else "stop"
        message: dict[str, Any] = {"role": "assistant", "content": step.get("text") or ""}
        if calls:
            message["tool_calls"] = calls
        if not streams:
            choice = {"index": 0, "message": message, "finish_reason": why}
            self._json({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        head["object"] = "chat.completion.chunk"
        self._events(
            [
                {**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": why}]},
                {**head, "choices": [], "usage": usage},
            ],
            end="[DONE]",
        )

    def _events(self, events: list[dict[str, Any]], end: str = "") -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for said in [*map(json.dumps, events), *([end] if end else [])]:
            self.wfile.write(f"data: {said}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def _json(self, tree: object, status: int = 200) -> None:
        data = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _usage(step: dict[str, Any]) -> tuple[int, int]:
    usage = step.get("usage") or {}
    return usage.get("input_tokens", 1000), usage.get("output_tokens", 20)


def main() -> None:
    """Serve until somebody ends the process."""
    parser = argparse.ArgumentParser()
    for name in ("--port-file", "--log", "--script"):
        parser.add_argument(name, required=True, type=Path)
    given = parser.parse_args()
    Handler.script = Script(given.script, given.log)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    given.port_file.write_text(str(server.server_address[1]))
    server.serve_forever()


if __name__ == "__main__":
    main()
