"""`ralf checkpoint`, `decide` and `edit`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralf_cli.command import Command, command
from ralf_cli.options import (
    Misused,
    called_now,
    with_json,
    with_json_alone,
    with_new,
    with_root,
    with_route,
    with_route_and_text,
)

if TYPE_CHECKING:
    from ralf.checkpointing.flow import CheckpointReport

_SESSIONS = 5_000  # of Codex's newest sessions, of all projects, that are looked at for this project's newest


_as_text = click.option(
    "--as",
    "read_as",
    type=click.Choice(["text"]),
    help="Read a file that is not a session log as a document: nothing in it counts as your words or makes a rule.",
)


_again = click.option(
    "--again",
    is_flag=True,
    help="Checkpoint a session that belongs to another route from its beginning, so that both routes have it.",
)


_LARGE = 5_000_000  # bytes from which a checkpoint takes long enough for a progress bar


class _Checkpoint(Command):
    """Its hint for a second argument says where a transcript is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does."""
        typed = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message or len(typed) != len(_ROUTE_AND_FILE):
                raise
            hint = f"{ctx.command_path} {shlex.quote(typed[0])} --transcript {shlex.quote(typed[1])}"
            raise Misused(ctx, error.message, hint) from None


_ROUTE_AND_FILE = ("ROUTE", "FILE")


@command(short_help="Checkpoint new transcript content.", cls=_Checkpoint)
@with_route
@click.option(
    "--transcript",
    metavar="PATH",
    help="The session log, or a run folder of the RALF loop. Default: the project's newest session.",
)
@click.option(
    "--summarizer",
    metavar="NAME",
    help="extractive (built in), or a model that hands over at the checkpoint now: claude, codex, llm, command. "
    "Default: as configured.",
)
@click.option("--keep", metavar="TEXT", multiple=True, help="Hints about what to keep. May be repeated.")
@_as_text
@_again
@click.option("--restart", is_flag=True, help="Read the transcript from its beginning (if it was replaced).")
@click.option("--watch", is_flag=True, help="Follow the transcript, and checkpoint whenever that is due.")
@click.option("--every", type=click.IntRange(min=1), metavar="N", help="With --watch: tokens between checkpoints.")
@click.option("--once", is_flag=True, help="With --watch: check once, then exit.")
@with_root
@with_json_alone
@click.pass_context
def checkpoint(
    ctx: click.Context,
    route: str,
    transcript: str | None,
    summarizer: str | None,
    keep: tuple[str, ...],
    read_as: str | None,
    again: bool,
    restart: bool,
    watch: bool,
    every: int | None,
    once: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Checkpoint new transcript content: write a checkpoint to ROUTE for each new segment.

    Writes nothing if there is no new content. A session that belongs to another route is refused without --again;
    on a terminal you are asked. Otherwise ROUTE becomes the session's route, unless one was set. A model costs
    tokens and is used only if named here or in config.local.yaml; its usage is printed, recorded and summed in
    `ralf status`. If a model is named here and there is no new content, it is about the newest checkpoint. If the
    model fails, the built-in checkpoint is kept.

    \b
    Examples:
      ralf checkpoint TASK-001
      ralf checkpoint TASK-001 --transcript session.jsonl
      ralf checkpoint TASK-001 --transcript runs/executor/run-0018
      ralf checkpoint TASK-001 --transcript minutes.md --as text
      ralf checkpoint TASK-001 --summarizer claude --keep "the migration plan"
      ralf checkpoint TASK-001 --watch --every 30000

    \b
    Exit status: 0, even if nothing was new · 1 unwritable, disk full · 2 invalid name · 3 no transcript ·
    4 no session, damaged transcript or route file · 5 busy; the transcript shrank or was replaced ·
    130 stopped from the keyboard
    """
    import ralf
    from ralf import project as projects, routing
    from ralf.config.local_config import MODELS
    from ralf.errors import DamagedTranscript
    from ralf.route import offsets
    from ralf.transcripts.reader import open_transcript
    from ralf_cli.output import say

    if not watch and (once or every is not None):
        raise click.UsageError("--every and --once are for --watch")
    if watch and (summarizer or keep or restart):
        raise click.UsageError("--watch takes none of --summarizer, --keep, --restart")
    path = _transcript(transcript, root)
    if watch:
        reports = _followed(route, path, root, every=every, once=once, again=again, read_as=read_as, quiet=as_json)
        if [report for report in reports if _tell_report(report, as_json=as_json)]:
            ctx.exit(4)
        return
    project = projects.find(root)
    route = routing.check_new(project, route)
    try:
        source = open_transcript(path, root=project.root, as_text=read_as == "text")
    except DamagedTranscript as error:
        error.hint = error.hint.replace(" ROUTE ", f" {route} ")
        raise
    begin = offsets.begin_of(project, route, source, again=again)
    if summarizer in MODELS and sys.stderr.isatty():
        say(f"asking {summarizer}; this may take a while")
    with _progress(path, quiet=as_json) as progress:
        report = ralf.checkpoint(
            route,
            source,
            root=root,
            summarizer=summarizer,
            keep=keep,
            restart=restart,
            begin=begin,
            progress=progress,
        )
    if report.checkpoints:
        offsets.keep(project, report.route, source)
    if _tell_report(report, as_json=as_json):
        ctx.exit(4)


def _tell_report(report: CheckpointReport, *, as_json: bool) -> bool:
    """Print what a checkpoint came to; whether its route file is damaged."""
    from ralf_cli.output import emit_json, emit_report, handed_over, report_as_json

    if as_json:
        emit_json(report_as_json(report))
    else:
        with handed_over():
            emit_report(report)
    return complained(report.damage)


def _followed(
    route: str,
    path: Path,
    root: str | None,
    *,
    every: int | None,
    once: bool,
    again: bool,
    read_as: str | None,
    quiet: bool,
) -> Iterator[CheckpointReport]:
    """The checkpoints of a transcript that grows."""
    from ralf.checkpointing.progress import watch
    from ralf_cli.output import say

    if not quiet and not once:
        say(f"watching {path}; stop with Ctrl-C")
    as_text = read_as == "text"
    yield from watch(route, path, root=root, every=every, once=once, as_text=as_text, again=again, idle=say)


@command(short_help="Record a decision with its reason and rejected options.")
@with_route_and_text("pin")
@click.option("--because", metavar="WHY", default="", help="The reason.")
@click.option(
    "--instead-of", metavar="OPTION", multiple=True, help='A rejected option, as "option: why not". May be repeated.'
)
@click.option("--supersedes", metavar="ID", help="The decision that this one replaces, e.g. DEC-003.")
@click.option("--rule", is_flag=True, help="A standing rule: kept verbatim, never condensed.")
@click.option(
    "--pin", metavar="LINE", is_eager=True, help="Instead of TEXT: show a message in every brief, by its line or id."
)
@click.option(
    "--origin", type=click.Choice(["user", "agent"]), help="Who decided. Default: user at a terminal, else agent."
)
@with_new
@with_root
@with_json
@click.pass_context
def decide(
    ctx: click.Context,
    route: str,
    text: str | None,
    because: str,
    instead_of: tuple[str, ...],
    supersedes: str | None,
    rule: bool,
    pin: str | None,
    origin: str | None,
    is_new: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Record the decision TEXT in ROUTE with its reason and rejected options, or pin a message of the person's.

    A pin is taken off by `ralf undo`, or in the file.

    \b
    Examples:
      ralf decide "Use SQLite in WAL mode" --because "one file, many readers"
      ralf decide TASK-001 "Use FastAPI" --instead-of "Flask: no async" --supersedes DEC-002
      ralf decide TASK-001 "Never push to main" --rule
      ralf decide TASK-001 --pin 212

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name, or nearly an existing one (--new), no text ·
    3 nothing to supersede, no such message · 4 damaged route file (the decision is in the journal) · 5 busy
    """
    import ralf
    from ralf import project as projects, routing
    from ralf.document.tree import to_tree
    from ralf.route.load import load_state
    from ralf_cli.output import emit_json, given_back, say
    from ralf_cli.person import author, check_person
    from ralf_cli.tables import echoed

    if origin == "user":
        check_person(called_now(root, route), "nothing was recorded as yours", "ralf decide")
    if pin is not None:
        from ralf.route.corrections import pin as pinned

        routing.check_typed(projects.find(root), route, is_new=is_new)
        made = pinned(route, pin, origin=origin or author(), root=root)
        if as_json:
            emit_json(to_tree(made))
        else:
            click.echo(f"{called_now(root, route)}: pinned line {made.line}: {echoed(made.words)}")
        return
    with given_back(root, text or "", because, *instead_of):
        routing.check_order(projects.find(root), route, text or "", "ralf decide")
        routing.check_typed(projects.find(root), route, is_new=is_new)
        decision = ralf.record_decision(
            route,
            text or "",
            rationale=because,
            alternatives=instead_of,
            supersedes=supersedes,
            kind="rule" if rule else "decision",
            pinned=rule,
            origin=origin or author(),
            root=root,
            warn=lambda warning: say(f"warning: {warning}"),
        )
    if as_json:
        emit_json(to_tree(decision))
    else:
        click.echo(f"{called_now(root, route)}: {decision.id}: {echoed(decision.decision)}")
    state = load_state(*routing.find(route, root))
    if complained(next(iter(state.context.warnings), "") if state is not None else ""):
        ctx.exit(4)


def complained(damage: str) -> bool:
    """Whether a route file could not be made to show what was written; said on stderr."""
    if damage:
        from ralf_cli.terminal import complain

        what = "what was typed is recorded, in the journal; mend the file, or move it away, and the next write shows it"
        complain(damage, what)
    return bool(damage)


def _transcript(named: str | None, root: str | None) -> Path:
    from ralf import project as projects
    from ralf.errors import TranscriptNotFound
    from ralf.transcripts.reader import newest_logs

    if named is not None:
        return _named(Path(named))
    project = projects.find(root)
    found = newest_logs(project, most=_SESSIONS)
    if not found:
        ctx = click.get_current_context()
        route = ctx.params["route"]
        named = f"ROUTE --transcript {shlex.quote(route)}" if Path(route).is_file() else f"{route} --transcript FILE"
        hint = f"{ctx.command_path} {named}"
        raise TranscriptNotFound(project.root, "no client has kept a session of this project here", hint)
    return found[0]


def _named(path: Path) -> Path:
    """The path itself; UsageError where an agent names a file that is no log of the user's clients: whatever a page or
    the repository told it to take in would speak as the user.
    """
    from ralf import environment
    from ralf.errors import UsageError
    from ralf.transcripts.reader import is_own_log

    if environment.is_agent() and not path.is_dir() and not is_own_log(path):
        what = "is no session log of this user's clients, and an agent runs this: not read"
        raise UsageError(path, what, "a person names any other file in a terminal of their own")
    return path


@contextmanager
def _progress(path: Path, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal, for a transcript that is long enough for one."""
    if quiet or not sys.stderr.isatty() or not path.is_file() or path.stat().st_size < _LARGE:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(path.name, total=path.stat().st_size)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@command(short_help="Edit a route file in $EDITOR.")
@with_route
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
      ralf edit TASK-001
      EDITOR=nano ralf edit TASK-001

    \b
    Exit status: 0, even if nothing changed · 1 the editor cannot be started, or failed · 2 invalid name ·
    3 no such route · 4 the file cannot be read (nothing is lost) · 5 busy
    """
    from ralf import project as projects, routing
    from ralf.route import corrections, history
    from ralf_cli.history import emit_words
    from ralf_cli.output import emit_json, fields_of, say, warn
    from ralf_cli.terminal import complain

    project = projects.find(root)
    check_editor(route, project.route_file(routing.existing(project, route)), f"ralf edit {route}")
    opened = corrections.take_in(route, root=root)
    if (is_said := sys.stderr.isatty()) and opened.damage:
        say(f"warning: {opened.damage}")  # before the editor shows the file
    while True:
        run_editor(opened.path, f"ralf edit {opened.route}")
        done = corrections.take_in(opened.route, root=root)
        if not done.damage:
            break
        hint = f"mend the file: ralf edit {opened.route}"
        if done.damage == opened.damage:  # to type the same again would say the same again
            anew = f"ralf doctor {opened.route} --repair"
            hint = f"mend it in {opened.path}, or have it moved aside and written anew from the journal: {anew}"
        complain(done.damage, hint)
        if not (sys.stdin.isatty() and click.confirm("Edit it again?", default=True, err=True)):
            ctx.exit(4)
    warn(([opened.damage] if opened.damage and not is_said else []) + [*done.warnings])
    found = history.diff(done.route, f"r{opened.revision}", f"r{done.revision}", root=root)
    if as_json:
        emit_json(fields_of(done) | {"words": [fields_of(one) for one in found.words], "changes": found.changes})
        return
    emit_words(found.words)
    changed = f"recorded, revision {done.revision}" if found.changes else "nothing changed"
    click.echo(f"{done.route}: {changed}")


def check_editor(where: str, path: Path, again: str) -> None:
    """UsageError unless a person is at the terminal that the editor needs.

    where  the route or task that is meant, whose file lies at `path`; `again`: the command that edits it
    """
    from ralf_cli.person import check_person

    check_person(where, "no editor was started", f"{again}; or change the file itself: {path}")


def run_editor(path: Path, again: str) -> None:
    """Run the person's editor on a file and wait for it; RalfError where it fails: what it saved stays.

    again  the command that edits the file again
    """
    import shlex
    import subprocess

    from ralf import environment
    from ralf.errors import RalfError

    command = environment.editor()
    try:
        status = subprocess.call([*shlex.split(command), str(path)])
    except (OSError, ValueError) as error:
        what = f"the editor cannot be started: {getattr(error, 'strerror', None) or error}"
        raise RalfError(command, what, "name another: export EDITOR=nano") from None
    if status:
        what = f"ended with status {status}; what it saved stays in {path}"
        raise RalfError(command, what, again)
