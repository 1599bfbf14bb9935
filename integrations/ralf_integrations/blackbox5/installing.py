"""What `ralf init --client ralf` puts into a tree: a section of each prompt of the loop, one script, nothing else."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from ralf.command import NAME
from ralf.errors import UsageError
from ralf.files.opening import content_of
from ralf.project import Project
from ralf_integrations.blackbox5 import places, script, section
from ralf_integrations.clients import installation
from ralf_integrations.clients.installation import Part

_MOST = 16 << 20  # bytes


def parts(project: Project) -> list[Part]:
    """The script, and the section of each prompt. UsageError where no prompt is found."""
    found = places.prompts(project)
    if not found:
        what = f"holds no {' or '.join(places.PROMPTS)} of the loop"
        raise UsageError(places.tree_of(project), what, "name the tree: export BLACKBOX5_HOME=DIR, or BB5_ENGINE_ROOT")
    return [_script(project), *(_section(project, path) for path in found)]


def remembered(project: Project) -> list[Part]:
    """Those of them that were put there from here, or are there; no section that serves another project of the tree."""
    found = [_script(project), *(_section(project, path) for path in places.prompts(project))]
    own = [part for part in found if installation.is_remembered(project, part.path) or _is_in(part)]
    return [part for part in own if not _is_anothers(project, part.path)]


def clash(project: Project) -> Path | None:
    """The tree's own launcher called `ralf`, where there is one: on the PATH, or in the tree. It is another program."""
    found = [Path(os.path.normpath(path))] if (path := shutil.which("ralf")) else []
    found += [places.tree_of(project) / places.LAUNCHER, project.root / places.LAUNCHER]
    return next((path for path in found if places.launcher(path)), None)


def clash_told(project: Project) -> str:
    """What is to be said of the launcher, "" where there is none: also that this command hides it on the PATH."""
    other = clash(project)
    if other is None:
        return ""
    told = f"{other} is the loop's launcher, another program called `ralf`"
    typed = shutil.which("ralf")
    hidden = typed is not None and not places.launcher(typed)
    return f"{told}, and hidden: `ralf` on the PATH is {typed}" if hidden else told


def command(project: Project) -> str:
    """What a person types in a project in place of `ralf`, where that is the launcher."""
    if project.command != NAME or clash(project) is None:
        return project.command
    return f"{shlex.quote(sys.executable)} -m ralf_cli"


def notes(project: Project) -> Iterator[str]:
    """What the person has to know."""
    yield f"the loop reaches ralf by {script.path(project)}: start, end, check, ralf …; docs/ralf-loop.md"
    if told := clash_told(project):
        yield f"{told}; for this one type: {command(project)}"


def _script(project: Project) -> Part:
    path, text = script.path(project), script.text(project)
    return Part(
        path=path,
        insertions=lambda there: script.insertions(project, there),
        holds=lambda there: there == text,
        stripped=script.stripped,
        new="",
        is_empty=lambda there: not there.strip(),
        runs=True,
    )


def _section(project: Project, path: Path) -> Part:
    door = script.path(project)
    return Part(
        path=path,
        insertions=lambda text: section.insertions(text, door),
        holds=lambda text: section.holds(text, door),
        stripped=section.stripped,
        new="",
        is_empty=lambda text: False,  # a prompt is never ours
    )


def _is_in(part: Part) -> bool:
    text = _text(part.path)
    return part.stripped(text) != text


def _is_anothers(project: Project, path: Path) -> bool:
    """Whether a prompt's section names the script of another project, which is there."""
    named = section.script_in(_text(path))
    return named is not None and named != script.path(project) and named.is_file()


def _text(path: Path) -> str:
    try:
        return content_of(path, most=_MOST).decode()
    except (OSError, UnicodeDecodeError):
        return ""
