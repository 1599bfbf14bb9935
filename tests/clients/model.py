"""A model for the tests, as a command line: reads a prompt, answers by its one argument what a good, lying, slow,
broken or refusing model would. No test double of ralf: it gets what a real one gets, and nothing else.

usage: model.py MODE [WHERE]      WHERE: a file that gets the prompt, the working folder and the environment
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_EVENT = re.compile(r"(\d+) (USER|AGENT): (.*)")


def said_in(prompt: str, who: str) -> list[tuple[int, str]]:
    """The messages in the data of a prompt, which stands between its two last fences: line and first line of text."""
    fence = prompt.rstrip("\n").rsplit("\n", 1)[1]
    events = map(_EVENT.fullmatch, prompt.split(f"{fence}\n")[-2].splitlines())
    return [(int(event[1]), event[3]) for event in events if event and event[2] == who]


def patch(prompt: str) -> dict[str, Any]:
    """What a good model makes of the sessions of `storekit`."""
    asked, said = said_in(prompt, "USER"), said_in(prompt, "AGENT")
    chosen = [(line, text) for line, text in said if text.startswith("We use batch size")]
    decisions = [
        {
            "kind": "decision",
            "status": "active",
            "text": text.replace("We use", "Use").partition(" instead")[0],
            "reason": "",
            "rejected": [text.rpartition("instead of ")[2].rstrip(".")],
            "line": line,
        }
        for line, text in chosen[:3]
    ]
    handover = {
        "goal": asked[0][1] if asked else "",
        "state": f"The agent said last: {said[-1][1]}",
        "done": [text for _, text in said[:5]],
        "next": [said[-1][1]],
        "questions": [],
        "names": [],
        "inferred": [],
    }
    curation: dict[str, list[Any]] = {
        key: [] for key in ("keep", "drop", "done", "taken_back", "duplicate", "superseded", "reworded")
    }
    return {
        "title": "Carry the tide table over",
        "handover": handover,
        "decisions": decisions,
        "curation": curation,
    }


def lies(good: dict[str, Any]) -> dict[str, Any]:
    """The good answer with a lie in each place where one can stand."""

    def chosen(text: str, line: int = 1, kind: str = "decision") -> dict[str, Any]:
        return {"kind": kind, "status": "active", "text": text, "reason": "", "rejected": [], "line": line}

    good["handover"]["done"] += ["The part of the tide table is in `src/forged.py` now."]
    good["handover"]["state"] += " The old columns of the table were 987654 before."
    good["handover"]["next"] += ["Have Kafka carry the tide table over to the new reader."]
    good["decisions"] += [
        chosen("Use Kafka for the tide table"),
        chosen("Keep the old columns in `forgedName`"),
        chosen("Paint the weather station green before winter comes"),
    ]
    good["curation"]["drop"] += ["DEC-999"]
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
        good = patch(prompt)
        print(json.dumps(lies(good) if mode == "lying" else good))


if __name__ == "__main__":
    main()
