"""`timeline-memory.md` for hooks that injected it: what is kept of the agent's route instead. Deprecated.

    python -m ralf_integrations.blackbox5.timeline_memory hook        as a SessionStart hook: JSON on stdout
    python -m ralf_integrations.blackbox5.timeline_memory show AGENT  the text alone

Switch it off: `export RALF_TIMELINE_MEMORY=off`. What replaces it: `ralf show ROUTE --brief`, or `start` of the loop's
script.

Exit status: 0 · 1 failed · 2 wrong usage. A hook fails open: status 0, empty, and what is wrong on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import ralf
from ralf import config, routing
from ralf.errors import RalfError, RouteNotFound
from ralf.project import Project
from ralf.storage.files import content_of
from ralf.text import cleaning
from ralf.text.cleaning import fenced, shown
from ralf_integrations import environment
from ralf_integrations.blackbox5.checkpointing import complain, named_project, put, typed

NAME = "timeline-memory.md"

_AGENT = re.compile(r"[a-z]+(?:-[a-z]+)*-(?:worker|validator)")
_TASK = re.compile(r"^\*\*Task:\*\*\s*([A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+)", re.M)
_PASSED_BY = frozenset("runs runs.migrated context tasks node_modules .git __pycache__".split())
_MOST = 16 << 20  # bytes
_INPUT = 100_000  # bytes of a hook's input


def agent() -> str:
    """The agent that runs us: `RALF_AGENT_TYPE`, else the one in the path that `RALF_PROMPT_FILE` is; "" for none."""
    said, prompt = environment.agent_of_the_loop()
    if said:
        return said if cleaning.is_valid(said) else ""
    found = _AGENT.findall(prompt)
    return str(found[-1]) if found else ""


def memory(project: Project, who: str) -> str:
    """The brief of an agent's route (the one with its name, else that of the task that its file names), else the file
    as it stands, else that there is nothing.
    """
    path = _file_of(project, who)
    text = content_of(path, most=_MOST).decode("utf-8", "replace") if path is not None else ""
    task = _TASK.search(text)
    for name in (who, task[1] if task is not None else ""):
        with suppress(RouteNotFound):
            if name and (route := routing.known(project, cleaning.slug(name))) is not None:
                context = ralf.get_context(route, root=project.root)
                if not context.wholly_foreign:
                    return context.without_foreign().render(config.of(project).brief_tokens, section="brief")
    return fenced(shown(text or f"Nothing is kept of an earlier run: no route {who}, and no {NAME} of it.\n"))


def _file_of(project: Project, who: str) -> Path | None:
    """An agent's file in a project; backups and what runs left are passed by."""
    for here, below, names in os.walk(project.root) if project.folder.parent.exists() else ():
        below[:] = sorted(name for name in below if name not in _PASSED_BY and ".backup" not in name)
        path = Path(here, NAME)
        folder = path.parent.parent if path.parent.name == "memory" else path.parent
        if NAME in names and folder.name == who and not path.is_symlink():
            return path
    return None


def hook(project: Project) -> str:
    """The answer to a SessionStart event, as the old pipeline's hook gives it: one JSON object, empty for no agent."""
    who, text = agent(), ""
    if who and not environment.timeline_memory_is_off():
        told = f"## Agent Identity\n\nYou are the **{who}**.\n\n## Your Timeline Memory (Long-Term Context)\n\n"
        text = f"{told}{memory(project, who)}"
        instead = typed(f"ralf show {who} --brief", project.root)
        print(f"deprecated: {NAME}: read the route instead: {instead}", file=sys.stderr)
    return _answer(text)


def _answer(text: str) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit status."""
    parser = argparse.ArgumentParser(prog="timeline_memory.py", description="What is kept of an agent, for old hooks.")
    parser.add_argument("command", choices=["hook", "show"])
    parser.add_argument("agent", nargs="?", help="show: whose; default: the one that runs this")
    parser.add_argument("--project", metavar="P", help="a folder, or a name; default: the project that is meant")
    given = parser.parse_args(args)
    if given.command == "show" and not (given.agent or agent()):
        parser.error("whose? name the agent, or set RALF_AGENT_TYPE")
    try:
        project = named_project(given.project)
        if given.command == "hook" and not sys.stdin.isatty():
            sys.stdin.buffer.read(_INPUT)  # whoever writes into a pipe is not to be broken off
        put(hook(project) if given.command == "hook" else memory(project, given.agent or agent()))
    except (RalfError, OSError) as error:
        status = complain(error, given.project)
        if given.command == "show":
            return status
        put(_answer(""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
