"""Transcripts whose places each hold a pump: a checkpoint takes at most a few times what kind text of the size takes.

    python -m tests.faults.hostile                   every place, pumps of every expression, 1 MB: the long run

Each case runs in a fork of this process, which may take a minute of processor time. Each place of an event (a message,
a tool's output, a to-do, a path, a command …) is filled with each of the common pumps, and all places at once with the
worst pump of each expression of the package (`expressions`).

slow     more than five times the processor time of kind text in the same place
memory   more than 200 MB at the peak, of which 105 MB are ralf, the tokenizer and the expressions
error    any
"""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults import rig
from tests.faults.expressions import expressions, worst_pump
from tests.storekit import MEMORY

import ralf
from ralf.redact.redactor import Redactor
from ralf.text import tokens

MOST_RATIO = 5.0
MOST_MEMORY = 95 << 20
"""Bytes at the peak of a checkpoint, beside what the process had before: 200 MB for all."""
LONGEST = 60  # seconds of processor time of a case
_NOISE = 0.25  # seconds by which two runs of one case may differ
_AGAIN = 3  # times that a slow case is measured again: a shared machine adds time, it never takes any away

KIND = (
    "The server reads its configuration at start. We then run `pytest -q tests/test_api.py` and look at"
    " src/api/routes.py. It failed with an error in the middleware, so I changed it.\n\n- [ ] check the tokens\n"
    "- use FastAPI because it is faster\n"
)
PUMPS = (
    *(" ", "a", "A", "0", "-", "_", '"', "'", "`", "\n", "*", "#", ".", "(", "[", "<", ">", "/", "\\", ":", "="),
    *(",", "|", "a ", "a.", "a\n", "A0", " \n", "- ", "**", "\\n", "a:", "a=", "x,", "$", "é", "«", "…", "--"),
    *("a-", "a_", "aA0", "'a'", "`a` ", "not ", "to ", "the ", "1. ", "> ", "| ", "\n#", "\n# ", "\n\n"),
    *("- [ ] a\n", "```\n", "~~~", "(a", "step 1 of 2 ", "[blocked by ", "#1 [a] b\n", "<tick></tick>", "<tick>"),
    *("<a>", "<system-reminder>", "<!-- ", "<command-name>a</command-name>", "<!-- ralf:context 123456789: \n"),
    *("because ", "instead of ", "I decided to use a. ", "a/", "a/b.py ", "error: ", "Error: a\n", "FAILED a\n"),
    *("1 passed, ", "[main abc1234] m\n", "$(", "${", "<<a\n", "<<a ", "&& ", "; ", "'\\", "git commit -m "),
    *("\u200d", "\x1b[", "\x1b]", "\r", "\0", "https://a.b/", "a@b.c ", "don't ", "should ", "must not ", "no, "),
    *("I'll ", "let's ", "e.g. ", "*** Update File: a\n", "? ", ". A", ", not "),
)

Record = dict[str, Any]


def _record(kind: str, number: int, content: object, **more: object) -> Record:
    return {
        "type": kind,
        "sessionId": "11111111-2222-3333-4444-555555555555",
        "cwd": "/proj",
        "timestamp": f"2026-02-07T10:{number // 60 % 60:02d}:{number % 60:02d}Z",
        "message": {"role": kind, "content": content},
        **more,
    }


def _said(text: str) -> list[Record]:
    return [_record("user", 2, text)]


def _told(text: str) -> list[Record]:
    return [_record("assistant", 3, [{"type": "text", "text": text}])]


def _called(tool: str, given: object, answer: str = "ok", *, failed: bool = False) -> list[Record]:
    call = {"type": "tool_use", "id": f"t{len(answer)}", "name": tool, "input": given}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": answer, "is_error": failed}
    return [_record("assistant", 4, [call]), _record("user", 5, [result])]


def _numbers(text: str, each: int) -> range:
    """As many as a text of this length has parts of so many characters."""
    return range(len(text) // each)


def _many(text: str, each: int, made: Callable[[int], list[Record]]) -> list[Record]:
    return [record for number in _numbers(text, each) for record in made(number)]


PLACES: dict[str, Callable[[str], list[Record]]] = {
    "request": _said,
    "rule": lambda x: [*_said(f"Always use pathlib. {x}"), *_told("ok, done")],
    "message": _told,
    "decision": lambda x: _told(f"I decided to use FastAPI because {x}"),
    "thought": lambda x: [_record("assistant", 3, [{"type": "thinking", "thinking": x}])],
    "file": lambda x: _called("Read", {"file_path": "/proj/a.py"}, x),
    "output": lambda x: _called("Bash", {"command": "pytest -q && git commit -m x"}, x),
    "error": lambda x: _called("Bash", {"command": "pytest -q"}, f"Exit code 1\n{x}", failed=True),
    "found": lambda x: _called("Grep", {"pattern": "x"}, x),
    "command": lambda x: _called("Bash", {"command": x}),
    "failed command": lambda x: _called("Bash", {"command": f"git {x}"}, "Exit code 1\nboom", failed=True),
    "path": lambda x: _called("Edit", {"file_path": x, "old_string": "a", "new_string": "b"}),
    "edit": lambda x: _called("Edit", {"file_path": "/proj/a.md", "old_string": "a", "new_string": x}),
    "key": lambda x: _called("Edit", {x: "b"}),
    "to-do": lambda x: _called("TodoWrite", {"todos": [{"content": x, "status": "in_progress"}]}),
    "to-do list": lambda x: _called("TaskList", {}, x),
    "tool": lambda x: _called(x, {"a": "b"}),
    "summary": lambda x: [_record("user", 2, f"This session is being continued{x}", isCompactSummary=True)],
    "answer": lambda x: _called(
        "AskUserQuestion",
        {"questions": [{"question": "a?", "options": [{"label": x[:2_000], "description": x}]}]},
        f"User has answered your questions: {x}",
    ),
    "refusal": lambda x: _called(
        "Bash", {"command": "rm x"}, f"The user doesn't want to. the user said:\n{x}", failed=True
    ),
    "plan": lambda x: _called("ExitPlanMode", {"plan": f"# Plan\n## Changes\n{x}"}, f"## Approved plan\n{x}"),
    "patch": lambda x: _called("apply_patch", {"input": f"*** Begin Patch\n*** Update File: a.py\n{x}"}),
    "cwd": lambda x: [_record("assistant", 3, [{"type": "text", "text": "Done."}]) | {"cwd": f"/{x}"}],
    "many to-dos": lambda x: _called("TodoWrite", {"todos": [{"content": f"{x[:20]}{n}"} for n in _numbers(x, 60)]}),
    "many tasks": lambda x: _many(
        x, 500, lambda n: _called("TaskCreate", {"subject": f"{x[:20]} {n}"}, f"#{n} created")
    ),
    "many files": lambda x: _many(x, 500, lambda n: _called("Write", {"file_path": f"/proj/{n}{x[:20]}.py"})),
    "many failures": lambda x: _many(
        x,
        500,
        lambda n: _called("Bash", {"command": f"run {n} {x[:20]}"}, f"Exit code 1\nerror: {n}{x[:20]}", failed=True),
    ),
    "many questions": lambda x: _called(
        "AskUserQuestion", {"questions": [{"question": f"{n}{x[:4]}?", "options": []} for n in _numbers(x, 60)]}, x
    ),
    "many messages": lambda x: _many(x, 300, lambda n: [*_said(f"{n} {x[:90]}"), *_told(x[:90])]),
}
"""By its name, records with a text in one place of an event."""

EVERYWHERE = "everywhere"


def transcript(place: str, text: str) -> str:
    """A session whose one place holds a text; `everywhere`: all places, each a part of it."""
    records = _said("Please add JWT authentication to the API server, then run the tests.")
    if place == EVERYWHERE:
        part = text[: len(text) // len(PLACES)]
        records += [one for made in PLACES.values() for one in made(part)]
    else:
        records += PLACES[place](text)
    return "".join(json.dumps(record) + "\n" for record in records)


def filled(pump: str, size: int) -> str:
    """A text of a size made of a pump."""
    return (pump * (size // len(pump) + 1))[:size]


class Cost(NamedTuple):
    """What a checkpoint took: seconds of processor time, bytes at the peak beside what the process had before, and what
    went wrong, "" for nothing.
    """

    seconds: float
    peak: int
    error: str


def cost(text: str, *, redacted: bool = True) -> Cost:
    """What a checkpoint of a transcript takes, in a fork of this process; `redacted`: with redaction, as it is."""
    pipe = rig.Pipe()

    def measure() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST + 1))
        pipe.acknowledge(json.dumps(_checkpoint(text, redacted=redacted)))

    child = rig.forked(measure)
    told = pipe.text()
    os.waitpid(child, 0)
    return Cost(*json.loads(told)) if told else Cost(LONGEST, 0, "did not end")


def _checkpoint(text: str, *, redacted: bool) -> tuple[float, int, str]:
    tokens._build = _tokenizer
    if not redacted:
        _leave_out_redaction()
    folder = Path(tempfile.mkdtemp(prefix="ralf-hostile-", dir=MEMORY))
    try:
        (folder / "session.jsonl").write_text(text, encoding="utf-8", errors="surrogatepass")
        begin, before, error = time.process_time(), _peak(), ""
        try:
            ralf.checkpoint("hostile", folder / "session.jsonl", root=folder)
        except Exception as caught:
            error = f"{type(caught).__name__}: {caught}"[:200]
        return time.process_time() - begin, _peak() - before, error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _tokenizer(build: Callable[[], Any] = tokens._build) -> Any:
    """What tiktoken makes of the ranks, once for all cases: it takes longer than most of them."""
    return build()


def _peak() -> int:
    """Bytes that this process has had at the most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)


def _leave_out_redaction() -> None:
    Redactor.text = lambda self, text: text  # type: ignore[method-assign]
    Redactor.tree = lambda self, value: value  # type: ignore[method-assign]
    Redactor.events = lambda self, events, **_: (list(events), {})  # type: ignore[assignment,method-assign]


def faults(place: str, pumps: Iterable[str], size: int, *, redacted: bool = True) -> list[str]:
    """What is wrong with checkpoints of transcripts whose one place holds each of the pumps."""
    everything()  # what is compiled or loaded once is not to count
    _tokenizer()
    kind = min(cost(transcript(place, filled(KIND, size)), redacted=redacted).seconds for _ in range(2))
    found = []
    for pump in pumps:
        text = transcript(place, filled(pump, size))
        made = cost(text, redacted=redacted)
        for _ in range(_AGAIN):
            if made.seconds <= MOST_RATIO * kind + _NOISE or made.seconds >= LONGEST:
                break
            made = min(made, cost(text, redacted=redacted), key=lambda one: one.seconds)
        told = f"{place}: {pump!r}, {size:,} characters: {made.seconds:.2f} s for {kind:.2f} s, {made.peak >> 20} MB"
        if made.error:
            found.append(f"error: {told}: {made.error}")
        elif made.seconds > MOST_RATIO * kind + _NOISE:
            found.append(f"slow: {told}")
        elif made.peak > MOST_MEMORY:
            found.append(f"memory: {told}")
    return found


def everything() -> None:
    """Make a checkpoint of a session that holds some of everything."""
    made = _checkpoint(transcript(EVERYWHERE, filled(KIND, 20_000)), redacted=True)
    assert not made[2], made
    gc.collect()
    gc.freeze()  # a collection of garbage in a fork would copy the pages of all that was there before


@dataclass(frozen=True)
class Size:
    """Characters of a pump."""

    size: int = 1_000_000


def run(size: Size, _: int, only: Sequence[str]) -> rig.Found:
    """All pumps in each of these places; in all places at once the worst pump of each expression as well."""
    found = rig.Found()
    for place in only:
        more = map(worst_pump, expressions()) if place == EVERYWHERE else ()
        pumps = sorted({*PUMPS, *more})
        found.rounds += len(pumps)
        for fault in faults(place, pumps, size.size):
            found.note(f"{fault.partition(':')[0]} {place}", fault)
    return found


if __name__ == "__main__":
    sys.exit(rig.command("hostile", Size(), run, kinds=(*PLACES, EVERYWHERE)))
