"""Generated sessions, a hook after every step of them: every threshold gives a checkpoint, none two, none too soon.

    python -m tests.faults.thresholds --sessions 200 --most 2000000

A session is made of prose, code, logs, Chinese, Base64 and much that is nobody's: attachments, reminders, subagents,
summaries of compactions. Its tokens are counted here, text by text, with the tokenizer; nothing is asked of the hooks
but what they say and what the journal holds.

late      more tokens since the last checkpoint than the threshold, and what a look may leave unseen
early     a checkpoint at the threshold, of which nine tenths had not been reached
doubled   bytes that two checkpoints have, or none
pressure  an agent of a full window that was not asked to hand over, or twice, or of one that was not full
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.faults import rig
from tests.storekit import session_log

from ralf import environment
from ralf.checkpointing.due import BudgetWatcher
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.text import tokens
from ralf_integrations.hooks import checkpoints, entry, instant, usage

UNSEEN = int(usage.FEWEST / usage.BYTES)
"""Tokens that may follow a look before there is another one."""

_SESSION = "00000000-0000-4000-8000-{:012}"
_FULL = 140_000  # tokens in a window of 200,000 at which its agent is asked to hand over
_WORDS = "tide table harbour reader column station level batch window migration lock script deploy retry host".split()
_CHINESE = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出"


# ---- what is said ----


@cache
def _pool() -> tuple[tuple[str, int], ...]:
    """Texts of every kind, with their tokens."""
    dice = random.Random(1)
    made = [_text(dice, kind, size) for kind in range(6) for size in (20, 200, 900, 4_000) for _ in range(6)]
    return tuple((text, tokens.count(text)) for text in made)


def _text(dice: random.Random, kind: int, size: int) -> str:
    """A text of about that many characters: prose, code, a log, Chinese, Base64, JSON."""
    words = [dice.choice(_WORDS) for _ in range(size // 6 + 1)]
    return (
        lambda: f"{' '.join(words).capitalize()}.",
        lambda: "\n".join(
            f"    {word}{word.title()}Of = {word}({row}, timeout=9)" for row, word in enumerate(words[::6])
        ),
        lambda: "\n".join(
            f"2026-03-01T08:00Z [{word}] id={dice.randrange(1 << 40):x} took 7 ms" for word in words[::10]
        ),
        lambda: "".join(dice.choice(_CHINESE) for _ in range(size // 3 + 1)),
        lambda: base64.b64encode(dice.randbytes(size * 3 // 4)).decode(),
        lambda: json.dumps({f"{word}{row}": [row, row * 31] for row, word in enumerate(words[::3])}),
    )[kind]()


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


def one(number: int, seed: int, size: Size) -> rig.Found:
    """One session from its beginning to its end."""
    folder = Path(tempfile.mkdtemp(prefix="thresholds-"))
    try:
        return _one(folder, number, seed, size)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _one(folder: Path, number: int, seed: int, size: Size) -> rig.Found:
    root = folder / "project"
    root.mkdir()
    os.environ["CLAUDE_CONFIG_DIR"] = str(folder / ".claude")
    project = Project(root)
    ownership.init(project, share=False)
    project.config_file.write_text(f"threshold: {size.threshold}\n")
    if not size.detached:
        environment.start_detached = _in_this_process
    most = random.Random(f"{seed}-{number}-size").randrange(size.most // 4, size.most + 1)
    session = _Session(root, number, seed, most)
    due = round(0.9 * size.threshold)
    found, is_told, end, filling, known = rig.Found(rounds=1), False, 0, 0, 0
    where = f"session {number}"
    for _ in session.steps():
        before = session.since(end)
        data = _payload(session, root)
        if session.fillings > filling:
            is_told, filling = False, session.fillings
        if not instant.is_idle("claude-code", "PostToolBatch", data):
            answers: list[str] = []
            entry.run("claude-code", "PostToolBatch", data, answers.append)
            while _begun:
                checkpoints.make(_begun.pop(0))
            while size.detached and environment.started:
                environment.status_within(environment.started[0], 60)
            is_told = _check_told(found, where, "".join(answers), session.filled, is_told=is_told)
        if session.filled >= _FULL and not is_told:
            found.note("pressure", f"{where}: not asked at {session.filled:,} tokens")
            is_told = True
        found.acknowledged += before >= due
        spans = _spans(project)
        for reason, start, stop in spans[known:]:
            found.note("doubled", f"{where}: {start:,} after {end:,}", start != end)
            early = reason == "threshold" and before < due
            found.note("early", f"{where}: {before:,} tokens at byte {start:,}", early)
            end = stop
        known = len(spans)
        late = session.since(end) > size.threshold + UNSEEN
        found.note("late", f"{where}: {session.since(end):,} tokens after byte {end:,}", late)
    return found


def _check_told(found: rig.Found, where: str, said: str, filled: int, *, is_told: bool) -> bool:
    tree = json.loads(said) if said else {}
    if "systemMessage" in tree:
        found.note("failed", f"{where}: {tree['systemMessage']}")
    asked = re.search(r"the window is (\d+) % full", tree.get("hookSpecificOutput", {}).get("additionalContext", ""))
    if not asked:
        return is_told
    if asked[1] != f"{filled / 2_000:.0f}" or filled < _FULL:
        found.note("pressure", f"{where}: asked at {asked[1]} % of {filled:,}")
    found.note("pressure", f"{where}: asked twice", is_told)
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


_begun: list[Sequence[str]] = []
"""The arguments of processes that a hook has started: their work is done here, once the hook has answered."""


def _in_this_process(module: str, file: str, arguments: Sequence[str]) -> int:
    del module, file
    _begun.append(arguments)
    return 0


def _seen_twice() -> AbstractContextManager[object]:
    see = BudgetWatcher.see
    return patch.object(BudgetWatcher, "see", lambda self, event, tokens: see(self, event, 2 * tokens))


BROKEN: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "hints that look too far ahead": lambda: patch.object(usage, "BYTES", 40),
    "a watcher that counts what is injected": _seen_twice,
}


@dataclass(frozen=True)
class Size:
    """How many sessions, of how many tokens at most; `detached`: with the processes that hooks start."""

    sessions: int = 4
    most: int = 400_000
    threshold: int = 50_000
    detached: bool = False


def run(size: Size, seed: int, _: Sequence[str]) -> rig.Found:
    """So many sessions, two at once."""
    for variable in [name for name in os.environ if name.startswith(("BB5_", "RALF_", "CLAUDE"))]:
        del os.environ[variable]

    def share(numbers: Sequence[int]) -> rig.Found:
        found = rig.Found()
        for number in numbers:
            found.add(one(number, seed, size))
        return found

    return rig.shared_out(share, range(size.sessions), jobs=2)


if __name__ == "__main__":
    sys.exit(rig.command("thresholds", Size(), run, broken=BROKEN))
