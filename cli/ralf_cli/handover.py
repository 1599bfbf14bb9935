"""`ralf handover`: what a session, or the user, leaves to whoever goes on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ralf_cli.options import called_now, with_json, with_root, with_route

if TYPE_CHECKING:
    from ralf.route.steering import Recorded

_MOST = 200_000  # bytes that are read from standard input


@click.command(short_help="Hand over to whoever goes on with a route.")
@with_route()
@click.option("--goal", metavar="TEXT", default="", help="What the work is about now.")
@click.option("--state", metavar="TEXT", default="", help="How it stands.")
@click.option("--done", metavar="TEXT", multiple=True, help="What was finished. May be repeated, as all that follow.")
@click.option("--next", "next_", metavar="TEXT", multiple=True, help="What comes next, in order.")
@click.option("--open", "open_", metavar="TEXT", multiple=True, help="A question that nobody has answered.")
@click.option("--decided", metavar="TEXT", multiple=True, help='A choice that binds: "WHAT because WHY".')
@click.option(
    "--never", metavar="TEXT", multiple=True, help='What failed, and is not to be tried again, with "because".'
)
@click.option("--exact", metavar="TEXT", multiple=True, help="An exact id, path or command that will be needed.")
@with_root
@with_json
@click.pass_context
def handover(
    ctx: click.Context,
    route: str,
    goal: str,
    state: str,
    done: tuple[str, ...],
    next_: tuple[str, ...],
    open_: tuple[str, ...],
    decided: tuple[str, ...],
    never: tuple[str, ...],
    exact: tuple[str, ...],
    root: str | None,
    as_json: bool,
) -> None:
    """Hand over to whoever goes on with ROUTE: what the work is about, how it stands, what comes next.

    Without options it reads Markdown, or a JSON object with the names of the API, from standard input. Parts under
    headings such as "State", "Next", "Open questions", "Decided" and "Never" go where they belong. The hand-over leads
    the brief of the route until newer work makes it old. What it decides is recorded as the agent's decisions; nothing
    of it is a rule. What you type at a terminal, outside of an agent's shell, is recorded as the user's,
    unless its output goes into a pipe or a file.

    \b
    Examples:
      ralf handover TASK-001 --state "The parser is done, its tests fail" --next "Mend test_fence"
      ralf handover TASK-001 --decided "Use WAL because many read" --never "One file a row because it is slow"
      ralf handover TASK-001 < handover.md

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 nothing said, invalid name ·
    4 damaged route file (the hand-over is in the journal), damaged journal · 5 busy
    """
    from ralf.format.codec import to_tree
    from ralf.route.steering import record_hand_over
    from ralf_cli.output import emit_json, say
    from ralf_cli.terminal import complain, is_typed

    given = any((goal, state, done, next_, open_, decided, never, exact))
    recorded = record_hand_over(
        route,
        "" if given else _said(route),
        goal=goal,
        state=state,
        done=done,
        next=next_,
        questions=open_,
        decided=decided,
        never=never,
        names=exact,
        author="user" if is_typed() else "agent",
        root=root,
    )
    made = recorded.handover
    for warning in recorded.warnings:
        say(f"warning: {warning}")
    if as_json:
        named = {"decisions": recorded.decisions, "failed_approaches": recorded.failed_approaches}
        emit_json({**to_tree(made), **named, "left_out": recorded.left_out, "buried": recorded.buried})
    else:
        _tell(called_now(root, route), recorded)
    if recorded.damage:
        complain(recorded.damage, "what was handed over is in the journal; mend the file: the next write shows it")
        ctx.exit(4)


def _tell(route: str, recorded: Recorded) -> None:
    """Say what came of a hand-over."""
    from ralf_cli.output import say

    made = recorded.handover
    counts = (
        *((len(getattr(made, name)), noun) for name, noun in _NOUNS.items()),
        (len(recorded.decisions), "decision"),
        (len(recorded.failed_approaches), "failed approach"),
    )
    told = [name for name in ("goal", "state") if getattr(made, name)]
    told += [f"{count} {_plural(noun) if count != 1 else noun}" for count, noun in counts if count]
    told += ["free text"] if made.text else []
    click.echo(f"{route}: handed over: {', '.join(told) or 'nothing new'}")
    if recorded.buried:
        items = f"{recorded.buried} decision{'s' * (recorded.buried != 1)}"
        say(f"not recorded: {items} that a person dropped: only a person may decide them again")
    if recorded.left_out:
        items = f"{recorded.left_out} item{'s' * (recorded.left_out != 1)}"
        say(f"left out: {items}, for which a hand-over has no room: say only what the next one cannot find out")
    say(f"to read it: ralf context show {route} --brief")


_NOUNS = {
    "next": "next step",
    "questions": "open question",
    "done": "step done",
    "names": "exact name",
    "inferred": "conclusion",
}


def _plural(noun: str) -> str:
    return {"step done": "steps done", "failed approach": "failed approaches"}.get(noun, f"{noun}s")


def _said(route: str) -> str:
    """What stands on standard input; nothing where it is a terminal, or closed."""
    from ralf.errors import UsageError

    if sys.stdin is None or sys.stdin.isatty():
        return ""
    text = sys.stdin.buffer.read(_MOST + 1)
    if len(text) > _MOST:
        hint = f'say only what the next one cannot find out: ralf handover {route} --state "WHERE IT STANDS"'
        raise UsageError(route, f"the hand-over has more than {_MOST:,} bytes: nothing was recorded", hint)
    return text.decode("utf-8", "replace")
