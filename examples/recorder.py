"""Writes the records of an agent session, in Claude Code's format, while a small virtual project changes underneath."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

CWD = "/home/dev/tidepool"
SESSION = "5e1f0c52-7d0b-4c7e-9a51-3d2b8f6ac901"
BRANCH = "delta-sync"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def flow(text: str) -> str:
    """`text` with the line breaks inside its paragraphs taken out; lists, indented lines and blank lines stay."""
    lines: list[str] = []
    for line in text.strip("\n").split("\n"):
        fresh = not line.strip() or line[0] in " -*#|0123456789<" or not lines or not lines[-1].strip()
        if fresh or lines[-1][:1] in ("|", "#", " "):
            lines.append(line)
        else:
            lines[-1] += " " + line
    return "\n".join(lines)


class Recorder:
    """One session: each method appends the records that the client would have written for that move.

    files   the virtual project, path to content, as it stands now
    """

    def __init__(self, files: dict[str, str]) -> None:
        self.files = dict(files)
        self._committed = dict(files)
        self._records: list[dict[str, Any]] = []
        self._now = datetime(2026, 3, 9, 8, 12, 4, 117000, tzinfo=UTC)
        self._parent: str | None = None
        self._serial = 0
        self._message = ""
        self._characters = 0
        self._backups: dict[str, int] = {}

    def jsonl(self) -> str:
        """The whole session, one record on each line."""
        return "".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in self._records)

    # --- what people do ---

    def user(self, text: str, *, after: int = 95) -> None:
        """A person types, `after` seconds after the last record."""
        self._turn_over()
        self._tick(after)
        self.snapshot()
        self._append("user", message={"role": "user", "content": flow(text)}, permissionMode="acceptEdits")

    def queue(self, text: str) -> None:
        """A person types while the agent works; the client hands it to the running turn."""
        self._tick(3)
        self._bare("queue-operation", operation="enqueue", content=flow(text))
        self._tick(9)
        self._bare("queue-operation", operation="remove")
        self._characters += len(text)

    # --- what the agent does ---

    def think(self, text: str) -> None:
        """The agent reasons."""
        self._assistant({"type": "thinking", "thinking": flow(text), "signature": self._name("sig", 40)})

    def say(self, text: str) -> None:
        """The agent speaks."""
        self._assistant({"type": "text", "text": flow(text)})

    def bash(self, command: str, output: str = "", *, code: int = 0, why: str = "") -> None:
        """The agent runs a command that answers `output` and ends with `code`."""
        given = {"command": command, "description": why or command.split("|")[0].strip()[:60]}
        body = output.strip("\n")
        if code:
            self._tool("Bash", given, f"Exit code {code}\n{body}", failed=True, result=f"Error: Exit code {code}")
        else:
            short = body if len(body) < 300 else ""
            seen = {"stdout": short, "stderr": "", "interrupted": False, "isImage": False} if short else None
            self._tool("Bash", given, body, result=seen)

    def read(self, path: str, start: int = 1, limit: int = 0) -> None:
        """The agent reads a file, or `limit` lines of it."""
        given: dict[str, Any] = {"file_path": f"{CWD}/{path}"}
        lines = self.files[path].split("\n")
        shown = lines[start - 1 : start - 1 + limit] if limit else lines
        if limit:
            given |= {"offset": start, "limit": limit}
        numbered = "\n".join(f"{n:6}→{line}" for n, line in enumerate(shown, start))
        fact = {"filePath": f"{CWD}/{path}", "numLines": len(shown), "startLine": start, "totalLines": len(lines)}
        self._tool("Read", given, numbered, result={"type": "text", "file": fact})

    def write(self, path: str, content: str) -> None:
        """The agent writes a whole file."""
        new = path not in self.files
        self.files[path] = content
        self._backups[path] = self._backups.get(path, 0) + 1
        told = "File created successfully at: " if new else "The file has been overwritten: "
        fact: dict[str, Any] = {
            "type": "create" if new else "update",
            "filePath": f"{CWD}/{path}",
            "structuredPatch": [],
        }
        self._tool("Write", {"file_path": f"{CWD}/{path}", "content": content}, f"{told}{CWD}/{path}", result=fact)

    def edit(self, path: str, old: str, new: str) -> None:
        """The agent replaces `old`, which stands once in the file, by `new`."""
        before = self.files[path]
        if before.count(old) != 1:
            raise ValueError(f"{path}: {old!r} stands there {before.count(old)} times")
        self.files[path] = after = before.replace(old, new)
        self._backups[path] = self._backups.get(path, 0) + 1
        given = {"file_path": f"{CWD}/{path}", "old_string": old, "new_string": new, "replace_all": False}
        line = before[: before.index(old)].count("\n")
        lines = after.split("\n")
        low, high = max(0, line - 3), min(len(lines), line + new.count("\n") + 4)
        shown = "\n".join(f"{n:6}→{text}" for n, text in enumerate(lines[low:high], low + 1))
        told = f"The file {CWD}/{path} has been updated. Here's the result of running `cat -n` on a snippet:\n{shown}"
        fact = {"filePath": f"{CWD}/{path}", "userModified": False, "replaceAll": False}
        self._tool("Edit", given, told, result=fact)

    def remove(self, *paths: str) -> None:
        """The agent deletes files."""
        for path in paths:
            del self.files[path]
        self.bash("git rm -q " + " ".join(paths), why="Remove files that nothing imports any more")

    def grep(self, pattern: str, under: str = "", *, names: bool = False) -> None:
        """The agent searches the project."""
        hits = [
            f"{path}:{n}:{line}"
            for path in sorted(self.files)
            if path.startswith(under)
            for n, line in enumerate(self.files[path].split("\n"), 1)
            if re.search(pattern, line)
        ]
        found = list(dict.fromkeys(hit.split(":")[0] for hit in hits))
        mode = "files_with_matches" if names else "content"
        told = f"Found {len(found)} files\n" + "\n".join(found) if names else "\n".join(hits[:60])
        given = {"pattern": pattern, "path": f"{CWD}/{under}".rstrip("/"), "output_mode": mode}
        self._tool("Grep", given, told or "No matches found", result={"mode": mode, "numFiles": len(found)})

    def glob(self, pattern: str, under: str) -> None:
        """The agent lists files."""
        found = [f"{CWD}/{path}" for path in sorted(self.files) if path.startswith(under)]
        self._tool("Glob", {"pattern": pattern}, "\n".join(found), result={"numFiles": len(found), "truncated": False})

    def refused(self, command: str) -> None:
        """The agent asks to run a command and the person declines."""
        told = (
            "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file "
            "edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to "
            "tell you how to proceed."
        )
        self._tool("Bash", {"command": command, "description": command}, told, failed=True, result=f"Error: {told}")

    def todos(self, steps: list[str], at: int) -> None:
        """The agent updates its plan: the steps before `at` (from 1) are done, that one is under way."""
        states = ["completed" if n < at else "in_progress" if n == at else "pending" for n in range(1, len(steps) + 1)]
        todos = [{"content": s, "status": t, "activeForm": s} for s, t in zip(steps, states, strict=True)]
        told = "Todos have been modified successfully. Ensure that you continue to use the todo list to track progress."
        self._tool("TodoWrite", {"todos": todos}, told, result={"newTodos": len(todos)})

    def subagent(self, prompt: str, steps: list[str], answer: str) -> None:
        """The agent has a subagent do something, whose own records are marked as a side chain."""
        parent = self._parent
        for text in (prompt, *steps):
            role = "user" if text is prompt else "assistant"
            block: dict[str, Any] = {"role": role}
            block["content"] = text if role == "user" else [{"type": "text", "text": flow(text)}]
            if role == "assistant":
                block |= {"model": "claude-haiku-4-5", "id": self._name("msg_01", 22), "usage": _usage(4200, 60)}
            self._append(role, message=block, isSidechain=True, agentId="a7c41f0e")
        self._parent = parent
        given = {"description": prompt[:40], "prompt": prompt, "subagent_type": "Explore"}
        self._tool("Task", given, [{"type": "text", "text": flow(answer)}], result={"status": "completed"})

    def commit(self, subject: str) -> None:
        """The agent commits everything that has changed since its last commit."""
        stats = [(path, *self._changes(path)) for path in sorted(self.files | self._committed) if self._differs(path)]
        added, gone = sum(s[1] for s in stats), sum(s[2] for s in stats)
        short = self._name("commit", 7).lower()
        modes = [f" create mode 100644 {path}" for path, *_ in stats if path not in self._committed]
        modes += [f" delete mode 100644 {path}" for path, *_ in stats if path not in self.files]
        total = f" {len(stats)} files changed, {added} insertions(+), {gone} deletions(-)"
        self._committed = dict(self.files)
        output = "\n".join([f"[{BRANCH} {_hex(short)}] {subject}", total, *modes])
        self.bash(f'git add -A && git commit -m "{subject}"', output, why="Commit this step")

    def diff(self, *paths: str) -> None:
        """The agent looks at what is not committed yet."""
        parts = []
        for path in paths or [p for p in sorted(self.files) if self._differs(p)]:
            old, new = self._committed.get(path, "").split("\n"), self.files[path].split("\n")
            body = "\n".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))
            parts.append(f"diff --git a/{path} b/{path}\n{body}")
        self.bash(
            f"git add -A && git diff --cached {' '.join(paths)}".strip(),
            "\n".join(parts),
            why="Review the change before committing",
        )

    # --- what the client does by itself ---

    def snapshot(self) -> None:
        """The client notes which versions of files it has kept."""
        when = self._stamp()
        kept = {
            path: {"backupFileName": f"{_hex(path)}@v{n}", "version": n, "backupTime": when}
            for path, n in sorted(self._backups.items())[-6:]
        }
        here = self._uuid()
        inner = {"messageId": here, "trackedFileBackups": kept, "timestamp": when}
        self._records.append(
            {"type": "file-history-snapshot", "messageId": here, "snapshot": inner, "isSnapshotUpdate": False}
        )

    def progress(self, command: str) -> None:
        """A hook of the project ran."""
        data = {"type": "hook_progress", "hookEvent": "PostToolUse", "hookName": "PostToolUse:Edit", "command": command}
        self._append("progress", data=data, toolUseID=self._name("toolu_01", 22))

    # --- the records themselves ---

    def _turn_over(self) -> None:
        if self._parent is not None:
            self._append("system", subtype="turn_duration", durationMs=41_000 + 613 * self._serial, isMeta=False)

    def _assistant(self, block: dict[str, Any]) -> str:
        self._tick(2 + len(json.dumps(block)) // 400)
        if not self._message:
            self._message = self._name("msg_01", 22)
        self._characters += sum(len(str(v)) for k, v in block.items() if k not in ("signature", "type", "id"))
        # The client clears old tool output from its window, so that it fills more slowly than the transcript grows.
        usage = _usage(14_800 + self._characters * 19 // 100, 30 + len(json.dumps(block)) // 4)
        message: dict[str, Any] = {
            "model": "claude-sonnet-4-5",
            "id": self._message,
            "type": "message",
            "role": "assistant",
        }
        message |= {"content": [block], "stop_reason": None, "usage": usage}
        return self._append("assistant", message=message, requestId="req_011" + self._message[6:])

    def _tool(self, name: str, given: dict[str, Any], told: Any, *, failed: bool = False, result: Any = None) -> None:
        call = self._name("toolu_01", 22)
        self._assistant({"type": "tool_use", "id": call, "name": name, "input": given})
        self._tick(1 + len(str(told)) // 3000)
        block: dict[str, Any] = {"tool_use_id": call, "type": "tool_result", "content": told}
        if failed or name == "Bash":
            block["is_error"] = failed
        extra = {} if result is None else {"toolUseResult": result}
        self._append("user", message={"role": "user", "content": [block]}, **extra)
        self._characters += len(str(told))
        self._message = ""

    def _append(self, kind: str, *, isSidechain: bool = False, **fields: Any) -> str:  # noqa: N803  the format's name
        if kind == "user":
            self._message = ""
        here = self._uuid()
        common = {"parentUuid": self._parent, "isSidechain": isSidechain, "cwd": CWD, "sessionId": SESSION}
        common |= {"version": "2.1.36", "gitBranch": BRANCH, "type": kind}
        self._records.append(common | fields | {"uuid": here, "timestamp": self._stamp()})
        self._parent = here
        return here

    def _bare(self, kind: str, **fields: Any) -> None:
        self._records.append({"type": kind, **fields, "timestamp": self._stamp(), "sessionId": SESSION})

    def _tick(self, seconds: int) -> None:
        self._now += timedelta(seconds=seconds, milliseconds=(self._serial * 137) % 900)

    def _stamp(self) -> str:
        return self._now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self._now.microsecond // 1000:03}Z"

    def _name(self, prefix: str, length: int) -> str:
        self._serial += 1
        number = int.from_bytes(hashlib.sha512(f"{prefix}{self._serial}".encode()).digest(), "big")
        letters = ""
        while len(letters) < length:
            number, rest = divmod(number, 62)
            letters += _BASE62[rest]
        return letters if prefix in ("sig", "commit") else prefix + letters

    def _uuid(self) -> str:
        self._serial += 1
        h = _hex(f"uuid{self._serial}", 32)
        return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"

    def _differs(self, path: str) -> bool:
        return self.files.get(path) != self._committed.get(path)

    def _changes(self, path: str) -> tuple[int, int]:
        old, new = (source.get(path, "").split("\n") for source in (self._committed, self.files))
        lines = list(difflib.unified_diff(old, new, lineterm="", n=0))[2:]
        return sum(line[0] == "+" for line in lines), sum(line[0] == "-" for line in lines)


def _usage(window: int, output: int) -> dict[str, int]:
    fresh = 3 + window % 7
    created = 400 + window % 1900
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": created,
        "cache_read_input_tokens": window - fresh - created,
        "output_tokens": output,
    }


def _hex(text: str, length: int = 7) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
