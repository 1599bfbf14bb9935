"""`ralf task add`, `edit`, `split` and `import`: what the list of tasks holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ralf_cli.command import command
from ralf_cli.options import as_priority, with_json, with_json_alone, with_root

if TYPE_CHECKING:
    from ralf.tasks.model import TaskState

F = TypeVar("F", bound=Callable[..., Any])

_priority = click.option(
    "-p",
    "--priority",
    metavar="N",
    callback=as_priority,
    help="1 to 10, 10 comes first; or critical, high, medium, low.",
)
_tags = click.option("-t", "--tag", "tags", metavar="TAG", multiple=True, help="A tag. May be repeated.")
_role = click.option("--role", metavar="ROLE", help="Which kind of agent does it. Default: any.")
_after = click.option(
    "--after", metavar="TASK", multiple=True, help="A task that must be completed first: id or title. May be repeated."
)
_verify = click.option("--verify", metavar="CMD", help="A command whose exit status says whether the task is done.")
_route = click.option("--route", metavar="ROUTE", help="Where its context is kept. Default: a route of its own.")


@command(short_help="Add a task.")
@click.argument("title")
@click.option(
    "-d", "--text", metavar="TEXT", default="", help="What is to be done, as Markdown; - reads it from stdin."
)
@_priority
@_tags
@_role
@_after
@click.option("--checkpoint", is_flag=True, help="Whoever completes it hands over and ends: a fresh agent goes on.")
@_verify
@_route
@click.option("--id", "id_", metavar="ID", default="", help="Its id. Default: a short random one.")
@click.option("-q", "--quiet", is_flag=True, help="Print the id and warnings only, no notes.")
@with_root
@with_json_alone
def add(
    title: str,
    text: str,
    priority: int | None,
    tags: tuple[str, ...],
    role: str | None,
    after: tuple[str, ...],
    checkpoint: bool,
    verify: str | None,
    route: str | None,
    id_: str,
    quiet: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Add a task and print its id. It becomes a file in .autonomous/tasks/active, which you can edit.

    --after takes ids and titles. If one fits no task or several, nothing is added and the candidates are named.

    \b
    Examples:
      ralf task add "Write the parser" -p 8 --verify "pytest -q tests/test_parser.py"
      ralf task add "Document it" --after "Write the parser" --role writer
      ralf task add "Release" --text - --checkpoint < release.md

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 no title, a title that fits several tasks, invalid id or route ·
    3 no such task to come after · 5 busy
    """
    from ralf import project as projects, routing
    from ralf.errors import UsageError
    from ralf.tasks import editing
    from ralf.tasks.model import PRIORITY
    from ralf_cli.output import emit_json, given_back, say, warn
    from ralf_cli.task import said
    from ralf_cli.tasktext import as_json as tree

    if not all(map(str.strip, after)):
        raise UsageError("--after", "names no task", "ralf task list")
    words = said(text)
    with given_back(root, title, words):
        state = editing.add(
            title,
            text=words,
            priority=priority if priority is not None else PRIORITY,
            tags=tags,
            role=role or "",
            after=after,
            checkpoint=checkpoint,
            verify=verify or "",
            route=route or "",
            id=id_,
            root=root,
        )
    if as_json:
        emit_json(tree(state))
    else:
        click.echo(state.task.id)
    warn(state.warnings)
    project = projects.find(root)
    if route and not quiet and (near := routing.near_to(project, route)):
        say(f"note: there is no route {route} yet; if you mean {' or '.join(near)}:")
        say(f"ralf task edit {state.task.id} --route {near[0]}")
    if state.task.verify and not quiet:
        from ralf.tasks.evidence import why_not_run

        if problem := why_not_run(project):
            say(f"note: `verify:` does not run: {problem}")


@command(short_help="Change a task, by options or in $EDITOR.")
@click.argument("id_", metavar="ID")
@click.option("--title", metavar="TEXT", help="Another title.")
@click.option("-d", "--text", metavar="TEXT", help="Another text, as Markdown; - reads it from stdin.")
@_priority
@click.option("-t", "--tag", "tags", metavar="TAG", multiple=True, help='All its tags. May be repeated; "" for none.')
@_role
@click.option(
    "--after", metavar="TASK", multiple=True, help='All that it comes after: ids, titles. May be repeated; "" for none.'
)
@click.option("--checkpoint/--no-checkpoint", default=None, help="Whether whoever completes it hands over and ends.")
@_verify
@_route
@click.option(
    "--status",
    type=click.Choice(("pending", "cancelled")),
    help="cancelled: take it off the list; pending: put it back, a failed one, too.",
)
@click.option("--into", "titles", multiple=True, metavar="TITLE", help="Split it into parts in this order. Repeatable.")
@with_root
@with_json
@click.pass_context
def edit(
    ctx: click.Context,
    id_: str,
    title: str | None,
    text: str | None,
    priority: int | None,
    tags: tuple[str, ...],
    role: str | None,
    after: tuple[str, ...],
    checkpoint: bool | None,
    verify: str | None,
    route: str | None,
    status: str | None,
    titles: tuple[str, ...],
    root: str | None,
    as_json: bool,
) -> None:
    """Change the task ID. Without options, edit its file in $VISUAL or $EDITOR.

    With --into it is cancelled, and its parts take its place: they keep its role, priority and dependencies, and what
    waited for it waits for the last one.

    You can also edit the file directly at any time. An invalid file is never overwritten; on a terminal you can
    continue editing. Without a terminal, an editor that needs one is refused: use the options or edit the file.

    \b
    Examples:
      ralf task edit TASK-7k3q --priority 9 --after "Write the parser"
      ralf task edit TASK-7k3q --status cancelled
      ralf task edit TASK-7k3q --into "Write the tokenizer" --into "Write the parser"
      EDITOR=nano ralf task edit TASK-7k3q

    \b
    Exit status: 0, even if nothing changed · 1 unwritable, the editor cannot be started, or failed ·
    2 a title that fits several tasks, a cycle · 3 no such task · 4 the file cannot be read (nothing is lost) · 5 busy
    """
    from ralf.tasks import editing
    from ralf_cli.task import said, tell
    from ralf_cli.tasktext import full

    fields = {
        "title": title,
        "text": said(text) if text is not None else None,
        "priority": priority,
        "tags": tuple(filter(None, tags)) if tags else None,
        "role": role,
        "after": tuple(filter(None, after)) if after else None,
        "checkpoint": checkpoint,
        "verify": verify,
        "route": route,
        "status": status,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    if titles:
        _split(id_, titles, root, alone=not given, as_json=as_json)
        return
    state = editing.edit(id_, **given, root=root) if given else _edited(ctx, id_, root)
    tell(state, full(state, root), as_json=as_json)


def _split(id_: str, titles: tuple[str, ...], root: str | None, *, alone: bool, as_json: bool) -> None:
    """Split a task into parts that follow each other."""
    from ralf.tasks import editing
    from ralf_cli.output import emit_json
    from ralf_cli.tasktext import as_json as tree, named

    if not alone:
        raise click.UsageError("--into stands alone")
    parts = editing.split(id_, titles, root=root)
    if as_json:
        emit_json([tree(part) for part in parts])
    for part in parts if not as_json else ():
        click.echo(named(part))


def _edited(ctx: click.Context, id_: str, root: str | None) -> TaskState:
    """The task after a person has edited its file."""
    from ralf.errors import Damaged, NotFound
    from ralf.tasks import editing, store
    from ralf_cli.person import is_person
    from ralf_cli.terminal import complain
    from ralf_cli.writing import check_editor, run_editor

    state = store.get(id_, root=root)
    if state.path is None:
        raise NotFound(state.task.id, "has no file here", f"ralf task show {state.task.id}")
    again = f"ralf task edit {state.task.id}"
    check_editor(state.task.id, state.path, again)
    while True:
        run_editor(state.path, again)
        try:
            state = store.get(state.task.id, root=root)
        except Damaged as error:
            complain(str(error), f"mend the file: {again}")
            if not (sys.stdin.isatty() and click.confirm("Edit it again?", default=True, err=True)):
                ctx.exit(4)
        else:
            accepts = state.has_edited_verify and is_person()
            return editing.edit(state.task.id, verify=state.task.verify, root=root) if accepts else state
