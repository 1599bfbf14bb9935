"""Transcripts whose places each hold a pump: a checkpoint takes at most a few times what kind text of the size takes.

Each place of an event (a message, a tool's output, a to-do, a path, a command …) is filled with each of the common
pumps; `tests/test_linear.py` does so.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.clocks import in_line
from tests.storekit import MEMORY

import ralf

MOST_RATIO = 5.0
_NOISE = 0.25  # seconds by which two runs of one case may differ
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


def seconds(text: str) -> float:
    """Seconds of processor time of a checkpoint of a transcript."""
    with tempfile.TemporaryDirectory(prefix="ralf-hostile-", dir=MEMORY) as folder:
        path = Path(folder, "session.jsonl")
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        begin = time.process_time()
        ralf.checkpoint("hostile", path, root=folder)
        return time.process_time() - begin


def check(place: str, pumps: Iterable[str], size: int) -> None:
    """Fails where a checkpoint of a transcript whose one place holds a pump takes longer than one with kind text."""

    def taken(pump: str) -> Callable[[], float]:
        return lambda: seconds(transcript(place, filled(pump, size)))

    everything()  # what is compiled or loaded once is not to count
    for pump in pumps:
        in_line(taken(KIND), taken(pump), MOST_RATIO, _NOISE)


def everything() -> None:
    """Make a checkpoint of a session that holds some of everything."""
    seconds(transcript(EVERYWHERE, filled(KIND, 20_000)))
