"""`ralf context edit`, `drop` and `forget`: what a person corrects, retires for good, or has purged."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from ralf_cli.options import with_json, with_root, with_route

if TYPE_CHECKING:
    from ralf.maintenance.forget import Forgotten
    from ralf.route.corrections import Opened


_AT_A_KEYBOARD = frozenset(
    "ed emacs ex helix hx jed jmacs joe kak mcedit mg micro nano ne nvi nvim pico vi view vile vim vimdiff zile".split()
)
"""Editors that wait for a person's keys, and hang, or fail, where there are none."""


@click.command(short_help="Edit a route file in $EDITOR.")
@with_route()
@with_root
@with_json
@click.pass_context
def edit(ctx: click.Context, route: str, root: str | None, as_json: bool) -> None:
    """Edit the route file of ROUTE in $VISUAL or $EDITOR, and merge your changes when the editor exits.

    You can also edit the file directly at any time; the next write picks up your changes. Deleting a decision drops
    it (see drop). An invalid file is never overwritten; on a terminal you can continue editing. Without a terminal,
    an editor that needs one is refused: edit the file directly.

    \b
    Examples:
      ralf context edit TASK-001
      EDITOR=nano ralf context edit TASK-001

    \b
    Exit status: 0, even if nothing changed · 1 the editor cannot be started, or failed · 2 invalid name ·
    3 no such route · 4 the file cannot be read (nothing is lost) · 5 busy
    """
    from ralf.route import corrections
    from ralf_cli.changing import emit_words
    from ralf_cli.output import emit_json, fields_of, say
    from ralf_cli.terminal import complain

    _check_editor(route, root)
    opened = corrections.open_file(route, root=root)
    if opened.damage:
        say(f"warning: {opened.damage}")
    while True:
        _run_editor(opened)
        done = corrections.take_in(opened.route, since=opened.revision, root=root)
        if not done.damage:
            break
        complain(done.damage, f"mend the file: ralf context edit {opened.route}")
        if not (sys.stdin.isatty() and click.confirm("Edit it again?", default=True, err=True)):
            ctx.exit(4)
    for warning in done.warnings:
        say(f"warning: {warning}")
    if as_json:
        emit_json(fields_of(done))
        return
    emit_words(done.words)
    changed = f"taken in, revision {done.revision}" if done.words or done.changes else "nothing changed"
    click.echo(f"{done.route}: {changed}")


def _check_editor(route: str, root: str | None) -> None:
    """UsageError where the editor waits for a keyboard, and there is none: an agent's shell would hang."""
    import shlex
    from pathlib import Path

    from ralf import environment, project as projects, routing
    from ralf.errors import UsageError

    if sys.stdin.isatty() and sys.stdout.isatty():
        return
    command = environment.editor()
    with suppress(ValueError):  # it is said when it is started
        if Path(shlex.split(command)[0]).name.casefold() not in _AT_A_KEYBOARD:
            return
    project = projects.find(root)
    path = project.route_file(routing.existing(project, route))
    raise UsageError(route, f"{command} needs a terminal, and there is none", f"change the file itself: {path}")


def _run_editor(opened: Opened) -> None:
    """Run the person's editor on a route file and wait for it; RalfError where it fails: what it saved stays."""
    import shlex
    import subprocess

    from ralf import environment
    from ralf.errors import RalfError

    command = environment.editor()
    keyboard = None if sys.stdin.isatty() and sys.stdout.isatty() else subprocess.DEVNULL
    try:
        status = subprocess.call([*shlex.split(command), str(opened.path)], stdin=keyboard)
    except (OSError, ValueError) as error:
        what = f"the editor cannot be started: {getattr(error, 'strerror', None) or error}"
        raise RalfError(command, what, "name another: export EDITOR=nano") from None
    if status:
        what = f"ended with status {status}; what it saved stays in {opened.path}"
        raise RalfError(command, what, f"ralf context edit {opened.route}")


@click.command(short_help="Permanently drop a decision.")
@with_route("id")
@click.option("--because", metavar="WHY", default="", help="The reason; recorded.")
@with_root
@with_json
def drop(route: str, id: str, because: str, root: str | None, as_json: bool) -> None:  # noqa: A002
    """Permanently drop the decision ID of ROUTE.

    It is removed from the active decisions and will not be re-created from transcripts or models, whatever the
    wording. Its text stays in the journal (`forget` erases it). `decide` with the same text restores it.

    \b
    Examples:
      ralf context drop TASK-001 DEC-003
      ralf context drop TASK-001 dec-3 --because "it was only a guess"

    \b
    Exit status: 0, even if it was already dropped · 1 unwritable, disk full · 2 invalid name ·
    3 no such route or decision · 4 damaged journal · 5 busy
    """
    from ralf.format.codec import to_tree
    from ralf.route import corrections
    from ralf.text.cleaning import one_line
    from ralf_cli.output import emit_json

    dropped = corrections.drop(route, id, because=because, root=root)
    if as_json:
        emit_json({"route": dropped.route, "changed": dropped.changed, "decision": to_tree(dropped.decision)})
        return
    said = "dropped" if dropped.changed else "was dropped before"
    click.echo(f"{dropped.route}: {dropped.decision.id} {said}: {one_line(dropped.decision.decision)}")


@click.command(short_help="Erase text from the entire store.")
@click.argument("route")
@click.argument("id", required=False)
@click.option("--text", metavar="TEXT", help="Erase this text wherever it appears; - reads it from stdin.")
@click.option("--dry-run", is_flag=True, help="Only list what would be erased.")
@click.option("--yes", is_flag=True, help="Skip confirmation.")
@with_root
@with_json
@click.pass_context
def forget(
    ctx: click.Context,
    route: str,
    id: str | None,  # noqa: A002
    text: str | None,
    dry_run: bool,
    yes: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Erase the text of ROUTE's decision or checkpoint ID, or any text, from the entire store; without either, all
    of ROUTE.

    Erases it from the records of every route, evidence, route files, archives, caches and the search index, and
    reads them back to verify. This cannot be undone. The text is found regardless of case, white space, Markdown,
    NFC or NFD, JSON escapes, percent encoding and HTML entities, but not in base64, hexadecimal, double encoding or
    other spellings. It cannot reach git history, backups or the client's transcripts; if the text appears again in
    a transcript it is recorded again unless `redact_patterns` in config.yaml excludes it. Pipe secrets in with
    `--text -` to keep them out of your shell history.

    \b
    Examples:
      ralf context forget TASK-001 DEC-003
      ralf context forget TASK-001 cp-002 --dry-run
      ralf context forget TASK-001 --text - --yes < secret.txt
      ralf context forget TASK-001 --yes

    \b
    Exit status: 0, even if nothing held the words · 1 unwritable; some copies remain (they are listed) ·
    2 invalid name, text too short, not confirmed · 3 no such route or item · 4 damaged data (nothing is erased) ·
    5 busy
    """
    from ralf_cli.output import emit_json, fields_of, say
    from ralf_cli.terminal import complain

    if id is not None and text is not None:
        raise click.UsageError("ID and --text: which of them?")
    if text == "-":
        text = sys.stdin.read().strip("\n")
    if not dry_run and not yes:
        looked = _forget(route, id, text, dry_run=True, root=root)
        _confirm(looked)
    done = _forget(route, id, text, dry_run=dry_run, root=root)
    if as_json:
        emit_json(fields_of(done))
    else:
        for line in _told(done):
            click.echo(line)
    if done.done and done.files and _is_shared(root):
        say("routes/ is shared: commit it; git history still has what it had")
    if done.left:
        complain(f"{done.route}: the words still stand in {', '.join(done.left)}", "purge these by hand")
        ctx.exit(1)


def _forget(route: str, id: str | None, text: str | None, *, dry_run: bool, root: str | None) -> Forgotten:  # noqa: A002
    if id is None and text is None:
        from ralf.maintenance.forget import forget_route

        return forget_route(route, dry_run=dry_run, root=root)
    from ralf.maintenance.forget import forget

    return forget(route, id, text=text, dry_run=dry_run, root=root)


def _confirm(looked: Forgotten) -> None:
    """Ask on a terminal; anywhere else nothing is purged that `--yes` does not say."""
    from ralf_cli.output import say

    for line in _told(looked):
        say(line)
    what = f"the whole route {looked.route}" if looked.whole else ", ".join(looked.ids) or "this text"
    if not sys.stdin.isatty():
        raise click.UsageError("nothing was forgotten: this cannot be undone, so say --yes")
    if not click.confirm(f"Forget {what}? This cannot be undone", err=True):
        raise click.UsageError("nothing was forgotten")


def _told(found: Forgotten) -> list[str]:
    """What was touched, or would be, in words, and what is not reached."""
    from ralf.maintenance.purge import NOT_REACHED

    unreached = [] if found.whole else [f"  not looked for: {', '.join(NOT_REACHED)}"]
    if not found.touched:
        return [f"{found.route}: nothing to forget: the words stand nowhere", *unreached]
    what = "the whole route" if found.whole else ", ".join(found.ids) or "a text"
    records = ", ".join(f"{count} of {route}" for route, count in sorted(found.records.items()))
    lines = [f"{found.route}: {'forgot' if found.done else 'would forget'} {what}"]
    if records:
        lines.append(f"  records: {records}")
    if found.files:
        lines.append(f"  files: {', '.join(found.files)}")
    if found.blobs:
        lines.append(f"  evidence: {found.blobs}")
    if found.caches:
        lines.append(f"  caches: {', '.join(found.caches)}")
    return [*lines, *unreached]


def _is_shared(root: str | None) -> bool:
    """Whether git sees the route files."""
    from ralf import project as projects
    from ralf.storage.files import content_of

    try:
        return b"!routes/" in content_of(projects.find(root).folder / ".gitignore")
    except OSError:
        return False
