"""`ralf status` and `ralf doctor`: the current route, and the condition of the installation."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from ralf_cli import tables
from ralf_cli.command import command
from ralf_cli.options import complete_route, with_json, with_json_alone, with_root
from ralf_cli.times import shown

if TYPE_CHECKING:
    from ralf.checkpointing.progress import Status
    from ralf.project import Project
    from ralf.tasks.model import TaskState


_NAMED = 3  # routes on one line


@command(short_help="Show the current route, its checkpoints and tokens.")
@click.option("--route", metavar="ROUTE", shell_complete=complete_route, help="Of this route. Default: the session's.")
@click.option("--all", "all_", is_flag=True, help="Every session: window, pressure, last checkpoint, problems.")
@click.option("--watch", is_flag=True, help="With --all: again and again (in a pipe a line for each change).")
@click.option("--interval", type=click.FloatRange(min=0.2), default=5.0, metavar="S", help="Seconds of --watch. [5]")
@click.option("--idle", is_flag=True, help="With --all: also sessions that were idle for more than a day.")
@click.option("--nudge", is_flag=True, help="With --all: send a notice to each session that crosses the threshold.")
@with_root
@with_json_alone
def status(
    route: str | None,
    all_: bool,
    watch: bool,
    interval: float,
    idle: bool,
    nudge: bool,
    root: str | None,
    as_json: bool,
) -> Status | None:
    """Show the current route and why it was chosen, the last checkpoint, tokens until the next one, the last hook
    call, the tasks and the loop, other routes, and what of any route needs attention.

    With --all: every session known from hooks or from the client's logs, with the tokens in its window, pressure,
    growth, minutes to the next checkpoint and to compaction, its last checkpoint, its task, how its window is divided,
    and problems. Times are estimates. The thresholds are health_* in config.yaml.

    \b
    Examples:
      ralf
      ralf status --json
      ralf status --all --watch --nudge

    \b
    Exit status: 0 · 2 invalid name, bad configuration · 4 damaged data, also of another route ·
    130 stopped from the keyboard
    """
    from ralf_cli.output import handed_over

    if all_ or watch or nudge or idle:
        from ralf_cli import health

        health.show(route, root, watch=watch, interval=interval, idle=idle, nudge=nudge, as_json=as_json)
        return None
    with nullcontext() if as_json else handed_over():
        return _of_route(route, root, as_json=as_json)


def _of_route(route: str | None, root: str | None, *, as_json: bool) -> Status:
    """Show the state of one route."""
    from shlex import quote

    import ralf
    from ralf import environment, project as projects, routing
    from ralf.checkpointing.progress import status as look
    from ralf.refining.spending import as_fields
    from ralf.route import shared
    from ralf_cli.output import emit_json, fields_of
    from ralf_integrations.hooks import session_registry

    project = projects.find(root)
    found = look(project, route)
    called = session_registry.last_called(project)
    task = _task(project)
    if as_json:
        spent = {name: as_fields(getattr(found, name)) for name in ("spend", "spend_total")}
        more: dict[str, object] = {"last_hook": _time(called), "task": task.task.id if task else ""}
        emit_json(fields_of(found) | spent | more)
        return found
    accepted, new = shared.others(project)
    state = "not opted in: ralf init" if not found.opted_in else "" if found.hooks else "hooks are off: ralf init"
    click.echo(f"project          {found.root}" + (f"  ({state})" if state else ""))
    is_alone = found.rule == routing.DEFAULT and not found.revision and found.routes == 1 and not environment.is_agent()
    only = f"; commands that name none use the only one: {found.others[0]}" if is_alone else ""
    click.echo(f"route            {found.route}  ({found.rule}{only})")
    if task is not None:
        from ralf_cli.tasktext import named

        click.echo(f"task             {named(task)}")
    conflicted = _show_tasks(project)
    _show_loop(project)
    if found.title:
        click.echo(f"about            {tables.in_brief(found.title)}")
    if found.last_request:
        state = f" ({found.work_status.replace('_', ' ')})" if found.work_status else ""
        click.echo(f"asked last       {tables.in_brief(found.last_request)}{state}")
    if found.revision or found.checkpoint_count:
        last = f", last {shown(found.last_checkpoint)}" if found.last_checkpoint else ""
        click.echo(f"checkpoints      {found.checkpoint_count}{last}, revision {found.revision}")
        click.echo(f"tokens so far    {found.total_tokens_consumed:,}")
    else:
        click.echo("checkpoints      none yet")
    current = (found.route, routing.known(project, found.route))
    summaries = [one for one in ralf.list_routes(root=root) if one.route not in current]
    if found.others:
        left = len(summaries) - len(found.others)
        rest = f" and {left:,} more: ralf list" if left > 0 else ""
        click.echo(f"other routes     {', '.join(found.others)}{rest}")
    if found.foreign:
        click.echo(f"foreign          it holds what came with the repository: ralf trust {found.route}")
    _show_foreign([one.route for one in summaries if one.foreign])
    for name, count in sorted(Counter(note.by for note in new).items()):
        click.echo(f"shared           {count:,} new by {name}: ralf trust {quote(name)}")
    if accepted and not project.git.shares():
        click.echo("sharing          others share what they decide here, and you do not: ralf init --share")
    if found.transcript is None:
        click.echo("session          none found for this project")
    else:
        in_another = f"  (in route {found.session_route})" if found.session_route else ""
        click.echo(f"session          {found.transcript}{in_another}")
    if found.opted_in:
        click.echo(f"last hook        {shown(_time(called)) if called else 'none has called yet'}")
    if found.problem:
        click.echo(f"problem          {found.problem}")
    if found.tokens_since is not None:
        to_next = (
            f"next checkpoint in about {found.tokens_to_next:,}" if found.tokens_to_next else "a checkpoint is due"
        )
        click.echo(f"since then       about {found.tokens_since:,} tokens; {to_next}")
    _show_model(found)
    routes = [(found.route, found.damage), *((one.route, one.damage) for one in summaries)]
    damaged = [*((damage, f"ralf show {name}") for name, damage in routes if damage), *conflicted]
    if damaged:
        from ralf_cli.terminal import complain

        for damage, hint in damaged:
            complain(damage, hint)
        click.get_current_context().exit(4)
    return found


def _show_foreign(routes: list[str]) -> None:
    """Say of which other routes something waits to be accepted."""
    if not routes:
        return
    more = f" and {len(routes) - _NAMED:,} more" if len(routes) > _NAMED else ""
    what = f"{', '.join(routes[:_NAMED])}{more}: came with the repository, at least in part"
    click.echo(f"foreign          {what}: ralf trust{f' {routes[0]}' if len(routes) == 1 else ''}")


def suggest(found: Status) -> None:
    """Say on stderr what to type next, for someone who typed `ralf` alone."""
    from ralf_cli.output import say

    for typed, why in _next(found):
        say(f"next: {typed}  ({why})")


def _next(found: Status) -> list[tuple[str, str]]:
    """Commands that help next, and what each does."""
    rest = [("ralf --help", "all commands")]
    if not found.opted_in and not found.routes:
        return [
            ("ralf init --client claude-code", "enable ralf and install the hooks of Claude Code; or of codex, gemini"),
            ("ralf checkpoint NAME --transcript FILE", "or only checkpoint one session log"),
            *rest,
        ]
    if not found.routes:
        return [
            ("ralf checkpoint NAME", "checkpoint this project's newest session into the route NAME"),
            ('ralf decide NAME "WHAT" --because "WHY"', "record a decision; the route is made by it"),
            ("ralf doctor", "check that a client calls ralf"),
            *rest,
        ]
    if not found.revision:
        other = found.others[0]
        return [
            ("ralf list", "all routes"),
            (f"ralf show {other}", "the newest of them"),
            (f"ralf route {other}", "make it the current one, which needs no name"),
            *rest,
        ]
    return [
        ("ralf show", "what is known: goal, state, next steps, decisions"),
        ('ralf search "WORDS"', "find a decision, a command, an error"),
        ('ralf decide "WHAT" --because "WHY"', "record a decision"),
        *rest,
    ]


def _task(project: Project) -> TaskState | None:
    """The task that whoever runs this holds: that of its lease, else the one that was claimed last."""
    if not (project.folder.parent / "tasks").is_dir():
        return None
    from ralf import environment
    from ralf.tasks import store  # few projects have tasks

    tasks, id_ = store.Tasks(project), environment.lease().rpartition(":")[0]
    by = store.holder(project)
    held = tasks.read(lambda book: book.states(book.claimed())).values()
    own = [state for state in held if state.claim is not None and (state.task.id == id_ or state.claim.by == by)]
    return max(own, key=lambda state: (state.task.id == id_, state.claim.number if state.claim else 0), default=None)


def _show_tasks(project: Project) -> list[tuple[str, str]]:
    """Show how many tasks are not done; what is wrong with files of tasks, each with what to do."""
    if not (project.folder.parent / "tasks").is_dir():
        return []
    from ralf.tasks import store  # few projects have tasks

    found = store.Tasks(project).list(limit=1)
    waiting = {"ready": "ready", "claimed": "claimed", "blocked": "waiting for others"}
    told = [f"{found.counts[kind]:,} {words}" for kind, words in waiting.items() if found.counts[kind]]
    counted = [f"{found.counts['pending']:,} open ({', '.join(told)})"] if found.counts["pending"] else []
    counted += [f"{found.counts['failed']:,} failed"] if found.counts["failed"] else []
    if counted:
        click.echo(f"tasks            {', '.join(counted)}: ralf task list")
    return [(problem, f"mend the file: {path}") for path, problem in found.damaged]


def _show_loop(project: Project) -> None:
    """Show the loop that runs, or that was killed."""
    from ralf_integrations.loop import state

    found = state.load(project)
    if found.process and not found.ended:
        how = "running since" if found.is_running else "killed; it began"
        click.echo(f"loop             {how} {shown(_time(found.began))}: ralf loop status")


def _time(when: float) -> str:
    """Seconds since 1970 as they are written everywhere, "" for 0."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if when else ""


def _show_model(found: Status) -> None:
    """What the configured model does, and what models have cost."""
    from ralf_cli.output import price

    if found.model or found.model_problem:
        waiting = (
            f"{found.owed} checkpoint{'s' * (found.owed != 1)} to hand over at" if found.owed else "nothing to ask"
        )
        click.echo(f"model            {found.model or 'none'}  ({found.model_problem or waiting})")
    for name, spent in (("spent here", found.spend), ("spent in all", found.spend_total)):
        if spent.calls:
            told = [price(spent.tokens, spent.cost_usd or None)] if spent.tokens or spent.cost_usd else []
            told += [price(spent.estimated_tokens, None, estimated=True)] if spent.estimated_tokens else []
            today = f"; today {spent.day_tokens:,} tokens" if spent is found.spend_total else ""
            click.echo(
                f"{name:<16} {spent.calls} call{'s' * (spent.calls != 1)}, {' and '.join(told) or '0 tokens'}{today}"
            )


@command(short_help="Check the installation and the store; repair the store.")
@click.argument("route", required=False, metavar="[ROUTE]", shell_complete=complete_route)
@click.option("--store", is_flag=True, help="Only the store: every record, file and blob, or those of ROUTE.")
@click.option("--repair", is_flag=True, help="Repair the damage of the store and report each repair.")
@with_root
@with_json
@click.pass_context
def doctor(ctx: click.Context, route: str | None, store: bool, repair: bool, root: str | None, as_json: bool) -> None:
    """Check the installation from end to end and suggest fixes; with --store or --repair the whole store.

    \b
    It checks
      whether the project is enabled, whether file locks work here, and whether you may write into the store;
      whether the clients' settings call ralf, and whether the configured command works (in a temporary project);
      the versions, and whether the client trusts the hooks;
      whether the hooks were called, logged errors, and delivered their text;
      when the client deletes its transcripts;
      the store's integrity.

    Without --repair it changes nothing, and it never executes code from the repository. A repair works from the
    journal: what cannot be read is kept beside it, in a file that ends with .damaged, and the journal records the loss.

    \b
    Examples:
      ralf doctor
      ralf doctor --store
      ralf doctor --repair

    \b
    Exit status: 0, even with warnings · 1 there is a problem · 2 no such directory · 3 no such route ·
    4 damaged data (left), a file where ralf keeps a folder · 5 busy
    """
    if store or repair or route is not None:
        from ralf_cli.maintenance import check_store

        if check_store(route, root, repair=repair, as_json=as_json):
            ctx.exit(4)
        return
    from ralf import project
    from ralf.text.cleaning import clean
    from ralf_cli.output import emit_json
    from ralf_cli.terminal import typed
    from ralf_integrations.doctor import examine

    colours = {"ok": "green", "warning": "magenta", "problem": "red"}
    found = []
    for check in examine(project.find(root)):
        found.append(check)
        if not as_json:
            click.secho(f"{check.state:<8} ", fg=colours[check.state], nl=False)
            click.echo(clean(f"{check.name:<12} {check.what}"))
            if check.hint:
                click.echo(clean(f"{'':<22}→ {typed(check.hint)}"))
    if as_json:
        emit_json([check._asdict() for check in found])
    if any(check.state == "problem" for check in found):
        ctx.exit(1)
