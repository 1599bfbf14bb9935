"""Evidence that a task is done: its `verify:` command or the route's last test run, and digests of the edited files.

Nothing that a command prints decides anything: its exit status does. A command runs only where `config.local.yaml`
allows it, in a session of its own that ends with it.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import BinaryIO

from ralf import environment
from ralf.config.local_config import LocalConfig, local_config_of
from ralf.errors import RalfError
from ralf.facts.checks import says_failed
from ralf.facts.facts import NAMED
from ralf.model import RouteContext
from ralf.project import Project
from ralf.refining.command import ending_with_us
from ralf.storage.files import content_of
from ralf.tasks.model import Evidence, Task, TaskState
from ralf.tasks.records import now
from ralf.tasks.routes import route_of
from ralf.text.cleaning import clean, one_line, shown, trimmed

OUTPUT = 2_048
"""Bytes of a command's output that are kept, its last ones."""

_LONGEST_COMMAND = 500  # characters that are kept of a command

MOST_FILES = 200
"""Files whose digests evidence holds, those that were edited last."""

_LARGEST = 32 << 20  # bytes of a file; a larger one is left out

_FOREIGN = "git or an archive has changed the task's file since, and nobody has accepted it"

_EDITED = (
    "an edit of the file or an import brought it, and nobody has accepted it: ralf task edit {} --verify 'COMMAND'"
)

_OF_AGENT = "no person chose it, and none has accepted it: ralf task edit {} --verify 'COMMAND'"

_OURS = (".git", ".autonomous")  # folders that change by the hand of git, and of ralf itself


def verify(
    project: Project,
    task: Task,
    context: RouteContext | None,
    *,
    refusal: str = "",
    runs: bool = True,
) -> Evidence | None:
    """What says that a task is done; None where there is nothing to verify: no `verify:` and no edited file.

    context  of the task's route, with all that its agent did; None for a route that has nothing yet
    refusal  why its command is not run (`refusal_of`), whatever config.local.yaml allows
    runs     False: no command is run, whatever config.local.yaml allows

    The command of `verify:` runs if config.local.yaml has `verify_commands: true`, else the last test run after the
    last edit counts, as the route's facts tell it. Holds no lock, and may take as long as the command does.
    """
    files, command = digests(project, edited(context)), task.verify.strip()
    if not command and not files:
        return None
    settings, problem = (None, refusal) if refusal else _settings(project) if command and runs else (None, "")
    if command and settings is not None:
        found = _by_command(project, command, settings)
    else:
        found = _by_tests(context)
        if found.state == "claimed" and command:
            found = replace(found, command=one_line(clean(command)), output=f"not run: {problem}" if problem else "")
    output = shown(_redacted(project, found.output).strip())  # whole characters, nothing in them unseen
    output = output.encode("utf-8", "replace")[-OUTPUT:].decode("utf-8", "ignore")
    return replace(found, command=_command(project, found.command), at=now(), output=output, files=files)


def of_completed(project: Project, state: TaskState, *, for_person: bool = False) -> Evidence | None:
    """What says that a task is done that somebody says is; None for nothing. Takes as long as its `verify:` does.
    `for_person`: as for `refusal_of`.
    """
    context = None
    with suppress(RalfError, OSError):
        if route := route_of(project, state.task.context_route):
            from ralf.finding.reader import get_context  # loaded where there is one

            context = get_context(route, root=project.root)
    with suppress(RalfError, OSError):
        return verify(project, state.task, context, refusal=refusal_of(state, for_person=for_person))
    return None


def refusal_of(state: TaskState, *, for_person: bool = False) -> str:
    """Why the `verify:` command of a task is not run: a pull, an archive or a patch may have changed it, even while
    somebody has claimed the task. "" where it may run.

    for_person  whether it would run in a person's own process, as of their loop, and not in the agent's sandbox
    """
    if state.is_foreign:
        return _FOREIGN
    if state.has_edited_verify:
        return _EDITED.format(state.task.id)
    return _OF_AGENT.format(state.task.id) if state.has_agents_verify and for_person else ""


def has_failed(project: Project, task: Task, evidence: Evidence) -> bool:
    """Whether it was a task's own `verify:` that did not pass; what another test run came to refuses nothing."""
    return evidence.state == "failed" and evidence.command == _command(project, one_line(clean(task.verify)))


def _command(project: Project, command: str) -> str:
    """A command as evidence has it."""
    return trimmed(_redacted(project, command), _LONGEST_COMMAND)


def _redacted(project: Project, text: str) -> str:
    from ralf.redact import redactor_for  # who reads what was edited needs none of it

    return redactor_for(project).text(text)


# ---- the files ----


def edited(context: RouteContext | None) -> list[str]:
    """The files of the project that a route's facts say were created, edited or deleted, the last ones last."""
    if context is None or context.wholly_foreign:
        return []
    found = [fact.path for fact in context.facts.paths if set(fact.did) - {"read"} and _is_ours(fact.path)]
    return found[-MOST_FILES:]


def _is_ours(path: str) -> bool:
    """Whether a path may be one of the project's own files: relative, not leading out of it, neither git's nor ours."""
    parts = path.split("/")
    return parts[0] not in ("", *_OURS) and ".." not in parts and "\0" not in path and not path.startswith("~")


def digests(project: Project, names: Iterable[str]) -> dict[str, str]:
    """The sha256 of each file of the project, by its path in it; "" for one that is not there. Left out is what leads
    out of the project, is no regular file or cannot be read, and what is beyond the bounds.
    """
    root = os.path.realpath(project.root)
    found: dict[str, str] = {}
    for name in filter(_is_ours, [*names][:MOST_FILES]):
        path = Path(os.path.realpath(f"{root}/{name}"))
        try:
            if path.is_relative_to(root):
                found[name] = hashlib.sha256(content_of(path, most=_LARGEST)).hexdigest()
        except (FileNotFoundError, NotADirectoryError):
            found[name] = ""
        except OSError:
            continue
    return found


# ---- the last test run ----


def _by_tests(context: RouteContext | None) -> Evidence:
    """What the last test run of a route says, if it came after the last edit."""
    tests = context.facts.tests if context is not None and not context.wholly_foreign else ()
    run = next((fact for fact in reversed(tests) if not fact.extra.get("origin")), None)
    if context is None or run is None:
        return Evidence()
    if context.active_work.git.untested:
        return Evidence(command=run.command)
    commands = (fact for fact in reversed(context.facts.commands) if not fact.omitted)
    ended = next((fact for fact in commands if trimmed(fact.command, NAMED) == run.command), None)
    exit_status = None if ended is None else ended.exit if ended.status == "failed" else 0
    if not says_failed(run.result) and (ended is None or ended.status != "failed"):
        return Evidence("verified", run.command, exit_status, output=run.result)
    return Evidence("failed", run.command, exit_status or None, output=run.result)  # 0: a pipe swallowed it


# ---- the command ----


def why_not_run(project: Project) -> str:
    """Why no `verify:` command runs in a project, "" where they may: the user has not allowed it, or the file that
    says so cannot be used.
    """
    return _settings(project)[1]


def _settings(project: Project) -> tuple[LocalConfig | None, str]:
    """How commands run here, None where they may not; and why not."""
    try:
        found = local_config_of(project)
    except (RalfError, OSError) as error:
        return None, str(error)
    if found.verify_commands:
        return found, ""
    return None, "config.local.yaml does not allow it; a person can: ralf init --verify-commands"


def _by_command(project: Project, command: str, settings: LocalConfig) -> Evidence:
    line, seconds = one_line(clean(command)), settings.verify_timeout
    try:
        status, printed = _run(command, project.root, environment.of_a_summarizer(settings.environment), seconds)
    except (OSError, ValueError) as error:
        return Evidence("claimed", line, output=f"could not be started: {getattr(error, 'strerror', None) or error}")
    output = clean(printed.decode("utf-8", "replace"))
    if status is None:
        output = f"{output.rstrip()}\n[ended: it took longer than {seconds:g} s]\n"
    return Evidence("verified" if status == 0 else "failed", line, status, output=output)


_READ = 16_384  # bytes of the end of its output: more than is kept, so that a secret at the cut is redacted whole

_GRACE = 5  # seconds that the kernel may take to end it

_DRAINED = 1.0  # seconds in which what was printed before the end is read


def _run(command: str, folder: Path, env: Mapping[str, str], seconds: float) -> tuple[int | None, bytes]:
    """Run a shell's command line in a session of its own, which is killed when it ends or its time is up: its exit
    status, negative for a signal, None for its time; and the end of what it printed.
    """
    child = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**env, "PWD": os.fspath(folder)},
        start_new_session=True,
        preexec_fn=ending_with_us(),
    )
    kept = bytearray()

    def read(pipe: BinaryIO) -> None:
        with pipe:
            while piece := os.read(pipe.fileno(), 1 << 16):
                kept.extend(piece)
                del kept[:-_READ]

    reader = Thread(target=read, args=[child.stdout], daemon=True)
    reader.start()
    try:
        with suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
        status = child.returncode
    finally:  # also for Ctrl-C, which a session of its own does not see, and for what it leaves behind
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # one that has become another user's cannot be ended
            child.wait(_GRACE)
    reader.join(_DRAINED)
    return status, bytes(kept)
