"""Whether git merges the route files of a shared project with ralf: the driver of this clone, the attribute that names
it, and files that a merge has left with conflict markers. Nothing that a repository could have written is run.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ralf import environment
from ralf.format import routefile
from ralf.maintenance import merge_driver
from ralf.project import Project
from ralf.storage.files import content_of
from ralf_integrations.clients.condition import Check

_NAME = "sharing"
_AGAIN = "ralf init --share"
_MOST = 64 << 20  # bytes of a route file
_MOST_ATTRIBUTES = 1 << 20  # bytes of `.gitattributes`
_SHOWN = 3  # files that are named
_SLOW = 60  # seconds; a driver that has not answered by then does not


def checks(project: Project) -> Iterator[Check]:
    """Everything about the sharing of route files in git; nothing of a project that shares none."""
    if not project.git.shares():
        if "routes/.gitattributes" in project.git.tracked():
            yield Check(_NAME, "warning", "this repository shares its route files, and you do not", _AGAIN)
        return
    if wrong := _unreadable(project.routes / ".gitattributes"):
        yield wrong
        return
    found = merge_driver.setup_of(project)
    if found is None:
        what = "route files are shared, and git finds no repository here"
        yield Check(_NAME, "problem", f"{project.root}: {what}", f"git -C {project.root} status")
        return
    driver, attribute = _driver(found.line), _attribute(project, found)
    yield driver
    if attribute is not None:
        yield attribute
    yield from _conflicts(project, has_driver=driver.state == "ok" and attribute is None)


def _unreadable(path: Path) -> Check | None:
    """What is wrong with a file of attributes that git itself would wait for, or not read; None for nothing."""
    try:
        content_of(path, most=_MOST_ATTRIBUTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        what = f"{path}: {error.strerror}: git merges route files as text, or waits for this file"
        return Check(_NAME, "problem", what, f"move it away, then: {_AGAIN}")
    return None


def _driver(line: str) -> Check:
    """Whether the clone has a driver, and whether that is this ralf and answers."""
    if not line:
        what = "this clone has no merge driver: git merges route files as text"
        return Check(_NAME, "warning", what, _AGAIN)
    if line != merge_driver.driver_line(merge_driver.own_command()):
        try:
            program = next(iter(shlex.split(line)), "")
        except ValueError:  # a quotation that is open
            program = ""
        if not program or shutil.which(program) is None:
            what = f"the merge driver names {program or line[:200]}, which is no program here: no merge succeeds"
            return Check(_NAME, "problem", what, _AGAIN)
        return Check(
            _NAME, "warning", f"the merge driver is another ralf than this one: not tried: {line[:200]}", _AGAIN
        )
    if problem := _tried(line):
        return Check(_NAME, "problem", f"the merge driver {problem}", _AGAIN)
    return Check(_NAME, "ok", "git merges route files with this ralf, which answers")


def _tried(line: str) -> str:
    """What is wrong with a driver of ours, called as git calls it; "" for nothing."""
    with tempfile.TemporaryDirectory(prefix="ralf-doctor-") as folder:
        for name in "OAB":
            Path(folder, name).write_text(f"{name}\n" if name == "O" else "the same on both sides\n")
        names = {f"%{name}": name for name in "OAB"} | {"%P": ".autonomous/context/routes/route.md"}
        command = [names.get(word, word) for word in shlex.split(line)]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment.of_a_model(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SLOW,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"has not answered for {_SLOW} s"
        except OSError as error:
            return f"does not start: {error.strerror or error}"
    said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
    return f"fails with status {done.returncode}: {said}" if done.returncode else ""


def _attribute(project: Project, found: merge_driver.Setup) -> Check | None:
    """What is wrong with the attribute that names the driver, None for nothing."""
    path = project.routes / ".gitattributes"
    if found.attribute != merge_driver.NAME:
        other = f"name the driver {found.attribute}" if found.attribute else "name no driver"
        hint = _AGAIN if not found.attribute else f"git -C {project.root} check-attr -a {path}"
        return Check(_NAME, "problem", f"{path}: git's attributes {other} for route files", hint)
    if not found.is_committed:
        what = f"{path}: is not committed: other clones merge as text"
        return Check(_NAME, "warning", what, f"git add {path}, then: git commit")
    return None


def _conflicts(project: Project, *, has_driver: bool) -> Iterator[Check]:
    """The route files that a merge has left with conflict markers."""
    left = [path for path in sorted(project.routes.glob("*.md")) if _has_conflict(path)]
    if not left:
        return
    first = left[0]
    more = f", and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    what = f"{', '.join(map(str, left[:_SHOWN]))}{more}: conflict markers of a merge: read from your journal meanwhile"
    hint = f"take the markers out in an editor: {first}"
    if merge_driver.is_unmerged(project, first):
        hint = f"git checkout --merge {first}"
        hint = hint if has_driver else f"{_AGAIN}, then: {hint}"
    yield Check(_NAME, "problem", what, hint)


def _has_conflict(path: Path) -> bool:
    with suppress(OSError):
        return routefile.has_conflict(content_of(path, most=_MOST))
    return False
