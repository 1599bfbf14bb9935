"""`ralf status`: the current route, its task and session, what needs attention; with --all every session."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from shlex import quote
from typing import TYPE_CHECKING

import click

import ralf
from ralf import environment, routing
from ralf.checkpointing.progress import Status, status as look
from ralf.finding.reader import RouteSummary
from ralf.refining.spending import as_fields
from ralf.route import shared
from ralf.tasks import store
from ralf.tasks.model import TaskState
from ralf.tasks.store import TaskList
from ralf_cli.command import command, is_json, project, root
from ralf_cli.options import complete_route
from ralf_cli.output import complain, emit_json, fields_of, in_brief, price, say, so_many, table
from ralf_cli.tasktext import named
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop.state import load as state_of_loop

if TYPE_CHECKING:
    from ralf_integrations.health.rules import Session

_NAMED = 3  # routes on one line
_AGAIN = 2  # seconds
_ID = 8  # characters of a session's id, at least


@command()
@click.option(
    "--route", metavar="ROUTE", shell_complete=complete_route, help="Show this route. Default: the session's route."
)
@click.option("--all", "all_", is_flag=True, help="Show every session: window, pressure, last checkpoint, problems.")
@click.option("--idle", is_flag=True, help="With --all: include sessions idle for more than a day.")
@click.option("--nudge", is_flag=True, help="With --all: ask each session at or above `health_pressure` to hand over.")
@click.option("--watch", is_flag=True, help="With --all: refresh every two seconds until Ctrl-C.")
def status(route: str | None, all_: bool, idle: bool, nudge: bool, watch: bool) -> Status | None:
    """Show the current route, the rule that selected it, its last checkpoint and the tokens until the next checkpoint.
    Also show the last hook call, the tasks, the loop, other routes, and problems in any route.

    With --all, show every session known from hooks or client logs: tokens in its window, pressure, growth, minutes
    until the next checkpoint and until compaction, and problems. Times are estimates.
    """
    if all_ or nudge or idle or watch:
        _show_all(route, idle=idle, nudge=nudge)
        while watch:
            time.sleep(_AGAIN)
            click.clear()
            _show_all(route, idle=idle, nudge=nudge)
        return None
    found, task = look(project(), route), _task()
    when = session_registry.last_called(project())
    called = _time(when) if when else ""
    if is_json():
        spent = {name: as_fields(getattr(found, name)) for name in ("spend", "spend_total")}
        emit_json(fields_of(found, **spent, last_hook=called, task=task.task.id if task else ""))
        return found
    others = [one for one in ralf.list_routes(root=root()) if one.route != routing.known(project(), found.route)]
    tasks = store.Tasks(project()).list(limit=1) if (project().folder.parent / "tasks").is_dir() else None
    for name, text in _lines(found, task, tasks, called, others):
        click.echo(f"{name:<16} {text}")
    looked = [(found.route, found.damage), *((one.route, one.damage) for one in others)]
    damaged = [(damage, f"ralf show {name}") for name, damage in looked if damage]
    damaged += [(problem, f"mend the file: {path}") for path, problem in (tasks.damaged if tasks is not None else ())]
    for damage, hint in damaged:
        complain(damage, hint)
    if damaged:
        click.get_current_context().exit(4)
    return found


def _lines(
    found: Status, task: TaskState | None, tasks: TaskList | None, called: str, others: list[RouteSummary]
) -> Iterator[tuple[str, str]]:
    """The lines of the status: a name and a text each."""
    state = "not enabled: ralf init" if not found.opted_in else "" if found.hooks else "hooks are off: ralf init"
    yield "project", f"{found.root}" + (f"  ({state})" if state else "")
    is_alone = found.rule == routing.DEFAULT and not found.revision and found.routes == 1 and not environment.is_agent()
    only = f"; commands that name none use the only one: {found.others[0]}" if is_alone else ""
    yield "route", f"{found.route}  ({found.rule}{only})"
    if task is not None:
        yield "task", named(task)
    words = {"blocked": "waiting for others", "foreign": "not accepted: ralf trust"}
    kinds = [kind for kind in ("ready", "claimed", *words) if tasks and tasks.counts[kind]]
    parts = [f"{tasks.counts[kind]:,} {words.get(kind, kind)}" for kind in kinds if tasks]
    counted = [f"{tasks.counts['pending']:,} open ({', '.join(parts)})"] if tasks and tasks.counts["pending"] else []
    counted += [f"{tasks.counts['failed']:,} failed"] if tasks and tasks.counts["failed"] else []
    if counted:
        yield "tasks", f"{', '.join(counted)}: ralf task list"
    running = state_of_loop(project())
    if running.process and not running.ended:
        how = "running since" if running.is_running else "killed; it began"
        yield "loop", f"{how} {_time(running.began)}: ralf loop status"
    if found.title:
        yield "about", in_brief(found.title)
    if found.last_request:
        work = f" ({found.work_status.replace('_', ' ')})" if found.work_status else ""
        yield "asked last", f"{in_brief(found.last_request)}{work}"
    if found.revision or found.checkpoint_count:
        last = f", last {found.last_checkpoint}" if found.last_checkpoint else ""
        yield "checkpoints", f"{found.checkpoint_count}{last}, revision {found.revision}"
        yield "tokens so far", f"{found.total_tokens_consumed:,}"
    else:
        yield "checkpoints", "none yet"
    if found.others:
        left = len(others) - len(found.others)
        yield "other routes", ", ".join(found.others) + (f" and {left:,} more: ralf list" if left > 0 else "")
    if found.foreign:
        yield "foreign", f"part of it came with the repository: ralf trust {found.route}"
    if foreign := [one.route for one in others if one.foreign]:
        more = f" and {len(foreign) - _NAMED:,} more" if len(foreign) > _NAMED else ""
        accept = f"ralf trust {foreign[0]}" if len(foreign) == 1 else "ralf trust"
        yield "foreign", f"{', '.join(foreign[:_NAMED])}{more}: came with the repository, in whole or in part: {accept}"
    accepted, new = shared.others(project())
    for name, count in sorted(Counter(note.by for note in new).items()):
        yield "shared", f"{count:,} new by {name}: ralf trust {quote(name)}"
    if accepted and not project().git.shares():
        yield "sharing", "others share their decisions here, you do not: ralf init --share"
    in_another = f"  (in route {found.session_route})" if found.session_route else ""
    yield "session", f"{found.transcript}{in_another}" if found.transcript else "none found for this project"
    if found.opted_in:
        yield "last hook", called or "none yet"
    if found.problem:
        yield "problem", found.problem
    if found.tokens_since is not None:
        due = f"next checkpoint in about {found.tokens_to_next:,}" if found.tokens_to_next else "a checkpoint is due"
        yield "since then", f"about {found.tokens_since:,} tokens; {due}"
    if found.model or found.model_problem:
        waiting = f"{so_many(found.owed, 'checkpoint')} without a hand-over" if found.owed else "nothing to do"
        yield "model", f"{found.model or 'none'}  ({found.model_problem or waiting})"
    for name, spent in (("spent here", found.spend), ("spent in all", found.spend_total)):
        if spent.calls:
            parts = [price(spent.tokens, spent.cost_usd or None)] if spent.tokens or spent.cost_usd else []
            parts += [price(spent.estimated_tokens, None, is_estimated=True)] if spent.estimated_tokens else []
            today = f"; today {spent.day_tokens:,} tokens" if spent is found.spend_total else ""
            yield name, f"{so_many(spent.calls, 'call')}, {' and '.join(parts) or '0 tokens'}{today}"


def _time(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _task() -> TaskState | None:
    """The task that the caller holds: that of its lease, else the one claimed last."""
    if not (project().folder.parent / "tasks").is_dir():
        return None

    tasks, id_ = store.Tasks(project()), environment.lease().rpartition(":")[0]
    by = store.holder(project())
    held = tasks.read(lambda book: book.states(book.claimed())).values()
    own = [state for state in held if state.claim is not None and (state.task.id == id_ or state.claim.by == by)]
    return max(own, key=lambda state: (state.task.id == id_, state.claim.number if state.claim else 0), default=None)


def suggest(found: Status | None) -> None:
    """Suggest the next commands on stderr, for someone who typed `ralf` alone."""
    if found is None:
        return
    if found.revision:
        commands = ["ralf show", 'ralf search "WORDS"', 'ralf decide "WHAT" --because "WHY"']
    elif found.routes:
        commands = ["ralf list", f"ralf show {found.others[0]}", f"ralf route {found.others[0]}"]
    elif found.opted_in:
        commands = ["ralf checkpoint NAME", 'ralf decide NAME "WHAT" --because "WHY"', "ralf doctor"]
    else:
        commands = [
            "ralf init --client claude-code (or codex, gemini, opencode)",
            "ralf checkpoint NAME --transcript FILE",
        ]
    for typed in (*commands, "ralf --help"):
        say(f"next: {typed}")


# ---- every session ----

_HEADINGS = ("SESSION", "STATE", "ROUTE", "FULL", "TOKENS", "A MINUTE", "CHECKPOINT IN", "COMPACTION IN", "LAST SAVED")


def _show_all(route: str | None, *, idle: bool, nudge: bool) -> None:
    """Print every session of a project, or of a route; `nudge`: first send a notice to each above the threshold."""
    from ralf_integrations.health import look as health

    found = health.look(route=route, everything=idle, root=root())
    for session in health.nudge(project(), found) if nudge else ():
        say(f"nudged {session}")
    if is_json():
        emit_json(found)
        return
    if not found.sessions:
        say("no session of this project was active in the last 24 hours; to list older ones: ralf status --all --idle")
        return
    ids, length = {one.session for one in found.sessions}, _ID
    while len({id_[:length] for id_ in ids}) < len(ids):  # `send` takes an id that is unique
        length += 1
    table(_HEADINGS, [(one.session[:length], *_cells(one)) for one in found.sessions], right=(3, 4, 5, 6, 7, 8))
    for one in found.sessions:
        for warned in one.warnings:
            say(f"warning: {one.session}: {warned.rule}: {warned.text}")
            say(f"hint: {warned.hint}")


def _cells(one: Session) -> tuple[object, ...]:
    return (
        one.state,
        one.route,
        "-" if one.percent is None else f"{one.percent:.0f} %",
        "-" if one.tokens is None else one.tokens,
        "-" if one.growth is None else round(one.growth),
        *map(_minutes, (one.minutes_to_checkpoint, one.minutes_to_compaction, one.minutes_since_checkpoint)),
    )


def _minutes(minutes: float | None) -> str:
    if minutes is None:
        return "-"
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 48 * 60 else f"{minutes / 1440:.0f} d"
