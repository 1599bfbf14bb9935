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


@click.command(short_help="Open a route file in your editor, and take it in.")
@with_route()
@with_root
@with_json
@click.pass_context
def edit(ctx: click.Context, route: str, root: str | None, as_json: bool) -> None:
    """Open the route file of ROUTE in your editor ($VISUAL, else $EDITOR), and take in what you changed at once.

    Any other editor does as well, at any moment: then the next write takes it in. A decision that you take out is
    dropped (see drop). A file that cannot be read afterwards is not written over; on a terminal you may go on editing.
    Without a terminal an editor that needs one is refused: change the file itself.

    \b
    Examples:
      ralf context edit TASK-001
      EDITOR=nano ralf context edit TASK-001

    \b
    Exit status: 0, also when nothing changed · 1 the editor cannot be started, or failed · 2 refused name ·
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


@click.command(short_help="Drop a decision for good.")
@with_route("id")
@click.option("--because", metavar="WHY", default="", help="The reason; kept in the record.")
@with_root
@with_json
def drop(route: str, id: str, because: str, root: str | None, as_json: bool) -> None:  # noqa: A002
    """Drop the decision ID of ROUTE for good.

    It leaves what is in force and what a fresh agent reads, and no transcript and no model brings it back, however it
    is said there. Its words stay in the journal (`forget` purges them). `decide` with the same text brings it back.

    \b
    Examples:
      ralf context drop TASK-001 DEC-003
      ralf context drop TASK-001 dec-3 --because "it was only a guess"

    \b
    Exit status: 0, also when it was dropped before · 1 unwritable, disk full · 2 refused name ·
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


@click.command(short_help="Purge words from the whole store.")
@click.argument("route")
@click.argument("id", required=False)
@click.option("--text", metavar="TEXT", help="This text instead, wherever it stands; - reads it from stdin.")
@click.option("--dry-run", is_flag=True, help="Only say what would be touched.")
@click.option("--yes", is_flag=True, help="Do not ask.")
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
    """Purge the words of ROUTE's decision or checkpoint ID, or a text, from the whole store; without either, all of
    ROUTE.

    Every record of every route, evidence, route files, archives, caches and the search index are purged, and read back.
    It cannot be undone. Case, white space, Markdown, NFC or NFD, JSON's escapes, percent encoding and HTML's entities
    do not hide the words; base64, hexadecimal, double encoding and other spellings do. Out of its reach: git history,
    backups, and the client's own transcripts: a text that one says again is taken again, unless `redact_patterns` in
    config.yaml keeps it out. A secret is better piped in with `--text -`, so that it does not stand in the shell's
    history.

    \b
    Examples:
      ralf context forget TASK-001 DEC-003
      ralf context forget TASK-001 cp-002 --dry-run
      ralf context forget TASK-001 --text - --yes < secret.txt
      ralf context forget TASK-001 --yes

    \b
    Exit status: 0, also when nothing held the words · 1 unwritable; the words still stand somewhere (it says where) ·
    2 refused name, a text too short, not confirmed · 3 no such route or item · 4 damaged data (nothing is purged) ·
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
