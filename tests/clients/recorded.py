"""Records the session that README begins with: the real client, a scripted model, a kill in the seventh of ten steps.

    python tests/clients/recorded.py            print it, as it went this time
    python tests/clients/recorded.py --write    and put it into README.md

What the model says is a script's; the client, the hooks, what the model is sent and what ralf prints are real. ralf is
installed as `ralf init --client claude-code --yes` does it, and nothing else is set.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # where the tests' own modules lie

import offline
import scenario

import storekit

README = storekit.SOURCE / "README.md"
BEGIN, END = "<!-- recorded by tests/clients/recorded.py -->\n", "<!-- end of what was recorded -->"
_SHOWN = 108  # characters of a line
_LEFT_OUT = ("_", "To record:", "Not here:")  # where the rest is


def recorded(folder: Path) -> str:
    """What a person would have seen, as a Markdown block; times and session ids left out, for they change."""
    world = offline.World(folder / "run", offline.installed(folder / "venv"))
    scenario.install(world, "claude-code")
    scenario.killed_in_the_seventh_step(world, "claude-code", env=())
    before = len(world.asked())
    again = [
        offline.said("Step 7 of 10, again: the harbour offsets come from the API, for src/harbours.csv is not there.")
    ]
    found = "ralf search 'one file needs no server' -k 1 | grep -v '^<!--'"
    commands = f"{scenario.command('claude-code', 'Go on.')} >/dev/null; {found}"
    ran = world.run(commands, scenario.script("claude-code", again))
    assert ran.status == 0, ran.err
    said = [step["text"] for step in scenario.steps_to_the_seventh()]
    handed = world.asked()[before].split("<!-- ralf:context ")[3].split("-->\n", 1)[1].split("\n<!--")[0]
    lines = [
        f'$ claude -p "{scenario.REQUEST}"',
        *(f"  {text}" for text in (said[1], said[2], said[4], said[6])),
        "Killed                                        # kill -9, in the middle of step 7",
        "",
        '$ claude -p "Go on."                          # another process, an empty window. ralf\'s hook injects:',
        *(f"  {line}" for line in _kept(handed)),
        f"  {again[0]['text']}",
        "",
        '$ ralf search "one file needs no server" -k 1  # finds any text of a session, with its location',
        *(f"  {line}" for line in _found(ran.out)),
    ]
    return "```console\n" + "\n".join(line.rstrip()[:_SHOWN] for line in lines) + "\n```\n"


def _kept(handed: str) -> list[str]:
    return [line for line in handed.splitlines() if line.strip() and not line.startswith(_LEFT_OUT)]


def _found(printed: str) -> list[str]:
    lines = [line for line in printed.splitlines() if line.strip() and not line.startswith("<!--")]
    text = "\n".join(lines)
    text = re.sub(r", \d{4}-\d\d-\d\dT[\d:.]+Z", "", text)
    return re.sub(r"session [0-9a-f-]{36}, ", "", text).splitlines()


def main() -> int:
    """Print it, or write it; 77 where the clients cannot run here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put it into README.md")
    options = parser.parse_args()
    if why := offline.why_not():
        print(f"skipped: {why}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        block = recorded(Path(folder))
    print(block)
    if options.write:
        text = README.read_text("utf-8")
        start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        README.write_text(text[:start] + block + text[end:], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
