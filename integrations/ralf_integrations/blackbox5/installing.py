"""What `ralf init --client ralf` puts into a tree: a section of each prompt of the loop, one script, nothing else."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import config
from ralf.errors import UsageError
from ralf.project import Project
from ralf.storage.files import content_of
from ralf.text.cleaning import BEGIN, END
from ralf_integrations import client, environment
from ralf_integrations.blackbox5.checkpointing import ENGINE, MEMORY
from ralf_integrations.clients import installation, interpreter
from ralf_integrations.clients.installation import Part
from ralf_integrations.clients.jsontext import Insertion

if TYPE_CHECKING:
    from ralf_integrations.clients.condition import Check, State

PROMPTS = ("ralf.md", "ralf-executor.md")
_DEEPEST = 6  # folders below an engine
_MOST = 16 << 20  # bytes of a prompt
_PASSED_BY = frozenset(
    "archive archived archives backup backups completed decisions docs history knowledge logs node_modules runs "
    "runs.migrated tasks tests versions workspaces __pycache__".split()
)
_SCRIPT_MARK = "# Written by `ralf init --client ralf`, taken out with --uninstall."
_OPENED = re.escape(BEGIN.partition(",")[0])
_SECTION = re.compile(rf"(?:\r?\n)?{_OPENED}(?:(?!{_OPENED}).)*?{re.escape(END)}(?:\r?\n)?", re.S)
_START = re.compile(r"`([^`\n]+) start`")

# ---- the tree and its prompts ----


def tree_of(project: Project) -> Path:
    """The tree that a project lies in: the one that the environment names if it does, else the nearest folder above
    with an engine or a memory, else the project itself.
    """
    root = project.root
    said = environment.blackbox5_root()
    if said is not None and said.is_dir() and root.resolve().is_relative_to(said.resolve()):
        return said
    above = (one for one in (root, *root.parents) if (one / ENGINE).is_dir() or (one / MEMORY).is_dir())
    return next(above, root)


def prompts(project: Project) -> list[Path]:
    """The loop's prompts that are in use: of the tree, its engine and the project; no old version, copy or link."""
    tree, root = tree_of(project), project.root
    folders = [tree, tree / "bin", tree / "prompts", root, root / "bin", root / "prompts"]
    found = [folder / name for folder in folders for name in PROMPTS]
    for top in (tree / ENGINE, *environment.blackbox5_engines(), root / ".autonomous", root / ".templates"):
        for here, inner, files in os.walk(top):
            depth = len(Path(here).parts) - len(top.parts)
            inner[:] = [name for name in inner if depth < _DEEPEST and not _is_old(name)]
            found += [Path(here, name) for name in PROMPTS if name in files]
    real = {path.resolve(): path for path in reversed(found) if path.is_file() and not path.is_symlink()}
    return sorted(real.values())


def _is_old(name: str) -> bool:
    """Whether a folder holds old versions, or what runs left."""
    starts = (".git", ".archive", ".venv", "run-")
    return name.lower() in _PASSED_BY or ".backup" in name or name.startswith(starts)


# ---- the script ----

_SCRIPT = """\
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


def script_path(project: Project) -> Path:
    """Where it lies: with what ralf keeps, which git does not see, for it names a Python of this machine."""
    return project.folder / config.SCRIPT


def script_text(project: Project) -> str:
    """The script for a project, with the Python that runs us."""
    return _SCRIPT.format(
        mark=_SCRIPT_MARK,
        python=shlex.quote(sys.executable),
        project=shlex.quote(str(project.root)),
        command=shlex.quote(f"{shlex.quote(str(script_path(project)))} {config.NAME}"),
    )


# ---- installation ----


def parts(project: Project) -> list[Part]:
    """The script, and the section of each prompt. UsageError where no prompt is found."""
    found = _all_parts(project)
    if not found[1:]:
        what = f"holds no {' or '.join(PROMPTS)} of the loop"
        raise UsageError(tree_of(project), what, "name the tree: export BLACKBOX5_HOME=DIR, or BB5_ENGINE_ROOT")
    return found


def remembered(project: Project) -> list[Part]:
    """Those of them that were put there from here, or are there; no section that serves another project of the tree."""

    def is_ours(part: Part) -> bool:
        text = _text_of(part.path)
        named = script_in(text)
        is_anothers = named is not None and named != script_path(project) and named.is_file()
        return not is_anothers and (installation.is_remembered(project, part.path) or part.stripped(text) != text)

    return [*filter(is_ours, _all_parts(project))]


def section_insertions(text: str, script: Path) -> list[Insertion]:
    """What adds the section at the end of a prompt that does not hold it, with the line ends that the prompt has."""
    added = ("\n" if text.endswith("\n") else "\n\n" if text else "") + _section_of(script)
    return [Insertion(len(text), added.replace("\n", "\r\n") if "\r\n" in text else added)]


def _section_of(script: Path) -> str:
    return f"{BEGIN.format('')}\n{client.packaged_text('loop.md').replace('$RALF', shlex.quote(str(script)))}{END}\n"


def _all_parts(project: Project) -> list[Part]:
    script, text = script_path(project), script_text(project)
    section = _section_of(script)

    def script_insertions(there: str) -> list[Insertion]:
        if there.strip():
            raise UsageError(script, "is there, and not of ralf: it is not changed", "move it away")
        return [Insertion(len(there), text)]

    def holds_section(there: str) -> bool:
        return section in there.replace("\r\n", "\n") and len(_SECTION.findall(there)) == 1

    of_script = Part(
        path=script,
        insertions=script_insertions,
        holds=lambda there: there == text,
        stripped=lambda there: "" if _SCRIPT_MARK in there else there,
        new="",
        is_empty=lambda there: not there.strip(),
        runs=True,
    )
    of_prompts = (
        Part(
            path=path,
            insertions=lambda there: section_insertions(there, script),
            holds=holds_section,
            stripped=lambda there: _SECTION.sub("", there),
            new="",
            is_empty=lambda there: False,  # a prompt is never ours
        )
        for path in prompts(project)
    )
    return [of_script, *of_prompts]


def script_in(text: str) -> Path | None:
    """The script that the section of a prompt names, of whatever version; None for none."""
    found = _SECTION.search(text)
    named = _START.search(found[0]) if found is not None else None
    with suppress(ValueError):  # somebody has edited it
        words = shlex.split(named[1]) if named is not None else []
        return Path(words[0]) if len(words) == 1 else None
    return None


def clash(project: Project) -> str:
    """What is to be said of the tree's own launcher called `ralf`, another program, where it is on the PATH or in the
    tree: also that this command hides it. "" where there is none.
    """
    typed = shutil.which("ralf")
    found = [Path(os.path.normpath(typed))] if typed else []
    found += [tree_of(project) / "bin" / "ralf", project.root / "bin" / "ralf"]
    other = next((path for path in found if interpreter.is_launcher(path)), None)
    if other is None:
        return ""
    hidden = f", and hidden: `ralf` on the PATH is {typed}" if typed and not interpreter.is_launcher(typed) else ""
    return f"{other} is the loop's launcher, another program called `ralf`{hidden}"


def command(project: Project) -> str:
    """What a person types in a project in place of `ralf`, where that is the launcher."""
    hidden = project.command == config.NAME and clash(project)
    return f"{shlex.quote(sys.executable)} -m ralf_cli" if hidden else project.command


def notes(project: Project) -> Iterator[str]:
    """What the person has to know."""
    yield f"the loop reaches ralf by {script_path(project)}: start, end, check, ralf …; docs/ralf-loop.md"
    if told := clash(project):
        yield f"{told}; for this one type: {command(project)}"


def checks(project: Project) -> Iterator[Check]:
    """Everything about the loop, for `ralf doctor`; nothing where it was not installed and no launcher has our name."""
    from ralf_integrations.clients.condition import Check

    again = f"{shlex.quote(sys.executable)} -m ralf_cli init --client ralf"
    if told := clash(project):
        yield Check("ralf loop", "warning", told, f"for this one type: {command(project)}")
    parts = [(part, _text_of(part.path)) for part in _all_parts(project)]
    if not any(part.stripped(text) != text for part, text in parts):
        return
    for part, text in parts:
        is_ours = part.holds(text) and (not part.runs or installation.is_pinned(project, part.path))
        said = "is as this ralf writes it" if is_ours else "is not there, or not as this ralf writes it"
        state: State = "ok" if is_ours else "problem" if part.runs else "warning"
        yield Check("ralf loop", state, f"{part.path}: {said}", "" if is_ours else again)


def _text_of(path: Path) -> str:
    """A file's text, "" where it cannot be read."""
    try:
        return content_of(path, most=_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
