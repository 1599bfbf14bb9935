"""`ralf memory`: what an agent has learned across tasks, shown, corrected, exported."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from ralf_cli.command import command, shared, taking
from ralf_cli.main import group
from ralf_cli.options import with_json, with_json_alone, with_root

if TYPE_CHECKING:
    from ralf.memory.family import Delta
    from ralf.memory.model import Item, Memory
    from ralf.project import Project

    Whose = tuple[Project, str]

F = TypeVar("F", bound=Callable[..., Any])

_KINDS = ("trap", "command", "preference", "fact", "pattern", "relationship")

_MOST = 40  # items that are shown where nothing else is asked for


memory = group(
    "memory",
    "memory:show memory:add memory:edit memory:drop memory:accept",
    alone="show",
    help="""Show and correct what an agent has learned across tasks.

    A memory holds traps with what resolved them, commands that work, preferences, facts, patterns and relationships.
    It is a Markdown file that you can edit at any time, `.autonomous/context/memory/AGENT.md`; each item leads to its
    evidence. Alone, the command shows the memory.

    \b
    Examples:
      ralf memory
      ralf memory add preference "indent: tabs"
      ralf memory show trap-3

    \b
    Exit status: that of the command
    """,
    short_help="Show and correct what an agent has learned.",
    params=[
        shared("agent", "--agent", of="ralf memory", metavar="NAME", help="Whose. Default: $RALF_MEMORY, else main.")
    ],
)


def _of_an_agent(command: F) -> F:
    """The command gets `whose`: the project, and the name of the agent."""

    @taking("agent")
    @with_root
    @wraps(command)
    def found(*arguments: Any, agent: str | None, root: str | None, **options: Any) -> Any:
        from ralf import environment, project as projects
        from ralf.memory.model import check_agent

        whose = projects.find(root), check_agent(agent or environment.memory_name())
        return command(*arguments, whose=whose, **options)

    return cast("F", found)


def _origin() -> str:
    """Who changes an item."""
    from ralf_cli.person import is_person

    return "person" if is_person() else "agent"


def _with_id() -> Callable[[F], F]:
    return click.argument("id", callback=lambda _, __, said: _as_id(said))


def _with_warnings(memory: Memory) -> Memory:
    """A memory, after its warnings were shown."""
    from ralf_cli.output import warn

    warn(memory.warnings)
    return memory


def _recorded(whose: Whose, *deltas: Delta) -> Memory:
    from ralf.memory.writing import record

    return _with_warnings(record(*whose, deltas))


def _emit(item: Item | None, what: str, *, as_json: bool) -> None:
    from ralf.memory.wording import line
    from ralf_cli.output import emit_json, fields_of

    if item is not None and as_json:
        emit_json(fields_of(item) | {"confidence": item.confidence})
    elif item is not None:
        click.echo(f"{what}: {line(item)}")


@command(short_help="Show the memory, or where an item comes from.")
@click.argument("what", required=False, metavar="[KIND|ID]")
@click.option("--all", "all_", is_flag=True, help=f"All items. Default: the {_MOST} most valuable.")
@click.option("--offers", is_flag=True, help="Only what is offered and waits for you: ralf memory accept ID.")
@click.option("--for", "task", metavar="TEXT|ROUTE", help="What concerns a task, as an agent is handed it.")
@_of_an_agent
@with_json_alone
def show(what: str | None, all_: bool, offers: bool, task: str | None, whose: Whose, as_json: bool) -> None:
    """Show what the agent has learned, or only items of KIND; of the item ID what made it: each record, and the
    transcript lines of its evidence.

    \b
    Examples:
      ralf memory show
      ralf memory show trap --all
      ralf memory show trap-3
      ralf memory show --for "the pool in src/db.py times out"
      ralf memory show --json

    \b
    Exit status: 0, even without any item · 2 invalid name · 3 no such item · 4 damaged records
    """
    from ralf_cli.output import handed_over

    if task and (what or all_ or offers):
        raise click.UsageError("--for chooses by itself: leave out KIND, --all and --offers")
    if task:
        _show_for(task, *whose, as_json=as_json)
        return
    with nullcontext() if as_json else handed_over():
        if what is None or what in _KINDS:
            _show_items(what, whose, all_=all_, offers=offers, as_json=as_json)
        else:
            _tell_origin(whose, _as_id(what), as_json=as_json)


def _as_id(said: str) -> str:
    return said.strip("[] ").lower()


def _show_items(kind: str | None, whose: Whose, *, all_: bool, offers: bool, as_json: bool) -> None:
    from ralf.memory.model import KINDS
    from ralf.memory.wording import line
    from ralf.memory.writing import load
    from ralf_cli.output import emit_json, fields_of, say

    found = _with_warnings(load(*whose))
    items = found.of_kind(kind) if kind else found.items
    if offers:
        items = tuple(item for item in found.offers if kind in (None, item.kind))
    shown = items if all_ or offers else found.best(kind)[:_MOST]
    if as_json:
        listed = [fields_of(item) | {"confidence": item.confidence} for item in items if item in shown]
        emit_json(fields_of(found) | {"items": listed})
    for name, schema in () if as_json else KINDS.items():
        own = [item for item in items if item.kind == name and item in shown]
        if own:
            click.secho(schema.heading, bold=True)
            click.echo("".join(f"  {line(item)}\n" for item in own))
    if left := len(items) - len(shown):
        say(f"{left:,} more, of less value: ralf memory show --all")
    elif offers and not items:
        say("nothing is offered")
    elif not items and found.items:
        say(f"no {kind} is remembered yet; items of other kinds: ralf memory show")
    elif not items:
        say('nothing is remembered yet; hooks learn from checkpoints, or add an item: ralf memory add fact "TEXT"')
    if found.offers and not offers:
        say(f"{len(found.offers):,} offered: ralf memory show --offers; to take one in: ralf memory accept ID")


def _show_for(task: str, project: Project, agent: str, *, as_json: bool) -> None:
    """Show what concerns a task, or the task of a route, with a fence of its own around what no person said."""
    from ralf.memory.selection import get_memory
    from ralf.text.cleaning import OWN_OUTPUT
    from ralf_cli import markdown
    from ralf_cli.output import emit_json, fields_of, is_read_by_an_agent, say

    found = get_memory(task, agent=agent, root=project.root)
    if as_json:
        listed = [fields_of(item) | {"confidence": item.confidence} for item in found.items]
        emit_json(fields_of(found) | {"items": listed})
    elif found.text and not is_read_by_an_agent():
        markdown.show("".join(line for line in found.text.splitlines(keepends=True) if OWN_OUTPUT not in line))
    elif found.text:
        click.echo(found.text, nl=False)
    else:
        say("nothing that is remembered concerns it")


@command(short_help="Add an item.")
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("text")
@click.option("--error", default="", help="Of a trap: what the command printed; at most 200 characters are kept.")
@click.option("--resolution", default="", help="Of a trap: the command or edit after which it passed.")
@click.option("--purpose", type=click.Choice(("test", "lint", "build", "other")), help="Of a command.")
@click.option("--type", "type_", type=click.Choice(("workflow", "tool_usage")), help="Of a pattern.")
@click.option("--source", default="", help="Where it comes from.")
@click.option("--evidence", multiple=True, help="A reference, e.g. 'TASK-001 cp-3'. May be given several times.")
@click.option("--expires", default="", metavar="DATE", help="After this date it is not handed to an agent.")
@_of_an_agent
@with_json
def add(
    kind: str,
    text: str,
    error: str,
    resolution: str,
    purpose: str | None,
    type_: str | None,
    source: str,
    evidence: tuple[str, ...],
    expires: str,
    whose: Whose,
    as_json: bool,
) -> None:
    """Add an item of KIND. TEXT is a trap's or a command's command line; of a preference or a relationship it is
    "NAME: what"; of anything else what it says.

    What an agent adds is offered, and counts once you accept it.

    \b
    Examples:
      ralf memory add trap "npm test" --error "ECONNREFUSED" --resolution "docker compose up -d redis"
      ralf memory add command "pytest -q" --purpose test
      ralf memory add preference "indent: tabs"
      ralf memory add fact "The staging API listens on port 8080" --expires 2027-01-01

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name, nothing to say · 4 damaged records · 5 busy
    """
    from ralf.memory.family import stated
    from ralf.memory.writing import add as add_item

    given = {"error": error, "resolution": resolution, "purpose": purpose or "", "type": type_ or "", "source": source}
    delta = stated(
        *(kind, text),
        origin=_origin(),
        evidence=evidence,
        expires=expires,
        **{field: value for field, value in given.items() if value},
    )
    made, item = add_item(*whose, delta)
    _with_warnings(made)
    _emit(item, "offered" if item.status == "offered" else "added", as_json=as_json)


@command(short_help="Change an item, or go back to a revision.")
@click.argument("id", required=False, callback=lambda _, __, said: said and _as_id(said))
@click.argument("values", nargs=-1, metavar="[FIELD=VALUE]...")
@click.option("--to", metavar="rN", help="Instead: bring back what the memory was at a revision.")
@_of_an_agent
@with_json
def edit(id: str | None, values: tuple[str, ...], to: str | None, whose: Whose, as_json: bool) -> None:  # noqa: A002
    """Change fields of the item ID. You can also edit the file of the memory at any time, in any editor:
    `.autonomous/context/memory/AGENT.md`.

    \b
    Examples:
      ralf memory edit preference-1 value=spaces
      ralf memory edit pattern-2 confidence=0.9 "text=Run the linter first"
      ralf memory edit --to r12

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name or field · 3 no such item · 4 damaged records · 5 busy
    """
    if to is not None:
        if id is not None:
            raise click.UsageError("--to stands alone")
        _go_back(whose, to)
        return
    if not (id and values):
        raise click.UsageError("say what to change: ID FIELD=VALUE")
    from ralf.memory.family import edit_of

    made = _recorded(whose, edit_of(id, values, origin=_origin()))
    _emit(made.get(id), "changed", as_json=as_json)


def _go_back(whose: Whose, revision: str) -> None:
    """Bring back what the memory was: a change like any other, which no agent makes."""
    from ralf.memory.writing import restore
    from ralf_cli.person import check_person

    check_person(whose[1], "nothing was restored", f"ralf memory edit --to {revision}")
    number = revision.strip("[] r")
    made = _with_warnings(restore(*whose, int(number) if number.isdecimal() else 0))
    click.echo(f"{whose[1]}: as it was at r{number}; revision {made.revision}")


@command(short_help="Drop an item for good.")
@_with_id()
@click.option("--because", metavar="WHY", default="", help="The reason; recorded.")
@_of_an_agent
@with_json
def drop(id: str, because: str, whose: Whose, as_json: bool) -> None:  # noqa: A002
    """Drop the item ID. Rules over transcripts do not bring it back; `ralf memory add` does.

    \b
    Examples:
      ralf memory drop trap-3 --because "that service is gone"

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name · 3 no such item · 4 damaged records · 5 busy
    """
    from ralf.memory.family import delta
    from ralf_cli.output import emit_json

    _recorded(whose, delta("drop", id, reason=because, origin=_origin()))
    if as_json:
        emit_json({"id": id, "dropped": True})
    else:
        click.echo(f"dropped: {id}")


@command(short_help="Accept an offered item.")
@_with_id()
@_of_an_agent
@with_json
def accept(id: str, whose: Whose, as_json: bool) -> None:  # noqa: A002
    """Accept the offered item ID: from now on it counts as yours. No agent can.

    \b
    Examples:
      ralf memory accept preference-2

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name · 3 no such item · 4 damaged records · 5 busy
    """
    from ralf.memory.family import delta
    from ralf_cli.person import check_person

    check_person(whose[1], f"{id} is not accepted", f"ralf memory accept {id}")
    _emit(_recorded(whose, delta("accept", id)).get(id), "accepted", as_json=as_json)


def _tell_origin(whose: Whose, id_: str, *, as_json: bool) -> None:
    """Print what made an item: each record, and the transcript lines of its evidence; of one that was dropped, too."""
    from ralf.memory.provenance import why as why_item
    from ralf.memory.wording import line
    from ralf_cli.output import emit_json, fields_of

    found = why_item(*whose, id_)
    if as_json:
        emit_json(fields_of(found))
        return
    click.echo(line(found.item) if found.item is not None else f"[{found.id}] is gone")
    for step in found.steps:
        click.echo(f"  revision {step.revision}, {step.at}: {step.what}")
    for source in found.sources:
        click.echo(f"  evidence {source.reference}" + (f": {source.problem}" if source.problem else ""))
        for quote in source.quotes:
            click.echo(f"    {quote.line}  {quote.who}: {quote.text.strip()[:500]}")
