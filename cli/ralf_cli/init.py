"""`ralf init`, `ralf init` and `ralf init --off`: enable ralf in a project, and install the hooks of its clients."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ralf.text.patterns import regex
from ralf_cli.command import command, taking
from ralf_cli.options import with_json_alone, with_root
from ralf_cli.output import say
from ralf_integrations.client import CLAUDE_CODE, CLIENTS

if TYPE_CHECKING:
    from ralf.maintenance import ownership
    from ralf.project import Project
    from ralf_integrations.clients.installation import Change, Part

_ONE_FILE_EACH = ("agents-md", "ralf")


_COMMAND = '"type": "command", '  # an entry of a client's settings that calls a hook begins so


_EVENT = regex(r'[" ](\w++)(?: --client [\w-]++)?"\]?, "timeout": ')  # and ends so


class Step(NamedTuple):
    """One thing that is done to a path; as a diff, too, where the file is somebody else's."""

    path: Path
    what: str
    diff: str = ""


@dataclass
class Plan:
    """What would be done, and what does it."""

    steps: list[Step] = field(default_factory=list)
    todo: list[Callable[[], object]] = field(default_factory=list)

    def add(self, steps: Iterator[Step] | list[Step], do: Callable[[], object]) -> None:
        """Add steps that are done together; none: nothing to do."""
        before = len(self.steps)
        self.steps += steps
        if len(self.steps) > before:
            self.todo.append(do)


@command(short_help="Enable ralf in this project; install or remove client hooks.")
@click.option(
    "--client",
    type=click.Choice((*CLIENTS, *_ONE_FILE_EACH)),
    help="Install the client's hooks; agents-md: a section of AGENTS.md; "
    "ralf: a section of the RALF loop's prompts, and a script.",
)
@click.option("--shared", is_flag=True, help="Write to the repository's shared settings, which call `ralf` from PATH.")
@click.option("--plugin", metavar="DIR", help="Write a Claude Code plugin into DIR instead of changing settings.")
@click.option("--existing", is_flag=True, help="Also checkpoint the client's existing sessions of this project.")
@click.option(
    "--summarizer",
    type=click.Choice(["claude", "codex"]),
    help="Have this client hand over at checkpoints (uses tokens on your account).",
)
@click.option("--verify-commands", is_flag=True, help="Let `ralf task done` run the `verify:` commands of tasks.")
@click.option(
    "--share",
    is_flag=True,
    help="Let git track what this clone decides and hands over, one small file a record, and nothing else.",
)
@click.option("--off", is_flag=True, help="Switch the hooks of this project off; `ralf init` switches them on again.")
@click.option("--uninstall", is_flag=True, help="Uninstall; keeps routes and journals.")
@taking("dry_run")
@taking("yes")
@with_root
@with_json_alone
def init(
    client: str | None,
    shared: bool,
    plugin: str | None,
    existing: bool,
    summarizer: str | None,
    verify_commands: bool,
    share: bool,
    off: bool,
    uninstall: bool,
    dry_run: bool,
    yes: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Enable ralf in this project. Hooks run only in projects where this was done.

    Creates one folder, .autonomous/context/, hidden from git. With --client, it also changes the client's settings
    of this project: the change is shown and must be confirmed. Everything else in the file is left untouched,
    --uninstall restores it, and running it twice is a no-op. Routes can be read and checkpointed without it.

    Without --client, --uninstall disables ralf in the project and removes everything installed from it.

    \b
    Examples:
      ralf init
      ralf init --client claude-code
      ralf init --client codex --dry-run
      ralf init --client claude-code --plugin DIR
      ralf init --verify-commands
      ralf init --client claude-code --uninstall

    \b
    Exit status: 0 · 1 a folder cannot be written · 2 no such directory, unreadable settings, a temporary
    environment · 4 a file where ralf keeps a folder · 5 the settings changed meanwhile
    """
    from ralf import project as projects
    from ralf.config import local_config
    from ralf.errors import UsageError
    from ralf_cli.output import emit_json, handed_over, say
    from ralf_cli.person import check_person, is_person

    if off:
        if client or plugin or existing or summarizer or verify_commands or share or uninstall or dry_run:
            raise click.UsageError("--off stands alone")
        _switch_off(root)
        return
    if verify_commands and (uninstall or plugin is not None):
        raise click.UsageError("--verify-commands goes with neither --uninstall nor --plugin")
    _check_options(client, plugin, shared=shared, uninstall=uninstall, needs=existing or summarizer is not None)
    project = projects.find(root)
    asks = sys.stdin.isatty() and is_person() and not yes and not as_json
    if not dry_run and not uninstall and (client == "ralf" or summarizer is not None):
        what = "it lets its files count as yours" if client == "ralf" else "it lets a command of yours run"
        again = f"ralf init --client {client}{f' --summarizer {summarizer}' if summarizer is not None else ''}"
        check_person(project.folder, f"{what}: nothing was changed", again)
    if plugin is not None:
        plan = _plugin(Path(os.path.abspath(plugin)))  # noqa: PTH100  # links are not followed
    elif uninstall:
        plan = _removal(project, client, shared=shared)
    else:
        plan = _installation(project, client, share=share, shared=shared, asks=asks)
        if verify_commands:
            plan.add(_verifying(project), partial(local_config.set_local, project, "verify_commands", True))
    if client is not None and plugin is None and not uninstall and (enabled := _has_plugin(project, client)):
        say(f"{enabled}: the plugin calls ralf's hooks: none are put into settings beside it")
    if plan.steps and not as_json:
        with handed_over():
            click.echo(
                "\n".join(map(_shown, plan.steps))
            )  # at once: who reads the first lines alone stops nothing halfway
    if plan.todo and not dry_run:
        if asks:
            click.confirm("Go on?", default=True, abort=True, err=True)
        elif not yes and (other := next((step.path for step in plan.steps if step.diff), None)):
            raise UsageError(other, "nothing was changed: nobody is here to say yes", "the same command with --yes")
        for do in plan.todo:
            do()
    if as_json:
        emit_json([_plain(step, done=not dry_run) for step in plan.steps])
    elif not plan.steps:
        with handed_over():
            click.echo(f"{project.folder}: nothing to do")
    elif dry_run:
        click.echo("dry run: nothing was changed")
    elif uninstall and client is not None and project.config_file.exists():
        say("this project stays opted in; to opt it out, too: ralf init --uninstall")
    if client is not None and not uninstall and plugin is None:
        if plan.steps and not dry_run:
            for line in _notes(project, client, shared=shared):
                say(line)
        if not dry_run:
            say("look whether all is well: ralf doctor")
            _offer_sessions(project, client, wanted=existing, asks=asks, quiet=as_json)
            _offer_summarizer(project, client, wanted=summarizer, asks=asks and bool(plan.steps))  # once
    elif plugin is not None:
        folder = shlex.quote(os.path.abspath(plugin))  # noqa: PTH100
        say(f"try it: claude --plugin-dir {folder}; to keep it: claude plugin marketplace add {folder}, then")
        say("claude plugin install ralf@ralf. It needs `ralf` on the PATH, and `ralf init` in each project")


def _check_options(client: str | None, plugin: str | None, *, shared: bool, uninstall: bool, needs: bool) -> None:
    if plugin is not None and (client != "claude-code" or shared or needs):
        raise click.UsageError("--plugin goes with --client claude-code alone")
    if plugin is not None and uninstall:
        raise click.UsageError("a plugin's folder is yours: remove it")
    if client is None and (shared or needs):
        raise click.UsageError("name the client: --client claude-code")
    if client in _ONE_FILE_EACH and (shared or needs):
        raise click.UsageError(f"{client} takes none of these options")
    if uninstall and needs:
        raise click.UsageError("--uninstall takes none of these options")


# ---- what is to be done ----


def _installation(project: Project, client: str | None, *, share: bool, shared: bool, asks: bool) -> Plan:
    from ralf import config
    from ralf.maintenance import ownership
    from ralf_integrations.clients import installation, interpreter

    plan = Plan()
    steps = _steps(ownership.plan_init(project, share=share))
    settings = [] if project.owner.has_opted_in else ownership.lines_that_set(project)
    if settings and asks:
        steps.append(Step(project.config_file, f"comes into force, as it is there: {'; '.join(settings)}"))
    elif settings:
        steps.append(Step(project.config_file, "is there, and not in force before you accept it: ralf trust"))
    plan.add(steps, partial(ownership.init, project, share=share, accept=asks))
    if project.owner.has_opted_in and config.of(project).hooks == "off":
        on = partial(ownership.switch, project, on=True)
        plan.add([Step(project.config_file, "change: the hooks of this project are on again")], on)
    if client is None:
        return plan
    if client != "agents-md" and not shared:
        interpreter.check()
    for part in _parts(project, client, shared=shared) if not _has_plugin(project, client) else ():
        change = installation.plan(project, part)
        if change is not None:
            purpose = _purpose(client, part.path, runs=part.runs)
            plan.add([_step(change, purpose)], partial(installation.apply, project, change))
    return plan


def _steps(steps: Sequence[ownership.Step]) -> list[Step]:
    return [Step(step.path, step.what) for step in steps]


def _verifying(project: Project) -> list[Step]:
    """What lets the `verify:` commands of tasks run; [] where they may run already."""
    from ralf.config import local_config
    from ralf_cli.person import check_person

    what = "only a person may let `verify:` commands run: nothing was changed"
    check_person(project.local_config_file, what, "ralf init --verify-commands")
    if project.owner.has_opted_in and local_config.local_config_of(project).verify_commands:
        return []
    how = "change" if project.local_config_file.exists() else "create"
    return [Step(project.local_config_file, f"{how}: the `verify:` commands of this project's tasks may run")]


def _has_plugin(project: Project, client: str) -> Path | None:
    """The settings that enable the client's plugin, where none of the project's call our hooks: beside it, hooks would
    be called twice. None else.
    """
    from ralf_integrations.clients import condition, installation

    if client != CLAUDE_CODE.name:
        return None
    places = [CLAUDE_CODE.path(project.root, shared=shared) for shared in (False, True)]
    there = any(installation.is_installed(CLAUDE_CODE, path) for path in places)
    return None if there else condition.enabled_plugin(project)


def _purpose(client: str, path: Path, *, runs: bool) -> str:
    from ralf_integrations.clients import excluding

    if path.name == excluding.NAME:
        return "git leaves the settings out, which name a Python of this machine"
    if client in _ONE_FILE_EACH:
        return "the loop reaches ralf by it" if runs else "tells agents when to read and write routes"
    return f"{client} calls ralf's hooks"


def _removal(project: Project, client: str | None, *, shared: bool) -> Plan:
    from ralf.errors import UsageError
    from ralf.maintenance import ownership
    from ralf_integrations.blackbox5 import installing
    from ralf_integrations.clients import installation

    plan = Plan()
    if client is None:
        plan.add(_steps(ownership.plan_uninstall(project)), partial(ownership.uninstall, project))
    if client is None:
        parts = [*installation.remembered(project), *installing.remembered(project)]
    else:
        parts = installing.remembered(project) if client == "ralf" else _parts(project, client, shared=shared)
    for part in parts:
        if installation.is_needed(project, part):
            continue
        try:
            change = installation.plan_removal(project, part)
        except UsageError as error:
            if client is not None:
                raise
            plan.steps.append(Step(part.path, f"{error.what}; {error.hint}"))  # the rest can be taken out all the same
            continue
        if change is not None:
            what = "ralf has made it" if change.after is None else "without what ralf has put there"
            plan.add([_step(change, what)], partial(installation.apply, project, change))
    return plan


def _plugin(folder: Path) -> Plan:
    from ralf_integrations.clients import plugin

    plan, changes = Plan(), plugin.plan(folder)
    steps = [Step(path, f"{'change' if path.exists() else 'create'}: part of the plugin") for path in changes]
    plan.add(steps, partial(plugin.write, changes))
    return plan


def _parts(project: Project, client: str, *, shared: bool) -> list[Part]:
    from ralf_integrations.blackbox5 import installing
    from ralf_integrations.clients import installation

    if client == "ralf":
        return installing.parts(project)
    if client == "agents-md":
        return [installation.of_agents_md(project)]
    known = CLIENTS[client]
    excluded = installation.of_exclude(project, known) if not shared else None
    return [installation.of_client(project, known, shared=shared), *([excluded] if excluded is not None else [])]


def _step(change: Change, what: str) -> Step:
    return Step(change.path, f"{change.what}: {what}", change.diff())


def _notes(project: Project, client: str, *, shared: bool) -> Iterator[str]:
    """What the person has to know or do."""
    from ralf_integrations.blackbox5 import installing
    from ralf_integrations.clients import installation

    if client == "ralf":
        yield from installing.notes(project)
    if client in _ONE_FILE_EACH:
        return
    known = CLIENTS[client]
    yield from known.then
    path = known.path(project.root, shared=False).relative_to(project.root)
    if not shared and (project.root / ".git").is_dir() and not known.has_local:
        yield f"{path} names a Python of this machine; unless git ignores it: echo {path} >> .git/info/exclude"
    other = known.path(project.root, shared=not shared)
    if known.has_local and installation.is_installed(known, other):
        yield f"{other} calls ralf's hooks, too, so that each event calls two: keep one of them"


# ---- how it is shown ----


def _shown(step: Step) -> str:
    from ralf.text.cleaning import clean

    lines = [f"{step.path}: {step.what}"]
    for line in _alike_at_once(clean(step.diff).splitlines()):
        colour = {"+": "green", "-": "red"}.get(line[:1])
        lines.append(click.style(f"  {line}", fg=colour) if colour else f"  {line}")
    return "\n".join(lines)


def _alike_at_once(lines: list[str]) -> Iterator[str]:
    """The lines of a diff; of entries that call the same for several events the first, and which events follow."""
    alike: list[str] = []  # events behind the one that is shown
    before = ""
    for line in [*lines, ""]:
        begins = line.find(_COMMAND)
        found = _EVENT.search(line, begins) if begins >= 0 else None
        call = f"{line[0]} {line[begins : found.start(1)]}" if found is not None else ""
        if found is not None and call == before:
            alike.append(found[1])
            continue
        if alike:
            yield f"{before[0]}    … the same for {len(alike)} event{'s' * (len(alike) > 1)}: {', '.join(alike)}"
            alike = []
        before = call
        if line:
            yield line


def _plain(step: Step, *, done: bool) -> dict[str, object]:
    shown = {"diff": step.diff} if step.diff else {}
    return {"path": str(step.path), "what": step.what, "done": done, **shown}


COSTS = "one call for each 50,000 tokens of session or less: about 9,000 tokens read, 1,250 written (an estimate)"
"""What `ralf.refining.prompting` lets a prompt and an answer have: who is asked is told no less than it may cost."""


def _offer_sessions(project: Project, client: str, *, wanted: bool, asks: bool, quiet: bool) -> None:
    """Checkpoint the client's sessions from before: where that is wanted, or said yes to; else say that it can be."""
    known = CLIENTS.get(client)
    if known is None or known.sessions is None or (quiet and not wanted):
        return
    from ralf_integrations import existing

    found = existing.found(project, client)
    if not found:
        if wanted:
            say("no existing sessions of this project that are not checkpointed")
        return
    count = f"{len(found)} existing session{'s' * (len(found) > 1)} of this project"
    megabytes = sum(one.left for one in found) / 1e6
    if not wanted and asks:
        wanted = click.confirm(f"Checkpoint {count} here ({megabytes:,.1f} MB; offline, free)?", default=True, err=True)
    elif not wanted:
        say(f"{count} can be checkpointed (offline, free): ralf init --client {client} --existing")
    if wanted:
        _take(project, found)


def _offer_summarizer(project: Project, client: str, *, wanted: str | None, asks: bool) -> None:
    """Have the person's own login hand over at checkpoints: only where it is named, or said yes to."""
    import shutil

    from ralf.config import local_config

    name = wanted or (CLIENTS[client].summarizer if client in CLIENTS else "")
    if not name or (wanted is None and not asks):
        return
    title = next(known.title for known in CLIENTS.values() if known.summarizer == name)
    if wanted is None:
        if shutil.which(name) is None or local_config.local_config_of(project).summarizer:
            return
        say(f"Checkpoints are free as they are. Your {title} login can write the hand-over in each; {COSTS}.")
        if not click.confirm("Have it do so?", default=False, err=True):
            return
    changed = local_config.set_local(project, "summarizer", name)
    say(f"{project.local_config_file}: {title} hands over at checkpoints{'' if changed else ', as before'}; {COSTS}")
    say("what it takes: ralf list --cost; a limit: daily_cap in that file; off again: remove `summarizer` there")


def _take(project: Project, found: Sequence[Any]) -> None:
    from ralf_integrations import existing

    checkpoints, routes, problems = 0, set(), []
    with progress_of(found) as progress:
        for taken in existing.take(project, found, progress=progress):
            if taken.report is None:
                problems.append(taken)
            else:
                checkpoints += len(taken.report.checkpoints)
                routes.add(taken.session.route)
    for taken in problems:
        say(f"warning: {taken.session.path}: left out: {taken.problem}")
    done = f"{checkpoints:,} checkpoint{'s' * (checkpoints != 1)} in {len(routes)} route{'s' * (len(routes) != 1)}"
    count = len(found) - len(problems)
    say(f"{count:,} session{'s are' if count != 1 else ' is'} now {done}: ralf list")


@contextmanager
def progress_of(found: Sequence[Any]) -> Iterator[Callable[[Any, int, int], None] | None]:
    """A bar over all sessions, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("sessions", total=sum(session.size for session in found))
        done: dict[str, int] = {}

        def told(session: Any, read: int, _: int) -> None:
            done[session.session] = read
            bar.update(task, completed=sum(done.values()), description=session.route)

        yield told


def _switch_off(root: str | None) -> None:
    """Switch the hooks of a project off: clients still call them, and they do nothing."""
    from ralf import project as projects
    from ralf.maintenance import ownership
    from ralf_cli.output import handed_over

    project = projects.find(root)
    changed = ownership.switch(project, on=False)
    with handed_over():
        click.echo(f"{project.config_file}: hooks are off" + ("" if changed else ", as before"))
