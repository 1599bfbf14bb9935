"""`context-checkpoint.sh`: the loop's door to ralf, which works from any directory and under a name of its own."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from ralf import command
from ralf.errors import UsageError
from ralf.project import Project
from ralf_integrations.clients.jsontext import Insertion

_MARK = "# Written by `ralf init --client ralf`, taken out with --uninstall."
_PYTHON = re.compile(r"^python=(.+)$", re.M)

_TEXT = """\
#!/usr/bin/env bash
{mark}
#
#   context-checkpoint.sh                  make a checkpoint of this run
#   context-checkpoint.sh start            take in runs that died, and print what earlier runs of the task came to
#   context-checkpoint.sh end [FILE]       take in this run, and the promise tag in FILE, its output
#   context-checkpoint.sh check …          context_budget.py check, with its exit status
#   context-checkpoint.sh ralf …           the command `ralf`, whatever else is called so
#
# All but the last two end with status 0: what goes wrong is said on stderr, and never stops a loop.
set -u
python={python}
project={project}

if [ ! -x "$python" ]; then
    echo "context-checkpoint.sh: $python is gone; once more: python -m ralf_cli init --client ralf" >&2
    exit 0
fi
if [ -d "${{RALF_PROJECT_DIR:-}}" ]; then
    project=$RALF_PROJECT_DIR  # the loop's own word, where one prompt serves several projects
fi
export RALF_COMMAND={command}  # what is printed names it so
case "${{1:-checkpoint}}" in
    ralf)
        shift
        exec "$python" -P -m ralf_cli --root "$project" "$@"
        ;;
    check)
        exec "$python" -P -m ralf_integrations.blackbox5.context_budget --root "$project" "$@"
        ;;
esac
exec "$python" -P -m ralf_integrations.blackbox5.loop --root "$project" "$@"
"""


def path(project: Project) -> Path:
    """Where it lies: with what ralf keeps, which git does not see, for it names a Python of this machine."""
    return project.folder / command.SCRIPT


def text(project: Project) -> str:
    """The script for a project, with the Python that runs us."""
    return _TEXT.format(
        mark=_MARK,
        python=shlex.quote(sys.executable),
        project=shlex.quote(str(project.root)),
        command=shlex.quote(f"{shlex.quote(str(path(project)))} {command.NAME}"),
    )


def insertions(project: Project, there: str) -> list[Insertion]:
    """What makes an empty file the script; UsageError for one that is somebody's."""
    if there.strip():
        raise UsageError(path(project), "is there, and not of ralf: it is not changed", "move it away")
    return [Insertion(len(there), text(project))]


def stripped(there: str) -> str:
    """Nothing, where it is the script of any version; else what is there."""
    return "" if _MARK in there else there


def python_in(there: str) -> str:
    """The Python that a script calls, "" where it is none of ours."""
    found = _PYTHON.search(there) if _MARK in there else None
    words = shlex.split(found[1]) if found else []
    return words[0] if words else ""
