"""docs/ralf-loop.md, typed word by word in a tree with its launcher, and its rollback: the tree is as it was."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import storekit
from test_loop_installing import LAUNCHER, PROMPT, state

GUIDE = (storekit.SOURCE / "docs" / "ralf-loop.md").read_text(encoding="utf-8")
PYTHON = "~/.local/lib/ralf/bin/python"
AGENT = """#!/bin/bash
cat >"$RALF_RUN_DIR/prompt.md"
cd "$RALF_RUN_DIR"
printf '# DECISIONS\\n\\n## D-1: Keep the old column\\n\\n**Rationale:** its readers cannot change\\n' >DECISIONS.md
echo '<promise>PARTIAL</promise>'
"""
FILES = {
    "bin/ralf.md": PROMPT,
    "2-engine/instructions/ralf-executor.md": PROMPT.rstrip("\n"),
    "P/.autonomous/context/routes.yaml": "routes:\n  engine: /opt/engine\n",
    "P/.autonomous/decisions/decision_registry.yaml": "registry:\n  total_decisions: 1\ndecisions:\n"
    "- id: DEC-0001\n  source_file: runs/run-1/DECISIONS.md\n  source_run: run-1\n  timestamp: '2026-01-01T00:00:00'\n"
    "  title: Read the gauge twice\n  category: x\n  status: approved\n  rationale: stale\n  tags: []\n"
    "  alternatives: []\n  format: variant_2_numbered\n",
    "P/.autonomous/runs/run-20260101_120000-TASK-7/RESULTS.md": "# RESULTS\n\n**Status:** PARTIAL\n\nIt is read.\n",
    "P/.autonomous/agents/scout-worker/timeline-memory.md": "# Scout Worker Timeline Memory\n\n---\n\n"
    '```yaml\ntimeline_memory:\n  version: "1.0.0"\n  agent: scout-worker\n  total_runs: 0\nhistory:\n```\n',
    "P/RALF-CONTEXT.md": "# RALF Context - Last Updated: 2026-01-01\n\n## What Was Worked On\n\nIt.\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The project, in a tree whose launcher leaves a mark where it is started."""
    for name, text in FILES.items():
        path = tmp_path / "tree" / name.replace("P/", "5-project-memory/blackbox5/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, text in (("ralf", f"{LAUNCHER}\ntouch {tmp_path}/started\n"), ("claude", AGENT)):
        path = tmp_path / "path" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return tmp_path / "tree" / "5-project-memory" / "blackbox5"


def typed(root: Path, lines: str) -> str:
    """What is printed where lines of the guide are typed; CalledProcessError where one of them fails."""
    lines = lines.replace(PYTHON, shlex.quote(sys.executable))
    lines = re.sub(
        r"(?m)(init(?: --client ralf)?(?: --uninstall)?)(?=\s*(?:#|$))", r"\1 --yes", lines
    )  # nobody answers
    lines = re.sub(r"\bP\b(?=/\.autonomous| &&)", str(root), lines)
    env = storekit.environment(root.parents[2] / "home", RALF_TASK_ID="TASK-7")
    env |= {"PATH": f"{root.parents[2] / 'path'}:{env.get('PATH', '/usr/bin:/bin')}"}
    env["RALF_RUN_DIR"] = str(root / ".autonomous" / "runs" / "run-20260201_120000")
    command = ["/bin/bash", "-euc", lines]
    main, side = pty.openpty()  # a person types it
    own = {"start_new_session": True, "preexec_fn": storekit.takes_terminal}
    with subprocess.Popen(command, cwd=root, env=env, stdin=side, stdout=side, stderr=side, **own) as process:
        os.close(side)
        said = storekit.read_terminal(main)
        assert process.wait(storekit.HANGS) == 0, said[-2000:]
    return said


def section(title: str) -> str:
    """A section of the guide, up to the next one."""
    return re.split(r"(?m)^## ", GUIDE[GUIDE.index(f"## {title}") + 3 :])[0]


def console(text: str) -> str:
    """The commands of its console blocks."""
    return "".join(re.findall(r"(?m)^\$ (.*\n)", text))


@pytest.mark.release
def test_the_guide_works_word_by_word_and_its_rollback_leaves_the_tree_as_it_was(root: Path) -> None:
    tree = root.parents[1]
    before = state(tree)
    installing = console(section("1. Install")).partition("\n")[2]  # an environment there is already
    typed(root, installing)
    new = set(state(tree)) - set(before)
    assert all(f"{root.relative_to(tree)}/.autonomous/context/" in name for name in new), new
    changed = {name for name, content in before.items() if state(tree)[name] != content}
    assert changed == {"bin/ralf.md", "2-engine/instructions/ralf-executor.md"}

    start = "\n".join(line for line in installing.splitlines() if line.startswith(("python=", "door="))) + "\n"
    typed(root, start + console(section("2. Import")))

    run = root / ".autonomous" / "runs" / "run-20260201_120000"
    run.mkdir()
    (lines,) = re.findall(r"```bash\n(.*?)```", section("3. Two lines"), re.S)
    typed(root, f"cd {tree}/bin\n{lines}")
    assert "attempt 1" in (run / "prompt.md").read_text()
    typed(root, start + console(section("4. The proposal's modules")))
    assert "TASK-7" in typed(root, f"{shlex.quote(sys.executable)} lib/context_reader.py list")
    said = typed(root, start + console(section("5. Verify")))
    assert "Keep the old column" in said and "TASK-7" in said and "problem" not in said

    undone = re.findall(r"(?m)^\| .* \| `(.*?)`", section("Rollback"))
    assert len(undone) == 6
    for command in undone:
        if command.startswith(("export", "rm -r")):
            continue
        typed(root, start + command)
    (root / "lib").rmdir()
    for path in sorted(run.iterdir()):
        path.unlink()
    run.rmdir()
    assert state(tree) == before
    assert not (root.parents[2] / "started").exists()
