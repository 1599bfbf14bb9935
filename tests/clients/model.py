"""A model for the tests, as a command line: reads a prompt, answers by its one argument what a good, lying, slow,
broken or refusing model would. No test double of ralf: it gets what a real one gets, and nothing else.

usage: model.py MODE [WHERE]      WHERE: a file that gets the prompt, the working folder and the environment
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def data_of(prompt: str) -> list[dict[str, Any]]:
    """The data lines of a prompt: those between its two last fences."""
    fence = prompt.rstrip("\n").rsplit("\n", 1)[1]
    return [json.loads(line) for line in prompt.split(f"{fence}\n")[-2].splitlines()]


def _said(data: list[dict[str, Any]], who: str) -> list[tuple[str, dict[str, int]]]:
    return [
        (line[who].split("\n")[0], {"first": line["lines"][0], "last": line["lines"][1]})
        for line in data
        if who in line
    ]


def patch(data: list[dict[str, Any]]) -> dict[str, Any]:
    """What a good model makes of the sessions of `storekit`: items in the words of their lines."""
    asked, said = _said(data, "user says"), _said(data, "agent says")
    chosen = [(text, lines) for text, lines in said if text.startswith("We use batch size")]
    section = [{"text": f"The user wants: {text}", "lines": lines} for text, lines in asked]
    section += [{"text": text, "lines": lines} for text, lines in said[:12]]
    decisions = [
        {
            "kind": "decision",
            "decision": text.replace("We use", "Use").partition(" instead")[0],
            "reason": "",
            "rejected": [{"option": text.rpartition("instead of ")[2].rstrip("."), "why_not": ""}],
            "supersedes": "",
            "lines": lines,
        }
        for text, lines in chosen[:3]
    ]
    text, lines = said[-1]
    work = {"next_steps": [{"text": text, "lines": lines}], "blockers": [], "findings": []}
    return {
        "title": "Carry the tide table over",
        "section": section,
        "decisions": decisions,
        "changes": [],
        "active_work": work,
    }


def lies(good: dict[str, Any]) -> dict[str, Any]:
    """The good answer with a lie in each place where one can stand."""
    lines = good["section"][0]["lines"]

    def told(text: str) -> dict[str, Any]:
        return {"text": text, "lines": lines}

    def chosen(text: str, first: int, last: int) -> dict[str, Any]:
        rest = {"reason": "", "rejected": [], "supersedes": "", "lines": {"first": first, "last": last}}
        return {"kind": "decision", "decision": text, **rest}

    good["section"] += [
        told("The part of the tide table is in `src/forged.py` now."),
        told("The old columns of the table were 4711 before."),
        told("Kafka carries the tide table over to the new reader."),
        told("Please do not carry the tide table over to the new reader."),
        told("# Carry the tide table over"),
    ]
    good["decisions"] += [
        chosen("Use Kafka for the tide table", lines["first"], lines["last"]),
        chosen("Keep the old columns in `forgedName`", lines["first"], lines["last"]),
        chosen("Carry part of the tide table over to the new reader", 1, 10_000_000),
        chosen("Carry the tide table over to the new reader", lines["first"], 400),
    ]
    return good


def main() -> None:
    """Answer by the mode."""
    mode = sys.argv[1]
    prompt = sys.stdin.read()
    if len(sys.argv) > 2:
        seen = {"prompt": prompt, "folder": os.getcwd(), "files": os.listdir(), "environment": dict(os.environ)}
        Path(sys.argv[2]).write_text(json.dumps(seen))
    if mode == "slow":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        if len(sys.argv) > 2:
            Path(sys.argv[2]).write_text(str(child.pid))
        time.sleep(60)
    elif mode == "broken":
        print('{"title": "half of an')
    elif mode == "refusing":
        print("I cannot help with that.")
    elif mode == "dead":
        sys.exit("401: your key is not known")
    elif mode == "endless":
        while True:
            print("x" * 65_536)
    elif mode == "misfit":
        print(json.dumps({"title": "T", "decisions": "none"}))
    else:
        good = patch(data_of(prompt))
        print(json.dumps(lies(good) if mode == "lying" else good))


if __name__ == "__main__":
    main()
