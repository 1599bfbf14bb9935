"""`ralf memory`: what an agent has learned across tasks, shown, corrected, exported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import click

from ralf_cli.command import command
from ralf_cli.main import LazyGroup
from ralf_cli.options import with_json, with_json_alone, with_root

if TYPE_CHECKING:
    from ralf.memory.family import Delta
    from ralf.memory.model import Item, Memory
    from ralf.project import Project

    Whose = tuple[Project, str]

F = TypeVar("F", bound=Callable[..., Any])

_KINDS = ("trap", "command", "preference", "fact", "pattern", "relationship")

_MOST = 40  # items that are shown where nothing else is asked for


class _Memory(LazyGroup):
    lazy: ClassVar[dict[str, str]] = {
        name: f"ralf_cli.memory:{name}" for name in "show add edit drop accept why status restore tidy export".split()
    }


@click.pass_context
def _show_all(ctx: click.Context) -> None:
    """Alone it shows the memory."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


memory = _Memory(
    name="memory",
    help="""Show and correct what an agent has learned across tasks.

    A memory holds traps with what resolved them, commands that work, preferences, facts, patterns and relationships.
    It is a Markdown file that you can edit at any time, `.autonomous/context/memory/AGENT.md`; each item leads to its
    evidence. Alone, the command shows the memory.

    \b
    Examples:
      ralf memory
      ralf memory add preference "indent: tabs"
      ralf memory why trap-3

    \b
    Exit status: that of the command
    """,
    short_help="Show and correct what an agent has learned.",
    invoke_without_command=True,
    callback=_show_all,
)


def _of_an_agent(command: F) -> F:
    """Add `--agent NAME` and `--root DIR`; the command gets `whose`: the project, and the name of the agent."""

    @click.option("--agent", metavar="NAME", help="Whose memory. Default: $RALF_MEMORY, else main.")
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
    return click.argument("id", callback=lambda _, __, said: said.strip("[] ").lower())


def _with_warnings(memory: Memory) -> Memory:
    """A memory, after its warnings were shown."""
    from ralf_cli.output import say

    for warning in memory.warnings:
        say(f"warning: {warning}")
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


@command(short_help="Show the memory.")
@click.argument("kind", required=False, type=click.Choice(_KINDS))
@click.option("--all", "all_", is_flag=True, help=f"All items. Default: the {_MOST} most valuable.")
@click.option("--for", "task", metavar="TEXT|ROUTE", help="What concerns a task, as an agent is handed it.")
@_of_an_agent
@with_json_alone
def show(kind: str | None, all_: bool, task: str | None, whose: Whose, as_json: bool) -> None:
    """Show what the agent has learned, or only items of KIND.

    \b
    Examples:
      ralf memory show
      ralf memory show trap --all
      ralf memory show --for "the pool in src/db.py times out"
      ralf memory show --json

    \b
    Exit status: 0, even without any item · 2 invalid name · 4 damaged records
    """
    from ralf_cli.output import handed_over

    if task and (kind or all_):
        raise click.UsageError("--for chooses by itself: leave out KIND and --all")
    if task:
        _show_for(task, *whose, as_json=as_json)
    else:
        with nullcontext() if as_json else handed_over():
            _show_items(kind, whose, all_=all_, as_json=as_json)


def _show_items(kind: str | None, whose: Whose, *, all_: bool, as_json: bool) -> None:
    from ralf.memory.model import KINDS
    from ralf.memory.wording import line
    from ralf.memory.writing import load
    from ralf_cli.output import emit_json, fields_of, say

    found = _with_warnings(load(*whose))
    items = found.of_kind(kind) if kind else found.items
    shown = items if all_ else found.best(kind)[:_MOST]
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
    elif not items:
        say('nothing is remembered yet; hooks learn from checkpoints, or add an item: ralf memory add fact "TEXT"')
    if offers := len(found.offers):
        say(f"{offers:,} offered: to take one in: ralf memory accept {found.offers[0].id}")


def _show_for(task: str, project: Project, agent: str, *, as_json: bool) -> None:
    """Show what concerns a task, or the task of a route, with a fence of its own around what no person said."""
    from ralf.memory.selection import get_memory
    from ralf.text.cleaning import OWN_OUTPUT
    from ralf_cli import markdown
    from ralf_cli.output import emit_json, fields_of, say

    found = get_memory(task, agent=agent, root=project.root)
    if as_json:
        listed = [fields_of(item) | {"confidence": item.confidence} for item in found.items]
        emit_json(fields_of(found) | {"items": listed})
    elif found.text and sys.stdout.isatty():
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


@command(short_help="Change an item.")
@_with_id()
@click.argument("values", nargs=-1, metavar="[FIELD=VALUE]...")
@_of_an_agent
@with_json
def edit(id: str, values: tuple[str, ...], whose: Whose, as_json: bool) -> None:  # noqa: A002
    """Change fields of the item ID. You can also edit the file of the memory at any time, in any editor:
    `.autonomous/context/memory/AGENT.md`.

    \b
    Examples:
      ralf memory edit preference-1 value=spaces
      ralf memory edit pattern-2 confidence=0.9 "text=Run the linter first"

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name or field · 3 no such item · 4 damaged records · 5 busy
    """
    if not values:
        raise click.UsageError("say what to change: FIELD=VALUE")
    from ralf.memory.family import edit_of

    made = _recorded(whose, edit_of(id, values, origin=_origin()))
    _emit(made.get(id), "changed", as_json=as_json)


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


@command(short_help="Show where an item comes from.")
@_with_id()
@_of_an_agent
@with_json
def why(id: str, whose: Whose, as_json: bool) -> None:  # noqa: A002
    """Show what made the item ID: each record, and the transcript lines of its evidence. It works for one that was
    dropped, too.

    \b
    Examples:
      ralf memory why trap-3

    \b
    Exit status: 0 · 2 invalid name · 3 no such item · 4 damaged records
    """
    from ralf.memory.provenance import why as why_item
    from ralf.memory.wording import line
    from ralf_cli.output import emit_json, fields_of

    found = why_item(*whose, id)
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


@command(short_help="Show how large the memory is.")
@_of_an_agent
@with_json
def status(whose: Whose, as_json: bool) -> None:
    """Show size, number of items, patterns and outcomes, and when the memory was last written and tidied.

    \b
    Examples:
      ralf memory status
      ralf memory status --json

    \b
    Exit status: 0 · 2 invalid name · 4 damaged records
    """
    from ralf.memory.writing import status as status_of
    from ralf_cli.output import emit_json, say

    told = status_of(*whose)
    for warning in told.pop("warnings"):
        say(f"warning: {warning}")
    if as_json:
        emit_json(told)
        return
    for name, value in told.items():
        click.echo(f"{name:<15} {value if value != '' else '-'}")


@command(short_help="Go back to a revision.")
@click.argument("revision", callback=lambda _, __, said: said.strip("[] r"))
@_of_an_agent
def restore(revision: str, whose: Whose) -> None:
    """Bring back what the memory was at REVISION, such as r12; `ralf memory why ID` tells them. This is a change like
    any other, and can be undone in the same way. No agent can.

    \b
    Examples:
      ralf memory restore r12

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name · 3 no such revision · 4 damaged records · 5 busy
    """
    from ralf.memory.writing import restore as restore_to
    from ralf_cli.person import check_person

    check_person(whose[1], "nothing was restored", f"ralf memory restore {revision}")
    made = _with_warnings(restore_to(*whose, int(revision) if revision.isdecimal() else 0))
    click.echo(f"{whose[1]}: as it was at r{revision}; revision {made.revision}")


@command(short_help="Drop what proved of no use.")
@_of_an_agent
def tidy(whose: Whose) -> None:
    """Drop items whose confidence is at most 0.3 and that were used at most three times. Preferences, relationships and
    what a person said stay.

    \b
    Examples:
      ralf memory tidy

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name · 4 damaged records · 5 busy
    """
    from ralf.memory.writing import load, tidy as tidy_memory

    before = load(*whose)
    made = _with_warnings(tidy_memory(*whose))
    gone = len(before.items) - len(made.items)
    undo = f"to undo it: ralf memory restore r{before.revision}"
    click.echo(f"{whose[1]}: {len(made.items):,} items, {gone:,} fewer; {undo}")


@command(short_help="Write the memory into CLAUDE.md, AGENTS.md or MEMORY.md.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_of_an_agent
@with_json
def export(file: Path, whose: Whose, as_json: bool) -> None:
    """Write the most valuable items between two markers into FILE, as many as its client loads; the rest of the file
    stays as it is. A second time it makes the section anew.

    \b
    Examples:
      ralf memory export CLAUDE.md
      ralf memory export AGENTS.md

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 a link, not UTF-8 · 4 damaged records, half of the markers · 5 busy
    """
    from ralf.memory.exporting import export as export_to
    from ralf_cli.output import emit_json, fields_of

    done = export_to(*whose, file.absolute())
    if as_json:
        emit_json(fields_of(done))
        return
    left = f", {done.left_out:,} left out" if done.left_out else ""
    click.echo(f"{file}: {done.items:,} items{left}" + ("" if done.is_changed else "; unchanged"))
