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

_ENTRY = re.compile(r"\[(\d+)\] (person|agent): (.*)")

LIES = ("src/forged.py", "forgedName", "987654")


def said_in(prompt: str, who: str) -> list[tuple[int, str]]:
    """The messages in the data of a prompt, which stands between its two last fences: line and first line of text."""
    fence = prompt.rstrip("\n").rsplit("\n", 1)[1]
    entries = map(_ENTRY.fullmatch, prompt.split(f"{fence}\n")[-2].splitlines())
    return [(int(entry[1]), entry[3]) for entry in entries if entry and entry[2] == who]


def answer(prompt: str) -> dict[str, Any]:
    """What a good model makes of the sessions of `storekit`."""
    asked, said = said_in(prompt, "person"), said_in(prompt, "agent")
    chosen = [(line, text) for line, text in said if text.startswith("We use batch size")]
    decisions = [
        {
            "text": text.replace("We use", "Use").partition(" instead")[0],
            "words": text,
            "line": line,
            "reason": "",
            "rejected": [text.rpartition("instead of ")[2].rstrip(".")],
        }
        for line, text in chosen[:3]
    ]
    return {
        "now": f"The agent said last: {said[-1][1]}" if said else "Nothing was said.",
        "why": asked[0][1] if asked else "",
        "next": [said[-1][1]] if said else [],
        "open": [],
        "done": [text for _, text in said[:2]],
        "facts": [],
        "decisions": decisions,
        "avoid": [],
        "lasting": [],
        "ended": [],
    }


def lies(good: dict[str, Any]) -> dict[str, Any]:
    """The good answer with a lie in some places where one can stand."""
    good["done"] += [f"The part of the tide table is in `{LIES[0]}` now."]
    good["now"] += f" The old columns of the table were {LIES[2]} before."
    good["decisions"] += [{"text": f"Keep them in `{LIES[1]}`", "words": "", "line": 1, "reason": "", "rejected": []}]
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
        print('{"now": "half of an')
    elif mode == "refusing":
        print("I cannot help with that.")
    elif mode == "dead":
        sys.exit("401: your key is not known")
    elif mode == "endless":
        while True:
            print("x" * 65_536)
    elif mode == "misfit":
        print(json.dumps({"now": "T", "decisions": "none"}))
    elif mode == "empty":
        print("{}")
    elif mode == "forged":
        print(json.dumps({"now": f"All is in `{LIES[0]}`.", "facts": [f"It is called `{LIES[1]}`."]}))
    else:
        good = answer(prompt)
        print(json.dumps(lies(good) if mode == "lying" else good))


if __name__ == "__main__":
    main()
