"""A task in ten steps for a real client, whose model follows a script, and how a client is started with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offline import CLAUDE, CODEX, GEMINI, OPENCODE, Ran, World, bash, call

ROUTE = "tides"
ON_ROUTE = (f"RALF_TASK_ID={ROUTE}",)
REQUEST = "Move the tide table from CSV to SQLite in ten steps. Never write to deploy/prod.env."
CHOICE = "Use SQLite instead of Postgres, because one file needs no server."
RULE = "Never write to deploy/prod.env from a script."
NEXT = "Next: carry the harbour offsets over, then drop the CSV reader."
MUCH = "seq 1 3000"  # some 6,000 tokens of output
FEW = "threshold: 4000\n"
_SHELLS = {"gemini": "run_shell_command", "opencode": "bash"}


def install(world: World, client: str, config: str = "", *options: str) -> None:
    """Opt the project in, as a person does, and set what is to be other than by default."""
    done = world.run(f"ralf init --client {client} --yes {' '.join(options)}")
    assert done.status == 0, done.err + done.out
    with (world.project / ".autonomous/context/config.yaml").open("a") as file:
        file.write(config)


def work(world: World, client: str, prompt: str, steps: list[dict[str, Any]], **options: Any) -> Ran:
    """Have a client work on a prompt to the end."""
    return world.run(
        command(client, prompt), script(client, steps, options.pop("summary", "")), **options | model(client)
    )


def model(client: str) -> dict[str, str]:
    return {"model": {"claude-code": "anthropic", "codex": "openai"}.get(client, "scripted")}


def script(client: str, steps: list[dict[str, Any]], summary: str = "") -> dict[str, Any]:
    """The steps as this client's model says them."""
    if client == "codex":
        steps = [
            call(step["tool"]["input"]["command"], text=step["text"], filled=_filled(step))
            if "tool" in step
            else {"text": step["text"], "usage": {"input_tokens": _filled(step) - 50, "output_tokens": 50}}
            for step in steps
        ]
    elif client in _SHELLS:
        steps = [
            {
                "text": step["text"],
                "call": {"name": _SHELLS[client], "arguments": step["tool"]["input"]} if "tool" in step else None,
                "usage": {"input_tokens": _filled(step) - 50, "output_tokens": 50},
            }
            for step in steps
        ]
        if client == "gemini":
            summary = f"<state_snapshot>{summary}</state_snapshot>"
        return {"main": steps, "default_text": "Done.", "summary_text": summary}
    return {
        "main": steps,
        "default_text": "Done.",
        "summary_text": f"<analysis>a</analysis><summary>{summary}</summary>",
    }


def _filled(step: dict[str, Any]) -> int:
    return sum(step["usage"].values())


def command(client: str, prompt: str) -> str:
    quoted = "'" + prompt.replace("'", "'\\''") + "'"
    programs = {"claude-code": f"{CLAUDE} -p", "codex": CODEX, "gemini": f"{GEMINI} -p", "opencode": OPENCODE}
    return f"{programs[client]} {quoted}"


def steps_to_the_seventh() -> list[dict[str, Any]]:
    """A task of ten steps, up to a command in the seventh that does not end."""
    write = "mkdir -p src && printf 'import sqlite3\\n' > src/tides.py"
    return [
        bash("ls", text="Step 1 of 10: look at what is there."),
        bash(write, text=f"Step 2 of 10. {CHOICE}"),
        bash("cat src/harbours.csv", text="Step 3 of 10: read the harbours."),
        bash(MUCH, text="Step 4 of 10: count the rows."),
        bash("echo 'STEP5' >> src/tides.py", text="Step 5 of 10: read a station from the new table."),
        bash("echo 6", text=f"Step 6 of 10 is done. {NEXT}"),
        bash("touch /tmp/run/in-the-seventh; sleep 20", text="Step 7 of 10: carry the harbour offsets over."),
    ]


def killed_in_the_seventh_step(world: World, client: str, env: Sequence[str] = ON_ROUTE) -> None:
    """Have a client work on the task, and kill it when it is in the middle of the seventh step, and has had the time to
    write into its log that it is: Claude Code does so a moment later.
    """
    commands = f"""
{command(client, REQUEST)} &
i=0; while [ ! -e /tmp/run/in-the-seventh ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done
sleep 1
kill -9 $!
sleep 0.5
"""
    world.run(commands, script(client, steps_to_the_seventh()), env=env, **model(client))
