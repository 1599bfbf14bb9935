"""A stand-in agent: `python standin.py WORD …` does what its words say, one after the other, with the task in
RALF_LEASE.

    work=SECONDS        work, silently
    done[=SUMMARY]      `ralf task done`; tried: the same, whatever comes of it
    handover[=STATE]    hand the task's route over
    decide=TEXT         record a decision in it
    edit=FILE           change a file in the working directory
    next                claim the next ready task, and go on with that
    exit=STATUS, crash (status 1), kill (SIGKILL), hang (for ever), deaf (ignore SIGTERM from now on)
    spawn=SECONDS       start a process that lives so long; daemon=SECONDS: in a session of its own, and nobody's child
    prompt              print what was handed over
    say=TEXT            say it, `_` for a blank, in a transcript as Claude Code keeps it, 1,000 tokens a time
    edited=FILE         edit it, and say so in the transcript; tested[=FAILURES]: a test run, with so many failures
    filled=TOKENS       fill the window so far, have ralf's hook look at it, print what it says; hand over and exit if
                        it asks for that
    limit=SECONDS       end as the client does at its usage limit, which is over so much later: Claude Code where it is
                        called so, else Codex
    rollout-limit=SECONDS  the same, as Codex tells it in its rollout
    as-told             the words behind `agent:` in the task's text: its first such line for the first attempt, its
                        second for the second, the last one from then on

Each start and each end is a line of JSON in the file that AGENT_JOURNAL names.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path


def note(**fields: object) -> None:
    """Write one line to the journal, whole."""
    if path := os.environ.get("AGENT_JOURNAL", ""):
        line = json.dumps({"at": time.time(), "pid": os.getpid(), "agent": os.environ.get("RALF_AGENT", ""), **fields})
        with open(path, "ab", buffering=0) as file:
            file.write(line.encode() + b"\n")


class Standin:  # its methods are the words of the list above
    """One start."""

    def __init__(self) -> None:
        self.lease = os.environ.get("RALF_LEASE", "")
        self.task = self.lease.partition(":")[0]
        self._rolls = ""  # a session of Codex

    def do(self, words: list[str]) -> int:
        """All words; the exit status."""
        for word in words:
            name, _, value = word.partition("=")
            status = getattr(self, f"do_{name.replace('-', '_')}")(value)
            if isinstance(status, int):
                return status
        return 0

    def do_as_told(self, _: str) -> int | None:  # noqa: D102
        from ralf.tasks import store

        state = store.get(self.task)
        lines = [line.partition("agent:")[2] for line in state.task.text.splitlines() if line.startswith("agent:")]
        if not lines:
            return self.do(["done"])
        number = max(1, len(state.attempts))
        return self.do(lines[min(number, len(lines)) - 1].split())

    def do_work(self, value: str) -> None:  # noqa: D102
        time.sleep(float(value))

    def do_done(self, value: str) -> None:  # noqa: D102
        from ralf.tasks import claims

        claims.done(value or f"did {self.task}", lease=self.lease)
        note(what="done", task=self.task, lease=self.lease)

    def do_tried(self, _: str) -> None:  # noqa: D102
        from ralf.errors import NotVerified

        with suppress(NotVerified):
            self.do_done("")

    def do_handover(self, value: str) -> None:  # noqa: D102
        import ralf

        if "--session-id" in os.environ.get("AGENT_ARGUMENTS", ""):
            os.environ["CLAUDE_CODE_SESSION_ID"] = self._session  # as Claude Code tells its commands
        ralf.hand_over(os.environ["RALF_TASK_ID"], now=value or "half of it stands", next=["the other half"])

    def do_decide(self, value: str) -> None:  # noqa: D102
        import ralf

        ralf.record_decision(os.environ["RALF_TASK_ID"], value, rationale="the agent says so", origin="agent")

    def do_edit(self, value: str) -> None:  # noqa: D102
        with open(value, "a", encoding="utf-8") as file:
            file.write(f"{self.task}\n")

    def do_next(self, _: str) -> None:  # noqa: D102
        from ralf.tasks import claims

        state = claims.claim(by=os.environ.get("RALF_AGENT", ""))
        assert state.claim is not None
        self.task, self.lease = state.task.id, state.claim.lease(state.task.id)
        note(what="start", task=self.task, lease=self.lease)

    def do_exit(self, value: str) -> int:  # noqa: D102
        return int(value)

    def do_crash(self, _: str) -> int:  # noqa: D102
        print("Traceback: something broke", file=sys.stderr)
        return 1

    def do_kill(self, _: str) -> None:  # noqa: D102
        os.kill(os.getpid(), signal.SIGKILL)

    def do_hang(self, _: str) -> None:  # noqa: D102
        while True:
            time.sleep(3600)

    def do_deaf(self, _: str) -> None:  # noqa: D102
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def do_spawn(self, value: str) -> None:  # noqa: D102
        child = subprocess.Popen(["sleep", value])  # noqa: S607
        note(what="spawned", child=child.pid, task=self.task)

    def do_daemon(self, value: str) -> None:  # noqa: D102
        code = (
            "import subprocess, sys\nquiet = dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.DEVNULL)\n"
            "child = subprocess.Popen(['sleep', sys.argv[1]], start_new_session=True, **quiet)\n"
            "print(child.pid)"
        )
        done = subprocess.run([sys.executable, "-c", code, value], capture_output=True, text=True, check=True)
        note(what="spawned", child=int(done.stdout), task=self.task)

    def do_prompt(self, _: str) -> None:  # noqa: D102
        sys.stdout.write(sys.stdin.read())
        sys.stdout.flush()

    def do_say(self, value: str) -> None:  # noqa: D102
        self._tell("user", "go on")
        self._tell("assistant", [{"type": "text", "text": value.replace("_", " ")}])

    def do_edited(self, value: str) -> None:  # noqa: D102
        self.do_edit(value)
        given = {"file_path": str(Path.cwd() / value), "old_string": "", "new_string": self.task}
        self._call("Edit", given, "The file has been updated.")

    def do_tested(self, value: str) -> None:  # noqa: D102
        self._call("Bash", {"command": "pytest -q"}, f"{value} failed in 0.1s" if value else "3 passed in 0.1s")

    def do_filled(self, value: str) -> int | None:  # noqa: D102
        self._tell("user", "go on")
        usage = {"input_tokens": 10, "cache_read_input_tokens": int(value) - 20, "output_tokens": 10}
        self._tell("assistant", [{"type": "text", "text": "I read on."}], usage=usage)
        known = {"session_id": self._session, "transcript_path": str(self._transcript), "cwd": str(Path.cwd())}
        hook = [sys.executable, "-m", "ralf_cli", "hook", "PostToolBatch", "--client", "claude-code"]
        given = json.dumps(known | {"hook_event_name": "PostToolBatch"})
        done = subprocess.run(hook, input=given, capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout) if done.stdout else {}
        told = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
        print(told, flush=True)
        if "hand over and end your turn" not in told:
            return None
        self.do_handover("")
        return 0

    def _call(self, tool: str, given: dict[str, str], output: str) -> None:
        call = f"c{time.time_ns()}"
        self._tell("user", "go on")
        self._tell("assistant", [{"type": "tool_use", "id": call, "name": tool, "input": given}])
        result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": False}
        self._tell("user", [result])

    @property
    def _session(self) -> str:
        words = os.environ.get("AGENT_ARGUMENTS", "").split()
        return words[words.index("--session-id") + 1]

    @property
    def _transcript(self) -> Path:
        return Path(os.environ["CLAUDE_CONFIG_DIR"]) / "projects" / "stand-in" / f"{self._session}.jsonl"

    def _tell(self, role: str, content: object, *, usage: dict[str, int] | None = None, **more: object) -> None:
        """Write one record to the transcript, as Claude Code does."""
        session, path = self._session, self._transcript
        path.parent.mkdir(parents=True, exist_ok=True)
        number = len(path.read_bytes().splitlines()) if path.exists() else 0
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        record = {"type": role, "uuid": f"{role[0]}{number}", "sessionId": session, "timestamp": at}
        record |= {"cwd": str(Path.cwd()), "version": "2.1.329", "message": {"role": role, "content": content}}
        if role == "assistant":
            usage = usage or {"input_tokens": 900, "cache_read_input_tokens": 5000, "output_tokens": 100}
            record["message"] |= {"id": f"m{number}", "model": "stand-in", "usage": usage}
            record["requestId"] = f"r{number}"
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record | more) + "\n")

    def do_limit(self, value: str) -> int:  # noqa: D102
        at = datetime.now(UTC).astimezone() + timedelta(seconds=float(value or 3600))
        if "--session-id" in os.environ.get("AGENT_ARGUMENTS", ""):
            said = f"You've hit your session limit · resets {at:%b} {at.day} at {at:%I}:{at:%M}{at:%p}"
            self._tell("assistant", [{"type": "text", "text": said}], isApiErrorMessage=True, error="rate_limit")
            print(json.dumps({"type": "result", "is_error": True, "api_error_status": 429, "result": said}))
        else:
            print(f"ERROR: {_said_by_codex(at)}", file=sys.stderr, flush=True)
        return 1

    def do_rollout_limit(self, value: str) -> int:  # noqa: D102
        at = datetime.now(UTC).astimezone() + timedelta(seconds=float(value or 3600))
        error = {"message": _said_by_codex(at), "codex_error_info": "usage_limit_exceeded"}
        self._roll({"type": "task_complete", "error": error})
        print("thread ended", file=sys.stderr, flush=True)
        return 1

    def _roll(self, payload: dict[str, object]) -> None:
        """Write one event to the rollout, as Codex does; the first one names the session."""
        stamp = datetime.now(UTC).isoformat()
        if not self._rolls:
            self._rolls = str(uuid.uuid4())
            head = f"OpenAI Codex\n--------\nsession id: {self._rolls}\n--------\nuser\ngo"
            print(head, file=sys.stderr, flush=True)
        path = (
            Path(os.environ["CODEX_HOME"]) / "sessions/2026/11/26" / f"rollout-2026-11-26T12-00-00-{self._rolls}.jsonl"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            if not file.tell():
                meta = {"id": self._rolls, "cwd": str(Path.cwd())}
                file.write(json.dumps({"timestamp": stamp, "type": "session_meta", "payload": meta}) + "\n")
            file.write(json.dumps({"timestamp": stamp, "type": "event_msg", "payload": payload}) + "\n")


def _said_by_codex(at: datetime) -> str:
    stamp = f"{at:%b} {at.day}th, {at:%Y} {at:%I}:{at:%M} {at:%p}"
    return f"You've hit your usage limit. Upgrade or try again at {stamp}."


def main(words: list[str]) -> int:
    """The stand-in; its exit status."""
    agent = Standin()
    note(
        what="start", task=agent.task, lease=agent.lease, route=os.environ.get("RALF_TASK_ID", ""), cwd=str(Path.cwd())
    )
    status = 1
    try:
        status = agent.do(words)
    finally:
        note(what="end", task=agent.task, lease=agent.lease, status=status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
