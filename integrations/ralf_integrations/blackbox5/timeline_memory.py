"""`timeline-memory.md` for hooks that still read it: a read-only view of the agent's route. Deprecated.

    python -m ralf_integrations.blackbox5.timeline_memory hook        as a SessionStart hook: JSON on stdout
    python -m ralf_integrations.blackbox5.timeline_memory show AGENT  the view
    python -m ralf_integrations.blackbox5.timeline_memory install     put views in the place of the files; see below
    python -m ralf_integrations.blackbox5.timeline_memory uninstall   and give the files back as they were

`install` is for hooks that read the file themselves: each file whose agent has a route is kept as
`timeline-memory.backup.md` beside it, and a view stands in its place; `refresh` renews the views, as the loop's hook
does. Switch all of it off: `export RALF_TIMELINE_MEMORY=off`. What replaces it: `ralf context show ROUTE --brief`.

Exit status: 0 · 1 failed · 2 wrong usage · 3 no such route.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ralf import names, routing
from ralf.briefing import fence
from ralf.errors import RalfError, RouteNotFound
from ralf.files import atomic, folders
from ralf.files.opening import content_of, touch
from ralf.project import Project
from ralf_integrations import environment
from ralf_integrations.blackbox5 import places
from ralf_integrations.blackbox5.messages import complain, typed
from ralf_integrations.blackbox5.timeline_view import NAME, view

BACKUP = "timeline-memory.backup.md"
_AGENT = re.compile(r"[a-z]+(?:-[a-z]+)*-(?:worker|validator)")
_TASK = re.compile(r"^\*\*Task:\*\*\s*([A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+)", re.M)
_PASSED_BY = frozenset("runs runs.migrated context tasks node_modules .git __pycache__".split())
_READ_ONLY = 0o444
_MOST = 16 << 20  # bytes
_INPUT = 100_000  # bytes of a hook's input


class Place(NamedTuple):
    """A file, whose agent it is, and the route that its view shows."""

    path: Path
    agent: str
    route: str


def agent() -> str:
    """The agent that runs us: `RALF_AGENT_TYPE`, else the one in the path that `RALF_PROMPT_FILE` is; "" for none."""
    said, prompt = environment.agent_of_the_loop()
    if said:
        return said if names.is_valid(said) else ""
    found = _AGENT.findall(prompt)
    return str(found[-1]) if found else ""


def hook(project: Project) -> str:
    """The answer to a SessionStart event, as the old pipeline's hook gives it: one JSON object, empty for no agent."""
    who, text = agent(), ""
    if who and not environment.timeline_memory_is_off():
        text = f"## Agent Identity\n\nYou are the **{who}**.\n\n## Your Timeline Memory (Long-Term Context)\n\n"
        text += _memory(project, who)
        _warn(project, who)
    return _answer(text)


def _answer(text: str) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})


def _memory(project: Project, who: str) -> str:
    """The view of an agent's route, else its file as it stands, else that there is nothing."""
    if (route := routing.known(project, who)) is not None:
        return view(project, who, route)
    place = next((one for one in found(project) if one.agent == who), None)
    if place is not None and (route := routing.known(project, place.route)) is not None:
        return view(project, who, route)
    if place is not None:
        return content_of(place.path, most=_MOST).decode("utf-8", "replace")
    return f"Nothing is kept of an earlier run: no route {who}, and no {NAME} of it.\n"


# ---- views in the place of the files ----


def found(project: Project) -> list[Place]:
    """The files of a project, or the views in their place; backups and what runs left are passed by."""
    return sorted({_place(project, path) for path in _files(project)})


def install(project: Project) -> Iterator[str]:
    """Put views in the place of the files whose agents have routes; what was done, a line each.

    A file is left as it is where nothing was taken over from it, and where a backup lies beside it already.
    """
    for place in found(project):
        content = content_of(place.path, most=_MOST)
        backup = place.path.with_name(BACKUP)
        if _is_view(content):
            yield from _renewed(project, place, content)
        elif routing.known(project, place.route) is None:
            how = typed("ralf migrate timeline-memory", project.root)
            yield f"{place.path}: left as it is: no route {place.route}; first: {how}"
        elif backup.exists():
            yield f"{place.path}: left as it is: {BACKUP} lies beside it"
        else:
            mode = stat.S_IMODE(place.path.stat().st_mode)
            atomic.write(backup, content, mode=mode)
            _put(project, place)
            yield f"{place.path}: a view of route {place.route}; as it was: {backup.name}"


def refresh(project: Project) -> Iterator[str]:
    """Renew the views that are there, and only them; what was done, a line each. Switched off, nothing is."""
    for place in [] if environment.timeline_memory_is_off() else found(project):
        content = content_of(place.path, most=_MOST)
        if _is_view(content):
            yield from _renewed(project, place, content)


def uninstall(project: Project) -> Iterator[str]:
    """Give the files back as they were; what was done, a line each. A view that was changed is left."""
    for place in found(project):
        content, backup = content_of(place.path, most=_MOST), place.path.with_name(BACKUP)
        if not _is_view(content) or not backup.exists():
            continue
        if not _is_whole(content):
            yield f"{place.path}: was changed: left as it is; as it was before: {backup.name}"
            continue
        backup.replace(place.path)
        atomic.sync_folder(place.path.parent)
        yield f"{place.path}: as it was"


def _renewed(project: Project, place: Place, content: bytes) -> Iterator[str]:
    if not _is_whole(content):
        how = typed("ralf context decide, ralf context edit", project.root)
        yield f"{place.path}: was changed: left as it is; record it: {how}"
        return
    with suppress(RouteNotFound):
        text = _text(project, place)
        if text != content:
            atomic.write(place.path, text, mode=_READ_ONLY)
            yield f"{place.path}: renewed"


def _put(project: Project, place: Place) -> None:
    atomic.write(place.path, _text(project, place), mode=_READ_ONLY)


def _text(project: Project, place: Place) -> bytes:
    """A view that stands in the place of a file, which has nowhere else to say that it is deprecated."""
    instead = typed(f"ralf context show {place.route} --brief", project.root)
    return view(project, place.agent, routing.known(project, place.route) or place.route, instead=instead).encode()


def _is_view(content: bytes) -> bool:
    return content.startswith(fence.OWN_OUTPUT.encode())


def _is_whole(content: bytes) -> bool:
    """Whether a view is as we wrote it: its fence names the sum of what stands in it."""
    text = content.decode("utf-8", "replace")
    return text == fence.fenced("".join(text.splitlines(keepends=True)[1:-1]))


def _files(project: Project) -> Iterator[Path]:
    if not project.folder.parent.exists():
        return  # no project: who knows what lies below it
    for here, below, files in os.walk(project.root):
        below[:] = [name for name in below if name not in _PASSED_BY and ".backup" not in name]
        path = Path(here, NAME)
        if NAME in files and not path.is_symlink() and "agents" in path.relative_to(project.root).parts:
            yield path


def _place(project: Project, path: Path) -> Place:
    """Whose file it is: its folder's name. Its route: the one with that name, else that of the task that it names."""
    folder = path.parent.parent if path.parent.name == "memory" else path.parent
    who = folder.name
    if routing.known(project, names.slug(who)) is None:
        for place in (path.with_name(BACKUP), path):
            with suppress(OSError):
                task = _TASK.search(content_of(place, most=_MOST).decode("utf-8", "replace"))
                if task is not None and names.is_valid(task[1]):
                    return Place(path, who, task[1])
    return Place(path, who, names.slug(who))


def _warn(project: Project, who: str) -> None:
    """Say once what replaces this: once for each agent of a project, whatever the process."""
    name = hashlib.sha256(who.encode()).hexdigest()[:16]
    with suppress(OSError, RalfError):
        if not project.folder.parent.exists():
            return
        project.prepare()
        told = project.cache / "deprecated" / f"{NAME}-{name}"
        if told.exists():
            return
        folders.make(told.parent)
        touch(told)
    print(
        f"deprecated: {NAME}: read the route instead: {typed(f'ralf context show {who} --brief', project.root)}; "
        "switch this off: export RALF_TIMELINE_MEMORY=off",
        file=sys.stderr,
    )


# ---- the command ----


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit status. A hook fails open: status 0, empty, and what is wrong on stderr."""
    parser = argparse.ArgumentParser(prog="timeline_memory.py", description="A view of routes for old hooks.")
    parser.add_argument("command", choices=["hook", "show", "install", "refresh", "uninstall"])
    parser.add_argument("agent", nargs="?", help="show: whose; default: the one that runs this")
    parser.add_argument("--project", metavar="P", help="a folder, or a name; default: the project that is meant")
    given = parser.parse_args(args)
    try:
        project = places.named(given.project)
        if given.command == "hook":
            if not sys.stdin.isatty():
                sys.stdin.buffer.read(_INPUT)  # whoever writes into a pipe is not to be broken off
            print(hook(project))
        elif given.command == "show":
            who = given.agent or agent()
            if not who:
                parser.error("whose? name the agent, or set RALF_AGENT_TYPE")
            _warn(project, who)
            print(_memory(project, who), end="")
        else:
            does = {"install": install, "refresh": refresh, "uninstall": uninstall}[given.command]
            for line in does(project):
                print(line)
    except BrokenPipeError:  # whoever reads has enough
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # closed by the end
    except (RalfError, OSError) as error:
        status = complain(error, given.project)
        if given.command == "hook":
            print(_answer(""))
            return 0
        return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
