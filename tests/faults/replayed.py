"""Real sessions through the hooks, event by event: how large segments become, and what is handed over costs.

    python -m tests.faults.replayed                           the sessions of the evaluation data and of the cases
    python -m tests.faults.replayed --tokens 60000 --only made    made sessions, in seconds

Each session's log grows as its client wrote it, and every hook is called that the client calls, at its place: the
session starts, a prompt, tools were used, a compaction, a turn ends, the session ends. `data`: each session of the
evaluation data by itself; `chain`: all of them, one after the other, on one route; `cases`: two sessions of the cases,
again and again, with a large file read between, until they have 300,000 tokens; `made`: two sessions of this
repository's tests, on one route. Tokens are counted here, with the tokenizer, event by event.

large   a segment of more than 50,000 tokens that is more than one event
late    more tokens than that since the last checkpoint, beside one event and what a look may leave unseen
small   a segment of less than 40,000 tokens that ends with nothing: no session, task or list, no compaction, and the
        window was not full
dear    more than 5 % of a run of 10,000 tokens or more that was handed over
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import storekit
from tests.faults import figures
from tests.faults.thresholds import UNSEEN

from ralf import environment
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.text import tokens
from ralf.transcripts.reader import counted, open_transcript
from ralf_integrations.hooks import checkpoints, entry, handover, instant

Record = dict[str, Any]

LIMIT, LEAST, SHARE, FEWEST = 50_000, 40_000, 0.05, 10_000
SHARED = storekit.SOURCE.parent / "shared"
CASES = ("finished-plan-is-in-progress", "goal-is-the-first-of-six-finished-orders")
KINDS = ("data", "chain", "cases", "made")
ENDS = frozenset(("session-end", "compaction", "task-completed", "todos-done", "pressure"))
"""Reasons of checkpoints at which something ends."""


@dataclass
class Report:
    """What a run came to: segments as (reason, tokens), and what was handed over, in tokens."""

    name: str
    tokens: int = 0
    handed: int = 0
    texts: int = 0
    segments: list[tuple[str, int]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def judge(self, largest: int) -> None:
        """Look for faults; `largest`: tokens of its largest event."""
        for number, (reason, size) in enumerate(self.segments):
            if size > LIMIT and size - largest > LEAST // 40:
                self.faults.append(f"{self.name}: large: segment {number} of {size:,} tokens")
            if size < LEAST and reason not in ENDS:
                self.faults.append(f"{self.name}: small: segment {number} of {size:,} tokens, {reason}")
        if self.tokens >= FEWEST and self.handed > SHARE * self.tokens:
            self.faults.append(f"{self.name}: dear: {self.handed:,} of {self.tokens:,} tokens")

    def figures(self) -> Iterator[figures.Figure]:
        """What it tells, a line a figure."""
        sizes = [size for reason, size in self.segments if reason not in ENDS]
        ends = [reason for reason, _ in self.segments if reason in ENDS]
        said = f"{min(sizes):,} to {max(sizes):,} in {len(sizes)}" if sizes else "none"
        what = f"{self.name}, {self.tokens:,} tokens"
        largest = max((size for _, size in self.segments), default=0)
        yield f"{what}: segments at the threshold", said, f"{LEAST:,} to {LIMIT:,}"
        yield f"{what}: segments at an end, largest of all", f"{len(ends)}, {largest:,}", f"at most {LIMIT:,}"
        pressed = [size for reason, size in self.segments if reason == "pressure"]
        if pressed:
            yield f"{what}: of them cut where the window was 60 % full", f"{len(pressed)}, from {min(pressed):,}", ""
        share = 100 * self.handed / self.tokens if self.tokens else 0.0
        yield f"{what}: handed over, in {self.texts} texts", f"{self.handed:,} ({share:.1f} %)", "at most 5 %"


class Replay:
    """A project of its own, in which sessions of Claude Code go on as they did."""

    def __init__(self, folder: Path, name: str) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        os.environ["CLAUDE_CONFIG_DIR"] = str(folder / ".claude")
        self.project = Project(self.root)
        ownership.init(self.project, share=False)
        self.project.config_file.write_text("archive_days: 0\n")  # the sessions are old, and their journal is read here
        environment.start_detached = _in_this_process
        self.report = Report(name)
        self._largest = 0

    def run(self, session: str, records: Sequence[Record]) -> None:
        """One session from its beginning to its end."""
        path = storekit.session_log(self.root.parent, self.root, session)
        before = len(self.report.segments)
        looks: list[tuple[int, int]] = []  # where the log ended at a hook, and up to where it was taken

        def hook(event: str, **more: object) -> None:
            self._hook(event, session, path, more)
            if event == "PostToolBatch":
                looks.append(
                    (path.stat().st_size, max((end for one, end in self._spans() if one == session), default=0))
                )

        hook("SessionStart", source="startup")
        with path.open("ab", buffering=0) as file:
            for event, more, record in _with_events(records):
                if event not in ("UserPromptSubmit", "PreCompact"):  # these come before their record is written
                    file.write(_line(record, session))
                    hook(event, **more) if event else None
                    continue
                hook(event, **more)
                file.write(_line(record, session))
        hook("SessionEnd", reason="other")
        self._taken(session, before)
        self._late(path, looks)

    def judged(self) -> Report:
        """The report of all that was run."""
        self.report.judge(self._largest)
        return self.report

    def _hook(self, event: str, session: str, path: Path, more: dict[str, object]) -> None:
        tree = {"session_id": session, "transcript_path": str(path), "cwd": str(self.root), "hook_event_name": event}
        data = json.dumps({**tree, **more}).encode()
        if instant.is_idle("claude-code", event, data):
            return
        answers: list[str] = []
        entry.run("claude-code", event, data, answers.append, instant.is_idle)
        said = "".join(answers)
        if said.startswith("{"):
            found = json.loads(said)
            if "systemMessage" in found:
                self.report.faults.append(f"{self.report.name}: {event}: {found['systemMessage']}")
            said = str(found.get("hookSpecificOutput", {}).get("additionalContext", ""))
        if said:
            self.report.texts += 1
            self.report.handed += tokens.count(said)

    def _payloads(self) -> Iterator[tuple[str, Record]]:
        folder = self.project.folder / "journal" / "routes"
        for path in sorted(folder.glob("*.jsonl")):
            for line in path.read_bytes().splitlines():
                payload = json.loads(line)["record"]["payload"]
                if "source" in payload:
                    yield path.stem, payload

    def _spans(self) -> list[tuple[str, int]]:
        return [(one["source"]["session"], one["source"]["to_byte"]) for _, one in self._payloads()]

    def _taken(self, session: str, before: int) -> None:
        del before
        mine = [one for _, one in self._payloads() if one["source"]["session"] == session]
        self.report.segments += [(one["reason"], one["tokens"]) for one in mine]
        self.report.tokens += sum(one["tokens"] for one in mine)

    def _late(self, path: Path, looks: Sequence[tuple[int, int]]) -> None:
        events = open_transcript(path).events()
        sizes = [(one.end.byte, tokens.count(counted(one))) for one in events if not one.agent]
        self._largest = max(self._largest, *(size for _, size in sizes))
        worst = 0
        for end, taken in looks:
            here = [size for place, size in sizes if taken < place <= end]
            over = sum(here) - max(here, default=0) - UNSEEN
            if over > LIMIT and over > worst:
                worst = over
        if worst:
            self.report.faults.append(f"{self.report.name}: late: {worst:,} tokens since the last checkpoint")


def _line(record: Record, session: str) -> bytes:
    if "sessionId" in record:
        record = {**record, "sessionId": session}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _with_events(records: Sequence[Record]) -> Iterator[tuple[str, dict[str, object], Record]]:
    """Each record, with the event for which its client calls hooks at its place, and what it tells; "" for none."""
    calls: dict[str, Record] = {}
    for record in records:
        kind, content = record.get("type"), (record.get("message") or {}).get("content")
        event, more = "", dict[str, object]()
        if record.get("isSidechain") or record.get("isMeta"):
            pass
        elif kind == "system" and record.get("subtype") == "compact_boundary":
            event, more = "PreCompact", {"trigger": (record.get("compactMetadata") or {}).get("trigger", "auto")}
        elif record.get("isCompactSummary"):
            event, more = "SubagentStop", {"agent_id": "a1", "agent_type": "", "last_assistant_message": str(content)}
        elif kind == "system" and record.get("subtype") in ("turn_duration", "stop_hook_summary"):
            event = "Stop"
        elif kind == "user" and isinstance(content, str):
            event, more = "UserPromptSubmit", {"prompt": content}
        elif isinstance(content, list):
            blocks = [block for block in content if isinstance(block, dict)]
            calls |= {str(block["id"]): block for block in blocks if block.get("type") == "tool_use"}
            done = [
                calls.get(str(block.get("tool_use_id")), {}) for block in blocks if block.get("type") == "tool_result"
            ]
            texts = [str(block.get("text")) for block in blocks if block.get("type") == "text"]
            if kind == "user" and done:
                event = "PostToolBatch"
                more = {"tool_calls": [{"tool_name": one.get("name"), "tool_input": one.get("input")} for one in done]}
            elif kind == "user" and texts:
                event, more = "UserPromptSubmit", {"prompt": "\n".join(texts)}
        yield event, more, record
        if event == "SubagentStop":
            yield "SessionStart", {"source": "compact"}, {"type": "progress"}


def _in_this_process(module: str, file: str, arguments: Sequence[str]) -> int:
    del module, file
    checkpoints.make(arguments)
    return 0


# ---- sessions ----


def _data() -> Iterator[tuple[str, list[Record]]]:
    for path in sorted((SHARED / "eval" / "data").glob("*.jsonl.gz")):
        text = gzip.decompress(path.read_bytes()).decode()
        yield path.name.partition(".")[0], [json.loads(line) for line in text.splitlines()]


def _case(name: str, size: int) -> list[Record]:
    """A session of the cases, again and again, each time with ids and times of its own."""
    path = SHARED / "cases" / name / "session.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return _repeated(records, size)


def _repeated(records: Sequence[Record], size: int) -> list[Record]:
    text = json.dumps(list(records))
    ids = {str(one[key]) for one in records for key in ("uuid",) if one.get(key)}
    ids |= {
        str(block["id"])
        for one in records
        for block in ((one.get("message") or {}).get("content") or ())
        if isinstance(block, dict) and block.get("type") == "tool_use"
    }
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "once.jsonl"
        path.write_bytes(b"".join(_line(one, "once") for one in records))
        once = sum(tokens.count(counted(event)) for event in open_transcript(path).events())
    found: list[Record] = []
    for number in range(-(-size // (once + tokens.count(_READ)))):
        again = text
        for one in ids:
            again = again.replace(json.dumps(one), json.dumps(f"{one}-{number}"))
        made: list[Record] = json.loads(again)
        for record in made:
            if "timestamp" in record:
                record["timestamp"] = f"2026-03-{1 + number // 24 % 28:02}T{number % 24:02}{record['timestamp'][13:]}"
            if record.get("type") == "user" and isinstance((record.get("message") or {}).get("content"), str):
                record["message"]["content"] += f" ({number})"
        found += [*made, *_reading(number, made[-1].get("timestamp", ""))]
    return found


_READ = "".join(f"{number},station {number % 9},{number * 7 % 400} cm\n" for number in range(900))


def _reading(number: int, when: str) -> list[Record]:
    """The agent reads a large file."""
    call = {"type": "tool_use", "id": f"read-{number}", "name": "Bash", "input": {"command": "cat data/levels.csv"}}
    result = {"type": "tool_result", "tool_use_id": f"read-{number}", "content": _READ}
    messages = (("assistant", {"model": "m", "id": f"m-{number}"}, call), ("user", {}, result))
    return [
        {
            "type": role,
            "uuid": f"{role}-{number}",
            "timestamp": when,
            "sessionId": "",
            "message": {"role": role, "content": [block], **more},
        }
        for role, more, block in messages
    ]


def _made(size: int) -> list[Record]:
    lines, _ = storekit.lines_of(size)
    return [json.loads(line) for line in lines.splitlines()]


def runs(kinds: Sequence[str], size: int) -> Iterator[Report]:
    """A report for each run of these kinds."""
    for name, records in _data() if "data" in kinds else ():
        yield _replayed(f"data {name[:2]}", [(name, records)])
    if "chain" in kinds:
        yield _replayed("chain", list(_data()), route="TASK-001")
    for name in CASES if "cases" in kinds else ():
        yield _replayed(f"case {name[:13]}", [(name, _case(name, size))])
    if "made" in kinds:
        yield _replayed("made", [(f"made-{number}", _made(size // 2)) for number in range(2)], route="TASK-001")


def _replayed(name: str, sessions: Sequence[tuple[str, list[Record]]], route: str = "") -> Report:
    folder = Path(tempfile.mkdtemp(prefix="replayed-"))
    try:
        if route:
            os.environ["RALF_TASK_ID"] = route
        replay = Replay(folder, name)
        for session, records in sessions:
            replay.run(session, records)
        return replay.judged()
    finally:
        os.environ.pop("RALF_TASK_ID", None)
        shutil.rmtree(folder, ignore_errors=True)


BROKEN = {"hints that look too far ahead": "late", "briefs that cost what they may": "dear"}
"""What can be broken on purpose, and the fault that the harness then has to find."""


def break_on_purpose(what: str, put: Callable[[object, str, object], None] = setattr) -> None:
    """Break one of `BROKEN` in this process."""
    if BROKEN[what] == "late":
        from ralf_integrations.hooks import growth

        put(growth, "BYTES", 40)
    else:
        put(handover, "allowance", lambda session, context: handover.Allowance(9_000, 9_000))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Real sessions through the hooks: segments, and what they cost.")
    parser.add_argument("--tokens", type=int, default=300_000, help="of a session that is repeated or made")
    parser.add_argument("--only", choices=KINDS, action="append", help="only these; may be repeated")
    parser.add_argument("--broken", choices=BROKEN, help="with this broken on purpose")
    options = parser.parse_args()
    kinds = options.only or [kind for kind in KINDS if kind != "made"]
    if not SHARED.is_dir() and kinds != ["made"]:
        print(f"skipped: {SHARED} is not there")
        return figures.SKIPPED
    for variable in [name for name in os.environ if name.startswith(("BB5_", "RALF_", "CLAUDE"))]:
        del os.environ[variable]
    if options.broken:
        break_on_purpose(options.broken)
    faults: list[str] = []
    found: list[figures.Figure] = []
    for report in runs(kinds, options.tokens):
        found += report.figures()
        faults += report.faults
    return figures.told(found, faults)


if __name__ == "__main__":
    sys.exit(main())
