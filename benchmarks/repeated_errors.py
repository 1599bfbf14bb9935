"""Errors that sessions of a project meet again: whether what resolved them is handed over before.

    python benchmarks/repeated_errors.py            the figures
    python benchmarks/repeated_errors.py --missed   and each error that was met again without its resolution at hand
    python benchmarks/repeated_errors.py --reader PROGRAM ... --arm ours
                                                    ask a reader what it types where an error was met again: prompts on
                                                    its standard input, the answer on its standard output

`repeated_errors.json` has two sets of projects of eight sessions each: in each set fifty errors of the environment that
sessions meet again, and over 500 commands beside them, by authors who had not seen the code. Rules were made with the
first set; the second one was written and looked at afterwards. Sessions are taken in one after the other; before each,
the memory is asked what concerns its prompt, within 600 tokens, as a hook does. Baseline: the newest of it instead.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ralf
from ralf.memory import harvest, selection, writing
from ralf.memory.model import DEFAULT_AGENT, Item
from ralf.memory.wording import handed
from ralf.project import find
from ralf.text import tokens

_DATA = Path(__file__).with_suffix(".json")

ARMS = ("none", "ours", "newest")
"""What a reader is handed of the memory: nothing, what a hook hands over, the newest items."""

_CASES = 20  # in one prompt

_BEFORE = 6  # steps of a session that a reader sees

_DAY = "2026-{:02d}-{:02d}T08:{:02d}:{:02d}.000Z"


@dataclass
class Found:
    """What came of all sessions.

    met      errors that were met again, or would have been; `ready`: of these, with the resolution handed over before;
             `newest`: of these, with the resolution in the newest items instead
    missed   the others, in words
    handed   items that were handed over; `used`: of these, in the session to which they were handed
    tokens   of what each session was handed
    """

    met: int = 0
    ready: int = 0
    newest: int = 0
    learned: int = 0
    handed: int = 0
    used: int = 0
    items: set[tuple[int, str]] = field(default_factory=set)
    ever_used: set[tuple[int, str]] = field(default_factory=set)
    missed: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)


@dataclass
class Case:
    """A place in a session at which an error was met again.

    prompt      of the session, and `steps`: what it did before
    command     that failed; `resolution`: what resolved it each time
    handed      by arm, what the reader is handed
    """

    prompt: str
    steps: list[str]
    command: str
    resolution: str
    handed: dict[str, str]


def run(data: Mapping[str, Any]) -> Found:
    """Take in the sessions of each chain, one after the other."""
    found = Found()
    for number, sessions in enumerate(data["chains"]):
        traps = [trap for trap in data["traps"] if trap["chain"] == number]
        with tempfile.TemporaryDirectory() as folder:
            _chain(number, sessions, traps, Path(folder), found)
    return found


def _chain(number: int, sessions: Sequence[Any], traps: Sequence[Any], root: Path, found: Found) -> None:
    for place, session in enumerate(sessions):
        project = find(root)  # as each session does
        chosen = selection.for_task(project, DEFAULT_AGENT, session["prompt"])
        found.tokens.append(chosen.tokens)
        newest = _newest(writing.load(project, DEFAULT_AGENT).items)
        for trap in traps:
            if place in trap["again"]:
                found.met += 1
                is_ready = any(_resolves(item, trap) for item in chosen.items)
                found.ready += is_ready
                found.newest += any(_resolves(item, trap) for item in newest)
                texts = {"none": "", "ours": chosen.text, "newest": "\n".join(f"- {handed(item)}" for item in newest)}
                found.cases += _case(session, trap, [one["resolution"] for one in traps], texts)
                if not is_ready:
                    known = any(_resolves(item, trap) for item in writing.load(project, DEFAULT_AGENT).items)
                    found.missed.append(
                        f"{number}.{place} {'not chosen' if known else 'not learned'}: {trap['command']}"
                    )
        name = f"s-{number}-{place}"
        log = root / f"{name}.jsonl"
        log.write_text("".join(_records(name, place, session)), encoding="utf-8")
        ralf.checkpoint(session["route"], log, root=root)
        project = find(root)
        harvest.take_in(project, session["route"])
        labels = [item.id for item in chosen.items]
        verdicts = harvest.judge(project, session["route"], agent=DEFAULT_AGENT, session=name, labels=labels, after=0)
        used = {label for label, verdict in verdicts.items() if verdict == "helpful"}
        found.handed += len(labels)
        found.used += len(used & set(labels))
        found.items |= {(number, label) for label in labels}
        found.ever_used |= {(number, label) for label in used}
    learned = writing.load(project, DEFAULT_AGENT).items
    found.learned += sum(any(_resolves(item, trap) for item in learned) for trap in traps)


def _case(
    session: Mapping[str, Any], trap: Mapping[str, Any], resolutions: Sequence[str], texts: dict[str, str]
) -> Iterator[Case]:
    """The place in a session at which a trap was met, if there is one. What resolved another one is not shown."""
    steps = session["steps"]
    for number, step in enumerate(steps):
        if (
            "run" in step
            and step["failed"]
            and (step["run"] == trap["command"] or trap["error"][:40] in step["output"])
        ):
            before = [
                _told(one) for one in steps[:number] if not one.get("failed") and one.get("run") not in resolutions
            ]
            yield Case(session["prompt"], before[-_BEFORE:], step["run"], trap["resolution"], texts)
            return


def _told(step: Mapping[str, Any]) -> str:
    if "run" in step:
        return f"$ {step['run']}"
    return f"edited {step['edit']}" if "edit" in step else str(step["say"])


def _newest(items: Sequence[Item]) -> list[Item]:
    """The newest items, as many as have room in the same number of tokens."""
    found, free = [], selection.UNASKED
    for item in sorted(items, key=lambda item: item.last_seen, reverse=True):
        free -= tokens.count(f"- {handed(item)}\n")
        if free < 0:
            break
        found.append(item)
    return found


def _resolves(item: Item, trap: Mapping[str, Any]) -> bool:
    """Whether an item tells what resolved an error: the command that did, or the file that was edited."""
    if item.kind != "trap":
        return False
    given, wanted = " ".join(item.resolution.split()), " ".join(str(trap["resolution"]).split())
    return given == wanted or (wanted.startswith("edit ") and wanted.removeprefix("edit ") in given)


def _records(name: str, place: int, session: Mapping[str, Any]) -> Iterator[str]:
    """The session as Claude Code logs it."""
    count = 0

    def record(role: str, content: object) -> str:
        nonlocal count
        count += 1
        time = _DAY.format(3, place + 1, count // 60, count % 60)
        tree = {"type": role, "sessionId": name, "cwd": "/srv", "timestamp": time}
        return json.dumps(tree | {"message": {"role": role, "content": content}}) + "\n"

    yield record("user", session["prompt"])
    for number, step in enumerate(session["steps"]):
        if "say" in step:
            yield record("assistant", [{"type": "text", "text": step["say"]}])
            continue
        if "run" in step:
            tool, given, output = "Bash", {"command": step["run"]}, step["output"]
            failed = step["failed"]
        else:
            path = f"/srv/{step['edit']}"
            tool, given = "Edit", {"file_path": path, "old_string": "a", "new_string": "b"}
            output, failed = f"The file {path} has been updated.", False
        use = {"type": "tool_use", "id": f"c{number}", "name": tool, "input": given}
        text = f"Exit code 1\n{output}" if failed else output
        yield record("assistant", [use])
        yield record(
            "user", [{"type": "tool_result", "tool_use_id": f"c{number}", "content": text, "is_error": failed}]
        )
    yield record("assistant", [{"type": "text", "text": "Done."}])


# ---- with a reader ----


_ASKED = """You are a coding agent. Below are {count} situations, each of another session. For each say what you type
now: you have done what it lists, and want to run the command that it names. If something has to be done first so that
this command does not fail, type that first; if another command should be run instead, type that. Use of the notes only
those of the situation itself. Do not look around first, and look nothing up.

Answer with one block for each situation: a line `CASE N`, then one to three command lines (or `edit PATH: what`), in
the order in which you run them. Nothing else.
"""


def prompt_of(cases: Sequence[Case], arm: str) -> str:
    """What a reader is asked."""
    parts = [_ASKED.format(count=len(cases))]
    for number, case in enumerate(cases, start=1):
        parts += [f"## CASE {number}", f"The user asked: {case.prompt}"]
        parts += ["You have done:", *(f"  {step}" for step in case.steps)] if case.steps else []
        parts += ["Notes of earlier sessions in this project:", case.handed[arm].rstrip()] if case.handed[arm] else []
        parts += [f"Now you want to run: `{case.command}`", ""]
    return "\n".join(parts)


def repeats(case: Case, typed: Sequence[str]) -> bool:
    """Whether a reader meets the error again: it runs the command, and not before it what resolved the error."""
    command, resolution = _plain(case.command), _plain(case.resolution.removeprefix("edit "))
    for line in map(_plain, typed):
        if resolution in line:
            return False
        if command in line:
            return True
    return False


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[`'\"]", " ", text).split())


def ask(program: Sequence[str], cases: Sequence[Case], arm: str) -> list[list[str]]:
    """The lines that a reader types in each case."""
    typed: list[list[str]] = []
    for start in range(0, len(cases), _CASES):
        some = cases[start : start + _CASES]
        done = subprocess.run(program, input=prompt_of(some, arm), capture_output=True, text=True, check=True)
        blocks: dict[int, list[str]] = {}
        lines: list[str] = []
        for line in done.stdout.splitlines():
            if number := re.match(r"\W*CASE (\d+)", line):
                lines = blocks.setdefault(int(number[1]), [])
            elif line.strip() and not line.startswith("```"):
                lines.append(line)
        typed += [blocks.get(number, []) for number in range(1, len(some) + 1)]
    return typed


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--reader", nargs="+", metavar="PROGRAM")
    parser.add_argument("--arm", choices=ARMS, default="ours")
    given = parser.parse_args()
    sets = {name: run(data) for name, data in json.loads(_DATA.read_text(encoding="utf-8")).items()}
    if given.reader:
        cases = [case for found in sets.values() for case in found.cases]
        typed = ask(given.reader, cases, given.arm)
        count = sum(repeats(case, lines) for case, lines in zip(cases, typed, strict=True))
        print(f"| {given.arm}: errors that a reader repeats | {count} of {len(cases)} | |")
        if given.missed:
            for case, lines in zip(cases, typed, strict=True):
                print(
                    f"{'repeats' if repeats(case, lines) else 'avoids'}: {case.command} | {case.resolution} | {lines}"
                )
        return 0
    for name, found in sets.items():
        _tell(name, found, missed=given.missed)
    return 0


def _tell(name: str, found: Found, *, missed: bool) -> None:
    never = len(found.items - found.ever_used)
    rows = [
        ("traps learned in the end", f"{found.learned} of 50", ""),
        ("errors met again whose resolution was handed over before", f"{found.ready} of {found.met}", ">= 90 %"),
        ("the same, with the newest 600 tokens of the memory", f"{found.newest} of {found.met}", ""),
        ("items handed over that were used in that session", f"{found.used} of {found.handed}", ""),
        ("items handed over that were never used", f"{never} of {len(found.items)}", "<= 20 %"),
        ("tokens handed over, most", max(found.tokens), "<= 600"),
    ]
    for what, figure, gate in rows:
        print(f"| {name} set: {what} | {figure} | {gate} |")
    if missed:
        print("\n".join(found.missed), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
