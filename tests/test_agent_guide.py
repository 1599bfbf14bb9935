"""docs/library.md, typed word by word: its agent is killed in the middle, and goes on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import storekit
from test_cli_sessions import Shell, pattern_of, steps_of

GUIDE = (storekit.SOURCE / "docs" / "library.md").read_text(encoding="utf-8")


@pytest.mark.ci(seconds=4)
def test_the_guide_works_word_by_word(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (shell.folder / "agent.py").write_text(re.findall(r"(?ms)^```python\n(.*?)^```", GUIDE)[0])
    steps = list(steps_of(GUIDE.splitlines()))
    assert len(steps) >= 7
    wrong = []
    for step in steps:
        printed = list(filter(None, map(on_a_terminal, shell.run(step.command))))
        if not pattern_of(step.expected).fullmatch("".join(f"{line}\n" for line in printed)):
            wrong.append(f"{step.number}: $ {step.command}\n  " + "\n  ".join(printed))
    assert not wrong, "\n".join(wrong)
    assert (shell.folder / "calls.log").read_text().count("asked") == 4


def on_a_terminal(line: str) -> str:
    """A line that a command printed in a pipe, as a person sees it at a terminal; "" for none."""
    if line.startswith(("<!-- ralf:context", "! Killed")):  # the shell says what its status says, too
        return ""
    return line.replace("[status 137]", "Killed").removeprefix("! ")
