"""Generated sessions, a hook after every step of them: every threshold gives a checkpoint, none two, none too soon.

    python -m tests.faults.thresholds --sessions 200 --most 2000000 --jobs 2     the long run
    python -m tests.faults.thresholds --seed 7 --only 12                         one session again

A session is made of prose, code, logs, Chinese, Base64 and much that is nobody's: attachments, reminders, subagents,
summaries of compactions. Its tokens are counted here, text by text, with the tokenizer; nothing is asked of the hooks
but what they say and what the journal holds. Checkpoints are made in this process, or in those that hooks start
(`--detached`).

late      more tokens since the last checkpoint than the threshold, and what a look may leave unseen
early     a checkpoint at the threshold, of which nine tenths had not been reached
doubled   bytes that two checkpoints have, or none
pressure  an agent of a full window that was not asked to hand over, or twice, or of one that was not full
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.faults import figures
from tests.storekit import session_log

from ralf import environment
from ralf.checkpointing.due import BudgetWatcher
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.text import tokens
from ralf_integrations.hooks import checkpoints, entry, growth, instant

UNSEEN = int(4096 / 1.4)
"""Tokens that may follow a look before there is another one."""

_SESSION = "00000000-0000-4000-8000-{:012}"
_FULL = 140_000  # tokens in a window of 200,000 at which its agent is asked to hand over
_WORDS = "tide table harbour reader column station level batch window migration lock script deploy retry host".split()
_CHINESE = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出"


@dataclass
class Report:
    """What a run came to."""

    sessions: int = 0
    tokens: int = 0
    hooks: int = 0
    looks: int = 0
    checkpoints: int = 0
    crossings: int = 0
    told: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Take another one in."""
        for name in ("sessions", "tokens", "hooks", "looks", "checkpoints", "crossings", "told"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults += other.faults

    def figures(self) -> Iterator[figures.Figure]:
        """What it tells, a line a figure."""
        what = f"{self.sessions} sessions of {self.tokens:,} tokens"
        yield f"{what}: hooks, and how many of them looked", f"{self.hooks:,}, {self.looks:,}", ""
        yield f"{what}: thresholds, checkpoints, agents asked", f"{self.crossings}, {self.checkpoints}, {self.told}", ""
        yield f"{what}: late, early, doubled, asked wrongly", len(self.faults), "0"


# ---- what is said ----


@cache
def _pool() -> tuple[tuple[str, int], ...]:
    """Texts of every kind, with their tokens."""
    dice = random.Random(1)
    made = [_text(dice, kind, size) for kind in range(6) for size in (20, 200, 900, 4_000) for _ in range(6)]
    return tuple((text, tokens.count(text)) for text in made)


def _text(dice: random.Random, kind: int, size: int) -> str:
    """A text of about that many characters."""
    if kind == 0:
        text = " ".join(dice.choice(_WORDS) for _ in range(size // 6 + 1)).capitalize() + "."
    elif kind == 1:
        names = [f"{dice.choice(_WORDS)}{dice.choice(_WORDS).title()}Of{dice.choice(_WORDS).title()}" for _ in range(9)]
        line = "    {} = {}({}, timeout={})"
        count = size // 50 + 1
        text = "\n".join(line.format(*dice.sample(names, 3), dice.randrange(99)) for _ in range(count))
    elif kind == 2:
        text = "\n".join(
            f"2026-03-01T08:{row % 60:02}:00Z [{dice.choice(_WORDS)}] id={dice.randrange(1 << 40):x} took {row * 7} ms"
            for row in range(size // 60 + 1)
        )
    elif kind == 3:
        text = "".join(dice.choice(_CHINESE) for _ in range(size // 3 + 1))
    elif kind == 4:
        text = base64.b64encode(dice.randbytes(size * 3 // 4)).decode()
    else:
        text = json.dumps({dice.choice(_WORDS) + str(row): [row, row * 31] for row in range(size // 20 + 1)})
    return text


# ---- one session ----


class _Session:
    """A session that goes on by steps; what it holds is known to the token."""

    def __init__(self, root: Path, number: int, seed: int, size: int) -> None:
        self.dice = random.Random(f"{seed}-{number}")
        self.root = root
        self.id = _SESSION.format(number)
        self.path = session_log(root.parent, root, self.id)
        self.size = size
        self.tokens = 0
        self.filled = 20_000
        self.fillings = 0
        self.places: list[tuple[int, int]] = []
        """Of each record with event text: where it ends, and its tokens."""
        self._file = self.path.open("ab")
        self._calls = 0

    def steps(self) -> Iterator[None]:
        """Each step of the agent: something said, a call, a result, and what others write between them."""
        while self.tokens < self.size:
            if self.dice.random() < 0.05:
                self._say("user", self._some())
            text, size = self._some()
            self._calls += 1
            call = {"type": "tool_use", "id": f"t{self._calls}", "name": "Bash", "input": {"command": "make part"}}
            self._grow(size)
            self._say("assistant", (text, size + tokens.count("make part")), call)
            if self.dice.random() < 0.3:
                self._inject()
            for _ in range(self.dice.choice((1, 1, 1, 4))):
                result, size = self._some()
                block = {"type": "tool_result", "tool_use_id": f"t{self._calls}", "content": result}
                self._write({"type": "user", "message": {"role": "user", "content": [block]}}, size)
            self._file.flush()
            yield
        self._file.close()

    def since(self, byte: int) -> int:
        """Tokens after a place."""
        found = 0
        for end, size in reversed(self.places):
            if end <= byte:
                break
            found += size
        return found

    def _some(self) -> tuple[str, int]:
        return self.dice.choice(_pool())

    def _grow(self, size: int) -> None:
        """The client's window fills up, faster than the transcript shows, and is compacted near its end."""
        self.filled += size + self.dice.randrange(1_500)
        if self.filled > 192_000:
            boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}}
            self._write(boundary, 0)
            text = "This session is being continued from a previous conversation. " + self._some()[0] * 8
            self._write({"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": text}}, 0)
            self.filled = 25_000 + size
            self.fillings += 1

    def _say(self, role: str, said: tuple[str, int], *more: object) -> None:
        content: list[object] = [{"type": "text", "text": said[0]}, *more]
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            used = {"input_tokens": 9, "cache_read_input_tokens": self.filled - 109, "output_tokens": 100}
            message |= {"model": "m", "id": f"m{self._calls}", "usage": used}
        self._write({"type": role, "message": message}, said[1])

    def _inject(self) -> None:
        text = self._some()[0] * self.dice.choice((1, 10))
        usage = {"input_tokens": 199_000, "output_tokens": 9}
        kind = self.dice.randrange(4)
        if kind == 0:
            self._write({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [text]}}, 0)
        elif kind == 1:
            reminder = f"<system-reminder>{text}</system-reminder>"
            self._write({"type": "user", "message": {"role": "user", "content": reminder}}, 0)
        elif kind == 2:
            message = {"role": "assistant", "model": "m", "content": [{"type": "text", "text": text}], "usage": usage}
            self._write({"type": "assistant", "isSidechain": True, "message": message}, 0)
        else:
            self._write({"type": "user", "isMeta": True, "message": {"role": "user", "content": text}}, 0)

    def _write(self, record: dict[str, Any], size: int) -> None:
        base = {"sessionId": self.id, "timestamp": "2026-03-01T08:00:00.000Z"}
        self._file.write(json.dumps({**base, **record}, ensure_ascii=False).encode() + b"\n")
        self.tokens += size
        if size:
            self.places.append((self._file.tell(), size))


def one(number: int, seed: int, most: int, threshold: int, *, processes: bool) -> Report:
    """One session from its beginning to its end."""
    folder = Path(tempfile.mkdtemp(prefix="thresholds-"))
    try:
        return _one(folder, number, seed, most, threshold, processes=processes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _one(folder: Path, number: int, seed: int, most: int, threshold: int, *, processes: bool) -> Report:
    root = folder / "project"
    root.mkdir()
    os.environ["CLAUDE_CONFIG_DIR"] = str(folder / ".claude")
    project = Project(root)
    ownership.init(project, share=False)
    project.config_file.write_text(f"threshold: {threshold}\n")
    if not processes:
        environment.start_detached = _in_this_process
    session = _Session(root, number, seed, random.Random(f"{seed}-{number}-size").randrange(most // 4, most + 1))
    due = round(0.9 * threshold)
    report, is_told, end, filling = Report(sessions=1), False, 0, 0
    where = f"session {number}"
    for step in session.steps():
        del step
        before = session.since(end)
        data = _payload(session, root)
        report.hooks += 1
        if session.fillings > filling:
            is_told, filling = False, session.fillings
        if not instant.is_idle("claude-code", "PostToolBatch", data):
            report.looks += 1
            answers: list[str] = []
            entry.run("claude-code", "PostToolBatch", data, answers.append, instant.is_idle)
            said = "".join(answers)
            if processes:
                _settle(root)
            is_told = _check_told(report, where, said, session.filled, is_told=is_told)
        if session.filled >= _FULL and not is_told:
            report.faults.append(f"{where}: pressure: not asked at {session.filled:,} tokens")
            is_told = True
        spans = _spans(project)
        report.crossings += before >= due
        for reason, start, stop in spans[report.checkpoints :]:
            report.checkpoints += 1
            if start != end:
                report.faults.append(f"{where}: doubled: {start:,} after {end:,}")
            if reason == "threshold" and before < due:
                report.faults.append(f"{where}: early: {before:,} tokens at byte {start:,}")
            end = stop
        if session.since(end) > threshold + UNSEEN:
            report.faults.append(f"{where}: late: {session.since(end):,} tokens after byte {end:,}")
    report.tokens = session.tokens
    return report


def _check_told(report: Report, where: str, said: str, filled: int, *, is_told: bool) -> bool:
    tree = json.loads(said) if said else {}
    if "systemMessage" in tree:
        report.faults.append(f"{where}: {tree['systemMessage']}")
    text = tree.get("hookSpecificOutput", {}).get("additionalContext", "")
    found = re.search(r"the window is (\d+) % full", text)
    if not found:
        return is_told
    report.told += 1
    if found[1] != f"{filled / 2_000:.0f}" or filled < _FULL:
        report.faults.append(f"{where}: pressure: asked at {found[1]} % of {filled:,}")
    if is_told:
        report.faults.append(f"{where}: pressure: asked twice")
    return True


def _payload(session: _Session, root: Path) -> bytes:
    calls = [{"tool_name": "Bash", "tool_input": {"command": "make part"}, "tool_response": "x"}]
    tree = {"session_id": session.id, "transcript_path": str(session.path), "cwd": str(root), "tool_calls": calls}
    return json.dumps(tree | {"hook_event_name": "PostToolBatch"}).encode()


def _spans(project: Project) -> list[tuple[str, int, int]]:
    """Reason, first and last byte of each checkpoint, read with our own eyes."""
    found = []
    for line in _lines(project):
        payload = json.loads(line)["record"]["payload"]
        if "source" in payload:
            source = payload["source"]
            found.append((payload["reason"], source["from_byte"], source["to_byte"]))
    return found


def _lines(project: Project) -> list[bytes]:
    journal = project.folder / "journal" / "routes" / "default.jsonl"
    return journal.read_bytes().splitlines() if journal.exists() else []


def _in_this_process(module: str, file: str, arguments: Sequence[str]) -> int:
    del module, file
    checkpoints.make(arguments)
    return 0


def _settle(root: Path) -> None:
    while environment.started:
        child = environment.started[0]
        environment.status_within(child, 60)


BROKEN = {"hints that look too far ahead": "late", "a watcher that counts what is injected": "early"}
"""What can be broken on purpose, and the fault that the harness then has to find."""


def break_on_purpose(what: str, put: Callable[[object, str, object], None] = setattr) -> None:
    """Break one of `BROKEN` in this process."""
    if BROKEN[what] == "late":
        put(growth, "BYTES", 40)
    else:
        see = BudgetWatcher.see
        put(BudgetWatcher, "see", lambda self, event, tokens: see(self, event, 2 * tokens))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Every threshold gives a checkpoint, none two, none too soon.")
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--most", type=int, default=400_000, help="tokens that a session has at most")
    parser.add_argument("--threshold", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this session alone")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--detached", action="store_true", help="in the processes that hooks start")
    parser.add_argument("--broken", choices=BROKEN, help="with this broken on purpose")
    options = parser.parse_args()
    for variable in [name for name in os.environ if name.startswith(("BB5_", "RALF_", "CLAUDE"))]:
        del os.environ[variable]
    numbers = range(options.sessions) if options.only is None else [options.only]
    if options.broken:
        break_on_purpose(options.broken)
    total = Report()
    with ProcessPoolExecutor(options.jobs) as pool:
        running = [
            pool.submit(one, number, options.seed, options.most, options.threshold, processes=options.detached)
            for number in numbers
        ]
        for found in running:
            total.add(found.result())
    return figures.told(total.figures(), total.faults)


if __name__ == "__main__":
    sys.exit(main())
