"""`ralf init`, `ralf init --off` and `--uninstall`: enable ralf in a project, and install the hooks of its clients."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from ralf import config
from ralf.config import local_config
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.storage import registry
from ralf.text.cleaning import clean
from ralf_cli.command import command, given, handed_over, is_json, project
from ralf_cli.output import answer, progress_of, say
from ralf_cli.person import check_no_agent, check_person, is_person
from ralf_cli.tables import so_many
from ralf_integrations import existing
from ralf_integrations.blackbox5 import installing
from ralf_integrations.client import CLAUDE_CODE, CLIENTS
from ralf_integrations.clients import condition, excluding, installation, interpreter, plugin
from ralf_integrations.clients.installation import Change, Part
from ralf_integrations.existing import Existing

_ONE_FILE_EACH = ("agents-md", "ralf")

COSTS = "one call for each 50,000 tokens of session or less: about 9,000 tokens read, 1,250 written (an estimate)"
"""What `ralf.refining.prompting` lets a prompt and an answer have: who is asked is told no less than it may cost."""


class Step(NamedTuple):
    """One thing that is done to a path; as a diff, too, where the file is somebody else's.

    do  what does it, and the steps behind it that have nothing of their own
    """

    path: Path
    what: str
    diff: str = ""
    do: Callable[[], object] | None = None


def _together(steps: Iterable[Any], do: Callable[[], object]) -> list[Step]:
    """Steps of the core that one function does."""
    return [Step(path, what, "", do if number == 0 else None) for number, (path, what) in enumerate(steps)]


def _change(change: Change | None, what: str) -> list[Step]:
    """The change of a file; [] for none."""
    if change is None:
        return []
    do = partial(installation.apply, project(), change)
    return [Step(change.path, f"{change.what}: {what}", change.diff(), do)]


@command("dry_run", "yes", is_fenced=False)
@click.option("--client", type=click.Choice((*CLIENTS, *_ONE_FILE_EACH)), help="Install its hooks, or sections.")
@click.option("--shared", is_flag=True, help="Write to the repository's shared settings, which call `ralf` from PATH.")
@click.option("--plugin", metavar="DIR", help="Write a Claude Code plugin into DIR instead of changing settings.")
@click.option("--existing", is_flag=True, help="Also checkpoint the client's existing sessions of this project.")
@click.option("--summarizer", type=click.Choice(["claude", "codex"]), help="Have it hand over (uses your tokens).")
@click.option("--verify-commands", is_flag=True, help="Let `ralf task done` run the `verify:` commands of tasks.")
@click.option("--share", is_flag=True, help="Let git track what this clone decides: a small file a record.")
@click.option("--off", is_flag=True, help="Switch the hooks of this project off; `ralf init` switches them on again.")
@click.option("--uninstall", is_flag=True, help="Uninstall; keeps routes and journals.")
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
) -> None:
    """Enable ralf in this project. Hooks run only in projects where this was done.

    Creates one folder, .autonomous/context/, hidden from git. With --client, it also changes the client's settings
    of this project: the change is shown and must be confirmed. Everything else in the file is left untouched,
    --uninstall restores it, and running it twice is a no-op. Routes can be read and checkpointed without it.

    Without --client, --uninstall disables ralf in the project and removes everything installed from it.

    \b
    Examples:
      ralf init --client claude-code
      ralf init --client codex --dry-run
      ralf init --client claude-code --uninstall
    """
    here = project()
    needs = existing or summarizer is not None
    _check_options(client, plugin, shared=shared, uninstall=uninstall, needs=needs, verifies=verify_commands)
    if off:
        if client or verify_commands or share or uninstall or given("dry_run"):
            raise click.UsageError("--off stands alone")
        changed = ownership.switch(here, on=False)
        with handed_over():
            answer({"hooks": "off"}, f"{here.config_file}: hooks are off" + ("" if changed else ", as before"))
        return
    if (share or uninstall) and not given("dry_run"):
        check_no_agent(here.folder, "nothing was changed", f"ralf init --{'share' if share else 'uninstall'}")
    if (client == "ralf" or summarizer) and not given("dry_run") and not uninstall:
        what = "it lets its files count as yours" if client == "ralf" else "it lets a command of yours run"
        again = f"ralf init --client {client}{f' --summarizer {summarizer}' if summarizer else ''}"
        check_person(here.folder, f"{what}: nothing was changed", again)
    asks = sys.stdin.isatty() and is_person() and not given("yes") and not is_json()
    if plugin is not None:
        steps = _plugin(Path(os.path.abspath(plugin)))  # noqa: PTH100  # links are not followed
    elif uninstall:
        steps = _removal(client, shared=shared)
    else:
        steps = _installation(client, share=share, shared=shared, asks=asks)
        steps += _verifying() if verify_commands else []
    _carry_out(steps, asks=asks)
    if plugin is not None:
        folder = shlex.quote(os.path.abspath(plugin))  # noqa: PTH100
        say(f"try it: claude --plugin-dir {folder}; to keep it: claude plugin marketplace add {folder}, then")
        say("claude plugin install ralf@ralf. It needs `ralf` on the PATH, and `ralf init` in each project")
    elif client is not None and not uninstall and not given("dry_run"):
        for line in _notes(client, shared=shared) if steps else ():
            say(line)
        say("look whether all is well: ralf doctor")
        _take_sessions(client, is_wanted=existing)
        if summarizer is not None:
            _set_summarizer(summarizer)
    elif client is None and not given("dry_run") and not is_json():
        own = registry.path_of(here.root)
        kept = f"kept: {here.folder} and its key, {own}: delete both yourself if nobody needs them"
        say(kept if uninstall else "the hooks of a client are installed by: ralf init --client claude-code")


def _check_options(
    client: str | None, plugin: str | None, *, shared: bool, uninstall: bool, needs: bool, verifies: bool
) -> None:
    if plugin is not None and (client != "claude-code" or shared or needs or verifies or uninstall):
        raise click.UsageError("--plugin goes with --client claude-code alone")
    if client is None and (shared or needs):
        raise click.UsageError("name the client: --client claude-code")
    if client in _ONE_FILE_EACH and (shared or needs):
        raise click.UsageError(f"{client} takes none of these options")
    if uninstall and (needs or verifies):
        raise click.UsageError("--uninstall takes none of these options")


def _carry_out(steps: list[Step], *, asks: bool) -> None:
    is_dry = bool(given("dry_run"))
    todo = [step.do for step in steps if step.do is not None and not is_dry]
    if steps and not is_json():
        with handed_over():  # at once: who reads the first lines alone stops nothing halfway
            click.echo("\n".join(map(_shown, steps)))
    if todo and asks:
        click.confirm("Go on?", default=True, abort=True, err=True)
    elif todo and not given("yes") and (other := next((step.path for step in steps if step.diff), None)):
        raise UsageError(other, "nothing was changed: nobody is here to say yes", "the same command with --yes")
    for do in todo:
        do()
    told = [{"path": str(step.path), "what": step.what, "done": not is_dry} for step in steps]
    with handed_over():
        answer(
            [one | ({"diff": step.diff} if step.diff else {}) for one, step in zip(told, steps, strict=True)],
            *([] if steps else [f"{project().folder}: nothing to do"]),
        )
    if is_dry and steps:
        say("dry run: nothing was changed")


def _shown(step: Step) -> str:
    colours = {"+": "green", "-": "red"}
    diff = (click.style(f"  {line}", fg=colours.get(line[:1])) for line in clean(step.diff).splitlines())
    return "\n".join([f"{step.path}: {step.what}", *diff])


# ---- what is to be done ----


def _installation(client: str | None, *, share: bool, shared: bool, asks: bool) -> list[Step]:
    here = project()
    planned = [*ownership.plan_init(here, share=share)]
    if not here.owner.has_opted_in and (settings := ownership.lines_that_set(here)):
        what = f"comes into force, as it is there: {'; '.join(settings)}"
        what = what if asks else "is there, and not in force before you accept it: ralf trust"
        planned.append(ownership.Step(here.config_file, what))
    steps = _together(planned, partial(ownership.init, here, share=share, accept=asks))
    if here.owner.has_opted_in and config.of(here).hooks == "off":
        on = partial(ownership.switch, here, on=True)
        steps.append(Step(here.config_file, "change: the hooks of this project are on again", "", on))
    if client is None:
        return steps
    if client != "agents-md" and not shared:
        interpreter.check()
    if enabled := _plugin_of(client):
        say(f"{enabled}: the plugin calls ralf's hooks: none are put into settings beside it")
        return steps
    for part in _parts(client, shared=shared):
        what = f"{client} calls ralf's hooks"
        if part.path.name == excluding.NAME:
            what = "git leaves the settings out, which name a Python of this machine"
        elif client in _ONE_FILE_EACH:
            what = "the loop reaches ralf by it" if part.runs else "tells agents when to read and write routes"
        steps += _change(installation.plan(here, part), what)
    return steps


def _verifying() -> list[Step]:
    """What lets the `verify:` commands of tasks run; [] where they may run already."""
    here = project()
    what = "only a person may let `verify:` commands run: nothing was changed"
    check_person(here.local_config_file, what, "ralf init --verify-commands")
    if here.owner.has_opted_in and local_config.local_config_of(here).verify_commands:
        return []
    how = "change" if here.local_config_file.exists() else "create"
    what = f"{how}: the `verify:` commands of this project's tasks may run"
    return [Step(here.local_config_file, what, "", partial(local_config.set_local, here, "verify_commands", True))]


def _plugin_of(client: str) -> Path | None:
    """The settings that enable the client's plugin, where none of the project's call our hooks: beside it, hooks would
    be called twice. None else.
    """
    if client != CLAUDE_CODE.name:
        return None
    places = [CLAUDE_CODE.path(project().root, shared=shared) for shared in (False, True)]
    there = any(installation.is_installed(CLAUDE_CODE, path) for path in places)
    return None if there else condition.enabled_plugin(project())


def _removal(client: str | None, *, shared: bool) -> list[Step]:
    here, steps = project(), []
    if client is None:
        steps = _together(ownership.plan_uninstall(here), partial(ownership.uninstall, here))
        parts = [*installation.remembered(here), *installing.remembered(here)]
    else:
        parts = installing.remembered(here) if client == "ralf" else _parts(client, shared=shared)
    for part in parts:
        if installation.is_needed(here, part):
            continue
        try:
            change = installation.plan_removal(here, part)
        except UsageError as error:
            if client is not None:
                raise
            steps.append(Step(part.path, f"{error.what}; {error.hint}"))  # the rest can be taken out all the same
            continue
        is_made = change is not None and change.after is None
        steps += _change(change, "ralf has made it" if is_made else "without what ralf has put there")
    return steps


def _plugin(folder: Path) -> list[Step]:
    changes = plugin.plan(folder)
    steps = ((path, f"{'change' if path.exists() else 'create'}: part of the plugin") for path in changes)
    return _together(steps, partial(plugin.write, changes))


def _parts(client: str, *, shared: bool) -> list[Part]:
    here = project()
    if client == "ralf":
        return installing.parts(here)
    if client == "agents-md":
        return [installation.of_agents_md(here)]
    known = CLIENTS[client]
    excluded = installation.of_exclude(here, known) if not shared else None
    return [installation.of_client(here, known, shared=shared), *([excluded] if excluded is not None else [])]


# ---- what is said and offered after it ----


def _notes(client: str, *, shared: bool) -> Iterator[str]:
    here = project()
    if client == "ralf":
        yield from installing.notes(here)
    if client in _ONE_FILE_EACH:
        return
    known = CLIENTS[client]
    yield from known.then
    path = known.path(here.root, shared=False).relative_to(here.root)
    if not shared and (here.root / ".git").is_dir() and not known.has_local:
        yield f"{path} names a Python of this machine; unless git ignores it: echo {path} >> .git/info/exclude"
    other = known.path(here.root, shared=not shared)
    if known.has_local and installation.is_installed(known, other):
        yield f"{other} calls ralf's hooks, too, so that each event calls two: keep one of them"


def _take_sessions(client: str, *, is_wanted: bool) -> None:
    known = CLIENTS.get(client)
    found = existing.found(project(), client) if known is not None and known.sessions is not None else []
    if not is_wanted and found:
        count = so_many(len(found), "existing session")
        say(f"{count} of this project can be checkpointed (offline, free): ralf init --client {client} --existing")
    if not is_wanted:
        return
    checkpoints, routes = 0, set()
    with progress_of("sessions") as told:

        def progress(session: Existing, done: int, size: int) -> None:
            if told is not None:
                told(done, size, session.route)

        for taken in existing.take(project(), found, progress=progress):
            if taken.report is None:
                say(f"warning: {taken.session.path}: left out: {taken.problem}")
            else:
                checkpoints += len(taken.report.checkpoints)
                routes.add(taken.session.route)
    told_routes = f"{so_many(checkpoints, 'checkpoint')} in {so_many(len(routes), 'route')}"
    say(f"{so_many(len(found), 'existing session')} looked at: {told_routes}: ralf list")


def _set_summarizer(name: str) -> None:
    path = project().local_config_file
    title = next(known.title for known in CLIENTS.values() if known.summarizer == name)
    changed = local_config.set_local(project(), "summarizer", name)
    say(f"{path}: {title} hands over at checkpoints{'' if changed else ', as before'}; {COSTS}")
    say("what it takes: ralf status; a limit: daily_cap in that file; off again: remove `summarizer` there")
