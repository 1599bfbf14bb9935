"""`timeline-memory.md` for hooks that still read it: a read-only view of the agent's route. Deprecated.

    python -m ralf_integrations.blackbox5.timeline_memory hook        as a SessionStart hook: JSON on stdout
    python -m ralf_integrations.blackbox5.timeline_memory show AGENT  the view
    python -m ralf_integrations.blackbox5.timeline_memory install     put views in the place of the files; see below
    python -m ralf_integrations.blackbox5.timeline_memory uninstall   and give the files back as they were

`install` is for hooks that read the file themselves: each file whose agent has a route is kept as
`timeline-memory.backup.md` beside it, and a view stands in its place; `refresh` renews the views, as the loop's hook
does. Switch all of it off: `export RALF_TIMELINE_MEMORY=off`. What replaces it: `ralf show ROUTE --brief`.

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import ralf
from ralf import routing
from ralf.document.yaml_text import dump
from ralf.errors import RalfError, RouteNotFound
from ralf.facts.progress import UNSAID
from ralf.model import Checkpoint, RouteContext
from ralf.project import Project
from ralf.storage import durable, files
from ralf.storage.files import content_of, touch
from ralf.text import cleaning
from ralf.text.cleaning import OWN_OUTPUT, fenced, one_line, shown, trimmed
from ralf_integrations import environment
from ralf_integrations.blackbox5 import checkpointing
from ralf_integrations.blackbox5.checkpointing import complain, typed

# ---- the view ----


NAME = "timeline-memory.md"

_TOKENS = 2_500  # of a view, as of a brief

_ROWS = 20  # of a history

_LONGEST = 200  # characters of a value


def view(project: Project, agent: str, route: str = "", *, instead: str = "") -> str:
    """What `timeline-memory.md` of an agent would say, of its route (default: the one with its name). RouteNotFound.

    instead  the command that replaces it, where the view itself has to say that it is deprecated
    """
    context = ralf.get_context(route or agent, root=project.root)
    if context.wholly_foreign:
        raise RouteNotFound(route or agent, ())
    context = context.without_foreign()
    title = agent.replace("-", " ").title()
    state = dump(_state(context, agent)).rstrip()
    told = f" and deprecated: `{instead}` replaces it" if instead else ""
    head = (
        f"# {title} Timeline Memory\n\n**Format:** a view of route {context.route}, read-only{told}\n"
        f"**Updated:** {context.last_checkpoint}\n\n---\n\n"
    )
    brief = context.render(_TOKENS, section="brief", fenced=False)
    return fenced(shown(f"{head}```yaml\n{state}\n```\n\n---\n\n") + brief)


def _state(context: RouteContext, who: str) -> dict[str, Any]:
    """The fence of such a file: what was taken over from it, as it stood, and what has happened since."""
    work = context.active_work
    brought = work.extra.get(f"memory_of_{who}")
    kept = dict(brought) if isinstance(brought, Mapping) else {}
    told, history, queue = kept.get("timeline_memory"), kept.get("history"), kept.get("work_queue")
    rows = _runs(context)
    header = dict(told) if isinstance(told, Mapping) else {"version": "1.0.0", "agent": who, "created": context.created}
    before = header.get("total_runs")
    header["last_updated"] = context.last_checkpoint
    counted = {one.session for one in context.checkpoint_history if f"{NAME}#" in one.session}
    known = len(counted) if isinstance(before, int) else 0  # those are among the attempts
    header["total_runs"] = (before if isinstance(before, int) else 0) + max(0, _attempts(context) - known)
    doing = [_short(todo.content) for todo in work.todos if todo.status == "in_progress"]
    waiting = [todo.content for todo in work.todos if todo.status == "pending"] + list(work.next_steps)
    now: dict[str, Any] = {"in_progress": doing[0]} if doing else {}
    now |= {"backlog": [_short(text) for text in dict.fromkeys(waiting)][:_ROWS]} if waiting else {}
    now |= {"blocked_by": [_short(text) for text in work.blockers][:_ROWS]} if work.blockers else {}
    if isinstance(queue, list):  # of a file in plain Markdown: what is open in it is in the route's to-dos, too
        now["items"] = queue
    return {
        "timeline_memory": header,
        **{key: value for key, value in kept.items() if key not in ("source", "header", "timeline_memory")},
        "history": [*(history if isinstance(history, list) else []), *rows],
        "work_queue": {"in_progress": None, "backlog": [], **(queue if isinstance(queue, Mapping) else {}), **now},
    }


def _attempts(context: RouteContext) -> int:
    """Runs and sessions that have worked on the route; of a single session the route does not count any."""
    return context.active_work.attempts or min(1, len(_sessions(context)))


def _sessions(context: RouteContext) -> dict[str, Checkpoint]:
    """By session, the last checkpoint of those that a client's session has, which is called by no path."""
    return {one.session: one for one in context.checkpoint_history if one.session and "/" not in one.session}


def _runs(context: RouteContext) -> list[dict[str, Any]]:
    """A row for each run or session of which the route tells, the newest first."""
    runs = [
        {
            "run_id": one.run.rpartition(f"{NAME}#")[2],
            "timestamp": one.timestamp,
            "status": one.outcome or UNSAID,
            "notes": _short(one.said),
        }
        for one in context.active_work.last_runs
    ]
    runs += [
        {"run_id": name, "timestamp": one.timestamp, "notes": _short(one.summary_ref)}
        for name, one in _sessions(context).items()
    ]
    return sorted(runs, key=lambda row: str(row["timestamp"]), reverse=True)[:_ROWS]


def _short(text: str) -> str:
    return trimmed(one_line(text).replace("```", "'''"), _LONGEST)


# ---- hooks, and views in the place of files ----


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
        return said if cleaning.is_valid(said) else ""
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
            how = typed("ralf import timeline-memory", project.root)
            yield f"{place.path}: left as it is: no route {place.route}; first: {how}"
        elif backup.exists():
            yield f"{place.path}: left as it is: {BACKUP} lies beside it"
        else:
            mode = stat.S_IMODE(place.path.stat().st_mode)
            durable.write(backup, content, mode=mode)
            durable.write(place.path, _view_of(project, place), mode=_READ_ONLY)
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
        durable.sync_folder(place.path.parent)
        yield f"{place.path}: as it was"


def _renewed(project: Project, place: Place, content: bytes) -> Iterator[str]:
    if not _is_whole(content):
        how = typed("ralf decide, ralf edit", project.root)
        yield f"{place.path}: was changed: left as it is; record it: {how}"
        return
    with suppress(RouteNotFound):
        text = _view_of(project, place)
        if text != content:
            durable.write(place.path, text, mode=_READ_ONLY)
            yield f"{place.path}: renewed"


def _view_of(project: Project, place: Place) -> bytes:
    """A view that stands in the place of a file, which has nowhere else to say that it is deprecated."""
    instead = typed(f"ralf show {place.route} --brief", project.root)
    return view(project, place.agent, routing.known(project, place.route) or place.route, instead=instead).encode()


def _is_view(content: bytes) -> bool:
    return content.startswith(OWN_OUTPUT.encode())


def _is_whole(content: bytes) -> bool:
    """Whether a view is as we wrote it: its fence names the sum of what stands in it."""
    text = content.decode("utf-8", "replace")
    return text == fenced("".join(text.splitlines(keepends=True)[1:-1]))


def _files(project: Project) -> Iterator[Path]:
    if not project.folder.parent.exists():
        return  # no project: who knows what lies below it
    for here, below, names in os.walk(project.root):
        below[:] = [name for name in below if name not in _PASSED_BY and ".backup" not in name]
        path = Path(here, NAME)
        if NAME in names and not path.is_symlink() and "agents" in path.relative_to(project.root).parts:
            yield path


def _place(project: Project, path: Path) -> Place:
    """Whose file it is: its folder's name. Its route: the one with that name, else that of the task that it names."""
    folder = path.parent.parent if path.parent.name == "memory" else path.parent
    who = folder.name
    if routing.known(project, cleaning.slug(who)) is None:
        for place in (path.with_name(BACKUP), path):
            with suppress(OSError):
                task = _TASK.search(content_of(place, most=_MOST).decode("utf-8", "replace"))
                if task is not None and cleaning.is_valid(task[1]):
                    return Place(path, who, task[1])
    return Place(path, who, cleaning.slug(who))


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
        files.make(told.parent)
        touch(told)
    print(
        f"deprecated: {NAME}: read the route instead: {typed(f'ralf show {who} --brief', project.root)}; "
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
        project = checkpointing.named_project(given.project)
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
