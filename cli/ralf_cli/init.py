"""`ralf init`: enable ralf in a project, install the hooks of its clients, and undo both."""

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
from ralf_cli.output import answer, say, so_many
from ralf_cli.person import check_no_agent, check_person, is_person
from ralf_integrations import existing
from ralf_integrations.blackbox5 import installing
from ralf_integrations.client import CLAUDE_CODE, CLIENTS
from ralf_integrations.clients import condition, excluding, installation, interpreter, plugin
from ralf_integrations.clients.installation import Change, Part

_ONE_FILE_EACH = ("agents-md", "ralf")

_CLIENT = click.Choice((*CLIENTS, *_ONE_FILE_EACH))

COSTS = "one call per 50,000 tokens of session or less: about 9,000 tokens read, 1,250 written (an estimate)"
"""The most that `ralf.refining.prompting` allows a prompt and an answer."""


class Step(NamedTuple):
    """A change of a path, with a diff if the file is not ralf's. `do` applies it, and later steps without a `do`."""

    path: Path
    what: str
    diff: str = ""
    do: Callable[[], object] | None = None


def _together(steps: Iterable[Any], do: Callable[[], object]) -> list[Step]:
    """Steps of the core that one function applies."""
    return [Step(path, what, "", do if number == 0 else None) for number, (path, what) in enumerate(steps)]


def _change(change: Change | None, what: str) -> list[Step]:
    if change is None:
        return []
    do = partial(installation.apply, project(), change)
    return [Step(change.path, f"{change.what}: {what}", change.diff(), do)]


@command("dry_run", "yes", is_fenced=False)
@click.option("--client", "clients", multiple=True, type=_CLIENT, help="Install the hooks or sections for this client.")
@click.option("--shared", is_flag=True, help="Change the repository's shared settings, which call `ralf` from PATH.")
@click.option("--plugin", metavar="DIR", help="Write a Claude Code plugin into DIR instead of changing settings.")
@click.option(
    "--summarizer", type=click.Choice(["claude", "codex"]), help="Model that writes hand-overs (uses your tokens)."
)
@click.option("--verify-commands", is_flag=True, help="Let `ralf task done` run the `verify:` commands of tasks.")
@click.option("--share", is_flag=True, help="Share this clone's decisions through git, one small file per record.")
@click.option("--off", is_flag=True, help="Disable the hooks in this project; `ralf init` enables them.")
@click.option("--uninstall", is_flag=True, help="Remove ralf from this project; keep routes and journals.")
def init(
    clients: tuple[str, ...],
    shared: bool,
    plugin: str | None,
    summarizer: str | None,
    verify_commands: bool,
    share: bool,
    off: bool,
    uninstall: bool,
) -> None:
    """Enable ralf in this project. Hooks run only in enabled projects.

    `ralf init` creates one folder, .autonomous/context/, which git ignores. With --client, it also changes the client's
    settings for this project, after showing the change and asking. The rest of the settings file remains unchanged,
    --uninstall restores the file, and a second run changes nothing. You can read and checkpoint routes without
    `ralf init`.

    Without --client, --uninstall disables ralf in the project and removes its hooks and sections.

    \b
    Examples:
      ralf init --client claude-code
      ralf init --client codex --dry-run
      ralf init --client claude-code --uninstall
    """
    here, client = project(), clients[0] if clients else None
    is_dry = bool(given("dry_run"))
    if len(clients) > 1:
        raise click.UsageError("--client takes one client: run ralf init once for each")
    if plugin is not None and (client != "claude-code" or shared or summarizer or verify_commands or uninstall):
        raise click.UsageError("--plugin goes with --client claude-code alone")
    if client is None and (shared or summarizer):
        raise click.UsageError("name the client: --client claude-code")
    if client in _ONE_FILE_EACH and (shared or summarizer):
        raise click.UsageError(f"{client} takes none of these options")
    if uninstall and (summarizer or verify_commands):
        raise click.UsageError("--uninstall takes none of these options")
    if off:
        if client or verify_commands or share or uninstall or is_dry:
            raise click.UsageError("--off takes no other option")
        changed = ownership.switch(here, on=False)
        with handed_over():
            answer({"hooks": "off"}, f"{here.config_file}: hooks are off" + ("" if changed else ", as before"))
        return
    if (share or uninstall) and not is_dry:
        check_no_agent(here.folder, "nothing was changed", f"ralf init --{'share' if share else 'uninstall'}")
    if (client == "ralf" or summarizer) and not is_dry and not uninstall:
        what = "it accepts task files as yours" if client == "ralf" else "it lets a command of yours run"
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
    _carry_out(steps, asks=asks, is_dry=is_dry)
    if plugin is not None:
        folder = shlex.quote(os.path.abspath(plugin))  # noqa: PTH100
        say(f"try it: claude --plugin-dir {folder}; install it: claude plugin marketplace add {folder}, then")
        say("claude plugin install ralf@ralf. It needs `ralf` on the PATH, and `ralf init` in each project")
    elif client is not None and not uninstall and not is_dry:
        for line in _notes(client, shared=shared) if steps else ():
            say(line)
        say("check the installation: ralf doctor")
        if summarizer is not None:
            _set_summarizer(summarizer)
    elif client is None and not is_dry and not is_json():
        own = registry.path_of(here.root)
        kept = f"kept: {here.folder} and its key, {own}: delete both if you no longer need them"
        say(kept if uninstall else "to install a client's hooks: ralf init --client claude-code")


def _carry_out(steps: list[Step], *, asks: bool, is_dry: bool) -> None:
    todo = [step.do for step in steps if step.do is not None and not is_dry]
    if steps and not is_json():
        with handed_over():
            click.echo("\n".join(map(_shown, steps)))
    if todo and asks:
        click.confirm("Continue?", default=True, abort=True, err=True)
    elif todo and not given("yes") and (other := next((step.path for step in steps if step.diff), None)):
        raise UsageError(other, "nothing was changed: no terminal to confirm on", "repeat the command with --yes")
    for do in todo:
        do()
    made = [{"path": step.path, "what": step.what, "done": not is_dry} for step in steps]
    with handed_over():
        answer(
            [one | ({"diff": step.diff} if step.diff else {}) for one, step in zip(made, steps, strict=True)],
            *([] if steps else [f"{project().folder}: nothing to do"]),
        )
    if is_dry and steps:
        say("dry run: nothing was changed")


def _shown(step: Step) -> str:
    colours = {"+": "green", "-": "red"}
    diff = (click.style(f"  {line}", fg=colours.get(line[:1])) for line in clean(step.diff).splitlines())
    return "\n".join([f"{step.path}: {step.what}", *diff])


# ---- the steps ----


def _installation(client: str | None, *, share: bool, shared: bool, asks: bool) -> list[Step]:
    here = project()
    planned = [*ownership.plan_init(here, share=share)]
    if not here.owner.has_opted_in and (settings := ownership.lines_that_set(here)):
        what = f"applies from now on, as it is: {'; '.join(settings)}"
        what = what if asks else "exists, and does not apply until you accept it: ralf trust"
        planned.append(ownership.Step(here.config_file, what))
    steps = _together(planned, partial(ownership.init, here, share=share, accept=asks))
    if here.owner.has_opted_in and config.of(here).hooks == "off":
        on = partial(ownership.switch, here, on=True)
        steps.append(Step(here.config_file, "change: enable the hooks of this project", "", on))
    if client is None:
        return steps
    if client != "agents-md" and not shared:
        interpreter.check()
    if enabled := _plugin_of(client):
        say(f"{enabled}: the plugin calls ralf's hooks already, so the settings stay as they are")
        return steps
    for part in _parts(client, shared=shared):
        what = f"{client} calls ralf's hooks"
        if part.path.name == excluding.NAME:
            what = "git ignores the settings, which name a Python of this machine"
        elif client in _ONE_FILE_EACH:
            what = "the loop calls ralf by it" if part.runs else "tells agents when to read and write routes"
        steps += _change(installation.plan(here, part), what)
    return steps


def _verifying() -> list[Step]:
    """The step that lets the `verify:` commands of tasks run; [] if they may already."""
    here = project()
    what = "only a person may let `verify:` commands run: nothing was changed"
    check_person(here.local_config_file, what, "ralf init --verify-commands")
    if here.owner.has_opted_in and local_config.local_config_of(here).verify_commands:
        return []
    how = "change" if here.local_config_file.exists() else "create"
    what = f"{how}: the `verify:` commands of this project's tasks may run"
    return [Step(here.local_config_file, what, "", partial(local_config.set_local, here, "verify_commands", True))]


def _plugin_of(client: str) -> Path | None:
    """The settings that enable the client's plugin, unless the project's own call our hooks."""
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
            steps.append(Step(part.path, f"{error.what}; {error.hint}"))  # the other parts can still be removed
            continue
        is_made = change is not None and change.after is None
        steps += _change(change, "ralf created it" if is_made else "without ralf's entries")
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


# ---- afterwards ----


def _notes(client: str, *, shared: bool) -> Iterator[str]:
    here = project()
    if client == "ralf":
        yield from installing.notes(here)
    if client in _ONE_FILE_EACH:
        return
    known = CLIENTS[client]
    yield from known.then
    if known.sessions is not None and (sessions := len(existing.found(here, client))):
        count = so_many(sessions, "existing session")
        yield f"{count} of this project can be checkpointed (offline, free): ralf import {client}"
    path = known.path(here.root, shared=False).relative_to(here.root)
    if not shared and (here.root / ".git").is_dir() and not known.has_local:
        yield f"{path} names a Python of this machine; unless git ignores it: echo {path} >> .git/info/exclude"
    other = known.path(here.root, shared=not shared)
    if known.has_local and installation.is_installed(known, other):
        yield f"{other} calls ralf's hooks, too: each event runs twice; remove one of them"


def _set_summarizer(name: str) -> None:
    path = project().local_config_file
    title = next(known.title for known in CLIENTS.values() if known.summarizer == name)
    changed = local_config.set_local(project(), "summarizer", name)
    say(f"{path}: {title} writes hand-overs at checkpoints{'' if changed else ', as before'}; {COSTS}")
    say("costs so far: ralf status; a limit: daily_cap in that file; to disable: remove `summarizer` there")
