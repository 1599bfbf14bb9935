"""A loop as docs/ralf-loop.md has it runs a real client, a fresh one each time, one of them killed: each can read, by
the command that the prompt names, what the earlier ones decided and came to.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import scenario
from offline import CLAUDE, CODEX, INSIDE, World, bash, said, typed, why_not

import ralf
import storekit

pytestmark = [pytest.mark.release, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

TASK = "TASK-ARCH-028"
PROJECT = Path("5-project-memory", "blackbox5")
DOOR = f"{INSIDE / PROJECT}/.autonomous/context/hooks/context-checkpoint.sh"
REAL = storekit.SOURCE.parent / "shared" / "data" / "blackbox5"
GUIDE = storekit.SOURCE / "docs" / "ralf-loop.md"
INIT = f"cd {INSIDE / PROJECT} && {typed('/tmp/venv/bin/python -m ralf_cli init --client ralf --yes')}"
DOCUMENT = (
    "# DECISIONS\\n\\n## D-1: Keep the old column\\n\\n**Rationale:** its readers cannot change before the season\\n"
)
COMMANDS = {
    "claude-code": CLAUDE.replace(" --output-format json", " -p"),
    "codex": CODEX.replace(" --json", "") + " -",
}


@pytest.fixture
def tree(world: World) -> Path:
    """The project in a tree with its launcher, which stands first on the PATH, with real runs where they are here."""
    top = world.project
    for name in ("bin", "2-engine/instructions", f"{PROJECT}/.autonomous/runs", f"{PROJECT}/.autonomous/context"):
        (top / name).mkdir(parents=True)
    (top / "bin/ralf.md").write_text("# RALF\n\nOne task per run. Never push to main. Documents in `$RALF_RUN_DIR`.\n")
    (world.folder / "bin").mkdir()
    launcher = world.folder / "bin" / "ralf"
    launcher.write_text("#!/bin/bash\nexport RALF_PROJECT_DIR=$1\ntouch /tmp/run/started\n")
    launcher.chmod(0o755)
    for run in sorted((REAL / "runs").glob("executor__*")):
        shutil.copytree(run, top / PROJECT / "runs" / "executor" / run.name.partition("__")[2])
    return top / PROJECT


def loop(command: str) -> str:
    """Three runs, with the lines of the guide around the client; the agent calls `start` itself, as the prompt says."""
    (lines,) = re.findall(r"```bash\n(.*?)```", GUIDE.read_text(), re.S)
    assert "claude -p --dangerously-skip-permissions" in lines and '"$door" start' in lines
    lines = lines.replace("claude -p --dangerously-skip-permissions", command).replace('"$door" start', "true")
    lines = lines.replace("door=P/", f"door={INSIDE / PROJECT}/")
    return f"""
cd {INSIDE}/bin
export RALF_PROJECT_DIR={INSIDE / PROJECT}
for number in 1 2 3; do
    export RALF_RUN_DIR=$RALF_PROJECT_DIR/.autonomous/runs/run-20260201_12000$number-{TASK}
    mkdir -p "$RALF_RUN_DIR"
    {lines}
done
"""


@pytest.mark.parametrize("client", COMMANDS)
def test_each_run_reads_on_demand_what_the_killed_one_and_the_others_left(
    world: World, tree: Path, client: str
) -> None:
    ready = world.run(INIT)
    assert ready.status == 0, ready.err
    prompt = (world.project / "bin/ralf.md").read_text()
    for command in ("start", "check --tokens auto", 'ralf search "WORDS"', "ralf decide ROUTE"):
        assert f"`{DOOR} {command}" in prompt
    steps = [
        bash(f"printf '{DOCUMENT}' >\"$RALF_RUN_DIR/DECISIONS.md\"", text="I write it down.", filled=150_000),
        bash(f"sleep 1; {DOOR} check --tokens auto --max-tokens 200000", text="How full am I?", filled=150_000),
        said("The gauge does not answer. <promise>PARTIAL</promise>"),
        bash(f"{DOOR} start", text="What was tried?"),
        bash(
            f'{DOOR} ralf decide {TASK} "Read the gauge twice" --because "its first answer is stale"',
            text="For the next one.",
        ),
        bash("sleep 1; kill -9 $PPID; sleep 5", text="Now the gauge itself."),
        bash(f"{DOOR} start", text="What was tried?"),
        bash(f'{DOOR} ralf search "old column"', text="Why that column?"),
        said("The table is carried over. <promise>COMPLETE</promise>"),
    ]
    ran = world.run(loop(COMMANDS[client]), scenario.script(client, steps), **scenario.model(client))
    assert ran.status == 0, ran.err
    asked = world.asked()
    assert len(asked) == len(steps), ran.err
    assert '"threshold_triggered": "warning"' in asked[2]
    assert f"route {TASK}: checkpoint cp-001" in asked[2]
    for text in ("attempt 1", "PARTIAL", "Keep the old column", "its readers cannot change before the season"):
        assert text in asked[4], text
    for text in ("attempt 2", "ended without a word", "PARTIAL", "Keep the old column", "Read the gauge twice"):
        assert text in asked[7], text
    assert f"{TASK} decision DEC-" in asked[8]
    context = ralf.get_context(TASK, root=tree)
    assert (context.active_work.attempts, context.active_work.outcome) == (3, "COMPLETE")
    assert [one.decision for one in context.decisions] == ["Keep the old column", "Read the gauge twice"]
    assert (context.goal, context.facts.requests) == ("", ())  # the standing prompt is nobody's request
    assert not (world.folder / "started").exists()


def test_a_hook_in_that_tree_hands_claude_commands_that_work_there(world: World, tree: Path) -> None:
    for number in range(80):  # more than is handed over whole
        ralf.record_decision(TASK, f"Read gauge {number} twice", rationale="its first answer is stale " * 6, root=tree)
    ralf.record_decision(TASK, "Keep the old column", rationale="its readers cannot change", root=tree)
    ready = world.run(f"{INIT} && {DOOR} ralf init --client claude-code --yes")
    assert ready.status == 0, ready.err
    env = (f"RALF_TASK_ID={TASK}",)
    read = bash(f"{DOOR} ralf show {TASK} --brief", text="I read it.")
    ran = world.run(f"cd {INSIDE / PROJECT} && {CLAUDE} -p 'Go on.'", {"main": [read, said("Done.")]}, env=env)
    assert ran.status == 0, ran.err
    first, second = world.asked()
    assert "Keep the old column" in first
    assert f"`{DOOR} ralf show {TASK}" in first and "`ralf " not in first
    assert second.count("its readers cannot change") > first.count("its readers cannot change")
    assert not (world.folder / "started").exists()
