"""`ralf memory`: show and correct what an agent has learned across tasks."""

from __future__ import annotations

from typing import Any

import click

from ralf import environment
from ralf.memory.family import Delta, delta, edit_of, stated, stream_of
from ralf.memory.model import KINDS, Item, Memory, check_agent
from ralf.memory.provenance import why as why_item
from ralf.memory.selection import get_memory
from ralf.memory.wording import line
from ralf.memory.writing import add as add_item, load, record, restore
from ralf.project import Project
from ralf.text.cleaning import OWN_OUTPUT
from ralf_cli.command import command, given, handed_over, is_json, is_read_by_an_agent, project, root, shared
from ralf_cli.main import LazyGroup
from ralf_cli.output import answer, emit_json, fields_of, say, warn
from ralf_cli.person import check_person, is_person

_KINDS = ("trap", "command", "preference", "fact", "pattern", "relationship")

_MOST = 40  # items that are shown by default

_TAKES = ("root", "json", "agent")

memory = LazyGroup(
    name="memory",
    sections="memory:show memory:add memory:edit memory:drop memory:accept",
    alone="show",
    help="""Show and correct the knowledge that an agent keeps across tasks.

    A memory contains traps (a trap is a command that fails, and its fix), working commands, preferences, facts,
    patterns and relationships. You can edit its Markdown file, `.autonomous/context/memory/AGENT.md`, at any time. Each
    item links to its evidence. Without a subcommand, `ralf memory` shows the memory.

    \b
    Examples:
      ralf memory
      ralf memory add preference "indent: tabs"
      ralf memory show trap-3
    """,
    params=[
        shared(
            "agent",
            "--agent",
            of="ralf memory",
            metavar="NAME",
            help="Owner of the memory. Default: $RALF_MEMORY, otherwise main.",
        )
    ],
)


def _whose() -> tuple[Project, str]:
    return project(), check_agent(given("agent") or environment.memory_name())


def _origin() -> str:
    return "person" if is_person() else "agent"


def _as_id(ctx: click.Context, param: click.Parameter, said: str | None) -> str | None:
    return said and said.strip("[] ").lower()


def _recorded(*deltas: Delta) -> Memory:
    return _with_warnings(record(*_whose(), deltas))


def _with_warnings(memory: Memory) -> Memory:
    warn(memory.warnings)
    return memory


def _fields(item: Item) -> dict[str, Any]:
    return fields_of(item, confidence=item.confidence)


def _tell(item: Item | None, what: str) -> None:
    if item is not None:
        answer(_fields(item), f"{what}: {line(item)}")


@command(*_TAKES, is_fenced=False)
@click.argument("what", required=False, metavar="[KIND|ID]", callback=_as_id)
@click.option("--all", "all_", is_flag=True, help=f"Show all items. Default: the {_MOST} most valuable.")
@click.option("--offers", is_flag=True, help="Show only offered items, which await `ralf memory accept ID`.")
@click.option("--for", "task", metavar="TEXT|ROUTE", help="Show the items for a task, as an agent receives them.")
def show(what: str | None, all_: bool, offers: bool, task: str | None) -> None:
    """Show the agent's memory, or only items of KIND. With the ID of an item, show its records and evidence."""
    if task and (what or all_ or offers):
        raise click.UsageError("--for takes none of KIND, --all, --offers")
    if task:
        _show_for(task)
        return
    with handed_over():
        if what is None or what in _KINDS:
            _show_items(what, all_=all_, offers=offers)
        else:
            _tell_origin(what)


def _show_items(kind: str | None, *, all_: bool, offers: bool) -> None:
    found = _with_warnings(load(*_whose()))
    items = [item for item in (found.offers if offers else found.items) if kind in (None, item.kind)]
    shown = items if all_ or offers else found.best(kind)[:_MOST]
    if is_json():
        emit_json(fields_of(found, items=[_fields(item) for item in items if item in shown]))
        return
    for name, schema in KINDS.items():
        if own := [item for item in items if item.kind == name and item in shown]:
            click.secho(schema.heading, bold=True)
            click.echo("".join(f"  {line(item)}\n" for item in own))
    if left := len(items) - len(shown):
        say(f"{left:,} more, of less value: ralf memory show --all")
    elif not items and found.items:
        say(f"no {'offered item' if offers else kind} yet; all items: ralf memory show")
    elif not items and project().store.is_foreign(stream_of(_whose()[1])):
        say("what is remembered here is not known to be yours, so nothing of it is shown: ralf trust")
    elif not items:
        say('nothing is remembered yet; hooks learn from checkpoints, or add an item: ralf memory add fact "TEXT"')
    if found.offers and not offers:
        say(f"{len(found.offers):,} offered: ralf memory show --offers; to accept one: ralf memory accept ID")


def _show_for(task: str) -> None:
    """Show the items for a task, or for the task of a route; the text brings its own fence."""
    found = get_memory(task, agent=_whose()[1], root=root())
    text = found.text
    if not is_read_by_an_agent():
        text = "".join(line for line in text.splitlines(keepends=True) if OWN_OUTPUT not in line)
    answer(fields_of(found, items=[_fields(item) for item in found.items]), *([text] if text else []))
    if not text and not is_json():
        say("no item for this task")


def _tell_origin(id_: str) -> None:
    found = why_item(*_whose(), id_)
    lines = [line(found.item) if found.item is not None else f"[{found.id}] was dropped"]
    lines += [f"  revision {step.revision}, {step.at}: {step.what}" for step in found.steps]
    for source in found.sources:
        lines.append(f"  evidence {source.reference}" + (f": {source.problem}" if source.problem else ""))
        lines += [f"    {quote.line}  {quote.who}: {quote.text.strip()[:500]}" for quote in source.quotes]
    answer(found, *lines)


@command(*_TAKES)
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("text")
@click.option("--error", help="Trap: the command's output, at most 200 characters.")
@click.option("--resolution", help="Trap: the command or edit that fixed the failure.")
@click.option("--purpose", type=click.Choice(("test", "lint", "build", "other")), help="Command: its purpose.")
@click.option("--type", type=click.Choice(("workflow", "tool_usage")), help="Pattern: its type.")
@click.option("--source", help="Source of the item.")
@click.option("--evidence", multiple=True, help="Reference, e.g. 'TASK-001 cp-3' (repeatable).")
@click.option("--expires", default="", metavar="DATE", help="Last date on which agents receive the item.")
def add(kind: str, text: str, evidence: tuple[str, ...], expires: str, **fields: str | None) -> None:
    """Add an item of KIND. TEXT is a command line for traps and commands, "NAME: TEXT" for preferences and
    relationships, and a statement for other kinds.

    An item that an agent adds remains an offer until you accept it.

    \b
    Examples:
      ralf memory add trap "npm test" --error "ECONNREFUSED" --resolution "docker compose up -d redis"
      ralf memory add command "pytest -q" --purpose test
      ralf memory add preference "indent: tabs"
      ralf memory add fact "The staging API listens on port 8080" --expires 2027-01-01
    """
    more = {field: value for field, value in fields.items() if value}
    delta = stated(kind, text, origin=_origin(), evidence=evidence, expires=expires, **more)
    made, item = add_item(*_whose(), delta)
    _with_warnings(made)
    _tell(item, "offered" if item.status == "offered" else "added")


@command(*_TAKES)
@click.argument("id_", metavar="[ID]", required=False, callback=_as_id)
@click.argument("values", nargs=-1, metavar="[FIELD=VALUE]...")
@click.option("--to", metavar="rN", help="Restore the memory to this revision.")
def edit(id_: str | None, values: tuple[str, ...], to: str | None) -> None:
    """Change fields of the item with this ID. You can also edit the memory's file at any time, in any editor."""
    if to is not None and id_ is None:
        agent, number = _whose()[1], to.strip("[] r")
        check_person(agent, "nothing was restored", f"ralf memory edit --to {to}")
        made = _with_warnings(restore(*_whose(), int(number) if number.isdecimal() else 0))
        text = f"{agent}: restored r{number}, as revision {made.revision}"
        answer({"agent": agent, "revision": made.revision}, text)
    elif to is None and id_ and values:
        _tell(_recorded(edit_of(id_, values, origin=_origin())).get(id_), "changed")
    else:
        raise click.UsageError("name the change: ID FIELD=VALUE, or --to rN alone")


@command(*_TAKES)
@click.argument("id_", metavar="ID", callback=_as_id)
@click.option("--because", metavar="WHY", default="", help="Reason to record.")
def drop(id_: str, because: str) -> None:
    """Drop the item with this ID. Hooks do not learn the item again; `ralf memory add` restores it."""
    _recorded(delta("drop", id_, reason=because, origin=_origin()))
    answer({"id": id_, "dropped": True}, f"dropped: {id_}")


@command(*_TAKES)
@click.argument("id_", metavar="ID", callback=_as_id)
def accept(id_: str) -> None:
    """Accept the offered item with this ID; ralf then treats the item as yours. Only a person can accept items."""
    check_person(_whose()[1], f"{id_} was not accepted", f"ralf memory accept {id_}")
    _tell(_recorded(delta("accept", id_)).get(id_), "accepted")
