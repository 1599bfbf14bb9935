"""`ralf checkpoint`: what is new in a session's log, as checkpoints of a route."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import ralf
from ralf import environment, routing
from ralf.checkpointing.flow import CheckpointReport
from ralf.checkpointing.progress import watch
from ralf.config.local_config import MODELS
from ralf.document.tree import to_tree
from ralf.errors import DamagedTranscript, TranscriptNotFound, UsageError
from ralf.facts.progress import describe_run
from ralf.route import offsets
from ralf.transcripts.reader import is_own_log, newest_logs, open_transcript
from ralf_cli.command import command, handed_over, is_json, project, root
from ralf_cli.options import with_route
from ralf_cli.output import check_shown, emit_json, price, progress_of, say, warn
from ralf_cli.tables import so_many

_SESSIONS = 5_000  # of Codex's newest sessions, of all projects, that are looked at for this project's newest


@command(is_fenced=False)
@with_route
@click.option("--transcript", metavar="PATH", help="The session log, or a run folder. Default: the newest session.")
@click.option("--summarizer", metavar="NAME", help="extractive, or a model: claude, codex, llm, command.")
@click.option("--keep", metavar="TEXT", multiple=True, help="Hints about what to keep. May be repeated.")
@click.option("--as", "read_as", type=click.Choice(["text"]), help="A document: nothing in it counts as your words.")
@click.option("--again", is_flag=True, help="Take a session of another route from its beginning, too.")
@click.option("--restart", is_flag=True, help="Read the transcript from its beginning (if it was replaced).")
@click.option("--watch", is_flag=True, help="Follow the transcript, and checkpoint whenever that is due.")
@click.option("--every", type=click.IntRange(min=1), metavar="N", help="With --watch: tokens between checkpoints.")
@click.option("--once", is_flag=True, help="With --watch: check once, then exit.")
def checkpoint(
    route: str,
    transcript: str | None,
    read_as: str | None,
    again: bool,
    watch: bool,
    every: int | None,
    once: bool,
    **how: Any,
) -> None:
    """Checkpoint new transcript content: write a checkpoint to ROUTE for each new segment.

    Writes nothing if there is no new content. A session that belongs to another route is refused without --again.
    Otherwise ROUTE becomes the session's route, unless one was set. A model costs tokens and is used only if named here
    or in config.local.yaml. If it fails, the built-in checkpoint is kept.

    \b
    Examples:
      ralf checkpoint TASK-001
      ralf checkpoint TASK-001 --transcript session.jsonl
      ralf checkpoint TASK-001 --summarizer claude --keep "the migration plan"
      ralf checkpoint TASK-001 --watch --every 30000
    """
    if not watch and (once or every is not None):
        raise click.UsageError("--every and --once are for --watch")
    if watch and any(how.values()):
        raise click.UsageError("--watch takes none of --summarizer, --keep, --restart")
    path = _transcript(route, transcript)
    if watch:
        reports: Iterator[CheckpointReport] = _followed(
            route, path, every=every, once=once, as_text=read_as == "text", again=again
        )
    else:
        reports = iter([_made(route, path, as_text=read_as == "text", again=again, **how)])
    damage = ""
    for report in reports:
        if is_json():
            emit_json(_as_json(report))
        else:
            with handed_over():
                _emit(report)
        damage = report.damage or damage
    check_shown(damage)


def _followed(route: str, path: Path, *, once: bool, **how: Any) -> Iterator[CheckpointReport]:
    if not is_json() and not once:
        say(f"watching {path}; stop with Ctrl-C")
    return watch(route, path, root=root(), once=once, idle=say, **how)


def _made(route: str, path: Path, *, as_text: bool, again: bool, **how: Any) -> CheckpointReport:
    here = project()
    route = routing.check_new(here, route)
    try:
        source = open_transcript(path, root=here.root, as_text=as_text)
    except DamagedTranscript as error:
        error.hint = error.hint.replace(" ROUTE ", f" {route} ")
        raise
    begin = offsets.begin_of(here, route, source, again=again)
    if how["summarizer"] in MODELS and sys.stderr.isatty():
        say(f"asking {how['summarizer']}; this may take a while")
    with progress_of(path.name) as progress:
        report = ralf.checkpoint(route, source, root=root(), begin=begin, progress=progress, **how)
    if report.checkpoints:
        offsets.keep(here, report.route, source)
    return report


def _transcript(route: str, named: str | None) -> Path:
    """The log that is read. UsageError where an agent names a file that is no log of the user's clients: whatever a
    page or the repository told it to take in would speak as the user.
    """
    if named is None:
        found = newest_logs(project(), most=_SESSIONS)
        if not found:
            named = (
                f"ROUTE --transcript {shlex.quote(route)}" if Path(route).is_file() else f"{route} --transcript FILE"
            )
            hint = f"ralf checkpoint {named}"
            raise TranscriptNotFound(project().root, "no client has kept a session of this project here", hint)
        return found[0]
    path = Path(named)
    if environment.is_agent() and not path.is_dir() and not is_own_log(path):
        what = "is no session log of this user's clients, and an agent runs this: not read"
        raise UsageError(path, what, "a person names any other file in a terminal of their own")
    return path


def _as_json(report: CheckpointReport) -> dict[str, Any]:
    plain = "route revision reason summarizer tokens_read tokens_stored path blank skipped warnings damage refinements"
    return {
        **{name: getattr(report, name) for name in plain.split()},
        "checkpoints": [to_tree(entry) for entry in report.checkpoints],
        "ratio": round(report.ratio, 2),
        "run": to_tree(report.run) if report.run is not None else None,
    }


def _emit(report: CheckpointReport) -> None:
    warn(report.warnings)
    if report.run is not None:
        click.echo(f"{report.route}: {describe_run(report.run)}")
        if empty := report.skipped.get("empty document", 0):
            click.echo(f"{so_many(empty, 'document')} of it: nothing was written")
    for entry in report.checkpoints:
        title = entry.summary_ref.partition(": ")[2]
        click.echo(
            f"{report.route}: {entry.checkpoint_id} ({entry.reason}), {entry.tokens:,} tokens: {title}".rstrip(": ")
        )
    if report.checkpoints:
        share = f" ({report.ratio:.0f}:1)" if report.ratio >= 1 else ""
        click.echo(f"{report.tokens_read:,} tokens became {report.tokens_stored:,}{share}")
    elif report.blank:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(report.skipped.items()))
        click.echo(f"{report.route}: no message and no call in the transcript yet (left out: {counts or 'nothing'})")
    else:
        click.echo(f"{report.route}: nothing new")
    for made in report.refinements:
        took = price(made.input_tokens + made.output_tokens, made.cost_usd, is_estimated=made.estimated)
        if made.failure:
            say(f"warning: {made.route}: {made.summarizer} handed nothing over: {made.failure} ({took})")
        else:
            click.echo(f"{made.text} (by {made.summarizer}; {took})")
    if report.checkpoints:
        click.echo(str(report.path))
