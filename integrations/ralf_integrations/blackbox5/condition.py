"""Whether the loop's installation is whole: its script, the prompts' sections, and which `ralf` one types."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ralf.files.opening import content_of
from ralf.project import Project
from ralf_integrations.blackbox5 import installing, places, script, section
from ralf_integrations.clients import installation

if TYPE_CHECKING:
    from ralf_integrations.clients.condition import Check

_AGAIN = f"{shlex.quote(sys.executable)} -m ralf_cli init --client ralf"
_MOST = 16 << 20  # bytes


def checks(project: Project) -> Iterator[Check]:
    """Everything about the loop; nothing where it was not installed and no launcher has our name."""
    from ralf_integrations.clients.condition import Check

    if told := installing.clash_told(project):
        yield Check("ralf loop", "warning", told, f"for this one type: {installing.command(project)}")
    path, door = script.path(project), _text(script.path(project))
    prompts = [(prompt, _text(prompt)) for prompt in places.prompts(project)]
    if not door and not any(section.has(text) for _, text in prompts):
        return
    python = script.python_in(door)
    if not door:
        yield Check("ralf loop", "problem", f"{path}: is not there: the prompts name it", _AGAIN)
    elif not installation.is_pinned(project, path):
        what = f"{path.parent}: the loop's script there is not known as installed by you: no text names it"
        yield Check("ralf loop", "warning" if python and Path(python).exists() else "problem", what, _AGAIN)
    elif not Path(python).exists():
        yield Check("ralf loop", "problem", f"{path}: names {python}, which is not there any more", _AGAIN)
    elif door != script.text(project):
        yield Check("ralf loop", "warning", f"{path}: is of another version, or calls another Python: {python}", _AGAIN)
    else:
        yield Check("ralf loop", "ok", f"{path}: calls this ralf")
    for prompt, text in prompts:
        if not section.has(text):
            yield Check("ralf loop", "warning", f"{prompt}: tells nothing of earlier runs", _AGAIN)
        elif not section.holds(text, path):
            yield Check("ralf loop", "warning", f"{prompt}: its section is of another version", _AGAIN)
        else:
            yield Check("ralf loop", "ok", f"{prompt}: tells how earlier runs are read")


def _text(path: Path) -> str:
    try:
        return content_of(path, most=_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
